/* Slices at places known only when run. Indices are read as s64. Source: reference operations 6. */
#include <string.h>

#include "eval/body.h"
#include "eval/engine.h"
#include "eval/walk.h"

EvalFn eval_dynamic_slice, eval_dynamic_update_slice, eval_gather, eval_scatter;

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* dynamic-slice and its update */

/* The start along dimension k. The indices are the operands from `first` on: scalars, or one vector of all (an old spelling). */
static int64_t start_index(Literal **x, int32_t first, int32_t k)
{
    return x[first]->rank == 1 ? literal_get_s64(x[first], k) : literal_get_s64(x[first + k], 0);
}

/* The part of size dims of `whole` that begins at the clamped start: array `array` of o walks it. */
static void place_slice(Odometer *o, int array, const Literal *whole, const int64_t *dims, Literal **x, int32_t first)
{
    walk_strides(whole->rank, whole->dims, o->stride[array]);
    for (int32_t k = 0; k < whole->rank; k++)
        o->at[array] += o->stride[array][k] * clamp(start_index(x, first, k), 0, whole->dims[k] - dims[k]);
}

Literal *eval_dynamic_slice(Eval *e, const Inst *i, Literal **x)
{
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r || r->rank == 0) {
        if (r)
            memcpy(r->data, x[0]->data, (size_t)type_bytes(r->type));
        return r;
    }
    Odometer o;
    walk_start(&o, r->rank, r->dims);
    walk_strides(r->rank, r->dims, o.stride[0]);
    place_slice(&o, 1, x[0], r->dims, x, 1);
    walk_copy(&o, r->data, x[0]->data, type_bytes(r->type));
    return r;
}

Literal *eval_dynamic_update_slice(Eval *e, const Inst *i, Literal **x)
{
    const Literal *u = x[1];
    if (u->rank == 0)
        return eval_move(x, 1);
    Literal *r = eval_take(e, i, x, 0);
    if (!r || !eval_work(e, i, u->count))
        return r;
    Odometer o;
    walk_start(&o, u->rank, u->dims);
    walk_strides(u->rank, u->dims, o.stride[1]);
    place_slice(&o, 0, r, inst_operand(i, 1)->shape->dims, x, 2); /* an update may be smaller than its type (sizes.c) */
    walk_copy(&o, r->data, u->data, type_bytes(r->type));
    return r;
}

/* gather and scatter
 *
 * Both pair the positions g of the indices (without the index vector) with windows of the operand x. The small array is gather's
 * result and scatter's updates: its window dimensions hold a window, its other dimensions are g in order. */

typedef struct Windows {
    int32_t  rank; /* of x */
    int64_t  dims[WALK_RANK], size[WALK_RANK], stride[WALK_RANK]; /* of x, of the window, of x's memory */
    Odometer g;      /* array 0: the small array, array 1: the indices */
    Odometer window; /* array 0: x, array 1: the small array */
    Ints     start_map;
    int64_t  vector_stride;
    int32_t  n_batch;
    int64_t  batch_dim[WALK_RANK], batch_pos[WALK_RANK]; /* dimension of x, its position in g */
    const Literal *indices;
} Windows;

typedef struct WindowAttrs {
    AttrId window_dims, collapsed, start_map, operand_batch, indices_batch;
} WindowAttrs;

static const WindowAttrs gather_attrs = {ATTR_OFFSET_DIMS, ATTR_COLLAPSED_SLICE_DIMS, ATTR_START_INDEX_MAP, ATTR_OPERAND_BATCHING_DIMS,
                                         ATTR_START_INDICES_BATCHING_DIMS};
static const WindowAttrs scatter_attrs = {ATTR_UPDATE_WINDOW_DIMS, ATTR_INSERTED_WINDOW_DIMS, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS,
                                          ATTR_INPUT_BATCHING_DIMS, ATTR_SCATTER_INDICES_BATCHING_DIMS};

/* The window: dimensions of x that are neither collapsed nor batching, in order, lie at the window dimensions of the small array. */
static void set_window(Windows *w, const Inst *i, const WindowAttrs *a, const Literal *small)
{
    Ints dims = inst_ints(i, a->window_dims), collapsed = inst_ints(i, a->collapsed), batch = inst_ints(i, a->operand_batch);
    int64_t strides[WALK_RANK];
    walk_strides(small->rank, small->dims, strides);
    Odometer *o = &w->window;
    *o = (Odometer){.arrays = 2};
    for (int32_t d = 0; d < w->rank; d++) {
        w->size[d] = 1;
        if (ints_has(collapsed, d) || ints_has(batch, d))
            continue;
        int64_t at = dims.v[o->rank];
        w->size[d] = o->dims[o->rank] = small->dims[at];
        o->stride[0][o->rank] = w->stride[d];
        o->stride[1][o->rank++] = strides[at];
    }
    walk_simplify(o);
}

