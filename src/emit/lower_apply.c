/* Called computations from scalars to scalars (reducers, comparators, map). What is scalars under operators and calls all through is expanded in
 * place: every instruction that the root needs becomes a temporary, the root itself stays an open expression for its user to store.
 * Anything else is lower_body.c's. */
#include "emit/lower.h"

enum { MAX_CALLS = 32, MAX_APPLIED = 10000 };

/* Values of one expansion, a list of leaves an instruction. */
typedef struct Env {
    Map needed, values;
} Env;

Map apply_needed(Lower *L, const Comp *c)
{
    Map needed = map_new(L->arena);
    map_put(&needed, c->root, L);
    for (const Inst *i = c->last; i; i = i->prev)
        if (map_has(&needed, i))
            for (int32_t k = 0; k < i->n_operands; k++)
                map_put(&needed, inst_operand(i, k), L);
    return needed;
}

static void apply_call(Lower *L, const Comp *c, const KExpr *const *args, const KExpr **out);

static bool is_alias(Op op)
{
    switch (op) {
    case OP_RESHAPE: case OP_BROADCAST: case OP_TRANSPOSE: case OP_OPT_BARRIER: case OP_REVERSE: case OP_DOMAIN: return true;
    default: return false;
    }
}

/* The leaves of i from those of its operands. */
static const KExpr **apply_inst(Lower *L, Env *e, const Inst *i, const KExpr *const *args, bool open)
{
    int32_t       n = shape_leaf_count(i->shape, false);
    const KExpr **out = ARENA_ARRAY(L->arena, const KExpr *, n);
    if (i->op == OP_PARAMETER) {
        out[0] = args[i->param];
        return out;
    }
    if (i->op == OP_CONSTANT) {
        out[0] = scalar_constant(L->arena, i->literal, 0);
        return out;
    }
    const KExpr **in = ARENA_ARRAY(L->arena, const KExpr *, i->n_operands);
    Type         *types = ARENA_ARRAY(L->arena, Type, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++) {
        const KExpr **leaves = map_get(&e->values, inst_operand(i, k));
        in[k] = leaves[i->op == OP_GET_TUPLE_ELEMENT ? inst_int(i, ATTR_INDEX, 0) : 0];
        types[k] = inst_operand(i, k)->shape->type;
    }
    switch (i->op) {
    case OP_TUPLE:
        for (int32_t k = 0; k < n; k++)
            out[k] = in[k];
        return out;
    case OP_CALL: case OP_MAP: case OP_FUSION:
        apply_call(L, inst_callee(i, 0), in, out);
        return out;
    case OP_COPY:
        out[0] = scalar_convert(L->arena, types[0], i->shape->type, in[0]);
        return out;
    case OP_GET_TUPLE_ELEMENT:
        out[0] = in[0];
        return out;
    default:
        out[0] = is_alias(i->op) ? in[0] : scalar_op(L, i, types, in);
        if (!open)
            out[0] = bind(L, out[0], i->name);
        return out;
    }
}

static void apply_call(Lower *L, const Comp *c, const KExpr *const *args, const KExpr **out)
{
    Env           e = { apply_needed(L, c), map_new(L->arena) };
    const KExpr **leaves = NULL;
    for (const Inst *i = c->first; i; i = i->next)
        if (map_has(&e.needed, i)) {
            const KExpr **v = apply_inst(L, &e, i, args, i == c->root);
            map_put(&e.values, i, v);
            if (i == c->root)
                leaves = v;
        }
    int32_t n = shape_leaf_count(c->root->shape, false);
    for (int32_t k = 0; k < n; k++)
        out[k] = leaves[k];
}

/* Scalars, tuples of them, and operators that apply_inst knows. */
static bool is_inline_inst(const Inst *i)
{
    bool flat = shape_is_scalar(i->shape) || i->op == OP_TUPLE;
    if (shape_is_tuple(i->shape))
        for (int32_t k = 0; k < i->shape->n_elems; k++)
            flat = (i->op == OP_TUPLE || i->op == OP_CALL || i->op == OP_FUSION) && (k == 0 || flat) && shape_is_scalar(i->shape->elems[k]);
    if (!flat)
        return false;
    switch (i->op) {
    case OP_PARAMETER: case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: case OP_COPY: case OP_CALL: case OP_MAP: case OP_FUSION: return true;
    case OP_CONSTANT: return !i->literal->elided;
    case OP_BITCAST: case OP_BITCAST_CONVERT: return shape_is_scalar(inst_operand(i, 0)->shape) && scalar_op_supported(i);
    default: return is_alias(i->op) ? shape_is_scalar(inst_operand(i, 0)->shape) : op_has(i->op, F_ELEMENTWISE) && scalar_op_supported(i);
    }
}

