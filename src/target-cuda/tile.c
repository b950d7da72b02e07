/* Products of matrices (emit/tiles.h): a block computes a tile of sums, 16 by 16 threads so many rows and columns of it each. Both factors come through shared
 * memory, 16 steps of k at a time, with k outside, so that threads read neighbours. The sums go through it, too, 16 rows at a time, of which a warp has two for itself:
 *
 *     __shared__ __align__(16) float lhs_tile[16][68], rhs_tile[16][68];
 *     for (int tile = blockIdx.x; tile < 24; tile += gridDim.x) {
 *         const int from_m = tile / 2 * 64, from_n = tile % 2 * 64;
 *         float tile_sums[4][4] = {};
 *         for (int from_k = 0; from_k < 130; from_k += 16) {
 *             (loads; what is outside is 0)
 *             __syncthreads();
 *             hlo_multiply_tiles(tile_sums, lhs_tile, rhs_tile);
 *             __syncthreads();
 *         }
 *         for (int tile_r = 0; tile_r < 4; tile_r++) {
 *             (the thread's sums of that row to tile_rows)
 *             __syncwarp();
 *             for (int at_tile = threadIdx.x % 32; at_tile < 128; at_tile += 32)
 *                 (the epilogue of each sum of the warp's rows)
 *         }
 *     }
 *
 * Each sum goes down k from first to last; one of 1024 terms or more is made of sums of 128. So it depends on sizes alone. */
#include "support/buf.h"
#include "target-cuda/part.h"

enum { DEPTH = 16, SIDE = TILE_SIDE, PAD = 4, LEAST_SIDE = 16, LEAST_DEPTH = 8, LONG_SUM = 1024 };

static int64_t tiles_along(int64_t n, int width)
{
    return (n + width - 1) / width;
}

static int64_t tiles_of(const TilePart *t, int each)
{
    return t->batch.count * tiles_along(t->rows.count, SIDE * each) * tiles_along(t->cols.count, SIDE * each);
}

/* Sums of a thread along one side: as many as leave tiles for most of a device, and are not mostly outside. */
static int sums_each(const TilePart *t, double units)
{
    double  most = 0.75 * units;
    int64_t least = t->rows.count < t->cols.count ? t->rows.count : t->cols.count;
    if (type_bytes(t->acc->type) <= 4 && least > 64 && tiles_of(t, 8) >= most)
        return 8;
    return least > 32 && tiles_of(t, 4) >= most ? 4 : 2;
}

bool cuda_choose_tiles(Arena *a, CudaPart *part)
{
    TilePart *t = &part->tile;
    if (!kernel_tile_part(a, &part->threads, t) || type_is_complex(t->acc->type))
        return false;
    part->each = sums_each(t, part->device->units);
    return t->rows.count >= LEAST_SIDE && t->cols.count >= LEAST_SIDE && t->k.count >= LEAST_DEPTH && t->k.count < INT32_MAX / 2 && tiles_of(t, 1) <= INT32_MAX / 2;
}

int64_t cuda_tile_blocks(const CudaPart *part)
{
    int64_t n = tiles_of(&part->tile, part->each);
    return n < cuda_most_blocks(part) ? n : cuda_most_blocks(part);
}

void cuda_tile_services(Buf *b)
{
    buf_puts(b, "\n/* sums[r][c] += the products of row y * R + r of lhs and column x * R + c of rhs, thread (x, y) of 16 by 16. */\n"
                "template <int R, typename T, int depth, int width, typename Add>\n"
                "static __device__ inline void hlo_multiply_tiles(T (&sums)[R][R], const T (&lhs)[depth][width], const T (&rhs)[depth][width], Add add)\n"
                "{\n"
                "    const int x = threadIdx.x % 16, y = threadIdx.x / 16;\n"
                "    #pragma unroll\n"
                "    for (int k = 0; k < depth; k++) {\n"
                "        T p[R], q[R];\n"
                "        #pragma unroll\n"
                "        for (int r = 0; r < R; r++) {\n"
                "            p[r] = lhs[k][y * R + r];\n"
                "            q[r] = rhs[k][x * R + r];\n"
                "        }\n"
                "        #pragma unroll\n"
                "        for (int r = 0; r < R; r++)\n"
                "            #pragma unroll\n"
                "            for (int c = 0; c < R; c++)\n"
                "                sums[r][c] = add(sums[r][c], p[r], q[c]);\n"
                "    }\n"
                "}\n");
}

