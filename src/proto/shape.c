/* Shapes, layouts and signatures in messages. XLA writes tail_padding_alignment 1 and, for arrays with dimensions, one mark for each dimension. */
#include "config.h"

#include "proto/proto_int.h"

static const Pb__PrimitiveType primitive_types[TYPE_COUNT] = {
#define TYPE(id, ...) [TYPE_##id] = PB__PRIMITIVE_TYPE__##id,
#include "ir/types.def"
#undef TYPE
};

static Type type_decode(Pb__PrimitiveType primitive)
{
    for (Type t = 0; t < TYPE_COUNT; t++)
        if (primitive_types[t] == primitive)
            return t;
    return TYPE_COUNT;
}

Ints decode_ints(Arena *a, size_t n, const int64_t *v)
{
    return ints_copy(a, (Ints){v, (int32_t)n});
}

/* ---- reading ---- */

static bool is_descending(Ints x)
{
    for (int32_t k = 0; k < x.n; k++)
        if (x.v[k] != x.n - 1 - k)
            return false;
    return true;
}

static const Layout *layout_decode(Arena *a, const Pb__LayoutProto *p)
{
    Layout *l = ARENA_NEW(a, Layout);
    *l = (Layout){.minor_to_major = decode_ints(a, p->n_minor_to_major, p->minor_to_major),
                  .n_tiles = (int32_t)p->n_tiles,
                  .tail_padding = p->tail_padding_alignment_in_elements ? p->tail_padding_alignment_in_elements : 1,
                  .index_type = TYPE_COUNT,
                  .pointer_type = TYPE_COUNT,
                  .element_bits = p->element_size_in_bits,
                  .memory_space = p->memory_space,
                  .n_splits = (int32_t)p->n_split_configs,
                  .metadata_prefix = p->dynamic_shape_metadata_prefix_bytes};
    Tile        *tiles = ARENA_ARRAY(a, Tile, l->n_tiles);
    SplitConfig *splits = ARENA_ARRAY(a, SplitConfig, l->n_splits);
    for (size_t k = 0; k < p->n_tiles; k++)
        tiles[k].dims = decode_ints(a, p->tiles[k]->n_dimensions, p->tiles[k]->dimensions);
    for (size_t k = 0; k < p->n_split_configs; k++)
        splits[k] = (SplitConfig){p->split_configs[k]->dimension,
                                  decode_ints(a, p->split_configs[k]->n_split_indices, p->split_configs[k]->split_indices)};
    l->tiles = tiles;
    l->splits = splits;
    return l;
}

static bool is_permutation(Arena *a, Ints x, int32_t n)
{
    bool *seen = ARENA_ARRAY(a, bool, n);
    for (int32_t k = 0; k < x.n; k++) {
        if (x.v[k] < 0 || x.v[k] >= n || seen[x.v[k]])
            return false;
        seen[x.v[k]] = true;
    }
    return x.n == n;
}

/* What is wrong with a layout, NULL: nothing. */
static const char *layout_fault(Arena *a, const Pb__LayoutProto *p, const Layout *l, const Shape *s)
{
    bool no_order = l->minor_to_major.n == 0 && l->memory_space; /* f32[4]{:S(1)} */
    if (!no_order && !is_permutation(a, l->minor_to_major, s->rank))
        return "its layout does not name each dimension once";
    if (!layout_tiles_fit(l))
        return "its layout has a tile without dimensions or with one below 1";
    if (!layout_splits_fit(l, s))
        return "its layout splits a dimension that there is none of, or not at rising places inside of it";
    if (p->index_primitive_type || p->pointer_primitive_type || p->physical_shape)
        return "its layout is that of a sparse array";
    return l->element_bits < 0 || l->tail_padding < 0 ? "its layout has a negative size" : NULL;
}

static bool layout_is_plain(const Layout *l, int32_t rank)
{
    return l->minor_to_major.n == rank && is_descending(l->minor_to_major) && l->n_tiles == 0 && l->tail_padding == 1 &&
           l->element_bits == 0 && l->memory_space == 0 && l->n_splits == 0 && l->metadata_prefix == 0;
}

static const Shape *bad_shape(const char *what, const char *why, Diag *d)
{
    diag_error(d, LOC_NONE, "%s: a shape is wrong: %s", what, why);
    return NULL;
}

