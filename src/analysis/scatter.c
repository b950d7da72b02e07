/* What scatter.h says. */
#include "analysis/scatter.h"

int64_t scatter_window_size(const Inst *x, int32_t d)
{
    const Shape *updates = inst_operand(x, x->n_operands / 2 + 1)->shape;
    Ints         window = inst_ints(x, ATTR_UPDATE_WINDOW_DIMS), inserted = inst_ints(x, ATTR_INSERTED_WINDOW_DIMS), batching = inst_ints(x, ATTR_INPUT_BATCHING_DIMS);
    int32_t      w = 0;
    if (ints_has(inserted, d) || ints_has(batching, d))
        return 1;
    for (int32_t e = 0; e < d; e++)
        w += !ints_has(inserted, e) && !ints_has(batching, e);
    return updates->dims[window.v[w]];
}

bool scatter_places_whole(const Inst *x)
{
    Ints places = inst_ints(x, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
    bool whole = true;
    for (int32_t k = 0; k < places.n; k++)
        whole &= scatter_window_size(x, (int32_t)places.v[k]) == 1;
    return whole;
}

bool scatter_replaces(const Inst *x)
{
    const Comp   *body = inst_callee(x, 0);
    const int32_t n = x->n_operands / 2;
    bool          all = true;
    for (int32_t k = 0; k < n && all; k++)
        all = (body->root->op == OP_TUPLE ? inst_operand(body->root, k) : n == 1 ? body->root : NULL) == comp_param(body, n + k);
    return all;
}

bool updates_have_no_order(Type t, Op op, bool floats)
{
    const bool of_numbers = op == OP_ADD || op == OP_MULTIPLY || op == OP_MINIMUM || op == OP_MAXIMUM;
    if (t == TYPE_PRED || type_is_int(t))
        return of_numbers || op == OP_AND || op == OP_OR || op == OP_XOR;
    if (type_is_complex(t))
        return floats && op == OP_ADD;
    return type_is_float(t) && floats && of_numbers;
}

bool scatter_has_no_order(const Inst *x, bool floats)
{
    const bool apart = inst_bool(x, ATTR_UNIQUE_INDICES) && scatter_places_whole(x);
    return apart || (x->n_operands == 3 && updates_have_no_order(x->shape->type, comp_binary_op(inst_callee(x, 0)), floats));
}

bool scatter_goes_at_once(const Inst *x, bool floats)
{
    return scatter_has_no_order(x, floats) || (scatter_replaces(x) && scatter_places_whole(x));
}
