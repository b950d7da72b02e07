/* simplify-sorts - operands of a sort that nobody looks at.
 *
 *   %s = (f32[8], s32[8], u8[8]) sort(%k, %v, %w), dimensions={0}, to_apply=%by_key
 *   ROOT %r = s32[8] get-tuple-element(%s), index=1
 *   =>
 *   %s = (f32[8], s32[8]) sort(%k, %v), dimensions={0}, to_apply=%by_key.1
 *   ROOT %r = s32[8] get-tuple-element(%s), index=1
 *
 * An operand goes when its result is not used and the comparator does not read its two parameters. Keeps: the order, stable or not; a sort
 * that is passed on as a tuple. */
#include "config.h"

#include "passes/pass.h"

#include "passes/flow.h"
#include "passes/util.h"
#include "support/map.h"

/* Whether any result is used otherwise than through get-tuple-element; else marks those that are used. */
static bool mark_results(const Inst *sort, bool *kept)
{
    if (sort == sort->comp->root)
        return false;
    for (const Use *u = sort->uses; u; u = u->next) {
        if (u->user->op != OP_GET_TUPLE_ELEMENT)
            return false;
        kept[inst_int(u->user, ATTR_INDEX, 0)] = true;
    }
    return true;
}

/* One of them that waits for others cannot become the sort. */
static bool has_free_results(const Inst *sort)
{
    for (const Use *u = sort->uses; u; u = u->next)
        if (!inst_is_free(u->user))
            return false;
    return true;
}

static void mark_compared(const Comp *by, bool *kept)
{
    for (int32_t k = 0; k < by->n_params; k++)
        if (comp_param(by, k)->n_uses || by->root == comp_param(by, k))
            kept[k / 2] = true;
}

/* The comparator with the parameters of what is kept, in a new computation. */
static Comp *smaller_comparator(Comp *by, const bool *kept, Arena *scratch)
{
    Module *m = by->module;
    Comp   *c = comp_new(m, comp_unique_name(m, by->name));
    Map     copies = map_new(scratch);
    int64_t n = 0;
    for (int32_t k = 0; k < by->n_params; k++)
        if (kept[k / 2]) {
            const Inst *p = comp_param(by, k);
            map_put(&copies, p, inst_parameter(c, NULL, n++, p->shape, inst_unique_name(m, p->name)));
        }
    for (const Inst *i = by->first; i; i = i->next) {
        if (i->op == OP_PARAMETER)
            continue;
        Inst **operands = ARENA_ARRAY(scratch, Inst *, i->n_operands);
        for (int32_t k = 0; k < i->n_operands; k++)
            operands[k] = map_get(&copies, inst_operand(i, k));
        map_put(&copies, i, inst_clone_into(c, NULL, i, i->n_operands, operands));
    }
    c->root = map_get(&copies, by->root);
    comp_move_before(c, by);
    return c;
}

/* The sort of the kept operands in place of i, whose elements are read from there. */
static void sort_kept(Inst *i, const bool *kept, int32_t n, Arena *scratch)
{
    Arena   *a = i->comp->module->arena;
    Inst   **operands = ARENA_ARRAY(scratch, Inst *, n);
    int32_t *to = ARENA_ARRAY(scratch, int32_t, i->n_operands), m = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (kept[k])
            operands[m++] = inst_operand(i, k);
    const Shape *shape = tuple_kept_shape(a, i->shape, kept, to);
    Comp        *by = smaller_comparator(inst_callee(i, 0), kept, scratch);
    Inst        *sort = inst_clone_into(i->comp, i, i, n, operands);
    inst_set_shape(sort, n == 1 ? shape->elems[0] : shape);
    inst_set_callees(sort, 1, &by);
    for (Use *u = i->uses, *next; u; u = next) {
        next = u->next;
        Inst *element = u->user;
        if (n == 1) {
            inst_replace(element, sort);
            inst_delete(element);
            continue;
        }
        inst_set_operand(element, 0, sort);
        inst_set_int(element, ATTR_INDEX, to[inst_int(element, ATTR_INDEX, 0)]);
    }
    inst_delete_dead(i, scratch);
}

static bool simplify_sort(PassCtx *cx, Inst *i)
{
    if (i->op != OP_SORT || i->n_operands < 2 || !inst_is_free(i))
        return false;
    bool   *kept = ARENA_ARRAY(cx->scratch, bool, i->n_operands);
    int32_t n = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        kept[k] = false;
    if (!mark_results(i, kept))
        return false;
    for (int32_t k = 0; k < i->n_operands; k++)
        n += kept[k];
    if (n == 0)
        return false; /* dead */
    mark_compared(inst_callee(i, 0), kept);
    n = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        n += kept[k];
    if (n == i->n_operands || (n == 1 && !has_free_results(i)))
        return false;
    pass_remark(cx, i, "%%%s sorts %d of its %d operands", i->name, (int)n, (int)i->n_operands);
    sort_kept(i, kept, n, cx->scratch);
    return true;
}

bool pass_simplify_sorts(Module *m, PassCtx *cx)
{
    int64_t before = cx->rewrites;
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c), *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            cx->rewrites += simplify_sort(cx, i);
        }
    return cx->rewrites > before;
}
