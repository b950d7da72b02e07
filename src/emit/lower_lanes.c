/* Rows in lanes, so that the loop has no chain of dependent operations and adds numbers of like size: the last reduced dimension is round * lanes + lane.
 *
 *   float lane[16] = 0;  for r: for l: lane[l] += x[r*16 + l];  for l < 8: lane[l] += lane[l + 8];  ...  sum = init; for l < 4: sum += lane[l]
 *
 * What does not fill the last round is made as whole vectors too, which end with the row: sums leave out what they have, extremes take it again.
 *
 * The pairs of argmax and its like (analysis/choice.h) have lanes of values and lanes of numbers. Where the body minds NaN, a row with one is gone through again
 * in order. Extremes do not look for NaN at each element: lanes of sums beside them tell whether there may have been one, and then the row is gone through again. */
#include "emit/lower_reduction.h"

#include <math.h>

enum { FEW = 4 /* lanes that are joined one by one */, MOST_ROUNDS = 8 /* of lanes that are one expression */, WRITTEN_OUT = 8 /* trips that compilers write out */ };

static void load_lane(Lower *L, const Reduction *r, const Ix *lane, const KExpr **x)
{
    x[0] = load_current(L, r->lanes, lane);
    if (r->numbers)
        x[1] = load_current(L, r->numbers, lane);
}

/* lane = body(acc, x) */
static void set_lane(Lower *L, const Reduction *r, const Ix *lane, const KExpr *const *acc, const KExpr *const *x)
{
    const KExpr *out[2];
    if (r->sums)
        out[0] = reduction_extreme(L, r, acc[0], x[0]);
    else
        reduction_combine(L, r, acc, x, out);
    for (int32_t k = 0; k < r->n && r->n > 1; k++)
        out[k] = bind(L, out[k], "next");
    store(L, r->lanes, lane, out[0]);
    if (r->numbers)
        store(L, r->numbers, lane, out[1]);
}

/* 1 when x is NaN */
static const KExpr *is_nan(Lower *L, const KExpr *x)
{
    return kx_cast(L->arena, TYPE_S32, kx_binary(L->arena, KOP_NE, TYPE_PRED, x, x));
}

/* What changes nothing: of an extreme its first value, which may be taken as often as one likes. */
static const KExpr *neutral(Lower *L, const Reduction *r, Type t)
{
    return r->op == OP_ADD || r->op == OP_MULTIPLY ? reduction_nothing(L, r, t) : kx_temp(L->arena, r->acc[0]);
}

/* known: NULL, or whether a sum has the element already. */
static void lane_step(Lower *L, const Reduction *r, const Ix *lane, const Ix *const *at, const KExpr *known)
{
    const KExpr *acc[2], **x = reduction_elements(L, r, r->lanes->type, at);
    if (known && r->n == 1 && r->op == OP_ADD)
        x[0] = kx_select(L->arena, known, neutral(L, r, r->lanes->type), bind(L, x[0], "x"));
    for (int32_t k = 0; k < r->n && (r->n > 1 || r->sums); k++)
        x[k] = bind(L, x[k], "x");
    load_lane(L, r, lane, acc);
    if (r->sums)
        store(L, r->sums, lane, kx_binary(L->arena, KOP_ADD, r->sums->type, load_current(L, r->sums, lane), x[0]));
    if (r->odd)
        store(L, r->odd, lane, kx_binary(L->arena, KOP_OR, TYPE_S32, load_current(L, r->odd, lane), is_nan(L, x[0])));
    set_lane(L, r, lane, acc, x);
}

static void lanes_body(Lower *L, const Blocks *b, const Ix *const *index, const Ix *lane)
{
    for (const Reduction *r = b->first; r; r = r->next) {
        const Ix **at = blocks_place(L, b, r, index, lane);
        if (r->lanes)
            lane_step(L, r, lane, at, NULL);
        else
            reduction_step(L, r, at);
    }
}

