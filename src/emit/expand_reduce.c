/* A large reduction to few elements, so that threads may share it: the outermost dimension that is reduced in equal parts, a result for each of them, then those.
 *
 *     r = f32[] reduce(x, init)        =>        s = f32[64,16,1024] reshape(x)                 x: f32[1024,1024]
 *                                                p = f32[64] reduce(s, 0), dimensions={1,2}
 *                                                r = f32[] reduce(p, init), dimensions={0}
 *
 * The parts follow from the shape, so that the bits do not depend on the number of threads. A reduction at the end of a fusion keeps what is fused
 * into it. Narrow floats would round once more in between and stay as they are.
 *
 * Of a fusion in which there is more than such sums they are fusions of their own, those together that do not need each other:
 *
 *     y = fusion(x): x / sum(x)                  =>   s = fusion(x): sum(x);  y = fusion(x, s): x / s
 *     m, v = fusion(x): sum(x), sum(x * x) / n   =>   m, q = fusion(x): sum(x), sum(x * x), both by parts in the same loops;  v = fusion(q): q / n
 *
 * What is reduced along short rows of each of many pixels (the statistics of a group norm whose features are last) is reduced over pixels first, as columns beside each other:
 *
 *     r = f32[2,4] reduce(x), dimensions={1,3}   =>   p = f32[2,4,15] reduce(x), dimensions={1};  r = f32[2,4] reduce(p), dimensions={2}          x: f32[2,900,4,15]
 *
 * A sum over what short rows have (a cross-entropy of ten classes) is one of numbers in memory, so that the rows may go beside each other (beside.h). On a device, where lower.c
 * does that of all rows, a sum over rows and along them of what is made of the rows' own sums (a cross-entropy of probabilities) is made one of numbers of each row before. */
#include "emit/expand.h"

#include "analysis/choice.h"
#include "analysis/cost.h"
#include "emit/lower.h"
#include "passes/util.h"
#include "support/map.h"
#include "support/vec.h"

enum { LEAST = 1 << 19 /* elements */, MOST_RESULTS = 8192, LEAST_ROWS = 16 /* of a part that has many results */, LEAST_PARTS = 8, MOST_PARTS = 64 };

bool reduction_has_parts(const Inst *r)
{
    Type t = r->shape->type;
    if (t != TYPE_F32 && t != TYPE_F64 && t != TYPE_S32 && t != TYPE_U32 && t != TYPE_S64 && t != TYPE_U64)
        return false;
    switch (comp_binary_op(inst_callee(r, 0))) {
    case OP_ADD: case OP_MULTIPLY: case OP_MAXIMUM: case OP_MINIMUM: case OP_AND: case OP_OR: return true;
    default: return false;
    }
}

Inst *reduction_start_of_part(Inst *r)
{
    Type t = r->shape->type;
    Op   op = comp_binary_op(inst_callee(r, 0));
    if (op != OP_ADD && op != OP_MULTIPLY)
        return inst_operand(r, 1);
    double v = op == OP_MULTIPLY ? 1 : type_is_float(t) ? -0.0 : 0;
    return inst_constant(r->comp, r, literal_from_f64(t, v), NULL);
}

/* The dimension that is cut: the first one that r reduces and that has more than one element; -1: there is none, or there are rows enough around it. */
static int32_t cut_dim(const Inst *r)
{
    const Shape *in = inst_operand(r, 0)->shape;
    int64_t      rows = 1;
    for (int32_t d = 0; d < in->rank && rows < LEAST_PARTS; d++) {
        if (in->dims[d] > 1 && ints_has(inst_ints(r, ATTR_DIMENSIONS), d))
            return d;
        rows *= in->dims[d];
    }
    return -1;
}

/* The number of parts: the largest that divides that dimension, one that leaves a row whole vectors if any does. 0: none does. */
static int64_t parts_of(const Shape *in, int32_t cut)
{
    enum { VECTORS = 64 };
    int64_t best = 0, n = in->dims[cut];
    for (int64_t p = MOST_PARTS; p >= LEAST_PARTS; p--) {
        if (n % p != 0)
            continue;
        if (in->rank > cut + 1 || n / p % VECTORS == 0)
            return p;
        best = best ? best : p;
    }
    return best;
}

