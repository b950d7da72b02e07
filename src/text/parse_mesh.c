/* Iotas, meshes and their axes, replica groups. Source: reference text 5.8. */
#include "config.h"

#include "text/parse_int.h"

int64_t wrapped_product(Ints x)
{
    uint64_t n = 1;
    for (int32_t k = 0; k < x.n; k++)
        n *= (uint64_t)x.v[k];
    return (int64_t)n;
}

/* dims and perm fit each other. That the sizes are positive is the verifier's. */
bool iota_check(Parser *p, Iota x, const char *what, Loc loc)
{
    if (x.dims.n > MAX_IOTA_RANK) {
        parse_error(p, loc, "%s has %d dimensions, more than %d", what, x.dims.n, MAX_IOTA_RANK);
        return false;
    }
    if (x.perm.n != (x.dims.n == 1 ? x.perm.n > 0 ? -1 : 0 : x.dims.n)) {
        parse_error(p, loc, "%s of %d dimension%s %s", what, x.dims.n, x.dims.n == 1 ? "" : "s",
                    x.dims.n == 1 ? "takes no T(...)" : "needs a T(...) with as many entries");
        return false;
    }
    for (int32_t k = 0; k < x.perm.n; k++) {
        if (x.perm.v[k] < 0 || x.perm.v[k] >= x.dims.n) {
            parse_error(p, loc, "T(...) of %s is a permutation of 0 to %d", what, x.dims.n - 1);
            return false;
        }
    }
    Iota canonical = iota_canonical(p->tmp, x.dims, x.perm); /* a number twice in T(...) is the verifier's, unless XLA gives up */
    for (int32_t k = 0; k < canonical.perm.n; k++)
        if (canonical.perm.v[k] >= canonical.dims.n) {
            parse_error(p, loc, "T(...) of %s is a permutation of 0 to %d", what, x.dims.n - 1);
            return false;
        }
    return true;
}

bool iota_covers(Parser *p, Iota x, int64_t count, const char *what, Loc loc)
{
    int64_t n = wrapped_product(x.dims);
    if (n != count)
        parse_error(p, loc, "%s has %lld devices, %lld are needed", what, (long long)n, (long long)count);
    return n == count;
}

MeshDraft *mesh_new(Parser *p)
{
    return ARENA_NEW(p->tmp, MeshDraft);
}

MeshDraft *mesh_axis(Parser *p, MeshDraft *m, const char *name, Loc loc, int64_t size)
{
    enum { MAX_AXES = 256 };
    if (m->axes.n == MAX_AXES) {
        parse_error(p, loc, "a mesh has at most %d axes", MAX_AXES);
        m->axes.n = 0;
    }
    for (int32_t k = 0; k < m->axes.n; k++)
        if (m->axes.v[k].name == name)
            parse_error(p, loc, "the mesh has two axes called '%s'", name);
    vec_push(p->tmp, &m->axes, ((MeshAxis){name, size}));
    return m;
}

/* ids: whether device_ids follow. */
static Mesh *mesh_make(Parser *p, MeshDraft *m, bool ids, Loc loc)
{
    Mesh *x = ARENA_NEW(p->a, Mesh);
    x->kind = MESH_AXES;
    x->n_axes = m->axes.n;
    x->axes = arena_copy(p->a, m->axes.v, (size_t)m->axes.n * sizeof *m->axes.v);
    m->mesh = x;
    m->loc = loc;
    if (ids && x->n_axes == 0)
        parse_error(p, loc, "a mesh without axes takes no device_ids");
    return x;
}

/* Explicit devices are a permutation of all of them, and not the identity. */
static void check_devices(Parser *p, const Mesh *x, Ints ids, Loc loc)
{
    int64_t n = mesh_size(x);
    if (n < 1 || ids.n != n) {
        parse_error(p, loc, "device_ids has %d entries, the mesh has %lld devices", ids.n, (long long)n);
        return;
    }
    bool *seen = ARENA_ARRAY(p->tmp, bool, n);
    bool  identity = true;
    for (int32_t k = 0; k < ids.n; k++) {
        if (ids.v[k] < 0 || ids.v[k] >= n || seen[ids.v[k]]) {
            parse_error(p, loc, "device_ids is a permutation of 0 to %lld", (long long)n - 1);
            return;
        }
        seen[ids.v[k]] = true;
        identity = identity && ids.v[k] == k;
    }
    if (identity)
        parse_error(p, loc, "device_ids in order are left out");
}

