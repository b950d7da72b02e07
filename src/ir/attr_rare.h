/* Attributes with a structure of their own: shardings, replica groups, meshes, origins, statistics, ... */
#ifndef IR_ATTR_RARE_H
#define IR_ATTR_RARE_H

#include "ir/attr.h"
#include "support/intern.h"

/* For the attribute classes from GROUPS on that attr.c does not handle itself. */
bool attr_rare_equal(const Attr *a, const Attr *b);
Attr attr_rare_copy(Arena *a, Interner *t, const Attr *x);

const struct OriginTable *origin_table_copy(Arena *a, Interner *t, const struct OriginTable *x);
const struct DebugTable  *debug_table_copy(Arena *a, Interner *t, const struct DebugTable *x);

#endif
