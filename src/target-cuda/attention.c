/* Attention as one kernel (emit/attention_device.h), or two where pieces of the keys are joined.
 *
 *     S[i, j] = scale * sum over p of Q[i, p] * K[j, p]      W[i, j] = e^(S[i, j] - max S[i]) / sum over j of that      O[i, c] = sum over j of W[i, j] * V[j, c]
 *
 * Of tiles of rows it is attention_tile.c's, of few rows attention_few.c's: of each row the largest score, the sum of e^(x - that) and columns of the result that are not divided yet.
 * What the fusion makes of the scores, if it is more than a factor and a mask, is a function of one of them. */
#include "emit/c_text.h"
#include "target-cuda/attention_tile.h"
#include "target-cuda/part.h"
#include "target-cuda/routine.h"

#include <string.h>

enum { MOST_INDEX = INT32_MAX - (1 << 24) };

static int64_t extent(int64_t n, int64_t by)
{
    return (n - 1) * (by < 0 ? -by : by);
}

/* Whether places in its arrays are wider than 32 bits. */
static bool is_wide(const LibraryCall *x)
{
    const hlort_attention *d = &x->attention->d;
    int64_t q = extent(d->head, d->q_col), k = extent(d->keys, d->k_row) + extent(d->head, d->k_col), v = extent(d->keys, d->v_row) + extent(d->wide, d->v_col);
    int64_t o = extent(d->wide, d->o_col), t = 0;
    bool    wide = attention_members(d) > MOST_INDEX / d->rows / d->keys;
    for (int64_t r = 0; r < d->n_rows; r++) {
        q += extent(d->row[r].count, d->row[r].q);
        t += extent(d->row[r].count, d->row[r].t);
        o += extent(d->row[r].count, d->row[r].o);
    }
    for (int64_t n = 0; n < d->n_batch; n++) {
        q += extent(d->batch[n].count, d->batch[n].q);
        k += extent(d->batch[n].count, d->batch[n].k);
        v += extent(d->batch[n].count, d->batch[n].v);
        t += extent(d->batch[n].count, d->batch[n].t);
        o += extent(d->batch[n].count, d->batch[n].o);
    }
    for (int32_t p = 0; x->tile && p < x->tile->n_operands; p++)
        wide |= x->tile->params[p]->count > MOST_INDEX;
    for (int32_t n = 0; n < x->attention->n; n++)
        wide |= x->attention->start[n] > MOST_INDEX / 2;
    return wide || q > MOST_INDEX / 2 || k > MOST_INDEX / 2 || v > MOST_INDEX / 2 || o > MOST_INDEX / 2 || t > MOST_INDEX / 2;
}

static void put_score_function(const AttentionText *t)
{
    const Kernel *k = t->x->tile;
    KernelPart    part = kernel_part(t->arena, k, k->body);
    Dialect       dialect = cuda_dialect;
    bool          first = true;
    dialect.index = t->index;
    buf_printf(t->b, "static __device__ inline void %s(", t->score);
    for (int32_t p = -1; p < k->n_operands - 1; p++) {
        const int32_t at = p < 0 ? k->n_operands - 1 : p;
        if (!kernel_uses_param(k, at))
            continue;
        buf_puts(t->b, first ? "" : ", ");
        dialect_param(t->b, &dialect, k, at);
        first = false;
    }
    buf_printf(t->b, "%s%s%s, %s %s)\n{\n", kernel_tile_uses_row(k) ? ", " : "", kernel_tile_uses_row(k) ? t->index : "", kernel_tile_uses_row(k) ? " " KERNEL_ROW : "", t->index, RANGE_FROM);
    dialect_arrays(t->b, &dialect, &part);
    dialect_block(t->b, &dialect, part.body, 1);
    buf_puts(t->b, "}\n\n");
}

/* ---- parameters ---- */

static bool uses_term(const AttentionText *t)
{
    return t->c->of[3] != NULL;
}

