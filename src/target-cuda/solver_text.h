/* What the files that print calls of LAPACK's routines share: solver.c, eigen.c, tridiagonal.c, reflectors.c, schur.c. In their text `status` is how it goes, `memory` working memory, `i` the number of a batch's member. */
#ifndef TARGET_CUDA_SOLVER_TEXT_H
#define TARGET_CUDA_SOLVER_TEXT_H

#include "ir/lapack.h"
#include "support/buf.h"

enum { SOLVER_HEAD = 256 }; /* bytes of working memory for an int that nobody reads, and for whether a matrix is finite */

const char *solver_type(Type t); /* of numbers, in cuSOLVER's and cuBLAS's names */
int64_t     solver_size(const LapackCall *c, const char *name);
char        solver_option(const LapackCall *c, const char *name);
int64_t     solver_take(int64_t *at, int64_t bytes); /* the next part of working memory */
void        solver_members(Buf *b, const LapackCall *c); /* what is done for each of the batch begins */
void        solver_member(Buf *b, const LapackCall *c, const char *name); /* "a + 16 * i", of one of the batch */
void        solver_info(Buf *b, const LapackCall *c);
/* A copy of the matrix; what is not finite becomes zeros in it or in the matrix itself. Then what came out of that is taken back. */
void        solver_finite(Buf *b, const LapackCall *c, int64_t copy, bool of_copy, const char *indent);
void        solver_take_back(Buf *b, const LapackCall *c, int64_t saved, const char *indent);

/* eigen.c */
void solver_eigen_guard(Buf *b);    /* leaves libraries out that are older than the routine */
void solver_eigen_services(Buf *b); /* for real matrices */
void solver_eigen(Buf *b, const LapackCall *c);

const char *solver_kernel_type(Type t); /* of numbers that kernels compute with */

/* tridiagonal.c */
void solver_tridiagonal_services(Buf *b);
void solver_tridiagonal(Buf *b, const LapackCall *c);

/* reflectors.c: what they are, then gehrd, then geqp3 */
void solver_reflector_services(Buf *b);
void solver_hessenberg_services(Buf *b);
void solver_hessenberg(Buf *b, const LapackCall *c);
void solver_pivots_services(Buf *b);
void solver_pivots(Buf *b, const LapackCall *c);

/* schur.c */
void solver_schur_services(Buf *b, bool real, bool complex);
void solver_schur(Buf *b, const LapackCall *c);

#endif
