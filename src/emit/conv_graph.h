/* A convolution as one of the three operations of a device's library (cuDNN): of an image and a filter, or as one of the gradients of that.
 *
 *     result[n, k, p] = sum over c, w of image[n, c, stride p + dilation w - pre] filter[k, c, w]
 *
 *     CONV_FORWARD      result of the two others      a convolution as it is
 *     CONV_TO_IMAGE     the image's gradient          base dilation is the stride; what the window reads is the result, and the filter turned round
 *     CONV_TO_FILTER    the filter's gradient         the window is the result, its dilation the stride, its stride the dilation; groups of the batch are groups of features
 *
 * with k and c in groups. The library has arrays whose features are either next to each other or outside of the pixels, all of them alike. */
#ifndef EMIT_CONV_GRAPH_H
#define EMIT_CONV_GRAPH_H

#include "emit/kernel.h"
#include "emit/product_epilogue.h"

enum { CONV_MOST_SPATIAL = 3, CONV_MOST_DIMS = CONV_MOST_SPATIAL + 2, CONV_ALIGN = 256 };

typedef enum ConvWay { CONV_FORWARD, CONV_TO_IMAGE, CONV_TO_FILTER } ConvWay;

/* One of the arrays as the library has it: [n or k, c or k, pixels...]. */
typedef struct ConvArray {
    int64_t size[CONV_MOST_DIMS];
    int32_t dim[CONV_MOST_DIMS]; /* of HLO; -1: of size 1, and not there */
    bool    moves;               /* it lies otherwise in memory */
} ConvArray;

typedef struct ConvGraph {
    ConvWay         way;
    Type            type;       /* of all arrays; sums are f32 */
    int32_t         n_spatial;  /* 2 or 3 */
    bool            last;       /* features are next to each other */
    bool            turned;     /* the filter is reversed in all its dimensions */
    ConvArray       image, filter, result;
    int64_t         pre[CONV_MOST_SPATIAL], post[CONV_MOST_SPATIAL], stride[CONV_MOST_SPATIAL], dilation[CONV_MOST_SPATIAL];
    ProductEpilogue epilogue;   /* of a convolution alone: which it is, and no more */
    int64_t         work;       /* bytes of working memory that it wants */
} ConvGraph;

/* Is i, a convolution or a fusion around one, worth a call of the library once the arrays that move lie as that wants them? Fusions that the library has are those with a bias,
 * with a matrix that is added before it or without, with a relu or without. */
bool conv_graph(const Inst *i, ConvGraph *out);
/* The same of the convolution alone, whose operands are parameters of a fusion. */
bool conv_graph_alone(const Inst *conv);

/* Whether an array of i moves; copies of these in front of i and behind. Deletes i. */
bool conv_graph_moves(const Inst *i);
Inst *conv_graph_move(Inst *i);

/* Whether k is such a call with all arrays in their places; it then gets its working memory, which is aligned to CONV_ALIGN in it. */
bool conv_graph_of_kernel(const Kernel *k, ConvGraph *out);
void kernel_for_graph(Kernel *k);

#endif
