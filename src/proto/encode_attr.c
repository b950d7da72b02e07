/* Attributes of instructions as fields of HloInstructionProto. Fields that XLA always fills for an opcode (a precision for each operand, groups of 1)
 * are filled here too, so that XLA reads what it would have written. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "proto/proto_int.h"

typedef Pb__HloInstructionProto Pb;

/* ---- words ---- */

/* The number of the word in an enumeration whose names are the words in capitals behind a prefix. */
static int word_number(Arena *a, const ProtobufCEnumDescriptor *e, const char *prefix, int64_t word)
{
    char *name = arena_printf(a, "%s%s", prefix, attr_words[word].text);
    for (char *p = name; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value_by_name(e, name);
    if (!v)
        die("the message has no value %s", name);
    return v->value;
}

static char *word_text(Arena *a, Word w)
{
    return arena_strndup(a, attr_words[w].text, strlen(attr_words[w].text));
}

/* ---- values with a structure ---- */

static void set_slices(Arena *a, Pb *p, const Slices *x)
{
    p->n_slice_dimensions = (size_t)x->n;
    p->slice_dimensions = ARENA_ARRAY(a, Pb__HloInstructionProto__SliceDimensions *, x->n);
    for (int32_t k = 0; k < x->n; k++) {
        p->slice_dimensions[k] = message_new(a, &pb__hlo_instruction_proto__slice_dimensions__descriptor);
        p->slice_dimensions[k]->start = x->v[k].start;
        p->slice_dimensions[k]->limit = x->v[k].limit;
        p->slice_dimensions[k]->stride = x->v[k].stride;
    }
}

static void set_padding(Arena *a, Pb *p, const Padding *x)
{
    p->padding_config = message_new(a, &pb__padding_config__descriptor);
    p->padding_config->n_dimensions = (size_t)x->n;
    p->padding_config->dimensions = ARENA_ARRAY(a, Pb__PaddingConfig__PaddingConfigDimension *, x->n);
    for (int32_t k = 0; k < x->n; k++) {
        Pb__PaddingConfig__PaddingConfigDimension *d =
            message_new(a, &pb__padding_config__padding_config_dimension__descriptor);
        d->edge_padding_low = x->v[k].lo;
        d->edge_padding_high = x->v[k].hi;
        d->interior_padding = x->v[k].interior;
        p->padding_config->dimensions[k] = d;
    }
}

static void set_window(Arena *a, Pb *p, const Window *x)
{
    p->window = message_new(a, &pb__window__descriptor);
    p->window->n_dimensions = (size_t)x->n;
    p->window->dimensions = ARENA_ARRAY(a, Pb__WindowDimension *, x->n);
    for (int32_t k = 0; k < x->n; k++) {
        Pb__WindowDimension *w = p->window->dimensions[k] = message_new(a, &pb__window_dimension__descriptor);
        w->size = x->v[k].size;
        w->stride = x->v[k].stride;
        w->padding_low = x->v[k].pad_lo;
        w->padding_high = x->v[k].pad_hi;
        w->window_dilation = x->v[k].window_dilation;
        w->base_dilation = x->v[k].base_dilation;
        w->window_reversal = x->v[k].reversal;
    }
}

static void set_labels(Arena *a, Pb *p, const DimLabels *x)
{
    Pb__ConvolutionDimensionNumbers *d = message_new(a, &pb__convolution_dimension_numbers__descriptor);
    p->convolution_dimension_numbers = d;
    d->input_batch_dimension = x->lhs_batch;
    d->input_feature_dimension = x->lhs_feature;
    d->kernel_input_feature_dimension = x->rhs_in;
    d->kernel_output_feature_dimension = x->rhs_out;
    d->output_batch_dimension = x->out_batch;
    d->output_feature_dimension = x->out_feature;
    d->n_input_spatial_dimensions = d->n_kernel_spatial_dimensions = d->n_output_spatial_dimensions = (size_t)x->spatial;
    d->input_spatial_dimensions = encode_ints(a, (Ints){x->lhs_spatial, x->spatial});
    d->kernel_spatial_dimensions = encode_ints(a, (Ints){x->rhs_spatial, x->spatial});
    d->output_spatial_dimensions = encode_ints(a, (Ints){x->out_spatial, x->spatial});
}

static Pb__PrecisionConfig *precision_of(Arena *a, Pb *p)
{
    if (!p->precision_config)
        p->precision_config = message_new(a, &pb__precision_config__descriptor);
    return p->precision_config;
}

static void set_precision(Arena *a, Pb *p, Ints words)
{
    Pb__PrecisionConfig *c = precision_of(a, p);
    c->n_operand_precision = (size_t)words.n;
    c->operand_precision = ARENA_ARRAY(a, Pb__PrecisionConfig__Precision, words.n);
    for (int32_t k = 0; k < words.n; k++)
        c->operand_precision[k] =
            (Pb__PrecisionConfig__Precision)word_number(a, &pb__precision_config__precision__descriptor, "", words.v[k]);
}

static Pb__SparsityConfig__TensorSparsityConfig *sparsity_side(Arena *a, const SparsitySide *x)
{
    if (!x->given)
        return NULL;
    Pb__SparsityConfig__TensorSparsityConfig *p =
        message_new(a, &pb__sparsity_config__tensor_sparsity_config__descriptor);
    p->num_non_zero = x->nonzero;
    p->block_size = x->block;
    p->dimension = x->dimension;
    p->stride = x->stride;
    p->idx = (int32_t)x->operand;
    return p;
}

static void set_sparsity(Arena *a, Pb *p, const Sparsity *x)
{
    p->sparsity_config = message_new(a, &pb__sparsity_config__descriptor);
    p->sparsity_config->lhs = x ? sparsity_side(a, &x->lhs) : NULL;
    p->sparsity_config->rhs = x ? sparsity_side(a, &x->rhs) : NULL;
}

static Pb__BlockScalingConfig__TensorBlockScalingConfig *scaling_side(Arena *a, const ScalingSide *x)
{
    if (!x->given)
        return NULL;
    Pb__BlockScalingConfig__TensorBlockScalingConfig *p =
        message_new(a, &pb__block_scaling_config__tensor_block_scaling_config__descriptor);
    p->scale_idx = (int32_t)x->scale;
    if (x->has_zero) {
        p->has_zero_idx_case = PB__BLOCK_SCALING_CONFIG__TENSOR_BLOCK_SCALING_CONFIG__HAS_ZERO_IDX_ZERO_IDX;
        p->zero_idx = (int32_t)x->zero;
    }
    p->n_strides = (size_t)x->strides.n;
    p->strides = encode_ints(a, x->strides);
    p->n_steps = (size_t)x->steps.n;
    p->steps = encode_ints(a, x->steps);
    return p;
}

static void set_scaling(Arena *a, Pb *p, const Scaling *x)
{
    p->block_scaling_config = message_new(a, &pb__block_scaling_config__descriptor);
    p->block_scaling_config->lhs = x ? scaling_side(a, &x->lhs) : NULL;
    p->block_scaling_config->rhs = x ? scaling_side(a, &x->rhs) : NULL;
}

static void set_aliasing(Arena *a, Pb *p, const Aliasing *x)
{
    p->n_output_operand_aliasing = (size_t)x->n;
    p->output_operand_aliasing = ARENA_ARRAY(a, Pb__OutputOperandAliasing *, x->n);
    for (int32_t k = 0; k < x->n; k++) {
        Pb__OutputOperandAliasing *o = message_new(a, &pb__output_operand_aliasing__descriptor);
        o->n_output_shape_index = (size_t)x->v[k].output.n;
        o->output_shape_index = encode_ints(a, x->v[k].output);
        o->operand_index = x->v[k].operand;
        o->n_operand_shape_index = (size_t)x->v[k].index.n;
        o->operand_shape_index = encode_ints(a, x->v[k].index);
        p->output_operand_aliasing[k] = o;
    }
}

static void set_constraints(Arena *a, Pb *p, const ShapeList *x)
{
    p->constrain_layout = true;
    p->n_operand_shapes_with_layout = (size_t)x->n;
    p->operand_shapes_with_layout = ARENA_ARRAY(a, Pb__ShapeProto *, x->n);
    for (int32_t k = 0; k < x->n; k++)
        p->operand_shapes_with_layout[k] = shape_encode(a, x->v[k]);
}

static void set_pairs(Arena *a, Pb *p, const IntsList *x)
{
    p->n_source_target_pairs = (size_t)x->n;
    p->source_target_pairs = ARENA_ARRAY(a, Pb__SourceTarget *, x->n);
    for (int32_t k = 0; k < x->n; k++) {
        p->source_target_pairs[k] = message_new(a, &pb__source_target__descriptor);
        p->source_target_pairs[k]->source = x->v[k].v[0];
        p->source_target_pairs[k]->target = x->v[k].v[1];
    }
}

/* One list of dimension numbers into its place. */
#define SET_LIST(a, p, field, x) ((p)->n_##field = (size_t)(x).n, (p)->field = encode_ints((a), (x)))

static Pb__DotDimensionNumbers *dot_of(Arena *a, Op op, Pb *p)
{
    Pb__DotDimensionNumbers **d = &p->dot_dimension_numbers;
    if (op == OP_RAGGED_DOT) {
        if (!p->ragged_dot_dimension_numbers)
            p->ragged_dot_dimension_numbers = message_new(a, &pb__ragged_dot_dimension_numbers__descriptor);
        d = &p->ragged_dot_dimension_numbers->dot_dimension_numbers;
    }
    if (!*d)
        *d = message_new(a, &pb__dot_dimension_numbers__descriptor);
    return *d;
}

static Pb__GatherDimensionNumbers *gather_of(Arena *a, Pb *p)
{
    if (!p->gather_dimension_numbers)
        p->gather_dimension_numbers = message_new(a, &pb__gather_dimension_numbers__descriptor);
    return p->gather_dimension_numbers;
}

static Pb__ScatterDimensionNumbers *scatter_of(Arena *a, Pb *p)
{
    if (!p->scatter_dimension_numbers)
        p->scatter_dimension_numbers = message_new(a, &pb__scatter_dimension_numbers__descriptor);
    return p->scatter_dimension_numbers;
}

static Pb__TriangularSolveOptions *solve_of(Arena *a, Pb *p)
{
    if (!p->triangular_solve_options)
        p->triangular_solve_options = message_new(a, &pb__triangular_solve_options__descriptor);
    return p->triangular_solve_options;
}

static void set_lower(Arena *a, Op op, Pb *p, bool lower)
{
    if (op == OP_TRIANGULAR_SOLVE) {
        solve_of(a, p)->lower = lower;
        return;
    }
    p->cholesky_options = message_new(a, &pb__cholesky_options__descriptor);
    p->cholesky_options->lower = lower;
}

/* Lists one after the other, with our own note of where each ends. */
static void set_permute_sizes(Arena *a, Pb *p, const Attr *x)
{
    IntsList one = {&x->value.ints, 1}, lists = x->nested ? *x->value.lists : one;
    VEC(int64_t) all = {0}, lengths = {0};
    for (int32_t k = 0; k < lists.n; k++) {
        vec_push(a, &lengths, lists.v[k].n);
        for (int32_t j = 0; j < lists.v[k].n; j++)
            vec_push(a, &all, lists.v[k].v[j]);
    }
    p->n_dynamic_slice_sizes = (size_t)all.n;
    p->dynamic_slice_sizes = all.v;
    p->n_slice_sizes_lengths = (size_t)lengths.n;
    p->slice_sizes_lengths = lengths.v;
}

static void set_shifts(Arena *a, Pb *p, Ints x)
{
    p->shuffle_mode = message_new(a, &pb__shuffle_mode__descriptor);
    p->shuffle_mode->mode_case = PB__SHUFFLE_MODE__MODE_ROTATE;
    p->shuffle_mode->rotate = message_new(a, &pb__shuffle_mode__rotate__descriptor);
    SET_LIST(a, p->shuffle_mode->rotate, shifts, x);
}

/* ---- one attribute ---- */

static void set_attr(Arena *a, Pb *p, const Inst *i, const Attr *x)
{
    const AttrValue *v = &x->value;
    switch (x->id) {
    case ATTR_DIMENSIONS: SET_LIST(a, p, dimensions, v->ints); break;
    case ATTR_IOTA_DIMENSION: SET_LIST(a, p, dimensions, ((Ints){&v->i, 1})); break;
    case ATTR_INFERRED_DIMENSION:
        if (v->i != -1)
            SET_LIST(a, p, dimensions, ((Ints){&v->i, 1}));
        break;
    case ATTR_SLICE: set_slices(a, p, v->slices); break;
    case ATTR_DYNAMIC_SLICE_SIZES: SET_LIST(a, p, dynamic_slice_sizes, v->ints); break;
    case ATTR_PADDING: set_padding(a, p, v->padding); break;
    case ATTR_INDEX: p->tuple_index = v->i; break;
    case ATTR_DIRECTION: p->comparison_direction = word_text(a, (Word)v->i); break;
    case ATTR_EXPONENT_BITS: p->exponent_bits = (int32_t)v->i; break;
    case ATTR_MANTISSA_BITS: p->mantissa_bits = (int32_t)v->i; break;
    case ATTR_WINDOW: set_window(a, p, v->window); break;
    case ATTR_NUM_CARRIES: p->num_carries = v->i; break;
    case ATTR_IS_REVERSE: p->is_reverse = v->i != 0; break;
    case ATTR_IS_ASSOCIATIVE: p->is_associative = v->i ? PB__TRI_STATE__TRI_STATE_TRUE : PB__TRI_STATE__TRI_STATE_FALSE; break;
    case ATTR_IS_STABLE: p->is_stable = v->i != 0; break;
    case ATTR_K: p->k = v->i; break;
    case ATTR_LARGEST: p->largest = v->i != 0; break;
    case ATTR_OFFSET_DIMS: SET_LIST(a, gather_of(a, p), offset_dims, v->ints); break;
    case ATTR_COLLAPSED_SLICE_DIMS: SET_LIST(a, gather_of(a, p), collapsed_slice_dims, v->ints); break;
    case ATTR_START_INDEX_MAP: SET_LIST(a, gather_of(a, p), start_index_map, v->ints); break;
    case ATTR_OPERAND_BATCHING_DIMS: SET_LIST(a, gather_of(a, p), operand_batching_dims, v->ints); break;
    case ATTR_START_INDICES_BATCHING_DIMS: SET_LIST(a, gather_of(a, p), start_indices_batching_dims, v->ints); break;
    case ATTR_INDEX_VECTOR_DIM:
        if (i->op == OP_GATHER)
            gather_of(a, p)->index_vector_dim = v->i;
        else
            scatter_of(a, p)->index_vector_dim = v->i;
        break;
    case ATTR_SLICE_SIZES:
        if (i->op == OP_GATHER)
            SET_LIST(a, p, gather_slice_sizes, v->ints);
        else
            set_permute_sizes(a, p, x);
        break;
    case ATTR_INDICES_ARE_SORTED: p->indices_are_sorted = v->i != 0; break;
    case ATTR_UPDATE_WINDOW_DIMS: SET_LIST(a, scatter_of(a, p), update_window_dims, v->ints); break;
    case ATTR_INSERTED_WINDOW_DIMS: SET_LIST(a, scatter_of(a, p), inserted_window_dims, v->ints); break;
    case ATTR_SCATTER_DIMS_TO_OPERAND_DIMS: SET_LIST(a, scatter_of(a, p), scatter_dims_to_operand_dims, v->ints); break;
    case ATTR_INPUT_BATCHING_DIMS: SET_LIST(a, scatter_of(a, p), input_batching_dims, v->ints); break;
    case ATTR_SCATTER_INDICES_BATCHING_DIMS: SET_LIST(a, scatter_of(a, p), scatter_indices_batching_dims, v->ints); break;
    case ATTR_UNIQUE_INDICES: p->unique_indices = v->i != 0; break;
    case ATTR_LHS_BATCH_DIMS: SET_LIST(a, dot_of(a, i->op, p), lhs_batch_dimensions, v->ints); break;
    case ATTR_LHS_CONTRACTING_DIMS: SET_LIST(a, dot_of(a, i->op, p), lhs_contracting_dimensions, v->ints); break;
    case ATTR_RHS_BATCH_DIMS: SET_LIST(a, dot_of(a, i->op, p), rhs_batch_dimensions, v->ints); break;
    case ATTR_RHS_CONTRACTING_DIMS: SET_LIST(a, dot_of(a, i->op, p), rhs_contracting_dimensions, v->ints); break;
    case ATTR_LHS_RAGGED_DIMS:
        dot_of(a, i->op, p);
        SET_LIST(a, p->ragged_dot_dimension_numbers, lhs_ragged_dimensions, v->ints);
        break;
    case ATTR_RHS_GROUP_DIMS:
        dot_of(a, i->op, p);
        SET_LIST(a, p->ragged_dot_dimension_numbers, rhs_group_dimensions, v->ints);
        break;
    case ATTR_OPERAND_PRECISION: set_precision(a, p, v->ints); break;
    case ATTR_ALGORITHM:
        precision_of(a, p)->algorithm =
            (Pb__PrecisionConfig__Algorithm)word_number(a, &pb__precision_config__algorithm__descriptor, "ALG_", v->i);
        break;
    case ATTR_SPARSITY_CONFIG: set_sparsity(a, p, v->sparsity); break;
    case ATTR_BLOCK_SCALING_CONFIG: set_scaling(a, p, v->scaling); break;
    case ATTR_DIM_LABELS: set_labels(a, p, v->dim_labels); break;
    case ATTR_FEATURE_GROUP_COUNT: p->feature_group_count = v->i; break;
    case ATTR_BATCH_GROUP_COUNT: p->batch_group_count = v->i; break;
    case ATTR_CONVOLUTION_KIND:
        p->conv_kind = (Pb__ConvolutionKind)word_number(a, &pb__convolution_kind__descriptor, "CONVOLUTION_KIND_", v->i);
        break;
    case ATTR_FFT_TYPE: p->fft_type = (Pb__FftType)word_number(a, &pb__fft_type__descriptor, "", v->i); break;
    case ATTR_FFT_LENGTH: SET_LIST(a, p, fft_length, v->ints); break;
    case ATTR_LOWER: set_lower(a, i->op, p, v->i != 0); break;
    case ATTR_LEFT_SIDE: solve_of(a, p)->left_side = v->i != 0; break;
    case ATTR_UNIT_DIAGONAL: solve_of(a, p)->unit_diagonal = v->i != 0; break;
    case ATTR_TRANSPOSE_A:
        solve_of(a, p)->transpose_a =
            (Pb__TriangularSolveOptions__Transpose)word_number(a, &pb__triangular_solve_options__transpose__descriptor, "", v->i);
        break;
    case ATTR_EPSILON: p->epsilon = (float)v->f; break;
    case ATTR_FEATURE_INDEX: p->feature_index = v->i; break;
    case ATTR_DISTRIBUTION:
        p->distribution = (Pb__RandomDistribution)word_number(a, &pb__random_distribution__descriptor, "", v->i);
        break;
    case ATTR_RNG_ALGORITHM: p->rng_algorithm = (Pb__RandomAlgorithm)word_number(a, &pb__random_algorithm__descriptor, "", v->i); break;
    case ATTR_DELTA: p->delta = v->i; break;
    case ATTR_IS_COMPOSITE: p->is_composite = v->i != 0; break;
    case ATTR_FUSION_KIND: p->fusion_kind = word_text(a, (Word)v->i); break;
    case ATTR_OUTPUT_TO_OPERAND_ALIASING: set_aliasing(a, p, v->aliasing); break;
    case ATTR_CUSTOM_CALL_TARGET: p->custom_call_target = encode_string(a, v->s); break;
    case ATTR_OPERAND_LAYOUT_CONSTRAINTS: set_constraints(a, p, v->shapes); break;
    case ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT: p->custom_call_has_side_effect = v->i != 0; break;
    case ATTR_SCHEDULE:
        p->custom_call_schedule = (Pb__CustomCallSchedule)word_number(a, &pb__custom_call_schedule__descriptor, "", v->i);
        break;
    case ATTR_API_VERSION:
        p->custom_call_api_version = (Pb__CustomCallApiVersion)word_number(a, &pb__custom_call_api_version__descriptor, "", v->i);
        break;
    case ATTR_PADDING_TYPE: p->padding_type = (Pb__PaddingType)word_number(a, &pb__padding_type__descriptor, "", v->i); break;
    case ATTR_REPLICA_GROUPS: encode_groups(a, p, v->groups); break;
    case ATTR_CHANNEL_ID: p->channel_id = v->i; break;
    case ATTR_CONSTRAIN_LAYOUT: p->constrain_layout = v->i != 0; break;
    case ATTR_USE_GLOBAL_DEVICE_IDS: p->use_global_device_ids = v->i != 0; break;
    case ATTR_SHIFTS: set_shifts(a, p, v->ints); break;
    case ATTR_HAS_DYNAMIC_ROOT: p->has_dynamic_root = v->i != 0; break;
    case ATTR_SOURCE_TARGET_PAIRS: set_pairs(a, p, v->lists); break;
    case ATTR_ASYNC_EXECUTION_THREAD:
        if (i->op == OP_ASYNC_START)
            p->async_execution_thread = encode_string(a, v->s);
        break;
    case ATTR_CROSS_PROGRAM_PREFETCH_INDEX:
        p->optional_cross_program_prefetch_index_case =
            PB__HLO_INSTRUCTION_PROTO__OPTIONAL_CROSS_PROGRAM_PREFETCH_INDEX_CROSS_PROGRAM_PREFETCH_INDEX;
        p->cross_program_prefetch_index = (int32_t)v->i;
        break;
    case ATTR_IS_HOST_TRANSFER: p->is_host_transfer = v->i != 0; break;
    case ATTR_INFEED_CONFIG: p->infeed_config = encode_bytes(a, v->s); break;
    case ATTR_OUTFEED_CONFIG: p->outfeed_config = encode_bytes(a, v->s); break;
    case ATTR_OUTFEED_SHAPE: p->outfeed_shape = shape_encode(a, v->shape); break;
    case ATTR_DOMAIN:
        p->domain_entry_sharding = encode_sharding(a, v->domain->exit); /* as XLA does */
        p->domain_exit_sharding = encode_sharding(a, v->domain->entry);
        break;
    case ATTR_PARAMETER_REPLICATION: {
        Pb__ParameterReplication *r = p->parameter_replication = message_new(a, &pb__parameter_replication__descriptor);
        r->n_replicated_at_leaf_buffers = (size_t)v->ints.n;
        r->replicated_at_leaf_buffers = ARENA_ARRAY(a, protobuf_c_boolean, v->ints.n);
        for (int32_t k = 0; k < v->ints.n; k++)
            r->replicated_at_leaf_buffers[k] = v->ints.v[k] != 0;
        break;
    }
    case ATTR_SHARDING: p->sharding = encode_sharding(a, v->sharding); break;
    case ATTR_FRONTEND_ATTRIBUTES: p->frontend_attributes = encode_frontend(a, v->key_values); break;
    case ATTR_STATISTICS: {
        Pb__StatisticsViz *s = p->statistics_viz = message_new(a, &pb__statistics_viz__descriptor);
        s->stat_index_to_visualize = v->statistics->visualizing_index;
        s->n_statistics = (size_t)v->statistics->n;
        s->statistics = ARENA_ARRAY(a, Pb__Statistic *, v->statistics->n);
        for (int32_t k = 0; k < v->statistics->n; k++) {
            s->statistics[k] = message_new(a, &pb__statistic__descriptor);
            s->statistics[k]->stat_name = encode_string(a, v->statistics->v[k].name);
            s->statistics[k]->stat_val = v->statistics->v[k].value;
        }
        break;
    }
    case ATTR_RESULT_ACCURACY: {
        if (!v->accuracy->has_tolerance && !v->accuracy->highest)
            break;
        Pb__ResultAccuracy *r = p->result_accuracy = message_new(a, &pb__result_accuracy__descriptor);
        if (v->accuracy->has_tolerance) {
            r->specs_case = PB__RESULT_ACCURACY__SPECS_TOLERANCE;
            r->tolerance = message_new(a, &pb__result_accuracy__tolerance__descriptor);
            r->tolerance->atol = v->accuracy->atol;
            r->tolerance->rtol = v->accuracy->rtol;
            r->tolerance->ulps = v->accuracy->ulps;
        } else {
            r->specs_case = PB__RESULT_ACCURACY__SPECS_MODE;
            r->mode = PB__RESULT_ACCURACY__MODE__HIGHEST;
        }
        break;
    }
    case ATTR_ORIGIN: p->original_value = encode_origin(a, v->origin); break;
    case ATTR_BACKEND_CONFIG: p->backend_config = encode_bytes(a, v->s); break;
    /* Fields of the instruction or of another attribute; what is only read; called computations, which the caller writes. */
    case ATTR_ORDER: case ATTR_TYPE: case ATTR_LITERAL: case ATTR_MODE: case ATTR_SHUFFLE_MODE: case ATTR_METADATA: case ATTR_CONTROL_PREDECESSORS:
    case ATTR_TO_APPLY: case ATTR_SELECT: case ATTR_SCATTER: case ATTR_CONDITION: case ATTR_BODY: case ATTR_TRUE_COMPUTATION:
    case ATTR_FALSE_COMPUTATION: case ATTR_BRANCH_COMPUTATIONS: case ATTR_CALLED_COMPUTATIONS: case ATTR_CALLS: case ATTR_COUNT: break;
    }
}

/* ---- what XLA fills whether the text had it or not ---- */

static bool has_row(Op op, AttrId id)
{
    int           n;
    const OpAttr *rows = op_attrs(op, &n);
    for (int k = 0; k < n; k++)
        if (rows[k].attr == id)
            return true;
    return false;
}

static void set_default_precision(Arena *a, Pb *p, int32_t n)
{
    Ints words = ints_make(a, n);
    for (int32_t k = 0; k < n; k++)
        *ints_at(words, k) = PRECISION_DEFAULT;
    set_precision(a, p, words);
}

static void set_defaults(Arena *a, Pb *p, const Inst *i)
{
    if (has_row(i->op, ATTR_FEATURE_GROUP_COUNT)) {
        p->feature_group_count = 1;
        p->batch_group_count = 1;
    }
    if (has_row(i->op, ATTR_OPERAND_PRECISION))
        set_default_precision(a, p, i->op == OP_SCALED_DOT || i->op == OP_RAGGED_DOT ? 2 : i->n_operands);
    if (has_row(i->op, ATTR_LHS_CONTRACTING_DIMS))
        dot_of(a, i->op, p);
    if (i->op == OP_DOT || i->op == OP_CONVOLUTION) {
        set_sparsity(a, p, NULL);
        set_scaling(a, p, NULL);
    }
    if (has_row(i->op, ATTR_WINDOW) && i->op != OP_CUSTOM_CALL)
        p->window = message_new(a, &pb__window__descriptor);
    if (i->op == OP_OUTFEED)
        p->outfeed_shape = shape_encode(a, inst_operand(i, 0)->shape);
    if (i->op == OP_SCAN)
        p->is_associative = PB__TRI_STATE__TRI_STATE_FALSE;
    if (has_row(i->op, ATTR_REPLICA_GROUPS))
        encode_groups(a, p, NULL);
    if (i->op == OP_TOPK) {
        p->largest = true;
        p->is_stable = true;
    }
    if (i->op == OP_CUSTOM_CALL)
        p->custom_call_api_version = PB__CUSTOM_CALL_API_VERSION__API_VERSION_ORIGINAL;
    if (i->op == OP_CHOLESKY)
        set_lower(a, i->op, p, false);
    if (i->op == OP_TRIANGULAR_SOLVE)
        solve_of(a, p);
    if (i->op == OP_COMPARE)
        p->comparison_order = word_text(a, compare_is_total(i) ? ORDER_TOTAL : ORDER_PARTIAL);
    if (i->op == OP_MAP)
        SET_LIST(a, p, dimensions, ints_iota(a, i->shape->rank));
    p->frontend_attributes = encode_frontend(a, NULL);
    p->statistics_viz = message_new(a, &pb__statistics_viz__descriptor);
}

void encode_attrs(Arena *a, Pb__HloInstructionProto *p, const Inst *i)
{
    set_defaults(a, p, i);
    for (int32_t k = 0; k < i->n_attrs; k++)
        set_attr(a, p, i, &i->attrs[k]);
}
