/* The calls of LAPACK that a custom-call stands for: which there are, the shapes they take, and the arguments of the Fortran routine. The
 * evaluator and emitted code make the same call from this description, each in its own way.
 *
 * A matrix is handed to LAPACK by columns; one of shape [batch..., rows, columns] with the layout {rank-2, rank-1, rank-3, ..., 0} lies in
 * memory that way. Values are those of the logical matrices whatever the layout is. Source: reference operations 19.2. */
#ifndef IR_LAPACK_H
#define IR_LAPACK_H

#include "ir/inst.h"

typedef enum LapackId {
    LAPACK_GEEV, LAPACK_GEES, LAPACK_GEHRD, LAPACK_GEQP3, LAPACK_GEQRF, LAPACK_GESDD, LAPACK_GESVD, LAPACK_GETRF, LAPACK_GTSV,
    LAPACK_HEEVD, LAPACK_ORGQR, LAPACK_ORMQR, LAPACK_POTRF, LAPACK_SYEVD, LAPACK_SYTRD, LAPACK_TRSM
} LapackId;

/* An operand, a result, or both: a result that overwrites the operand of its name. */
typedef struct LapackBuffer {
    const char *name;
    Type        type;
    int32_t     rank;    /* without the batch: 2, 1 or 0 */
    int64_t     rows, columns, count; /* of one member of the batch; columns is 1 of a vector */
    int32_t     operand, result; /* numbers, -1: it is none */
} LapackBuffer;

typedef enum LapackArgKind {
    LAPACK_OPTION, /* the letter `value`; name is the option's */
    LAPACK_SIZE,   /* the integer `value` */
    LAPACK_BUFFER, /* buffer number `value` */
    LAPACK_SECOND, /* likewise, from the second element on */
    LAPACK_COPY,   /* a copy of it that is destroyed */
    LAPACK_PACKED, /* real memory for the complex result that buffer `value` is */
    LAPACK_WORK, LAPACK_RWORK, LAPACK_IWORK,
    LAPACK_INFO,   /* an integer that nobody reads */
    LAPACK_ONE,    /* 1 of the routine's type */
    LAPACK_NULL
} LapackArgKind;

typedef struct LapackArg {
    LapackArgKind kind;
    const char   *name; /* as the table writes it */
    int64_t       value;
} LapackArg;

enum { LAPACK_MOST_BUFFERS = 8, LAPACK_MOST_ARGS = 15 };

typedef struct LapackCall {
    LapackId     id;
    const char  *symbol;   /* of the Fortran routine */
    Type         type;     /* f32, f64, c64, c128 */
    int64_t      batch;    /* matrices */
    int64_t      work, rwork, iwork; /* elements of working memory, of the type, its real type, s32 */
    bool         finite;   /* only called with finite values, else it may never return; then info is -4, and results are 0 or the operand they overwrite */
    int32_t      n_buffers, n_args;
    LapackBuffer buffers[LAPACK_MOST_BUFFERS];
    LapackArg    args[LAPACK_MOST_ARGS];
} LapackCall;

bool lapack_known(const char *target);
/* The call that i, a custom-call of a known target, stands for; strings live in a. NULL, or why it cannot be made: wrong operands, shapes
 * or options. */
const char *lapack_call(Arena *a, const Inst *i, LapackCall *call);
/* No matrix has an element: nothing is called, results are 0. */
bool lapack_is_empty(const LapackCall *call);
int32_t lapack_buffer(const LapackCall *call, const char *name); /* -1: there is none of that name */
Type lapack_real_type(Type t);

#endif
