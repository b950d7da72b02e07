/* What can be lowered, asked before any work is done. */
#include "emit/element_loop.h"
#include "emit/lower.h"

static bool refuse(const Inst *i, Diag *d)
{
    inst_error(d, i, "%s cannot be compiled", op_name(i->op));
    return false;
}

static bool flat_leaves(const Shape *s)
{
    for (int32_t k = 0; shape_is_tuple(s) && k < s->n_elems; k++)
        if (!shape_is_array(s->elems[k]))
            return false;
    return shape_is_array(s) || shape_is_tuple(s);
}

/* Sizes that are known and fit: bounded arrays have their full size. Sub-byte layouts and tiles change nothing in our memory. */
static bool plain_shape(const Shape *s)
{
    return !shape_is_unbounded(s) && shape_bytes(s) >= 0;
}

/* Lines of a length that can be planned for in reasonable time. */
static bool fft_lengths_supported(const Inst *i, Diag *d)
{
    const int64_t most = (int64_t)1 << 28;
    Ints          l = inst_ints(i, ATTR_FFT_LENGTH);
    for (int32_t k = 0; k < l.n; k++)
        if (l.v[k] > most) {
            inst_error(d, i, "fft of length %lld cannot be compiled: %lld is the most", (long long)l.v[k], (long long)most);
            return false;
        }
    return true;
}

/* A state of {key, counter} or, for Philox, {key, low, high}, and bits of whole bytes. */
static bool random_state_supported(const Inst *i)
{
    const Shape *state = inst_operand(i, 0)->shape, *bits = i->shape->elems[1];
    bool         three_fry = inst_word(i, ATTR_RNG_ALGORITHM) == RNG_THREE_FRY;
    return state->type == TYPE_U64 && state->rank == 1 && (state->dims[0] == 2 || (state->dims[0] == 3 && !three_fry)) &&
           type_is_unsigned_int(bits->type) && type_bits(bits->type) >= 8;
}

/* What is left of it is the fusion's results and nothing else: it has no array of its own. */
static bool is_last_loop(const Inst *w)
{
    const Inst *root = w->comp->root;
    for (const Use *u = w->uses; u; u = u->next) {
        if (u->user->op != OP_GET_TUPLE_ELEMENT)
            return false;
        for (const Use *v = u->user->uses; v; v = v->next)
            if (v->user != root || root->op != OP_TUPLE)
                return false;
    }
    return root != w;
}

static bool supported_inst(const Inst *i, bool fused, Diag *d)
{
    if (!flat_leaves(i->shape) || !plain_shape(i->shape)) {
        inst_error(d, i, "%s cannot be compiled with a result of shape %s", op_name(i->op), shape_text(d->arena, i->shape));
        return false;
    }
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!flat_leaves(inst_operand(i, k)->shape) && i->op != OP_ADD_DEPENDENCY)
            return refuse(i, d);
    switch (i->op) {
    case OP_PARAMETER: case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: return fused || refuse(i, d);
    case OP_CONSTANT: case OP_IOTA: case OP_BROADCAST: case OP_RESHAPE: case OP_TRANSPOSE: case OP_REVERSE: case OP_SHUFFLE: case OP_SLICE: case OP_PAD:
    case OP_CONCATENATE: case OP_DYNAMIC_SLICE: case OP_DYNAMIC_UPDATE_SLICE: case OP_GATHER: case OP_DOMAIN: case OP_ADD_DEPENDENCY: case OP_DOT:
        return shape_is_array(i->shape) || refuse(i, d);
    case OP_COPY: case OP_OPT_BARRIER: return shape_is_array(i->shape) || refuse(i, d);
    case OP_FFT: return fft_lengths_supported(i, d);
    case OP_CHOLESKY: case OP_TRIANGULAR_SOLVE: return shape_is_array(i->shape) || refuse(i, d);
    case OP_RNG_BIT_GENERATOR: return random_state_supported(i) || refuse(i, d);
    case OP_CONVOLUTION:
        if (i->n_operands != 2 || inst_attr(i, ATTR_SPARSITY_CONFIG))
            return refuse(i, d);
        return shape_is_array(i->shape) || refuse(i, d);
    case OP_WHILE: return (fused && is_last_loop(i) && element_loop_find(d->arena, i, &(ElementLoop){0})) || refuse(i, d);
    case OP_BATCH_NORM_TRAINING: case OP_BATCH_NORM_INFERENCE: case OP_BATCH_NORM_GRAD: return fused ? refuse(i, d) : norm_supported(i, d);
    case OP_SELECT_AND_SCATTER:
        return apply_supported(inst_callee(i, 0), i, d) && apply_supported(inst_callee(i, 1), i, d);
    case OP_TOPK: return !type_is_complex(inst_operand(i, 0)->shape->type) || refuse(i, d);
    case OP_REDUCE: case OP_MAP: case OP_SCATTER: case OP_REDUCE_WINDOW: case OP_SORT: return apply_supported(inst_callee(i, 0), i, d);
    default:
        if (op_has(i->op, F_ELEMENTWISE) || i->op == OP_BITCAST || i->op == OP_BITCAST_CONVERT)
            return scalar_op_supported(i) || refuse(i, d);
        return refuse(i, d);
    }
}

bool fused_supported(const Inst *x, Diag *d)
{
    return supported_inst(x, true, d);
}

bool kernel_supported(const Inst *i, Diag *d)
{
    if (i->op != OP_FUSION)
        return supported_inst(i, false, d);
    if (!flat_leaves(i->shape) || !plain_shape(i->shape))
        return refuse(i, d);
    bool ok = true;
    for (const Inst *x = inst_callee(i, 0)->first; x; x = x->next)
        ok &= supported_inst(x, true, d);
    return ok;
}
