/* Transposes (emit/turn.h): a block reads a tile of 32 by 32 along what is read and writes it along what is written, through shared memory whose rows are
 * 33 long, so that both ways touch all banks:
 *
 *     __shared__ float turn_tile[32][33];
 *     for (int tile = blockIdx.x; tile < 480; tile += gridDim.x) {
 *         const int i0 = tile / 12, from_in = tile / 3 % 4 * 32, from_out = tile % 3 * 32;
 *         for (int at = threadIdx.x / 32; at < 32; at += 8) {
 *             const int i2 = from_in + threadIdx.x % 32, i1 = from_out + at;
 *             if (i2 < 100 && i1 < 90)
 *                 turn_tile[at][threadIdx.x % 32] = x[i0 * 9000 + i1 * 100 + i2];
 *         }
 *         __syncthreads();
 *         (the same the other way round, which computes and stores)
 *         __syncthreads();
 *     }
 */
#include "support/buf.h"
#include "target-cuda/part.h"

enum { SIDE = 32 };

static int64_t tiles_along(const IxAtom *loop)
{
    return (loop->hi - loop->lo + SIDE) / SIDE;
}

static int64_t tiles_of(const CudaPart *part)
{
    int64_t n = tiles_along(part->turn.in) * tiles_along(part->turn.out);
    for (int32_t j = 0; j < part->threads.n_loops; j++) {
        const IxAtom *loop = part->threads.loops[j];
        if (loop != part->turn.in && loop != part->turn.out)
            n *= loop->hi - loop->lo + 1;
    }
    return n;
}

bool cuda_choose_turn(Arena *a, const Kernel *k, CudaPart *part)
{
    return kernel_turn_part(a, k, &part->threads, &part->turn) && tiles_of(part) < INT32_MAX / SIDE;
}

int64_t cuda_turn_blocks(const CudaPart *part)
{
    int64_t n = tiles_of(part);
    return n < cuda_most_blocks(part) ? n : cuda_most_blocks(part);
}

/* The other loops' values, and where the tile begins. */
static void put_tile(Buf *b, const CudaPart *part)
{
    int64_t in = tiles_along(part->turn.in), out = tiles_along(part->turn.out), inner = tiles_of(part);
    bool    first = true;
    buf_printf(b, "        const %s ", part->dialect->index);
    for (int32_t j = 0; j < part->threads.n_loops; j++) {
        const IxAtom *loop = part->threads.loops[j];
        int64_t       n = loop->hi - loop->lo + 1;
        if (loop == part->turn.in || loop == part->turn.out)
            continue;
        inner /= n;
        buf_printf(b, "%s = tile / %lld", loop->name, (long long)inner);
        if (!first)
            buf_printf(b, " %% %lld", (long long)n);
        if (loop->lo != 0)
            buf_printf(b, " + %lld", (long long)loop->lo);
        buf_puts(b, ", ");
        first = false;
    }
    buf_printf(b, "from_in = tile / %lld", (long long)out);
    if (!first)
        buf_printf(b, " %% %lld", (long long)in);
    buf_printf(b, " * %d", SIDE);
    if (part->turn.in->lo != 0)
        buf_printf(b, " + %lld", (long long)part->turn.in->lo);
    buf_printf(b, ", from_out = tile %% %lld * %d", (long long)out, SIDE);
    if (part->turn.out->lo != 0)
        buf_printf(b, " + %lld", (long long)part->turn.out->lo);
    buf_puts(b, ";\n");
}

/* The loop over a warp's rows of the tile. Its lanes are neighbours in what is read, or in what is written. */
static void put_way(Buf *b, const CudaPart *part, bool reads)
{
    const IxAtom *lanes = reads ? part->turn.in : part->turn.out, *steps = reads ? part->turn.out : part->turn.in;
    buf_printf(b, "        #pragma unroll\n        for (int at = threadIdx.x / %d; at < %d; at += %d) {\n", WARP, SIDE, THREADS / WARP);
    buf_printf(b, "            const %s %s = from_%s + threadIdx.x %% %d, %s = from_%s + at;\n", part->dialect->index, lanes->name, reads ? "in" : "out", WARP, steps->name,
               reads ? "out" : "in");
    buf_printf(b, "            if (%s < %lld && %s < %lld)", lanes->name, (long long)lanes->hi + 1, steps->name, (long long)steps->hi + 1);
}

void cuda_turn_body(Buf *b, const CudaPart *part)
{
    const TurnPart *t = &part->turn;
    const char     *type = dialect_type(part->dialect, t->load->type);
    buf_printf(b, "    __shared__ %s turn_tile[%d][%d];\n", type, SIDE, SIDE + 1);
    dialect_block(b, part->dialect, part->threads.before, 1);
    buf_printf(b, "    for (%s tile = blockIdx.x; tile < %lld; tile += gridDim.x) {\n", part->dialect->index, (long long)tiles_of(part));
    put_tile(b, part);
    put_way(b, part, true);
    buf_printf(b, "\n                turn_tile[at][threadIdx.x %% %d] = ", WARP);
    dialect_expr(b, part->dialect, t->load);
    buf_puts(b, ";\n        }\n        __syncthreads();\n");
    put_way(b, part, false);
    buf_printf(b, " {\n                %s %s = turn_tile[threadIdx.x %% %d][at];\n", type, t->value->name, WARP);
    dialect_block(b, part->dialect, t->body, 4);
    buf_puts(b, "            }\n        }\n        __syncthreads();\n    }\n");
}
