/* How much memory a module needs besides its arguments, constants and results, when its instructions run in the order of the
 * schedule: each kernel's result has a buffer from then on until its last reader is done. Updates (dynamic-update-slice, scatter, and
 * fusions that end in one) write into their operand where nothing else reads that, and so do kernels that go element by element or row by row (overwrite.h); the state of a loop stays in one place, and what is
 * neither a temporary of the caller nor handed on unchanged is copied into it first. A result in the memory of an argument (input_output_alias) that is read
 * after the result has been made is a temporary until the end; loops and updates work in the memory of such an argument. */
#ifndef ANALYSIS_PEAK_H
#define ANALYSIS_PEAK_H

#include "ir/inst.h"

/* Bytes at the worst moment; *at: the instruction of the entry that runs then, NULL when nothing is needed. Uses i->aux. */
int64_t module_peak(Module *m, const Inst **at);

/* The same of one computation, when needs has the peaks of those that it runs (Comp * to bytes as intptr_t). */
typedef struct CompPeak {
    int64_t     bytes;
    double      excess; /* what is above limit, summed over all moments */
    const Inst *at;     /* NULL: nothing is needed */
} CompPeak;
CompPeak comp_peak(const Comp *c, const Map *needs, int64_t limit);

/* Of the order of schedule_comp, that of schedule_list and both with schedule_late the one with the lowest peak: what all modules run in. needs may be NULL: nothing is known of
 * what c runs. *peak is set. In a. */
const Inst **schedule_for_peak(Arena *a, const Comp *c, const Map *needs, int32_t *n, CompPeak *peak);

#endif
