/* A start that is made of the numbers of replicas and partitions, and tables of constants, is computed as each device would. */
#include "config.h"

#include "passes/own_part.h"

#include "ir/groups.h"
#include "passes/util.h"

enum { MAX_DEPTH = 16, MOST_IDS = 1024 };

/* The id of a device among replicas or partitions, where the groups of the collective name ids of the mode; false: it is not known. */
static bool id_of(const Inst *i, GroupMode mode, int64_t id, int64_t *v)
{
    const Module *m = i->comp->module;
    bool          replica = i->op == OP_REPLICA_ID;
    *v = id;
    if (mode == GROUP_FLATTENED && (m->replica_count == 1) != (m->num_partitions == 1)) { /* all but one of a kind */
        *v = (m->replica_count == 1) == replica ? 0 : id;
        return true;
    }
    return mode == (replica ? GROUP_CROSS_REPLICA : GROUP_CROSS_PARTITION);
}

/* What device has as the integer i; false: it is not known. */
static bool value_on(const Inst *i, GroupMode mode, int64_t id, int depth, int64_t *v)
{
    if (depth == 0 || !type_is_int(i->shape->type))
        return false;
    int64_t a, b;
    switch (i->op) {
    case OP_CONSTANT:
        if (i->literal->elided || i->literal->count != 1)
            return false;
        *v = literal_get_s64(i->literal, 0);
        return true;
    case OP_REPLICA_ID:
    case OP_PARTITION_ID: return id_of(i, mode, id, v);
    case OP_RESHAPE: case OP_CONVERT: case OP_BROADCAST: case OP_COPY:
        return shape_count(i->shape) == 1 && value_on(inst_operand(i, 0), mode, id, depth - 1, v);
    case OP_ADD: case OP_MULTIPLY:
        if (!value_on(inst_operand(i, 0), mode, id, depth - 1, &a) || !value_on(inst_operand(i, 1), mode, id, depth - 1, &b))
            return false;
        return i->op == OP_ADD ? size_add(a, b, v) : size_mul(a, b, v);
    case OP_DYNAMIC_SLICE: {
        const Inst *table = inst_operand(i, 0);
        if (table->op != OP_CONSTANT || table->literal->elided || table->shape->rank != 1 || i->n_operands != 2 || shape_count(i->shape) != 1 ||
            !value_on(inst_operand(i, 1), mode, id, depth - 1, &a) || a < 0 || a >= table->literal->count)
            return false;
        *v = literal_get_s64(table->literal, a);
        return true;
    }
    default:
        return false;
    }
}

/* The one dimension in which s has fewer elements than x, -1: none or several. */
static int32_t cut_dim(const Shape *x, const Shape *s)
{
    int32_t dim = -1;
    for (int32_t k = 0; k < x->rank; k++)
        if (x->dims[k] != s->dims[k]) {
            if (dim >= 0)
                return -1;
            dim = k;
        }
    return dim;
}

/* The part at which each device of each group begins; false: one is not known, or begins at none of so many. */
static bool find_numbers(Arena *scratch, const Inst *start, IntsList groups, GroupMode mode, int64_t size, int64_t parts, IntsList *numbers)
{
    Ints *all = ARENA_ARRAY(scratch, Ints, groups.n);
    for (int32_t g = 0; g < groups.n; g++) {
        if (groups.v[g].n > MOST_IDS)
            return false;
        all[g] = ints_make(scratch, groups.v[g].n);
        for (int32_t k = 0; k < groups.v[g].n; k++) {
            int64_t v;
            if (!value_on(start, mode, groups.v[g].v[k], MAX_DEPTH, &v) || v < 0 || v % size || v / size >= parts)
                return false;
            *ints_at(all[g], k) = v / size;
        }
    }
    *numbers = (IntsList){all, groups.n};
    return true;
}

int32_t own_part_numbers(Arena *scratch, const Inst *slice, const Inst *collective, IntsList *numbers)
{
    if (slice->op != OP_DYNAMIC_SLICE || slice->n_operands != 1 + slice->shape->rank)
        return -1;
    bool         good;
    const Shape *whole = inst_operand(slice, 0)->shape;
    IntsList     groups = group_lists(scratch, collective, &good);
    GroupMode    mode = group_mode(collective);
    int32_t      dim = cut_dim(whole, slice->shape);
    if (!good || groups.n == 0 || groups.n > MOST_IDS || dim < 0 || mode == GROUP_CROSS_BOTH)
        return -1;
    int64_t size = slice->shape->dims[dim];
    if (size == 0 || whole->dims[dim] % size || !find_numbers(scratch, inst_operand(slice, dim + 1), groups, mode, size, whole->dims[dim] / size, numbers))
        return -1;
    return dim;
}

int32_t own_part_dim(Arena *scratch, const Inst *slice, const Inst *collective)
{
    IntsList numbers;
    int32_t  dim = own_part_numbers(scratch, slice, collective, &numbers);
    for (int32_t g = 0; dim >= 0 && g < numbers.n; g++) {
        if (numbers.v[g].n * slice->shape->dims[dim] != inst_operand(slice, 0)->shape->dims[dim])
            return -1;
        for (int32_t k = 0; k < numbers.v[g].n; k++)
            if (numbers.v[g].v[k] != k)
                return -1;
    }
    return dim;
}
