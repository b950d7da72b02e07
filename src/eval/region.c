/* Manual regions: pieces cut out of whole arrays, whole arrays put together (ir/region.h). */
#include <string.h>

#include "eval/engine.h"
#include "eval/team.h"
#include "eval/walk.h"
#include "ir/region.h"

EvalFn eval_region;

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
    Place    p = region_place(e->scratch, i, k, e->on, e->device % e->on.partitions);
    Literal *r = eval_zeros(e, i, region_piece(i, k));
    if (r)
        copy_piece(&p, r, whole, false);
    return r;
}

/* From the last partition to the first, whose pieces so are the ones that stay. */
static Literal *join(const Meeting *m, int32_t k)
{
    Literal *r = eval_zeros(m->e[0], m->i[0], region_whole(m->i[0], k));
    for (int32_t partition = m->n; r && partition-- > 0;) {
        Place p = region_place(m->e[0]->arena, m->i[0], k, m->e[0]->on, partition);
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
    Ints    group = ints_iota(e->scratch, (int32_t)e->on.partitions);
    for (int32_t k = 0; k < group.n; k++)
        *ints_at(group, k) += first;
    return group;
}

Literal *eval_region(Eval *e, const Inst *i, Literal **x)
{
    const char *refused = region_refused(e->scratch, i, e->on);
    if (refused)
        return eval_fail(e, i, "custom-call \"%s\" %%%s: %s", inst_string(i, ATTR_CUSTOM_CALL_TARGET), i->name, refused);
    if (region_joins(i))
        return team_meet(e, i, all_partitions(e), x, join_all);
    Literal **v = ARENA_ARRAY(e->scratch, Literal *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        v[k] = cut(e, i, k, x[k]);
    return one_or_tuple(e, i, v);
}
