/* scan as a loop: what the planner sees instead of it. */
#ifndef EMIT_EXPAND_SCAN_H
#define EMIT_EXPAND_SCAN_H

#include "ir/inst.h"

/* m itself when it has no scan; else a copy, freed with a, in which every scan is a while over slices. */
const Module *module_without_scan(Arena *a, const Module *m);

#endif
