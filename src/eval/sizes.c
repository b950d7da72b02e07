/* Running an instruction on arrays that are smaller than their types (sizes.h).
 *
 *   ALIKE     all arrays have one size: elementwise, map, sort. A dimension that is dynamic in one operand and fixed in another is cut. Of two
 *             dynamic ones, in an operation of two operands, a size of 1 is repeated, else the smaller one counts.
 *   DERIVED   the result follows from operands and attributes by the rule of shape inference. Sizes that must be equal are cut likewise; where
 *             an attribute takes a part of a dynamic dimension, the operand gets its full size back, with zeros.
 *   UPDATED   the whole of operand 0 is updated, and cut to the size that it had (of an update as large as it: to the update's)
 *   CARRIED   values are handed on, or the handler looks at sizes itself
 *   WRITTEN   broadcast and reshape: the result's sizes come from the operand's, the rest from its type */
#include "eval/sizes.h"

#include <string.h>

#include "eval/walk.h"
#include "ir/custom_call.h"
#include "ir/infer.h"

EvalFn eval_get_dimension_size, eval_set_dimension_size, eval_dynamic_reshape;

typedef enum Rule { UNDEFINED, ALIKE, DERIVED, UPDATED, CARRIED, WRITTEN } Rule;

static Rule rule_of(Op op)
{
    switch (op) {
    case OP_MAP: case OP_SORT: case OP_COPY:
        return ALIKE;
    case OP_TRANSPOSE: case OP_REVERSE: case OP_SLICE: case OP_PAD: case OP_CONCATENATE: case OP_DYNAMIC_SLICE: case OP_GATHER:
    case OP_REDUCE: case OP_REDUCE_WINDOW: case OP_SELECT_AND_SCATTER: case OP_DOT: case OP_CONVOLUTION:
        return DERIVED;
    case OP_DYNAMIC_UPDATE_SLICE: case OP_SCATTER:
        return UPDATED;
    case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: case OP_WHILE: case OP_CONDITIONAL: case OP_CALL: case OP_FUSION: case OP_OPT_BARRIER:
    case OP_DOMAIN: case OP_ADD_DEPENDENCY: case OP_AFTER_ALL: case OP_COPY_START: case OP_COPY_DONE: case OP_ASYNC_START:
    case OP_ASYNC_UPDATE: case OP_ASYNC_DONE: case OP_GET_DIMENSION_SIZE: case OP_SET_DIMENSION_SIZE: case OP_DYNAMIC_RESHAPE:
    case OP_PARAMETER: case OP_CONSTANT: case OP_CUSTOM_CALL: case OP_OUTFEED: case OP_SEND: case OP_SEND_DONE: case OP_RECV: case OP_RECV_DONE:
        return CARRIED;
    case OP_BROADCAST: case OP_RESHAPE:
        return WRITTEN;
    default:
        return op_has(op, F_ELEMENTWISE) ? ALIKE : UNDEFINED;
    }
}

bool sizes_fit(const Literal *l, const Shape *s)
{
    bool fits = l->type == s->type && l->rank == s->rank;
    for (int32_t d = 0; d < l->rank && fits; d++)
        fits = l->dims[d] == s->dims[d] || (dim_is_dynamic(s, d) && l->dims[d] < s->dims[d]);
    return fits;
}

/* l with other sizes: cut, and zeros where it grows. Takes over the reference. */
static Literal *resized(Eval *e, const Inst *i, Literal *l, const int64_t *dims)
{
    if (!l || l->rank == 0 || memcmp(l->dims, dims, (size_t)l->rank * sizeof dims[0]) == 0)
        return l;
    Literal *r = eval_new(e, i, l->type, l->rank, dims);
    if (r) {
        Odometer o = {.rank = l->rank, .arrays = 2};
        memset(r->data, 0, (size_t)literal_bytes(r));
        walk_strides(l->rank, dims, o.stride[0]);
        walk_strides(l->rank, l->dims, o.stride[1]);
        for (int32_t d = 0; d < l->rank; d++)
            o.dims[d] = dims[d] < l->dims[d] ? dims[d] : l->dims[d];
        walk_copy(&o, r->data, l->data, type_bytes(l->type));
    }
    eval_drop(e, l);
    return r;
}

