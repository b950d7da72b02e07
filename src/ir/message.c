/* Who sends to whom. */
#include "ir/message.h"

#include <stdlib.h>
#include <string.h>

/* The pairs {{0,1},{1,2}} of _xla_send_recv_source_target_pairs as 0 1 1 2. False: there are none. */
static bool pairs_of(Arena *a, const Inst *i, Ints *pairs)
{
    const Attr *attrs = inst_attr(i, ATTR_FRONTEND_ATTRIBUTES);
    const char *text = NULL;
    for (int32_t k = 0; attrs && k < attrs->value.key_values->n; k++)
        if (strcmp(attrs->value.key_values->v[k].key, "_xla_send_recv_source_target_pairs") == 0)
            text = attrs->value.key_values->v[k].value;
    *pairs = ints_make(a, text ? (int32_t)strlen(text) : 0);
    pairs->n = 0;
    while (text && *(text += strcspn(text, "0123456789-"))) {
        char *end;
        *ints_at(*pairs, pairs->n++) = strtoll(text, &end, 10);
        text = end > text ? end : text + 1;
    }
    return text != NULL;
}

/* Ids are partitions where there is a channel. Source: reference operations 17. */
static bool across_partitions(const Inst *i)
{
    return inst_int(i, ATTR_CHANNEL_ID, 0) > 0;
}

int64_t message_partner(Arena *a, const Inst *i, MessageEnd end, Devices on, int64_t device)
{
    Ints    pairs;
    int64_t replica = device / on.partitions, partition = device % on.partitions;
    int64_t id = across_partitions(i) ? partition : replica;
    int32_t other = end == MESSAGE_TARGET ? 1 : 0;
    if (!pairs_of(a, i, &pairs))
        return device;
    for (int32_t k = 0; k + 1 < pairs.n; k += 2)
        if (pairs.v[k + 1 - other] == id)
            return across_partitions(i) ? replica * on.partitions + pairs.v[k + other] : pairs.v[k + other] * on.partitions + partition;
    return -1;
}

static const char *pairs_refused(Arena *a, const Inst *i, Devices on)
{
    Ints      pairs;
    bool      one = on.replicas == 1 && on.partitions == 1;
    long long have = across_partitions(i) ? on.partitions : on.replicas;
    if (!pairs_of(a, i, &pairs))
        return one ? NULL : "does not say between which devices (_xla_send_recv_source_target_pairs)";
    if (pairs.n % 2)
        return "has an odd number of ids in _xla_send_recv_source_target_pairs";
    for (int32_t k = 0; k < pairs.n; k++) {
        if ((pairs.v[k] < 0 || pairs.v[k] >= have) && one)
            return "needs more devices than one (--replicas, --partitions)";
        if (pairs.v[k] < 0 || pairs.v[k] >= have)
            return arena_printf(a, "names %s %lld in its pairs, but there are %lld (%s)", across_partitions(i) ? "partition" : "replica",
                                (long long)pairs.v[k], have, across_partitions(i) ? "--partitions" : "--replicas");
        for (int32_t j = k % 2; j < k; j += 2)
            if (pairs.v[j] == pairs.v[k])
                return arena_printf(a, "has pairs of which two have %lld as their %s", (long long)pairs.v[k], k % 2 ? "target" : "source");
    }
    return NULL;
}

/* Some send of the module has this channel, these devices and data of this type. */
static bool is_sent(Arena *a, const Inst *recv)
{
    Ints of_recv, of_send;
    bool given = pairs_of(a, recv, &of_recv);
    for (const Comp *c = recv->comp->module->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            if (i->op == OP_SEND && inst_int(i, ATTR_CHANNEL_ID, 0) == inst_int(recv, ATTR_CHANNEL_ID, 0) &&
                shape_equal(i->shape->elems[0], recv->shape->elems[0]) &&
                (!given || !pairs_of(a, i, &of_send) || ints_equal(of_recv, of_send)))
                return true;
    return false;
}

const char *message_refused(Arena *a, const Inst *i, Devices on)
{
    if (i->op != OP_SEND && i->op != OP_RECV)
        return NULL; /* as its start */
    if (inst_bool(i, ATTR_IS_HOST_TRANSFER))
        return "with the host is not supported";
    const char *refused = pairs_refused(a, i, on);
    if (refused)
        return refused;
    return i->op == OP_RECV && !is_sent(a, i) ? "has no send of its channel, type and devices in the module" : NULL;
}

const char *feed_refused(const Inst *i, bool infeeds, bool outfeeds)
{
    if (i->op == OP_INFEED && !infeeds)
        return "needs data: give --infeed=F.npz with infeed0, infeed1, ...";
    return i->op == OP_OUTFEED && !outfeeds ? "needs a file for its data: give --outfeed=F.npz" : NULL;
}
