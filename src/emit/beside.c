/* Loops over rows become blocks as those over columns do (columns.h). Then what a loop over the rows of a block reads or writes far apart is a piece: some neighbours in each
 * row, that are turned in front of the outermost loop that goes through them, or behind it. */
#include "emit/beside.h"

#include "emit/columns.h"
#include "support/vec.h"

enum {
    MOST_ROWS = 64, LEAST_ROWS = 32, /* in a block */
    STEP = 8,          /* rows that are turned at once */
    ARRAY_BYTES = 4096 /* of one column each of these rows, at most */,
    MOST_BYTES = 65536 /* of a block's pieces */,
    TURNED_BY_CALL = 4 /* columns: fewer are what compilers turn */
};

/* A loop of the block, or the statement that is one over its rows, and the block that it stands in. */
typedef struct Frame {
    KBlock *in;
    KStmt  *s;
} Frame;

typedef struct Piece {
    KArray   *array, *columns;
    bool      stored;
    const Ix *base;   /* of row 0, without what goes through a row */
    int64_t   stride; /* from row to row */
    int64_t   lo, hi; /* elements of a row, from base */
    KBlock   *in;
    KStmt    *at;     /* what goes through it, or does so first */
} Piece;

typedef struct Beside {
    Kernel *k;
    IxCtx  *cx;
    int64_t rows;
    Map     read, written; /* arrays */
    VEC(Frame)    frames;
    VEC(Piece)    pieces;
    VEC(KArray *) arrays;
    bool    far; /* something far apart is none, in a loop along rows */
    bool    near; /* something of neighbouring rows lies side by side */
} Beside;

static int64_t trips(const KStmt *loop)
{
    return loop->loop->hi - loop->loop->lo + 1;
}

/* ---- pieces ---- */

static bool is_of_loops(const Ix *x)
{
    for (int32_t i = 0; i < x->n; i++)
        if (x->t[i].atom->kind != IX_LOOP)
            return false;
    return true;
}

static const Ix *without(const Beside *b, const Ix *x, const IxAtom *atom)
{
    return ix_add(b->cx, x, ix_times(b->cx, ix_of(b->cx, atom), -ix_coef(x, atom)));
}

/* The piece that an access in the loop over rows, which is the last frame, belongs to; lo and hi are its own. false: none. */
static bool find_piece(const Beside *b, KArray *array, const Ix *x, bool stored, Piece *p)
{
    const int32_t last = b->frames.n - 1;
    const IxAtom *row = b->frames.v[last].s->loop;
    int32_t       from = last;
    int64_t       span = 0;
    *p = (Piece){ .array = array, .stored = stored, .stride = ix_coef(x, row) };
    if (p->stride < 2 || !is_of_loops(x))
        return false;
    x = without(b, x, row);
    p->lo = p->hi = x->c;
    x = ix_plus(b->cx, x, -x->c);
    for (; from > 0; from--) {
        const KStmt  *s = b->frames.v[from - 1].s;
        const int64_t k = ix_coef(x, s->loop);
        int64_t       more;
        if (k == INT64_MIN || __builtin_mul_overflow(k < 0 ? -k : k, trips(s) - 1, &more) || more >= p->stride - span || span + more >= BESIDE_MOST)
            break;
        span += more;
        p->lo += k * (k < 0 ? s->loop->hi : s->loop->lo);
        p->hi += k * (k < 0 ? s->loop->lo : s->loop->hi);
        x = without(b, x, s->loop);
    }
    p->base = x;
    p->in = b->frames.v[from].in;
    p->at = b->frames.v[from].s;
    return from < last;
}

/* All of it is in the array, whatever of it is read. */
static bool is_inside(const Beside *b, const Piece *p)
{
    int64_t lo, hi, last;
    ix_range(p->base, &lo, &hi);
    return !__builtin_mul_overflow(p->stride, b->rows - 1, &last) && !__builtin_add_overflow(last, hi, &hi) && !__builtin_add_overflow(hi, p->hi, &hi) &&
           !__builtin_add_overflow(lo, p->lo, &lo) && lo >= 0 && hi < p->array->count;
}

static bool is_around(const Beside *b, const KBlock *in)
{
    for (int32_t k = 0; k < b->frames.n; k++)
        if (b->frames.v[k].in == in)
            return true;
    return false;
}