/* The first one of the innermost dimensions, all of which r reduces, that are a short row between which and what else is reduced something is kept; the rank: there are none. */
static int32_t first_of_rows(const Inst *r)
{
    enum { LONGEST = 31, LEAST_PIXELS = 8, LEAST_ALL = 1024 };
    const Shape *in = inst_operand(r, 0)->shape;
    const Ints   dims = inst_ints(r, ATTR_DIMENSIONS);
    int64_t      row = 1, kept = 1, pixels = 1, other = 1;
    int32_t      d = in->rank, first;
    if (!layout_is_row_major(in) || shape_count(in) < LEAST_ALL)
        return in->rank;
    while (d > 0 && ints_has(dims, d - 1))
        row *= in->dims[--d];
    first = d;
    while (d > 0 && !ints_has(dims, d - 1))
        kept *= in->dims[--d];
    for (; d > 0; d--)
        *(ints_has(dims, d - 1) ? &pixels : &other) *= in->dims[d - 1];
    return row > 1 && row <= LONGEST && kept > 1 && pixels >= LEAST_PIXELS && other * kept * row <= MOST_RESULTS ? first : in->rank;
}

static bool is_in_parts(const Inst *r)
{
    const Shape *in = inst_operand(r, 0)->shape;
    if (shape_count(in) < LEAST || shape_count(r->shape) > MOST_RESULTS)
        return false;
    int32_t cut = cut_dim(r);
    int64_t parts = cut >= 0 ? parts_of(in, cut) : 0;
    bool    long_parts = parts > 0 && shape_count(in) / parts >= LEAST_ROWS * shape_count(r->shape);
    return layout_is_row_major(in) && layout_is_row_major(r->shape) && long_parts;
}

static bool is_divided(const Inst *r)
{
    if (r->op != OP_REDUCE || r->n_operands != 2 || !layout_is_row_major(r->shape) || !reduction_has_parts(r))
        return false;
    return is_in_parts(r) || first_of_rows(r) < inst_operand(r, 0)->shape->rank;
}

/* How r's operand is cut: the dimension that becomes two, -1: none; the first one that is reduced later. */
typedef struct Cutting {
    int32_t dim, rows;
    int64_t parts;
} Cutting;

static Cutting cutting_of(const Inst *r)
{
    const Shape *in = inst_operand(r, 0)->shape;
    Cutting      c = { is_in_parts(r) ? cut_dim(r) : -1, first_of_rows(r), 1 };
    c.parts = c.dim >= 0 ? parts_of(in, c.dim) : 1;
    c.rows = c.rows > c.dim ? c.rows : in->rank;
    return c;
}

/* A result for each part, in front of r. */
static Inst *parts_before(Inst *r)
{
    Arena        *a = r->comp->module->arena;
    Inst         *x = inst_operand(r, 0);
    const Shape  *in = x->shape;
    const Ints    dims = inst_ints(r, ATTR_DIMENSIONS);
    const Cutting c = cutting_of(r);
    const int32_t more = c.dim >= 0;
    int32_t       n_kept = 0, n_reduced = 0;
    int64_t      *split = ARENA_ARRAY(a, int64_t, in->rank + 1), *kept = ARENA_ARRAY(a, int64_t, in->rank + 1), *reduced = ARENA_ARRAY(a, int64_t, dims.n);
    for (int32_t d = 0; d < in->rank; d++) {
        if (d == c.dim)
            kept[n_kept++] = split[d] = c.parts;
        else if (d >= c.rows || !ints_has(dims, d))
            kept[n_kept++] = in->dims[d];
        split[more && d >= c.dim ? d + 1 : d] = d == c.dim ? in->dims[d] / c.parts : in->dims[d];
    }
    for (int32_t k = 0; k < dims.n; k++)
        if (dims.v[k] < c.rows)
            reduced[n_reduced++] = dims.v[k] < c.dim || !more ? dims.v[k] : dims.v[k] + 1;
    if (more)
        x = inst_new(r->comp, r, OP_RESHAPE, shape_array(a, in->type, in->rank + 1, split), 1, &x, NULL);
    Inst *operands[] = { x, reduction_start_of_part(r) };
    Inst *p = inst_new(r->comp, r, OP_REDUCE, shape_array(a, r->shape->type, n_kept, kept), 2, operands, NULL);
    Comp *by = inst_callee(r, 0);
    inst_set_ints(p, ATTR_DIMENSIONS, (Ints){ .v = reduced, .n = n_reduced });
    inst_set_callees(p, 1, &by);
    p->meta = r->meta;
    p->loc = r->loc;
    if (more) {
        x->meta = r->meta;
        x->loc = r->loc;
    }
    return p;
}

