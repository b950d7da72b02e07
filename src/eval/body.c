/* Compiling a body: registers hold BLOCK lanes; parameters are read and results written block by block.
 *
 *   add_min { x, y, z = add(x, y), ROOT r = minimum(z, y) }   =>   r2 = add(r0, r1); r3 = minimum(r2, r1) */
#include "eval/body.h"

#include <string.h>

typedef struct BodyStep {
    Arith  kernel;
    int32_t from[ARITH_OPERANDS], to;
} BodyStep;

struct Body {
    const Inst *caller;
    const Comp *comp;
    bool        compiled;
    int32_t     n_regs, n_steps, n_params, n_results;
    char      **regs;     /* room for BLOCK values each; constants are filled in when compiling */
    BodyStep   *steps;
    int32_t    *result;   /* registers */
    Type       *result_type, *param_type;
    const void **reg;     /* where each register's lanes are in the block that runs */
    Literal   **args;     /* for a lane through the engine */
    const void **params;  /* for folds */
    void      **results;
    char      **lanes;    /* for folds: BLOCK values of each parameter */
};

#define VALUE_BYTES 16 /* of the widest type */
#define MAX_INSTS 1000 /* longer bodies are left to the engine */
#define BODY_DEPTH 8   /* calls that a body run by the engine counts for: its handlers keep odometers on the stack */

/* What an instruction of the body is: one register, or a tuple of values. */
typedef struct Value {
    int32_t        reg;
    int32_t        n;
    struct Value **elems;
} Value;

typedef struct Compiler {
    Eval *e;
    Body *b;
    Map   values; /* Inst -> Value */
    int   depth, insts;
    VEC(char *) regs;
    VEC(BodyStep) steps;
} Compiler;

static Value *new_reg(Compiler *c)
{
    Value *v = ARENA_NEW(c->e->arena, Value);
    v->reg = c->regs.n;
    vec_push(c->e->arena, &c->regs, (char *)arena_alloc(c->e->arena, BLOCK * VALUE_BYTES));
    return v;
}

static Value *constant_reg(Compiler *c, const Literal *l)
{
    Value *v = new_reg(c);
    int bytes = type_bytes(l->type);
    for (int32_t j = 0; j < BLOCK; j++)
        memcpy(c->regs.v[v->reg] + j * bytes, l->data, (size_t)bytes);
    return v;
}

static Value *operation(Compiler *c, const Inst *i)
{
    BodyStep s = {0};
    if (!arith_find(&s.kernel, i))
        return NULL;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Value *v = map_get(&c->values, inst_operand(i, k));
        if (v->elems)
            return NULL;
        s.from[k] = v->reg;
    }
    Value *v = new_reg(c);
    s.to = v->reg;
    vec_push(c->e->arena, &c->steps, s);
    return v;
}

static Value *compile_comp(Compiler *c, const Comp *comp, Value *const *args);

