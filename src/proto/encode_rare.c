/* Shardings, meshes, replica groups, origins and metadata as messages, the way XLA fills them. */
#include "config.h"

#include <string.h>

#include "proto/proto_int.h"

void *message_new(Arena *a, const ProtobufCMessageDescriptor *desc)
{
    ProtobufCMessage *m = arena_alloc(a, desc->sizeof_message);
    desc->message_init(m);
    return m;
}

/* A zero byte would end the string for protobuf-c: it becomes one that is no UTF-8, of which proto_write complains. */
char *encode_string(Arena *a, const char *s)
{
    char *copy = s ? arena_strndup(a, s, intern_len(s)) : NULL;
    for (size_t k = 0; copy && k < intern_len(s); k++)
        if (copy[k] == 0)
            copy[k] = (char)0xff;
    return copy;
}

ProtobufCBinaryData encode_bytes(Arena *a, const char *s)
{
    size_t n = s ? intern_len(s) : 0;
    return (ProtobufCBinaryData){n, n ? arena_copy(a, s, n) : NULL};
}

int64_t *encode_ints(Arena *a, Ints x)
{
    return x.n ? arena_copy(a, x.v, (size_t)x.n * sizeof *x.v) : NULL;
}

static int32_t *encode_ints32(Arena *a, Ints x)
{
    int32_t *v = ARENA_ARRAY(a, int32_t, x.n);
    for (int32_t k = 0; k < x.n; k++)
        v[k] = (int32_t)x.v[k];
    return v;
}

/* ---- metadata ---- */

static char *text_or_empty(Arena *a, const char *s)
{
    return s ? encode_string(a, s) : (char *)(uintptr_t)protobuf_c_empty_string;
}

Pb__OpMetadata *encode_metadata(Arena *a, const Metadata *m)
{
    Pb__OpMetadata *p = message_new(a, &pb__op_metadata__descriptor);
    if (!m)
        return p;
    p->op_type = text_or_empty(a, m->op_type);
    p->op_name = text_or_empty(a, m->op_name);
    p->source_file = text_or_empty(a, m->source_file);
    p->deduplicated_name = text_or_empty(a, m->deduplicated_name);
    p->scheduling_name = text_or_empty(a, m->scheduling_name);
    p->source_line = m->source_line;
    p->source_end_line = m->source_end_line;
    p->source_column = m->source_column;
    p->source_end_column = m->source_end_column;
    p->stack_frame_id = m->stack_frame_id;
    p->n_profile_type = (size_t)m->profile_type.n;
    p->profile_type = ARENA_ARRAY(a, Pb__ProfileType, m->profile_type.n);
    for (int32_t k = 0; k < m->profile_type.n; k++)
        p->profile_type[k] = (Pb__ProfileType)m->profile_type.v[k];
    if (m->payload) {
        p->metadata_payload = message_new(a, &pb__payload__descriptor);
        p->metadata_payload->payload_source_case = PB__PAYLOAD__PAYLOAD_SOURCE_VALUE;
        p->metadata_payload->value = encode_bytes(a, m->payload);
    }
    return p;
}

Pb__FrontendAttributes *encode_frontend(Arena *a, const KeyValues *kv)
{
    Pb__FrontendAttributes *p = message_new(a, &pb__frontend_attributes__descriptor);
    p->n_map = kv ? (size_t)kv->n : 0;
    p->map = ARENA_ARRAY(a, Pb__FrontendAttributes__MapEntry *, (int64_t)p->n_map);
    for (size_t k = 0; k < p->n_map; k++) {
        p->map[k] = message_new(a, &pb__frontend_attributes__map_entry__descriptor);
        p->map[k]->key = encode_string(a, kv->v[k].key);
        p->map[k]->value = encode_string(a, kv->v[k].value);
    }
    return p;
}

/* ---- meshes ---- */

