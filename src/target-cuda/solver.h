/* Text of calls of LAPACK's routines: by cuSOLVER, triangular solves by cuBLAS, tridiagonal ones by kernels. prefix: the program's name, where functions are in a file of their own; else NULL. */
#ifndef TARGET_CUDA_SOLVER_H
#define TARGET_CUDA_SOLVER_H

#include "emit/program.h"
#include "support/buf.h"

const char *cuda_solver_refuses(const LibraryCall *x); /* NULL: there is something for the call; else what about it there is nothing for, or "" */
bool cuda_needs_solver(const LibraryCall *x);          /* the libraries, not only kernels */
bool cuda_has_calls(const Program *p);
bool cuda_has_solves(const Program *p); /* calls that need the libraries */
void cuda_solver_services(Buf *b, const Program *p);
void cuda_solver_functions(Buf *b, const Program *p, const char *linkage, const char *prefix); /* NAME_launch of each call */
void cuda_solver_prototypes(Buf *b, const Program *p, const char *linkage, const char *prefix);
void cuda_solver_test(Buf *b, Arena *a, const Program *p, const char *prefix); /* in the entry: the libraries are there, or it fails with their names */
void cuda_solver_call(Buf *b, const LibraryCall *x, const char *prefix, const char *const *args); /* args: operands, then results */

#endif
