/* Products and convolutions as XLA's GPU compiler leaves them, calls of cuBLAS and cuDNN that say all of it in their configuration:
 *
 *     out = epilogue(alpha * dot(lhs, rhs) + beta * c + bias)
 *     out = activation(conv_result_scale * convolution(input, filter) + side_input_scale * side + bias)
 *
 * Products of bf16 and f16 are summed, scaled and finished in f32 and rounded once. The memory that the library works in is part of the result; nobody
 * reads it, and here it is zeros. Source: XLA's xla/service/gpu/transforms/gemm_rewriter.cc, xla/service/gpu/backend_configs.proto,
 * xla/service/gpu/transforms/cudnn_fused_conv_rewriter.cc. */
#include <stdlib.h>
#include <string.h>

#include "ir/call_build.h"
#include "ir/infer.h"

/* A number of the configuration. */
static bool real_option(Build *b, const char *name, bool required, double *v)
{
    const CallOption *o = call_option(&b->options, name);
    char             *end;
    if (!o && !required) {
        *v = 0;
        return true;
    }
    if (!o) {
        build_refuse(b, "its backend_config says no %s", name);
        return false;
    }
    *v = o->is_string ? strtod(o->text, &end) : o->real;
    if (!o->is_number && !o->is_real && !(o->is_string && *o->text && !*end)) {
        build_refuse(b, "its %s is %s", name, o->text);
        return false;
    }
    return true;
}

/* A list of dimensions below rank, as numbers in quotes. */
static bool dims_option(Build *b, const char *name, int32_t rank, Ints *out)
{
    const CallOption *o = call_option(&b->options, name);
    CallOption       *e = NULL;
    int32_t           n = 0;
    if (o)
        e = call_option_entries(b->arena, o, &n);
    int64_t *v = ARENA_ARRAY(b->module->arena, int64_t, n + 1);
    for (int32_t k = 0; k < n; k++) {
        char *end;
        v[k] = strtoll(e[k].text, &end, 10);
        bool ok = *e[k].text && !*end && v[k] >= 0 && v[k] < rank;
        for (int32_t j = 0; j < k; j++)
            ok &= v[j] != v[k];
        if (!ok) {
            build_refuse(b, "its %s is %s", name, o->text);
            return false;
        }
    }
    *out = (Ints){ v, n };
    return true;
}

static bool has(Ints l, int64_t v)
{
    for (int32_t k = 0; k < l.n; k++)
        if (l.v[k] == v)
            return true;
    return false;
}

/* The type in which sums of products of t are held. */
static Type sum_type(Type t)
{
    return type_is_float(t) && type_bits(t) < 32 ? TYPE_F32 : t == TYPE_S8 ? TYPE_S32 : t;
}

static Inst *as_type(Build *b, Type t, Inst *x)
{
    return x->shape->type == t ? x : build_unary(b, OP_CONVERT, t, x);
}

static Inst *scaled(Build *b, Inst *x, double re, double im)
{
    if (re == 1 && im == 0)
        return x;
    if (!type_is_complex(x->shape->type))
        return build_binary(b, OP_MULTIPLY, x, build_real(b, x->shape, re));
    const Shape *part = build_dense(b, x->shape->type == TYPE_C64 ? TYPE_F32 : TYPE_F64, x->shape);
    Inst        *parts[] = { build_real(b, part, re), build_real(b, part, im) };
    return build_binary(b, OP_MULTIPLY, x, inst_new(b->body, NULL, OP_COMPLEX, x->shape, 2, parts, NULL));
}

/* The call's result: the values, and zeros for each array that follows them. */
static Inst *with_workspace(Build *b, int32_t n, Inst *const *values)
{
    const Shape *s = b->call->shape;
    if (!shape_is_tuple(s))
        return n == 1 ? values[0] : build_refuse(b, "its result is no tuple of %d arrays", n);
    if (s->n_elems < n || s->n_elems > n + 1)
        return build_refuse(b, "its result is %s", shape_brief(b->arena, s));
    Inst **parts = ARENA_ARRAY(b->arena, Inst *, s->n_elems);
    memcpy(parts, values, sizeof *parts * (size_t)n);
    if (s->n_elems > n) {
        const Shape *room = s->elems[n];
        if (!shape_is_array(room) || room->rank != 1 || type_bits(room->type) != 8 || !type_is_int(room->type))
            return build_refuse(b, "its result is %s", shape_brief(b->arena, s));
        parts[n] = build_whole(b, build_dense(b, room->type, room), 0);
    }
    return build_tuple(b, s->n_elems, parts);
}

/* ---- products ---- */

