/* What an instruction is made of, within its computation. */
#ifndef ANALYSIS_BEHIND_H
#define ANALYSIS_BEHIND_H

#include "ir/inst.h"
#include "support/map.h"

typedef struct Behind {
    Map         wanted;
    const Map  *given;
    const Inst *at;
} Behind;

/* x itself and all that it needs, users first:  for (const Inst *i; (i = behind_next(&b));)
 * given: instructions that are left out, and what only they need; or NULL. The memory is a's; the computation may not change meanwhile. */
Behind      behind_of(Arena *a, const Inst *x, const Map *given);
const Inst *behind_next(Behind *b); /* NULL: that was all */

#endif
