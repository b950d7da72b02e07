/* A stable merge sort of positions, for sort and topk. */
#ifndef EVAL_ORDER_H
#define EVAL_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Sorts order[0..n) so that before(cookie, a, b) holds for no b that stands behind a: equal positions keep their order. room has n
 * entries. Any answers of before end with some permutation. */
void order_sort(int64_t *order, int64_t *room, int64_t n, bool (*before)(void *cookie, int64_t a, int64_t b), void *cookie);

#endif
