/* Products of f16 or bf16 that are summed in f32, on tensor cores, for tiles as of tile.c. Warps of a block share its tile: two of them stand side by side, each has R by C
 * fragments of 16 by 16 sums. The factors lie in shared memory as they were read, 32 steps of k at a time, as bits:
 *
 *     lhs_tile[m][k], a row_major fragment at [warp_m + 16 r][at_step]       if neighbours in memory are along k, else
 *     lhs_tile[k][m], a col_major fragment at [at_step][warp_m + 16 r]
 *     rhs_tile[n][k], a col_major fragment at [warp_n + 16 c][at_step]       likewise
 *     rhs_tile[k][n], a row_major fragment at [at_step][warp_n + 16 c]
 *
 * Rows are 16 bytes longer than they need be, so that they spread over banks. A fragment of sums comes out through 16 rows that the warp has for itself; who has which sum of a
 * fragment is nobody's business. Source: CUDA C++ programming guide, "Warp Matrix Functions": addresses are multiples of 32 bytes, rows of 16.
 *
 *     for (int at_step = 0; at_step < 32; at_step += 16) {
 *         nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::row_major> lhs_part[2];
 *         for (int tile_r = 0; tile_r < 2; tile_r++)
 *             nvcuda::wmma::load_matrix_sync(lhs_part[tile_r], (const __half *)&lhs_tile[warp_m + 16 * tile_r][at_step], 40);
 *         ...
 *             nvcuda::wmma::mma_sync(tile_sums[tile_r][tile_c], lhs_part[tile_r], rhs_part, tile_sums[tile_r][tile_c]);
 *
 * Without tensor cores (before sm_80) the same blocks do as tile.c has it. */
#include "support/buf.h"
#include "target-cuda/part.h"

#include <string.h>

enum { DEEP = 32, FRAGMENT = 16, PAD = 8 /* elements of the factors */, OUT_ROW = FRAGMENT + 4, ACROSS = 2 /* warps side by side */ };

/* ---- what can be done ---- */

/* The assignment at the end of a side's body. */
static const KStmt *last_of(const KBlock *b)
{
    const KStmt *s = b->last;
    while (s && s->body)
        s = s->body->last;
    return s;
}

/* "bf16_to_f32" of an element as it lies; NULL: the factor is something else. */
static const char *decodes(const TileSide *side)
{
    const KStmt *s = last_of(side->body);
    const KExpr *v = s && s->kind == KS_ASSIGN && s->temp == side->value ? s->value : NULL;
    return v && v->kind == KX_CALL && v->n == 1 && v->arg[0]->type == TYPE_U16 ? v->fn : NULL;
}

static const char *half_type(const TileSide *side)
{
    const char *fn = decodes(side);
    return !fn ? NULL : strcmp(fn, "bf16_to_f32") == 0 ? "__nv_bfloat16" : strcmp(fn, "f16_to_f32") == 0 ? "__half" : NULL;
}

bool cuda_tile_on_tensor_cores(const CudaPart *part)
{
    const TilePart *t = &part->tile;
    const char     *lhs = half_type(&t->lhs), *rhs = half_type(&t->rhs);
    return part->share == BY_TILE && part->device->tensor > 0 && t->acc->type == TYPE_F32 && t->step->kind == KX_BINARY && t->step->arg[1]->kind == KX_BINARY && lhs && rhs &&
           strcmp(lhs, rhs) == 0;
}

/* ---- the factors as they lie ---- */

static KBlock *with_bits(Arena *a, const KBlock *b, const TileSide *side, KTemp *bits)
{
    KBlock *copy = ARENA_NEW(a, KBlock);
    for (const KStmt *s = b->first; s; s = s->next) {
        KStmt x = *s;
        if (s->kind == KS_ASSIGN && s->temp == side->value) {
            x.temp = bits;
            x.value = s->value->arg[0];
        } else if (s->body) {
            x.body = with_bits(a, s->body, side, bits);
        }
        kblock_append_copy(a, copy, &x);
    }
    return copy;
}

static TileSide side_of_bits(Arena *a, const TileSide *side)
{
    KTemp *bits = arena_copy(a, side->value, sizeof *bits);
    bits->type = TYPE_U16;
    return (TileSide){ .body = with_bits(a, side->body, side, bits), .value = bits, .along = side->along, .row = side->row };
}

/* ---- the body ---- */

static int down_of(const CudaPart *part)
{
    return part->each > 4 ? 2 : 1;
}

