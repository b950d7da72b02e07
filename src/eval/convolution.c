/* convolution, of any rank, as matrix products over blocks of output positions. Source: reference operations 10.
 *
 *   lhs -> x [feature, batch, spatial...]     rhs -> w [output feature, input feature of a group, kernel position]
 *   out <- y [output feature, batch, spatial...]
 *
 * A column is one output position (batch and spatial). patches[iz, k, column] is the input that kernel position k of input feature iz
 * meets there, 0 in padding and in the holes of dilation. For every group of output features: y = w * patches. Where w is not finite, a zero
 * is not the same as nothing, and columns that miss an input are added up from the terms that there are. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "eval/dot.h"
#include "eval/engine.h"
#include "eval/gemm.h"
#include "eval/arith.h"
#include "eval/walk.h"

EvalFn eval_convolution;

#define PATCH_BYTES (512 * 1024) /* of a block's patches, if 64 columns fit */

typedef struct Conv {
    const Window    *window;
    const DimLabels *labels;
    Type    type;              /* computed in */
    int64_t groups, batch_groups;
    int64_t in_batch, in_features, out_batch, out_features, group_inputs; /* group_inputs: input features of one group */
    int64_t in_spatial, out_spatial, kernel;  /* elements of x, y and w per feature (and batch) */
    int64_t in_size[10], out_size[10], *place[10]; /* place: of each index of an output dimension, for one kernel position at a time */
    bool    finite;            /* w is */
    Literal *x, *w, *y;
    Literal *turned, *sums;    /* room for w of a group with the rows inside, and for a column, where w is not finite */
} Conv;

/* Copies between an operand in its own dimension order and the order that is computed in; flip marks reversed dimensions. */
static void reorder(Literal *to, const Literal *from, const int64_t *order, const bool *flip, bool back)
{
    const Literal *outer = back ? to : from; /* the one in the text's order */
    int64_t strides[WALK_RANK], ordered[WALK_RANK], dims[WALK_RANK];
    walk_strides(outer->rank, outer->dims, strides);
    for (int32_t d = 0; d < outer->rank; d++)
        dims[d] = outer->dims[order[d]];
    walk_strides(outer->rank, dims, ordered);
    Odometer o = {.rank = outer->rank, .arrays = 2};
    for (int32_t d = 0; d < outer->rank; d++) {
        o.dims[d] = dims[d];
        o.stride[back ? 1 : 0][d] = ordered[d];
        o.stride[back ? 0 : 1][d] = flip && flip[d] ? -strides[order[d]] : strides[order[d]];
        if (flip && flip[d])
            o.at[1] += strides[order[d]] * (dims[d] - 1);
    }
    walk_copy(&o, to->data, from->data, type_bytes(to->type));
}

static void label_order(int64_t *order, int64_t first, int64_t second, const int64_t *spatial, int32_t n)
{
    order[0] = first;
    order[1] = second;
    for (int32_t k = 0; k < n; k++)
        order[2 + k] = spatial[k];
}

/* Where in a feature of x each index of an output dimension finds its input for kernel position `position`; -1: nowhere. */
static void find_places(const Conv *c, const int64_t *position)
{
    int64_t stride = 1;
    for (int32_t d = c->labels->spatial - 1; d >= 0; d--) {
        const WindowDim *w = &c->window->v[d];
        for (int64_t o = 0; o < c->out_size[d]; o++) {
            __int128 p = (__int128)o * w->stride - w->pad_lo + (__int128)position[d] * w->window_dilation;
            __int128 at = w->base_dilation == 1 ? p : p / w->base_dilation;
            bool     none = p < 0 || at * w->base_dilation != p || at >= c->in_size[d];
            c->place[d][o] = none ? -1 : (int64_t)at * stride;
        }
        stride *= c->in_size[d];
    }
}

