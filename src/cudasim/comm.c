/* Ranks that meet, as a library for collectives does it: a call, or a group of them, is one piece of work in its rank's stream, and ends when all of its partners have come to theirs. The k-th collective
 * of one rank meets the k-th of all others, and must be the same; the k-th send from one rank to another meets the k-th receive there, of as many bytes. Who waits lets the host's other threads in; when
 * each rank's thread waits or has ended, nobody will come any more, and that is told. */
#include "cudasim/sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct Call {
    cudasim_meeting kind;
    int             other; /* SEND, RECEIVE: the partner; BROADCAST: the root */
    const void     *in;
    void           *out;
    size_t          bytes;
    uint64_t        turn;  /* which collective of the rank, or which of its messages to or from the partner */
    bool            done;
} Call;

/* Calls of one rank and stream. */
typedef struct Group {
    cudasim_rank *rank;
    int           n;
    Call          calls[];
} Group;

/* A thread of the host that works for a rank. */
typedef struct Worker {
    bool         waits, ended;
    int          users; /* ranks, and the thread itself */
    Group       *group; /* what has been called since a group began */
    int          room, depth;
    cudaStream_t stream;
} Worker;

typedef struct Comm Comm;
struct cudasim_rank {
    Comm     *comm;
    int       number;
    Worker   *worker;    /* who called last, NULL: nobody yet */
    Call     *calls;     /* of the group that it has come to, NULL: it is not at one */
    int       n_calls;
    uint64_t  collectives;
    uint64_t *sent, *received; /* to and from each */
};
struct Comm {
    int           n, left; /* ranks; those that are not ended */
    bool          aborted;
    cudasim_rank *ranks;
};

static const char *const names[] = { [CUDASIM_SEND] = "send", [CUDASIM_RECEIVE] = "receive", [CUDASIM_ALL_GATHER] = "all-gather", [CUDASIM_BROADCAST] = "broadcast" };

/* ---- threads ---- */

static pthread_key_t  worker_key;
static pthread_once_t worker_once = PTHREAD_ONCE_INIT;

static void release(Worker *w)
{
    if (w && --w->users == 0) {
        free(w->group);
        free(w);
    }
}

static void end_worker(void *x)
{
    LOCKED;
    Worker *w = x;
    w->ended = true;
    release(w);
    cudasim_wake();
}

static void make_key(void)
{
    pthread_key_create(&worker_key, end_worker);
}

/* This thread, NULL: no memory. */
static Worker *worker(void)
{
    pthread_once(&worker_once, make_key);
    Worker *w = pthread_getspecific(worker_key);
    if (!w && (w = calloc(1, sizeof *w)) != NULL) {
        w->users = 1;
        pthread_setspecific(worker_key, w);
    }
    return w;
}

static void set_worker(cudasim_rank *r, Worker *w)
{
    if (w == r->worker || !w)
        return;
    release(r->worker);
    r->worker = w;
    w->users++;
}

/* ---- who meets whom ---- */

static bool is_message(const Call *c)
{
    return c->kind == CUDASIM_SEND || c->kind == CUDASIM_RECEIVE;
}

static bool in_group(const Call *c, cudasim_meeting kind, int other, uint64_t turn)
{
    return c->kind == kind && c->other == other && c->turn == turn;
}

/* The other end of a message, NULL: it is not there yet. */
static Call *partner(const cudasim_rank *r, const Call *c)
{
    const cudasim_rank *o = &r->comm->ranks[c->other];
    for (int k = 0; k < o->n_calls; k++)
        if (in_group(&o->calls[k], c->kind == CUDASIM_SEND ? CUDASIM_RECEIVE : CUDASIM_SEND, r->number, c->turn))
            return &o->calls[k];
    return NULL;
}

static Call *collective(const cudasim_rank *r, uint64_t turn)
{
    for (int k = 0; k < r->n_calls; k++)
        if (!is_message(&r->calls[k]) && r->calls[k].turn == turn)
            return &r->calls[k];
    return NULL;
}

static void move(void *to, const void *from, size_t bytes)
{
    if (to != from)
        memmove(to, from, bytes);
}

static void meet_message(const cudasim_rank *r, Call *c)
{
    Call *o = partner(r, c);
    if (!o)
        return;
    if (o->bytes != c->bytes)
        cudasim_fault(NULL, 0, "rank %d has a %s of %zu bytes, rank %d one of %zu", r->number, names[c->kind], c->bytes, c->other, o->bytes);
    else
        move(c->out ? c->out : o->out, c->in ? c->in : o->in, c->bytes);
    c->done = o->done = true;
}

static void meet_collective(const Comm *m, const Call *first)
{
    Call *all[CUDASIM_MOST_DEVICES];
    for (int k = 0; k < m->n; k++)
        if (!(all[k] = collective(&m->ranks[k], first->turn)))
            return;
    for (int k = 0; k < m->n; k++)
        if (all[k]->kind != all[0]->kind || all[k]->bytes != all[0]->bytes || all[k]->other != all[0]->other)
            cudasim_fault(NULL, 0, "rank 0 has an %s of %zu bytes, rank %d an %s of %zu or with another root", names[all[0]->kind], all[0]->bytes, k,
                          names[all[k]->kind], all[k]->bytes);
    for (int to = 0; to < m->n && !cudasim_has_fault(); to++)
        for (int from = 0; from < m->n; from++)
            if (all[0]->kind == CUDASIM_ALL_GATHER)
                move((char *)all[to]->out + (size_t)from * all[0]->bytes, all[from]->in, all[0]->bytes);
            else if (from == all[0]->other)
                move(all[to]->out, all[from]->in, all[0]->bytes);
    for (int k = 0; k < m->n; k++)
        all[k]->done = true;
}

