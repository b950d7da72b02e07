/* Rows that data says where to read in. Lanes would each ask for another sector; so what works on a row brings all that may be asked for first, as neighbours:
 *
 *     __shared__ float x_rows[8][500];
 *     for (int i0 = blockIdx.x * 8 + threadIdx.x / 32; i0 < 64; i0 += gridDim.x * 8) {
 *         float *const x_row = x_rows[threadIdx.x / 32];
 *         __syncwarp(); // x_row may still be read, of the row before
 *         for (int at = lane; at < 500; at += 32)
 *             x_row[at] = x[i0 * 500 + at];
 *         __syncwarp();
 *         (the row's own text, with x_row[k_start1] for x[i0 * 500 + k_start1])
 *     }
 *
 * An index is divided into what the part's loops make of it, where the row begins, and the rest, in which values say where in it, as two of a pixel. It is done where as many elements are asked for as a row has sectors, and
 * nothing stores to the array. Elements that a thread would do each are rows of their last loop then. */
#include "support/buf.h"
#include "support/vec.h"
#include "target-cuda/part.h"

#include <string.h>

enum { SECTOR = 32, LEAST_ROW = 2 * SECTOR /* bytes */, LEAST_ROWS_EACH = 2 /* for each multiprocessor, of elements */ };

typedef struct Gathered {
    Arena          *arena;
    CudaPart       *part;
    VEC(GatheredRow) rows;
    VEC(const KTemp *) within; /* declared within loops */
    int64_t         trips; /* of the loops around what is at hand */
    int             depth; /* how many these are */
    bool            bad;   /* stores that go with others' */
} Gathered;

/* ---- where a row begins ---- */

static bool is_of_part(const ThreadPart *t, const IxAtom *atom)
{
    if (atom->kind == IX_LOOP)
        for (int32_t j = 0; j < t->n_loops; j++)
            if (t->loops[j] == atom)
                return true;
    if (atom->kind != IX_DIV && atom->kind != IX_MOD)
        return false;
    for (int32_t i = 0; i < atom->arg->n; i++)
        if (!is_of_part(t, atom->arg->t[i].atom))
            return false;
    return true;
}

/* A value that is another one for each trip of a loop. */
static bool is_within_loop(const Gathered *x, const IxAtom *atom)
{
    for (int32_t j = 0; j < x->within.n && atom->kind == IX_VALUE; j++)
        if (x->within.v[j] == atom->owner)
            return true;
    return false;
}

/* What is left of the index without what the part's loops make of it: from *lo to *hi. False: no such value is in it, or it is no sum of multiples. */
static bool is_gathered(const Gathered *x, const Ix *index, int64_t *lo, int64_t *hi)
{
    bool any = false;
    *lo = *hi = 0;
    for (int32_t i = 0; i < index->n; i++) {
        const IxTerm *term = &index->t[i];
        if (is_of_part(&x->part->threads, term->atom))
            continue;
        if (term->atom->kind != IX_VALUE && term->atom->kind != IX_LOOP)
            return false;
        any |= is_within_loop(x, term->atom);
        *lo += term->k * (term->k > 0 ? term->atom->lo : term->atom->hi);
        *hi += term->k * (term->k > 0 ? term->atom->hi : term->atom->lo);
    }
    return any;
}

/* The index's terms of the part's loops, or the others, and c. */
static const Ix *terms_of(const Gathered *x, const Ix *index, bool of_part, int64_t c)
{
    Ix *some = arena_alloc(x->arena, sizeof *some + (size_t)index->n * sizeof some->t[0]);
    *some = (Ix){ .c = c };
    for (int32_t i = 0; i < index->n; i++)
        if (is_of_part(&x->part->threads, index->t[i].atom) == of_part)
            some->t[some->n++] = index->t[i];
    return some;
}

static bool is_within(const KArray *array, const Ix *index)
{
    int64_t lo, hi;
    ix_range(index, &lo, &hi);
    return lo >= 0 && hi < array->count;
}

