/* Applied computations with loops, branches or arrays in them. They become statements in a block of their own, from which nothing is moved out:
 *
 *     {
 *         float x = ..., y = ...;       // a loop's state: accumulators, and arrays of its own
 *         while (1) {
 *             if (!(x < y))
 *                 break;
 *             float next = ...;         // all of the new state is known before the old one is overwritten
 *             x = next;
 *         }
 *         ...
 *     }
 *
 * What is pointwise is expanded where it is wanted, as in a fusion: while a computation is walked, L->memory, L->memo and L->body are its own.
 * Arrays up to LOCAL_BYTES are local ones, larger ones are pieces of the kernel's working memory. */
#include "emit/lower.h"

/* A leaf of a value: a scalar, or an array in memory. */
typedef struct Part {
    const KExpr *scalar;
    KArray      *array;
} Part;

static int32_t part_count(const Shape *s)
{
    return shape_leaf_count(s, false);
}

static Part *new_parts(Lower *L, const Shape *s)
{
    return ARENA_ARRAY(L->arena, Part, part_count(s));
}

/* ---- parts and instructions ---- */

/* From now on x is what parts say. */
static void define(Lower *L, const Inst *x, const Part *parts)
{
    int32_t  n = part_count(x->shape);
    KArray **arrays = ARENA_ARRAY(L->arena, KArray *, n);
    for (int32_t k = 0; k < n; k++) {
        arrays[k] = parts[k].array;
        if (parts[k].scalar)
            known_value(L, x, k, NULL, parts[k].scalar);
    }
    map_put(&L->memory, x, arrays);
}

static Part part_of(Lower *L, const Inst *x, int32_t leaf)
{
    const Shape *s = shape_leaf(x->shape, leaf);
    const Inst  *from = resolve(L, x, &leaf);
    if (s->rank == 0)
        return (Part){ .scalar = bind(L, value_at(L, from, leaf, NULL), from->name) };
    KArray *array = memory_of(L, from, leaf);
    if (!array || array->kind == KARRAY_CONST) {
        array = temp_array(L, s, from->name);
        if (array->count > 0)
            stage_loops(L, 1, &from, &leaf, &array);
    }
    return (Part){ .array = array };
}

static Part *parts_of(Lower *L, const Inst *x)
{
    int32_t n = part_count(x->shape);
    Part   *v = new_parts(L, x->shape);
    for (int32_t k = 0; k < n; k++)
        v[k] = part_of(L, x, k);
    return v;
}

/* ---- assignments ---- */

static void copy_from(Lower *L, KArray *to, KArray *from, int32_t d, const Ix **at)
{
    if (d == to->shape->rank) {
        store_at(L, to, at, load(L, from, shape_index(L, from->shape, at)));
        return;
    }
    at[d] = ix_of(&L->ix, loop_open(L, 0, to->shape->dims[d], NULL, 1));
    copy_from(L, to, from, d + 1, at);
    block_close(L);
}

void copy_array(Lower *L, KArray *to, KArray *from)
{
    if (to->count > 0 && to != from)
        copy_from(L, to, from, 0, ARENA_ARRAY(L->arena, const Ix *, to->shape->rank));
}

/* What is assigned: an accumulator or an array. */
typedef struct Variable {
    KTemp  *scalar;
    KArray *array;
} Variable;

static Variable *new_variables(Lower *L, const Inst *x, const Shape *shape)
{
    int32_t   n = part_count(shape);
    Variable *v = ARENA_ARRAY(L->arena, Variable, n);
    for (int32_t k = 0; k < n; k++) {
        const Shape *s = shape_leaf(shape, k);
        const char  *name = n > 1 ? arena_printf(L->arena, "%s_%d", x->name, k) : x->name;
        if (s->rank == 0)
            v[k].scalar = accumulator(L, NULL, machine_type(s->type), name);
        else
            v[k].array = temp_array(L, s, name);
    }
    return v;
}

static Part *now(Lower *L, const Shape *shape, const Variable *v)
{
    int32_t n = part_count(shape);
    Part   *parts = new_parts(L, shape);
    for (int32_t k = 0; k < n; k++)
        parts[k] = v[k].scalar ? (Part){ .scalar = current(L, v[k].scalar) } : (Part){ .array = v[k].array };
    return parts;
}

static bool is_unchanged(const Variable *v, const Part *p)
{
    return v->scalar ? p->scalar->kind == KX_TEMP && p->scalar->temp == v->scalar : p->array == v->array;
}

/* v[k] <- parts[k] for all k at once: old values that others still want are saved first. */
static void assign_all(Lower *L, int32_t n, const Variable *v, Part *parts)
{
    for (int32_t k = 0; k < n; k++) {
        if (is_unchanged(&v[k], &parts[k]))
            continue;
        if (v[k].scalar)
            parts[k].scalar = frozen(L, parts[k].scalar, "next");
        for (int32_t j = 0; j < n && v[k].array; j++)
            if (v[j].array == parts[k].array) {
                KArray *saved = temp_array(L, parts[k].array->shape, "old");
                copy_array(L, saved, parts[k].array);
                parts[k].array = saved;
                break;
            }
    }
    for (int32_t k = 0; k < n; k++) {
        if (is_unchanged(&v[k], &parts[k]))
            continue;
        if (v[k].scalar)
            assign(L, v[k].scalar, parts[k].scalar);
        else
            copy_array(L, v[k].array, parts[k].array);
    }
}

/* ---- control flow ---- */

static void run(Lower *L, const Comp *c, const Part *args, Part *out);

