/* Editing the state of a loop. A loop is edited where its state is a tuple of arrays and tuples without shardings and dynamic sizes, the
 * same shape with layouts everywhere, and where no other loop has its body and condition: while_editable says so. Then
 *
 *   body:       %p = parameter(0)     its readers: get-tuple-element; ROOT tuple(next 0, next 1, ...)
 *   condition:  %q = parameter(0)     likewise
 *   outside:    %w = while(tuple(init 0, init 1, ...))
 *
 * is what the functions here see and keep: readers of a whole tuple are given a new one, of its elements. */
#ifndef PASSES_WHILE_H
#define PASSES_WHILE_H

#include "passes/flow.h"
#include "passes/pass.h"

/* May the state of w be edited? A body or condition that others call too is copied for w when there is room. */
bool while_editable(Flow *f, Inst *w);
bool while_could_be_edited(const Flow *f, const Inst *w); /* the same, without copying anything */

/* Whether a trip leaves element k as it is. */
bool while_keeps(const Inst *w, int64_t k);
/* What element k is when the loop begins and after a trip. NULL when that is not one instruction. */
Inst *while_init(const Inst *w, int64_t k);
Inst *while_next(const Inst *w, int64_t k);
/* For each element of the parameter of a body or condition c: whether others read it than the root, which hands it on. All, where the
 * parameter is read whole. */
void state_find_read(const Comp *c, bool *read);
void state_find_elements_read(const Comp *c, bool *read); /* but for those who read it whole */
/* Those readers of element k read instead[k] where that is not NULL. True when there was one. */
bool state_read_instead(Comp *c, Inst *const *instead);

/* Constants among the elements that no trip changes, scalars or all with broadcasts of scalars: the loop reads a copy of its own. True when it
 * did not before. */
bool while_sink_constants(Flow *f, Inst *w, bool scalars);

/* Takes away the elements of the state that nobody needs but they themselves (while_needed.c). */
bool while_drop_unneeded(Flow *f, Inst *w);
/* Takes away the elements k of the state for which keep[k] is false: nobody reads them but for each other. */
void while_keep(Flow *f, Inst *w, const bool *keep);
/* Adds elements that no trip changes: they begin as init. Gives the number of the first one. */
int32_t while_append(Flow *f, Inst *w, int32_t n, Inst *const *init);

/* The loop goes: its elements at its end are these. */
void while_replace(const Flow *f, Inst *w, Inst *const *state);

/* A pass that moves `what` in front of loops; move_out says how many of one. */
bool while_pass_moves_out(Module *m, PassCtx *cx, int64_t (*move_out)(Flow *f, Inst *w), const char *what);

#endif
