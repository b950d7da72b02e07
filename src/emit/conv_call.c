/* What a convolution is to the runtime: its dimensions by what they are, with the distances in memory. A group of features and a group of the batch are the same thing:
 * the image's part that a group reads lies so far behind the one before. A reversed dimension is the kernel's read backwards. */
#include "emit/conv_call.h"

#include <string.h>

enum {
    FEW = 16,              /* features, read and made by a group, of which loops hold all sums at once: nothing is packed (measured: 2 to 10 times as fast) */
    FEW_BYTES = 4,         /* of bytes, which loops widen one by one, read by a group */
    FEW_TERMS = 32,        /* of a sum: below that likewise */
    FEW_LINES = 4,         /* of lines of pixels */
    FEW_MADE = 64,         /* features made by a group, where sums have so few terms (measured: 1.3 to 5 times) */
    LEAST = 32768,         /* multiplications below which loops in the text are as good */
    LEAST_BANDS = 131072,  /* the same of few features, where what a call copies first is worth it */
    LEAST_PRODUCT = 4096,  /* of one product: there is one for each group and phase */
    MOST = 1 << 30,        /* the size of anything of a window, far below what would overflow */
    MOST_S8 = 1 << 16,     /* terms of a sum that fits into 32 bits whatever they are */
    MOST_U8 = 1 << 15
};

static const struct {
    Type        in, out;
    const char *symbol;
} functions[] = {
    { TYPE_F32, TYPE_F32, "hlort_conv_f32" },
    { TYPE_F64, TYPE_F64, "hlort_conv_f64" },
    { TYPE_BF16, TYPE_BF16, "hlort_conv_bf16" },
    { TYPE_BF16, TYPE_F32, "hlort_conv_bf16_f32" },
    { TYPE_F16, TYPE_F16, "hlort_conv_f16" },
    { TYPE_F16, TYPE_F32, "hlort_conv_f16_f32" },
    { TYPE_S8, TYPE_S32, "hlort_conv_s8_s32" },
    { TYPE_U8, TYPE_S32, "hlort_conv_u8_s32" },
};

static const char *symbol_of(Type lhs, Type rhs, Type out)
{
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (functions[k].in == lhs && functions[k].in == rhs && functions[k].out == out)
            return functions[k].symbol;
    return NULL;
}

/* Sums in lanes, no longer in the runtime than in the text, and without the compiler's time for tiles of every shape. */
static bool is_by_channel(const hlort_conv *v, Type in)
{
    return type_is_float(in) && hlort_conv_by_channel(v);
}

/* A few features that lie apart, of lines of pixels, which are the lanes of loops (measured, 4 of 64 x 64 by 3 x 3, f32: 1 to 1 7 times as fast, 4 to 4 1.4, 3 to 8 not as fast; bf16: 2 to 4
 * 1.4, 4 to 4 not as fast; f16: 4 to 2 1.8, 2 to 4 not as fast, nor every fourth of 1 to 1). */
static bool is_lines(const hlort_conv *v, Type in)
{
    const bool narrow = type_bits(in) < 32, f16 = in == TYPE_F16;
    if (v->in > FEW_LINES || v->out > (f16 ? FEW_LINES / 2 : narrow ? FEW_LINES : 2 * FEW_LINES) || v->in * v->out > (narrow ? 2 * FEW_LINES : FEW_LINES * FEW_LINES))
        return false;
    for (int64_t d = 0; d < v->n_spatial; d++)
        if (v->spatial[d].x == 1 && v->spatial[d].y == 1)
            return !f16 || v->spatial[d].stride == 1;
    return false;
}

static bool is_few(const hlort_conv *v, double cost, Type in)
{
    const int64_t few = type_bits(in) == 8 ? FEW_BYTES : FEW;
    int64_t terms = v->in < FEW_TERMS ? v->in : FEW_TERMS;
    if (v->groups > 1 && v->in == 1 && v->out == 1)
        return !is_by_channel(v, in);
    for (int64_t d = 0; d < v->n_spatial; d++) {
        if (v->spatial[d].base_dilation > 1)
            return false;
        terms *= v->spatial[d].window < FEW_TERMS ? v->spatial[d].window : FEW_TERMS;
    }
    if (type_is_float(in) && cost >= LEAST_BANDS && (hlort_conv_in_bands(v) || (type_bits(in) >= 32 && hlort_conv_gradient(v) >= 0)))
        return false;
    return is_lines(v, in) || (v->in <= few && v->out <= (terms < FEW_TERMS ? FEW_MADE : FEW) && v->w_out == 1 && v->y_out == 1);
}

