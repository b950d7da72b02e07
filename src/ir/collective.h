/* What collectives ask of the devices that a module runs on. */
#ifndef IR_COLLECTIVE_H
#define IR_COLLECTIVE_H

#include "ir/groups.h"

/* The arrays that i gives, one or a tuple; those of a start's (operands, results). */
const Shape *collective_given(const Inst *i);
/* Array k of one or a tuple. */
const Shape *collective_part(const Shape *s, int32_t k);

/* Why i cannot run on these devices, in a's memory: an id that there is no device for, a device without a group, sizes that do not fit the
 * groups. NULL: it can. */
const char *collective_refused(Arena *a, const Inst *i, Devices on);

#endif
