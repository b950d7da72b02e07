/* Loops of small arrays, compiled and run by the engine: the same values, bit for bit. What the values have to be is tested in
 * testdata/run/small-loops.test. */
#include "eval/loop.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "text/parse.h"

static bool look(void *cookie, const EvalStep *s)
{
    return true;
}

typedef struct Case {
    const char *name;
    bool        compiled;
    const char *state;    /* its type; element 0 is the trip, s32[] */
    const char *more;     /* further computations */
    const char *step;     /* of body: %s is the state, i its element 0, r the root */
    const char *start;    /* of ENTRY: the elements from 1 on, and r, the state */
    int         trips;
} Case;

#define SUM "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
#define NEXT "one = s32[] constant(1) j = s32[] add(i, one)\n"

static const Case cases[] = {
    {"exchange", true, "(s32[], f32[3], f32[3])", "",
     "a = f32[3] get-tuple-element(s), index=1 b = f32[3] get-tuple-element(s), index=2 c = f32[3] add(a, b)\n" NEXT
     "ROOT r = (s32[], f32[3], f32[3]) tuple(j, b, c)",
     "a = f32[3] constant({1, nan, -0}) b = f32[3] constant({inf, 2, 0}) ROOT r = (s32[], f32[3], f32[3]) tuple(z, a, b)", 5},
    {"rotation of three", true, "(s32[], s32[2], s32[2], s32[2])", "",
     "a = s32[2] get-tuple-element(s), index=1 b = s32[2] get-tuple-element(s), index=2 c = s32[2] get-tuple-element(s), index=3\n" NEXT
     "ROOT r = (s32[], s32[2], s32[2], s32[2]) tuple(j, c, a, b)",
     "a = s32[2] constant({1, 2}) b = s32[2] constant({3, 4}) c = s32[2] constant({5, 6})\n"
     "ROOT r = (s32[], s32[2], s32[2], s32[2]) tuple(z, a, b, c)", 4},
    {"no trip", true, "(s32[], f32[2])", "", "a = f32[2] get-tuple-element(s), index=1 b = f32[2] add(a, a)\n" NEXT
     "ROOT r = (s32[], f32[2]) tuple(j, b)", "a = f32[2] constant({1, 2}) ROOT r = (s32[], f32[2]) tuple(z, a)", 0},
    {"slices out of range", true, "(s32[], s8[5], s8[5])", "",
     "a = s8[5] get-tuple-element(s), index=1 b = s8[5] get-tuple-element(s), index=2 two = s32[] constant(2) k = s32[] subtract(i, two)\n"
     "x = s8[2] dynamic-slice(a, k), dynamic_slice_sizes={2} y = s8[2] add(x, x) d = s8[5] dynamic-update-slice(b, y, k)\n"
     "u = u64[] constant(18446744073709551615) v = s8[1] dynamic-slice(d, u), dynamic_slice_sizes={1}\n"
     "w = s8[5] dynamic-update-slice(a, v, u)\n" NEXT "ROOT r = (s32[], s8[5], s8[5]) tuple(j, w, d)",
     "a = s8[5] constant({100, -100, 3, 127, -128}) ROOT r = (s32[], s8[5], s8[5]) tuple(z, a, a)", 9},
    {"update of what is read afterwards", true, "(s32[], s32[4], s32[4])", "",
     "a = s32[4] get-tuple-element(s), index=1 q = s32[1] constant({7}) d = s32[4] dynamic-update-slice(a, q, i)\n" NEXT
     "f = s32[4] subtract(d, a) ROOT r = (s32[], s32[4], s32[4]) tuple(j, d, f)",
     "a = s32[4] constant({1, 2, 3, 4}) ROOT r = (s32[], s32[4], s32[4]) tuple(z, a, a)", 3},
    {"update of what another element becomes", true, "(s32[], s32[4], s32[4])", "",
     "a = s32[4] get-tuple-element(s), index=1 b = s32[4] get-tuple-element(s), index=2 q = s32[1] reshape(i)\n"
     "d = s32[4] dynamic-update-slice(a, q, i)\n" NEXT "ROOT r = (s32[], s32[4], s32[4]) tuple(j, b, d)",
     "a = s32[4] constant({1, 2, 3, 4}) b = s32[4] constant({5, 6, 7, 8}) ROOT r = (s32[], s32[4], s32[4]) tuple(z, a, b)", 5},
    {"update by a part of itself", true, "(s32[], s32[4])", "",
     "a = s32[4] get-tuple-element(s), index=1 q = s32[3] slice(a), slice={[0:3]} o = s32[] constant(1)\n"
     "d = s32[4] dynamic-update-slice(a, q, o)\n" NEXT "ROOT r = (s32[], s32[4]) tuple(j, d)",
     "a = s32[4] constant({1, 2, 3, 4}) ROOT r = (s32[], s32[4]) tuple(z, a)", 2},
    {"two updates of one array", true, "(s32[], s32[2,3])", "",
     "a = s32[2,3] get-tuple-element(s), index=1 o = s32[] constant(1) n = s32[] constant(-4) q = s32[1,1] reshape(i)\n"
     "d = s32[2,3] dynamic-update-slice(a, q, n, i) p = s32[1,2] slice(d), slice={[1:2], [0:3:2]}\n"
     "g = s32[2,3] dynamic-update-slice(d, p, o, i)\n" NEXT "ROOT r = (s32[], s32[2,3]) tuple(j, g)",
     "a = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}}) ROOT r = (s32[], s32[2,3]) tuple(z, a)", 4},
    {"the same array in two elements", true, "(s32[], s32[3], s32[3])", "",
     "a = s32[3] get-tuple-element(s), index=1 q = s32[1] constant({9}) d = s32[3] dynamic-update-slice(a, q, i)\n" NEXT
     "ROOT r = (s32[], s32[3], s32[3]) tuple(j, d, d)", "a = s32[3] constant({1, 2, 3}) ROOT r = (s32[], s32[3], s32[3]) tuple(z, a, a)", 2},
    {"movement", true, "(s32[], u16[2,3])", "",
     "a = u16[2,3] get-tuple-element(s), index=1 t = u16[3,2] transpose(a), dimensions={1,0} v = u16[3,2] reverse(t), dimensions={0}\n"
     "p = u16[] constant(17) w = u16[5,1] pad(v, p), padding=1_1x-1_0 y = u16[2,1] slice(w), slice={[0:5:3], [0:1]}\n"
     "c = u16[2,3] concatenate(y, y, y), dimensions={1} b = u16[2,3] broadcast(p), dimensions={} d = u16[2,3] add(c, a)\n"
     "k = u16[2,3] iota(), iota_dimension=1 g = u16[2,3] multiply(d, k) h = u16[2,3] add(g, b)\n" NEXT "ROOT r = (s32[], u16[2,3]) tuple(j, h)",
     "a = u16[2,3] constant({{1, 2, 3}, {65535, 5, 6}}) ROOT r = (s32[], u16[2,3]) tuple(z, a)", 6},
    {"an inner loop", true, "(s32[], f32[4], f32[4])",
     "inner_more { s = (s32[], f32[4], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3)\n"
     "ROOT r = pred[] compare(i, n), direction=LT }\n"
     "inner { s = (s32[], f32[4], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 a = f32[4] get-tuple-element(s), index=1\n"
     "b = f32[4] get-tuple-element(s), index=2 x = f32[1] dynamic-slice(b, i), dynamic_slice_sizes={1}\n"
     "d = f32[4] dynamic-update-slice(a, x, i) k = f32[4] add(d, b)\n" NEXT "ROOT r = (s32[], f32[4], f32[4]) tuple(j, k, b) }\n",
     "a = f32[4] get-tuple-element(s), index=1 b = f32[4] get-tuple-element(s), index=2 z = s32[] constant(0)\n"
     "t = (s32[], f32[4], f32[4]) tuple(z, a, b) w = (s32[], f32[4], f32[4]) while(t), condition=inner_more, body=inner\n"
     "c = f32[4] get-tuple-element(w), index=1 g = f32[1] slice(c), slice={[3:4]} m = s32[] get-tuple-element(w), index=0\n"
     "o = s32[] get-tuple-element(w), index=0 h = f32[4] dynamic-update-slice(b, g, o)\n" NEXT "ROOT r = (s32[], f32[4], f32[4]) tuple(j, h, c)",
     "a = f32[4] constant({1, 2, 3, 4}) b = f32[4] constant({0.5, -inf, nan, 8}) ROOT r = (s32[], f32[4], f32[4]) tuple(z, a, b)", 4},
    {"an inner loop that does not run", true, "(s32[], f32[2])",
     "never { s = (s32[], f32[2]) parameter(0) ROOT r = pred[] constant(false) }\n"
     "inner { s = (s32[], f32[2]) parameter(0) i = s32[] get-tuple-element(s), index=0 a = f32[2] get-tuple-element(s), index=1\n"
     "b = f32[2] add(a, a)\n" NEXT "ROOT r = (s32[], f32[2]) tuple(j, b) }\n",
     "a = f32[2] get-tuple-element(s), index=1 b = f32[2] negate(a) t = (s32[], f32[2]) tuple(i, b)\n"
     "w = (s32[], f32[2]) while(t), condition=never, body=inner c = f32[2] get-tuple-element(w), index=1\n" NEXT
     "ROOT r = (s32[], f32[2]) tuple(j, c)", "a = f32[2] constant({1, 2}) ROOT r = (s32[], f32[2]) tuple(z, a)", 3},
    {"branches by number", true, "(s32[], f32[2], (f32[], s32[2]))",
     "b0 { a = f32[2] parameter(0) k = s32[2] constant({1, 2}) c = f32[] constant(3) t = (f32[], s32[2]) tuple(c, k)\n"
     "ROOT r = (f32[2], (f32[], s32[2])) tuple(a, t) }\n"
     "b1 { a = f32[2] parameter(0) k = s32[2] constant({3, 4}) c = f32[] constant(4) n = f32[2] negate(a) t = (f32[], s32[2]) tuple(c, k)\n"
     "ROOT r = (f32[2], (f32[], s32[2])) tuple(n, t) }\n"
     "b2 { a = f32[2] parameter(0) k = s32[2] convert(a) c = f32[] constant(5) x = f32[1] constant({8}) z = s32[] constant(0)\n"
     "n = f32[2] dynamic-update-slice(a, x, z) t = (f32[], s32[2]) tuple(c, k) ROOT r = (f32[2], (f32[], s32[2])) tuple(n, t) }\n",
     "a = f32[2] get-tuple-element(s), index=1 o = s32[] constant(1) k = s32[] subtract(i, o)\n"
     "w = (f32[2], (f32[], s32[2])) conditional(k, a, a, a), branch_computations={b0, b1, b2} b = f32[2] get-tuple-element(w), index=0\n"
     "c = (f32[], s32[2]) get-tuple-element(w), index=1 d = f32[2] add(a, b)\n" NEXT
     "ROOT r = (s32[], f32[2], (f32[], s32[2])) tuple(j, d, c)",
     "a = f32[2] constant({1, 2}) f = f32[] constant(0) k = s32[2] constant({0, 0}) t = (f32[], s32[2]) tuple(f, k)\n"
     "ROOT r = (s32[], f32[2], (f32[], s32[2])) tuple(z, a, t)", 7},
    {"branches by truth", true, "(s32[], s32[2])",
     "yes { a = s32[2] parameter(0) ROOT r = s32[2] add(a, a) }\nno { a = s32[2] parameter(0) ROOT r = s32[2] negate(a) }\n",
     "a = s32[2] get-tuple-element(s), index=1 o = s32[] constant(1) k = s32[] and(i, o) p = pred[] convert(k)\n"
     "b = s32[2] conditional(p, a, a), true_computation=yes, false_computation=no\n" NEXT "ROOT r = (s32[], s32[2]) tuple(j, b)",
     "a = s32[2] constant({1, 2147483647}) ROOT r = (s32[], s32[2]) tuple(z, a)", 5},
    {"other opcodes", true, "(s32[], f32[2,3], bf16[3])", SUM,
     "a = f32[2,3] get-tuple-element(s), index=1 z = f32[] constant(0) b = f32[3] reduce(a, z), dimensions={0}, to_apply=sum\n"
     "d = f32[2,2] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1} g = s32[2,1] constant({{1}, {-7}})\n"
     "e = f32[2,3] gather(a, g), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}\n"
     "p = pred[] is-finite(z) q = f32[2,3] select(p, e, a) h = bf16[3] convert(b) x = f32[1,1] slice(d), slice={[0:1], [1:2]}\n"
     "y = f32[] reshape(x) w = f32[2,3] broadcast(y), dimensions={} v = f32[2,3] divide(q, w)\n" NEXT
     "ROOT r = (s32[], f32[2,3], bf16[3]) tuple(j, v, h)",
     "a = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}}) b = bf16[3] constant({0, 0, 0}) ROOT r = (s32[], f32[2,3], bf16[3]) tuple(z, a, b)", 4},
    {"one array as the state", true, NULL, "",
     "i = s32[3] parameter(0) c = s32[3] constant({1, 2, 3}) ROOT r = s32[3] add(i, c)", "ROOT r = s32[3] constant({0, 5, -1})", 4},
    {"a large array in place", true, "(s32[], f32[10000])", "",
     "a = f32[10000] get-tuple-element(s), index=1 q = f32[2] constant({1, 2}) d = f32[10000] dynamic-update-slice(a, q, i)\n" NEXT
     "ROOT r = (s32[], f32[10000]) tuple(j, d)",
     "f = f32[] constant(-1) a = f32[10000] broadcast(f), dimensions={} ROOT r = (s32[], f32[10000]) tuple(z, a)", 4},
    {"a large array that is read", false, "(s32[], f32[10000])", "",
     "a = f32[10000] get-tuple-element(s), index=1 q = f32[2] constant({1, 2}) d = f32[10000] dynamic-update-slice(a, q, i)\n"
     "n = f32[10000] negate(a) x = f32[10000] add(n, d)\n" NEXT "ROOT r = (s32[], f32[10000]) tuple(j, x)",
     "f = f32[] constant(-1) a = f32[10000] broadcast(f), dimensions={} ROOT r = (s32[], f32[10000]) tuple(z, a)", 4},
    {"two large arrays exchanged", false, "(s32[], f32[2000], f32[2000])", "",
     "a = f32[2000] get-tuple-element(s), index=1 b = f32[2000] get-tuple-element(s), index=2\n" NEXT
     "ROOT r = (s32[], f32[2000], f32[2000]) tuple(j, b, a)",
     "f = f32[] constant(-1) a = f32[2000] broadcast(f), dimensions={} b = f32[2000] iota(), iota_dimension=0\n"
     "ROOT r = (s32[], f32[2000], f32[2000]) tuple(z, a, b)", 3},
    {"a state too large", false, "(s32[], f32[20000])", "",
     "a = f32[20000] get-tuple-element(s), index=1\n" NEXT "ROOT r = (s32[], f32[20000]) tuple(j, a)",
     "f = f32[] constant(-1) a = f32[20000] broadcast(f), dimensions={} ROOT r = (s32[], f32[20000]) tuple(z, a)", 3},
    {"a value far too large", false, "(s32[], f32[2])", "",
     "a = f32[2] get-tuple-element(s), index=1 b = f32[2,30000] broadcast(a), dimensions={0}\n"
     "d = f32[2,1] slice(b), slice={[0:2], [0:1]} f = f32[2] reshape(d)\n" NEXT "ROOT r = (s32[], f32[2]) tuple(j, f)",
     "a = f32[2] constant({1, 2}) ROOT r = (s32[], f32[2]) tuple(z, a)", 2},
    {"a tuple with too many leaves", false, "(s32[], f32[2])", "",
     "a = f32[2] get-tuple-element(s), index=1\n"
     "t = (f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]) tuple(a, a, a, a, a, a, a) u = tuple(t, t, t, t, t, t, t)\n"
     "v = tuple(u, u, u, u, u, u, u) w = ((f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]),\n"
     "(f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]), (f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]),\n"
     "(f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]), (f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]),\n"
     "(f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]), (f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]))\n"
     "get-tuple-element(v), index=3 x = (f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]) get-tuple-element(w), index=1\n"
     "y = f32[2] get-tuple-element(x), index=1 b = f32[2] add(y, y)\n" NEXT "ROOT r = (s32[], f32[2]) tuple(j, b)",
     "a = f32[2] constant({1, 2}) ROOT r = (s32[], f32[2]) tuple(z, a)", 3},
    {"an effect", false, "(s32[], f32[2])", "",
     "a = f32[2] get-tuple-element(s), index=1 z = f32[] constant(0) o = f32[] constant(1)\n"
     "u = f32[2] rng(z, o), distribution=rng_uniform b = f32[2] add(a, u)\n" NEXT "ROOT r = (s32[], f32[2]) tuple(j, b)",
     "a = f32[2] constant({1, 2}) ROOT r = (s32[], f32[2]) tuple(z, a)", 3},
    {"a token", false, "(s32[], token[])", "", "a = token[] get-tuple-element(s), index=1\n" NEXT "ROOT r = (s32[], token[]) tuple(j, a)",
     "a = token[] after-all() ROOT r = (s32[], token[]) tuple(z, a)", 3},
};

