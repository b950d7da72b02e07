/* sort and topk: a stable merge sort from the bottom up, line by line along the sorted dimension, in working memory.
 *
 *   line[j] = x[.., j, ..]
 *   for runs of 1, 2, 4, ...:
 *     for each pair of runs [low, middle) and [middle, high) of line:
 *       merged[k] = the right run's head if the left one is used up or the right head comes before the left head, else the left head
 *     line = merged
 *   result[.., j, ..] = line[j]
 *
 * For many threads each element finds its own place, with as many passes, each of which is work for all elements at once:
 *
 *   in each piece of 64: place = how many of the piece come before x[j]
 *   for runs of 64, 128, ...: place = its place in its own run + how many of the other run come before it, by halving
 *
 * where of equal ones those of the left run come before those of the right one. Places are all different as long as the comparison makes one order, so NaN, of which
 * "less" does not, is behind all numbers there. Of a topk that keeps few of a long line each run of LEAD gives its first ones, which are a line to be sorted in turn:
 *
 *   lead[j / 2048 * k + place] = x[j], place < k
 *
 * Of a topk that keeps few the line is these few, and each element that comes before the last one of them is put where it belongs, from behind:
 *
 *   for each j: if j < k or x[j] comes before line[k - 1]:
 *     place = min(j, k - 1);  while place > 0 and x[j] comes before line[place - 1]: line[place] = line[place - 1], place = place - 1
 *     line[place] = x[j]
 *
 * All operands move together. topk sorts values and their positions by value, the largest or the smallest first, and keeps k of them.
 * Floats below 32 bits move as their bits, so that each NaN stays the one that it is; they are decoded where they are compared. */
#include "emit/lower.h"

enum { ROLE_LINES = 80, ROLE_RANKS = 200 /* and on, by pass */, PIECE = 64, LEAD = 2048, MOST_INSERTED = 64 /* kept */ };

typedef struct Sort {
    const Inst    *x;
    int32_t        n;      /* arrays that move together */
    const Inst   **from;   /* NULL: positions */
    Type          *types;  /* of the arrays; carried: as which they stand in lines */
    Type          *carried;
    KArray *const *to;
    KArray       **line, **merged;
    int64_t        dim, count, kept;
    Type           place;  /* of places along the line, and a pair of runs further */
    const Ix     **at;     /* of the line: the sorted dimension is set for each element */
    int64_t        run;    /* for many threads: the length of what is sorted already, 0: nothing; else -1 */
    int64_t        group;  /* for many threads: of KStmt */
    bool           last;   /* this pass gives the results, */
    int64_t        lead;   /* or the first of each run, which are so many in all; 0: no */
    bool           fresh;  /* the elements are still the operands' */
} Sort;

static const KExpr *integer(Lower *L, const Sort *s, int64_t v)
{
    return kx_int(L->arena, s->place, v);
}

static const KExpr *place_of(Lower *L, const Sort *s, const Ix *x)
{
    return kx_cast(L->arena, s->place, kx_index(L->arena, x));
}

static const KExpr *arithmetic(Lower *L, KOp op, const KExpr *x, const KExpr *y)
{
    return kx_binary(L->arena, op, x->type, x, y);
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

/* Element j of the line in array k's operand, as it is carried. */
static const KExpr *operand_at(Lower *L, const Sort *s, int32_t k, const Ix *j)
{
    const KExpr *v = kx_cast(L->arena, TYPE_S32, kx_index(L->arena, j));
    if (s->from[k]) {
        int32_t     leaf = 0;
        const Inst *x = resolve(L, s->from[k], &leaf);
        s->at[s->dim] = j;
        v = value_at(L, x, leaf, s->at);
    }
    return by_bits(s, k) ? scalar_bits(L->arena, s->types[k], v) : v;
}

static void load_line(Lower *L, const Sort *s)
{
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, s->count, NULL, 1));
    for (int32_t k = 0; k < s->n; k++)
        store(L, s->line[k], j, operand_at(L, s, k, j));
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
    L->nan_last = s->run >= 0;
    apply(L, body, args, &out);
    L->nan_last = false;
    return bind(L, out, "before");
}

