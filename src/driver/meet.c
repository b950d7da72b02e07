/* Threads that meet. The lock is held while somebody comes or goes, not while code runs or blocks are copied. */
#include "driver/meet.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "driver/devices.h"
#include "driver/feeds.h"

enum { STACK_BYTES = 32 << 20, SHOWN = 8, ERROR_BYTES = 512 };

typedef enum State { RUNS, WAITS, COPIES, COPIED, ENDED } State;

typedef struct Meeting Meeting;

/* What was sent and not yet taken. */
typedef struct Message {
    struct Message *next; /* later */
    int64_t         channel, bytes;
    int32_t         step;
    char           *data;
} Message;

typedef struct Member {
    Meeting           *of;
    int32_t            number;
    State              state;
    bool               failed, sent_away; /* on its own; from where it waited, since nobody could go on */
    pthread_t          thread;
    pthread_cond_t     go;
    const HloExchange *at;    /* WAITS, COPIES, COPIED: where, */
    const int32_t     *group; /* with whom (how many, then these; NULL: for a message), */
    const char        *in;    /* with which blocks, */
    char              *out;   /* to where */
    Message           *sent;  /* to this one, oldest first */
    HloDevices         others;
    HloEnv             env;
    char               error[ERROR_BYTES], differs[ERROR_BYTES]; /* what the code says, what its exchange is wrong about */
} Member;

struct Meeting {
    Devices           on;
    const Compiled   *code;
    Feeds            *feeds; /* NULL: none */
    const DeviceCall *calls;
    int32_t           n;
    Member           *devices;
    void            **communicators; /* of CUDA's devices; NULL: none */
    bool              over; /* nobody can go on */
    bool              aborted; /* one has failed, and nobody waits for others in a library any more */
    pthread_mutex_t   lock;
};

/* ---- who meets whom ---- */

/* The place of device in a group, -1: it is not in it. */
static int32_t place_in(const int32_t *group, int32_t device)
{
    for (int32_t k = 0; k < group[0]; k++)
        if (group[1 + k] == device)
            return k;
    return -1;
}

/* NULL: it is in none. */
static const int32_t *group_of(const HloExchange *x, int32_t device)
{
    const int32_t *g = x->groups;
    for (int32_t k = 0; k < x->n_groups; k++, g += g[0] + 1)
        if (place_in(g, device) >= 0)
            return g;
    return NULL;
}

/* One place, or two of one opcode, channel and step. */
static bool same_place(const HloExchange *x, const HloExchange *y)
{
    return x == y || (x->channel >= 0 && x->channel == y->channel && x->step == y->step && strcmp(x->op, y->op) == 0);
}

static bool same_group(const int32_t *x, const int32_t *y)
{
    return x == y || (x[0] == y[0] && memcmp(x, y, (size_t)(y[0] + 1) * sizeof *y) == 0);
}

static bool meets(const Member *d, const HloExchange *x, const int32_t *group)
{
    return d->state == WAITS && d->group && same_place(d->at, x) && same_group(d->group, group);
}

static bool all_here(const Meeting *t, const HloExchange *x, const int32_t *group)
{
    for (int32_t k = 1; k <= group[0]; k++)
        if (!meets(&t->devices[group[k]], x, group))
            return false;
    return true;
}

static bool same_exchange(const HloExchange *x, const HloExchange *y)
{
    return x == y || (x->kind == y->kind && x->bytes == y->bytes && strcmp(x->type, y->type) == 0);
}

/* Two instructions of a channel may have been written for different arrays: then the later one fails. NULL: they agree. */
static Member *who_differs(const Meeting *t, const int32_t *group)
{
    const Member *first = &t->devices[group[1]];
    for (int32_t k = 2; k <= group[0]; k++) {
        Member *d = &t->devices[group[k]];
        if (same_exchange(d->at, first->at))
            continue;
        snprintf(d->differs, sizeof d->differs, "%s %%%s meets %%%s of device %d on channel %lld, but their types differ", d->at->op, d->at->name,
                 first->at->name, first->number, (long long)d->at->channel);
        return d;
    }
    return NULL;
}

/* ---- blocks ---- */

static void copy(char *to, const char *from, int64_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, (size_t)bytes);
}

static void zero(char *to, int64_t bytes)
{
    if (bytes > 0)
        memset(to, 0, (size_t)bytes);
}

/* The device that sends to this one, -1: none. */
static int32_t source_of(const HloExchange *x, int32_t device)
{
    for (int32_t k = 0; k < x->n_pairs; k++)
        if (x->pairs[2 * k + 1] == device)
            return x->pairs[2 * k];
    return -1;
}

/* The device that this one sends to, -1: none. */
static int32_t target_of(const HloExchange *x, int32_t device)
{
    for (int32_t k = 0; k < x->n_pairs; k++)
        if (x->pairs[2 * k] == device)
            return x->pairs[2 * k + 1];
    return -1;
}

