/* What is left of collectives on several devices: places where devices hand blocks of bytes to each other, as they lie in memory, or to the host. All
 * arithmetic and all rearranging around them is ordinary instructions (expand_collective.c), the same on every device. */
#ifndef EMIT_EXCHANGE_H
#define EMIT_EXCHANGE_H

#include "ir/groups.h"

/* The n participants of a group are numbered in its order.
 *
 *   GATHER     [1 block]  -> [n blocks]   those of all, in order
 *   TRADE      [n blocks] -> [n blocks]   block k goes to participant k; what comes stands in the order of who sent it
 *   BROADCAST  [1 block]  -> [1 block]    the first participant's; zeros for a device in no group
 *   PERMUTE    [1 block]  -> [1 block]    that of the device that sends to this one; zeros if there is none
 *
 *   SEND       [1 block]  ->              to the device that this one sends to, if there is one; it does not wait for it
 *   RECEIVE               -> [1 block]    the oldest that was sent here on the channel; zeros for a device that nobody sends to
 *   INFEED                -> [1 block]    the next array of the host's for this device, by rows
 *   OUTFEED    [1 block]  ->              the next array for the host, by rows
 *   CHECK      the second operand, a pred, must be true, or the run fails; the first is the result. Nothing is exchanged.
 *
 * In groups of different sizes n is the largest one; blocks that a group has no participant for are left as they were. */
typedef enum ExchangeKind {
    EXCHANGE_GATHER, EXCHANGE_TRADE, EXCHANGE_BROADCAST, EXCHANGE_PERMUTE, EXCHANGE_SEND, EXCHANGE_RECEIVE, EXCHANGE_INFEED,
    EXCHANGE_OUTFEED, EXCHANGE_CHECK
} ExchangeKind;

typedef struct Exchange {
    ExchangeKind kind;
    int32_t      step;    /* which of its collective's exchanges this is */
    int64_t      channel; /* -1: none */
    int64_t      bytes;   /* of a block */
    IntsList     groups;  /* of devices that meet; the later kinds: none */
    IntsList     pairs;   /* PERMUTE, SEND, RECEIVE: from and to */
    const char  *op, *name, *type; /* of the collective: "all-reduce", "sum", "f32[4] (f32[4])" */
    const char  *failure; /* CHECK: what is wrong when it fails */
    const char  *id;      /* a C identifier, given by the planner; NULL before */
} Exchange;

#endif
