/* Runs planned programs with the evaluator in place of kernels and compares with the evaluator on the whole module: what a slot shares with
 * another one, or a wrong order of copies, shows as a wrong value. Scratch begins as noise, and every step's results go to memory only
 * after all operands are read, as kernel_may_alias promises. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/fill.h"
#include "emit/program.h"
#include "eval/eval.h"
#include "text/parse.h"

/* A loop that runs. */
typedef struct Trip {
    const Step  *loop;
    int64_t      number;
    struct Trip *outer;
} Trip;

typedef struct Machine {
    const Program *p;
    Arena         *a;
    Diag          *d;
    char          *scratch;
    char         **args, **results, **constants;
    int64_t        steps;
    Trip          *trip;
} Machine;

static const char *current; /* the test at hand, for messages */

static void check(bool good, const char *what)
{
    if (good)
        return;
    printf("FAIL %s: %s\n", current, what);
    exit(1);
}

/* ---- arrays in memory ---- */

static void move(const Shape *s, char *memory, char *rows, bool to_memory)
{
    int64_t strides[32], at[32] = { 0 }, offset = 0, size = type_bytes(s->type), count = shape_count(s);
    shape_strides(s, strides);
    for (int64_t k = 0; k < count; k++, rows += size) {
        memcpy(to_memory ? memory + offset * size : rows, to_memory ? rows : memory + offset * size, (size_t)size);
        for (int32_t d = s->rank - 1; d >= 0; d--) {
            offset += strides[d];
            if (++at[d] < s->dims[d])
                break;
            offset -= at[d] * strides[d];
            at[d] = 0;
        }
    }
}

/* The buffer whose place b has in these trips. */
static const Buffer *in_turn(const Machine *m, const Buffer *b)
{
    for (const Trip *t = m->trip; t; t = t->outer)
        for (int32_t k = 0; k < t->loop->n_turns && t->number % 2 != 0; k++) {
            const Turn *turn = &t->loop->turns[k];
            if (b == turn->now || b == turn->next)
                return b == turn->now ? turn->next : turn->now;
        }
    return b;
}

static char *count_address(const Machine *m, const Buffer *b)
{
    const Trip *t = m->trip;
    while (t && t->loop->loop != b->loop)
        t = t->outer;
    check(t != NULL, "a count outside of its loop");
    return m->constants[b->index] + (t->number + b->ahead) * b->bytes;
}

static char *address(const Machine *m, const Buffer *b)
{
    b = in_turn(m, b);
    switch (b->kind) {
    case BUFFER_ARG:
        return m->args[b->index];
    case BUFFER_RESULT:
        return m->results[b->index];
    case BUFFER_CONST:
        return m->constants[b->index];
    case BUFFER_COUNT:
        return count_address(m, b);
    case BUFFER_SCRATCH:
        check(b->offset >= 0 && b->offset % PROGRAM_ALIGN == 0 && b->offset + b->bytes <= m->p->scratch_bytes, "a buffer leaves the arena");
        return m->scratch + b->offset;
    }
    abort();
}

/* ---- steps ---- */

/* The value of an operand of shape s from the buffers at *at on. A parameter that the kernel does not take is one it knows already: a
 * constant, or an operand that is there twice (run_kernel). */
static Literal *read_operand(Machine *m, const Inst *def, const Shape *s, const Step *step, int32_t *at)
{
    if (shape_is_tuple(s)) {
        Literal **v = ARENA_ARRAY(m->a, Literal *, s->n_elems);
        for (int32_t k = 0; k < s->n_elems; k++)
            v[k] = read_operand(m, def, s->elems[k], step, at);
        return literal_tuple(s->n_elems, v);
    }
    if (!type_bytes(s->type))
        return literal_token();
    const Buffer *b = step->buffers[(*at)++];
    if (!b && def->op == OP_CONSTANT)
        return literal_ref(def->literal);
    Literal *l = literal_for_shape(s, true);
    if (b)
        move(s, address(m, b), l->data, false);
    return l;
}

static void write_result(Machine *m, const Literal *l, const Shape *s, const Step *step, int32_t *at)
{
    if (shape_is_tuple(s)) {
        for (int32_t k = 0; k < s->n_elems; k++)
            write_result(m, l->elems[k], s->elems[k], step, at);
    } else if (type_bytes(s->type)) {
        const Buffer *b = step->buffers[(*at)++];
        if (b)
            move(s, address(m, b), l->data, true);
    }
}