/* The same of each column of the block, from the places of its indices. */
static void column_sources(const Conv *c, int64_t first, int64_t n, int64_t *source)
{
    int32_t rank = c->labels->spatial;
    int64_t index[10], rest = first % c->out_spatial, batch = first / c->out_spatial;
    for (int32_t d = rank - 1; d >= 0; d--) {
        index[d] = rest % c->out_size[d];
        rest /= c->out_size[d];
    }
    for (int64_t j = 0, run; j < n; j += run) { /* along the innermost dimension */
        int64_t at = batch * c->in_spatial, from = rank > 0 ? index[rank - 1] : 0, whole = rank > 0 ? c->out_size[rank - 1] : 1;
        bool    none = false;
        for (int32_t d = 0; d < rank - 1; d++) {
            none |= c->place[d][index[d]] < 0;
            at += c->place[d][index[d]];
        }
        run = whole - from < n - j ? whole - from : n - j;
        for (int64_t o = 0; o < run; o++) {
            int64_t place = rank > 0 ? c->place[rank - 1][from + o] : 0;
            source[j + o] = none || place < 0 ? -1 : at + place;
        }
        int32_t d = rank - 1;
        if (rank > 0)
            index[d] = 0;
        while (d-- > 0 && ++index[d] == c->out_size[d])
            index[d] = 0;
        batch += d < 0;
    }
}

#define FILL_ROW(T)                                                                                                             \
    for (int64_t j = 0; j < n; j++)                                                                                             \
        ((T *)to)[j] = source[j] < 0 ? (T){0} : ((const T *)from)[source[j]]

typedef struct Sixteen { uint64_t lo, hi; } Sixteen;

static void fill_row(void *to, const void *from, const int64_t *source, int64_t n, int bytes)
{
    switch (bytes) {
    case 1: FILL_ROW(uint8_t); break;
    case 4: FILL_ROW(uint32_t); break;
    case 8: FILL_ROW(uint64_t); break;
    default: FILL_ROW(Sixteen);
    }
}

static bool misses_input(const Conv *c, const int64_t *sources, int64_t n, int64_t j)
{
    for (int64_t k = 0; k < c->kernel; k++)
        if (sources[k * n + j] < 0)
            return true;
    return false;
}

/* Column j of the block from the terms that there are, one after the other, each for all rows. */
static void add_terms(const Conv *c, int64_t rows, int64_t n, int64_t j, const int64_t *sources, const char *patches, char *block)
{
    int64_t depth = c->group_inputs * c->kernel, bytes = type_bytes(c->type);
    char   *sums = c->sums->data;
    memset(sums, 0, (size_t)(rows * bytes));
    for (int64_t d = 0; d < depth; d++)
        if (sources[d % c->kernel * n + j] >= 0)
            eval_gemm(c->type, 1, rows, 1, patches + (d * n + j) * bytes, (const char *)c->turned->data + d * rows * bytes, sums);
    for (int64_t r = 0; r < rows; r++)
        memcpy(block + (r * n + j) * bytes, sums + r * bytes, (size_t)bytes);
}

/* Columns that miss an input, where w is not finite. */
static void mend_columns(const Conv *c, const char *w, int64_t rows, int64_t n, const int64_t *sources, const char *patches, char *block)
{
    int64_t  depth = c->group_inputs * c->kernel;
    Odometer turn = {.rank = 2, .arrays = 2, .dims = {depth, rows}, .stride = {{rows, 1}, {1, depth}}};
    walk_copy(&turn, c->turned->data, w, type_bytes(c->type));
    for (int64_t j = 0; j < n; j++)
        if (misses_input(c, sources, n, j))
            add_terms(c, rows, n, j, sources, patches, block);
}

