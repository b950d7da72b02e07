/* Products of matrices, as libraries do them on a device. Both factors are taken apart into doubles first, so that half precision is decoded once. */
#include "cudasim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t cudasim_bytes_of(cudasim_type t)
{
    static const unsigned char bytes[] = { [CUDASIM_F32] = 4, [CUDASIM_F64] = 8, [CUDASIM_F16] = 2, [CUDASIM_BF16] = 2, [CUDASIM_S8] = 1, [CUDASIM_S32] = 4,
                                           [CUDASIM_C64] = 8, [CUDASIM_C128] = 16, [CUDASIM_F8E4M3] = 1, [CUDASIM_F8E5M2] = 1 };
    return bytes[t];
}

static bool is_complex(cudasim_type t)
{
    return t == CUDASIM_C64 || t == CUDASIM_C128;
}

/* ---- elements ---- */

double cudasim_half_value(uint16_t h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(m | 1024, e - 25) : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

/* The nearest value with an even last bit, of 11 bits down to 2^-24. */
static uint16_t half_of(double v)
{
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    const double   a = fabs(v);
    int            e;
    if (a != a || a == 0)
        return a == 0 ? sign : 0x7e00;
    frexp(a, &e);
    e = e < -13 ? -13 : e;
    const double steps = nearbyint(ldexp(a, 11 - e));
    if (isinf(a) || ldexp(steps, e - 11) >= 65536)
        return sign | 0x7c00;
    return (uint16_t)(sign | ((uint32_t)(e + 13) * 1024 + (uint32_t)steps));
}

static uint16_t bfloat_of(double v)
{
    const float f = (float)v;
    uint32_t    bits;
    memcpy(&bits, &f, sizeof bits);
    return f != f ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* 4 bits of exponent and 3 of mantissa without infinities: all ones are none. */
static double e4m3_value(uint8_t x)
{
    const int    e = x >> 3 & 15, m = x & 7;
    const double v = (x & 127) == 127 ? NAN : e ? ldexp(m | 8, e - 10) : ldexp(m, -9);
    return x >> 7 ? -v : v;
}

double cudasim_load(cudasim_type t, const void *p, int64_t i)
{
    float f;
    switch (t) {
    case CUDASIM_F64: case CUDASIM_C128: return ((const double *)p)[i];
    case CUDASIM_F32: case CUDASIM_C64: return ((const float *)p)[i];
    case CUDASIM_F16: return cudasim_half_value(((const uint16_t *)p)[i]);
    case CUDASIM_S8: return ((const int8_t *)p)[i];
    case CUDASIM_S32: return ((const int32_t *)p)[i];
    case CUDASIM_F8E4M3: return e4m3_value(((const uint8_t *)p)[i]);
    case CUDASIM_F8E5M2: return cudasim_half_value((uint16_t)(((const uint8_t *)p)[i] << 8)); /* the upper half of one */
    case CUDASIM_BF16: break;
    }
    const uint32_t bits = (uint32_t)((const uint16_t *)p)[i] << 16;
    memcpy(&f, &bits, sizeof f);
    return f;
}

void cudasim_store(cudasim_type t, void *p, int64_t i, double v)
{
    switch (t) {
    case CUDASIM_F64: case CUDASIM_C128: ((double *)p)[i] = v; return;
    case CUDASIM_F32: case CUDASIM_C64: ((float *)p)[i] = (float)v; return;
    case CUDASIM_F16: ((uint16_t *)p)[i] = half_of(v); return;
    case CUDASIM_BF16: ((uint16_t *)p)[i] = bfloat_of(v); return;
    case CUDASIM_S8: ((int8_t *)p)[i] = (int8_t)v; return;
    case CUDASIM_F8E4M3: case CUDASIM_F8E5M2: return; /* no result has these, see cudasim_enqueue_product */
    case CUDASIM_S32: ((uint32_t *)p)[i] = (uint32_t)(int64_t)fmod(v, 4294967296.0); return; /* wraps */
    }
}

/* ---- sums of products ---- */

enum { PANEL = 8 /* columns */ };
typedef void add_panel(double *const *out, const double *const *lhs, int64_t step, const double *panel, int64_t m, int64_t n, int64_t k);

/* A panel of the right factor, [k, PANEL], with rows of the left one, as many at once as there are registers for. */
#define ADD_PANEL(name, target, BYTES, ROWS)                                                                                                  \
    target static void name(double *const *out, const double *const *lhs, int64_t step, const double *panel, int64_t m, int64_t n, int64_t k) \
    {                                                                                                                                         \
        enum { LANES = BYTES / sizeof(double), VECTORS = PANEL / LANES };                                                                     \
        typedef double Vector __attribute__((vector_size(BYTES), aligned(8), may_alias));                                                     \
        for (int64_t i = 0; i < m; i += ROWS) {                                                                                               \
            Vector        sums[ROWS][VECTORS] = { 0 };                                                                                        \
            const double *rows[ROWS];                                                                                                         \
            for (int r = 0; r < ROWS; r++)                                                                                                    \
                rows[r] = lhs[i + r < m ? i + r : i];                                                                                         \
            for (int64_t l = 0; l < k; l++)                                                                                                   \
                for (int v = 0; v < VECTORS; v++) {                                                                                           \
                    const Vector right = *(const Vector *)(panel + l * PANEL + v * LANES);                                                    \
                    for (int r = 0; r < ROWS; r++)                                                                                            \
                        sums[r][v] += right * rows[r][l * step];                                                                              \
                }                                                                                                                             \
            for (int r = 0; r < ROWS && i + r < m; r++)                                                                                       \
                for (int64_t j = 0; j < n; j++)                                                                                               \
                    out[i + r][j] += sums[r][j / LANES][j % LANES];                                                                           \
        }                                                                                                                                     \
    }
ADD_PANEL(add_panel_any, , 16, 2)
#ifdef __x86_64__
ADD_PANEL(add_panel_avx2, __attribute__((target("avx2"))), 32, 4)
ADD_PANEL(add_panel_avx512, __attribute__((target("avx512f"))), 64, 8)
#endif

static add_panel *panel_kernel(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return add_panel_avx512;
    if (__builtin_cpu_supports("avx2"))
        return add_panel_avx2;
#endif
    return add_panel_any;
}

bool cudasim_add_products(double *const *out, const double *const *lhs, int64_t step, const double *rhs, int64_t distance, int64_t m, int64_t n, int64_t k)
{
    add_panel *const add = panel_kernel();
    double          *panel = calloc((size_t)(k * PANEL), sizeof *panel), **to = malloc((size_t)m * sizeof *to);
    const bool       ok = panel && to;
    for (int64_t j = 0; j < n && ok; j += PANEL) {
        const int64_t columns = n - j < PANEL ? n - j : PANEL;
        for (int64_t l = 0; l < k; l++)
            memcpy(panel + l * PANEL, rhs + l * distance + j, (size_t)columns * sizeof *panel);
        for (int64_t i = 0; i < m; i++)
            to[i] = out[i] + j;
        add(to, lhs, step, panel, m, columns, k);
    }
    free(panel);
    free(to);
    return ok;
}

/* ---- products ---- */

typedef struct Call {
    cudasim_product p;
    void           *out;
    const void     *lhs, *rhs, *added, *bias;
} Call;

/* Part of a factor's numbers, [rows, cols] with the columns beside each other. */
static void take_apart(double *to, const cudasim_matrix *x, const void *p, int64_t batch, int64_t rows, int64_t cols, int64_t part)
{
    const int64_t numbers = is_complex(x->type) ? 2 : 1;
    enum { TILE = 32 }; /* rows that stay in the caches while they are read across, or written */
    for (int64_t first = 0; first < cols; first += TILE)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = first; j < cols && j < first + TILE; j++)
                to[i * cols + j] = cudasim_load(x->type, p, (batch * x->batch + i * x->row + j * x->col) * numbers + part);
}

/* sums += sign * lhs * rhs */
static bool add_products(double *sums, const Call *c, double *lhs, double *rhs, int64_t batch, int64_t l_part, int64_t r_part, double sign)
{
    const cudasim_product *p = &c->p;
    take_apart(lhs, &p->lhs, c->lhs, batch, p->m, p->k, l_part);
    take_apart(rhs, &p->rhs, c->rhs, batch, p->k, p->n, r_part);
    for (int64_t e = 0; e < p->m * p->k && sign < 0; e++)
        lhs[e] = -lhs[e];
    double **out = malloc((size_t)p->m * sizeof *out), **rows = malloc((size_t)p->m * sizeof *rows);
    for (int64_t i = 0; i < p->m && out && rows; i++) {
        out[i] = sums + i * p->n;
        rows[i] = lhs + i * p->k;
    }
    const bool ok = out && rows && cudasim_add_products(out, (const double *const *)rows, 1, rhs, p->n, p->m, p->n, p->k);
    free(out);
    free(rows);
    return ok;
}

static double activated(cudasim_act act, double v)
{
    switch (act) {
    case CUDASIM_RELU: return v > 0 ? v : 0;
    case CUDASIM_GELU: return 0.5 * v * (1 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
    case CUDASIM_NO_ACT: break;
    }
    return v;
}

/* What becomes of a sum. */
static double finished(const Call *c, double v, int64_t batch, int64_t i, int64_t j, int64_t at)
{
    const cudasim_product *p = &c->p;
    const int64_t          numbers = is_complex(p->out.type) ? 2 : 1;
    v *= p->alpha;
    if (p->beta != 0)
        v += p->beta * cudasim_load(p->added.type, c->added, (batch * p->added.batch + i * p->added.row + j * p->added.col) * numbers + at);
    return activated(p->act, c->bias ? v + cudasim_load(p->bias, c->bias, i) : v);
}

static void put_sums(const Call *c, const double *sums, int64_t batch, int64_t part)
{
    const cudasim_product *p = &c->p;
    const int64_t          numbers = is_complex(p->out.type) ? 2 : 1;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            cudasim_store(p->out.type, c->out, (batch * p->out.batch + i * p->out.row + j * p->out.col) * numbers + part, finished(c, sums[i * p->n + j], batch, i, j, part));
}

static void multiply(void *cookie)
{
    const Call            *c = cookie;
    const cudasim_product *p = &c->p;
    const bool             complex = is_complex(p->out.type);
    double *lhs = calloc((size_t)(p->m * p->k), sizeof *lhs), *rhs = calloc((size_t)(p->k * p->n), sizeof *rhs), *sums = malloc((size_t)(p->m * p->n) * sizeof *sums);
    bool ok = lhs && rhs && sums;
    for (int64_t b = 0; b < p->batch && ok; b++)
        for (int64_t part = 0; part < 1 + complex && ok; part++) { /* of a complex product: (x u - y v) + i (x v + y u) */
            memset(sums, 0, (size_t)(p->m * p->n) * sizeof *sums);
            ok = add_products(sums, c, lhs, rhs, b, 0, part, 1) && (!complex || add_products(sums, c, lhs, rhs, b, 1, 1 - part, part ? 1 : -1));
            if (ok)
                put_sums(c, sums, b, part);
        }
    if (!ok)
        cudasim_fault(NULL, 0, "no memory for a library's product");
    free(lhs);
    free(rhs);
    free(sums);
}

static bool is_on_device(const cudasim_matrix *x, const void *p, int64_t rows, int64_t cols, int64_t batch)
{
    const int64_t last = (batch - 1) * x->batch + (rows - 1) * x->row + (cols - 1) * x->col;
    return cudasim_memory_is_device(p, (size_t)(last + 1) * cudasim_bytes_of(x->type)) && (uintptr_t)p % cudasim_bytes_of(x->type) == 0;
}

cudaError_t cudasim_enqueue_product(const cudasim_product *p, void *out, const void *lhs, const void *rhs, const void *added, const void *bias, cudaStream_t s)
{
    LOCKED;
    const Call c = { *p, out, lhs, rhs, added, bias };
    const bool is_f8 = p->lhs.type == CUDASIM_F8E4M3 || p->lhs.type == CUDASIM_F8E5M2;
    if (p->m < 1 || p->n < 1 || p->k < 1 || p->batch < 1 || is_complex(p->lhs.type) != is_complex(p->out.type) || (p->lhs.type != p->rhs.type && !is_f8) ||
        p->out.type == CUDASIM_F8E4M3 || p->out.type == CUDASIM_F8E5M2)
        return cudaErrorInvalidValue;
    if (!is_on_device(&p->lhs, lhs, p->m, p->k, p->batch) || !is_on_device(&p->rhs, rhs, p->k, p->n, p->batch) || !is_on_device(&p->out, out, p->m, p->n, p->batch))
        return cudaErrorInvalidValue;
    if ((p->beta != 0 && !is_on_device(&p->added, added, p->m, p->n, p->batch)) || (bias && !cudasim_memory_is_device(bias, (size_t)p->m * cudasim_bytes_of(p->bias))))
        return cudaErrorInvalidValue;
    return cudasim_enqueue_work(multiply, &c, sizeof c, s);
}

bool cudasim_has_library(const char *name)
{
    const char *without = getenv("CUDASIM_WITHOUT");
    return !without || strcmp(without, name) != 0;
}
