/* Rows that are kept. A fusion may need a value in several loops of one row, as softmax does:
 *
 *     for i:                                              for i:
 *         for j: sum += exp(x[i][j] - max)                    float e[N]
 *         for j: out[i][j] = exp(x[i][j] - max) / sum    =>   for j: e[j] = exp(x[i][j] - max)
 *                                                             for j: sum += e[j]
 *                                                             for j: out[i][j] = e[j] / sum
 *
 * A try notes in which loops a value is computed. When the second one stands beside the first, for another purpose and at the same place
 * of the loops around both, the next try computes the row once, in front of them; so it does, but for a device's threads, where a loop that it does not depend on is around some of its own:
 *
 *     for i:                                              for i:
 *         for c:                                              float p[N]
 *             for j: sum += pow(d[i][j]) * x[i][j][c]   =>    for j: p[j] = pow(d[i][j])
 *                                                             for c:
 *                                                                 for j: sum += p[j] * x[i][j][c]
 *
 * That is done for what is dear, and for what a maximum is taken of: computed
 * twice, it could be rounded in two ways, and the maximum would not be the largest. Of values of which one is made of the other, the later is kept first: that
 * may be all that was wanted of the other. */
#include "emit/lower.h"

#include "analysis/cost.h"

enum { ROLE_ROW = 50, MAX_SEEN = 8, LEAST_EACH = 16 /* elements of a row that are worth threads of its own */, BESIDE = 2048 /* bytes of a device's shared memory that are for other things */ };