static void run_kernel(Machine *m, const Step *s)
{
    int32_t   at = 0;
    Literal **v = ARENA_ARRAY(m->a, Literal *, s->inst->n_operands);
    for (int32_t k = 0; k < s->inst->n_operands; k++)
        v[k] = read_operand(m, s->inst->operands[k].def, s->inst->operands[k].def->shape, s, &at);
    for (int32_t k = 0; k < s->inst->n_operands; k++)
        for (int32_t e = 0; e < k; e++)
            if (s->inst->operands[e].def == s->inst->operands[k].def) {
                literal_unref(v[k]);
                v[k] = literal_ref(v[e]);
                break;
            }
    check(at == s->n_operands, "operands of a step");
    EvalOptions o = { 0 };
    Literal    *result = eval_inst(s->inst, v, &o, m->d);
    check(result != NULL, "a step cannot be evaluated");
    write_result(m, result, s->inst->shape, s, &at);
    literal_unref(result);
    for (int32_t k = 0; k < s->inst->n_operands; k++)
        literal_unref(v[k]);
}

static void run_block(Machine *m, const Block *b);

static void run_step(Machine *m, const Step *s)
{
    check(m->steps++ < 100000, "too many steps");
    switch (s->kind) {
    case STEP_KERNEL:
        run_kernel(m, s);
        break;
    case STEP_CALL:
        check(false, "no module of this test calls a library");
        break;
    case STEP_COPY:
        memmove(address(m, s->buffers[1]), address(m, s->buffers[0]), (size_t)s->buffers[0]->bytes);
        break;
    case STEP_EXCHANGE:
    case STEP_CHECK:
    case STEP_REPLICA:
    case STEP_PARTITION:
        check(false, "one device");
        break;
    case STEP_VALUE:
        check(false, "nobody looks on");
        break;
    case STEP_RANDOM:
    case STEP_SEED:
        check(false, "no random numbers here");
        break;
    case STEP_WHILE:
        for (Trip t = { s, 0, m->trip }; t.number < s->trips; t.number++) {
            m->trip = &t;
            run_block(m, &s->blocks[0]);
            m->trip = t.outer;
        }
        if (s->n_buffers == 0)
            break;
        for (run_block(m, &s->condition); *address(m, s->buffers[0]); run_block(m, &s->condition))
            run_block(m, &s->blocks[0]);
        break;
    case STEP_IF: {
        int32_t k;
        if (s->buffers[0]->shape->type == TYPE_PRED)
            k = *address(m, s->buffers[0]) ? 0 : 1;
        else
            memcpy(&k, address(m, s->buffers[0]), sizeof k);
        run_block(m, &s->blocks[k >= 0 && k < s->n_blocks ? k : s->n_blocks - 1]);
        break;
    }
    }
}

static void run_block(Machine *m, const Block *b)
{
    for (int32_t k = 0; k < b->n; k++)
        run_step(m, b->v[k]);
}

/* ---- whole modules ---- */

static void flatten(Literal *l, Literal **v, int32_t *n)
{
    if (l->type == TYPE_TUPLE)
        for (int32_t k = 0; k < l->n_elems; k++)
            flatten(l->elems[k], v, n);
    else if (l->type != TYPE_TOKEN)
        v[(*n)++] = l;
}

static char *noise(Arena *a, int64_t n)
{
    char *p = arena_array(a, n + 1, 1);
    memset(p, 0xa5, (size_t)n);
    return p;
}

/* donated: results lie in the memory of their arguments, where the module allows it. */
static void run_program(Machine *m, Literal *const *args, bool donated)
{
    const Program *p = m->p;
    m->scratch = noise(m->a, p->scratch_bytes);
    m->args = ARENA_ARRAY(m->a, char *, p->n_args);
    m->results = ARENA_ARRAY(m->a, char *, p->n_results);
    m->constants = ARENA_ARRAY(m->a, char *, p->n_constants);
    for (int32_t k = 0; k < p->n_args; k++) {
        m->args[k] = noise(m->a, p->args[k].bytes);
        move(p->args[k].shape, m->args[k], args[k]->data, true);
    }
    for (int32_t k = 0; k < p->n_results; k++)
        m->results[k] = donated && p->results[k].alias >= 0 ? m->args[p->results[k].alias] : noise(m->a, p->results[k].bytes);
    for (int32_t k = 0; k < p->n_constants; k++) {
        m->constants[k] = noise(m->a, p->constants[k].bytes);
        move(p->constants[k].shape, m->constants[k], p->constants[k].literal->data, true);
    }
    run_block(m, &p->body);
}

