/* hlo-module-dce - what nobody needs, also through loops, branches and calls.
 *
 *   %w = (s32[], f32[8], f32[8]) while(tuple(0, %x, %y)), body: (i, x, y) -> (i + 1, f(x), y * y)           (element 2 of %w is not read)
 *     =>
 *   %w = (s32[], f32[8]) while(tuple(0, %x)), body: (i, x) -> (i + 1, f(x))
 *
 * First it is found which elements of tuples anybody needs, across all computations; what a trip computes for one that nobody does, it hands on as it was.
 * Then elements of the state of loops that only they themselves need, results of branches and calls that nobody reads, elements of operands that branches
 * and parameters that calls do not read go, and whatever that leaves without a reader, until nothing more does. */
#include "config.h"

#include "passes/conditional.h"
#include "passes/pass.h"
#include "passes/util.h"
#include "passes/while.h"

/* ---- what is needed ---- */

typedef struct Needed {
    Inst   *i;
    int32_t element; /* of a tuple */
} Needed;

typedef struct Live {
    Arena *scratch;
    bool  *element;   /* from inst->mark on: of a tuple each element, of others one for all */
    VEC(Needed) stack;
    VEC(Inst *) *callers; /* by comp->mark */
} Live;

static int32_t n_elements(const Inst *i)
{
    return shape_is_tuple(i->shape) ? i->shape->n_elems : 1;
}

static void need_element(Live *l, Inst *i, int32_t k)
{
    if (l->element[i->mark + k])
        return;
    l->element[i->mark + k] = true;
    vec_push(l->scratch, &l->stack, ((Needed){i, k}));
}

static void need(Live *l, Inst *i)
{
    for (int32_t k = 0; k < n_elements(i); k++)
        need_element(l, i, k);
}

static void need_operands(Live *l, const Inst *i)
{
    for (int32_t k = 0; k < i->n_operands; k++)
        need(l, inst_operand(i, k));
}

/* What the callers hand over as this element of a parameter. */
static void need_of_callers(Live *l, const Inst *p, int32_t k)
{
    for (int32_t c = 0; c < l->callers[p->comp->mark].n; c++) {
        Inst *caller = l->callers[p->comp->mark].v[c];
        if (caller->op == OP_WHILE)
            need_element(l, caller, k);
        else if (caller->op == OP_CALL)
            need_element(l, inst_operand(caller, (int32_t)p->param), k);
        else
            for (int32_t b = 0; b < caller->n_callees; b++)
                if (inst_callee(caller, b) == p->comp)
                    need_element(l, inst_operand(caller, b + 1), k);
    }
}

static void need_for(Live *l, Inst *i, int32_t k)
{
    switch (i->op) {
    case OP_PARAMETER:
        need_of_callers(l, i, k);
        break;
    case OP_TUPLE:
        need(l, inst_operand(i, k));
        break;
    case OP_GET_TUPLE_ELEMENT: {
        Inst   *t = inst_operand(i, 0);
        int32_t at = (int32_t)inst_int(i, ATTR_INDEX, 0);
        need_element(l, t, at);
        break;
    }
    case OP_WHILE:
        need_element(l, inst_operand(i, 0), k);
        need_element(l, while_body(i)->root, k);
        need(l, while_condition(i)->root);
        break;
    case OP_CONDITIONAL:
        need(l, inst_operand(i, 0));
        for (int32_t b = 0; b < i->n_callees; b++)
            need_element(l, inst_callee(i, b)->root, k);
        break;
    case OP_CALL:
        need_element(l, inst_callee(i, 0)->root, k);
        break;
    default:
        need_operands(l, i);
    }
}

static bool is_flow(const Inst *i)
{
    return i->op == OP_WHILE || i->op == OP_CONDITIONAL || i->op == OP_CALL;
}

/* Numbers everything and notes who calls what. What others call than loops, branches and calls is needed as a whole. */
static Live live_begin(Module *m, Arena *scratch)
{
    Live    l = {.scratch = scratch};
    int64_t elements = 0, comps = 0;
    for (Comp *c = m->first; c; c = c->next) {
        c->mark = comps++;
        for (Inst *i = c->first; i; i = i->next) {
            i->mark = elements;
            elements += n_elements(i);
        }
    }
    l.element = ARENA_ARRAY(scratch, bool, elements);
    l.callers = arena_array(scratch, comps, sizeof *l.callers);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first; i; i = i->next) {
            for (int32_t k = 0; k < i->n_callees && is_flow(i); k++)
                vec_push(scratch, &l.callers[inst_callee(i, k)->mark], i);
            for (int32_t k = 0; k < i->n_callees && !is_flow(i); k++)
                need(&l, inst_callee(i, k)->root);
        }
    return l;
}

static Live find_live(Module *m, Arena *scratch)
{
    Live l = live_begin(m, scratch);
    need(&l, m->entry->root);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first; i; i = i->next)
            if (inst_must_stay(i)) {
                need(&l, i);
                need_operands(&l, i);
            }
    while (l.stack.n) {
        Needed x = l.stack.v[--l.stack.n];
        need_for(&l, x.i, x.element);
    }
    return l;
}

