#include "analysis/columns.h"

#include "ir/shape.h"

/* Dimensions of s from k on, in the order of memory from the outermost one in, until one that counts; -1. */
static int32_t next_dim(const Shape *s, int32_t *k)
{
    while (*k < s->rank) {
        int32_t d = (int32_t)layout_dim(s, s->rank - 1 - (*k)++);
        if (s->dims[d] != 1)
            return d;
    }
    return -1;
}

/* Sizes of a and b are the same, in the same order, but for those of 1. */
static bool same_sizes(const Shape *a, const Shape *b)
{
    int32_t i = 0, j = 0;
    if (!shape_is_array(a) || !shape_is_array(b) || layout_has_no_order(a) || layout_has_no_order(b))
        return false;
    for (;;) {
        int32_t d = next_dim(a, &i), e = next_dim(b, &j);
        if (d < 0 || e < 0)
            return d == e;
        if (a->dims[d] != b->dims[e])
            return false;
    }
}

bool columns_are_of(const Inst *r, const Shape *s, bool *reduced)
{
    const Shape *of = inst_operand(r, 0)->shape;
    Ints         dims = inst_ints(r, ATTR_DIMENSIONS);
    int32_t      at = 0, at_s = 0;
    if (!same_sizes(of, s))
        return false;
    for (int32_t d; reduced && (d = next_dim(of, &at)) >= 0;)
        reduced[next_dim(s, &at_s)] = ints_has(dims, d);
    return true;
}

int64_t columns_together(const Inst *r)
{
    const Shape *of = inst_operand(r, 0)->shape;
    Ints         dims = inst_ints(r, ATTR_DIMENSIONS);
    int64_t      n = 1;
    for (int32_t k = 0; k < of->rank; k++) {
        int32_t d = (int32_t)layout_dim(of, k);
        if (ints_has(dims, d) && of->dims[d] != 1)
            break;
        n *= of->dims[d];
    }
    return n;
}

bool reduces_columns(const Inst *r)
{
    if (r->op != OP_REDUCE || r->n_operands != 2 || !shape_is_array(r->shape))
        return false;
    const Shape *of = inst_operand(r, 0)->shape;
    Ints         dims = inst_ints(r, ATTR_DIMENSIONS);
    int64_t      bytes = LEAST_COLUMNS * (int64_t)sizeof(float);
    if (shape_is_dynamic(of) || layout_has_no_order(of) || shape_count(of) <= shape_count(r->shape) || shape_count(r->shape) == 0)
        return false;
    for (int32_t k = 0; k < dims.n; k++)
        bytes = bytes > COLUMN_BYTES_KEPT ? bytes : bytes * of->dims[dims.v[k]];
    return columns_together(r) >= LEAST_COLUMNS && bytes <= COLUMN_BYTES_KEPT;
}

bool columns_same(const Inst *r, const Inst *other)
{
    const Shape *of = other->op == OP_REDUCE && other->n_operands == 2 ? inst_operand(other, 0)->shape : NULL;
    if (!of || !columns_are_of(r, of, NULL))
        return false;
    Ints a = inst_ints(r, ATTR_DIMENSIONS), b = inst_ints(other, ATTR_DIMENSIONS);
    const Shape *first = inst_operand(r, 0)->shape;
    int32_t at = 0, at_other = 0;
    for (int32_t d; (d = next_dim(first, &at)) >= 0;)
        if (ints_has(a, d) != ints_has(b, next_dim(of, &at_other)))
            return false;
    return true;
}

bool columns_repeat(const Inst *r, const Inst *b)
{
    const Shape *of = inst_operand(r, 0)->shape, *s = b->shape;
    if (b->op != OP_BROADCAST || !columns_are_of(r, s, NULL))
        return false;
    Ints    kept = inst_ints(b, ATTR_DIMENSIONS), dims = inst_ints(r, ATTR_DIMENSIONS);
    int32_t at = 0, at_s = 0;
    for (int32_t d; (d = next_dim(of, &at)) >= 0;)
        if (ints_has(dims, d) == ints_has(kept, next_dim(s, &at_s)))
            return false;
    return true;
}

bool columns_number(const Inst *r, const Shape *s)
{
    return same_sizes(r->shape, s);
}

bool columns_make(const Inst *r, const Inst *x)
{
    enum { MOST = 24 };
    const Inst *list[MOST] = { x };
    int32_t     n = 1;
    for (int32_t at = 0; at < n; at++) {
        const Inst *i = list[at];
        bool        passes = op_has(i->op, F_ELEMENTWISE) || i->op == OP_RESHAPE || i->op == OP_BITCAST || i->op == OP_COPY;
        if (i == r)
            return true;
        for (int32_t k = 0; k < i->n_operands && passes && same_sizes(i->shape, r->shape) && n < MOST; k++)
            list[n++] = inst_operand(i, k);
    }
    return false;
}

bool columns_starve(const Inst *r, const Device *v)
{
    const Shape *of = inst_operand(r, 0)->shape;
    const double bytes = (double)shape_count(of) * type_bytes(of->type), blocks = (double)shape_count(r->shape) / COLUMNS_OF_BLOCK;
    return device_bytes_ns(v, bytes, bytes) * (v->units / (blocks > 1 ? blocks : 1) - 2) > 2 * v->launch;
}
