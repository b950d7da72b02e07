/* ragged-dot: one dimension r of lhs falls into G groups, whose sizes are the last dimension of the third operand; e_g is the end of group g.
 * Source: reference operations 9.2.
 *
 *   r free         lhs [b, m, k]  rhs [g, b, k, n]  ->  [b, m, n]     row m uses the rhs of the group it lies in, rows behind the last are 0
 *   r contracting  lhs [b, m, k]  rhs [b, k, n]     ->  [g, b, m, n]  group g sums over its own k alone
 *   r batch        lhs [b, m, k]  rhs [b, k, n]     ->  [b, m, n]     a dot; batches behind the last group are 0
 *
 * In memory order r splits its list of dimensions: those before it count through `outer` positions, those after it are `inner` elements. Sizes
 * of one dimension hold for all outer positions, else there is a row of sizes for each. Ends are clamped to r. */
#include <string.h>

#include "eval/dot.h"
#include "eval/gemm.h"

EvalFn eval_ragged_dot;

typedef struct Ragged Ragged;
struct Ragged {
    Eval          *e;
    const Inst    *i;
    DotOperand     l, r;
    Ints           list;                 /* of l's dimensions: the one that r is in */
    int64_t        outer, length, inner; /* the list before r, r, the list behind r */
    int64_t        n_groups;
    Literal       *ends;            /* of the groups, shaped as their sizes */
    void         (*run)(const Ragged *);
    Literal       *lhs, *rhs, *out; /* in the order above and the type that is computed in */
    int64_t        batch, m, n, k;
};

/* The places [*from, *to) of r in group g. row: of the sizes, when each outer position has its own. */
static void group_range(const Ragged *v, int64_t row, int64_t g, int64_t *from, int64_t *to)
{
    const int64_t *end = (const int64_t *)v->ends->data + (v->ends->rank == 1 ? 0 : row * v->n_groups);
    *from = g > 0 ? end[g - 1] : 0;
    *to = end[g];
}

/* c[rows, n] += a[rows, k] b[k, n], from these elements on. */
static void multiply(const Ragged *v, int64_t rows, int64_t k, const void *a, int64_t a_at, int64_t b_at, int64_t c_at)
{
    int bytes = type_bytes(v->out->type);
    eval_gemm(v->out->type, rows, v->n, k, (const char *)a + a_at * bytes, (const char *)v->rhs->data + b_at * bytes,
              (char *)v->out->data + c_at * bytes);
}

static void rows_by_group(const Ragged *v)
{
    for (int64_t b = 0; b < v->batch; b++)
        for (int64_t p = 0; p < v->outer; p++)
            for (int64_t g = 0; g < v->n_groups; g++) {
                int64_t from, to;
                group_range(v, b * v->outer + p, g, &from, &to);
                int64_t row = ((b * v->outer + p) * v->length + from) * v->inner; /* among all batches */
                multiply(v, (to - from) * v->inner, v->k, v->lhs->data, row * v->k, (g * v->batch + b) * v->k * v->n, row * v->n);
            }
}

/* Columns [from, to) of a matrix of v->m rows and v->k columns. */
static void copy_columns(const Ragged *v, const char *matrix, int64_t from, int64_t to, char *columns)
{
    int bytes = type_bytes(v->out->type);
    for (int64_t row = 0; row < v->m; row++)
        memcpy(columns + row * (to - from) * bytes, matrix + (row * v->k + from) * bytes, (size_t)((to - from) * bytes));
}

static void sums_by_group(const Ragged *v)
{
    Literal *columns = eval_new(v->e, v->i, v->out->type, 2, (int64_t[]){v->m, v->k});
    int bytes = type_bytes(v->out->type);
    for (int64_t g = 0; g < v->n_groups && columns; g++)
        for (int64_t b = 0; b < v->batch; b++)
            for (int64_t p = 0; p < v->outer; p++) {
                int64_t from, to;
                group_range(v, b * v->outer + p, g, &from, &to);
                from = (p * v->length + from) * v->inner;
                to = (p * v->length + to) * v->inner;
                copy_columns(v, (const char *)v->lhs->data + b * v->m * v->k * bytes, from, to, columns->data);
                multiply(v, v->m, to - from, columns->data, 0, (b * v->k + from) * v->n, (g * v->batch + b) * v->m * v->n);
            }
    eval_drop(v->e, columns);
}

