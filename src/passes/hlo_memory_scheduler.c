/* hlo-memory-scheduler - an order of instructions that needs little memory, written down.
 *
 *   HloModule m                        =>      HloModule m, is_scheduled=true
 *
 * For each computation that runs, callees first, the order with the least peak of these is taken: the one in which unscheduled modules run
 * (post-order, updates of loop state late), and a list of what is ready, in which always that goes next which frees most and takes least;
 * and either with what frees no more than it takes just before what wants it.
 * Computations with several effects, and modules that have a schedule, keep their order. */
#include "config.h"

#include "analysis/cost.h"
#include "analysis/peak.h"
#include "passes/pass.h"
#include "passes/util.h"

/* What runs, then the rest, which nobody needs. */
static void put_in_order(Comp *c, const Inst *const *run, int32_t n)
{
    Inst *rest = c->first;
    for (int32_t k = 0; k < n; k++) {
        Inst *i = (Inst *)(uintptr_t)run[k];
        if (i == rest)
            rest = rest->next;
        else
            inst_move_before(i, rest);
    }
}

static void schedule(PassCtx *cx, Comp *c, Map *needs)
{
    Arena       *a = arena_new();
    int32_t      n;
    CompPeak     peak;
    const Inst **run = schedule_for_peak(a, c, needs, &n, &peak);
    put_in_order(c, run, n);
    comp_restore_order(c, cx->scratch); /* of the rest some are waited for all the same */
    map_put(needs, c, (void *)(intptr_t)peak.bytes);
    if (c == c->module->entry)
        pass_remark(cx, c->root, "%lld bytes of temporaries at the worst moment", (long long)peak.bytes);
    arena_free(a);
}

bool pass_hlo_memory_scheduler(Module *m, PassCtx *cx)
{
    if (m->is_scheduled || cx->limit < 1)
        return false;
    Map needs = map_new(cx->scratch), runs = module_runs(cx->scratch, m, NULL);
    for (Comp *c = m->first; c; c = c->next)
        if (map_has(&runs, c))
            schedule(cx, c, &needs);
    m->is_scheduled = true;
    cx->rewrites++;
    return true;
}