static void run_while(Lower *L, const Inst *i)
{
    const Shape *s = comp_param(while_body(i), 0)->shape;
    int32_t      n = part_count(s);
    Part        *new = new_parts(L, s), *init = parts_of(L, inst_operand(i, 0)), test;
    Variable    *state = new_variables(L, i, s);
    assign_all(L, n, state, init);
    repeat_open(L);
    const Part *old = now(L, s, state);
    run(L, while_condition(i), old, &test);
    break_unless(L, test.scalar);
    run(L, while_body(i), old, new);
    assign_all(L, n, state, new);
    block_close(L);
    define(L, i, now(L, s, state));
}

static void run_branch(Lower *L, const Inst *i, int32_t b, const Variable *result)
{
    Part *out = new_parts(L, i->shape);
    run(L, inst_callee(i, b), parts_of(L, inst_operand(i, b + 1)), out);
    assign_all(L, part_count(i->shape), result, out);
}

/* An index out of range takes the last branch. */
static void run_branches(Lower *L, const Inst *i, const KExpr *index, const Variable *result)
{
    Arena       *a = L->arena;
    const KExpr *last = kx_int(a, TYPE_S32, i->n_callees - 1);
    const KExpr *inside = kx_binary(a, KOP_LAND, TYPE_PRED, kx_binary(a, KOP_GE, TYPE_PRED, index, kx_int(a, TYPE_S32, 0)),
                                    kx_binary(a, KOP_LT, TYPE_PRED, index, last));
    index = frozen(L, kx_select(a, inside, index, last), "branch");
    for (int32_t b = 0; b < i->n_callees; b++) {
        if_open(L, kx_binary(a, KOP_EQ, TYPE_PRED, index, kx_int(a, TYPE_S32, b)));
        run_branch(L, i, b, result);
        block_close(L);
    }
}

static void run_conditional(Lower *L, const Inst *i)
{
    Variable    *result = new_variables(L, i, i->shape);
    const KExpr *selector = part_of(L, inst_operand(i, 0), 0).scalar;
    if (selector->type == TYPE_PRED) {
        if_open(L, selector);
        run_branch(L, i, 0, result);
        if_else(L);
        run_branch(L, i, 1, result);
        block_close(L);
    } else
        run_branches(L, i, selector, result);
    define(L, i, now(L, i->shape, result));
}

static void run_call(Lower *L, const Inst *i, const Comp *c)
{
    int32_t n = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        n += part_count(inst_operand(i, k)->shape);
    Part *args = ARENA_ARRAY(L->arena, Part, n), *out = new_parts(L, i->shape);
    n = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        for (int32_t e = 0; e < part_count(inst_operand(i, k)->shape); e++)
            args[n++] = part_of(L, inst_operand(i, k), e);
    run(L, c, args, out);
    define(L, i, out);
}

static const Comp *norm_of(Lower *L, const Inst *i)
{
    const Comp *c = map_get(&L->plan->norms, i);
    if (!c) {
        c = norm_body(L->plan->arena, i, &L->plan->materialise);
        map_put(&L->plan->norms, i, (void *)(uintptr_t)c);
    }
    return c;
}

/* Everything that cannot be expanded element by element. */
static void run_stage(Lower *L, const Inst *i)
{
    int32_t       n;
    const Shape **leaves = leaves_of(L->arena, i->shape, &n);
    KArray      **to = ARENA_ARRAY(L->arena, KArray *, n);
    for (int32_t k = 0; k < n; k++)
        to[k] = temp_array(L, leaves[k], n > 1 ? arena_printf(L->arena, "%s_%d", i->name, k) : i->name);
    stage(L, i, to);
    map_put(&L->memory, i, to);
}

static void run_inst(Lower *L, const Inst *i)
{
    switch (i->op) {
    case OP_WHILE: run_while(L, i); break;
    case OP_CONDITIONAL: run_conditional(L, i); break;
    case OP_CALL: case OP_FUSION: run_call(L, i, inst_callee(i, 0)); break;
    case OP_BATCH_NORM_TRAINING: case OP_BATCH_NORM_INFERENCE: case OP_BATCH_NORM_GRAD: run_call(L, i, norm_of(L, i)); break;
    case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: break;
    default:
        if (shape_is_array(i->shape) ? !is_pointwise(i) || map_has(&L->plan->materialise, i) : i->op == OP_REDUCE || !is_pointwise(i))
            run_stage(L, i);
        break;
    }
}

/* One call of c. */
static void run(Lower *L, const Comp *c, const Part *args, Part *out)
{
    Map         memory = L->memory, memo = L->memo, needed = apply_needed(L, c);
    const Comp *body = L->body;
    L->memory = map_new(L->arena);
    L->memo = map_new(L->arena);
    L->body = c;
    for (int32_t k = 0; k < c->n_params; k++) {
        define(L, comp_param(c, k), args);
        args += part_count(comp_param(c, k)->shape);
    }
    for (const Inst *i = c->first; i; i = i->next)
        if (i->op != OP_PARAMETER && map_has(&needed, i))
            run_inst(L, i);
    for (int32_t k = 0; k < part_count(c->root->shape); k++)
        out[k] = part_of(L, c->root, k);
    L->memory = memory;
    L->memo = memo;
    L->body = body;
}

void apply_body(Lower *L, const Comp *c, const KExpr *const *args, const KExpr **out)
{
    int32_t   n = part_count(c->root->shape);
    Part     *in = ARENA_ARRAY(L->arena, Part, c->n_params), *result = new_parts(L, c->root->shape);
    Variable *v;
    for (int32_t k = 0; k < c->n_params; k++)
        in[k].scalar = bind(L, args[k], comp_param(c, k)->name);
    v = new_variables(L, c->root, c->root->shape);
    block_open(L);
    run(L, c, in, result);
    assign_all(L, n, v, result);
    block_close(L);
    for (int32_t k = 0; k < n; k++)
        out[k] = current(L, v[k].scalar);
}
