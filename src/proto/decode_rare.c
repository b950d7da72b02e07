/* Shardings, meshes, replica groups and origins from messages. They become the structures of ir/attr_rare.h and are printed from there; what a
 * structure could not stand for (an axis that the mesh does not have) is reported here, what a device list must be is the parser's business. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "proto/proto_int.h"
#include "text/print.h"
#include "text/print_rare.h"

static bool bad(Decoder *x, const char *why)
{
    diag_error(x->d, LOC_NONE, "%s: %s", x->what, why);
    return false;
}

static Ints ints_of_32(Arena *a, size_t n, const int32_t *v)
{
    Ints r = ints_make(a, (int32_t)n);
    for (size_t k = 0; k < n; k++)
        *ints_at(r, (int32_t)k) = v[k];
    return r;
}

static const char *interned(Decoder *x, const char *s)
{
    return s && *s ? intern_str(x->strings, s) : NULL;
}

/* ---- metadata ---- */

bool decode_payload(Decoder *x, const Pb__Payload *p, const ProtobufCBinaryData **bytes)
{
    *bytes = NULL;
    if (p && p->payload_source_case == PB__PAYLOAD__PAYLOAD_SOURCE_VALUE)
        *bytes = &p->value;
    if (!p || p->payload_source_case != PB__PAYLOAD__PAYLOAD_SOURCE_ID)
        return true;
    if (p->id < 0 || (uint64_t)p->id >= x->n_payloads)
        return bad(x, "it names a payload that the module does not have");
    *bytes = &x->payloads[p->id];
    return true;
}

/* NULL after reporting. */
static const Metadata *metadata_decode(Decoder *x, const Pb__OpMetadata *p)
{
    Metadata *m = ARENA_NEW(x->arena, Metadata);
    *m = (Metadata){.op_type = interned(x, p->op_type),
                    .op_name = interned(x, p->op_name),
                    .source_file = interned(x, p->source_file),
                    .deduplicated_name = interned(x, p->deduplicated_name),
                    .scheduling_name = interned(x, p->scheduling_name),
                    .source_line = p->source_line,
                    .source_end_line = p->source_end_line,
                    .source_column = p->source_column,
                    .source_end_column = p->source_end_column,
                    .stack_frame_id = p->stack_frame_id};
    const ProtobufCBinaryData *payload;
    if (!decode_payload(x, p->metadata_payload, &payload))
        return NULL;
    if (payload)
        m->payload = intern(x->strings, (const char *)payload->data, payload->len);
    m->profile_type = ints_make(x->arena, (int32_t)p->n_profile_type);
    for (size_t k = 0; k < p->n_profile_type; k++)
        *ints_at(m->profile_type, (int32_t)k) = p->profile_type[k];
    if (p->profile_info)
        decode_lost(x, "metadata.profile_info");
    if (p->size_of_generated_code_in_bytes || p->size_of_memory_working_set_in_bytes)
        decode_lost(x, "metadata.size_of_*");
    return m;
}

bool decode_metadata(Decoder *x, const Pb__OpMetadata *p)
{
    const Metadata *m = metadata_decode(x, p);
    if (m)
        print_metadata(x->b, m);
    return m != NULL;
}

bool metadata_is_empty(const Pb__OpMetadata *p)
{
    return !p || pb__op_metadata__get_packed_size(p) == 0;
}

/* ---- meshes ---- */

static AxisRefs axes_decode(Decoder *x, size_t n, Pb__AxisRefProto *const *p)
{
    AxisRef *v = ARENA_ARRAY(x->arena, AxisRef, (int64_t)n);
    for (size_t k = 0; k < n; k++)
        v[k] = (AxisRef){(int32_t)p[k]->mesh_axis_index, p[k]->sub_axis_info ? p[k]->sub_axis_info->pre_size : 0,
                         p[k]->sub_axis_info ? p[k]->sub_axis_info->size : 0};
    return (AxisRefs){(int32_t)n, v};
}