/* The stored piece that p is: rows that fill no whole vectors are stored by a loop of their own. NULL: it is new. */
static const Piece *stored_before(const Beside *b, const Piece *p)
{
    for (int32_t k = 0; k < b->pieces.n; k++) {
        const Piece *q = &b->pieces.v[k];
        if (q->stored && q->array == p->array && q->at == p->at && q->lo == p->lo && q->hi == p->hi && ix_equal(q->base, p->base))
            return q;
    }
    return NULL;
}

/* Makes a piece that is there larger, or adds one. */
static void add_piece(Beside *b, const Piece *p)
{
    if (p->stored && stored_before(b, p))
        return;
    for (int32_t k = 0; k < b->pieces.n && !p->stored; k++) {
        Piece q = b->pieces.v[k];
        if (q.stored || q.array != p->array || q.stride != p->stride || !ix_equal(q.base, p->base) || !is_around(b, q.in))
            continue;
        q.lo = p->lo < q.lo ? p->lo : q.lo;
        q.hi = p->hi > q.hi ? p->hi : q.hi;
        if (q.hi - q.lo < BESIDE_MOST && is_inside(b, &q)) {
            b->pieces.v[k] = q;
            return;
        }
    }
    vec_push(b->k->arena, &b->pieces, *p);
}

static void note_load(void *cookie, const KExpr *x)
{
    Beside *b = cookie;
    Piece   p;
    b->near |= x->kind == KX_LOAD && x->array->kind != KARRAY_LOCAL && ix_coef(x->index, b->frames.v[b->frames.n - 1].s->loop) == 1;
    if (x->kind != KX_LOAD || x->array->kind == KARRAY_LOCAL || ix_coef(x->index, b->frames.v[b->frames.n - 1].s->loop) < 2)
        return;
    if (!map_has(&b->written, x->array) && find_piece(b, x->array, x->index, false, &p) && is_inside(b, &p))
        add_piece(b, &p);
    else
        b->far |= b->frames.n > 1;
}

/* The loops from the piece on store each element of it once. */
static bool fills(const Beside *b, const Piece *p, const Ix *x)
{
    int64_t filled = 1;
    for (int32_t from = b->frames.n - 1; from > 0 && b->frames.v[from].s != p->at; from--) {
        const KStmt *s = b->frames.v[from - 1].s;
        if (ix_coef(x, s->loop) != filled)
            return false;
        filled *= trips(s);
    }
    return filled == p->hi - p->lo + 1 && filled <= p->stride;
}

static bool piece_of_store(const Beside *b, const KStmt *s, Piece *p)
{
    return s->array->kind != KARRAY_LOCAL && !s->atomic && !map_has(&b->read, s->array) && find_piece(b, s->array, s->index, true, p) && fills(b, p, s->index);
}

static void note_stores(Beside *b, const KBlock *in)
{
    Piece p;
    for (const KStmt *s = in->first; s; s = s->next)
        if (s->kind == KS_STORE && piece_of_store(b, s, &p))
            add_piece(b, &p);
        else if (s->kind == KS_STORE)
            b->far |= b->frames.n > 1 && s->array->kind != KARRAY_LOCAL && ix_coef(s->index, b->frames.v[b->frames.n - 1].s->loop) != 1;
}

/* Calls f for each loop over rows, with what is around it. */
static void each_loop(Beside *b, KBlock *in, void (*f)(Beside *b, KStmt *loop))
{
    for (KStmt *s = in->first; s; s = s->next) {
        vec_push(b->k->arena, &b->frames, ((Frame){ in, s }));
        if (s->kind == KS_FOR && s->beside)
            f(b, s);
        else if (s->kind == KS_FOR)
            each_loop(b, s->body, f);
        b->frames.n--;
    }
}

static void find_pieces(Beside *b, KStmt *loop)
{
    kernel_visit(loop->body, &(KVisitor){ note_load, NULL, b });
    note_stores(b, loop->body);
}

static void note_read(void *cookie, const KExpr *x)
{
    Beside *b = cookie;
    if (x->kind == KX_LOAD)
        map_put(&b->read, x->array, b);
}

static void note_written(void *cookie, const KStmt *s)
{
    Beside *b = cookie;
    if (s->kind == KS_STORE)
        map_put(&b->written, s->array, b);
}

