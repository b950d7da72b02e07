/* Text of opcodes that are no loops: a routine in kernels of its own, in which the threads of a block or a group of lanes work on one matrix, or the library's where that is there. */
#ifndef TARGET_CUDA_ROUTINE_H
#define TARGET_CUDA_ROUTINE_H

#include "emit/program.h"
#include "support/buf.h"

enum { ROUTINE_SMALL = 32 /* rows of a matrix that a group of lanes does */ };

/* An array of matrices, as the text has it: dimensions in front of the last two are the batch, those that lie as one are one. */
typedef struct Matrices {
    int64_t row, col, steps[64]; /* elements between neighbours; of each dimension of the batch */
} Matrices;
typedef struct Many {
    int32_t rank;
    int64_t count, sizes[64];
} Many;

/* The batch that n arrays of these shapes have in common. */
void matrices_of(int32_t n, const Shape *const *shapes, Many *many, Matrices *to);
bool matrices_are_dense(const Matrices *x, int64_t rows, int64_t cols); /* by rows or by columns, without gaps */

bool cuda_has_routines(const Program *p, Op op);
/* The library's functions that routines call, each by its name; with `blas` those of cuBLAS. */
bool cuda_routine_functions(const Program *p, bool blas, void (*add)(void *cookie, const char *name), void *cookie); /* true: there are some */
void cuda_number_services(Buf *b, const Program *p); /* what kernels of routines and of LAPACK's call of numbers */
void cuda_routine_services(Buf *b, const Program *p);
void cuda_put_routine(Buf *b, const Program *p, const LibraryCall *x, const char *linkage, const char *prefix); /* NAME_launch */
void cuda_put_routine_head(Buf *b, const LibraryCall *x, const char *linkage, const char *prefix);

/* attention.c: NAME_launch of a call of attention, its head, a call's arguments; what such calls use; the functions of the prelude that their text calls, one after the other: *at is 0 at
 * first. NULL: there are no more. */
typedef struct AttentionUses {
    bool some, shared, tensor; /* there are such calls, those that ask for shared memory, those with a form for tensor cores */
} AttentionUses;
void cuda_put_attention(Buf *b, const Program *p, const LibraryCall *x, const char *linkage, const char *prefix);
void cuda_put_attention_head(Buf *b, const LibraryCall *x, const char *linkage, const char *prefix);
void cuda_attention_call(Buf *b, const LibraryCall *x, const char *const *args);
AttentionUses cuda_attention_uses(const Program *p);
const char *cuda_attention_function(const Program *p, int32_t *at);

/* The files of one opcode each share these. */
const char *routine_type(Type t);                 /* that kernels compute with */
void        routine_many(Buf *b, const Many *many);        /* "hlo_many{ 3, { 3 } }" */
void        routine_matrices(Buf *b, const Matrices *x, int32_t rank, int64_t at); /* "hlo_matrices{ 0, 64, 1, { 4096 } }" */
char        routine_letter(Type t);               /* of its names in the libraries */
int64_t     routine_blocks(int64_t n);

/* cholesky.c, triangular.c */
bool cholesky_is_for_library(const Program *p, const Inst *i);
void cholesky_services(Buf *b, bool library);
void cholesky_body(Buf *b, const Program *p, const LibraryCall *x);
void cholesky_by_library(Buf *b, const LibraryCall *x);
bool triangular_is_for_library(const Program *p, const Inst *i);
void triangular_services(Buf *b);
void triangular_body(Buf *b, const Program *p, const LibraryCall *x);
void triangular_by_library(Buf *b, const LibraryCall *x);

#endif
