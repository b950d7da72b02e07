/* Columns that several loops go down, as those of a softmax: a block has 32 that lie beside each other. What a column keeps lies in shared memory with the others' beside it, so that lanes reach different banks:
 *
 *     __shared__ float e_columns[300 * 32];
 *     for (int first = blockIdx.x * 32; first < 4480; first += gridDim.x * 32) {
 *         float *const e = e_columns + lane;
 *         ...
 *         for (int i2 = share; i2 < 300; i2 += 32)
 *             e[i2 * 32] = expf(x[i0 * 21000 + i2 * 70 + i1] - m);
 *         ...
 *
 * Each thread sees its own elements of them. Threads behind the last column have no trips. */
#include "analysis/columns.h"
#include "support/map.h"
#include "target-cuda/part.h"

enum { LONG_COLUMN = 256 /* rows of columns that LONG_ROW_THREADS share */ };

typedef struct Columns {
    Arena *arena;
    IxCtx  cx;
    Map    arrays;  /* of a column */
    bool   by_place; /* one is read in another way than element by element */
} Columns;

static const KExpr *load_beside(void *cookie, const KExpr *x)
{
    Columns *c = cookie;
    return map_has(&c->arrays, x->array) ? kx_load(c->arena, x->array, ix_times(&c->cx, x->index, WARP)) : NULL;
}

static void store_beside(void *cookie, KStmt *s)
{
    Columns *c = cookie;
    if (map_has(&c->arrays, s->array))
        s->index = ix_times(&c->cx, s->index, WARP);
}

static void seek_place(void *cookie, const KExpr *x)
{
    Columns *c = cookie;
    c->by_place |= x->kind == KX_UNARY && x->op == KOP_PLACE && map_has(&c->arrays, x->arg[0]->array);
}

/* The body with elements of a column's arrays WARP apart. */
static bool put_beside(Arena *a, const Kernel *k, CudaPart *part)
{
    Columns c = { .arena = a, .cx = ix_context(a), .arrays = map_new(a) };
    for (int32_t j = 0; j < part->row.n_steps; j++)
        if (part->row.steps[j].stmt->kind == KS_ARRAY)
            map_put(&c.arrays, part->row.steps[j].stmt->array, part);
    kernel_visit(part->threads.body, &(KVisitor){ seek_place, NULL, &c });
    if (c.by_place)
        return false;
    part->threads.body = kernel_rewrite(a, part->threads.body, &(KRewriter){ load_beside, store_beside, &c });
    return kernel_row_part(a, k, &part->threads, &part->row) && part->row.column;
}

/* Bytes of what so many threads have of 32 columns' sums and choices. */
static int64_t parts_bytes(const RowPart *r, int threads)
{
    int64_t bytes = 0;
    for (int32_t j = 0; j < r->n_steps; j++) {
        for (int32_t k = 0; k < r->steps[j].n_combined; k++)
            bytes += threads * type_bytes(r->steps[j].combined[k]->temp->type);
        for (int32_t k = 0; k < r->steps[j].n_chosen; k++)
            bytes += threads * type_bytes(r->steps[j].chosen[k]->type);
    }
    return bytes;
}

void cuda_choose_columns(Arena *a, const Kernel *k, CudaPart *part)
{
    const int64_t bytes = part->row.array_bytes * WARP;
    CudaPart      x = *part;
    if (parts_bytes(&part->row, THREADS) > COLUMN_PARTS || (bytes > STATIC_SHARED - COLUMN_PARTS && bytes + COLUMN_PARTS + SHARED_BESIDE > part->device->shared) ||
        (bytes > 0 && !put_beside(a, k, &x)))
        return;
    *part = x;
    part->share = BY_COLUMN;
}

int cuda_column_threads(const CudaPart *part)
{
    const bool many = part->row.n_loops > 1 && part->row.longest >= LONG_COLUMN && parts_bytes(&part->row, LONG_ROW_THREADS) <= COLUMN_PARTS;
    return many ? LONG_ROW_THREADS : THREADS;
}
