/* C identifiers from HLO names: "%fusion.3" becomes fusion_3. */
#ifndef EMIT_NAMES_H
#define EMIT_NAMES_H

#include "support/intern.h"
#include "support/map.h"

/* The identifiers of one emitted file. */
typedef struct NameSet {
    Arena    *arena;
    Interner *strings;
    Map       used, counts;
} NameSet;

NameSet names_new(Arena *a);

/* A legal identifier of C and C++ that no header of the C library declares: every other character becomes '_', a plain word gets
 * "_k" behind it ("select", "tanh" and "int" are taken), a leading digit or underscore "m" before it. Not yet unique. */
const char *c_identifier(Arena *a, const char *hlo_name);

/* For what always has something behind it (NAME_run): as above, but any word will do. */
const char *c_prefix(Arena *a, const char *hlo_name);

/* prefix (may be empty) and the identifier of hlo_name, with "_2", "_3", ... behind it when that is taken; it is taken from now on. */
const char *names_take(NameSet *s, const char *prefix, const char *hlo_name);
/* Takes this very identifier, before others can. */
void names_reserve(NameSet *s, const char *identifier);

#endif
