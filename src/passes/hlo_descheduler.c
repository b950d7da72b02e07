/* hlo-descheduler - drops the schedule.
 *
 *   HloModule m, is_scheduled=true        =>      HloModule m
 *
 * Instructions run in the order of the text no longer, but in any that suits. */
#include "config.h"

#include "passes/pass.h"

bool pass_hlo_descheduler(Module *m, PassCtx *cx)
{
    if (!m->is_scheduled || cx->limit < 1)
        return false;
    m->is_scheduled = false;
    cx->rewrites++;
    return true;
}
