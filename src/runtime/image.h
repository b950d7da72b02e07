/* image.h - the windows of an image as a matrix.
 *
 *     rows      pixels of the result: one for each position of the window
 *     columns   what a window covers: one for each tap and feature, as the kernel has them
 *
 * Neither the rows nor the columns are evenly apart: a row has the coordinates of its window's corner and a column those of its tap relative to it; both add up to a
 * place in the image or beside it, where there is 0. Columns come in runs that lie evenly.
 *
 *     3x3 taps of 64 features that neighbour pixels have side by side: three runs of 192 elements, one for each line */
#ifndef HLORT_IMAGE_H
#define HLORT_IMAGE_H

#include "runtime/gemm.h"

enum { IMAGE_DIMS = HLORT_MOST_SPATIAL + 1, IMAGE_FEATURES = IMAGE_DIMS }; /* of the image, its batch among them; the axis of features */

typedef struct ImageDim {
    int64_t out;                    /* pixels of the result */
    int64_t first, step;            /* the corner's coordinate for pixel 0, from one pixel to the next */
    int64_t window, dilation;       /* taps, from one tap's coordinate to the next */
    int64_t size;                   /* of the image */
    int64_t x, w, y;                /* distances in elements: of coordinates, of taps, of pixels */
    int     checked;                /* coordinates may lie beside the image */
} ImageDim;

typedef struct Image {
    int64_t     n;                  /* dimensions, in the order of rows, the outermost first */
    ImageDim    d[IMAGE_DIMS];
    int64_t     in, x_in, w_in;     /* features */
    int64_t     x_first;            /* where the first pixel of all that were straightened is */
    int64_t     axes, axis[IMAGE_DIMS + 1]; /* of columns, the outermost first: dimensions and IMAGE_FEATURES */
    int         merged;             /* the last two are a line of whole pixels: runs go over its features */
    int         plain;              /* in the kernel all columns are evenly apart, w_step */
    int         is_b;               /* the image is B, transposed: its columns are pixels */
    int64_t     x_step, w_step;     /* along a run */
    const void *x_end;              /* of the image's memory */
} Image;

typedef struct ImageRun {
    int64_t k, length;              /* of the block's columns */
    int64_t x, w;                   /* where it begins, from the window's corner, from the kernel's first element */
    int64_t c[IMAGE_DIMS];          /* coordinates from the corner */
    int64_t lead;                   /* features of its first pixel that are not in it */
} ImageRun;

typedef struct ImageRow {
    int64_t x, y;                   /* of the corner; of the pixel */
    int64_t c[IMAGE_DIMS];
} ImageRow;

/* Orders n dimensions, joins those that lie like one, and fills in what follows w_in. */
void image_order(Image *im);

int64_t image_pixels(const Image *im);
int64_t image_taps(const Image *im);
void    image_run(const Image *im, int64_t k, ImageRun *run); /* from column k to the end of its run */
int64_t image_runs(const Image *im, int64_t k, int64_t n, ImageRun *runs); /* of columns k .. k + n - 1; how many */
void    image_rows(const Image *im, int64_t row, int64_t n, ImageRow *rows);
int     image_is_matrix(const Image *im); /* one tap for each pixel, evenly apart, all of them in the image */

/* All that a row's window covers lies in the image. */
static inline __attribute__((always_inline)) int image_has_window(const Image *im, const ImageRow *row)
{
    for (int64_t d = 0; d < im->n; d++) {
        const ImageDim *x = &im->d[d];
        if (x->checked && (row->c[d] < 0 || row->c[d] + (x->window - 1) * x->dilation >= x->size))
            return 0;
    }
    return 1;
}

/* Elements *low .. *high - 1 of a run of a row lie in the image. */
static inline __attribute__((always_inline)) void image_inside(const Image *im, const ImageRow *row, const ImageRun *run, int64_t *low, int64_t *high)
{
    const int64_t last = im->axis[im->axes - 1], line = im->merged ? im->axis[im->axes - 2] : last;
    *low = 0;
    *high = run->length;
    for (int64_t d = 0; d < im->n; d++) {
        const ImageDim *x = &im->d[d];
        if (!x->checked)
            continue;
        int64_t at = row->c[d] + run->c[d];
        if (d != line) {
            if (at < 0 || at >= x->size)
                *high = 0;
            continue;
        }
        const int64_t unit = im->merged ? im->in : 1, left = im->merged ? at * unit + run->lead : at, right = x->size * unit - left;
        const int64_t step = im->merged ? 1 : x->dilation;
        const int64_t from = left < 0 ? (step - 1 - left) / step : 0, to = right <= 0 ? 0 : (step - 1 + right) / step;
        *low = from < *low ? *low : from;
        *high = to < *high ? to : *high;
    }
    if (*high <= *low)
        *low = *high = 0;
}

#endif
