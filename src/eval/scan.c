/* scan: the body runs once for every place along a dimension, on the slices there and the carries. Source: reference operations 8.3.
 * Without inputs the outputs have the length. */
#include <string.h>

#include "eval/engine.h"
#include "eval/walk.h"

EvalFn eval_scan;

/* Element t of dimension d: copied out of whole into part, or from part into whole. */
static void copy_slice(Literal *whole, Literal *part, int32_t d, int64_t t, bool into_whole)
{
    int64_t strides[WALK_RANK];
    walk_strides(whole->rank, whole->dims, strides);
    Odometer o = {.rank = part->rank, .arrays = 2};
    for (int32_t k = 0; k < part->rank; k++) {
        o.dims[k] = part->dims[k];
        o.stride[into_whole ? 0 : 1][k] = strides[k < d ? k : k + 1];
    }
    walk_strides(part->rank, part->dims, o.stride[into_whole ? 1 : 0]);
    o.at[into_whole ? 0 : 1] = t * strides[d];
    walk_copy(&o, into_whole ? whole->data : part->data, into_whole ? part->data : whole->data, type_bytes(whole->type));
}

typedef struct Scan {
    int32_t   dim, inputs, outputs, carries;
    Literal **args;   /* of the body: slices, carries */
    Literal **result; /* outputs, then the carries */
} Scan;

static bool step(Eval *e, const Inst *i, Scan *s, Literal **x, int64_t t)
{
    const Comp *body = inst_callee(i, 0);
    for (int32_t k = 0; k < s->inputs; k++) {
        s->args[k] = eval_new_for(e, i, comp_param(body, k)->shape);
        if (!s->args[k])
            return false;
        copy_slice(x[k], s->args[k], s->dim, t, false);
    }
    for (int32_t k = 0; k < s->carries; k++)
        s->args[s->inputs + k] = eval_move(s->result, s->outputs + k);
    Literal *r = eval_trip(e, i, body, s->args, t);
    if (!r)
        return false;
    for (int32_t k = 0; k < s->outputs + s->carries; k++) {
        Literal *v = r->type == TYPE_TUPLE ? r->elems[k] : r;
        if (k < s->outputs)
            copy_slice(s->result[k], v, s->dim, t, true);
        else
            s->result[k] = literal_ref(v);
    }
    eval_drop(e, r);
    return true;
}

Literal *eval_scan(Eval *e, const Inst *i, Literal **x)
{
    bool tuple = shape_is_tuple(i->shape), reverse = inst_bool(i, ATTR_IS_REVERSE);
    Scan s = {.dim = (int32_t)inst_ints(i, ATTR_DIMENSIONS).v[0], .carries = (int32_t)inst_int(i, ATTR_NUM_CARRIES, 0)};
    int32_t n = tuple ? i->shape->n_elems : 1;
    s.inputs = i->n_operands - s.carries;
    s.outputs = n - s.carries;
    s.args = ARENA_ARRAY(e->scratch, Literal *, i->n_operands);
    s.result = ARENA_ARRAY(e->scratch, Literal *, n);
    for (int32_t k = 0; k < n; k++)
        s.result[k] = k < s.outputs ? eval_new_for(e, i, tuple ? i->shape->elems[k] : i->shape)
                                    : eval_move(x, s.inputs + k - s.outputs);
    int64_t length = s.inputs > 0 ? x[0]->dims[s.dim] : s.outputs > 0 && s.result[0] ? s.result[0]->dims[s.dim] : 0;
    for (int64_t t = 0; t < length && !e->failed && eval_work(e, i, 1); t++)
        if (!step(e, i, &s, x, reverse ? length - 1 - t : t))
            break;
    for (int32_t k = 0; k < i->n_operands; k++)
        eval_drop(e, eval_move(s.args, k));
    return tuple ? eval_tuple_of(e, n, s.result) : s.result[0];
}
