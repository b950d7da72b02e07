/* Attention of few rows: a group of lanes reads a key, as neighbours, and sums up what it is with each row; of all keys of the block, then the softmax, then values likewise. */
#include "target-cuda/attention_text.h"
#include "target-cuda/part.h"

#include <string.h>

enum { WARPS = ATTENTION_THREADS / WARP };

/* How lanes share a row of n elements: each has `chunks` packs of `pack` neighbours, every lanes-th. */
typedef struct Lanes {
    int64_t     n, lanes, pack, chunks;
    bool        cut;   /* the last ones end behind the row */
    const char *first; /* "by * 128 + lane * 4": the first element of pack number `by` */
    const char *in;    /* "by * 128 + lane * 4 < head" */
} Lanes;

static int64_t lanes_for(int64_t n)
{
    int64_t lanes = 1;
    while (lanes < n && lanes < WARP)
        lanes *= 2;
    return lanes;
}

static Lanes share_of(const AttentionText *t, char array)
{
    const bool v = array == 'v';
    Lanes      s = { .n = v ? t->d->wide : t->d->head, .pack = attention_is_packed(t, array, ATTENTION_PACK) ? ATTENTION_PACK : 1 };
    s.lanes = lanes_for(s.n / s.pack);
    s.chunks = (s.n + s.lanes * s.pack - 1) / (s.lanes * s.pack);
    s.cut = s.n % (s.lanes * s.pack) != 0;
    s.first = v ? arena_printf(t->arena, "by * %lld + column", (long long)(s.lanes * s.pack)) : arena_printf(t->arena, "by * %lld + lane * %lld", (long long)(s.lanes * s.pack), (long long)s.pack);
    s.in = arena_printf(t->arena, "%s < %s", s.first, v ? "wide" : "head");
    return s;
}

/* What is done for each pack that there is begins; the depth in it. */
static int put_each_pack(const AttentionText *t, const Lanes *s, int depth)
{
    buf_printf(t->b, "%*s#pragma unroll\n%*sfor (int by = 0; by < %lld; by++)%s\n", 4 * depth, "", 4 * depth, "", (long long)s->chunks, s->cut ? "" : " {");
    if (s->cut)
        buf_printf(t->b, "%*sif (%s) {\n", 4 * depth + 4, "", s->in);
    return depth + 1 + s->cut;
}

/* "pack", of what a lane reads. */
static void put_pack(const AttentionText *t, int64_t pack, const char *from, int depth)
{
    buf_printf(t->b, "%*sconst hlo_pack<%s, %lld> pack = hlo_load<%lld>(&%s);\n", 4 * depth, "", attention_type(t->c->in), (long long)pack, (long long)pack, from);
}

/* The packs of a key or its value, of which each element is what is summed up for each row: "sums[row] += row_of[row][by * 4 + e] * ". */
static void put_sums(const AttentionText *t, const Lanes *s, const char *from, const char *sum, int depth)
{
    const int in = put_each_pack(t, s, depth);
    put_pack(t, s->pack, arena_printf(t->arena, "%s + %s]", from, s->first), in);
    buf_printf(t->b, "%*s#pragma unroll\n%*sfor (int e = 0; e < %lld; e++)\n%*s#pragma unroll\n%*sfor (int row = 0; row < rows; row++)\n%*s%s%s;\n", 4 * in, "", 4 * in, "", (long long)s->pack, 4 * in + 4, "",
               4 * in + 4, "", 4 * in + 8, "", sum, attention_float(t, "pack.at[e]"));
    buf_printf(t->b, "%*s}\n", 4 * in - 4, "");
}

