/* The helper functions that kernels may call, as rows: a name, or a family's for add_s32 and its like, what it calls itself, and a text, in which $T, $U, $M, $N, ... stand for the type that the name ends in. */
#ifndef EMIT_HELPERS_H
#define EMIT_HELPERS_H

#include <stddef.h>

typedef enum HelperClass { H_EXACT, H_WHOLE /* with all that stands in front of the function */, H_SIGNED, H_UNSIGNED, H_INT, H_FLOAT, H_SMALL /* f8, f6, f4 */, H_COMPLEX, H_TO_INT, H_TO_SHORT /* of 16 bits and fewer */, H_ANY
} HelperClass;

typedef struct Helper {
    HelperClass cls;
    const char *name;  /* EXACT, WHOLE: all of it; TO_INT, TO_SHORT: what stands before the type (f32_to_); SMALL: with $ for the type; else what stands before "_s32" */
    const char *needs; /* names, separated by blanks, $ for the type */
    const char *text;
} Helper;

/* The k-th row; NULL: there are no more. */
const Helper *helper_at(size_t k);

#endif