/* Of r's results the dimensions that its parts' have more; how many. */
static int32_t dims_of_parts(const Inst *r, int64_t *more)
{
    const Shape  *in = inst_operand(r, 0)->shape;
    const Ints    dims = inst_ints(r, ATTR_DIMENSIONS);
    const Cutting c = cutting_of(r);
    int64_t       kept = 0;
    int32_t       n = 0;
    for (int32_t d = 0; d < in->rank; d++) {
        if (d == c.dim || d >= c.rows)
            more[n++] = kept;
        kept += d == c.dim || d >= c.rows || !ints_has(dims, d);
    }
    return n;
}

/* The results of the parts as one, in front of i. */
static Inst *joined_before(Inst *i, const Inst *r, Inst *parts, Inst *start)
{
    Inst *joined = inst_new(i->comp, i, OP_REDUCE, r->shape, 2, (Inst *const[]){ parts, start }, NULL);
    Comp *by = inst_callee(r, 0);
    int64_t *dims = ARENA_ARRAY(i->comp->module->arena, int64_t, inst_operand(r, 0)->shape->rank);
    inst_set_ints(joined, ATTR_DIMENSIONS, (Ints){ .v = dims, .n = dims_of_parts(r, dims) });
    inst_set_callees(joined, 1, &by);
    joined->meta = i->meta;
    joined->loc = i->loc;
    return joined;
}

static void join_parts(Inst *i, const Inst *r, Inst *parts, Inst *start)
{
    inst_replace(i, joined_before(i, r, parts, start));
    inst_delete(i);
}

/* The value that a fusion's reduction starts with, outside. */
static Inst *start_outside(Inst *i, const Inst *start)
{
    return start->op == OP_PARAMETER ? inst_operand(i, (int32_t)start->param) : inst_clone_into(i->comp, i, start, 0, NULL);
}

/* A fusion of that body, which has i's parameters, in front of i. */
static Inst *fusion_before(Inst *i, Comp *body)
{
    int32_t n = i->n_operands;
    Inst  **operands = ARENA_ARRAY(i->comp->module->arena, Inst *, n);
    for (int32_t k = 0; k < n; k++)
        operands[k] = inst_operand(i, k);
    comp_sweep_dead(body, body->n_insts);
    Inst *f = inst_new(i->comp, i, OP_FUSION, body->root->shape, n, operands, NULL);
    inst_set_word(f, ATTR_FUSION_KIND, inst_word(i, ATTR_FUSION_KIND));
    inst_set_callees(f, 1, &body);
    f->meta = i->meta;
    f->loc = i->loc;
    return f;
}

void expand_in_two(Inst *i, Inst *(*parts)(Inst *r), void (*join)(Inst *i, const Inst *r, Inst *parts, Inst *start))
{
    if (i->op != OP_FUSION) {
        join(i, i, parts(i), inst_operand(i, 1));
        return;
    }
    Comp *whole = inst_callee(i, 0), *body = comp_clone(whole, whole->name);
    Inst *start = start_outside(i, inst_operand(whole->root, 1));
    body->root = parts(body->root);
    join(i, whole->root, fusion_before(i, body), start);
}

/* ---- sums of which more is made ---- */

typedef struct Sums {
    Arena *a;
    VEC(const Inst *) v; /* in i's body, none needs another */
    bool all;            /* they are the results of i, one or more, and nothing else is */
} Sums;

/* What a kernel keeps in a cache until it is wanted again, a row or a column, is reduced there. */
static bool is_kept(const Inst *x)
{
    const Shape *in = inst_operand(x, 0)->shape;
    return shape_count(in) / shape_count(x->shape) * type_bytes(in->type) <= KEPT_ROW_BYTES;
}

static bool is_sum(const Inst *x, bool ends_small)
{
    const bool outside = is_divided(x) && (inst_operand(x, 1)->op == OP_PARAMETER || inst_operand(x, 1)->op == OP_CONSTANT);
    return outside && (ends_small || !is_kept(x) || first_of_rows(x) < inst_operand(x, 0)->shape->rank);
}

static int32_t n_results(const Comp *body)
{
    return body->root->op == OP_TUPLE ? body->root->n_operands : 1;
}

static Inst *result_of(const Comp *body, int32_t k)
{
    return body->root->op == OP_TUPLE ? inst_operand(body->root, k) : body->root;
}

