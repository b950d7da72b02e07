/* A dot as a call of the runtime: products C = A B of matrices, one for each member of a batch (src/runtime/hlort.h). */
#ifndef EMIT_DOT_CALL_H
#define EMIT_DOT_CALL_H

#include "emit/kernel.h"
#include "runtime/hlort.h"

typedef struct DotCall {
    const char *symbol; /* of the function */
    Type    in, out;
    bool    swapped;    /* A is the dot's second operand: C's neighbours are of the first */
    int64_t m, n, k, a_row, a_col, b_row, b_col, c_row; /* distances in elements */
    int32_t n_batch;
    struct {
        int64_t count, a, b, c;
    } batch[HLORT_MOST_BATCHES];
} DotCall;

/* Of a product, up to which sums are written as they are in the text: neighbours in the result, terms. */
enum { DOT_FEW_COLUMNS = 16, DOT_FEW_TERMS = 8, DOT_FEW_ROWS = 16 };
/* Of a product in the text whose lines lie along the terms: rows made at a time, and bytes of a line from which on they are; bytes of columns that fill a vector, fewer are turned to lie like the
 * lines; elements at most that are turned. */
enum { DOT_ROWS_AT_ONCE = 8, DOT_LEAST_LINE = 32, DOT_VECTOR = 32, DOT_MOST_TURNED = 8192 };

/* What a dot of these types and layouts is as products, of whatever size; no symbol. False: it is none. */
bool dot_call_sizes(const Inst *i, const Shape *lhs, const Shape *rhs, const Shape *result, DotCall *out);
/* The call for dot i with operands and result in these layouts. False: the runtime has nothing for it, or it is too small to be worth a call. */
bool dot_call(const Inst *i, const Shape *lhs, const Shape *rhs, const Shape *result, DotCall *out);
/* Of how many neighbours of the result an epilogue may get some at once: none of its tiles goes on behind them. 0: there is none. */
int64_t dot_call_row(const DotCall *d);
bool dot_call_equal(const DotCall *x, const DotCall *y);

#endif
