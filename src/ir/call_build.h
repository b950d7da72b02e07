/* What the functions behind call_meanings.def are written with: a computation that grows instruction by instruction, and checks of the call that it
 * stands for. */
#ifndef IR_CALL_BUILD_H
#define IR_CALL_BUILD_H

#include "ir/call_options.h"
#include "ir/inst.h"

typedef struct Build {
    Arena      *arena;
    const Inst *call;
    Module     *module;
    Comp       *body;
    Inst      **in;     /* the parameters */
    CallOptions options;
    const char *argument; /* of the table's row */
    const char *why;      /* it is refused */
} Build;

/* Says why the call is not well made; NULL. */
Inst *build_refuse(Build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Whether the call has n operands; whether its operands are arrays, of one type and shape if same. They refuse it otherwise. */
bool build_takes(Build *b, int32_t n);
bool build_arrays(Build *b, bool same);
const Shape *build_result(const Build *b, int32_t k); /* part k of the call's result, or the result that is no tuple */

/* Element k of an operand of integers, where that is known: of a constant, and of what the simplifier makes of one. */
bool build_known(const Inst *x, int64_t k, int64_t *v);

const Shape *build_dense(Build *b, Type t, const Shape *dims); /* row-major */
Inst *build_unary(Build *b, Op op, Type t, Inst *x);
Inst *build_binary(Build *b, Op op, Inst *x, Inst *y);
Inst *build_whole(Build *b, const Shape *like, int64_t v); /* everywhere v */
Inst *build_real(Build *b, const Shape *like, double v);
Inst *build_compare(Build *b, Inst *x, Inst *y, Word direction);
Inst *build_select(Build *b, Inst *which, Inst *yes, Inst *no);
Inst *build_tuple(Build *b, int32_t n, Inst *const *x);
Inst *build_element(Build *b, Inst *whole, int32_t k);

/* ---- rows of call_meanings.def that have files of their own ---- */

Inst *mean_fft(Build *b);
Inst *mean_dynamic_fft(Build *b);
Inst *mean_quantize(Build *b);
Inst *mean_dequantize(Build *b);
Inst *mean_dynamic_reshape(Build *b);
Inst *mean_dynamic_broadcast(Build *b);
Inst *mean_real_dynamic_slice(Build *b);
Inst *mean_special(Build *b);
Inst *mean_sparse_product(Build *b);
Inst *mean_gemm(Build *b);
Inst *mean_convolution(Build *b);

#endif
