/* Types: possible in themselves, and what the operation makes of its operands. */
#include "ir/infer.h"
#include "ir/verify_rules.h"

static bool check_order(const Verify *v, const Inst *i, const Shape *s)
{
    Ints  order = s->layout->minor_to_major;
    bool *seen = ARENA_ARRAY(v->a, bool, s->rank);
    if (order.n != s->rank)
        return verify_fail(v, i, "the layout of %s has %d dimensions", verify_text(v, s), order.n);
    for (int32_t k = 0; k < order.n; k++) {
        int64_t d = order.v[k];
        if (d < 0 || d >= s->rank || seen[d])
            return verify_fail(v, i, "the layout %s of %s is no permutation of its dimensions", index_text(v, order),
                               verify_text(v, s));
        seen[d] = true;
    }
    return true;
}

static bool check_layout(const Verify *v, const Inst *i, const Shape *s)
{
    if (!check_order(v, i, s))
        return false;
    if (!layout_tiles_fit(s->layout))
        return verify_fail(v, i, "the layout of %s has a tile without dimensions or with one below 1", verify_text(v, s));
    return layout_splits_fit(s->layout, s) ||
           verify_fail(v, i, "the layout of %s splits a dimension that there is none of, or not at rising places inside of it",
                       verify_text(v, s));
}

static bool check_array(const Verify *v, const Inst *i, const Shape *s)
{
    if (shape_is_unbounded(s))
        return verify_fail(v, i, "%s has a dimension without bound", verify_text(v, s));
    for (int32_t k = 0; k < s->rank; k++)
        if (s->dims[k] < 0)
            return verify_fail(v, i, "dimension %d of its type has the negative size %lld", k, (long long)s->dims[k]);
    if (shape_count(s) < 0 || shape_bytes(s) < 0)
        return verify_fail(v, i, "%s has more elements than 64 bits can count", verify_text(v, s));
    return !s->layout || check_layout(v, i, s);
}

bool verify_possible(const Verify *v, const Inst *i, const Shape *s)
{
    if (shape_is_tuple(s)) {
        for (int32_t k = 0; k < s->n_elems; k++)
            if (!verify_possible(v, i, s->elems[k]))
                return false;
        return true;
    }
    if (type_is_array(s->type))
        return check_array(v, i, s);
    if (s->buffer)
        return verify_fail(v, i, "only arrays can be buffers, not %s", verify_text(v, s));
    return s->rank == 0 || verify_fail(v, i, "%s has no dimensions", type_name(s->type));
}

/* Opcodes that compute: the result may be written as another float type than inferred. What only moves data moves its bits. */
static bool may_round(Op op)
{
    switch (op) {
    case OP_REDUCE:
    case OP_REDUCE_WINDOW:
    case OP_MAP:
    case OP_DOT:
    case OP_RAGGED_DOT:
    case OP_SCALED_DOT:
    case OP_CONVOLUTION:
        return true;
    default:
        return op_has(op, F_ELEMENTWISE);
    }
}

void verify_shape(const Verify *v, const Inst *i)
{
    if (!verify_possible(v, i, i->shape))
        return;
    const Shape *want = infer_shape(v->a, i, v->d);
    if (!want) {
        inst_note_operands(v->d, i);
        return;
    }
    bool ok = may_round(i->op) ? shape_compatible_ignoring_precision(i->shape, want) : shape_compatible(i->shape, want);
    if (!ok) {
        verify_fail(v, i, "the result is %s, but %s is written", verify_text(v, want), verify_text(v, i->shape));
        inst_note_operands(v->d, i);
    }
}