/* Two runs, [low, middle) and [middle, high), into one. A head that is used up is compared all the same, at the run's last place. */
static void merge_runs(Lower *L, const Sort *s, const KExpr *low, const KExpr *middle, const KExpr *high)
{
    Arena        *a = L->arena;
    const KExpr **left = ARENA_ARRAY(a, const KExpr *, s->n), **right = ARENA_ARRAY(a, const KExpr *, s->n);
    KTemp        *l = accumulator(L, low, s->place, "left"), *r = accumulator(L, middle, s->place, "right");
    const Ix     *k;
    if (!loop_between(L, index_of(L, low, 0, s->count - 1), index_of(L, high, 1, s->count), &k))
        return;
    const KExpr *l_in = bind(L, test(L, KOP_LT, current(L, l), middle), "left_in"), *r_in = bind(L, test(L, KOP_LT, current(L, r), high), "right_in");
    const KExpr *l_at = bind(L, kx_select(a, l_in, current(L, l), arithmetic(L, KOP_SUB, middle, integer(L, s, 1))), "left_at");
    const KExpr *r_at = bind(L, kx_select(a, r_in, current(L, r), arithmetic(L, KOP_SUB, high, integer(L, s, 1))), "right_at");
    for (int32_t j = 0; j < s->n; j++) {
        left[j] = bind(L, load(L, s->line[j], index_of(L, l_at, 0, s->count - 1)), "l");
        right[j] = bind(L, load(L, s->line[j], index_of(L, r_at, 0, s->count - 1)), "r");
    }
    const KExpr *before = comes_before(L, s, left, right);
    const KExpr *take = bind(L, test(L, KOP_LOR, kx_unary(a, KOP_NOT, TYPE_PRED, l_in), test(L, KOP_LAND, r_in, before)), "take_right");
    for (int32_t j = 0; j < s->n; j++)
        store(L, s->merged[j], k, kx_select(a, take, right[j], left[j]));
    assign(L, l, kx_select(a, take, current(L, l), arithmetic(L, KOP_ADD, current(L, l), integer(L, s, 1))));
    assign(L, r, kx_select(a, take, arithmetic(L, KOP_ADD, current(L, r), integer(L, s, 1)), current(L, r)));
    block_close(L);
}

/* Pairs of runs of the given width, at multiples of twice the width. */
static void merge_pairs(Lower *L, const Sort *s, const KExpr *width)
{
    const KExpr *two = bind(L, arithmetic(L, KOP_MUL, width, integer(L, s, 2)), "two_runs"), *n = integer(L, s, s->count);
    const KExpr *pairs = bind(L, arithmetic(L, KOP_ADD, arithmetic(L, KOP_DIV, integer(L, s, s->count - 1), two), integer(L, s, 1)), "pairs");
    const Ix    *pair;
    if (!loop_between(L, ix_const(&L->ix, 0), index_of(L, pairs, 1, s->count), &pair))
        return;
    const KExpr *low = bind(L, arithmetic(L, KOP_MUL, place_of(L, s, pair), two), "low");
    const KExpr *middle = least(L, arithmetic(L, KOP_ADD, low, width), n, "middle");
    merge_runs(L, s, low, middle, least(L, arithmetic(L, KOP_ADD, low, two), n, "high"));
    block_close(L);
}

/* Elements of the line so far, at `place`. */
static const KExpr **kept_at(Lower *L, const Sort *s, const Ix *place)
{
    const KExpr **v = ARENA_ARRAY(L->arena, const KExpr *, s->n);
    for (int32_t k = 0; k < s->n; k++)
        v[k] = frozen(L, load(L, s->line[k], place), "kept");
    return v;
}

