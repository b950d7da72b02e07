/* Calls, loops, branches, asynchronous steps, collectives on one device, random numbers, dynamic sizes; what no backend runs. */
#include "driver/sweep.h"

#include <string.h>

static const char *const shapes[] = {"f32[5]", "s8[3,5]{0,1}", "c64[]", "bf16[0]", "pred[7]", "u64[2,3,4]{0,2,1}"};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

void sweep_while(Sweep *s, Op op)
{
    for (int k = 0; k < N_SHAPES * 3; k++) {
        static const int turns[] = {0, 1, 5};
        const char *t = shapes[k % N_SHAPES];
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SMALL, "%s", t), *y = case_param(c, VALUES_SMALL, "%s", t),
                   *i = case_let(c, "s32[] constant(0)");
        const char *more = case_comp(c,
                                     "  s = (s32[], %s, %s) parameter(0)\n  i = get-tuple-element(s), index=0\n  n = s32[] "
                                     "constant(%d)\n  ROOT r = pred[] compare(i, n), direction=LT\n",
                                     t, t, turns[k / N_SHAPES]);
        const char *step =
            case_comp(c,
                      "  s = (s32[], %s, %s) parameter(0)\n  i = get-tuple-element(s), index=0\n  x = get-tuple-element(s), "
                      "index=1\n  y = get-tuple-element(s), index=2\n"
                      "  one = s32[] constant(1)\n  j = add(i, one)\n  z = %s add(x, y)\n  ROOT r = tuple(j, y, z)\n",
                      t, t, t);
        const char *state = case_let(c, "tuple(%s, %s, %s)", i, x, y);
        case_root(c, SAME_NUMBER, "while(%s), condition=%s, body=%s", state, more, step);
    }
}

void sweep_conditional(Sweep *s, Op op)
{
    for (int k = 0; k < N_SHAPES * 8; k++) {
        const char *t = shapes[k % N_SHAPES];
        int j = k / N_SHAPES;
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SMALL, "%s", t), *y = case_param(c, VALUES_SMALL, "%s", t);
        const char *i =
            j < 2 ? case_let(c, "pred[] constant(%s)", j ? "true" : "false") : case_let(c, "s32[] constant(%d)", j - 4);
        const char *f = case_comp(c, "  x = %s parameter(0)\n  ROOT r = %s add(x, x)\n", t, t),
                   *g = case_comp(c, "  ROOT x = %s parameter(0)\n", t);
        const char *h = case_comp(c, "  x = %s parameter(0)\n  ROOT r = copy(x)\n", t);
        if (j < 2)
            case_root(c, SAME_NUMBER, "%s conditional(%s, %s, %s), true_computation=%s, false_computation=%s", t, i, x, y, f, g);
        else
            case_root(c, SAME_NUMBER, "%s conditional(%s, %s, %s, %s), branch_computations={%s, %s, %s}", t, i, x, y, x, f, g, h);
    }
}

/* call, fusion of each kind: two results of one computation. */
void sweep_call(Sweep *s, Op op)
{
    static const char *const kinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
    for (int k = 0; k < N_SHAPES * 4; k++) {
        const char *t = shapes[k % N_SHAPES];
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SMALL, "%s", t), *y = case_param(c, VALUES_SMALL, "%s", t);
        const char *f = case_comp(
            c,
            "  x = %s parameter(0)\n  y = %s parameter(1)\n  s = %s add(x, y)\n  d = %s multiply(s, y)\n  ROOT r = tuple(s, d)\n",
            t, t, t, t);
        if (op == OP_CALL)
            case_root(c, SAME_NUMBER, "(%s, %s) call(%s, %s), to_apply=%s", t, t, x, y, f);
        else
            case_root(c, SAME_NUMBER, "(%s, %s) fusion(%s, %s), kind=%s, calls=%s", t, t, x, y, kinds[k / N_SHAPES], f);
    }
}

void sweep_custom_call(Sweep *s, Op op)
{
    static const char *const targets[] = {"Sharding", "xla.sdy.FuncResultSharding", "LayoutConstraint"};
    for (int k = 0; k < N_SHAPES * 3; k++) {
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SHUFFLE, "%s", shapes[k % N_SHAPES]);
        case_root(c, SAME_BITS, "%s custom-call(%s), custom_call_target=\"%s\"", shapes[k % N_SHAPES], x, targets[k / N_SHAPES]);
    }
}

/* All three steps; the case counts for each. */
void sweep_async(Sweep *s, Op op)
{
    for (int k = 0; k < N_SHAPES; k++) {
        const char *t = shapes[k];
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SMALL, "%s", t), *y = case_param(c, VALUES_SMALL, "%s", t);
        const char *f = case_comp(c, "  x = %s parameter(0)\n  y = %s parameter(1)\n  ROOT r = %s add(x, y)\n", t, t, t);
        const char *start = case_let(c, "((%s, %s), %s, s32[]) async-start(%s, %s), calls=%s", t, t, t, x, y, f);
        const char *update = case_let(c, "((%s, %s), %s, s32[]) async-update(%s)", t, t, t, start);
        case_root(c, SAME_NUMBER, "%s async-done(%s)", t, update);
    }
}