static bool axes_are_valid(Decoder *x, const Mesh *m, AxisRefs r)
{
    for (int32_t k = 0; k < r.n; k++)
        if (r.v[k].axis < 0 || r.v[k].axis >= m->n_axes)
            return bad(x, "a sharding names an axis that its mesh does not have");
    return true;
}

/* A mesh without axes and with one device is that device. */
static const Mesh *mesh_decode(Decoder *x, const Pb__MeshProto *p)
{
    Mesh *m = ARENA_NEW(x->arena, Mesh);
    if (!p)
        return m;
    MeshAxis *axes = ARENA_ARRAY(x->arena, MeshAxis, (int64_t)p->n_axes);
    for (size_t k = 0; k < p->n_axes; k++)
        axes[k] = (MeshAxis){intern_str(x->strings, p->axes[k]->name), p->axes[k]->size};
    *m = (Mesh){.n_axes = (int32_t)p->n_axes, .axes = axes, .devices = decode_ints(x->arena, p->n_device_ids, p->device_ids)};
    if (p->n_axes == 0 && p->n_device_ids == 1) {
        m->kind = MESH_SINGLE_DEVICE;
        m->device = p->device_ids[0];
    }
    if (p->iota_transform) {
        m->has_iota = true;
        m->iota.dims = decode_ints(x->arena, p->iota_transform->n_reshape_dims, p->iota_transform->reshape_dims);
        m->iota.perm = decode_ints(x->arena, p->iota_transform->n_transpose_perm, p->iota_transform->transpose_perm);
    }
    return m;
}

/* ---- shardings ---- */

static bool named_decode(Decoder *x, const Pb__NamedShardingProto *p, Sharding *s)
{
    static const Reduction reductions[] = {REDUCTION_SUM, REDUCTION_MAX, REDUCTION_MIN};
    s->kind = SHARDING_NAMED;
    s->mesh = mesh_decode(x, p->mesh);
    NamedDim *dims = ARENA_ARRAY(x->arena, NamedDim, (int64_t)p->n_dim_shardings);
    for (size_t k = 0; k < p->n_dim_shardings; k++) {
        dims[k] = (NamedDim){axes_decode(x, p->dim_shardings[k]->n_axes, p->dim_shardings[k]->axes), !p->dim_shardings[k]->is_closed};
        if (!axes_are_valid(x, s->mesh, dims[k].axes))
            return false;
    }
    s->named = dims;
    s->n_named = (int32_t)p->n_dim_shardings;
    s->replicated = axes_decode(x, p->n_replicated_axes, p->replicated_axes);
    s->unreduced = axes_decode(x, p->n_unreduced_axes, p->unreduced_axes);
    s->manual = axes_decode(x, p->n_manual_axes, p->manual_axes);
    if (p->n_unreduced_axes && (unsigned)p->reduction_op < 3)
        s->reduction = reductions[p->reduction_op];
    return axes_are_valid(x, s->mesh, s->replicated) && axes_are_valid(x, s->mesh, s->unreduced) && axes_are_valid(x, s->mesh, s->manual);
}

static bool subgroups_decode(Decoder *x, const Pb__OpSharding *p, Sharding *s)
{
    s->subgroups = ints_make(x->arena, (int32_t)p->n_last_tile_dims);
    for (size_t k = 0; k < p->n_last_tile_dims; k++)
        switch ((int)p->last_tile_dims[k]) {
        case PB__OP_SHARDING__TYPE__REPLICATED: *ints_at(s->subgroups, (int32_t)k) = SUBGROUP_REPLICATED; break;
        case PB__OP_SHARDING__TYPE__MAXIMAL: *ints_at(s->subgroups, (int32_t)k) = SUBGROUP_MAXIMAL; break;
        case PB__OP_SHARDING__TYPE__MANUAL: *ints_at(s->subgroups, (int32_t)k) = SUBGROUP_MANUAL; break;
        case PB__OP_SHARDING__TYPE__UNREDUCED: *ints_at(s->subgroups, (int32_t)k) = SUBGROUP_UNREDUCED; break;
        default: return bad(x, "a sharding has a subgroup of a kind that there is none of");
        }
    return true;
}

