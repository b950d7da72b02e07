/* Editing what goes in and out of the branches of a conditional without control edges. Branches that others call too are copied while there is room. */
#ifndef PASSES_CONDITIONAL_H
#define PASSES_CONDITIONAL_H

#include "passes/flow.h"

/* Parameters and roots of the branches have the shapes, with layouts, of operands and result. */
bool conditional_same_shapes(const Inst *c);

/* Each returns whether it changed something: results that nobody reads go, and those that all branches hand on are read where they come from; elements
 * of operands that a branch does not read go. */
bool conditional_drop_results(Flow *f, Inst *c);
bool conditional_drop_elements(Flow *f, Inst *c);

#endif
