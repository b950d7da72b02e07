/* winograd.h - windows of 3 taps with fewer multiplications: Winograd's F(2, 3), along two dimensions F(2x2, 3x3).
 *
 * Two neighbours of the result meet four pixels d of the image and three taps g:
 *
 *     y0 = p0 + p1 + p2          p0 = (d0 - d2) g0          p1 = (d1 + d2) (g0 + g1 + g2) / 2
 *     y1 = p1 - p2 - p3          p3 = (d1 - d3) g2          p2 = (d2 - d1) (g0 - g1 + g2) / 2
 *
 * which is 4 products instead of 6, and along both dimensions, the same once more, 16 instead of 36. The sums over features are made of the products, so what is in
 * brackets is made once for a pixel and a feature: 4 or 16 points, each a product of matrices [tiles x features read] [features read x features made].
 *
 * y0 is made of nothing that its window does not meet, and so is y1. Infinities and NaN within it, and sums that overflow, make results that are not finite: lines of tiles that
 * have such results are made again by the definition. So are values beside the image no terms.
 * Source: A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015, section 4.1. */
#ifndef HLORT_WINOGRAD_H
#define HLORT_WINOGRAD_H

#include "runtime/gemm.h"

enum {
    WINOGRAD_TILES = 72, /* of a block, of 2 x 2 pixels; four times as many of 2 */
    WINOGRAD_RUN = 32    /* tiles of a line that are made together */
};

typedef struct Winograd {
    const hlort_conv *v;
    const float      *x, *w, *x_end, *w_end;
    float            *y;
    int64_t           n;           /* dimensions that tiles extend along */
    int64_t           d[2];        /* the last is the one along a line; the only one is d[1] */
    int64_t           tiles[2];
    int64_t           n_outer, outer[HLORT_MOST_SPATIAL]; /* the other dimensions: taps, and pixels beside the batch, as they are */
    int64_t           taps;
} Winograd;

/* Tiles of a line that are neighbours. */
typedef struct WinogradRun {
    int64_t image, row, column, n; /* image: of the batch and the other dimensions' pixels */
    int     again;                 /* has results that are not finite */
} WinogradRun;

typedef struct WinogradBlock {
    const Winograd *g;
    int64_t         group, feature, features;
    WinogradRun    *runs;
    int64_t         n_runs, tiles; /* 0: nothing is multiplied, points of taps are put into packed */
    void           *work;
    void           *packed;        /* points of the taps of these features, those of a block of k behind each other; NULL: none are kept */
} WinogradBlock;

/* 0: it is not one of those, nothing is done. */
int hlort_winograd(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y);

#endif
