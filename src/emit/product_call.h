/* A dot as a product for the library of a device (cuBLASLt), with what that can do to it on the way out (product_epilogue.h): a matrix that is added, one value for each column of the
 * result as a bias. */
#ifndef EMIT_PRODUCT_CALL_H
#define EMIT_PRODUCT_CALL_H

#include "emit/dot_call.h"
#include "emit/product_epilogue.h"

typedef struct ProductCall {
    DotCall         dot;      /* out: the type of the result of all */
    ProductEpilogue epilogue; /* of a dot alone: which it is, and no more */
    int64_t         work;     /* bytes of working memory that it wants */
} ProductCall;

/* Is i, a dot or a fusion, a product that is worth a call of the library? The matrices have rows or columns side by side. */
bool product_call(const Inst *i, ProductCall *out);
/* The same of the dot alone, whose operands are parameters of a fusion. */
bool product_call_alone(const Inst *dot);

/* Whether k computes such a product; its working memory is then at least out->work, which is aligned to PRODUCT_ALIGN in it. */
enum { PRODUCT_ALIGN = 256 };
bool product_call_of_kernel(const Kernel *k, ProductCall *out);
void kernel_for_product(Kernel *k); /* gives it that memory */
/* The kernel has these operands as pointers, its own or those of others that are the same, which are put in their place. */
bool kernel_has_operands(const Kernel *k, ProductEpilogue *e);

#endif
