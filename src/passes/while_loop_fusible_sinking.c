/* while-loop-fusible-sinking - what a loop carries and is a formula of places is computed where it is read.
 *
 *   %m = compare(iota dim 0, iota dim 1), GE                       %w = while(tuple(x, ...)):  x = f(select(%m, x, y))
 *   %w = while(tuple(x, %m)):  x = f(select(m, x, y))      =>         %m = compare(iota dim 0, iota dim 1), GE    in the body
 *
 * A few cheap elementwise instructions, broadcasts and reshapes of iotas and numbers. Each trip computes them in the kernels that read them, which need read no
 * array then, and see what a mask is. Only where all that read it in the body are elementwise, or broadcasts and reshapes for such: the others want it in memory. */
#include "config.h"

#include "analysis/cost.h"
#include "passes/pass.h"
#include "passes/util.h"
#include "passes/while.h"

enum { MAX_PARTS = 16 };

/* Instructions that a formula is made of, the formula first, and their copies. */
typedef struct Formula {
    Inst   *part[MAX_PARTS], *copy[MAX_PARTS];
    int32_t n;
} Formula;

static int32_t place_in(const Formula *f, const Inst *i)
{
    int32_t k = 0;
    while (k < f->n && f->part[k] != i)
        k++;
    return k;
}

static bool is_part(const Inst *i)
{
    if (!shape_is_array(i->shape) || !inst_is_value(i) || !inst_is_free(i))
        return false;
    if (i->op == OP_CONSTANT)
        return shape_is_scalar(i->shape);
    return i->op == OP_IOTA || i->op == OP_BROADCAST || i->op == OP_RESHAPE || (op_has(i->op, F_ELEMENTWISE) && !inst_is_dear(i));
}

/* More than numbers, which are sunk as such. */
static bool find_formula(Formula *f, Inst *i)
{
    bool places = false;
    *f = (Formula){.part = {i}, .n = 1};
    for (int32_t k = 0; k < f->n; k++) {
        if (!is_part(f->part[k]))
            return false;
        places |= f->part[k]->op == OP_IOTA;
        for (int32_t o = 0; o < f->part[k]->n_operands; o++) {
            if (place_in(f, inst_operand(f->part[k], o)) < f->n)
                continue;
            if (f->n == MAX_PARTS)
                return false;
            f->part[f->n++] = inst_operand(f->part[k], o);
        }
    }
    return places && shape_count(i->shape) > 1;
}

static bool is_elementwise(const Inst *i)
{
    return op_has(i->op, F_ELEMENTWISE);
}

static bool only_elements_read(const Inst *i)
{
    bool only = i->n_uses > 0 && i->comp->root != i;
    for (const Use *u = i->uses; u && only; u = u->next)
        only = is_elementwise(u->user);
    return only;
}

/* Whether all that read element k of the body's state can take the formula in; the root hands it on. */
static bool can_take_in(const Comp *body, int64_t k)
{
    bool any = false;
    for (const Use *u = comp_param(body, 0)->uses; u; u = u->next) {
        if (u->user->op != OP_GET_TUPLE_ELEMENT)
            return false;
        for (const Use *v = is_element_of(u->user, k) ? u->user->uses : NULL; v; v = v->next) {
            const Inst *i = v->user;
            if (i == body->root && i->op == OP_TUPLE && v->index == k)
                continue;
            if (!is_elementwise(i) && ((i->op != OP_BROADCAST && i->op != OP_RESHAPE) || !only_elements_read(i)))
                return false;
            any = true;
        }
    }
    return any;
}

static bool sinks(const Inst *w, int32_t k, Formula *f)
{
    Inst *init = while_init(w, k);
    return init && while_keeps(w, k) && shape_equal(init->shape, w->shape->elems[k]) && can_take_in(while_body(w), k) && find_formula(f, init);
}

/* Parts come before what they are parts of in their computation, and do in front of `at`. */
static Inst *copy_part(Formula *f, Inst *at, int32_t k)
{
    Inst *operands[MAX_PARTS];
    if (f->copy[k])
        return f->copy[k];
    for (int32_t o = 0; o < f->part[k]->n_operands; o++)
        operands[o] = copy_part(f, at, place_in(f, inst_operand(f->part[k], o)));
    f->copy[k] = inst_clone_into(at->comp, at, f->part[k], f->part[k]->n_operands, operands);
    return f->copy[k];
}

static bool sink_all(Flow *f, Inst *w)
{
    Formula formula;
    bool    any = false;
    for (int32_t k = 0; k < w->shape->n_elems && !any; k++)
        any = sinks(w, k, &formula);
    if (!any || !while_editable(f, w))
        return false;
    Comp  *body = while_body(w);
    Inst **instead = ARENA_ARRAY(f->scratch, Inst *, w->shape->n_elems), *at = body->first;
    for (int32_t k = 0; k < w->shape->n_elems; k++)
        if (sinks(w, k, &formula))
            instead[k] = copy_part(&formula, at, 0);
    return state_read_instead(body, instead);
}

bool pass_while_loop_fusible_sinking(Module *m, PassCtx *cx)
{
    Flow f = flow_of(m, cx->scratch);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c); i && cx->rewrites < cx->limit; i = i->next)
            if (i->op == OP_WHILE && while_could_be_edited(&f, i) && sink_all(&f, i)) {
                cx->did_at = i->name;
                cx->rewrites++;
            }
    return cx->rewrites > 0;
}
