/* Equality by meaning and deep copies of the rare attributes. Strings are compared by their bytes, since the two sides may come
 * from different modules. */
#include "ir/attr_rare.h"

#include <string.h>

#include "ir/inst.h"

static bool str_equal(const char *x, const char *y)
{
    return x == y || (x != NULL && y != NULL && intern_len(x) == intern_len(y) && memcmp(x, y, intern_len(x)) == 0);
}

static const char *str_copy(Interner *t, const char *s)
{
    return s == NULL ? NULL : intern(t, s, intern_len(s));
}

/* ---- meshes ---- */

static bool iota_equal(Iota x, Iota y)
{
    return ints_equal(x.dims, y.dims) && ints_equal(x.perm, y.perm);
}

static Iota iota_copy(Arena *a, Iota x)
{
    return (Iota){ints_copy(a, x.dims), ints_copy(a, x.perm)};
}

static bool mesh_equal(const Mesh *x, const Mesh *y)
{
    if (x == NULL || y == NULL)
        return x == y;
    bool same = x->kind == y->kind && x->device == y->device && x->n_axes == y->n_axes && x->has_iota == y->has_iota
                && iota_equal(x->iota, y->iota) && ints_equal(x->devices, y->devices);
    for (int32_t k = 0; same && k < x->n_axes; k++)
        same = str_equal(x->axes[k].name, y->axes[k].name) && x->axes[k].size == y->axes[k].size;
    return same;
}

static const Mesh *mesh_copy(Arena *a, Interner *t, const Mesh *x)
{
    if (x == NULL)
        return NULL;
    Mesh     *y = arena_copy(a, x, sizeof *x);
    MeshAxis *axes = ARENA_ARRAY(a, MeshAxis, x->n_axes);
    for (int32_t k = 0; k < x->n_axes; k++)
        axes[k] = (MeshAxis){str_copy(t, x->axes[k].name), x->axes[k].size};
    y->axes = axes;
    y->iota = iota_copy(a, x->iota);
    y->devices = ints_copy(a, x->devices);
    return y;
}

static bool axes_equal(AxisRefs x, AxisRefs y)
{
    bool same = x.n == y.n;
    for (int32_t k = 0; same && k < x.n; k++)
        same = x.v[k].axis == y.v[k].axis && x.v[k].pre == y.v[k].pre && x.v[k].size == y.v[k].size;
    return same;
}

static AxisRefs axes_copy(Arena *a, AxisRefs x)
{
    return (AxisRefs){x.n, arena_copy(a, x.v, (size_t)x.n * sizeof *x.v)};
}

/* ---- replica groups ---- */

static bool lists_equal(IntsList x, IntsList y)
{
    bool same = x.n == y.n;
    for (int32_t k = 0; same && k < x.n; k++)
        same = ints_equal(x.v[k], y.v[k]);
    return same;
}

static bool replica_groups_equal(const ReplicaGroups *x, const ReplicaGroups *y)
{
    if (x->version != y->version)
        return false;
    switch (x->version) {
    case GROUPS_LISTS: return lists_equal(x->lists, y->lists);
    case GROUPS_IOTA: return x->count == y->count && x->size == y->size && iota_equal(x->iota, y->iota);
    case GROUPS_MESH: return mesh_equal(x->mesh, y->mesh) && axes_equal(x->axes, y->axes);
    }
    die("replica groups of version %d", (int)x->version);
}

static const ReplicaGroups *replica_groups_copy(Arena *a, Interner *t, const ReplicaGroups *x)
{
    ReplicaGroups *y = arena_copy(a, x, sizeof *x);
    Ints          *v = ARENA_ARRAY(a, Ints, x->lists.n);
    for (int32_t k = 0; k < x->lists.n; k++)
        v[k] = ints_copy(a, x->lists.v[k]);
    y->lists.v = v;
    y->iota = iota_copy(a, x->iota);
    y->mesh = mesh_copy(a, t, x->mesh);
    y->axes = axes_copy(a, x->axes);
    return y;
}

/* ---- shardings ---- */

const Sharding *sharding_tuple(Arena *a, int32_t n, const Sharding *const *elems)
{
    Sharding *s = ARENA_NEW(a, Sharding);
    s->kind = SHARDING_TUPLE;
    s->n_elems = n;
    s->elems = arena_copy(a, elems, (size_t)n * sizeof(const Sharding *));
    return s;
}

static bool named_equal(const Sharding *x, const Sharding *y)
{
    bool same = x->n_named == y->n_named && mesh_equal(x->mesh, y->mesh) && axes_equal(x->replicated, y->replicated)
                && axes_equal(x->unreduced, y->unreduced) && axes_equal(x->manual, y->manual);
    for (int32_t k = 0; same && k < x->n_named; k++)
        same = x->named[k].open == y->named[k].open && axes_equal(x->named[k].axes, y->named[k].axes);
    return same;
}

