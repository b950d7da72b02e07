/* Devices that take turns. The lock is held by the device that runs; a condition variable each hands it on. */
#include "eval/team.h"

#include <pthread.h>
#include <string.h>

enum { STACK_BYTES = 32 << 20, SHOWN = 8 };

typedef enum State { READY, WAITING, ENDED } State;

typedef struct Member {
    Eval            e;
    const Module   *module;
    Literal *const *args;
    Literal        *value; /* ENDED: ENTRY's */
    pthread_t       thread;
    pthread_cond_t  turn;
    State           state;
    const Inst     *at;    /* WAITING: where, */
    Ints            group; /* with whom (nobody: for a message), */
    Literal       **x;     /* and with which operands */
    Literal        *result; /* what the meeting gave */
} Member;

struct Team {
    Devices     on;
    int32_t         n, runs; /* the device whose turn it is */
    Member         *members;
    int64_t         live;    /* bytes that all devices hold */
    bool            failed;
    pthread_mutex_t lock;
};

const char *team_name(Arena *a, const Team *t, int64_t device)
{
    long long replica = device / t->on.partitions, partition = device % t->on.partitions, d = device;
    if (t->on.replicas == 1 || t->on.partitions == 1)
        return arena_printf(a, "device %lld", d);
    return arena_printf(a, "device %lld (replica %lld, partition %lld)", d, replica, partition);
}

Eval *team_device(Team *t, int64_t device)
{
    return &t->members[device].e;
}

void team_wake(Team *t, int64_t device)
{
    if (t->members[device].state == WAITING && t->members[device].group.n == 0)
        t->members[device].state = READY;
}

/* Everybody stops at the next opportunity. */
static void fail(Team *t)
{
    t->failed = true;
    for (int32_t k = 0; k < t->n; k++) {
        Member *m = &t->members[k];
        m->e.failed = true;
        if (m->state == WAITING)
            m->state = READY;
    }
}

/* ---- waiting for each other ---- */

static bool same_ids(Ints a, Ints b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.v, b.v, (size_t)a.n * sizeof *a.v) == 0);
}

/* Two instructions that meet: the same one, or two of one opcode and channel. */
static bool meets(const Member *m, const Inst *i, Ints group)
{
    if (m->state != WAITING || !same_ids(m->group, group))
        return false;
    return m->at == i || (m->at->op == i->op && inst_attr(i, ATTR_CHANNEL_ID) && inst_attr(m->at, ATTR_CHANNEL_ID) &&
                          inst_int(i, ATTR_CHANNEL_ID, 0) == inst_int(m->at, ATTR_CHANNEL_ID, 0));
}

/* "device 1 waits at all-reduce %s for device 0" */
static const char *waits_text(Arena *a, const Team *t, int32_t device)
{
    const Member *m = &t->members[device];
    const char   *who = team_name(a, t, device);
    if (m->group.n == 0)
        return arena_printf(a, "%s waits at %s %%%s for a message of channel %lld", who, op_name(m->at->op), m->at->name,
                            (long long)inst_int(m->at, ATTR_CHANNEL_ID, 0));
    int32_t k = 0;
    while (meets(&t->members[m->group.v[k]], m->at, m->group))
        k++;
    return arena_printf(a, "%s waits at %s %%%s for %s", who, op_name(m->at->op), m->at->name, team_name(a, t, m->group.v[k]));
}

static void report_deadlock(Team *t)
{
    Diag   *d = t->members[0].e.diag;
    int32_t shown = 0, ended = 0, waiting = 0;
    for (int32_t k = 0; k < t->n; k++) {
        const Member *m = &t->members[k];
        ended += m->state == ENDED;
        if (m->state != WAITING || waiting++ >= SHOWN)
            continue;
        if (shown++ == 0)
            inst_error(d, m->at, "the devices wait for each other: %s", waits_text(d->arena, t, k));
        else
            diag_note(d, m->at->loc, "%s", waits_text(d->arena, t, k));
    }
    if (waiting > shown)
        diag_note(d, LOC_NONE, "and %d more wait", waiting - shown);
    for (int32_t k = 0; k < t->n && ended > 0; k++)
        if (t->members[k].state == ENDED) {
            diag_note(d, LOC_NONE, ended == 1 ? "%s has ended" : "%s and %d more have ended", team_name(d->arena, t, k), ended - 1);
            break;
        }
}