static Pb__MeshProto *encode_mesh(Arena *a, const Mesh *m)
{
    Pb__MeshProto *p = message_new(a, &pb__mesh_proto__descriptor);
    if (m->kind == MESH_SINGLE_DEVICE) {
        p->n_device_ids = 1;
        p->device_ids = encode_ints(a, (Ints){&m->device, 1});
        return p;
    }
    p->n_axes = (size_t)m->n_axes;
    p->axes = ARENA_ARRAY(a, Pb__MeshProto__MeshAxis *, m->n_axes);
    for (int32_t k = 0; k < m->n_axes; k++) {
        p->axes[k] = message_new(a, &pb__mesh_proto__mesh_axis__descriptor);
        p->axes[k]->name = encode_string(a, m->axes[k].name);
        p->axes[k]->size = m->axes[k].size;
    }
    p->n_device_ids = (size_t)m->devices.n;
    p->device_ids = encode_ints(a, m->devices);
    if (m->has_iota && m->iota.dims.n > 1) {
        p->has_iota_transform_case = PB__MESH_PROTO__HAS_IOTA_TRANSFORM_IOTA_TRANSFORM;
        p->iota_transform = message_new(a, &pb__mesh_proto__iota_transform__descriptor);
        p->iota_transform->n_reshape_dims = (size_t)m->iota.dims.n;
        p->iota_transform->reshape_dims = encode_ints(a, m->iota.dims);
        p->iota_transform->n_transpose_perm = (size_t)m->iota.perm.n;
        p->iota_transform->transpose_perm = encode_ints(a, m->iota.perm);
    }
    return p;
}

static Pb__AxisRefProto **encode_axes(Arena *a, AxisRefs x, size_t *n)
{
    Pb__AxisRefProto **v = ARENA_ARRAY(a, Pb__AxisRefProto *, x.n);
    *n = (size_t)x.n;
    for (int32_t k = 0; k < x.n; k++) {
        v[k] = message_new(a, &pb__axis_ref_proto__descriptor);
        v[k]->mesh_axis_index = x.v[k].axis;
        if (x.v[k].size == 0)
            continue;
        v[k]->has_sub_axis_info_case = PB__AXIS_REF_PROTO__HAS_SUB_AXIS_INFO_SUB_AXIS_INFO;
        v[k]->sub_axis_info = message_new(a, &pb__axis_ref_proto__sub_axis__descriptor);
        v[k]->sub_axis_info->pre_size = x.v[k].pre;
        v[k]->sub_axis_info->size = x.v[k].size;
    }
    return v;
}

/* ---- shardings ---- */

static Pb__OpMetadata **encode_metas(Arena *a, const Sharding *s, size_t *n)
{
    Pb__OpMetadata **v = ARENA_ARRAY(a, Pb__OpMetadata *, s->n_meta);
    *n = (size_t)s->n_meta;
    for (int32_t k = 0; k < s->n_meta; k++)
        v[k] = encode_metadata(a, s->meta[k]);
    return v;
}

static Pb__NamedShardingProto__ReductionOpProto reduction_op(Reduction r)
{
    return r == REDUCTION_MAX   ? PB__NAMED_SHARDING_PROTO__REDUCTION_OP_PROTO__MAX
           : r == REDUCTION_MIN ? PB__NAMED_SHARDING_PROTO__REDUCTION_OP_PROTO__MIN
                                : PB__NAMED_SHARDING_PROTO__REDUCTION_OP_PROTO__SUM;
}

static void encode_named(Arena *a, Pb__OpSharding *p, const Sharding *s)
{
    Pb__NamedShardingProto *q = message_new(a, &pb__named_sharding_proto__descriptor);
    p->has_named_sharding_case = PB__OP_SHARDING__HAS_NAMED_SHARDING_NAMED_SHARDING;
    p->named_sharding = q;
    q->mesh = encode_mesh(a, s->mesh);
    q->n_dim_shardings = (size_t)s->n_named;
    q->dim_shardings = ARENA_ARRAY(a, Pb__NamedShardingProto__DimensionSharding *, s->n_named);
    for (int32_t k = 0; k < s->n_named; k++) {
        q->dim_shardings[k] = message_new(a, &pb__named_sharding_proto__dimension_sharding__descriptor);
        q->dim_shardings[k]->axes = encode_axes(a, s->named[k].axes, &q->dim_shardings[k]->n_axes);
        q->dim_shardings[k]->is_closed = !s->named[k].open;
    }
    q->replicated_axes = encode_axes(a, s->replicated, &q->n_replicated_axes);
    q->unreduced_axes = encode_axes(a, s->unreduced, &q->n_unreduced_axes);
    q->manual_axes = encode_axes(a, s->manual, &q->n_manual_axes);
    q->reduction_op = reduction_op(s->reduction);
    q->metadata = encode_metas(a, s, &q->n_metadata);
}

