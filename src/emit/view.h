/* How far apart the elements of an array lie that is a part of another one, its elements moved, repeated or put into other dimensions.
 *
 *   transpose(reshape(p: f32[8,64,4,32] -> [8,64,128])), dimensions={0,2,1}     distances 16384, 1, 128: nothing need be written
 *   slice(qkv: f32[8,64,384]), [128:256] of the last        distances 24576, 384, 1 from element 128 on
 *   broadcast(k: [8,512,64] -> [8,4,512,64]) -> [32,512,64]                     groups of 4 heads share a key: each 4, by 0, far 32768 */
#ifndef EMIT_VIEW_H
#define EMIT_VIEW_H

#include "ir/inst.h"

enum { VIEW_MOST_DIMS = 16, VIEW_MOST_STEPS = 64 };

/* A dimension: so many neighbours, how many elements they are apart, and how many groups of them are. */
typedef struct Along {
    int64_t each, by, far;
} Along;

/* Of each dimension of x, which lies in *param, a parameter that lies as `as` does (NULL: as its own shape), from its element number *start on. False: x is
 * more than moved and repeated elements, or a dimension needs more than two distances. */
bool view_of_param(const Inst *x, const Shape *as, Along *of, int64_t *start, const Inst **param);

/* Of each dimension of x, in the array that root makes of x's elements. False: it has others, or a dimension of x is torn apart. */
bool view_in_root(const Inst *x, const Inst *root, Along *of);

/* Of an array as it lies. */
void view_of_shape(const Shape *s, Along *of);

#endif