static bool find_sums(const Inst *i, Sums *s)
{
    const Comp *body = inst_callee(i, 0);
    Map         later = map_new(s->a); /* what needs one, and themselves */
    bool        ends_small = true;
    s->v.n = 0;
    for (int32_t k = 0; k < n_results(body); k++) {
        if (!shape_is_array(result_of(body, k)->shape))
            return false;
        ends_small &= shape_count(result_of(body, k)->shape) <= MOST_RESULTS;
    }
    for (const Inst *x = body->first; x; x = x->next) {
        bool after = false;
        for (int32_t k = 0; k < x->n_operands && !after; k++)
            after = map_get(&later, inst_operand(x, k)) != NULL;
        if (!after && is_sum(x, ends_small))
            vec_push(s->a, &s->v, x);
        if (after || is_sum(x, ends_small))
            map_put(&later, x, (void *)(uintptr_t)x);
    }
    s->all = true;
    for (int32_t k = 0; k < n_results(body); k++) {
        const Inst *r = result_of(body, k);
        bool        one = false;
        for (int32_t j = 0; j < s->v.n && !one; j++)
            one = s->v.v[j] == r;
        s->all &= one;
    }
    return s->v.n > 0;
}

bool reduce_expands(const Inst *i)
{
    if (i->op != OP_FUSION)
        return is_divided(i);
    Sums s = { .a = arena_new() };
    bool any = i->n_callees == 1 && find_sums(i, &s);
    arena_free(s.a);
    return any;
}

static Inst *element_before(Inst *i, Inst *tuple, int32_t k)
{
    Inst *e = inst_new(i->comp, i, OP_GET_TUPLE_ELEMENT, tuple->shape->elems[k], 1, &tuple, NULL);
    inst_set_int(e, ATTR_INDEX, k);
    return e;
}

static Inst *tuple_of(Comp *c, Inst *before, int32_t n, Inst *const *v)
{
    Arena        *a = c->module->arena;
    const Shape **shapes = ARENA_ARRAY(a, const Shape *, n);
    for (int32_t k = 0; k < n; k++)
        shapes[k] = v[k]->shape;
    return inst_new(c, before, OP_TUPLE, shape_tuple(a, n, shapes), n, v, NULL);
}

/* i, a fusion of sums. */
static void divide(Inst *i)
{
    Comp *whole = inst_callee(i, 0), *body = comp_clone(whole, whole->name);
    if (whole->root->op != OP_TUPLE) {
        expand_in_two(i, parts_before, join_parts);
        return;
    }
    int32_t n = whole->root->n_operands;
    Inst  **v = ARENA_ARRAY(body->module->arena, Inst *, n);
    for (int32_t k = 0; k < n; k++)
        v[k] = parts_before(inst_operand(body->root, k));
    body->root = tuple_of(body, NULL, n, v);
    Inst *parts = fusion_before(i, body);
    for (int32_t k = 0; k < n; k++) {
        const Inst *r = inst_operand(whole->root, k);
        v[k] = joined_before(i, r, element_before(i, parts, k), start_outside(i, inst_operand(r, 1)));
    }
    inst_replace(i, tuple_of(i->comp, i, n, v));
    inst_delete(i);
}

/* A fusion of the sums alone, in front of i. */
static Inst *sums_before(Inst *i, const Sums *s)
{
    const Comp *whole = inst_callee(i, 0);
    Comp       *body = comp_clone(whole, whole->name);
    Inst      **v = ARENA_ARRAY(body->module->arena, Inst *, s->v.n), *x = body->first;
    for (const Inst *y = whole->first; y; y = y->next, x = x->next)
        for (int32_t k = 0; k < s->v.n; k++)
            if (y == s->v.v[k])
                v[k] = x;
    body->root = s->v.n == 1 ? v[0] : tuple_of(body, NULL, s->v.n, v);
    return fusion_before(i, body);
}

