/* Text of calls of LAPACK's routines: by cuSOLVER, triangular solves by cuBLAS. prefix: the program's name, where functions are in a file of their own; else NULL. */
#ifndef TARGET_CUDA_SOLVER_H
#define TARGET_CUDA_SOLVER_H

#include "emit/program.h"
#include "support/buf.h"

bool cuda_solver_has(const LibraryCall *x);               /* the libraries have the routine */
bool cuda_has_solves(const Program *p);
void cuda_solver_services(Buf *b, const Program *p);
void cuda_solver_functions(Buf *b, const Program *p, const char *linkage, const char *prefix); /* NAME_launch of each call */
void cuda_solver_prototypes(Buf *b, const Program *p, const char *linkage, const char *prefix);
void cuda_solver_call(Buf *b, const LibraryCall *x, const char *prefix, const char *const *args); /* args: operands, then results */

#endif