static int across_of(const CudaPart *part)
{
    return TILE_SIDE * part->each / ACROSS / FRAGMENT;
}

/* Are there warps that have no part of the tile? */
static bool some_are_idle(const CudaPart *part)
{
    return THREADS / WARP / ACROSS * down_of(part) * FRAGMENT > TILE_SIDE * part->each;
}

static void put_tile_arrays(Buf *b, const CudaPart *part)
{
    const int width = TILE_SIDE * part->each;
    for (int k = 0; k < 2; k++) {
        const bool along = k == 0 ? part->tile.lhs.along : part->tile.rhs.along;
        buf_printf(b, "    __shared__ __align__(32) uint16_t %s_tile[%d][%d];\n", k ? "rhs" : "lhs", along ? width : DEEP, (along ? DEEP : width) + PAD);
    }
    buf_printf(b, "    __shared__ __align__(32) float warp_sums[%d][%d][%d];\n", THREADS / WARP, FRAGMENT, OUT_ROW);
}

/* "for (int tile_r = 0; tile_r < 2; tile_r++)", unrolled: fragments are registers. */
static void put_for(Buf *b, const char *i, int n, int depth)
{
    buf_printf(b, "%*s#pragma unroll\n%*sfor (int %s = 0; %s < %d; %s++)", 4 * depth, "", 4 * depth, "", i, i, n, i);
}

static void put_fill(Buf *b, const CudaPart *part, const char *name)
{
    put_for(b, "tile_r", down_of(part), 2);
    buf_puts(b, "\n");
    put_for(b, "tile_c", across_of(part), 3);
    buf_printf(b, "\n                nvcuda::wmma::fill_fragment(%s[tile_r][tile_c], 0.0f);\n", name);
}

/* Loads one fragment: at [free][k] or, across, at [k][free]. */
static void put_load(Buf *b, const TileSide *side, const CudaPart *part, bool is_lhs, int depth)
{
    const char *half = half_type(side), *name = is_lhs ? "lhs" : "rhs", *to = is_lhs ? "lhs_part[tile_r]" : "rhs_part", *at = is_lhs ? "warp_m + 16 * tile_r" : "warp_n + 16 * tile_c";
    buf_printf(b, "%*snvcuda::wmma::load_matrix_sync(%s, (const %s *)&%s_tile[%s][%s], %d);\n", 4 * depth, "", to, half, name, side->along ? at : "at_step",
               side->along ? "at_step" : at, (side->along ? DEEP : TILE_SIDE * part->each) + PAD);
}

static void put_products(Buf *b, const CudaPart *part, const char *sums)
{
    const TilePart *t = &part->tile;
    buf_printf(b, "            #pragma unroll\n            for (int at_step = 0; at_step < %d; at_step += %d) {\n", DEEP, FRAGMENT);
    buf_printf(b, "                nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, %s, nvcuda::wmma::%s_major> lhs_part[%d];\n", half_type(&t->lhs),
               t->lhs.along ? "row" : "col", down_of(part));
    buf_printf(b, "                nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, %s, nvcuda::wmma::%s_major> rhs_part;\n", half_type(&t->rhs),
               t->rhs.along ? "col" : "row");
    put_for(b, "tile_r", down_of(part), 4);
    buf_puts(b, "\n");
    put_load(b, &t->lhs, part, true, 5);
    put_for(b, "tile_c", across_of(part), 4);
    buf_puts(b, " {\n");
    put_load(b, &t->rhs, part, false, 5);
    put_for(b, "tile_r", down_of(part), 5);
    buf_printf(b, "\n                        nvcuda::wmma::mma_sync(%s[tile_r][tile_c], lhs_part[tile_r], rhs_part, %s[tile_r][tile_c]);\n", sums, sums);
    buf_puts(b, "                }\n            }\n");
}

/* Adds what was summed last to the sums of all pieces: the same to all elements of a fragment. */
static void put_piece_end(Buf *b, const CudaPart *part)
{
    buf_printf(b, "            if (from_k %% %d == %d || from_k + %d >= %lld) {\n", TILE_PIECE, TILE_PIECE - DEEP, DEEP, (long long)part->tile.k.count);
    put_for(b, "tile_r", down_of(part), 4);
    buf_puts(b, "\n");
    put_for(b, "tile_c", across_of(part), 5);
    buf_puts(b, " {\n"
                "                        #pragma unroll\n"
                "                        for (int at = 0; at < tile_sums[0][0].num_elements; at++)\n"
                "                            tile_sums[tile_r][tile_c].x[at] += piece_sums[tile_r][tile_c].x[at];\n"
                "                        nvcuda::wmma::fill_fragment(piece_sums[tile_r][tile_c], 0.0f);\n"
                "                    }\n"
                "            }\n");
}

