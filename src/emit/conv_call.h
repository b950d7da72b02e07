/* A convolution as a call of the runtime (src/runtime/hlort.h). */
#ifndef EMIT_CONV_CALL_H
#define EMIT_CONV_CALL_H

#include "ir/inst.h"
#include "runtime/hlort.h"

typedef struct ConvCall {
    const char *symbol; /* of the function */
    Type        in, out;
    hlort_conv  v;
} ConvCall;

/* The call for convolution i with operands and result in these layouts. False: the runtime has nothing for it, or it is too small to be worth a call. */
bool conv_call(const Inst *i, const Shape *lhs, const Shape *rhs, const Shape *result, ConvCall *out);
bool conv_call_equal(const ConvCall *x, const ConvCall *y);
/* As dot_call_row. */
int64_t conv_call_row(const ConvCall *x);

/* Whether windows of 3 are worth it to the sums of pixels and of taps that save products (src/runtime/winograd.h), and i leaves the precision to us. */
bool conv_call_fewer(const ConvCall *x, const Inst *i);

/* Multiplications, those with what lies beside the image too. */
double conv_call_cost(const ConvCall *x);

#endif