static void compare_results(const Machine *m, Literal *expected)
{
    Literal **v = ARENA_ARRAY(m->a, Literal *, m->p->n_results);
    int32_t   n = 0;
    flatten(expected, v, &n);
    check(n == m->p->n_results, "number of results");
    for (int32_t k = 0; k < n; k++) {
        const ProgramLeaf *x = &m->p->results[k];
        char              *rows = noise(m->a, x->bytes);
        move(x->shape, m->results[k], rows, false);
        check(memcmp(rows, v[k]->data, (size_t)x->bytes) == 0, "a result differs from the evaluator's");
    }
}

typedef struct Expect {
    int copies; /* -1: any */
    int64_t scratch; /* bytes, -1: any */
} Expect;

static void test(const char *name, Expect e, const char *text)
{
    Arena *a = arena_new();
    Diag   d;
    current = name;
    diag_init(&d, a);
    diag_source(&d, name, text, strlen(text));
    Module  *m = parse_module(text, strlen(text), &d);
    /* for a device, too, whose loops that count have no test */
    const PlanOptions options = { .device = device_of_target("cuda") };
    Program *p = m ? program_plan(a, m, NULL, &d) : NULL, *q = m ? program_plan(a, m, &options, &d) : NULL;
    diag_print(&d, stdout, false);
    check(p != NULL && q != NULL, "no program");
    Literal **args = ARENA_ARRAY(a, Literal *, m->entry->n_params), **flat = ARENA_ARRAY(a, Literal *, p->n_args);
    int32_t   n = 0;
    check(fake_arguments(m, 7, NULL, args, &d), "no arguments");
    for (int32_t k = 0; k < m->entry->n_params; k++)
        flatten(args[k], flat, &n);
    EvalOptions o = { 0 };
    Literal    *expected = eval_module(m, m->entry->n_params, args, &o, &d);
    check(expected != NULL, "the evaluator gives no value");
    for (int k = 0; k < 4; k++) {
        Machine machine = { .p = k < 2 ? p : q, .a = a, .d = &d };
        run_program(&machine, flat, k % 2 == 1);
        compare_results(&machine, expected);
    }
    if (e.copies >= 0 && e.copies != p->n_copies) {
        printf("FAIL %s: %d copies, expected %d\n", name, p->n_copies, e.copies);
        exit(1);
    }
    if (e.scratch >= 0 && e.scratch != p->scratch_bytes) {
        printf("FAIL %s: %lld bytes of scratch, expected %lld\n", name, (long long)p->scratch_bytes, (long long)e.scratch);
        exit(1);
    }
    literal_unref(expected);
    for (int32_t k = 0; k < m->entry->n_params; k++)
        literal_unref(args[k]);
    arena_free(a);
    module_free(m);
    printf("ok %s\n", name);
}

#define ANY ((Expect){ -1, -1 })