/* x goes in front of what it comes before, of the first `last` elements; what stands there goes one place on. */
static void insert(Lower *L, const Sort *s, const KExpr *const *x, const KExpr *last)
{
    KTemp *place = accumulator(L, last, s->place, "place");
    repeat_open(L);
    break_unless(L, test(L, KOP_GT, current(L, place), integer(L, s, 0)));
    const KExpr  *before = frozen(L, arithmetic(L, KOP_SUB, current(L, place), integer(L, s, 1)), "front");
    const KExpr **y = kept_at(L, s, index_of(L, before, 0, s->kept - 1));
    break_unless(L, comes_before(L, s, y, x));
    const Ix *at = index_of(L, frozen(L, current(L, place), "behind"), 0, s->kept - 1);
    for (int32_t k = 0; k < s->n; k++)
        store(L, s->line[k], at, y[k]);
    assign(L, place, before);
    block_close(L);
    at = index_of(L, frozen(L, current(L, place), "found"), 0, s->kept - 1);
    for (int32_t k = 0; k < s->n; k++)
        store(L, s->line[k], at, x[k]);
}

static const KExpr **operands_at(Lower *L, const Sort *s, const Ix *j)
{
    const KExpr **v = ARENA_ARRAY(L->arena, const KExpr *, s->n);
    for (int32_t k = 0; k < s->n; k++)
        v[k] = bind(L, operand_at(L, s, k, j), "x");
    return v;
}

static void keep_first(Lower *L, const Sort *s)
{
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, s->kept, NULL, 1));
    insert(L, s, operands_at(L, s, j), place_of(L, s, j));
    block_close(L);
    j = ix_of(&L->ix, loop_open(L, s->kept, s->count, NULL, 1));
    const KExpr **x = operands_at(L, s, j);
    if_open(L, comes_before(L, s, kept_at(L, s, ix_const(&L->ix, s->kept - 1)), x));
    insert(L, s, x, integer(L, s, s->kept - 1));
    block_close(L);
    block_close(L);
}

static bool keeps_few(const Sort *s)
{
    return s->x->op == OP_TOPK && s->kept > 0 && s->kept < s->count && s->kept <= MOST_INSERTED;
}

static void sort_line(Lower *L, void *cookie, const Ix *const *index)
{
    Sort   *s = cookie;
    int64_t passes = 0;
    for (int32_t d = 0; d < s->to[0]->shape->rank; d++)
        s->at[d] = index[d];
    if (keeps_few(s)) {
        keep_first(L, s);
        store_line(L, s);
        return;
    }
    while (((int64_t)1 << passes) < s->count)
        passes++;
    load_line(L, s);
    if (passes > 0) {
        KTemp *run = accumulator(L, integer(L, s, 1), s->place, "run");
        loop_open(L, 0, passes, NULL, 1);
        merge_pairs(L, s, bind(L, current(L, run), "width"));
        copy_merged(L, s);
        assign(L, run, arithmetic(L, KOP_MUL, current(L, run), integer(L, s, 2)));
        block_close(L);
    }
    store_line(L, s);
}

/* ---- for many threads ---- */

/* The arrays' elements at the place along the line, as they are carried. */
static const KExpr **elements_at(Lower *L, const Sort *s, const Ix *place)
{
    const KExpr **v = ARENA_ARRAY(L->arena, const KExpr *, s->n);
    const Ix     *own = s->at[s->dim];
    s->at[s->dim] = place;
    for (int32_t k = 0; k < s->n; k++) {
        if (!s->fresh) {
            v[k] = bind(L, load(L, s->line[k], shape_index(L, s->line[k]->shape, s->at)), "x");
            continue;
        }
        v[k] = bind(L, operand_at(L, s, k, place), "x");
    }
    s->at[s->dim] = own;
    return v;
}

/* No two elements have one place. */
static void put_at(Lower *L, const Sort *s, const KExpr *const *v, const KExpr *place)
{
    const Ix *own = s->at[s->dim];
    s->at[s->dim] = index_of(L, bind(L, place, "place"), 0, (s->lead ? s->lead : s->count) - 1);
    for (int32_t k = 0; k < s->n; k++) {
        KArray *to = s->last ? s->to[k] : s->merged[k];
        store_at(L, to, s->at, s->last ? decoded(L, s, k, v[k]) : v[k]);
        L->cur->last->apart = true;
        L->cur->last->group = s->group;
        L->cur->last->group_loop = s->group ? own->t[0].atom : NULL;
    }
    s->at[s->dim] = own;
}