static void encode_tiled(Arena *a, Pb__OpSharding *p, const Sharding *s)
{
    static const Pb__OpSharding__Type types[] = {
        [SUBGROUP_MAXIMAL] = PB__OP_SHARDING__TYPE__MAXIMAL,
        [SUBGROUP_MANUAL] = PB__OP_SHARDING__TYPE__MANUAL,
        [SUBGROUP_UNREDUCED] = PB__OP_SHARDING__TYPE__UNREDUCED,
        [SUBGROUP_REPLICATED] = PB__OP_SHARDING__TYPE__REPLICATED,
    };
    p->n_tile_assignment_dimensions = (size_t)s->dims.n;
    p->tile_assignment_dimensions = encode_ints(a, s->dims);
    if (s->has_iota) {
        Ints one = ints_make(a, 1), zero = ints_make(a, 1);
        *ints_at(one, 0) = 1;
        Ints dims = s->iota.dims.n ? s->iota.dims : one, perm = dims.n > 1 ? s->iota.perm : zero;
        p->n_iota_reshape_dims = (size_t)dims.n;
        p->iota_reshape_dims = encode_ints(a, dims);
        p->n_iota_transpose_perm = (size_t)perm.n;
        p->iota_transpose_perm = encode_ints32(a, perm);
    } else {
        p->n_tile_assignment_devices = (size_t)s->devices.n;
        p->tile_assignment_devices = encode_ints(a, s->devices);
    }
    p->replicate_on_last_tile_dim = s->replicate_last;
    p->n_last_tile_dims = (size_t)s->subgroups.n;
    p->last_tile_dims = ARENA_ARRAY(a, Pb__OpSharding__Type, s->subgroups.n);
    for (int32_t k = 0; k < s->subgroups.n; k++)
        p->last_tile_dims[k] = types[s->subgroups.v[k]];
}

Pb__OpSharding *encode_sharding(Arena *a, const Sharding *s)
{
    Pb__OpSharding *p = message_new(a, &pb__op_sharding__descriptor);
    switch (s->kind) {
    case SHARDING_REPLICATED: p->type = PB__OP_SHARDING__TYPE__REPLICATED; break;
    case SHARDING_MANUAL: p->type = PB__OP_SHARDING__TYPE__MANUAL; break;
    case SHARDING_UNKNOWN: p->type = PB__OP_SHARDING__TYPE__UNKNOWN; break;
    case SHARDING_UNREDUCED: p->type = PB__OP_SHARDING__TYPE__UNREDUCED; break;
    case SHARDING_MAXIMAL:
        p->type = PB__OP_SHARDING__TYPE__MAXIMAL;
        p->n_tile_assignment_devices = 1;
        p->tile_assignment_devices = encode_ints(a, (Ints){&s->device, 1});
        break;
    case SHARDING_TILED:
        p->type = PB__OP_SHARDING__TYPE__OTHER;
        encode_tiled(a, p, s);
        break;
    case SHARDING_NAMED: encode_named(a, p, s); break;
    case SHARDING_TUPLE:
        p->type = PB__OP_SHARDING__TYPE__TUPLE;
        p->n_tuple_shardings = (size_t)s->n_elems;
        p->tuple_shardings = ARENA_ARRAY(a, Pb__OpSharding *, s->n_elems);
        for (int32_t k = 0; k < s->n_elems; k++)
            p->tuple_shardings[k] = encode_sharding(a, s->elems[k]);
        return p;
    }
    if (s->kind != SHARDING_NAMED)
        p->metadata = encode_metas(a, s, &p->n_metadata);
    p->is_shard_group = s->group != GROUP_NONE;
    p->shard_group_id = s->group != GROUP_NONE ? s->group_id : 0;
    p->shard_group_type = s->group == GROUP_SHARD_LIKE ? PB__OP_SHARDING__SHARD_GROUP_TYPE__LIKE : PB__OP_SHARDING__SHARD_GROUP_TYPE__AS;
    return p;
}

/* ---- replica groups ---- */

static Pb__CollectiveDeviceListProto *encode_lists(Arena *a, const IntsList *x)
{
    Pb__CollectiveDeviceListProto *p = message_new(a, &pb__collective_device_list_proto__descriptor);
    p->n_replica_groups = (size_t)x->n;
    p->replica_groups = ARENA_ARRAY(a, Pb__ReplicaGroup *, x->n);
    for (int32_t k = 0; k < x->n; k++) {
        p->replica_groups[k] = message_new(a, &pb__replica_group__descriptor);
        p->replica_groups[k]->n_replica_ids = (size_t)x->v[k].n;
        p->replica_groups[k]->replica_ids = encode_ints(a, x->v[k]);
    }
    return p;
}