bool cuda_tile_in_pieces(const CudaPart *part)
{
    return type_is_float(part->tile.acc->type) && part->tile.k.count >= LONG_SUM;
}

/* Steps of k at a time: all of one that is shorter, so that its rows are read as one, and whole short rows. */
static int depth_of(const CudaPart *part)
{
    const TilePart *t = &part->tile;
    const TileSide *side = t->lhs.along && t->lhs.row > 0 ? &t->lhs : &t->rhs;
    if (t->k.count < DEPTH)
        return (int)t->k.count;
    return side->along && side->row > 0 && side->row < DEPTH && !cuda_tile_in_pieces(part) ? DEPTH / side->row * side->row : DEPTH;
}

/* ---- the body ---- */

void cuda_tile_loop_values(Buf *b, const CudaPart *part, const TileLoops *loops, const char *number, int depth)
{
    int64_t inner = loops->count;
    if (loops->n == 0)
        return;
    buf_printf(b, "%*sconst %s ", 4 * depth, "", part->dialect->index);
    for (int32_t j = 0; j < loops->n; j++) {
        int64_t n = loops->v[j]->hi - loops->v[j]->lo + 1;
        inner /= n;
        buf_printf(b, "%s%s = %s", j ? ", " : "", loops->v[j]->name, number);
        if (inner > 1)
            buf_printf(b, " / %lld", (long long)inner);
        if (j > 0)
            buf_printf(b, " %% %lld", (long long)n);
        if (loops->v[j]->lo != 0)
            buf_printf(b, " + %lld", (long long)loops->v[j]->lo);
    }
    buf_puts(b, ";\n");
}

typedef struct SideText {
    char    free;  /* 'm' or 'n' */
    int64_t count; /* of the loops along it */
    int     width, deep;
    bool    as_read;
} SideText;

/* Short rows (TileSide.row) of one loop follow each other in the other: at_tile goes through a row, then from row to row. The tile begins and ends within rows where their
 * length does not divide its own. */
static int wide_of(const TileSide *side, const SideText *x)
{
    return side->along ? x->deep : x->width;
}

static bool is_one_row(const TileSide *side, const SideText *x)
{
    return !side->along && x->count == side->row && x->count <= x->width;
}

static bool cuts_rows(const TileSide *side, const SideText *x)
{
    return wide_of(side, x) % side->row != 0 && !is_one_row(side, x);
}

static int64_t rows_of(const TileSide *side, const SideText *x)
{
    const int wide = wide_of(side, x);
    return is_one_row(side, x) ? 1 : cuts_rows(side, x) ? (wide + side->row - 2) / side->row + 1 : wide / side->row;
}

static void put_rows_head(Buf *b, const TileSide *side, const SideText *x, const char *type)
{
    const int  other = side->along ? x->width : x->deep, row = side->row;
    const char in = side->along ? 'k' : x->free, out = side->along ? x->free : 'k';
    buf_printf(b, "            for (int at_tile = threadIdx.x; at_tile < %lld; at_tile += %d) {\n                const %s at_%c = ", (long long)rows_of(side, x) * other * row, THREADS, type, in);
    if (is_one_row(side, x)) {
        buf_printf(b, "at_tile %% %d, at_k = from_k + at_tile / %d;\n", row, row);
        return;
    }
    buf_printf(b, "from_%c", in);
    if (cuts_rows(side, x))
        buf_printf(b, " / %d * %d", row, row);
    buf_printf(b, " + at_tile / %d * %d + at_tile %% %d, at_%c = from_%c + at_tile / %d %% %d;\n", other * row, row, row, out, out, row, other);
}

static void put_rows_store(Buf *b, const TileSide *side, const SideText *x, const char *name)
{
    const char  in = side->along ? 'k' : x->free;
    const char *from = is_one_row(side, x) ? "" : x->free == 'm' ? " - from_m" : " - from_n";
    buf_printf(b, "                ");
    if (cuts_rows(side, x))
        buf_printf(b, "if (at_%c >= from_%c && at_%c < from_%c + %d)\n                    ", in, in, in, in, wide_of(side, x));
    if (side->along && x->as_read)
        buf_printf(b, "%s_tile[at_%c%s][at_k - from_k] = %s;\n", name, x->free, from, side->value->name);
    else
        buf_printf(b, "%s_tile[at_k - from_k][at_%c%s] = %s;\n", name, x->free, from, side->value->name);
}

