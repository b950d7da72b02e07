/* Tiles of attention by lanes, in f32: of four rows for 16 lanes a lane has the scores of every 16th key, a sum over p of 4 by `each` products in registers, and some columns of the result. Weights go through
 * rows of shared memory that only these lanes see. */
#include "target-cuda/attention_tile.h"

enum { LANES = 16, ROWS = 4, PARTS = 64 /* rows of a block's threads: of all its groups */ };

/* Columns of a lane: chunks of neighbours that are one access. */
static int64_t vector_of(const AttentionText *t)
{
    return t->d->wide >= 64 ? 4 : t->d->wide >= 32 ? 2 : 1;
}

static int64_t chunks_of(const AttentionText *t)
{
    return t->l.by.wide / (LANES * vector_of(t));
}

/* What lies in shared memory, and where a thread is in its tile. */
static void put_begin(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    const int64_t          of_group = ATTENTION_THREADS / l->by.groups;
    buf_printf(t->b, "    float *const queries = (float *)hlo_smem, *const key_rows = queries + %lld, *const values = key_rows + %lld, *const %s = values + %lld;\n", (long long)(l->rows * l->by.head),
               (long long)(l->by.step * l->by.head), l->by.kept ? "of_groups" : "weights", (long long)(l->by.step * l->by.wide));
    if (l->by.kept)
        buf_printf(t->b, "    uint16_t *const weights = (uint16_t *)(of_groups + %d);\n", PARTS);
    if (l->by.groups > 1)
        buf_printf(t->b, "    const int lane = threadIdx.x %% 16, group = threadIdx.x / %lld, first = threadIdx.x %% %lld / 16 * 4;\n", (long long)of_group, (long long)of_group);
    else
        buf_puts(t->b, "    constexpr int group = 0;\n    const int lane = threadIdx.x % 16, first = threadIdx.x / 16 * 4;\n");
}

static void put_sums(const AttentionText *t)
{
    buf_printf(t->b, "        float out[4][%lld] = {};\n", (long long)(vector_of(t) * chunks_of(t)));
}

static void put_scores(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    const int64_t          own = l->by.step / l->by.groups;
    buf_printf(t->b, "            float scores[4][%lld] = {};\n"
                     "            #pragma unroll 4\n"
                     "            for (int c = 0; c < head; c += 4) {\n"
                     "                hlo_pack<float, 4> row[4];\n"
                     "                #pragma unroll\n"
                     "                for (int r = 0; r < 4; r++)\n"
                     "                    row[r] = hlo_load<4>(&queries[(first + r) * %lld + c]);\n"
                     "                #pragma unroll\n"
                     "                for (int j = 0; j < %lld; j++) {\n"
                     "                    const hlo_pack<float, 4> key = hlo_load<4>(&key_rows[(group * %lld + j * 16 + lane) * %lld + c]);\n"
                     "                    #pragma unroll\n"
                     "                    for (int r = 0; r < 4; r++)\n"
                     "                        #pragma unroll\n"
                     "                        for (int e = 0; e < 4; e++)\n"
                     "                            scores[r][j] += row[r].at[e] * key.at[e];\n"
                     "                }\n"
                     "            }\n",
               (long long)l->by.each, (long long)l->by.head, (long long)l->by.each, (long long)own, (long long)l->by.head);
}

static void put_fade(const AttentionText *t)
{
    buf_printf(t->b, "                #pragma unroll\n                for (int c = 0; c < %lld; c++)\n                    out[r][c] *= fades;\n", (long long)(vector_of(t) * chunks_of(t)));
}

static const char *weight(const AttentionText *t)
{
    return arena_printf(t->arena, "weights[(group * %lld + first + r) * %lld + j * 16 + lane] = weight", (long long)t->l.rows, (long long)(t->l.by.step / t->l.by.groups + 4));
}

static void put_values(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    const int64_t          own = l->by.step / l->by.groups, vector = vector_of(t), chunks = chunks_of(t);
    const char            *load = arena_printf(t->arena, "\n                    weight[r] = hlo_load<4>(&weights[(group * %lld + first + r) * %lld + j]);", (long long)l->rows, (long long)own + 4);
    if (l->by.kept)
        load = arena_printf(t->arena, " {\n"
                                      "                    const hlo_pack<uint16_t, 4> halves = hlo_load<4>(&weights[(first + r) * %lld + from_key + group * %lld + j]);\n"
                                      "                    for (int e = 0; e < 4; e++)\n"
                                      "                        weight[r].at[e] = %s;\n"
                                      "                }",
                            (long long)l->by.kept, (long long)own, attention_float(t, "halves.at[e]"));
    buf_printf(t->b, "            #pragma unroll 2\n"
                     "            for (int j = 0; j < %lld; j += 4) {\n"
                     "                hlo_pack<float, 4> weight[4];\n"
                     "                #pragma unroll\n"
                     "                for (int r = 0; r < 4; r++)%s\n"
                     "                #pragma unroll\n"
                     "                for (int e = 0; e < 4; e++)\n"
                     "                    #pragma unroll\n"
                     "                    for (int by = 0; by < %lld; by++) {\n"
                     "                        const hlo_pack<float, %lld> value = hlo_load<%lld>(&values[(group * %lld + j + e) * %lld + by * %lld + lane * %lld]);\n"
                     "                        #pragma unroll\n"
                     "                        for (int r = 0; r < 4; r++)\n"
                     "                            #pragma unroll\n"
                     "                            for (int c = 0; c < %lld; c++)\n"
                     "                                out[r][by * %lld + c] += weight[r].at[e] * value.at[c];\n"
                     "                    }\n"
                     "            }\n",
               (long long)own, load, (long long)chunks, (long long)vector, (long long)vector, (long long)own, (long long)l->by.wide, (long long)(LANES * vector), (long long)vector,
               (long long)vector, (long long)vector);
}

static int64_t stride(const AttentionText *t)
{
    return t->l.by.wide;
}

static void put_sums_out(const AttentionText *t)
{
    const int64_t vector = vector_of(t);
    buf_printf(t->b, "        #pragma unroll\n"
                     "        for (int r = 0; r < 4; r++)\n"
                     "            #pragma unroll\n"
                     "            for (int by = 0; by < %lld; by++)\n"
                     "                #pragma unroll\n"
                     "                for (int c = 0; c < %lld; c++)\n"
                     "                    own[(group * %lld + first + r) * %lld + by * %lld + lane * %lld + c] = out[r][by * %lld + c];\n",
               (long long)chunks_of(t), (long long)vector, (long long)t->l.rows, (long long)t->l.by.wide, (long long)(LANES * vector), (long long)vector, (long long)vector);
}

const TileForm attention_lanes = { .rows = ROWS, .row = "first + r", .widens = true, .whole = ATTENTION_PACK, .free = "weights", .put_begin = put_begin, .put_sums = put_sums, .put_scores = put_scores,
                                   .put_fade = put_fade, .weight = weight, .put_values = put_values, .stride = stride, .put_sums_out = put_sums_out };
