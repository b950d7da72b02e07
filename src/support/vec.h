/* A growing array whose storage is an arena's: VEC(Inst *) v = {0}; vec_push(a, &v, i); for (int k = 0; k < v.n; k++) v.v[k] */
#ifndef SUPPORT_VEC_H
#define SUPPORT_VEC_H

#include "support/arena.h"

#define VEC(T)                                                                                                                  \
    struct {                                                                                                                    \
        T      *v;                                                                                                              \
        int32_t n, cap;                                                                                                         \
    }

#define vec_push(a, vec, x)                                                                                                     \
    do {                                                                                                                        \
        if ((vec)->n == (vec)->cap)                                                                                             \
            (vec)->v = vec_grow_((a), (vec)->v, (vec)->n, &(vec)->cap, sizeof *(vec)->v);                                       \
        (vec)->v[(vec)->n++] = (x);                                                                                             \
    } while (0)

void *vec_grow_(Arena *a, void *v, int32_t n, int32_t *cap, size_t size);

#endif