/* What d gets. The others stay where they are until all have copied. */
static void copy_blocks(const Member *d)
{
    const Member      *all = d->of->devices;
    const HloExchange *x = d->at;
    int32_t            me = place_in(d->group, d->number), source = x->kind == HLO_PERMUTE ? source_of(x, d->number) : d->group[1];
    switch (x->kind) {
    case HLO_GATHER:
    case HLO_TRADE:
        for (int32_t k = 0; k < d->group[0]; k++)
            copy(d->out + k * x->bytes, all[d->group[1 + k]].in + (x->kind == HLO_TRADE ? me * x->bytes : 0), x->bytes);
        break;
    default:
        if (source >= 0)
            copy(d->out, all[source].in, x->bytes);
        else
            zero(d->out, x->bytes);
    }
}

/* ---- coming and going ---- */

static void set_state(Member *d, State s)
{
    d->state = s;
    pthread_cond_signal(&d->go);
}

static void set_all(Meeting *t, const int32_t *group, State s)
{
    for (int32_t k = 1; k <= group[0]; k++)
        set_state(&t->devices[group[k]], s);
}

static bool all_copied(const Meeting *t, const int32_t *group)
{
    for (int32_t k = 1; k <= group[0]; k++)
        if (t->devices[group[k]].state != COPIED)
            return false;
    return true;
}

/* When all devices wait or have ended, those that wait are sent away. */
static void look_around(Meeting *t)
{
    for (int32_t k = 0; k < t->n; k++)
        if (t->devices[k].state != WAITS && t->devices[k].state != ENDED)
            return;
    t->over = true;
    for (int32_t k = 0; k < t->n; k++)
        if (t->devices[k].state == WAITS)
            pthread_cond_signal(&t->devices[k].go);
}

/* Comes to x and waits for the others. False: nobody can go on, or the types differ. */
static bool come(Member *d, const HloExchange *x)
{
    Meeting *t = d->of;
    Member  *odd;
    d->at = x;
    d->state = WAITS;
    if (all_here(t, x, d->group)) {
        odd = who_differs(t, d->group);
        if (odd) {
            odd->failed = true;
            set_state(odd, RUNS);
        } else
            set_all(t, d->group, COPIES);
    }
    if (d->state == WAITS)
        look_around(t);
    while (d->state == WAITS && !t->over)
        pthread_cond_wait(&d->go, &t->lock);
    if (d->state == WAITS)
        d->sent_away = true;
    if (d->state != COPIES)
        d->state = RUNS;
    return d->state == COPIES;
}

static void leave(Member *d)
{
    d->state = COPIED;
    if (all_copied(d->of, d->group))
        set_all(d->of, d->group, RUNS);
    while (d->state == COPIED)
        pthread_cond_wait(&d->go, &d->of->lock);
}

static int meet(Member *d, const HloExchange *x, const void *in, void *out)
{
    d->group = group_of(x, d->number);
    d->in = in;
    d->out = out;
    if (!d->group) {
        zero(out, x->bytes);
        return 0;
    }
    pthread_mutex_lock(&d->of->lock);
    bool met = come(d, x);
    pthread_mutex_unlock(&d->of->lock);
    if (!met)
        return 1;
    copy_blocks(d);
    pthread_mutex_lock(&d->of->lock);
    leave(d);
    pthread_mutex_unlock(&d->of->lock);
    return 0;
}

/* ---- messages ---- */

static void send(Member *d, const HloExchange *x, const void *in)
{
    int32_t  target = target_of(x, d->number);
    Meeting *t = d->of;
    if (target < 0)
        return;
    Message *m = mem_alloc(1, sizeof *m);
    *m = (Message){NULL, x->channel, x->bytes, x->step, mem_alloc(x->bytes, 1)};
    copy(m->data, in, x->bytes);
    pthread_mutex_lock(&t->lock);
    Member   *to = &t->devices[target];
    Message **end = &to->sent;
    while (*end)
        end = &(*end)->next;
    *end = m;
    if (to->state == WAITS && !to->group)
        set_state(to, RUNS);
    pthread_mutex_unlock(&t->lock);
}

/* The oldest one for x, out of the list; NULL: there is none yet. */
static Message *take(Member *d, const HloExchange *x)
{
    Message **at = &d->sent, *m;
    while (*at && ((*at)->channel != x->channel || (*at)->step != x->step))
        at = &(*at)->next;
    if ((m = *at))
        *at = m->next;
    return m;
}

static Message *wait_for(Member *d, const HloExchange *x)
{
    Meeting *t = d->of;
    Message *m;
    d->at = x;
    d->group = NULL;
    while (!(m = take(d, x)) && !t->over) {
        d->state = WAITS;
        look_around(t);
        while (d->state == WAITS && !t->over)
            pthread_cond_wait(&d->go, &t->lock);
    }
    d->sent_away = !m;
    d->state = RUNS;
    return m;
}