/* Of a loop that gcc makes one trip of two it takes it that it is rarely gone through, and keeps lanes in memory. Those of few trips it writes out. */
static void keep_in_turn(KStmt *rounds)
{
    if (rounds && rounds->kind == KS_FOR && rounds->loop->hi - rounds->loop->lo > WRITTEN_OUT)
        rounds->in_turn = true;
}

static void lanes_loop(Lower *L, void *cookie, const Ix *const *index)
{
    const Blocks *b = cookie;
    keep_in_turn(L->cur->from);
    const IxAtom *l = loop_open(L, 0, reductions_lanes(b->first), NULL, 1);
    lanes_body(L, b, index, ix_of(&L->ix, l));
    block_close(L);
}

/* ---- extremes ---- */

enum { ROUNDS = 4 };

static bool is_extreme(const Reduction *r)
{
    return r->n == 1 && (r->op == OP_MAXIMUM || r->op == OP_MINIMUM);
}

/* A choice's lanes go through memory in each trip: extremes take several rounds at a time. What does not fill them is in the last ones, which overlap those before. */
static bool takes_rounds(Lower *L, const Reduction *first)
{
    bool extremes = reductions_are_cheap(L, first);
    for (const Reduction *r = first; r && extremes; r = r->next)
        extremes = is_extreme(r) && !r->shows_nan && !r->down && !reduction_wants_sums(r) && !r->own_row && !r->paired;
    return extremes;
}

/* Where r begins says nothing. */
static bool begins_with_nothing(Lower *L, const Reduction *r)
{
    const KExpr *x = reduction_start(L, r, 0);
    return x->kind == KX_FLOAT && isinf(x->f) && (x->f < 0) == (r->op == OP_MAXIMUM);
}

typedef struct Rounds {
    Reduction *first;
    Blocks    *b;
    int64_t    from, n, each; /* n rounds, beginning with this one, of each so many */
    bool       last, begins;  /* the overlapping one, too; lanes have no value yet */
} Rounds;

static const KExpr *next_round(Lower *L, const Rounds *s, const Reduction *r, const KExpr *acc, const Ix *const *index, const Ix *place)
{
    const KExpr *x = reduction_elements(L, r, r->lanes->type, blocks_place(L, s->b, r, index, place))[0];
    if (acc)
        reduction_combine(L, r, &acc, &x, &x);
    return bind(L, x, "next");
}

static void rounds_body(Lower *L, void *cookie, const Ix *const *index)
{
    const Rounds *s = cookie;
    const int64_t lanes = reductions_lanes(s->first);
    const int32_t last = s->first->n_reduced - 1;
    keep_in_turn(L->cur->from);
    const Ix    **all = arena_copy(L->arena, index, (size_t)(last + 1) * sizeof *all), *l = ix_of(&L->ix, loop_open(L, 0, lanes, NULL, 1));
    for (Reduction *r = s->first; r; r = r->next) {
        const KExpr *acc = !s->begins ? load_current(L, r->lanes, l) : begins_with_nothing(L, r) ? NULL : kx_temp(L->arena, r->acc[0]);
        for (int64_t k = 0; k < s->n; k++) {
            all[last] = ix_plus(&L->ix, ix_times(&L->ix, index[last], s->each), s->from + k);
            acc = next_round(L, s, r, acc, all, l);
        }
        all[last] = ix_const(&L->ix, 0);
        if (s->last)
            acc = next_round(L, s, r, acc, all, ix_plus(&L->ix, l, s->first->extents[last] - lanes));
        store(L, r->lanes, l, acc);
    }
    block_close(L);
}