/* Devices may be listed on one side and counted on the other. */
static bool tiles_equal(const Sharding *x, const Sharding *y)
{
    if (x->has_iota == y->has_iota)
        return iota_equal(x->iota, y->iota) && ints_equal(x->devices, y->devices);
    Arena *a = arena_new();
    bool   same = ints_equal(x->has_iota ? iota_expand(a, x->iota) : x->devices, y->has_iota ? iota_expand(a, y->iota) : y->devices);
    arena_free(a);
    return same;
}

/* Metadata is of no meaning. */
bool sharding_equal(const Sharding *x, const Sharding *y)
{
    bool same = x->kind == y->kind && x->device == y->device && ints_equal(x->dims, y->dims) && tiles_equal(x, y) && x->replicate_last == y->replicate_last
                && ints_equal(x->subgroups, y->subgroups) && x->reduction == y->reduction && x->group == y->group
                && x->group_id == y->group_id && x->n_elems == y->n_elems && named_equal(x, y);
    for (int32_t k = 0; same && k < x->n_elems; k++)
        same = sharding_equal(x->elems[k], y->elems[k]);
    return same;
}

static const Sharding *sharding_copy(Arena *a, Interner *t, const Sharding *x)
{
    Sharding        *y = arena_copy(a, x, sizeof *x);
    NamedDim        *named = ARENA_ARRAY(a, NamedDim, x->n_named);
    const Metadata **meta = ARENA_ARRAY(a, const Metadata *, x->n_meta);
    const Sharding **elems = ARENA_ARRAY(a, const Sharding *, x->n_elems);
    for (int32_t k = 0; k < x->n_named; k++)
        named[k] = (NamedDim){axes_copy(a, x->named[k].axes), x->named[k].open};
    for (int32_t k = 0; k < x->n_meta; k++)
        meta[k] = metadata_copy(a, t, x->meta[k]);
    for (int32_t k = 0; k < x->n_elems; k++)
        elems[k] = sharding_copy(a, t, x->elems[k]);
    y->dims = ints_copy(a, x->dims);
    y->iota = iota_copy(a, x->iota);
    y->devices = ints_copy(a, x->devices);
    y->subgroups = ints_copy(a, x->subgroups);
    y->mesh = mesh_copy(a, t, x->mesh);
    y->named = named;
    y->replicated = axes_copy(a, x->replicated);
    y->unreduced = axes_copy(a, x->unreduced);
    y->manual = axes_copy(a, x->manual);
    y->meta = meta;
    y->elems = elems;
    return y;
}

/* ---- origins ---- */

static bool origin_array_equal(const OriginArray *x, const OriginArray *y)
{
    return x->known == y->known && str_equal(x->name, y->name) && ints_equal(x->index, y->index);
}

static OriginArray origin_array_copy(Arena *a, Interner *t, const OriginArray *x)
{
    return (OriginArray){x->known, str_copy(t, x->name), ints_copy(a, x->index)};
}

static bool origin_node_equal(const OriginNode *x, const OriginNode *y)
{
    bool same = x->leaf == y->leaf && x->n == y->n && origin_array_equal(&x->array, &y->array);
    for (int32_t k = 0; same && k < x->n; k++)
        same = origin_node_equal(&x->elems[k], &y->elems[k]);
    return same;
}

static OriginNode origin_node_copy(Arena *a, Interner *t, const OriginNode *x)
{
    OriginNode *elems = ARENA_ARRAY(a, OriginNode, x->n);
    for (int32_t k = 0; k < x->n; k++)
        elems[k] = origin_node_copy(a, t, &x->elems[k]);
    return (OriginNode){x->leaf, origin_array_copy(a, t, &x->array), x->n, elems};
}

static const Origin *origin_copy(Arena *a, Interner *t, const Origin *x)
{
    Origin *y = ARENA_NEW(a, Origin);
    *y = (Origin){origin_node_copy(a, t, &x->tree), str_copy(t, x->call)};
    return y;
}

static void free_module(void *m)
{
    module_free(m);
}

const OriginTable *origin_table_copy(Arena *a, Interner *t, const OriginTable *x)
{
    OriginRecovery *v = ARENA_ARRAY(a, OriginRecovery, x->n);
    for (int32_t k = 0; k < x->n; k++) {
        v[k].old = origin_array_copy(a, t, &x->v[k].old);
        v[k].replacement = origin_array_copy(a, t, &x->v[k].replacement);
        if (x->v[k].module != NULL) {
            v[k].module = module_clone(x->v[k].module);
            arena_defer(a, free_module, v[k].module);
        }
    }
    OriginTable *y = ARENA_NEW(a, OriginTable);
    *y = (OriginTable){x->n, v};
    return y;
}

const DebugTable *debug_table_copy(Arena *a, Interner *t, const DebugTable *x)
{
    DebugEntry *v = ARENA_ARRAY(a, DebugEntry, x->n);
    for (int32_t k = 0; k < x->n; k++)
        v[k] = (DebugEntry){origin_array_copy(a, t, &x->v[k].array), x->v[k].n,
                            arena_copy(a, x->v[k].v, (size_t)x->v[k].n * sizeof *x->v[k].v)};
    DebugTable *y = ARENA_NEW(a, DebugTable);
    *y = (DebugTable){x->n, v};
    return y;
}

