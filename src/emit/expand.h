/* Opcodes that are written as other instructions before anything is planned. */
#ifndef EMIT_EXPAND_H
#define EMIT_EXPAND_H

#include "emit/program.h"
#include "ir/groups.h"

/* m, or a copy of it, which lives as long as a, without scan, rng, scaled-dot, ragged-dot, ragged-all-to-all and sizes that are known
 * only when run; on several devices without
 * collectives of several participants either, but for those that cannot be done. Loops over elements are fusions of one while (element_loop.h). o->runtime: large reductions are made in parts, and dots and transposes inside fusions that are worth a call of it stand for
 * themselves. o->products: dots and convolutions that are for a device's library, likewise, but for those whose fusion is its as a whole; arrays of convolutions lie as it wants them. exchanges: gets the Exchange of each instruction that stands for one. */
const Module *module_expanded(Arena *a, const Module *m, Devices on, const PlanOptions *o, Map *exchanges);

/* These replace one instruction of a module that may be changed. */
void expand_scan(Inst *i);
void expand_rng(Inst *i);
void expand_ragged_dot(Inst *i);
void expand_scaled_dot(Inst *i);

/* A dot of floats of a byte that is worth a call of the runtime in a wider type; what computes it, of operands outside, in front of at. */
bool  dot_widens(const Inst *dot);
Inst *dot_widened(Inst *at, const Inst *dot, Inst *const *operands);
void  expand_narrow_dot(Inst *i);

/* The largest or smallest of f16 over windows that overlap. */
bool narrow_window_expands(const Inst *i);
void expand_narrow_window(Inst *i);

/* A dot over several dimensions that is worth a call of the runtime once copies have made them one; likewise. */
bool  dot_joins(const Inst *dot);
Inst *dot_joined(Inst *at, const Inst *dot, Inst *const *operands);
void  expand_terms(Inst *i);

/* Puts the bodies of those fusions and calls of c, and of what they have in them, in their places. */
void expand_calls(Comp *c, bool (*which)(const Inst *));

/* A fusion of body in front of i, with its origin. */
Inst *expand_fusion(Inst *i, Word kind, Comp *body, int32_t n, Inst *const *operands);

/* A dot that is a sum down columns. */
bool dot_is_beside(const Inst *dot);
void expand_beside(Inst *i);

/* The dot or convolution of fusion i that is a call with the rest as its epilogue, made for a row of so many elements; NULL: there is none. */
const Inst *output_hero(const Inst *i, int64_t *row);
bool output_expands(const Inst *i);
void expand_output(Inst *i);
bool product_expands(const Inst *i);
void expand_product(Inst *i);
/* x of i's body, which is made of its operands, in front of i. */
Inst *output_outside(Inst *i, const Inst *x);
/* What computes i, a fusion, when n instructions of its body are computed outside. Deletes i. */
Inst *output_replace(Inst *i, int32_t n, const Inst *const *inside, Inst *const *outside);

/* A convolution whose features lie apart that is worth copies in which they are neighbours. */
bool conv_turns(const Inst *i);
void expand_conv(Inst *i);
/* A convolution of f16 that has fewer products as one of f32. */
bool conv_widens(const Inst *i);
/* s with its dimensions in that order in memory, the fastest one first. */
const Shape *expand_ordered(Arena *a, const Shape *s, const int64_t *order);

bool transpose_expands(const Inst *i);
void expand_transposes(Inst *i);

bool reduce_expands(const Inst *i);
void expand_reduction(Inst *i);
bool row_sums_expand(const Inst *i);
void expand_row_sums(Inst *i);
bool sum_over_rows_expands(const Inst *i);
void expand_sum_over_rows(Inst *i);
/* On a device: a sum of each of so many rows, of so many elements in all, is worth threads of its own before anything is made of it. */
bool rows_are_for_threads(int64_t rows, int64_t elements);
bool choice_expands(const Inst *i);
void expand_choice(Inst *i);
bool window_expands(const Inst *i);
void expand_windows(Inst *i);
bool whole_window_expands(const Inst *i);
void expand_whole_window(Inst *i);
/* Whether r, which reduces one array, is of an element type that sums keep their digits in, by one operation whose parts may be taken apart; what a part starts
 * with: what changes nothing, or the start itself where it may be taken twice. */
bool  reduction_has_parts(const Inst *r);
Inst *reduction_start_of_part(Inst *r);
/* i, or the root of i, a fusion, as `parts` in front of it, inside, and what `join` puts in the place of i outside: of r, which is i or was the root. */
void expand_in_two(Inst *i, Inst *(*parts)(Inst *r), void (*join)(Inst *i, const Inst *r, Inst *parts, Inst *start));

/* Of i, in the body of a fusion. */
bool extreme_expands(const Inst *i);
void expand_extreme(Inst *i);
/* A scatter of such elements, in rows. */
bool scatter_extreme_expands(const Inst *i);
void expand_scatter_extreme(Inst *i);

/* It is one call as it stands (attention_call.h). */
bool attention_stays(const Inst *i);
bool attention_expands(const Inst *i);
void expand_attention(Inst *i);

/* Whether a set-dimension-size leaves the full size; what others of a computation give, where that can be said in arrays of full size. */
bool size_is_full(const Inst *set);
void expand_sizes(Comp *c);

bool collective_expands(const Inst *i, Devices on);
void expand_collective(Inst *i, Devices on, Map *exchanges);
bool region_expands(const Inst *i, Devices on);
void expand_region(Inst *i, Devices on, Map *exchanges);

#endif
