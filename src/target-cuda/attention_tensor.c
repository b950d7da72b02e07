/* Tiles of attention of f16 or bf16 on tensor cores, by fragments of 16 by 16 (nvcuda::wmma). A warp has 16 rows of the tile; warps with the same rows are groups, each with its keys of every step. Who has which
 * element of a fragment is nobody's business, so that scores go through rows of shared memory, where lanes find them as those of attention_lanes.c have them in registers:
 *
 *     parts[j] = queries[band + 16][head] * key_rows[16 j + 16][head]^T     fragments, 16 steps of the head at a time
 *     score_rows = parts                                                    then x of each, the largest and the sum of a row
 *     weights = e^(x - most), rounded to the type of the values             in the rows where scores were
 *     fade_rows[row][c] = e^(what was largest - most), for all c            a fragment, too
 *     out[c] = out[c] * fades + weights[16][own] * values[own][16 c + 16]
 *
 * Weights are rounded as the module's are, but before they are divided by their sum: a result is off by no more than one such rounding of all its weights, 2^-8 or 2^-11 of the largest value at most.
 * Rows are a multiple of 16 elements, zeros behind what there is, and 16 bytes more; addresses of fragments are multiples of 32 bytes. */
#include "target-cuda/attention_tile.h"

enum { FRAGMENT = 16, ROWS = 8, PARTS = 128 /* rows of a block's warps */ };

static const char *half_type(const AttentionText *t)
{
    return t->c->in == TYPE_F16 ? "__half" : "__nv_bfloat16";
}

/* Keys of a warp in each step. */
static int64_t own_keys(const AttentionText *t)
{
    return t->l.by.step / t->l.by.groups;
}

static int64_t columns(const AttentionText *t)
{
    return t->l.by.wide / FRAGMENT;
}

/* A row of scores and, in its place, of weights. */
static int64_t score_row(const AttentionText *t)
{
    return own_keys(t) + 4;
}

static void put_begin(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    const int64_t          bands = l->rows / FRAGMENT, scores = PARTS * score_row(t);
    buf_printf(t->b, "    uint16_t *const queries = (uint16_t *)hlo_smem, *const key_rows = queries + %lld, *const values = key_rows + %lld;\n", (long long)(l->rows * l->by.head),
               (long long)(l->by.step * l->by.head));
    buf_printf(t->b, "    float *const score_rows = (float *)(values + %lld), *const %s = score_rows + %lld;\n", (long long)(l->by.step * l->by.wide), l->by.kept ? "of_groups" : "fade_rows", (long long)scores);
    if (l->by.kept)
        buf_printf(t->b, "    uint16_t *const weights = (uint16_t *)(of_groups + %d);\n", PARTS);
    else
        buf_puts(t->b, "    uint16_t *const weights = (uint16_t *)score_rows;\n");
    buf_printf(t->b, "    const int lane = threadIdx.x %% 16, warp = threadIdx.x / 32, group = warp%s, band = ", bands > 1 ? arena_printf(t->arena, " / %lld", (long long)bands) : "");
    buf_puts(t->b, bands > 1 ? arena_printf(t->arena, "warp %% %lld * 16", (long long)bands) : "0");
    buf_puts(t->b, ", of_warp = threadIdx.x % 32 / 16 * 4, first = band + of_warp;\n");
}

static void put_fragments(const AttentionText *t, const char *name, int64_t n, int depth)
{
    buf_printf(t->b, "%*snvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> %s[%lld];\n%*s#pragma unroll\n%*sfor (int c = 0; c < %lld; c++)\n%*snvcuda::wmma::fill_fragment(%s[c], 0.0f);\n",
               4 * depth, "", name, (long long)n, 4 * depth, "", 4 * depth, "", (long long)n, 4 * depth + 4, "", name);
}

static void put_sums(const AttentionText *t)
{
    put_fragments(t, "out", columns(t), 2);
}

/* Fragments of both factors of a product, of which the second one is read along k or across. */
static void put_factors(const AttentionText *t, const char *lhs, const char *rhs, const char *order, int depth)
{
    buf_printf(t->b, "%*snvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, %s, nvcuda::wmma::row_major> %s;\n", 4 * depth, "", half_type(t), lhs);
    buf_printf(t->b, "%*snvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, %s, nvcuda::wmma::%s_major> %s;\n", 4 * depth, "", half_type(t), order, rhs);
}

static void put_load(const AttentionText *t, const char *to, const char *from, int64_t row, int depth)
{
    buf_printf(t->b, "%*snvcuda::wmma::load_matrix_sync(%s, (const %s *)&%s, %lld);\n", 4 * depth, "", to, half_type(t), from, (long long)row);
}

