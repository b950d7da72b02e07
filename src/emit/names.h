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

/* Letters, digits and '_' for every other character, with "m" before a leading digit or underscore: for what always has something behind
 * it (NAME_run). Alone it may be a word that C takes. */
const char *c_prefix(Arena *a, const char *hlo_name);

/* prefix (may be empty) and the identifier of hlo_name, with "_2", "_3", ... behind it when that is taken; it is taken from now on. */
const char *names_take(NameSet *s, const char *prefix, const char *hlo_name);
/* Takes this very identifier, before others can. */
void names_reserve(NameSet *s, const char *identifier);

#endif