static Pb__IotaReplicaGroupListProto *encode_iota_groups(Arena *a, const ReplicaGroups *g)
{
    Pb__IotaReplicaGroupListProto *p = message_new(a, &pb__iota_replica_group_list_proto__descriptor);
    Ints                           one = ints_make(a, 1), zero = ints_make(a, 1);
    *ints_at(one, 0) = 1;
    Ints dims = g->iota.dims.n ? g->iota.dims : one, perm = dims.n > 1 ? g->iota.perm : zero;
    p->num_replica_groups = g->count;
    p->num_devices_per_group = g->size;
    p->n_iota_reshape_dims = (size_t)dims.n;
    p->iota_reshape_dims = encode_ints(a, dims);
    p->n_iota_transpose_perm = (size_t)perm.n;
    p->iota_transpose_perm = encode_ints32(a, perm);
    return p;
}

void encode_groups(Arena *a, Pb__HloInstructionProto *p, const ReplicaGroups *g)
{
    static const IntsList none = {0};
    if (!g || g->version == GROUPS_LISTS) {
        p->replica_group_list_case = PB__HLO_INSTRUCTION_PROTO__REPLICA_GROUP_LIST_COLLECTIVE_DEVICE_LIST;
        p->collective_device_list = encode_lists(a, g ? &g->lists : &none);
    } else if (g->version == GROUPS_IOTA) {
        p->replica_group_list_case = PB__HLO_INSTRUCTION_PROTO__REPLICA_GROUP_LIST_IOTA_COLLECTIVE_DEVICE_LIST;
        p->iota_collective_device_list = encode_iota_groups(a, g);
    } else {
        p->replica_group_list_case = PB__HLO_INSTRUCTION_PROTO__REPLICA_GROUP_LIST_MESH_AXES_REPLICA_GROUP_LIST;
        p->mesh_axes_replica_group_list = message_new(a, &pb__mesh_axes_replica_group_list_proto__descriptor);
        p->mesh_axes_replica_group_list->mesh = encode_mesh(a, g->mesh);
        p->mesh_axes_replica_group_list->axes = encode_axes(a, g->axes, &p->mesh_axes_replica_group_list->n_axes);
    }
}

/* ---- origins ---- */

Pb__OriginalArrayProto *encode_origin_array(Arena *a, const OriginArray *x)
{
    if (!x->known)
        return NULL;
    Pb__OriginalArrayProto *p = message_new(a, &pb__original_array_proto__descriptor);
    p->instruction_name = encode_string(a, x->name);
    p->n_shape_index = (size_t)x->index.n;
    p->shape_index = encode_ints(a, x->index);
    return p;
}

typedef VEC(Pb__OriginalValueElementProto *) Elements;

/* index: the path to node; room for deeper ones. */
static void encode_leaves(Arena *a, const OriginNode *node, Ints index, Elements *v)
{
    if (node->leaf) {
        Pb__OriginalValueElementProto *e = message_new(a, &pb__original_value_element_proto__descriptor);
        e->n_shape_index = (size_t)index.n;
        e->shape_index = encode_ints(a, index);
        e->original_array = encode_origin_array(a, &node->array);
        vec_push(a, v, e);
        return;
    }
    Ints inner = ints_make(a, index.n + 1);
    for (int32_t k = 0; k < index.n; k++)
        *ints_at(inner, k) = index.v[k];
    for (int32_t k = 0; k < node->n; k++) {
        *ints_at(inner, index.n) = k;
        encode_leaves(a, &node->elems[k], inner, v);
    }
}

Pb__OriginalValueProto *encode_origin(Arena *a, const Origin *o)
{
    Pb__OriginalValueProto *p = message_new(a, &pb__original_value_proto__descriptor);
    Elements                v = {0};
    encode_leaves(a, &o->tree, (Ints){NULL, 0}, &v);
    p->n_elements = (size_t)v.n;
    p->elements = v.v;
    if (o->call) {
        p->has_call_hierarchy_case = PB__ORIGINAL_VALUE_PROTO__HAS_CALL_HIERARCHY_CALL_HIERARCHY;
        p->call_hierarchy = encode_string(a, o->call);
        p->is_synthetic_call = !*o->call;
    }
    return p;
}