static bool is_live(const Live *l, const Inst *i)
{
    bool live = false;
    for (int32_t k = 0; k < n_elements(i); k++)
        live |= l->element[i->mark + k];
    return live;
}

/* A loop of which nothing is needed, but which something reads, has to end nevertheless: what its condition reads is needed by nothing else. */
static void leave_dead_loops(const Live *l, const Module *m)
{
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *w = comp_calling(c); w; w = w->next)
            if (w->op == OP_WHILE && while_body(w)->root->op == OP_TUPLE && !is_live(l, w))
                while_body(w)->root->mark = -1;
}

/* What nobody needs of the root of a loop's body is what the trip began with. */
static int64_t hand_on_dead(Module *m, PassCtx *cx)
{
    Live    l = find_live(m, cx->scratch);
    int64_t before = cx->rewrites;
    leave_dead_loops(&l, m);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *w = comp_calling(c); w; w = w->next) {
            Inst *root = w->op == OP_WHILE ? while_body(w)->root : NULL, *p = root ? comp_param(while_body(w), 0) : NULL;
            if (!root || root->op != OP_TUPLE || !shape_equal(root->shape, p->shape) || root->mark < 0)
                continue;
            for (int32_t k = 0; k < root->n_operands && cx->rewrites < cx->limit; k++) {
                Inst *old = inst_operand(root, k);
                if (l.element[root->mark + k] || (is_element_of(old, k) && inst_operand(old, 0) == p))
                    continue;
                inst_set_operand(root, k, tuple_new_element(p, k, root));
                inst_delete_dead(old, cx->scratch);
                cx->did_at = w->name;
                cx->rewrites++;
            }
            root->mark = -1; /* once, whoever else calls it */
        }
    return cx->rewrites - before;
}

/* ---- what goes ---- */

/* Which results of the call are read; false: it is read whole. */
static bool find_read(const Inst *call, bool *read)
{
    if (call->comp->root == call)
        return false;
    for (const Use *u = call->uses; u; u = u->next) {
        if (u->user->op != OP_GET_TUPLE_ELEMENT)
            return false;
        read[inst_int(u->user, ATTR_INDEX, 0)] |= u->user->n_uses || u->user->comp->root == u->user || inst_must_stay(u->user);
    }
    return true;
}

static bool drop_call_results(Flow *f, Inst *call)
{
    int32_t n = shape_is_tuple(call->shape) ? call->shape->n_elems : 0, kept = 0;
    bool   *read = ARENA_ARRAY(f->scratch, bool, n);
    for (int32_t k = 0; k < n; k++)
        read[k] = false;
    if (n == 0 || inst_attr(call, ATTR_SHARDING) || inst_attr(inst_callee(call, 0)->root, ATTR_SHARDING) || shape_is_dynamic(call->shape) ||
        !shape_equal(inst_callee(call, 0)->root->shape, call->shape) || callees_shared(call) > f->room || !find_read(call, read))
        return false;
    for (int32_t k = 0; k < n; k++)
        kept += read[k];
    if (kept == n || kept == 0)
        return false;
    f->room -= callees_shared(call);
    callee_own(call, 0);
    int32_t     *to = ARENA_ARRAY(f->scratch, int32_t, n);
    const Shape *shape = tuple_kept_shape(call->comp->module->arena, call->shape, read, to);
    Comp        *body = inst_callee(call, 0);
    comp_set_root(body, tuple_kept(body->root, NULL, shape, read, f->scratch), f->scratch);
    comp_sweep_dead(body, INT64_MAX);
    tuple_sweep(call);
    tuple_renumber(call, shape, to);
    return true;
}

static bool drop_unread(Flow *f, Inst *i)
{
    switch (i->op) {
    case OP_WHILE: return shape_is_tuple(i->shape) && (i->n_uses || i->comp->root == i) && while_drop_unneeded(f, i);
    case OP_CONDITIONAL: return !i->n_control && !i->n_control_succs && (conditional_drop_results(f, i) || conditional_drop_elements(f, i));
    case OP_CALL: return !i->n_control && !i->n_control_succs && drop_call_results(f, i);
    default: return false;
    }
}

/* One time over the module; callers come first, since what they do not read is known then. */
static bool sweep(Module *m, PassCtx *cx)
{
    Flow    f = flow_of(m, cx->scratch);
    int64_t before = cx->rewrites;
    for (Comp *c = m->last; c; c = c->prev)
        for (Inst *i = c->last; i && cx->rewrites < cx->limit; i = i->prev) /* i stays; what is in front of it may go with what it read */
            if (drop_unread(&f, i)) {
                cx->did_at = i->name;
                cx->rewrites++;
            }
    return cx->rewrites > before;
}

bool pass_hlo_module_dce(Module *m, PassCtx *cx)
{
    pass_dce(m, cx);
    if (hand_on_dead(m, cx))
        pass_dce(m, cx);
    while (sweep(m, cx))
        pass_dce(m, cx);
    pass_call_parameter_cleanup(m, cx);
    pass_dce(m, cx);
    return cx->rewrites > 0;
}
