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
 */
#include "emit/parts.h"

#include "analysis/cost.h"
#include "emit/expand.h"
#include "emit/lower.h"
#include "passes/util.h"
#include "support/map.h"
#include "support/vec.h"

enum { LEAST = 1 << 19 /* elements */, MOST_RESULTS = 8192, LEAST_ROWS = 16 /* of a part that has many results */, MOST_PARTS = 64 };

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

int32_t reduction_cut_dim(const Inst *r)
{
    const Shape *in = inst_operand(r, 0)->shape;
    int64_t      rows = 1;
    for (int32_t d = 0; d < in->rank && rows < REDUCTION_LEAST_PARTS; d++) {
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
    for (int64_t p = MOST_PARTS; p >= REDUCTION_LEAST_PARTS; p--) {
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
    int32_t cut = reduction_cut_dim(r);
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

static Cutting cutting_of(const Inst *r)
{
    const Shape *in = inst_operand(r, 0)->shape;
    Cutting      c = { is_in_parts(r) ? reduction_cut_dim(r) : -1, first_of_rows(r), 1 };
    c.parts = c.dim >= 0 ? parts_of(in, c.dim) : 1;
    c.rows = c.rows > c.dim ? c.rows : in->rank;
    return c;
}

Inst *reduction_of_parts(Inst *r, const Cutting *c, Inst *const *starts)
{
    Arena        *a = r->comp->module->arena;
    const Shape  *in = inst_operand(r, 0)->shape;
    const Ints    dims = inst_ints(r, ATTR_DIMENSIONS);
    const int32_t more = c->dim >= 0, n = r->n_operands / 2;
    int32_t       n_kept = 0, n_reduced = 0;
    int64_t      *split = ARENA_ARRAY(a, int64_t, in->rank + 1), *kept = ARENA_ARRAY(a, int64_t, in->rank + 1), *reduced = ARENA_ARRAY(a, int64_t, dims.n);
    const Shape **results = ARENA_ARRAY(a, const Shape *, n);
    Inst        **operands = ARENA_ARRAY(a, Inst *, 2 * n);
    Comp         *by = inst_callee(r, 0);
    for (int32_t d = 0; d < in->rank; d++) {
        if (d == c->dim)
            kept[n_kept++] = split[d] = c->parts;
        else if (d >= c->rows || !ints_has(dims, d))
            kept[n_kept++] = in->dims[d];
        split[more && d >= c->dim ? d + 1 : d] = d == c->dim ? in->dims[d] / c->parts : in->dims[d];
    }
    for (int32_t k = 0; k < dims.n; k++)
        if (dims.v[k] < c->rows)
            reduced[n_reduced++] = dims.v[k] < c->dim || !more ? dims.v[k] : dims.v[k] + 1;
    for (int32_t k = 0; k < n; k++) {
        Inst *x = inst_operand(r, k);
        operands[k] = more ? inst_new(r->comp, r, OP_RESHAPE, shape_array(a, x->shape->type, in->rank + 1, split), 1, &x, NULL) : x;
        operands[n + k] = starts[k];
        results[k] = shape_array(a, x->shape->type, n_kept, kept);
        if (more) {
            operands[k]->meta = r->meta;
            operands[k]->loc = r->loc;
        }
    }
    Inst *p = inst_new(r->comp, r, OP_REDUCE, n == 1 ? results[0] : shape_tuple(a, n, results), 2 * n, operands, NULL);
    inst_set_ints(p, ATTR_DIMENSIONS, (Ints){ .v = reduced, .n = n_reduced });
    inst_set_callees(p, 1, &by);
    p->meta = r->meta;
    p->loc = r->loc;
    return p;
}

Inst *reduction_of_all(Inst *i, const Inst *r, const Cutting *c, int32_t n, Inst *const *operands)
{
    const Shape *in = inst_operand(r, 0)->shape;
    const Ints   dims = inst_ints(r, ATTR_DIMENSIONS);
    int64_t     *over = ARENA_ARRAY(i->comp->module->arena, int64_t, in->rank), kept = 0;
    int32_t      n_over = 0;
    Comp        *by = inst_callee(r, 0);
    for (int32_t d = 0; d < in->rank; d++) {
        if (d == c->dim || d >= c->rows)
            over[n_over++] = kept;
        kept += d == c->dim || d >= c->rows || !ints_has(dims, d);
    }
    Inst *all = inst_new(i->comp, i, OP_REDUCE, r->shape, n, operands, NULL);
    inst_set_ints(all, ATTR_DIMENSIONS, (Ints){ .v = over, .n = n_over });
    inst_set_callees(all, 1, &by);
    all->meta = i->meta;
    all->loc = i->loc;
    return all;
}

/* A result for each part, in front of r. */
static Inst *parts_before(Inst *r)
{
    const Cutting c = cutting_of(r);
    Inst         *start = reduction_start_of_part(r);
    return reduction_of_parts(r, &c, &start);
}

/* The results of the parts as one, in front of i. */
static Inst *joined_before(Inst *i, const Inst *r, Inst *parts, Inst *start)
{
    const Cutting c = cutting_of(r);
    return reduction_of_all(i, r, &c, 2, (Inst *const[]){ parts, start });
}

static void join_parts(Inst *i, const Inst *r, Inst *parts, Inst *start)
{
    inst_replace(i, joined_before(i, r, parts, start));
    inst_delete(i);
}

Inst *start_outside(Inst *i, const Inst *start)
{
    return start->op == OP_PARAMETER ? inst_operand(i, (int32_t)start->param) : inst_clone_into(i->comp, i, start, 0, NULL);
}

Inst *part_of_fusion(Inst *i, Comp *body)
{
    int32_t n = i->n_operands;
    Inst  **operands = ARENA_ARRAY(i->comp->module->arena, Inst *, n);
    for (int32_t k = 0; k < n; k++)
        operands[k] = inst_operand(i, k);
    comp_sweep_dead(body, body->n_insts);
    return expand_fusion(i, inst_word(i, ATTR_FUSION_KIND), body, n, operands);
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
    join(i, whole->root, part_of_fusion(i, body), start);
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

Inst *element_before(Inst *i, Inst *tuple, int32_t k)
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
    Inst *parts = part_of_fusion(i, body);
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
    return part_of_fusion(i, body);
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
    Inst *f = part_of_fusion(i, body);
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
