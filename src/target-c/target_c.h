/* Program to C source. */
#ifndef TARGET_C_H
#define TARGET_C_H

#include "emit/program.h"
#include "support/buf.h"

typedef struct TargetCOptions {
    const char *weights;   /* path for .incbin of constants above 64 KiB; NULL: all in the text */
} TargetCOptions;

/* What the text of a watched program tells to the function that NAME_watch was given, with the number of the step: it begins; it is over; the
 * WHILE begins another trip (its condition); the value of the VALUE is at these addresses. */
typedef enum WatchEvent { WATCH_BEGIN, WATCH_END, WATCH_TRIP, WATCH_VALUE } WatchEvent;

void target_c_source(Buf *b, const Program *p, const TargetCOptions *o); /* --emit=source */
void target_c_header(Buf *b, const Program *p);                          /* --emit=h */
void target_c_main(Buf *b, const Program *p, const TargetCOptions *o);   /* --emit=main: source and a main */
/* Does the source refer to o->weights? */
bool target_c_has_weights(const Program *p, const TargetCOptions *o);
/* The bytes of that file, in pieces, since they may be most of the memory there is. Stops when put gives false, and gives that. */
bool target_c_weights(const Program *p, const TargetCOptions *o, bool (*put)(void *to, const void *bytes, size_t n), void *to);

/* What an element of a type is in memory, "float". */
const char *target_c_element_type(Type t);

/* One kernel as a static C function, the HLO of its instruction above it. Its parameters: the results, then the operands, then working memory;
 * only those that the kernel uses (kernel_uses_param). One of very many loops is several functions (kernel_parts.h). */
void target_c_kernel(Buf *b, const Function *f);
/* The same where the runtime's threads share its loops. */
void target_c_ranges(Buf *b, const Function *f);

/* What the runtime calls for tiles of sums (kernel_tile_row), of which the caller's context is a list of results and operands. */
void target_c_tile(Buf *b, const Function *f);
/* That list, for args as below; sums have no place in it. */
void target_c_tile_context(Buf *b, const Kernel *k, const char *const *args);
const char *target_c_tile_name(Arena *a, const char *name);

/* A call of it, "name(a, b, c);" indented by depth, and a newline; one after the other when it is several functions. args[p] is the text
 * of a pointer for kernel parameter p, in the order of kernel.h (operand leaves, result leaves, working memory); it may have type
 * void *. */
void target_c_kernel_call(Buf *b, int depth, const Kernel *k, const char *name, const char *const *args);
void target_c_ranges_call(Buf *b, int depth, const Function *f, const char *const *args);

/* A library call likewise: args are its operands, its results, and working memory when it has any. */
void target_c_library(Buf *b, const LibraryCall *x);
void target_c_library_call(Buf *b, const LibraryCall *x, const char *const *args);
/* Prototypes of the routines that are called, and helpers around them. */
void target_c_library_prelude(Buf *b, const Program *p);

/* Likewise a call of the runtime (runtime.c). */
void target_c_runtime(Buf *b, const Program *p, const LibraryCall *x);
void target_c_runtime_call(Buf *b, const Step *s, const char *const *args);
void target_c_packed(Buf *b, const Program *p); /* memory for constants that such calls pack once */
void target_c_runtime_prelude(Buf *b, const Program *p);

/* Likewise a function from outside (extern.c): a call that may fail, an expression that is 0 when it did not. */
void target_c_extern(Buf *b, const LibraryCall *x);
void target_c_extern_call(Buf *b, const LibraryCall *x, const char *const *args);
void target_c_extern_prelude(Buf *b, const Program *p); /* types and prototypes */
void target_c_extern_symbols(Buf *b, const Program *p); /* " and what has a, b" for the first line, or nothing */

/* What the functions of these kernels need in front of them, each thing only if it is used: prototypes of libm, conversions of small floats,
 * guarded integer arithmetic; minor: some are. The text relies on int8_t ... uint64_t only. */
void target_c_prelude(Buf *b, int32_t n, const Kernel *const *kernels, bool minor);

#endif