/* Two rows of a fragment at a time: the lanes of half a warp store neighbours. */
static void put_epilogue(Buf *b, const CudaPart *part)
{
    const TilePart *t = &part->tile;
    put_for(b, "tile_r", down_of(part), 2);
    buf_puts(b, "\n");
    put_for(b, "tile_c", across_of(part), 3);
    buf_printf(b, " {\n"
                  "                __syncwarp(); // warp_sums may still be read, of the fragment before\n"
                  "                nvcuda::wmma::store_matrix_sync(&warp_sums[warp][0][0], tile_sums[tile_r][tile_c], %d, nvcuda::wmma::mem_row_major);\n"
                  "                __syncwarp();\n"
                  "                for (int at = threadIdx.x %% 32; at < 256; at += 32) {\n"
                  "                    const %s at_m = from_m + warp_m + 16 * tile_r + at / 16, at_n = from_n + warp_n + 16 * tile_c + at %% 16;\n"
                  "                    if (at_m < %lld && at_n < %lld) {\n",
               OUT_ROW, part->dialect->index, (long long)t->rows.count, (long long)t->cols.count);
    cuda_tile_loop_values(b, part, &t->rows, "at_m", 6);
    cuda_tile_loop_values(b, part, &t->cols, "at_n", 6);
    buf_printf(b, "                        float %s = warp_sums[warp][at / 16][at %% 16];\n", t->acc->name);
    dialect_block(b, part->dialect, t->epilogue, 6);
    buf_puts(b, "                    }\n                }\n            }\n");
}

/* What warps do with their parts of the tile; text is emptied. */
static void put_of_warps(Buf *b, const CudaPart *part, Buf *text, int depth)
{
    if (some_are_idle(part)) {
        buf_printf(b, "%*sif (warp_m < %d) {\n", 4 * depth, "", TILE_SIDE * part->each);
        for (const char *line = text->p, *end; *line; line = end) {
            end = strchr(line, '\n') + 1;
            buf_puts(b, "    ");
            buf_put(b, line, (size_t)(end - line));
        }
        buf_printf(b, "%*s}\n", 4 * depth, "");
    } else {
        buf_put(b, text->p, text->n);
    }
    buf_free(text);
}

void cuda_tensor_body(Buf *b, const CudaPart *part)
{
    Arena         *a = arena_new();
    const TilePart *t = &part->tile;
    const TileSide lhs = side_of_bits(a, &t->lhs), rhs = side_of_bits(a, &t->rhs);
    const int      r = down_of(part), c = across_of(part);
    const bool     pieces = cuda_tile_in_pieces(part);
    Buf            products = { 0 }, epilogue = { 0 };
    put_tile_arrays(b, part);
    buf_printf(b, "    const int warp = threadIdx.x / 32, warp_m = warp / %d * %d, warp_n = warp %% %d * %d;\n", ACROSS, r * FRAGMENT, ACROSS, c * FRAGMENT);
    dialect_block(b, part->dialect, part->threads.before, 1);
    cuda_tile_loop(b, part);
    for (int k = 0; k < 1 + pieces; k++) {
        const char *name = k ? "piece_sums" : "tile_sums";
        buf_printf(b, "        nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> %s[%d][%d];\n", name, r, c);
        put_fill(b, part, name);
    }
    buf_printf(b, "        for (%s from_k = 0; from_k < %lld; from_k += %d) {\n", part->dialect->index, (long long)t->k.count, DEEP);
    cuda_tile_side(b, part, &lhs, "lhs", DEEP, true);
    cuda_tile_side(b, part, &rhs, "rhs", DEEP, true);
    buf_puts(b, "            __syncthreads();\n");
    put_products(&products, part, pieces ? "piece_sums" : "tile_sums");
    put_of_warps(b, part, &products, 3);
    buf_puts(b, "            __syncthreads();\n");
    if (pieces)
        put_piece_end(b, part);
    buf_puts(b, "        }\n");
    put_epilogue(&epilogue, part);
    put_of_warps(b, part, &epilogue, 2);
    buf_puts(b, "    }\n");
    arena_free(a);
}
