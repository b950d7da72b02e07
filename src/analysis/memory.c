/* Identity in memory. A shape with a layout is a list of (size, dimension) from the slowest to the fastest; dimensions of size 1
 * take no part. Tiles, memory spaces and the other fields of a layout are of no meaning here: all arrays are dense. */
#include "analysis/memory.h"

#include "ir/custom_call.h"

static bool row_major_but_for_ones(const Shape *s)
{
    int64_t slowest = INT64_MAX;
    for (int32_t k = 0; k < s->rank; k++) {
        int64_t d = layout_dim(s, k);
        if (s->dims[d] == 1)
            continue;
        if (d > slowest)
            return false;
        slowest = d;
    }
    return true;
}

/* The same sizes in the same order from fast to slow, ones left out. */
static bool same_order(const Shape *a, const Shape *b)
{
    int32_t i = 0, j = 0;
    for (;;) {
        while (i < a->rank && a->dims[layout_dim(a, i)] == 1)
            i++;
        while (j < b->rank && b->dims[layout_dim(b, j)] == 1)
            j++;
        if (i == a->rank || j == b->rank)
            return i == a->rank && j == b->rank;
        if (layout_dim(a, i++) != layout_dim(b, j++))
            return false;
    }
}

bool shape_same_memory(const Shape *a, const Shape *b)
{
    if (a == b)
        return true;
    if (a->type != b->type || shape_count(a) != shape_count(b) || shape_count(a) < 0)
        return false;
    if (shape_count(a) <= 1 || (row_major_but_for_ones(a) && row_major_but_for_ones(b)))
        return true;
    return shape_same_dims(a, b) && same_order(a, b);
}

int32_t shape_leaf_at(const Shape *s, Ints index)
{
    int32_t n = 0;
    for (int32_t k = 0; k < index.n; k++) {
        if (!shape_is_tuple(s) || index.v[k] < 0 || index.v[k] >= s->n_elems)
            return -1;
        for (int64_t e = 0; e < index.v[k]; e++)
            n += shape_leaf_count(s->elems[e], false);
        s = s->elems[index.v[k]];
    }
    return shape_is_array(s) ? n : -1;
}

int32_t inst_forwards(const Inst *i)
{
    if (i->n_operands == 0)
        return -1;
    switch (i->op) {
    case OP_COPY:
    case OP_OPT_BARRIER:
    case OP_DOMAIN:
    case OP_ADD_DEPENDENCY:
    case OP_ALL_REDUCE_DONE:
        return 0;
    case OP_ASYNC_UPDATE: /* that binds no further argument */
        return i->n_operands == 1 ? 0 : -1;
    case OP_BITCAST:
    case OP_RESHAPE:
        return shape_same_memory(i->operands[0].def->shape, i->shape) ? 0 : -1;
    case OP_CUSTOM_CALL:
        return custom_call_is_marker(inst_string(i, ATTR_CUSTOM_CALL_TARGET)) ? 0 : -1;
    default:
        return -1;
    }
}