static const Shape *array_decode(Arena *a, Type t, const Pb__ShapeProto *p, const char *what, Diag *d)
{
    const Shape *s = shape_array(a, t, (int32_t)p->n_dimensions, p->dimensions);
    bool         any = false, over = false, empty = false, *dynamic = ARENA_ARRAY(a, bool, s->rank);
    int64_t      size = type_bytes(t);
    if (p->n_is_dynamic_dimension && p->n_is_dynamic_dimension != p->n_dimensions)
        return bad_shape(what, "it does not say of each dimension once whether it is dynamic", d);
    for (size_t k = 0; k < p->n_dimensions; k++) {
        dynamic[k] = p->n_is_dynamic_dimension && p->is_dynamic_dimension[k];
        any |= dynamic[k];
        if (p->dimensions[k] < 0 && !(dynamic[k] && p->dimensions[k] == DIM_UNBOUNDED)) {
            diag_error(d, LOC_NONE, "%s: a shape has a dimension of size %lld", what, (long long)p->dimensions[k]);
            return NULL;
        }
        empty |= p->dimensions[k] == 0;
        over |= p->dimensions[k] > 0 && !size_mul(size, p->dimensions[k], &size);
    }
    if (over && !empty) /* a zero anywhere wins, as in texts */
        return bad_shape(what, "its size does not fit 64 bits", d);
    Shape *own = arena_copy(a, s, sizeof *s);
    own->dynamic = any ? dynamic : NULL;
    if (p->layout) {
        const Layout *l = layout_decode(a, p->layout);
        const char   *fault = layout_fault(a, p->layout, l, s);
        if (fault)
            return bad_shape(what, fault, d);
        own->layout = layout_is_plain(l, s->rank) ? NULL : l;
    }
    return own;
}

/* b(T): the buffer's one tuple_shapes entry is T. */
static const Shape *buffer_decode(Arena *a, const Pb__ShapeProto *p, const char *what, Diag *d)
{
    const Shape *inner = p->n_tuple_shapes == 1 ? shape_decode(a, p->tuple_shapes[0], what, d) : NULL;
    if (!inner || !shape_is_array(inner)) {
        diag_error(d, LOC_NONE, "%s: a buffer is one of an array", what);
        return NULL;
    }
    Shape *s = arena_copy(a, inner, sizeof *inner);
    s->buffer = true;
    return s;
}

const Shape *shape_decode(Arena *a, const Pb__ShapeProto *p, const char *what, Diag *d)
{
    enum { MOST_DIMENSIONS = 1 << 20 };
    if (p->element_type == PB__PRIMITIVE_TYPE__BUFFER)
        return buffer_decode(a, p, what, d);
    Type t = type_decode(p->element_type);
    if (t == TYPE_COUNT) {
        diag_error(d, LOC_NONE, "%s: there is no element type %d", what, (int)p->element_type);
        return NULL;
    }
    if (p->n_dimensions > MOST_DIMENSIONS || (p->layout && !type_is_array(t)))
        return bad_shape(what, p->layout ? "arrays alone have a layout" : "it has too many dimensions", d);
    if (type_is_array(t))
        return array_decode(a, t, p, what, d);
    const Shape **elems = ARENA_ARRAY(a, const Shape *, (int64_t)p->n_tuple_shapes);
    for (size_t k = 0; k < p->n_tuple_shapes; k++)
        if (!(elems[k] = shape_decode(a, p->tuple_shapes[k], what, d)))
            return NULL;
    return t == TYPE_TUPLE ? shape_tuple(a, (int32_t)p->n_tuple_shapes, elems) : shape_scalar(a, t);
}

bool shape_has_layouts(const Pb__ShapeProto *p)
{
    for (size_t k = 0; k < p->n_tuple_shapes; k++)
        if (!shape_has_layouts(p->tuple_shapes[k]))
            return false;
    return p->layout || !type_is_array(type_decode(p->element_type));
}

bool shape_same_order(const Shape *x, const Shape *y)
{
    if (x->rank != y->rank || x->n_elems != y->n_elems)
        return false;
    for (int32_t k = 0; k < x->rank; k++)
        if (layout_dim(x, k) != layout_dim(y, k) || (x->dynamic && x->dynamic[k]) != (y->dynamic && y->dynamic[k]))
            return false;
    for (int32_t k = 0; k < x->n_elems; k++)
        if (!shape_same_order(x->elems[k], y->elems[k]))
            return false;
    return true;
}

/* ---- writing ---- */

