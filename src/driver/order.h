/* Arrays in the order of memory that a shape says, from and to row-major. */
#ifndef DRIVER_ORDER_H
#define DRIVER_ORDER_H

#include "ir/shape.h"

void order_to_memory(const Shape *s, void *to, const void *row_major);
void order_from_memory(const Shape *s, void *row_major, const void *from);

#endif
