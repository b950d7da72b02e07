/* Parts that threads share. A warp for each of many short rows, half or a quarter of one for rows of less than 32 or 16; a block for each long one; for a column's sum or choice a block of 32 columns, eight threads for each:
 *
 *     for (int i0 = blockIdx.x * 8 + threadIdx.x / 32; i0 < 64; i0 += gridDim.x * 8) {
 *         float acc = 0.0f;
 *         for (int i1 = lane; i1 < 250; i1 += 32)
 *             acc += x[i0 * 250 + i1];
 *         acc = hlo_warp_reduce(acc, [](float a, float b) { return a + b; });
 *         if (lane == 0)
 *             rows[i0] = acc;
 *     }
 *
 * Whoever combines does so in an order that depends on nothing but the sizes. Arrays of a row are shared memory, of which each thread sees its own elements. */
#include "analysis/columns.h"
#include "support/buf.h"
#include "target-cuda/part.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_LANES = 8, SHORT_ROW = 512, LONG_ROW = 8192, SHARED_ALIGN = 16 };

/* Terms of its longest sum. */
static int64_t terms_of(const RowPart *r)
{
    int64_t most = r->longest;
    for (int32_t j = 0; j < r->n_steps; j++)
        if (r->steps[j].beside) {
            const IxAtom *x = r->steps[j].dealt->loop, *y = r->steps[j].beside->loop;
            const int64_t n = (x->hi - x->lo + 1) * (y->hi - y->lo + 1);
            most = n > most ? n : most;
        }
    return most;
}

static int lanes_of(const RowPart *r)
{
    int lanes = LEAST_LANES;
    while (lanes < WARP && (2 * lanes <= r->longest || r->array_bytes * (THREADS / lanes) > STATIC_SHARED))
        lanes *= 2;
    return lanes;
}

/* Threads do rows of less than 16 one by one, unless there are too few threads, or those are what the memory's time goes into and alone.c has no form for them. */
static bool is_worth_sharing(Arena *a, const CudaPart *part)
{
    const RowPart *r = &part->row;
    const bool     few = part->threads.count < THREADS * part->device->units;
    return part->n_gathered > 0 || r->longest >= 2 * LEAST_LANES ||
           (part->threads.n_loops > 0 && !r->column && (r->sums || r->scans) && part->lanes == LEAST_LANES && (few || (r->own && !cuda_can_be_alone(a, part))));
}

static void choose_rows(Arena *a, const Kernel *k, CudaPart *part)
{
    const ThreadPart *t = &part->threads;
    const RowPart    *r = &part->row;
    part->lanes = lanes_of(r);
    if (!is_worth_sharing(a, part))
        return;
    if (r->column && (r->n_loops > 1 || r->array_bytes > 0))
        cuda_choose_columns(a, k, part);
    else if (r->column)
        part->share = t->count < THREADS * part->device->units ? BY_COLUMN : BY_THREAD;
    else if (t->n_loops > 0 && terms_of(r) <= SHORT_ROW && r->array_bytes * (THREADS / part->lanes) <= STATIC_SHARED)
        part->share = BY_WARP;
    else if (r->array_bytes <= STATIC_SHARED || r->array_bytes + SHARED_BESIDE <= part->device->shared)
        part->share = BY_BLOCK;
}

/* Rows that are gathered from are arrays of the row like others, but for what is asked for when a kernel is launched. A long sum is cut instead: its pieces are many blocks'. */
static bool choose_gathered(Arena *a, const Kernel *k, CudaPart *part)
{
    CudaPart x = *part;
    if (!cuda_find_gathered(a, k, &x) || kernel_row_split(k, &x.threads, &x.row).pieces > 1)
        return false;
    x.row.array_bytes += cuda_gathered_shared(&x);
    choose_rows(a, k, &x);
    if (x.row.array_bytes > STATIC_SHARED || (x.share != BY_WARP && x.share != BY_BLOCK))
        return false;
    *part = x;
    return true;
}