typedef struct Product {
    Ints lhs_contracted, rhs_contracted, lhs_batch, rhs_batch;
} Product;

static bool same_sizes(const Shape *x, Ints xs, const Shape *y, Ints ys)
{
    if (xs.n != ys.n)
        return false;
    for (int32_t k = 0; k < xs.n; k++)
        if (x->dims[xs.v[k]] != y->dims[ys.v[k]])
            return false;
    return true;
}

static bool read_product(Build *b, Product *p)
{
    const Shape *x = b->in[0]->shape, *y = b->in[1]->shape;
    if (!dims_option(b, "lhs_contracting_dimensions", x->rank, &p->lhs_contracted) ||
        !dims_option(b, "rhs_contracting_dimensions", y->rank, &p->rhs_contracted) || !dims_option(b, "lhs_batch_dimensions", x->rank, &p->lhs_batch) ||
        !dims_option(b, "rhs_batch_dimensions", y->rank, &p->rhs_batch))
        return false;
    bool ok = same_sizes(x, p->lhs_contracted, y, p->rhs_contracted) && same_sizes(x, p->lhs_batch, y, p->rhs_batch);
    for (int32_t k = 0; k < p->lhs_batch.n; k++)
        ok &= !has(p->lhs_contracted, p->lhs_batch.v[k]) && !has(p->rhs_contracted, p->rhs_batch.v[k]);
    if (!ok)
        build_refuse(b, "its dot_dimension_numbers do not fit %s and %s", shape_brief(b->arena, x), shape_brief(b->arena, y));
    return ok;
}

static Inst *product(Build *b, const Product *p, Type t)
{
    const Shape *x = b->in[0]->shape, *y = b->in[1]->shape;
    int64_t     *dims = ARENA_ARRAY(b->module->arena, int64_t, x->rank + y->rank);
    int32_t      n = 0;
    for (int32_t k = 0; k < p->lhs_batch.n; k++)
        dims[n++] = x->dims[p->lhs_batch.v[k]];
    for (int32_t k = 0; k < x->rank; k++)
        if (!has(p->lhs_batch, k) && !has(p->lhs_contracted, k))
            dims[n++] = x->dims[k];
    for (int32_t k = 0; k < y->rank; k++)
        if (!has(p->rhs_batch, k) && !has(p->rhs_contracted, k))
            dims[n++] = y->dims[k];
    Inst *d = inst_new(b->body, NULL, OP_DOT, shape_array(b->module->arena, t, n, dims), 2, b->in, NULL);
    inst_set_ints(d, ATTR_LHS_CONTRACTING_DIMS, p->lhs_contracted);
    inst_set_ints(d, ATTR_RHS_CONTRACTING_DIMS, p->rhs_contracted);
    if (p->lhs_batch.n) {
        inst_set_ints(d, ATTR_LHS_BATCH_DIMS, p->lhs_batch);
        inst_set_ints(d, ATTR_RHS_BATCH_DIMS, p->rhs_batch);
    }
    return d;
}

/* The vector lies along the result's columns: its k-th most minor dimension along the result's k-th most minor one. */
static Inst *columns(Build *b, Inst *bias, const Shape *result, const Shape *like, int32_t n_columns)
{
    const Shape *s = bias->shape;
    int64_t     *dims = ARENA_ARRAY(b->module->arena, int64_t, s->rank + 1);
    bool         ok = shape_is_array(s) && s->rank == n_columns;
    for (int32_t k = 0; ok && k < s->rank; k++) {
        int64_t to = layout_dim(result, k), from = layout_dim(s, k);
        dims[from] = to;
        ok = s->dims[from] == result->dims[to];
    }
    for (int32_t k = 1; ok && k < s->rank; k++)
        ok = dims[k] > dims[k - 1];
    if (!ok)
        return build_refuse(b, "it does not add %s to %s", shape_brief(b->arena, s), shape_brief(b->arena, result));
    Inst *x = as_type(b, like->type, bias);
    Inst *r = inst_new(b->body, NULL, OP_BROADCAST, like, 1, &x, NULL);
    inst_set_ints(r, ATTR_DIMENSIONS, (Ints){ dims, s->rank });
    return r;
}

/* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) */
static Inst *gelu(Build *b, Inst *x)
{
    Inst *cube = build_binary(b, OP_MULTIPLY, build_binary(b, OP_MULTIPLY, x, x), x);
    Inst *inner = build_binary(b, OP_ADD, x, build_binary(b, OP_MULTIPLY, cube, build_real(b, x->shape, 0.044715)));
    Inst *t = build_unary(b, OP_TANH, x->shape->type, build_binary(b, OP_MULTIPLY, inner, build_real(b, x->shape, 0.79788456080286536)));
    Inst *factor = build_binary(b, OP_ADD, t, build_whole(b, x->shape, 1));
    return build_binary(b, OP_MULTIPLY, build_binary(b, OP_MULTIPLY, x, build_real(b, x->shape, 0.5)), factor);
}

