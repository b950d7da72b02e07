/* Parts of a kernel that need nothing of each other as one launch, whose blocks are dealt out to them:
 *
 *     if (blockIdx.x < 4)
 *         step_k_part(p1, p, g);
 *     else
 *         step_k_part_2(q1, q, h);
 *
 * They are parts that do not care how many threads a block has: what one thread does, the first of its block does. What a part writes no other may read or
 * write. A result may be where an operand was that an earlier part reads: then the other part waits for a launch of its own. */
#include "target-cuda/part.h"

enum { MOST_ABREAST = 64, MOST_PARAMS = 240 };

static int32_t params_of(const Kernel *k)
{
    return k->n_operands + k->n_results + 1;
}

static bool is_written(const Kernel *k, int32_t p)
{
    return p >= k->n_operands || k->params[p]->written;
}

static bool same_memory(const Kernel *k, int32_t p, int32_t q)
{
    int32_t memory = k->n_operands + k->n_results;
    return p == q || (p != memory && q != memory && kernel_same_memory(k, k->params[p], k->params[q]));
}

static bool conflict(const Kernel *k, const CudaPart *i, const CudaPart *j)
{
    for (int32_t p = 0; p < params_of(k); p++)
        for (int32_t q = 0; q < params_of(k) && i->threads.whole.uses[p]; q++)
            if (j->threads.whole.uses[q] && (is_written(k, p) || is_written(k, q)) && same_memory(k, p, q))
                return true;
    return false;
}

static bool takes_any_blocks(const CudaPart *part)
{
    return !part->copy && part->alone_threads % THREADS == 0 && (part->share == BY_THREAD || part->share == BY_ONE || part->share == BY_TURN) && cuda_part_blocks(part) > 0;
}

static int64_t shared_of(const CudaPart *part)
{
    return part->share == BY_TURN ? cuda_turn_shared(part) : cuda_alone_shared(part);
}

/* Of all the parts before it in the launch none needs the next one's memory. */
static bool goes_along(const Kernel *k, const CudaPart *parts, int32_t n, const bool *uses)
{
    int32_t params = 0;
    int64_t shared = shared_of(&parts[n]);
    if (n == MOST_ABREAST || !takes_any_blocks(&parts[n]))
        return false;
    for (int32_t p = 0; p < params_of(k); p++)
        params += uses[p] || parts[n].threads.whole.uses[p];
    for (int32_t j = 0; j < n; j++) {
        shared += shared_of(&parts[j]);
        if (conflict(k, &parts[j], &parts[n]))
            return false;
    }
    return params <= MOST_PARAMS && shared <= STATIC_SHARED;
}

static void set_blocks(CudaPart *parts, int32_t n)
{
    int64_t at = 0;
    for (int32_t k = 0; k < n && n > 1; k++) {
        parts[k].blocks = cuda_part_blocks(&parts[k]);
        parts[k].first_block = at;
        at += parts[k].blocks;
    }
}

void cuda_set_abreast(Arena *a, const Kernel *k, int32_t n, CudaPart *parts)
{
    for (int32_t j = 0; j < n; j += parts[j].abreast) {
        bool   *uses = ARENA_ARRAY(a, bool, params_of(k));
        int32_t m = 0, passes = cuda_count_passes(k, n - j, parts + j);
        parts[j].passes = passes > 1;
        do {
            for (int32_t p = 0; p < params_of(k); p++)
                uses[p] |= parts[j + m].threads.whole.uses[p];
            m++;
        } while (m < passes || (passes == 1 && takes_any_blocks(&parts[j]) && j + m < n && goes_along(k, parts + j, m, uses)));
        parts[j].abreast = m;
        parts[j].uses = uses;
        if (passes == 1)
            set_blocks(parts + j, m);
    }
}
