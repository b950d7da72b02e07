/* A Fourier transform as a call of the runtime (src/runtime/hlort.h). */
#ifndef EMIT_FFT_CALL_H
#define EMIT_FFT_CALL_H

#include "ir/inst.h"
#include "runtime/hlort.h"

typedef struct FftCall {
    const char *symbol; /* of the function */
    Type        type;   /* of the numbers that it is about */
    hlort_fft   d;
} FftCall;

/* The call for fft i. False: the runtime has nothing for it, or it is too small to be worth a call. */
bool fft_call(const Inst *i, FftCall *out);
bool fft_call_equal(const FftCall *x, const FftCall *y);

#endif