typedef enum Activation { ACT_NONE, ACT_RELU, ACT_GELU, ACT_SILU } Activation;

typedef struct Epilogue {
    const char *name;
    bool        bias, aux; /* a vector is added; what the activation is made of is a result, too */
    Activation  activation;
} Epilogue;

static const Epilogue *find_epilogue(Build *b)
{
    static const Epilogue rows[] = {
        { "DEFAULT", false, false, ACT_NONE },  { "BIAS", true, false, ACT_NONE },      { "RELU", false, false, ACT_RELU },
        { "BIAS_RELU", true, false, ACT_RELU }, { "GELU", false, false, ACT_GELU },     { "GELU_AUX", false, true, ACT_GELU },
        { "BIAS_GELU", true, false, ACT_GELU }, { "BIAS_GELU_AUX", true, true, ACT_GELU }, { "SILU", false, false, ACT_SILU },
        { "BIAS_SILU", true, false, ACT_SILU },
    };
    const CallOption *o = call_option(&b->options, "epilogue");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (strcmp(o ? o->text : "DEFAULT", rows[k].name) == 0)
            return &rows[k];
    build_refuse(b, "its epilogue is %s", o->text);
    return NULL;
}

static Inst *activated(Build *b, Activation a, Inst *x)
{
    switch (a) {
    case ACT_NONE: return x;
    case ACT_RELU: return build_binary(b, OP_MAXIMUM, x, build_whole(b, x->shape, 0));
    case ACT_GELU: return gelu(b, x);
    case ACT_SILU: return build_binary(b, OP_MULTIPLY, x, build_unary(b, OP_LOGISTIC, x->shape->type, x));
    }
    die("activation %d", (int)a);
}

Inst *mean_gemm(Build *b)
{
    double          alpha, alpha_im, beta;
    Product         p;
    const Epilogue *e;
    const Shape    *out = build_result(b, 0);
    if (!build_arrays(b, false))
        return NULL;
    if (!call_options_read(b->arena, b->call, &b->options))
        return build_refuse(b, "its backend_config is no dictionary");
    if (!real_option(b, "alpha_real", true, &alpha) || !real_option(b, "alpha_imag", false, &alpha_im) || !real_option(b, "beta", false, &beta) ||
        !(e = find_epilogue(b)) || !build_takes(b, 2 + (beta != 0) + e->bias) || !read_product(b, &p))
        return NULL;
    Type in = b->in[0]->shape->type, sum = sum_type(in);
    if (in != b->in[1]->shape->type || !shape_is_array(out) || (in != TYPE_S8 && !type_is_float(in) && !type_is_complex(in)))
        return build_refuse(b, "it does not make %s of %s and %s", shape_brief(b->arena, out), shape_brief(b->arena, b->in[0]->shape),
                            shape_brief(b->arena, b->in[1]->shape));
    bool plain = alpha == 1 && alpha_im == 0 && beta == 0 && !e->bias && e->activation == ACT_NONE;
    if (type_is_int(sum) && !plain)
        sum = TYPE_F32;
    if ((alpha_im != 0 && !type_is_complex(sum)) || (e->activation != ACT_NONE && type_is_complex(sum)))
        return build_refuse(b, "it does not take %s", type_name(in));
    Inst *x = product(b, &p, plain ? out->type : sum);
    if (!shape_same_dims(x->shape, out))
        return build_refuse(b, "its result is %s, not %s", shape_brief(b->arena, x->shape), shape_brief(b->arena, out));
    if (plain)
        return with_workspace(b, 1, &x);
    x = scaled(b, x, alpha, alpha_im);
    if (beta != 0) {
        if (!shape_same_dims(b->in[2]->shape, out))
            return build_refuse(b, "it does not add %s to %s", shape_brief(b->arena, b->in[2]->shape), shape_brief(b->arena, out));
        x = build_binary(b, OP_ADD, x, scaled(b, as_type(b, sum, b->in[2]), beta, 0));
    }
    if (e->bias) {
        int32_t n_columns = b->in[1]->shape->rank - p.rhs_batch.n - p.rhs_contracted.n;
        Inst   *bias = columns(b, b->in[2 + (beta != 0)], out, x->shape, n_columns);
        if (!bias)
            return NULL;
        x = build_binary(b, OP_ADD, x, bias);
    }
    Inst        *values[] = { as_type(b, out->type, activated(b, e->activation, x)), NULL };
    const Shape *aux = build_result(b, 1);
    if (e->aux && !shape_is_array(aux))
        return build_refuse(b, "its result is %s", shape_brief(b->arena, b->call->shape));
    if (e->aux)
        values[1] = as_type(b, aux->type, x);
    return with_workspace(b, 1 + e->aux, values);
}