/* Rounds at a time, then what is left of each row; a short row is one expression. */
static void extremes_in_lanes(Lower *L, Reduction *first, Blocks *b)
{
    const int32_t last = first->n_reduced - 1;
    const int64_t lanes = reductions_lanes(first), rounds = b->extents[last];
    const bool    overlaps = first->extents[last] % lanes != 0, one = last == 0 && rounds <= MOST_ROUNDS;
    int64_t      *extents = arena_copy(L->arena, b->extents, (size_t)(last + 1) * sizeof *extents);
    for (Reduction *r = first; r; r = r->next) {
        Type t = machine_type(r->carry[0]);
        r->lanes = one ? local_array(L, t, lanes, "lane") : lanes_new(L, t, lanes, kx_temp(L->arena, r->acc[0]), "lane");
    }
    for (int32_t k = 0; k <= last; k++)
        first->base[k] = ix_const(&L->ix, 0);
    Rounds s = { .first = first, .b = b, .n = ROUNDS, .each = ROUNDS };
    extents[last] = one ? 0 : rounds / ROUNDS;
    if (extents[last] > 0)
        nest(L, last + 1, plan_dims(L, first->x, ROLE_REDUCED, last + 1, extents), NULL, rounds_body, &s);
    s = (Rounds){ .first = first, .b = b, .from = one ? 0 : rounds - rounds % ROUNDS, .n = one ? rounds : rounds % ROUNDS, .last = overlaps, .begins = one };
    extents[last] = 1;
    if (s.n > 0 || s.last)
        nest(L, last + 1, plan_dims(L, first->x, ROLE_BEFORE_REST, last + 1, extents), NULL, rounds_body, &s);
}

/* One that is left of a row. Sums take it by itself: lanes of which one has just been written are waited for when they are read as a vector. */
static void single_element(Lower *L, const Blocks *b, const Ix *const *index)
{
    const Ix *first = ix_const(&L->ix, 0);
    for (const Reduction *r = b->first; r; r = r->next) {
        const Ix **at = blocks_place(L, b, r, index, first);
        if (!r->lanes || (r->n == 1 && r->op == OP_ADD && !r->total))
            reduction_step(L, r, at);
        else
            lane_step(L, r, first, at, NULL);
    }
}

/* Of what takes several steps compilers make branches under a condition (rows of 70 25 and 58 us): that is in memory before it is chosen. */
static void store_last(Lower *L, const Blocks *b, const Ix **index, int64_t width)
{
    const Ix *l = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1)), *from = ix_plus(&L->ix, l, b->first->extents[b->first->n_reduced - 1] - width);
    for (Reduction *r = b->first; r; r = r->next)
        store(L, r->last, l, reduction_elements(L, r, r->lanes->type, blocks_place(L, b, r, index, from))[0]);
    block_close(L);
}

static void add_last(Lower *L, const Reduction *r, const Ix *l, const KExpr *known)
{
    const KExpr *x = kx_select(L->arena, known, neutral(L, r, r->lanes->type), bind(L, load_current(L, r->last, l), "x")), *acc = load_current(L, r->lanes, l);
    set_lane(L, r, l, &acc, &x);
}

/* A few that are left of a row, as whole vectors: the last ones of the row, of which sums leave out those that they have. Of lanes of which some have just been written all are waited for
 * when they are read as vectors. */
static void last_elements(Lower *L, const Blocks *b, const Ix **index, int32_t last, int64_t left, int64_t width, bool direct)
{
    const int64_t n = b->first->extents[b->first->n_reduced - 1];
    index[last] = ix_const(&L->ix, 0);
    for (Reduction *r = direct ? NULL : b->first; r; r = r->next)
        r->last = local_array(L, r->lanes->type, width, "last");
    if (!direct)
        store_last(L, b, index, width);
    const Ix     *l = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1));
    const KExpr  *known = kx_binary(L->arena, KOP_LT, TYPE_PRED, kx_cast(L->arena, TYPE_S32, kx_index(L->arena, l)), kx_int(L->arena, TYPE_S32, width - left));
    for (const Reduction *r = b->first; r; r = r->next)
        if (direct)
            lane_step(L, r, l, blocks_place(L, b, r, index, ix_plus(&L->ix, l, n - width)), known);
        else
            add_last(L, r, l, known);
    block_close(L);
}