/* The part of `full` that has these sizes, which remembers what it is a part of. Takes over the reference. */
static Literal *cut(Eval *e, const Inst *i, Literal *full, const int64_t *dims)
{
    bool inside = full != NULL;
    for (int32_t d = 0; inside && d < full->rank; d++)
        inside = dims[d] <= full->dims[d];
    Literal *kept = inside ? literal_ref(full) : NULL;
    Literal *r = resized(e, i, full, dims);
    if (r && r != kept)
        r->whole = kept;
    else
        eval_drop(e, kept);
    return r;
}

/* What l was cut from, or l. Takes over the reference. */
static Literal *uncut(Eval *e, Literal *l)
{
    if (!l || !l->whole)
        return l;
    Literal *full = literal_ref(l->whole);
    eval_drop(e, l);
    return full;
}

/* The opcodes that are about sizes */

Literal *eval_get_dimension_size(Eval *e, const Inst *i, Literal **x)
{
    Literal *r = eval_new_for(e, i, i->shape);
    if (r)
        literal_set_s64(r, 0, x[0]->dims[inst_ints(i, ATTR_DIMENSIONS).v[0]]);
    return r;
}

static bool in_bound(Eval *e, const Inst *i, int64_t size, int64_t d)
{
    int64_t bound = i->shape->dims[d];
    if (size >= 0 && size <= bound && (size == bound || dim_is_dynamic(i->shape, d)))
        return true;
    eval_fail(e, i, "%s %%%s: the run-time size %lld does not fit dimension %lld of %s", op_name(i->op), i->name, (long long)size,
              (long long)d, shape_text(e->scratch, i->shape));
    return false;
}

Literal *eval_set_dimension_size(Eval *e, const Inst *i, Literal **x)
{
    int64_t dims[WALK_RANK], d = inst_ints(i, ATTR_DIMENSIONS).v[0], size = literal_get_s64(x[1], 0);
    if (!in_bound(e, i, size, d))
        return NULL;
    memcpy(dims, x[0]->dims, (size_t)x[0]->rank * sizeof dims[0]);
    dims[d] = size;
    return cut(e, i, uncut(e, eval_move(x, 0)), dims);
}

static Literal *with_dims(Eval *e, const Inst *i, const Literal *l, int32_t rank, const int64_t *dims)
{
    Literal *r = eval_new(e, i, l->type, rank, dims);
    if (r && r->count > 0)
        memcpy(r->data, l->data, (size_t)literal_bytes(r));
    return r;
}

Literal *eval_dynamic_reshape(Eval *e, const Inst *i, Literal **x)
{
    int64_t dims[WALK_RANK], count = 1;
    for (int32_t d = 0; d < i->shape->rank; d++) {
        dims[d] = literal_get_s64(x[d + 1], 0);
        if (!in_bound(e, i, dims[d], d))
            return NULL;
        count *= dims[d];
    }
    if (count != x[0]->count)
        return eval_fail(e, i, "dynamic-reshape %%%s: the sizes ask for %lld elements, the operand has %lld", i->name, (long long)count,
                         (long long)x[0]->count);
    return with_dims(e, i, x[0], i->shape->rank, dims);
}

/* One instruction on smaller operands */

typedef struct Sized {
    Eval       *e;
    const Inst *i;
    Literal   **x;
    Arena      *a;    /* of this execution */
    int64_t   **want; /* the sizes that the operands shall have */
    Inst       *t;    /* the static instruction */
} Sized;

typedef struct Place {
    int32_t operand;
    int64_t dim;
} Place;

static const Shape *operand_type(const Inst *i, int32_t k)
{
    return inst_operand(i, k)->shape;
}

/* These dimensions must be of one size: what is fixed is cut to what is dynamic. */
static void agree(Sized *s, int32_t n, const Place *p)
{
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < n; k++)
        if (s->want[p[k].operand][p[k].dim] < least)
            least = s->want[p[k].operand][p[k].dim];
    for (int32_t k = 0; k < n; k++) {
        int64_t *size = &s->want[p[k].operand][p[k].dim];
        if (*size != least && dim_is_dynamic(operand_type(s->i, p[k].operand), p[k].dim))
            eval_fail(s->e, s->i, "%s %%%s: operands that must have one size have %lld and %lld", op_name(s->i->op), s->i->name,
                      (long long)least, (long long)*size);
        *size = least;
    }
}

