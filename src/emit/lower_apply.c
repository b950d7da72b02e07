/* Called computations over scalars (reducers, comparators, map): expanded in place. Every instruction that the root needs becomes a temporary,
 * the root itself stays an open expression for its user to store. */
#include "emit/lower.h"

enum { MAX_CALLS = 32 };

/* Values of one expansion, a list of leaves an instruction. */
typedef struct Env {
    Map needed, values;
} Env;

static void mark_needed(Env *e, const Comp *c)
{
    map_put(&e->needed, c->root, e);
    for (const Inst *i = c->last; i; i = i->prev)
        if (map_has(&e->needed, i))
            for (int32_t k = 0; k < i->n_operands; k++)
                map_put(&e->needed, inst_operand(i, k), e);
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
    Env           e = { map_new(L->arena), map_new(L->arena) };
    const KExpr **leaves = NULL;
    mark_needed(&e, c);
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

void apply(Lower *L, const Comp *c, const KExpr *const *args, const KExpr **out)
{
    apply_call(L, c, args, out);
}

static bool supported(const Comp *c, const Inst *caller, Diag *d, int depth)
{
    if (depth > MAX_CALLS) {
        inst_error(d, caller, "%s: calls nest too deeply in what it applies", op_name(caller->op));
        return false;
    }
    for (const Inst *i = c->first; i; i = i->next) {
        bool flat = shape_is_scalar(i->shape) || i->op == OP_TUPLE;
        if (shape_is_tuple(i->shape))
            for (int32_t k = 0; k < i->shape->n_elems; k++)
                flat = (i->op == OP_TUPLE || i->op == OP_CALL || i->op == OP_FUSION) && (k == 0 || flat) && shape_is_scalar(i->shape->elems[k]);
        bool known = i->op == OP_PARAMETER || (i->op == OP_CONSTANT && !i->literal->elided) || i->op == OP_TUPLE || i->op == OP_GET_TUPLE_ELEMENT ||
                     i->op == OP_COPY || is_alias(i->op) || ((op_has(i->op, F_ELEMENTWISE) || i->op == OP_BITCAST || i->op == OP_BITCAST_CONVERT) && scalar_op_supported(i));
        if (i->op == OP_CALL || i->op == OP_MAP || i->op == OP_FUSION) {
            if (!supported(inst_callee(i, 0), caller, d, depth + 1))
                return false;
            known = true;
        }
        if (!flat || !known) {
            inst_error(d, i, "%s cannot be compiled inside the computation that %s applies", op_name(i->op), op_name(caller->op));
            return false;
        }
    }
    return true;
}

bool apply_supported(const Comp *c, const Inst *caller, Diag *d)
{
    return supported(c, caller, d, 0);
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