/* One group of output features over one block of columns. y's part is contiguous only in rows, so the block is computed apart. */
static void group_block(const Conv *c, int64_t group, int64_t first, int64_t n, const int64_t *sources, char *patches, char *block)
{
    int64_t rows = c->out_features / (c->groups * c->batch_groups), depth = c->group_inputs * c->kernel;
    int64_t columns = c->out_batch * c->out_spatial, feature = c->groups > 1 ? group * c->group_inputs : 0;
    int64_t batch = c->batch_groups > 1 ? group * c->out_batch : 0;
    int bytes = type_bytes(c->type);
    for (int64_t iz = 0; iz < c->group_inputs; iz++) {
        const char *from = (const char *)c->x->data + ((feature + iz) * c->in_batch + batch) * c->in_spatial * bytes;
        for (int64_t k = 0; k < c->kernel; k++)
            fill_row(patches + (iz * c->kernel + k) * n * bytes, from, sources + k * n, n, bytes);
    }
    memset(block, 0, (size_t)(rows * n * bytes));
    const char *w = (const char *)c->w->data + group * rows * depth * bytes;
    eval_gemm(c->type, rows, n, depth, w, patches, block);
    if (!c->finite)
        mend_columns(c, w, rows, n, sources, patches, block);
    for (int64_t r = 0; r < rows; r++)
        memcpy((char *)c->y->data + ((group * rows + r) * columns + first) * bytes, block + r * n * bytes, (size_t)(n * bytes));
}

static void kernel_sources(const Conv *c, int64_t first, int64_t n, int64_t *sources)
{
    Odometer position = {.rank = c->labels->spatial};
    for (int32_t d = 0; d < position.rank; d++)
        position.dims[d] = c->window->v[d].size;
    int64_t k = 0;
    do {
        find_places(c, position.index);
        column_sources(c, first, n, sources + k++ * n);
    } while (walk_next(&position));
}

static bool run(Eval *e, const Inst *i, Conv *c)
{
    int64_t depth = c->group_inputs * c->kernel, columns = c->out_batch * c->out_spatial, total = c->groups * c->batch_groups;
    int64_t rows = c->out_features / total, bytes = type_bytes(c->type), indices = 0, work;
    for (int32_t d = 0; d < c->labels->spatial; d++)
        indices += c->out_size[d];
    if (!size_mul(c->y->count, depth, &work) || !eval_work(e, i, work))
        return false;
    int64_t most = depth > 0 ? PATCH_BYTES / (depth * bytes) : columns;
    most = most < 64 ? 64 : most > 4096 ? 4096 : most;
    most = most > columns ? columns : most;
    Literal *patches = eval_new(e, i, c->type, 2, (int64_t[]){depth, most}), *block = eval_new(e, i, c->type, 2, (int64_t[]){rows, most});
    Literal *sources = eval_new(e, i, TYPE_S64, 2, (int64_t[]){c->kernel, most}), *places = eval_new(e, i, TYPE_S64, 1, &indices);
    c->turned = c->finite ? NULL : eval_new(e, i, c->type, 2, (int64_t[]){depth, rows});
    c->sums = c->finite ? NULL : eval_new(e, i, c->type, 1, &rows);
    int64_t at = 0;
    for (int32_t d = 0; d < c->labels->spatial && !e->failed; at += c->out_size[d++])
        c->place[d] = (int64_t *)places->data + at;
    for (int64_t first = 0; first < columns && !e->failed; first += most) {
        int64_t n = columns - first < most ? columns - first : most;
        kernel_sources(c, first, n, sources->data);
        for (int64_t g = 0; g < total; g++)
            group_block(c, g, first, n, sources->data, patches->data, block->data);
    }
    eval_drop(e, patches);
    eval_drop(e, block);
    eval_drop(e, sources);
    eval_drop(e, places);
    eval_drop(e, c->turned);
    eval_drop(e, c->sums);
    return !e->failed;
}

/* Sizes from the shapes and labels. */
static void measure(Conv *c, const Inst *i, const Literal *lhs, const Literal *rhs)
{
    const DimLabels *l = c->labels;
    const Shape *out = i->shape;
    c->groups = inst_int(i, ATTR_FEATURE_GROUP_COUNT, 1);
    c->batch_groups = inst_int(i, ATTR_BATCH_GROUP_COUNT, 1);
    c->in_batch = lhs->dims[l->lhs_batch];
    c->in_features = lhs->dims[l->lhs_feature];
    c->group_inputs = rhs->dims[l->rhs_in];
    c->out_batch = out->dims[l->out_batch];
    c->out_features = out->dims[l->out_feature];
    c->in_spatial = c->out_spatial = c->kernel = 1;
    for (int32_t d = 0; d < l->spatial; d++) {
        c->in_spatial *= c->in_size[d] = lhs->dims[l->lhs_spatial[d]];
        c->out_spatial *= c->out_size[d] = out->dims[l->out_spatial[d]];
        c->kernel *= rhs->dims[l->rhs_spatial[d]];
    }
}

