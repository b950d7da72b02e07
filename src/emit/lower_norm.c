/* Batch normalization: the computation that it stands for, out of ordinary instructions, is lowered as the body of a fusion is. Comes in: the
 * instruction; leaves: that body. Every step rounds to the element type, N and epsilon too. What there is once a feature goes to memory, so
 * that the loops over all elements only read it. Source: reference operations 12. */
#include "emit/lower.h"

typedef struct Norm {
    Module      *module;
    Comp        *body, *add;
    const Inst  *i;
    Type         type;
    const Shape *whole, *vector; /* all elements; one a feature */
    int64_t      feature, count; /* count: elements a feature */
    Inst        *in[5];
    Map         *materialise;
} Norm;

static Inst *step(Norm *n, Op op, Inst *x, Inst *y)
{
    return inst_new(n->body, NULL, op, x->shape, y ? 2 : 1, (Inst *const[]){ x, y }, NULL);
}

static Inst *named(Norm *n, Inst *x, const char *name)
{
    x->name = inst_unique_name(n->module, name);
    return x;
}

/* A value for each feature that later loops read. */
static Inst *kept(Norm *n, Inst *x, const char *name)
{
    map_put(n->materialise, x, n->body);
    return named(n, x, name);
}

static Inst *scalar(Norm *n, Comp *c, double v)
{
    Literal *l = literal_for_shape(shape_array(n->module->arena, n->type, 0, NULL), true);
    literal_set_f64(l, 0, v, 0);
    return inst_constant(c, NULL, l, NULL);
}

static Inst *splat(Norm *n, const Shape *s, double v)
{
    Inst *x = scalar(n, n->body, v);
    return inst_new(n->body, NULL, OP_BROADCAST, s, 1, &x, NULL);
}

/* A value for each feature, at every element. */
static Inst *spread(Norm *n, Inst *v)
{
    Inst *x = inst_new(n->body, NULL, OP_BROADCAST, n->whole, 1, &v, NULL);
    inst_set_ints(x, ATTR_DIMENSIONS, (Ints){ &n->feature, 1 });
    return x;
}

/* Over everything but the feature. */
static Inst *sum(Norm *n, Inst *x)
{
    int64_t *dims = ARENA_ARRAY(n->module->arena, int64_t, n->whole->rank);
    int32_t  k = 0;
    Inst    *r = inst_new(n->body, NULL, OP_REDUCE, n->vector, 2, (Inst *const[]){ x, scalar(n, n->body, 0) }, NULL);
    for (int32_t d = 0; d < n->whole->rank; d++)
        if (d != n->feature)
            dims[k++] = d;
    inst_set_ints(r, ATTR_DIMENSIONS, (Ints){ dims, k });
    inst_set_callees(r, 1, &n->add);
    return r;
}

static double epsilon(const Norm *n)
{
    const Attr *a = inst_attr(n->i, ATTR_EPSILON);
    return a ? a->value.f : 0;
}

/* var + epsilon */
static Inst *widened(Norm *n, Inst *var)
{
    return step(n, OP_ADD, var, splat(n, n->vector, epsilon(n)));
}

/* mean = sum(x) / N; var = sum(x x) / N - mean mean; y = ((x - mean) rsqrt(var + e)) scale + offset */
static void training(Norm *n)
{
    Inst *x = n->in[0], *count = splat(n, n->vector, (double)n->count);
    Inst *mean = kept(n, step(n, OP_DIVIDE, sum(n, x), count), "mean");
    Inst *squares = step(n, OP_DIVIDE, sum(n, step(n, OP_MULTIPLY, x, x)), count);
    Inst *var = kept(n, step(n, OP_SUBTRACT, squares, step(n, OP_MULTIPLY, mean, mean)), "var");
    Inst *inverse = kept(n, step(n, OP_RSQRT, widened(n, var), NULL), "inverse");
    Inst *y = step(n, OP_MULTIPLY, step(n, OP_SUBTRACT, x, spread(n, mean)), spread(n, inverse));
    y = step(n, OP_ADD, step(n, OP_MULTIPLY, y, spread(n, n->in[1])), spread(n, n->in[2]));
    n->body->root = inst_new(n->body, NULL, OP_TUPLE, n->i->shape, 3, (Inst *const[]){ y, mean, var }, NULL);
}

