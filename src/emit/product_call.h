/* A dot as a product for the library of a device (cuBLASLt), with what that can do to it on the way out:
 *
 *     out = act(alpha * A B + beta * C + bias)          act: none, relu, gelu in the form with tanh; bias: one value for each column of the result
 *
 * A fusion is one when its body says no more than this. Between the steps there may be conversions of floats: the library rounds once, at the end. */
#ifndef EMIT_PRODUCT_CALL_H
#define EMIT_PRODUCT_CALL_H

#include "emit/dot_call.h"

typedef enum ProductAct { ACT_NONE, ACT_RELU, ACT_GELU } ProductAct;

typedef struct ProductCall {
    DotCall     dot;   /* out: the type of the result of all */
    const Inst *inst;  /* the dot */
    int32_t     lhs, rhs, added, bias; /* operands: the dot's; C and the bias, -1: there is none */
    double      alpha, beta;
    ProductAct  act;
    int64_t     work;  /* bytes of working memory that it wants */
} ProductCall;

/* Is i, a dot or a fusion, a product that is worth a call of the library? The matrices have rows or columns side by side. */
bool product_call(const Inst *i, ProductCall *out);
/* The same of the dot alone, whose operands are parameters of a fusion. */
bool product_call_alone(const Inst *dot);

/* Whether k computes such a product; its working memory is then at least out->work, which is aligned to PRODUCT_ALIGN in it. */
enum { PRODUCT_ALIGN = 256 };
bool product_call_of_kernel(const Kernel *k, ProductCall *out);
void kernel_for_library(Kernel *k); /* gives it that memory */

#endif