/* Which of the two is on the left is known only when it runs; so is what `before` then means for x. */
static const KExpr *goes_first(Lower *L, const Sort *s, const KExpr *x_is_left, const KExpr *const *x, const KExpr *const *y)
{
    const KExpr **left = ARENA_ARRAY(L->arena, const KExpr *, s->n), **right = ARENA_ARRAY(L->arena, const KExpr *, s->n);
    for (int32_t k = 0; k < s->n; k++) {
        left[k] = bind(L, kx_select(L->arena, x_is_left, x[k], y[k]), "l");
        right[k] = bind(L, kx_select(L->arena, x_is_left, y[k], x[k]), "r");
    }
    const KExpr *before = bind(L, comes_before(L, s, left, right), "before");
    return kx_select(L->arena, x_is_left, before, kx_unary(L->arena, KOP_NOT, TYPE_PRED, before)); /* y goes before x */
}

static const KExpr *one_more_if(Lower *L, const Sort *s, KTemp *n, const KExpr *cond)
{
    return kx_select(L->arena, cond, arithmetic(L, KOP_ADD, current(L, n), integer(L, s, 1)), current(L, n));
}

/* Its place in a piece: how many of that go before it. */
static void rank_in_piece(Lower *L, Sort *s, const Ix *j)
{
    const KExpr  *at = place_of(L, s, j);
    const KExpr **x = elements_at(L, s, j);
    const KExpr  *first = integer(L, s, 0);
    const Ix     *from = ix_const(&L->ix, 0), *end = ix_const(&L->ix, s->count), *i;
    if (s->count > PIECE) {
        first = bind(L, arithmetic(L, KOP_MUL, arithmetic(L, KOP_DIV, at, integer(L, s, PIECE)), integer(L, s, PIECE)), "first");
        from = index_of(L, first, 0, s->count - 1);
        end = index_of(L, least(L, arithmetic(L, KOP_ADD, first, integer(L, s, PIECE)), integer(L, s, s->count), "end"), 1, s->count);
    }
    KTemp *rank = accumulator(L, integer(L, s, 0), s->place, "rank");
    if (loop_between(L, from, end, &i)) {
        const KExpr  *other = place_of(L, s, i), *is_left = bind(L, test(L, KOP_LT, at, other), "is_left");
        const KExpr **y = elements_at(L, s, i);
        const KExpr  *before = goes_first(L, s, is_left, x, y);
        assign(L, rank, one_more_if(L, s, rank, test(L, KOP_LAND, test(L, KOP_NE, at, other), before)));
        block_close(L);
    }
    const bool drop = s->kept < s->count && s->kept < PIECE;
    if (drop)
        if_open(L, test(L, KOP_LT, current(L, rank), integer(L, s, s->kept)));
    put_at(L, s, x, s->count > PIECE ? arithmetic(L, KOP_ADD, first, current(L, rank)) : current(L, rank));
    if (drop)
        block_close(L);
}

/* How many of [low, high) of the other run go before x, added to low. */
static const KExpr *search(Lower *L, const Sort *s, const KExpr *x_is_left, const KExpr *const *x, const KExpr *low, const KExpr *high)
{
    KTemp *lo = accumulator(L, low, s->place, "lo"), *hi = accumulator(L, high, s->place, "hi");
    repeat_open(L);
    break_unless(L, test(L, KOP_LT, current(L, lo), current(L, hi)));
    const KExpr *mid = frozen(L, arithmetic(L, KOP_DIV, arithmetic(L, KOP_ADD, current(L, lo), current(L, hi)), integer(L, s, 2)), "mid");
    const KExpr *up = bind(L, goes_first(L, s, x_is_left, x, elements_at(L, s, index_of(L, mid, 0, s->count - 1))), "up");
    assign(L, lo, kx_select(L->arena, up, arithmetic(L, KOP_ADD, mid, integer(L, s, 1)), current(L, lo)));
    assign(L, hi, kx_select(L->arena, up, current(L, hi), mid));
    block_close(L);
    return frozen(L, current(L, lo), "found");
}

