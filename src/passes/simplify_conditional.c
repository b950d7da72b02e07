/* simplify-conditional - branches that need not be branches, and what goes in and out of them.
 *
 *   %c = conditional(%p, %x, %y), true: x -> (x + 1, f(x)), false: y -> (y, g(y))          (only element 0 is read)
 *         =>
 *   %c = select(%p, %x + 1, %y)
 *
 *   - one branch, a known choice, or the same branch and operand for all: a call
 *   - results that nobody reads go; a result that all branches hand on from one value is that value; of results that are one in all branches the first is read
 *   - elements of an operand that its branch does not read go
 *   - two branches of few cheap instructions: both are computed, and select chooses
 *
 * Conditionals without control edges. A call or a choice keeps effects; select needs branches without. */
#include "config.h"

#include "analysis/cost.h"
#include "passes/conditional.h"
#include "passes/pass.h"
#include "passes/util.h"

enum { MAX_SELECTED = 32, MAX_ELEMENTS = 4096 }; /* instructions of a branch that is always computed, elements of each */

/* ---- one branch ---- */

/* The branch that always runs, or -1. */
static int32_t only_branch(const Inst *c)
{
    const Inst *p = inst_operand(c, 0);
    int32_t     last = c->n_callees - 1;
    bool        same = true;
    for (int32_t k = 1; k <= last; k++)
        same &= c->callees[k] == c->callees[0] && inst_operand(c, k + 1) == inst_operand(c, 1);
    if (same)
        return 0;
    if (p->op != OP_CONSTANT || p->literal->elided)
        return -1;
    int64_t v = literal_get_s64(p->literal, 0);
    if (p->shape->type == TYPE_PRED)
        return v ? 0 : 1;
    return v < 0 || v > last ? last : (int32_t)v;
}

static bool call_only_branch(Flow *f, Inst *c)
{
    int32_t k = only_branch(c);
    if (k < 0 || !shape_equal(inst_callee(c, k)->root->shape, c->shape))
        return false;
    Inst *x = inst_operand(c, k + 1);
    Comp *body = inst_callee(c, k);
    Inst *call = inst_new(c->comp, c, OP_CALL, c->shape, 1, &x, NULL);
    inst_set_callees(call, 1, &body);
    inst_replace(c, call);
    inst_delete(c);
    (void)f;
    return true;
}

/* ---- select ---- */

static bool is_cheap(const Inst *i)
{
    if (!shape_is_array(i->shape) || shape_is_dynamic(i->shape))
        return (i->op == OP_PARAMETER || i->op == OP_TUPLE) && shape_is_tuple(i->shape) && !shape_is_dynamic(i->shape);
    if (shape_count(i->shape) > MAX_ELEMENTS)
        return false;
    switch (i->op) {
    case OP_PARAMETER: case OP_CONSTANT: case OP_IOTA: case OP_BROADCAST: case OP_GET_TUPLE_ELEMENT: case OP_RESHAPE: case OP_SLICE:
    case OP_CONCATENATE: case OP_PAD: case OP_DYNAMIC_SLICE: case OP_TRANSPOSE:
        return true;
    default:
        return op_has(i->op, F_ELEMENTWISE) && (!inst_is_dear(i) || shape_count(i->shape) == 1);
    }
}

static bool is_cheap_branch(const Comp *c)
{
    if (c->n_insts > MAX_SELECTED)
        return false;
    for (const Inst *i = c->first; i; i = i->next)
        if (!is_cheap(i) || i->n_control || inst_attr(i, ATTR_SHARDING))
            return false;
    return true;
}

/* Arrays, or one tuple of arrays. */
static bool is_flat(const Shape *s)
{
    for (int32_t k = 0; shape_is_tuple(s) && k < s->n_elems; k++)
        if (!shape_is_array(s->elems[k]))
            return false;
    return true;
}

static Inst *copy_branch(Flow *f, Inst *c, int32_t branch)
{
    const Comp *body = inst_callee(c, branch);
    for (Inst *i = body->first; i; i = i->next) {
        if (i->op == OP_PARAMETER) {
            i->aux = inst_operand(c, branch + 1);
            continue;
        }
        Inst **operands = ARENA_ARRAY(f->scratch, Inst *, i->n_operands);
        for (int32_t k = 0; k < i->n_operands; k++)
            operands[k] = inst_operand(i, k)->aux;
        i->aux = inst_clone_into(c->comp, c, i, i->n_operands, operands);
    }
    return body->root->aux;
}

static Inst *select_one(Inst *c, Inst *p, Inst *x, Inst *y, const Shape *shape)
{
    if (x == y)
        return x;
    if (shape->rank) {
        p = inst_new(c->comp, c, OP_BROADCAST, shape_with_type(c->comp->module->arena, shape, TYPE_PRED), 1, &p, NULL);
        p->meta = c->meta;
        inst_set_ints(p, ATTR_DIMENSIONS, (Ints){NULL, 0});
    }
    Inst *s = inst_new(c->comp, c, OP_SELECT, shape, 3, (Inst *[]){p, x, y}, NULL);
    s->meta = c->meta;
    return s;
}

/* Element k of a value of c's type, before c. */
static Inst *part(Inst *c, Inst *x, int32_t k)
{
    return x->op == OP_TUPLE ? inst_operand(x, k) : tuple_new_element(x, k, c);
}

static bool compute_both(Flow *f, Inst *c)
{
    if (inst_operand(c, 0)->shape->type != TYPE_PRED || !inst_is_free(c) || !is_flat(c->shape) || !conditional_same_shapes(c))
        return false;
    if (!is_cheap_branch(inst_callee(c, 0)) || !is_cheap_branch(inst_callee(c, 1)))
        return false;
    Inst *p = inst_operand(c, 0), *x = copy_branch(f, c, 0), *y = copy_branch(f, c, 1), *result;
    if (shape_is_tuple(c->shape)) {
        Inst **elems = ARENA_ARRAY(f->scratch, Inst *, c->shape->n_elems);
        for (int32_t k = 0; k < c->shape->n_elems; k++)
            elems[k] = select_one(c, p, part(c, x, k), part(c, y, k), c->shape->elems[k]);
        result = tuple_new(c->comp, c, c->shape, elems, c);
    } else {
        result = select_one(c, p, x, y, c->shape);
    }
    inst_replace(c, result);
    inst_delete_dead(c, f->scratch);
    return true;
}

/* ---- the pass ---- */

static bool simplify(Flow *f, Inst *c)
{
    static bool (*const rules[])(Flow *, Inst *) = {call_only_branch, compute_both, conditional_drop_results, conditional_drop_elements};
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
        if (rules[r](f, c))
            return true;
    return false;
}

bool pass_simplify_conditional(Module *m, PassCtx *cx)
{
    Flow f = flow_of(m, cx->scratch);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c), *next; i; i = next) {
            next = i->next;
            if (i->op != OP_CONDITIONAL || i->n_control || i->n_control_succs)
                continue;
            const char *name = i->name;
            while (cx->rewrites < cx->limit && simplify(&f, i)) {
                cx->did_at = name;
                cx->rewrites++;
                if (!i->n_uses && c->root != i)
                    break; /* something else has taken its place */
            }
        }
    if (cx->rewrites)
        module_remove_dead_comps(m);
    return cx->rewrites > 0;
}
