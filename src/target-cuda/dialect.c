/* CUDA's words, and how wide indices are. Dividing 64 bits takes a GPU tens of instructions, 32 bits a few, and a register less for each index. */
#include "target-cuda/part.h"

#include <string.h>

/* Conversions of halves are single instructions; of a NaN they keep no bits. */
static const char *instruction(const char *fn)
{
#define ASM(text) "#if defined __CUDACC__ && __CUDA_ARCH__ >= 800\n" text "#else\n"
    static const char *const forms[][2] = {
        { "bf16_bits", ASM("    uint16_t half;\n    asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(half) : \"f\"(x));\n    return (uint32_t)half << 16;\n") },
        { "f16_to_f32", ASM("    float wide;\n    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(wide) : \"h\"(x));\n    return wide;\n") },
        { "f32_to_f16", ASM("    uint16_t half;\n    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(half) : \"f\"(x));\n    return half;\n") },
        { "f16_round", ASM("    float wide;\n    asm(\"{ .reg .b16 half; cvt.rn.f16.f32 half, %1; cvt.f32.f16 %0, half; }\" : \"=f\"(wide) : \"f\"(x));\n    return wide;\n") },
    };
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
        if (strcmp(fn, forms[k][0]) == 0)
            return forms[k][1];
    return NULL;
}

#define WORDS(type)                                                                                                                             \
    { .helper = "static __device__ inline", .boolean = "bool", .restricted = "__restrict__", .index = type, .form = instruction, \
      .complex_types = { "hlo_c64", "hlo_c128" }, .complex_function = cuda_complex_function }
const Dialect        cuda_dialect = WORDS("int64_t");
static const Dialect narrow = WORDS("int");

/* What grids may add to an index on the way past the end. */
enum { MOST_STEP = 1 << 24, MOST_NARROW = INT32_MAX - MOST_STEP };

static void see_index(bool *wide, const Ix *x);

/* Adds the most that k times the atom can be. */
static void see_atom(bool *wide, const IxAtom *x, int64_t k, int64_t *sum)
{
    int64_t most, part;
    if (x->arg)
        see_index(wide, x->arg);
    *wide |= __builtin_sub_overflow(0, x->lo, &most);
    most = x->hi > most ? x->hi : most;
    *wide |= __builtin_mul_overflow(most, k < 0 ? -k : k, &part) || __builtin_add_overflow(*sum, part, sum);
}

/* A value of 64 bits, and so has what is made of it. */
static bool is_wide_value(const IxAtom *x)
{
    return x->kind == IX_VALUE && ((const KTemp *)x->owner)->type != TYPE_S32;
}

/* Whether a sum of some of its terms may be too large. */
static void see_index(bool *wide, const Ix *x)
{
    int64_t sum = 0;
    if (!x)
        return;
    *wide |= __builtin_add_overflow(x->c < 0 ? 0 : x->c, 0, &sum) || x->c < -MOST_NARROW;
    sum = x->c < 0 && !*wide ? -x->c : sum;
    for (int32_t i = 0; i < x->n; i++)
        if (!is_wide_value(x->t[i].atom))
            see_atom(wide, x->t[i].atom, x->t[i].k, &sum);
    *wide |= sum > MOST_NARROW;
}

static void see_expr(void *cookie, const KExpr *x)
{
    see_index(cookie, x->index);
}

static bool is_wide_loop(const IxAtom *loop)
{
    return loop->hi > MOST_NARROW || loop->lo < -MOST_NARROW;
}

static void see_stmt(void *cookie, const KStmt *s)
{
    see_index(cookie, s->index);
    see_index(cookie, s->from);
    see_index(cookie, s->end);
    *(bool *)cookie |= s->kind == KS_FOR && is_wide_loop(s->loop);
}

const Dialect *cuda_dialect_for(const ThreadPart *part)
{
    bool     wide = part->count > MOST_NARROW;
    KVisitor v = { see_expr, see_stmt, &wide };
    kernel_visit(part->whole.body, &v);
    for (int32_t j = 0; j < part->n_loops; j++)
        wide |= is_wide_loop(part->loops[j]);
    return wide ? &cuda_dialect : &narrow;
}

void cuda_grid_loop(Buf *b, const CudaPart *part, const char *i, int each, const char *who)
{
    const char     *wide = part->dialect == &narrow ? "" : "(int64_t)";
    const long long count = part->share == BY_TURN ? cuda_turn_tiles(part) : part->threads.count / (part->share == BY_THREAD ? part->width : 1);
    buf_printf(b, "    for (%s %s = ", part->dialect->index, i);
    if (part->blocks > 0 && part->first_block > 0)
        buf_printf(b, "%s(blockIdx.x - %lld)", wide, (long long)part->first_block);
    else if (part->blocks > 0)
        buf_printf(b, "%sblockIdx.x", wide);
    const char *plus = who ? " + " : "", *own = who ? who : "";
    if (part->blocks > 0 && each == 1)
        buf_printf(b, "; %s < %lld; %s += %lld)", i, count, i, (long long)part->blocks);
    else if (part->blocks > 0)
        buf_printf(b, " * %d%s%s; %s < %lld; %s += %lld)", each, plus, own, i, count, i, (long long)(part->blocks * each));
    else if (each == 1)
        buf_printf(b, "blockIdx.x; %s < %lld; %s += gridDim.x)", i, count, i);
    else
        buf_printf(b, "%sblockIdx.x * %d%s%s; %s < %lld; %s += %sgridDim.x * %d)", wide, each, plus, own, i, count, i, wide, each);
}
