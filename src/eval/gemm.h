/* Matrix products, the inner loop of dots and convolutions. */
#ifndef EVAL_GEMM_H
#define EVAL_GEMM_H

#include "ir/type.h"

/* The type in which products with results of type t are summed: f64 for all floats, 64 bits for integers. */
Type product_type(Type t);

/* c[m, n] += sum over k of a[m, k] * b[k, n], all row-major and contiguous, of a type that product_type gives; for pred the sum is
 * `or`, the product `and`. The terms of one element are added in the order of k. */
void eval_gemm(Type type, int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c);

#endif
