/* What a module is made of, in figures. */
#ifndef ANALYSIS_STAT_H
#define ANALYSIS_STAT_H

#include "ir/inst.h"

typedef struct KernelStat {
    const Inst *inst;
    int64_t     runs;         /* when the module runs once */
    int64_t     bytes, flops; /* of one run */
    bool        library;
} KernelStat;

typedef struct Stat {
    int64_t     instructions, computations;
    int64_t     kernels, fusions, library_calls; /* fusions and library calls are kernels; as often as they stand in the text */
    int64_t     bytes, flops;                    /* of all runs of all kernels; flops: of fused instructions too */
    int64_t     arguments, results, constants, temporaries; /* bytes */
    int64_t     unknown_trips;                   /* loops whose trips are not known, counted as one */
    int64_t     elided;                          /* constants without values */
    const Inst *worst;                           /* runs when most temporaries are there; NULL: there are none */
    int64_t     of_op[OP_COUNT];                 /* instructions */
    VEC(KernelStat) list;                        /* in the order of the text */
    VEC(const char *) unknown_calls;             /* targets of custom calls that hlo-run would refuse, each once */
} Stat;

void module_stat(Arena *a, Module *m, Stat *out); /* uses aux of instructions */

#endif