/* The row that the element is in, whose index there is *at; NULL: none. */
static const GatheredRow *row_at(const Gathered *x, const KArray *array, const Ix *index, const Ix **at)
{
    int64_t lo, hi;
    if (array->kind != KARRAY_PARAM || !is_gathered(x, index, &lo, &hi))
        return NULL;
    const Ix *base = terms_of(x, index, true, index->c + lo);
    for (int32_t j = 0; j < x->rows.n; j++) {
        const GatheredRow *r = &x->rows.v[j];
        if (r->array != array || r->length != hi - lo + 1 || !ix_equal(r->base, base))
            continue;
        *at = terms_of(x, index, false, -lo);
        return r;
    }
    return NULL;
}

/* ---- what the part reads ---- */

static void see_load(Gathered *x, KArray *array, const Ix *index)
{
    const Ix *at;
    int64_t   lo, hi;
    if (array->kind != KARRAY_PARAM || !array->restricted || array->written || row_at(x, array, index, &at) || !is_gathered(x, index, &lo, &hi) || !is_within(array, index))
        return;
    const int64_t length = hi - lo + 1, size = type_bytes(storage_type(array->type));
    if (length * size < LEAST_ROW || length * size > STATIC_SHARED || x->trips < (length * size + SECTOR - 1) / SECTOR)
        return;
    vec_push(x->arena, &x->rows, ((GatheredRow){ .array = array, .base = terms_of(x, index, true, index->c + lo), .length = length }));
}

static void see_expr(Gathered *x, const KExpr *v)
{
    if (v->kind == KX_UNARY && v->op == KOP_PLACE)
        return;
    if (v->kind == KX_LOAD)
        see_load(x, v->array, v->index);
    for (int32_t j = 0; j < v->n; j++)
        see_expr(x, v->arg[j]);
}

static void see_block(Gathered *x, const KBlock *b)
{
    for (const KStmt *s = b->first; s; s = s->next) {
        const int64_t trips = x->trips;
        if (s->value)
            see_expr(x, s->value);
        if (s->kind == KS_DECLARE && x->depth > 0)
            vec_push(x->arena, &x->within, s->temp);
        x->bad |= s->kind == KS_STORE && (s->atomic || s->group > 0);
        if (s->kind == KS_FOR && !s->from && !s->end)
            x->trips *= s->loop->hi - s->loop->lo + 1;
        x->depth += s->kind == KS_FOR || s->kind == KS_LOOP;
        if (s->body)
            see_block(x, s->body);
        if (s->other)
            see_block(x, s->other);
        x->depth -= s->kind == KS_FOR || s->kind == KS_LOOP;
        x->trips = trips;
    }
}

/* ---- the body with them ---- */

static const KExpr *load_from_row(void *cookie, const KExpr *v)
{
    const Gathered    *x = cookie;
    const Ix          *at;
    const GatheredRow *r = row_at(x, v->array, v->index, &at);
    return r ? kx_load(x->arena, r->here, at) : NULL;
}

/* x_row, and x_2_row where x has another. */
static void name_row(const Gathered *x, int32_t j)
{
    GatheredRow *r = &x->rows.v[j];
    r->here = arena_copy(x->arena, r->array, sizeof *r->array);
    r->here->kind = KARRAY_LOCAL;
    r->here->count = r->length;
    r->here->name = arena_printf(x->arena, "%s_row", r->array->name);
    for (int32_t i = 0, n = 2; i < j; i++)
        if (strcmp(x->rows.v[i].here->name, r->here->name) == 0) {
            r->here->name = arena_printf(x->arena, "%s_%d_row", r->array->name, n++);
            i = -1;
        }
}

static bool find_rows(Arena *a, CudaPart *part)
{
    Gathered x = { .arena = a, .part = part, .trips = 1 };
    see_block(&x, part->threads.body);
    if (x.rows.n == 0 || x.bad)
        return false;
    for (int32_t j = 0; j < x.rows.n; j++)
        name_row(&x, j);
    part->threads.body = kernel_rewrite(a, part->threads.body, &(KRewriter){ load_from_row, NULL, &x });
    part->n_gathered = x.rows.n;
    part->gathered = x.rows.v;
    return true;
}

