/* Columns: an array is reduced along other dimensions than the one that lies together, and the results are wanted in the columns again. So do softmax and norms along
 * a dimension in the middle:
 *
 *   x = f32[8,1000,64]
 *   m = f32[8,64] reduce(x), dimensions={1}                      8 times 64 columns of 1000
 *   b = f32[8,1000,64] broadcast(m), dimensions={0,2}            y = x - b
 *
 * A kernel may go through some neighbouring columns at once, all loops over them while a cache holds them, or a block of a device's threads. Sizes of 1 count for nothing here. */
#ifndef ANALYSIS_COLUMNS_H
#define ANALYSIS_COLUMNS_H

#include "analysis/device.h"
#include "ir/inst.h"

enum { LEAST_COLUMNS = 16, /* side by side */
       COLUMNS_WIDE = 256, /* as many as a kernel likes to go through at once */
       COLUMNS_OF_BLOCK = 32, /* that threads of a device's block share, */
       COLUMN_PARTS = 16 << 10, /* with bytes of shared memory for their sums beside what is kept */
       COLUMN_BYTES_KEPT = 1 << 19, /* that LEAST_COLUMNS of an array may have */
       COLUMN_BYTES_LOCAL = 1 << 20 /* of values that a kernel keeps */ };

/* r reduces one array down its columns, of which LEAST_COLUMNS are not too much for a cache. */
bool reduces_columns(const Inst *r);

/* Both go down the same columns. */
bool columns_same(const Inst *r, const Inst *other);

/* s has the sizes and the order of what r reduces; reduced (NULL, or one for each dimension of s): which ones those are that r reduces. */
bool columns_are_of(const Inst *r, const Shape *s, bool *reduced);

/* b repeats a value of each column down that column, for the columns of r. */
bool columns_repeat(const Inst *r, const Inst *b);

/* s has one element for each column, in their order. */
bool columns_number(const Inst *r, const Shape *s);

/* Columns that lie together. */
int64_t columns_together(const Inst *r);

/* x is made of r's values element by element, and is neither larger nor in another order. */
bool columns_make(const Inst *r, const Inst *x);

/* Blocks of r's columns are so few, and so long, that a device's units are better used by kernels for each of the loops. */
bool columns_starve(const Inst *r, const Device *v);

#endif