/* As many lanes as whole vectors have; 0: the loop makes something else than sums and extremes. */
static int64_t last_width(const Reduction *first, int64_t left, int64_t lanes)
{
    enum { VECTOR = 16 };
    const int64_t width = (left + VECTOR - 1) / VECTOR * VECTOR < lanes ? (left + VECTOR - 1) / VECTOR * VECTOR : lanes;
    for (const Reduction *r = first; r; r = r->next)
        if (!r->lanes || r->n > 1 || (r->op != OP_ADD && r->op != OP_MAXIMUM && r->op != OP_MINIMUM))
            return 0;
    return width > left ? width : 0;
}

static bool last_are_cheap(Lower *L, const Reduction *first)
{
    bool kept = !first->fills;
    for (const Reduction *r = first; r; r = r->next)
        kept &= row_is_kept(L, inst_operand(r->x, 0));
    return kept || reductions_are_cheap(L, first);
}

/* Sums, of which no half of a vector is left: that they are joined by. */
static bool are_stored_first(const Reduction *first, int64_t left)
{
    enum { HALF = 8 };
    bool sums = left % HALF != 0;
    for (const Reduction *r = first; r; r = r->next)
        sums &= r->op == OP_ADD && !r->sums && !r->odd;
    return sums;
}

/* What does not fill the lanes: the last n % lanes elements of each row. */
static void tail_loop(Lower *L, void *cookie, const Ix *const *index)
{
    const Blocks    *b = cookie;
    const Reduction *r = b->first;
    int64_t          n = r->extents[r->n_reduced - 1], lanes = reductions_lanes(r);
    int32_t          last = r->n_reduced - 1 - (b->d < 0 ? 0 : b->d);
    const Ix       **all = ARENA_ARRAY(L->arena, const Ix *, last + 1);
    for (int32_t k = 0; k < last; k++)
        all[k] = index[k];
    all[last] = ix_const(&L->ix, n / lanes);
    if (n % lanes == 1) {
        single_element(L, b, all);
        return;
    }
    const int64_t width = last_width(r, n % lanes, lanes);
    const bool    direct = width > 0 && last_are_cheap(L, r);
    if (direct || (width > 0 && are_stored_first(r, n % lanes))) {
        last_elements(L, b, all, last, n % lanes, width, direct);
        return;
    }
    const IxAtom *l = loop_open(L, 0, n % lanes, NULL, 1);
    lanes_body(L, b, all, ix_of(&L->ix, l));
    block_close(L);
}

/* The tails of rows that are cut into blocks. */
static void tail_alone(Lower *L, void *cookie, const Ix *const *index)
{
    Blocks *b = cookie;
    blocks_set_base(b, index, ix_const(&L->ix, 0));
    tail_loop(L, b, NULL);
}

KArray *lanes_new(Lower *L, Type t, int64_t n, const KExpr *start, const char *name)
{
    KArray       *x = local_array(L, t, n, name);
    const IxAtom *l = loop_open(L, 0, n, NULL, 1);
    store(L, x, ix_of(&L->ix, l), start);
    block_close(L);
    return x;
}

/* total[l] += block[l], in the wider type. */
void lanes_add(Lower *L, KArray *total, KArray *block)
{
    const Ix    *l = ix_of(&L->ix, loop_open(L, 0, block->count, NULL, 1));
    const KExpr *x = scalar_convert(L->arena, block->type, total->type, load_current(L, block, l));
    store(L, total, l, kx_binary(L->arena, KOP_ADD, total->type, load_current(L, total, l), x));
    block_close(L);
}

