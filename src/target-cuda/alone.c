/* Rows that threads go through alone, one each, while neighbours of a warp are a row apart. A block brings the rows of its threads side by side, and stores what they make so, too:
 *
 *     __shared__ float x_rows[256][7];
 *     for (int first = blockIdx.x * 256; first < 300; first += gridDim.x * 256) {
 *         #pragma unroll
 *         for (int by = 0; by < 6; by++) {
 *             const int at = by * 256 + threadIdx.x;
 *             const int i0 = first + at / 6;
 *             if (i0 < 300)
 *                 x_rows[at / 6][at % 6] = x[i0 * 6 + at % 6];
 *         }
 *         __syncthreads();
 *         const int i0 = first + threadIdx.x;
 *         if (i0 < 300) {
 *             (the thread's own text, with x_rows[threadIdx.x][i1] for x[i0 * 6 + i1])
 *         }
 *         __syncthreads();
 *     }
 *
 * Rows have an odd length there, so that neighbours are in different banks. An index is divided into what the part's loops make of it, where a row begins, and the rest. What is read in any
 * case says how long rows are; of what is stored each element has to be, in any case, and nothing may read it. */
#include "support/vec.h"
#include "target-cuda/part.h"

#include <string.h>

enum { MOST_ROW = 64 /* elements */, LEAST_ROWS = 16, FEW_BYTES = 1024 /* a sector for each lane */ };

typedef struct Ref { /* to an element of an array */
    KArray   *array;
    const Ix *base;   /* what the part's loops and values before them make of the index */
    const Ix *index;
    bool      stored;
    bool      sure;   /* in any case */
} Ref;

typedef struct Alone {
    Arena          *arena;
    CudaPart       *part;
    VEC(Ref)        refs;
    VEC(AloneRow)   rows;
    VEC(const KStmt *) declared; /* before the part's loops */
    bool            grouped;
} Alone;

/* ---- where a row begins ---- */

static bool is_of_part(const Alone *x, const IxAtom *atom)
{
    for (int32_t j = 0; j < x->part->threads.n_loops; j++)
        if (x->part->threads.loops[j] == atom)
            return true;
    return false;
}

static bool is_before(const Alone *x, const IxAtom *atom)
{
    for (int32_t j = 0; j < x->declared.n; j++)
        if (x->declared.v[j]->temp == atom->owner)
            return !x->declared.v[j]->temp->assigned;
    return false;
}

static bool is_base(const Alone *x, const IxAtom *atom)
{
    switch (atom->kind) {
    case IX_LOOP: return is_of_part(x, atom);
    case IX_VALUE: return is_before(x, atom);
    case IX_DIV: case IX_MOD:
        for (int32_t i = 0; i < atom->arg->n; i++)
            if (!is_base(x, atom->arg->t[i].atom))
                return false;
        return true;
    }
    die("an atom of no kind");
}

/* NULL: neighbours of a warp are not a short row apart, or the rest is no sum of multiples of loops. */
static const Ix *base_of(const Alone *x, const Ix *index)
{
    const IxAtom *last = x->part->threads.loops[x->part->threads.n_loops - 1];
    const int64_t apart = ix_coef(index, last);
    Ix           *base = arena_alloc(x->arena, sizeof *base + (size_t)index->n * sizeof base->t[0]);
    *base = (Ix){ 0 };
    if (apart < 2 || apart > MOST_ROW)
        return NULL;
    for (int32_t i = 0; i < index->n; i++) {
        const IxAtom *atom = index->t[i].atom;
        if ((atom->arg && ix_has(atom->arg, last)) || (!is_base(x, atom) && atom->kind != IX_LOOP))
            return NULL;
        if (is_base(x, atom))
            base->t[base->n++] = index->t[i];
    }
    return base;
}

/* ---- what the part touches ---- */

static void see_block(Alone *x, const KBlock *b, bool sure);

static void see(Alone *x, KArray *array, const Ix *index, bool stored, bool sure)
{
    const Ix *base = array->kind == KARRAY_PARAM || array->kind == KARRAY_TEMP ? base_of(x, index) : NULL;
    vec_push(x->arena, &x->refs, ((Ref){ array, base, index, stored, sure && base }));
}

static void see_expr(Alone *x, const KExpr *v, bool sure)
{
    const bool chooses = v->kind == KX_SELECT || (v->kind == KX_BINARY && (v->op == KOP_LAND || v->op == KOP_LOR));
    if (v->kind == KX_LOAD)
        see(x, v->array, v->index, false, sure);
    for (int32_t j = 0; j < v->n; j++)
        see_expr(x, v->arg[j], sure && (!chooses || j == 0) && !(v->kind == KX_UNARY && v->op == KOP_PLACE));
}