/* What the function of a score reads: as parameters, or as a launch's arguments. */
static void put_others(const AttentionText *t, bool values)
{
    const Kernel *k = t->x->tile;
    for (int32_t p = 0; k && p < k->n_operands - 1; p++) {
        if (!kernel_uses_param(k, p))
            continue;
        buf_puts(t->b, values ? ", (" : ", ");
        dialect_param_type(t->b, &cuda_dialect, k, p);
        buf_printf(t->b, "%sp%d", values ? ")" : "__restrict__ ", p);
    }
}

static void put_params(const AttentionText *t)
{
    const char *in = attention_type(t->c->in);
    buf_printf(t->b, "(%s *__restrict__ o, const %s *__restrict__ q, const %s *__restrict__ k, const %s *__restrict__ v", attention_type(t->c->out), in, in, in);
    if (uses_term(t))
        buf_printf(t->b, ", const %s *__restrict__ t", attention_type(t->c->of[3]->shape->type));
    put_others(t, false);
    buf_puts(t->b, t->l.pieces > 1 ? ", float *__restrict__ parts)\n{\n" : ")\n{\n");
}

/* Leaves the line out that says what `word` is, where nothing else has the name. */
static void drop_unused(Buf *body, const char *declared, const char *word)
{
    char *at = strstr(body->p, declared);
    if (!at || c_has_name(at + strlen(declared), word))
        return;
    while (at[-1] != '\n')
        at--;
    char *end = strchr(at, '\n') + 1;
    memmove(at, end, body->n - (size_t)(end - body->p) + 1);
    body->n -= (size_t)(end - at);
}

/* A kernel's body, or that of one of its forms, in front of which sizes are named, those that it uses; body is emptied. */
static void put_body(const AttentionText *t, Buf *body)
{
    const hlort_attention *d = t->d;
    const struct {
        const char *name;
        int64_t     value;
    } sizes[] = { { "rows", d->rows }, { "keys", d->keys }, { "head", d->head }, { "wide", d->wide } };
    bool first = true;
    drop_unused(body, " member = ", "member");
    drop_unused(body, " row = thread", "row");
    drop_unused(body, " largest = stats", "largest");
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (c_has_name(body->p, sizes[k].name)) {
            buf_printf(t->b, "%s%s = %lld", first ? "    constexpr int " : ", ", sizes[k].name, (long long)sizes[k].value);
            first = false;
        }
    buf_puts(t->b, first ? "" : "; // of each member of the batch\n");
    buf_puts(t->b, body->p);
    buf_free(body);
}

/* ---- pieces ---- */

/* The same for text that goes elsewhere. */
static AttentionText with_body(const AttentionText *t, Buf *body)
{
    AttentionText in = *t;
    in.b = body;
    return in;
}

static void put_join(const AttentionText *t)
{
    const hlort_attention *d = t->d;
    const AttentionLaunch *l = &t->l;
    buf_printf(t->b, "\nstatic __global__ void __launch_bounds__(%d) %s_join(%s *__restrict__ o", ATTENTION_THREADS, t->name, attention_type(t->c->out));
    if (uses_term(t))
        buf_printf(t->b, ", const %s *__restrict__ t", attention_type(t->c->of[3]->shape->type));
    buf_puts(t->b, ", const float *__restrict__ parts)\n{\n");
    Buf        body = { 0 };
    const AttentionText in = with_body(t, &body);
    buf_printf(&body, "    for (%s thread = blockIdx.x * %d + threadIdx.x; thread < %lld; thread += gridDim.x * %d) {\n"
                     "        const int64_t part = thread / wide * %lld;\n"
                     "        const int c = thread %% wide;\n"
                     "        const int row = thread / wide %% rows;\n"
                     "        const %s member = thread / (rows * wide);\n"
                     "        const float *const stats = parts + %lld + 2 * part;\n"
                     "        float largest = -__builtin_inff(), total = 0, x = 0;\n"
                     "        #pragma unroll 8\n"
                     "        for (int piece = 0; piece < %lld; piece++)\n"
                     "            largest = max_f32(largest, stats[2 * piece]);\n"
                     "        const float from = largest == -__builtin_inff() ? 0 : largest;\n"
                     "        #pragma unroll 8\n"
                     "        for (int piece = 0; piece < %lld; piece++) {\n"
                     "            const float fades = expf(stats[2 * piece] - from);\n"
                     "            total += fades * stats[2 * piece + 1];\n"
                     "            x += fades * parts[(part + piece) * wide + c];\n"
                     "        }\n",
               t->index, ATTENTION_THREADS, (long long)(attention_members(d) * d->rows * d->wide), ATTENTION_THREADS, (long long)l->pieces, t->index, (long long)l->stats, (long long)l->pieces, (long long)l->pieces);
    attention_put_result(&in, false, 2);
    buf_puts(&body, "    }\n");
    put_body(t, &body);
    buf_puts(t->b, "}\n");
}

