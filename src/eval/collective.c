/* Collectives: what every participant of a group gets, from the operands of all. Participants are numbered in the group's order, which is
 * also the order of folds. One device is a group of itself, number 0. Source: reference operations 16. */
#include <string.h>

#include "eval/body.h"
#include "eval/engine.h"
#include "eval/team.h"
#include "ir/collective.h"

EvalFn eval_collective;

/* ---- before anything runs ---- */

const char *eval_collective_refused(Arena *a, const Inst *i, Devices on)
{
    if (i->op == OP_COLLECTIVE_REDUCE && devices_n(on) > 1)
        return "is not supported by the evaluator on several devices";
    if (inst_bool(i, ATTR_HAS_DYNAMIC_ROOT))
        return "with a root that is an operand is not supported by the evaluator";
    if (inst_attr(i, ATTR_SLICE_SIZES))
        return "of slices in place is not supported by the evaluator";
    return collective_refused(a, i, on);
}

/* ---- what the participants get ---- */

/* One array, or the tuple of n; takes over the references, NULL after a failure. */
static Literal *one_or_tuple(Eval *e, const Inst *i, int32_t n, Literal **v)
{
    return shape_is_tuple(collective_given(i)) ? eval_tuple_of(e, n, v) : eval_move(v, 0);
}

/* Copies n steps of dimension d, from from_at to to_at; all other sizes are equal. */
static void copy_steps(Literal *to, int64_t to_at, const Literal *from, int64_t from_at, int32_t d, int64_t n)
{
    int64_t outer = 1, inner = type_bytes(to->type);
    for (int32_t k = 0; k < d; k++)
        outer *= to->dims[k];
    for (int32_t k = d + 1; k < to->rank; k++)
        inner *= to->dims[k];
    for (int64_t k = 0; k < outer && n * inner > 0; k++)
        memcpy((char *)to->data + (k * to->dims[d] + to_at) * inner, (const char *)from->data + (k * from->dims[d] + from_at) * inner,
               (size_t)(n * inner));
}

/* acc = fold(acc, x): ((x_0 + x_1) + x_2) + ... of operand k of all, in the types of to_apply. NULL after failing. */
static Literal *folded(const Meeting *m, int32_t k)
{
    Eval       *e = m->e[0];
    const Inst *i = m->i[0];
    Type        own = m->x[0][k]->type;
    if (m->n == 1)
        return literal_ref(m->x[0][k]);
    Body    *b = body_get(e, i, inst_callee(i, 0));
    Literal *acc = eval_copy(e, i, m->x[0][k]);
    acc = eval_cast(e, i, acc, body_param_type(b, 0));
    for (int32_t p = 1; p < m->n && acc; p++) {
        Literal *x = eval_cast(e, i, literal_ref(m->x[p][k]), body_param_type(b, 1));
        Odometer o = {.rank = 1, .arrays = 2, .dims = {acc->count}, .stride = {{1}, {1}}};
        bool     ok = x && (acc->count == 0 || body_fold(e, b, 1, &acc, &x, &o));
        eval_drop(e, x);
        if (!ok)
            eval_drop(e, eval_move(&acc, 0));
    }
    return eval_cast(e, i, acc, own);
}

/* Operand k of all, one after the other along the dimension. */
static Literal *gathered(const Meeting *m, int32_t k)
{
    int32_t d = (int32_t)inst_ints(m->i[0], ATTR_DIMENSIONS).v[0];
    if (m->n == 1)
        return literal_ref(m->x[0][k]);
    Literal *r = eval_new_for(m->e[0], m->i[0], collective_part(collective_given(m->i[0]), k));
    for (int32_t p = 0; p < m->n && r; p++)
        copy_steps(r, p * m->x[p][k]->dims[d], m->x[p][k], 0, d, m->x[p][k]->dims[d]);
    return r;
}

static Literal *first(const Meeting *m, int32_t k)
{
    return literal_ref(m->x[0][k]);
}

static Literal *all_of(const Meeting *m, int32_t p, int32_t k, const Literal *whole)
{
    return literal_ref(whole);
}

