/* The innermost dimension is a tight loop; dimensions that continue each other in both arrays are merged first. */
#include "eval/walk.h"

#include <string.h>

void walk_strides(int32_t rank, const int64_t *dims, int64_t *strides)
{
    int64_t n = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        strides[d] = n;
        n *= dims[d];
    }
}

void walk_start(Odometer *o, int32_t rank, const int64_t *dims)
{
    size_t bytes = (size_t)rank * sizeof dims[0];
    o->rank = rank;
    o->arrays = 2;
    if (rank > 0) {
        memcpy(o->dims, dims, bytes);
        memset(o->index, 0, bytes);
        for (int a = 0; a < WALK_ARRAYS; a++)
            memset(o->stride[a], 0, bytes);
    }
    memset(o->at, 0, sizeof o->at);
}

void walk_take(Odometer *o, const Odometer *from, int32_t rank)
{
    walk_start(o, rank, from->dims);
    o->arrays = from->arrays;
    for (int a = 0; a < from->arrays; a++) {
        memcpy(o->stride[a], from->stride[a], (size_t)rank * sizeof o->stride[a][0]);
        o->at[a] = from->at[a];
    }
}

bool walk_next(Odometer *o)
{
    for (int32_t d = o->rank - 1; d >= 0; d--) {
        o->index[d]++;
        for (int32_t a = 0; a < o->arrays; a++)
            o->at[a] += o->stride[a][d];
        if (o->index[d] < o->dims[d])
            return true;
        for (int32_t a = 0; a < o->arrays; a++)
            o->at[a] -= o->stride[a][d] * o->dims[d];
        o->index[d] = 0;
    }
    return false;
}

int64_t walk_count(const Odometer *o)
{
    int64_t n = 1;
    for (int32_t d = 0; d < o->rank; d++)
        n *= o->dims[d];
    return n;
}

void walk_simplify(Odometer *o)
{
    int32_t n = 0;
    for (int32_t d = 0; d < o->rank; d++) {
        if (o->dims[d] == 1)
            continue;
        bool merges = n > 0;
        for (int32_t a = 0; a < o->arrays && merges; a++)
            merges = o->stride[a][n - 1] == o->stride[a][d] * o->dims[d];
        int32_t to = merges ? n - 1 : n;
        o->dims[to] = merges ? o->dims[to] * o->dims[d] : o->dims[d];
        for (int32_t a = 0; a < o->arrays; a++)
            o->stride[a][to] = o->stride[a][d];
        n = to + 1;
    }
    o->rank = n;
}

#define COPY_ROW(T)                                                                                                             \
    for (int64_t j = 0; j < n; j++)                                                                                             \
    ((T *)to)[j * st] = ((const T *)from)[j * sf]

typedef struct Sixteen { uint64_t lo, hi; } Sixteen;

void walk_copy_row(void *to, int64_t st, const void *from, int64_t sf, int64_t n, int bytes)
{
    if (st == 1 && sf == 1) {
        memcpy(to, from, (size_t)n * (size_t)bytes);
        return;
    }
    switch (bytes) {
    case 1: COPY_ROW(uint8_t); break;
    case 2: COPY_ROW(uint16_t); break;
    case 4: COPY_ROW(uint32_t); break;
    case 8: COPY_ROW(uint64_t); break;
    default: COPY_ROW(Sixteen);
    }
}

/* Both of the last two dimensions may be the contiguous one: then small tiles keep the cache lines of both arrays in use. */
#define TILE 16

static void copy_plane(const Odometer *o, char *to, const char *from, int bytes)
{
    int32_t r = o->rank - 2, c = o->rank - 1;
    int64_t tr = o->stride[0][r], tc = o->stride[0][c], fr = o->stride[1][r], fc = o->stride[1][c];
    for (int64_t r0 = 0; r0 < o->dims[r]; r0 += TILE)
        for (int64_t c0 = 0; c0 < o->dims[c]; c0 += TILE) {
            int64_t n = o->dims[c] - c0 < TILE ? o->dims[c] - c0 : TILE;
            for (int64_t j = r0; j < r0 + TILE && j < o->dims[r]; j++)
                walk_copy_row(to + (j * tr + c0 * tc) * bytes, tc, from + (j * fr + c0 * fc) * bytes, fc, n, bytes);
        }
}

void walk_copy(Odometer *o, void *to, const void *from, int bytes)
{
    if (walk_count(o) == 0)
        return;
    walk_simplify(o);
    int32_t inner = o->rank - 1;
    int64_t *at = o->at;
    if (o->rank == 0) {
        walk_copy_row((char *)to + at[0] * bytes, 1, (const char *)from + at[1] * bytes, 1, 1, bytes);
        return;
    }
    bool plane = o->rank > 1 && o->stride[1][inner] != 1 && (o->stride[1][inner - 1] == 1 || o->stride[1][inner - 1] == -1);
    Odometer outer;
    walk_take(&outer, o, inner - (plane ? 1 : 0));
    do {
        char *t = (char *)to + outer.at[0] * bytes;
        const char *f = (const char *)from + outer.at[1] * bytes;
        if (plane)
            copy_plane(o, t, f, bytes);
        else
            walk_copy_row(t, o->stride[0][inner], f, o->stride[1][inner], o->dims[inner], bytes);
    } while (walk_next(&outer));
}

void walk_fill(void *p, int64_t n, const void *v, int bytes)
{
    if (n == 0)
        return;
    char *to = p;
    int64_t total = n * bytes, done = bytes;
    memcpy(to, v, (size_t)bytes);
    while (done < total) { /* doubling */
        int64_t more = done < total - done ? done : total - done;
        memcpy(to + done, to, (size_t)more);
        done += more;
    }
}