static bool is_inline(const Comp *c)
{
    for (const Inst *i = c->first; i; i = i->next) {
        bool calls = i->op == OP_CALL || i->op == OP_MAP || i->op == OP_FUSION;
        if (!is_inline_inst(i) || (calls && !is_inline(inst_callee(i, 0))))
            return false;
    }
    return true;
}

void apply(Lower *L, const Comp *c, const KExpr *const *args, const KExpr **out)
{
    if (is_inline(c))
        apply_call(L, c, args, out);
    else
        apply_body(L, c, args, out);
}

/* Depth and size once all calls are expanded; both also bound what is recursed into from here on. */
static bool is_small(const Comp *c, int32_t depth, int64_t *left)
{
    for (const Inst *i = c->first; i; i = i->next) {
        if (--*left < 0)
            return false;
        for (int32_t k = 0; k < i->n_callees; k++)
            if (depth == 0 || !is_small(inst_callee(i, k), depth - 1, left))
                return false;
    }
    return true;
}

static bool only_arrays(const Shape *s)
{
    for (int32_t k = 0; shape_is_tuple(s) && k < s->n_elems; k++)
        if (!only_arrays(s->elems[k]))
            return false;
    return shape_is_tuple(s) || (shape_is_array(s) && !shape_is_unbounded(s) && shape_bytes(s) >= 0);
}

static bool supported(const Comp *c, const Inst *caller, Diag *d)
{
    bool ok = true;
    for (const Inst *i = c->first; i; i = i->next) {
        if (is_inline_inst(i) && i->n_callees == 0)
            continue;
        switch (i->op) {
        case OP_CALL: case OP_FUSION: case OP_WHILE: case OP_CONDITIONAL: case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: case OP_PARAMETER:
        case OP_COPY: case OP_OPT_BARRIER: case OP_DOMAIN:
            if (only_arrays(i->shape))
                break;
            inst_error(d, i, "%s cannot be compiled inside the computation that %s applies", op_name(i->op), op_name(caller->op));
            return false;
        case OP_RNG_GET_AND_UPDATE_STATE: /* what rng draws from, too */
            inst_error(d, i, "random numbers cannot be drawn in compiled code inside the computation that %s applies", op_name(caller->op));
            return false;
        default:
            if (is_norm(i) ? !norm_supported(i, d) : !fused_supported(i, d))
                return false;
        }
        if (i->op == OP_CALL || i->op == OP_FUSION || i->op == OP_WHILE || i->op == OP_CONDITIONAL)
            for (int32_t k = 0; k < i->n_callees; k++)
                ok = ok && supported(inst_callee(i, k), caller, d);
    }
    return ok;
}

bool apply_supported(const Comp *c, const Inst *caller, Diag *d)
{
    int64_t left = MAX_APPLIED;
    if (is_small(c, MAX_CALLS, &left))
        return supported(c, caller, d);
    if (left < 0)
        inst_error(d, caller, "%s applies more than %d instructions once calls are expanded", op_name(caller->op), MAX_APPLIED);
    else
        inst_error(d, caller, "%s: calls nest too deeply in what it applies", op_name(caller->op));
    return false;
}

Op apply_operation(const Comp *c)
{
    const Inst *r = c->root;
    if (c->n_params != 2 || r->n_operands != 2 || !op_has(r->op, F_COMMUTES))
        return OP_COUNT;
    const Inst *x = inst_operand(r, 0), *y = inst_operand(r, 1);
    bool        parameters = x->op == OP_PARAMETER && y->op == OP_PARAMETER && x != y;
    return parameters && x->shape->type == r->shape->type && y->shape->type == r->shape->type ? r->op : OP_COUNT;
}
