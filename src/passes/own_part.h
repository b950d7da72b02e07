/* Whether each device cuts its own part out of what the devices of its group all have. */
#ifndef PASSES_OWN_PART_H
#define PASSES_OWN_PART_H

#include "ir/inst.h"

/* The dimension along which slice, a dynamic slice of the result of a collective, takes one of equal parts on each device, and the number of that part for
 * each device of each of the collective's groups; -1: it does something else, or it is not known. The start is computed for each of the devices. */
int32_t own_part_numbers(Arena *scratch, const Inst *slice, const Inst *collective, IntsList *numbers);

/* The dimension along which slice, a dynamic slice of the result of a collective, takes part k on the device that is number k of its group, of as many equal
 * parts as the group has devices; -1: it does something else, or it is not known. */
int32_t own_part_dim(Arena *scratch, const Inst *slice, const Inst *collective);

#endif
