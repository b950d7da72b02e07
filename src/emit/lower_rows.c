/* Rows that are kept. A fusion may need a value in several loops of one row, as softmax does:
 *
 *     for i:                                              for i:
 *         for j: sum += exp(x[i][j] - max)                    float e[N]
 *         for j: out[i][j] = exp(x[i][j] - max) / sum    =>   for j: e[j] = exp(x[i][j] - max)
 *                                                             for j: sum += e[j]
 *                                                             for j: out[i][j] = e[j] / sum
 *
 * A try notes in which loops a value is computed. When the second one stands beside the first, for another purpose and at the same place
 * of the loops around both, the next try computes the row once, in front of them. That is done for what is dear, and for what a maximum is taken of: computed
 * twice, it could be rounded in two ways, and the maximum would not be the largest. Of values of which one is made of the other, the later is kept first: that
 * may be all that was wanted of the other. */
#include "emit/lower.h"

#include "analysis/cost.h"

enum { ROLE_ROW = 50, MAX_SEEN = 8 };

/* Where a value was computed, and where its rows are. */
typedef struct RowPlace RowPlace;
struct RowPlace {
    const Inst      *consumer; /* whose loops those are */
    const Ix *const *index;
    KBlock          *block;
    KArray          *array; /* of what is kept */
    RowPlace        *next;
};

/* A maximum or the like is taken of x, or of what elementwise operations and movement make of it. */
static bool feeds_choice(const Lower *L, const Inst *x)
{
    return map_has(&L->chosen, x);
}

void rows_begin(Lower *L)
{
    for (const Inst *i = L->body->last; i; i = i->prev) {
        Op   op = i->op == OP_REDUCE ? apply_operation(inst_callee(i, 0)) : OP_COUNT;
        bool chooses = i->op == OP_REDUCE && op != OP_ADD && op != OP_MULTIPLY;
        bool passes = map_has(&L->chosen, i) && is_pointwise(i) && i->op != OP_REDUCE;
        for (int32_t k = 0; k < (i->op == OP_REDUCE ? i->n_operands / 2 : i->n_operands) && (chooses || passes); k++)
            map_put(&L->chosen, inst_operand(i, k), L);
    }
}

bool row_is_kept(const Lower *L, const Inst *x)
{
    return x != L->filling && map_has(&L->plan->rows, x);
}

static int32_t first_row_dim(const Lower *L, const Inst *x)
{
    return (int32_t)(intptr_t)map_get(&L->plan->rows, x) - 1;
}

bool same_index(const Ix *const *a, const Ix *const *b, int32_t n)
{
    for (int32_t d = 0; d < n; d++)
        if (!ix_equal(a[d], b[d]))
            return false;
    return true;
}

/* ---- noticing ---- */

static const KBlock *common_block(const KBlock *a, const KBlock *b)
{
    while (a != b) {
        const KBlock **deeper = a->depth >= b->depth ? &a : &b;
        *deeper = (*deeper)->parent;
    }
    return a;
}

/* The first of the dimensions that change inside of block, when those are the last ones of both indices and the others agree; -1. */
static int32_t row_of(const Shape *s, const Ix *const *a, const Ix *const *b, const KBlock *block)
{
    int32_t first = s->rank;
    while (first > 0 && (s->dims[first - 1] == 1 || (ix_depth(a[first - 1]) > block->depth && ix_depth(b[first - 1]) > block->depth)))
        first--;
    while (first < s->rank && s->dims[first] == 1)
        first++;
    return same_index(a, b, first) && index_depth(a, first) <= block->depth ? first : -1;
}

static bool fits(const Lower *L, const Shape *s, int32_t first)
{
    int64_t bytes = type_bytes(s->type);
    for (int32_t d = first; d < s->rank; d++)
        bytes = bytes > KEPT_ROW_BYTES ? bytes : bytes * s->dims[d];
    return first < s->rank && bytes <= KEPT_ROW_BYTES && L->local_bytes + bytes <= MOST_LOCAL_BYTES;
}

void row_note(Lower *L, const Inst *x, const Ix *const *index, KBlock *block)
{
    const Shape *s = x->shape;
    if (!L->body || L->probed || !shape_is_array(s) || s->rank == 0 || map_has(&L->plan->rows, x) || !(inst_is_dear(x) || feeds_choice(L, x)))
        return;
    int32_t   seen = 0;
    RowPlace *places = map_get(&L->computed, x);
    for (RowPlace *p = places; p && seen < MAX_SEEN; p = p->next, seen++) {
        const KBlock *both = common_block(p->block, block);
        int32_t       first = both == p->block || both == block ? -1 : row_of(s, p->index, index, both);
        if (first < 0 || p->consumer == L->consumer || !fits(L, s, first))
            continue;
        vec_push(L->arena, &L->wanted_rows, ((WantedRow){x, first}));
        return;
    }
    if (seen == MAX_SEEN)
        return;
    RowPlace  *p = ARENA_NEW(L->arena, RowPlace);
    const Ix **copy = arena_copy(L->arena, index, (size_t)s->rank * sizeof *copy);
    *p = (RowPlace){L->consumer, copy, block, NULL, places};
    map_put(&L->computed, x, p);
}

