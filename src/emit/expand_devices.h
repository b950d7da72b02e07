/* What the expansions for several devices share: instructions in front of the one that is replaced, exchanges, numbers that differ from
 * device to device. */
#ifndef EMIT_EXPAND_DEVICES_H
#define EMIT_EXPAND_DEVICES_H

#include "emit/exchange.h"
#include "emit/expand.h"

typedef struct DeviceExpansion {
    Inst    *i;        /* what is replaced */
    Comp    *c;        /* where instructions go: before i, or at the end of a computation of its own */
    Inst    *before;
    Arena   *arena;    /* the module's */
    Devices  on;
    Map     *exchanges; /* Inst -> Exchange */
    IntsList groups;   /* of devices, all those that take part */
    IntsList pairs;    /* of a permute, from and to */
    int64_t  n;        /* the participants of the largest group */
    bool     even;     /* all groups have n */
    int32_t  steps;    /* exchanges so far */
} DeviceExpansion;

const Shape *dev_array(const DeviceExpansion *x, Type t, int32_t rank, const int64_t *dims);

/* An instruction called after the one that is replaced. */
Inst *dev_made(const DeviceExpansion *x, Op op, const Shape *s, int32_t n, Inst *const *operands, const char *what);
Inst *dev_reshaped(const DeviceExpansion *x, Inst *y, int32_t rank, const int64_t *dims);
Inst *dev_shaped(const DeviceExpansion *x, Inst *y, const Shape *want); /* same elements in want's dimensions and order in memory */
Inst *dev_tuple(const DeviceExpansion *x, int32_t n, Inst *const *v);
Inst *dev_converted(const DeviceExpansion *x, Inst *y, Type t);
Inst *dev_constant(const DeviceExpansion *x, Literal *l);
Inst *dev_zeros(const DeviceExpansion *x, const Shape *s);
Inst *dev_slice(const DeviceExpansion *x, Inst *y, const int64_t *from, const int64_t *end); /* stride 1 */
Inst *dev_padded(const DeviceExpansion *x, Inst *y, const int64_t *dims);                    /* zeros behind */

/* y, of n blocks where the kind has them, after the exchange. */
Inst *dev_exchanged(DeviceExpansion *x, ExchangeKind kind, Inst *y);

/* y, behind a test that ok, a pred, is true. */
Inst *dev_checked(const DeviceExpansion *x, Inst *y, Inst *ok, const char *failure);

/* expand_pieces.c: the result of a ragged-all-to-all, whose groups are known. */
Inst *dev_pieces(DeviceExpansion *x);

/* v[d] on device d, as s32[]. */
Inst *dev_number(const DeviceExpansion *x, Ints v);

#endif