static char *module_text(Arena *a, const Case *c)
{
    if (!c->state) /* a state that is an array: three numbers, until the first of them has come to `trips` */
        return arena_printf(a, "HloModule m\nmore { s = s32[3] parameter(0) x = s32[1] slice(s), slice={[0:1]} i = s32[] reshape(x)\n"
                            "n = s32[] constant(%d) ROOT r = pred[] compare(i, n), direction=LT }\nbody { %s }\nENTRY e { %s\n}\n",
                            c->trips, c->step, c->start);
    return arena_printf(a, "HloModule m\n%smore { s = %s parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(%d)\n"
                        "ROOT r = pred[] compare(i, n), direction=LT }\nbody { s = %s parameter(0) i = s32[] get-tuple-element(s), index=0\n"
                        "%s }\nENTRY e { z = s32[] constant(0)\n%s }\n", c->more, c->state, c->trips, c->state, c->step, c->start);
}

/* ENTRY's root is the start; the loop is put behind it. */
static Inst *add_loop(Module *m)
{
    Comp *e = m->entry, *more = NULL, *body = NULL;
    for (Comp *c = m->first; c; c = c->next) {
        more = strcmp(c->name, "more") == 0 ? c : more;
        body = strcmp(c->name, "body") == 0 ? c : body;
    }
    Inst *loop = inst_new(e, NULL, OP_WHILE, e->root->shape, 1, (Inst *[]){e->root}, NULL);
    inst_set_callees(loop, 2, (Comp *[]){body, more});
    return e->root = loop;
}

static void test_case(const Case *c)
{
    Arena *a = arena_new();
    Diag   d;
    diag_init(&d, a);
    char   *text = module_text(a, c);
    Module *m = parse_module(text, strlen(text), &d);
    if (!m)
        diag_print(&d, stderr, false);
    CHECK(m);
    Inst       *loop = add_loop(m);
    EvalWatch   watch = {.after = look};
    EvalOptions slow = {.watch = &watch, .seed = 1}, fast = {.seed = 1};
    Eval        e;
    eval_start(&e, &fast, &d);
    CHECK((loop_get(&e, loop) != NULL) == c->compiled);
    CHECK(loop_get(&e, loop) == loop_get(&e, loop));
    eval_end(&e);
    Literal *want = eval_module(m, 0, NULL, &slow, &d);
    Evaluation *v = evaluation_open(m);
    for (int k = 0; k < 2; k++) { /* the second run finds the places as the first has left them */
        Literal *got = evaluation_run(v, 0, NULL, &fast, &d);
        CHECK(want && got && literal_equal(want, got));
        literal_unref(got);
    }
    evaluation_close(v);
    literal_unref(want);
    module_free(m);
    arena_free(a);
    printf("ok %s\n", c->name);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        test_case(&cases[k]);
    return 0;
}
