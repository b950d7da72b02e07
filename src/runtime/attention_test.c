/* Attention of every type by every set of instructions, against sums in f64: sizes that fill no tile, several dimensions of rows, operands turned, masks near and far
 * from the scores, an epilogue, values that are infinite, NaN, or too large to be summed before they are divided; one thread and three give the same bits. */
#include "runtime/test_types.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Case {
    int64_t  batch, outer, inner, keys, head, wide; /* rows are outer times inner */
    int      turned;                                /* q, k, v and o lie across */
    int      masked, beside_it;
    int64_t  above, below;
    float    hidden, scale;
    int      changed; /* there is an epilogue, which adds something and masks */
    double   large;   /* the last value, or 0: like others */
    int      rounded, term;
} Case;

enum { FAR_ABOVE = 1 << 20, T_ARRAY = 64 | HLORT_TERM };

static const Case cases[] = {
    { 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 },
    { 2, 1, 37, 45, 5, 7, 0, 0, 0, 0, 0, 0, 0.5f, 0, 0, 0, 0 },
    { 3, 2, 19, 77, 33, 40, 1, 0, 0, 0, 0, 0, 0.25f, 0, 0, 0, 0 },
    { 1, 3, 30, 30, 64, 64, 0, 1, 0, FAR_ABOVE, 0, -1e30f, 0.125f, 0, 0, 0, 0 },
    { 2, 1, 50, 801, 8, 20, 0, 1, 0, FAR_ABOVE, 751, -1e9f, 0.5f, 0, 0, 0, 0 },
    { 2, 2, 450, 450, 4, 3, 1, 1, 0, 20, 3, -HUGE_VALF, 0.5f, 0, 0, 0, 0 },
    { 2, 2, 90, 90, 16, 3, 1, 1, 0, FAR_ABOVE, 0, -3.4e38f, 0.5f, 0, 0, 0, 0 },
    { 2, 1, 50, 70, 16, 16, 0, 1, 1, 9, 3, -3.4e38f, 0.5f, 0, 0, 0, 0 },
    { 1, 2, 40, 60, 8, 9, 0, 1, 0, 9, 2, -3.4e38f, 1, 1, HUGE_VAL, 0, 0 },
    { 1, 1, 90, 90, 16, 16, 0, 1, 1, FAR_ABOVE, 0, -1e6f, 0.25f, 0, 0, 0, 0 },
    { 1, 2, 40, 61, 16, 16, 0, 1, 0, FAR_ABOVE, 5, -2.0f, 0.25f, 0, 0, 0, 0 },
    { 1, 2, 40, 61, 16, 16, 0, 1, 1, FAR_ABOVE, 5, -3.0f, 0.25f, 0, 0, 0, 0 },
    { 2, 2, 33, 403, 12, 33, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0 },
    { 2, 2, 33, 403, 12, 33, 1, 1, 0, FAR_ABOVE, 11, -1e30f, 1, 1, 0, 0, 0 },
    { 1, 1, 40, 60, 8, 9, 0, 1, 0, FAR_ABOVE, 2, -1e30f, 0.5f, 0, HUGE_VAL, 0, 0 },
    { 1, 1, 40, 60, 8, 9, 0, 0, 0, 0, 0, 0, 0.5f, 0, NAN, 0, 0 },
    { 1, 1, 40, 60, 8, 9, 0, 0, 0, 0, 0, 0, 0.5f, 0, 3e38, 0, 0 },
    { 3, 1, 1, 500, 64, 64, 0, 0, 0, 0, 0, 0, 0.125f, 0, 0, 0, 0 },
    { 2, 2, 5, 401, 33, 47, 0, 0, 0, 0, 0, 0, 0.25f, 0, 0, 0, 0 },
    { 2, 1, 7, 70, 128, 80, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0 },
    { 1, 2, 8, 41, 20, 16, 0, 1, 0, FAR_ABOVE, 33, -1e30f, 0.125f, 0, 0, 0, 0 },
    { 1, 1, 3, 41, 20, 16, 0, 0, 0, 0, 0, 0, 0.125f, 0, 3e38, 0, 0 },
    { 1, 1, 3, 41, 20, 16, 0, 0, 0, 0, 0, 0, 0.125f, 0, NAN, 0, 0 },
    { 2, 1, 20, 12, 256, 512, 0, 0, 0, 0, 0, 0, 0.0625f, 0, 0, 0, 0 },
    { 2, 1, 37, 405, 5, 7, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0 },
    { 1, 2, 40, 77, 4, 40, 0, 1, 0, FAR_ABOVE, 11, -1e30f, 0.5f, 0, 0, 1, 0 },
    { 3, 2, 3, 77, 16, 20, 0, 0, 0, 0, 0, 0, 0.25f, 0, 0, 1, 0 },
    { 2, 2, 37, 45, 5, 7, 0, 0, 0, 0, 0, 0, 0.5f, 0, 0, 0, T_ARRAY },
    { 2, 2, 37, 805, 16, 40, 1, 0, 0, 0, 0, 0, 0.125f, 0, 0, 0, T_ARRAY },
    { 2, 2, 450, 450, 4, 3, 1, 1, 0, 20, 3, -HUGE_VALF, 0.5f, 0, 0, 0, T_ARRAY },
    { 1, 2, 90, 90, 16, 16, 0, 1, 0, FAR_ABOVE, 0, -1e30f, 0.25f, 0, 0, 0, HLORT_TERM },
    { 1, 2, 40, 60, 8, 9, 0, 1, 0, 9, 2, -HUGE_VALF, 1, 1, 3e38, 0, HLORT_TERM_BESIDE | HLORT_TERM },
    { 2, 2, 5, 401, 33, 47, 0, 0, 0, 0, 0, 0, 0.25f, 0, 0, 0, T_ARRAY },
    { 2, 1, 5, 401, 33, 47, 0, 0, 0, 0, 0, 0, 0.25f, 0, 0, 0, HLORT_TERM_BESIDE | HLORT_TERM },
    { 2, 2, 37, 405, 5, 7, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, T_ARRAY },
    { 3, 2, 3, 77, 16, 20, 0, 0, 0, 0, 0, 0, 0.25f, 0, 0, 1, T_ARRAY | HLORT_TERM_LAST },
};

