#include "analysis/cost.h"

#include "analysis/loops.h"
#include "analysis/memory.h"

int64_t cost_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t cost_mul(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* ---- kernels ---- */

/* The dimensions with more than one element keep their order, and so do the bytes. */
static bool transpose_moves_nothing(const Inst *i)
{
    const Shape *from = i->operands[0].def->shape;
    Ints         order = inst_ints(i, ATTR_DIMENSIONS);
    int64_t      last = -1;
    if (!layout_is_row_major(from) || !layout_is_row_major(i->shape))
        return false;
    for (int32_t k = 0; k < order.n; k++) {
        if (from->dims[order.v[k]] == 1)
            continue;
        if (order.v[k] < last)
            return false;
        last = order.v[k];
    }
    return true;
}

bool inst_names_buffer(const Inst *i)
{
    switch (i->op) {
    case OP_PARAMETER: case OP_CONSTANT: case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: case OP_BITCAST: case OP_AFTER_ALL:
    case OP_WHILE: case OP_CONDITIONAL: case OP_CALL: case OP_ASYNC_START: case OP_ASYNC_UPDATE: case OP_ASYNC_DONE:
    case OP_ALL_GATHER_DONE: case OP_ALL_REDUCE_DONE: case OP_COLLECTIVE_PERMUTE_DONE: case OP_COPY_DONE: case OP_SEND_DONE:
    case OP_RECV_DONE: case OP_PARTITION_ID: case OP_REPLICA_ID: case OP_GET_DIMENSION_SIZE: case OP_SET_DIMENSION_SIZE:
        return true;
    case OP_COPY:
        return false;
    case OP_TRANSPOSE:
        return transpose_moves_nothing(i);
    default:
        return inst_forwards(i) >= 0;
    }
}

bool inst_is_kernel(const Inst *i)
{
    return !inst_names_buffer(i);
}

bool inst_is_library_call(const Inst *i)
{
    switch (i->op) {
    case OP_DOT: case OP_RAGGED_DOT: case OP_SCALED_DOT: case OP_CONVOLUTION: case OP_SORT: case OP_TOPK: case OP_FFT: case OP_CHOLESKY:
    case OP_TRIANGULAR_SOLVE: case OP_RNG: case OP_RNG_BIT_GENERATOR:
        return true;
    case OP_CUSTOM_CALL:
        return inst_is_kernel(i);
    default:
        return op_has(i->op, F_COLLECTIVE) && inst_is_kernel(i);
    }
}

bool inst_is_dear(const Inst *i)
{
    switch (i->op) {
    case OP_DIVIDE:
    case OP_REMAINDER:
    case OP_POWER:
    case OP_ATAN2:
    case OP_GATHER:
        return true;
    case OP_ABS:
    case OP_SIGN:
        return type_is_complex(i->shape->type);
    default:
        return op_has(i->op, F_ACCURACY);
    }
}

static int64_t bytes_of(const Shape *s)
{
    int64_t n = shape_bytes(s);
    return n < 0 ? 0 : n;
}

int64_t inst_bytes(const Inst *i)
{
    int64_t sum = bytes_of(i->shape);
    for (int32_t k = 0; k < i->n_operands; k++) {
        bool seen = false;
        for (int32_t j = 0; j < k && k < 64 && !seen; j++) /* more operands are hardly equal, and not worth their square */
            seen = i->operands[j].def == i->operands[k].def;
        if (!seen)
            sum = cost_add(sum, bytes_of(i->operands[k].def->shape));
    }
    return sum;
}

/* ---- operations ---- */

static int64_t elements(const Shape *s)
{
    if (shape_is_tuple(s))
        return s->n_elems ? elements(s->elems[0]) : 0;
    int64_t n = shape_is_array(s) ? shape_count(s) : 0;
    return n < 0 ? 0 : n;
}

static bool computes(Op op)
{
    switch (op) {
    case OP_BITCAST_CONVERT: case OP_COMPLEX: case OP_CONVERT: case OP_COPY: case OP_IMAG: case OP_REAL: case OP_SELECT:
        return false;
    default:
        return op_has(op, F_ELEMENTWISE) && !op_has(op, F_MOVES);
    }
}

static int64_t dot_flops(const Inst *i)
{
    const Shape *lhs = i->operands[0].def->shape;
    Ints         over = inst_ints(i, ATTR_LHS_CONTRACTING_DIMS);
    int64_t      n = cost_mul(2, elements(i->shape));
    for (int32_t k = 0; k < over.n; k++)
        n = cost_mul(n, lhs->dims[over.v[k]] < 0 ? 0 : lhs->dims[over.v[k]]);
    return n;
}

/* How many places x, 0 <= x < n, are so that 0 <= x * stride + at <= most, at a multiple of step. */
static int64_t places(int64_t n, int64_t stride, int64_t at, int64_t most, int64_t step)
{
    int64_t first = at < 0 ? (-at + stride - 1) / stride : 0, past = at > most ? 0 : (most - at) / stride + 1, period = 1;
    past = past < n ? past : n;
    while (first < past && (first * stride + at) % step != 0 && period++ <= step)
        first++;
    if (first >= past || period > step)
        return 0;
    for (period = 1; period * stride % step != 0;)
        period++;
    return (past - first - 1) / period + 1;
}

/* Along one dimension: the elements of a kernel times places of the result that meet an element, neither padding nor what is between elements. All of them where counting takes long. */
static int64_t met(const WindowDim *w, int64_t in, int64_t out)
{
    enum { MOST_TAPS = 4096, MOST = 64, LARGE = 1 << 30 };
    int64_t n = 0;
    if (w->size > MOST_TAPS || w->base_dilation > MOST || in > LARGE || out > LARGE || w->stride > LARGE || w->window_dilation > LARGE || w->pad_lo > LARGE || w->pad_lo < -LARGE)
        return cost_mul(w->size, out);
    for (int64_t k = 0; k < w->size && in > 0; k++)
        n += places(out, w->stride, k * w->window_dilation - w->pad_lo, (in - 1) * w->base_dilation, w->base_dilation);
    return n;
}

/* Each element of the result needs the kernel once for its output feature. */
static int64_t convolution_flops(const Inst *i)
{
    const Shape  *input = i->operands[0].def->shape, *kernel = i->operands[1].def->shape;
    const Attr   *labels = inst_attr(i, ATTR_DIM_LABELS);
    const Window *w = inst_window(i);
    if (!labels || elements(kernel) == 0 || elements(i->shape) == 0)
        return 0;
    const DimLabels *l = labels->value.dim_labels;
    int64_t          n = elements(i->shape), each = elements(kernel) / kernel->dims[l->rhs_out], pairs = 2;
    for (int32_t k = 0; k < w->n; k++) {
        n /= i->shape->dims[l->out_spatial[k]];
        each /= w->v[k].size;
        pairs = cost_mul(pairs, met(&w->v[k], input->dims[l->lhs_spatial[k]], i->shape->dims[l->out_spatial[k]]));
    }
    return cost_mul(pairs, cost_mul(n, each));
}

static int64_t window_elements(const Inst *i)
{
    const Window *w = inst_window(i);
    int64_t       n = 1;
    for (int32_t k = 0; k < w->n; k++)
        n = cost_mul(n, w->v[k].size);
    return n;
}

static int64_t comp_flops(const Comp *c, const Map *of_comps)
{
    return (int64_t)(intptr_t)map_get(of_comps, c);
}

static int64_t apply(const Inst *i, int64_t times, const Map *of_comps)
{
    return i->n_callees ? cost_mul(times, comp_flops(i->callees[i->n_callees - 1], of_comps)) : times;
}

/* log2, rounded up */
static int64_t levels(int64_t n)
{
    int64_t k = 0;
    while (k < 62 && (int64_t)1 << k < n)
        k++;
    return k;
}

static int64_t fft_flops(const Inst *i)
{
    Ints    length = inst_ints(i, ATTR_FFT_LENGTH);
    int64_t points = 1;
    for (int32_t k = 0; k < length.n; k++)
        points = cost_mul(points, length.v[k]);
    return cost_mul(5, cost_mul(elements(i->shape), levels(points)));
}

static int64_t first_elements(const Inst *i)
{
    return i->n_operands ? elements(i->operands[0].def->shape) : 0;
}

int64_t inst_flops(const Inst *i, const Map *of_comps)
{
    int64_t n = elements(i->shape);
    switch (i->op) {
    case OP_DOT: case OP_RAGGED_DOT: case OP_SCALED_DOT: return dot_flops(i);
    case OP_CONVOLUTION: return convolution_flops(i);
    case OP_FFT: return fft_flops(i);
    case OP_CHOLESKY: return i->shape->rank ? cost_mul(n, i->shape->dims[i->shape->rank - 1]) / 3 : 0;
    case OP_TRIANGULAR_SOLVE: {
        const Shape *a = i->operands[0].def->shape;
        return a->rank ? cost_mul(n, a->dims[a->rank - 1]) : 0;
    }
    case OP_REDUCE: return apply(i, first_elements(i) > n ? first_elements(i) - n : 0, of_comps);
    case OP_REDUCE_WINDOW: return apply(i, cost_mul(n, window_elements(i) - 1), of_comps);
    case OP_SELECT_AND_SCATTER: return cost_mul(elements(i->operands[1].def->shape), window_elements(i)); /* all but one are compared, one is added */
    case OP_SCATTER: return apply(i, elements(i->operands[i->n_operands - 1].def->shape), of_comps);
    case OP_MAP: case OP_ALL_REDUCE: case OP_REDUCE_SCATTER: case OP_SCAN: return apply(i, n, of_comps);
    case OP_FUSION: return comp_flops(i->callees[0], of_comps);
    default: return computes(i->op) ? n : 0;
    }
}

Map module_flops(Arena *a, const Module *m)
{
    Map all = map_new(a);
    for (const Comp *c = m->first; c; c = c->next) { /* callees first */
        int64_t sum = 0;
        for (const Inst *i = c->first; i; i = i->next)
            sum = cost_add(sum, inst_flops(i, &all));
        map_put(&all, c, (void *)(intptr_t)sum);
    }
    return all;
}

/* ---- computations that run ---- */

static void add_runs(Map *runs, const Comp *c, int64_t n)
{
    map_put(runs, c, (void *)(intptr_t)cost_add((int64_t)(intptr_t)map_get(runs, c), n));
}

/* A condition is asked once more than its body runs. */
static void run_loop(Map *runs, const Inst *w, int64_t n, int64_t *unknown_trips)
{
    int64_t trips = while_trip_count(w);
    if (trips < 0 && unknown_trips)
        ++*unknown_trips;
    trips = trips < 0 ? 1 : trips;
    add_runs(runs, while_body(w), cost_mul(n, trips));
    add_runs(runs, while_condition(w), cost_mul(n, cost_add(trips, 1)));
}

Map module_runs(Arena *a, const Module *m, int64_t *unknown_trips)
{
    Map runs = map_new(a);
    add_runs(&runs, m->entry, 1);
    for (const Comp *c = m->last; c; c = c->prev) { /* callers first */
        int64_t n = (int64_t)(intptr_t)map_get(&runs, c);
        if (!map_has(&runs, c))
            continue;
        for (const Inst *i = c->first; i; i = i->next) {
            if (i->op == OP_WHILE)
                run_loop(&runs, i, n, unknown_trips);
            else if (i->op == OP_CALL || i->op == OP_CONDITIONAL || i->op == OP_ASYNC_START)
                for (int32_t k = 0; k < i->n_callees; k++)
                    add_runs(&runs, i->callees[k], n);
        }
    }
    return runs;
}
