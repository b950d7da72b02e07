/* Tuples between callers and what they call: elements read, taken away, put together; computations that one caller has for itself. */
#ifndef PASSES_FLOW_H
#define PASSES_FLOW_H

#include "analysis/device.h"
#include "ir/inst.h"

typedef struct Flow {
    Arena  *scratch;
    int64_t room; /* instructions that copies of shared computations may still add */
    const Device *device; /* while_pass_moves_out: what it is for; else NULL */
} Flow;

/* Counts callers in comp->mark, which callee_own keeps up to date. */
Flow flow_of(Module *m, Arena *scratch);

/* Gives i a copy of its own of callee k when others call that too; one that i has no second time, or one for all of its slots from k on that have it. */
void    callee_own(Inst *i, int32_t k);
void    callee_own_slots(Inst *i, int32_t k);
bool    callee_is_later_slot(const Inst *i, int32_t k); /* callee k is a callee before k too */
int64_t callees_shared(const Inst *i); /* instructions of the callees that others call too */

/* Parameters that nobody in their computation reads; takes them away, those who call c hand over the others alone then: kept[k] is set for each of before. */
bool param_is_unread(const Inst *p);
void comp_drop_unread(Comp *c, bool *kept);
void callee_drop_unread(Inst *i, Arena *scratch); /* the same of a computation that i alone calls, which gets the others no more */

/* Element k of a tuple: the operand of a tuple instruction; for others NULL, or a new get-tuple-element after t. */
Inst *tuple_element_known(const Inst *t, int64_t k);
Inst *tuple_element(Inst *t, int64_t k);
bool  is_element_of(const Inst *i, int64_t k); /* get-tuple-element, index=k */
/* New instructions, with t's or like's origin. */
Inst *tuple_new_element(Inst *t, int64_t k, Inst *before);
Inst *tuple_new(Comp *c, Inst *before, const Shape *shape, Inst *const *elems, const Inst *like);

/* Gives those that read t whole a new tuple of its elements. True when there was one. */
bool tuple_spell_out(Inst *t);

/* The shape of the elements k of s for which keep[k]; to[k] is the new number of k, -1: it goes. */
const Shape *tuple_kept_shape(Arena *a, const Shape *s, const bool *keep, int32_t *to);
/* A tuple of the elements of t that are kept. */
Inst *tuple_kept(Inst *t, Inst *before, const Shape *shape, const bool *keep, Arena *scratch);
/* t, of which nobody reads but elements, becomes one of this shape: element k is element to[k]. */
void tuple_renumber(Inst *t, const Shape *shape, const int32_t *to);
void tuple_sweep(Inst *t); /* elements of t that are read by nobody go */

/* Another root; the old one, and what only it needed, goes. */
void comp_set_root(Comp *c, Inst *root, Arena *scratch);

#endif