static bool all_done(const cudasim_rank *r)
{
    for (int k = 0; k < r->n_calls; k++)
        if (!r->calls[k].done)
            return false;
    return true;
}

/* ---- waiting ---- */

static void wake_all(Comm *m)
{
    for (int k = 0; k < m->n; k++)
        if (m->ranks[k].worker)
            m->ranks[k].worker->waits = false;
    cudasim_wake();
}

/* Nobody of those that work for ranks will come any further. */
static bool is_stuck(const Comm *m)
{
    for (int k = 0; k < m->n; k++)
        if (!m->ranks[k].worker || (!m->ranks[k].worker->waits && !m->ranks[k].worker->ended))
            return false;
    return true;
}

static void meet(cudasim_rank *r)
{
    Comm *m = r->comm;
    for (int k = 0; k < r->n_calls; k++) {
        Call *c = &r->calls[k];
        if (!c->done && is_message(c))
            meet_message(r, c);
        else if (!c->done)
            meet_collective(m, c);
    }
    wake_all(m);
    while (!all_done(r) && !cudasim_has_fault()) {
        if (m->aborted)
            cudasim_fault(NULL, 0, "the communicator was aborted");
        r->worker->waits = true;
        if (is_stuck(m))
            cudasim_fault(NULL, 0, "rank %d waits in vain: the others do not come to this call", r->number);
        if (!cudasim_has_fault())
            cudasim_wait();
    }
    if (cudasim_has_fault())
        cudasim_wake();
    r->worker->waits = false;
}

/* ---- what the host calls ---- */

static void run(void *x)
{
    Group        *g = x;
    cudasim_rank *r = g->rank;
    r->calls = g->calls;
    r->n_calls = g->n;
    meet(r);
    r->calls = NULL;
    r->n_calls = 0;
}

static cudaError_t enqueue(Worker *w)
{
    Group *g = w->group;
    w->group = NULL;
    w->room = 0;
    if (!g)
        return cudaSuccess;
    const cudaError_t e = cudasim_enqueue_work(run, g, sizeof *g + (size_t)g->n * sizeof *g->calls, w->stream);
    free(g);
    return e;
}

cudaError_t cudasim_group(bool begins)
{
    LOCKED;
    Worker *w = worker();
    if (!w)
        return cudaErrorMemoryAllocation;
    if (!begins && w->depth == 0)
        return cudaErrorInvalidValue;
    w->depth += begins ? 1 : -1;
    return w->depth == 0 ? enqueue(w) : cudaSuccess;
}

static bool put(Worker *w, cudasim_rank *r, const Call *c)
{
    const int n = w->group ? w->group->n : 0;
    if (n == w->room) {
        const int room = n > 0 ? 2 * n : 8;
        Group    *g = realloc(w->group, sizeof *g + (size_t)room * sizeof *g->calls);
        if (!g)
            return false;
        w->group = g;
        w->room = room;
        g->n = n;
    }
    w->group->rank = r;
    w->group->calls[w->group->n++] = *c;
    return true;
}

cudaError_t cudasim_communicate(cudasim_rank *r, cudasim_meeting kind, int other, const void *in, void *out, size_t bytes, cudaStream_t s)
{
    LOCKED;
    const int    n = r->comm->n;
    const size_t out_bytes = kind == CUDASIM_ALL_GATHER ? bytes * (size_t)n : bytes;
    Worker      *w = worker();
    Call         c = { kind, other, in, out, bytes, 0, false };
    if (!w)
        return cudaErrorMemoryAllocation;
    if (other < 0 || other >= n || (in && !cudasim_memory_is_device(in, bytes)) || (out && !cudasim_memory_is_device(out, out_bytes)) ||
        (w->group && (w->group->rank != r || w->stream != s)))
        return cudaErrorInvalidValue;
    set_worker(r, w);
    c.turn = kind == CUDASIM_SEND ? r->sent[other]++ : kind == CUDASIM_RECEIVE ? r->received[other]++ : r->collectives++;
    w->stream = s;
    if (!put(w, r, &c))
        return cudaErrorMemoryAllocation;
    return w->depth > 0 ? cudaSuccess : enqueue(w);
}

static void free_comm(Comm *m)
{
    for (int k = 0; m->ranks && k < m->n; k++) {
        release(m->ranks[k].worker);
        free(m->ranks[k].sent);
    }
    free(m->ranks);
    free(m);
}

cudaError_t cudasim_ranks(cudasim_rank **to, int n)
{
    LOCKED;
    if (n < 1 || n > cudasim_devices())
        return cudaErrorInvalidDevice;
    Comm *m = calloc(1, sizeof *m);
    if (!m)
        return cudaErrorMemoryAllocation;
    m->n = m->left = n;
    m->ranks = calloc((size_t)n, sizeof *m->ranks);
    for (int k = 0; k < n; k++) {
        uint64_t *turns = m->ranks ? calloc(2 * (size_t)n, sizeof *turns) : NULL;
        if (!turns) {
            free_comm(m);
            return cudaErrorMemoryAllocation;
        }
        m->ranks[k] = (cudasim_rank){ .comm = m, .number = k, .sent = turns, .received = turns + n };
        to[k] = &m->ranks[k];
    }
    return cudaSuccess;
}

void cudasim_rank_here(cudasim_rank *r, int *n, int *number)
{
    LOCKED;
    set_worker(r, worker());
    *n = r->comm->n;
    *number = r->number;
}

void cudasim_rank_end(cudasim_rank *r, bool aborts)
{
    LOCKED;
    Comm *m = r->comm;
    m->aborted |= aborts;
    cudasim_wake();
    if (!aborts && --m->left == 0)
        free_comm(m);
}
