/* Collectives with one participant, number 0: almost all give their operands back. Source: reference operations 16. */
#include <string.h>

#include "eval/engine.h"
#include "ir/attr_rare.h"

EvalFn eval_collective;

/* One device gives each operand back only where the result has the operand's shape. */
static bool same_shapes(const Inst *i, const Shape *result)
{
    if (!shape_is_tuple(result))
        return i->n_operands == 1 && shape_compatible(result, inst_operand(i, 0)->shape);
    bool same = result->n_elems == i->n_operands;
    for (int32_t k = 0; k < i->n_operands && same; k++)
        same = shape_compatible(result->elems[k], inst_operand(i, k)->shape);
    return same;
}

/* Every group is {0}. */
static bool groups_need_one_device(const Inst *i)
{
    const Attr *groups = inst_attr(i, ATTR_REPLICA_GROUPS);
    if (!groups)
        return true;
    Arena *a = arena_new();
    bool ok;
    IntsList lists = replica_groups_lists(a, groups->value.groups, &ok);
    for (int32_t k = 0; k < lists.n && ok; k++)
        ok = lists.v[k].n == 1 && lists.v[k].v[0] == 0;
    arena_free(a);
    return ok;
}

/* Every pair is (0, 0). */
static bool pairs_need_one_device(const Inst *i)
{
    const Attr *pairs = inst_attr(i, ATTR_SOURCE_TARGET_PAIRS);
    for (int32_t k = 0; pairs && k < pairs->value.lists->n; k++)
        if (pairs->value.lists->v[k].v[0] != 0 || pairs->value.lists->v[k].v[1] != 0)
            return false;
    return true;
}

static bool shapes_need_one_device(const Inst *i)
{
    switch (i->op) {
    case OP_ALL_REDUCE_DONE: case OP_ALL_GATHER_DONE: case OP_COLLECTIVE_PERMUTE_DONE: return true;
    case OP_RAGGED_ALL_TO_ALL: return inst_operand(i, 2)->shape->dims[0] == 1; /* an entry a participant */
    case OP_ALL_GATHER_START: case OP_COLLECTIVE_PERMUTE_START:
        return i->shape->n_elems >= 2 && same_shapes(i, i->shape->elems[1]);
    default: return same_shapes(i, i->shape);
    }
}

static bool equal_rows(const Shape *a, const Shape *b)
{
    bool same = a->rank == b->rank;
    for (int32_t d = 1; d < a->rank && same; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

const char *collective_refused(const Inst *i)
{
    if (i->op == OP_SHUFFLE)
        return "is not supported by the evaluator";
    if (i->op == OP_RAGGED_ALL_TO_ALL && !equal_rows(inst_operand(i, 0)->shape, i->shape))
        return "moves rows between arrays whose rows differ";
    if (!groups_need_one_device(i) || !pairs_need_one_device(i) || !shapes_need_one_device(i))
        return "needs more devices than one (--replicas, --partitions)";
    return NULL;
}

static Literal *operands(const Inst *i, Literal **x, bool tuple)
{
    if (!tuple)
        return literal_ref(x[0]);
    Literal *v[i->n_operands > 0 ? i->n_operands : 1];
    for (int32_t k = 0; k < i->n_operands; k++)
        v[k] = literal_ref(x[k]);
    return literal_tuple(i->n_operands, v);
}

/* Devices that are no target receive zeros. */
static bool receives(const Inst *i)
{
    const Attr *pairs = inst_attr(i, ATTR_SOURCE_TARGET_PAIRS);
    for (int32_t k = 0; pairs && k < pairs->value.lists->n; k++)
        if (pairs->value.lists->v[k].v[1] == 0)
            return true;
    return false;
}

static Literal *permuted(Eval *e, const Inst *i, Literal **x, bool tuple)
{
    for (int32_t k = 0; k < i->n_operands && !receives(i); k++) {
        Literal *own = eval_take(e, i, x, k);
        if (!own)
            return NULL;
        memset(own->data, 0, (size_t)literal_bytes(own));
        eval_drop(e, x[k]);
        x[k] = own;
    }
    return operands(i, x, tuple);
}

/* ragged-all-to-all with oneself: piece j of the input, rows [in_off[j], in_off[j] + size[j]), goes to out_off[j] of the output. */
static Literal *exchanged(Eval *e, const Inst *i, Literal **x)
{
    Literal *r = eval_take(e, i, x, 1);
    int64_t rows = r ? r->dims[0] : 0, have = x[0]->dims[0], bytes = r && rows > 0 ? literal_bytes(r) / rows : 0;
    for (int64_t j = 0; r && j < x[2]->count; j++) {
        int64_t from = literal_get_s64(x[2], j), n = literal_get_s64(x[3], j), to = literal_get_s64(x[4], j);
        if (n < 0 || from < 0 || to < 0 || from > have - n || to > rows - n) {
            eval_drop(e, r);
            return eval_fail(e, i, "ragged-all-to-all %%%s: piece %lld, %lld rows from %lld to %lld, lies outside", i->name,
                             (long long)j, (long long)n, (long long)from, (long long)to);
        }
        memcpy((char *)r->data + to * bytes, (const char *)x[0]->data + from * bytes, (size_t)(n * bytes));
    }
    return r;
}

/* (operands, results, context...) */
static Literal *started(Eval *e, const Inst *i, Literal **x)
{
    const Shape *s = i->shape;
    Literal **v = ARENA_ARRAY(e->arena, Literal *, s->n_elems);
    v[0] = operands(i, x, shape_is_tuple(s->elems[0]));
    v[1] = i->op == OP_COLLECTIVE_PERMUTE_START ? permuted(e, i, x, shape_is_tuple(s->elems[1])) : operands(i, x, shape_is_tuple(s->elems[1]));
    for (int32_t k = 2; k < s->n_elems; k++)
        v[k] = literal_for_shape(s->elems[k], true);
    return eval_tuple_of(e, s->n_elems, v);
}

Literal *eval_collective(Eval *e, const Inst *i, Literal **x)
{
    const char *refused = collective_refused(i);
    if (refused)
        return eval_fail(e, i, "%s %s (%%%s)", op_name(i->op), refused, i->name);
    switch (i->op) {
    case OP_ALL_GATHER_START: case OP_COLLECTIVE_PERMUTE_START: return started(e, i, x);
    case OP_ALL_GATHER_DONE: case OP_COLLECTIVE_PERMUTE_DONE: return literal_ref(x[0]->elems[1]);
    case OP_ALL_REDUCE_DONE: return eval_move(x, 0);
    case OP_RAGGED_ALL_TO_ALL: return exchanged(e, i, x);
    case OP_COLLECTIVE_PERMUTE: return permuted(e, i, x, shape_is_tuple(i->shape));
    default: return operands(i, x, shape_is_tuple(i->shape));
    }
}
