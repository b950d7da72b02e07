/* reduce-window and select-and-scatter: padding and the holes of dilation are skipped, never combined. Source: reference operations 7.2 to 7.4.
 *
 * For one position j inside the window, the outputs whose element exists form a box, evenly spaced in every dimension, and so do
 * their elements: all outputs take one step together, position after position in row-major order. */
#include <string.h>

#include "eval/body.h"
#include "eval/engine.h"
#include "eval/walk.h"

EvalFn eval_reduce_window, eval_select_and_scatter;

/* The element that output o sees at window position j of a dimension of size d: p = o*stride + j*dilation - lo, which is element
 * p / base_dilation when that is whole and inside; else -1. */
static int64_t window_element(const WindowDim *w, int64_t o, int64_t j, int64_t d)
{
    __int128 p = (__int128)o * w->stride + (__int128)j * w->window_dilation - w->pad_lo;
    if (p < 0 || p % w->base_dilation != 0 || p / w->base_dilation >= d)
        return -1;
    return (int64_t)(p / w->base_dilation);
}

/* Adds dimension `dim` of the box at window position j to o: array 0 walks outputs, array 1 elements. False when the box is empty. */
static bool add_box_dim(Odometer *o, const WindowDim *w, int64_t j, int64_t outputs, int64_t d, int64_t out_stride, int64_t stride)
{
    int64_t first = 0, second, n = 0;
    while (first < outputs && window_element(w, first, j, d) < 0)
        first++;
    if (first == outputs)
        return false;
    int64_t at = window_element(w, first, j, d);
    for (second = first + 1; second < outputs && window_element(w, second, j, d) < 0;)
        second++;
    int64_t step = second - first, element_step = second < outputs ? window_element(w, second, j, d) - at : 0;
    for (int64_t k = first; k < outputs && window_element(w, k, j, d) >= 0; k += step)
        n++;
    o->dims[o->rank] = n;
    o->stride[0][o->rank] = step * out_stride;
    o->stride[1][o->rank++] = element_step * stride;
    o->at[0] += first * out_stride;
    o->at[1] += at * stride;
    return true;
}

/* The box of the window position that `position` stands at. */
static bool window_box(Odometer *o, const Window *w, const Odometer *position, const int64_t *outputs, const Literal *x)
{
    int64_t out_strides[WALK_RANK], strides[WALK_RANK];
    walk_strides(x->rank, outputs, out_strides);
    walk_strides(x->rank, x->dims, strides);
    *o = (Odometer){.arrays = 2};
    for (int32_t d = 0; d < x->rank; d++)
        if (!add_box_dim(o, &w->v[d], position->index[d], outputs[d], x->dims[d], out_strides[d], strides[d]))
            return false;
    return true;
}

static Odometer window_positions(const Window *w)
{
    Odometer o = {.rank = w->n};
    for (int32_t d = 0; d < w->n; d++)
        o.dims[d] = w->v[d].size;
    return o;
}

Literal *eval_reduce_window(Eval *e, const Inst *i, Literal **x)
{
    Body *b = body_get(e, i, inst_callee(i, 0));
    const Window *w = inst_window(i);
    int32_t n = i->n_operands / 2;
    const Shape *out = shape_is_tuple(i->shape) ? i->shape->elems[0] : i->shape;
    Literal **acc = mem_alloc(n, sizeof *acc);
    for (int32_t k = 0; k < n; k++) {
        x[k] = eval_cast(e, i, x[k], body_param_type(b, n + k));
        x[n + k] = eval_cast(e, i, x[n + k], body_param_type(b, k));
        acc[k] = x[n + k] ? eval_new(e, i, x[n + k]->type, out->rank, out->dims) : NULL;
        if (acc[k])
            walk_fill(acc[k]->data, acc[k]->count, x[n + k]->data, type_bytes(acc[k]->type));
    }
    bool ok = !e->failed && acc[0]->count > 0;
    Odometer position = window_positions(w), box;
    do {
        if (ok && window_box(&box, w, &position, out->dims, x[0]))
            ok = body_fold(e, b, n, acc, x, &box);
    } while (ok && eval_work(e, i, 1) && walk_next(&position));
    Literal *r = eval_results(e, i, n, acc);
    mem_free(acc);
    return r;
}

