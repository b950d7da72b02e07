/* Editing what goes in and out of the branches of a conditional without control edges. Branches that others call too are copied while there is room. */
#ifndef PASSES_CONDITIONAL_H
#define PASSES_CONDITIONAL_H

#include "passes/flow.h"

/* Parameters and roots of the branches have the shapes, with layouts, of operands and result. */
bool conditional_same_shapes(const Inst *c);

/* May what goes in and out be edited? Branches that others call too are copied for c by conditional_own, once there is something to edit. */
bool conditional_editable(const Flow *f, const Inst *c);
void conditional_own(Flow *f, Inst *c);

/* What x, an instruction of branch k, hands on from outside: the operand, or a known element of it. NULL: it computes something. */
Inst *conditional_handed_on(const Inst *c, int32_t k, const Inst *x);
/* Hands n values that stand before c to every branch, unless all get them already; in[k] is then what slot k's branch reads for them. */
void conditional_hand_in(Flow *f, Inst *c, int32_t n, Inst *const *values, Inst **const *in);

/* In each branch values[k] becomes the result, of which r is the number, -1: that is no tuple; whoever reads it is to get what he can read. */
void conditional_set_result(Flow *f, Inst *c, int32_t r, Inst *const *values);

/* Each returns whether it changed something: results that nobody reads go, those that all branches hand on are read where they come from, of equal ones the first; elements
 * of operands that a branch does not read go. */
bool conditional_drop_results(Flow *f, Inst *c);
bool conditional_drop_elements(Flow *f, Inst *c);

#endif
