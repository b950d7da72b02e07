/* A call of a routine of LAPACK, of the runtime, or of a function from outside, as a function of its own. Operands and results of LAPACK's lie by columns. */
#ifndef EMIT_LIBRARY_H
#define EMIT_LIBRARY_H

#include "emit/attention_call.h"
#include "emit/conv_call.h"
#include "emit/dot_call.h"
#include "emit/fft_call.h"
#include "emit/kernel.h"
#include "emit/order_call.h"
#include "emit/scan_call.h"
#include "emit/solve_call.h"
#include "ir/extern_call.h"
#include "ir/lapack.h"

typedef struct LibraryCall {
    const char *name;  /* of the function, a C identifier */
    const Inst *inst;  /* the first instruction that it was made for */
    const ExternCall *outside; /* or */
    const DotCall *dot;        /* or */
    const ConvCall *conv;      /* or */
    const SolveCall *solve;    /* or */
    const FftCall *fft;        /* or */
    const ScanCall *scan;      /* or */
    const AttentionCall *attention; /* or */
    const OrderCall *order;    /* or */
    bool        routine;       /* a routine that a device's text has for such an opcode as inst is; or, if all are not, LAPACK's */
    const Kernel *tile;        /* NULL, or the epilogue of a dot, a convolution or the scores of attention, whose operands and results the call has behind the two, or three */
    int32_t     tile_function; /* in Program.functions */
    LapackCall  lapack;
    int64_t     place[LAPACK_MOST_ARGS]; /* of an argument's working memory, in bytes; -1: it needs none */
    int64_t     temp_bytes;              /* all of it; 0: none */
    int64_t     packed_bytes;            /* of a dot's second operand, or a convolution's kernel, that is a constant and packed once (hlort_packed); 0: it is not */
    int64_t     tables_bytes;            /* of a Fourier transform's tables, which the first call leaves for later ones; 0: each call makes its own */
} LibraryCall;

/* Result r may be the memory of operand o: it overwrites it. */
bool library_may_alias(const LibraryCall *c, int32_t r, int32_t o);
bool library_is_runtime(const LibraryCall *c);
bool library_is_lapack(const LibraryCall *c);
bool library_is_routine(const Inst *i); /* an opcode for which devices' texts have routines: none of its loops could be dealt out to threads */
const char *library_symbol(const LibraryCall *c); /* what it calls */
bool library_equal(const LibraryCall *a, const LibraryCall *b); /* the same function, but for its name */

#endif
