/* Attributes of instructions, from the fields of HloInstructionProto to text. op_attrs.def says which opcode has which; a field that the opcode does
 * not have is passed over, as XLA does. A value that is the default of its field cannot be told from one that is absent, so attributes that may be
 * left out are written when they differ from it. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "ir/numeric.h"
#include "proto/proto_int.h"
#include "text/print.h"
#include "text/print_rare.h"
#include "text/print_value.h"

typedef Pb__HloInstructionProto Pb;

static bool bad(Decoder *x, AttrId id, const char *why)
{
    diag_error(x->d, LOC_NONE, "%s: %s: %s", x->what, attr_info[id].text, why);
    return false;
}

/* ---- values ---- */

void decode_string(Decoder *x, const char *s)
{
    print_quoted(x->b, intern_str(x->strings, s ? s : ""));
}

void decode_bytes(Decoder *x, ProtobufCBinaryData s)
{
    print_quoted(x->b, intern(x->strings, (const char *)s.data, s.len));
}

void decode_list(Decoder *x, size_t n, const int64_t *v)
{
    print_ints(x->b, (Ints){v, (int32_t)n});
}

bool decode_shape(Decoder *x, const Pb__ShapeProto *p)
{
    const Shape *s = p ? shape_decode(x->arena, p, x->what, x->d) : NULL;
    if (s)
        shape_print(x->b, s, true);
    else if (!p)
        diag_error(x->d, LOC_NONE, "%s: its shape is missing", x->what);
    return s != NULL;
}

void decode_frontend(Decoder *x, const Pb__FrontendAttributes *f)
{
    if (!f || f->n_map == 0)
        return;
    KeyValue *v = ARENA_ARRAY(x->arena, KeyValue, (int64_t)f->n_map);
    for (size_t k = 0; k < f->n_map; k++)
        v[k] = (KeyValue){intern_str(x->strings, f->map[k]->key), intern_str(x->strings, f->map[k]->value)};
    buf_puts(x->b, ", frontend_attributes=");
    print_key_values(x->b, &(KeyValues){(int32_t)f->n_map, v});
}

static void put_name(Decoder *x, AttrId id)
{
    buf_printf(x->b, ", %s=", attr_info[id].text);
}

static bool put_int(Decoder *x, AttrId id, int64_t v)
{
    put_name(x, id);
    buf_printf(x->b, "%lld", (long long)v);
    return true;
}

static bool put_bool(Decoder *x, AttrId id, bool v)
{
    put_name(x, id);
    buf_puts(x->b, v ? "true" : "false");
    return true;
}

static bool put_list(Decoder *x, AttrId id, size_t n, const int64_t *v)
{
    put_name(x, id);
    decode_list(x, n, v);
    return true;
}

static bool put_bytes(Decoder *x, AttrId id, ProtobufCBinaryData s)
{
    put_name(x, id);
    decode_bytes(x, s);
    return true;
}

/* An enumeration's value as its word: its name, or what stands behind the prefix in small letters. */
static bool put_word(Decoder *x, AttrId id, const ProtobufCEnumDescriptor *e, int v, const char *prefix)
{
    const ProtobufCEnumValue *name = protobuf_c_enum_descriptor_get_value(e, v);
    if (!name || strncmp(name->name, prefix, strlen(prefix)) != 0)
        return bad(x, id, "there is no such value");
    put_name(x, id);
    for (const char *c = name->name + strlen(prefix); *c; c++)
        buf_putc(x->b, *prefix ? (char)tolower((unsigned char)*c) : *c);
    return true;
}

/* A word that is kept as text: letters alone, or it is none. */
static bool put_letters(Decoder *x, AttrId id, const char *s)
{
    for (const char *p = s; *p; p++)
        if (!isalpha((unsigned char)*p))
            return bad(x, id, "there is no such value");
    put_name(x, id);
    buf_puts(x->b, s);
    return true;
}

/* ---- values with a structure ---- */

static bool put_slices(Decoder *x, const Pb *p)
{
    put_name(x, ATTR_SLICE);
    for (size_t k = 0; k < p->n_slice_dimensions; k++)
        buf_printf(x->b, "%s[%lld:%lld:%lld]", k ? "," : "{", (long long)p->slice_dimensions[k]->start,
                   (long long)p->slice_dimensions[k]->limit, (long long)p->slice_dimensions[k]->stride);
    buf_puts(x->b, p->n_slice_dimensions ? "}" : "{}");
    return true;
}

