/* What loading does to a module's names and stack tables. Source: reference text 2.3 and 2.5. */
#ifndef IR_CANON_H
#define IR_CANON_H

#include "ir/inst.h"

/* XLA's rule that makes names unique: root, '.', number. */
typedef struct Uniquer Uniquer;
Uniquer    *uniquer_new(Arena *a, Interner *strings);
const char *uniquer_name(Uniquer *u, const char *name); /* name is interned, and so is the result */

extern const bool name_chars[256]; /* [A-Za-z0-9_.-] */

/* True when name is one that XLA keeps; else *better is what it becomes (interned). */
bool name_is_sanitary(Interner *strings, const char *name, const char **better);

/* Computations, and with_insts instructions by themselves, over the whole module in its order. */
void module_make_names_unique(Module *m, bool with_insts);

/* Puts instructions and computations where they will be printed. XLA keeps the order of the text and orders only what it prints; its
 * print of its own print may then differ in stack-frame numbers and in the order of computations. Ours does not. */
void module_settle_order(Module *m);

/* New tables with only the frames in use, in order of use; the metadata refer to the new numbers, unknown ids become 0. */
void module_rebuild_stack_frames(Module *m);

#endif