static void see_stmt(Alone *x, const KStmt *s, bool sure)
{
    if (s->value)
        see_expr(x, s->value, sure);
    if (s->kind == KS_STORE) {
        see(x, s->array, s->index, true, sure && !s->atomic);
        x->grouped |= s->group > 0;
    }
    if (s->body)
        see_block(x, s->body, sure && s->kind != KS_IF && s->kind != KS_LOOP && !s->from && !s->end && (s->kind != KS_FOR || s->loop->hi >= s->loop->lo));
    if (s->other)
        see_block(x, s->other, false);
}

static void see_block(Alone *x, const KBlock *b, bool sure)
{
    for (const KStmt *s = b->first; s; s = s->next)
        see_stmt(x, s, sure);
}

/* ---- rows ---- */

static bool is_of_row(const AloneRow *r, const Ref *t)
{
    return t->base && t->array == r->array && t->stored == r->stored && ix_equal(t->base, r->base);
}

/* The index without the base: from *lo to *hi. */
static void rest_range(const Ref *t, int64_t *lo, int64_t *hi)
{
    *lo = *hi = t->index->c;
    for (int32_t i = 0; i < t->index->n; i++) {
        const IxTerm *term = &t->index->t[i];
        if (ix_coef(t->base, term->atom) == 0) {
            *lo += term->k * (term->k > 0 ? term->atom->lo : term->atom->hi);
            *hi += term->k * (term->k > 0 ? term->atom->hi : term->atom->lo);
        }
    }
}

/* Marks the elements of the row that the rest from its i-th term on leads to. */
static void mark(const Ref *t, int32_t i, int64_t at, uint64_t *seen)
{
    while (i < t->index->n && ix_coef(t->base, t->index->t[i].atom) != 0)
        i++;
    if (i == t->index->n) {
        *seen |= UINT64_C(1) << at;
        return;
    }
    const IxTerm *term = &t->index->t[i];
    for (int64_t v = term->atom->lo; v <= term->atom->hi; v++)
        mark(t, i + 1, at + term->k * v, seen);
}

static int64_t apart(const Alone *x, const Ix *base)
{
    return ix_coef(base, x->part->threads.loops[x->part->threads.n_loops - 1]);
}

/* Not what other threads of the part touch, too. */
static bool is_own(const Alone *x, const Ix *base)
{
    bool own = true;
    for (int32_t j = 0; j < x->part->threads.n_loops; j++)
        own &= ix_has(base, x->part->threads.loops[j]);
    return own;
}

/* What is touched in any case of what the reference is of; false: it is no row that is worth it, as a pair, or anything of a small array, that others read, too, from the first cache. */
static bool find_row(const Alone *x, const Ref *first, AloneRow *r)
{
    *r = (AloneRow){ .array = first->array, .base = first->base, .stored = first->stored, .lo = INT64_MAX };
    int64_t  hi = INT64_MIN;
    uint64_t seen = 0;
    for (int32_t j = 0; j < x->refs.n; j++) {
        const Ref *t = &x->refs.v[j];
        int64_t    from, to;
        if (t->array == r->array && (t->stored || r->stored) && !(is_of_row(r, t) && t->sure))
            return false; /* what is read is not written, what is stored is all of such rows */
        if (!is_of_row(r, t) || !t->sure)
            continue;
        rest_range(t, &from, &to);
        r->lo = from < r->lo ? from : r->lo;
        hi = to > hi ? to : hi;
    }
    if (hi - r->lo < 1 || hi - r->lo >= apart(x, r->base))
        return false;
    r->length = (int32_t)(hi - r->lo + 1);
    if (!is_own(x, r->base) && (r->length == 2 || r->array->count * type_bytes(storage_type(r->array->type)) <= FEW_BYTES))
        return false;
    for (int32_t j = 0; j < x->refs.n; j++)
        if (is_of_row(r, &x->refs.v[j]) && x->refs.v[j].sure)
            mark(&x->refs.v[j], 0, x->refs.v[j].index->c - r->lo, &seen);
    const bool whole = __builtin_popcountll(seen) == r->length;
    return whole || (!r->stored && r->array->restricted && 2 * __builtin_popcountll(seen) > apart(x, r->base));
}

static bool is_found(const Alone *x, const Ref *t)
{
    for (int32_t j = 0; j < x->rows.n; j++)
        if (is_of_row(&x->rows.v[j], t))
            return true;
    return false;
}