/* Pieces of several elements, which are not much together; or rows that are made of something else, as of what is compared with each element of a list. */
static bool are_worth_it(const Beside *b)
{
    int64_t bytes = 0;
    for (int32_t k = 0; k < b->pieces.n; k++)
        bytes += (b->pieces.v[k].hi - b->pieces.v[k].lo + 1) * b->rows * type_bytes(b->pieces.v[k].array->type);
    return (b->pieces.n > 0 || b->near) && bytes <= MOST_BYTES && !b->far;
}

/* ---- rewriting ---- */

/* Where element x of the piece is among the columns. */
static const Ix *in_columns(const Beside *b, const Piece *p, const Ix *x)
{
    const IxAtom *row = b->frames.v[b->frames.n - 1].s->loop;
    const Ix     *column = ix_plus(b->cx, ix_add(b->cx, without(b, x, row), ix_times(b->cx, p->base, -1)), -p->lo);
    return ix_add(b->cx, ix_times(b->cx, column, b->rows), ix_of(b->cx, row));
}

static const Piece *piece_of_load(const Beside *b, const KExpr *x)
{
    Piece p;
    if (x->array->kind == KARRAY_LOCAL || !find_piece(b, x->array, x->index, false, &p))
        return NULL;
    for (int32_t k = 0; k < b->pieces.n; k++) {
        const Piece *q = &b->pieces.v[k];
        if (!q->stored && q->array == p.array && q->stride == p.stride && ix_equal(q->base, p.base) && is_around(b, q->in) && q->lo <= p.lo && p.hi <= q->hi)
            return q;
    }
    return NULL;
}

static const KExpr *load_from_columns(void *cookie, const KExpr *x)
{
    const Beside *b = cookie;
    const Piece  *p = piece_of_load(b, x);
    return p ? kx_load(b->k->arena, p->columns, in_columns(b, p, x->index)) : NULL;
}

static void rewrite_loads(Beside *b, KBlock *in)
{
    const KRewriter r = { load_from_columns, NULL, b };
    for (KStmt *s = in ? in->first : NULL; s; s = s->next) {
        s->value = s->value ? kx_rewrite(b->k->arena, s->value, &r) : NULL;
        rewrite_loads(b, s->body);
        rewrite_loads(b, s->other);
    }
}

static void rewrite(Beside *b, KStmt *loop)
{
    rewrite_loads(b, loop->body);
    for (KStmt *s = loop->body->first; s; s = s->next) {
        Piece        p;
        const Piece *to = s->kind == KS_STORE && piece_of_store(b, s, &p) ? stored_before(b, &p) : NULL;
        if (!to)
            continue;
        s->index = in_columns(b, to, s->index);
        s->array = to->columns;
    }
}

static KStmt *new_statement(const Beside *b, KStmt s)
{
    return arena_copy(b->k->arena, &s, sizeof s);
}

static KStmt *new_loop(const Beside *b, const IxAtom *loop, KStmt *inside)
{
    KBlock *body = ARENA_NEW(b->k->arena, KBlock);
    body->first = body->last = inside;
    return new_statement(b, (KStmt){ .kind = KS_FOR, .loop = loop, .body = body });
}

/* columns[column * rows + row] = array[base + lo + row * stride + column], or back */
static KStmt *turning_store(const Beside *b, const Piece *p, const Ix *column, const Ix *row)
{
    const Ix *apart = ix_add(b->cx, ix_add(b->cx, ix_plus(b->cx, p->base, p->lo), ix_times(b->cx, row, p->stride)), column), *beside = ix_add(b->cx, ix_times(b->cx, column, b->rows), row);
    KArray   *to = p->stored ? p->array : p->columns, *from = p->stored ? p->columns : p->array;
    return new_statement(b, (KStmt){ .kind = KS_STORE, .array = to, .index = p->stored ? apart : beside, .value = kx_load(b->k->arena, from, p->stored ? beside : apart) });
}

/* for row: { store of column 0;  of column 1; ... }, of which compilers make vectors that are mixed once for all columns (64 rows of 3 of 16 bits 31 and 9 ns, back 37 and 9; with AVX2 back 45 and 21) */
static KStmt *turning_few(const Beside *b, const Piece *p)
{
    const IxAtom *row = ix_new_atom(b->cx, IX_LOOP, "row", 0, b->rows - 1, 0, NULL);
    KStmt        *loop = new_loop(b, row, turning_store(b, p, ix_const(b->cx, 0), ix_of(b->cx, row)));
    for (int64_t k = 1; k <= p->hi - p->lo; k++)
        loop->body->last = loop->body->last->next = turning_store(b, p, ix_const(b->cx, k), ix_of(b->cx, row));
    return loop;
}