/* l's values as t in the order given. Takes over the reference. */
static Literal *prepared(Eval *e, const Inst *i, Literal *l, Type t, const int64_t *order, const bool *flip)
{
    l = eval_cast(e, i, l, t);
    Literal *r = l ? eval_new(e, i, t, l->rank, l->dims) : NULL;
    if (r)
        reorder(r, l, order, flip, false);
    eval_drop(e, l);
    return r;
}

static bool all_finite(const Literal *l)
{
    if (!type_is_float(l->type) && !type_is_complex(l->type))
        return true;
    for (int64_t j = 0; j < l->count; j++)
        if (!isfinite(literal_get_f64(l, j)) || (type_is_complex(l->type) && !isfinite(literal_get_imag(l, j))))
            return false;
    return true;
}

/* Integers of 8 bits and more saturate, others are cut; floats are rounded once. */
static void store_results(const Literal *from, Literal *to)
{
    Type t = to->type;
    if (!type_is_int(t) || type_bits(t) < 8 || type_bits(t) == 64) {
        value_store(t, to->data, value_domain(from->type), from->data, from->count);
        if (t == TYPE_F32)
            dot_drop_signs_of_zeros(to);
        return;
    }
    int bits = type_bits(t);
    int64_t hi = type_is_signed_int(t) ? (INT64_C(1) << (bits - 1)) - 1 : (INT64_C(1) << bits) - 1;
    int64_t lo = type_is_signed_int(t) ? -hi - 1 : 0, *v = from->data;
    for (int64_t j = 0; j < from->count; j++)
        if (type_is_signed_int(t))
            v[j] = v[j] < lo ? lo : v[j] > hi ? hi : v[j];
        else
            v[j] = (uint64_t)v[j] > (uint64_t)hi ? hi : v[j];
    value_store(t, to->data, value_domain(t), v, from->count);
}

Literal *eval_convolution(Eval *e, const Inst *i, Literal **x)
{
    Conv c = {.window = inst_window(i), .labels = inst_attr(i, ATTR_DIM_LABELS)->value.dim_labels};
    const DimLabels *l = c.labels;
    c.type = product_type(i->shape->type);
    measure(&c, i, x[0], x[1]);
    int64_t order[WALK_RANK];
    bool flip[WALK_RANK] = {false};
    label_order(order, l->lhs_feature, l->lhs_batch, l->lhs_spatial, l->spatial);
    c.x = prepared(e, i, eval_move(x, 0), c.type, order, NULL);
    label_order(order, l->rhs_out, l->rhs_in, l->rhs_spatial, l->spatial);
    for (int32_t d = 0; d < l->spatial; d++)
        flip[2 + d] = c.window->v[d].reversal;
    c.w = prepared(e, i, eval_move(x, 1), c.type, order, flip);
    label_order(order, l->out_feature, l->out_batch, l->out_spatial, l->spatial);
    c.y = eval_new(e, i, c.type, i->shape->rank, i->shape->dims);
    Literal *out = NULL;
    c.finite = !c.w || all_finite(c.w);
    if (!e->failed && (c.y->count == 0 || run(e, i, &c)))
        out = eval_new(e, i, c.type, i->shape->rank, i->shape->dims);
    if (out)
        reorder(out, c.y, order, NULL, true);
    Literal *result = out ? eval_new_for(e, i, i->shape) : NULL;
    if (result)
        store_results(out, result);
    eval_drop(e, c.x);
    eval_drop(e, c.w);
    eval_drop(e, c.y);
    eval_drop(e, out);
    return result;
}