static void put_scores(const AttentionText *t)
{
    const AttentionSteps *s = &t->l.by;
    const int64_t         own = own_keys(t), head = s->head, row = score_row(t);
    put_fragments(t, "parts", s->each, 3);
    buf_printf(t->b, "            #pragma unroll\n            for (int c = 0; c < %lld; c += 16) {\n", (long long)(head - 8));
    put_factors(t, "query", "key", "col", 4);
    put_load(t, "query", arena_printf(t->arena, "queries[band * %lld + c]", (long long)head), head, 4);
    buf_printf(t->b, "                #pragma unroll\n                for (int j = 0; j < %lld; j++) {\n", (long long)s->each);
    put_load(t, "key", arena_printf(t->arena, "key_rows[(group * %lld + j * 16) * %lld + c]", (long long)own, (long long)head), head, 5);
    buf_puts(t->b, "                    nvcuda::wmma::mma_sync(parts[j], query, key, parts[j]);\n                }\n            }\n");
    buf_printf(t->b, "            #pragma unroll\n            for (int j = 0; j < %lld; j++)\n"
                     "                nvcuda::wmma::store_matrix_sync(&score_rows[warp * %lld + j * 16], parts[j], %lld, nvcuda::wmma::mem_row_major);\n"
                     "            __syncwarp();\n"
                     "            float scores[8][%lld];\n"
                     "            #pragma unroll\n            for (int r = 0; r < 8; r++)\n"
                     "                #pragma unroll\n                for (int j = 0; j < %lld; j++)\n"
                     "                    scores[r][j] = score_rows[(warp * 16 + of_warp + r / 4 * 8 + r %% 4) * %lld + j * 16 + lane];\n"
                     "            __syncwarp();\n",
               (long long)s->each, (long long)(FRAGMENT * row), (long long)row, (long long)s->each, (long long)s->each, (long long)row);
}

static void put_fade(const AttentionText *t)
{
    buf_printf(t->b, "                fade_rows[(warp * 16 + of_warp + r / 4 * 8 + r %% 4) * %d + lane] = fades;\n", ATTENTION_FADES);
}

static const char *weight(const AttentionText *t)
{
    return arena_printf(t->arena, "weights[(warp * 16 + of_warp + r / 4 * 8 + r %% 4) * %lld + j * 16 + lane] = %s", (long long)(2 * score_row(t)), attention_narrow(t, "weight"));
}

static void put_faded(const AttentionText *t)
{
    buf_printf(t->b, "            nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> fade;\n"
                     "            nvcuda::wmma::load_matrix_sync(fade, &fade_rows[warp * %d], %d, nvcuda::wmma::mem_row_major);\n"
                     "            #pragma unroll\n            for (int c = 0; c < %lld; c++)\n"
                     "                #pragma unroll\n                for (int e = 0; e < fade.num_elements; e++)\n"
                     "                    out[c].x[e] *= fade.x[e];\n",
               FRAGMENT * ATTENTION_FADES, ATTENTION_FADES, (long long)columns(t));
}

static void put_values(const AttentionText *t)
{
    const AttentionSteps *s = &t->l.by;
    const int64_t         own = own_keys(t), row = s->kept ? s->kept : 2 * score_row(t);
    if (!s->kept)
        put_faded(t);
    buf_printf(t->b, "            #pragma unroll\n            for (int j = 0; j < %lld; j++) {\n", (long long)s->each);
    put_factors(t, "of_keys", "value", "row", 4);
    put_load(t, "of_keys", s->kept ? arena_printf(t->arena, "weights[band * %lld + from_key + group * %lld + j * 16]", (long long)row, (long long)own) :
                                     arena_printf(t->arena, "weights[warp * %lld + j * 16]", (long long)(FRAGMENT * row)), row, 4);
    buf_printf(t->b, "                #pragma unroll\n                for (int c = 0; c < %lld; c++) {\n", (long long)columns(t));
    put_load(t, "value", arena_printf(t->arena, "values[(group * %lld + j * 16) * %lld + c * 16]", (long long)own, (long long)s->wide), s->wide, 5);
    buf_puts(t->b, "                    nvcuda::wmma::mma_sync(out[c], of_keys, value, out[c]);\n                }\n            }\n");
}

static int64_t stride(const AttentionText *t)
{
    return attention_sums(&t->l.by);
}

static void put_sums_out(const AttentionText *t)
{
    const int64_t row = stride(t);
    buf_printf(t->b, "        #pragma unroll\n        for (int c = 0; c < %lld; c++)\n"
                     "            nvcuda::wmma::store_matrix_sync(&own[warp * %lld + c * 16], out[c], %lld, nvcuda::wmma::mem_row_major);\n",
               (long long)columns(t), (long long)(FRAGMENT * row), (long long)row);
}

const TileForm attention_fragments = { .rows = ROWS, .row = "first + r / 4 * 8 + r % 4", .whole = FRAGMENT, .free = "fade_rows", .put_begin = put_begin, .put_sums = put_sums, .put_scores = put_scores,
                                       .put_fade = put_fade, .weight = weight, .put_values = put_values, .stride = stride, .put_sums_out = put_sums_out };