/* The part's elements as rows of its last loop. */
static bool make_rows(Arena *a, CudaPart *part)
{
    ThreadPart   *t = &part->threads;
    const IxAtom *last = t->n_loops > 1 ? t->loops[t->n_loops - 1] : NULL;
    KBlock       *body = ARENA_NEW(a, KBlock);
    if (!last || (double)(t->count / (last->hi - last->lo + 1)) < part->device->units * LEAST_ROWS_EACH)
        return false;
    kblock_append_copy(a, body, &(KStmt){ .kind = KS_FOR, .loop = last, .body = (KBlock *)(uintptr_t)t->body });
    t->body = body;
    t->n_loops--;
    t->count /= last->hi - last->lo + 1;
    return true;
}

bool cuda_find_gathered(Arena *a, const Kernel *k, CudaPart *part)
{
    CudaPart rows = *part;
    if (find_rows(a, &rows) && kernel_row_part(a, k, &rows.threads, &rows.row)) {
        *part = rows;
        return true;
    }
    rows = *part;
    if (!make_rows(a, &rows) || !find_rows(a, &rows) || !kernel_row_part(a, k, &rows.threads, &rows.row))
        return false;
    *part = rows;
    return true;
}

int64_t cuda_gathered_shared(const CudaPart *part)
{
    int64_t bytes = 0;
    for (int32_t j = 0; j < part->n_gathered; j++)
        bytes += part->gathered[j].length * type_bytes(storage_type(part->gathered[j].array->type));
    return bytes;
}

/* ---- text ---- */

void cuda_put_gathered_arrays(Buf *b, const CudaPart *part)
{
    for (int32_t j = 0; j < part->n_gathered; j++) {
        const GatheredRow *r = &part->gathered[j];
        buf_printf(b, "    __shared__ %s %s", dialect_type(part->dialect, storage_type(r->array->type)), r->here->name);
        if (part->share == BY_WARP)
            buf_printf(b, "s[%d]", THREADS / part->lanes);
        buf_printf(b, "[%lld];\n", (long long)r->length);
    }
}

static const Ix *place_of(Arena *a, const GatheredRow *r)
{
    IxAtom *atom = ARENA_NEW(a, IxAtom);
    Ix     *at = arena_alloc(a, sizeof *at + ((size_t)r->base->n + 1) * sizeof at->t[0]);
    *atom = (IxAtom){ .kind = IX_LOOP, .name = "at" };
    *at = (Ix){ .c = r->base->c, .n = r->base->n + 1 };
    for (int32_t i = 0; i < r->base->n; i++)
        at->t[i] = r->base->t[i];
    at->t[r->base->n] = (IxTerm){ 1, atom };
    return at;
}

void cuda_put_gathered(Buf *b, const CudaPart *part, const char *sync, int depth)
{
    Arena    *a = arena_new();
    const int in = 4 * depth, threads = part->share == BY_WARP ? part->lanes : cuda_part_threads(part);
    for (int32_t j = 0; j < part->n_gathered && part->share == BY_WARP; j++) {
        const GatheredRow *r = &part->gathered[j];
        buf_printf(b, "%*s%s *const %s = %ss[threadIdx.x / %d];\n", in, "", dialect_type(part->dialect, storage_type(r->array->type)), r->here->name, r->here->name, part->lanes);
    }
    buf_printf(b, "%*s%s; // %s may still be read, of the row before\n", in, "", sync, part->gathered[0].here->name);
    for (int32_t j = 0; j < part->n_gathered; j++) {
        const GatheredRow *r = &part->gathered[j];
        buf_printf(b, "%*sfor (int at = %s; at < %lld; at += %d)\n%*s%s[at] = %s[", in, "", cuda_dealt_to(part), (long long)r->length, threads, in + 4, "", r->here->name, r->array->name);
        dialect_index(b, part->dialect, place_of(a, r));
        buf_puts(b, "];\n");
    }
    buf_printf(b, "%*s%s;\n", in, "", sync);
    arena_free(a);
}