static bool tiled_decode(Decoder *x, const Pb__OpSharding *p, Sharding *s)
{
    s->kind = SHARDING_TILED;
    s->dims = decode_ints(x->arena, p->n_tile_assignment_dimensions, p->tile_assignment_dimensions);
    s->devices = decode_ints(x->arena, p->n_tile_assignment_devices, p->tile_assignment_devices);
    s->has_iota = p->n_iota_reshape_dims > 0;
    s->iota = (Iota){decode_ints(x->arena, p->n_iota_reshape_dims, p->iota_reshape_dims),
                     ints_of_32(x->arena, p->n_iota_transpose_perm, p->iota_transpose_perm)};
    s->replicate_last = p->replicate_on_last_tile_dim;
    return subgroups_decode(x, p, s);
}

/* The parser adds an entry with the reduction to every sharding that is unreduced, so the one that was added before goes. */
static bool adds_reduction(const Sharding *s)
{
    return s->kind == SHARDING_UNREDUCED || (s->kind == SHARDING_TILED && ints_has(s->subgroups, SUBGROUP_UNREDUCED));
}

static bool sharding_metadata(Decoder *x, size_t n, Pb__OpMetadata *const *p, Sharding *s)
{
    if (adds_reduction(s) && n && strcmp(p[n - 1]->op_type, "sdy::reduction_op") == 0)
        n--;
    const Metadata **v = ARENA_ARRAY(x->arena, const Metadata *, (int64_t)n);
    for (size_t k = 0; k < n; k++)
        if (!(v[k] = metadata_decode(x, p[k])))
            return false;
    s->n_meta = (int32_t)n;
    s->meta = v;
    return true;
}

static const Sharding *sharding_decode(Decoder *x, const Pb__OpSharding *p)
{
    Sharding *s = ARENA_NEW(x->arena, Sharding);
    if (p->named_sharding) {
        if (!named_decode(x, p->named_sharding, s) ||
            !sharding_metadata(x, p->named_sharding->n_metadata, p->named_sharding->metadata, s))
            return NULL;
    } else {
        switch ((int)p->type) {
        case PB__OP_SHARDING__TYPE__REPLICATED: s->kind = SHARDING_REPLICATED; break;
        case PB__OP_SHARDING__TYPE__MANUAL: s->kind = SHARDING_MANUAL; break;
        case PB__OP_SHARDING__TYPE__UNKNOWN: s->kind = SHARDING_UNKNOWN; break;
        case PB__OP_SHARDING__TYPE__UNREDUCED: s->kind = SHARDING_UNREDUCED; break;
        case PB__OP_SHARDING__TYPE__MAXIMAL:
            s->kind = SHARDING_MAXIMAL;
            if (p->n_tile_assignment_devices != 1)
                return bad(x, "a maximal sharding names one device"), NULL;
            s->device = p->tile_assignment_devices[0];
            break;
        case PB__OP_SHARDING__TYPE__OTHER:
            if (!tiled_decode(x, p, s))
                return NULL;
            break;
        case PB__OP_SHARDING__TYPE__TUPLE: {
            const Sharding **v = ARENA_ARRAY(x->arena, const Sharding *, (int64_t)p->n_tuple_shardings);
            for (size_t k = 0; k < p->n_tuple_shardings; k++)
                if (!(v[k] = sharding_decode(x, p->tuple_shardings[k])))
                    return NULL;
            return sharding_tuple(x->arena, (int32_t)p->n_tuple_shardings, v);
        }
        default: return bad(x, "there is no such type of sharding"), NULL;
        }
        if (!sharding_metadata(x, p->n_metadata, p->metadata, s))
            return NULL;
    }
    if (p->is_shard_group) {
        s->group = p->shard_group_type == PB__OP_SHARDING__SHARD_GROUP_TYPE__LIKE ? GROUP_SHARD_LIKE : GROUP_SHARD_AS;
        s->group_id = p->shard_group_id;
    }
    return s;
}

