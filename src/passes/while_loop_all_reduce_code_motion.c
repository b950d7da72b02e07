/* while-loop-all-reduce-code-motion - what each trip adds up over devices is added up over trips first.
 *
 *   %w = while(tuple(0, a)):  (i, a) = (i + 1, a + all-reduce(x), to_apply=%add)
 *         =>
 *   %w = while(tuple(0, zeros)):  (i, s) = (i + 1, s + x)
 *   a + all-reduce(%w#1), to_apply=%add
 *
 * Devices meet once and not in every trip. Nobody may look at the sum before the loop ends. All devices of a group go through as many trips, since they
 * meet in each. Floats are added up in another order then, so {exact} takes only integers. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"
#include "passes/while.h"

static bool is_summed(const Inst *r, bool exact)
{
    return r->op == OP_ALL_REDUCE && r->n_operands == 1 && r->n_uses == 1 && inst_is_free(r) && shape_equal(r->shape, inst_operand(r, 0)->shape) &&
           comp_binary_op(inst_callee(r, 0)) == OP_ADD && (type_is_int(r->shape->type) || (!exact && type_is_float(r->shape->type)));
}

/* How often element k of the state of c is read, by one that has it alone. */
static int32_t reads(const Comp *c, int64_t k)
{
    int32_t n = 0;
    for (const Use *u = comp_param(c, 0)->uses; u; u = u->next)
        n += u->user->op != OP_GET_TUPLE_ELEMENT ? 2 : is_element_of(u->user, k) ? u->user->n_uses + 2 * (c->root == u->user) : 0;
    return n;
}

/* Which operand of the sum that element k becomes is the exchange, -1: it is not such a sum. */
static int32_t summed_operand(const Inst *w, int64_t k, bool exact)
{
    const Inst *sum = while_next(w, k);
    if (!sum || sum->op != OP_ADD || sum->n_uses != 1 || !inst_is_free(sum) || !shape_equal(sum->shape, w->shape->elems[k]))
        return -1;
    for (int32_t o = 0; o < 2; o++) {
        const Inst *before = inst_operand(sum, !o);
        if (is_summed(inst_operand(sum, o), exact) && is_element_of(before, k) && inst_operand(before, 0)->op == OP_PARAMETER &&
            reads(while_body(w), k) == 1 && reads(while_condition(w), k) == 0)
            return o;
    }
    return -1;
}

/* The loop begins with other values for element k. Gives the one that it began with. */
static Inst *begin_with(Arena *scratch, Inst *w, int32_t k, Inst *value)
{
    Inst  *old = inst_operand(w, 0), *first = NULL;
    Inst **elems = ARENA_ARRAY(scratch, Inst *, w->shape->n_elems);
    for (int32_t j = 0; j < w->shape->n_elems; j++) {
        Inst *e = old->op == OP_TUPLE ? inst_operand(old, j) : tuple_new_element(old, j, w);
        elems[j] = j == k ? value : e;
        first = j == k ? e : first;
    }
    inst_set_operand(w, 0, tuple_new(w->comp, w, w->shape, elems, old));
    inst_delete_dead(old, scratch);
    return first;
}

/* Those behind the loop that read element k read instead what `sum` makes of `element`. */
static void end_with(Inst *w, int32_t k, const Inst *element, Inst *sum)
{
    for (Use *u = w->uses, *next; u; u = next) {
        next = u->next;
        if (is_element_of(u->user, k) && u->user != element) {
            Inst *e = u->user;
            inst_replace(e, sum);
            inst_delete(e);
        }
    }
}

static void move_behind(PassCtx *cx, Inst *w, int32_t k, int32_t o)
{
    Inst *sum = while_next(w, k), *r = inst_operand(sum, o);
    Inst *first = begin_with(cx->scratch, w, k, expand_number(w, w->shape->elems[k], type_is_float(sum->shape->type) ? -0.0 : 0)); /* -0 + x is x */
    tuple_spell_out(w);
    Inst *parts = tuple_new_element(w, k, w->next);
    Inst *whole = inst_clone_into(w->comp, parts->next, r, 1, &parts);
    Inst *both = inst_new(w->comp, whole->next, OP_ADD, sum->shape, 2, (Inst *[]){first, whole}, NULL);
    both->meta = sum->meta;
    both->loc = sum->loc;
    end_with(w, k, parts, both);
    inst_set_operand(sum, o, inst_operand(r, 0));
    inst_delete(r);
}

bool pass_while_loop_all_reduce_code_motion(Module *m, PassCtx *cx)
{
    bool exact = pass_arg_is(cx, "exact");
    Flow f = flow_of(m, cx->scratch);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *w = comp_calling(c); w; w = w->next)
            for (int32_t k = 0; w->op == OP_WHILE && shape_is_tuple(w->shape) && k < w->shape->n_elems && cx->rewrites < cx->limit; k++) {
                if (c->async_wrapped || summed_operand(w, k, exact) < 0 || !while_editable(&f, w))
                    continue;
                cx->did_at = w->name;
                move_behind(cx, w, k, summed_operand(w, k, exact));
                cx->rewrites++;
            }
    return cx->rewrites > 0;
}
