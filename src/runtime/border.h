/* border.h - what falls beside an image is no term of a sum, but products in tiles multiply zeros there: wrong where the kernel has infinities or NaN. Then sums are
 * NaN, at pixels whose window lies over the border, and are summed once more, by the definition. */
#ifndef HLORT_BORDER_H
#define HLORT_BORDER_H

#include "runtime/image.h"

/* A part of a result: pixels and features, from the first ones on. x, w and y are those of pixel 0's corner, feature 0's first tap, and of both. */
typedef struct Border {
    const Image *im;
    GemmType     type;
    const char  *x, *w;
    char        *y;
    int64_t      w_out, y_out;
    int64_t      pixel, pixels, feature, features;
    void (*narrow)(uint16_t *to, const float *from, int64_t n);
} Border;

void border_mend(const Border *b);

#endif