/* Its place in a pair of runs, of which no more than what is kept matters. */
static void rank_in_runs(Lower *L, Sort *s, const Ix *j)
{
    Arena        *a = L->arena;
    const int64_t length = s->run < s->kept ? s->run : s->kept;
    const KExpr  *n = integer(L, s, s->count), *at = place_of(L, s, j), *two = integer(L, s, 2 * s->run);
    const KExpr  *low = bind(L, arithmetic(L, KOP_MUL, arithmetic(L, KOP_DIV, at, two), two), "low");
    const KExpr  *middle = bind(L, arithmetic(L, KOP_ADD, low, integer(L, s, s->run)), "middle"), *is_left = bind(L, test(L, KOP_LT, at, middle), "is_left");
    const KExpr  *own = bind(L, arithmetic(L, KOP_SUB, at, kx_select(a, is_left, low, middle)), "own");
    const bool    cut = length < s->run;
    if (cut)
        if_open(L, test(L, KOP_LT, own, integer(L, s, length)));
    const KExpr **x = elements_at(L, s, j);
    const KExpr  *from = least(L, kx_select(a, is_left, middle, low), n, "from");
    const KExpr  *to = least(L, arithmetic(L, KOP_ADD, from, integer(L, s, length)), n, "to");
    const KExpr  *found = search(L, s, is_left, x, from, to);
    const KExpr  *rank = bind(L, arithmetic(L, KOP_ADD, own, arithmetic(L, KOP_SUB, found, from)), "rank");
    const bool    drop = s->kept < s->count && 2 * s->run > s->kept;
    if (drop)
        if_open(L, test(L, KOP_LT, rank, integer(L, s, s->kept)));
    const KExpr *lead = s->lead ? arithmetic(L, KOP_MUL, arithmetic(L, KOP_DIV, low, two), integer(L, s, s->kept)) : low;
    put_at(L, s, x, arithmetic(L, KOP_ADD, lead, rank));
    if (drop)
        block_close(L);
    if (cut)
        block_close(L);
}

static void rank_element(Lower *L, void *cookie, const Ix *const *index)
{
    Sort *s = cookie;
    for (int32_t d = 0; d < s->to[0]->shape->rank; d++)
        s->at[d] = index[d];
    if (s->run == 0)
        rank_in_piece(L, s, index[s->dim]);
    else
        rank_in_runs(L, s, index[s->dim]);
}

static KArray **whole_arrays(Lower *L, const Sort *s, const Shape *shape)
{
    KArray **x = ARENA_ARRAY(L->arena, KArray *, s->n);
    for (int32_t k = 0; k < s->n; k++)
        x[k] = stage_array(L, shape_with_type(L->arena, shape, s->carried[k]), "sorted");
    return x;
}

/* The operands' elements are read from memory, where they lie as the lines do, and so does what is sorted, line by line. */
static bool reads_own_places(Lower *L, const Sort *s, const Shape *shape)
{
    for (int32_t k = 0; k < s->n; k++) {
        int32_t     leaf = 0;
        const Inst *x = s->from[k] ? resolve(L, s->from[k], &leaf) : NULL;
        if (x && (!memory_of(L, x, leaf) || !layout_equal(s->from[k]->shape->layout, shape->layout, shape->rank)))
            return false;
    }
    return true;
}

/* Of the pass at hand: what a pair of runs is, if the line's elements lie side by side. */
static int64_t group_size(Lower *L, const Sort *s, const Shape *shape)
{
    if (layout_dim(shape, 0) != s->dim || (s->fresh && !reads_own_places(L, s, shape)))
        return 0;
    return s->run == 0 ? PIECE : 2 * s->run;
}

