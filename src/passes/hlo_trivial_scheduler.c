/* hlo-trivial-scheduler - the order of the text becomes the schedule.
 *
 *   HloModule m        =>      HloModule m, is_scheduled=true
 *
 * In that order everything runs from then on. */
#include "config.h"

#include "passes/pass.h"

bool pass_hlo_trivial_scheduler(Module *m, PassCtx *cx)
{
    if (m->is_scheduled || cx->limit < 1)
        return false;
    m->is_scheduled = true;
    cx->rewrites++;
    return true;
}