/* ---- convolutions ---- */

static Inst *convolution(Build *b, Type t)
{
    static const AttrId ids[] = { ATTR_WINDOW, ATTR_DIM_LABELS };
    Inst *x = inst_new(b->body, NULL, OP_CONVOLUTION, build_dense(b, t, build_result(b, 0)), 2, b->in, NULL);
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
        const Attr *a = inst_attr(b->call, ids[k]);
        if (!a)
            return build_refuse(b, "it says no %s", k ? "dim_labels" : "window");
        inst_set_attr(x, *a);
    }
    inst_set_int(x, ATTR_FEATURE_GROUP_COUNT, inst_int(b->call, ATTR_FEATURE_GROUP_COUNT, 1));
    return x;
}

static bool is_convolution(Build *b, Inst *x)
{
    Diag         d;
    const Shape *s;
    diag_init(&d, b->arena);
    s = infer_shape(b->arena, x, &d);
    if (!s || !shape_same_dims(s, x->shape)) {
        build_refuse(b, "it is no convolution of %s and %s to %s", shape_brief(b->arena, b->in[0]->shape), shape_brief(b->arena, b->in[1]->shape),
                     shape_brief(b->arena, x->shape));
        return false;
    }
    return true;
}

/* The filter of convForward, with bias and activation of convBiasActivationForward. */
Inst *mean_convolution(Build *b)
{
    bool         fused = *b->argument != '\0';
    double       scale, side;
    const Shape *out = build_result(b, 0);
    if (!build_arrays(b, false))
        return NULL;
    if (!call_options_read(b->arena, b->call, &b->options))
        return build_refuse(b, "its backend_config is no dictionary");
    if (!real_option(b, "conv_result_scale", true, &scale) || !real_option(b, "side_input_scale", false, &side) ||
        !build_takes(b, 2 + fused + (fused && side != 0)))
        return NULL;
    Type in = b->in[0]->shape->type;
    if (!shape_is_array(out) || in != b->in[1]->shape->type || (in != TYPE_S8 && !type_is_float(in)) || (!fused && side != 0))
        return build_refuse(b, "it does not make %s of %s and %s", shape_brief(b->arena, out), shape_brief(b->arena, b->in[0]->shape),
                            shape_brief(b->arena, b->in[1]->shape));
    const CallOption *mode = call_option(&b->options, "activation_mode");
    bool              relu = mode && (strcmp(mode->text, "kRelu") == 0 || strcmp(mode->text, "2") == 0);
    if (mode && !relu && strcmp(mode->text, "kNone") != 0 && strcmp(mode->text, "0") != 0)
        return build_refuse(b, "its activation_mode is %s", mode->text);
    bool  plain = scale == 1 && !fused && !relu;
    Type  sum = plain ? out->type : type_is_int(in) ? TYPE_F32 : sum_type(in);
    Inst *x = convolution(b, sum);
    if (!x || !is_convolution(b, x))
        return NULL;
    x = scaled(b, x, scale, 0);
    if (fused && side != 0) {
        if (!shape_same_dims(b->in[3]->shape, out))
            return build_refuse(b, "it does not add %s to %s", shape_brief(b->arena, b->in[3]->shape), shape_brief(b->arena, out));
        x = build_binary(b, OP_ADD, x, scaled(b, as_type(b, sum, b->in[3]), side, 0));
    }
    if (fused) {
        const Shape *bias = b->in[2]->shape;
        int64_t     *dims = ARENA_NEW(b->module->arena, int64_t);
        *dims = inst_attr(b->call, ATTR_DIM_LABELS)->value.dim_labels->out_feature;
        if (bias->rank != 1 || bias->dims[0] != out->dims[*dims])
            return build_refuse(b, "it does not add %s to %s", shape_brief(b->arena, bias), shape_brief(b->arena, out));
        Inst *v = as_type(b, sum, b->in[2]), *spread = inst_new(b->body, NULL, OP_BROADCAST, x->shape, 1, &v, NULL);
        inst_set_ints(spread, ATTR_DIMENSIONS, (Ints){ dims, 1 });
        x = build_binary(b, OP_ADD, x, spread);
    }
    x = as_type(b, out->type, activated(b, relu ? ACT_RELU : ACT_NONE, x));
    return with_workspace(b, 1, &x);
}
