/* Manual regions of a module that is not partitioned: outside of them every partition has whole arrays, inside it has its piece.
 *
 *   whole f32[8]  --CUT (SPMDFullToShardShape, xla.sdy.GlobalToLocalShape), by the operand's sharding-->  piece f32[2] on each of 4
 *   piece f32[2]  --JOIN (SPMDShardToFullShape, xla.sdy.LocalToGlobalShape), by the result's sharding-->  whole f32[8] on each
 *
 * A dimension that has one size inside and outside is not cut, whatever the sharding says: its axes are not of the region. Pieces beyond the
 * end are filled with zeros. Of devices that have the same piece, the first one's counts. Source: reference operations 2.3, 19. */
#include <string.h>

#include "eval/engine.h"
#include "eval/team.h"
#include "eval/walk.h"
#include "ir/custom_call.h"
#include "ir/tiling.h"

EvalFn eval_region;

static bool joins(const Inst *i)
{
    return custom_call_kind(inst_string(i, ATTR_CUSTOM_CALL_TARGET)) == CALL_JOIN;
}

/* Of the array number k among i's results. */
static const Sharding *sharding_of(const Inst *i, int32_t k)
{
    const Attr *a = inst_attr(i, ATTR_SHARDING);
    if (!a || a->value.sharding->kind != SHARDING_TUPLE)
        return a ? a->value.sharding : NULL;
    return k < a->value.sharding->n_elems ? a->value.sharding->elems[k] : NULL;
}

/* The sharding that operand k has outside of the region. An element of a tuple of arrays has the tuple's. */
static const Sharding *outer_sharding(const Inst *i, int32_t k)
{
    if (joins(i))
        return sharding_of(i, k);
    const Inst *x = inst_operand(i, k);
    if (x->op != OP_GET_TUPLE_ELEMENT || inst_attr(x, ATTR_SHARDING))
        return sharding_of(x, 0);
    const Inst *tuple = inst_operand(x, 0);
    int32_t     at = 0;
    for (int64_t j = 0; j < inst_int(x, ATTR_INDEX, 0); j++)
        at += shape_leaf_count(tuple->shape->elems[j], true);
    return sharding_of(tuple, at);
}

static const Shape *result_part(const Inst *i, int32_t k)
{
    return shape_is_tuple(i->shape) ? i->shape->elems[k] : i->shape;
}

static const Shape *whole_shape(const Inst *i, int32_t k)
{
    return joins(i) ? result_part(i, k) : inst_operand(i, k)->shape;
}

static const Shape *piece_shape(const Inst *i, int32_t k)
{
    return joins(i) ? inst_operand(i, k)->shape : result_part(i, k);
}

/* ---- before anything runs ---- */

