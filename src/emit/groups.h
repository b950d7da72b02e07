/* The statements of a kernel as groups, each of which needs nothing of the others but what is in memory, and values that it may compute again for itself.
 *
 *     s = 0                                  group 1
 *     for k: s = s + x[k]
 *     a[0] = s
 *     m = y[0]                               of no group: whoever needs it computes it
 *     for k: b[k] = x[k] * m                 group 2
 *
 * Groups follow each other; the next one begins when the one before is over. */
#ifndef EMIT_GROUPS_H
#define EMIT_GROUPS_H

#include "emit/kernel_ir.h"

typedef struct StmtGroup {
    int32_t from, to; /* statements of the kernel's body by number; the last one is to - 1 */
} StmtGroup;

typedef struct StmtGroups {
    int32_t       n_stmts;
    const KStmt **stmts;
    bool         *again;  /* declares a value that any group may compute for itself; alone it is no group */
    int32_t       n;
    StmtGroup    *v;
} StmtGroups;

void kernel_groups(Arena *a, const Kernel *k, StmtGroups *out);

#endif
