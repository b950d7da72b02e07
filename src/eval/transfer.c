/* infeed, outfeed, send, recv. Source: reference operations 17.
 *
 * An infeed takes its data from the host, leaf by leaf, when it runs, an outfeed gives it away; instructions run in stored order, which
 * keeps that of the tokens. Each device has data of its own. What is sent waits at the device that receives it, in order, until a recv-done of its channel takes it; that of a
 * device that is no target has zeros. A device without pairs sends to itself. Sends and recvs of the host are refused. */
#include <string.h>

#include "eval/engine.h"
#include "eval/team.h"
#include "ir/message.h"

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
        Literal *from = e->options->host->infeed(e->options->host->cookie, e->device, s), *own;
        if (!from)
            return eval_fail(e, i, "infeed %%%s has no data of type %s", i->name, shape_text(e->scratch, s));
        own = eval_copy(e, i, from);
        literal_unref(from);
        return own;
    }
    Literal **v = ARENA_ARRAY(e->scratch, Literal *, s->n_elems);
    for (int32_t k = 0; k < s->n_elems && !e->failed; k++)
        v[k] = fed(e, i, s->elems[k]);
    return eval_tuple_of(e, s->n_elems, v);
}

static void give(Eval *e, const Literal *l)
{
    for (int32_t k = 0; k < l->n_elems; k++)
        give(e, l->elems[k]);
    if (type_is_array(l->type))
        e->options->host->outfeed(e->options->host->cookie, e->device, literal_ref(l));
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

/* Puts data where device `to` finds it. */
static void put(Eval *to, const Inst *i, Literal *data)
{
    Sent **end = &to->sent;
    while (*end)
        end = &(*end)->next;
    *end = ARENA_NEW(to->scratch, Sent);
    **end = (Sent){.channel = inst_int(i, ATTR_CHANNEL_ID, 0), .data = data};
}

static void send(Eval *e, const Inst *i, Literal *data)
{
    int64_t target = message_partner(e->scratch, i, MESSAGE_TARGET, e->on, e->device);
    if (target < 0)
        return;
    put(e->team ? team_device(e->team, target) : e, i, literal_ref(data));
    if (e->team)
        team_wake(e->team, target);
}

static Literal *start_receiving(Eval *e, const Inst *i)
{
    Literal *zeros = eval_zeros(e, i, i->shape->elems[0]);
    if (zeros && message_partner(e->scratch, i, MESSAGE_SOURCE, e->on, e->device) < 0)
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
    const char *refused = transfer_refused(e->scratch, i, e->options->host, e->on);
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

const char *transfer_refused(Arena *a, const Inst *i, const EvalHost *host, Devices on)
{
    const char *why = feed_refused(i, host && host->infeed, host && host->outfeed);
    return why ? why : message_refused(a, i, on);
}