static void free_message(Message *m)
{
    mem_free(m->data);
    mem_free(m);
}

static int receive(Member *d, const HloExchange *x, char *out)
{
    if (source_of(x, d->number) < 0) {
        zero(out, x->bytes);
        return 0;
    }
    pthread_mutex_lock(&d->of->lock);
    Message *m = wait_for(d, x);
    pthread_mutex_unlock(&d->of->lock);
    bool fits = m && m->bytes == x->bytes;
    if (fits)
        copy(out, m->data, x->bytes);
    else if (m) {
        snprintf(d->differs, sizeof d->differs, "%s %%%s takes %s, but %lld bytes were sent on channel %lld", x->op, x->name, x->type,
                 (long long)m->bytes, (long long)x->channel);
        d->failed = true;
    }
    if (m)
        free_message(m);
    return fits ? 0 : 1;
}

/* An array from or to the host. */
static int feed(Member *d, const HloExchange *x, const void *in, void *out)
{
    Meeting *t = d->of;
    pthread_mutex_lock(&t->lock);
    bool ok = x->kind == HLO_INFEED ? t->feeds && feeds_put(t->feeds, d->number, x->type, x->bytes, out)
                                    : t->feeds && feeds_take(t->feeds, d->number, x->type, x->bytes, in);
    d->at = x;
    if (!ok)
        snprintf(d->differs, sizeof d->differs, "%s %%%s has no data of type %s", x->op, x->name, x->type);
    pthread_mutex_unlock(&t->lock);
    return ok ? 0 : 1;
}

static int exchange(void *context, const HloExchange *x, const void *in, void *out)
{
    Member *d = context;
    switch (x->kind) {
    case HLO_INFEED: case HLO_OUTFEED: return feed(d, x, in, out);
    case HLO_SEND: send(d, x, in); return 0;
    case HLO_RECEIVE: return receive(d, x, out);
    default: return meet(d, x, in, out);
    }
}

static void *run_device(void *of)
{
    Member           *d = of;
    const DeviceCall *c = &d->of->calls[d->number];
    const Compiled   *code = d->of->code;
    int               status = code->has_device ? code->device.use(d->number) : 0;
    status = status ? status : code->run(&d->env, c->args, c->results, c->scratch);
    pthread_mutex_lock(&d->of->lock);
    d->failed |= status && !d->sent_away && !d->of->aborted;
    d->state = ENDED;
    if (d->failed && d->of->communicators && !d->of->aborted) {
        d->of->aborted = true;
        for (int32_t k = 0; k < d->of->n; k++)
            code->device.part(d->of->communicators[k], 1);
    }
    look_around(d->of);
    pthread_mutex_unlock(&d->of->lock);
    return NULL;
}

/* ---- the run ---- */

static void prepare(Meeting *t, const HloEnv *env)
{
    for (int32_t k = 0; k < t->n; k++) {
        Member *d = &t->devices[k];
        int32_t partitions = (int32_t)t->on.partitions;
        d->of = t;
        d->number = k;
        d->others = (HloDevices){sizeof d->others, (int32_t)t->on.replicas, partitions, k / partitions, k % partitions, d, exchange, t->communicators ? t->communicators[k] : NULL};
        d->env = *env;
        d->env.error = d->error;
        d->env.error_bytes = sizeof d->error;
        d->env.devices = &d->others;
        pthread_cond_init(&d->go, NULL);
    }
}

/* How many threads there are; the others have ended. */
static int32_t start(Meeting *t, Diag *d)
{
    pthread_attr_t attr;
    int32_t        k = 0;
    int            error = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_mutex_lock(&t->lock);
    for (; k < t->n; k++)
        if ((error = pthread_create(&t->devices[k].thread, &attr, run_device, &t->devices[k])) != 0)
            break;
    if (error)
        diag_error(d, LOC_NONE, "cannot run %d devices: no thread for device %d: %s", t->n, k, strerror(error));
    for (int32_t j = k; j < t->n; j++)
        t->devices[j].state = ENDED;
    pthread_mutex_unlock(&t->lock);
    pthread_attr_destroy(&attr);
    return k;
}

/* ---- messages ---- */

static const char *device_name(const Meeting *t, Arena *a, int32_t device)
{
    long long partitions = t->on.partitions;
    if (t->on.replicas == 1 || partitions == 1)
        return arena_printf(a, "device %d", device);
    return arena_printf(a, "device %d (replica %lld, partition %lld)", device, device / partitions, device % partitions);
}