static void lanes_block(Lower *L, Blocks *b, int32_t n, LoopDim *dims)
{
    Reduction *first = b->first;
    bool       tail = first->extents[first->n_reduced - 1] % reductions_lanes(first) != 0;
    for (Reduction *r = first; r; r = r->next)
        if (r->total)
            r->lanes = lanes_new(L, TYPE_F32, r->total->count, reduction_nothing(L, r, TYPE_F32), "lane");
    nest(L, n, dims, NULL, lanes_loop, b);
    if (tail && b->d < first->n_reduced - 1)
        nest(L, n - 1, dims, NULL, tail_loop, b);
    for (Reduction *r = first; r; r = r->next)
        if (r->total)
            lanes_add(L, r->total, r->lanes);
}

/* lane[l] = lane[l] op lane[l + half], until few are left: those go into the accumulator one by one. */
static void join_lanes(Lower *L, const Reduction *r)
{
    const Type    t = r->lanes->type;
    const bool    floats = t == TYPE_F32 || t == TYPE_F64, words = t == TYPE_S16 || t == TYPE_U16, extreme = r->op == OP_MAXIMUM || r->op == OP_MINIMUM;
    const int64_t joined = t == TYPE_F32 ? 16 : 8; /* by a call */
    const bool    joins = (floats && (r->op == OP_ADD || (is_extreme(r) && !r->shows_nan && !r->sums))) || (words && extreme && !r->choice);
    const bool    by_call = joins && r->n == 1 && r->lanes->count >= joined;
    int64_t      n = r->lanes->count, few = by_call ? joined : !r->choice && extreme ? 1 : FEW; /* the scalar code of one extreme is as long as a vector's */
    const KExpr *acc[2], *x[2], *out[2];
    for (; n > few; n /= 2) {
        const Ix *l = ix_of(&L->ix, loop_open(L, 0, n / 2, NULL, 1));
        load_lane(L, r, l, acc);
        load_lane(L, r, ix_plus(&L->ix, l, n / 2), x);
        set_lane(L, r, l, acc, x);
        block_close(L);
    }
    if (by_call) {
        const KExpr *place = kx_unary(L->arena, KOP_PLACE, r->lanes->type, load_current(L, r->lanes, ix_const(&L->ix, 0))), *args[] = { current(L, r->acc[0]), place };
        const char  *fn = arena_printf(L->arena, "%s_lanes_%s", r->op == OP_ADD ? "sum" : r->op == OP_MAXIMUM ? "max" : "min", type_name(t));
        const bool   sum = r->op == OP_ADD; /* what extremes begin with is in each lane already */
        assign(L, r->acc[0], kx_call(L->arena, fn, r->lanes->type, sum ? 2 : 1, sum ? args : &place));
        return;
    }
    const Ix *l = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
    for (int32_t k = 0; k < r->n; k++)
        acc[k] = current(L, r->acc[k]);
    load_lane(L, r, l, x);
    reduction_combine(L, r, acc, x, out);
    for (int32_t k = 0; k < r->n && r->n > 1; k++)
        out[k] = bind(L, out[k], "next");
    for (int32_t k = 0; k < r->n; k++)
        assign(L, r->acc[k], out[k]);
    block_close(L);
}

/* lane[l] += lane[l + n] */
static void add_lanes(Lower *L, KArray *lanes, int64_t n)
{
    const Ix *l = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
    store(L, lanes, l, kx_binary(L->arena, KOP_ADD, lanes->type, load_current(L, lanes, l), load_current(L, lanes, ix_plus(&L->ix, l, n))));
    block_close(L);
}

