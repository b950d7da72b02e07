/* Dynamic sizes that the text does not show. XLA takes the result of a set-dimension-size as dynamic also where its type is written
 * without <=, and so what is made of it. */
#ifndef IR_SPREAD_SIZES_H
#define IR_SPREAD_SIZES_H

#include "ir/inst.h"

/* Writes <= into the types of such instructions of the entry and of their readers, of a module that is verified. Nothing changes where one of them is
 * read by what has no rule for that (a loop, a call, a reshape), or is the result. */
void spread_sizes(Module *m);

#endif
