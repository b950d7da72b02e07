/* border.h - what falls beside an image is no term of a sum, but products in tiles multiply zeros there: wrong where the kernel has infinities or NaN. Then sums are
 * NaN, at pixels whose window lies over the border, and are summed once more, by the definition. */
#ifndef HLORT_BORDER_H
#define HLORT_BORDER_H

#include "runtime/image.h"

/* A tile of sums, f64 for f64, else f32: pixels and features, from the first ones on. x and w are those of pixel 0's corner and of feature 0's first tap. */
typedef struct Border {
    const Image *im;
    GemmType     type;
    const char  *x, *w;
    int64_t      w_out;
    char        *sums;
    int64_t      stride;        /* from one pixel to the next, whose features are neighbours; im->is_b: the other way round */
    int64_t      pixel, pixels, feature, features;
    int64_t       *known;       /* what is known of the kernels of features 0 .. n_known - 1, zeros at first; kept from tile to tile */
    int64_t        n_known;
} Border;

int  border_is_checked(const Image *im, GemmType type); /* or else there is nothing to mend */
void border_mend(const Border *b);

#endif
