/* reduce and map. Source: reference operations 7.1, 14.
 *
 * A reduction sees each operand as rows: [R, K] with the reduced dimensions outside and the kept ones inside. Row by row, K lanes at
 * once, acc = body(acc, row): every output takes its elements in row-major order, starting from init. */
#include <string.h>

#include "eval/body.h"
#include "eval/engine.h"
#include "eval/walk.h"

EvalFn eval_reduce, eval_map;

typedef struct Split {
    int32_t rank;
    bool    reduced[WALK_RANK];
    int64_t rows, lanes;
} Split;

static Split split_dims(const Inst *i, const Literal *x)
{
    Split s = {.rank = x->rank, .rows = 1, .lanes = 1};
    Ints dims = inst_ints(i, ATTR_DIMENSIONS);
    for (int32_t d = 0; d < x->rank; d++) {
        s.reduced[d] = ints_has(dims, d);
        *(s.reduced[d] ? &s.rows : &s.lanes) *= x->dims[d];
    }
    return s;
}

/* x with the reduced dimensions moved outside: x itself when they are there. Takes over the reference. */
static Literal *as_rows(Eval *e, const Inst *i, const Split *s, Literal *x)
{
    if (!x)
        return NULL;
    int64_t strides[WALK_RANK];
    walk_strides(x->rank, x->dims, strides);
    Odometer o;
    walk_start(&o, x->rank, x->dims);
    o.rank = 0;
    for (int part = 1; part >= 0; part--)
        for (int32_t d = 0; d < x->rank; d++)
            if (s->reduced[d] == part) {
                o.dims[o.rank] = x->dims[d];
                o.stride[1][o.rank++] = strides[d];
            }
    walk_strides(o.rank, o.dims, o.stride[0]);
    Odometer merged;
    walk_take(&merged, &o, o.rank);
    walk_simplify(&merged);
    if (merged.rank == 0 || (merged.rank == 1 && merged.stride[1][0] == 1))
        return x;
    Literal *r = eval_new(e, i, x->type, o.rank, o.dims);
    if (r)
        walk_copy(&o, r->data, x->data, type_bytes(x->type));
    eval_drop(e, x);
    return r;
}

static Literal *filled(Eval *e, const Inst *i, const Shape *dims, const Literal *v)
{
    Literal *r = v ? eval_new(e, i, v->type, dims->rank, dims->dims) : NULL;
    if (r)
        walk_fill(r->data, r->count, v->data, type_bytes(v->type));
    return r;
}

static void fold_rows(Eval *e, Body *b, const Split *s, int32_t n, Literal **acc, Literal **rows)
{
    const void **params = mem_alloc(2 * n, sizeof *params);
    void **results = mem_alloc(n, sizeof *results);
    bool ok = true;
    for (int64_t lane = 0; lane < s->lanes && ok; lane += BLOCK) { /* a block of lanes stays in the cache for all rows */
        int64_t m = s->lanes - lane < BLOCK ? s->lanes - lane : BLOCK;
        for (int64_t row = 0; row < s->rows && ok; row++) {
            for (int32_t k = 0; k < n; k++) {
                params[k] = results[k] = (char *)acc[k]->data + lane * type_bytes(acc[k]->type);
                params[n + k] = (const char *)rows[k]->data + (row * s->lanes + lane) * type_bytes(rows[k]->type);
            }
            ok = body_run(e, b, params, results, m);
        }
    }
    mem_free(params);
    mem_free(results);
}

