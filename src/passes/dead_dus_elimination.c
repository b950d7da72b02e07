/* dead-dus-elimination - an update that nobody looks at.
 *
 *   %u = f32[8] dynamic-update-slice(%x, %y, %c4)          (%y is f32[2], %c4 is 4)
 *   %s = f32[3] slice(%u), slice={[0:3]}                                            =>        %s = f32[3] slice(%x), slice={[0:3]}
 *
 * Where the place is known and all users are slices outside of it. From the roots to the leaves, so that chains of updates go at once. */
#include "config.h"

#include "passes/pass.h"
#include "passes/util.h"

/* Where dimension d of the update begins, as far as it can go; false: not known. */
static bool start_of(const Inst *u, int32_t d, int64_t *start)
{
    const Inst *i = u->n_operands == 2 + u->shape->rank ? inst_operand(u, 2 + d) : NULL;
    if (!i || i->op != OP_CONSTANT || i->literal->elided || i->shape->rank != 0)
        return false;
    int64_t last = u->shape->dims[d] - inst_operand(u, 1)->shape->dims[d], v = literal_get_s64(i->literal, 0);
    if (v < 0 && type_is_unsigned_int(i->shape->type))
        v = INT64_MAX; /* 2^63 or more */
    *start = v < 0 ? 0 : v > last ? last : v;
    return true;
}

static bool is_outside(const Inst *slice, const Inst *u)
{
    const Slices *s = inst_attr(slice, ATTR_SLICE)->value.slices;
    for (int32_t d = 0; d < u->shape->rank; d++) {
        int64_t start;
        if (!start_of(u, d, &start))
            return false;
        if (s->v[d].limit <= start || s->v[d].start >= start + inst_operand(u, 1)->shape->dims[d])
            return true;
    }
    return false;
}

static bool is_dead(const Inst *u)
{
    if (u->op != OP_DYNAMIC_UPDATE_SLICE || !u->n_uses || u->comp->root == u || !inst_is_free(u) ||
        !shape_equal(inst_operand(u, 0)->shape, u->shape))
        return false;
    for (const Use *x = u->uses; x; x = x->next)
        if (x->user->op != OP_SLICE || !is_outside(x->user, u))
            return false;
    return true;
}

bool pass_dead_dus_elimination(Module *m, PassCtx *cx)
{
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->last, *prev; i && cx->rewrites < cx->limit; i = prev) {
            prev = i->prev;
            if (!is_dead(i))
                continue;
            cx->did_at = i->name;
            inst_replace(i, inst_operand(i, 0));
            inst_delete(i);
            cx->rewrites++;
        }
    return cx->rewrites > 0;
}
