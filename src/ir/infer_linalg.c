/* fft, cholesky, triangular-solve, batch normalization, random numbers. Source: reference operations 11 to 13. */
#include "ir/infer_rules.h"

static bool check_fft_type(const Infer *x, const Shape *s, bool complex)
{
    bool ok = complex ? type_is_complex(s->type) : s->type == TYPE_F32 || s->type == TYPE_F64;
    return ok || infer_bad(x, "%s needs %s elements, got %s", attr_words[inst_word(x->i, ATTR_FFT_TYPE)].text,
                           complex ? "complex" : "f32 or f64", infer_text(x, s));
}

/* The last dimensions must be fft_length, the very last one last. */
static bool fft_sizes(const Infer *x, const Shape *s, Ints l, int64_t last)
{
    int32_t first = s->rank - l.n;
    for (int32_t k = 0; k < l.n; k++) {
        int64_t want = k == l.n - 1 ? last : l.v[k];
        if (s->dims[first + k] != want)
            return infer_bad(x, "dimension %d of %s must be %lld for fft_length %lld", first + k, infer_text(x, s),
                             (long long)want, (long long)l.v[k]);
    }
    return true;
}

static const Shape *with_last(const Infer *x, const Shape *s, Type t, int64_t last)
{
    int64_t *dims = arena_copy(x->a, s->dims, (size_t)s->rank * sizeof *dims);
    dims[s->rank - 1] = last;
    return infer_array(x, t, s->rank, dims, s->dynamic);
}

const Shape *infer_fft(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0);
    Ints         l = inst_ints(x->i, ATTR_FFT_LENGTH);
    Word         kind = inst_word(x->i, ATTR_FFT_TYPE);
    if (l.n < 1 || l.n > 3 || l.n > s->rank)
        return infer_fail(x, "fft_length must have 1 to 3 entries and no more than %s has dimensions, got %d", infer_text(x, s),
                          l.n);
    if (!check_fft_type(x, s, kind != FFT_RFFT))
        return NULL;
    int64_t length = l.v[l.n - 1], half = length <= 0 ? length : length / 2 + 1;
    if (length < 0)
        return infer_fail(x, "fft_length must not be negative");
    if (kind == FFT_RFFT)
        return fft_sizes(x, s, l, length) ? with_last(x, s, s->type == TYPE_F32 ? TYPE_C64 : TYPE_C128, half) : NULL;
    if (kind == FFT_IRFFT)
        return fft_sizes(x, s, l, half) ? with_last(x, s, type_component(s->type), length) : NULL;
    return fft_sizes(x, s, l, length) ? s : NULL;
}

/* Operand k is a stack of matrices of floating or complex numbers. */
static bool is_matrices(const Infer *x, int32_t k)
{
    if (!infer_is_array(x, k))
        return false;
    const Shape *s = operand_shape(x, k);
    if (!type_is_float(s->type) && !type_is_complex(s->type))
        return infer_bad(x, "operand %d must be floating or complex, got %s", k, infer_text(x, s));
    return s->rank >= 2 || infer_bad(x, "operand %d must have rank 2 or more, got %s", k, infer_text(x, s));
}

static bool is_square(const Infer *x, int32_t k)
{
    const Shape *s = operand_shape(x, k);
    return s->dims[s->rank - 1] == s->dims[s->rank - 2] ||
           infer_bad(x, "the last two dimensions of operand %d must be equal, got %s", k, infer_text(x, s));
}

const Shape *infer_cholesky(const Infer *x)
{
    return is_matrices(x, 0) && is_square(x, 0) ? operand_shape(x, 0) : NULL;
}

const Shape *infer_triangular_solve(const Infer *x)
{
    if (!is_matrices(x, 0) || !is_matrices(x, 1) || !is_square(x, 0))
        return NULL;
    const Shape *a = operand_shape(x, 0), *b = operand_shape(x, 1);
    int32_t      r = a->rank, shared = inst_bool(x->i, ATTR_LEFT_SIDE) ? r - 2 : r - 1;
    if (a->type != b->type || b->rank != r)
        return infer_fail(x, "operands must have one type and rank, got %s and %s", infer_text(x, a), infer_text(x, b));
    if (b->dims[shared] != a->dims[shared])
        return infer_fail(x, "dimension %d of %s must be that of %s", shared, infer_text(x, b), infer_text(x, a));
    for (int32_t k = 0; k < r - 2; k++)
        if (a->dims[k] != b->dims[k])
            return infer_fail(x, "batch dimension %d differs: %s and %s", k, infer_text(x, a), infer_text(x, b));
    if (inst_word(x->i, ATTR_TRANSPOSE_A) == TRANSPOSE_INVALID)
        return infer_fail(x, "transpose_a must be NO_TRANSPOSE, TRANSPOSE or ADJOINT");
    return b;
}

