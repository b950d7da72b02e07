/* Does a pass leave what a module computes as it is? The module is evaluated before and after, on the same arguments, and the results are
 * compared. A Check has the arguments and what the module gave on them; it is the end of a PipelineWatch, and --bisect asks it by itself.
 *
 * Arguments come in sets:
 *   set 0      made up from a seed (data/fill.h)
 *   set 1..4   the same, but three of four elements of floats are -0, 0 and a subnormal number: each element is each of them once
 *   set 5..8   likewise NaN, infinity and minus infinity
 * On several devices (replica_count, num_partitions) each has its own.
 * Those that stay as they are keep the others from hiding in sums. Integers are as in set 0: they are indices, sizes, conditions.
 * A set with special values on which the evaluator does not come to an end (NaN in the condition of a loop) is left out, with a warning. */
#ifndef DRIVER_CHECK_H
#define DRIVER_CHECK_H

#include "passes/pass.h"

typedef struct CheckOptions {
    bool     plain, special; /* set 0, sets 1..8 */
    bool     exact;          /* else what data/compare.h allows, or check_shadow.c explains; the sign of zero counts in any case */
    uint64_t seed;
    int64_t  work, memory;   /* element operations and bytes that an evaluation may take, 0: any number */
    int64_t  trips;          /* iterations that a loop may have, likewise */
    int64_t  seconds;        /* that a run of a pass may take, likewise: what takes longer is named, and the process aborts */
} CheckOptions;

typedef struct Check Check;

/* NULL after reporting: what the evaluator cannot do, random numbers that depend on how often they are drawn, constants without values, too much
 * work. Nothing has run then, but for the last of these. */
Check *check_begin(const Module *m, const CheckOptions *o, Diag *d);
void   check_end(Check *c); /* NULL is allowed */

/* Evaluates m; where it gives something else than the module before, reports the first instruction that does, with `by` as the culprit
 * ("pass cse (run 3)"), and gives false. Else m is the module before of the next call. */
bool check_module(Check *c, const Module *m, const char *by, Diag *d);

/* Does so after each run that changed something, and stops the pipeline at a difference. After a run that counts on finite values sets 5..8 are not
 * compared; what they give then is what later runs have to keep. */
PipelineWatch check_watch(Check *c, Diag *d);
bool          check_failed(const Check *c); /* what the last check_module gave */
void          check_summary(const Check *c, FILE *to);

#endif
