/* Scatters as work for many threads: whether updates have an order. */
#ifndef ANALYSIS_SCATTER_H
#define ANALYSIS_SCATTER_H

#include "ir/inst.h"

/* The size of the windows of x along dimension d of what it updates. */
int64_t scatter_window_size(const Inst *x, int32_t d);
/* Updates are one wide wherever indices say where they go: two of them meet whole or not at all. */
bool scatter_places_whole(const Inst *x);
/* An update is what is there from then on. */
bool scatter_replaces(const Inst *x);
/* Whether elements of this type may become those and other values by op in any order, each in the one step that devices have for it: integers, and where floats is set floats, of which
 * sums and products round otherwise and extremes may be either zero. */
bool updates_have_no_order(Type t, Op op, bool floats);
/* Threads may make updates in any order: no two meet, as the text says, or what is made of those that do is the same. floats: also where sums of floats round otherwise. */
bool scatter_has_no_order(const Inst *x, bool floats);
/* Likewise, or it is known which one counts: each update can have a thread. */
bool scatter_goes_at_once(const Inst *x, bool floats);

#endif
