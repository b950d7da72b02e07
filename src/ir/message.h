/* Messages from device to device: send and recv. What a device sends waits at its target until a recv-done of the channel takes it, oldest first;
 * that of a device that is no target has zeros. _xla_send_recv_source_target_pairs says who is whose; ids are partitions where there is a
 * channel, else replicas. Source: reference operations 17. */
#ifndef IR_MESSAGE_H
#define IR_MESSAGE_H

#include "ir/groups.h"

typedef enum MessageEnd { MESSAGE_SOURCE, MESSAGE_TARGET } MessageEnd;

/* The device at the other end of a send or recv, -1: there is none. Without pairs a device sends to itself. */
int64_t message_partner(Arena *a, const Inst *i, MessageEnd end, Devices on, int64_t device);

/* Why a send or recv cannot be done on these devices, in a's memory; NULL: it can, or it is another instruction. */
const char *message_refused(Arena *a, const Inst *i, Devices on);

/* Why an infeed or outfeed cannot be done by a host that has arrays for the one, or takes those of the other; NULL: it can, or it is another
 * instruction. */
const char *feed_refused(const Inst *i, bool infeeds, bool outfeeds);

#endif
