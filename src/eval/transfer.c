/* infeed, outfeed, send, recv. Source: reference operations 17.
 *
 * An infeed takes its data from the host, leaf by leaf, when it runs, an outfeed gives it away; instructions run in stored order, which
 * keeps that of the tokens. With one device a send meets the recv of its channel: what was sent waits there in order until a recv-done takes
 * it. Sends and recvs of the host are refused. */
#include <string.h>

#include "eval/engine.h"

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

static void send(Eval *e, const Inst *i, Literal *data)
{
    Sent **end = &e->sent;
    while (*end)
        end = &(*end)->next;
    *end = ARENA_NEW(e->arena, Sent);
    **end = (Sent){.channel = inst_int(i, ATTR_CHANNEL_ID, 0), .data = data};
}

static Literal *receive(Eval *e, const Inst *i)
{
    int64_t channel = inst_int(i, ATTR_CHANNEL_ID, 0);
    Sent **at = &e->sent;
    while (*at && (*at)->channel != channel)
        at = &(*at)->next;
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
    const char *refused = transfer_refused(i, e->options->host);
    if (refused)
        return eval_fail(e, i, "%s %s (%%%s)", op_name(i->op), refused, i->name);
    switch (i->op) {
    case OP_INFEED:
        return with_token(e, fed(e, i, i->shape->elems[0]));
    case OP_OUTFEED:
        give(e, x[0]);
        return literal_token();
    case OP_SEND:
        send(e, i, literal_ref(x[0]));
        return pending(e, i, eval_move(x, 0));
    case OP_SEND_DONE:
        return literal_token();
    case OP_RECV:
        return pending(e, i, eval_zeros(e, i, i->shape->elems[0]));
    case OP_RECV_DONE:
        return with_token(e, receive(e, i));
    default:
        die("%s transfers nothing", op_name(i->op));
    }
}

/* Before anything runs */

/* {{0,0}}, or none: the device sends to itself. */
static bool pairs_need_one_device(const Inst *i)
{
    const Attr *attrs = inst_attr(i, ATTR_FRONTEND_ATTRIBUTES);
    for (int32_t k = 0; attrs && k < attrs->value.key_values->n; k++) {
        const KeyValue *x = &attrs->value.key_values->v[k];
        if (strcmp(x->key, "_xla_send_recv_source_target_pairs") == 0)
            return strspn(x->value, "{}0, \"") == strlen(x->value);
    }
    return true;
}

/* Some send of the module has this channel and data of this type. */
static bool is_sent(const Inst *recv)
{
    for (const Comp *c = recv->comp->module->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            if (i->op == OP_SEND && inst_int(i, ATTR_CHANNEL_ID, 0) == inst_int(recv, ATTR_CHANNEL_ID, 0) &&
                shape_equal(i->shape->elems[0], recv->shape->elems[0]))
                return true;
    return false;
}

const char *transfer_refused(const Inst *i, const EvalHost *host)
{
    switch (i->op) {
    case OP_INFEED: return host && host->infeed ? NULL : "needs data: give --infeed=F.npz with infeed0, infeed1, ...";
    case OP_OUTFEED: return host && host->outfeed ? NULL : "needs a file for its data: give --outfeed=F.npz";
    case OP_SEND: case OP_RECV: break;
    default: return NULL; /* as its start */
    }
    if (inst_bool(i, ATTR_IS_HOST_TRANSFER))
        return "with the host is not supported by the evaluator";
    if (!pairs_need_one_device(i))
        return "needs more devices than one (--replicas, --partitions)";
    return i->op == OP_RECV && !is_sent(i) ? "has no send of its channel and type in the module" : NULL;
}
