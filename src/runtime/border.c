/* border.c - see border.h. */
#include "runtime/border.h"

static float from_bits(uint32_t u)
{
    union {
        uint32_t u;
        float    f;
    } x = { u };
    return x.f;
}

/* Moving f16's exponent to f32's place leaves a factor of 2^112 to multiply, which is exact. */
static float from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, size = h & 0x7fff;
    if (size > 0x7bff)
        return from_bits(sign | 0x7f800000 | size << 13);
    return from_bits(sign | 0x3f800000) * from_bits(size << 13) * 0x1p112f;
}

static double operand(GemmType t, const char *p, int64_t at)
{
    switch (t) {
    case GEMM_F64: return ((const double *)(const void *)p)[at];
    case GEMM_BF16:
    case GEMM_BF16_F32: return from_bits((uint32_t)((const uint16_t *)(const void *)p)[at] << 16);
    case GEMM_F16:
    case GEMM_F16_F32: return from_f16(((const uint16_t *)(const void *)p)[at]);
    default: return ((const float *)(const void *)p)[at];
    }
}

static int is_nan(const Border *b, int64_t at)
{
    if (b->type == GEMM_F64)
        return ((const double *)(const void *)b->sums)[at] != ((const double *)(const void *)b->sums)[at];
    return ((const float *)(const void *)b->sums)[at] != ((const float *)(const void *)b->sums)[at];
}

/* Whether n sums have a NaN among them: 16 bytes at a time, since mostly there is none. */
static int have_nan(const char *p, int64_t n, int is_f64)
{
    typedef float   v4 __attribute__((vector_size(16), aligned(4), may_alias));
    typedef double  v2 __attribute__((vector_size(16), aligned(8), may_alias));
    typedef int32_t bits __attribute__((vector_size(16)));
    const int64_t   each = is_f64 ? 2 : 4;
    bits            found = { 0 };
    int64_t         k = 0;
    if (is_f64)
        for (; k + each <= n; k += each)
            found |= (bits)(*(const v2 *)(const void *)(p + k * 8) != *(const v2 *)(const void *)(p + k * 8));
    else
        for (; k + each <= n; k += each)
            found |= (bits)(*(const v4 *)(const void *)(p + k * 4) != *(const v4 *)(const void *)(p + k * 4));
    int any = (found[0] | found[1] | found[2] | found[3]) != 0;
    for (; k < n; k++)
        any |= is_f64 ? ((const double *)(const void *)p)[k] != ((const double *)(const void *)p)[k] : ((const float *)(const void *)p)[k] != ((const float *)(const void *)p)[k];
    return any;
}

/* Of features that are neighbours only those of pixels at the border are looked at. */
static int pixel_may_have_nan(const Border *b, int64_t pixel)
{
    const int is_f64 = b->type == GEMM_F64;
    return b->im->is_b || have_nan(b->sums + (pixel - b->pixel) * b->stride * (is_f64 ? 8 : 4), b->features, is_f64);
}

static int tile_may_have_nan(const Border *b)
{
    const int is_f64 = b->type == GEMM_F64;
    for (int64_t i = 0; i < b->features && b->im->is_b; i++)
        if (have_nan(b->sums + i * b->stride * (is_f64 ? 8 : 4), b->pixels, is_f64))
            return 1;
    return !b->im->is_b;
}

/* The sum of one element, over the taps that are in the image, up to where it is NaN for good: gradients that have diverged are full of that. In f64, which is no
 * less exact than in f32. */
static double sum_of(const Border *b, const ImageRow *row, int64_t w, int64_t k)
{
    const Image *im = b->im;
    double       sum = 0;
    ImageRun     run;
    for (int64_t at = 0; at < k && sum == sum; at += run.length) {
        int64_t low, high;
        image_run(im, at, &run);
        image_inside(im, row, &run, &low, &high);
        for (int64_t e = low; e < high && sum == sum; e++)
            sum += operand(b->type, b->x, row->x + run.x + e * im->x_step) * operand(b->type, b->w, w + run.w + e * im->w_step);
    }
    return sum;
}

static void put(const Border *b, int64_t at, double v)
{
    if (b->type == GEMM_F64)
        ((double *)(void *)b->sums)[at] = v;
    else
        ((float *)(void *)b->sums)[at] = (float)v;
}