static bool put_padding(Decoder *x, const Pb__PaddingConfig *p)
{
    put_name(x, ATTR_PADDING);
    for (size_t k = 0; p && k < p->n_dimensions; k++)
        buf_printf(x->b, "%s%lld_%lld_%lld", k ? "x" : "", (long long)p->dimensions[k]->edge_padding_low,
                   (long long)p->dimensions[k]->edge_padding_high, (long long)p->dimensions[k]->interior_padding);
    return true;
}

/* A custom call has the window that it was given, also an empty one; the others have one. */
static bool put_window(Decoder *x, Op op, const Pb__Window *p)
{
    if (!p || (p->n_dimensions == 0 && op != OP_CUSTOM_CALL))
        return true;
    WindowDim *v = ARENA_ARRAY(x->arena, WindowDim, (int64_t)p->n_dimensions);
    for (size_t k = 0; k < p->n_dimensions; k++) {
        const Pb__WindowDimension *w = p->dimensions[k];
        v[k] = (WindowDim){w->size, w->stride, w->padding_low, w->padding_high, w->base_dilation, w->window_dilation, w->window_reversal};
    }
    put_name(x, ATTR_WINDOW);
    print_window(x->b, &(Window){(int32_t)p->n_dimensions, v});
    return true;
}

/* Each dimension of an operand has one label, so the numbers must be 0, 1, ... in some order; dimensions that nobody names are '?'. */
static bool labels_are_valid(int64_t batch, int64_t feature, size_t n, const int64_t *spatial)
{
    enum { MOST = 64 };
    uint64_t seen = 0;
    for (size_t k = 0; k < n + 2; k++) {
        int64_t v = k < n ? spatial[k] : k == n ? batch : feature;
        if (v < 0 || v >= MOST || seen >> v & 1)
            return false;
        seen |= 1ull << v;
    }
    return true;
}

static bool put_labels(Decoder *x, const Pb__ConvolutionDimensionNumbers *p)
{
    DimLabels d = {0};
    if (!p)
        return true;
    size_t n = p->n_input_spatial_dimensions;
    if (n > sizeof d.lhs_spatial / sizeof *d.lhs_spatial || p->n_kernel_spatial_dimensions != n || p->n_output_spatial_dimensions != n)
        return bad(x, ATTR_DIM_LABELS, "input, kernel and output have different numbers of spatial dimensions, or too many");
    if (!labels_are_valid(p->input_batch_dimension, p->input_feature_dimension, n, p->input_spatial_dimensions) ||
        !labels_are_valid(p->kernel_input_feature_dimension, p->kernel_output_feature_dimension, n, p->kernel_spatial_dimensions) ||
        !labels_are_valid(p->output_batch_dimension, p->output_feature_dimension, n, p->output_spatial_dimensions))
        return bad(x, ATTR_DIM_LABELS, "a dimension is out of range or named twice");
    d = (DimLabels){.spatial = (int32_t)n, .lhs_batch = p->input_batch_dimension, .lhs_feature = p->input_feature_dimension,
                    .rhs_in = p->kernel_input_feature_dimension, .rhs_out = p->kernel_output_feature_dimension,
                    .out_batch = p->output_batch_dimension, .out_feature = p->output_feature_dimension};
    for (size_t k = 0; k < n; k++) {
        d.lhs_spatial[k] = p->input_spatial_dimensions[k];
        d.rhs_spatial[k] = p->kernel_spatial_dimensions[k];
        d.out_spatial[k] = p->output_spatial_dimensions[k];
    }
    put_name(x, ATTR_DIM_LABELS);
    print_dim_labels(x->b, &d);
    return true;
}

static bool put_precision(Decoder *x, const Pb__PrecisionConfig *p)
{
    if (!p || p->n_operand_precision == 0)
        return true;
    put_name(x, ATTR_OPERAND_PRECISION);
    for (size_t k = 0; k < p->n_operand_precision; k++) {
        const ProtobufCEnumValue *v =
            protobuf_c_enum_descriptor_get_value(&pb__precision_config__precision__descriptor, (int)p->operand_precision[k]);
        if (!v)
            return bad(x, ATTR_OPERAND_PRECISION, "there is no such value");
        buf_printf(x->b, "%s%s", k ? "," : "{", v->name);
    }
    buf_putc(x->b, '}');
    return true;
}

static SparsitySide sparsity_side(const Pb__SparsityConfig__TensorSparsityConfig *p)
{
    if (!p)
        return (SparsitySide){0};
    return (SparsitySide){true, p->num_non_zero, p->block_size, p->dimension, p->stride, p->idx};
}