/* Where a value was computed, and where its rows are. */
struct RowPlace {
    const Inst      *consumer; /* whose loops those are */
    const Ix *const *index;
    KBlock          *block;
    KArray          *array; /* of what is kept */
    bool             is_filled; /* by whoever asks for its elements */
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

static const RowDims *row_dims(const Lower *L, const Inst *x)
{
    return map_get(&L->plan->rows, x);
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

/* The dimensions that change inside of block in both indices, when the others agree and, but for columns, stand before those; NULL. */
static const RowDims *row_of(Lower *L, const Shape *s, const Ix *const *a, const Ix *const *b, const KBlock *block)
{
    RowDims *r = ARENA_NEW(L->plan->arena, RowDims);
    r->d = ARENA_ARRAY(L->plan->arena, int32_t, s->rank);
    for (int32_t d = 0; d < s->rank; d++) {
        bool inside = ix_depth(a[d]) > block->depth, both = inside && ix_depth(b[d]) > block->depth;
        if (s->dims[d] != 1 && both)
            r->d[r->n++] = d;
        else if (s->dims[d] != 1 && (inside || !ix_equal(a[d], b[d]) || (r->n > 0 && !L->columns)))
            return NULL;
    }
    return r->n > 0 ? r : NULL;
}

static int64_t row_count(const Shape *s, const RowDims *r)
{
    int64_t count = 1;
    for (int32_t k = 0; k < r->n; k++)
        count = count > KEPT_ROW_BYTES ? count : count * s->dims[r->d[k]];
    return count;
}

/* Columns are kept some side by side. */
static bool fits(const Lower *L, const Shape *s, const RowDims *r)
{
    int64_t bytes = row_count(s, r) * type_bytes(s->type);
    if (L->plan->device)
        return L->columns ? (double)((L->local_bytes + bytes) * COLUMNS_OF_BLOCK + COLUMN_PARTS + SHARED_BESIDE) <= L->plan->device->shared
                          : (double)(L->local_bytes + bytes + BESIDE) <= L->plan->device->shared;
    if (L->columns)
        return bytes * LEAST_COLUMNS <= COLUMN_BYTES_LOCAL;
    return bytes <= KEPT_ROW_BYTES && L->local_bytes + bytes <= MOST_LOCAL_BYTES;
}

static bool is_sum(const Inst *x)
{
    return x->op == OP_REDUCE;
}

/* Compilers may round it in another way where it is computed again. */
static bool is_rounded(const Inst *x)
{
    return x->op != OP_PARAMETER && x->op != OP_CONSTANT && (type_is_float(x->shape->type) || type_is_complex(x->shape->type));
}

/* x, or something that it is made of, is such an instruction. */
static bool is_made_of(Lower *L, const Inst *x, bool (*is)(const Inst *))
{
    Map  behind = map_new(L->arena);
    bool any = false;
    map_put(&behind, x, L);
    for (const Inst *i = x; i && !any; i = i->prev)
        if (map_has(&behind, i) && !map_has(&L->memory, i)) {
            any = is(i);
            for (int32_t k = 0; k < i->n_operands; k++)
                map_put(&behind, inst_operand(i, k), L);
        }
    return any;
}

/* On a device: x is a number of each of many rows, all of them as one row of its own, for loops over the rows that have nothing else to do with each other. */
static bool is_of_many_rows(const Lower *L, const Inst *x, const RowDims *r)
{
    bool many = false;
    if (!L->plan->device || row_count(x->shape, r) != shape_count(x->shape))
        return false;
    for (const Use *u = x->uses; u; u = u->next)
        many |= u->user->op == OP_BROADCAST && shape_count(u->user->shape) >= LEAST_EACH * shape_count(x->shape);
    return many;
}

/* Threads of each row make it again, if that costs little and has the same bits. */
static bool is_of_apart(Lower *L, const Inst *x, const RowDims *r)
{
    return is_of_many_rows(L, x, r) && !(feeds_choice(L, x) && is_made_of(L, x, is_rounded)) && !is_made_of(L, x, is_sum);
}

static bool has_loop(const Ix *const *index, int32_t n, const IxAtom *loop)
{
    for (int32_t d = 0; d < n; d++)
        if (ix_has(index[d], loop))
            return true;
    return false;
}

/* x[index] is computed in block, again for each iteration of a loop that stands between loops which index depends on: its row, as of outside of the outermost such loop. NULL: there is
 * none. */
static const RowDims *row_again(Lower *L, const Inst *x, const Ix *const *index, const KBlock *block)
{
    const KBlock *around = NULL, *again = NULL;
    bool          inside = false;
    if (L->plan->device || L->columns || L->looped || !inst_is_dear(x))
        return NULL;
    for (const KBlock *b = block; b->from && b->from->kind == KS_FOR; b = b->parent) {
        if (has_loop(index, x->shape->rank, b->from->loop)) {
            inside = true;
            around = again;
        } else if (inside && b->from->loop->hi > b->from->loop->lo)
            again = b->parent;
    }
    return around ? row_of(L, x->shape, index, index, around) : NULL;
}

/* A narrow float of memory as a wider one, which is the same number wherever it is made, and costs no more than to read it. */
static bool is_widened(const Lower *L, const Inst *x)
{
    const Inst *of = x->op == OP_CONVERT ? inst_operand(x, 0) : NULL;
    return of && map_has(&L->memory, of) && (of->shape->type == TYPE_BF16 || of->shape->type == TYPE_F16) && (x->shape->type == TYPE_F32 || x->shape->type == TYPE_F64);
}

void row_note(Lower *L, const Inst *x, const Ix *const *index, KBlock *block)
{
    const Shape *s = x->shape;
    if (!L->body || L->probed || !shape_is_array(s) || s->rank == 0 || map_has(&L->plan->rows, x) || !(inst_is_dear(x) || (feeds_choice(L, x) && !is_widened(L, x))))
        return;
    const RowDims *again = row_again(L, x, index, block);
    if (again && fits(L, s, again)) {
        vec_push(L->arena, &L->wanted_rows, ((WantedRow){x, again}));
        return;
    }
    int32_t   seen = 0;
    RowPlace *places = map_get(&L->computed, x);
    for (RowPlace *p = places; p && seen < MAX_SEEN; p = p->next, seen++) {
        const KBlock *both = common_block(p->block, block);
        const RowDims *row = both == p->block || both == block ? NULL : row_of(L, s, p->index, index, both);
        if (!row || p->consumer == L->consumer || !fits(L, s, row) || is_of_apart(L, x, row))
            continue;
        vec_push(L->arena, &L->wanted_rows, ((WantedRow){x, row}));
        return;
    }
    if (seen == MAX_SEEN)
        return;
    RowPlace  *p = ARENA_NEW(L->arena, RowPlace);
    const Ix **copy = arena_copy(L->arena, index, (size_t)s->rank * sizeof *copy);
    *p = (RowPlace){ .consumer = L->consumer, .index = copy, .block = block, .next = places };
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
        map_put(&L->plan->rows, w.x, (void *)(uintptr_t)w.row);
        L->again = L->keeps_more = true;
    }
}

/* ---- keeping ---- */

typedef struct RowFill {
    const Inst    *x;
    const RowDims *row;
    const Ix     **at; /* the other dimensions set */
    KArray        *array;
} RowFill;

static const Ix *row_offset(Lower *L, const Shape *s, const RowDims *row, const Ix *const *index)
{
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, row->n);
    int64_t   *dims = ARENA_ARRAY(L->arena, int64_t, row->n);
    for (int32_t k = 0; k < row->n; k++) {
        at[k] = index[row->d[k]];
        dims[k] = s->dims[row->d[k]];
    }
    return ix_linear(&L->ix, row->n, at, dims);
}

static void fill_element(Lower *L, void *cookie, const Ix *const *index)
{
    RowFill     *f = cookie;
    const Shape *s = f->x->shape;
    const Ix   **at = arena_copy(L->arena, f->at, (size_t)s->rank * sizeof *at);
    for (int32_t k = 0; k < f->row->n; k++)
        at[f->row->d[k]] = index[k];
    store(L, f->array, row_offset(L, s, f->row, at), value_at(L, f->x, 0, at));
}

