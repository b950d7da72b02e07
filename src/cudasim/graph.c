/* Graphs: captured work that is launched again and again, and its conditional nodes, whose bodies the device chooses. A condition is a number of a table, which is what its
 * handle names; kernels set it. What CUDA leaves undefined is told: a condition that nobody has set, one that two threads set, a loop whose body never sets it, a body of
 * what may not stand there. */
#include "cudasim/work.h"

#include <stdlib.h>
#include <string.h>

typedef struct Condition {
    cudaGraph_t graph;   /* whose node, or a node below, uses it */
    bool        used, is_set, has_first;
    unsigned    value, first;  /* first: at the beginning of each launch of the graph */
    uint32_t    launch_time;   /* of the launch that set it last, */
    uint3       block;         /* and which of its threads */
    unsigned    thread;
    uint64_t    times;         /* it was set */
} Condition;

typedef struct Conditions {
    Condition *v; /* handle h is v[h - 1] */
    uint64_t   n, room;
} Conditions;

static Conditions conditions;

void conditions_reset(void)
{
    free(conditions.v);
    conditions = (Conditions){ 0 };
}

static Condition *condition_of(uint64_t handle)
{
    return handle >= 1 && handle <= conditions.n ? &conditions.v[handle - 1] : NULL;
}

/* ---- work ---- */

void graph_put(cudaGraph_t g, Work *w)
{
    if (g->last)
        g->last->next = w;
    else
        g->first = w;
    g->last = w;
}

static void graph_free(cudaGraph_t g)
{
    graph_drop(g);
    free(g);
}

void work_free(Work *w)
{
    for (unsigned k = 0; k < w->choice.n; k++)
        graph_free(w->choice.bodies[k]);
    free(w->choice.bodies);
    free(w);
}

void graph_drop(cudaGraph_t g)
{
    for (Work *w = g->first, *next; w; w = next) {
        next = w->next;
        work_free(w);
    }
    g->first = g->last = NULL;
}

static cudaGraph_t graph_clone(const struct cudasim_graph *g)
{
    cudaGraph_t copy = calloc(1, sizeof *copy);
    for (const Work *w = g->first; w && copy; w = w->next) {
        Work *x = work_clone(w);
        if (!x) {
            graph_free(copy);
            return NULL;
        }
        graph_put(copy, x);
    }
    return copy;
}

/* Room for n bodies, none of which is there yet. */
static bool choice_make_room(Choice *c, unsigned n)
{
    c->bodies = calloc(n, sizeof *c->bodies);
    c->n = 0;
    return c->bodies != NULL;
}

Work *work_clone(const Work *w)
{
    Work *copy = work_new(w->kind, w->held, w->held_bytes);
    if (!copy)
        return NULL;
    memcpy(copy, w, sizeof *w);
    copy->next = NULL;
    copy->launch.args = copy->held;
    copy->to = w->to == w->held ? copy->held : w->to;
    copy->choice.bodies = NULL;
    copy->choice.n = 0;
    bool good = w->choice.n == 0 || choice_make_room(&copy->choice, w->choice.n);
    for (unsigned k = 0; k < w->choice.n && good; k++) {
        cudaGraph_t body = graph_clone(w->choice.bodies[k]);
        good = body != NULL;
        if (good)
            copy->choice.bodies[copy->choice.n++] = body;
    }
    if (good)
        return copy;
    work_free(copy);
    return NULL;
}

bool graph_hold(Work *w, cudaGraph_t g)
{
    cudaGraph_t copy = choice_make_room(&w->choice, 1) ? graph_clone(g) : NULL;
    if (copy)
        w->choice.bodies[w->choice.n++] = copy;
    else
        free(w->choice.bodies);
    return copy != NULL;
}

/* ---- doing what the device decides ---- */

static void body_do(const struct cudasim_graph *g)
{
    for (const Work *w = g->first; w && !cudasim_has_fault(); w = w->next)
        work_do(w);
}

/* Nothing else runs beside a node, so that a loop whose body leaves its condition alone never ends. */
static void loop_do(const Choice *c)
{
    while (condition_of(c->handle)->value != 0 && !cudasim_has_fault()) {
        const uint64_t before = condition_of(c->handle)->times;
        body_do(c->bodies[0]);
        if (condition_of(c->handle)->times == before && !cudasim_has_fault())
            cudasim_fault(NULL, 0, "a conditional node of a graph that never ends: its condition is %u, and its body does not set it", condition_of(c->handle)->value);
    }
}

void choice_do(const Choice *c)
{
    const Condition *x = condition_of(c->handle);
    if (!x || !x->is_set) {
        cudasim_fault(NULL, 0, "a conditional node of a graph whose condition nobody has set");
        return;
    }
    const unsigned chosen = c->kind == CUDASIM_IF ? x->value == 0 : x->value;
    if (c->kind == CUDASIM_WHILE)
        loop_do(c);
    else if (chosen < c->n)
        body_do(c->bodies[chosen]);
}

/* Conditions as a launch finds them: what they were before is not known. */
static void begin(const struct cudasim_graph *g)
{
    for (const Work *w = g->first; w; w = w->next) {
        Condition *x = w->kind == CONDITIONAL ? condition_of(w->choice.handle) : NULL;
        if (x) {
            x->is_set = x->has_first;
            x->value = x->first;
        }
        for (unsigned k = 0; k < w->choice.n; k++)
            begin(w->choice.bodies[k]);
    }
}