static void batches_in_groups(const Ragged *v)
{
    for (int64_t p = 0; p < v->outer; p++) {
        int64_t from, to;
        group_range(v, p, v->n_groups - 1, &from, &to);
        for (int64_t b = p * v->length * v->inner; b < (p * v->length + to) * v->inner; b++)
            multiply(v, v->m, v->k, v->lhs->data, b * v->m * v->k, b * v->k * v->n, b * v->m * v->n);
    }
}

/* The clamped ends of all groups. */
static Literal *group_ends(Eval *e, const Inst *i, const Literal *sizes, int64_t length)
{
    Literal *ends = eval_new(e, i, TYPE_S64, sizes->rank, sizes->dims);
    int64_t n_groups = sizes->dims[sizes->rank - 1], end = 0;
    for (int64_t j = 0; ends && j < sizes->count; j++) {
        int64_t size = literal_get_s64(sizes, j);
        if (size < 0) {
            eval_drop(e, ends);
            return eval_fail(e, i, "ragged-dot %%%s: group size %lld is no number of rows", i->name, (long long)size);
        }
        if (j % n_groups == 0)
            end = 0;
        end = size < length - end ? end + size : length;
        ((int64_t *)ends->data)[j] = end;
    }
    return ends;
}

static void split_list(Ragged *v, const Literal *lhs, int64_t ragged)
{
    v->outer = v->inner = 1;
    bool behind = false;
    for (int32_t k = 0; k < v->list.n; k++)
        if (v->list.v[k] == ragged)
            behind = true;
        else
            *(behind ? &v->inner : &v->outer) *= lhs->dims[v->list.v[k]];
    v->length = lhs->dims[ragged];
}

static bool prepare(Ragged *v, Literal **x)
{
    Eval *e = v->e;
    const Inst *i = v->i;
    int64_t ragged = inst_ints(i, ATTR_LHS_RAGGED_DIMS).v[0];
    Ints group = inst_ints(i, ATTR_RHS_GROUP_DIMS), rhs_batch = inst_ints(i, ATTR_RHS_BATCH_DIMS);
    v->l = dot_operand(e->scratch, x[0], inst_ints(i, ATTR_LHS_BATCH_DIMS), inst_ints(i, ATTR_LHS_CONTRACTING_DIMS));
    Ints outside = ints_make(e->scratch, group.n + rhs_batch.n); /* of each product: the group, then the batch */
    for (int32_t k = 0; k < outside.n; k++)
        *ints_at(outside, k) = k < group.n ? group.v[k] : rhs_batch.v[k - group.n];
    v->r = dot_operand(e->scratch, x[1], outside, inst_ints(i, ATTR_RHS_CONTRACTING_DIMS));
    bool batch = ints_has(v->l.batch, ragged), contracting = ints_has(v->l.contracting, ragged);
    v->list = batch ? v->l.batch : contracting ? v->l.contracting : v->l.free;
    v->run = batch ? batches_in_groups : contracting ? sums_by_group : rows_by_group;
    split_list(v, x[0], ragged);
    v->n_groups = x[2]->dims[x[2]->rank - 1];
    v->ends = group_ends(e, i, x[2], v->length);
    v->batch = dot_count(x[0], v->l.batch);
    v->k = dot_count(x[0], v->l.contracting);
    v->m = v->l.free_count;
    v->n = v->r.free_count;
    Type t = product_type(i->shape->type);
    v->lhs = dot_in_order(e, i, eval_cast(e, i, eval_move(x, 0), t), v->l.batch, v->l.free, v->l.contracting);
    v->rhs = dot_in_order(e, i, eval_cast(e, i, eval_move(x, 1), t), v->r.batch, v->r.contracting, v->r.free);
    v->out = dot_zeros(e, i, t, shape_count(i->shape), 1, 1);
    int64_t work = 0;
    return !e->failed && size_mul(v->lhs->count, v->n, &work) && eval_work(e, i, work);
}

Literal *eval_ragged_dot(Eval *e, const Inst *i, Literal **x)
{
    Ragged v = {.e = e, .i = i};
    if (prepare(&v, x) && v.n_groups > 0 && v.out->count > 0)
        v.run(&v);
    eval_drop(e, v.lhs);
    eval_drop(e, v.rhs);
    eval_drop(e, v.ends);
    if (!e->failed)
        return dot_finish(e, i, v.out);
    eval_drop(e, v.out);
    return NULL;
}