/* Whether a row has to be gone through again. */
static const KExpr *met_nan(Lower *L, const Reduction *r)
{
    if (r->sums) {
        KTemp    *sum = accumulator(L, scalar_zero(L->arena, r->sums->type), r->sums->type, "sum");
        for (int64_t n = r->sums->count / 2; n >= FEW; n /= 2)
            add_lanes(L, r->sums, n);
        const Ix *l = ix_of(&L->ix, loop_open(L, 0, FEW, NULL, 1));
        assign(L, sum, kx_binary(L->arena, KOP_ADD, r->sums->type, current(L, sum), load_current(L, r->sums, l)));
        block_close(L);
        return kx_binary(L->arena, KOP_NE, TYPE_PRED, current(L, sum), current(L, sum));
    }
    KTemp    *odd = accumulator(L, kx_int(L->arena, TYPE_S32, 0), TYPE_S32, "odd");
    const Ix *l = ix_of(&L->ix, loop_open(L, 0, r->odd->count, NULL, 1));
    assign(L, odd, kx_binary(L->arena, KOP_OR, TYPE_S32, current(L, odd), load_current(L, r->odd, l)));
    block_close(L);
    return kx_binary(L->arena, KOP_NE, TYPE_PRED, current(L, odd), kx_int(L->arena, TYPE_S32, 0));
}

typedef struct Again {
    const Reduction *first, *r;
} Again;

static void again_body(Lower *L, void *cookie, const Ix *const *index)
{
    const Again *x = cookie;
    reduction_step(L, x->r, reduction_index(L, x->r->own_row ? x->r : x->first, index));
}

/* A row with NaN, in order. */
static void reduce_again(Lower *L, const Reduction *first, const Reduction *r)
{
    if_open(L, met_nan(L, r));
    for (int32_t k = 0; k < r->n; k++)
        assign(L, r->acc[k], reduction_start(L, r, k));
    Again x = { first, r };
    nest(L, first->n_reduced, plan_dims(L, first->x, ROLE_AGAIN, first->n_reduced, first->extents), NULL, again_body, &x);
    block_close(L);
}

void reduce_in_lanes(Lower *L, Reduction *first)
{
    int32_t last = first->n_reduced - 1;
    int64_t lanes = reductions_lanes(first), rest = first->extents[last] % lanes;
    Blocks  b = { .first = first, .d = -1, .block = lanes_block,
                  .extents = arena_copy(L->arena, first->extents, (size_t)first->n_reduced * sizeof *first->extents) };
    b.extents[last] /= lanes;
    if (reductions_want_blocks(first))
        blocks_cut(&b);
    if (b.d < 0 && takes_rounds(L, first)) {
        extremes_in_lanes(L, first, &b);
        for (const Reduction *r = first; r; r = r->next)
            join_lanes(L, r);
        return;
    }
    for (Reduction *r = first; r; r = r->next) {
        if (!reduction_can_have_lanes(r))
            continue;
        bool blocks = reduction_wants_blocks(r) && b.d >= 0;
        Type t = machine_type(r->carry[0]);
        r->lanes = lanes_new(L, t, lanes, neutral(L, r, t), blocks ? "total" : "lane");
        r->total = blocks ? r->lanes : NULL;
        if (r->choice)
            r->numbers = lanes_new(L, machine_type(r->carry[1]), lanes, kx_temp(L->arena, r->acc[1]), "number");
        if (reduction_wants_sums(r))
            r->sums = lanes_new(L, t, lanes, scalar_zero(L->arena, t), "sum");
        if (r->choice == CHOICE_OF_NUMBERS)
            r->odd = lanes_new(L, TYPE_S32, lanes, is_nan(L, kx_temp(L->arena, r->acc[0])), "odd");
    }
    RowPlace *row = first->fills ? row_fill(L, inst_operand(first->x, 0), reduction_index(L, first, first->base)) : NULL;
    blocks_each(L, &b);
    for (Reduction *r = first; r; r = r->next)
        r->lanes = r->total ? r->total : r->lanes;
    if (rest && b.d == last)
        nest(L, last, plan_dims(L, first->x, ROLE_BEFORE_REST, last, first->extents), NULL, tail_alone, &b);
    if (row)
        row_is_full(row);
    for (const Reduction *r = first; r; r = r->next)
        if (r->lanes)
            join_lanes(L, r);
    for (const Reduction *r = first; r; r = r->next)
        if (r->odd || r->sums)
            reduce_again(L, first, r);
}
