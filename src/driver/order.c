/* One walk over all indices, row-major, that keeps the place in memory. */
#include "config.h"

#include "driver/order.h"

#include <string.h>

/* dst has the order of memory of s, src is row-major (or the other way round when back). */
static void reorder(const Shape *s, void *dst, const void *src, bool back)
{
    int64_t stride[64], index[64] = { 0 }, at = 0, count = shape_count(s);
    size_t  width = (size_t)type_bytes(s->type);
    shape_strides(s, stride);
    for (int64_t n = 0; n < count; n++) {
        if (back)
            memcpy((char *)dst + (size_t)n * width, (const char *)src + (size_t)at * width, width);
        else
            memcpy((char *)dst + (size_t)at * width, (const char *)src + (size_t)n * width, width);
        for (int32_t k = s->rank - 1; k >= 0; k--) {
            at += stride[k];
            if (++index[k] < s->dims[k])
                break;
            at -= stride[k] * s->dims[k];
            index[k] = 0;
        }
    }
}

void order_to_memory(const Shape *s, void *to, const void *row_major)
{
    if (layout_is_row_major(s))
        memcpy(to, row_major, (size_t)shape_bytes(s));
    else
        reorder(s, to, row_major, false);
}

void order_from_memory(const Shape *s, void *row_major, const void *from)
{
    if (layout_is_row_major(s))
        memcpy(row_major, from, (size_t)shape_bytes(s));
    else
        reorder(s, row_major, from, true);
}