/* s = scale rsqrt(var + e); y = x s + (offset - mean s) */
static void inference(Norm *n)
{
    Inst *s = kept(n, step(n, OP_MULTIPLY, n->in[1], step(n, OP_RSQRT, widened(n, n->in[4]), NULL)), "factor");
    Inst *shift = kept(n, step(n, OP_SUBTRACT, n->in[2], step(n, OP_MULTIPLY, n->in[3], s)), "shift");
    n->body->root = step(n, OP_ADD, step(n, OP_MULTIPLY, n->in[0], spread(n, s)), spread(n, shift));
}

/* goffset = sum(gy); S = sum(gy (x - mean)); gscale = S rsqrt(var + e);
 * gx = (scale rsqrt(var + e) / N) ((gy N - goffset) - (S (x - mean)) / (var + e)) */
static void grad(Norm *n)
{
    Inst *gy = n->in[4], *wide = kept(n, widened(n, n->in[3]), "wide"), *inverse = step(n, OP_RSQRT, wide, NULL);
    Inst *goffset = kept(n, sum(n, gy), "goffset");
    Inst *centered = step(n, OP_SUBTRACT, n->in[0], spread(n, n->in[2]));
    Inst *s = kept(n, sum(n, step(n, OP_MULTIPLY, gy, centered)), "projection");
    Inst *gscale = kept(n, step(n, OP_MULTIPLY, s, inverse), "gscale");
    Inst *factor = kept(n, step(n, OP_DIVIDE, step(n, OP_MULTIPLY, n->in[1], inverse), splat(n, n->vector, (double)n->count)), "factor");
    Inst *left = step(n, OP_SUBTRACT, step(n, OP_MULTIPLY, gy, splat(n, n->whole, (double)n->count)), spread(n, goffset));
    Inst *right = step(n, OP_DIVIDE, step(n, OP_MULTIPLY, spread(n, s), centered), spread(n, wide));
    Inst *gx = step(n, OP_MULTIPLY, spread(n, factor), step(n, OP_SUBTRACT, left, right));
    n->body->root = inst_new(n->body, NULL, OP_TUPLE, n->i->shape, 3, (Inst *const[]){ gx, gscale, goffset }, NULL);
}

/* add(a, b) of two scalars. */
static Comp *addition(Norm *n)
{
    Comp        *c = comp_new(n->module, "add");
    const Shape *s = shape_array(n->module->arena, n->type, 0, NULL);
    Inst        *p[2] = { inst_parameter(c, NULL, 0, s, "a"), inst_parameter(c, NULL, 1, s, "b") };
    c->root = inst_new(c, NULL, OP_ADD, s, 2, p, NULL);
    return c;
}

bool is_norm(const Inst *i)
{
    return i->op == OP_BATCH_NORM_TRAINING || i->op == OP_BATCH_NORM_INFERENCE || i->op == OP_BATCH_NORM_GRAD;
}

bool norm_supported(const Inst *i, Diag *d)
{
    for (int32_t k = 1; k < i->n_operands; k++)
        if (inst_operand(i, k)->shape->type != inst_operand(i, 0)->shape->type) {
            inst_error(d, i, "%s cannot be compiled with operands of different types", op_name(i->op));
            return false;
        }
    return true;
}

const Comp *norm_body(Arena *a, const Inst *i, Map *materialise)
{
    const Shape *x = inst_operand(i, 0)->shape;
    Norm         n = { .module = module_new(), .i = i, .type = x->type, .feature = inst_int(i, ATTR_FEATURE_INDEX, 0), .materialise = materialise };
    int64_t      features = x->dims[n.feature];
    arena_defer(a, (void (*)(void *))module_free, n.module);
    n.count = features > 0 ? shape_count(x) / features : 0;
    n.whole = shape_copy(n.module->arena, x);
    n.vector = shape_array(n.module->arena, n.type, 1, &features);
    n.add = addition(&n);
    n.body = comp_new(n.module, "norm");
    for (int32_t k = 0; k < i->n_operands; k++)
        n.in[k] = inst_parameter(n.body, NULL, k, shape_copy(n.module->arena, inst_operand(i, k)->shape), inst_operand(i, k)->name);
    switch (i->op) {
    case OP_BATCH_NORM_TRAINING: training(&n); break;
    case OP_BATCH_NORM_INFERENCE: inference(&n); break;
    case OP_BATCH_NORM_GRAD: grad(&n); break;
    default: die("%s is no batch normalization", op_name(i->op));
    }
    return n.body;
}
