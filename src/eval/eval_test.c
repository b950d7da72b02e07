/* The evaluator's interface on modules built by hand: limits, lifetimes, what is refused. The meaning of opcodes is tested in testdata/ops. */
#include "eval/eval.h"
#include "eval/memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

typedef struct Fixture {
    Arena  *arena;
    Diag    diag;
    Module *m;
} Fixture;

static Fixture open_fixture(void)
{
    Fixture f = {.arena = arena_new(), .m = module_new()};
    diag_init(&f.diag, f.arena);
    f.m->name = intern_str(f.m->strings, "test");
    return f;
}

static void close_fixture(Fixture *f)
{
    module_free(f->m);
    arena_free(f->arena);
}

static const Shape *vector(Fixture *f, Type t, int64_t n)
{
    return shape_array(f->m->arena, t, 1, &n);
}

static Inst *op1(Comp *c, Op op, const Shape *s, Inst *x)
{
    return inst_new(c, NULL, op, s, 1, (Inst *[]){x}, NULL);
}

static Inst *op2(Comp *c, Op op, const Shape *s, Inst *x, Inst *y)
{
    return inst_new(c, NULL, op, s, 2, (Inst *[]){x, y}, NULL);
}

static Inst *element(Fixture *f, Comp *c, Inst *tuple, int64_t k)
{
    Inst *i = op1(c, OP_GET_TUPLE_ELEMENT, tuple->shape->elems[k], tuple);
    inst_set_int(i, ATTR_INDEX, k);
    return i;
}

static Comp *entry(Fixture *f, Comp *c, Inst *root)
{
    c->root = root;
    f->m->entry = c;
    return c;
}

static bool reported(Fixture *f, const char *text)
{
    return f->diag.errors == 1 && strstr(f->diag.first->text, text);
}

/* y = x + x, twice used: the argument stays as it was. */
static void test_arguments(void)
{
    Fixture f = open_fixture();
    Comp *c = comp_new(f.m, "main");
    const Shape *s = vector(&f, TYPE_S32, 3);
    Inst *x = inst_parameter(c, NULL, 0, s, "x");
    entry(&f, c, op2(c, OP_ADD, s, x, op1(c, OP_NEGATE, s, op2(c, OP_ADD, s, x, x))));
    Literal *arg = literal_new(TYPE_S32, 1, (int64_t[]){3});
    for (int64_t k = 0; k < 3; k++)
        literal_set_s64(arg, k, k + 1);
    CHECK(eval_supported(f.m, &f.diag));
    Literal *r = eval_module(f.m, 1, &arg, NULL, &f.diag);
    CHECK(r && literal_get_s64(r, 0) == -1 && literal_get_s64(r, 2) == -3);
    CHECK(arg->refs == 1 && literal_get_s64(arg, 2) == 3);
    literal_unref(r);
    literal_unref(arg);
    close_fixture(&f);
    puts("ok arguments");
}

/* A module run several times: the same values each time, arguments of each run its own, and a run that fails does no harm. */
static void test_again(void)
{
    Fixture f = open_fixture();
    Comp *c = comp_new(f.m, "main");
    const Shape *s = vector(&f, TYPE_S32, 3);
    Inst *x = inst_parameter(c, NULL, 0, s, "x");
    entry(&f, c, op2(c, OP_ADD, s, x, op1(c, OP_NEGATE, s, op2(c, OP_ADD, s, x, x))));
    Evaluation *v = evaluation_open(f.m);
    for (int64_t run = 0; run < 4; run++) {
        int64_t work = 0;
        EvalOptions o = {.memory_limit = run == 2 ? 8 : 0, .work_limit = run == 1 ? 6 : 0, .quiet = run == 1, .work = &work};
        Literal *arg = literal_new(TYPE_S32, 1, (int64_t[]){3});
        for (int64_t k = 0; k < 3; k++)
            literal_set_s64(arg, k, k + run);
        Literal *r = evaluation_run(v, 1, &arg, &o, &f.diag);
        CHECK((r != NULL) == (run == 0 || run == 3) && arg->refs == 1);
        CHECK(!r || (literal_get_s64(r, 0) == -run && literal_get_s64(r, 2) == -run - 2));
        CHECK(work == (run == 1 ? 6 : run == 2 ? 0 : 9));
        literal_unref(r);
        literal_unref(arg);
    }
    CHECK(reported(&f, "does not fit into memory"));
    evaluation_close(v);
    evaluation_close(evaluation_open(f.m)); /* never run */
    evaluation_close(NULL);
    close_fixture(&f);
    puts("ok again");
}