/* ---- turns ---- */

/* The next ready device after k, -1: none. */
static int32_t next_ready(const Team *t, int32_t k)
{
    for (int32_t step = 1; step <= t->n; step++)
        if (t->members[(k + step) % t->n].state == READY)
            return (k + step) % t->n;
    return -1;
}

static bool all_ended(const Team *t)
{
    for (int32_t k = 0; k < t->n; k++)
        if (t->members[k].state != ENDED)
            return false;
    return true;
}

static void pass_turn(Team *t)
{
    int32_t next = next_ready(t, t->runs);
    if (next < 0 && !all_ended(t)) {
        report_deadlock(t);
        fail(t);
        next = next_ready(t, t->runs);
    }
    t->runs = next;
    if (next >= 0)
        pthread_cond_signal(&t->members[next].turn);
}

static void await_turn(Team *t, int32_t k)
{
    while (t->runs != k)
        pthread_cond_wait(&t->members[k].turn, &t->lock);
}

static void wait_here(Eval *e, const Inst *i, Ints group, Literal **x)
{
    Member *m = &e->team->members[e->device];
    m->state = WAITING;
    m->at = i;
    m->group = group;
    m->x = x;
    m->result = NULL;
    pass_turn(e->team);
    await_turn(e->team, e->device);
}

bool team_wait(Eval *e, const Inst *i)
{
    wait_here(e, i, (Ints){NULL, 0}, NULL);
    return !e->failed;
}

/* ---- meetings ---- */

static Literal *meet_alone(Eval *e, const Inst *i, Literal **x, MeetFn *work)
{
    Literal *result = NULL;
    work(&(Meeting){1, &e, &i, &x, &result});
    return result;
}

static bool all_here(const Team *t, const Inst *i, Ints group, int32_t me)
{
    for (int32_t k = 0; k < group.n; k++)
        if (group.v[k] != me && !meets(&t->members[group.v[k]], i, group))
            return false;
    return true;
}

/* Two instructions of a channel may have been written for different arrays. */
static bool operands_agree(const Meeting *m)
{
    for (int32_t k = 1; k < m->n; k++) {
        bool same = m->i[k]->n_operands == m->i[0]->n_operands;
        for (int32_t j = 0; j < m->i[0]->n_operands && same; j++)
            same = shape_compatible(inst_operand(m->i[k], j)->shape, inst_operand(m->i[0], j)->shape);
        if (same && shape_compatible(m->i[k]->shape, m->i[0]->shape))
            continue;
        const Team *t = m->e[0]->team;
        eval_fail(m->e[k], m->i[k], "%s %%%s meets %%%s of %s on channel %lld, but their types differ", op_name(m->i[k]->op), m->i[k]->name,
                  m->i[0]->name, team_name(m->e[k]->diag->arena, t, m->e[0]->device), (long long)inst_int(m->i[k], ATTR_CHANNEL_ID, 0));
        return false;
    }
    return true;
}

