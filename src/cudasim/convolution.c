/* Convolutions and their gradients, as a library does them on a device. Arrays are taken apart into doubles with the features innermost, and then a pixel of the result meets one of the window at a time. */
#include "cudasim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Call {
    cudasim_convolution c;
    void               *arrays[3]; /* image, filter, result */
    const void         *added, *bias;
} Call;

static int64_t pixels(const cudasim_convolution *c, const int64_t *size)
{
    int64_t n = 1;
    for (int k = 0; k < c->n_spatial; k++)
        n *= size[2 + k];
    return n;
}

static int64_t count(const cudasim_convolution *c, const int64_t *size)
{
    return size[0] * size[1] * pixels(c, size);
}

/* ---- arrays ---- */

/* Where element [n, c, pixel] lies. */
static int64_t place(const cudasim_convolution *c, const int64_t *size, int64_t n, int64_t f, int64_t pixel)
{
    const int64_t all = pixels(c, size);
    return c->last ? (n * all + pixel) * size[1] + f : (n * size[1] + f) * all + pixel;
}

static double rounded(double v)
{
    int e;
    const double m = frexp(v, &e);
    return isfinite(v) ? ldexp(nearbyint(ldexp(m, 8)), e - 8) : v;
}

/* Of the image and the result [n, pixel, c], of the filter [pixel, c, k]. */
static int64_t place_apart(const cudasim_convolution *c, const int64_t *size, int which, int64_t n, int64_t f, int64_t pixel)
{
    return which == 1 ? (pixel * size[1] + f) * size[0] + n : (n * pixels(c, size) + pixel) * size[1] + f;
}

static double *taken_apart(const Call *x, int which)
{
    const cudasim_convolution *c = &x->c;
    const int64_t *size = which == 0 ? c->image : which == 1 ? c->filter : c->result;
    const int64_t  all = pixels(c, size);
    double        *v = calloc((size_t)count(c, size), sizeof *v);
    for (int64_t n = 0; n < size[0] && v && which != c->way; n++)
        for (int64_t f = 0; f < size[1]; f++)
            for (int64_t p = 0; p < all; p++) {
                const double e = cudasim_load(c->type, x->arrays[which], place(c, size, n, f, p));
                v[place_apart(c, size, which, n, f, p)] = c->coarse ? rounded(e) : e;
            }
    return v;
}

static double finished(const Call *x, double v, int64_t at, int64_t feature)
{
    if (x->added)
        v += cudasim_load(x->c.type, x->added, at);
    if (x->bias)
        v += cudasim_load(x->c.type, x->bias, feature);
    return x->c.relu && !(v > 0) ? 0 : v;
}

static void put_together(const Call *x, const double *v)
{
    const cudasim_convolution *c = &x->c;
    const int64_t *size = c->way == 0 ? c->image : c->way == 1 ? c->filter : c->result;
    const int64_t  all = pixels(c, size);
    for (int64_t n = 0; n < size[0]; n++)
        for (int64_t f = 0; f < size[1]; f++)
            for (int64_t p = 0; p < all; p++) {
                const int64_t at = place(c, size, n, f, p);
                cudasim_store(c->type, x->arrays[c->way], at, finished(x, v[place_apart(c, size, c->way, n, f, p)], at, f));
            }
}

/* ---- sums ---- */

/* The image's pixel that the window's reads for the result's; -1: none. */
static int64_t read_pixel(const cudasim_convolution *c, int64_t pixel, int64_t in_window)
{
    int64_t at = 0, by = 1;
    for (int k = c->n_spatial - 1; k >= 0; k--) {
        const int64_t size = c->filter[2 + k], w = in_window % size, p = pixel % c->result[2 + k];
        const int64_t x = p * c->stride[k] + (c->turned ? size - 1 - w : w) * c->dilation[k] - c->pre[k];
        if (x < 0 || x >= c->image[2 + k])
            return -1;
        at += x * by;
        by *= c->image[2 + k];
        in_window /= size;
        pixel /= c->result[2 + k];
    }
    return at;
}

/* One pixel of all three: x [C], w [c, K], y [K]. */
static void meet(const cudasim_convolution *c, double *x, double *w, double *y)
{
    const int64_t per = c->filter[1], all = c->filter[0], groups = c->image[1] / per, made = all / groups;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t f = 0; f < per; f++) {
            double *to = w + f * all + g * made, *sums = y + g * made, *from = x + g * per + f, sum = 0;
            for (int64_t k = 0; k < made && c->way == 0; k++)
                sum += sums[k] * to[k];
            *from += sum;
            for (int64_t k = 0; k < made && c->way == 1; k++)
                to[k] += *from * sums[k];
            for (int64_t k = 0; k < made && c->way == 2; k++)
                sums[k] += *from * to[k];
        }
}

static void convolve(void *cookie)
{
    const Call                *x = cookie;
    const cudasim_convolution *c = &x->c;
    const int64_t              of_image = pixels(c, c->image), of_window = pixels(c, c->filter), of_result = pixels(c, c->result);
    double                    *v[3] = { taken_apart(x, 0), taken_apart(x, 1), taken_apart(x, 2) };
    if (!v[0] || !v[1] || !v[2])
        cudasim_fault(NULL, 0, "no memory for a library's convolution");
    for (int64_t p = 0; p < of_result && v[0] && v[1] && v[2]; p++)
        for (int64_t w = 0; w < of_window; w++) {
            const int64_t at = read_pixel(c, p, w);
            for (int64_t n = 0; n < c->image[0] && at >= 0; n++)
                meet(c, v[0] + (n * of_image + at) * c->image[1], v[1] + w * c->filter[1] * c->filter[0], v[2] + (n * of_result + p) * c->result[1]);
        }
    if (v[0] && v[1] && v[2])
        put_together(x, v[c->way]);
    for (int k = 0; k < 3; k++)
        free(v[k]);
}

cudaError_t cudasim_enqueue_convolution(const cudasim_convolution *c, void *image, void *filter, void *result, const void *added, const void *bias, cudaStream_t s)
{
    LOCKED;
    const Call           call = { *c, { image, filter, result }, added, bias };
    const int64_t *const sizes[] = { c->image, c->filter, c->result };
    const size_t         bytes = cudasim_bytes_of(c->type);
    for (int k = 0; k < 3; k++)
        if (!cudasim_memory_is_device(call.arrays[k], (size_t)count(c, sizes[k]) * bytes) || (k != c->way && call.arrays[k] == call.arrays[c->way]))
            return cudaErrorInvalidValue;
    if ((added && (!cudasim_memory_is_device(added, (size_t)count(c, c->result) * bytes) || added == result)) ||
        (bias && !cudasim_memory_is_device(bias, (size_t)c->result[1] * bytes)))
        return cudaErrorInvalidValue;
    return cudasim_enqueue_work(convolve, &call, sizeof call, s);
}
