/* Reducers of pairs of a value and a number. */
#ifndef ANALYSIS_CHOICE_H
#define ANALYSIS_CHOICE_H

#include "ir/inst.h"

/* Whether c chooses one of two pairs (value, number) so that order and repetition do not matter. */
typedef enum Choice { CHOICE_NONE, CHOICE_OF_NUMBERS /* unless a value is NaN */, CHOICE_FREE } Choice;
Choice choice_of(const Comp *c);

/* c chooses the pair with the larger value, or the smaller; NaN if there is one. op: OP_MAXIMUM or OP_MINIMUM. lowest: where values are equal (and no NaN) it
 * gives the lower number, else that of the value. */
bool choice_is_extreme(const Comp *c, Op op, bool lowest);

#endif