bool decode_sharding(Decoder *x, const Pb__OpSharding *p)
{
    const Sharding *s = sharding_decode(x, p);
    if (s)
        print_sharding(x->b, s, true);
    return s != NULL;
}

/* ---- replica groups ---- */

static ReplicaGroups lists_decode(Arena *a, size_t n, Pb__ReplicaGroup *const *p)
{
    Ints *v = ARENA_ARRAY(a, Ints, (int64_t)n);
    for (size_t k = 0; k < n; k++)
        v[k] = decode_ints(a, p[k]->n_replica_ids, p[k]->replica_ids);
    return (ReplicaGroups){.version = GROUPS_LISTS, .lists = {v, (int32_t)n}};
}

/* The old field replica_groups counts when none of the new ones is there. */
bool decode_groups(Decoder *x, const Pb__HloInstructionProto *p)
{
    ReplicaGroups g = lists_decode(x->arena, p->n_replica_groups, p->replica_groups);
    switch (p->replica_group_list_case) {
    case PB__HLO_INSTRUCTION_PROTO__REPLICA_GROUP_LIST_COLLECTIVE_DEVICE_LIST:
        g = lists_decode(x->arena, p->collective_device_list->n_replica_groups, p->collective_device_list->replica_groups);
        break;
    case PB__HLO_INSTRUCTION_PROTO__REPLICA_GROUP_LIST_IOTA_COLLECTIVE_DEVICE_LIST: {
        const Pb__IotaReplicaGroupListProto *q = p->iota_collective_device_list;
        g = (ReplicaGroups){.version = GROUPS_IOTA,
                            .count = q->num_replica_groups,
                            .size = q->num_devices_per_group,
                            .iota = {decode_ints(x->arena, q->n_iota_reshape_dims, q->iota_reshape_dims),
                                     ints_of_32(x->arena, q->n_iota_transpose_perm, q->iota_transpose_perm)}};
        break;
    }
    case PB__HLO_INSTRUCTION_PROTO__REPLICA_GROUP_LIST_MESH_AXES_REPLICA_GROUP_LIST: {
        const Pb__MeshAxesReplicaGroupListProto *q = p->mesh_axes_replica_group_list;
        g = (ReplicaGroups){.version = GROUPS_MESH, .mesh = mesh_decode(x, q->mesh), .axes = axes_decode(x, q->n_axes, q->axes)};
        if (!axes_are_valid(x, g.mesh, g.axes))
            return false;
        break;
    }
    default: break;
    }
    print_replica_groups(x->b, &g);
    return true;
}

/* ---- origins ---- */

/* Names of old instructions stand between quotes as they are. */
static bool put_bare(Decoder *x, const char *s)
{
    if (strpbrk(s, "\"\\\n\r"))
        return bad(x, "the name of an original value has a character that text cannot have there");
    buf_printf(x->b, "\"%s\"", s);
    return true;
}

bool decode_origin_array(Decoder *x, const Pb__OriginalArrayProto *o)
{
    buf_putc(x->b, '{');
    if (o && !put_bare(x, o->instruction_name))
        return false;
    if (o && o->n_shape_index) {
        buf_putc(x->b, ' ');
        decode_list(x, o->n_shape_index, o->shape_index);
    }
    buf_putc(x->b, '}');
    return true;
}

typedef struct Leaf {
    const Pb__OriginalValueElementProto *e;
    size_t                               place; /* in the message */
} Leaf;