void sweep_copy_start(Sweep *s, Op op)
{
    for (int k = 0; k < N_SHAPES; k++) {
        const char *t = shapes[k];
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SHUFFLE, "%s", t), *start = case_let(c, "(%s, %s, u32[]) copy-start(%s)", t, t, x);
        case_root(c, SAME_BITS, "%s copy-done(%s)", t, start);
    }
}

void sweep_copy_done(Sweep *s, Op op)
{
    sweep_copy_start(s, op);
}

/* The instruction, or the pair of start and done, with one participant. */
static const struct {
    Op op;
    const char *text, *done;
} collectives[] = {
    {OP_ALL_GATHER, "T all-gather(X), replica_groups={}, dimensions={0}", ""},
    {OP_ALL_GATHER_START, "(T, T) all-gather-start(X), replica_groups={}, dimensions={0}", "all-gather-done"},
    {OP_ALL_GATHER_DONE, "(T, T) all-gather-start(X), replica_groups={{0}}, dimensions={0}", "all-gather-done"},
    {OP_ALL_REDUCE, "T all-reduce(X), replica_groups={}, to_apply=F", ""},
    {OP_ALL_REDUCE_START, "T all-reduce-start(X), replica_groups={}, to_apply=F", "all-reduce-done"},
    {OP_ALL_REDUCE_DONE, "T all-reduce-start(X), replica_groups={{0}}, to_apply=F", "all-reduce-done"},
    {OP_REDUCE_SCATTER, "T reduce-scatter(X), replica_groups={}, dimensions={0}, to_apply=F", ""},
    {OP_ALL_TO_ALL, "T all-to-all(X), replica_groups={}, dimensions={0}", ""},
    {OP_COLLECTIVE_BROADCAST, "T collective-broadcast(X), replica_groups={{0}}", ""},
    {OP_COLLECTIVE_REDUCE, "T collective-reduce(X), replica_groups={{0}}, to_apply=F", ""},
    {OP_COLLECTIVE_PERMUTE, "T collective-permute(X), source_target_pairs={{0,0}}", ""},
    {OP_COLLECTIVE_PERMUTE, "T collective-permute(X), source_target_pairs={}", ""},
    {OP_COLLECTIVE_PERMUTE_START, "(T, T, u32[], u32[]) collective-permute-start(X), source_target_pairs={{0,0}}",
     "collective-permute-done"},
    {OP_COLLECTIVE_PERMUTE_DONE, "(T, T) collective-permute-start(X), source_target_pairs={}", "collective-permute-done"},
};

/* T, X and F of the text by a shape, an operand and a reducer. */
static const char *fill_in(Case *c, const char *text, const char *t, const char *x, const char *f)
{
    Buf b = {0};
    for (; *text; text++) {
        bool word = text[1] == ' ' || text[1] == ',' || text[1] == ')' || text[1] == '\0';
        if (word && (*text == 'T' || *text == 'X' || *text == 'F'))
            buf_puts(&b, *text == 'T' ? t : *text == 'X' ? x : f);
        else
            buf_putc(&b, *text);
    }
    const char *done = case_let(c, "%s", b.p);
    buf_free(&b);
    return done;
}

void sweep_collective(Sweep *s, Op op)
{
    static const char *const arrays[] = {"f32[5]", "s8[3,5]{0,1}", "bf16[2,0]", "u64[2,3,4]{0,2,1}"};
    static const Type types[] = {TYPE_F32, TYPE_S8, TYPE_BF16, TYPE_U64};
    for (size_t k = 0; k < sizeof collectives / sizeof *collectives; k++)
        for (int j = 0; j < 4 && collectives[k].op == op; j++) {
            Case *c = sweep_case(s, op);
            if (!c)
                continue;
            const char *x = case_param(c, VALUES_SMALL, "%s", arrays[j]), *f = case_reducer(c, OP_ADD, types[j]),
                       *y = fill_in(c, collectives[k].text, arrays[j], x, f);
            if (*collectives[k].done)
                case_root(c, SAME_BITS, "%s %s(%s)", arrays[j], collectives[k].done, y);
            else
                case_root(c, SAME_BITS, "%s copy(%s)", arrays[j], y);
        }
    if (op == OP_RAGGED_ALL_TO_ALL) {
        Case *c = sweep_case(s, op);
        case_refusable(c, true);
        const char *x = case_param(c, VALUES_SMALL, "f32[6,2]"), *out = case_param(c, VALUES_SMALL, "f32[8,2]"),
                   *from = case_let(c, "s32[1] constant({1})");
        const char *n = case_let(c, "s32[1] constant({3})"), *to = case_let(c, "s32[1] constant({2})");
        case_root(c, SAME_BITS, "f32[8,2] ragged-all-to-all(%s, %s, %s, %s, %s, %s), replica_groups={{0}}", x, out, from, n, to,
                  n);
    }
}

void sweep_device_id(Sweep *s, Op op)
{
    case_root(sweep_case(s, op), SAME_BITS, "u32[] %s()", op_name(op));
}