/* row_of: the rows, in registers of the lanes that share a key. */
static void put_queries(const AttentionText *t, const Lanes *s)
{
    const char *row = attention_row(t, 'q', "row");
    buf_printf(t->b, "        float row_of[%lld][%lld] = {};\n        #pragma unroll\n        for (int row = 0; row < rows; row++)\n", (long long)t->d->rows, (long long)(s->chunks * s->pack));
    const int   in = 4 * put_each_pack(t, s, 3);
    const char *x = "pack.at[e]";
    if (attention_is_packed(t, 'q', ATTENTION_PACK) && s->pack == ATTENTION_PACK)
        put_pack(t, s->pack, arena_printf(t->arena, "q[q_at + %s + %s]", row, s->first), in / 4);
    else
        x = arena_printf(t->arena, "q[q_at + %s + (%s + e) * %lld]", row, s->first, (long long)t->d->q_col);
    buf_printf(t->b, "%*sfor (int e = 0; e < %lld; e++)\n%*srow_of[row][by * %lld + e] = %s;\n", in, "", (long long)s->pack, in + 4, "", (long long)s->pack, attention_float(t, x));
    buf_printf(t->b, "%*s}\n", in - 4, "");
}

static void put_scores(const AttentionText *t, const Lanes *s)
{
    const bool test = t->d->keys % t->l.piece != 0;
    put_queries(t, s);
    buf_printf(t->b, "        #pragma unroll 4\n"
                     "        for (int at = threadIdx.x / %lld; at < %lld; at += %lld) {\n"
                     "            const int key = from_key + at;\n"
                     "            float scores[%lld] = {};\n",
               (long long)s->lanes, (long long)t->l.piece, (long long)(ATTENTION_THREADS / s->lanes), (long long)t->d->rows);
    if (test)
        buf_puts(t->b, "            if (key < keys) {\n");
    put_sums(t, s, arena_printf(t->arena, "k[k_at + %s", attention_times(t, "key", t->d->k_row)), arena_printf(t->arena, "scores[row] += row_of[row][by * %lld + e] * ", (long long)s->pack), test ? 4 : 3);
    if (test)
        buf_puts(t->b, "            }\n");
    buf_puts(t->b, "            #pragma unroll\n            for (int row = 0; row < rows; row++) {\n");
    if (s->lanes > 1)
        buf_printf(t->b, "                #pragma unroll\n                for (int by = %lld; by > 0; by /= 2)\n                    scores[row] += __shfl_xor_sync(0xffffffffu, scores[row], by);\n", (long long)(s->lanes / 2));
    buf_printf(t->b, "                if (lane == row %% %lld) {\n", (long long)s->lanes);
    attention_put_score(t, test ? "key < keys" : "", "scores[row]", 5);
    buf_puts(t->b, "                    weights[row][at] = x;\n                }\n            }\n        }\n        __syncthreads();\n");
}

static void put_softmax(const AttentionText *t)
{
    buf_printf(t->b, "        for (int row = threadIdx.x / 32; row < rows; row += 8) {\n"
                     "            float largest = -__builtin_inff(), total = 0;\n"
                     "            #pragma unroll 4\n"
                     "            for (int at = threadIdx.x %% 32; at < %lld; at += 32)\n"
                     "                largest = max_f32(largest, weights[row][at]);\n"
                     "            #pragma unroll\n"
                     "            for (int by = 16; by > 0; by /= 2)\n"
                     "                largest = max_f32(largest, __shfl_xor_sync(0xffffffffu, largest, by));\n"
                     "            const float from = largest == -__builtin_inff() ? 0 : largest;\n"
                     "            #pragma unroll 4\n"
                     "            for (int at = threadIdx.x %% 32; at < %lld; at += 32) {\n"
                     "                const float weight = expf(weights[row][at] - from);\n"
                     "                total += weight;\n"
                     "                weights[row][at] = weight;\n"
                     "            }\n"
                     "            #pragma unroll\n"
                     "            for (int by = 16; by > 0; by /= 2)\n"
                     "                total += __shfl_xor_sync(0xffffffffu, total, by);\n"
                     "            if (threadIdx.x %% 32 == 0) {\n"
                     "                stats[row][0] = largest;\n"
                     "                stats[row][1] = total;\n"
                     "            }\n"
                     "        }\n"
                     "        __syncthreads();\n",
               (long long)t->l.piece, (long long)t->l.piece);
}

