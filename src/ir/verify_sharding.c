/* Shardings fit the types that they annotate: one for each leaf of a tuple, as many tiled dimensions as the array has, each
 * device once. Source: reference text 6.1, operations 2.3. */
#include "ir/attr_rare.h"
#include "ir/verify_rules.h"

static bool check_devices(const Verify *v, const Inst *i, const Sharding *s)
{
    Map seen = map_new(v->a);
    for (int32_t k = 0; k < s->devices.n; k++) {
        int64_t id = s->devices.v[k];
        if (id < 0)
            return verify_fail(v, i, "the sharding names device %lld", (long long)id);
        if (map_get_u64(&seen, (uint64_t)id))
            return verify_fail(v, i, "the sharding names device %lld twice", (long long)id);
        map_put_u64(&seen, (uint64_t)id, &seen);
    }
    return true;
}

static bool check_leaf(const Verify *v, const Inst *i, const Sharding *s, const Shape *leaf)
{
    int32_t dims = leaf->rank;
    if (s->kind == SHARDING_TILED)
        dims = s->dims.n - s->subgroups.n - s->replicate_last;
    else if (s->kind == SHARDING_NAMED && s->n_named > 0)
        dims = s->n_named;
    if (dims != leaf->rank)
        return verify_fail(v, i, "the sharding has %d dimensions, but is for %s", dims, verify_text(v, leaf));
    if (s->kind == SHARDING_TILED && ints_product(s->dims) < 1)
        return verify_fail(v, i, "the number of tiles of its sharding is no positive 64-bit number");
    if ((s->kind == SHARDING_TILED && !iota_is_order(s->iota)) || (s->kind == SHARDING_NAMED && !iota_is_order(s->mesh->iota)))
        return verify_fail(v, i, "the T(...) of its sharding is no permutation");
    if (s->kind == SHARDING_NAMED && s->mesh->kind == MESH_AXES && mesh_size(s->mesh) < 1)
        return verify_fail(v, i, "the size of the mesh of its sharding is no positive 64-bit number");
    return s->kind != SHARDING_TILED || check_devices(v, i, s);
}

/* The leaves of shape from number *at on, depth first. */
static bool check_leaves(const Verify *v, const Inst *i, const Sharding *s, const Shape *shape, int32_t *at)
{
    if (!shape_is_tuple(shape))
        return check_leaf(v, i, s->elems[(*at)++], shape);
    for (int32_t k = 0; k < shape->n_elems; k++)
        if (!check_leaves(v, i, s, shape->elems[k], at))
            return false;
    return true;
}

void verify_sharding(const Verify *v, const Inst *i)
{
    const Attr *a = inst_attr(i, ATTR_SHARDING);
    if (!a)
        return;
    const Sharding *s = a->value.sharding;
    int32_t         leaves = shape_leaf_count(i->shape, true), at = 0;
    if (s->kind != SHARDING_TUPLE) {
        if (!shape_is_tuple(i->shape))
            check_leaf(v, i, s, i->shape);
        return;
    }
    /* An empty tuple has one sharding, since there is no way to write none. */
    if (s->n_elems != leaves && !(leaves == 0 && s->n_elems <= 1))
        verify_fail(v, i, "the sharding has %d elements, but %s has %d leaves", s->n_elems, verify_text(v, i->shape), leaves);
    else if (shape_is_tuple(i->shape))
        check_leaves(v, i, s, i->shape, &at);
    else
        verify_fail(v, i, "a tuple of shardings is given for %s", verify_text(v, i->shape));
}
