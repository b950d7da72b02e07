/* Which transforms the runtime does: of floats of one precision, in arrays that lie by rows. And which cuFFT does. */
#include "emit/fft_call.h"

enum { LEAST = 256 }; /* elements of the larger side: below that loops in the text are as quick to make */

static Type component(Type t) { return type_is_complex(t) ? type_component(t) : t; }

bool fft_call(const Inst *i, FftCall *out)
{
    static const hlort_fft_kind kinds[] = { [FFT_FFT] = HLORT_FFT, [FFT_IFFT] = HLORT_IFFT, [FFT_RFFT] = HLORT_RFFT, [FFT_IRFFT] = HLORT_IRFFT };
    const Shape *from = inst_operand(i, 0)->shape, *to = i->shape;
    const Type   t = component(to->type);
    const Ints   length = inst_ints(i, ATTR_FFT_LENGTH);
    hlort_fft   *d = &out->d;
    *out = (FftCall){ .symbol = t == TYPE_F32 ? "hlort_fft_f32" : "hlort_fft_f64", .type = t };
    if ((t != TYPE_F32 && t != TYPE_F64) || component(from->type) != t || !layout_is_row_major(from) || !layout_is_row_major(to) || length.n < 1 ||
        length.n > HLORT_MOST_FFT_AXES || shape_count(from) == 0 || shape_count(to) == 0)
        return false;
    d->kind = kinds[inst_word(i, ATTR_FFT_TYPE)];
    d->axes = length.n;
    d->batch = 1;
    for (int32_t k = 0; k < to->rank - length.n; k++)
        d->batch *= to->dims[k];
    for (int32_t k = 0; k < length.n; k++)
        d->size[k] = length.v[k];
    return (shape_count(from) >= LEAST || shape_count(to) >= LEAST) && hlort_fft_takes(d);
}

bool fft_call_equal(const FftCall *x, const FftCall *y)
{
    bool same = x->symbol == y->symbol && x->d.kind == y->d.kind && x->d.batch == y->d.batch && x->d.axes == y->d.axes;
    for (int64_t k = 0; same && k < x->d.axes; k++)
        same = x->d.size[k] == y->d.size[k];
    return same;
}

bool kernel_is_transform(const Kernel *k)
{
    const Inst *i = k->inst;
    return i->op == OP_FFT && kernel_uses_param(k, 0) && kernel_uses_param(k, 1) && layout_is_row_major(i->shape) && layout_is_row_major(inst_operand(i, 0)->shape) && shape_count(i->shape) > 0;
}

static bool has_control_flow(const Module *m)
{
    for (const Comp *c = m->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            if (i->op == OP_WHILE || i->op == OP_CONDITIONAL)
                return true;
    return false;
}

void kernel_for_transform(Kernel *k)
{
    k->temp_asked = kernel_is_transform(k) && k->temp_bytes > 0 && !has_control_flow(k->inst->comp->module);
}