/* The sums of the lanes that have the same columns, then of each warp. */
static void put_sums_of_warp(const AttentionText *t, const Lanes *s)
{
    const char *column = arena_printf(t->arena, "e / %lld * %lld + column + e %% %lld", (long long)s->pack, (long long)(s->lanes * s->pack), (long long)s->pack);
    buf_printf(t->b, "        #pragma unroll\n        for (int row = 0; row < rows; row++)\n            #pragma unroll\n            for (int e = 0; e < %lld; e++) {\n", (long long)(s->chunks * s->pack));
    if (s->lanes < WARP)
        buf_printf(t->b, "                #pragma unroll\n                for (int by = %lld; by < 32; by *= 2)\n                    out[row][e] += __shfl_xor_sync(0xffffffffu, out[row][e], by);\n", (long long)s->lanes);
    buf_printf(t->b, "                if (threadIdx.x %% 32 < %lld%s)\n                    of_warp[threadIdx.x / 32][row][%s] = out[row][e];\n            }\n        __syncthreads();\n", (long long)s->lanes,
               s->cut ? arena_printf(t->arena, " && %s < wide", column) : "", column);
}

static void put_values(const AttentionText *t, const Lanes *s)
{
    const bool test = t->d->keys % t->l.piece != 0;
    buf_printf(t->b, "        const int column = threadIdx.x %% %lld * %lld;\n"
                     "        float out[%lld][%lld] = {};\n"
                     "        #pragma unroll 4\n"
                     "        for (int at = threadIdx.x / %lld; at < %lld; at += %lld)%s\n",
               (long long)s->lanes, (long long)s->pack, (long long)t->d->rows, (long long)(s->chunks * s->pack), (long long)s->lanes, (long long)t->l.piece, (long long)(ATTENTION_THREADS / s->lanes),
               test ? "" : " {");
    if (test)
        buf_puts(t->b, "            if (from_key + at < keys) {\n");
    const int depth = test ? 4 : 3;
    put_sums(t, s, arena_printf(t->arena, "v[v_at + %s", attention_times(t, "(from_key + at)", t->d->v_row)), arena_printf(t->arena, "out[row][by * %lld + e] += weights[row][at] * ", (long long)s->pack), depth);
    buf_printf(t->b, "%*s}\n", 4 * depth - 4, "");
    put_sums_of_warp(t, s);
}

void attention_put_few(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    const hlort_attention *d = t->d;
    const Lanes            k = share_of(t, 'k'), v = share_of(t, 'v');
    buf_printf(t->b, "    __shared__ float weights[%lld][%lld];\n    __shared__ float of_warp[%d][%lld][%lld];\n    __shared__ float stats[%lld][2];\n    const int lane = threadIdx.x %% %lld;\n", (long long)d->rows,
               (long long)l->piece, WARPS, (long long)d->rows, (long long)d->wide, (long long)d->rows, (long long)k.lanes);
    buf_printf(t->b, "    for (%s tile = blockIdx.x; tile < %lld; tile += gridDim.x) {\n", t->index, (long long)l->tiles);
    if (l->pieces > 1)
        buf_printf(t->b, "        const int piece = tile %% %lld, from_key = piece * %lld;\n        const %s member = tile / %lld;\n", (long long)l->pieces, (long long)l->piece, t->index, (long long)l->pieces);
    else
        buf_printf(t->b, "        constexpr int from_key = 0;\n        const %s member = tile;\n", t->index);
    attention_put_begin(t);
    put_scores(t, &k);
    put_softmax(t);
    put_values(t, &v);
    buf_printf(t->b, "        for (int at = threadIdx.x; at < rows * wide; at += %d) {\n", ATTENTION_THREADS);
    attention_put_element(t, d->rows, 3);
    buf_printf(t->b, "            const int row = at_row;\n            const float largest = stats[row][0];\n            float total = stats[row][1], x = 0;\n            #pragma unroll\n            for (int w = 0; w < %d; w++)\n"
                     "                x += of_warp[w][row][c];\n",
               WARPS);
    attention_put_result(t, l->pieces > 1, 3);
    buf_puts(t->b, "        }\n    }\n");
}
