/* Interned strings: equal text is the same pointer, so names are compared with ==.
 * The text may hold NUL bytes (an escape can make one); a NUL follows its end in any case. */
#ifndef SUPPORT_INTERN_H
#define SUPPORT_INTERN_H

#include <stdint.h>

#include "support/arena.h"

typedef struct Interner Interner;

Interner   *interner_new(Arena *a);
const char *intern(Interner *t, const char *s, size_t n);
const char *intern_str(Interner *t, const char *s); /* NUL-terminated */
const char *intern_printf(Interner *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Only for strings that an Interner made. */
size_t      intern_len(const char *s);
uint32_t    intern_tag(const char *s); /* 0 until it is set: who sets it says what it means */
void        intern_set_tag(const char *s, uint32_t tag);
uint32_t    intern_mark(const char *s); /* likewise, somebody else's */
void        intern_set_mark(const char *s, uint32_t mark);

#endif