/* (n, a) with n counting down from `trips` and a[n] = n: the loop's body and condition. trips < 0 never ends. */
static void build_loop(Fixture *f, int64_t size)
{
    const Shape *n = shape_scalar(f->m->arena, TYPE_S32), *a = vector(f, TYPE_S32, size), *one = vector(f, TYPE_S32, 1);
    const Shape *state = shape_tuple(f->m->arena, 2, (const Shape *[]){n, a});
    Comp *body = comp_new(f->m, "body");
    Inst *p = inst_parameter(body, NULL, 0, state, "p");
    Inst *count = element(f, body, p, 0);
    Inst *less = op2(body, OP_SUBTRACT, n, count, inst_constant(body, NULL, literal_from_s64(TYPE_S32, 1), "one"));
    Inst *update = inst_new(body, NULL, OP_DYNAMIC_UPDATE_SLICE, a, 3,
                            (Inst *[]){element(f, body, p, 1), op1(body, OP_RESHAPE, one, count), less}, NULL);
    body->root = op2(body, OP_TUPLE, state, less, update);
    Comp *condition = comp_new(f->m, "condition");
    Inst *q = inst_parameter(condition, NULL, 0, state, "q");
    condition->root = op2(condition, OP_COMPARE, shape_scalar(f->m->arena, TYPE_PRED), element(f, condition, q, 0),
                          inst_constant(condition, NULL, literal_from_s64(TYPE_S32, 0), "zero"));
    inst_set_word(condition->root, ATTR_DIRECTION, CMP_NE);
    Comp *c = comp_new(f->m, "main");
    Inst *start = op2(c, OP_TUPLE, state, inst_parameter(c, NULL, 0, n, "n"), inst_parameter(c, NULL, 1, a, "a"));
    Inst *loop = op1(c, OP_WHILE, state, start);
    inst_set_callees(loop, 2, (Comp *[]){body, condition});
    entry(f, c, element(f, c, loop, 1));
}

/* The state's array is written in place: with room for one and a half arrays the loop runs, since only the argument is copied. */
static void test_in_place(void)
{
    enum { SIZE = 1000 };
    Fixture f = open_fixture();
    build_loop(&f, SIZE);
    Literal *args[] = {literal_from_s64(TYPE_S32, SIZE), literal_new_zero(TYPE_S32, 1, (int64_t[]){SIZE})};
    EvalOptions o = {.memory_limit = SIZE * 4 * 3 / 2};
    Literal *r = eval_module(f.m, 2, args, &o, &f.diag);
    CHECK(r && literal_get_s64(r, 0) == 1 && literal_get_s64(r, SIZE - 1) == SIZE);
    CHECK(literal_get_s64(args[1], 0) == 0);
    literal_unref(r);
    o.memory_limit = SIZE * 4 / 2;
    CHECK(!eval_module(f.m, 2, args, &o, &f.diag) && reported(&f, "does not fit into memory"));
    literal_unref(args[0]);
    literal_unref(args[1]);
    close_fixture(&f);
    puts("ok in place");
}