void sweep_after_all(Sweep *s, Op op)
{
    Case *c = sweep_case(s, op);
    const char *x = case_param(c, VALUES_SMALL, "f32[6]"), *k = case_let(c, "token[] after-all()"),
               *l = case_let(c, "token[] after-all(%s, %s)", k, k);
    case_root(c, SAME_BITS, "add-dependency(%s, %s)", x, l);
}

void sweep_rng_bit_generator(Sweep *s, Op op)
{
    static const char *const bits[] = {"u32[5]", "u32[2,3]", "u64[7]",   "u8[3,5]",   "u16[4,4]{0,1}", "u32[]",
                                       "u64[]",  "u32[0]",   "u64[3,0]", "u32[33,2]", "u8[1000]"};
    static const struct {
        const char *algorithm;
        int words;
    } how[] = {{"rng_three_fry", 2}, {"rng_philox", 2}, {"rng_philox", 3}, {"rng_default", 3}};
    for (size_t k = 0; k < sizeof bits / sizeof *bits; k++)
        for (size_t j = 0; j < 4 * 2; j++) {
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, j % 2 ? VALUES_SHUFFLE : VALUES_DISTINCT, "u64[%d]", how[j / 2].words);
            case_root(c, SAME_BITS, "(u64[%d], %s) rng-bit-generator(%s), algorithm=%s", how[j / 2].words, bits[k], x,
                      how[j / 2].algorithm);
        }
}

/* Cases share a module and so its random state: which numbers there are depends on the cases before. */
void sweep_rng(Sweep *s, Op op)
{
    Case *c = sweep_case(s, op);
    const char *a = case_param(c, VALUES_SMALL, "f32[]"), *r = case_let(c, "f32[5] rng(%s, %s), distribution=rng_uniform", a, a),
               *z = case_let(c, "is-finite(%s)", r);
    case_root(c, SAME_BITS, "copy(%s)", z);
}

/* How far one state is from the next. */
void sweep_rng_state(Sweep *s, Op op)
{
    Case *c = sweep_case(s, op);
    const char *x = case_let(c, "u64[2] rng-get-and-update-state(), delta=5"), *y = case_let(c, "u64[2] rng-get-and-update-state(), delta=1");
    case_root(c, SAME_BITS, "subtract(%s, %s)", x, y); /* x stands first in every order that a pass may choose */
}

void sweep_transfer(Sweep *s, Op op)
{
    Case *c = sweep_case(s, op);
    const char *x = case_param(c, VALUES_SMALL, "f32[2]"), *k = case_let(c, "token[] after-all()");
    case_refusable(c, true);
    if (op == OP_INFEED) {
        const char *p = case_let(c, "(f32[2], token[]) infeed(%s)", k);
        case_root(c, SAME_BITS, "get-tuple-element(%s), index=0", p);
    } else if (op == OP_OUTFEED) {
        const char *l = case_let(c, "token[] outfeed(%s, %s), outfeed_shape=f32[2]", x, k);
        case_root(c, SAME_BITS, "add-dependency(%s, %s)", x, l);
    } else if (op == OP_SEND || op == OP_SEND_DONE) {
        const char *p =
            case_let(c, "(f32[2], u32[], token[]) send(%s, %s), channel_id=%d, is_host_transfer=true", x, k, c ? c->id : 1);
        const char *l = case_let(c, "token[] send-done(%s), channel_id=%d, is_host_transfer=true", p, c ? c->id : 1);
        case_root(c, SAME_BITS, "add-dependency(%s, %s)", x, l);
    } else {
        const char *p = case_let(c, "(f32[2], u32[], token[]) recv(%s), channel_id=%d, is_host_transfer=true", k, c ? c->id : 1);
        const char *l = case_let(c, "(f32[2], token[]) recv-done(%s), channel_id=%d, is_host_transfer=true", p, c ? c->id : 1);
        case_root(c, SAME_BITS, "get-tuple-element(%s), index=0", l);
    }
}

void sweep_get_dimension_size(Sweep *s, Op op)
{
    for (int k = 0; k < 3; k++) {
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SMALL, "f32[2,7,0]{0,1,2}");
        case_root(c, SAME_BITS, "s32[] get-dimension-size(%s), dimensions={%d}", x, k);
    }
}

void sweep_set_dimension_size(Sweep *s, Op op)
{
    Case *c = sweep_case(s, op);
    const char *x = case_param(c, VALUES_SMALL, "f32[2,7]"), *n = case_let(c, "s32[] constant(7)"),
               *d = case_let(c, "f32[2,<=7] set-dimension-size(%s, %s), dimensions={1}", x, n);
    case_root(c, SAME_BITS, "s32[] get-dimension-size(%s), dimensions={1}", d);
}

void sweep_dynamic_reshape(Sweep *s, Op op)
{
    Case *c = sweep_case(s, op);
    const char *x = case_param(c, VALUES_SMALL, "f32[6]"), *n = case_let(c, "s32[] constant(2)"),
               *m = case_let(c, "s32[] constant(3)");
    case_refusable(c, true);
    case_root(c, SAME_BITS, "f32[<=2,3] dynamic-reshape(%s, %s, %s)", x, n, m);
}