static void set_positions(Windows *w, const Inst *i, const WindowAttrs *a, const Literal *small, const Literal *indices)
{
    Ints window = inst_ints(i, a->window_dims), batch = inst_ints(i, a->indices_batch), operand_batch = inst_ints(i, a->operand_batch);
    int64_t vector = inst_int(i, ATTR_INDEX_VECTOR_DIM, 0), strides[WALK_RANK], of_indices[WALK_RANK];
    walk_strides(small->rank, small->dims, strides);
    walk_strides(indices->rank, indices->dims, of_indices);
    w->vector_stride = vector < indices->rank ? of_indices[vector] : 0;
    w->n_batch = operand_batch.n;
    Odometer *o = &w->g;
    *o = (Odometer){.arrays = 2};
    int32_t d = 0; /* of the indices */
    for (int32_t k = 0; k < small->rank; k++) {
        if (ints_has(window, k))
            continue;
        d += d == vector;
        for (int32_t m = 0; m < batch.n; m++)
            if (batch.v[m] == d) {
                w->batch_dim[m] = operand_batch.v[m];
                w->batch_pos[m] = o->rank;
            }
        o->dims[o->rank] = small->dims[k];
        o->stride[0][o->rank] = strides[k];
        o->stride[1][o->rank++] = of_indices[d++];
    }
}

static void set_windows(Windows *w, const Inst *i, const WindowAttrs *a, const Literal *x, const Literal *indices, const Literal *small)
{
    w->rank = x->rank;
    w->indices = indices;
    w->start_map = inst_ints(i, a->start_map);
    if (x->rank > 0)
        memcpy(w->dims, x->dims, (size_t)x->rank * sizeof x->dims[0]);
    walk_strides(x->rank, x->dims, w->stride);
    set_window(w, i, a, small);
    set_positions(w, i, a, small, indices);
}

/* Where in x the window of the current g begins; false when a part of it lies outside and `clamped` does not push it back. */
static bool window_start(const Windows *w, bool clamped, int64_t *at)
{
    *at = 0;
    bool inside = true;
    for (int32_t j = 0; j < w->start_map.n; j++) {
        int64_t d = w->start_map.v[j], last = w->dims[d] - w->size[d];
        int64_t v = literal_get_s64(w->indices, w->g.at[1] + j * w->vector_stride);
        if (clamped)
            v = clamp(v, 0, last);
        if (v < 0 || v > last)
            inside = false;
        else
            *at += v * w->stride[d];
    }
    for (int32_t m = 0; m < w->n_batch; m++)
        *at += w->g.index[w->batch_pos[m]] * w->stride[w->batch_dim[m]];
    return inside;
}

Literal *eval_gather(Eval *e, const Inst *i, Literal **x)
{
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r || r->count == 0)
        return r;
    int bytes = type_bytes(r->type);
    if (x[0]->count == 0) {
        memset(r->data, 0, (size_t)literal_bytes(r));
        return r;
    }
    Windows w;
    set_windows(&w, i, &gather_attrs, x[0], x[1], r);
    do {
        int64_t at;
        window_start(&w, true, &at);
        const Odometer *o = &w.window;
        char *to = (char *)r->data + w.g.at[0] * bytes;
        const char *from = (const char *)x[0]->data + at * bytes;
        if (o->rank == 0) {
            memcpy(to, from, (size_t)bytes);
        } else if (o->rank == 1) {
            walk_copy_row(to, o->stride[1][0], from, o->stride[0][0], o->dims[0], bytes);
        } else {
            Odometer swapped = *o;
            memcpy(swapped.stride[0], o->stride[1], sizeof o->stride[0]);
            memcpy(swapped.stride[1], o->stride[0], sizeof o->stride[0]);
            walk_copy(&swapped, to, from, bytes);
        }
    } while (walk_next(&w.g));
    return r;
}

static bool scatter_windows(Eval *e, Body *b, Windows *w, int32_t n, Literal **x, Literal **updates)
{
    Odometer o = w->window;
    do {
        int64_t at;
        if (!window_start(w, false, &at))
            continue; /* the whole window is dropped */
        o.at[0] = at;
        o.at[1] = w->g.at[0];
        if (!body_fold(e, b, n, x, updates, &o))
            return false;
    } while (walk_next(&w->g));
    return true;
}

Literal *eval_scatter(Eval *e, const Inst *i, Literal **x)
{
    int32_t n = (i->n_operands - 1) / 2;
    Body *b = body_get(e, i, inst_callee(i, 0));
    Literal **result = mem_alloc(2 * n, sizeof *result), **update = result + n;
    for (int32_t k = 0; k < n; k++) {
        result[k] = eval_take(e, i, x, k);
        result[k] = eval_cast(e, i, result[k], body_param_type(b, k));
        update[k] = eval_cast(e, i, eval_move(x, n + 1 + k), body_param_type(b, n + k));
    }
    if (!e->failed && update[0]->count > 0) {
        Windows w;
        set_windows(&w, i, &scatter_attrs, result[0], x[n], update[0]);
        scatter_windows(e, b, &w, n, result, update);
    }
    for (int32_t k = 0; k < n; k++)
        eval_drop(e, update[k]);
    Literal *r = eval_results(e, i, n, result);
    mem_free(result);
    return r;
}