/* Depth first; what comes later behind what it replaces. */
static int compare_leaves(const void *x, const void *y)
{
    const Leaf *a = x, *b = y;
    for (size_t k = 0; k < a->e->n_shape_index && k < b->e->n_shape_index; k++)
        if (a->e->shape_index[k] != b->e->shape_index[k])
            return a->e->shape_index[k] < b->e->shape_index[k] ? -1 : 1;
    if (a->e->n_shape_index != b->e->n_shape_index)
        return a->e->n_shape_index < b->e->n_shape_index ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static bool leaf_is_inside(const Leaf *inner, const Leaf *outer)
{
    size_t n = outer->e->n_shape_index, k = 0;
    while (k < n && k < inner->e->n_shape_index && inner->e->shape_index[k] == outer->e->shape_index[k])
        k++;
    return k == n;
}

/* The leaves in the order of the tree, the last for each place, none inside another, and no gap that would be filled for ever. NULL
 * after reporting. */
static Leaf *order_leaves(Decoder *x, const Pb__OriginalValueProto *o, size_t *n)
{
    enum { WIDEST = 1 << 20 };
    Leaf  *v = ARENA_ARRAY(x->arena, Leaf, (int64_t)o->n_elements);
    size_t m = 0;
    for (size_t k = 0; k < o->n_elements; k++) {
        v[k] = (Leaf){o->elements[k], k};
        if (v[k].e->n_shape_index > WIRE_DEPTH) {
            bad(x, "an original value is nested too deeply");
            return NULL;
        }
        for (size_t j = 0; j < v[k].e->n_shape_index; j++)
            if (v[k].e->shape_index[j] < 0 || v[k].e->shape_index[j] > WIDEST) {
                bad(x, "an original value has an index out of range");
                return NULL;
            }
    }
    qsort(v, o->n_elements, sizeof *v, compare_leaves);
    for (size_t k = 0; k < o->n_elements; k++) {
        bool inside = m > 0 && leaf_is_inside(&v[k], &v[m - 1]);
        if (inside && v[k].e->n_shape_index != v[m - 1].e->n_shape_index) {
            bad(x, "a leaf of an original value stands inside another one");
            return NULL;
        }
        v[inside ? m - 1 : m++] = v[k];
    }
    *n = m;
    return v;
}

/* The part of the tree whose leaves are v[lo..hi), which agree in the first depth indices. What is missing between two leaves has none. */
static bool origin_tree(Decoder *x, const Leaf *v, size_t lo, size_t hi, size_t depth)
{
    if (hi - lo == 1 && v[lo].e->n_shape_index == depth)
        return decode_origin_array(x, v[lo].e->original_array);
    buf_putc(x->b, '(');
    for (int64_t k = 0; lo < hi; k++) {
        size_t n = lo;
        while (n < hi && v[n].e->shape_index[depth] == k)
            n++;
        buf_puts(x->b, k ? ", " : "");
        if (n == lo)
            buf_puts(x->b, "()");
        else if (!origin_tree(x, v, lo, n, depth + 1))
            return false;
        lo = n;
    }
    buf_putc(x->b, ')');
    return true;
}

bool decode_origin(Decoder *x, const Pb__OriginalValueProto *o)
{
    size_t      n = 0;
    const Leaf *v = order_leaves(x, o, &n);
    if (o->is_synthetic_call)
        n = 0; /* such a call has no tree */
    buf_putc(x->b, '{');
    if (!v || !origin_tree(x, v, 0, n, 0))
        return false;
    if (o->has_call_hierarchy_case == PB__ORIGINAL_VALUE_PROTO__HAS_CALL_HIERARCHY_CALL_HIERARCHY) {
        buf_puts(x->b, ",[");
        if (!put_bare(x, o->call_hierarchy))
            return false;
        buf_putc(x->b, ']');
    }
    buf_putc(x->b, '}');
    return true;
}
