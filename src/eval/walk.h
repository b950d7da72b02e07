/* Walks over arrays by strides. An Odometer counts through an index space in row-major order and keeps, for each of several arrays,
 * the offset of the element that belongs to the current index. */
#ifndef EVAL_WALK_H
#define EVAL_WALK_H

#include "ir/literal.h"

#define WALK_RANK   64 /* dimensions that any walk may have */
#define WALK_ARRAYS 3

typedef struct Odometer {
    int32_t rank, arrays;
    int64_t dims[WALK_RANK], index[WALK_RANK];
    int64_t stride[WALK_ARRAYS][WALK_RANK]; /* elements per step along a dimension; any sign, 0 repeats */
    int64_t at[WALK_ARRAYS];
} Odometer;

/* Row-major strides of dims. */
void walk_strides(int32_t rank, const int64_t *dims, int64_t *strides);
/* An odometer of two arrays over dims: at index 0, all strides and offsets 0. Only the first `rank` places are set, as most ranks are small. */
void walk_start(Odometer *o, int32_t rank, const int64_t *dims);
/* The first `rank` dimensions of another, at index 0. */
void walk_take(Odometer *o, const Odometer *from, int32_t rank);
/* The next index; false behind the last one. */
bool walk_next(Odometer *o);
/* The product of the sizes. */
int64_t walk_count(const Odometer *o);

/* Drops dimensions of size 1 and merges neighbours that continue each other in all arrays. */
void walk_simplify(Odometer *o);
/* n elements, st and sf apart. */
void walk_copy_row(void *to, int64_t st, const void *from, int64_t sf, int64_t n, int bytes);
/* to[at to] = from[at from] over the whole space: array 0 is to, array 1 is from; both start at o->at. bytes is that of an element. */
void walk_copy(Odometer *o, void *to, const void *from, int bytes);

/* p[0..n) = *v */
void walk_fill(void *p, int64_t n, const void *v, int bytes);

#endif