/* Dimension d of operands [0, n), scalars left out. */
static void agree_on(Sized *s, int32_t n, int64_t d)
{
    Place *p = ARENA_ARRAY(s->a, Place, n);
    int32_t m = 0;
    for (int32_t k = 0; k < n; k++)
        if (s->x[k]->rank > 0)
            p[m++] = (Place){k, d};
    agree(s, m, p);
}

static void agree_on_pairs(Sized *s, Ints of_0, Ints of_1)
{
    for (int32_t k = 0; k < of_0.n; k++)
        agree(s, 2, (Place[]){{0, of_0.v[k]}, {1, of_1.v[k]}});
}

/* Array operands that must be of one size in all dimensions. */
static int32_t equal_operands(const Inst *i)
{
    return i->op == OP_REDUCE || i->op == OP_REDUCE_WINDOW ? i->n_operands / 2 : rule_of(i->op) == ALIKE ? i->n_operands : 0;
}

static const DimLabels *labels(const Inst *convolution)
{
    return inst_attr(convolution, ATTR_DIM_LABELS)->value.dim_labels;
}

/* Dimension d of the n operands from `first` on. */
static void agree_on_each(Sized *s, int32_t first, int32_t n, int64_t d)
{
    Place *p = ARENA_ARRAY(s->a, Place, n);
    for (int32_t k = 0; k < n; k++)
        p[k] = (Place){first + k, d};
    agree(s, n, p);
}

/* The dimension of the operand that lies at window dimension k of the updates. */
static int64_t window_target(const Inst *i, int32_t k)
{
    Ints inserted = inst_ints(i, ATTR_INSERTED_WINDOW_DIMS), batch = inst_ints(i, ATTR_INPUT_BATCHING_DIMS);
    int64_t d = 0;
    for (;; d++)
        if (!ints_has(inserted, d) && !ints_has(batch, d) && k-- == 0)
            return d;
}

/* Inputs among themselves, updates among themselves, updates with the indices, and windows with what they cover when run. */
static void agree_on_scatter(Sized *s)
{
    const Inst *i = s->i;
    int32_t n = i->n_operands / 2, rank = s->x[n + 1]->rank;
    Ints window = inst_ints(i, ATTR_UPDATE_WINDOW_DIMS);
    int64_t vector = inst_int(i, ATTR_INDEX_VECTOR_DIM, 0), of_indices = 0;
    for (int32_t d = 0; d < s->x[0]->rank; d++)
        agree_on_each(s, 0, n, d);
    for (int32_t d = 0; d < rank; d++)
        agree_on_each(s, n + 1, n, d);
    for (int32_t d = 0; d < rank; d++) {
        if (ints_has(window, d))
            continue;
        of_indices += of_indices == vector;
        agree(s, 2, (Place[]){{n, of_indices++}, {n + 1, d}});
        for (int32_t k = 1; k < n; k++)
            s->want[n + 1 + k][d] = s->want[n + 1][d];
    }
    for (int32_t k = 0; k < window.n; k++)
        if (dim_is_dynamic(operand_type(i, n + 1), window.v[k]))
            agree(s, 2, (Place[]){{0, window_target(i, k)}, {n + 1, window.v[k]}});
}

/* Operand k n times along its dimension d, whose size is 1. */
static void repeat(Sized *s, int32_t k, int64_t d, int64_t n)
{
    Literal *l = s->x[k];
    s->want[k][d] = n;
    Literal *r = eval_new(s->e, s->i, l->type, l->rank, s->want[k]);
    if (r && r->count > 0) {
        Odometer o = {.rank = l->rank, .arrays = 2};
        memcpy(o.dims, r->dims, (size_t)l->rank * sizeof o.dims[0]);
        walk_strides(l->rank, r->dims, o.stride[0]);
        walk_strides(l->rank, l->dims, o.stride[1]);
        o.stride[1][d] = 0;
        walk_copy(&o, r->data, l->data, type_bytes(l->type));
    }
    eval_drop(s->e, l);
    s->x[k] = r;
}

/* Two operands, both dynamic in dimension d. */
static void meet(Sized *s, int64_t d)
{
    int64_t a = s->want[0][d], b = s->want[1][d], least = a < b ? a : b;
    if (least == 1 && a != b)
        repeat(s, a == 1 ? 0 : 1, d, a == 1 ? b : a);
    else
        s->want[0][d] = s->want[1][d] = least;
}

