/* Rows whose pieces lie between those of others, as groups of 4 of 32 features: a block has as many neighbours of them as fill a sector, so that lanes of a warp read what lies together.
 *
 *     for (int row = blockIdx.x * 2 + threadIdx.x / 4 % 2; row < 16; row += gridDim.x * 2) {
 *         const int i0 = row / 8, i1 = row % 8;
 *         float acc = 0.0f;
 *         for (int i2 = threadIdx.x / 8; i2 < 1024; i2 += 32)
 *             for (int i3 = threadIdx.x % 4; i3 < 4; i3 += 4)
 *                 acc += x[i0 * 32768 + i2 * 32 + i1 * 4 + i3];
 *         acc = hlo_between_reduce<4, 2>(acc, acc_parts, [](float a, float b) { return a + b; });
 *         if (threadIdx.x < 8 && threadIdx.x % 4 == 0)
 *             rows[i0 * 8 + i1] = acc;
 *     }
 */
#include "support/buf.h"
#include "target-cuda/part.h"

enum { SECTOR = 32 /* bytes */ };

typedef struct Between {
    const IxAtom *row, *inner;
    int64_t       piece; /* elements of a row that lie together */
    int64_t       bytes; /* of the widest element that is read along them */
    bool          bad;   /* something lies otherwise */
} Between;

static void note_load(void *cookie, const KExpr *x)
{
    Between *w = cookie;
    if (x->kind != KX_LOAD || !ix_has(x->index, w->inner))
        return;
    const int64_t bytes = type_bytes(storage_type(x->array->type));
    w->bad |= x->array->kind == KARRAY_LOCAL || ix_coef(x->index, w->inner) != 1 || ix_coef(x->index, w->row) != w->piece;
    w->bytes = bytes > w->bytes ? bytes : w->bytes;
}

/* The only loop is a sum that threads share in two dimensions; NULL: something else. */
static const RowStep *shared_in_two(const CudaPart *part)
{
    const RowStep *loop = NULL;
    for (int32_t j = 0; j < part->row.n_steps; j++)
        if (part->row.steps[j].kind == ROW_LOOP)
            loop = &part->row.steps[j];
    return part->share == BY_BLOCK && part->stage == 0 && part->width <= 1 && part->row.n_loops == 1 && part->row.array_bytes == 0 && part->n_gathered == 0 && part->threads.n_loops > 0 &&
                   loop->n_combined > 0 && !loop->scan && loop->beside
               ? loop
               : NULL;
}

void cuda_choose_between(CudaPart *part)
{
    const RowStep *loop = shared_in_two(part);
    part->between = 1;
    if (!loop)
        return;
    const IxAtom *row = part->threads.loops[part->threads.n_loops - 1], *inner = loop->beside->loop;
    Between       w = { .row = row, .inner = inner, .piece = inner->hi - inner->lo + 1 };
    kernel_visit_stmt(loop->stmt, &(KVisitor){ note_load, NULL, &w });
    if (w.bad || w.bytes == 0 || cuda_threads_beside(part, loop) != w.piece || SECTOR % (w.piece * w.bytes) != 0)
        return;
    const int64_t rows = SECTOR / (w.piece * w.bytes);
    part->between = (row->hi - row->lo + 1) % rows == 0 ? (int)rows : 1;
    part->piece = w.piece;
}

void cuda_between_services(Buf *b)
{
    buf_puts(b, "\n/* The values of a block's threads as one for each of so many rows, of which `piece` neighbours have one by turns; parts: shared, one for each row of each warp. */\n"
                "template <int piece, int rows, int warps, typename T, typename Combine> static __device__ inline T hlo_between_reduce(T v, T (&parts)[warps][rows], Combine combine)\n"
                "{\n"
                "    const int row = threadIdx.x / piece % rows;\n"
                "    for (int by = 16; by > 0; by /= 2)\n"
                "        if (by < piece || by >= piece * rows)\n"
                "            v = (T)combine(v, (T)__shfl_xor_sync(0xffffffffu, v, by));\n"
                "    __syncthreads(); // parts may still be read, of the rows before\n"
                "    if (threadIdx.x % 32 < piece * rows && threadIdx.x % piece == 0)\n"
                "        parts[threadIdx.x / 32][row] = v;\n"
                "    __syncthreads();\n"
                "    v = parts[0][row];\n"
                "    for (int w = 1; w < warps; w++)\n"
                "        v = (T)combine(v, parts[w][row]);\n"
                "    return v;\n"
                "}\n");
}
