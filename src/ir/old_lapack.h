/* LAPACK calls as jaxlib wrote them before it had typed options: "lapack_spotrf" with its options and sizes as constant operands in front, and
 * with working memory among its results. Each is a call of lapack.def said differently. */
#ifndef IR_OLD_LAPACK_H
#define IR_OLD_LAPACK_H

#include "ir/inst.h"

/* The root that gives what `call` gives, built at the end of body, whose parameters are in; rule is the argument of the target's row in
 * call_meanings.def. NULL when the call is not well made: *why says what is wrong, in a's memory. */
Inst *old_lapack(Arena *a, Comp *body, Inst *const *in, const Inst *call, const char *rule, const char **why);

#endif
