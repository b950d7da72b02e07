/* Tilings of the shardings' kinds. */
#include "ir/tiling.h"

static void whole(int32_t rank, Tiling *t)
{
    t->rank = rank;
    for (int32_t d = 0; d < rank; d++) {
        t->tiles[d] = 1;
        t->at[d] = 0;
    }
}

/* Where device stands in the list, -1: nowhere. */
static int64_t place_of(Ints devices, int64_t device)
{
    for (int32_t k = 0; k < devices.n; k++)
        if (devices.v[k] == device)
            return k;
    return -1;
}

static const char *not_among(Arena *a, Ints devices, int64_t n)
{
    return arena_printf(a, "its sharding is for %d devices, but there are %lld", devices.n, (long long)n);
}

/* Tile dimensions beyond the rank are subgroups: devices that differ only there have the same piece. */
static const char *by_tiles(Arena *a, const Sharding *s, int64_t n, int64_t device, Tiling *t)
{
    Ints    devices = s->has_iota ? iota_expand(a, s->iota) : s->devices;
    int64_t place = place_of(devices, device);
    if (devices.n != n || place < 0 || s->dims.n < t->rank)
        return not_among(a, devices, n);
    for (int32_t k = 0; k < s->subgroups.n; k++)
        if (s->subgroups.v[k] == SUBGROUP_UNREDUCED || s->subgroups.v[k] == SUBGROUP_MAXIMAL)
            return "its sharding leaves partial results";
    for (int32_t d = s->dims.n; d-- > 0;) {
        if (d < t->rank) {
            t->tiles[d] = s->dims.v[d];
            t->at[d] = place % s->dims.v[d];
        }
        place /= s->dims.v[d];
    }
    return NULL;
}

/* The axes of a dimension, major first: each adds a digit to the number of the tile. */
static const char *by_mesh(Arena *a, const Sharding *s, int64_t n, int64_t device, Tiling *t)
{
    const Mesh *m = s->mesh;
    if (s->unreduced.n > 0)
        return "its sharding leaves partial results";
    if (m->kind == MESH_SINGLE_DEVICE)
        return "its sharding puts it on a single device";
    Ints    devices = mesh_devices(a, m), coordinate = ints_make(a, m->n_axes);
    int64_t place = place_of(devices, device);
    if (devices.n != n || place < 0)
        return not_among(a, devices, n);
    for (int32_t k = m->n_axes; k-- > 0;) {
        *ints_at(coordinate, k) = place % m->axes[k].size;
        place /= m->axes[k].size;
    }
    for (int32_t d = 0; d < s->n_named; d++) {
        for (int32_t k = 0; k < s->named[d].axes.n; k++) {
            AxisRef r = s->named[d].axes.v[k];
            int64_t axis = m->axes[r.axis].size, size = r.size ? r.size : axis, minor = r.size ? axis / (r.pre * r.size) : 1;
            t->tiles[d] *= size;
            t->at[d] = t->at[d] * size + coordinate.v[r.axis] / minor % size;
        }
    }
    return NULL;
}

const char *tiling_of(Arena *a, const Sharding *s, int32_t rank, int64_t n, int64_t device, Tiling *out)
{
    if (rank > MAX_TILED_RANK)
        return "it has too many dimensions";
    whole(rank, out);
    switch (s->kind) {
    case SHARDING_REPLICATED:
    case SHARDING_MANUAL:
        return NULL;
    case SHARDING_TILED:
        return by_tiles(a, s, n, device, out);
    case SHARDING_NAMED:
        return by_mesh(a, s, n, device, out);
    case SHARDING_MAXIMAL:
        return "its sharding puts it on a single device";
    case SHARDING_UNREDUCED:
        return "its sharding leaves partial results";
    case SHARDING_UNKNOWN:
    case SHARDING_TUPLE:
        return "its sharding does not say how it is cut";
    }
    die("tiling_of: a kind without a rule");
}