static void put_side_head(Buf *b, const TileSide *side, const SideText *x, const char *type)
{
    const int inner = wide_of(side, x);
    buf_printf(b, "            for (int at_tile = threadIdx.x; at_tile < %d; at_tile += %d) {\n", x->width * x->deep, THREADS);
    if (side->along)
        buf_printf(b, "                const %s at_k = from_k + at_tile %% %d, at_%c = from_%c + at_tile / %d;\n", type, inner, x->free, x->free, inner);
    else
        buf_printf(b, "                const %s at_k = from_k + at_tile / %d, at_%c = from_%c + at_tile %% %d;\n", type, inner, x->free, x->free, inner);
}

static void put_side_store(Buf *b, const TileSide *side, const SideText *x, const char *name)
{
    const int inner = wide_of(side, x);
    if (side->along && !x->as_read)
        buf_printf(b, "                %s_tile[at_tile %% %d][at_tile / %d] = %s;\n", name, inner, inner, side->value->name);
    else
        buf_printf(b, "                %s_tile[at_tile / %d][at_tile %% %d] = %s;\n", name, inner, inner, side->value->name);
}

/* All of a short row is a step's anyway where k is no longer. */
static bool goes_by_rows(const CudaPart *part, const TileSide *side, int deep)
{
    return side->row > 0 && !(side->along && side->row == deep && part->tile.k.count == deep);
}

void cuda_tile_side(Buf *b, const CudaPart *part, const TileSide *side, const char *name, int deep, bool as_read)
{
    const TilePart  *t = &part->tile;
    const bool       is_lhs = name[0] == 'l', rows = goes_by_rows(part, side, deep);
    const TileLoops *loops = is_lhs ? &t->rows : &t->cols;
    const int        width = SIDE * part->each;
    const SideText   x = { is_lhs ? 'm' : 'n', loops->count, width, deep, as_read };
    (rows ? put_rows_head : put_side_head)(b, side, &x, part->dialect->index);
    buf_printf(b, "                %s %s = 0;\n", dialect_type(part->dialect, side->value->type), side->value->name);
    buf_printf(b, "                if (at_k < %lld && at_%c < %lld) {\n", (long long)t->k.count, x.free, (long long)loops->count);
    cuda_tile_loop_values(b, part, loops, is_lhs ? "at_m" : "at_n", 5);
    cuda_tile_loop_values(b, part, &t->k, "at_k", 5);
    dialect_block(b, part->dialect, side->body, 5);
    buf_puts(b, "                }\n");
    (rows ? put_rows_store : put_side_store)(b, side, &x, name);
    buf_puts(b, "            }\n");
}

/* "[](float s, float x, float y) { return s + x * y; }" */
static void put_add(Buf *b, const KExpr *step, const char *type)
{
    const KExpr *product = step->arg[1];
    buf_printf(b, "[](%s s, %s x, %s y) { return ", type, type, type);
    if (step->kind == KX_CALL)
        buf_printf(b, "%s(s, ", step->fn);
    else
        buf_puts(b, "s + ");
    if (product->kind == KX_CALL)
        buf_printf(b, "%s(x, y)", product->fn);
    else
        buf_puts(b, "x * y");
    buf_puts(b, step->kind == KX_CALL ? "); }" : "; }");
}

/* Adds what was summed last to the sums of all pieces. */
static void put_piece_end(Buf *b, const CudaPart *part)
{
    int each = part->each;
    buf_printf(b, "            if (from_k %% %d == %d || from_k + %d >= %lld)\n"
                  "                for (int tile_r = 0; tile_r < %d; tile_r++)\n"
                  "                    for (int tile_c = 0; tile_c < %d; tile_c++) {\n"
                  "                        tile_sums[tile_r][tile_c] += piece_sums[tile_r][tile_c];\n"
                  "                        piece_sums[tile_r][tile_c] = 0;\n"
                  "                    }\n",
               TILE_PIECE, TILE_PIECE - DEPTH, DEPTH, (long long)part->tile.k.count, each, each);
}