static bool meets(const Inst *i, int64_t d)
{
    return i->n_operands == 2 && op_has(i->op, F_ELEMENTWISE) && dim_is_dynamic(operand_type(i, 0), d) && dim_is_dynamic(operand_type(i, 1), d);
}

static void agree_on_all(Sized *s)
{
    const Inst *i = s->i;
    int32_t rank = 0, n = equal_operands(i);
    for (int32_t k = 0; k < n; k++)
        rank = s->x[k]->rank > rank ? s->x[k]->rank : rank;
    for (int32_t d = 0; d < rank && !s->e->failed; d++)
        if (meets(i, d))
            meet(s, d);
        else
            agree_on(s, n, d);
    if (i->op == OP_CONCATENATE)
        for (int64_t d = 0, along = inst_ints(i, ATTR_DIMENSIONS).v[0]; d < s->x[0]->rank; d++)
            if (d != along)
                agree_on(s, i->n_operands, d);
    if (i->op == OP_DOT) {
        agree_on_pairs(s, inst_ints(i, ATTR_LHS_BATCH_DIMS), inst_ints(i, ATTR_RHS_BATCH_DIMS));
        agree_on_pairs(s, inst_ints(i, ATTR_LHS_CONTRACTING_DIMS), inst_ints(i, ATTR_RHS_CONTRACTING_DIMS));
    }
    if (i->op == OP_GATHER)
        agree_on_pairs(s, inst_ints(i, ATTR_OPERAND_BATCHING_DIMS), inst_ints(i, ATTR_START_INDICES_BATCHING_DIMS));
    if (i->op == OP_CONVOLUTION && (shape_is_dynamic(operand_type(i, 1)) || dim_is_dynamic(operand_type(i, 0), labels(i)->lhs_feature)))
        agree(s, 2, (Place[]){{0, labels(i)->lhs_feature}, {1, labels(i)->rhs_in}});
    if (i->op == OP_SCATTER)
        agree_on_scatter(s);
}

static bool takes_whole(const Inst *i, int64_t d)
{
    int64_t bound = operand_type(i, 0)->dims[d];
    if (i->op != OP_SLICE)
        return bound != 1 && inst_ints(i, i->op == OP_GATHER ? ATTR_SLICE_SIZES : ATTR_DYNAMIC_SLICE_SIZES).v[d] == bound;
    const SliceRange *r = &inst_attr(i, ATTR_SLICE)->value.slices->v[d];
    return bound != 1 && r->start == 0 && r->limit == bound && r->stride == 1;
}

static bool is_batching(const Inst *i, int64_t d)
{
    return i->op == OP_GATHER && ints_has(inst_ints(i, ATTR_OPERAND_BATCHING_DIMS), d);
}

static Attr *own_attr(Inst *t, AttrId id)
{
    for (int32_t k = 0; k < t->n_attrs; k++)
        if (t->attrs[k].id == id)
            return &t->attrs[k];
    die("%s without its attribute", op_name(t->op));
}

/* A slice of a dynamic dimension that is more than one element is dynamic: it takes what there is of it. */
static bool takes_part(const Inst *i, int64_t d)
{
    return i->op == OP_SLICE && dim_is_dynamic(operand_type(i, 0), d) && i->shape->dims[d] != 1;
}

/* slice, dynamic-slice and gather: what takes the whole of a dimension takes what there is of it. */
static void fit_slice(Sized *s)
{
    const Inst *i = s->i;
    const Shape *type = operand_type(i, 0);
    for (int32_t d = 0; d < type->rank; d++)
        if (!takes_whole(i, d) && !takes_part(i, d) && !is_batching(i, d))
            s->want[0][d] = type->dims[d];
    if (i->op == OP_SLICE) {
        Slices *own = arena_copy(s->a, inst_attr(i, ATTR_SLICE)->value.slices, sizeof *own);
        SliceRange *v = arena_copy(s->a, own->v, (size_t)own->n * sizeof *v);
        for (int32_t d = 0; d < own->n; d++) {
            v[d].limit = v[d].limit < s->want[0][d] ? v[d].limit : s->want[0][d];
            v[d].start = v[d].start < v[d].limit ? v[d].start : v[d].limit;
        }
        own->v = v;
        own_attr(s->t, ATTR_SLICE)->value.slices = own;
        return;
    }
    AttrId id = i->op == OP_GATHER ? ATTR_SLICE_SIZES : ATTR_DYNAMIC_SLICE_SIZES;
    Ints sizes = ints_copy(s->a, inst_ints(i, id));
    for (int32_t d = 0; d < sizes.n; d++)
        if (takes_whole(i, d))
            *ints_at(sizes, d) = s->want[0][d];
    own_attr(s->t, id)->value.ints = sizes;
}