/* select-and-scatter: `best` holds for every output the element chosen so far and where it is, -1 for none yet. */
typedef struct Best {
    Literal *value, *place;
} Best;

/* One row of a box: outputs at..at+n*step see elements from..from+n*from_step of x. */
static bool select_row(Eval *e, Body *select, const Best *best, const Literal *x, int64_t at, int64_t step, int64_t from,
                       int64_t from_step, int64_t n)
{
    int bytes = type_bytes(x->type);
    Block chosen, seen;
    uint8_t keep[BLOCK];
    for (int64_t j = 0; j < n; j += BLOCK) {
        int64_t m = n - j < BLOCK ? n - j : BLOCK;
        char *values = (char *)best->value->data + (at + j * step) * bytes;
        int64_t *places = (int64_t *)best->place->data + at + j * step;
        walk_copy_row(&seen, 1, (const char *)x->data + (from + j * from_step) * bytes, from_step, m, bytes);
        walk_copy_row(&chosen, 1, values, step, m, bytes);
        const void *params[] = {&chosen, &seen};
        void *results[] = {keep};
        if (!body_run(e, select, params, results, m))
            return false;
        for (int64_t k = 0; k < m; k++)
            if (places[k * step] < 0 || !keep[k]) {
                memcpy(values + k * step * bytes, (char *)&seen + k * bytes, (size_t)bytes);
                places[k * step] = from + (j + k) * from_step;
            }
    }
    return true;
}

static bool select_box(Eval *e, const Inst *i, Body *select, const Best *best, const Literal *x, Odometer *box)
{
    walk_simplify(box);
    if (!eval_work(e, i, walk_count(box)))
        return false;
    int32_t inner = box->rank - 1;
    int64_t n = inner >= 0 ? box->dims[inner] : 1, step = inner >= 0 ? box->stride[0][inner] : 1;
    int64_t from_step = inner >= 0 ? box->stride[1][inner] : 1;
    box->rank = inner >= 0 ? inner : 0;
    do {
        if (!select_row(e, select, best, x, box->at[0], step, box->at[1], from_step, n))
            return false;
    } while (walk_next(box));
    return true;
}

/* result[best] = scatter(source, result[best]), in the order of the outputs. */
static void scatter_chosen(Eval *e, Body *scatter, const Best *best, const Literal *source, Literal *r)
{
    int bytes = type_bytes(r->type), from_bytes = type_bytes(source->type);
    for (int64_t j = 0; j < source->count; j++) {
        int64_t place = ((const int64_t *)best->place->data)[j];
        if (place < 0)
            continue;
        char *to = (char *)r->data + place * bytes;
        const void *params[] = {(const char *)source->data + j * from_bytes, to};
        void *results[] = {to};
        if (!body_run(e, scatter, params, results, 1))
            return;
    }
}

Literal *eval_select_and_scatter(Eval *e, const Inst *i, Literal **x)
{
    Body *select = body_get(e, i, inst_callee(i, 0)), *scatter = body_get(e, i, inst_callee(i, 1));
    const Window *w = inst_window(i);
    x[0] = eval_cast(e, i, x[0], body_param_type(select, 0));
    x[1] = eval_cast(e, i, x[1], body_param_type(scatter, 0));
    x[2] = eval_cast(e, i, x[2], body_param_type(scatter, 1));
    if (e->failed)
        return NULL;
    Literal *r = eval_new(e, i, x[2]->type, x[0]->rank, x[0]->dims);
    Best best = {eval_new(e, i, x[0]->type, x[1]->rank, x[1]->dims), eval_new(e, i, TYPE_S64, x[1]->rank, x[1]->dims)};
    if (!e->failed) {
        walk_fill(r->data, r->count, x[2]->data, type_bytes(r->type));
        memset(best.place->data, 0xFF, (size_t)literal_bytes(best.place)); /* -1 */
        memset(best.value->data, 0, (size_t)literal_bytes(best.value));
        bool ok = x[1]->count > 0;
        Odometer position = window_positions(w), box;
        do {
            if (ok && window_box(&box, w, &position, x[1]->dims, x[0]))
                ok = select_box(e, i, select, &best, x[0], &box);
        } while (ok && walk_next(&position));
        if (ok)
            scatter_chosen(e, scatter, &best, x[1], r);
    }
    eval_drop(e, best.value);
    eval_drop(e, best.place);
    return eval_cast(e, i, r, i->shape->type);
}