MeshDraft *mesh_end(Parser *p, MeshDraft *m, const IntVec *devices, Loc loc)
{
    Mesh *x = mesh_make(p, m, devices != NULL, loc);
    if (devices) {
        x->devices = list_ints(p, devices);
        check_devices(p, x, x->devices, loc);
    }
    return m;
}

/* An iota that leaves the devices in order says nothing. */
MeshDraft *mesh_iota(Parser *p, MeshDraft *m, Iota iota, Loc loc)
{
    Mesh *x = mesh_make(p, m, true, loc);
    Ints  sizes = ints_make(p->tmp, x->n_axes);
    for (int32_t k = 0; k < x->n_axes; k++)
        *ints_at(sizes, k) = x->axes[k].size;
    if (!iota_check(p, iota, "device_ids", loc) || !iota_covers(p, iota, wrapped_product(sizes), "device_ids", loc))
        return m;
    x->iota = iota_canonical(p->a, iota.dims, iota.perm);
    x->has_iota = x->iota.dims.n > 1 && wrapped_product(sizes) != 0;
    return m;
}

/* ---- axes ---- */

/* By name, or by number when no axis has that name. */
static int32_t axis_number(const Mesh *m, const char *name)
{
    for (int32_t k = 0; k < m->n_axes; k++)
        if (m->axes[k].name == name)
            return k;
    size_t n = intern_len(name);
    if (n == 0 || n > 9 || strspn(name, "0123456789") != n)
        return -1;
    int32_t k = 0;
    for (const char *s = name; *s; s++)
        k = k * 10 + (*s - '0');
    return k < m->n_axes ? k : -1;
}

static bool axis_resolve(Parser *p, const Mesh *m, const AxisDraft *x, AxisRef *out)
{
    int32_t k = axis_number(m, x->name);
    if (k < 0) {
        NameVec names = {0};
        for (int32_t j = 0; j < m->n_axes; j++)
            vec_push(p->tmp, &names, m->axes[j].name);
        parse_error(p, x->loc, "the mesh has no axis '%s'", x->name);
        if (!parse_suggest(p, x->loc, x->name, names.v, names.n) && names.n > 0)
            parse_note(p, x->loc, "its axes are %s", names_listed(p, &names, 0, names.n));
        return false;
    }
    *out = (AxisRef){k, 0, 0};
    if (!x->sub)
        return true;
    int64_t whole = m->axes[k].size, part;
    if (x->pre < 1 || x->size < 2 || x->size >= whole || !size_mul(x->pre, x->size, &part) || part > whole || whole % part) {
        parse_error(p, x->loc, "(%lld)%lld is no part of the axis '%s' of size %lld", (long long)x->pre, (long long)x->size,
                    m->axes[k].name, (long long)whole);
        return false;
    }
    out->pre = x->pre;
    out->size = x->size;
    return true;
}

bool axes_resolve(Parser *p, const Mesh *m, const AxisVec *v, AxisRefs *out)
{
    int32_t  n = v ? v->n : 0;
    AxisRef *refs = ARENA_ARRAY(p->a, AxisRef, n);
    *out = (AxisRefs){0, refs};
    for (int32_t k = 0; k < n; k++) {
        if (!axis_resolve(p, m, &v->v[k], &refs[k]))
            return false;
        out->n = k + 1;
        const AxisRef *a = k ? &refs[k - 1] : NULL, *b = &refs[k];
        if (a && a->size && b->size && a->axis == b->axis && a->pre * a->size == b->pre) {
            parse_error(p, v->v[k].loc, "two neighbouring parts of one axis are written as one");
            return false;
        }
    }
    return true;
}