static Literal *reduce_general(Eval *e, const Inst *i, Literal **x, Body *b)
{
    int32_t n = i->n_operands / 2;
    const Shape *out = shape_is_tuple(i->shape) ? i->shape->elems[0] : i->shape;
    Split s = split_dims(i, x[0]);
    Literal **acc = mem_alloc(2 * n, sizeof *acc), **rows = acc + n;
    for (int32_t k = 0; k < n; k++) {
        rows[k] = as_rows(e, i, &s, eval_cast(e, i, eval_move(x, k), body_param_type(b, n + k)));
        Literal *init = eval_cast(e, i, eval_move(x, n + k), body_param_type(b, k));
        acc[k] = filled(e, i, out, init);
        eval_drop(e, init);
    }
    if (!e->failed && eval_work(e, i, s.rows * s.lanes))
        fold_rows(e, b, &s, n, acc, rows);
    for (int32_t k = 0; k < n; k++)
        eval_drop(e, rows[k]);
    Literal *r = eval_results(e, i, n, acc);
    mem_free(acc);
    return r;
}

/* The plain sum of floats: in f64, in row-major order, rounded once. */

static void add_row(double *acc, int64_t step, Type t, const char *p, int64_t n)
{
    Block room;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        const double *v = value_load(DOMAIN_F64, t, p + at * type_bytes(t), m, &room);
        if (step == 0) {
            double sum = *acc;
            for (int64_t j = 0; j < m; j++)
                sum += v[j];
            *acc = sum;
        } else {
            for (int64_t j = 0; j < m; j++)
                acc[(at + j) * step] += v[j];
        }
    }
}

Literal *eval_sum(Eval *e, const Inst *i, const Literal *from, const bool *reduced, Literal *acc, Type t)
{
    if (!acc || from->count == 0 || !eval_work(e, i, from->count))
        return eval_cast(e, i, acc, t);
    int64_t strides[WALK_RANK];
    walk_strides(acc->rank, acc->dims, strides);
    Odometer o;
    walk_start(&o, from->rank, from->dims);
    walk_strides(from->rank, from->dims, o.stride[1]);
    for (int32_t d = 0, kept = 0; d < from->rank; d++)
        o.stride[0][d] = reduced[d] ? 0 : strides[kept++];
    walk_simplify(&o);
    int64_t n = o.rank > 0 ? o.dims[o.rank - 1] : 1, step = o.rank > 0 ? o.stride[0][o.rank - 1] : 0;
    o.rank -= o.rank > 0;
    do {
        add_row((double *)acc->data + o.at[0], step, from->type, (const char *)from->data + o.at[1] * type_bytes(from->type), n);
    } while (walk_next(&o));
    return eval_cast(e, i, acc, t);
}

static Literal *reduce_sum(Eval *e, const Inst *i, Literal **x)
{
    Split s = split_dims(i, x[0]);
    Literal *init = eval_cast(e, i, eval_move(x, 1), TYPE_F64), *acc = filled(e, i, i->shape, init);
    eval_drop(e, init);
    return eval_sum(e, i, x[0], s.reduced, acc, i->shape->type);
}

Literal *eval_reduce(Eval *e, const Inst *i, Literal **x)
{
    Body *b = body_get(e, i, inst_callee(i, 0));
    if (i->n_operands == 2 && !shape_is_tuple(i->shape) && type_is_float(x[0]->type) && type_is_float(x[1]->type) &&
        body_binary_op(b) == OP_ADD)
        return reduce_sum(e, i, x);
    return reduce_general(e, i, x, b);
}

Literal *eval_map(Eval *e, const Inst *i, Literal **x)
{
    Body *b = body_get(e, i, inst_callee(i, 0));
    int32_t n = i->n_operands;
    const void **params = ARENA_ARRAY(e->scratch, const void *, n);
    for (int32_t k = 0; k < n; k++) {
        x[k] = eval_cast(e, i, x[k], body_param_type(b, k));
        params[k] = x[k] ? x[k]->data : NULL;
    }
    Literal *r = e->failed ? NULL : eval_new(e, i, body_result_type(b, 0), i->shape->rank, i->shape->dims);
    if (!r)
        return NULL;
    void *results[] = {r->data};
    body_run(e, b, params, results, r->count);
    return eval_cast(e, i, r, i->shape->type);
}