static bool is_small(const WindowDim *w)
{
    return w->stride < MOST && w->window_dilation < MOST && w->base_dilation < MOST && w->pad_lo < MOST && w->pad_lo > -MOST && w->size < MOST;
}

static int64_t products(const ConvCall *x)
{
    int64_t n = x->v.groups;
    for (int64_t d = 0; d < x->v.n_spatial; d++) {
        int64_t phases = x->v.spatial[d].base_dilation < x->v.spatial[d].out ? x->v.spatial[d].base_dilation : x->v.spatial[d].out;
        n *= x->v.out == 1 && phases > 4 ? 4 : phases;
    }
    return n;
}

static bool sums_fit(const ConvCall *x)
{
    double n = (double)x->v.in;
    for (int64_t d = 0; d < x->v.n_spatial; d++)
        n *= (double)x->v.spatial[d].window;
    return (x->in != TYPE_S8 || n <= MOST_S8) && (x->in != TYPE_U8 || n <= MOST_U8);
}

double conv_call_cost(const ConvCall *x)
{
    const hlort_conv *v = &x->v;
    double            n = (double)v->batch * (double)v->groups * (double)v->in * (double)v->out;
    for (int64_t d = 0; d < v->n_spatial; d++)
        n *= (double)v->spatial[d].out * (double)v->spatial[d].window / (double)v->spatial[d].base_dilation;
    return n;
}

static bool fill_spatial(const Inst *i, const Shape *lhs, const Shape *result, const int64_t *x, const int64_t *w, const int64_t *y, hlort_conv *v)
{
    const DimLabels *l = inst_attr(i, ATTR_DIM_LABELS)->value.dim_labels;
    const Window    *window = inst_window(i);
    for (int32_t d = 0; d < l->spatial; d++) {
        const WindowDim *s = &window->v[d];
        const int64_t    by = w[l->rhs_spatial[d]];
        if (!is_small(s) || lhs->dims[l->lhs_spatial[d]] >= MOST || result->dims[l->out_spatial[d]] >= MOST)
            return false;
        v->spatial[d].in = lhs->dims[l->lhs_spatial[d]];
        v->spatial[d].out = result->dims[l->out_spatial[d]];
        v->spatial[d].window = s->size;
        v->spatial[d].stride = s->stride;
        v->spatial[d].pad = s->pad_lo;
        v->spatial[d].window_dilation = s->window_dilation;
        v->spatial[d].base_dilation = s->base_dilation;
        v->spatial[d].x = x[l->lhs_spatial[d]];
        v->spatial[d].w = s->reversal ? -by : by;
        v->spatial[d].y = y[l->out_spatial[d]];
        v->w_first += s->reversal ? (s->size - 1) * by : 0;
    }
    return true;
}

bool conv_call(const Inst *i, const Shape *lhs, const Shape *rhs, const Shape *result, ConvCall *out)
{
    enum { RANK = HLORT_MOST_SPATIAL + 2 };
    const DimLabels *l = inst_attr(i, ATTR_DIM_LABELS)->value.dim_labels;
    int64_t          x[RANK], w[RANK], y[RANK], groups = inst_int(i, ATTR_FEATURE_GROUP_COUNT, 1), batch_groups = inst_int(i, ATTR_BATCH_GROUP_COUNT, 1);
    hlort_conv      *v = &out->v;
    *out = (ConvCall){ .symbol = symbol_of(lhs->type, rhs->type, result->type), .in = lhs->type, .out = result->type };
    if (!out->symbol || l->spatial > HLORT_MOST_SPATIAL || shape_count(result) == 0 || shape_count(lhs) == 0 || shape_count(rhs) == 0)
        return false;
    shape_strides(lhs, x);
    shape_strides(rhs, w);
    shape_strides(result, y);
    v->batch = result->dims[l->out_batch];
    v->groups = groups * batch_groups;
    v->in = rhs->dims[l->rhs_in];
    v->out = rhs->dims[l->rhs_out] / v->groups;
    v->x_batch = x[l->lhs_batch];
    v->x_in = x[l->lhs_feature];
    v->x_group = batch_groups > 1 ? v->batch * v->x_batch : v->in * v->x_in;
    v->w_in = w[l->rhs_in];
    v->w_out = w[l->rhs_out];
    v->w_group = v->out * v->w_out;
    v->y_batch = y[l->out_batch];
    v->y_out = y[l->out_feature];
    v->y_group = v->out * v->y_out;
    v->n_spatial = l->spatial;
    if ((groups > 1 && batch_groups > 1) || !fill_spatial(i, lhs, result, x, w, y, v) || is_few(v, conv_call_cost(out), lhs->type) || !sums_fit(out))
        return false;
    return conv_call_cost(out) >= LEAST && (is_by_channel(v, lhs->type) || conv_call_cost(out) >= LEAST_PRODUCT * (double)products(out));
}