/* i without those of its results that are sums, its parameters from `first` on. Deletes i. */
static Inst *rest_before(Inst *i, int64_t first)
{
    const Comp *whole = inst_callee(i, 0);
    int32_t     n = n_results(whole), left = 0;
    Inst      **all = ARENA_ARRAY(whole->module->arena, Inst *, n), **rest = ARENA_ARRAY(whole->module->arena, Inst *, n);
    Comp       *body = comp_clone(whole, whole->name);
    for (int32_t k = 0; k < n; k++) {
        Inst *r = result_of(body, k);
        if (r->op == OP_PARAMETER && r->param >= first)
            all[k] = inst_operand(i, (int32_t)r->param);
        else
            rest[left++] = r;
    }
    body->root = left == 1 ? rest[0] : tuple_of(body, NULL, left, rest);
    Inst *f = fusion_before(i, body);
    for (int32_t k = 0, j = 0; k < n; k++)
        if (!all[k])
            all[k] = left == 1 ? f : element_before(i, f, j++);
    inst_replace(i, tuple_of(i->comp, i, n, all));
    inst_delete(i);
    return f;
}

static bool has_sums(const Inst *i, int64_t first)
{
    const Comp *body = inst_callee(i, 0);
    bool        any = false;
    for (int32_t k = 0; k < n_results(body) && !any; k++)
        any = result_of(body, k)->op == OP_PARAMETER && result_of(body, k)->param >= first;
    return any;
}

void expand_reduction(Inst *i)
{
    if (i->op != OP_FUSION) {
        expand_in_two(i, parts_before, join_parts);
        return;
    }
    Sums s = { .a = arena_new() };
    while (find_sums(i, &s) && !s.all) {
        Inst  *sums = sums_before(i, &s);
        Inst **outside = ARENA_ARRAY(s.a, Inst *, s.v.n);
        for (int32_t k = 0; k < s.v.n; k++)
            outside[k] = s.v.n == 1 ? sums : element_before(i, sums, k);
        const int64_t own = i->n_operands;
        i = output_replace(i, s.v.n, s.v.v, outside);
        if (has_sums(i, own))
            i = rest_before(i, own);
        divide(sums);
    }
    if (find_sums(i, &s))
        divide(i);
    arena_free(s.a);
}

/* ---- sums of what short rows have ---- */

static bool is_behind(const Map *behind, const Inst *x)
{
    return map_get(behind, x) != NULL;
}

/* x is made of short rows alone, one element of each. */
static bool is_of_short_rows(Arena *a, const Comp *body, const Inst *x)
{
    Map  behind = map_new(a);
    bool dear = false, any = false;
    map_put(&behind, x, &behind);
    for (const Inst *i = body->last; i; i = i->prev)
        for (int32_t k = 0; k < i->n_operands && is_behind(&behind, i); k++)
            map_put(&behind, inst_operand(i, k), &behind);
    for (const Inst *i = body->first; i; i = i->next)
        dear |= is_behind(&behind, i) && inst_is_dear(i) && shape_is_array(i->shape) && shape_count(i->shape) > shape_count(x->shape);
    for (const Inst *i = body->first; i; i = i->next) {
        if (i->op != OP_REDUCE || !is_behind(&behind, i))
            continue;
        if (i->n_operands != 2 || shape_count(i->shape) != shape_count(x->shape) || !reduces_short_rows(i, dear))
            return false;
        any = true;
    }
    return any;
}

/* What a sum to one number in i's body is of, where that is of short rows; NULL: nothing. */
static const Inst *summed_rows(const Inst *i)
{
    const Comp *body = i->op == OP_FUSION && i->n_callees == 1 ? inst_callee(i, 0) : NULL;
    const Inst *found = NULL;
    Arena      *a = arena_new();
    for (const Inst *r = body ? body->first : NULL; r && !found; r = r->next)
        if (r->op == OP_REDUCE && r->n_operands == 2 && shape_count(r->shape) == 1 && is_of_short_rows(a, body, inst_operand(r, 0)))
            found = inst_operand(r, 0);
    arena_free(a);
    return found;
}

bool row_sums_expand(const Inst *i)
{
    return summed_rows(i) != NULL;
}

void expand_row_sums(Inst *i)
{
    for (const Inst *x; (x = summed_rows(i));) {
        Comp *whole = inst_callee(i, 0), *body = comp_clone(whole, whole->name);
        Inst *copy = body->first;
        for (const Inst *y = whole->first; y != x; y = y->next)
            copy = copy->next;
        body->root = copy;
        Inst *rows = fusion_before(i, body);
        i = output_replace(i, 1, &x, &rows);
    }
    if (reduce_expands(i))
        expand_reduction(i);
}

/* ---- on a device: sums over rows, and along them, of what is made of the rows' own sums ---- */

