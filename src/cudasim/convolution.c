/* Convolutions and their gradients, as a library does them on a device. Arrays are taken apart into doubles with the features innermost; then,
 * for each pixel of the window, the pixels of the image meet those of the result as rows of matrices. */
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

/* Of the image and the result [n, pixel, c], of the filter [pixel, c, k], or [pixel, k, c] where the image is computed. */
static int64_t place_apart(const cudasim_convolution *c, const int64_t *size, int which, int64_t n, int64_t f, int64_t pixel)
{
    if (which == 1)
        return c->way == 0 ? (pixel * size[0] + n) * size[1] + f : (pixel * size[1] + f) * size[0] + n;
    return (n * pixels(c, size) + pixel) * size[1] + f;
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

/* What is computed, with memory for the pixels that meet at one of the window: n rows of features of the image and of the result. */
typedef struct Sums {
    const cudasim_convolution *c;
    int64_t  per, made, groups; /* features of a group */
    double  *v[3];              /* the arrays, taken apart */
    int64_t  n;
    double **x, **y, **rows;    /* rows: of a group */
    double **lhs;
    double  *gathered[2];       /* way 1: the rows, one after the other */
} Sums;

static void find_pairs(Sums *s, int64_t in_window)
{
    const cudasim_convolution *c = s->c;
    const int64_t              of_image = pixels(c, c->image), of_result = pixels(c, c->result);
    s->n = 0;
    for (int64_t p = 0; p < of_result; p++) {
        const int64_t at = read_pixel(c, p, in_window);
        for (int64_t n = 0; n < c->image[0] && at >= 0; n++) {
            s->x[s->n] = s->v[0] + (n * of_image + at) * c->image[1];
            s->y[s->n++] = s->v[2] + (n * of_result + p) * c->result[1];
        }
    }
}

/* Of a few features a pair at a time: w is [c, K], or [K, c] where the image is computed. */
static void add_pair(const Sums *s, double *x, double *w, double *y)
{
    for (int64_t g = 0; g < s->groups; g++)
        for (int64_t f = 0; f < s->per; f++)
            for (int64_t k = g * s->made; k < (g + 1) * s->made; k++) {
                double *from = x + g * s->per + f, *by = s->c->way == 0 ? w + k * s->per + f : w + f * s->c->filter[0] + k;
                if (s->c->way == 0)
                    *from += y[k] * *by;
                else if (s->c->way == 1)
                    *by += *from * y[k];
                else
                    y[k] += *from * *by;
            }
}

static bool add_image(const Sums *s, const double *w, int64_t group)
{
    for (int64_t k = 0; k < s->n; k++) {
        s->rows[k] = s->x[k] + group * s->per;
        s->lhs[k] = s->y[k] + group * s->made;
    }
    return cudasim_add_products(s->rows, (const double *const *)s->lhs, 1, w + group * s->made * s->per, s->per, s->n, s->per, s->made);
}

static bool add_filter(const Sums *s, double *w, int64_t group)
{
    for (int64_t f = 0; f < s->per; f++) {
        s->rows[f] = w + f * s->c->filter[0] + group * s->made;
        s->lhs[f] = s->gathered[0] + group * s->per + f;
    }
    return cudasim_add_products(s->rows, (const double *const *)s->lhs, s->c->image[1], s->gathered[1] + group * s->made, s->c->filter[0], s->per, s->made, s->n);
}

static bool add_result(const Sums *s, const double *w, int64_t group)
{
    for (int64_t k = 0; k < s->n; k++) {
        s->rows[k] = s->y[k] + group * s->made;
        s->lhs[k] = s->x[k] + group * s->per;
    }
    return cudasim_add_products(s->rows, (const double *const *)s->lhs, 1, w + group * s->made, s->c->filter[0], s->n, s->made, s->per);
}

static void gather(const Sums *s)
{
    for (int64_t k = 0; k < s->n; k++) {
        memcpy(s->gathered[0] + k * s->c->image[1], s->x[k], (size_t)s->c->image[1] * sizeof(double));
        memcpy(s->gathered[1] + k * s->c->filter[0], s->y[k], (size_t)s->c->filter[0] * sizeof(double));
    }
}

/* All that one pixel of the window has a part in. */
static bool add_pixel(Sums *s, int64_t in_window)
{
    enum { FEW = 8 };
    double    *w = s->v[1] + in_window * s->per * s->c->filter[0];
    const bool few = s->groups > 1 && (s->per < FEW || s->made < FEW);
    bool       ok = true;
    find_pairs(s, in_window);
    for (int64_t k = 0; k < s->n && few; k++)
        add_pair(s, s->x[k], w, s->y[k]);
    if (s->c->way == 1 && !few)
        gather(s);
    for (int64_t g = 0; g < s->groups && s->n > 0 && ok && !few; g++)
        ok = s->c->way == 0 ? add_image(s, w, g) : s->c->way == 1 ? add_filter(s, w, g) : add_result(s, w, g);
    return ok;
}

static bool add_all(Sums *s)
{
    const int64_t pairs = s->c->image[0] * pixels(s->c, s->c->result), rows = pairs > s->per ? pairs : s->per, of_window = pixels(s->c, s->c->filter);
    s->x = malloc((size_t)pairs * sizeof *s->x);
    s->y = malloc((size_t)pairs * sizeof *s->y);
    s->rows = malloc((size_t)rows * sizeof *s->rows);
    s->lhs = malloc((size_t)rows * sizeof *s->lhs);
    s->gathered[0] = malloc((size_t)(pairs * s->c->image[1]) * sizeof(double));
    s->gathered[1] = malloc((size_t)(pairs * s->c->filter[0]) * sizeof(double));
    bool ok = s->x && s->y && s->rows && s->lhs && s->gathered[0] && s->gathered[1];
    for (int64_t w = 0; w < of_window && ok; w++)
        ok = add_pixel(s, w);
    free(s->x);
    free(s->y);
    free(s->rows);
    free(s->lhs);
    free(s->gathered[0]);
    free(s->gathered[1]);
    return ok;
}

static void convolve(void *cookie)
{
    const Call                *x = cookie;
    const cudasim_convolution *c = &x->c;
    Sums s = { .c = c, .per = c->filter[1], .groups = c->image[1] / c->filter[1], .v = { taken_apart(x, 0), taken_apart(x, 1), taken_apart(x, 2) } };
    s.made = c->filter[0] / s.groups;
    if (s.v[0] && s.v[1] && s.v[2] && add_all(&s))
        put_together(x, s.v[c->way]);
    else
        cudasim_fault(NULL, 0, "no memory for a library's convolution");
    for (int k = 0; k < 3; k++)
        free(s.v[k]);
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
