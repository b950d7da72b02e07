/* dot.c - a dot as products of matrices: which kernels, which way, one product for each member of the batch. */
#include "runtime/gemm.h"
#include "runtime/vec.h"

#include <stddef.h>

int hlort_has(const KernelSet *s)
{
#if defined(__x86_64__)
    if (s == &hlort_v4)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq");
    if (s == &hlort_v3)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    if (s == &hlort_v2)
        return __builtin_cpu_supports("sse4.2");
#endif
    return s == &hlort_base;
}

const KernelSet *hlort_kernels(void)
{
#if defined(__x86_64__)
    static const KernelSet *const best_first[] = { &hlort_v4, &hlort_v3, &hlort_v2 };
    for (int k = 0; k < 3; k++)
        if (hlort_has(best_first[k]))
            return best_first[k];
#endif
    return &hlort_base;
}

/* C [m, 1] with neighbouring rows is C [1, m] of the transposed product. */
static void as_row(Gemm *g)
{
    Gemm t = *g;
    t.m = g->n;
    t.n = g->m;
    t.a = g->b;
    t.a_row = g->b_col;
    t.a_col = g->b_row;
    t.b = g->a;
    t.b_row = g->a_col;
    t.b_col = g->a_row;
    t.c_row = g->m;
    *g = t;
}

enum { FEW_SWEPT = 4, FEW_ALONG = 8 }; /* rows up to which nothing is packed */

static GemmWay way_of(const Gemm *g)
{
    if (g->b_col == 1 && g->m <= FEW_SWEPT)
        return GEMM_SWEEP;
    if (g->b_row == 1 && g->a_col == 1 && g->m <= FEW_ALONG)
        return GEMM_ROWS;
    return GEMM_TILES;
}

static const struct {
    int64_t in, out;
} bytes[] = {
    [GEMM_F32] = { 4, 4 }, [GEMM_F64] = { 8, 8 },     [GEMM_BF16] = { 2, 2 }, [GEMM_BF16_F32] = { 2, 4 },
    [GEMM_F16] = { 2, 2 }, [GEMM_F16_F32] = { 2, 4 }, [GEMM_S32] = { 4, 4 },  [GEMM_S8_S32] = { 1, 4 },
};

/* An epilogue that rounds sums to C's type. */
typedef struct Narrow {
    void (*narrow)(uint16_t *to, const float *from, int64_t n);
    uint16_t *c;
    int64_t   c_row;
} Narrow;

static void narrow_tile(const void *context, const hlort_tile *t)
{
    const Narrow *x = context;
    for (int64_t i = 0; i < t->rows; i++)
        x->narrow(x->c + (t->row + i) * x->c_row + t->column, (const float *)t->sums + i * t->stride, t->columns);
}

typedef struct Members {
    const hlort_dot *d;
    const KernelSet *set;
    GemmType         type;
    Gemm             g;
} Members;

static void member(const Members *x, int64_t number)
{
    const hlort_dot *d = x->d;
    Gemm             g = x->g;
    Narrow           narrow = { .narrow = x->set->narrow[x->type], .c_row = g.c_row };
    int64_t          a = 0, b = 0, c = 0, rest = number;
    for (int64_t k = d->n_batch - 1; k >= 0; k--) {
        int64_t at = rest % d->batch[k].count;
        rest /= d->batch[k].count;
        a += at * d->batch[k].a;
        b += at * d->batch[k].b;
        c += at * d->batch[k].c;
    }
    g.a = (const char *)g.a + a * bytes[x->type].in;
    g.b = (const char *)g.b + b * bytes[x->type].in;
    g.c = g.c ? (char *)g.c + c * bytes[x->type].out : NULL;
    g.batch = number;
    if (narrow.narrow && !g.epilogue) {
        narrow.c = g.c;
        g.c = NULL;
        g.epilogue = narrow_tile;
        g.context = &narrow;
    }
    x->set->gemm[x->type](&g);
}

void hlort_gemm(const KernelSet *s, GemmType type, const hlort_dot *d, const hlort_how *how, const void *a, const void *b, void *c)
{
    Members x = { .d = d, .set = s, .type = type };
    x.g = (Gemm){ .m = d->m, .n = d->n, .k = d->k, .a = a, .a_row = d->a_row, .a_col = d->a_col, .b = b, .b_row = d->b_row, .b_col = d->b_col, .c = c,
                  .c_row = d->c_row, .work = how->work, .epilogue = how->epilogue, .context = how->context };
    int64_t count = 1;
    for (int64_t k = 0; k < d->n_batch; k++)
        count *= d->batch[k].count;
    if (d->m == 0 || d->n == 0)
        return;
    if (x.g.n == 1 && x.g.c_row == 1 && !x.g.epilogue)
        as_row(&x.g);
    x.g.way = way_of(&x.g);
    for (int64_t k = 0; k < count; k++)
        member(&x, k);
}

#define FUNCTION(name, type, in, out)                                                                         \
    void hlort_dot_##name(const hlort_dot *d, const hlort_how *how, const in *a, const in *b, out *c)         \
    {                                                                                                         \
        hlort_gemm(hlort_kernels(), type, d, how, a, b, c);                                                   \
    }
FUNCTION(f32, GEMM_F32, float, float)
FUNCTION(f64, GEMM_F64, double, double)
FUNCTION(bf16, GEMM_BF16, uint16_t, uint16_t)
FUNCTION(bf16_f32, GEMM_BF16_F32, uint16_t, float)
FUNCTION(f16, GEMM_F16, uint16_t, uint16_t)
FUNCTION(f16_f32, GEMM_F16_F32, uint16_t, float)
FUNCTION(s32, GEMM_S32, uint32_t, uint32_t)
FUNCTION(s8_s32, GEMM_S8_S32, int8_t, uint32_t)
#undef FUNCTION