static int64_t room_of(const AloneRow *r)
{
    return (r->length | 1) * type_bytes(storage_type(r->array->type));
}

/* Rows for so many threads, the longest left out where not all fit. */
static void fit(Alone *x)
{
    while (x->rows.n > 0) {
        int64_t bytes = 0;
        int32_t widest = 0;
        for (int32_t j = 0; j < x->rows.n; j++) {
            bytes += room_of(&x->rows.v[j]);
            widest = room_of(&x->rows.v[j]) > room_of(&x->rows.v[widest]) ? j : widest;
        }
        for (int n = THREADS; n >= THREADS / 4; n /= 2)
            if (bytes * n <= STATIC_SHARED) {
                x->part->alone_threads = n;
                return;
            }
        x->rows.v[widest] = x->rows.v[--x->rows.n];
    }
}

static bool find_rows(Alone *x)
{
    const ThreadPart *t = &x->part->threads;
    if (t->n_loops == 0 || t->count < LEAST_ROWS)
        return false;
    for (const KStmt *s = t->before->first; s; s = s->next)
        if (s->kind == KS_DECLARE)
            vec_push(x->arena, &x->declared, s);
    int32_t n = 0;
    for (const KStmt *s = t->body->first; s; s = s->next, n++)
        see_stmt(x, s, n >= x->part->n_inner || !cuda_is_one_pack(&x->part->inner[n]) || x->part->inner[n].at != s);
    for (int32_t j = 0; j < x->refs.n && !x->grouped; j++) {
        AloneRow r;
        if (x->refs.v[j].sure && !is_found(x, &x->refs.v[j]) && find_row(x, &x->refs.v[j], &r))
            vec_push(x->arena, &x->rows, r);
    }
    fit(x);
    return x->rows.n > 0;
}

/* ---- the body with them ---- */

/* The row in which the element is, and its index there; NULL: none. */
static const AloneRow *row_at(const Alone *x, KArray *array, const Ix *index, bool stored, const Ix **at)
{
    const Ref t = { array, array->kind == KARRAY_PARAM || array->kind == KARRAY_TEMP ? base_of(x, index) : NULL, index, stored, false };
    for (int32_t j = 0; j < x->rows.n; j++) {
        const AloneRow *r = &x->rows.v[j];
        int64_t         lo, hi;
        if (!is_of_row(r, &t))
            continue;
        rest_range(&t, &lo, &hi);
        if (lo < r->lo || hi >= r->lo + r->length)
            return NULL;
        Ix *rest = arena_alloc(x->arena, sizeof *rest + (size_t)index->n * sizeof rest->t[0]);
        *rest = (Ix){ .c = index->c - r->lo };
        for (int32_t i = 0; i < index->n; i++)
            if (ix_coef(t.base, index->t[i].atom) == 0)
                rest->t[rest->n++] = index->t[i];
        *at = rest;
        return r;
    }
    return NULL;
}

static const KExpr *load_from_row(void *cookie, const KExpr *v)
{
    const Alone    *x = cookie;
    const Ix       *at;
    const AloneRow *r = row_at(x, v->array, v->index, false, &at);
    return r ? kx_load(x->arena, r->here, at) : NULL;
}

static void store_to_row(void *cookie, KStmt *s)
{
    const Ix       *at;
    const AloneRow *r = row_at(cookie, s->array, s->index, true, &at);
    if (!r)
        return;
    s->array = r->here;
    s->index = at;
}

/* x_rows, and x_2_rows where x has others. */
static void name_row(const Alone *x, int32_t j)
{
    AloneRow *r = &x->rows.v[j];
    r->name = arena_printf(x->arena, "%s_rows", r->array->name);
    for (int32_t i = 0, n = 2; i < j; i++)
        if (strcmp(x->rows.v[i].name, r->name) == 0) {
            r->name = arena_printf(x->arena, "%s_%d_rows", r->array->name, n++);
            i = -1;
        }
    r->here = arena_copy(x->arena, r->array, sizeof *r->array);
    r->here->kind = KARRAY_LOCAL;
    r->here->name = arena_printf(x->arena, "%s[threadIdx.x]", r->name);
}

/* Statements whose loops are no packs any more. */
static bool has_rows(const Alone *x, const KStmt *s)
{
    Alone one = { .arena = x->arena, .part = x->part, .declared = x->declared };
    see_stmt(&one, s, true);
    for (int32_t j = 0; j < one.refs.n; j++)
        if (is_found(x, &one.refs.v[j]))
            return true;
    return false;
}

bool cuda_can_be_alone(Arena *a, const CudaPart *part)
{
    CudaPart copy = *part;
    Alone    x = { .arena = a, .part = &copy };
    return find_rows(&x);
}

