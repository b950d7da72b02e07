/* packed.h - operands that are packed once, for many calls (hlort_packed).
 *
 * Of calls at the same time the first one fills the memory, others do as if there were none: nobody waits. How terms are added does not depend on it. */
#ifndef HLORT_PACKED_H
#define HLORT_PACKED_H

#include "runtime/gemm.h"
#include "runtime/pool.h"
#include "runtime/vec.h"

enum { PACKED_FRESH, PACKED_FILLING, PACKED_FILLED }; /* hlort_packed's state */
typedef enum PackedUse { PACKED_NOT, PACKED_READ, PACKED_FILL /* by the caller, who then says packed_done */ } PackedUse;

static inline PackedUse packed_use(hlort_packed *p, int64_t bytes)
{
    int32_t state = PACKED_FRESH;
    if (p->bytes < bytes)
        return PACKED_NOT;
    if (__atomic_compare_exchange_n(&p->state, &state, PACKED_FILLING, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
        return PACKED_FILL;
    return state == PACKED_FILLED ? PACKED_READ : PACKED_NOT;
}

static inline void packed_done(hlort_packed *p)
{
    __atomic_store_n(&p->state, PACKED_FILLED, __ATOMIC_RELEASE);
}

/* Columns that panels are made of, for n of them. */
static inline int64_t packed_columns(int64_t n)
{
    return hlort_ceildiv(n, HLORT_PACKED_COLUMNS) * HLORT_PACKED_COLUMNS;
}

/* Parts for threads that pack `count` operands. */
static inline Cut packed_cut(int64_t count, int64_t columns)
{
    const int64_t all = count * (columns / HLORT_PACKED_COLUMNS), size = hlort_ceildiv(all, POOL_MOST_PARTS) * HLORT_PACKED_COLUMNS;
    return (Cut){ .count = count, .members = 1, .pieces = hlort_ceildiv(columns, size), .size = size };
}

#endif
