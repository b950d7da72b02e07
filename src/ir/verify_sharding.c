/* Shardings fit the types that they annotate: one for each leaf of a tuple, as many tiled dimensions as the array has, each
 * device once; all devices of a module that is partitioned (num_partitions), and no others. What a loop or a conditional hands on
 * has one sharding wherever it has any. Source: reference text 6.1, operations 2.3. */
#include "ir/attr_rare.h"
#include "ir/verify_rules.h"

/* Without num_partitions there is no number to compare with. */
static bool is_partitioned(const Verify *v) { return v->m->num_partitions > 1; }

static bool check_device(const Verify *v, const Inst *i, int64_t id)
{
    if (id < 0)
        return verify_fail(v, i, "the sharding names device %lld", (long long)id);
    if (is_partitioned(v) && id >= v->m->num_partitions)
        return verify_fail(v, i, "the sharding names device %lld, but num_partitions is %lld", (long long)id, (long long)v->m->num_partitions);
    return true;
}

static bool check_count(const Verify *v, const Inst *i, int64_t n)
{
    if (is_partitioned(v) && n != v->m->num_partitions)
        return verify_fail(v, i, "the sharding has %lld devices, but num_partitions is %lld", (long long)n, (long long)v->m->num_partitions);
    return true;
}

static bool check_devices(const Verify *v, const Inst *i, const Sharding *s)
{
    Map seen = map_new(v->a);
    for (int32_t k = 0; k < s->devices.n; k++) {
        int64_t id = s->devices.v[k];
        if (!check_device(v, i, id))
            return false;
        if (map_get_u64(&seen, (uint64_t)id))
            return verify_fail(v, i, "the sharding names device %lld twice", (long long)id);
        map_put_u64(&seen, (uint64_t)id, &seen);
    }
    return true;
}

/* {mesh['x'=4], [{}, {}]} is the same as {replicated}. */
static bool names_axes(const Sharding *s)
{
    bool any = false;
    for (int32_t k = 0; k < s->n_named; k++)
        any = any || s->named[k].axes.n > 0;
    return any;
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
    switch (s->kind) {
    case SHARDING_TILED: return check_count(v, i, ints_product(s->dims)) && check_devices(v, i, s);
    case SHARDING_MAXIMAL: return !is_partitioned(v) || check_device(v, i, s->device);
    case SHARDING_NAMED:
        if (s->mesh->kind == MESH_SINGLE_DEVICE)
            return !is_partitioned(v) || check_device(v, i, s->mesh->device);
        return !names_axes(s) || check_count(v, i, mesh_size(s->mesh));
    case SHARDING_REPLICATED: case SHARDING_MANUAL: case SHARDING_UNKNOWN: case SHARDING_UNREDUCED: return true;
    case SHARDING_TUPLE: break;
    }
    die("a sharding of kind %d for one array", (int)s->kind);
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

static const Sharding *sharding_of(const Inst *i)
{
    const Attr *a = inst_attr(i, ATTR_SHARDING);
    return a ? a->value.sharding : NULL;
}

/* Two of the places that one value goes through. False after a report. */
static bool check_same(const Verify *v, const Inst *i, const Inst **first, const Inst *next)
{
    if (!sharding_of(next))
        return true;
    if (!*first)
        *first = next;
    if (sharding_equal(sharding_of(*first), sharding_of(next)))
        return true;
    verify_fail(v, i, "the shardings of %%%s and %%%s differ, though they are places of one value", (*first)->name, next->name);
    diag_note(v->d, next->loc, "%%%s is declared here", next->name);
    return false;
}

/* A loop, its body's parameter and root, its condition's parameter; a conditional and the roots of its branches. */
static void check_control(const Verify *v, const Inst *i)
{
    const Inst *first = NULL;
    bool        same = check_same(v, i, &first, i);
    for (int32_t k = 0; same && k < i->n_callees; k++) {
        const Comp *c = inst_callee(i, k);
        bool        is_condition = i->op == OP_WHILE && k == 1;
        same = is_condition || check_same(v, i, &first, c->root);
        same = same && (i->op != OP_WHILE || check_same(v, i, &first, comp_param(c, 0)));
    }
}

void verify_sharding(const Verify *v, const Inst *i)
{
    if (i->op == OP_WHILE || i->op == OP_CONDITIONAL)
        check_control(v, i);
    const Sharding *s = sharding_of(i);
    if (!s || i->shape->type == TYPE_TOKEN)
        return;
    int32_t leaves = shape_leaf_count(i->shape, true), at = 0;
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
