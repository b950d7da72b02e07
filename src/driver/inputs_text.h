/* Single arguments that are no array files. */
#ifndef DRIVER_INPUTS_TEXT_H
#define DRIVER_INPUTS_TEXT_H

#include "ir/literal.h"
#include "support/diag.h"

/* The literal that HLO text such as "{1, 2}" gives for an array of shape s, which has no dynamic dimension; "f32[2] {1, 2}" is read, too. NULL after
 * reporting; what names the argument in messages. */
Literal *literal_from_text(const char *text, const Shape *s, const char *what, Diag *d);

/* The literal whose elements, little endian and the last dimension fastest, are all bytes of the file at path. Types are stored as in .npy files (see
 * data/npz.h). With all the bytes of another shape, all (which may be NULL), it is of that. The file is mapped, until a is freed. NULL after
 * reporting, also for another number of bytes. */
Literal *literal_from_bytes(Arena *a, const char *path, const Shape *s, const Shape *all, const char *what, Diag *d);

#endif
