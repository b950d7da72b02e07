/* Ranges of integers. What may leave its type's range wraps around and may be anything. Constants are looked through while they are small;
 * what a range is asked for is looked at in MOST_STEPS instructions, however they are chained. */
#include "analysis/int_range.h"
#include "analysis/loops.h"
#include "ir/numeric.h"

enum { DEPTH = 6, MOST_ELEMENTS = 64, MOST_STEPS = 256 };

typedef struct {
    int depth; /* operations that may still be looked through, one behind the other */
    int *left; /* instructions that may still be looked at */
} Walk;

static bool range(const Inst *i, Walk w, IntRange *r);

static Walk deeper(Walk w)
{
    w.depth--;
    return w;
}

static bool all_of(Type t, IntRange *r)
{
    const int bits = type_bits(t);
    if (t == TYPE_PRED) {
        *r = (IntRange){ 0, 1 };
        return true;
    }
    if (!type_is_int(t) || (type_is_unsigned_int(t) && bits > 63))
        return false;
    if (type_is_unsigned_int(t))
        *r = (IntRange){ 0, ((int64_t)1 << bits) - 1 };
    else
        *r = bits == 64 ? (IntRange){ INT64_MIN, INT64_MAX } : (IntRange){ -((int64_t)1 << (bits - 1)), ((int64_t)1 << (bits - 1)) - 1 };
    return true;
}

/* x if t has all of it. */
static bool fits(Type t, bool whole, IntRange x, IntRange *r)
{
    IntRange all;
    if (!whole || !all_of(t, &all) || x.lo < all.lo || x.hi > all.hi)
        return all_of(t, r);
    *r = x;
    return true;
}

static bool of_constant(const Inst *i, IntRange *r)
{
    const Literal *l = i->literal;
    if (l->elided || l->count < 1 || l->count > MOST_ELEMENTS)
        return all_of(i->shape->type, r);
    *r = (IntRange){ literal_get_s64(l, 0), literal_get_s64(l, 0) };
    for (int64_t k = 1; k < l->count; k++) {
        const int64_t v = literal_get_s64(l, k);
        r->lo = v < r->lo ? v : r->lo;
        r->hi = v > r->hi ? v : r->hi;
    }
    return true;
}

static bool of_iota(const Inst *i, IntRange *r)
{
    return fits(i->shape->type, true, (IntRange){ 0, i->shape->dims[inst_int(i, ATTR_IOTA_DIMENSION, 0)] - 1 }, r);
}

/* A count of 1 is no promise: dumps of single devices leave it out. */
static bool of_id(const Inst *i, IntRange *r)
{
    const Module *m = i->comp->module;
    const int64_t n = i->op == OP_PARTITION_ID ? m->num_partitions : m->replica_count;
    return n > 1 ? fits(i->shape->type, true, (IntRange){ 0, n - 1 }, r) : all_of(i->shape->type, r);
}

/* What any of them may be. */
static bool of_any(const Inst *i, int32_t from, Walk w, IntRange *r)
{
    IntRange x;
    if (!range(inst_operand(i, from), w, r))
        return false;
    for (int32_t k = from + 1; k < i->n_operands; k++) {
        if (*w.left <= 0)
            return all_of(i->shape->type, r);
        if (!range(inst_operand(i, k), w, &x))
            return false;
        r->lo = x.lo < r->lo ? x.lo : r->lo;
        r->hi = x.hi > r->hi ? x.hi : r->hi;
    }
    return true;
}

static bool multiplied(IntRange a, IntRange b, IntRange *r)
{
    const int64_t x[] = { a.lo, a.hi }, y[] = { b.lo, b.hi };
    int64_t       v;
    for (int k = 0; k < 4; k++) {
        if (__builtin_mul_overflow(x[k / 2], y[k % 2], &v))
            return false;
        r->lo = k == 0 || v < r->lo ? v : r->lo;
        r->hi = k == 0 || v > r->hi ? v : r->hi;
    }
    return true;
}

/* All numbers of no more bits than these, which are not negative. */
static int64_t filled(int64_t x)
{
    int64_t all = 0;
    while (all < x)
        all = 2 * all + 1;
    return all;
}

/* Some of these, which are not negative, have the bit that an arithmetic shift repeats, as numbers without a sign may. */
static bool has_sign_bit(Type t, IntRange x)
{
    return x.hi >> (type_bits(t) - 1) != 0;
}

