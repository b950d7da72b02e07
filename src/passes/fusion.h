/* Inside of fusion: what the pass knows of the instructions of one computation (fusion_asks.c and fusion_pays.c say, fusion.c decides, fusion_build.c builds). */
#ifndef PASSES_FUSION_H
#define PASSES_FUSION_H

#include "passes/pass.h"
#include "support/vec.h"

enum { MAX_CONTEXTS = 8, MAX_INDEX_CONTEXTS = 64, MAX_SIZE = 512, MAX_OPERANDS = 40, MAX_CONCAT = 16, MAX_STACK = 64, MAX_KEPT = 3, MAX_RESULTS = 7, MAX_TOGETHER = 8 };

typedef struct Context Context;
typedef struct Group   Group;
typedef struct Move    Move;

/* What a kernel that puts elements of pads together computes of their operands. */
typedef enum { COMPUTES_UNKNOWN, COMPUTES_LITTLE, COMPUTES_NOTHING } Computes;

/* The loops of reductions: those that share them have one `to`. */
typedef struct ReduceLoops {
    const Inst    *of;
    const Context *from; /* in which its result is asked for */
    Context       *to;   /* and its operands */
} ReduceLoops;

struct Group {
    Inst    *root;           /* the first of its results, the last one in the computation; NULL: another group has swallowed it */
    Context *all;            /* in which the root is asked for: every element once */
    Inst   **more;           /* results that are made in the same loops, see fusion_join.c; MAX_RESULTS of them in a group that is no bundle */
    int32_t  n_more;
    int32_t  searched;       /* number of the search that was there last */
    int32_t  size, operands; /* instructions taken in, values needed from outside; constants count for neither */
    bool     reduces;        /* a reduce is among them */
    bool     attention;      /* scores, weights and the dots of both */
    bool     vector;         /* it has a product of a matrix that it makes and a vector; */
    int32_t  made;           /* the product's operand that is that matrix */
    const Inst *columns;     /* a reduction down columns whose values it wants in the columns again (analysis/columns.h): its rows are columns */
    Computes computes;
    Inst    *hero;           /* what the rest of it makes use of element by element, see may_be_hero */
    const Inst *outer;       /* the reduction to a scalar whose loops are the outermost ones */
    int32_t  kept;           /* rows that its code keeps */
    Context *rows;           /* the contexts of whole rows, see row_context */
    int32_t     n_loops;
    ReduceLoops loops[MAX_TOGETHER];
    Group   *head;           /* NULL, or the group whose kernel it is part of: of a bundle the first one, of attention the whole */
    Group   *bundled;        /* of a bundle: the next one */
};

/* The last one of each kind: another one asks for its operand at the same index. */
struct Move {
    const Inst *of;
    int32_t     operand;
    Context    *to;
    Move       *next;
};

struct Context {
    Group   *group;
    double   count;  /* elements asked for */
    bool     nested; /* the index is made of a nest of loops in row-major order, those of the group's root outermost */
    double   common; /* nested: iterations of the outer loops that are also the root's */
    double   leading; /* the same iteration of so many outer ones of the root's loops asks for what has the same leading dimensions, be it often; 1: that is not known */
    bool     apart;  /* behind a pad between elements: loops by steps ask, which are no vectors as others are */
    bool     scattered; /* behind a scatter, likewise */
    bool     windows; /* under windows, which may overlap: the code has quicker ways for what is stored */
    bool     loose;  /* nested: one element of each of the rows that the loops go over */
    bool     whole;  /* each element is asked for in one element of the root, and all are */
    Context *next;   /* in group->rows */
    Context *stacked; /* that of the indices of a gather: where one of them is computed when all elements of its result have their own */
    Move    *moves;  /* what asks for its operands elsewhere from here */
};

/* APART: a pad between elements, see fusion_apart.c. SCATTER: see fusion_scatter.c. */
typedef enum { ROLE_NONE, ROLE_APART, ROLE_ELEMENTWISE, ROLE_MOVE, ROLE_VIEW, ROLE_REDUCE, ROLE_WINDOW, ROLE_CONTRACT,
    ROLE_UPDATE, ROLE_SCATTER, ROLE_LEAF } Role;

typedef struct Node {
    Role     role;
    bool     fused;    /* computed inside the groups of its contexts, else stored */
    bool     named;    /* its name went to the first copy */
    bool     turns;    /* nothing but pads between elements is put together by it, and by others for it */
    bool     reads;    /* a pad between elements, whose operand is stored */
    bool     chosen;   /* a maximum or the like is taken of it, or of what its kernel makes of it element by element */
    int32_t  chain;    /* fused, and computed more than once: it and the longest row of such users */
    int32_t  n_contexts, max_contexts;
    Context **contexts, *own[MAX_CONTEXTS];
    int32_t  n_wanting; /* groups that need the value, as far as they are known */
    Group   *wanting[MAX_CONTEXTS];
    int32_t  order;    /* place in the computation */
    int32_t  seen;     /* number of the group that was there last */
    int32_t  searched; /* number of the search that was there last */
    Inst    *copy;     /* in that group's body */
} Node;

typedef struct Fuser {
    Arena   *scratch;
    PassCtx *cx;
    int64_t  max_size;
    VEC(Group *) groups; /* from the end of the computation to its start */
    VEC(Group *) reductions; /* those of them whose root is one */
    int32_t  searches;
} Fuser;

static inline Node *node(const Inst *i)
{
    return i->aux;
}