static void test_limits(void)
{
    Fixture f = open_fixture();
    build_loop(&f, 4);
    Literal *args[] = {literal_from_s64(TYPE_S32, -1), literal_new_zero(TYPE_S32, 1, (int64_t[]){4})};
    EvalOptions o = {.work_limit = 100000, .quiet = true};
    CHECK(!eval_module(f.m, 2, args, &o, &f.diag) && f.diag.errors == 0);
    o.quiet = false;
    CHECK(!eval_module(f.m, 2, args, &o, &f.diag) && reported(&f, "element operations"));
    literal_unref(args[0]);
    literal_unref(args[1]);
    close_fixture(&f);

    f = open_fixture();
    Comp *c = comp_new(f.m, "main");
    Inst *zero = inst_constant(c, NULL, literal_from_f64(TYPE_F32, 0), "zero");
    entry(&f, c, op1(c, OP_BROADCAST, vector(&f, TYPE_F32, INT64_C(1) << 50), zero));
    CHECK(!eval_module(f.m, 0, NULL, NULL, &f.diag) && reported(&f, "broadcast"));
    close_fixture(&f);
    puts("ok limits");
}

/* What the root does not need is not asked for. */
static void test_supported(void)
{
    Fixture f = open_fixture();
    Comp *c = comp_new(f.m, "main");
    const Shape *s = vector(&f, TYPE_C64, 4);
    Inst *x = inst_parameter(c, NULL, 0, s, "x"), *refused = op1(c, OP_COLLECTIVE_BROADCAST, s, x);
    inst_set_int(refused, ATTR_HAS_DYNAMIC_ROOT, 1);
    entry(&f, c, op1(c, OP_NEGATE, s, x));
    CHECK(eval_supported(f.m, &f.diag) && f.diag.errors == 0);
    c->root = refused;
    CHECK(!eval_supported(f.m, &f.diag) && reported(&f, "collective-broadcast"));
    close_fixture(&f);
    puts("ok supported");
}

static void test_inst(void)
{
    Fixture f = open_fixture();
    Comp *c = comp_new(f.m, "main");
    Inst *x = inst_constant(c, NULL, literal_from_s64(TYPE_S8, -128), "x");
    Inst *negated = op1(c, OP_NEGATE, shape_scalar(f.m->arena, TYPE_S8), x);
    Literal *operand = literal_ref(x->literal);
    Literal *r = eval_inst(negated, &operand, NULL, &f.diag);
    CHECK(r && literal_get_s64(r, 0) == -128 && literal_get_s64(operand, 0) == -128);
    literal_unref(r);
    literal_unref(operand);
    close_fixture(&f);
    puts("ok inst");
}

/* ---- looking on ---- */

typedef struct Seen {
    char text[2000]; /* "name@caller#trip=value" of each step, the innermost frame first */
    int  begun, ended, stop_after, operands;
} Seen;

static void note_begin(void *cookie, const Inst *i, int32_t device)
{
    ((Seen *)cookie)->begun++;
}

static bool note_step(void *cookie, const EvalStep *s)
{
    Seen *x = cookie;
    char  step[200];
    int   n = snprintf(step, sizeof step, "%s", s->inst->name);
    for (const EvalFrame *f = s->frame; f->outer; f = f->outer)
        n += snprintf(step + n, sizeof step - (size_t)n, f->trip >= 0 ? "@%s#%d" : "@%s", f->caller->name, (int)f->trip);
    if (s->value->type == TYPE_S32)
        snprintf(step + n, sizeof step - (size_t)n, "=%d", (int)literal_get_s64(s->value, 0));
    strncat(x->text, step, sizeof x->text - strlen(x->text) - 2);
    strcat(x->text, " ");
    for (int32_t k = 0; s->operands && k < s->inst->n_operands; k++) /* as they were, whatever was computed of them */
        x->operands += s->inst->op == OP_NEGATE ? (int)literal_get_s64(s->operands[k], 0) : 0;
    return ++x->ended != x->stop_after;
}