/* s with these sizes, without dynamic dimensions. */
static const Shape *resized_type(Arena *a, const Shape *s, const int64_t *dims)
{
    Shape *r = arena_copy(a, s, sizeof *r);
    r->dims = arena_copy(a, dims, (size_t)s->rank * sizeof dims[0]);
    r->dynamic = NULL;
    return r;
}

/* The type as written, with the sizes that were derived. */
static const Shape *sized_result(Arena *a, const Shape *written, const Shape *derived)
{
    if (!shape_is_tuple(written))
        return resized_type(a, written, derived->dims);
    const Shape **elems = ARENA_ARRAY(a, const Shape *, written->n_elems);
    for (int32_t k = 0; k < written->n_elems; k++)
        elems[k] = resized_type(a, written->elems[k], shape_is_tuple(derived) ? derived->elems[k]->dims : derived->dims);
    return shape_tuple(a, written->n_elems, elems);
}

/* A copy of i whose operands and attributes may be changed. */
static Inst *own_copy(Arena *a, const Inst *i)
{
    Inst *t = arena_copy(a, i, sizeof *t);
    t->attrs = arena_copy(a, i->attrs, (size_t)i->n_attrs * sizeof *t->attrs);
    t->operands = ARENA_ARRAY(a, Use, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        t->operands[k] = (Use){.def = arena_copy(a, inst_operand(i, k), sizeof(Inst)), .user = t, .index = k};
    return t;
}

static const Shape *derive(Sized *s)
{
    Diag quiet;
    diag_init(&quiet, s->a);
    const Shape *derived = infer_shape(s->a, s->t, &quiet);
    if (!derived)
        eval_fail(s->e, s->i, "%s %%%s: its operands' run-time sizes do not go together", op_name(s->i->op), s->i->name);
    return derived;
}

static const Shape *result_type(Sized *s)
{
    const Inst *i = s->i;
    int64_t dims[WALK_RANK];
    if (rule_of(i->op) == ALIKE) { /* an array's size, when scalars stand beside it */
        int32_t k = 0;
        while (k < i->n_operands - 1 && s->x[k]->rank == 0)
            k++;
        return sized_result(s->a, i->shape, operand_type(s->t, k));
    }
    if (rule_of(i->op) == DERIVED) {
        const Shape *derived = derive(s);
        return derived ? sized_result(s->a, i->shape, derived) : NULL;
    }
    if (i->op == OP_BROADCAST) {
        Ints to = inst_ints(i, ATTR_DIMENSIONS);
        memcpy(dims, i->shape->dims, (size_t)i->shape->rank * sizeof dims[0]);
        for (int32_t k = 0; k < to.n; k++)
            dims[to.v[k]] = s->x[0]->dims[k];
    } else {
        const char *why = sizes_reshape(i, s->x[0]->dims, dims);
        if (why) {
            eval_fail(s->e, i, "reshape %%%s %s", i->name, why);
            return NULL;
        }
    }
    return resized_type(s->a, i->shape, dims);
}

static bool any_smaller(const Inst *i, Literal *const *x)
{
    bool smaller = false;
    for (int32_t k = 0; k < i->n_operands && !smaller; k++) {
        const Shape *s = operand_type(i, k);
        smaller = s->dynamic && x[k]->rank > 0 && memcmp(x[k]->dims, s->dims, (size_t)s->rank * sizeof s->dims[0]) != 0;
    }
    return smaller;
}

/* The source of select-and-scatter has the sizes of the windows of the operand. */
static void fit_source(Sized *s)
{
    const Window *w = inst_window(s->i);
    for (int32_t d = 0; d < s->x[0]->rank; d++) {
        int64_t *size = &s->want[1][d], fits = window_output_size(&w->v[d], s->want[0][d]);
        if (*size != fits && (*size < fits || dim_is_dynamic(operand_type(s->i, 1), d)))
            eval_fail(s->e, s->i, "select-and-scatter %%%s: the windows of dimension %d are %lld, the source has %lld", s->i->name, d,
                      (long long)fits, (long long)*size);
        *size = fits;
    }
}

/* Sizes of the result of an update: those of the operand, where no update covers it and has a size of its own. */
static int64_t *updated_sizes(const Sized *s)
{
    const Inst *i = s->i;
    int64_t *dims = arena_copy(s->a, s->want[0], (size_t)s->x[0]->rank * sizeof(int64_t));
    for (int32_t d = 0; i->op == OP_DYNAMIC_UPDATE_SLICE && d < s->x[0]->rank; d++)
        if (dim_is_dynamic(operand_type(i, 1), d) && operand_type(i, 1)->dims[d] == operand_type(i, 0)->dims[d])
            dims[d] = s->x[1]->dims[d];
    return dims;
}

static Literal *run_updated(Sized *s)
{
    const Inst *i = s->i;
    int32_t n = i->op == OP_SCATTER ? i->n_operands / 2 : 1;
    int64_t *dims = updated_sizes(s);
    for (int32_t k = 0; k < i->n_operands && !s->e->failed; k++)
        s->x[k] = k < n ? resized(s->e, i, uncut(s->e, s->x[k]), operand_type(i, k)->dims) : resized(s->e, i, s->x[k], s->want[k]);
    Literal *r = s->e->failed ? NULL : eval_handlers[i->op](s->e, i, s->x);
    if (!r || n == 1)
        return r ? cut(s->e, i, r, dims) : NULL;
    for (int32_t k = 0; k < n; k++)
        r->elems[k] = cut(s->e, i, r->elems[k], dims);
    return r;
}

static Literal *run_static(Sized *s)
{
    const Inst *i = s->i;
    s->want = ARENA_ARRAY(s->a, int64_t *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        s->want[k] = arena_copy(s->a, s->x[k]->dims, (size_t)s->x[k]->rank * sizeof(int64_t));
    s->t = own_copy(s->a, i);
    agree_on_all(s);
    if (rule_of(i->op) == UPDATED)
        return run_updated(s);
    if (i->op == OP_SELECT_AND_SCATTER)
        fit_source(s);
    if (i->op == OP_SLICE || i->op == OP_DYNAMIC_SLICE || i->op == OP_GATHER)
        fit_slice(s);
    for (int32_t k = 0; k < i->n_operands && !s->e->failed; k++) {
        s->x[k] = resized(s->e, i, s->x[k], s->want[k]);
        s->t->operands[k].def->shape = resized_type(s->a, operand_type(i, k), s->want[k]);
    }
    const Shape *type = s->e->failed ? NULL : result_type(s);
    if (!type)
        return NULL;
    s->t->shape = type;
    return eval_handlers[i->op](s->e, s->t, s->x);
}

/* An operand whose memory became the result's brought what it was cut from. Of one that is shared nothing has changed. */
static void forget_whole(Eval *e, Literal *r)
{
    if (r->refs > 1)
        return;
    eval_drop(e, r->whole);
    r->whole = NULL;
    for (int32_t k = 0; k < r->n_elems; k++)
        forget_whole(e, r->elems[k]);
}

Literal *eval_sized(Eval *e, const Inst *i, Literal **x)
{
    Rule rule = rule_of(i->op);
    if (rule == CARRIED || rule == UNDEFINED || !any_smaller(i, x))
        return eval_handlers[i->op](e, i, x);
    Sized s = {.e = e, .i = i, .x = x, .a = arena_new()};
    Literal *r = run_static(&s);
    if (r && rule != UPDATED && i->op != OP_COPY)
        forget_whole(e, r);
    arena_free(s.a);
    return r;
}

/* What is asked before anything runs */

static const char undefined[] = "is not defined for dynamic dimensions";

/* True when every dimension that is dynamic in a part of `from` is so in that of `to`. */
static bool covers(const Shape *to, const Shape *from)
{
    bool ok = to->type == from->type || !shape_is_tuple(from);
    for (int32_t k = 0; shape_is_tuple(from) && k < from->n_elems && ok; k++)
        ok = k < to->n_elems && covers(to->elems[k], from->elems[k]);
    for (int32_t d = 0; from->dynamic && d < from->rank && ok; d++)
        ok = !from->dynamic[d] || (d < to->rank && dim_is_dynamic(to, d));
    return ok;
}

static bool callees_cover(const Inst *i)
{
    bool ok = true;
    for (int32_t c = 0; c < i->n_callees && ok; c++) {
        const Comp *callee = inst_callee(i, c);
        for (int32_t k = 0; k < callee->n_params && ok; k++) {
            int32_t from = i->op == OP_CONDITIONAL ? c + 1 : k; /* of while: its state, of both */
            ok = from >= i->n_operands || covers(comp_param(callee, k)->shape, operand_type(i, from));
        }
    }
    if (i->op == OP_WHILE)
        return ok && covers(comp_param(while_body(i), 0)->shape, while_body(i)->root->shape) &&
               covers(comp_param(while_condition(i), 0)->shape, while_body(i)->root->shape) && covers(i->shape, while_body(i)->root->shape);
    for (int32_t c = 0; c < i->n_callees && ok && (i->op == OP_CALL || i->op == OP_FUSION || i->op == OP_CONDITIONAL); c++)
        ok = covers(i->shape, inst_callee(i, c)->root->shape);
    if (i->op == OP_ASYNC_START || i->op == OP_ASYNC_UPDATE)
        ok = ok && covers(i->shape->elems[1], inst_callee(i, 0)->root->shape);
    return ok;
}

/* A marker gives its operand on; other calls, and the computations that they name, know fixed sizes only. */
static const char *call_refused(const Inst *i)
{
    bool fixed = true;
    for (int32_t k = 0; k < i->n_operands; k++)
        fixed = fixed && !shape_is_dynamic(operand_type(i, k));
    for (int32_t k = 0; k < i->n_callees; k++)
        fixed = fixed && !shape_is_dynamic(inst_callee(i, k)->root->shape);
    bool marker = custom_call_is_marker(inst_string(i, ATTR_CUSTOM_CALL_TARGET));
    bool same = marker && !shape_is_tuple(i->shape) && shape_compatible(i->shape, operand_type(i, 0)) && covers(i->shape, operand_type(i, 0));
    return same || fixed ? NULL : undefined;
}

static const char *carrying_refused(const Inst *i)
{
    bool ok = true;
    switch (i->op) {
    case OP_TUPLE:
        for (int32_t k = 0; k < i->n_operands && ok; k++)
            ok = covers(i->shape->elems[k], operand_type(i, k));
        break;
    case OP_GET_TUPLE_ELEMENT: ok = covers(i->shape, operand_type(i, 0)->elems[inst_int(i, ATTR_INDEX, 0)]); break;
    case OP_WHILE: case OP_CONDITIONAL: case OP_CALL: case OP_FUSION: case OP_ASYNC_START: case OP_ASYNC_UPDATE: ok = callees_cover(i); break;
    case OP_OPT_BARRIER: case OP_DOMAIN: case OP_ADD_DEPENDENCY: ok = covers(i->shape, operand_type(i, 0)); break;
    case OP_COPY_START: ok = covers(i->shape->elems[0], operand_type(i, 0)) && covers(i->shape->elems[1], operand_type(i, 0)); break;
    case OP_COPY_DONE: ok = covers(i->shape, operand_type(i, 0)->elems[0]); break;
    case OP_ASYNC_DONE: ok = covers(i->shape, operand_type(i, 0)->elems[1]); break;
    case OP_CUSTOM_CALL: return call_refused(i);
    case OP_SEND: ok = covers(i->shape->elems[0], operand_type(i, 0)); break;
    case OP_RECV_DONE: ok = covers(i->shape->elems[0], operand_type(i, 0)->elems[0]); break;
    case OP_SET_DIMENSION_SIZE: {
        const Shape *s = operand_type(i, 0);
        int64_t set = inst_ints(i, ATTR_DIMENSIONS).v[0];
        for (int32_t d = 0; d < s->rank && ok; d++)
            ok = d == set || !dim_is_dynamic(s, d) || dim_is_dynamic(i->shape, d);
        break;
    }
    default: break; /* asks for nothing */
    }
    return ok ? NULL : "gives a dynamic dimension on as one of a fixed size";
}

/* A window of dynamic size is all of what it covers, at its beginning; the vectors of the indices are whole. */
static const char *scatter_refused(const Inst *i)
{
    int32_t n = i->n_operands / 2;
    const Shape *s = operand_type(i, 0), *u = operand_type(i, n + 1);
    Ints window = inst_ints(i, ATTR_UPDATE_WINDOW_DIMS);
    int64_t vector = inst_int(i, ATTR_INDEX_VECTOR_DIM, 0);
    if (vector < operand_type(i, n)->rank && dim_is_dynamic(operand_type(i, n), vector))
        return "has vectors of indices of a dynamic size";
    for (int32_t k = 0; k < window.n; k++) {
        int64_t d = window_target(i, k);
        if (dim_is_dynamic(u, window.v[k]) && (!dim_is_dynamic(s, d) || s->dims[d] != u->dims[window.v[k]] ||
                                               ints_has(inst_ints(i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS), d)))
            return "has windows of a dynamic size that are not all of a dynamic dimension";
    }
    return NULL;
}

static const char *update_refused(const Inst *i)
{
    const Shape *s = operand_type(i, 0), *u = operand_type(i, 1);
    for (int32_t d = 0; i->op == OP_DYNAMIC_UPDATE_SLICE && d < s->rank; d++)
        if (dim_is_dynamic(u, d) && u->dims[d] == s->dims[d] && !dim_is_dynamic(i->shape, d))
            return "makes a dynamic dimension one of a fixed size";
    return i->op == OP_SCATTER ? scatter_refused(i) : NULL;
}

static const char *convolution_refused(const Inst *i)
{
    const DimLabels *l = labels(i);
    const Shape *kernel = operand_type(i, 1);
    bool features = dim_is_dynamic(operand_type(i, 0), l->lhs_feature) || dim_is_dynamic(kernel, l->rhs_in);
    for (int32_t d = 0; d < kernel->rank; d++)
        if (dim_is_dynamic(kernel, d) && d != l->rhs_in)
            return "has a dynamic dimension of the kernel that is not its input features";
    if (features && (inst_int(i, ATTR_FEATURE_GROUP_COUNT, 1) > 1 || inst_int(i, ATTR_BATCH_GROUP_COUNT, 1) > 1))
        return "has groups of dynamic features";
    return inst_int(i, ATTR_BATCH_GROUP_COUNT, 1) > 1 && dim_is_dynamic(operand_type(i, 0), l->lhs_batch) ? "has groups of a dynamic batch" : NULL;
}

static const char *broadcast_refused(const Inst *i)
{
    Ints to = inst_ints(i, ATTR_DIMENSIONS);
    for (int32_t k = 0; k < to.n; k++)
        if (dim_is_dynamic(operand_type(i, 0), k) && !dim_is_dynamic(i->shape, to.v[k]))
            return "makes a dynamic dimension one of a fixed size";
    return NULL;
}

static const char *derived_refused(Arena *a, const Inst *i)
{
    const char *why = i->op == OP_CONVOLUTION ? convolution_refused(i) : rule_of(i->op) == UPDATED ? update_refused(i) : NULL;
    Diag quiet;
    diag_init(&quiet, a);
    const Shape *derived = why ? NULL : infer_shape(a, i, &quiet);
    return derived && !covers(i->shape, derived) ? "makes a dynamic dimension one of a fixed size" : why;
}

const char *sizes_refused(Arena *a, const Inst *i)
{
    bool dynamic = false;
    for (int32_t k = 0; k < i->n_operands && !dynamic; k++)
        dynamic = shape_is_dynamic(operand_type(i, k));
    if (shape_is_array(i->shape) && i->shape->rank > WALK_RANK) /* refused when sizes are looked at */
        return NULL;
    if (!dynamic)
        return i->n_callees > 0 && rule_of(i->op) == CARRIED ? carrying_refused(i) : NULL;
    int64_t dims[WALK_RANK];
    switch (rule_of(i->op)) {
    case UNDEFINED: return undefined;
    case CARRIED: return carrying_refused(i);
    case WRITTEN: return i->op == OP_BROADCAST ? broadcast_refused(i) : sizes_reshape(i, operand_type(i, 0)->dims, dims);
    case ALIKE: case DERIVED: case UPDATED: break;
    }
    return derived_refused(a, i);
}
