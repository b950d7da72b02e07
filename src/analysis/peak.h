/* How much memory a module needs besides its arguments, constants and results, when its instructions run in the order of the
 * schedule: each kernel's result has a buffer from then on until its last reader is done. Updates (dynamic-update-slice, scatter, and
 * fusions that end in one) write into their operand where nothing else reads that; the state of a loop stays in one place, and what is
 * neither a temporary of the caller nor handed on unchanged is copied into it first. */
#ifndef ANALYSIS_PEAK_H
#define ANALYSIS_PEAK_H

#include "ir/inst.h"

/* Bytes at the worst moment; *at: the instruction of the entry that runs then, NULL when nothing is needed. Uses i->aux. */
int64_t module_peak(Module *m, const Inst **at);

#endif