/* ---- the forms ---- */

static void put_form(const AttentionText *t, const TileForm *form, const AttentionSteps *by)
{
    Buf           body = { 0 };
    AttentionText in = with_body(t, &body);
    in.form = form;
    in.l.by = *by;
    (t->l.few ? attention_put_few : attention_put_tiles)(&in);
    put_body(t, &body);
}

static void put_forms(const AttentionText *t)
{
    const bool tensor = t->l.tensor.step > 0;
    if (tensor) {
        buf_puts(t->b, "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n");
        put_form(t, &attention_fragments, &t->l.tensor);
        buf_puts(t->b, "#else\n");
    }
    put_form(t, &attention_lanes, &t->l.by);
    buf_puts(t->b, tensor ? "#endif\n}\n" : "}\n");
}

/* ---- the launcher ---- */

void cuda_put_attention_head(Buf *b, const LibraryCall *x, const char *linkage, const char *prefix)
{
    buf_printf(b, "%s cudaError_t %s%s%s_launch(cudaStream_t stream, void *r0, const void *q, const void *k, const void *v", linkage, prefix ? prefix : "", prefix ? "_" : "", x->name);
    if (x->attention->of[3])
        buf_puts(b, ", const void *t");
    for (int32_t p = 0; x->tile && p < x->tile->n_operands - 1; p++)
        if (kernel_uses_param(x->tile, p))
            buf_printf(b, ", const void *p%d", p);
    buf_puts(b, x->temp_bytes > 0 ? ", void *memory)" : ")");
}

static int64_t most_blocks(const Device *v)
{
    return (int64_t)(WAVES * v->units * v->warps / (ATTENTION_THREADS / WARP));
}

static void put_launcher(const AttentionText *t, const Program *p, const char *linkage, const char *prefix)
{
    const char   *in = attention_type(t->c->in), *out = attention_type(t->c->out);
    const int64_t most = most_blocks(p->device), blocks = t->l.tiles < most ? t->l.tiles : most;
    const bool    joins = t->l.pieces > 1;
    buf_putc(t->b, '\n');
    cuda_put_attention_head(t->b, t->x, linkage, prefix);
    buf_printf(t->b, "\n{\n    %s hlo_launch%s(stream, %lld, %d, ", joins ? "const cudaError_t e =" : "return", t->l.few ? "" : "_shared", (long long)blocks, ATTENTION_THREADS);
    if (!t->l.few)
        buf_printf(t->b, "%lld, ", (long long)attention_shared(&t->l));
    buf_printf(t->b, "%s_kernel, (%s *)r0, (const %s *)q, (const %s *)k, (const %s *)v", t->name, out, in, in, in);
    if (uses_term(t))
        buf_printf(t->b, ", (const %s *)t", attention_type(t->c->of[3]->shape->type));
    put_others(t, true);
    buf_puts(t->b, joins ? ", (float *)memory);\n" : ");\n");
    if (joins) {
        const int64_t elements = attention_members(t->d) * t->d->rows * t->d->wide, wanted = (elements + ATTENTION_THREADS - 1) / ATTENTION_THREADS;
        buf_printf(t->b, "    return e ? e : hlo_launch(stream, %lld, %d, %s_join, (%s *)r0", (long long)(wanted < most ? wanted : most), ATTENTION_THREADS, t->name, out);
        if (uses_term(t))
            buf_printf(t->b, ", (const %s *)t", attention_type(t->c->of[3]->shape->type));
        buf_puts(t->b, ", (const float *)memory);\n");
    }
    buf_puts(t->b, "}\n");
}

