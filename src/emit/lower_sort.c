/* sort and topk: a stable merge sort from the bottom up, line by line along the sorted dimension, in working memory.
 *
 *   line[j] = x[.., j, ..]
 *   for runs of 1, 2, 4, ...:
 *     for each pair of runs [low, middle) and [middle, high) of line:
 *       merged[k] = the right run's head if the left one is used up or the right head comes before the left head, else the left head
 *     line = merged
 *   result[.., j, ..] = line[j]
 *
 * All operands move together. topk sorts values and their positions by value, the largest or the smallest first, and keeps k of them.
 * Floats below 32 bits move as their bits, so that each NaN stays the one that it is; they are decoded where they are compared. */
#include "emit/lower.h"

enum { ROLE_LINES = 80 };

typedef struct Sort {
    const Inst    *x;
    int32_t        n;      /* arrays that move together */
    const Inst   **from;   /* NULL: positions */
    Type          *types;  /* of the arrays; carried: as which they stand in lines */
    Type          *carried;
    KArray *const *to;
    KArray       **line, **merged;
    int64_t        dim, count, kept;
    const Ix     **at;     /* of the line: the sorted dimension is set for each element */
} Sort;

static const KExpr *integer(Lower *L, int64_t v)
{
    return kx_int(L->arena, TYPE_S64, v);
}

static const KExpr *arithmetic(Lower *L, KOp op, const KExpr *x, const KExpr *y)
{
    return kx_binary(L->arena, op, TYPE_S64, x, y);
}

static const KExpr *test(Lower *L, KOp op, const KExpr *x, const KExpr *y)
{
    return kx_binary(L->arena, op, TYPE_PRED, x, y);
}

static const KExpr *least(Lower *L, const KExpr *x, const KExpr *y, const char *name)
{
    x = bind(L, x, name);
    return bind(L, kx_select(L->arena, test(L, KOP_LT, x, y), x, y), name);
}

/* A named scalar as an index in lo..hi. */
static const Ix *index_of(Lower *L, const KExpr *v, int64_t lo, int64_t hi)
{
    return ix_of(&L->ix, ix_new_atom(&L->ix, IX_VALUE, NULL, lo, hi, v->depth, v->temp));
}

static bool by_bits(const Sort *s, int32_t k)
{
    return s->carried[k] != s->types[k];
}

static void load_line(Lower *L, const Sort *s)
{
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, s->count, NULL, 1));
    s->at[s->dim] = j;
    for (int32_t k = 0; k < s->n; k++) {
        const KExpr *v = kx_cast(L->arena, TYPE_S32, kx_index(L->arena, j));
        if (s->from[k]) {
            int32_t     leaf = 0;
            const Inst *x = resolve(L, s->from[k], &leaf);
            v = value_at(L, x, leaf, s->at);
        }
        store(L, s->line[k], j, by_bits(s, k) ? scalar_bits(L->arena, s->types[k], v) : v);
    }
    block_close(L);
}

static const KExpr *decoded(Lower *L, const Sort *s, int32_t k, const KExpr *x)
{
    return by_bits(s, k) ? scalar_from_bits(L->arena, s->types[k], x) : x;
}

static void store_line(Lower *L, const Sort *s)
{
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, s->kept, NULL, 1));
    s->at[s->dim] = j;
    for (int32_t k = 0; k < s->n; k++)
        store_at(L, s->to[k], s->at, decoded(L, s, k, load(L, s->line[k], j)));
    block_close(L);
}

static void copy_merged(Lower *L, const Sort *s)
{
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, s->count, NULL, 1));
    for (int32_t k = 0; k < s->n; k++)
        store(L, s->line[k], j, load(L, s->merged[k], j));
    block_close(L);
}

/* Does the right one of two elements come before the left one? */
static const KExpr *comes_before(Lower *L, const Sort *s, const KExpr *const *left, const KExpr *const *right)
{
    if (s->x->op == OP_TOPK) {
        const KExpr *l = scalar_order_key(L->arena, s->types[0], decoded(L, s, 0, left[0]));
        const KExpr *r = scalar_order_key(L->arena, s->types[0], decoded(L, s, 0, right[0]));
        return test(L, inst_int(s->x, ATTR_LARGEST, 1) ? KOP_GT : KOP_LT, r, l);
    }
    const Comp   *body = inst_callee(s->x, 0);
    const KExpr **args = ARENA_ARRAY(L->arena, const KExpr *, 2 * s->n), *out;
    for (int32_t k = 0; k < s->n; k++) {
        args[2 * k] = scalar_convert(L->arena, s->types[k], body->params[2 * k]->shape->type, decoded(L, s, k, right[k]));
        args[2 * k + 1] = scalar_convert(L->arena, s->types[k], body->params[2 * k + 1]->shape->type, decoded(L, s, k, left[k]));
    }
    apply(L, body, args, &out);
    return bind(L, out, "before");
}

