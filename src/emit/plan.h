/* What the parts of the planner share.
 *
 *     plan.c           the entry: parameters and results, names, the finished Program
 *     plan_build.c     instructions to steps over slots; nothing is shared yet, every result has a slot of its own
 *     plan_control.c   while, conditional, call, asynchronous calls; parallel copies
 *     plan_device.c    collectives with nobody else, exchanges with other devices
 *     plan_message.c   send and recv
 *     plan_library.c   custom calls of LAPACK routines and of functions from outside
 *     plan_dot.c       dots, convolutions, solves, transforms and running sums that the runtime computes
 *     plan_order.c     transposes, sort and topk likewise
 *     plan_sizes.c     sizes of bounded dimensions
 *     plan_live.c      where each slot is live
 *     plan_share.c     slots that may be one: copies that vanish, updates in place
 *     plan_turns.c     slots that take turns: other copies at the end of loop bodies that vanish
 *     plan_offsets.c   places in the scratch arena for what is left
 */
#ifndef EMIT_PLAN_H
#define EMIT_PLAN_H

#include "emit/names.h"
#include "emit/program.h"
#include "support/vec.h"

/* Time in the linear order of the steps, as half-open ranges. A step at tick t reads its operands at 2t and has its results from 2t
 * on, so that a result and an operand of the same step overlap by exactly one point, [2t, 2t+1), when the operand ends there. */
typedef struct Range {
    int32_t       from, to;
    struct Range *next; /* later, not touching */
} Range;

typedef struct Slot Slot;
struct Slot {
    Buffer      buffer; /* offset and name come at the end, to the slot that stands for its set */
    Buffer     *final;  /* that buffer in the Program, once it is used by a finished step */
    int32_t     id;
    const Inst *inst;   /* for the name */
    Slot       *same;   /* the slot that holds this one's value, NULL: itself; follow with slot_root */
    Range      *ranges; /* of the whole set */
    int32_t     first_def; /* tick, -1: before everything */
    Slot       *donee;  /* of an argument: the result that may be given its memory */
    int32_t     live_to, live_at; /* plan_live.c: end of the open range, place in the list; -1: not live */
    int32_t     readers, copy;    /* plan_control.c: in the parallel copy at hand, which one writes it, -1: none */
    const Literal *literal; /* of a constant */
    Slot       *counts;  /* of a BUFFER_COUNT: the constant */
    bool        turns;   /* plan_turns.c: takes turns with another one */
    Slot       *next;       /* constants of one hash */
};

/* One array of a value, or a token (slot NULL). shape: how it lies in memory, which may be another order than the instruction's
 * shape says; whoever needs a certain order asks leaf_as. */
typedef struct Leaf {
    Slot        *slot;
    const Shape *shape;
} Leaf;

/* The value of an instruction: its leaves, depth first, tokens counted. */
typedef struct Value {
    int32_t  n;
    Leaf    *v;
    int32_t *starts; /* of a tuple: where each element begins, made when first asked for */
} Value;

typedef struct PlanStep PlanStep;
typedef struct StepList {
    PlanStep **v;
    int32_t    n, cap;
} StepList;

/* A step with the planner's notes. The blocks and buffers of `step` are filled in at the end. */
struct PlanStep {
    Step      step;
    Slot    **slots;  /* what becomes step.buffers; NULL where the kernel takes no pointer */
    StepList  condition, *blocks;
    int32_t   tick, last; /* when it begins; WHILE and IF: when it is over */
    StepList  turned; /* WHILE: copies at the end of its body, whose two slots take turns */
    int32_t  *begin;  /* WHILE: after the condition, where the body begins; IF: where each branch begins */
    int32_t   n_results; /* slots behind the operands that hold a result; working memory comes after them */
    int32_t   depth;  /* loops around it */
    bool      dropped; /* a copy that turned out to be none */
};

typedef struct Plan {
    Arena        *arena;   /* the Program's */
    Arena        *work;    /* the planner's own */
    const Module *module;
    const PlanOptions *options;
    Diag         *diag;
    Program      *program;
    NameSet       names;
    Map           values;    /* Inst -> Value, of the computations being walked */
    Map           given;     /* likewise of what is known without a step, NULL: no more */
    Map           kernels;   /* Inst -> Lowered, so that a computation called twice is lowered once */
    Map           shared;    /* kernel_hash -> Lowered, those of one hash linked */
    Map           constants; /* literal_hash -> Slot, likewise */
    Map           reported;  /* instructions that an error was given for */
    VEC(Slot *) slots;
    VEC(Function) functions;
    VEC(LibraryCall *) calls;
    Map           exchanges; /* Inst -> Exchange */
    Map           messages;  /* Inst -> the Exchanges of its arrays */
    VEC(const Exchange *) exchanged; /* those that have an identifier */
    VEC(PlanStep *) steps;   /* kernels and copies, in the order of their ticks once these are given */
    Module       *helper;    /* owns the instructions that change the order in memory; NULL until one is needed */
    int32_t       depth, loops; /* nesting of computations, of loops */
    int32_t       ticks;
    const Callers *callers;  /* of the computation being walked */
    int64_t       walked;    /* instructions, each as often as it is inlined */
    bool          bad;       /* something was reported; the rest is walked to report it too */
    bool          stopped;   /* a limit was reached: no sense in walking on */
} Plan;

