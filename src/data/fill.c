/* The streams: element i of a stream depends on the seed and on i alone. */
#include "config.h"

#include "data/fill.h"

/* In [-1, 1), a multiple of 2^-23. */
static double unit(uint64_t seed, int64_t i)
{
    return (double)(fill_hash(seed, (uint64_t)i) >> 40) * 0x1p-23 - 1.0;
}

void fill_uniform(Literal *l, uint64_t seed, double scale, double offset)
{
    if (l->type == TYPE_F32) { /* the big ones */
        float *v = l->data;
        for (int64_t i = 0; i < l->count; i++)
            v[i] = (float)(unit(seed, i) * scale + offset);
        return;
    }
    for (int64_t i = 0; i < l->count; i++) {
        if (type_is_complex(l->type)) {
            literal_set_f64(l, i, unit(seed, 2 * i) * scale + offset, unit(seed, 2 * i + 1) * scale + offset);
            continue;
        }
        double v = unit(seed, i) * scale + offset;
        literal_set_f64(l, i, l->type == TYPE_F64 ? v : (float)v, 0);
    }
}

void fill_int(Literal *l, uint64_t seed, int64_t lo, int64_t hi)
{
    uint64_t span = (uint64_t)hi - (uint64_t)lo;
    for (int64_t i = 0; i < l->count; i++) {
        uint64_t h = fill_hash(seed, (uint64_t)i);
        literal_set_s64(l, i, (int64_t)((uint64_t)lo + ((h >> 32) * span >> 32)));
    }
}

void fill_const(Literal *l, double v)
{
    for (int64_t i = 0; i < l->count; i++)
        literal_set_f64(l, i, v, 0);
}