static int64_t ceil_div(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

static const char *piece_refused(Arena *a, const Inst *i, int32_t k, EvalDevices on)
{
    const Shape    *whole = whole_shape(i, k), *piece = piece_shape(i, k);
    const Sharding *s = outer_sharding(i, k);
    Tiling          t;
    if (!shape_is_array(whole) || !shape_is_array(piece) || whole->type != piece->type || whole->rank != piece->rank)
        return arena_printf(a, "%s is no piece of %s", shape_brief(a, piece), shape_brief(a, whole));
    if (shape_compatible(whole, piece))
        return NULL;
    if (!s)
        return arena_printf(a, "operand %d has no sharding that says how it is cut", k);
    const char *refused = tiling_of(a, s, whole->rank, on.partitions, 0, &t);
    if (refused)
        return arena_printf(a, "%s (--partitions)", refused);
    for (int32_t d = 0; d < whole->rank; d++)
        if (whole->dims[d] != piece->dims[d] && piece->dims[d] != ceil_div(whole->dims[d], t.tiles[d]))
            return arena_printf(a, "dimension %d of %s in %lld tiles does not give %s", d, shape_brief(a, whole), (long long)t.tiles[d],
                                shape_brief(a, piece));
    return NULL;
}

const char *region_refused(Arena *a, const Inst *i, EvalDevices on)
{
    if (i->n_operands == 0 || (shape_is_tuple(i->shape) ? i->shape->n_elems : 1) != i->n_operands)
        return "its results are not as many as its operands";
    for (int32_t k = 0; k < i->n_operands; k++) {
        const char *refused = piece_refused(a, i, k, on);
        if (refused)
            return refused;
    }
    return NULL;
}

/* ---- running ---- */

/* Where the piece of a partition starts in the whole array, and how much of it there is; the rest of the piece lies beyond the end. */
typedef struct Place {
    int64_t start[WALK_RANK], size[WALK_RANK];
} Place;

static Place place_of(Eval *e, const Inst *i, int32_t k, int64_t partition)
{
    const Shape *whole = whole_shape(i, k), *piece = piece_shape(i, k);
    Place        p;
    Tiling       t = {.rank = whole->rank};
    if (!shape_compatible(whole, piece) && tiling_of(e->arena, outer_sharding(i, k), whole->rank, e->on.partitions, partition, &t))
        die("%%%s was not checked", i->name);
    for (int32_t d = 0; d < whole->rank; d++) {
        bool    cut = whole->dims[d] != piece->dims[d];
        int64_t start = cut ? t.at[d] * piece->dims[d] : 0, left = whole->dims[d] - start;
        p.start[d] = left > 0 ? start : whole->dims[d];
        p.size[d] = left < 0 ? 0 : left < piece->dims[d] ? left : piece->dims[d];
    }
    return p;
}

/* Copies the piece out of the whole array (or, joining, back into it). */
static void copy_piece(const Place *p, Literal *to, const Literal *from, bool join)
{
    Odometer o = {.rank = to->rank, .arrays = 2};
    walk_strides(to->rank, to->dims, o.stride[0]);
    walk_strides(from->rank, from->dims, o.stride[1]);
    for (int32_t d = 0; d < to->rank; d++) {
        o.dims[d] = p->size[d];
        o.at[join ? 0 : 1] += p->start[d] * o.stride[join ? 0 : 1][d];
    }
    walk_copy(&o, to->data, from->data, type_bytes(to->type));
}

static Literal *cut(Eval *e, const Inst *i, int32_t k, const Literal *whole)
{
    Place    p = place_of(e, i, k, e->device % e->on.partitions);
    Literal *r = eval_zeros(e, i, piece_shape(i, k));
    if (r)
        copy_piece(&p, r, whole, false);
    return r;
}

/* From the last partition to the first, whose pieces so are the ones that stay. */
static Literal *join(const Meeting *m, int32_t k)
{
    Literal *r = eval_zeros(m->e[0], m->i[0], whole_shape(m->i[0], k));
    for (int32_t partition = m->n; r && partition-- > 0;) {
        Place p = place_of(m->e[0], m->i[0], k, partition);
        copy_piece(&p, r, m->x[partition][k], true);
    }
    return r;
}

static Literal *one_or_tuple(Eval *e, const Inst *i, Literal **v)
{
    return shape_is_tuple(i->shape) ? eval_tuple_of(e, i->n_operands, v) : eval_move(v, 0);
}

static void join_all(const Meeting *m)
{
    int32_t   n = m->i[0]->n_operands;
    Literal **v = mem_alloc(n, sizeof *v), **own = mem_alloc(n, sizeof *own);
    for (int32_t k = 0; k < n; k++)
        v[k] = join(m, k);
    for (int32_t p = 0; p < m->n && !m->e[0]->failed; p++) {
        for (int32_t k = 0; k < n; k++)
            own[k] = literal_ref(v[k]);
        m->result[p] = one_or_tuple(m->e[p], m->i[p], own);
    }
    for (int32_t k = 0; k < n; k++)
        eval_drop(m->e[0], v[k]);
    mem_free(v);
    mem_free(own);
}

/* The partitions of this device's replica. */
static Ints all_partitions(Eval *e)
{
    int64_t first = e->device / e->on.partitions * e->on.partitions;
    Ints    group = ints_iota(e->arena, (int32_t)e->on.partitions);
    for (int32_t k = 0; k < group.n; k++)
        *ints_at(group, k) += first;
    return group;
}

Literal *eval_region(Eval *e, const Inst *i, Literal **x)
{
    const char *refused = region_refused(e->arena, i, e->on);
    if (refused)
        return eval_fail(e, i, "custom-call \"%s\" %%%s: %s", inst_string(i, ATTR_CUSTOM_CALL_TARGET), i->name, refused);
    if (joins(i))
        return team_meet(e, i, all_partitions(e), x, join_all);
    Literal **v = ARENA_ARRAY(e->arena, Literal *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        v[k] = cut(e, i, k, x[k]);
    return one_or_tuple(e, i, v);
}