/* Two runs, [low, middle) and [middle, high), into one. A head that is used up is compared all the same, at the run's last place. */
static void merge_runs(Lower *L, const Sort *s, const KExpr *low, const KExpr *middle, const KExpr *high)
{
    Arena        *a = L->arena;
    const KExpr **left = ARENA_ARRAY(a, const KExpr *, s->n), **right = ARENA_ARRAY(a, const KExpr *, s->n);
    KTemp        *l = accumulator(L, low, TYPE_S64, "left"), *r = accumulator(L, middle, TYPE_S64, "right");
    const Ix     *k;
    if (!loop_between(L, index_of(L, low, 0, s->count - 1), index_of(L, high, 1, s->count), &k))
        return;
    const KExpr *l_in = bind(L, test(L, KOP_LT, current(L, l), middle), "left_in"), *r_in = bind(L, test(L, KOP_LT, current(L, r), high), "right_in");
    const KExpr *l_at = bind(L, kx_select(a, l_in, current(L, l), arithmetic(L, KOP_SUB, middle, integer(L, 1))), "left_at");
    const KExpr *r_at = bind(L, kx_select(a, r_in, current(L, r), arithmetic(L, KOP_SUB, high, integer(L, 1))), "right_at");
    for (int32_t j = 0; j < s->n; j++) {
        left[j] = bind(L, load(L, s->line[j], index_of(L, l_at, 0, s->count - 1)), "l");
        right[j] = bind(L, load(L, s->line[j], index_of(L, r_at, 0, s->count - 1)), "r");
    }
    const KExpr *before = comes_before(L, s, left, right);
    const KExpr *take = bind(L, test(L, KOP_LOR, kx_unary(a, KOP_NOT, TYPE_PRED, l_in), test(L, KOP_LAND, r_in, before)), "take_right");
    for (int32_t j = 0; j < s->n; j++)
        store(L, s->merged[j], k, kx_select(a, take, right[j], left[j]));
    assign(L, l, kx_select(a, take, current(L, l), arithmetic(L, KOP_ADD, current(L, l), integer(L, 1))));
    assign(L, r, kx_select(a, take, arithmetic(L, KOP_ADD, current(L, r), integer(L, 1)), current(L, r)));
    block_close(L);
}

/* Pairs of runs of the given width, at multiples of twice the width. */
static void merge_pairs(Lower *L, const Sort *s, const KExpr *width)
{
    const KExpr *two = bind(L, arithmetic(L, KOP_MUL, width, integer(L, 2)), "two_runs"), *n = integer(L, s->count);
    const KExpr *pairs = bind(L, arithmetic(L, KOP_ADD, arithmetic(L, KOP_DIV, integer(L, s->count - 1), two), integer(L, 1)), "pairs");
    const Ix    *pair;
    if (!loop_between(L, ix_const(&L->ix, 0), index_of(L, pairs, 1, s->count), &pair))
        return;
    const KExpr *low = bind(L, arithmetic(L, KOP_MUL, kx_index(L->arena, pair), two), "low");
    const KExpr *middle = least(L, arithmetic(L, KOP_ADD, low, width), n, "middle");
    merge_runs(L, s, low, middle, least(L, arithmetic(L, KOP_ADD, low, two), n, "high"));
    block_close(L);
}

static void sort_line(Lower *L, void *cookie, const Ix *const *index)
{
    Sort   *s = cookie;
    int64_t passes = 0;
    for (int32_t d = 0; d < s->to[0]->shape->rank; d++)
        s->at[d] = index[d];
    while (((int64_t)1 << passes) < s->count)
        passes++;
    load_line(L, s);
    if (passes > 0) {
        KTemp *run = accumulator(L, integer(L, 1), TYPE_S64, "run");
        loop_open(L, 0, passes, NULL, 1);
        merge_pairs(L, s, bind(L, current(L, run), "width"));
        copy_merged(L, s);
        assign(L, run, arithmetic(L, KOP_MUL, current(L, run), integer(L, 2)));
        block_close(L);
    }
    store_line(L, s);
}

static void sort_lines(Lower *L, Sort *s)
{
    const Shape *shape = s->to[0]->shape;
    int64_t     *extents = ARENA_ARRAY(L->arena, int64_t, shape->rank);
    s->at = ARENA_ARRAY(L->arena, const Ix *, shape->rank);
    s->line = ARENA_ARRAY(L->arena, KArray *, s->n);
    s->merged = ARENA_ARRAY(L->arena, KArray *, s->n);
    s->carried = ARENA_ARRAY(L->arena, Type, s->n);
    for (int32_t k = 0; k < s->n; k++) {
        Type t = s->types[k];
        s->carried[k] = !type_is_float(t) || machine_type(t) == t ? t : type_bits(t) > 8 ? TYPE_U16 : TYPE_U8;
        const Shape *line = shape_array(L->arena, s->carried[k], 1, &s->count);
        s->line[k] = temp_array(L, line, "line");
        s->merged[k] = temp_array(L, line, "merged");
    }
    for (int32_t d = 0; d < shape->rank; d++)
        extents[d] = d == s->dim ? 1 : shape->dims[d];
    nest(L, shape->rank, plan_dims(L, s->x, ROLE_LINES, shape->rank, extents), major_order(L, shape), sort_line, s);
}

void stage_sort(Lower *L, const Inst *x, KArray *const *to)
{
    Sort s = { .x = x, .n = x->n_operands, .to = to, .dim = inst_ints(x, ATTR_DIMENSIONS).v[0] };
    s.count = s.kept = to[0]->shape->dims[s.dim];
    s.from = ARENA_ARRAY(L->arena, const Inst *, s.n);
    s.types = ARENA_ARRAY(L->arena, Type, s.n);
    for (int32_t k = 0; k < s.n; k++) {
        s.from[k] = inst_operand(x, k);
        s.types[k] = s.from[k]->shape->type;
    }
    sort_lines(L, &s);
}

void stage_topk(Lower *L, const Inst *x, KArray *const *to)
{
    const Shape *in = inst_operand(x, 0)->shape;
    const Inst  *from[] = { inst_operand(x, 0), NULL };
    Type         types[] = { in->type, TYPE_S32 };
    Sort         s = { .x = x, .n = 2, .from = from, .types = types, .to = to, .dim = in->rank - 1 };
    s.count = in->dims[s.dim];
    s.kept = to[0]->shape->dims[s.dim];
    sort_lines(L, &s);
}
