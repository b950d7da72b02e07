/* A sort by one key, as a call of the runtime. Its comparison is less or greater of one operand's two elements, as they are or with zeros and NaNs made equal:
 *
 *     k(p) = p      or      k(p) = select(p != p, NaN, select(p == 0, 0, p))
 *     ROOT r = compare(k(p0), k(p1)), direction=LT
 *
 * Any other comparison stays a loop in the text. */
#include "emit/order_call.h"

#include "ir/literal.h"

#include <math.h>

enum { LEAST = 256 }; /* elements below which a loop in the text is as good */

static bool is_scalar_constant(const Inst *x)
{
    return x->op == OP_CONSTANT && shape_is_scalar(x->shape) && !x->literal->elided;
}

static bool is_zero(const Inst *x)
{
    return is_scalar_constant(x) && literal_get_f64(x->literal, 0) == 0;
}

static bool is_nan(const Inst *x)
{
    double v = is_scalar_constant(x) ? literal_get_f64(x->literal, 0) : 0;
    return isnan(v) && !signbit(v);
}

static bool compares(const Inst *x, const Inst *p, Word direction)
{
    return x->op == OP_COMPARE && inst_operand(x, 0) == p && inst_word(x, ATTR_DIRECTION) == direction;
}

/* select(p == 0, 0, p): p; select(p != p, NaN, p): likewise. NULL: x is none. */
static const Inst *without_zeros(const Inst *x)
{
    if (x->op != OP_SELECT || !is_zero(inst_operand(x, 1)))
        return NULL;
    const Inst *p = inst_operand(x, 2), *test = inst_operand(x, 0);
    return compares(test, p, CMP_EQ) && is_zero(inst_operand(test, 1)) ? p : NULL;
}

static const Inst *without_nans(const Inst *x)
{
    if (x->op != OP_SELECT || !is_nan(inst_operand(x, 1)))
        return NULL;
    const Inst *rest = inst_operand(x, 2), *test = inst_operand(x, 0), *p = without_zeros(rest);
    return p && compares(test, p, CMP_NE) && inst_operand(test, 1) == p ? p : NULL;
}

/* The parameter behind one side of the comparison; NULL. */
static const Inst *side(const Inst *x, bool *canonical)
{
    const Inst *p = x->op == OP_PARAMETER ? x : without_nans(x);
    *canonical = p != x;
    return p && p->op == OP_PARAMETER ? p : NULL;
}

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

static hlort_key kind_of(Type t, bool total, bool canonical)
{
    if (!type_is_float(t))
        return type_is_signed_int(t) ? HLORT_KEY_SIGNED : HLORT_KEY_UNSIGNED;
    return canonical ? HLORT_KEY_CANONICAL : total ? HLORT_KEY_TOTAL : HLORT_KEY_PARTIAL;
}

static bool set_key(hlort_sort *s, int64_t array, Type t, bool total, bool canonical, bool descending)
{
    if (!has_key(t) || (canonical && !(total && type_is_float(t))))
        return false;
    s->kind = kind_of(t, total, canonical);
    s->descending = descending;
    s->key = array;
    s->key_bytes = type_bits(t) / 8;
    s->infinity = infinity_bits(t);
    return true;
}

static bool read_comparison(const Inst *i, hlort_sort *s)
{
    const Inst *root = inst_callee(i, 0)->root;
    Word        direction = root->op == OP_COMPARE ? inst_word(root, ATTR_DIRECTION) : CMP_EQ;
    bool        left, right;
    if (direction != CMP_LT && direction != CMP_GT)
        return false;
    const Inst *a = side(inst_operand(root, 0), &left), *b = side(inst_operand(root, 1), &right);
    if (!a || !b || left != right || a->param / 2 != b->param / 2 || a == b)
        return false;
    const int64_t k = a->param / 2;
    const Type    t = a->shape->type;
    if (t != inst_operand(i, (int32_t)k)->shape->type || b->shape->type != t)
        return false;
    return set_key(s, k, t, compare_is_total(root), left, (direction == CMP_GT) != (a->param > b->param));
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
    *out = (OrderCall){ .symbol = "hlort_sort_lines", .n_operands = i->n_operands };
    if (i->n_operands > HLORT_MOST_SORTED || !read_comparison(i, s) || !set_lines(s, like, inst_ints(i, ATTR_DIMENSIONS).v[0]))
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
    if (!set_key(s, 0, from->type, true, false, inst_int(i, ATTR_LARGEST, 1)) || !set_lines(s, from, d))
        return false;
    s->kept = s->to_count = to->dims[d];
    s->n = 2;
    s->bytes[0] = s->key_bytes;
    s->bytes[1] = 4;
    return s->kept > 0;
}