/* What runs of LEAD lead with, if this pass makes such runs and little of them is kept. */
static int64_t lead_of(const Sort *s)
{
    const int64_t rest = s->count % LEAD;
    if (s->last || 2 * s->run != LEAD || s->kept > LEAD / 4)
        return 0;
    return s->count / LEAD * s->kept + (rest < s->kept ? rest : s->kept);
}

static const Shape *with_line(Lower *L, const Shape *shape, int32_t dim, int64_t count)
{
    Shape   *x = arena_copy(L->arena, shape, sizeof *x);
    int64_t *dims = arena_copy(L->arena, shape->dims, (uint64_t)shape->rank * sizeof *dims);
    dims[dim] = count;
    x->dims = dims;
    return x;
}

static void sort_by_rank(Lower *L, Sort *s, const Shape *shape)
{
    KArray **arrays[2] = { NULL, NULL };
    s->fresh = true;
    for (int32_t pass = 0; !s->last; pass++) {
        s->last = (s->run == 0 ? PIECE : 2 * s->run) >= s->count;
        s->lead = lead_of(s);
        if (s->lead)
            arrays[pass % 2] = whole_arrays(L, s, with_line(L, shape, (int32_t)s->dim, s->lead));
        else if (!s->last && !arrays[pass % 2])
            arrays[pass % 2] = whole_arrays(L, s, shape);
        s->merged = arrays[pass % 2];
        s->group = group_size(L, s, shape);
        nest(L, shape->rank, plan_dims(L, s->x, ROLE_RANKS + pass, shape->rank, shape->dims), major_order(L, shape), rank_element, s);
        s->line = s->merged;
        s->fresh = false;
        s->run = s->run == 0 ? PIECE : 2 * s->run;
        if (s->lead) {
            shape = s->line[0]->shape;
            s->count = s->lead;
            s->run = s->lead = 0;
            arrays[1 - pass % 2] = NULL;
        }
    }
}

/* As which an element moves. */
static Type carried_type(Type t)
{
    return !type_is_float(t) || machine_type(t) == t ? t : type_bits(t) > 8 ? TYPE_U16 : TYPE_U8;
}

static void sort_lines(Lower *L, Sort *s, const Shape *whole)
{
    const Shape *shape = s->to[0]->shape;
    int64_t     *extents = ARENA_ARRAY(L->arena, int64_t, shape->rank);
    s->at = ARENA_ARRAY(L->arena, const Ix *, shape->rank);
    s->carried = ARENA_ARRAY(L->arena, Type, s->n);
    s->place = index_type(L, 4 * s->count);
    for (int32_t k = 0; k < s->n; k++)
        s->carried[k] = carried_type(s->types[k]);
    if (L->plan->plain) {
        sort_by_rank(L, s, whole);
        return;
    }
    s->run = -1;
    s->line = ARENA_ARRAY(L->arena, KArray *, s->n);
    s->merged = ARENA_ARRAY(L->arena, KArray *, s->n);
    for (int32_t k = 0; k < s->n; k++) {
        const Shape *line = shape_array(L->arena, s->carried[k], 1, keeps_few(s) ? &s->kept : &s->count);
        s->line[k] = temp_array(L, line, "line");
        s->merged[k] = keeps_few(s) ? NULL : temp_array(L, line, "merged");
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
    sort_lines(L, &s, to[0]->shape);
}

void stage_topk(Lower *L, const Inst *x, KArray *const *to)
{
    const Shape *in = inst_operand(x, 0)->shape;
    const Inst  *from[] = { inst_operand(x, 0), NULL };
    Type         types[] = { in->type, TYPE_S32 };
    Sort         s = { .x = x, .n = 2, .from = from, .types = types, .to = to, .dim = in->rank - 1 };
    s.count = in->dims[s.dim];
    s.kept = to[0]->shape->dims[s.dim];
    sort_lines(L, &s, in);
}