static bool is_wanted(const Lower *L, const Inst *x)
{
    for (int32_t k = 0; k < L->wanted_rows.n; k++)
        if (L->wanted_rows.v[k].x == x)
            return true;
    return false;
}

/* Something that is wanted, too, is made of x. */
static bool leads_to_wanted(Lower *L, const Inst *x)
{
    enum { MOST = 200 };
    VEC(const Inst *) list = {0};
    Map seen = map_new(L->arena);
    vec_push(L->arena, &list, x);
    for (int32_t at = 0; at < list.n && list.n <= MOST; at++)
        for (const Use *u = list.v[at]->uses; u; u = u->next) {
            if (is_wanted(L, u->user))
                return true;
            if (map_has(&seen, u->user))
                continue;
            map_put(&seen, u->user, L);
            vec_push(L->arena, &list, u->user);
        }
    return false;
}

void rows_end(Lower *L)
{
    for (int32_t k = 0; k < L->wanted_rows.n; k++) {
        WantedRow w = L->wanted_rows.v[k];
        if (leads_to_wanted(L, w.x))
            continue;
        map_put(&L->plan->rows, w.x, (void *)(intptr_t)(w.first + 1));
        L->again = true;
    }
}

/* ---- keeping ---- */

typedef struct RowFill {
    const Inst *x;
    int32_t     first;
    const Ix  **at; /* outer dimensions set */
    KArray     *array;
} RowFill;

static const Ix *row_offset(Lower *L, const Shape *s, int32_t first, const Ix *const *index)
{
    return ix_linear(&L->ix, s->rank - first, index, s->dims + first);
}

static void fill_element(Lower *L, void *cookie, const Ix *const *index)
{
    RowFill     *f = cookie;
    const Shape *s = f->x->shape;
    const Ix   **at = arena_copy(L->arena, f->at, (size_t)s->rank * sizeof *at);
    for (int32_t d = f->first; d < s->rank; d++)
        at[d] = index[d - f->first];
    store(L, f->array, row_offset(L, s, f->first, index), value_at(L, f->x, 0, at));
}

static KArray *fill_row(Lower *L, const Inst *x, int32_t first, const Ix *const *index, KBlock *block)
{
    const Shape *s = x->shape;
    int64_t      count = 1;
    KBlock      *cur = L->cur;
    const Inst  *outer = L->filling, *consumer = L->consumer;
    for (int32_t d = first; d < s->rank; d++)
        count *= s->dims[d];
    RowFill f = {.x = x, .first = first, .at = ARENA_ARRAY(L->arena, const Ix *, s->rank)};
    for (int32_t d = 0; d < first; d++)
        f.at[d] = index[d];
    L->cur = block;
    L->filling = L->consumer = x;
    f.array = local_array(L, s->type, count, x->name);
    L->local_bytes += count * type_bytes(s->type);
    nest(L, s->rank - first, plan_dims(L, x, ROLE_ROW, s->rank - first, s->dims + first), NULL, fill_element, &f);
    L->filling = outer;
    L->consumer = consumer;
    L->cur = cur;
    return f.array;
}

static bool block_is_open(const Lower *L, const KBlock *b)
{
    const KBlock *p = L->cur;
    while (p && p != b)
        p = p->parent;
    return p != NULL;
}

/* An element of p, which is there from p's block on, whatever the index. */
static const KExpr *load_kept(Lower *L, const RowPlace *p, const Ix *offset)
{
    KExpr *raw = arena_copy(L->arena, kx_load(L->arena, p->array, offset), sizeof *raw);
    if (raw->depth < p->block->depth)
        raw->depth = p->block->depth;
    return scalar_decode(L->arena, p->array->type, raw);
}

const KExpr *row_value(Lower *L, const Inst *x, const Ix *const *index)
{
    const Shape *s = x->shape;
    int32_t      first = first_row_dim(L, x), depth = index_depth(index, first);
    RowPlace    *places = map_get(&L->kept_rows, x);
    for (RowPlace *p = places; p; p = p->next)
        if (block_is_open(L, p->block) && same_index(p->index, index, first))
            return load_kept(L, p, row_offset(L, s, first, index + first));
    KBlock *block = block_for(L, depth);
    if (block->depth > depth || block == L->cur)
        return NULL; /* under a condition, or wanted once a row */
    RowPlace *p = ARENA_NEW(L->arena, RowPlace);
    *p = (RowPlace){NULL, arena_copy(L->arena, index, (size_t)s->rank * sizeof *index), block, fill_row(L, x, first, index, block), places};
    map_put(&L->kept_rows, x, p);
    return load_kept(L, p, row_offset(L, s, first, index + first));
}