static bool of_two(const Inst *i, Walk w, IntRange *r)
{
    const Type t = i->shape->type;
    IntRange   a, b, x = { 0, 0 };
    if (!range(inst_operand(i, 0), w, &a) || !range(inst_operand(i, 1), w, &b))
        return all_of(t, r);
    const bool natural = a.lo >= 0 && b.lo >= 0, divides = natural && b.lo > 0, shifts = natural && b.hi < 63 && (i->op != OP_SHIFT_RIGHT_ARITHMETIC || !has_sign_bit(t, a));
    switch (i->op) {
    case OP_ADD: return fits(t, !__builtin_add_overflow(a.lo, b.lo, &x.lo) && !__builtin_add_overflow(a.hi, b.hi, &x.hi), x, r);
    case OP_SUBTRACT: return fits(t, !__builtin_sub_overflow(a.lo, b.hi, &x.lo) && !__builtin_sub_overflow(a.hi, b.lo, &x.hi), x, r);
    case OP_MULTIPLY: return fits(t, multiplied(a, b, &x), x, r);
    case OP_MAXIMUM: return fits(t, true, (IntRange){ a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi }, r);
    case OP_MINIMUM: return fits(t, true, (IntRange){ a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi }, r);
    case OP_DIVIDE: return divides ? fits(t, true, (IntRange){ a.lo / b.hi, a.hi / b.lo }, r) : all_of(t, r);
    case OP_REMAINDER: return divides ? fits(t, true, (IntRange){ 0, a.hi < b.hi - 1 ? a.hi : b.hi - 1 }, r) : all_of(t, r);
    case OP_AND: return fits(t, a.lo >= 0 || b.lo >= 0, (IntRange){ 0, a.lo < 0 ? b.hi : b.lo < 0 ? a.hi : a.hi < b.hi ? a.hi : b.hi }, r);
    case OP_OR: case OP_XOR: return fits(t, natural, (IntRange){ 0, filled(a.hi > b.hi ? a.hi : b.hi) }, r);
    case OP_SHIFT_RIGHT_LOGICAL: case OP_SHIFT_RIGHT_ARITHMETIC:
        return shifts ? fits(t, true, (IntRange){ a.lo >> b.hi, a.hi >> b.lo }, r) : all_of(t, r);
    default: return all_of(t, r);
    }
}

/* Bounds may be any numbers, the upper one is stronger. */
static bool of_clamp(const Inst *i, Walk w, IntRange *r)
{
    IntRange low, x, high;
    if (!range(inst_operand(i, 0), w, &low) || !range(inst_operand(i, 1), w, &x) || !range(inst_operand(i, 2), w, &high))
        return all_of(i->shape->type, r);
    x = (IntRange){ x.lo > low.lo ? x.lo : low.lo, x.hi > low.hi ? x.hi : low.hi };
    *r = (IntRange){ x.lo < high.lo ? x.lo : high.lo, x.hi < high.hi ? x.hi : high.hi };
    return true;
}

static bool of_convert(const Inst *i, Walk w, IntRange *r)
{
    IntRange x;
    if (!range(inst_operand(i, 0), w, &x))
        return all_of(i->shape->type, r);
    return fits(i->shape->type, true, x, r);
}

/* An element of a loop's state. */
static bool of_element(const Inst *i, IntRange *r)
{
    const Counter *n = inst_operand(i, 0)->op == OP_PARAMETER ? i->comp->counter : NULL;
    if (!n || inst_int(i, ATTR_INDEX, 0) != n->index)
        return all_of(i->shape->type, r);
    return fits(i->shape->type, true, (IntRange){ n->lo, n->hi }, r);
}

static bool range(const Inst *i, Walk w, IntRange *r)
{
    const Shape *s = i->shape;
    if (!shape_is_array(s) || !all_of(s->type, r))
        return false;
    if (w.depth == 0 || (*w.left)-- <= 0)
        return true;
    switch (i->op) {
    case OP_CONSTANT: return of_constant(i, r);
    case OP_GET_TUPLE_ELEMENT: return of_element(i, r);
    case OP_IOTA: return of_iota(i, r);
    case OP_PARTITION_ID: case OP_REPLICA_ID: return of_id(i, r);
    case OP_BROADCAST: case OP_RESHAPE: case OP_TRANSPOSE: case OP_SLICE: case OP_REVERSE: case OP_COPY: case OP_GATHER: case OP_DYNAMIC_SLICE:
        return inst_operand(i, 0)->shape->type == s->type ? range(inst_operand(i, 0), w, r) : all_of(s->type, r);
    case OP_CONCATENATE: return of_any(i, 0, deeper(w), r) && fits(s->type, true, *r, r);
    case OP_SELECT: return of_any(i, 1, deeper(w), r) && fits(s->type, true, *r, r);
    case OP_CLAMP: return of_clamp(i, deeper(w), r);
    case OP_CONVERT: return of_convert(i, deeper(w), r);
    case OP_ADD: case OP_SUBTRACT: case OP_MULTIPLY: case OP_MAXIMUM: case OP_MINIMUM: case OP_DIVIDE: case OP_REMAINDER: case OP_AND: case OP_OR: case OP_XOR:
    case OP_SHIFT_RIGHT_LOGICAL: case OP_SHIFT_RIGHT_ARITHMETIC: return of_two(i, deeper(w), r);
    default: return all_of(s->type, r);
    }
}

bool int_range(const Inst *i, IntRange *r)
{
    int left = MOST_STEPS;
    return range(i, (Walk){ DEPTH, &left }, r);
}
