/* Which elements of a loop's state anybody needs: those that are read outside or by the condition, and those that the next ones of these are computed of. */
#include "config.h"

#include "passes/util.h"
#include "passes/while.h"

typedef struct Need {
    Arena      *scratch;
    const Inst *w, *param, *root; /* of the body */
    bool       *element;
    VEC(Inst *) stack; /* of the body: needed, with operands that have not been looked at */
} Need;

static void need(Need *x, Inst *i)
{
    if (i->mark)
        return;
    i->mark = 1;
    vec_push(x->scratch, &x->stack, i);
}

static void need_element(Need *x, int64_t k)
{
    if (x->element[k])
        return;
    x->element[k] = true;
    Inst *next = tuple_element_known(x->root, k);
    if (next || x->root != x->param)
        need(x, next ? next : while_body(x->w)->root);
}

static void need_all(Need *x)
{
    for (int32_t k = 0; k < x->w->shape->n_elems; k++)
        need_element(x, k);
}

/* What reader needs of the state. */
static void need_as_read(Need *x, const Inst *reader)
{
    if (reader->op == OP_GET_TUPLE_ELEMENT)
        need_element(x, inst_int(reader, ATTR_INDEX, 0));
    else
        need_all(x);
}

static void need_of_readers(Need *x, const Inst *t)
{
    for (const Use *u = t->uses; u; u = u->next)
        if (u->user->op != OP_GET_TUPLE_ELEMENT || u->user->n_uses || u->user->comp->root == u->user || inst_must_stay(u->user))
            need_as_read(x, u->user);
    if (t->comp->root == t)
        need_all(x);
}

static void find_needed(Need *x)
{
    for (Inst *i = while_body(x->w)->first; i; i = i->next)
        i->mark = 0;
    need_of_readers(x, x->w);
    need_of_readers(x, comp_param(while_condition(x->w), 0));
    for (Inst *i = while_body(x->w)->first; i; i = i->next)
        if (inst_must_stay(i))
            need(x, i);
    while (x->stack.n) {
        Inst *i = x->stack.v[--x->stack.n];
        if (i == x->param)
            need_all(x);
        for (int32_t o = 0; o < i->n_operands; o++)
            if (inst_operand(i, o) == x->param)
                need_as_read(x, i);
            else
                need(x, inst_operand(i, o));
    }
}

bool while_drop_unneeded(Flow *f, Inst *w)
{
    if (!while_could_be_edited(f, w))
        return false;
    int32_t n = w->shape->n_elems, kept = 0;
    Need    x = {.scratch = f->scratch, .w = w, .param = comp_param(while_body(w), 0), .root = while_body(w)->root};
    x.element = ARENA_ARRAY(f->scratch, bool, n);
    find_needed(&x);
    for (int32_t k = 0; k < n; k++)
        kept += x.element[k];
    if (kept == n || kept == 0 || !while_editable(f, w))
        return false;
    while_keep(f, w, x.element);
    return true;
}