static bool put_sparsity(Decoder *x, const Pb__SparsityConfig *p)
{
    if (!p || (!p->lhs && !p->rhs))
        return true;
    put_name(x, ATTR_SPARSITY_CONFIG);
    print_sparsity(x->b, &(Sparsity){sparsity_side(p->lhs), sparsity_side(p->rhs)});
    return true;
}

static ScalingSide scaling_side(Decoder *x, const Pb__BlockScalingConfig__TensorBlockScalingConfig *p)
{
    if (!p)
        return (ScalingSide){0};
    return (ScalingSide){.given = true,
                         .has_scale = true,
                         .has_zero = p->has_zero_idx_case == PB__BLOCK_SCALING_CONFIG__TENSOR_BLOCK_SCALING_CONFIG__HAS_ZERO_IDX_ZERO_IDX,
                         .scale = p->scale_idx,
                         .zero = p->zero_idx,
                         .strides = decode_ints(x->arena, p->n_strides, p->strides),
                         .steps = decode_ints(x->arena, p->n_steps, p->steps)};
}

static bool put_scaling(Decoder *x, const Pb__BlockScalingConfig *p)
{
    if (!p || (!p->lhs && !p->rhs))
        return true;
    put_name(x, ATTR_BLOCK_SCALING_CONFIG);
    print_scaling(x->b, &(Scaling){scaling_side(x, p->lhs), scaling_side(x, p->rhs)});
    return true;
}

static bool put_aliasing(Decoder *x, const Pb *p)
{
    if (p->n_output_operand_aliasing == 0)
        return true;
    OperandAlias *v = ARENA_ARRAY(x->arena, OperandAlias, (int64_t)p->n_output_operand_aliasing);
    for (size_t k = 0; k < p->n_output_operand_aliasing; k++) {
        const Pb__OutputOperandAliasing *o = p->output_operand_aliasing[k];
        v[k] = (OperandAlias){decode_ints(x->arena, o->n_output_shape_index, o->output_shape_index), o->operand_index,
                              decode_ints(x->arena, o->n_operand_shape_index, o->operand_shape_index)};
    }
    put_name(x, ATTR_OUTPUT_TO_OPERAND_ALIASING);
    print_aliasing(x->b, &(Aliasing){(int32_t)p->n_output_operand_aliasing, v});
    return true;
}