/* How many rows are reduced for x, one value each, if more than r has results; 0. */
static int64_t rows_behind(Arena *a, const Inst *x, const Inst *r)
{
    Map     behind = map_new(a);
    int64_t rows = 0;
    map_put(&behind, x, &behind);
    for (const Inst *i = x; i; i = i->prev) {
        if (!is_behind(&behind, i))
            continue;
        if (i->op == OP_REDUCE && i->n_operands == 2 && shape_count(i->shape) > shape_count(r->shape) && shape_count(i->shape) > rows)
            rows = shape_count(i->shape);
        for (int32_t k = 0; k < i->n_operands; k++)
            map_put(&behind, inst_operand(i, k), &behind);
    }
    return rows;
}

bool rows_are_for_threads(int64_t rows, int64_t elements)
{
    enum { LONG_ROW = 16, SHORT_ROW = 2, LARGE = 8192 };
    return elements >= LONG_ROW * rows || (elements >= SHORT_ROW * rows && elements >= LARGE);
}

/* The first dimension of a row of what r reduces, where r reduces rows and others; the rank: there is none. */
static int32_t row_of_sum(Arena *a, const Inst *r)
{
    const Inst   *x = inst_operand(r, 0);
    const Shape  *in = x->shape;
    const Ints    dims = inst_ints(r, ATTR_DIMENSIONS);
    const int64_t rows = r->n_operands == 2 && reduction_has_parts(r) && layout_is_row_major(in) && layout_is_row_major(r->shape) && shape_count(in) > 0 ? rows_behind(a, x, r) : 0;
    int64_t       row = 1;
    int32_t       d = in->rank;
    if (rows < 2 || shape_count(in) % rows != 0 || !rows_are_for_threads(rows, shape_count(in)))
        return in->rank;
    while (d > 0 && row < shape_count(in) / rows && ints_has(dims, d - 1))
        row *= in->dims[--d];
    return row == shape_count(in) / rows && shape_count(r->shape) < rows ? d : in->rank;
}

/* r adds up what another sum makes of short rows of what nothing is reduced for: all of that is one sum, whose elements lie side by side. */
static bool is_sum_of_sums(Arena *a, const Inst *r)
{
    enum { SHORT_ROW = 16 };
    if (r->op != OP_REDUCE || r->n_operands != 2 || inst_operand(r, 0)->op != OP_REDUCE || !reduction_has_parts(r) || comp_binary_op(inst_callee(r, 0)) != OP_ADD)
        return false;
    const Inst   *rows = inst_operand(r, 0), *x = inst_operand(rows, 0), *start = inst_operand(rows, 1);
    const Ints    dims = inst_ints(rows, ATTR_DIMENSIONS);
    const int64_t count = rows->n_operands == 2 ? shape_count(rows->shape) : 0;
    if (count == 0 || rows->n_uses != 1 || rows->shape->type != r->shape->type || x->shape->type != r->shape->type || comp_binary_op(inst_callee(rows, 0)) != OP_ADD ||
        start->op != OP_CONSTANT || literal_get_f64(start->literal, 0) != 0 || shape_count(x->shape) / count >= SHORT_ROW || !layout_is_row_major(x->shape) ||
        !layout_is_row_major(rows->shape))
        return false;
    for (int32_t d = x->shape->rank - dims.n; d < x->shape->rank; d++)
        if (!ints_has(dims, d))
            return false;
    return rows_behind(a, x, r) == 0;
}

static void sum_at_once(Inst *r)
{
    Arena        *a = r->comp->module->arena;
    Inst         *rows = inst_operand(r, 0);
    const Ints    over = inst_ints(r, ATTR_DIMENSIONS);
    const int32_t rank = inst_operand(rows, 0)->shape->rank;
    int64_t      *all = ARENA_ARRAY(a, int64_t, rank);
    int32_t       n = 0;
    Comp         *by = inst_callee(r, 0);
    for (int32_t d = 0; d < rank; d++)
        if (d >= rows->shape->rank || ints_has(over, d))
            all[n++] = d;
    Inst *sum = inst_new(r->comp, r, OP_REDUCE, r->shape, 2, (Inst *const[]){ inst_operand(rows, 0), inst_operand(r, 1) }, NULL);
    inst_set_ints(sum, ATTR_DIMENSIONS, (Ints){ .v = all, .n = n });
    inst_set_callees(sum, 1, &by);
    sum->meta = r->meta;
    sum->loc = r->loc;
    inst_replace(r, sum);
    inst_delete(r);
    inst_delete(rows);
}