void cuda_choose_alone(Arena *a, CudaPart *part)
{
    Alone   x = { .arena = a, .part = part };
    int32_t n = 0;
    if (!find_rows(&x))
        return;
    for (int32_t j = 0; j < x.rows.n; j++)
        name_row(&x, j);
    for (const KStmt *s = part->threads.body->first; s; s = s->next, n++)
        if (n < part->n_inner && part->inner[n].n > 0 && has_rows(&x, s))
            part->inner[n].n = 0;
    part->threads.body = kernel_rewrite(a, part->threads.body, &(KRewriter){ load_from_row, store_to_row, &x });
    part->n_alone = x.rows.n;
    part->alone = x.rows.v;
}

int64_t cuda_alone_shared(const CudaPart *part)
{
    int64_t bytes = 0;
    for (int32_t j = 0; j < part->n_alone; j++)
        bytes += room_of(&part->alone[j]) * part->alone_threads;
    return bytes;
}

/* ---- text ---- */

static const Ix *place_of(Arena *a, const AloneRow *r)
{
    IxAtom *atom = ARENA_NEW(a, IxAtom);
    Ix     *at = arena_alloc(a, sizeof *at + ((size_t)r->base->n + 1) * sizeof at->t[0]);
    *atom = (IxAtom){ .kind = IX_LOOP, .name = arena_printf(a, "at %% %d", r->length) };
    *at = (Ix){ .c = r->lo, .n = r->base->n + 1 };
    for (int32_t i = 0; i < r->base->n; i++)
        at->t[i] = r->base->t[i];
    at->t[r->base->n] = (IxTerm){ 1, atom };
    return at;
}

/* Rows from memory, or to it. */
static void put_move(Buf *b, const CudaPart *part, const AloneRow *r)
{
    Arena            *a = arena_new();
    const ThreadPart *t = &part->threads;
    const char       *i = cuda_row_number(t);
    const bool        values = strcmp(i, "row") == 0;
    const char       *here = arena_printf(a, "%s[at / %d][at %% %d]", r->name, r->length, r->length);
    buf_printf(b, "        #pragma unroll\n        for (int by = 0; by < %d; by++) {\n            const int at = by * %d + threadIdx.x;\n", r->length, part->alone_threads);
    buf_printf(b, "            const %s %s = first + at / %d;\n            if (%s < %lld)%s\n", part->dialect->index, i, r->length, i, (long long)t->count, values ? " {" : "");
    if (values)
        cuda_loop_values(b, part, i, r->base, 4);
    buf_printf(b, "                %s%s%s[", r->stored ? "" : here, r->stored ? "" : " = ", r->array->name);
    dialect_index(b, part->dialect, place_of(a, r));
    buf_printf(b, "]%s%s;\n%s        }\n", r->stored ? " = " : "", r->stored ? here : "", values ? "            }\n" : "");
    arena_free(a);
}

void cuda_alone_body(Buf *b, const CudaPart *part)
{
    const ThreadPart *t = &part->threads;
    const char       *i = cuda_row_number(t);
    bool              reads = false;
    for (int32_t j = 0; j < part->n_alone; j++) {
        const AloneRow *r = &part->alone[j];
        buf_printf(b, "    __shared__ %s %s[%d][%d];\n", dialect_type(part->dialect, storage_type(r->array->type)), r->name, part->alone_threads, r->length | 1);
        reads |= !r->stored;
    }
    dialect_block(b, part->dialect, t->before, 1);
    cuda_grid_loop(b, part, "first", part->alone_threads, NULL);
    buf_puts(b, " {\n");
    for (int32_t j = 0; j < part->n_alone; j++)
        if (!part->alone[j].stored)
            put_move(b, part, &part->alone[j]);
    buf_puts(b, reads ? "        __syncthreads();\n" : "");
    buf_printf(b, "        const %s %s = first + threadIdx.x;\n        if (%s < %lld) {\n", part->dialect->index, i, i, (long long)t->count);
    if (strcmp(i, "row") == 0)
        cuda_loop_values(b, part, i, NULL, 3);
    cuda_put_inner(b, part, 3);
    buf_puts(b, "        }\n        __syncthreads();\n");
    bool stores = false;
    for (int32_t j = 0; j < part->n_alone; j++)
        if (part->alone[j].stored) {
            put_move(b, part, &part->alone[j]);
            stores = true;
        }
    buf_puts(b, stores && !reads ? "        __syncthreads();\n" : "");
    buf_puts(b, "    }\n");
}