static const GemmType types[] = { GEMM_F32, GEMM_BF16, GEMM_BF16_F32, GEMM_F16, GEMM_F16_F32 };

static double change(int64_t number)
{
    return (double)(number * 7 % 13 - 6) / 2;
}

static int is_seen(const Case *c, int64_t inner, int64_t key)
{
    return !c->masked || (key >= inner - c->above && key <= inner + c->below);
}

static void epilogue(const void *context, const hlort_tile *t)
{
    const Case *c = context;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++) {
            const int64_t number = t->place + i * t->by + j;
            float        *s = (float *)t->sums + i * t->stride + j;
            *s = is_seen(c, number / c->keys % c->inner, number % c->keys) ? *s + (float)change(number) : c->hidden;
        }
}

static hlort_attention describe(const Case *c)
{
    const int64_t   rows = c->outer * c->inner, t = c->turned;
    hlort_attention d = { .rows = rows, .keys = c->keys, .head = c->head, .wide = c->wide, .n_rows = 2, .n_batch = 1, .scale = c->scale, .rounded = c->rounded,
                          .term = c->term & ~64, .term_value = 2, .masked = c->masked, .beside_it = c->beside_it, .mask_row = 1, .above = c->above, .below = c->below, .hidden = c->hidden,
                          .bound = c->scale };
    d.q_col = t ? rows : 1;
    d.k_row = t ? 1 : c->head;
    d.k_col = t ? c->keys : 1;
    d.v_row = t ? 1 : c->wide;
    d.v_col = t ? c->keys : 1;
    d.o_col = t ? rows : 1;
    /* the inner rows are further apart than the outer ones */
    d.row[0].count = c->outer;
    d.row[0].q = t ? 1 : c->head;
    d.row[0].o = t ? 1 : c->wide;
    d.row[1].count = c->inner;
    d.row[1].q = t ? c->outer : c->outer * c->head;
    d.row[1].o = t ? c->outer : c->outer * c->wide;
    d.row[0].t = 1;
    d.row[1].t = c->outer;
    d.batch[0].t = rows;
    d.batch[0].count = c->batch;
    d.batch[0].q = rows * c->head;
    d.batch[0].k = c->keys * c->head;
    d.batch[0].v = c->keys * c->wide;
    d.batch[0].o = rows * c->wide;
    return d;
}

static double result(Kind k, const void *p, int64_t at)
{
    if (k == F32)
        return ((const float *)p)[at];
    const uint16_t x = ((const uint16_t *)p)[at];
    if (k == BF16) {
        const uint32_t bits = (uint32_t)x << 16;
        float          f;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
    const int    e = x >> 10 & 31;
    const double m = x & 1023, size = e == 31 ? (m > 0 ? NAN : HUGE_VAL) : e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);
    return x & 0x8000 ? -size : size;
}

typedef struct Arrays {
    void   *q, *k, *v, *t, *o, *again;
    int64_t bytes; /* of o */
    double *value; /* of V, as it is stored */
    int    *iq, *ik, *it;
} Arrays;

