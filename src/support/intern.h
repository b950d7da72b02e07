/* Interned strings: equal text is the same pointer, so names are compared with ==.
 * The text may hold NUL bytes (an escape can make one); a NUL follows its end in any case. */
#ifndef SUPPORT_INTERN_H
#define SUPPORT_INTERN_H

#include "support/arena.h"

typedef struct Interner Interner;

Interner   *interner_new(Arena *a);
const char *intern(Interner *t, const char *s, size_t n);
const char *intern_str(Interner *t, const char *s); /* NUL-terminated */
const char *intern_printf(Interner *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t      intern_len(const char *s); /* only for strings that an Interner made */

#endif
