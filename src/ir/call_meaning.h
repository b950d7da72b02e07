/* Custom calls that ordinary instructions can say: the computation that one stands for. Its parameters are the call's operands, its root the
 * call's result. Both backends run this computation. Source: reference operations 13.1, 19.2. */
#ifndef IR_CALL_MEANING_H
#define IR_CALL_MEANING_H

#include "ir/inst.h"

bool call_has_meaning(const char *target);

/* The computation of i, whose target has one; it lives in a module that a owns, or is one that i calls. NULL when the call is not well made: *why
 * says what is wrong, in a's memory. */
const Comp *call_meaning(Arena *a, const Inst *i, const char **why);

#endif
