/* Parts that follow each other as one launch, where groups of iterations have nothing to do with other groups in any of them (KStmt.group): the passes of a sort, until its runs are longer than a group of
 * MOST_GROUP. A block does a group in all parts:
 *
 *     for (int block = blockIdx.x; block < 3; block += gridDim.x) {
 *         {
 *             const int i0 = block;
 *             for (int i1 = threadIdx.x; i1 < 200; i1 += 256) {
 *                 ...
 *             }
 *         }
 *         __syncthreads();
 *         {
 *             ... */
#include "target-cuda/part.h"

enum { MOST_GROUP = 2048, MOST_GROUP_THREADS = 512 };

typedef struct Group {
    const IxAtom *loop;
    int64_t       size;
    bool          bad;
} Group;

static void see_store(void *cookie, const KStmt *s)
{
    Group *g = cookie;
    if (s->kind != KS_STORE)
        return;
    g->bad |= s->group == 0 || (g->size > 0 && s->group != g->size);
    g->size = s->group;
    g->loop = s->group_loop;
}

/* The groups of its last loop; 0: it has none, or they are too large. */
static int64_t group_of(const CudaPart *part)
{
    const ThreadPart *t = &part->threads;
    Group             g = { 0 };
    KVisitor          v = { NULL, see_store, &g };
    if (part->share != BY_THREAD || part->width != 1 || part->copy || t->count == 0 || t->n_loops == 0)
        return 0;
    kernel_visit(t->body, &v);
    return !g.bad && g.loop == t->loops[t->n_loops - 1] && g.loop->lo == 0 && MOST_GROUP % g.size == 0 ? g.size : 0;
}

static bool same_loops(const ThreadPart *x, const ThreadPart *y)
{
    bool same = x->n_loops == y->n_loops;
    for (int32_t j = 0; j < x->n_loops && same; j++)
        same = x->loops[j]->lo == y->loops[j]->lo && x->loops[j]->hi == y->loops[j]->hi;
    return same;
}

/* A group of q lies where one of p does, if anything of q does. */
static bool lies_alike(const Kernel *k, const KArray *p, const KArray *q)
{
    return !kernel_same_memory(k, p, q) || (p->count == q->count && type_bytes(storage_type(p->type)) == type_bytes(storage_type(q->type)));
}

static bool results_lie_alike(const Kernel *k, const CudaPart *earlier, const CudaPart *part)
{
    for (int32_t p = 0; p < k->n_operands; p++)
        for (int32_t r = k->n_operands; r < k->n_operands + k->n_results; r++)
            if (earlier->threads.whole.uses[p] && part->threads.whole.uses[r] && !lies_alike(k, k->params[p], k->params[r]))
                return false;
    return true;
}

int32_t cuda_count_passes(const Kernel *k, int32_t n, const CudaPart *parts)
{
    int32_t m = 1;
    if (n < 2 || group_of(&parts[0]) == 0)
        return 1;
    for (; m < n && group_of(&parts[m]) > 0 && same_loops(&parts[0].threads, &parts[m].threads); m++)
        for (int32_t j = 0; j < m; j++)
            if (!results_lie_alike(k, &parts[j], &parts[m]))
                return m;
    return m;
}

static int64_t line_of(const CudaPart *part)
{
    return part->threads.loops[part->threads.n_loops - 1]->hi + 1;
}

/* The first part's launch: how much of a line a block does. */
static int64_t span_of(const CudaPart *part)
{
    return line_of(part) < MOST_GROUP ? line_of(part) : MOST_GROUP;
}

int cuda_passes_threads(const CudaPart *part)
{
    const int64_t span = span_of(part);
    return span <= THREADS / 2 ? THREADS / 2 : span <= THREADS ? THREADS : MOST_GROUP_THREADS;
}

static int64_t pieces_of(const CudaPart *part)
{
    return (line_of(part) + MOST_GROUP - 1) / MOST_GROUP;
}

int64_t cuda_passes_blocks(const CudaPart *part)
{
    return part->threads.count / line_of(part) * pieces_of(part);
}

static void put_arrays(Buf *b, Arena *a, const CudaPart *parts, int32_t n)
{
    int32_t room = 0, m = 0;
    for (int32_t j = 0; j < n; j++)
        room += parts[j].threads.whole.n_arrays;
    KArray   **all = ARENA_ARRAY(a, KArray *, room);
    KernelPart whole = parts[0].threads.whole;
    for (int32_t j = 0; j < n; j++)
        for (int32_t i = 0; i < parts[j].threads.whole.n_arrays; i++) {
            KArray *x = parts[j].threads.whole.arrays[i];
            bool    seen = false;
            for (int32_t e = 0; e < m; e++)
                seen |= all[e] == x;
            all[m] = x;
            m += !seen;
        }
    whole.arrays = all;
    whole.n_arrays = m;
    dialect_arrays(b, parts[0].dialect, &whole);
}

/* "const int i0 = block / 4;" of the loops but the last. */
static void put_values(Buf *b, const CudaPart *part)
{
    const ThreadPart *t = &part->threads;
    int64_t           inner = cuda_passes_blocks(part);
    for (int32_t j = 0; j + 1 < t->n_loops; j++) {
        const int64_t trips = t->loops[j]->hi - t->loops[j]->lo + 1;
        inner /= trips;
        buf_printf(b, "%s%s = ", j ? ", " : "            const int ", t->loops[j]->name);
        buf_puts(b, "block");
        if (inner > 1)
            buf_printf(b, " / %lld", (long long)inner);
        if (j > 0)
            buf_printf(b, " %% %lld", (long long)trips);
        if (t->loops[j]->lo != 0)
            buf_printf(b, " + %lld", (long long)t->loops[j]->lo);
    }
    buf_puts(b, t->n_loops > 1 ? ";\n" : "");
}

static void put_pass(Buf *b, const CudaPart *part, int threads)
{
    const char     *i = part->threads.loops[part->threads.n_loops - 1]->name;
    const long long pieces = pieces_of(part), line = line_of(part);
    buf_puts(b, "        {\n");
    put_values(b, part);
    buf_printf(b, "            for (int %s = ", i);
    if (pieces > 1)
        buf_printf(b, "block %% %lld * %d + ", pieces, MOST_GROUP);
    buf_printf(b, "threadIdx.x; %s < %lld", i, line);
    if (pieces > 1)
        buf_printf(b, " && %s < (block %% %lld + 1) * %d", i, pieces, MOST_GROUP);
    buf_printf(b, "; %s += %d) {\n", i, threads);
    dialect_block(b, part->dialect, part->threads.body, 4);
    buf_puts(b, "            }\n        }\n");
}

void cuda_passes_body(Buf *b, const CudaPart *parts)
{
    Arena        *a = arena_new();
    const int32_t n = parts[0].abreast;
    put_arrays(b, a, parts, n);
    for (int32_t j = 0; j < n; j++)
        dialect_block(b, parts[j].dialect, parts[j].threads.before, 1);
    buf_printf(b, "    for (int block = blockIdx.x; block < %lld; block += gridDim.x) {\n", (long long)cuda_passes_blocks(parts));
    for (int32_t j = 0; j < n; j++) {
        buf_puts(b, j ? "        __syncthreads();\n" : "");
        put_pass(b, &parts[j], cuda_passes_threads(parts));
    }
    buf_puts(b, "    }\n");
    arena_free(a);
}
