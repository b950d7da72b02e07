/* Attention as a call of the runtime (src/runtime/hlort.h): a fusion of both dots (analysis/attention.h) around a softmax.
 *
 *   scores = dot(q, k);  x = f(scores);  e = exp(x - max(x));  out = dot(e / sum(e), v)
 *
 * Rows may have a term t more in their sums (a sink): m = max(max(x), t);  e = exp(x - m);  out = dot(e / (sum(e) + exp(t - m)), v)
 *
 * What f does beyond a factor and a mask of places (emit/causal.h) is a function in the text, which the runtime calls for blocks of scores. */
#ifndef EMIT_ATTENTION_CALL_H
#define EMIT_ATTENTION_CALL_H

#include "ir/inst.h"
#include "runtime/hlort.h"

typedef struct AttentionCall {
    const char *symbol; /* of the function */
    Type        in, out;
    int32_t     n;      /* of them: 3, or 4 */
    const Inst *of[4];  /* q, k, v in the fusion's body, and t where it is an array */
    int64_t     start[4]; /* the element of it with which they begin */
    bool        alone;  /* they are its operands, and the result is that of the dot, or the same elements in another order */
    bool        plain;  /* f is no more than such a factor and mask */
    bool        widened; /* q, k and v are converted to f32 in the fusion, from `in` */
    hlort_attention d;
} AttentionCall;

/* The call for fusion i; shapes of q, k and v as they lie, or NULL: as they are in the body. False: the runtime has nothing for it. */
bool attention_call(const Inst *i, const Shape *const *lie, AttentionCall *out);
/* The same for a device's text, whatever the number of rows. What f does beyond a factor and a mask is a function of one score. */
bool attention_kernel(const Inst *i, const Shape *const *lie, AttentionCall *out);
bool attention_call_equal(const AttentionCall *x, const AttentionCall *y);

/* A fusion, in another module, of x's elements in the order of the scores, with the operands of i, of which *hero are the scores. */
Inst *attention_scores(Module *m, const Inst *i, const Inst **hero);

#endif