/* A loop of two trips that counts up, and a call: while(n < 2) n = n + 1; negate. */
static void build_counting_loop(Fixture *f)
{
    const Shape *s = shape_scalar(f->m->arena, TYPE_S32), *p = shape_scalar(f->m->arena, TYPE_PRED);
    Comp *body = comp_new(f->m, "body"), *cond = comp_new(f->m, "cond"), *minus = comp_new(f->m, "minus"), *c = comp_new(f->m, "main");
    Inst *n = inst_parameter(body, NULL, 0, s, "n"), *one = inst_constant(body, NULL, literal_from_s64(TYPE_S32, 1), "one");
    body->root = inst_new(body, NULL, OP_ADD, s, 2, (Inst *[]){n, one}, "next");
    Inst *m = inst_parameter(cond, NULL, 0, s, "m"), *two = inst_constant(cond, NULL, literal_from_s64(TYPE_S32, 2), "two");
    cond->root = inst_new(cond, NULL, OP_COMPARE, p, 2, (Inst *[]){m, two}, "less");
    inst_set_word(cond->root, ATTR_DIRECTION, CMP_LT);
    Inst *x = inst_parameter(minus, NULL, 0, s, "x");
    minus->root = inst_new(minus, NULL, OP_NEGATE, s, 1, (Inst *[]){x}, "minus");
    Inst *start = inst_constant(c, NULL, literal_from_s64(TYPE_S32, 0), "start");
    Inst *loop = inst_new(c, NULL, OP_WHILE, s, 1, (Inst *[]){start}, "loop");
    inst_set_callees(loop, 2, (Comp *[]){body, cond});
    Inst *call = inst_new(c, NULL, OP_CALL, s, 1, (Inst *[]){loop}, "call");
    inst_set_callees(call, 1, (Comp *[]){minus});
    entry(f, c, call);
}

static void test_watch(void)
{
    Fixture     f = open_fixture();
    Seen        x = {.text = ""}, stopped = {.text = "", .stop_after = 3};
    EvalWatch   w = {.cookie = &x, .wants_operands = true, .before = note_begin, .after = note_step};
    EvalOptions o = {.watch = &w};
    build_counting_loop(&f);
    Literal *r = eval_module(f.m, 0, NULL, &o, &f.diag);
    CHECK(r && literal_get_s64(r, 0) == -2);
    literal_unref(r);
    CHECK(strcmp(x.text, "start=0 "
                         "m@loop#0=0 two@loop#0=2 less@loop#0 n@loop#0=0 one@loop#0=1 next@loop#0=1 "
                         "m@loop#1=1 two@loop#1=2 less@loop#1 n@loop#1=1 one@loop#1=1 next@loop#1=2 "
                         "m@loop#2=2 two@loop#2=2 less@loop#2 loop=2 "
                         "x@call=2 minus@call=-2 call=-2 ") == 0);
    CHECK(x.begun == x.ended && x.operands == 2); /* negate saw 2, though it might have written over it */
    w.cookie = &stopped;
    CHECK(!eval_module(f.m, 0, NULL, &o, &f.diag) && f.diag.errors == 0); /* the watch ends it, without a report */
    CHECK(stopped.ended == 3 && stopped.begun == 4); /* start, loop, m, two */
    close_fixture(&f);
    puts("ok watch");
}

/* What is counted: a trip of a loop and each element that is made. */
static void test_work(void)
{
    Fixture     f = open_fixture();
    int64_t     work = 0, trips = 0;
    EvalOptions o = {.work = &work};
    build_counting_loop(&f);
    Literal *r = eval_module(f.m, 0, NULL, &o, &f.diag);
    CHECK(r && work >= 2 + 3); /* two trips, three tests */
    literal_unref(r);
    o = (EvalOptions){.work = &trips, .work_limit = work - 1};
    CHECK(!eval_module(f.m, 0, NULL, &o, &f.diag) && trips == work - 1 && reported(&f, "element operations"));
    close_fixture(&f);
    f = open_fixture();
    build_counting_loop(&f);
    o = (EvalOptions){.max_trips = 1};
    CHECK(!eval_module(f.m, 0, NULL, &o, &f.diag) && reported(&f, "more than 1 iteration"));
    close_fixture(&f);
    puts("ok work");
}