/* Vector operations, for as many elements as a vector has. A tile's pixels are summed for each block of features made, the taps for each block of tiles (measured,
 * nchw likewise: 1 x 14 x 14 x 256 2.08 ms with all products, 1.17 with fewer; 1 x 7 x 7 x 512 3.06 and 2.31; 1 x 1000 x 64 with 3 taps 0.233 and 0.170). */
static double fewer_cost(const hlort_conv *v, int64_t along)
{
    enum { FEATURES = 64, TILES = 72, LANES = 16, BEGIN = 4 }; /* of a block; a vector; what it takes to begin and to end a sum */
    const bool   turned = v->x_in != 1;
    const double in = (double)((v->in + LANES - 1) / LANES * LANES), out = (double)v->out;
    const double feature_blocks = (double)((v->out + FEATURES - 1) / FEATURES);
    double       tiles = (double)v->batch, taps = 1;
    int64_t      n = 0;
    for (int64_t d = v->n_spatial - 1; d >= 0; d--) {
        const bool pairs = n < along && hlort_conv_in_pairs(v, d);
        n += pairs;
        tiles *= (double)(pairs ? (v->spatial[d].out + 1) / 2 : v->spatial[d].out);
        taps *= pairs ? 1 : (double)v->spatial[d].window;
    }
    const double tile_blocks = tiles / (along == 2 ? TILES : 4 * TILES) + 1, points = along == 2 ? 16 : 4;
    const double pixels = (along == 2 ? 60 : 16) * (turned ? 1.6 : 1), sums = along == 2 ? 130 : 30, result = along == 2 ? 45 : 12;
    return (double)v->groups * (taps * (points * 1.06 * tiles * ((double)v->in + BEGIN) * out + pixels * tiles * in * feature_blocks + sums * (double)v->in * out * tile_blocks) + result * tiles * out);
}

bool conv_call_fewer(const ConvCall *x, const Inst *i)
{
    const Ints    precision = inst_ints(i, ATTR_OPERAND_PRECISION);
    const int64_t along = hlort_conv_fewer(&x->v);
    for (int32_t k = 0; k < precision.n; k++)
        if (precision.v[k] != PRECISION_DEFAULT)
            return false;
    return along > 0 && x->in == TYPE_F32 && !is_by_channel(&x->v, x->in) && fewer_cost(&x->v, along) < 0.95 * conv_call_cost(x);
}

/* Another pass costs little beside many taps, and less where the third cache holds the result (measured, with a residual: 1 x 56 x 56 x 64 to 256 features 1073 us with an
 * epilogue, 1050 without; of 4 images 5.76 and 6.49 ms). */
int64_t conv_call_row(const ConvCall *x)
{
    enum { LARGE = 8 << 20 }; /* bytes */
    const hlort_conv *v = &x->v;
    int64_t           pixels = 1;
    if (is_by_channel(v, x->in))
        return v->groups;
    double            bytes = (double)v->batch * (double)v->groups * (double)v->out * type_bytes(x->out);
    for (int64_t d = 0; d < v->n_spatial; d++) {
        if (v->spatial[d].base_dilation != 1 || v->spatial[d].window != 1)
            return 0;
        pixels *= v->spatial[d].out;
    }
    if (bytes * (double)pixels < LARGE)
        return 0;
    if (v->y_out == 1)
        return v->groups * v->out;
    /* Pixels are neighbours in all dimensions, in some order of these. */
    int64_t all = 1;
    for (int64_t n = 0; n < v->n_spatial; n++)
        for (int64_t d = 0; d < v->n_spatial; d++)
            if (v->spatial[d].out > 1 && v->spatial[d].y == all) {
                all *= v->spatial[d].out;
                break;
            }
    return all == pixels ? pixels : 0;
}

bool conv_call_equal(const ConvCall *x, const ConvCall *y)
{
    return x->symbol == y->symbol && memcmp(&x->v, &y->v, sizeof x->v) == 0; /* members of one size: no gaps */
}
