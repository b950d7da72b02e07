/* infeed, outfeed, send, recv. Source: reference operations 17.
 *
 * An infeed takes its data from the host, leaf by leaf, when it runs, an outfeed gives it away; instructions run in stored order, which
 * keeps that of the tokens. What is sent waits at the device that receives it, in order, until a recv-done of its channel takes it; that of a
 * device that is no target has zeros. A device without pairs sends to itself. Sends and recvs of the host are refused. */
#include <stdlib.h>
#include <string.h>

#include "eval/engine.h"
#include "eval/team.h"

EvalFn eval_transfer;

/* What was sent and not yet received, oldest first. */
struct Sent {
    Sent    *next;
    int64_t  channel;
    Literal *data;
};

static Literal *fed(Eval *e, const Inst *i, const Shape *s)
{
    if (s->type == TYPE_TOKEN)
        return literal_token();
    if (!shape_is_tuple(s)) {
        Literal *from = e->options->host->infeed(e->options->host->cookie, s), *own;
        if (!from)
            return eval_fail(e, i, "infeed %%%s has no data of type %s", i->name, shape_text(e->arena, s));
        own = eval_copy(e, i, from);
        literal_unref(from);
        return own;
    }
    Literal **v = ARENA_ARRAY(e->arena, Literal *, s->n_elems);
    for (int32_t k = 0; k < s->n_elems && !e->failed; k++)
        v[k] = fed(e, i, s->elems[k]);
    return eval_tuple_of(e, s->n_elems, v);
}

static void give(Eval *e, const Literal *l)
{
    for (int32_t k = 0; k < l->n_elems; k++)
        give(e, l->elems[k]);
    if (type_is_array(l->type))
        e->options->host->outfeed(e->options->host->cookie, literal_ref(l));
}

static Literal *with_token(Eval *e, Literal *data)
{
    Literal *v[] = {data, literal_token()};
    return eval_tuple_of(e, 2, v);
}

/* (data, u32[], token), of which nobody reads the first two. */
static Literal *pending(Eval *e, const Inst *i, Literal *data)
{
    Literal *v[] = {data, eval_zeros(e, i, i->shape->elems[1]), literal_token()};
    return eval_tuple_of(e, 3, v);
}

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

/* The device at the other end: this one's target (end 1) or source (end 0), -1: it has none. */
static int64_t partner(Eval *e, const Inst *i, int end)
{
    Ints    pairs;
    int64_t replica = e->device / e->on.partitions, partition = e->device % e->on.partitions;
    int64_t id = across_partitions(i) ? partition : replica;
    if (!pairs_of(e->arena, i, &pairs))
        return e->device;
    for (int32_t k = 0; k + 1 < pairs.n; k += 2)
        if (pairs.v[k + 1 - end] == id)
            return across_partitions(i) ? replica * e->on.partitions + pairs.v[k + end] : pairs.v[k + end] * e->on.partitions + partition;
    return -1;
}

/* Puts data where device `to` finds it. */
static void put(Eval *to, const Inst *i, Literal *data)
{
    Sent **end = &to->sent;
    while (*end)
        end = &(*end)->next;
    *end = ARENA_NEW(to->arena, Sent);
    **end = (Sent){.channel = inst_int(i, ATTR_CHANNEL_ID, 0), .data = data};
}

static void send(Eval *e, const Inst *i, Literal *data)
{
    int64_t target = partner(e, i, 1);
    if (target < 0)
        return;
    put(e->team ? team_device(e->team, target) : e, i, literal_ref(data));
    if (e->team)
        team_wake(e->team, target);
}

static Literal *start_receiving(Eval *e, const Inst *i)
{
    Literal *zeros = eval_zeros(e, i, i->shape->elems[0]);
    if (zeros && partner(e, i, 0) < 0)
        put(e, i, literal_ref(zeros));
    return pending(e, i, zeros);
}

static Sent **oldest(Eval *e, int64_t channel)
{
    Sent **at = &e->sent;
    while (*at && (*at)->channel != channel)
        at = &(*at)->next;
    return at;
}

static Literal *receive(Eval *e, const Inst *i)
{
    int64_t channel = inst_int(i, ATTR_CHANNEL_ID, 0);
    while (e->team && !*oldest(e, channel) && team_wait(e, i))
        continue;
    Sent **at = oldest(e, channel);
    if (!*at)
        return eval_fail(e, i, "recv-done %%%s: nothing has been sent on channel %lld", i->name, (long long)channel);
    Literal *data = (*at)->data;
    *at = (*at)->next;
    return data;
}

void transfer_end(Eval *e)
{
    for (; e->sent; e->sent = e->sent->next)
        eval_drop(e, e->sent->data);
}

Literal *eval_transfer(Eval *e, const Inst *i, Literal **x)
{
    const char *refused = transfer_refused(e->arena, i, e->options->host, e->on);
    if (refused)
        return eval_fail(e, i, "%s %s (%%%s)", op_name(i->op), refused, i->name);
    switch (i->op) {
    case OP_INFEED:
        return with_token(e, fed(e, i, i->shape->elems[0]));
    case OP_OUTFEED:
        give(e, x[0]);
        return literal_token();
    case OP_SEND:
        send(e, i, x[0]);
        return pending(e, i, eval_move(x, 0));
    case OP_SEND_DONE:
        return literal_token();
    case OP_RECV:
        return start_receiving(e, i);
    case OP_RECV_DONE:
        return with_token(e, receive(e, i));
    default:
        die("%s transfers nothing", op_name(i->op));
    }
}

/* Before anything runs */

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

const char *transfer_refused(Arena *a, const Inst *i, const EvalHost *host, Devices on)
{
    if ((i->op == OP_INFEED || i->op == OP_OUTFEED) && (on.replicas > 1 || on.partitions > 1))
        return "is not supported by the evaluator on several devices";
    switch (i->op) {
    case OP_INFEED: return host && host->infeed ? NULL : "needs data: give --infeed=F.npz with infeed0, infeed1, ...";
    case OP_OUTFEED: return host && host->outfeed ? NULL : "needs a file for its data: give --outfeed=F.npz";
    case OP_SEND: case OP_RECV: break;
    default: return NULL; /* as its start */
    }
    if (inst_bool(i, ATTR_IS_HOST_TRANSFER))
        return "with the host is not supported by the evaluator";
    const char *refused = pairs_refused(a, i, on);
    if (refused)
        return refused;
    return i->op == OP_RECV && !is_sent(a, i) ? "has no send of its channel, type and devices in the module" : NULL;
}