void cuda_choose_share(Arena *a, const Kernel *k, CudaPart *part)
{
    const ThreadPart *t = &part->threads;
    part->share = t->n_loops > 0 ? BY_THREAD : BY_ONE;
    if (t->count > 0 && cuda_choose_tiles(a, part)) {
        part->share = BY_TILE;
        return;
    }
    if (t->count > 0 && cuda_choose_turn(a, k, part)) {
        part->share = BY_TURN;
        return;
    }
    if (t->count == 0 || choose_gathered(a, k, part))
        return;
    cuda_order_loops(a, part);
    if (kernel_row_part(a, k, t, &part->row))
        choose_rows(a, k, part);
}

int cuda_part_threads(const CudaPart *part)
{
    if (part->passes)
        return cuda_passes_threads(part);
    if (part->share == BY_ONE)
        return part->abreast > 1 ? THREADS : 1;
    if (part->n_alone > 0)
        return part->alone_threads;
    if (part->share == BY_COLUMN)
        return cuda_column_threads(part);
    return part->share == BY_BLOCK && part->stage == 0 && part->row.longest >= LONG_ROW ? LONG_ROW_THREADS : THREADS;
}

static int rows_of_block(const CudaPart *part)
{
    return part->share == BY_BLOCK && part->between > 1 ? part->between : 1;
}

int64_t cuda_part_blocks(const CudaPart *part)
{
    int64_t count = part->threads.count, each = 1;
    if (part->passes)
        return cuda_passes_blocks(part) < cuda_most_blocks(part) ? cuda_passes_blocks(part) : cuda_most_blocks(part);
    switch (part->share) {
    case BY_ONE: return 1;
    case BY_THREAD: each = cuda_part_threads(part) * part->width; break;
    case BY_WARP: each = THREADS / part->lanes; break;
    case BY_BLOCK: each = rows_of_block(part); break;
    case BY_COLUMN: each = WARP; break;
    case BY_TILE: return cuda_tile_blocks(part);
    case BY_TURN: return cuda_turn_blocks(part);
    }
    int64_t blocks = (count + each - 1) / each * (part->stage == 1 ? part->split.pieces : 1);
    return blocks < cuda_most_blocks(part) ? blocks : cuda_most_blocks(part);
}

int64_t cuda_most_blocks(const CudaPart *part)
{
    const double blocks = part->device->units * part->device->warps * WARP / cuda_part_threads(part) * WAVES;
    return blocks < 1 ? 1 : blocks > INT32_MAX ? INT32_MAX : (int64_t)blocks;
}