static Pb__LayoutProto *layout_encode(Arena *a, const Shape *s)
{
    static const Layout plain = {.tail_padding = 1, .index_type = TYPE_COUNT, .pointer_type = TYPE_COUNT};
    const Layout       *l = s->layout ? s->layout : &plain;
    Pb__LayoutProto    *p = message_new(a, &pb__layout_proto__descriptor);
    int32_t n = s->layout ? s->layout->minor_to_major.n : s->rank; /* f32[4]{:S(1)} has no order */
    p->n_minor_to_major = (size_t)n;
    p->minor_to_major = ARENA_ARRAY(a, int64_t, n);
    for (int32_t k = 0; k < n; k++)
        p->minor_to_major[k] = layout_dim(s, k);
    p->tail_padding_alignment_in_elements = l->tail_padding;
    p->element_size_in_bits = l->element_bits;
    p->memory_space = l->memory_space;
    p->dynamic_shape_metadata_prefix_bytes = l->metadata_prefix;
    if (l->index_type != TYPE_COUNT && l->index_type != LAYOUT_NO_TYPE)
        p->index_primitive_type = primitive_types[l->index_type];
    if (l->pointer_type != TYPE_COUNT && l->pointer_type != LAYOUT_NO_TYPE)
        p->pointer_primitive_type = primitive_types[l->pointer_type];
    p->n_tiles = (size_t)l->n_tiles;
    p->tiles = ARENA_ARRAY(a, Pb__TileProto *, l->n_tiles);
    for (int32_t k = 0; k < l->n_tiles; k++) {
        p->tiles[k] = message_new(a, &pb__tile_proto__descriptor);
        p->tiles[k]->n_dimensions = (size_t)l->tiles[k].dims.n;
        p->tiles[k]->dimensions = encode_ints(a, l->tiles[k].dims);
    }
    p->n_split_configs = (size_t)l->n_splits;
    p->split_configs = ARENA_ARRAY(a, Pb__SplitConfigProto *, l->n_splits);
    for (int32_t k = 0; k < l->n_splits; k++) {
        p->split_configs[k] = message_new(a, &pb__split_config_proto__descriptor);
        p->split_configs[k]->dimension = l->splits[k].dim;
        p->split_configs[k]->n_split_indices = (size_t)l->splits[k].indices.n;
        p->split_configs[k]->split_indices = encode_ints(a, l->splits[k].indices);
    }
    return p;
}

static Pb__ShapeProto *array_encode(Arena *a, const Shape *s)
{
    Pb__ShapeProto *p = message_new(a, &pb__shape_proto__descriptor);
    p->element_type = primitive_types[s->type];
    p->n_dimensions = p->n_is_dynamic_dimension = (size_t)s->rank;
    p->dimensions = encode_ints(a, (Ints){s->dims, s->rank});
    p->is_dynamic_dimension = ARENA_ARRAY(a, protobuf_c_boolean, s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        p->is_dynamic_dimension[k] = s->dynamic && s->dynamic[k];
    p->layout = layout_encode(a, s);
    return p;
}

Pb__ShapeProto *shape_encode(Arena *a, const Shape *s)
{
    if (shape_is_array(s))
        return array_encode(a, s);
    Pb__ShapeProto *p = message_new(a, &pb__shape_proto__descriptor);
    p->element_type = s->buffer ? PB__PRIMITIVE_TYPE__BUFFER : primitive_types[s->type];
    p->n_tuple_shapes = s->buffer ? 1 : (size_t)s->n_elems;
    p->tuple_shapes = ARENA_ARRAY(a, Pb__ShapeProto *, (int64_t)p->n_tuple_shapes);
    if (s->buffer)
        p->tuple_shapes[0] = array_encode(a, s);
    for (int32_t k = 0; k < s->n_elems; k++)
        p->tuple_shapes[k] = shape_encode(a, s->elems[k]);
    return p;
}

Pb__ProgramShapeProto *program_shape_encode(Arena *a, int32_t n, const Shape *const *params, const char *const *names, const Shape *result)
{
    Pb__ProgramShapeProto *p = message_new(a, &pb__program_shape_proto__descriptor);
    p->n_parameters = p->n_parameter_names = (size_t)n;
    p->parameters = ARENA_ARRAY(a, Pb__ShapeProto *, n);
    p->parameter_names = ARENA_ARRAY(a, char *, n);
    for (int32_t k = 0; k < n; k++) {
        p->parameters[k] = shape_encode(a, params[k]);
        p->parameter_names[k] = encode_string(a, names[k]);
    }
    p->result = shape_encode(a, result);
    return p;
}