/* ---- the rest, and all of them by class ---- */

static bool statistics_equal(const Statistics *x, const Statistics *y)
{
    bool same = x->visualizing_index == y->visualizing_index && x->n == y->n;
    for (int32_t k = 0; same && k < x->n; k++)
        same = str_equal(x->v[k].name, y->v[k].name) && x->v[k].value == y->v[k].value;
    return same;
}

static const Statistics *statistics_copy(Arena *a, Interner *t, const Statistics *x)
{
    Statistics *y = arena_copy(a, x, sizeof *x);
    Statistic  *v = ARENA_ARRAY(a, Statistic, x->n);
    for (int32_t k = 0; k < x->n; k++)
        v[k] = (Statistic){str_copy(t, x->v[k].name), x->v[k].value};
    y->v = v;
    return y;
}

static bool accuracy_equal(const Accuracy *x, const Accuracy *y)
{
    return x->highest == y->highest && x->has_tolerance == y->has_tolerance && x->atol == y->atol && x->rtol == y->rtol &&
           x->ulps == y->ulps;
}

static bool sparsity_side_equal(const SparsitySide *x, const SparsitySide *y)
{
    return x->given == y->given && x->nonzero == y->nonzero && x->block == y->block && x->dimension == y->dimension
           && x->stride == y->stride && x->operand == y->operand;
}

static bool scaling_side_equal(const ScalingSide *x, const ScalingSide *y)
{
    return x->given == y->given && x->has_scale == y->has_scale && x->has_zero == y->has_zero && x->scale == y->scale &&
           x->zero == y->zero && ints_equal(x->strides, y->strides) && ints_equal(x->steps, y->steps);
}

static const Scaling *scaling_copy(Arena *a, const Scaling *x)
{
    Scaling *y = arena_copy(a, x, sizeof *x);
    y->lhs.strides = ints_copy(a, x->lhs.strides);
    y->lhs.steps = ints_copy(a, x->lhs.steps);
    y->rhs.strides = ints_copy(a, x->rhs.strides);
    y->rhs.steps = ints_copy(a, x->rhs.steps);
    return y;
}

static const Domain *domain_copy(Arena *a, Interner *t, const Domain *x)
{
    Domain *y = ARENA_NEW(a, Domain);
    *y = (Domain){sharding_copy(a, t, x->entry), sharding_copy(a, t, x->exit)};
    return y;
}

bool attr_rare_equal(const Attr *a, const Attr *b)
{
    const AttrValue *x = &a->value, *y = &b->value;
    switch ((int)attr_info[a->id].cls) {
    case ATTR_CLASS_GROUPS: return replica_groups_equal(x->groups, y->groups);
    case ATTR_CLASS_SHARDING: return sharding_equal(x->sharding, y->sharding);
    case ATTR_CLASS_STATISTICS: return statistics_equal(x->statistics, y->statistics);
    case ATTR_CLASS_ACCURACY: return accuracy_equal(x->accuracy, y->accuracy);
    case ATTR_CLASS_ORIGIN:
        return str_equal(x->origin->call, y->origin->call) && origin_node_equal(&x->origin->tree, &y->origin->tree);
    case ATTR_CLASS_SPARSITY:
        return sparsity_side_equal(&x->sparsity->lhs, &y->sparsity->lhs) && sparsity_side_equal(&x->sparsity->rhs, &y->sparsity->rhs);
    case ATTR_CLASS_SCALING:
        return scaling_side_equal(&x->scaling->lhs, &y->scaling->lhs) && scaling_side_equal(&x->scaling->rhs, &y->scaling->rhs);
    case ATTR_CLASS_DOMAIN:
        return sharding_equal(x->domain->entry, y->domain->entry) && sharding_equal(x->domain->exit, y->domain->exit);
    default: die("attribute %s is not compared here", attr_info[a->id].text);
    }
}

Attr attr_rare_copy(Arena *a, Interner *t, const Attr *x)
{
    Attr y = *x;
    switch ((int)attr_info[x->id].cls) {
    case ATTR_CLASS_GROUPS: y.value.groups = replica_groups_copy(a, t, x->value.groups); break;
    case ATTR_CLASS_SHARDING: y.value.sharding = sharding_copy(a, t, x->value.sharding); break;
    case ATTR_CLASS_STATISTICS: y.value.statistics = statistics_copy(a, t, x->value.statistics); break;
    case ATTR_CLASS_ACCURACY: y.value.accuracy = arena_copy(a, x->value.accuracy, sizeof(Accuracy)); break;
    case ATTR_CLASS_ORIGIN: y.value.origin = origin_copy(a, t, x->value.origin); break;
    case ATTR_CLASS_SPARSITY: y.value.sparsity = arena_copy(a, x->value.sparsity, sizeof(Sparsity)); break;
    case ATTR_CLASS_SCALING: y.value.scaling = scaling_copy(a, x->value.scaling); break;
    case ATTR_CLASS_DOMAIN: y.value.domain = domain_copy(a, t, x->value.domain); break;
    default: die("attribute %s is not copied here", attr_info[x->id].text);
    }
    return y;
}