/* Reports about i, once, and goes on. */
void plan_fail(Plan *p, const Inst *i, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static inline Slot *slot_root(Slot *s)
{
    while (s->same) {
        if (s->same->same) /* long chains of results in place get shorter as they are walked */
            s->same = s->same->same;
        s = s->same;
    }
    return s;
}

/* Slots and leaves. */
Slot *slot_new(Plan *p, BufferKind kind, const Shape *shape, const Inst *i);
Slot *slot_constant(Plan *p, const Literal *l, const Shape *shape, const Inst *i); /* equal values share one */
Slot *slot_zeros(Plan *p, const Shape *shape, const Inst *i); /* what nobody writes; NULL for what has no bytes */
Leaf  leaf_as(Plan *p, StepList *out, Leaf x, const Shape *want, const Inst *why); /* the same values in the order of want */

/* Values. */
Value *value_new(Plan *p, int32_t n);
Value *value_fresh(Plan *p, const Shape *s, const Inst *i); /* a slot of its own for each leaf */
Value *value_of(Plan *p, const Inst *i);
Value *value_element(Plan *p, Value *whole, const Shape *s, int64_t k); /* element k of a value of shape s */
/* The shapes of the leaves of s, depth first, tokens counted. */
const Shape **leaf_shapes(Plan *p, const Shape *s, int32_t *n);

/* Steps. */
PlanStep *step_new(Plan *p, StepList *out, StepKind kind, const Inst *i, int32_t n_slots);
PlanStep *step_copy(Plan *p, StepList *out, Slot *to, Slot *from, const Inst *i);

/* All of c's instructions, its parameters bound to params. The value of the root. */
Value *plan_comp(Plan *p, StepList *out, const Comp *c, Value *const *params, const Inst *caller);

/* Owns instructions that the planner makes. */
Module *plan_helper(Plan *p);

/* The kernel of fusion i for the sums of hero (kernel_lower_tile), and its function; NULL: there is none. */
const Kernel *plan_tile(Plan *p, const Inst *i, const Inst *hero, int64_t row, int32_t *function);

/* plan_control.c */
Value *plan_while(Plan *p, StepList *out, const Inst *i);
Value *plan_conditional(Plan *p, StepList *out, const Inst *i);
Value *plan_call(Plan *p, StepList *out, const Inst *i, const Comp *c);
Value *plan_async_start(Plan *p, StepList *out, const Inst *i);
Value *plan_started(Plan *p, const Inst *i); /* copy-start and its like: the operand and the operand again */
/* to[k] <- from[k] for all k as if at once. */
void parallel_copy(Plan *p, StepList *out, int32_t n, Slot *const *to, Slot *const *from, const Inst *i);

/* plan_device.c: the operands side by side (tuple, markers of several arrays); collectives of one participant, but for the -done steps. */
Value *plan_tuple(Plan *p, const Inst *i);
Value *plan_collective(Plan *p, const Inst *i);
Value *plan_exchange(Plan *p, StepList *out, const Inst *i, Exchange *x);
Value *plan_message(Plan *p, StepList *out, const Inst *i); /* plan_message.c: send, recv and their ends */
Value *plan_feed(Plan *p, StepList *out, const Inst *i);    /* infeed, outfeed */
Value *plan_device_number(Plan *p, StepList *out, const Inst *i); /* replica-id, partition-id */

/* plan_library.c */
Value *plan_library(Plan *p, StepList *out, const Inst *i);
Value *plan_extern(Plan *p, StepList *out, const Inst *i);
Value *plan_routine(Plan *p, StepList *out, const Inst *i); /* NULL: i is a kernel like others */
int32_t plan_call_number(Plan *p, LibraryCall *c); /* of the function: an equal one's, or its own, which gets a name */

/* plan_dot.c: NULL when it is a kernel like others. */
Value *plan_dot(Plan *p, StepList *out, const Inst *i);
Value *plan_conv(Plan *p, StepList *out, const Inst *i);
Value *plan_solve(Plan *p, StepList *out, const Inst *i);
Value *plan_fft(Plan *p, StepList *out, const Inst *i);
Value *plan_scan(Plan *p, StepList *out, const Inst *i);
Value *plan_attention(Plan *p, StepList *out, const Inst *i);
Value *plan_output(Plan *p, StepList *out, const Inst *i); /* a fusion around a dot or a convolution: one call */

/* plan_order.c: a transpose or a copy to another layout. NULL when it is a kernel like others. */
Value *plan_transpose(Plan *p, StepList *out, const Inst *i, Leaf from);
Value *plan_sort(Plan *p, StepList *out, const Inst *i);
/* i is positions that calls of sorts make themselves: it has no value of its own. */
bool   plan_is_positions_alone(Plan *p, const Inst *i);
Value *plan_topk(Plan *p, StepList *out, const Inst *i);

/* plan_sizes.c: arrays with bounds have their full size. */
Value *plan_dimension_size(Plan *p, const Inst *i); /* get-dimension-size */
void   plan_check_size(Plan *p, const Inst *i);     /* set-dimension-size: reports unless it sets the full size */

/* plan_live.c: ticks, ranges. plan_share.c: which slots become one. plan_turns.c: which take turns. plan_offsets.c: where the scratch ones lie. */
void plan_liveness(Plan *p, const StepList *body);
void plan_share(Plan *p);
void plan_turns(Plan *p, StepList *list);
void plan_offsets(Plan *p);

/* Whether two sorted lists overlap; the first overlap is given. Both lists as one, used up. */
bool   ranges_overlap(const Range *x, const Range *y, Range *first);
Range *ranges_union(Range *x, Range *y);

#endif
