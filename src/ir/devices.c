/* The order of devices: iotas, meshes, the groups of collectives as lists.
 *
 *   iota [4,2]T(1,0)   devices 0..7 as a 4 by 2 array, transposed: 0 2 4 6 1 3 5 7
 *   mesh['x'=2,'y'=4]  the same devices with names for the dimensions; a sub-axis 'y':(1)2 is the first factor of y = 2 * 2
 *
 * Source: reference text 5.8. */
#include "ir/attr_rare.h"

enum { MAX_DEVICES = 1 << 24 };

int64_t ints_product(Ints x)
{
    int64_t n = 1;
    for (int32_t k = 0; k < x.n; k++)
        if (!size_mul(n, x.v[k], &n))
            return -1;
    return n;
}

/* Text may give sizes of which the product does not fit; it wraps around, as in XLA, and the verifier refuses it. */
static int64_t wrapped(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int64_t perm_at(Iota x, int32_t k)
{
    return x.perm.n > 0 ? x.perm.v[k] : k;
}

bool iota_is_order(Iota x)
{
    if (x.perm.n > MAX_IOTA_RANK)
        return false;
    for (int32_t k = 0; k < x.perm.n; k++)
        for (int32_t j = 0; j < k; j++)
            if (x.perm.v[j] == x.perm.v[k])
                return false;
    return true;
}

/* The dimensions of size 1 go, out of perm too. perm keeps its old tail where it has fewer entries left than there are dimensions. */
static void drop_ones(Ints *dims, Ints *perm)
{
    int32_t to[MAX_IOTA_RANK], n = 0, m = 0;
    for (int32_t k = 0; k < dims->n; k++) {
        to[k] = dims->v[k] == 1 ? -1 : n;
        if (dims->v[k] != 1)
            *ints_at(*dims, n++) = dims->v[k];
    }
    for (int32_t k = 0; k < perm->n; k++)
        if (perm->v[k] >= dims->n || to[perm->v[k]] >= 0) {
            *ints_at(*perm, m) = perm->v[k] >= dims->n ? perm->v[k] : to[perm->v[k]];
            m++;
        }
    dims->n = perm->n = n;
}

/* The same where perm names a dimension twice: step by step what XLA does, since no order is there to keep. An entry of perm may be
 * out of range then. */
static Iota canonical_anyway(Arena *a, Ints dims, Ints perm)
{
    Iota x = {ints_copy(a, dims), ints_copy(a, perm)};
    for (bool changed = true; changed;) {
        changed = false;
        drop_ones(&x.dims, &x.perm);
        for (int32_t base = 0, k = 1; k < x.perm.n; k++) {
            int64_t from = x.perm.v[base], d = x.perm.v[k];
            if (from >= x.dims.n || d >= x.dims.n)
                return x;
            if (from + (k - base) != d) {
                base = k;
                continue;
            }
            *ints_at(x.dims, (int32_t)from) = wrapped(x.dims.v[from], x.dims.v[d]);
            *ints_at(x.dims, (int32_t)d) = 1;
            changed = true;
        }
    }
    if (x.dims.n == 0)
        x.dims = ints_copy(a, (Ints){(const int64_t[]){1}, 1});
    if (x.dims.n == 1)
        x.perm.n = 0;
    return x;
}

/* Neighbours in the transposed order that are neighbours before it, too, become one dimension. */
Iota iota_canonical(Arena *a, Ints dims, Ints perm)
{
    Iota    from = {dims, perm};
    if (!iota_is_order(from))
        return canonical_anyway(a, dims, perm);
    Ints    first = ints_make(a, dims.n), size = ints_make(a, dims.n); /* of the merged dimensions, transposed order */
    int32_t n = 0;
    int64_t last = -2; /* the source dimension at the end of the current group, size-1 dimensions skipped */
    for (int32_t k = 0; k < dims.n; k++) {
        int64_t d = perm_at(from, k), next = last + 1;
        if (dims.v[d] == 1)
            continue;
        while (last >= 0 && next < d && dims.v[next] == 1)
            next++;
        if (last >= 0 && next == d) {
            *ints_at(size, n - 1) = wrapped(size.v[n - 1], dims.v[d]);
        } else {
            *ints_at(first, n) = d;
            *ints_at(size, n++) = dims.v[d];
        }
        last = d;
    }
    if (n <= 1) {
        Ints one = ints_make(a, 1);
        *ints_at(one, 0) = n == 0 ? 1 : size.v[0];
        return (Iota){one, {NULL, 0}};
    }
    Iota to = {ints_make(a, n), ints_make(a, n)};
    for (int32_t k = 0; k < n; k++) { /* the rank of a group among the sources is its new number */
        int32_t rank = 0;
        for (int32_t j = 0; j < n; j++)
            rank += first.v[j] < first.v[k];
        *ints_at(to.perm, k) = rank;
        *ints_at(to.dims, rank) = size.v[k];
    }
    return to;
}

/* An array of devices with these dimensions, read with its dimensions in the order perm. */
static Ints transpose(Arena *a, Ints devices, Ints dims, Ints perm)
{
    int32_t rank = dims.n;
    Ints    out = ints_make(a, devices.n), stride = ints_make(a, rank), index = ints_make(a, rank);
    int64_t step = 1;
    for (int32_t d = rank; d-- > 0; step *= dims.v[d])
        *ints_at(stride, d) = step;
    for (int32_t at = 0; at < out.n; at++) {
        int64_t from = 0;
        for (int32_t k = 0; k < rank; k++)
            from += index.v[k] * stride.v[perm.v[k]];
        *ints_at(out, at) = devices.v[from];
        for (int32_t k = rank; k-- > 0;) { /* the next index, last one fastest */
            if (++*ints_at(index, k) < dims.v[perm.v[k]])
                break;
            *ints_at(index, k) = 0;
        }
    }
    return out;
}

Ints iota_expand(Arena *a, Iota x)
{
    int64_t n = ints_product(x.dims);
    if (n < 0 || n > MAX_DEVICES || !iota_is_order(x))
        return (Ints){NULL, 0};
    Ints devices = ints_iota(a, (int32_t)n);
    return x.perm.n > 0 ? transpose(a, devices, x.dims, x.perm) : devices;
}

int64_t mesh_size(const Mesh *m)
{
    int64_t n = 1;
    for (int32_t k = 0; k < m->n_axes; k++)
        if (!size_mul(n, m->axes[k].size, &n))
            return -1;
    return n;
}

Ints mesh_devices(Arena *a, const Mesh *m)
{
    if (m->kind == MESH_SINGLE_DEVICE)
        return ints_copy(a, (Ints){&m->device, 1});
    if (m->devices.n > 0)
        return m->devices;
    int64_t n = mesh_size(m);
    if (n < 0 || n > MAX_DEVICES)
        return (Ints){NULL, 0};
    return m->has_iota ? iota_expand(a, m->iota) : ints_iota(a, (int32_t)n);
}

/* ---- groups ---- */

/* Devices cut into lists of the same length. */
static IntsList split(Arena *a, Ints devices, int64_t size)
{
    int32_t n = size > 0 ? (int32_t)(devices.n / size) : 0;
    Ints   *v = ARENA_ARRAY(a, Ints, n);
    for (int32_t k = 0; k < n; k++)
        v[k] = (Ints){devices.v + k * size, (int32_t)size};
    return (IntsList){v, n};
}

/* A mesh axis is cut where a sub-axis starts or ends; what lies between two cuts is a dimension of its own. */
typedef struct Factor {
    int64_t size;
    int32_t ref; /* which of the axes that form a group, -1: none */
} Factor;

/* The factors of axis k, major first, appended to out; false when the cuts do not divide each other. */
static bool axis_factors(const Mesh *m, AxisRefs refs, int32_t axis, Factor *out, int32_t *n)
{
    int64_t done = 1, whole = m->axes[axis].size;
    while (done < whole) {
        int64_t next = whole;
        int32_t ref = -1;
        for (int32_t k = 0; k < refs.n; k++) {
            const AxisRef *r = &refs.v[k];
            int64_t        start = r->size == 0 ? 1 : r->pre, end = r->size == 0 ? whole : r->pre * r->size;
            if (r->axis != axis)
                continue;
            if (start == done && end > done) {
                next = end;
                ref = k;
                break;
            }
            if (start > done && start < next)
                next = start;
        }
        if (next % done != 0)
            return false;
        out[(*n)++] = (Factor){next / done, ref};
        done = next;
    }
    return true;
}

/* Devices that differ only along the given axes form a group, in the order of these axes; the other axes number the groups. */
static IntsList mesh_groups(Arena *a, const ReplicaGroups *g, bool *ok)
{
    const Mesh *m = g->mesh;
    Factor     *f = ARENA_ARRAY(a, Factor, m->n_axes + 2 * (int64_t)g->axes.n);
    Ints        devices = mesh_devices(a, m);
    int32_t     n = 0, at = 0;
    int64_t     size = 1;
    *ok = devices.n > 0;
    for (int32_t k = 0; *ok && k < m->n_axes; k++)
        *ok = axis_factors(m, g->axes, k, f, &n);
    if (!*ok)
        return (IntsList){NULL, 0};
    Ints dims = ints_make(a, n), perm = ints_make(a, n);
    for (int32_t k = 0; k < n; k++) {
        *ints_at(dims, k) = f[k].size;
        if (f[k].ref < 0)
            *ints_at(perm, at++) = k;
    }
    for (int32_t r = 0; r < g->axes.n; r++)
        for (int32_t k = 0; k < n; k++)
            if (f[k].ref == r) {
                *ints_at(perm, at++) = k;
                size *= f[k].size;
            }
    return split(a, transpose(a, devices, dims, perm), size);
}

IntsList replica_groups_lists(Arena *a, const ReplicaGroups *g, bool *ok)
{
    *ok = true;
    if (g->version == GROUPS_LISTS)
        return g->lists;
    if (g->version == GROUPS_MESH)
        return mesh_groups(a, g, ok);
    Ints devices = iota_expand(a, g->iota);
    *ok = devices.n > 0;
    return split(a, devices, g->size);
}
