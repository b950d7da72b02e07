/* Questions and edits that several passes share. */
#ifndef PASSES_UTIL_H
#define PASSES_UTIL_H

#include "ir/inst.h"

/* How a computation is called: the bits of comp->mark after comps_mark_uses. */
enum CompUse {
    COMP_FLOW = 1,     /* entry, while, conditional, call: its instructions run one by one */
    COMP_EMBEDDED = 2, /* reducers, comparators, ...: run once an element */
    COMP_FUSED = 4,    /* the body of a fusion */
    COMP_OPAQUE = 8    /* custom-call, async wrappers: its form is fixed by others */
};
void comps_mark_uses(Module *m);
Map  comps_applied(Module *m, Arena *scratch); /* those with COMP_EMBEDDED */

/* May be replaced or merged: no effect, no control edges, no dynamic size, and no sharding that a partitioned run needs. */
bool inst_is_free(const Inst *i);
/* Stays although nobody uses it: an effect, control edges, or a start whose done stays. */
bool inst_must_stay(const Inst *i);
/* Deletes i when it is dead, then what that leaves dead among its operands, and so on. Gives the number of instructions deleted;
 * comp of a deleted one is NULL. */
int64_t inst_delete_dead(Inst *i, Arena *scratch);

/* Deletes the dead instructions of c, at most so many (but no done without its start), in one sweep from its end; gives their number. */
int64_t comp_sweep_dead(Comp *c, int64_t most);

/* Puts the instructions of c, whose operands may have come to stand after them, in order again, each as near to its place as can be. Uses aux. */
void comp_restore_order(Comp *c, Arena *scratch);

/* Puts a copy of the body of a call or fusion in its place (inline.c). */
void inst_inline(Inst *call, Arena *scratch);

/* comp->aux becomes the first of the computations that are equal to it by structure (cse.c). */
void comps_find_equal(Module *m, Arena *scratch);

/* An array all of whose elements are one known value: a constant, or broadcasts and reshapes of one. NULL when it is not; else
 * the constant, whose element 0 is the value. */
const Literal *splat_value(const Inst *i);

/* An array {0, s, 2 s, ...} of integers gives s; 0: its elements do not count like that, or are few. */
int64_t literal_step(const Literal *l);

/* Two of these with the same operands and attributes have the same value: no parameter, effect, control edge, collective, token, barrier,
 * or constant of unknown value. */
bool inst_is_value(const Inst *i);
/* The same attributes, but for those that say nothing about the value. */
bool inst_attrs_equal(const Inst *a, const Inst *b);
/* Likewise of exchanges, which may each have a channel of their own. */
bool inst_exchanges_alike(const Inst *a, const Inst *b);
bool attr_is_comment(const Attr *x);
/* The attributes that say what is done; what is said of the value alone stays behind, and so does a sharding of a value of other sizes. */
void inst_take_attrs(Inst *to, const Inst *from);
/* Likewise where i has another value from now on. */
void inst_set_shape(Inst *i, const Shape *shape);

/* Of everything in a shape, layouts too. */
uint64_t shape_hash(const Shape *s);

bool ints_increase(Ints x); /* each above the one before */

/* One step of walking two shapes of one reshape together: the shortest runs of dimensions with the same number of elements. Begins with {0}; false
 * at the end.
 *   from [2,3,4] to [6,2,2]:   2,3 | 4   against   6 | 2,2 */
typedef struct ShapeRun {
    int32_t from, from_end, to, to_end;
} ShapeRun;
bool shape_next_run(const Shape *from, const Shape *to, ShapeRun *r);

/* A broadcast b reshaped to shape `to` is the broadcast, along dims, of its operand reshaped to sizes:
 *   broadcast x [8] -> [4,8], reshape [2,2,8]       =>   broadcast x [8] -> [2,2,8]
 *   broadcast x [6] -> [4,6], reshape [4,2,3]       =>   reshape x [2,3], broadcast -> [4,2,3]
 * False: it is not. */
bool broadcast_reshaped(Arena *a, const Inst *b, const Shape *to, Ints *sizes, Ints *dims);

#endif
