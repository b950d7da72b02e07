/* A Fourier transform as a call of the runtime (src/runtime/hlort.h), or of cuFFT. */
#ifndef EMIT_FFT_CALL_H
#define EMIT_FFT_CALL_H

#include "emit/kernel_ir.h"
#include "runtime/hlort.h"

typedef struct FftCall {
    const char *symbol; /* of the function */
    Type        type;   /* of the numbers that it is about */
    hlort_fft   d;
} FftCall;

/* The call for fft i. False: the runtime has nothing for it, or it is too small to be worth a call. */
bool fft_call(const Inst *i, FftCall *out);
bool fft_call_equal(const FftCall *x, const FftCall *y);

/* Is k a transform that cuFFT does, of arrays that lie as it wants them? */
bool kernel_is_transform(const Kernel *k);
/* If so, only who has no cuFFT needs its working memory: its launcher asks for it. What a graph's conditional node runs may ask for none, so that modules with loops or branches plan it. */
void kernel_for_transform(Kernel *k);

#endif