Literal *team_meet(Eval *e, const Inst *i, Ints group, Literal **x, MeetFn *work)
{
    Team *t = e->team;
    if (group.n == 1)
        return meet_alone(e, i, x, work);
    if (!all_here(t, i, group, e->device)) {
        wait_here(e, i, group, x);
        return t->members[e->device].result;
    }
    Meeting m = {group.n, mem_alloc(group.n, sizeof *m.e), mem_alloc(group.n, sizeof *m.i), mem_alloc(group.n, sizeof *m.x),
                 mem_alloc(group.n, sizeof *m.result)};
    Literal *mine = NULL;
    for (int32_t k = 0; k < group.n; k++) {
        Member *other = &t->members[group.v[k]];
        bool    me = group.v[k] == e->device;
        m.e[k] = &other->e;
        m.i[k] = me ? i : other->at;
        m.x[k] = me ? x : other->x;
        m.result[k] = NULL;
    }
    if (operands_agree(&m))
        work(&m);
    for (int32_t k = 0; k < group.n; k++) {
        Member *other = &t->members[group.v[k]];
        if (m.e[k]->failed)
            t->failed = true;
        if (m.e[k] == e) {
            mine = m.result[k];
        } else {
            other->result = m.result[k];
            other->state = READY;
        }
    }
    if (t->failed)
        fail(t);
    mem_free(m.e);
    mem_free(m.i);
    mem_free(m.x);
    mem_free(m.result);
    return mine;
}

/* ---- the run ---- */

static void *run_device(void *of)
{
    Member *m = of;
    Team   *t = m->e.team;
    pthread_mutex_lock(&t->lock);
    await_turn(t, m->e.device);
    if (!m->e.failed)
        m->value = eval_entry(&m->e, m->module, m->module->entry->n_params, m->args);
    m->state = ENDED;
    if (m->e.failed && !t->failed)
        fail(t);
    pass_turn(t);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void prepare_devices(Team *t, const Module *m, Literal *const *const *args, const EvalOptions *o, Diag *d)
{
    for (int32_t k = 0; k < t->n; k++) {
        Member *x = &t->members[k];
        eval_start(&x->e, o, d);
        x->e.live = &t->live;
        x->e.on = t->on;
        x->e.device = k;
        x->e.team = t;
        x->module = m;
        x->args = args[k];
        pthread_cond_init(&x->turn, NULL);
    }
}

/* A thread for each device; how many there are. */
static int32_t start_threads(Team *t, Diag *d)
{
    pthread_attr_t attr;
    int32_t        k = 0;
    int            error = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (; k < t->n; k++)
        if ((error = pthread_create(&t->members[k].thread, &attr, run_device, &t->members[k])) != 0)
            break;
    pthread_attr_destroy(&attr);
    if (!error)
        return k;
    diag_error(d, LOC_NONE, "cannot run %d devices: no thread for device %d: %s", t->n, k, strerror(error));
    for (int32_t j = k; j < t->n; j++)
        t->members[j].state = ENDED;
    fail(t);
    return k;
}

static void run_devices(Team *t, Diag *d)
{
    pthread_mutex_lock(&t->lock);
    t->runs = -1; /* nobody, until all are there */
    int32_t n = start_threads(t, d);
    t->runs = t->n - 1;
    pass_turn(t);
    pthread_mutex_unlock(&t->lock);
    for (int32_t k = 0; k < n; k++)
        pthread_join(t->members[k].thread, NULL);
}

bool eval_module_on(const Module *m, Devices on, Literal *const *const *args, const EvalOptions *o, Literal **results, Diag *d)
{
    Arena *a = arena_new();
    Team   t = {.on = on, .n = (int32_t)(on.replicas * on.partitions)};
    t.members = ARENA_ARRAY(a, Member, t.n);
    pthread_mutex_init(&t.lock, NULL);
    prepare_devices(&t, m, args, o, d);
    if (eval_fits(&t.members[0].e, m))
        run_devices(&t, d);
    else
        t.failed = true;
    for (int32_t k = 0; k < t.n; k++) {
        results[k] = t.members[k].value;
        if (t.failed)
            eval_drop(&t.members[k].e, eval_move(results, k));
        transfer_end(&t.members[k].e); /* what came after it had ended */
        eval_count_work(&t.members[k].e);
        eval_end(&t.members[k].e);
        pthread_cond_destroy(&t.members[k].turn);
    }
    pthread_mutex_destroy(&t.lock);
    arena_free(a);
    return !t.failed;
}