/* Of up to FEATURES features, what is known of their kernels: nothing yet, that they are finite, have infinities but no NaN, or FIRST + the column of the first NaN.
 * Images full of NaN make sums that are NaN and right: these cost one look at the kernel. */
enum { FEATURES = 64 };
enum { UNKNOWN, FINITE, INFINITE, FIRST };

static int64_t look_at_kernel(const Border *b, int64_t w, int64_t k)
{
    int64_t  known = FINITE;
    ImageRun run;
    for (int64_t at = 0; at < k; at += run.length) {
        image_run(b->im, at, &run);
        for (int64_t e = 0; e < run.length; e++) {
            const double v = operand(b->type, b->w, w + run.w + e * b->im->w_step);
            if (v != v)
                return FIRST + at + e;
            if (v - v != 0)
                known = INFINITE;
        }
    }
    return known;
}

/* Whether a pixel's window has column k in the image. */
static int covers(const Image *im, const ImageRow *row, int64_t k)
{
    int64_t  low, high;
    ImageRun run;
    image_run(im, k, &run);
    image_inside(im, row, &run, &low, &high);
    return low == 0 && high > 0;
}

static void mend_pixels(const Border *b, int64_t *known, int64_t pixel, int64_t n)
{
    const int64_t by_pixel = b->im->is_b ? 1 : b->stride, by_feature = b->im->is_b ? b->stride : 1;
    const int64_t k = image_taps(b->im) * b->im->in;
    for (int64_t q = 0; q < n; q++) {
        ImageRow row;
        if (!pixel_may_have_nan(b, pixel + q))
            continue;
        image_rows(b->im, pixel + q, 1, &row);
        for (int64_t i = 0; i < b->features; i++) {
            const int64_t f = b->feature + i, at = (pixel + q - b->pixel) * by_pixel + i * by_feature;
            if (!is_nan(b, at))
                continue;
            if (known[i] == UNKNOWN)
                known[i] = look_at_kernel(b, f * b->w_out, k);
            if (known[i] != FINITE && (known[i] == INFINITE || !covers(b->im, &row, known[i] - FIRST)))
                put(b, at, sum_of(b, &row, f * b->w_out, k));
        }
    }
}

static int64_t limit(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x < most ? x : most;
}

/* Of n pixels of a line from `row` on, those from *low to *high - 1 have their whole windows inside. */
static void find_inside(const Image *im, const ImageRow *row, int64_t n, int64_t *low, int64_t *high)
{
    *low = 0;
    *high = n;
    for (int64_t d = 0; d < im->n; d++) {
        const ImageDim *x = &im->d[d];
        const int64_t   first = row->c[d], room = x->size - first - (x->window - 1) * x->dilation;
        if (!x->checked)
            continue;
        if (d < im->n - 1) {
            *high = first < 0 || room <= 0 ? 0 : *high;
            continue;
        }
        *low = first < 0 ? (x->step - 1 - first) / x->step : 0;
        *high = room <= 0 ? 0 : limit((x->step - 1 + room) / x->step, *high);
    }
}

static void mend_features(const Border *b)
{
    const Image  *im = b->im;
    int64_t       own[FEATURES] = { UNKNOWN }, *known = b->feature + b->features <= b->n_known ? b->known + b->feature : own;
    const int64_t line = im->d[im->n - 1].out, end = b->pixel + b->pixels;
    for (int64_t p = b->pixel, n; p < end; p += n) {
        int64_t  low, high;
        ImageRow row;
        n = limit(line - p % line, end - p);
        image_rows(im, p, 1, &row);
        find_inside(im, &row, n, &low, &high);
        if (low >= high)
            low = high = 0;
        mend_pixels(b, known, p, low);
        mend_pixels(b, known, p + high, n - high);
    }
}

int border_is_checked(const Image *im, GemmType type)
{
    int checked = 0;
    for (int64_t d = 0; d < im->n; d++)
        checked |= im->d[d].checked;
    return checked && type != GEMM_S32 && type != GEMM_S8_S32 && type != GEMM_U8_S32;
}

void border_mend(const Border *b)
{
    Border part = *b;
    if (!tile_may_have_nan(b))
        return;
    for (const int64_t end = b->feature + b->features; part.feature < end; part.feature += part.features) {
        part.features = limit(end - part.feature, FEATURES);
        mend_features(&part);
        part.sums += part.features * (b->im->is_b ? b->stride : 1) * (b->type == GEMM_F64 ? 8 : 4);
    }
}
