/* Custom calls that have a meaning here: what a target is, and whether an instruction is well made for it. */
#ifndef IR_CUSTOM_CALL_H
#define IR_CUSTOM_CALL_H

#include "ir/inst.h"

typedef enum CallKind {
    CALL_UNKNOWN, CALL_MARKER, CALL_CUT, CALL_JOIN, CALL_UNDEFINED, CALL_LAPACK, CALL_MEANING, CALL_SEED
} CallKind;

/* MARKER, CUT, JOIN, UNDEFINED: custom_calls.def. LAPACK: lapack.h. MEANING: call_meaning.h. SEED: the seed of the run. */
CallKind custom_call_kind(const char *target); /* NULL: CALL_UNKNOWN */
bool     custom_call_is_marker(const char *target); /* with one device: MARKER, CUT, JOIN */

/* Why a custom-call of a known target cannot be done on one device, in a's memory; NULL: it can. */
const char *custom_call_refused(Arena *a, const Inst *i);

#endif
