/* Reshape of arrays with dynamic dimensions. Operand and result fall into the smallest groups of neighbouring dimensions with equal products:
 *
 *   [<=8, 2, 3] -> [<=8, 6]      <=8 | 2 3  and  <=8 | 6
 *   [4, <=6]    -> [4, <=2, 3]    4 | <=6    and   4 | <=2 3
 *
 * A group is a copy, a merge into one dimension or a split of one dimension; a merge and a split at once where inferred_dimension names one of
 * its dimensions. Of a split the size goes to the dimension that inferred_dimension names, else to the outermost one that is not 1. A dynamic dimension of bound 1 belongs to no product: it stays the first or the last.
 * Source: reference operations 18. */
#include <string.h>

#include "eval/sizes.h"

typedef struct Group {
    int32_t from, from_end, to, to_end; /* dimensions of the operand and of the result */
} Group;

/* The group that begins at g's end. Dimensions of size 1 go with the group before them. False: there is none. */
static bool next_group(Group *g, const Shape *s, const Shape *r)
{
    g->from = g->from_end;
    g->to = g->to_end;
    if (g->from == s->rank && g->to == r->rank)
        return false;
    int64_t a = 1, b = 1;
    do { /* sizes are above 0 and their products equal: both sides end together */
        if (a <= b && g->from_end < s->rank)
            a *= s->dims[g->from_end++];
        else
            b *= r->dims[g->to_end++];
    } while (a != b || (a == 1 && (g->from_end < s->rank || g->to_end < r->rank)));
    while (g->from_end < s->rank && s->dims[g->from_end] == 1)
        g->from_end++;
    while (g->to_end < r->rank && r->dims[g->to_end] == 1)
        g->to_end++;
    return true;
}

/* Dimensions of [first, end) that are not 1. */
static int32_t wide_dims(const Shape *s, int32_t first, int32_t end)
{
    int32_t n = 0;
    for (int32_t k = first; k < end; k++)
        n += s->dims[k] != 1;
    return n;
}

static bool is_inferred(const Inst *i, const Group *g)
{
    int64_t inferred = inst_int(i, ATTR_INFERRED_DIMENSION, -1);
    return inferred >= g->to && inferred < g->to_end;
}

/* Which dimension of the group takes a size that is not known before the run. */
static int32_t receiver(const Inst *i, const Group *g)
{
    if (is_inferred(i, g))
        return (int32_t)inst_int(i, ATTR_INFERRED_DIMENSION, -1);
    int32_t k = g->to;
    while (k < g->to_end - 1 && i->shape->dims[k] == 1)
        k++;
    return k;
}

static const char *group_sizes(const Inst *i, const Group *g, const int64_t *from, int64_t *dims)
{
    const Shape *s = inst_operand(i, 0)->shape;
    bool dynamic = false;
    int64_t count = 1, others = 1;
    for (int32_t k = g->from; k < g->from_end; k++) {
        bool here = dim_is_dynamic(s, k) && s->dims[k] != 1;
        dynamic = dynamic || here;
        count *= here ? from[k] : s->dims[k];
    }
    if (!dynamic)
        return NULL;
    if (wide_dims(s, g->from, g->from_end) > 1 && wide_dims(i->shape, g->to, g->to_end) > 1 && !is_inferred(i, g))
        return "both merges and splits a dynamic dimension";
    int32_t to = receiver(i, g);
    if (!dim_is_dynamic(i->shape, to))
        return "makes a dynamic dimension one of a fixed size";
    for (int32_t k = g->to; k < g->to_end; k++)
        others *= k == to ? 1 : i->shape->dims[k];
    dims[to] = count / others;
    return count % others == 0 ? NULL : "gets a number of elements that does not fill its fixed dimensions";
}

/* Dynamic dimensions of bound 1. */
static const char *unit_sizes(const Inst *i, const int64_t *from, int64_t *dims)
{
    const Shape *s = inst_operand(i, 0)->shape, *r = i->shape;
    for (int32_t k = 0; k < s->rank; k++) {
        if (!dim_is_dynamic(s, k) || s->dims[k] != 1)
            continue;
        int32_t to = k == 0 ? 0 : r->rank - 1;
        if ((k != 0 && k != s->rank - 1) || r->rank == 0 || r->dims[to] != 1 || !dim_is_dynamic(r, to))
            return "moves a dynamic dimension of bound 1 that is neither the first nor the last";
        dims[to] = from[k];
    }
    return NULL;
}

const char *sizes_reshape(const Inst *i, const int64_t *from, int64_t *dims)
{
    const Shape *s = inst_operand(i, 0)->shape;
    if (i->shape->rank > 0)
        memcpy(dims, i->shape->dims, (size_t)i->shape->rank * sizeof dims[0]);
    if (shape_count(s) <= 0)
        return "moves a dynamic dimension of an array without elements";
    const char *why = unit_sizes(i, from, dims);
    for (Group g = {0}; !why && next_group(&g, s, i->shape);)
        why = group_sizes(i, &g, from, dims);
    return why;
}