static void straight_line(void)
{
    test("a chain lives in two buffers", (Expect){ 0, 128 },
         "HloModule m\n"
         "ENTRY e {\n"
         "  x = f32[4,4] parameter(0)\n"
         "  a = f32[4,4] transpose(x), dimensions={1,0}\n"
         "  b = f32[4,4] reverse(a), dimensions={0}\n"
         "  c = f32[4,4] transpose(b), dimensions={1,0}\n"
         "  d = f32[4,4] reverse(c), dimensions={1}\n"
         "  ROOT r = f32[4,4] transpose(d), dimensions={1,0}\n"
         "}\n");
    test("a diamond keeps what is read twice", ANY,
         "HloModule m\n"
         "ENTRY e {\n"
         "  x = f32[5] parameter(0)\n"
         "  a = f32[5] add(x, x)\n"
         "  b = f32[5] reverse(a), dimensions={0}\n"
         "  c = f32[5] multiply(a, b)\n"
         "  d = f32[5] subtract(c, a)\n"
         "  ROOT t = (f32[5], f32[5]) tuple(d, b)\n"
         "}\n");
    test("results: an argument, a constant, one value twice", ANY,
         "HloModule m\n"
         "ENTRY e {\n"
         "  x = f32[3] parameter(0)\n"
         "  k = f32[3] constant({1, 2, 3})\n"
         "  s = f32[3] add(x, k)\n"
         "  i = (f32[3], f32[3]) tuple(s, k)\n"
         "  ROOT t = (f32[3], (f32[3], f32[3]), f32[3], f32[3]) tuple(x, i, s, x)\n"
         "}\n");
    test("layouts of the entry differ from the instructions'", ANY,
         "HloModule m, entry_computation_layout={(f32[2,3]{0,1}, f32[2,3]{1,0})->(f32[2,3]{0,1}, f32[3,2]{1,0})}\n"
         "ENTRY e {\n"
         "  x = f32[2,3]{1,0} parameter(0)\n"
         "  y = f32[2,3]{0,1} parameter(1)\n"
         "  s = f32[2,3]{1,0} add(x, y)\n"
         "  c = f32[2,3]{0,1} copy(s)\n"
         "  r = f32[3,2]{1,0} reshape(c)\n"
         "  ROOT t = (f32[2,3]{1,0}, f32[3,2]{0,1}) tuple(s, r)\n"
         "}\n");
}

static void donation(void)
{
    test("two donated arguments change places", ANY,
         "HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }\n"
         "ENTRY e {\n"
         "  x = f32[3] parameter(0)\n"
         "  y = f32[3] parameter(1)\n"
         "  ROOT t = (f32[3], f32[3]) tuple(y, x)\n"
         "}\n");
    test("a donated argument is read after its result is known", ANY,
         "HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }\n"
         "ENTRY e {\n"
         "  x = f32[4] parameter(0)\n"
         "  y = f32[4] parameter(1)\n"
         "  a = f32[4] reverse(y), dimensions={0}\n"
         "  b = f32[4] add(x, a)\n"
         "  c = f32[4] multiply(x, b)\n"
         "  d = f32[4] reverse(x), dimensions={0}\n"
         "  f = f32[4] add(c, d)\n"
         "  ROOT t = (f32[4], f32[4]) tuple(a, f)\n"
         "}\n");
    test("a donated argument comes back, and elsewhere", ANY,
         "HloModule m, input_output_alias={ {1}: (0, {}), {2}: (1, {}) }\n"
         "ENTRY e {\n"
         "  x = s32[4] parameter(0)\n"
         "  y = s32[4] parameter(1)\n"
         "  n = s32[4] negate(y)\n"
         "  ROOT t = (s32[4], s32[4], s32[4], s32[4]) tuple(x, x, n, y)\n"
         "}\n");
}

#define LESS_THAN_4                                                                                                             \
    "c {\n"                                                                                                                     \
    "  p = (s32[], f32[4], f32[4], f32[4]) parameter(0)\n"                                                                      \
    "  i = s32[] get-tuple-element(p), index=0\n"                                                                               \
    "  n = s32[] constant(4)\n"                                                                                                 \
    "  ROOT lt = pred[] compare(i, n), direction=LT\n"                                                                          \
    "}\n"
#define LOOP_ENTRY                                                                                                              \
    "ENTRY e {\n"                                                                                                               \
    "  z = s32[] constant(0)\n"                                                                                                 \
    "  x = f32[4] parameter(0)\n"                                                                                               \
    "  y = f32[4] parameter(1)\n"                                                                                               \
    "  s = f32[4] add(x, y)\n"                                                                                                  \
    "  t = (s32[], f32[4], f32[4], f32[4]) tuple(z, x, y, s)\n"                                                                 \
    "  ROOT w = (s32[], f32[4], f32[4], f32[4]) while(t), condition=c, body=b\n"                                                \
    "}\n"
#define LOOP_BODY                                                                                                               \
    "  p = (s32[], f32[4], f32[4], f32[4]) parameter(0)\n"                                                                      \
    "  i = s32[] get-tuple-element(p), index=0\n"                                                                               \
    "  u = f32[4] get-tuple-element(p), index=1\n"                                                                              \
    "  v = f32[4] get-tuple-element(p), index=2\n"                                                                              \
    "  w = f32[4] get-tuple-element(p), index=3\n"                                                                              \
    "  one = s32[] constant(1)\n"                                                                                               \
    "  j = s32[] add(i, one)\n"