static KArray *new_row(Lower *L, const Inst *x, const RowDims *row)
{
    const int64_t count = row_count(x->shape, row);
    if (!L->cur->parent && is_of_many_rows(L, x, row))
        return shared_array(L, x->shape, x->name);
    L->local_bytes += count * type_bytes(x->shape->type);
    return local_array(L, x->shape->type, count, x->name);
}

static KArray *fill_row(Lower *L, const Inst *x, const RowDims *row, const Ix *const *index, KBlock *block)
{
    const Shape *s = x->shape;
    int64_t     *dims = ARENA_ARRAY(L->arena, int64_t, row->n);
    KBlock      *cur = L->cur;
    const Inst  *outer = L->filling, *consumer = L->consumer;
    RowFill      f = { .x = x, .row = row, .at = arena_copy(L->arena, index, (size_t)s->rank * sizeof *f.at) };
    for (int32_t k = 0; k < row->n; k++)
        dims[k] = s->dims[row->d[k]];
    for (int32_t d = 0; d < s->rank; d++)
        if (s->dims[d] == 1)
            f.at[d] = ix_const(&L->ix, 0);
    L->cur = block;
    L->filling = L->consumer = x;
    f.array = new_row(L, x, row);
    nest(L, row->n, plan_dims(L, x, ROLE_ROW, row->n, dims), NULL, fill_element, &f);
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

/* Without the dimensions of the row, of which the others are left. */
static const Ix **before_row(Lower *L, const Shape *s, const RowDims *row, const Ix *const *index)
{
    const Ix **at = arena_copy(L->arena, index, (size_t)s->rank * sizeof *at);
    for (int32_t k = 0; k < row->n; k++)
        at[row->d[k]] = ix_const(&L->ix, 0);
    return at;
}

/* ---- filling on the way ---- */

bool row_is_to_come(const Lower *L, const Inst *x, Ints dims)
{
    const RowDims *row = row_is_kept(L, x) && !L->columns ? row_dims(L, x) : NULL;
    int32_t        n = 0;
    for (int32_t k = 0; k < dims.n; k++)
        n += x->shape->dims[dims.v[k]] != 1;
    if (!row || row->n != n)
        return false;
    for (int32_t k = 0; k < row->n; k++)
        if (!ints_has(dims, row->d[k]))
            return false;
    for (const RowPlace *p = map_get(&L->kept_rows, x); p; p = p->next)
        if (block_is_open(L, p->block))
            return false;
    return true;
}

RowPlace *row_fill(Lower *L, const Inst *x, const Ix *const *index)
{
    const Shape     *s = x->shape;
    const RowDims   *row = row_dims(L, x);
    const Ix *const *at = before_row(L, s, row, index);
    const int32_t    depth = index_depth(at, s->rank);
    KBlock          *block = block_for(L, depth);
    if (block->depth > depth || block != L->cur)
        return NULL;
    RowPlace *p = ARENA_NEW(L->arena, RowPlace);
    *p = (RowPlace){ .index = at, .block = block, .array = new_row(L, x, row), .is_filled = true, .next = map_get(&L->kept_rows, x) };
    map_put(&L->kept_rows, x, p);
    return p;
}

void row_is_full(RowPlace *p)
{
    p->is_filled = false;
}

/* x[index], which is put into its place. */
static const KExpr *fill_on_the_way(Lower *L, const Inst *x, const RowPlace *p, const Ix *const *index)
{
    const Inst *outer = L->filling, *consumer = L->consumer;
    L->filling = L->consumer = x;
    const KExpr *v = bind(L, value_at(L, x, 0, index), x->name);
    L->filling = outer;
    L->consumer = consumer;
    store(L, p->array, row_offset(L, x->shape, row_dims(L, x), index), v);
    return v;
}

const KExpr *row_value(Lower *L, const Inst *x, const Ix *const *index)
{
    const Shape      *s = x->shape;
    const RowDims    *row = row_dims(L, x);
    const Ix *const  *at = before_row(L, s, row, index);
    int32_t           depth = index_depth(at, s->rank);
    RowPlace         *places = map_get(&L->kept_rows, x);
    for (RowPlace *p = places; p; p = p->next)
        if (block_is_open(L, p->block) && same_index(p->index, at, s->rank))
            return p->is_filled ? fill_on_the_way(L, x, p, index) : load_kept(L, p, row_offset(L, s, row, index));
    KBlock *block = block_for(L, depth);
    if (block->depth > depth || block == L->cur)
        return NULL; /* under a condition, or wanted once a row */
    RowPlace *p = ARENA_NEW(L->arena, RowPlace);
    *p = (RowPlace){ .index = at, .block = block, .array = fill_row(L, x, row, index, block), .next = places };
    map_put(&L->kept_rows, x, p);
    return load_kept(L, p, row_offset(L, s, row, index));
}