/* Block p of the dimension. */
static Literal *block_of(const Meeting *m, int32_t p, int32_t k, const Literal *whole)
{
    int32_t      d = (int32_t)inst_ints(m->i[p], ATTR_DIMENSIONS).v[0];
    const Shape *s = collective_part(m->i[p]->shape, k);
    Literal     *r = eval_new_for(m->e[p], m->i[p], s);
    if (r)
        copy_steps(r, 0, whole, p * s->dims[d], d, s->dims[d]);
    return r;
}

/* Makes a whole of each operand of all, and gives everybody a share of it. */
static void deal(const Meeting *m, Literal *(*whole)(const Meeting *, int32_t),
                 Literal *(*share)(const Meeting *, int32_t, int32_t, const Literal *))
{
    int32_t   n = m->i[0]->n_operands;
    Literal **v = mem_alloc(n, sizeof *v), **own = mem_alloc(n, sizeof *own);
    for (int32_t k = 0; k < n; k++)
        v[k] = whole(m, k);
    for (int32_t p = 0; p < m->n && !m->e[0]->failed; p++) {
        for (int32_t k = 0; k < n; k++)
            own[k] = share(m, p, k, v[k]);
        m->result[p] = one_or_tuple(m->e[p], m->i[p], n, own);
    }
    for (int32_t k = 0; k < n; k++)
        eval_drop(m->e[0], v[k]);
    mem_free(v);
    mem_free(own);
}

static void all_reduce(const Meeting *m) { deal(m, folded, all_of); }
static void reduce_scatter(const Meeting *m) { deal(m, folded, block_of); }
static void all_gather(const Meeting *m) { deal(m, gathered, all_of); }
static void broadcast(const Meeting *m) { deal(m, first, all_of); }

/* Operand k goes to participant k: result k comes from it. */
static void exchange_operands(const Meeting *m)
{
    for (int32_t p = 0; p < m->n; p++) {
        Literal **own = ARENA_ARRAY(m->e[p]->arena, Literal *, m->n);
        for (int32_t k = 0; k < m->n; k++)
            own[k] = literal_ref(m->x[k][p]);
        m->result[p] = literal_tuple(m->n, own);
    }
}

/* Block p of dimension d goes to participant p; what comes stands in the order of who sent it. */
static void all_to_all(const Meeting *m)
{
    Ints dims = inst_ints(m->i[0], ATTR_DIMENSIONS);
    if (dims.n == 0) {
        exchange_operands(m);
        return;
    }
    int32_t d = (int32_t)dims.v[0];
    int64_t size = m->x[0][0]->dims[d] / m->n;
    for (int32_t p = 0; p < m->n; p++) {
        Literal *r = m->result[p] = eval_new_for(m->e[p], m->i[p], m->i[p]->shape);
        for (int32_t k = 0; k < m->n && r; k++)
            copy_steps(r, k * size, m->x[k][0], p * size, d, size);
    }
}

/* The group is all ids, so that an id is a participant. Who is no target receives zeros. */
static void permute(const Meeting *m)
{
    const IntsList *pairs = inst_attr(m->i[0], ATTR_SOURCE_TARGET_PAIRS)->value.lists;
    for (int32_t p = 0; p < m->n; p++) {
        int32_t   n = m->i[p]->n_operands;
        int64_t   source = -1;
        Literal **own = ARENA_ARRAY(m->e[p]->arena, Literal *, n);
        for (int32_t k = 0; k < pairs->n; k++)
            if (pairs->v[k].v[1] == p)
                source = pairs->v[k].v[0];
        for (int32_t k = 0; k < n; k++)
            own[k] = source >= 0 ? literal_ref(m->x[source][k]) : eval_zeros(m->e[p], m->i[p], inst_operand(m->i[p], k)->shape);
        m->result[p] = one_or_tuple(m->e[p], m->i[p], n, own);
    }
}

/* The pieces that participant `from` sends to participant `to`, into r: piece j is rows [in_off[j], in_off[j] + size[j]) of from's input and goes
 * to out_off[j] of to's output. Index arrays are [participant, piece]. */
