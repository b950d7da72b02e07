/* Running sums of a row, by its threads: each sums up what it is dealt, gets what is before that, and goes through it again.
 *
 *     float acc_before = acc;
 *     for (int first = 0; first < 1000; first += 1024) {
 *         const int base = first + threadIdx.x * 4;
 *         const hlo_pack<float, 4> x_pack = base < 1000 ? hlo_load<4>(&x[i0 * 1000 + base]) : hlo_pack<float, 4>{};
 *         hlo_pack<float, 4> out_pack;
 *         acc = 0.0f;
 *         if (base < 1000) {
 *             for (int each = 0; each < 4; each++)
 *                 acc += x_pack.at[each];
 *         }
 *         acc = hlo_block_scan(acc, acc_before, acc_parts, [](float a, float b) { return a + b; });
 *         if (base < 1000) {
 *             for (int each = 0; each < 4; each++) {
 *                 acc += x_pack.at[each];
 *                 out_pack.at[each] = acc;
 *             }
 *             hlo_store(&out[i0 * 1000 + base], out_pack);
 *         }
 *     }
 *     acc = acc_before;
 *
 * The order in which floats are summed depends on nothing but the sizes. */
#include "support/buf.h"
#include "target-cuda/part.h"

void cuda_scan_services(Buf *b, bool lanes, bool block)
{
    if (lanes || block)
        buf_puts(b, "\n/* What lanes before this one have, as one with what was before them all, which then is with all of them. group: their mask. */\n"
                    "template <int lanes, typename T, typename Combine> static __device__ inline T hlo_lanes_scan(T v, T &before, unsigned group, Combine combine)\n"
                    "{\n"
                    "    const int lane = threadIdx.x % lanes;\n"
                    "    for (int by = 1; by < lanes; by *= 2) {\n"
                    "        const T lower = (T)__shfl_up_sync(group, v, by, lanes);\n"
                    "        if (lane >= by)\n"
                    "            v = (T)combine(lower, v);\n"
                    "    }\n"
                    "    const T lower = (T)__shfl_up_sync(group, v, 1, lanes), all = (T)__shfl_sync(group, v, lanes - 1, lanes);\n"
                    "    const T here = lane > 0 ? (T)combine(before, lower) : before;\n"
                    "    before = (T)combine(before, all);\n"
                    "    return here;\n"
                    "}\n");
    if (block)
        buf_puts(b, "\n/* Likewise of the threads of a block: parts has room for each of its `warps` warps. */\n"
                    "template <int warps, typename T, typename Combine> static __device__ inline T hlo_block_scan(T v, T &before, T *parts, Combine combine)\n"
                    "{\n"
                    "    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;\n"
                    "    for (int by = 1; by < 32; by *= 2) {\n"
                    "        const T lower = (T)__shfl_up_sync(0xffffffffu, v, by);\n"
                    "        if (lane >= by)\n"
                    "            v = (T)combine(lower, v);\n"
                    "    }\n"
                    "    const T lower = (T)__shfl_up_sync(0xffffffffu, v, 1);\n"
                    "    __syncthreads(); // parts may still be read, of the elements before\n"
                    "    if (lane == 31)\n"
                    "        parts[warp] = v;\n"
                    "    __syncthreads();\n"
                    "    const T below = hlo_lanes_scan<warps>(parts[lane % warps], before, 0xffffffffu, combine); // with what is before warp `lane`\n"
                    "    const T here = (T)__shfl_sync(0xffffffffu, below, warp, warps);\n"
                    "    return lane > 0 ? (T)combine(here, lower) : here;\n"
                    "}\n");
}

/* What changes no sum, be it -0. */
static const KExpr *nothing(Arena *a, Type t)
{
    if (!type_is_complex(t))
        return type_is_float(t) ? kx_float(a, t, -0.0) : kx_int(a, t, 0);
    const KExpr *part = kx_float(a, type_component(t), -0.0), *const both[] = { part, part };
    return kx_call(a, "__builtin_complex", t, 2, both);
}

/* What a thread starts from: what keeps equal numbers may see what is before twice. */
static void put_start(Buf *b, Arena *a, const CudaPart *part, const KExpr *op, const char *acc)
{
    if (op->kind == KX_BINARY && (op->op == KOP_AND || op->op == KOP_OR))
        buf_printf(b, "%s_before", acc);
    else if (op->kind == KX_CALL && (strncmp(op->fn, "max_", 4) == 0 || strncmp(op->fn, "min_", 4) == 0))
        buf_printf(b, "%s_before", acc);
    else {
        const bool product = op->kind == KX_BINARY ? op->op == KOP_MUL : strncmp(op->fn, "mul_", 4) == 0;
        dialect_expr(b, part->dialect, !product ? nothing(a, op->type) : type_is_float(op->type) ? kx_float(a, op->type, 1) : kx_int(a, op->type, 1));
    }
}