static void loops(void)
{
    test("a loop turns its state round", ANY,
         "HloModule m\n" LESS_THAN_4 "b {\n" LOOP_BODY
         "  ROOT r = (s32[], f32[4], f32[4], f32[4]) tuple(j, v, w, u)\n"
         "}\n" LOOP_ENTRY);
    test("a loop uses old values late", ANY,
         "HloModule m\n" LESS_THAN_4 "b {\n" LOOP_BODY
         "  a = f32[4] reverse(u), dimensions={0}\n"
         "  d = f32[4] add(a, v)\n"
         "  f = f32[4] multiply(u, w)\n"
         "  g = f32[4] subtract(f, v)\n"
         "  ROOT r = (s32[], f32[4], f32[4], f32[4]) tuple(j, d, g, d)\n"
         "}\n" LOOP_ENTRY);
    test("a loop leaves some of its state alone", ANY,
         "HloModule m\n" LESS_THAN_4 "b {\n" LOOP_BODY
         "  k = s32[1] reshape(i)\n"
         "  l = f32[1] convert(k)\n"
         "  o = f32[4] dynamic-update-slice(w, l, i)\n"
         "  ROOT r = (s32[], f32[4], f32[4], f32[4]) tuple(j, u, v, o)\n"
         "}\n" LOOP_ENTRY);
    test("what a loop only reads is still there in its next iteration", ANY,
         "HloModule m\n" LESS_THAN_4 "b {\n" LOOP_BODY
         "  a = f32[4] reverse(w), dimensions={0}\n"
         "  d = f32[4] reverse(a), dimensions={0}\n"
         "  f = f32[4] add(d, v)\n"
         "  g = f32[4] reverse(f), dimensions={0}\n"
         "  h = f32[4] add(g, u)\n"
         "  ROOT r = (s32[], f32[4], f32[4], f32[4]) tuple(j, h, v, w)\n"
         "}\n"
         "ENTRY e {\n"
         "  z = s32[] constant(0)\n"
         "  x = f32[4] parameter(0)\n"
         "  y = f32[4] reverse(x), dimensions={0}\n"
         "  s = f32[4] add(x, y)\n"
         "  t = (s32[], f32[4], f32[4], f32[4]) tuple(z, x, y, s)\n"
         "  w = (s32[], f32[4], f32[4], f32[4]) while(t), condition=c, body=b\n"
         "  ROOT o = f32[4] get-tuple-element(w), index=1\n"
         "}\n");
    test("a loop that does not run", ANY,
         "HloModule m\n"
         "c {\n"
         "  p = (pred[], f32[2]) parameter(0)\n"
         "  ROOT g = pred[] get-tuple-element(p), index=0\n"
         "}\n"
         "b {\n"
         "  ROOT p = (pred[], f32[2]) parameter(0)\n"
         "}\n"
         "ENTRY e {\n"
         "  f = pred[] constant(false)\n"
         "  x = f32[2] parameter(0)\n"
         "  t = (pred[], f32[2]) tuple(f, x)\n"
         "  w = (pred[], f32[2]) while(t), condition=c, body=b\n"
         "  ROOT r = f32[2] get-tuple-element(w), index=1\n"
         "}\n");
    test("a loop in a loop", ANY,
         "HloModule m\n"
         "ci { p = (s32[], f32[3]) parameter(0)\n"
         "  i = s32[] get-tuple-element(p), index=0\n"
         "  n = s32[] constant(3)\n"
         "  ROOT lt = pred[] compare(i, n), direction=LT }\n"
         "bi { p = (s32[], f32[3]) parameter(0)\n"
         "  i = s32[] get-tuple-element(p), index=0\n"
         "  x = f32[3] get-tuple-element(p), index=1\n"
         "  one = s32[] constant(1)\n"
         "  j = s32[] add(i, one)\n"
         "  y = f32[3] reverse(x), dimensions={0}\n"
         "  s = f32[3] add(x, y)\n"
         "  ROOT t = (s32[], f32[3]) tuple(j, s) }\n"
         "co { p = (s32[], f32[3], f32[3]) parameter(0)\n"
         "  i = s32[] get-tuple-element(p), index=0\n"
         "  n = s32[] constant(2)\n"
         "  ROOT lt = pred[] compare(i, n), direction=LT }\n"
         "bo { p = (s32[], f32[3], f32[3]) parameter(0)\n"
         "  i = s32[] get-tuple-element(p), index=0\n"
         "  x = f32[3] get-tuple-element(p), index=1\n"
         "  y = f32[3] get-tuple-element(p), index=2\n"
         "  one = s32[] constant(1)\n"
         "  zero = s32[] constant(0)\n"
         "  j = s32[] add(i, one)\n"
         "  t = (s32[], f32[3]) tuple(zero, x)\n"
         "  w = (s32[], f32[3]) while(t), condition=ci, body=bi\n"
         "  q = f32[3] get-tuple-element(w), index=1\n"
         "  r = f32[3] add(q, x)\n"
         "  ROOT u = (s32[], f32[3], f32[3]) tuple(j, r, y) }\n"
         "ENTRY e {\n"
         "  zero = s32[] constant(0)\n"
         "  x = f32[3] parameter(0)\n"
         "  y = f32[3] parameter(1)\n"
         "  t = (s32[], f32[3], f32[3]) tuple(zero, x, y)\n"
         "  ROOT w = (s32[], f32[3], f32[3]) while(t), condition=co, body=bo\n"
         "}\n");
}

