/* Batch normalization, step by step as ordinary opcodes on whole arrays: each step rounds to the element type.
 * Statistics are per index of the feature dimension, over all others. Source: reference operations 12. */
#include <string.h>

#include "eval/arith.h"
#include "eval/engine.h"
#include "eval/walk.h"

EvalFn eval_batch_norm;

typedef struct Norm {
    Eval       *e;
    const Inst *i;
    Type        type;
    int32_t     rank, feature;
    const int64_t *dims;
    Literal    *x;
    VEC(Literal *) made; /* all intermediate values, dropped at the end */
} Norm;

static Literal *made(Norm *n, Literal *l)
{
    if (l)
        vec_push(n->e->scratch, &n->made, l);
    return l;
}

/* op(a, b) or, with b NULL, op(a): equal dimensions. NULL passes through. */
static Literal *apply(Norm *n, Op op, const Literal *a, const Literal *b)
{
    Arith k;
    if (n->e->failed || !arith_of(&k, op, n->type, b ? 2 : 1))
        return NULL;
    Literal *r = made(n, eval_new(n->e, n->i, n->type, a->rank, a->dims));
    const void *x[] = {a->data, b ? b->data : NULL};
    if (r)
        arith_run(&k, r->data, x, r->count);
    return r;
}

/* A value per feature for every element of x. */
static Literal *spread(Norm *n, const Literal *v)
{
    Literal *r = v ? made(n, eval_new(n->e, n->i, n->type, n->rank, n->dims)) : NULL;
    if (!r)
        return NULL;
    Odometer o = {.rank = n->rank, .arrays = 2};
    memcpy(o.dims, n->dims, (size_t)n->rank * sizeof n->dims[0]);
    walk_strides(n->rank, n->dims, o.stride[0]);
    o.stride[1][n->feature] = 1;
    walk_copy(&o, r->data, v->data, type_bytes(n->type));
    return r;
}

/* One number per feature. */
static Literal *number(Norm *n, double v)
{
    Literal *r = made(n, eval_new(n->e, n->i, n->type, 1, &n->dims[n->feature]));
    for (int64_t k = 0; r && k < r->count; k++)
        literal_set_f64(r, k, v, 0);
    return r;
}

static Literal *sum(Norm *n, const Literal *x)
{
    bool reduced[WALK_RANK];
    for (int32_t d = 0; d < n->rank; d++)
        reduced[d] = d != n->feature;
    Literal *acc = x ? eval_new(n->e, n->i, TYPE_F64, 1, &n->dims[n->feature]) : NULL;
    if (acc)
        memset(acc->data, 0, (size_t)literal_bytes(acc));
    return acc ? made(n, eval_sum(n->e, n->i, x, reduced, acc, n->type)) : NULL;
}

/* rsqrt(var + epsilon) */
static Literal *inverse_deviation(Norm *n, const Literal *var, const Literal *epsilon)
{
    return apply(n, OP_RSQRT, apply(n, OP_ADD, var, epsilon), NULL);
}

/* mean = sum(x) / N; var = sum(x x) / N - mean mean; y = ((x - mean) rsqrt(var + e)) scale + offset */
static Literal *training(Norm *n, Literal **x, const Literal *count, const Literal *epsilon)
{
    Literal *mean = apply(n, OP_DIVIDE, sum(n, n->x), count);
    Literal *squares = apply(n, OP_DIVIDE, sum(n, apply(n, OP_MULTIPLY, n->x, n->x)), count);
    Literal *var = apply(n, OP_SUBTRACT, squares, apply(n, OP_MULTIPLY, mean, mean));
    Literal *centered = apply(n, OP_SUBTRACT, n->x, spread(n, mean));
    Literal *y = apply(n, OP_MULTIPLY, centered, spread(n, inverse_deviation(n, var, epsilon)));
    y = apply(n, OP_ADD, apply(n, OP_MULTIPLY, y, spread(n, x[1])), spread(n, x[2]));
    Literal *r[] = {y, mean, var};
    for (int k = 0; k < 3 && !n->e->failed; k++)
        literal_ref(r[k]);
    return n->e->failed ? NULL : literal_tuple(3, r);
}

/* s = scale rsqrt(var + e); y = x s + (offset - mean s) */
static Literal *inference(Norm *n, Literal **x, const Literal *epsilon)
{
    Literal *s = apply(n, OP_MULTIPLY, x[1], inverse_deviation(n, x[4], epsilon));
    Literal *shift = apply(n, OP_SUBTRACT, x[2], apply(n, OP_MULTIPLY, x[3], s));
    Literal *y = apply(n, OP_ADD, apply(n, OP_MULTIPLY, n->x, spread(n, s)), spread(n, shift));
    return n->e->failed ? NULL : literal_ref(y);
}

/* goffset = sum(gy); S = sum(gy (x - mean)); gscale = S rsqrt(var + e);
 * gx = (scale rsqrt(var + e) / N) ((gy N - goffset) - (S (x - mean)) / (var + e)) */
static Literal *grad(Norm *n, Literal **x, const Literal *count, const Literal *epsilon)
{
    const Literal *scale = x[1], *mean = x[2], *var = x[3], *gy = x[4];
    Literal *rsqrt = inverse_deviation(n, var, epsilon), *goffset = sum(n, gy);
    Literal *centered = apply(n, OP_SUBTRACT, n->x, spread(n, mean));
    Literal *s = sum(n, apply(n, OP_MULTIPLY, gy, centered)), *gscale = apply(n, OP_MULTIPLY, s, rsqrt);
    Literal *factor = spread(n, apply(n, OP_DIVIDE, apply(n, OP_MULTIPLY, scale, rsqrt), count));
    Literal *left = apply(n, OP_SUBTRACT, apply(n, OP_MULTIPLY, gy, spread(n, count)), spread(n, goffset));
    Literal *right = apply(n, OP_DIVIDE, apply(n, OP_MULTIPLY, spread(n, s), centered), spread(n, apply(n, OP_ADD, var, epsilon)));
    Literal *r[] = {apply(n, OP_MULTIPLY, factor, apply(n, OP_SUBTRACT, left, right)), gscale, goffset};
    for (int k = 0; k < 3 && !n->e->failed; k++)
        literal_ref(r[k]);
    return n->e->failed ? NULL : literal_tuple(3, r);
}

Literal *eval_batch_norm(Eval *e, const Inst *i, Literal **x)
{
    const Literal *in = x[0];
    Norm n = {.e = e, .i = i, .type = in->type, .rank = in->rank, .feature = (int32_t)inst_int(i, ATTR_FEATURE_INDEX, 0),
              .dims = in->dims, .x = x[0]};
    for (int32_t k = 1; k < i->n_operands; k++)
        if (x[k]->type != n.type)
            return eval_fail(e, i, "%s %%%s: operands of different types are not supported", op_name(i->op), i->name);
    int64_t features = in->dims[n.feature];
    const Attr *a = inst_attr(i, ATTR_EPSILON);
    Literal *epsilon = number(&n, a ? a->value.f : 0), *count = number(&n, features > 0 ? (double)(in->count / features) : 0);
    Literal *r = NULL;
    if (!e->failed && i->op == OP_BATCH_NORM_TRAINING)
        r = training(&n, x, count, epsilon);
    else if (!e->failed && i->op == OP_BATCH_NORM_INFERENCE)
        r = inference(&n, x, epsilon);
    else if (!e->failed)
        r = grad(&n, x, count, epsilon);
    for (int32_t k = 0; k < n.made.n; k++)
        eval_drop(e, n.made.v[k]);
    return r;
}