static Value *called(Compiler *c, const Inst *i)
{
    Value **args = ARENA_ARRAY(c->e->arena, Value *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        args[k] = map_get(&c->values, inst_operand(i, k));
    return compile_comp(c, inst_callee(i, 0), args);
}

static Value *tuple_value(Compiler *c, const Inst *i)
{
    Value *v = ARENA_NEW(c->e->arena, Value);
    v->n = i->n_operands;
    v->elems = ARENA_ARRAY(c->e->arena, Value *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        v->elems[k] = map_get(&c->values, inst_operand(i, k));
    return v;
}

/* NULL: not compiled, the engine runs the body. */
static Value *compile_inst(Compiler *c, const Inst *i, Value *const *args)
{
    if (i->op == OP_PARAMETER)
        return args[i->param];
    if (i->op == OP_TUPLE)
        return tuple_value(c, i);
    const Value *first = i->n_operands > 0 ? map_get(&c->values, inst_operand(i, 0)) : NULL;
    if (i->op == OP_GET_TUPLE_ELEMENT)
        return first->elems ? first->elems[inst_int(i, ATTR_INDEX, 0)] : NULL;
    if (i->op == OP_CALL || i->op == OP_FUSION || (i->op == OP_MAP && shape_is_scalar(i->shape)))
        return called(c, i);
    if (!shape_is_scalar(i->shape))
        return NULL;
    switch (i->op) {
    case OP_CONSTANT:
        return literal_has_elided(i->literal) ? NULL : constant_reg(c, i->literal);
    case OP_BROADCAST: case OP_RESHAPE: case OP_TRANSPOSE: case OP_OPT_BARRIER: /* of a scalar */
        return shape_is_scalar(inst_operand(i, 0)->shape) ? map_get(&c->values, inst_operand(i, 0)) : NULL;
    default:
        return operation(c, i);
    }
}

/* The value of a call; instructions that the root does not need are compiled too, which changes nothing. A computation that is called
 * twice is compiled twice, each time with its own values. */
static Value *compile_comp(Compiler *c, const Comp *comp, Value *const *args)
{
    if (c->depth == 64)
        return NULL;
    c->depth++;
    Value *v = NULL;
    for (const Inst *i = comp->first; i; i = i->next) {
        v = c->insts++ < MAX_INSTS ? compile_inst(c, i, args) : NULL;
        if (!v)
            break;
        map_put(&c->values, i, v);
    }
    if (v)
        v = map_get(&c->values, comp->root);
    c->depth--;
    return v;
}

/* Sets what the compiler made, and the results; false when root is no value of theirs. */
static bool finish(Compiler *c, const Value *root)
{
    Body *b = c->b;
    if (!root)
        return false;
    b->result = ARENA_ARRAY(c->e->arena, int32_t, b->n_results);
    for (int32_t k = 0; k < b->n_results; k++) {
        const Value *v = root->elems ? root->elems[k] : root;
        if (v->elems)
            return false;
        b->result[k] = v->reg;
    }
    b->regs = c->regs.v;
    b->n_regs = c->regs.n;
    b->steps = c->steps.v;
    b->n_steps = c->steps.n;
    b->reg = ARENA_ARRAY(c->e->arena, const void *, b->n_regs);
    return true;
}

static bool compile(Eval *e, Body *b)
{
    Compiler c = {.e = e, .b = b, .values = map_new(e->arena)};
    Value **args = ARENA_ARRAY(e->arena, Value *, b->n_params);
    for (int32_t k = 0; k < b->n_params; k++)
        args[k] = new_reg(&c);
    return finish(&c, compile_comp(&c, b->comp, args));
}

Body *body_get(Eval *e, const Inst *caller, const Comp *c)
{
    Body *b = map_get(&e->bodies, c);
    if (b) {
        b->caller = caller;
        return b;
    }
    b = ARENA_NEW(e->arena, Body);
    *b = (Body){.caller = caller, .comp = c, .n_params = c->n_params};
    const Shape *s = c->root->shape;
    b->n_results = shape_is_tuple(s) ? s->n_elems : 1;
    b->result_type = ARENA_ARRAY(e->arena, Type, b->n_results);
    b->param_type = ARENA_ARRAY(e->arena, Type, b->n_params);
    for (int32_t k = 0; k < b->n_results; k++)
        b->result_type[k] = shape_is_tuple(s) ? s->elems[k]->type : s->type;
    for (int32_t k = 0; k < b->n_params; k++)
        b->param_type[k] = comp_param(c, k)->shape->type;
    b->args = ARENA_ARRAY(e->arena, Literal *, b->n_params);
    b->params = ARENA_ARRAY(e->arena, const void *, b->n_params);
    b->results = ARENA_ARRAY(e->arena, void *, b->n_results);
    b->lanes = ARENA_ARRAY(e->arena, char *, b->n_params);
    for (int32_t k = 0; k < b->n_params; k++)
        b->lanes[k] = arena_alloc(e->arena, BLOCK * VALUE_BYTES);
    b->compiled = compile(e, b);
    map_put(&e->bodies, c, b);
    return b;
}

Type    body_result_type(const Body *b, int32_t k) { return b->result_type[k]; }
Type    body_param_type(const Body *b, int32_t k) { return b->param_type[k]; }

Op body_binary_op(const Body *b)
{
    if (!b->compiled || b->n_steps != 1 || b->n_results != 1 || b->n_params != 2)
        return OP_COUNT;
    const Inst *r = b->comp->root;
    bool plain = r->n_operands == 2 && inst_operand(r, 0) != inst_operand(r, 1) && inst_operand(r, 0)->op == OP_PARAMETER &&
                 inst_operand(r, 1)->op == OP_PARAMETER && inst_operand(r, 0)->comp == b->comp;
    return plain && (op_has(r->op, F_COMMUTES) || inst_operand(r, 0)->param == 0) ? r->op : OP_COUNT;
}

/* Running */

static void run_block(Body *b, const void *const *params, void *const *results, int64_t at, int64_t n)
{
    /* Registers of parameters are the caller's memory, unless a result is written over it before all is read: all results are
     * copied out at the end. */
    const void **reg = b->reg;
    for (int32_t k = 0; k < b->n_regs; k++)
        reg[k] = b->regs[k];
    for (int32_t k = 0; k < b->n_params; k++)
        reg[k] = (const char *)params[k] + at * type_bytes(b->param_type[k]);
    for (int32_t s = 0; s < b->n_steps; s++) {
        const BodyStep *step = &b->steps[s];
        const void *x[ARITH_OPERANDS];
        for (int32_t k = 0; k < step->kernel.n; k++)
            x[k] = reg[step->from[k]];
        arith_run(&step->kernel, b->regs[step->to], x, n);
    }
    for (int32_t k = 0; k < b->n_results; k++) { /* a result that is a parameter goes through a register first */
        int32_t r = b->result[k];
        if (r < b->n_params && b->n_results > 1)
            reg[r] = memcpy(b->regs[r], reg[r], (size_t)n * (size_t)type_bytes(b->result_type[k]));
    }
    for (int32_t k = 0; k < b->n_results; k++) {
        int bytes = type_bytes(b->result_type[k]);
        memmove((char *)results[k] + at * bytes, reg[b->result[k]], (size_t)n * (size_t)bytes);
    }
}

static bool store_results(Eval *e, Body *b, Literal *r, void *const *results, int64_t at)
{
    if (!r)
        return false;
    for (int32_t k = 0; k < b->n_results; k++) {
        const Literal *v = r->type == TYPE_TUPLE ? r->elems[k] : r;
        int bytes = type_bytes(v->type);
        memcpy((char *)results[k] + at * bytes, v->data, (size_t)bytes);
    }
    eval_drop(e, r);
    return true;
}

/* One lane through the engine. */
static bool run_lane(Eval *e, Body *b, const void *const *params, void *const *results, int64_t at)
{
    for (int32_t k = 0; k < b->n_params; k++) {
        int bytes = type_bytes(b->param_type[k]);
        b->args[k] = eval_new(e, b->caller, b->param_type[k], 0, NULL);
        if (!b->args[k])
            return false;
        memcpy(b->args[k]->data, (const char *)params[k] + at * bytes, (size_t)bytes);
    }
    const EvalWatch *watch = e->watch;
    e->watch = NULL; /* a lane is no step of its own */
    e->depth += BODY_DEPTH;
    Literal *r = eval_comp(e, b->caller, b->comp, b->args);
    e->depth -= BODY_DEPTH;
    e->watch = watch;
    return store_results(e, b, r, results, at);
}

bool body_run(Eval *e, Body *b, const void *const *params, void *const *results, int64_t n)
{
    if (!b->compiled) {
        for (int64_t at = 0; at < n; at++)
            if (!run_lane(e, b, params, results, at))
                return false;
        return true;
    }
    for (int64_t at = 0; at < n; at += BLOCK)
        run_block(b, params, results, at, n - at < BLOCK ? n - at : BLOCK);
    return true;
}

/* Folding */

static char *element(const Literal *l, int64_t at)
{
    return (char *)l->data + at * type_bytes(l->type);
}

/* A row whose elements lie next to each other on both sides. */
static bool fold_direct(Eval *e, Body *b, int32_t n, Literal *const *acc, Literal *const *x, const Odometer *row, int64_t count)
{
    for (int32_t k = 0; k < n; k++) {
        b->params[k] = b->results[k] = element(acc[k], row->at[0]);
        b->params[n + k] = element(x[k], row->at[1]);
    }
    return body_run(e, b, b->params, b->results, count);
}

/* A row with steps: gathered into lanes, and back. */
static bool fold_strided(Eval *e, Body *b, int32_t n, Literal *const *acc, Literal *const *x, const Odometer *row, int64_t count,
                         int64_t step, int64_t x_step)
{
    for (int64_t j = 0; j < count; j += BLOCK) {
        int64_t m = count - j < BLOCK ? count - j : BLOCK;
        for (int32_t k = 0; k < n; k++) {
            int bytes = type_bytes(acc[k]->type), x_bytes = type_bytes(x[k]->type);
            walk_copy_row(b->lanes[k], 1, element(acc[k], row->at[0] + j * step), step, m, bytes);
            walk_copy_row(b->lanes[n + k], 1, element(x[k], row->at[1] + j * x_step), x_step, m, x_bytes);
            b->params[k] = b->results[k] = b->lanes[k];
            b->params[n + k] = b->lanes[n + k];
        }
        if (!body_run(e, b, b->params, b->results, m))
            return false;
        for (int32_t k = 0; k < n; k++)
            walk_copy_row(element(acc[k], row->at[0] + j * step), step, b->lanes[k], 1, m, type_bytes(acc[k]->type));
    }
    return true;
}

bool body_fold(Eval *e, Body *b, int32_t n, Literal *const *acc, Literal *const *x, const Odometer *o)
{
    Odometer rows;
    walk_take(&rows, o, o->rank);
    walk_simplify(&rows);
    int64_t total = walk_count(&rows);
    if (total == 0)
        return true;
    int32_t inner = rows.rank - 1;
    int64_t count = inner >= 0 ? rows.dims[inner] : 1, step = inner >= 0 ? rows.stride[0][inner] : 1;
    int64_t x_step = inner >= 0 ? rows.stride[1][inner] : 1;
    rows.rank = inner >= 0 ? inner : 0;
    bool direct = step == 1 && x_step == 1, ok = eval_work(e, b->caller, total);
    do {
        ok = ok && (direct ? fold_direct(e, b, n, acc, x, &rows, count) : fold_strided(e, b, n, acc, x, &rows, count, step, x_step));
    } while (ok && walk_next(&rows));
    return ok;
}
