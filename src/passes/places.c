/* Places as rows of a matrix. */
#include "config.h"

#include "passes/places.h"

#include "passes/expand.h"

Ints places_first(Arena *a, Ints map, int32_t rank)
{
    Ints    perm = ints_make(a, rank);
    int32_t n = 0;
    for (int32_t k = 0; k < map.n; k++)
        *ints_at(perm, n++) = map.v[k];
    for (int32_t d = 0; d < rank; d++)
        if (!ints_has(map, d))
            *ints_at(perm, n++) = d;
    return perm;
}

Inst *places_matrix(Inst *at, Inst *indices, int64_t index_vector_dim)
{
    Arena       *a = at->comp->module->arena;
    const Shape *s = indices->shape;
    int64_t      width = index_vector_dim < s->rank ? s->dims[index_vector_dim] : 1, rows = 1;
    for (int32_t k = 0; k < s->rank; k++)
        rows *= k == index_vector_dim ? 1 : s->dims[k];
    if (index_vector_dim + 1 < s->rank) {
        Ints    perm = ints_make(a, s->rank);
        int32_t n = 0;
        for (int32_t k = 0; k < s->rank; k++)
            if (k != index_vector_dim)
                *ints_at(perm, n++) = k;
        *ints_at(perm, n) = index_vector_dim;
        indices = expand_transpose(at, indices, perm);
    }
    return expand_reshape(at, shape_array(a, s->type, 2, (const int64_t[]){rows, width}), indices);
}