static bool put_constraints(Decoder *x, const Pb *p)
{
    put_name(x, ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    buf_putc(x->b, '{');
    for (size_t k = 0; k < p->n_operand_shapes_with_layout; k++) {
        buf_puts(x->b, k ? ", " : "");
        if (!decode_shape(x, p->operand_shapes_with_layout[k]))
            return false;
    }
    buf_putc(x->b, '}');
    return true;
}

static bool put_pairs(Decoder *x, const Pb *p)
{
    put_name(x, ATTR_SOURCE_TARGET_PAIRS);
    for (size_t k = 0; k < p->n_source_target_pairs; k++)
        buf_printf(x->b, "%s{%lld,%lld}", k ? "," : "{", (long long)p->source_target_pairs[k]->source,
                   (long long)p->source_target_pairs[k]->target);
    buf_puts(x->b, p->n_source_target_pairs ? "}" : "{}");
    return true;
}

/* XLA writes the two the other way round. */
static bool put_domain(Decoder *x, const Pb *p)
{
    if (!p->domain_entry_sharding || !p->domain_exit_sharding)
        return true;
    put_name(x, ATTR_DOMAIN);
    buf_puts(x->b, "{kind=\"sharding\", entry=");
    if (!decode_sharding(x, p->domain_exit_sharding))
        return false;
    buf_puts(x->b, ", exit=");
    if (!decode_sharding(x, p->domain_entry_sharding))
        return false;
    buf_putc(x->b, '}');
    return true;
}

static bool put_number(Decoder *x, AttrId id, float v)
{
    put_name(x, id);
    buf_printf(x->b, "%.9g", (double)v);
    return true;
}

/* ---- which field an attribute is in ---- */

static size_t count_callees(const char *const *callees)
{
    size_t n = 0;
    while (callees[n])
        n++;
    return n;
}

static bool put_callee(Decoder *x, AttrId id, const char *const *callees, size_t k)
{
    if (k >= count_callees(callees))
        return bad(x, id, "the computation is missing");
    put_name(x, id);
    buf_printf(x->b, "%%%s", callees[k]);
    return true;
}

static bool put_callees(Decoder *x, AttrId id, const char *const *callees)
{
    put_name(x, id);
    for (size_t k = 0; callees[k]; k++)
        buf_printf(x->b, "%s%%%s", k ? ", " : "{", callees[k]);
    buf_puts(x->b, callees[0] ? "}" : "{}");
    return true;
}

static bool put_computations(Decoder *x, Op op, AttrId id, const char *const *callees)
{
    switch (id) {
    case ATTR_BODY: case ATTR_SELECT: return put_callee(x, id, callees, 0);
    case ATTR_CONDITION: case ATTR_SCATTER: return put_callee(x, id, callees, 1);
    case ATTR_TRUE_COMPUTATION: return !x->on_pred || put_callee(x, id, callees, 0);
    case ATTR_FALSE_COMPUTATION: return !x->on_pred || put_callee(x, id, callees, 1);
    case ATTR_BRANCH_COMPUTATIONS: return x->on_pred || put_callees(x, id, callees);
    case ATTR_CALLED_COMPUTATIONS: return !callees[0] || put_callees(x, id, callees);
    case ATTR_TO_APPLY: return op == OP_CUSTOM_CALL || put_callee(x, id, callees, 0);
    case ATTR_CALLS: return op != OP_ASYNC_START && op != OP_FUSION ? true : put_callee(x, id, callees, 0);
    default: return true;
    }
}

static int64_t channel_of(const Pb *p)
{
    return p->channel_id > 0 ? p->channel_id : p->all_reduce_id;
}

/* Text has to say which ids are meant when they are global ones and there is no channel. */
static bool put_mode(Decoder *x, const Pb *p)
{
    if (p->use_global_device_ids && channel_of(p) <= 0) {
        put_name(x, ATTR_MODE);
        buf_puts(x->b, attr_words[COLLECTIVE_FLATTENED_ID].text);
    }
    return true;
}

static bool put_prefetch(Decoder *x, const Pb *p)
{
    bool given = p->optional_cross_program_prefetch_index_case ==
                 PB__HLO_INSTRUCTION_PROTO__OPTIONAL_CROSS_PROGRAM_PREFETCH_INDEX_CROSS_PROGRAM_PREFETCH_INDEX;
    return !(given || p->is_cross_program_prefetch) || put_int(x, ATTR_CROSS_PROGRAM_PREFETCH_INDEX, given ? p->cross_program_prefetch_index : 0);
}

static bool put_dimensions(Decoder *x, Op op, const Pb *p)
{
    bool optional = op == OP_MAP || op == OP_ALL_TO_ALL || op == OP_RAGGED_ALL_TO_ALL;
    return (optional && p->n_dimensions == 0) || put_list(x, ATTR_DIMENSIONS, p->n_dimensions, p->dimensions);
}

static bool put_first_dimension(Decoder *x, AttrId id, const Pb *p)
{
    return p->n_dimensions == 0 ? id == ATTR_INFERRED_DIMENSION || bad(x, id, "it is missing") : put_int(x, id, p->dimensions[0]);
}

/* Numbers of the dimensions of dot, gather and scatter: one field each, of a message that may be missing. */
static bool put_dot(Decoder *x, AttrId id, const Pb__DotDimensionNumbers *p)
{
    static const Pb__DotDimensionNumbers none = PB__DOT_DIMENSION_NUMBERS__INIT;
    p = p ? p : &none;
    switch (id) {
    case ATTR_LHS_BATCH_DIMS: return p->n_lhs_batch_dimensions == 0 || put_list(x, id, p->n_lhs_batch_dimensions, p->lhs_batch_dimensions);
    case ATTR_RHS_BATCH_DIMS: return p->n_rhs_batch_dimensions == 0 || put_list(x, id, p->n_rhs_batch_dimensions, p->rhs_batch_dimensions);
    case ATTR_LHS_CONTRACTING_DIMS: return put_list(x, id, p->n_lhs_contracting_dimensions, p->lhs_contracting_dimensions);
    default: return put_list(x, id, p->n_rhs_contracting_dimensions, p->rhs_contracting_dimensions);
    }
}

static bool put_gather(Decoder *x, AttrId id, const Pb *p)
{
    static const Pb__GatherDimensionNumbers none = PB__GATHER_DIMENSION_NUMBERS__INIT;
    const Pb__GatherDimensionNumbers       *g = p->gather_dimension_numbers ? p->gather_dimension_numbers : &none;
    switch (id) {
    case ATTR_OFFSET_DIMS: return put_list(x, id, g->n_offset_dims, g->offset_dims);
    case ATTR_COLLAPSED_SLICE_DIMS: return put_list(x, id, g->n_collapsed_slice_dims, g->collapsed_slice_dims);
    case ATTR_START_INDEX_MAP: return put_list(x, id, g->n_start_index_map, g->start_index_map);
    case ATTR_OPERAND_BATCHING_DIMS:
        return g->n_operand_batching_dims == 0 || put_list(x, id, g->n_operand_batching_dims, g->operand_batching_dims);
    case ATTR_START_INDICES_BATCHING_DIMS:
        return g->n_start_indices_batching_dims == 0 || put_list(x, id, g->n_start_indices_batching_dims, g->start_indices_batching_dims);
    default: return put_int(x, id, g->index_vector_dim);
    }
}

static bool put_scatter(Decoder *x, AttrId id, const Pb *p)
{
    static const Pb__ScatterDimensionNumbers none = PB__SCATTER_DIMENSION_NUMBERS__INIT;
    const Pb__ScatterDimensionNumbers       *s = p->scatter_dimension_numbers ? p->scatter_dimension_numbers : &none;
    switch (id) {
    case ATTR_UPDATE_WINDOW_DIMS: return put_list(x, id, s->n_update_window_dims, s->update_window_dims);
    case ATTR_INSERTED_WINDOW_DIMS: return put_list(x, id, s->n_inserted_window_dims, s->inserted_window_dims);
    case ATTR_SCATTER_DIMS_TO_OPERAND_DIMS: return put_list(x, id, s->n_scatter_dims_to_operand_dims, s->scatter_dims_to_operand_dims);
    case ATTR_INPUT_BATCHING_DIMS:
        return s->n_input_batching_dims == 0 || put_list(x, id, s->n_input_batching_dims, s->input_batching_dims);
    case ATTR_SCATTER_INDICES_BATCHING_DIMS:
        return s->n_scatter_indices_batching_dims == 0 || put_list(x, id, s->n_scatter_indices_batching_dims, s->scatter_indices_batching_dims);
    default: return put_int(x, id, s->index_vector_dim);
    }
}

static bool put_solve(Decoder *x, AttrId id, const Pb__TriangularSolveOptions *o)
{
    if (!o)
        return true;
    switch (id) {
    case ATTR_LEFT_SIDE: return put_bool(x, id, o->left_side);
    case ATTR_LOWER: return put_bool(x, id, o->lower);
    case ATTR_UNIT_DIAGONAL: return put_bool(x, id, o->unit_diagonal);
    default: return put_word(x, id, &pb__triangular_solve_options__transpose__descriptor, (int)o->transpose_a, "");
    }
}

static bool put_tristate(Decoder *x, AttrId id, int v)
{
    return v == PB__TRI_STATE__TRI_STATE_UNSPECIFIED || put_bool(x, id, v == PB__TRI_STATE__TRI_STATE_TRUE);
}

static bool put_groups(Decoder *x, const Pb *p)
{
    put_name(x, ATTR_REPLICA_GROUPS);
    return decode_groups(x, p);
}

/* The lists of collective-permute stand one after the other; XLA does not say where each ends: they have one entry for each dimension then. */
static bool put_permute_sizes(Decoder *x, const Pb *p)
{
    size_t at = 0, n = p->n_dynamic_slice_sizes, rank = p->shape && p->shape->n_dimensions ? p->shape->n_dimensions : 1;
    if (n == 0)
        return true;
    put_name(x, ATTR_SLICE_SIZES);
    for (size_t k = 0; at < n; k++) {
        size_t length = k < p->n_slice_sizes_lengths ? (size_t)p->slice_sizes_lengths[k] : rank;
        length = length < 1 || length > n - at ? n - at : length;
        buf_puts(x->b, k ? "," : "{");
        decode_list(x, length, p->dynamic_slice_sizes + at);
        at += length;
    }
    buf_putc(x->b, '}');
    return true;
}

static bool put_shifts(Decoder *x, const Pb *p)
{
    const Pb__ShuffleMode__Rotate *r = p->shuffle_mode ? p->shuffle_mode->rotate : NULL;
    return r ? put_list(x, ATTR_SHIFTS, r->n_shifts, r->shifts) : bad(x, ATTR_SHUFFLE_MODE, "it is missing");
}

static bool put_literal(Decoder *x, const Literal *l)
{
    if (!l)
        return true;
    put_name(x, ATTR_LITERAL);
    literal_print_typed(x->b, literal_shape(x->arena, l), l, true);
    return true;
}

static bool put_attr(Decoder *x, Op op, AttrId id, const Pb *p, const char *const *callees, const Literal *literal)
{
    const Pb__RaggedDotDimensionNumbers *ragged = p->ragged_dot_dimension_numbers;
    switch (id) {
    case ATTR_DIMENSIONS: return put_dimensions(x, op, p);
    case ATTR_IOTA_DIMENSION: case ATTR_INFERRED_DIMENSION: return put_first_dimension(x, id, p);
    case ATTR_SLICE: return put_slices(x, p);
    case ATTR_DYNAMIC_SLICE_SIZES: return put_list(x, id, p->n_dynamic_slice_sizes, p->dynamic_slice_sizes);
    case ATTR_PADDING: return put_padding(x, p->padding_config);
    case ATTR_INDEX: return put_int(x, id, p->tuple_index);
    case ATTR_DIRECTION: return put_letters(x, id, p->comparison_direction);
    case ATTR_ORDER: return !*p->comparison_order || put_letters(x, id, p->comparison_order);
    case ATTR_TYPE: return *p->comparison_order || !*p->comparison_type || put_letters(x, id, p->comparison_type);
    case ATTR_EXPONENT_BITS: return put_int(x, id, p->exponent_bits);
    case ATTR_MANTISSA_BITS: return put_int(x, id, p->mantissa_bits);
    case ATTR_WINDOW: return put_window(x, op, p->window);
    case ATTR_NUM_CARRIES: return put_int(x, id, p->num_carries);
    case ATTR_IS_REVERSE: return !p->is_reverse || put_bool(x, id, true);
    case ATTR_IS_ASSOCIATIVE: return put_tristate(x, id, (int)p->is_associative);
    case ATTR_IS_STABLE: return (op == OP_SORT && !p->is_stable) || put_bool(x, id, p->is_stable);
    case ATTR_K: return put_int(x, id, p->k);
    case ATTR_LARGEST: return put_bool(x, id, p->largest);
    case ATTR_OFFSET_DIMS: case ATTR_COLLAPSED_SLICE_DIMS: case ATTR_START_INDEX_MAP: case ATTR_OPERAND_BATCHING_DIMS:
    case ATTR_START_INDICES_BATCHING_DIMS: return put_gather(x, id, p);
    case ATTR_INDEX_VECTOR_DIM: return op == OP_GATHER ? put_gather(x, id, p) : put_scatter(x, id, p);
    case ATTR_SLICE_SIZES:
        return op == OP_GATHER ? put_list(x, id, p->n_gather_slice_sizes, p->gather_slice_sizes) : put_permute_sizes(x, p);
    case ATTR_INDICES_ARE_SORTED: return !p->indices_are_sorted || put_bool(x, id, true);
    case ATTR_UPDATE_WINDOW_DIMS: case ATTR_INSERTED_WINDOW_DIMS: case ATTR_SCATTER_DIMS_TO_OPERAND_DIMS: case ATTR_INPUT_BATCHING_DIMS:
    case ATTR_SCATTER_INDICES_BATCHING_DIMS: return put_scatter(x, id, p);
    case ATTR_UNIQUE_INDICES: return !p->unique_indices || put_bool(x, id, true);
    case ATTR_LHS_BATCH_DIMS: case ATTR_LHS_CONTRACTING_DIMS: case ATTR_RHS_BATCH_DIMS: case ATTR_RHS_CONTRACTING_DIMS:
        return put_dot(x, id, op == OP_RAGGED_DOT ? (ragged ? ragged->dot_dimension_numbers : NULL) : p->dot_dimension_numbers);
    case ATTR_LHS_RAGGED_DIMS: return !ragged || put_list(x, id, ragged->n_lhs_ragged_dimensions, ragged->lhs_ragged_dimensions);
    case ATTR_RHS_GROUP_DIMS:
        return !ragged || ragged->n_rhs_group_dimensions == 0 || put_list(x, id, ragged->n_rhs_group_dimensions, ragged->rhs_group_dimensions);
    case ATTR_OPERAND_PRECISION: return put_precision(x, p->precision_config);
    case ATTR_ALGORITHM:
        return !p->precision_config || p->precision_config->algorithm == PB__PRECISION_CONFIG__ALGORITHM__ALG_UNSET ||
               put_word(x, id, &pb__precision_config__algorithm__descriptor, (int)p->precision_config->algorithm, "ALG_");
    case ATTR_SPARSITY_CONFIG: return put_sparsity(x, p->sparsity_config);
    case ATTR_BLOCK_SCALING_CONFIG: return put_scaling(x, p->block_scaling_config);
    case ATTR_DIM_LABELS: return put_labels(x, p->convolution_dimension_numbers);
    case ATTR_FEATURE_GROUP_COUNT: return p->feature_group_count < 2 || put_int(x, id, p->feature_group_count);
    case ATTR_BATCH_GROUP_COUNT: return p->batch_group_count < 2 || put_int(x, id, p->batch_group_count);
    case ATTR_CONVOLUTION_KIND:
        return p->conv_kind == PB__CONVOLUTION_KIND__CONVOLUTION_KIND_UNSET ||
               put_word(x, id, &pb__convolution_kind__descriptor, (int)p->conv_kind, "CONVOLUTION_KIND_");
    case ATTR_FFT_TYPE: return put_word(x, id, &pb__fft_type__descriptor, (int)p->fft_type, "");
    case ATTR_FFT_LENGTH: return put_list(x, id, p->n_fft_length, p->fft_length);
    case ATTR_LOWER: return op == OP_CHOLESKY ? !p->cholesky_options || put_bool(x, id, p->cholesky_options->lower)
                                              : put_solve(x, id, p->triangular_solve_options);
    case ATTR_LEFT_SIDE: case ATTR_UNIT_DIAGONAL: case ATTR_TRANSPOSE_A: return put_solve(x, id, p->triangular_solve_options);
    case ATTR_EPSILON: return put_number(x, id, p->epsilon);
    case ATTR_FEATURE_INDEX: return put_int(x, id, p->feature_index);
    case ATTR_DISTRIBUTION: return put_word(x, id, &pb__random_distribution__descriptor, (int)p->distribution, "");
    case ATTR_RNG_ALGORITHM: return put_word(x, id, &pb__random_algorithm__descriptor, (int)p->rng_algorithm, "");
    case ATTR_DELTA: return put_int(x, id, p->delta);
    case ATTR_IS_COMPOSITE: return !p->is_composite || put_bool(x, id, true);
    case ATTR_FUSION_KIND: return put_letters(x, id, p->fusion_kind);
    case ATTR_OUTPUT_TO_OPERAND_ALIASING: return put_aliasing(x, p);
    case ATTR_CUSTOM_CALL_TARGET: put_name(x, id); decode_string(x, p->custom_call_target); return true;
    case ATTR_OPERAND_LAYOUT_CONSTRAINTS: return !p->constrain_layout || put_constraints(x, p);
    case ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT: return !p->custom_call_has_side_effect || put_bool(x, id, true);
    case ATTR_LITERAL: return put_literal(x, literal);
    case ATTR_SCHEDULE: return put_word(x, id, &pb__custom_call_schedule__descriptor, (int)p->custom_call_schedule, "");
    case ATTR_API_VERSION:
        return p->custom_call_api_version == PB__CUSTOM_CALL_API_VERSION__API_VERSION_UNSPECIFIED ||
               put_word(x, id, &pb__custom_call_api_version__descriptor, (int)p->custom_call_api_version, "");
    case ATTR_PADDING_TYPE: return put_word(x, id, &pb__padding_type__descriptor, (int)p->padding_type, "");
    case ATTR_REPLICA_GROUPS: return put_groups(x, p);
    case ATTR_CHANNEL_ID: return channel_of(p) <= 0 || put_int(x, id, channel_of(p));
    case ATTR_CONSTRAIN_LAYOUT: return !p->constrain_layout || put_bool(x, id, true);
    case ATTR_USE_GLOBAL_DEVICE_IDS: return !p->use_global_device_ids || put_bool(x, id, true);
    case ATTR_SHUFFLE_MODE: put_name(x, id); buf_puts(x->b, "rotate"); return true;
    case ATTR_SHIFTS: return put_shifts(x, p);
    case ATTR_HAS_DYNAMIC_ROOT: return !p->has_dynamic_root || put_bool(x, id, true);
    case ATTR_SOURCE_TARGET_PAIRS: return put_pairs(x, p);
    case ATTR_ASYNC_EXECUTION_THREAD:
        if (*p->async_execution_thread && op == OP_ASYNC_START) {
            put_name(x, id);
            decode_string(x, p->async_execution_thread);
        }
        return true;
    case ATTR_CROSS_PROGRAM_PREFETCH_INDEX: return put_prefetch(x, p);
    case ATTR_IS_HOST_TRANSFER: return !p->is_host_transfer || put_bool(x, id, true);
    case ATTR_INFEED_CONFIG: return p->infeed_config.len == 0 || put_bytes(x, id, p->infeed_config);
    case ATTR_OUTFEED_CONFIG: return p->outfeed_config.len == 0 || put_bytes(x, id, p->outfeed_config);
    case ATTR_OUTFEED_SHAPE:
        if (!p->outfeed_shape)
            return true;
        put_name(x, id);
        return decode_shape(x, p->outfeed_shape);
    case ATTR_DOMAIN: return put_domain(x, p);
    case ATTR_MODE: return put_mode(x, p);
    default: return put_computations(x, op, id, callees);
    }
}

/* ---- what every opcode can have ---- */

static void put_statistics(Decoder *x, const Pb__StatisticsViz *s)
{
    if (!s || s->n_statistics == 0)
        return;
    buf_printf(x->b, ", statistics={visualizing_index=%lld", (long long)s->stat_index_to_visualize);
    for (size_t k = 0; k < s->n_statistics; k++)
        buf_printf(x->b, ",%s=%.17g", s->statistics[k]->stat_name, s->statistics[k]->stat_val);
    buf_putc(x->b, '}');
}

static void put_accuracy(Decoder *x, const Pb__ResultAccuracy *r)
{
    if (!r)
        return;
    if (r->specs_case == PB__RESULT_ACCURACY__SPECS_TOLERANCE)
        buf_printf(x->b, ", result_accuracy={tolerance={atol=%.17g,rtol=%.17g,ulps=%lld}}", r->tolerance->atol, r->tolerance->rtol,
                   (long long)r->tolerance->ulps);
    else if (r->specs_case == PB__RESULT_ACCURACY__SPECS_MODE && r->mode == PB__RESULT_ACCURACY__MODE__HIGHEST)
        buf_puts(x->b, ", result_accuracy={mode=highest}");
}

static void put_replication(Decoder *x, const Pb__ParameterReplication *r)
{
    if (!r || r->n_replicated_at_leaf_buffers == 0)
        return;
    buf_puts(x->b, ", parameter_replication=");
    for (size_t k = 0; k < r->n_replicated_at_leaf_buffers; k++)
        buf_printf(x->b, "%s%s", k ? "," : "{", r->replicated_at_leaf_buffers[k] ? "true" : "false");
    buf_putc(x->b, '}');
}

/* Newer writers have it in a payload. */
static bool put_config(Decoder *x, const Pb *p)
{
    const ProtobufCBinaryData *config = &p->backend_config;
    if (p->backend_config_payload && !decode_payload(x, p->backend_config_payload, &config))
        return false;
    if (!config || config->len == 0)
        return true;
    buf_puts(x->b, ", backend_config=");
    decode_bytes(x, *config);
    return true;
}

/* XLA wants none of these two fields in instructions that it makes of the opcode and the operands alone. */
static bool has_strange_field(Op op, int n_attrs, const Pb *p)
{
    bool plain = n_attrs == 0 || op == OP_WHILE || op == OP_CALL;
    if (op == OP_PARAMETER || op == OP_CONSTANT || op == OP_DYNAMIC_RESHAPE || op == OP_DYNAMIC_UPDATE_SLICE || op == OP_REPLICA_ID ||
        op == OP_PARTITION_ID)
        plain = false;
    return plain && (p->precision_config || p->dot_dimension_numbers);
}

bool decode_attrs(Decoder *x, Op op, const Pb *p, const char *const *callees, const Literal *literal)
{
    int           n;
    const OpAttr *rows = op_attrs(op, &n);
    if (has_strange_field(op, n, p)) {
        diag_error(x->d, LOC_NONE, "%s: '%s' has neither a precision_config nor dot_dimension_numbers", x->what, p->opcode);
        return false;
    }
    put_replication(x, op == OP_PARAMETER ? p->parameter_replication : NULL);
    for (int k = 0; k < n; k++)
        if (!put_attr(x, op, rows[k].attr, p, callees, literal))
            return false;
    if (p->sharding) {
        buf_puts(x->b, ", sharding=");
        if (!decode_sharding(x, p->sharding))
            return false;
    }
    decode_frontend(x, p->frontend_attributes);
    put_statistics(x, p->statistics_viz);
    put_accuracy(x, p->result_accuracy);
    if (p->original_value) {
        buf_puts(x->b, ", origin=");
        if (!decode_origin(x, p->original_value))
            return false;
    }
    if (!metadata_is_empty(p->metadata)) {
        buf_puts(x->b, ", metadata=");
        if (!decode_metadata(x, p->metadata))
            return false;
    }
    return put_config(x, p);
}