/* By axis, within one by the size before it. */
bool axes_sorted(Parser *p, AxisRefs x, Loc loc)
{
    for (int32_t k = 1; k < x.n; k++)
        if (x.v[k - 1].axis > x.v[k].axis || (x.v[k - 1].axis == x.v[k].axis && x.v[k - 1].pre > x.v[k].pre)) {
            parse_error(p, loc, "the axes of replicated, unreduced and manual stand in the order of the mesh");
            return false;
        }
    return true;
}

static bool axes_overlap(const AxisRef *a, const AxisRef *b)
{
    if (a->axis != b->axis)
        return false;
    if (!a->size || !b->size)
        return true;
    int64_t lo = a->pre > b->pre ? a->pre : b->pre, x = a->pre * a->size, y = b->pre * b->size;
    return lo < (x < y ? x : y);
}

bool axes_disjoint(Parser *p, const Mesh *m, int32_t n, const AxisRefs *const *lists, Loc loc)
{
    VEC(AxisRef) all = {0};
    for (int32_t k = 0; k < n; k++)
        for (int32_t j = 0; j < lists[k]->n; j++) {
            for (int32_t i = 0; i < all.n; i++)
                if (axes_overlap(&all.v[i], &lists[k]->v[j])) {
                    parse_error(p, loc, "the axis '%s' is used twice", m->axes[all.v[i].axis].name);
                    return false;
                }
            vec_push(p->tmp, &all, lists[k]->v[j]);
        }
    return true;
}

/* ---- replica groups ---- */

GroupsDraft *groups_lists(Parser *p, const IntsVec *v)
{
    GroupsDraft *g = ARENA_NEW(p->a, GroupsDraft);
    g->version = GROUPS_LISTS;
    g->lists = list_lists(p, v);
    return g;
}

GroupsDraft *groups_iota(Parser *p, Ints target, Iota x, Loc loc)
{
    GroupsDraft *g = ARENA_NEW(p->a, GroupsDraft);
    g->version = GROUPS_IOTA;
    if (target.n != 2)
        parse_error(p, loc, "replica groups are written [groups,size]<=[...], found %d numbers in front", target.n);
    else if (iota_check(p, x, "the device list", loc) && iota_covers(p, x, wrapped_product(target), "the device list", loc)) {
        g->count = target.v[0];
        g->size = target.v[1];
        g->iota = iota_canonical(p->a, x.dims, x.perm);
    }
    return g;
}

GroupsDraft *groups_mesh(Parser *p, const MeshDraft *m, const AxisVec *axes, Loc loc)
{
    GroupsDraft *g = ARENA_NEW(p->a, GroupsDraft);
    g->version = GROUPS_MESH;
    g->mesh = m->mesh;
    const AxisRefs *const lists[] = {&g->axes};
    if (axes_resolve(p, m->mesh, axes, &g->axes))
        axes_disjoint(p, m->mesh, 1, lists, loc);
    return g;
}

const Mesh *mesh_single(Parser *p, const char *key, Loc loc, int64_t device)
{
    if (strcmp(key, "device_id") != 0)
        parse_error(p, loc, "expected 'device_id', found '%s'", key);
    Mesh *m = ARENA_NEW(p->a, Mesh);
    m->kind = MESH_SINGLE_DEVICE;
    m->device = device;
    return m;
}

GroupsDraft *groups_single(Parser *p, const char *key, Loc loc, int64_t device, const AxisVec *axes, Loc whole)
{
    GroupsDraft *g = ARENA_NEW(p->a, GroupsDraft);
    g->version = GROUPS_MESH;
    g->mesh = mesh_single(p, key, loc, device);
    if (axes)
        parse_error(p, whole, "a single device has no axes");
    return g;
}

void attr_groups(Parser *p, const char *name, Loc loc, Loc value_loc, const GroupsDraft *g)
{
    attr_add(p, name, ATTR_CLASS_GROUPS, loc, value_loc)->value.groups = g;
}
