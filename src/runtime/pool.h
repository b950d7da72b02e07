/* pool.h - parts of a job on several threads; the rest of the pool is in hlort.h.
 *
 * Everyone, the caller too, claims parts that nobody has and runs them: neighbours first, the same ones in each job of so many parts, then what is left of others'.
 * The caller goes on when all parts are done: it waits for parts that somebody claimed, never for a thread that has none. Which thread runs a part must not show in what
 * it computes. */
#ifndef HLORT_POOL_H
#define HLORT_POOL_H

#include "runtime/hlort.h"

enum { POOL_MOST_PARTS = 65535 };

int pool_threads(const hlort_pool *p); /* the caller's too; NULL: 1 */

/* work(job, part, memory) for parts 0 .. parts - 1, at most POOL_MOST_PARTS. memory is the thread's own, HLORT_WORK_BYTES: `mine` for the caller. A pool that is
 * at work for another caller, and NULL, leave all parts to this one. */
void pool_run(hlort_pool *p, void (*work)(void *job, int64_t part, void *memory), void *job, int64_t parts, void *mine);

#endif
