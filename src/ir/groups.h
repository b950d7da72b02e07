/* Who takes part in a collective. A program runs as R replicas of P partitions each; process (r, p) is device r * P + p.
 *
 *   mode            chosen by                                       ids in groups   one group runs over
 *   cross replica   no channel_id                                   replicas        same p, its replicas
 *   cross partition channel_id, opcode without global ids           partitions      same r, its partitions
 *   cross both      channel_id, opcode with global ids              replicas        its replicas, of each all partitions
 *   flattened       use_global_device_ids (and channel_id)          devices         its devices
 *
 * Participants are in the order in which they are written. Source: reference operations 16.1. */
#ifndef IR_GROUPS_H
#define IR_GROUPS_H

#include "ir/inst.h"

typedef struct Devices {
    int64_t replicas, partitions;
} Devices;

enum { MOST_DEVICES = 1024 }; /* that anything is run on or emitted for */

static inline int64_t devices_n(Devices on) { return on.replicas * on.partitions; } /* it must fit */

typedef enum GroupMode { GROUP_CROSS_REPLICA, GROUP_CROSS_PARTITION, GROUP_CROSS_BOTH, GROUP_FLATTENED } GroupMode;

bool      group_takes_global_ids(Op op); /* does the opcode have use_global_device_ids? */
GroupMode group_mode(const Inst *i);

/* The replica_groups of i as lists of ids; none: one group of all. *ok false: too many devices to list. */
IntsList group_lists(Arena *a, const Inst *i, bool *ok);

/* How many ids there are in this mode; the product must fit. */
int64_t group_ids(GroupMode mode, int64_t replicas, int64_t partitions);

/* The devices of the group that device is in; lists: the groups as ids, none: one of all. n 0: it is in none. */
Ints group_devices(Arena *a, GroupMode mode, IntsList lists, int64_t replicas, int64_t partitions, int64_t device);

#endif