static bool ragged_pieces(const Meeting *m, int32_t from, int32_t to, Literal *r)
{
    Literal **x = m->x[from];
    int64_t   rows = r->dims[0], have = x[0]->dims[0], each = x[2]->count / m->n, bytes = rows > 0 ? literal_bytes(r) / rows : 0;
    for (int64_t j = to * each; j < (to + 1) * each; j++) {
        int64_t at = literal_get_s64(x[2], j), n = literal_get_s64(x[3], j), there = literal_get_s64(x[4], j);
        if (n < 0 || at < 0 || there < 0 || at > have - n || there > rows - n) {
            eval_fail(m->e[from], m->i[from], "ragged-all-to-all %%%s: piece %lld, %lld rows from %lld to %lld, lies outside", m->i[from]->name,
                      (long long)j, (long long)n, (long long)at, (long long)there);
            return false;
        }
        if (n > 0)
            memcpy((char *)r->data + there * bytes, (const char *)x[0]->data + at * bytes, (size_t)(n * bytes));
    }
    return true;
}

static void ragged_all_to_all(const Meeting *m)
{
    bool ok = true;
    for (int32_t to = 0; to < m->n && ok; to++) {
        Literal *r = m->result[to] = eval_take(m->e[to], m->i[to], m->x[to], 1);
        ok = r != NULL;
        for (int32_t from = 0; from < m->n && ok; from++)
            ok = ragged_pieces(m, from, to, r);
    }
}

static MeetFn *work_of(Op op)
{
    switch (op) {
    case OP_ALL_REDUCE: case OP_ALL_REDUCE_START: case OP_COLLECTIVE_REDUCE: return all_reduce;
    case OP_REDUCE_SCATTER: return reduce_scatter;
    case OP_ALL_GATHER: case OP_ALL_GATHER_START: return all_gather;
    case OP_ALL_TO_ALL: return all_to_all;
    case OP_RAGGED_ALL_TO_ALL: return ragged_all_to_all;
    case OP_COLLECTIVE_BROADCAST: return broadcast;
    case OP_COLLECTIVE_PERMUTE: case OP_COLLECTIVE_PERMUTE_START: return permute;
    default: die("%s is no collective", op_name(op));
    }
}

/* ---- one device's step ---- */

/* NULL after failing. What is known was checked. */
static const Ints *participants(Eval *e, const Inst *i)
{
    Ints *known = map_get(&e->groups, i);
    if (known)
        return known;
    const char *refused = eval_collective_refused(e->arena, i, e->on);
    if (refused) {
        eval_fail(e, i, "%s %s (%%%s)", op_name(i->op), refused, i->name);
        return NULL;
    }
    bool ok;
    known = ARENA_NEW(e->arena, Ints);
    *known = group_devices(e->arena, group_mode(i), group_lists(e->arena, i, &ok), e->on.replicas, e->on.partitions, e->device);
    map_put(&e->groups, i, known);
    return known;
}

static Literal *operands(Eval *e, const Inst *i, Literal **x, bool tuple)
{
    if (!tuple)
        return literal_ref(x[0]);
    Literal **v = ARENA_ARRAY(e->scratch, Literal *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        v[k] = literal_ref(x[k]);
    return literal_tuple(i->n_operands, v);
}

/* A device that is in no group has zeros. */
static Literal *met(Eval *e, const Inst *i, Literal **x)
{
    const Ints *group = participants(e, i);
    if (!group)
        return NULL;
    return group->n > 0 ? team_meet(e, i, *group, x, work_of(i->op)) : eval_zeros(e, i, collective_given(i));
}

/* (operands, results, context...) */
static Literal *started(Eval *e, const Inst *i, Literal **x)
{
    const Shape *s = i->shape;
    Literal    **v = ARENA_ARRAY(e->scratch, Literal *, s->n_elems);
    v[0] = operands(e, i, x, shape_is_tuple(s->elems[0]));
    v[1] = met(e, i, x);
    for (int32_t k = 2; k < s->n_elems; k++)
        v[k] = eval_zeros(e, i, s->elems[k]);
    return eval_tuple_of(e, s->n_elems, v);
}

Literal *eval_collective(Eval *e, const Inst *i, Literal **x)
{
    switch (i->op) {
    case OP_ALL_GATHER_START: case OP_COLLECTIVE_PERMUTE_START: return started(e, i, x);
    case OP_ALL_GATHER_DONE: case OP_COLLECTIVE_PERMUTE_DONE: return literal_ref(x[0]->elems[1]);
    case OP_ALL_REDUCE_DONE: return eval_move(x, 0);
    default: return met(e, i, x);
    }
}