/* The instruction of m that x was, NULL: not found, or there is no module. */
static const Inst *inst_of(const Module *m, const HloExchange *x)
{
    for (const Comp *c = m && x ? m->first : NULL; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            if (strcmp(i->name, x->name) == 0 && strcmp(op_name(i->op), x->op) == 0)
                return i;
    return NULL;
}

static void report(Diag *d, const Inst *i, const char *text)
{
    if (i)
        inst_error(d, i, "%s", text);
    else
        diag_error(d, LOC_NONE, "%s", text);
}

/* "device 1 waits at all-reduce %s for device 0" */
static const char *waits_text(const Meeting *t, Arena *a, const Member *d)
{
    int32_t k = 1;
    if (!d->group)
        return arena_printf(a, "%s waits at %s %%%s for a message of channel %lld", device_name(t, a, d->number), d->at->op, d->at->name,
                            (long long)d->at->channel);
    while (k < d->group[0] && t->devices[d->group[k]].sent_away && same_place(t->devices[d->group[k]].at, d->at))
        k++;
    return arena_printf(a, "%s waits at %s %%%s for %s", device_name(t, a, d->number), d->at->op, d->at->name,
                        device_name(t, a, d->group[k]));
}

static void report_waiting(const Meeting *t, const Module *m, Diag *d)
{
    int32_t shown = 0, waiting = 0, ended = 0, first_ended = 0;
    for (int32_t k = 0; k < t->n; k++) {
        const Member *x = &t->devices[k];
        if (!x->sent_away && ended++ == 0)
            first_ended = k;
        if (!x->sent_away || waiting++ >= SHOWN)
            continue;
        const Inst *i = inst_of(m, x->at);
        const char *text = waits_text(t, d->arena, x);
        if (shown++ == 0)
            report(d, i, arena_printf(d->arena, "the devices wait for each other: %s", text));
        else
            diag_note(d, i ? i->loc : LOC_NONE, "%s", text);
    }
    if (waiting > shown)
        diag_note(d, LOC_NONE, "and %d more wait", waiting - shown);
    if (ended > 0)
        diag_note(d, LOC_NONE, ended == 1 ? "%s has ended" : "%s and %d more have ended", device_name(t, d->arena, first_ended), ended - 1);
}

/* One device has sent itself nothing. */
static void report_missing(const Member *x, const Module *m, Diag *d)
{
    report(d, inst_of(m, x->at),
           arena_printf(d->arena, "%s %%%s: nothing has been sent on channel %lld", x->at->op, x->at->name, (long long)x->at->channel));
}

static bool all_is_well(const Meeting *t)
{
    for (int32_t k = 0; k < t->n; k++)
        if (t->devices[k].failed || t->devices[k].sent_away)
            return false;
    return true;
}

/* Reports the first device that failed, or else that some wait for ever. */
static void report_trouble(const Meeting *t, const Module *m, Diag *d)
{
    for (int32_t k = 0; k < t->n; k++) {
        const Member *x = &t->devices[k];
        if (!x->failed)
            continue;
        report(d, inst_of(m, x->at), *x->differs ? x->differs : *x->error ? x->error : "the module failed");
        diag_note(d, LOC_NONE, "this is %s", device_name(t, d->arena, k));
        return;
    }
    if (t->n == 1)
        report_missing(&t->devices[0], m, d);
    else
        report_waiting(t, m, d);
}

bool meet_run(const Execution *e, const HloEnv *env, const DeviceCall *calls, Diag *d)
{
    Arena  *a = arena_new();
    Meeting t = {.on = devices_count(e->on) > 1 ? e->on : (Devices){1, 1}, .code = e->compiled, .feeds = e->feeds, .calls = calls};
    t.n = (int32_t)devices_n(t.on);
    t.devices = ARENA_ARRAY(a, Member, t.n);
    pthread_mutex_init(&t.lock, NULL);
    t.communicators = ARENA_ARRAY(a, void *, t.n);
    if (t.n == 1 || !t.code->has_device || !t.code->device.join || t.code->device.join(t.n, t.communicators))
        t.communicators = NULL;
    prepare(&t, env);
    int32_t n = start(&t, d);
    for (int32_t k = 0; k < n; k++)
        pthread_join(t.devices[k].thread, NULL);
    bool ok = n == t.n && all_is_well(&t);
    if (n == t.n && !ok)
        report_trouble(&t, e->find_module ? e->find_module(e->cookie) : NULL, d);
    for (int32_t k = 0; k < t.n; k++) {
        for (Message *sent = t.devices[k].sent, *next; sent; sent = next) {
            next = sent->next;
            free_message(sent);
        }
        pthread_cond_destroy(&t.devices[k].go);
    }
    for (int32_t k = 0; t.communicators && !t.aborted && k < t.n; k++)
        t.code->device.part(t.communicators[k], 0);
    pthread_mutex_destroy(&t.lock);
    arena_free(a);
    return ok;
}
