/* dce - delete instructions that no result needs, results of fusions that nobody reads and computations that nobody calls.
 *
 *   %t = f32[4] multiply(%a, %a)
 *   ROOT %r = f32[4] add(%a, %b)        =>     ROOT %r = f32[4] add(%a, %b)
 *
 *   %two = (f32[4], f32[4]) fusion(%a, %b), calls=%f      =>     ROOT %two = f32[4] fusion(%a), calls=%f.1
 *   ROOT %x = f32[4] get-tuple-element(%two), index=1
 *
 * Keeps: effects, parameters but those of such fusions, and what has control edges. Users come after operands, so one sweep from the
 * end is enough. Callers are swept before what they call, so that a computation whose last caller goes needs no sweep. */
#include "config.h"

#include "passes/flow.h"
#include "passes/pass.h"
#include "passes/util.h"

/* ---- results of fusions ---- */

/* Marks the results that are read; gives their number, or -1 where all of them have to stay. */
static int32_t results_read(const Inst *f, bool *read)
{
    int32_t n = 0;
    for (const Use *u = f->uses; u; u = u->next) {
        if (u->user->op != OP_GET_TUPLE_ELEMENT || inst_must_stay(u->user))
            return -1;
        bool *r = &read[inst_int(u->user, ATTR_INDEX, 0)];
        n += !*r;
        *r = true;
    }
    return n;
}

/* What has control edges stays, and would serve no result. */
static bool has_control(const Comp *c)
{
    for (const Inst *i = c->first; i; i = i->next)
        if (i->n_control)
            return true;
    return false;
}

static bool may_narrow(const Inst *f)
{
    return f->op == OP_FUSION && shape_is_tuple(f->shape) && inst_callee(f, 0)->root->op == OP_TUPLE && f != f->comp->root && inst_is_free(f) &&
           inst_word(f, ATTR_FUSION_KIND) != FUSION_CUSTOM && !inst_attr(f, ATTR_OUTPUT_TO_OPERAND_ALIASING) && !has_control(inst_callee(f, 0));
}

static void read_whole(Inst *f, const Shape *shape)
{
    inst_set_shape(f, shape);
    for (Use *u = f->uses, *next; u; u = next) {
        Inst *element = u->user;
        next = u->next;
        inst_replace(element, f);
        inst_delete(element);
    }
}

/* f gives the n results that are read. */
static void narrow(Inst *f, const bool *read, int32_t n, Arena *scratch)
{
    Arena       *a = f->comp->module->arena;
    int32_t     *to = ARENA_ARRAY(scratch, int32_t, f->shape->n_elems), only = 0;
    const Shape *shape = tuple_kept_shape(a, f->shape, read, to);
    while (!read[only])
        only++;
    callee_own(f, 0);
    Comp *body = inst_callee(f, 0);
    Inst *root = body->root;
    comp_set_root(body, n == 1 ? inst_operand(root, only) : tuple_kept(root, root, tuple_kept_shape(a, root->shape, read, to), read, scratch), scratch);
    comp_sweep_dead(body, INT64_MAX);
    callee_drop_unread(f, scratch);
    if (n == 1)
        read_whole(f, shape->elems[0]);
    else
        tuple_renumber(f, shape, to);
}

static int64_t narrow_fusions(Comp *c, PassCtx *cx)
{
    int64_t before = cx->rewrites;
    for (Inst *i = comp_calling(c); i && cx->rewrites < cx->limit; i = i->next) {
        if (!may_narrow(i))
            continue;
        bool   *read = ARENA_ARRAY(cx->scratch, bool, i->shape->n_elems);
        int32_t n = results_read(i, read);
        if (n <= 0 || n == i->shape->n_elems)
            continue;
        Flow f = flow_of(c->module, cx->scratch);
        if (callees_shared(i) > f.room)
            continue;
        pass_remark(cx, i, "%%%s gives %d of its %d results, nobody reads the others", i->name, (int)n, (int)i->shape->n_elems);
        cx->did_at = i->name;
        narrow(i, read, n, cx->scratch);
        cx->rewrites++;
    }
    return cx->rewrites - before;
}

static int64_t sweep(Comp *c, PassCtx *cx)
{
    int64_t dead = comp_sweep_dead(c, cx->limit - cx->rewrites);
    cx->rewrites += dead;
    return dead;
}

bool pass_dce(Module *m, PassCtx *cx)
{
    module_forget_effects(m);
    for (Comp *c = m->last; c; c = c->prev) {
        int64_t dead = sweep(c, cx);
        if (narrow_fusions(c, cx))
            dead += sweep(c, cx);
        if (dead)
            pass_remark(cx, c->root, "%%%s: %lld instruction%s that no result needs %s gone", c->name, (long long)dead, dead == 1 ? "" : "s",
                        dead == 1 ? "is" : "are");
    }
    if (cx->rewrites < cx->limit) {
        int32_t comps = m->n_comps;
        module_remove_dead_comps(m);
        cx->rewrites += comps != m->n_comps; /* they go together */
    }
    return cx->rewrites > 0;
}