/* Of an array for each of so many rows. Where arrays lie beside each other, each begins at a multiple of SHARED_ALIGN. */
static int64_t shared_bytes(const KArray *x, int64_t each)
{
    return (each * x->count * type_bytes(x->type) + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
}

int64_t cuda_part_shared(const CudaPart *part)
{
    int64_t bytes = 0;
    const int64_t each = part->share == BY_BLOCK ? 1 : part->share == BY_COLUMN ? WARP : 0, most = part->share == BY_COLUMN ? STATIC_SHARED - COLUMN_PARTS : STATIC_SHARED;
    for (int32_t j = 0; j < part->row.n_steps && part->row.array_bytes * each > most; j++)
        if (part->row.steps[j].stmt->kind == KS_ARRAY)
            bytes += shared_bytes(part->row.steps[j].stmt->array, each);
    return bytes;
}

void cuda_row_services(Buf *b, bool group, bool warp, bool block, bool column, bool asked)
{
    if (asked)
        buf_puts(b, "\nextern __shared__ __align__(128) unsigned char hlo_smem[]; // as much as the launch asks for\n"
                    "\ntemplate <typename... Params, typename... Args>\n"
                    "static cudaError_t hlo_launch_shared(cudaStream_t stream, unsigned blocks, unsigned threads, int shared, void (*kernel)(Params...), Args... args)\n"
                    "{\n"
                    "    cudaLaunchConfig_t config = {};\n"
                    "    config.gridDim = dim3(blocks);\n"
                    "    config.blockDim = dim3(threads);\n"
                    "    config.dynamicSmemBytes = (size_t)shared;\n"
                    "    config.stream = stream;\n"
                    "    const cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);\n"
                    "    return e ? e : cudaLaunchKernelEx(&config, kernel, args...);\n"
                    "}\n");
    if (group)
        buf_puts(b, "\n/* The values of so many lanes of a warp as one, which all of them get; group: their mask. */\n"
                    "template <int lanes, typename T, typename Combine> static __device__ inline T hlo_group_reduce(T v, unsigned group, Combine combine)\n"
                    "{\n"
                    "    for (int by = lanes / 2; by > 0; by /= 2)\n"
                    "        v = (T)combine(v, (T)__shfl_xor_sync(group, v, by));\n"
                    "    return v;\n"
                    "}\n");
    if (warp || block)
        buf_puts(b, "\n/* The values of a warp's lanes as one, which all of them get. */\n"
                    "template <typename T, typename Combine> static __device__ inline T hlo_warp_reduce(T v, Combine combine)\n"
                    "{\n"
                    "    for (int by = 16; by > 0; by /= 2)\n"
                    "        v = (T)combine(v, (T)__shfl_xor_sync(0xffffffffu, v, by));\n"
                    "    return v;\n"
                    "}\n");
    if (block)
        buf_puts(b, "\n/* The values of a block's threads as one, which all of them get; parts: shared, one for each warp. */\n"
                    "template <int warps, typename T, typename Combine> static __device__ inline T hlo_block_reduce(T v, T (&parts)[warps], Combine combine)\n"
                    "{\n"
                    "    v = hlo_warp_reduce(v, combine);\n"
                    "    __syncthreads(); // parts may still be read, of the row before\n"
                    "    if (threadIdx.x % 32 == 0)\n"
                    "        parts[threadIdx.x / 32] = v;\n"
                    "    __syncthreads();\n"
                    "    v = parts[0];\n"
                    "    for (int w = 1; w < warps; w++)\n"
                    "        v = (T)combine(v, parts[w]);\n"
                    "    return v;\n"
                    "}\n");
    if (column)
        buf_puts(b, "\n/* The values that the threads of a column have, one in each warp, as one. */\n"
                    "template <int warps, typename T, typename Combine> static __device__ inline T hlo_column_reduce(T v, T (&parts)[warps][32], Combine combine)\n"
                    "{\n"
                    "    __syncthreads(); // parts may still be read, of the columns before\n"
                    "    parts[threadIdx.x / 32][threadIdx.x % 32] = v;\n"
                    "    __syncthreads();\n"
                    "    v = parts[0][threadIdx.x % 32];\n"
                    "    for (int w = 1; w < warps; w++)\n"
                    "        v = (T)combine(v, parts[w][threadIdx.x % 32]);\n"
                    "    return v;\n"
                    "}\n");
}

/* ---- shared memory ---- */

/* An array of a row; *at: where it is in what the launch asks for. */
static void put_shared_array(Buf *b, const CudaPart *part, const KArray *x, bool asked, int64_t *at)
{
    const char *const aligned = part->width > 1 ? "__align__(16) " : "", *const type = dialect_type(&cuda_dialect, storage_type(x->type));
    const bool        column = part->share == BY_COLUMN;
    if (part->share == BY_WARP)
        buf_printf(b, "    __shared__ %s%s %s_rows[%d][%lld];\n", aligned, type, x->name, THREADS / part->lanes, (long long)x->count);
    else if (asked) {
        buf_printf(b, "    %s *const %s%s = (%s *)(hlo_smem + %lld);\n", type, x->name, column ? "_columns" : "", type, (long long)*at);
        *at += shared_bytes(x, column ? WARP : 1);
    } else
        buf_printf(b, "    __shared__ %s%s %s%s[%lld];\n", aligned, type, x->name, column ? "_columns" : "", (long long)x->count * (column ? WARP : 1));
}

static void put_shared(Buf *b, const CudaPart *part)
{
    int     warps = cuda_part_threads(part) / WARP;
    int64_t at = 0;
    bool    asked = cuda_part_shared(part) > 0;
    cuda_put_gathered_arrays(b, part);
    for (int32_t j = 0; j < part->row.n_steps; j++) {
        const RowStep *s = &part->row.steps[j];
        if (s->stmt->kind == KS_ARRAY)
            put_shared_array(b, part, s->stmt->array, asked, &at);
        for (int32_t k = 0; k < s->n_combined && part->share != BY_WARP; k++) {
            const KTemp *acc = s->combined[k]->temp;
            buf_printf(b, "    __shared__ %s %s_parts[%d]", dialect_type(&cuda_dialect, acc->type), acc->name, warps);
            if (part->share == BY_COLUMN || rows_of_block(part) > 1)
                buf_printf(b, "[%d]", part->share == BY_COLUMN ? WARP : rows_of_block(part));
            buf_puts(b, ";\n");
        }
        for (int32_t k = 0; k < s->n_chosen && part->share != BY_WARP; k++)
            buf_printf(b, "    __shared__ %s %s_parts[%d]%s;\n", dialect_type(&cuda_dialect, s->chosen[k]->type), s->chosen[k]->element_of->name, warps,
                       part->share == BY_COLUMN ? "[32]" : "");
    }
}

/* ---- steps ---- */

/* Of lanes: `group` is their mask. */
bool cuda_in_groups(const CudaPart *part)
{
    return part->share == BY_WARP && part->lanes < WARP;
}

static const char *sync_lanes(const CudaPart *part)
{
    return cuda_in_groups(part) ? "__syncwarp(group)" : "__syncwarp()";
}

const char *cuda_dealt_to(const CudaPart *part)
{
    return part->share == BY_WARP ? "lane" : part->share == BY_BLOCK ? "threadIdx.x" : "share";
}

static int dealt_among(const CudaPart *part)
{
    return part->share == BY_WARP ? part->lanes : part->share == BY_BLOCK ? cuda_part_threads(part) : cuda_part_threads(part) / WARP;
}

int64_t cuda_threads_beside(const CudaPart *part, const RowStep *step)
{
    if (!step->beside || part->share == BY_COLUMN || part->width > 1)
        return 1;
    const int64_t n = step->beside->loop->hi - step->beside->loop->lo + 1, most = dealt_among(part) < WARP ? dealt_among(part) : WARP;
    int64_t       even = n & -n, up = 1;
    while (up < n)
        up *= 2;
    if (n > step->dealt->loop->hi - step->dealt->loop->lo)
        return up < dealt_among(part) ? up : dealt_among(part);
    if (even < LEAST_LANES && up <= most && 8 * n >= 5 * up)
        return up;
    return even < most ? even : most;
}

/* beside: that many threads share an iteration. */
static void put_dealt_for(Buf *b, const CudaPart *part, const KStmt *s, int64_t beside, int depth)
{
    int64_t     n = dealt_among(part) / beside;
    const char *i = part->width > 1 ? "base" : s->loop->name;
    if (part->share == BY_COLUMN) /* reads under way at once */
        buf_printf(b, "%*s#pragma unroll 8\n", 4 * depth, "");
    buf_printf(b, "%*sfor (%s %s = ", 4 * depth, "", part->dialect->index, i);
    if (part->stage == 1)
        buf_printf(b, "piece * %lld + ", (long long)part->split.length);
    if (s->loop->lo != 0)
        buf_printf(b, "%lld + ", (long long)s->loop->lo);
    buf_puts(b, cuda_dealt_to(part));
    if (beside > 1)
        buf_printf(b, " / %lld", (long long)beside);
    if (part->width > 1)
        buf_printf(b, " * %d", part->width);
    buf_puts(b, "; ");
    if (part->share == BY_COLUMN && part->row.n_loops > 1 && part->threads.count % WARP != 0)
        buf_printf(b, "first + lane < %lld && ", (long long)part->threads.count);
    const bool even = part->stage == 1 && (s->loop->hi + 1 - s->loop->lo) % part->split.length == 0;
    if (part->stage == 1)
        buf_printf(b, "%s < (piece + 1) * %lld", i, (long long)part->split.length);
    if (part->stage == 1 && s->loop->lo != 0)
        buf_printf(b, " + %lld", (long long)s->loop->lo);
    if (!even)
        buf_printf(b, "%s%s < %lld", part->stage == 1 ? " && " : "", i, (long long)s->loop->hi + 1);
    buf_printf(b, "; %s += %lld)%s\n", i, (long long)n * part->width, part->width > 1 || dialect_wants_braces(s->body) ? " {" : "");
}

void cuda_put_combination(Buf *b, const KExpr *v, const char *x, const char *y)
{
    if (v->kind == KX_CALL)
        buf_printf(b, "%s(%s, %s)", v->fn, x, y);
    else
        buf_printf(b, "%s %s %s", x, v->op == KOP_ADD ? "+" : v->op == KOP_MUL ? "*" : v->op == KOP_AND ? "&" : v->op == KOP_OR ? "|" : "^", y);
}

/* What the threads have of each accumulator as one. */
static void put_reduce(Buf *b, const CudaPart *part, const RowStep *step, int depth)
{
    for (int32_t k = 0; k < step->n_combined; k++) {
        const KTemp *acc = step->combined[k]->temp;
        const char  *type = dialect_type(&cuda_dialect, acc->type);
        if (cuda_in_groups(part))
            buf_printf(b, "%*s%s = hlo_group_reduce<%d>(%s, group, ", 4 * depth, "", acc->name, part->lanes, acc->name);
        else if (part->share == BY_WARP)
            buf_printf(b, "%*s%s = hlo_warp_reduce(%s, ", 4 * depth, "", acc->name, acc->name);
        else if (rows_of_block(part) > 1)
            buf_printf(b, "%*s%s = hlo_between_reduce<%lld, %d>(%s, %s_parts, ", 4 * depth, "", acc->name, (long long)part->piece, part->between, acc->name, acc->name);
        else
            buf_printf(b, "%*s%s = hlo_%s_reduce(%s, %s_parts, ", 4 * depth, "", acc->name, part->share == BY_BLOCK ? "block" : "column", acc->name, acc->name);
        buf_printf(b, "[](%s a, %s b) { return ", type, type);
        cuda_put_combination(b, step->combined[k]->value, "a", "b");
        buf_puts(b, "; });\n");
    }
}

/* ---- choices of pairs ---- */

static const KTemp *minds_nan(const RowStep *step)
{
    for (int32_t k = 0; k < step->n_chosen; k++)
        if (step->chosen[k]->minds_nan)
            return step->chosen[k];
    return NULL;
}

/* What the loop's body makes of its elements, of those of other threads: their accumulators between `before` and `behind`. */
static void put_chosen(Buf *b, const CudaPart *part, const RowStep *step, const char *before, const char *behind, int depth)
{
    for (int32_t k = 0; k < step->n_chosen; k++) {
        const KTemp *x = step->chosen[k];
        buf_printf(b, "%*sconst %s %s = %s%s%s;\n", 4 * depth, "", dialect_type(&cuda_dialect, x->type), x->name, before, x->element_of->name, behind);
    }
    for (const KStmt *s = step->choose; s; s = s->next)
        dialect_stmt(b, part->dialect, s, depth);
}

/* Through shared memory: of warps that have the same already the first lanes', of a column what each of its threads has. */
static void put_chosen_parts(Buf *b, const CudaPart *part, const RowStep *step, int depth)
{
    const bool column = part->share == BY_COLUMN;
    const int  in = 4 * depth;
    buf_printf(b, "%*s__syncthreads(); // parts may still be read, of the %s before\n", in, "", column ? "columns" : "row");
    if (!column)
        buf_printf(b, "%*sif (threadIdx.x %% 32 == 0) {\n", in, "");
    for (int32_t k = 0; k < step->n_chosen; k++) {
        const char *acc = step->chosen[k]->element_of->name;
        buf_printf(b, "%*s%s_parts[%s] = %s;\n", column ? in : in + 4, "", acc, column ? "share][lane" : "threadIdx.x / 32", acc);
    }
    if (!column)
        buf_printf(b, "%*s}\n", in, "");
    buf_printf(b, "%*s__syncthreads();\n%*sfor (int warp = 0; warp < %d; warp++) {\n", in, "", in, "", cuda_part_threads(part) / WARP);
    put_chosen(b, part, step, "", column ? "_parts[warp][lane]" : "_parts[warp]", depth + 1);
    buf_printf(b, "%*s}\n", in, "");
}

/* All threads have the same afterwards. Where an element is NaN the order matters: then each goes through the row from first to last. */
static void put_choice(Buf *b, const CudaPart *part, const RowStep *step, int depth)
{
    const bool block = part->share != BY_WARP;
    const int  in = 4 * depth;
    if (part->share != BY_COLUMN) {
        buf_printf(b, "%*sfor (int by = %d; by > 0; by /= 2) {\n", in, "", block ? WARP / 2 : part->lanes / 2);
        put_chosen(b, part, step, cuda_in_groups(part) ? "__shfl_xor_sync(group, " : "__shfl_xor_sync(0xffffffffu, ", ", by)", depth + 1);
        buf_printf(b, "%*s}\n", in, "");
    }
    if (block)
        put_chosen_parts(b, part, step, depth);
    if (!minds_nan(step))
        return;
    buf_printf(b, "%*sif (%s) {\n", in, "", block ? "__syncthreads_or(odd)" : cuda_in_groups(part) ? "__any_sync(group, odd)" : "__any_sync(0xffffffffu, odd)");
    for (int32_t k = 0; k < step->n_chosen; k++) {
        buf_printf(b, "%*s%s = ", in + 4, "", step->starts[k]->temp->name);
        dialect_expr(b, part->dialect, step->starts[k]->value);
        buf_puts(b, ";\n");
    }
    dialect_stmt(b, part->dialect, step->stmt, depth + 1);
    buf_printf(b, "%*s%s; // the %s may be overwritten from here on\n%*s}\n", in + 4, "", block ? "__syncthreads()" : sync_lanes(part), part->share == BY_COLUMN ? "columns" : "row", in, "");
}

/* Its iterations are the threads' that share one of the loop around it. */
static void put_beside(Buf *b, const CudaPart *part, const KStmt *s, int64_t beside, int depth)
{
    const bool braces = dialect_wants_braces(s->body);
    buf_printf(b, "%*sfor (%s %s = ", 4 * depth, "", part->dialect->index, s->loop->name);
    if (s->loop->lo != 0)
        buf_printf(b, "%lld + ", (long long)s->loop->lo);
    buf_printf(b, "%s %% %lld; %s < %lld; %s += %lld)%s\n", cuda_dealt_to(part), (long long)beside, s->loop->name, (long long)s->loop->hi + 1, s->loop->name, (long long)beside,
               braces ? " {" : "");
    dialect_block(b, part->dialect, s->body, depth + 1);
    if (braces)
        buf_printf(b, "%*s}\n", 4 * depth, "");
}

static void put_nest(Buf *b, const CudaPart *part, const RowStep *step, int depth)
{
    int            from = depth;
    const KStmt   *s = step->stmt;
    const KTemp   *odd = minds_nan(step);
    if (step->scan) {
        cuda_put_scan(b, part, step, depth);
        return;
    }
    if (odd)
        buf_printf(b, "%*sint odd = 0; // there is a NaN\n", 4 * depth, "");
    for (; s != step->dealt; s = s->body->first)
        buf_printf(b, "%*sfor (%s %s = %lld; %s < %lld; %s++)\n", 4 * depth++, "", part->dialect->index, s->loop->name, (long long)s->loop->lo, s->loop->name,
                   (long long)s->loop->hi + 1, s->loop->name);
    const int64_t beside = cuda_threads_beside(part, step);
    put_dealt_for(b, part, s, beside * rows_of_block(part), depth);
    if (part->width > 1)
        cuda_put_packs(b, part, &part->packs[step - part->row.steps], depth + 1);
    else if (beside > 1)
        put_beside(b, part, step->beside, beside, depth + 1);
    else
        dialect_block(b, part->dialect, s->body, depth + 1);
    if (odd)
        buf_printf(b, "%*sodd |= %s != %s;\n", 4 * depth + 4, "", odd->name, odd->name);
    if (part->width > 1 || dialect_wants_braces(s->body))
        buf_printf(b, "%*s}\n", 4 * depth, "");
    if (step->n_chosen > 0)
        put_choice(b, part, step, from);
    else
        put_reduce(b, part, step, from);
}

/* Of the threads that share a row or column the one that stores. limit: what holds of columns that there are; NULL: of all. */
static void put_if_first(Buf *b, const CudaPart *part, const char *limit, int depth)
{
    if (part->share == BY_COLUMN)
        buf_printf(b, "%*sif (share == 0%s%s)", 4 * depth, "", limit ? " && " : "", limit ? limit : "");
    else if (rows_of_block(part) > 1)
        buf_printf(b, "%*sif (threadIdx.x < %lld && threadIdx.x %% %lld == 0)", 4 * depth, "", (long long)(part->piece * part->between), (long long)part->piece);
    else
        buf_printf(b, "%*sif (%s == 0)", 4 * depth, "", cuda_dealt_to(part));
}

static void put_store(Buf *b, const CudaPart *part, const char *limit, const KStmt *s, int depth)
{
    put_if_first(b, part, limit, depth);
    buf_putc(b, '\n');
    dialect_stmt(b, part->dialect, s, depth + 1);
}

/* What the tail stores may be what others of the warp have just read, and shuffles order no memory. */
static bool tail_may_overwrite(const RowPart *r)
{
    for (int32_t j = r->tail; j < r->n_steps; j++)
        if (r->steps[j].kind == ROW_STORE && !r->steps[j].stmt->array->restricted)
            return true;
    return false;
}

/* Several steps of one thread. */
static void put_tail(Buf *b, const CudaPart *part, const char *limit, int depth)
{
    put_if_first(b, part, limit, depth);
    buf_puts(b, " {\n");
    for (int32_t j = part->row.tail; j < part->row.n_steps; j++)
        dialect_stmt(b, part->dialect, part->row.steps[j].stmt, depth + 1);
    buf_printf(b, "%*s}\n", 4 * depth, "");
}

static void put_steps(Buf *b, const CudaPart *part, const char *limit, int depth)
{
    if (part->stage == 1) {
        for (int32_t j = 0; j + 1 < part->row.tail; j++)
            dialect_stmt(b, part->dialect, part->row.steps[j].stmt, depth);
        put_nest(b, part, &part->row.steps[part->row.tail - 1], depth);
        cuda_put_piece(b, part, &part->row.steps[part->row.tail - 1], limit, depth);
        return;
    }
    if (part->n_gathered > 0)
        cuda_put_gathered(b, part, part->share == BY_WARP ? sync_lanes(part) : "__syncthreads()", depth);
    bool    tail = part->row.n_steps > part->row.tail + 1;
    int32_t n = tail ? part->row.tail : part->row.n_steps;
    for (int32_t j = 0; j < part->row.n_steps; j++) {
        const RowStep *s = &part->row.steps[j];
        if (part->share == BY_WARP && (j == part->row.tail ? tail_may_overwrite(&part->row) : s->overwrites))
            buf_printf(b, "%*s%s;\n", 4 * depth, "", sync_lanes(part));
        if (j == n)
            break;
        if (s->kind == ROW_LOOP && part->stage == 2) {
            cuda_put_pieces(b, part, s, depth);
            put_reduce(b, part, s, depth);
        } else if (s->kind == ROW_LOOP)
            put_nest(b, part, s, depth);
        else if (s->kind == ROW_STORE)
            put_store(b, part, limit, s->stmt, depth);
        else if (s->stmt->kind == KS_DECLARE)
            dialect_stmt(b, part->dialect, s->stmt, depth);
        else if (part->share == BY_WARP)
            buf_printf(b, "%*s%s *const %s = %s_rows[threadIdx.x / %d];\n", 4 * depth, "", dialect_type(&cuda_dialect, storage_type(s->stmt->array->type)),
                       s->stmt->array->name, s->stmt->array->name, part->lanes);
        else if (part->share == BY_COLUMN)
            buf_printf(b, "%*s%s *const %s = %s_columns + lane;\n", 4 * depth, "", dialect_type(&cuda_dialect, storage_type(s->stmt->array->type)), s->stmt->array->name,
                       s->stmt->array->name);
    }
    if (tail)
        put_tail(b, part, limit, depth);
}

/* ---- rows ---- */

const char *cuda_row_number(const ThreadPart *t)
{
    return t->n_loops == 1 && t->loops[0]->lo == 0 ? t->loops[0]->name : "row";
}

static void put_rows(Buf *b, const CudaPart *part)
{
    const ThreadPart *t = &part->threads;
    const char       *i = cuda_row_number(t);
    if (part->share == BY_WARP)
        cuda_grid_loop(b, part, i, THREADS / part->lanes, part->lanes == WARP ? "threadIdx.x / 32" : part->lanes == WARP / 2 ? "threadIdx.x / 16" : "threadIdx.x / 8");
    else if (part->stage == 1)
        buf_printf(b, "    for (int at = blockIdx.x; at < %lld; at += gridDim.x) {\n        const int %s = at / %lld, piece = at %% %lld;\n",
                   (long long)(t->count * part->split.pieces), i, (long long)part->split.pieces, (long long)part->split.pieces);
    else if (rows_of_block(part) > 1) {
        char who[64];
        snprintf(who, sizeof who, "threadIdx.x / %lld %% %d", (long long)part->piece, part->between);
        cuda_grid_loop(b, part, i, part->between, who);
    } else
        cuda_grid_loop(b, part, i, 1, NULL);
    buf_puts(b, part->stage == 1 ? "" : " {\n");
    if (strcmp(i, "row") == 0)
        cuda_loop_values(b, part, i, NULL, 2);
    put_steps(b, part, NULL, 2);
    buf_puts(b, "    }\n");
}

/* Threads behind the last column do as the last one, but for what they store. */
static void put_columns(Buf *b, const CudaPart *part)
{
    const ThreadPart *t = &part->threads;
    const char       *i = cuda_row_number(t);
    Arena            *a = arena_new();
    const char       *limit = arena_printf(a, "first + lane < %lld", (long long)t->count);
    bool              even = t->count % WARP == 0;
    if (part->stage == 1)
        buf_printf(b, "    for (int at = blockIdx.x; at < %lld; at += gridDim.x) {\n        const int first = at / %lld * 32, piece = at %% %lld;\n",
                   (long long)((t->count + WARP - 1) / WARP * part->split.pieces), (long long)part->split.pieces, (long long)part->split.pieces);
    else
        buf_printf(b, "    for (%s first = blockIdx.x * 32; first < %lld; first += gridDim.x * 32) {\n", part->dialect->index, (long long)t->count);
    if (even)
        buf_printf(b, "        const %s %s = first + lane;\n", part->dialect->index, i);
    else
        buf_printf(b, "        const %s %s = %s ? first + lane : %lld;\n", part->dialect->index, i, limit, (long long)t->count - 1);
    if (strcmp(i, "row") == 0)
        cuda_loop_values(b, part, i, NULL, 2);
    put_steps(b, part, even ? NULL : limit, 2);
    buf_puts(b, "    }\n");
    arena_free(a);
}

void cuda_row_body(Buf *b, const CudaPart *part)
{
    put_shared(b, part);
    if (part->share == BY_WARP)
        buf_printf(b, "    const int lane = threadIdx.x %% %d;\n", part->lanes);
    if (cuda_in_groups(part) && (part->row.sums || part->row.scans || part->n_gathered > 0))
        buf_printf(b, "    const unsigned group = 0x%xu << threadIdx.x %% 32 / %d * %d;\n", (1u << part->lanes) - 1, part->lanes, part->lanes);
    if (part->share == BY_COLUMN)
        buf_puts(b, "    const int lane = threadIdx.x % 32, share = threadIdx.x / 32;\n");
    dialect_block(b, part->dialect, part->threads.before, 1);
    if (part->share == BY_COLUMN)
        put_columns(b, part);
    else if (part->threads.n_loops > 0)
        put_rows(b, part);
    else if (part->stage == 1) {
        buf_puts(b, "    const int piece = blockIdx.x;\n");
        put_steps(b, part, NULL, 1);
    } else
        put_steps(b, part, NULL, 1);
}
