/* Small pieces of C text that the files of this folder share. */
#ifndef TARGET_C_TEXT_H
#define TARGET_C_TEXT_H

#include "emit/c_text.h"

/* Constants above this go to the weights file when there is one. */
#define WEIGHTS_FROM (64 * 1024)

/* constants.c: for each constant where it lies in the weights file, -1: it is in the text. */
int64_t *weights_places(Arena *a, const Program *p, const char *weights);
void     c_constants(Buf *b, const Program *p, const char *weights, const int64_t *places);
/* An expression for the address of constant k. */
void     c_constant_address(Buf *b, const Program *p, int32_t k, const int64_t *places);

#endif
