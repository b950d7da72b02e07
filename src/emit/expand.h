/* Opcodes that are written as other instructions before anything is planned. */
#ifndef EMIT_EXPAND_H
#define EMIT_EXPAND_H

#include "ir/inst.h"

/* m, or a copy of it, which lives as long as a, without scan, rng, scaled-dot and ragged-dot. */
const Module *module_expanded(Arena *a, const Module *m);

/* These replace one instruction of a module that may be changed. */
void expand_scan(Inst *i);
void expand_rng(Inst *i);
void expand_ragged_dot(Inst *i);
void expand_scaled_dot(Inst *i);

#endif