/* Whether a call before has the same function of a score, for places of the same type. */
static bool is_score_there(const Program *p, const LibraryCall *x)
{
    for (int32_t k = 0; p->calls[k] != x; k++)
        if (p->calls[k]->attention && p->calls[k]->tile && p->calls[k]->tile_function == x->tile_function && is_wide(p->calls[k]) == is_wide(x))
            return true;
    return false;
}

void cuda_put_attention(Buf *b, const Program *p, const LibraryCall *x, const char *linkage, const char *prefix)
{
    Arena        *a = arena_new();
    AttentionText t = { .b = b, .arena = a, .x = x, .c = x->attention, .d = &x->attention->d, .index = is_wide(x) ? "int64_t" : "int", .name = x->name };
    attention_launch(x->attention, p->device, &t.l);
    t.score = x->tile ? p->functions[x->tile_function].name : NULL;
    buf_putc(b, '\n');
    c_origin(b, x->inst);
    if (t.score && !is_score_there(p, x))
        put_score_function(&t);
    buf_printf(b, "static __global__ void __launch_bounds__(%d) %s_kernel", ATTENTION_THREADS, x->name);
    put_params(&t);
    put_forms(&t);
    if (t.l.pieces > 1)
        put_join(&t);
    put_launcher(&t, p, linkage, prefix);
    arena_free(a);
}

void cuda_attention_call(Buf *b, const LibraryCall *x, const char *const *args)
{
    const int32_t own = x->attention->n, others = x->tile ? x->tile->n_operands - 1 : 0;
    buf_printf(b, "stream, %s", args[own + others]);
    for (int32_t k = 0; k < own; k++)
        buf_printf(b, ", %s", args[k]);
    for (int32_t k = 0; k < others; k++)
        if (kernel_uses_param(x->tile, k))
            buf_printf(b, ", %s", args[own + k]);
    if (x->temp_bytes > 0)
        buf_printf(b, ", %s", args[own + others + 1]);
    buf_putc(b, ')');
}

/* ---- a program's ---- */

AttentionUses cuda_attention_uses(const Program *p)
{
    AttentionUses uses = { false };
    for (int32_t k = 0; k < p->n_calls; k++) {
        AttentionLaunch l;
        if (!p->calls[k]->attention)
            continue;
        attention_launch(p->calls[k]->attention, p->device, &l);
        uses.some = true;
        uses.shared |= !l.few;
        uses.tensor |= l.tensor.step > 0;
    }
    return uses;
}

/* Whether its weights are rounded to the type of its operands. */
static bool rounds_weights(const AttentionCall *c, const Device *v)
{
    AttentionLaunch l;
    attention_launch(c, v, &l);
    return c->d.rounded || l.tensor.step > 0;
}

const char *cuda_attention_function(const Program *p, int32_t *at)
{
    static const struct {
        Type        type;
        bool        in;
        const char *name;
    } functions[] = {
        { TYPE_F32, true, "max_f32" }, { TYPE_F16, true, "max_f32" }, { TYPE_BF16, true, "max_f32" }, { TYPE_F16, true, "f16_to_f32" }, { TYPE_BF16, true, "bf16_to_f32" },
        { TYPE_F16, false, "f32_to_f16" }, { TYPE_BF16, false, "f32_to_bf16" },
    };
    for (; *at < (int32_t)(sizeof functions / sizeof *functions); ++*at)
        for (int32_t k = 0; k < p->n_calls; k++) {
            const AttentionCall *c = p->calls[k]->attention;
            if (c && ((functions[*at].in ? c->in : c->out) == functions[*at].type || (c->in == functions[*at].type && rounds_weights(c, p->device))))
                return functions[(*at)++].name;
        }
    return NULL;
}