/* for column: for row: the store of it */
static KStmt *turning_nest(const Beside *b, const Piece *p)
{
    const int64_t n = p->hi - p->lo + 1;
    const IxAtom *column = ix_new_atom(b->cx, IX_LOOP, "column", 0, n - 1, 0, NULL), *row = ix_new_atom(b->cx, IX_LOOP, "row", 0, b->rows - 1, 0, NULL);
    const Ix     *first = ix_plus(b->cx, p->base, p->lo), *none = ix_const(b->cx, 0);
    KStmt        *store = turning_store(b, p, ix_of(b->cx, column), ix_of(b->cx, row));
    Turning       t = { .to = store->array, .from = store->value->array, .to_at = p->stored ? first : none, .from_at = p->stored ? none : first, .stride = p->stride, .rows = b->rows, .columns = n, .back = p->stored };
    if (n < TURNED_BY_CALL)
        return turning_few(b, p);
    KStmt *nest = new_loop(b, column, new_loop(b, row, store));
    nest->turning = turning_function(&t) ? arena_copy(b->k->arena, &t, sizeof t) : NULL;
    return nest;
}

static void insert_before(KBlock *in, const KStmt *at, KStmt *s)
{
    KStmt **link = &in->first;
    while (*link != at)
        link = &(*link)->next;
    s->next = *link;
    *link = s;
}

static void insert_behind(KBlock *in, KStmt *at, KStmt *s)
{
    s->next = at->next;
    at->next = s;
    if (in->last == at)
        in->last = s;
}

static void add_columns(Beside *b, Piece *p)
{
    p->columns = ARENA_NEW(b->k->arena, KArray);
    *p->columns = (KArray){ .kind = KARRAY_LOCAL, .type = p->array->type, .name = arena_printf(b->k->arena, "%s_turned", p->array->name), .count = (p->hi - p->lo + 1) * b->rows, .restricted = true };
    vec_push(b->k->arena, &b->arrays, p->columns);
}

static void turn_piece(Beside *b, Piece *p)
{
    KStmt *nest = turning_nest(b, p);
    insert_before(p->in, p->at, new_statement(b, (KStmt){ .kind = KS_ARRAY, .array = p->columns }));
    if (p->stored)
        insert_behind(p->in, p->at, nest);
    else
        insert_before(p->in, p->at, nest);
}

/* False: nothing of the block is far apart, or what is cannot be turned. */
static bool turn_pieces(Beside *b, KStmt *blocks)
{
    b->read = map_new(b->k->arena);
    b->written = map_new(b->k->arena);
    kernel_visit(blocks->body, &(KVisitor){ note_read, note_written, b });
    each_loop(b, blocks->body, find_pieces);
    if (!are_worth_it(b))
        return false;
    for (int32_t k = 0; k < b->pieces.n; k++)
        add_columns(b, &b->pieces.v[k]);
    each_loop(b, blocks->body, rewrite);
    for (int32_t k = 0; k < b->pieces.n; k++)
        turn_piece(b, &b->pieces.v[k]);
    return true;
}

/* ---- loops over rows ---- */

/* Trips of the longest loop inside, all that are around each other. */
static int64_t longest(const KBlock *b)
{
    int64_t most = 1;
    for (const KStmt *s = b->first; s; s = s->next) {
        const int64_t inner = s->kind == KS_FOR ? longest(s->body) : 1, n = s->kind == KS_FOR && inner <= BESIDE_MOST ? inner * trips(s) : inner;
        most = n > most ? n : most;
    }
    return most;
}

static void note_widest(void *cookie, const KExpr *x)
{
    int64_t *bytes = cookie;
    if (x->kind == KX_LOAD && type_bytes(x->array->type) > *bytes)
        *bytes = type_bytes(x->array->type);
}

