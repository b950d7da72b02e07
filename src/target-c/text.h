/* Small pieces of C text that the files of this folder share. */
#ifndef TARGET_C_TEXT_H
#define TARGET_C_TEXT_H

#include "emit/c_text.h"

/* Constants above this go to the weights file when there is one. */
#define WEIGHTS_FROM (64 * 1024)

/* devices.c: hlo_exchange and hlo_devices, guarded; a table for each exchange; the entry's test of env->devices; a step, which returns
 * when it fails. */
void c_devices_types(Buf *b);
void c_exchanges(Buf *b, const Program *p);
void c_check_devices(Buf *b, const Program *p);
void c_exchange_step(Buf *b, const char *indent, const Exchange *x, const char *in, const char *out);

/* constants.c: for each constant where it lies in the weights file, -1: it is in the text. */
int64_t *weights_places(Arena *a, const Program *p, const char *weights);
void     c_constants(Buf *b, const Program *p, const char *weights, const int64_t *places);
/* An expression for the address of constant k. */
void     c_constant_address(Buf *b, const Program *p, int32_t k, const int64_t *places);

#endif
