#include "support/vec.h"

#include <string.h>

void *vec_grow_(Arena *a, void *v, int32_t n, int32_t *cap, size_t size)
{
    int32_t grown;
    if (__builtin_mul_overflow(*cap ? *cap : 4, *cap ? 2 : 1, &grown))
        die_out_of_memory("a list has more than 2^31 entries");
    void *w = arena_array(a, grown, size);
    if (n)
        memcpy(w, v, (size_t)n * size);
    *cap = grown;
    return w;
}
