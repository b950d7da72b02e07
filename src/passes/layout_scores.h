/* Layouts of what is made of the scores of attention. */
#ifndef PASSES_LAYOUT_SCORES_H
#define PASSES_LAYOUT_SCORES_H

#include "passes/pass.h"

/* What stands between out, a dot, and the dot that its weights are made of has one order of dimensions from now on; false: out is no attention, or all of it has. */
bool layout_scores(PassCtx *cx, Inst *out);

#endif
