/* A sort by one key (analysis/order.h), as a call of the runtime. Any other comparison stays a loop in the text. */
#include "emit/order_call.h"

#include "analysis/order.h"

enum { LEAST = 256 }; /* elements below which a loop in the text is as good */

static bool has_key(Type t)
{
    const bool is_float = t == TYPE_F16 || t == TYPE_BF16 || t == TYPE_F32 || t == TYPE_F64;
    return is_float || t == TYPE_PRED || (type_is_int(t) && type_bits(t) >= 8);
}

static int64_t infinity_bits(Type t)
{
    switch (t) {
    case TYPE_F16: return 0x7c00;
    case TYPE_BF16: return 0x7f80;
    case TYPE_F32: return 0x7f800000;
    case TYPE_F64: return 0x7ff0000000000000;
    default: return 0;
    }
}

static hlort_key kind_of(Type t, const Order *by)
{
    if (!type_is_float(t))
        return type_is_signed_int(t) ? HLORT_KEY_SIGNED : HLORT_KEY_UNSIGNED;
    return by->canonical ? HLORT_KEY_CANONICAL : by->total ? HLORT_KEY_TOTAL : HLORT_KEY_PARTIAL;
}

static bool set_key(hlort_sort *s, Type t, const Order *by)
{
    if (!has_key(t) || (by->canonical && !(by->total && type_is_float(t))))
        return false;
    s->kind = kind_of(t, by);
    s->descending = by->descending;
    s->key = by->key;
    s->key_bytes = type_bits(t) / 8;
    s->infinity = infinity_bits(t);
    return true;
}

/* Dimensions outside and inside of d, as they lie in memory. */
static bool set_lines(hlort_sort *s, const Shape *like, int64_t d)
{
    bool inside = true;
    s->outer = s->inner = 1;
    s->count = like->dims[d];
    for (int32_t k = 0; k < like->rank; k++) {
        int64_t e = layout_dim(like, k);
        if (e == d)
            inside = false;
        else
            *(inside ? &s->inner : &s->outer) *= like->dims[e];
    }
    return s->count > 1 && s->count <= INT32_MAX && s->outer * s->count * s->inner >= LEAST;
}

bool sort_takes_positions(const Inst *i, int32_t k)
{
    const Inst *x = inst_operand(i, k);
    if (!type_is_int(x->shape->type) || type_bits(x->shape->type) < 32)
        return false;
    if (x->op == OP_FUSION)
        x = inst_callee(x, 0)->root;
    return inst_counts_along(x, inst_ints(i, ATTR_DIMENSIONS).v[0]);
}

bool sort_call(const Inst *i, const Shape *like, int64_t kept, OrderCall *out)
{
    hlort_sort *s = &out->sort;
    Order       by;
    *out = (OrderCall){ .symbol = "hlort_sort_lines", .n_operands = i->n_operands };
    if (i->n_operands > HLORT_MOST_SORTED || !order_of(i, &by) || !set_key(s, inst_operand(i, by.key)->shape->type, &by) ||
        !set_lines(s, like, inst_ints(i, ATTR_DIMENSIONS).v[0]))
        return false;
    s->n = i->n_operands;
    s->to_count = s->count;
    s->kept = s->kind == HLORT_KEY_PARTIAL ? s->count : kept;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const int64_t bits = type_bits(inst_operand(i, k)->shape->type);
        s->bytes[k] = bits / 8;
        if (bits < 8)
            return false;
        if (k != s->key && sort_takes_positions(i, k)) {
            out->positions |= 1U << k;
            out->n_operands--;
        }
    }
    return true;
}

bool topk_call(const Inst *i, const Shape *from, const Shape *to, OrderCall *out)
{
    hlort_sort *s = &out->sort;
    *out = (OrderCall){ .symbol = "hlort_sort_lines", .n_operands = 1, .positions = 1U << 1 };
    const int64_t d = from->rank - 1;
    const Order   by = { .total = true, .descending = inst_int(i, ATTR_LARGEST, 1) };
    if (!set_key(s, from->type, &by) || !set_lines(s, from, d))
        return false;
    s->kept = s->to_count = to->dims[d];
    s->n = 2;
    s->bytes[0] = s->key_bytes;
    s->bytes[1] = 4;
    return s->kept > 0;
}