/* Rows in a block: as many as a cache likes, all of them where they are few. */
static int64_t rows_of(const KStmt *loop)
{
    int64_t bytes = 4, rows = MOST_ROWS;
    kernel_visit(loop->body, &(KVisitor){ note_widest, NULL, &bytes });
    while (rows > LEAST_ROWS && rows * bytes * longest(loop->body) > ARRAY_BYTES)
        rows /= 2;
    return trips(loop) < 2 * rows && trips(loop) <= MOST_ROWS && trips(loop) % STEP == 0 ? trips(loop) : rows;
}

/* The blocks go in front of the loop, which has the rows that fill none, if there are any. */
static bool put_beside(Kernel *k, IxCtx *cx, KBlock *in, KStmt *loop, int64_t rows)
{
    Beside         b = { .k = k, .cx = cx, .rows = rows };
    int32_t        n_arrays = 0;
    KArray *const *arrays = NULL;
    if (loop->from || loop->end || trips(loop) < b.rows)
        return false;
    KStmt *blocks = columns_of_rows(k, cx, loop, b.rows, &n_arrays, &arrays);
    if (!blocks || !turn_pieces(&b, blocks))
        return false;
    const int64_t whole = trips(loop) / b.rows * b.rows;
    insert_before(in, loop, blocks);
    if (whole < trips(loop)) {
        ((IxAtom *)(uintptr_t)loop->loop)->lo += whole;
    } else {
        blocks->next = loop->next;
        in->last = in->last == loop ? blocks : in->last;
    }
    kernel_add_arrays(k, n_arrays, arrays);
    kernel_add_arrays(k, b.arrays.n, b.arrays.v);
    return true;
}

static void note_slow(void *found, const KExpr *x)
{
    *(bool *)found |= kx_is_dear_call(x) || (x->kind == KX_LOAD && (x->array->type == TYPE_F16 || x->array->type == TYPE_BF16));
}

/* Rows of f16 and bf16, of what is dear, and products of small matrices, that fill no block are scalar: most of them are a smaller block (one thread of an Emerald Rapids, 300 particles in two dimensions, f16 235 and 143 us, 500 springs in three 5.9
 * and 4.7; softmax of 500 rows of 7 of bf16 5.7 and 3.8). */
static void put_rest_beside(Kernel *k, IxCtx *cx, KBlock *in, KStmt *loop, int64_t rest)
{
    enum { LEAST = 16 };
    bool slow = k->inst->op == OP_DOT;
    kernel_visit(loop->body, &(KVisitor){ note_slow, NULL, &slow });
    if (slow && rest >= LEAST)
        put_beside(k, cx, in, loop, rest / STEP * STEP);
}

bool loop_rows_beside(Kernel *k, IxCtx *cx, KBlock *in, KStmt *loop)
{
    const int64_t n = trips(loop), rows = rows_of(loop);
    if (!put_beside(k, cx, in, loop, rows))
        return false;
    put_rest_beside(k, cx, in, loop, n % rows);
    return true;
}

static bool in_block(Kernel *k, IxCtx *cx, KBlock *b)
{
    bool any = false;
    for (KStmt *s = b->first, *next; s; s = next) {
        next = s->next;
        if (s->kind != KS_FOR || !loop_rows_beside(k, cx, b, s))
            any |= (s->body && in_block(k, cx, s->body)) | (s->other && in_block(k, cx, s->other));
        else
            any = true;
    }
    return any;
}

bool kernel_beside(Kernel *k, IxCtx *cx, bool (*put)(Kernel *k, IxCtx *cx, KBlock *b))
{
    IxCtx quiet = *cx;
    quiet.split = NULL;
    for (int32_t i = 0; i < k->n_results * k->n_operands; i++)
        if (k->may_alias[i])
            return false;
    const bool any = put(k, &quiet, k->body);
    quiet.split = cx->split;
    *cx = quiet;
    return any;
}

bool kernel_rows_beside(Kernel *k, IxCtx *cx)
{
    return kernel_beside(k, cx, in_block);
}

const char *turning_function(const Turning *t)
{
    if (t->backwards)
        return "pieces_block_backwards";
    switch (t->columns < TURNED_BY_CALL ? 0 : type_bytes(t->to->type)) {
    case 2: return t->back ? "columns_to_rows_16" : "rows_to_columns_16";
    case 4: return t->back ? "columns_to_rows_32" : "rows_to_columns_32";
    case 8: return t->back ? "columns_to_rows_64" : "rows_to_columns_64";
    default: return NULL;
    }
}