static Inst *sum_of_sums(const Comp *body)
{
    Inst  *found = NULL;
    Arena *a = arena_new();
    for (Inst *r = body->first; r && !found; r = r->next)
        if (is_sum_of_sums(a, r))
            found = r;
    arena_free(a);
    return found;
}

static Inst *sum_over_rows(const Comp *body)
{
    Inst  *found = NULL;
    Arena *a = arena_new();
    for (Inst *r = body->first; r && !found; r = r->next)
        if (r->op == OP_REDUCE && row_of_sum(a, r) < inst_operand(r, 0)->shape->rank)
            found = r;
    arena_free(a);
    return found;
}

bool sum_over_rows_expands(const Inst *i)
{
    return i->n_callees == 1 && (sum_of_sums(inst_callee(i, 0)) || sum_over_rows(inst_callee(i, 0)));
}

/* r as sums of each row, in front of it, and their sum. */
static void sum_rows_first(Inst *r)
{
    Arena        *a = r->comp->module->arena;
    const Shape  *in = inst_operand(r, 0)->shape;
    const Ints    dims = inst_ints(r, ATTR_DIMENSIONS);
    const int32_t first = row_of_sum(a, r);
    int64_t      *along = ARENA_ARRAY(a, int64_t, in->rank), *over = ARENA_ARRAY(a, int64_t, dims.n);
    int32_t       n_over = 0;
    for (int32_t d = first; d < in->rank; d++)
        along[d - first] = d;
    for (int32_t k = 0; k < dims.n; k++)
        if (dims.v[k] < first)
            over[n_over++] = dims.v[k];
    Comp *by = inst_callee(r, 0);
    Inst *row = inst_new(r->comp, r, OP_REDUCE, shape_array(a, in->type, first, in->dims), 2, (Inst *const[]){ inst_operand(r, 0), reduction_start_of_part(r) }, NULL);
    Inst *all = inst_new(r->comp, r, OP_REDUCE, r->shape, 2, (Inst *const[]){ row, inst_operand(r, 1) }, NULL);
    inst_set_ints(row, ATTR_DIMENSIONS, (Ints){ .v = along, .n = in->rank - first });
    inst_set_ints(all, ATTR_DIMENSIONS, (Ints){ .v = over, .n = n_over });
    inst_set_callees(row, 1, &by);
    inst_set_callees(all, 1, &by);
    row->meta = all->meta = r->meta;
    row->loc = all->loc = r->loc;
    inst_replace(r, all);
    inst_delete(r);
}

void expand_sum_over_rows(Inst *i)
{
    Comp *body = comp_clone(inst_callee(i, 0), inst_callee(i, 0)->name);
    for (Inst *r; (r = sum_of_sums(body));)
        sum_at_once(r);
    for (Inst *r; (r = sum_over_rows(body));)
        sum_rows_first(r);
    inst_set_callees(i, 1, &body);
}

/* ---- on a device: the place of the largest or smallest of many ---- */

/* The reduction that i is, or ends with. */
static const Inst *last_reduction(const Inst *i)
{
    const Inst *r = i->op == OP_FUSION && i->n_callees == 1 ? inst_callee(i, 0)->root : i;
    return r->op == OP_REDUCE ? r : NULL;
}

/* What lies side by side is not reduced. */
static bool goes_down_columns(const Inst *r)
{
    const Shape *in = inst_operand(r, 0)->shape;
    int32_t      d = in->rank - 1;
    while (d > 0 && in->dims[d] == 1)
        d--;
    return d >= 0 && !ints_has(inst_ints(r, ATTR_DIMENSIONS), d);
}

/* How many parts r's outermost reduced dimension is cut into, for so many blocks; 0: it is not. A block has 32 columns. */
static int64_t choice_parts(const Inst *r)
{
    enum { MOST_BLOCKS = 1024, LEAST_PART = 4096 /* elements */, FEW = 64 /* results */, LANES = 32, LEAST_COLUMN_PART = 128, FEW_COLUMNS = 4096 };
    const Shape *in = inst_operand(r, 0)->shape;
    if (r->n_operands != 4 || !layout_is_row_major(in) || !layout_is_row_major(inst_operand(r, 1)->shape) || shape_count(in) == 0)
        return 0;
    const Shape *out = r->shape->elems[0];
    const Comp  *by = inst_callee(r, 0);
    const bool   columns = goes_down_columns(r);
    if (shape_count(out) > (columns ? FEW_COLUMNS : FEW) || !layout_is_row_major(out) || !layout_is_row_major(r->shape->elems[1]) ||
        !(choice_is_extreme(by, OP_MAXIMUM, true) || choice_is_extreme(by, OP_MINIMUM, true)))
        return 0;
    const int32_t cut = cut_dim(r);
    const int64_t row = shape_count(in) / shape_count(out), blocks = columns ? (shape_count(out) + LANES - 1) / LANES : shape_count(out);
    for (int64_t p = MOST_BLOCKS / blocks; cut >= 0 && p >= LEAST_PARTS; p--)
        if (in->dims[cut] % p == 0 && row / p >= (columns ? LEAST_COLUMN_PART : LEAST_PART))
            return p;
    return 0;
}

