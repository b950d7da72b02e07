/* Program to C source. */
#ifndef TARGET_C_H
#define TARGET_C_H

#include "emit/program.h"
#include "support/buf.h"

typedef struct TargetCOptions {
    const char *weights;   /* path for .incbin of constants above 64 KiB; NULL: all in the text */
    bool        standalone;
} TargetCOptions;

void target_c_source(Buf *b, const Program *p, const TargetCOptions *o); /* --emit=source */
void target_c_header(Buf *b, const Program *p);                          /* --emit=h */
void target_c_main(Buf *b, const Program *p, const TargetCOptions *o);   /* --emit=main: source and a main */
/* The bytes of the constants that live in the weights file. */
void target_c_weights(Buf *b, const Program *p, const TargetCOptions *o);

/* One kernel as a C function. */
void target_c_kernel(Buf *b, const Kernel *k, const char *name, const Inst *i);

#endif