/* A row of each thread's sums at a time: a warp's lanes are neighbours along the rows that its threads have. */
static void put_epilogue(Buf *b, const CudaPart *part, const char *type)
{
    const TilePart *t = &part->tile;
    const int       each = part->each, width = SIDE * each;
    buf_printf(b, "        #pragma unroll\n"
                  "        for (int tile_r = 0; tile_r < %d; tile_r++) {\n"
                  "            __syncwarp(); // tile_rows may still be read, of the rows before\n"
                  "            #pragma unroll\n"
                  "            for (int tile_c = 0; tile_c < %d; tile_c++)\n"
                  "                tile_rows[threadIdx.x / 16][threadIdx.x %% 16 * %d + tile_c] = tile_sums[tile_r][tile_c];\n"
                  "            __syncwarp();\n"
                  "            for (int at_tile = threadIdx.x %% 32; at_tile < %d; at_tile += 32) {\n"
                  "                const int at_row = threadIdx.x / 32 * 2 + at_tile / %d;\n"
                  "                const %s at_m = from_m + at_row * %d + tile_r, at_n = from_n + at_tile %% %d;\n"
                  "                if (at_m < %lld && at_n < %lld) {\n",
               each, each, each, 2 * width, width, part->dialect->index, each, width, (long long)t->rows.count, (long long)t->cols.count);
    cuda_tile_loop_values(b, part, &t->rows, "at_m", 5);
    cuda_tile_loop_values(b, part, &t->cols, "at_n", 5);
    buf_printf(b, "%*s%s %s = tile_rows[at_row][at_tile %% %d];\n", 20, "", type, t->acc->name, width);
    dialect_block(b, part->dialect, t->epilogue, 5);
    buf_puts(b, "                }\n            }\n        }\n");
}

static void put_place(Buf *b, const CudaPart *part)
{
    const TilePart *t = &part->tile;
    int             width = SIDE * part->each;
    int64_t         down = tiles_along(t->rows.count, width), across = tiles_along(t->cols.count, width);
    if (t->batch.n > 0) {
        buf_printf(b, "        const %s at_batch = tile / %lld;\n", part->dialect->index, (long long)(down * across));
        cuda_tile_loop_values(b, part, &t->batch, "at_batch", 2);
    }
    buf_printf(b, "        const %s from_m = tile / %lld", part->dialect->index, (long long)across);
    if (t->batch.n > 0)
        buf_printf(b, " %% %lld", (long long)down);
    buf_printf(b, " * %d, from_n = tile %% %lld * %d;\n", width, (long long)across, width);
}

void cuda_tile_loop(Buf *b, const CudaPart *part)
{
    const char *i = part->dialect->index;
    buf_printf(b, "    for (%s tile = blockIdx.x; tile < %lld; tile += gridDim.x) {\n", i, (long long)tiles_of(&part->tile, part->each));
    put_place(b, part);
}

static void put_plain_body(Buf *b, const CudaPart *part)
{
    const TilePart *t = &part->tile;
    int             each = part->each, width = SIDE * each, deep = depth_of(part);
    const char     *type = dialect_type(part->dialect, t->acc->type), *i = part->dialect->index;
    bool            pieces = cuda_tile_in_pieces(part);
    buf_printf(b, "    __shared__ __align__(16) %s lhs_tile[%d][%d];\n", type, deep, width + PAD);
    buf_printf(b, "    __shared__ __align__(16) %s rhs_tile[%d][%d];\n", type, deep, width + PAD);
    buf_printf(b, "    __shared__ __align__(16) %s tile_rows[%d][%d];\n", type, SIDE, width + PAD);
    dialect_block(b, part->dialect, part->threads.before, 1);
    cuda_tile_loop(b, part);
    buf_printf(b, "        %s tile_sums[%d][%d] = {};\n", type, each, each);
    if (pieces)
        buf_printf(b, "        %s piece_sums[%d][%d] = {};\n", type, each, each);
    buf_printf(b, "        for (%s from_k = 0; from_k < %lld; from_k += %d) {\n", i, (long long)t->k.count, deep);
    cuda_tile_side(b, part, &t->lhs, "lhs", deep, false);
    cuda_tile_side(b, part, &t->rhs, "rhs", deep, false);
    buf_printf(b, "            __syncthreads();\n            hlo_multiply_tiles(%s_sums, lhs_tile, rhs_tile, ", pieces ? "piece" : "tile");
    put_add(b, t->step, type);
    buf_puts(b, ");\n            __syncthreads();\n");
    if (pieces)
        put_piece_end(b, part);
    buf_puts(b, "        }\n");
    put_epilogue(b, part, type);
    buf_puts(b, "    }\n");
}

void cuda_tile_body(Buf *b, const CudaPart *part)
{
    const bool tensor = cuda_tile_on_tensor_cores(part);
    if (tensor) {
        buf_puts(b, "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n");
        cuda_tensor_body(b, part);
        buf_puts(b, "#else\n");
    }
    put_plain_body(b, part);
    buf_puts(b, tensor ? "#endif\n" : "");
}