/* fusion_asks.c: what an instruction can be, and how a group asks for it. */
Role    fusion_role(const Inst *i, bool loops); /* loops: of a CPU, not threads */
double  fusion_count(const Inst *i); /* elements; of one result when a reduce has several */
bool    fusion_is_static(const Inst *i); /* an array of one or more elements whose sizes are fixed */
bool    fusion_moves_whole(const Inst *u); /* each element goes to one place, and neighbours stay together in pieces that loops can be made of */
bool    fusion_reduces_inner(const Inst *u); /* each result is a loop over what lies together */
bool    fusion_reduces_rows(const Inst *u, const Group *g); /* over what g's loops have as rows */
int32_t fusion_made_side(const Fuser *f, const Inst *u); /* the operand of a dot that is a matrix which is made for it alone, and needed once; -1: neither */
bool    fusion_made_of_indices(const Inst *i); /* to compute it again costs no more than to read it */
bool    fusion_takes_operand(const Inst *u, int32_t k); /* u could have its operand k computed inside */
bool    fusion_add_contexts(Fuser *f, const Inst *u, int32_t k); /* the contexts in which u asks for its operand k; false: too many */
bool    fusion_collect_contexts(Fuser *f, const Inst *i); /* those of all users of i; false: one reads it from memory, or they are too many */

/* fusion_apart.c: pads between elements. */
bool    fusion_parts(const Inst *pad); /* it is one */
bool    fusion_parts_neighbours(const Inst *pad); /* what goes apart are elements, or few together, not rows */
bool    fusion_only_turns(const Inst *i); /* for Node.turns, that of its operands being known */
Role    fusion_role_apart(const Inst *pad); /* turns being known of all */
bool    fusion_puts_together(const Inst *i); /* such pads are among its operands, or what puts them together */
bool    fusion_stays_out(const Inst *i); /* of the kernels that ask for it */
bool    fusion_decide_apart(Fuser *f, Inst *pad); /* into the one kernel that asks for it */

/* fusion_scatter.c */
Role    fusion_role_scatter(const Inst *i, bool loops); /* loops: of a CPU, not threads, here and below */
double  fusion_scatter_asks(const Inst *scatter, int32_t k, bool loops); /* the elements of operand k that it needs */
bool    fusion_scatter_gains(const Inst *scatter, bool loops); /* its kernel is worth more than what it has of its own */
bool    fusion_stays_unscattered(const Inst *i, bool loops); /* i stays out of the kernels of scatters that ask for it */

/* fusion_pays.c: what costs less, in ns of the device. */
bool    fusion_pays(const Fuser *f, const Inst *i); /* to compute i where it is asked for */
bool    fusion_pays_beside(const Fuser *f, const Inst *i, int32_t loops); /* i is stored by a kernel that computes it again in so many loops, and need not read it */
bool    fusion_starves(const Fuser *f, const Inst *i); /* a reduction, inside of a kernel that goes on along its rows, would leave most units idle for long */
double  fusion_asked(const Inst *i); /* elements of i asked for in all its contexts */
double  fusion_again_ns(const Device *v, const Inst *i, double again); /* to compute i's elements so many times more */
double  fusion_stored_ns(const Device *v, const Inst *i, double again); /* to store them instead and to read them as often, beside what a kernel more costs */
int32_t fusion_chain(const Inst *i); /* for Node.chain */
bool    fusion_feeds_maximum(const Inst *i); /* for Node.chosen */
bool    fusion_wanted_in_one_row(const Fuser *f, const Inst *i); /* several loops of one group, within the same row, need i, each every element once; or one more often */
void    fusion_keep_row(Fuser *f, Inst *i); /* then its producers are asked by the one loop that makes the row */

/* fusion.c */
int32_t fusion_new_operands(const Inst *i, const Group *g); /* values that g would need from outside if it took in i; what many groups want may count twice */
bool    fusion_is_wanted(const Node *n, const Group *g);
void    fusion_take_in(Group *g, const Inst *i);

/* fusion_join.c: what is stored, as another result of a group. */
bool     fusion_waits(Fuser *f, const Group *g, const Group *h); /* h's kernel needs a result of g's, be it through others */
bool     fusion_join(Fuser *f, Inst *i);
bool     fusion_is_result(const Inst *i, const Group *g);
bool     fusion_is_row_result(const Inst *i, const Group *g); /* one of them, stored once in each row of the loops of another */
bool     fusion_go_together(Fuser *f, const Inst *i, const Inst *later); /* two reductions of one kernel are made in the same loops */
Context *fusion_shared_context(Fuser *f, const Inst *u, Context *c); /* of the operands of a reduction that c asks for; NULL: nobody's yet */
void     fusion_share_context(const Inst *u, const Context *from, Context *to);

/* fusion_attention.c: groups of a computation that are decided on, and the dots between them. */
void fusion_attention(Fuser *f, Comp *c);
bool fusion_is_weights(const Inst *i); /* of attention, which nothing but its second dot reads: no result beside others, with which it would be no part of that kernel */

/* fusion_bundle.c: small groups of a computation that become one kernel. */
void fusion_bundle(Fuser *f);

/* fusion_build.c. Makes the fusion of g; false when it would hold one instruction only. */
bool fusion_goes_inside(const Inst *i); /* into the kernels that ask for it */
bool fusion_build(Fuser *f, const Group *g, int32_t number);
/* A fusion of several results stands where the last of them was; what needs the others may have been before it. */
void fusion_restore_order(Fuser *f, Comp *c);

#endif