void graph_do(cudaGraph_t g)
{
    begin(g);
    body_do(g);
}

void cudasim_set_condition(uint64_t handle, unsigned value)
{
    Condition *x = condition_of(handle);
    if (!x)
        cudasim_fault(NULL, 0, "a condition is set by a handle that is none");
    else if (!cudasim_now.launch)
        cudasim_fault(NULL, 0, "a condition is set by the host: a kernel has to");
    else if (x->is_set && x->times > 0 && x->launch_time == cudasim_now.launch_time && (x->thread != cudasim_now.thread || memcmp(&x->block, &cudasim_block, sizeof x->block) != 0))
        cudasim_fault(NULL, 0, "a condition is set by two threads of a launch");
    else {
        x->value = value;
        x->is_set = true;
        x->times++;
        x->launch_time = cudasim_now.launch_time;
        x->thread = cudasim_now.thread;
        x->block = cudasim_block;
    }
}

/* ---- making them ---- */

cudaError_t cudasim_condition_create(uint64_t *handle, cudaGraph_t g, unsigned first, unsigned flags)
{
    LOCKED;
    if (!g || flags > 1)
        return cudaErrorInvalidValue;
    if (conditions.n == conditions.room) {
        const uint64_t room = conditions.room ? conditions.room * 2 : 64;
        Condition     *more = realloc(conditions.v, room * sizeof *more);
        if (!more)
            return cudaErrorMemoryAllocation;
        conditions.v = more;
        conditions.room = room;
    }
    conditions.v[conditions.n++] = (Condition){ .graph = g, .has_first = flags == 1, .first = first };
    *handle = conditions.n;
    return cudaSuccess;
}

static bool is_below(const struct cudasim_graph *g, const struct cudasim_graph *above)
{
    while (g && g != above)
        g = g->outer;
    return g != NULL;
}

/* CUDA's rule for how many bodies there are. */
static bool good_bodies(enum cudasim_conditional kind, unsigned n)
{
    return kind == CUDASIM_WHILE ? n == 1 : kind == CUDASIM_IF ? n == 1 || n == 2 : kind == CUDASIM_SWITCH && n >= 1;
}

/* A graph is a line here: what is added stands behind the last piece, and must say so. */
cudaError_t cudasim_graph_add_conditional(cudasim_node *node, cudaGraph_t g, const cudasim_node *behind, size_t n_behind, uint64_t handle, enum cudasim_conditional kind,
                                          unsigned n, cudaGraph_t **bodies)
{
    LOCKED;
    Condition *x = condition_of(handle);
    if (!g || !x || x->used || !is_below(g, x->graph) || !good_bodies(kind, n))
        return cudaErrorInvalidValue;
    if (g->last ? n_behind != 1 || behind[0] != g->last : n_behind != 0)
        return cudaErrorNotSupported;
    Work *w = work_new(CONDITIONAL, NULL, 0);
    if (!w || !choice_make_room(&w->choice, n)) {
        free(w);
        return cudaErrorMemoryAllocation;
    }
    w->choice.kind = kind;
    w->choice.handle = handle;
    for (; w->choice.n < n; w->choice.n++) {
        cudaGraph_t body = calloc(1, sizeof *body);
        if (!body) {
            work_free(w);
            return cudaErrorMemoryAllocation;
        }
        body->outer = g;
        w->choice.bodies[w->choice.n] = body;
    }
    x->used = true;
    graph_put(g, w);
    *node = w;
    *bodies = w->choice.bodies;
    return cudaSuccess;
}

/* ---- to be launched ---- */

/* Bodies may hold kernels, copies and fills of the device's memory, and further nodes of this kind. */
static void check_work(const struct cudasim_graph *g, bool in_body)
{
    for (const Work *w = g->first; w; w = w->next) {
        if (in_body && w->kind == CALL)
            cudasim_fault(NULL, 0, "the body of a conditional node has a call of the host's");
        if (in_body && w->kind == COPY && w->on_host)
            cudasim_fault(NULL, 0, "the body of a conditional node has a copy of the host's memory");
        if (in_body && w->allocates)
            cudasim_fault(NULL, 0, "the body of a conditional node allocates memory");
        for (unsigned k = 0; k < w->choice.n; k++)
            check_work(w->choice.bodies[k], true);
    }
}

cudaError_t cudasim_graph_instantiate(cudaGraph_t *to, cudaGraph_t g)
{
    LOCKED;
    *to = NULL;
    if (!g || g->outer) /* a body belongs to its node */
        return cudaErrorInvalidValue;
    for (uint64_t k = 0; k < conditions.n; k++)
        if (conditions.v[k].graph && !conditions.v[k].used && is_below(conditions.v[k].graph, g))
            cudasim_fault(NULL, 0, "a graph has a condition that none of its nodes uses");
    check_work(g, false);
    if (cudasim_has_fault())
        return cudaErrorLaunchFailure;
    *to = graph_clone(g);
    return *to ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudasim_graph_destroy(cudaGraph_t g)
{
    LOCKED;
    if (!g || g->outer)
        return cudaErrorInvalidValue;
    for (uint64_t k = 0; k < conditions.n; k++)
        if (is_below(conditions.v[k].graph, g))
            conditions.v[k].graph = NULL;
    graph_free(g);
    return cudaSuccess;
}