/* What row (g, i) of member b should be. */
static void expect(const Case *c, const hlort_attention *d, const Arrays *x, int64_t b, int64_t g, int64_t i, double *want)
{
    const int64_t rows = c->outer * c->inner;
    double       *s = malloc((size_t)c->keys * sizeof *s), most = -HUGE_VAL, sum = 0;
    for (int64_t j = 0; j < c->keys; j++) {
        double dot = 0;
        for (int64_t p = 0; p < c->head; p++)
            dot += (double)x->iq[b * d->batch[0].q + g * d->row[0].q + i * d->row[1].q + p * d->q_col] * x->ik[b * d->batch[0].k + j * d->k_row + p * d->k_col];
        if (c->changed)
            s[j] = is_seen(c, i, j) ? dot + change(((b * c->outer + g) * c->inner + i) * c->keys + j) : (double)c->hidden;
        else
            s[j] = is_seen(c, i, j) ? dot * c->scale : c->beside_it ? dot * c->scale + c->hidden : (double)c->hidden;
        most = fmax(most, s[j]);
    }
    const double term = x->t ? x->it[b * rows + i * c->outer + g] : 2;
    most = c->term ? fmax(most, term) : most;
    for (int64_t j = 0; j < c->keys; j++)
        sum += s[j] = exp(s[j] - most) < 1e-38 ? 0 : exp(s[j] - most);
    if (c->term)
        sum += exp(term - most);
    for (int64_t e = 0; e < c->wide; e++) {
        want[e] = 0;
        for (int64_t j = 0; j < c->keys; j++)
            want[e] += s[j] / sum * x->value[b * d->batch[0].v + j * d->v_row + e * d->v_col];
    }
    free(s);
}

static int is_near(double got, double want, double eps)
{
    return isnan(want) ? isnan(got) : isinf(want) ? got == want : fabs(got - want) <= eps * (1 + fabs(want));
}

static void make(const Case *c, GemmType t, Arrays *x)
{
    const hlort_attention d = describe(c);
    const int64_t         nq = c->batch * d.batch[0].q, nk = c->batch * d.batch[0].k, nv = c->batch * d.batch[0].v;
    int                  *iv = values(nv, 5);
    x->iq = values(nq, 3);
    x->ik = values(nk, 4);
    x->q = operand(kinds[t].in, x->iq, nq);
    x->k = operand(kinds[t].in, x->ik, nk);
    x->v = operand(kinds[t].in, iv, nv);
    x->it = values(c->batch * d.rows, 6);
    x->t = c->term & 64 ? operand(c->rounded ? kinds[t].in : F32, x->it, c->batch * d.rows) : NULL;
    x->value = malloc((size_t)nv * sizeof *x->value);
    for (int64_t e = 0; e < nv; e++)
        x->value[e] = iv[e];
    if (c->large != 0 && kinds[t].in == F32) {
        ((float *)x->v)[nv - 1] = (float)c->large;
        x->value[nv - 1] = (double)(float)c->large;
    }
    x->bytes = c->batch * d.batch[0].o * (int64_t)size_of[kinds[t].out];
    x->o = calloc(1, (size_t)x->bytes);
    x->again = calloc(1, (size_t)x->bytes);
    free(iv);
}

static void check(const KernelSet *s, GemmType t, const Case *c, hlort_pool *pool)
{
    const hlort_attention d = describe(c);
    const double          eps = kinds[t].in == F32 ? 1e-5 : (kinds[t].in == BF16 ? 0.02 : 0.003) * (c->rounded ? 4 : 1);
    Arrays                x;
    double               *want = malloc((size_t)c->wide * sizeof *want);
    void                 *work = aligned_alloc(64, (size_t)hlort_attention_bytes(&d));
    hlort_how             how = { .work = work, .epilogue = c->changed ? epilogue : NULL, .context = c };
    make(c, t, &x);
    hlort_attend(s, t, &d, &how, x.q, x.k, x.v, x.t, x.o);
    how.pool = pool;
    hlort_attend(s, t, &d, &how, x.q, x.k, x.v, x.t, x.again);
    CHECK(memcmp(x.o, x.again, (size_t)x.bytes) == 0);
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t g = 0; g < c->outer; g++)
            for (int64_t i = 0; i < c->inner; i += c->keys > 100 ? 7 : 1) {
                int same = 1;
                expect(c, &d, &x, b, g, i, want);
                for (int64_t e = 0; e < c->wide; e++)
                    same &= is_near(result(kinds[t].out, x.o, b * d.batch[0].o + g * d.row[0].o + i * d.row[1].o + e * d.o_col), want[e], eps);
                CHECK(same);
            }
    free(want);
    free(work);
    free(x.q);
    free(x.k);
    free(x.v);
    free(x.o);
    free(x.again);
    free(x.value);
    free(x.t);
    free(x.it);
    free(x.iq);
    free(x.ik);
}

int main(void)
{
    hlort_pool *pool = hlort_pool_new(3);
    for (int s = 0; s < N_SETS; s++)
        for (size_t t = 0; has(sets[s]) && t < sizeof types / sizeof *types; t++)
            for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
                check(sets[s], types[t], &cases[k], pool);
    hlort_pool_free(pool);
    return 0;
}
