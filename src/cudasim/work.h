/* Work that waits in a stream or stands in a graph: stream.c queues and does it, graph.c makes graphs of it. */
#ifndef CUDASIM_WORK_H
#define CUDASIM_WORK_H

#include "cudasim/sim.h"

typedef enum WorkKind { LAUNCH, COPY, SET, CALL, LIBRARY, RECORD, WAIT, CONDITIONAL, GRAPH, FREE } WorkKind;

/* What the device decides: bodies of which it does one, or one again and again. The node owns them. */
typedef struct Choice {
    enum cudasim_conditional kind;
    uint64_t                 handle;
    unsigned                 n;
    cudaGraph_t             *bodies;
} Choice;

typedef struct Work Work;
struct Work {
    WorkKind       kind;
    Work          *next;
    cudasim_launch launch;
    void          *to;
    const void    *from;
    size_t         bytes;
    int            byte;
    void         (*f)(void *);
    cudaEvent_t    event;
    uint64_t       turn; /* of the event: which record is meant */
    Choice         choice; /* GRAPH: its one body */
    bool           allocates; /* SET, FREE: memory of a graph's own */
    bool           on_host; /* COPY: one of its ends is in the host's memory */
    size_t         held_bytes;
    _Alignas(16) unsigned char held[]; /* arguments, or bytes from the host */
};

/* A queue of work, one piece after the other. */
struct cudasim_graph {
    Work       *first, *last;
    cudaGraph_t outer; /* of a node's body: the graph of the node */
};

/* stream.c */
Work *work_new(WorkKind kind, const void *held, size_t bytes);
void  work_do(const Work *w);

/* graph.c */
void  graph_put(cudaGraph_t g, Work *w);
Work *work_clone(const Work *w); /* bodies as well; NULL: no memory */
void  work_free(Work *w);
void  graph_drop(cudaGraph_t g); /* all of its work */
bool  graph_hold(Work *w, cudaGraph_t g); /* w: a copy of it */
void  graph_do(cudaGraph_t g);
void  choice_do(const Choice *c);
void  conditions_reset(void);

#endif