bool choice_expands(const Inst *i)
{
    const Inst *r = last_reduction(i);
    return r && choice_parts(r) > 0;
}

/* A pair for each part, in front of r. */
static Inst *pairs_before(Inst *r)
{
    Arena        *a = r->comp->module->arena;
    const Shape  *in = inst_operand(r, 0)->shape, *both[2];
    const Ints    dims = inst_ints(r, ATTR_DIMENSIONS);
    const int32_t cut = cut_dim(r);
    const int64_t parts = choice_parts(r);
    int64_t      *split = ARENA_ARRAY(a, int64_t, in->rank + 1), *kept = ARENA_ARRAY(a, int64_t, in->rank), *reduced = ARENA_ARRAY(a, int64_t, dims.n);
    int32_t       n = 0;
    Inst         *x[4] = { NULL, NULL, inst_operand(r, 2), inst_operand(r, 3) };
    Comp         *by = inst_callee(r, 0);
    for (int32_t d = 0; d < in->rank; d++) {
        split[d > cut ? d + 1 : d] = d == cut ? parts : in->dims[d];
        if (d == cut || !ints_has(dims, d))
            kept[n++] = d == cut ? parts : in->dims[d];
    }
    split[cut + 1] = in->dims[cut] / parts;
    for (int32_t k = 0; k < dims.n; k++)
        reduced[k] = dims.v[k] < cut ? dims.v[k] : dims.v[k] + 1;
    for (int32_t k = 0; k < 2; k++) {
        Inst *operand = inst_operand(r, k);
        x[k] = inst_new(r->comp, r, OP_RESHAPE, shape_array(a, operand->shape->type, in->rank + 1, split), 1, &operand, NULL);
        both[k] = shape_array(a, operand->shape->type, n, kept);
        x[k]->meta = r->meta;
        x[k]->loc = r->loc;
    }
    Inst *p = inst_new(r->comp, r, OP_REDUCE, shape_tuple(a, 2, both), 4, x, NULL);
    inst_set_ints(p, ATTR_DIMENSIONS, (Ints){ .v = reduced, .n = dims.n });
    inst_set_callees(p, 1, &by);
    p->meta = r->meta;
    p->loc = r->loc;
    return p;
}

void expand_choice(Inst *i)
{
    const Inst   *r = last_reduction(i);
    const Ints    dims = inst_ints(r, ATTR_DIMENSIONS);
    const int32_t cut = cut_dim(r);
    int64_t      *over = ARENA_ARRAY(i->comp->module->arena, int64_t, 1);
    Inst         *parts, *starts[2];
    for (int32_t d = 0; d < cut; d++)
        *over += !ints_has(dims, d);
    if (i->op == OP_FUSION) {
        Comp *body = comp_clone(inst_callee(i, 0), inst_callee(i, 0)->name);
        body->root = pairs_before(body->root);
        parts = fusion_before(i, body);
        for (int32_t k = 0; k < 2; k++)
            starts[k] = start_outside(i, inst_operand(r, 2 + k));
    } else {
        parts = pairs_before(i);
        for (int32_t k = 0; k < 2; k++)
            starts[k] = inst_operand(i, 2 + k);
    }
    Comp *by = inst_callee(r, 0);
    Inst *all = inst_new(i->comp, i, OP_REDUCE, r->shape, 4, (Inst *const[]){ element_before(i, parts, 0), element_before(i, parts, 1), starts[0], starts[1] }, NULL);
    inst_set_ints(all, ATTR_DIMENSIONS, (Ints){ .v = over, .n = 1 });
    inst_set_callees(all, 1, &by);
    all->meta = i->meta;
    all->loc = i->loc;
    inst_replace(i, all);
    inst_delete(i);
}