static void branches(void)
{
    test("a branch hands its operand through", ANY,
         "HloModule m\n"
         "yes { ROOT p = f32[4] parameter(0) }\n"
         "no { p = f32[4] parameter(0)\n"
         "  r = f32[4] reverse(p), dimensions={0}\n"
         "  ROOT s = f32[4] add(p, r) }\n"
         "ENTRY e {\n"
         "  g = pred[] parameter(0)\n"
         "  x = f32[4] parameter(1)\n"
         "  a = f32[4] add(x, x)\n"
         "  b = f32[4] multiply(a, x)\n"
         "  f = f32[4] conditional(g, a, b), true_computation=yes, false_computation=no\n"
         "  ROOT r = f32[4] add(f, a)\n"
         "}\n");
    for (int selector = -1; selector < 4; selector++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "HloModule m\n"
                 "b0 { p = f32[4] parameter(0)\n  ROOT r = (f32[4], f32[4]) tuple(p, p) }\n"
                 "b1 { p = f32[4] parameter(0)\n  n = f32[4] negate(p)\n  ROOT r = (f32[4], f32[4]) tuple(n, p) }\n"
                 "b2 { p = f32[4] parameter(0)\n  n = f32[4] reverse(p), dimensions={0}\n  ROOT r = (f32[4], f32[4]) tuple(p, n) }\n"
                 "ENTRY e {\n"
                 "  i = s32[] constant(%d)\n"
                 "  x = f32[4] parameter(0)\n"
                 "  y = f32[4] add(x, x)\n"
                 "  f = (f32[4], f32[4]) conditional(i, y, x, y), branch_computations={b0, b1, b2}\n"
                 "  a = f32[4] get-tuple-element(f), index=0\n"
                 "  b = f32[4] get-tuple-element(f), index=1\n"
                 "  ROOT r = f32[4] subtract(a, b)\n"
                 "}\n",
                 selector);
        test("a selector in and out of range", ANY, text);
    }
    test("calls are walked in place", ANY,
         "HloModule m\n"
         "f { p = f32[4] parameter(0)\n  q = f32[4] parameter(1)\n  s = f32[4] subtract(p, q)\n  ROOT t = (f32[4], f32[4]) tuple(s, p) }\n"
         "ENTRY e {\n"
         "  x = f32[4] parameter(0)\n"
         "  y = f32[4] parameter(1)\n"
         "  c = (f32[4], f32[4]) call(x, y), to_apply=f\n"
         "  a = f32[4] get-tuple-element(c), index=0\n"
         "  b = f32[4] get-tuple-element(c), index=1\n"
         "  d = (f32[4], f32[4]) call(b, a), to_apply=f\n"
         "  g = f32[4] get-tuple-element(d), index=0\n"
         "  ROOT r = (f32[4], f32[4]) tuple(a, g)\n"
         "}\n");
}

int main(void)
{
    straight_line();
    donation();
    loops();
    branches();
    return 0;
}
