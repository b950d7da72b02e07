/* In the order of the entry: a reader is looked at when its operands have their types. Marks are on what has another one; the types that were are kept
 * until all readers have theirs. */
#include "ir/spread_sizes.h"

#include "ir/infer.h"
#include "ir/infer_rules.h"
#include "support/diag.h"

typedef struct Spread {
    Arena *scratch;
    Diag  *quiet;
    VEC(Inst *) changed;
    VEC(const Shape *) before;
} Spread;

static bool has_rule(const Inst *i)
{
    switch (i->op) {
    case OP_REDUCE: case OP_REDUCE_WINDOW: case OP_SORT: case OP_SCATTER: case OP_MAP: case OP_SELECT_AND_SCATTER:
    case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: case OP_GATHER: case OP_TRANSPOSE: case OP_REVERSE: case OP_CONCATENATE: case OP_DOT:
    case OP_CONVOLUTION: case OP_PAD: case OP_SLICE: case OP_COPY: case OP_GET_DIMENSION_SIZE: case OP_SET_DIMENSION_SIZE:
        return true;
    default:
        return op_has(i->op, F_ELEMENTWISE);
    }
}

/* A size below the bound, or one that is known only when run. */
static bool sets_size(const Inst *i)
{
    if (i->op != OP_SET_DIMENSION_SIZE)
        return false;
    const Inst *n = inst_operand(i, 1);
    int64_t     d = inst_ints(i, ATTR_DIMENSIONS).v[0];
    return !dim_is_dynamic(i->shape, (int32_t)d) && (n->op != OP_CONSTANT || n->literal->elided || literal_get_s64(n->literal, 0) != i->shape->dims[d]);
}

static bool reads_changed(const Inst *i)
{
    for (int32_t k = 0; k < i->n_operands; k++)
        if (inst_operand(i, k)->mark)
            return true;
    return false;
}

/* False: there is no rule. */
static bool settle(Spread *s, Inst *i)
{
    const Shape *now = has_rule(i) ? infer_shape(i->comp->module->arena, i, s->quiet) : NULL;
    if (!now || now->type != i->shape->type || (shape_is_array(now) && !shape_same_dims(now, i->shape)))
        return false;
    if (shape_equal(now, i->shape))
        return true;
    vec_push(s->scratch, &s->changed, i);
    vec_push(s->scratch, &s->before, i->shape);
    i->shape = now;
    i->mark = 1;
    return i != i->comp->root;
}

void spread_sizes(Module *m)
{
    Diag   quiet;
    Spread s = {.scratch = arena_new(), .quiet = &quiet};
    diag_init(&quiet, s.scratch);
    bool good = true;
    for (Inst *i = m->entry->first; i; i = i->next)
        i->mark = 0;
    for (Inst *i = m->entry->first; i && good; i = i->next)
        if (sets_size(i) || reads_changed(i))
            good = settle(&s, i);
    for (int32_t k = 0; k < s.changed.n && !good; k++)
        s.changed.v[k]->shape = s.before.v[k];
    arena_free(s.scratch);
}