/* Batch normalization */

/* Operands 1 to n_features are one number for each index of the feature dimension of operand 0. */
static bool check_batch_norm(const Infer *x, int32_t n_features)
{
    if (!infer_are_arrays(x))
        return false;
    const Shape *s = operand_shape(x, 0);
    int64_t      f = inst_int(x->i, ATTR_FEATURE_INDEX, 0);
    if (f < 0 || f >= s->rank)
        return infer_bad(x, "feature_index %lld is out of range for %s", (long long)f, infer_text(x, s));
    if (!type_is_float(s->type))
        return infer_bad(x, "operand 0 must be floating, got %s", infer_text(x, s));
    for (int32_t k = 1; k <= n_features; k++) {
        const Shape *p = operand_shape(x, k);
        if (!infer_same_type(x, 0, k))
            return false;
        if (p->rank != 1 || p->dims[0] != s->dims[f])
            return infer_bad(x, "operand %d must have one dimension of size %lld, got %s", k, (long long)s->dims[f],
                             infer_text(x, p));
    }
    return true;
}

static const Shape *with_two_features(const Infer *x)
{
    const Shape *s = operand_shape(x, 0), *f = shape_with_type(x->a, operand_shape(x, 1), s->type);
    const Shape *elems[3] = {s, f, f};
    return shape_tuple(x->a, 3, elems);
}

const Shape *infer_batch_norm_training(const Infer *x) { return check_batch_norm(x, 2) ? with_two_features(x) : NULL; }

const Shape *infer_batch_norm_inference(const Infer *x) { return check_batch_norm(x, 4) ? operand_shape(x, 0) : NULL; }

const Shape *infer_batch_norm_grad(const Infer *x)
{
    if (!check_batch_norm(x, 3) || !infer_same_dims(x, 0, 4) || !infer_same_type(x, 0, 4))
        return NULL;
    return with_two_features(x);
}

/* Random numbers */

const Shape *infer_rng(const Infer *x)
{
    const Shape *w = x->i->shape;
    Word         how = inst_word(x->i, ATTR_DISTRIBUTION);
    if (x->i->n_operands != 2)
        return infer_fail(x, "expects 2 operands, has %d", x->i->n_operands);
    if (!shape_is_array(w))
        return infer_fail(x, "makes arrays, not %s", infer_text(x, w));
    for (int32_t k = 0; k < 2; k++) {
        const Shape *s = operand_shape(x, k);
        if (!infer_is_scalar(x, k))
            return NULL;
        if (s->type != w->type)
            return infer_fail(x, "operand %d must be %s[], got %s", k, type_name(w->type), infer_text(x, s));
    }
    bool ok = type_is_float(w->type) || (how == RNG_UNIFORM && (type_is_int(w->type) || w->type == TYPE_PRED));
    if (how == RNG_INVALID || !ok)
        return infer_fail(x, "%s does not make %s", attr_words[how].text, type_name(w->type));
    return w;
}

/* state -> (state, bits): u64[2] for three_fry, u64[2] or u64[3] for philox */
const Shape *infer_rng_bit_generator(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0), *w = x->i->shape;
    int64_t      longest = inst_word(x->i, ATTR_RNG_ALGORITHM) == RNG_THREE_FRY ? 2 : 3;
    if (!shape_is_tuple(w) || w->n_elems != 2 || !shape_compatible(w->elems[0], s))
        return infer_fail(x, "must return (%s, bits), not %s", infer_text(x, s), infer_text(x, w));
    if (s->type != TYPE_U64 || s->rank != 1 || s->dims[0] < 2 || s->dims[0] > longest)
        return infer_fail(x, "the state must be u64[2]%s, got %s", longest == 3 ? " or u64[3]" : "", infer_text(x, s));
    if (!shape_is_array(w->elems[1]) || !type_is_unsigned_int(w->elems[1]->type))
        return infer_fail(x, "the bits must be unsigned integers, not %s", infer_text(x, w->elems[1]));
    return w;
}

const Shape *infer_rng_state(const Infer *x)
{
    int64_t two = 2;
    return infer_array(x, TYPE_U64, 1, &two, NULL);
}
