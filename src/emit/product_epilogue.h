/* What a fusion makes of the one dot, or convolution, of its body, as libraries of devices can:
 *
 *     out = act(alpha * hero + beta * added + bias)          act: none, relu, gelu in the form with tanh
 *
 * added and bias are operands of the fusion. Between the steps there may be conversions of floats: a library rounds once, at the end. */
#ifndef EMIT_PRODUCT_EPILOGUE_H
#define EMIT_PRODUCT_EPILOGUE_H

#include "ir/inst.h"

typedef enum ProductAct { ACT_NONE, ACT_RELU, ACT_GELU } ProductAct;

typedef struct ProductEpilogue {
    const Inst *hero;        /* its operands are parameters */
    const Inst *along;       /* the broadcast of the bias to the result's shape; NULL: there is none */
    int32_t     lhs, rhs, added, bias; /* operands of the fusion; the last two may be -1: there is none */
    double      alpha, beta; /* beta 0 where nothing is added */
    ProductAct  act;
} ProductEpilogue;

/* False: i is no such fusion around one instruction of this opcode. What is added lies as the result does, and is of its type, as the bias is. */
bool product_epilogue(const Inst *i, Op op, ProductEpilogue *out);

#endif