static void put_combined(Buf *b, const CudaPart *part, const RowStep *step, int depth)
{
    for (int32_t k = 0; k < step->n_combined; k++) {
        const KTemp *acc = step->combined[k]->temp;
        const char  *type = dialect_type(&cuda_dialect, acc->type);
        if (part->share == BY_BLOCK)
            buf_printf(b, "%*s%s = hlo_block_scan<%d>(%s, %s_before, %s_parts, ", 4 * depth, "", acc->name, cuda_part_threads(part) / WARP, acc->name, acc->name, acc->name);
        else
            buf_printf(b, "%*s%s = hlo_lanes_scan<%d>(%s, %s_before, %s, ", 4 * depth, "", acc->name, part->lanes, acc->name, acc->name,
                       cuda_in_groups(part) ? "group" : "0xffffffffu");
        buf_printf(b, "[](%s a, %s b) { return ", type, type);
        cuda_put_combination(b, step->combined[k]->value, "a", "b");
        buf_puts(b, "; });\n");
    }
}

/* A body of the chunk, for those threads that have something of it. */
static void put_inside(Buf *b, const CudaPart *part, const Packs *packs, const KBlock *body, const char *inside, int depth)
{
    if (inside)
        buf_printf(b, "%*sif (%s) {\n", 4 * depth, "", inside);
    const int in = depth + (inside != NULL);
    if (packs)
        cuda_put_each(b, part, packs, body, in);
    else
        dialect_block(b, part->dialect, body, in);
}

static bool declares(const KBlock *body)
{
    for (const KStmt *s = body->first; s; s = s->next)
        if (s->kind == KS_DECLARE)
            return true;
    return false;
}

static void put_end(Buf *b, const char *inside, int depth)
{
    if (inside)
        buf_printf(b, "%*s}\n", 4 * depth, "");
}

void cuda_put_scan(Buf *b, const CudaPart *part, const RowStep *step, int depth)
{
    Arena        *a = arena_new();
    const IxAtom *loop = step->dealt->loop;
    const Packs  *packs = part->width > 1 ? &part->packs[step - part->row.steps] : NULL;
    const KBlock *body = packs ? packs->body : step->dealt->body;
    const int     chunk = part->width * (part->share == BY_WARP ? part->lanes : cuda_part_threads(part));
    const char   *i = packs ? "base" : loop->name;
    const char   *inside = (loop->hi + 1 - loop->lo) % chunk ? arena_printf(a, "%s < %lld", i, (long long)loop->hi + 1) : NULL;
    for (int32_t k = 0; k < step->n_combined; k++) {
        const KTemp *acc = step->combined[k]->temp;
        buf_printf(b, "%*s%s %s_before = %s;\n", 4 * depth, "", dialect_type(&cuda_dialect, acc->type), acc->name, acc->name);
    }
    buf_printf(b, "%*sfor (%s first = %lld; first < %lld; first += %d) {\n", 4 * depth, "", part->dialect->index, (long long)loop->lo, (long long)loop->hi + 1, chunk);
    buf_printf(b, "%*sconst %s %s = first + %s", 4 * depth + 4, "", part->dialect->index, i, cuda_dealt_to(part));
    if (packs)
        buf_printf(b, " * %d", part->width);
    buf_puts(b, ";\n");
    if (packs)
        cuda_put_pack_loads(b, part, packs, inside, depth + 1);
    for (int32_t k = 0; k < step->n_combined; k++) {
        const KStmt *s = step->combined[k];
        buf_printf(b, "%*s%s = ", 4 * depth + 4, "", s->temp->name);
        put_start(b, a, part, s->value, s->temp->name);
        buf_puts(b, ";\n");
    }
    const KBlock *sums = kernel_scan_sums(a, body, step);
    const bool    braces = !inside && !packs && declares(sums); /* the body declares the same */
    if (braces)
        buf_printf(b, "%*s{\n", 4 * depth + 4, "");
    put_inside(b, part, packs, sums, inside, depth + 1 + braces);
    put_end(b, inside, depth + 1);
    if (braces)
        buf_printf(b, "%*s}\n", 4 * depth + 4, "");
    put_combined(b, part, step, depth + 1);
    put_inside(b, part, packs, body, inside, depth + 1);
    if (packs)
        cuda_put_pack_stores(b, part, packs, depth + 1 + (inside != NULL));
    put_end(b, inside, depth + 1);
    buf_printf(b, "%*s}\n", 4 * depth, "");
    for (int32_t k = 0; k < step->n_combined && step != &part->row.steps[part->row.n_steps - 1]; k++)
        buf_printf(b, "%*s%s = %s_before;\n", 4 * depth, "", step->combined[k]->temp->name, step->combined[k]->temp->name);
    arena_free(a);
}
