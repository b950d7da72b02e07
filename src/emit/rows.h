/* Iterations of a part (threads.h) that several threads share: a row's sum, softmax, a norm, running sums along it, the sum of a column. What a thread does for one value of the part's
 * loops is a row of steps; loops in it are dealt out to the threads, what they sum up is combined, everything else each thread computes for itself.
 *
 *     acc = 0                                    ROW_SCALAR    all threads
 *     for k: acc = acc + x[i * 1000 + k]         ROW_LOOP      thread t does k = t, t + n, ...; then acc is that of all threads
 *     m = acc / 1000                             ROW_SCALAR
 *     for k: out[i * 1000 + k] = x[...] - m      ROW_LOOP
 *     mean[i] = m                                ROW_STORE     one thread
 *
 * A thread alone touches an element that the part writes: the same one in all loops, at the same value of the loop. So nobody has to wait for memory. What comes
 * behind the last loop is one thread's, if that loop combines something: whoever read before that has read when the combined value is there, of this loop and of others. */
#ifndef EMIT_ROWS_H
#define EMIT_ROWS_H

#include "emit/threads.h"

typedef enum RowStepKind { ROW_SCALAR, ROW_LOOP, ROW_STORE } RowStepKind;

typedef struct RowStep {
    RowStepKind  kind;
    const KStmt *stmt;       /* LOOP: the outermost one of its nest */
    const KStmt *dealt;      /* LOOP: the one whose iterations are dealt out */
    const KStmt *beside;     /* LOOP: NULL, or the only loop in that one, along which it reads memory and across which it does not, where loops store nothing: its iterations may be dealt out, too */
    int32_t      n_combined;
    const KStmt **combined;  /* LOOP: assignments acc = acc op x, one for each accumulator */
    int32_t      n_chosen;   /* LOOP: of a choice of pairs, the accumulators' */
    const KTemp **chosen;    /* elements, behind which in the loop's body stands what combines them with the accumulators, */
    const KStmt *choose;     /* from here on; n_combined is 0 then */
    const KStmt **starts;    /* the accumulators' declarations */
    bool         overwrites; /* stores where others have read, before a loop that combines something */
    bool         scan;       /* LOOP: other statements of the loop use what is combined so far, which may start as anything */
} RowStep;

typedef struct RowPart {
    int32_t  n_steps;
    RowStep *steps;
    int32_t  n_loops;     /* steps that are loops */
    int64_t  longest;     /* trips of the longest loop that is dealt out */
    int64_t  array_bytes; /* of the arrays that belong to a row */
    bool     sums;        /* there is something to combine, */
    bool     scans;       /* or to be combined with all that is before it */
    bool     own;         /* some of what such loops read along them is no other row's */
    int32_t  tail;        /* steps from here on are for one thread */
    bool     column;      /* loops go down a column: neighbours in memory are neighbours in the part's last loop */
} RowPart;

/* False: the part has another form, or loops too short to share. */
bool kernel_row_part(Arena *a, const Kernel *k, const ThreadPart *part, RowPart *out);

/* row_scan.c: other statements of step's loop, in which accumulators are used so often in all, use what its accumulators have so far, but not what these sum up. */
bool kernel_is_scan(Arena *a, const Kernel *k, const RowStep *step, int32_t uses);
/* What the sums alone need of a scan's body. */
const KBlock *kernel_scan_sums(Arena *a, const KBlock *body, const RowStep *step);

#endif