/* main(x, y) = x . y or x . y^T, of a module of its own. */
static Literal *run_product(Literal *const *args, const EvalOptions *o, bool transposed, Type t)
{
    Fixture      f = open_fixture();
    Comp        *c = comp_new(f.m, "main");
    int64_t      n = args[0]->dims[0];
    const Shape *s = shape_array(f.m->arena, args[0]->type, 2, (int64_t[]){n, n}), *r = shape_array(f.m->arena, t, 2, (int64_t[]){n, n});
    Inst        *x = inst_parameter(c, NULL, 0, s, "x"), *y = inst_parameter(c, NULL, 1, s, "y");
    Inst        *dot = inst_new(c, NULL, OP_DOT, r, 2, (Inst *[]){x, y}, transposed ? "other" : "dot");
    inst_set_ints(dot, ATTR_LHS_CONTRACTING_DIMS, (Ints){(int64_t[]){1}, 1});
    inst_set_ints(dot, ATTR_RHS_CONTRACTING_DIMS, (Ints){(int64_t[]){transposed}, 1});
    entry(&f, c, op1(c, OP_NEGATE, r, dot));
    Literal *result = eval_module(f.m, 2, args, o, &f.diag);
    CHECK(f.diag.errors == 0);
    close_fixture(&f);
    return result;
}

static void fill_products(Literal **args, int64_t n)
{
    for (int k = 0; k < 2; k++) {
        args[k] = literal_new(TYPE_F32, 2, (int64_t[]){n, n});
        for (int64_t i = 0; i < n * n; i++)
            literal_set_f64(args[k], i, (double)(i * (k + 3) % 17 - 8), 0);
    }
}

/* The value that is kept is that of the same operands, attributes and types, counts as the same work, and is left alone by what follows. */
static void test_memo(void)
{
    enum { N = 48 };
    EvalMemo *memo = memo_new(4 * N * N * 6);
    Literal  *args[2], *plain[4], *kept[4];
    fill_products(args, N);
    for (int turn = 0; turn < 3; turn++) {
        for (int k = 0; k < 4; k++) {
            int64_t     work = 0, again = 0;
            Type        t = k == 2 ? TYPE_F64 : TYPE_F32;
            EvalOptions o = {.work = &work}, with = {.work = &again, .memo = memo};
            if (k == 3)
                literal_set_f64(args[1], turn, 0.5, 0);
            plain[k] = run_product(args, &o, k == 1, t);
            kept[k] = run_product(args, &with, k == 1, t);
            CHECK(plain[k] && kept[k] && literal_equal(plain[k], kept[k]) && work == again);
            literal_set_f64(args[1], turn, (double)(turn * 4 % 17 - 8), 0);
        }
        CHECK(!literal_equal(kept[0], kept[1]) && !literal_equal(kept[0], kept[3]));
        CHECK(memo_found(memo) == 3 * turn); /* the fourth one has other elements each time */
        for (int k = 0; k < 4; k++) {
            literal_unref(plain[k]);
            literal_unref(kept[k]);
        }
        memo_turn(memo);
    }
    EvalOptions limited = {.memo = memo, .work_limit = N * N * N, .quiet = true}; /* the product alone is as much */
    CHECK(!run_product(args, &limited, false, TYPE_F32) && memo_found(memo) == 7);
    memo_turn(memo);
    memo_turn(memo); /* nothing was asked for since */
    literal_unref(run_product(args, &(EvalOptions){.memo = memo}, false, TYPE_F32));
    CHECK(memo_found(memo) == 7);
    memo_free(memo);
    memo_free(NULL);
    memo = memo_new(4 * N * N - 1); /* no room */
    for (int k = 0; k < 2; k++)
        literal_unref(run_product(args, &(EvalOptions){.memo = memo}, false, TYPE_F32));
    CHECK(memo_found(memo) == 0);
    memo_free(memo);
    literal_unref(args[0]);
    literal_unref(args[1]);
    puts("ok memo");
}

int main(void)
{
    test_arguments();
    test_again();
    test_in_place();
    test_limits();
    test_supported();
    test_inst();
    test_watch();
    test_work();
    test_memo();
    return 0;
}
