/* Windows that run along lines, each one element longer than the one before, as a call of the runtime (src/runtime/hlort.h). */
#ifndef EMIT_SCAN_CALL_H
#define EMIT_SCAN_CALL_H

#include "ir/inst.h"
#include "runtime/hlort.h"

typedef struct ScanCall {
    const char *symbol; /* of the function */
    hlort_scan  d;
} ScanCall;

/* The call for reduce-window i. False: it is none of its kind, or too small to be worth a call. */
bool scan_call(const Inst *i, ScanCall *out);
bool scan_call_equal(const ScanCall *x, const ScanCall *y);

#endif
