/* The engine: runs a computation instruction by instruction and ends the life of every value at its last use.
 *
 * A computation is planned once: which instructions the root needs or have an effect, in stored order (operands stand before users), where each operand's
 * value is found and whether this is its last use, the values of constants, the kernels of elementwise instructions. A get-tuple-element moves up right behind its operand: so a loop's state falls
 * apart into elements that nobody else holds, and an update of one of them can be done in place. */
#include "eval/engine.h"
#include "eval/arith.h"
#include "eval/memo.h"
#include "eval/sizes.h"
#include "eval/team.h"
#include "eval/walk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#define MAX_CALL_DEPTH 1000

#define OP(id, text, n, family, shape, flags) EvalFn eval_##family;
#include "ir/ops.def"
#undef OP

EvalFn *const eval_handlers[OP_COUNT] = {
#define OP(id, text, n, family, shape, flags) [OP_##id] = eval_##family,
#include "ir/ops.def"
#undef OP
};

/* Values */

Literal *eval_fail(Eval *e, const Inst *i, const char *fmt, ...)
{
    bool first = !e->failed;
    e->failed = true;
    if (e->options->quiet || !first)
        return NULL;
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(e->diag->arena, fmt, ap);
    va_end(ap);
    inst_error(e->diag, i, "%s", text);
    if (e->team)
        diag_note(e->diag, LOC_NONE, "this is %s", team_name(e->diag->arena, e->team, e->device));
    return NULL;
}

bool eval_work(Eval *e, const Inst *i, int64_t n)
{
    if (__builtin_add_overflow(e->work, n, &e->work))
        e->work = INT64_MAX;
    if (e->options->work_limit == 0 || e->work <= e->options->work_limit)
        return true;
    eval_fail(e, i, "%s %%%s: more than %lld element operations", op_name(i->op), i->name, (long long)e->options->work_limit);
    return false;
}

/* Counts bytes about to be held; false after failing. */
static bool hold(Eval *e, const Inst *i, int64_t bytes)
{
    if (bytes >= 0 && bytes <= e->limit - *e->live) {
        *e->live += bytes;
        return true;
    }
    if (bytes < 0)
        eval_fail(e, i, "%s %%%s: its size overflows", op_name(i->op), i->name);
    else
        eval_fail(e, i, "%s %%%s: %lld bytes and the %lld in use are more than the %lld available", op_name(i->op), i->name,
                  (long long)bytes, (long long)*e->live, (long long)e->limit);
    return false;
}

Literal *eval_new(Eval *e, const Inst *i, Type t, int32_t rank, const int64_t *dims)
{
    if (rank > WALK_RANK)
        return eval_fail(e, i, "%s %%%s: more than %d dimensions", op_name(i->op), i->name, WALK_RANK);
    Shape s = {.type = t, .rank = rank, .dims = dims};
    int64_t bytes = type_is_array(t) ? shape_bytes(&s) : 0;
    if (!hold(e, i, bytes))
        return NULL;
    Literal *l = literal_new(t, rank, dims);
    if (eval_work(e, i, l->count))
        return l;
    eval_drop(e, l);
    return NULL;
}

Literal *eval_new_for(Eval *e, const Inst *i, const Shape *s)
{
    return eval_new(e, i, s->type, s->rank, s->dims);
}

static bool is_own(const Literal *l)
{
    return l->refs == 1 && !l->borrowed;
}

Literal *eval_result(Eval *e, const Inst *i, Literal **x, int32_t k)
{
    const Shape *s = i->shape;
    bool fits = is_own(x[k]) && x[k]->type == s->type && x[k]->rank == s->rank &&
                (s->rank == 0 || memcmp(x[k]->dims, s->dims, (size_t)s->rank * sizeof s->dims[0]) == 0);
    if (!fits)
        return eval_new_for(e, i, s);
    return eval_work(e, i, x[k]->count) ? eval_move(x, k) : NULL;
}

Literal *eval_copy(Eval *e, const Inst *i, const Literal *l)
{
    Literal *r = eval_new(e, i, l->type, l->rank, l->dims);
    if (r && l->count > 0)
        memcpy(r->data, l->data, (size_t)literal_bytes(l));
    return r;
}

Literal *eval_take(Eval *e, const Inst *i, Literal **x, int32_t k)
{
    return is_own(x[k]) ? eval_move(x, k) : eval_copy(e, i, x[k]);
}

Literal *eval_cast(Eval *e, const Inst *i, Literal *l, Type t)
{
    if (!l || l->type == t)
        return l;
    Literal *r = eval_new(e, i, t, l->rank, l->dims);
    Arith convert = {.fn = arith_convert, .n = 1, .type = {l->type}, .out = t, .raw = true};
    const void *from[] = {l->data};
    if (r)
        arith_run(&convert, r->data, from, r->count);
    eval_drop(e, l);
    return r;
}

Literal *eval_results(Eval *e, const Inst *i, int32_t n, Literal *const *values)
{
    bool tuple = shape_is_tuple(i->shape);
    bool ok = !e->failed;
    Literal **v = ARENA_ARRAY(e->scratch, Literal *, n);
    for (int32_t k = 0; k < n; k++) {
        v[k] = eval_cast(e, i, values[k], tuple ? i->shape->elems[k]->type : i->shape->type);
        ok = ok && v[k];
    }
    if (ok)
        return tuple ? literal_tuple(n, v) : v[0];
    for (int32_t k = 0; k < n; k++)
        eval_drop(e, v[k]);
    return NULL;
}

Literal *eval_tuple_of(Eval *e, int32_t n, Literal **v)
{
    if (!e->failed)
        return literal_tuple(n, v);
    for (int32_t k = 0; k < n; k++)
        eval_drop(e, v[k]);
    return NULL;
}

/* Bytes that end with the last reference to l: a tuple's elements may have other holders, or have been taken out of it. */
static int64_t bytes_ending(const Literal *l)
{
    if (!l || l->refs > 1)
        return 0;
    if (l->type != TYPE_TUPLE)
        return bytes_ending(l->whole) + (l->borrowed || !l->data ? 0 : l->count * type_bytes(l->type));
    int64_t n = 0;
    for (int32_t k = 0; k < l->n_elems; k++)
        n += bytes_ending(l->elems[k]);
    return n;
}

void eval_drop(Eval *e, Literal *l)
{
    if (!l)
        return;
    *e->live -= bytes_ending(l);
    literal_unref(l);
}

/* Plans */

typedef struct Slot {
    int32_t from; /* the step whose value this is */
    bool    last; /* nobody asks for it afterwards */
} Slot;

/* How a step runs that nobody looks at. */
typedef enum StepKind {
    STEP_HANDLER,
    STEP_CONSTANT,  /* its value stands from the plan on */
    STEP_PARAMETER,
    STEP_ELEMENT,   /* of a tuple */
    STEP_KERNEL,    /* elementwise, on fixed sizes */
} StepKind;

typedef struct Step {
    const Inst  *inst;
    const Slot  *slots;
    StepKind     kind;
    bool         fixed;  /* no size is dynamic */
    int64_t      index;  /* of a parameter, of an element */
    bool         takes;  /* nobody asks for the element afterwards, nor for the tuple as a whole */
    const Arith *kernel;
    bool         direct; /* arith_is_direct(kernel) */
} Step;

typedef struct Plan {
    int32_t   n, root;
    Step     *steps;
    Literal **values; /* by step. A computation never calls itself, so one set is enough */
    Literal **x;      /* room for the operands of any step */
} Plan;

typedef struct Planner {
    Map     number; /* Inst -> 1 + position in the stored order */
    bool   *needed;
    int32_t *step;  /* by position: the step, -1: not yet */
    Plan   *plan;
} Planner;

static intptr_t position(const Planner *p, const Inst *i)
{
    return (intptr_t)map_get(&p->number, i) - 1;
}

static void place(Planner *p, const Inst *i)
{
    p->step[position(p, i)] = p->plan->n;
    p->plan->steps[p->plan->n++].inst = i;
}

/* Places i and then, first in first out, the get-tuple-elements of what was placed. */
static void place_with_elements(Planner *p, const Inst *i)
{
    int32_t done = p->plan->n;
    place(p, i);
    for (; done < p->plan->n; done++)
        for (const Use *u = p->plan->steps[done].inst->uses; u; u = u->next)
            if (u->user->op == OP_GET_TUPLE_ELEMENT && p->needed[position(p, u->user)] && p->step[position(p, u->user)] < 0)
                place(p, u->user);
}

/* What operand k is the value of. A size that is set anew is one of what was there before it was cut. */
static const Inst *source_of(const Inst *i, int32_t k)
{
    const Inst *x = inst_operand(i, k);
    if (i->op == OP_SET_DIMENSION_SIZE && k == 0)
        while (x->op == OP_SET_DIMENSION_SIZE && inst_ints(x, ATTR_DIMENSIONS).v[0] == inst_ints(i, ATTR_DIMENSIONS).v[0])
            x = inst_operand(x, 0);
    return x;
}

static void find_needed(Planner *p, const Comp *c)
{
    p->needed[position(p, c->root)] = true;
    for (const Inst *i = c->last; i; i = i->prev) {
        if (inst_has_effect(i))
            p->needed[position(p, i)] = true;
        if (p->needed[position(p, i)])
            for (int32_t k = 0; k < i->n_operands; k++)
                p->needed[position(p, source_of(i, k))] = true;
    }
}

typedef struct TupleUses {
    bool *element; /* those that a later step asks for; NULL: none */
    bool  whole;   /* a later step asks for the tuple */
} TupleUses;

/* The same for the elements of tuples; u is by step. */
static void find_taking(Eval *e, TupleUses *u, Step *s)
{
    if (s->kind != STEP_ELEMENT) {
        for (int32_t k = 0; k < s->inst->n_operands; k++)
            u[s->slots[k].from].whole = true;
        return;
    }
    TupleUses *of = &u[s->slots[0].from];
    if (!of->element)
        of->element = ARENA_ARRAY(e->arena, bool, inst_operand(s->inst, 0)->shape->n_elems);
    s->takes = !of->whole && !of->element[s->index];
    of->element[s->index] = true;
}

/* Operand slots, from the last step to the first: the first one met is the last use. */
static void find_last_uses(Eval *e, Planner *p)
{
    Plan *plan = p->plan;
    bool *seen = ARENA_ARRAY(e->arena, bool, plan->n);
    int32_t most = 0;
    for (int32_t s = 0; s < plan->n; s++)
        seen[s] = plan->steps[s].kind == STEP_CONSTANT;
    seen[plan->root] = true;
    TupleUses *tuples = ARENA_ARRAY(e->arena, TupleUses, plan->n);
    tuples[plan->root].whole = true;
    for (int32_t s = plan->n - 1; s >= 0; s--) {
        const Inst *i = plan->steps[s].inst;
        Slot *slots = ARENA_ARRAY(e->arena, Slot, i->n_operands);
        for (int32_t k = i->n_operands - 1; k >= 0; k--) {
            int32_t from = p->step[position(p, source_of(i, k))];
            slots[k] = (Slot){from, !seen[from]};
            seen[from] = true;
        }
        plan->steps[s].slots = slots;
        find_taking(e, tuples, &plan->steps[s]);
        if (i->n_operands > most)
            most = i->n_operands;
    }
    plan->x = ARENA_ARRAY(e->arena, Literal *, most);
}

/* What is the same in every run of the step. */
static void prepare(Eval *e, Plan *plan, int32_t at)
{
    Step *s = &plan->steps[at];
    const Inst *i = s->inst;
    s->fixed = !shape_is_dynamic(i->shape);
    for (int32_t k = 0; k < i->n_operands; k++)
        s->fixed = s->fixed && !shape_is_dynamic(inst_operand(i, k)->shape);
    Arith k;
    if (i->op == OP_CONSTANT && !literal_has_elided(i->literal)) {
        s->kind = STEP_CONSTANT;
        plan->values[at] = (Literal *)literal_keep(e->arena, literal_ref(i->literal));
    } else if (i->op == OP_PARAMETER && s->fixed) {
        s->kind = STEP_PARAMETER;
        s->index = i->param;
    } else if (i->op == OP_GET_TUPLE_ELEMENT && s->fixed) {
        s->kind = STEP_ELEMENT;
        s->index = inst_int(i, ATTR_INDEX, 0);
    } else if (s->fixed && elementwise_kernel(i, &k)) {
        s->kind = STEP_KERNEL;
        s->kernel = arena_copy(e->arena, &k, sizeof k);
        s->direct = arith_is_direct(&k);
    }
}

static Plan *plan_for(Eval *e, const Comp *c)
{
    Plan *plan = map_get(&e->plans, c);
    if (plan)
        return plan;
    plan = ARENA_NEW(e->arena, Plan);
    Planner p = {.number = map_new(e->arena), .needed = ARENA_ARRAY(e->arena, bool, c->n_insts),
                 .step = ARENA_ARRAY(e->arena, int32_t, c->n_insts), .plan = plan};
    intptr_t n = 0;
    for (Inst *i = c->first; i; i = i->next) {
        p.step[n] = -1;
        map_put(&p.number, i, (void *)++n);
    }
    find_needed(&p, c);
    plan->steps = ARENA_ARRAY(e->arena, Step, c->n_insts);
    for (Inst *i = c->first; i; i = i->next)
        if (p.needed[position(&p, i)] && p.step[position(&p, i)] < 0)
            place_with_elements(&p, i);
    plan->root = p.step[position(&p, c->root)];
    plan->values = ARENA_ARRAY(e->arena, Literal *, plan->n);
    for (int32_t s = 0; s < plan->n; s++)
        prepare(e, plan, s);
    find_last_uses(e, &p);
    map_put(&e->plans, c, plan);
    return plan;
}

/* Running */

static void drop_operands(Eval *e, Literal **x, int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        eval_drop(e, eval_move(x, k));
}

/* The value of i, shown to who looks on. A second reference keeps operands as they are. */
static Literal *run_watched(Eval *e, const Inst *i, Literal **x)
{
    const EvalWatch *w = e->watch;
    const EvalFrame *frame = e->frame;
    Literal **seen = w->wants_operands && i->n_operands > 0 ? mem_alloc(i->n_operands, sizeof *seen) : NULL;
    for (int32_t k = 0; seen && k < i->n_operands; k++)
        seen[k] = literal_ref(x[k]);
    if (w->before)
        w->before(w->cookie, i, e->device);
    Literal *r = eval_sized(e, i, x);
    if (!e->failed && !w->after(w->cookie, &(EvalStep){i, frame, seen, r, e->device}))
        e->failed = true;
    if (seen)
        drop_operands(e, seen, i->n_operands);
    free(seen);
    return r;
}

/* A kernel on whole arrays, as its handler does it: over an operand that dies here, else into a new array. */
static Literal *run_kernel(Eval *e, Plan *p, const Step *s)
{
    const Arith *k = s->kernel;
    const void *data[ARITH_OPERANDS];
    Literal *r = NULL;
    for (int32_t j = 0; j < k->n; j++) {
        Literal *v = p->values[s->slots[j].from];
        data[j] = v->data;
        if (!r && s->slots[j].last && k->type[j] == k->out && !k->scalar[j] && is_own(v))
            r = v;
    }
    if (!r)
        r = eval_new_for(e, s->inst, s->inst->shape);
    else if (!eval_work(e, s->inst, r->count))
        return NULL;
    if (r && s->direct)
        k->fn(k, r->data, data, r->count);
    else if (r)
        arith_run(k, r->data, data, r->count);
    for (int32_t j = 0; j < k->n; j++)
        if (s->slots[j].last) {
            Literal *v = eval_move(p->values, s->slots[j].from);
            if (v != r)
                eval_drop(e, v);
        }
    return r;
}

static Literal *run_element(Eval *e, Plan *p, const Step *s)
{
    Literal **tuple = &p->values[s->slots[0].from], **v = (*tuple)->elems;
    Literal *r = s->takes && is_own(*tuple) ? eval_move(v, (int32_t)s->index) : literal_ref(v[s->index]);
    if (s->slots[0].last)
        eval_drop(e, eval_move(tuple, 0));
    return r;
}

/* A value that is kept counts as the work that it took, and is no memory of this run. */
static Literal *run_handler(Eval *e, const Inst *i, Literal **x)
{
    EvalMemo *m = e->options->memo;
    if (!m || !memo_takes(i, x))
        return eval_handlers[i->op](e, i, x);
    MemoKey  key = memo_key(m, i, x);
    int64_t  took, before = e->work;
    Literal *r = memo_get(m, key, &took);
    if (r) {
        eval_work(e, i, took);
        return r;
    }
    r = eval_handlers[i->op](e, i, x);
    if (!e->failed && memo_put(m, key, r, e->work - before))
        *e->live -= literal_bytes(r);
    return r;
}

static Literal *run_step(Eval *e, Plan *p, const Step *s)
{
    const Inst *i = s->inst;
    switch (e->watch ? STEP_HANDLER : s->kind) {
    case STEP_PARAMETER: return eval_move(e->args, (int32_t)s->index);
    case STEP_ELEMENT: return run_element(e, p, s);
    case STEP_KERNEL: return run_kernel(e, p, s);
    case STEP_CONSTANT: case STEP_HANDLER: break;
    }
    for (int32_t k = 0; k < i->n_operands; k++) {
        Literal **v = &p->values[s->slots[k].from];
        p->x[k] = s->slots[k].last ? eval_move(v, 0) : literal_ref(*v);
    }
    Literal *r = e->watch ? run_watched(e, i, p->x) : s->fixed ? run_handler(e, i, p->x) : eval_sized(e, i, p->x);
    drop_operands(e, p->x, i->n_operands);
    if (e->failed) {
        eval_drop(e, r);
        return NULL;
    }
    if (!type_is_array(r->type) || sizes_fit(r, i->shape))
        return r;
    if (r->type != i->shape->type || r->rank != i->shape->rank)
        die("%s %%%s gave a value of another shape", op_name(i->op), i->name);
    eval_drop(e, r);
    return eval_fail(e, i, "%s %%%s: its value is smaller than its type, whose sizes are fixed", op_name(i->op), i->name);
}

Literal *eval_comp(Eval *e, const Inst *caller, const Comp *c, Literal **args)
{
    if (e->depth >= MAX_CALL_DEPTH) {
        drop_operands(e, args, c->n_params);
        return eval_fail(e, caller, "%s %%%s: calls nest deeper than %d", op_name(caller->op), caller->name, MAX_CALL_DEPTH);
    }
    Plan *p = plan_for(e, c);
    Literal **outer = e->args;
    const EvalFrame *outer_frame = e->frame;
    EvalFrame frame = {outer_frame, outer_frame ? caller : NULL, e->trip};
    e->args = args;
    e->frame = &frame;
    e->trip = -1;
    e->depth++;
    bool ok = true;
    for (int32_t s = 0; s < p->n && ok; s++) {
        bool constant = p->steps[s].kind == STEP_CONSTANT;
        if (constant && !e->watch)
            continue;
        Literal *v = run_step(e, p, &p->steps[s]);
        ok = v != NULL;
        if (constant)
            eval_drop(e, v); /* it was run to be seen */
        else
            p->values[s] = v;
    }
    Literal *root = !ok ? NULL : p->steps[p->root].kind == STEP_CONSTANT ? literal_ref(p->values[p->root]) : eval_move(p->values, p->root);
    for (int32_t s = 0; s < p->n; s++)
        if (p->values[s] && p->steps[s].kind != STEP_CONSTANT)
            eval_drop(e, eval_move(p->values, s));
    drop_operands(e, args, c->n_params);
    e->depth--;
    e->args = outer;
    e->frame = outer_frame;
    return root;
}

bool eval_may_trip(Eval *e, const Inst *loop, int64_t t)
{
    int64_t most = e->options->max_trips;
    if (most == 0 || t < most)
        return eval_work(e, loop, 1); /* a loop that computes nothing comes to the limit, too */
    eval_fail(e, loop, "%s %%%s: more than %lld iteration%s", op_name(loop->op), loop->name, (long long)most, most == 1 ? "" : "s");
    return false;
}

Literal *eval_trip(Eval *e, const Inst *loop, const Comp *c, Literal **args, int64_t t)
{
    if (!eval_may_trip(e, loop, t)) {
        drop_operands(e, args, c->n_params);
        return NULL;
    }
    e->trip = t;
    return eval_comp(e, loop, c, args);
}

Literal *eval_parameter(Eval *e, const Inst *i, Literal **x)
{
    return eval_move(e->args, (int32_t)i->param);
}

Literal *eval_constant(Eval *e, const Inst *i, Literal **x)
{
    if (literal_has_elided(i->literal))
        return eval_fail(e, i, "the values of constant %%%s are elided ({...}): give them with --constants=F.npz or --fill-elided=SEED|zeros",
                         i->name);
    return literal_ref(i->literal);
}

/* Entry points */

static const EvalOptions no_limits = {0};

static int64_t machine_memory(void)
{
    struct sysinfo machine; /* sysconf reads a file for it, which takes longer than a small module */
    if (!sysinfo(&machine) && machine.totalram <= (unsigned long)INT64_MAX / machine.mem_unit)
        return (int64_t)machine.totalram * machine.mem_unit;
    return INT64_MAX;
}

/* What a run starts with, whatever was run before. */
static void start_run(Eval *e, const EvalOptions *o, Diag *d)
{
    e->options = o ? o : &no_limits;
    e->diag = d;
    e->scratch = arena_new();
    e->limit = e->memory;
    if (e->options->memory_limit > 0 && e->options->memory_limit < e->limit)
        e->limit = e->options->memory_limit;
    e->watch = e->options->watch;
    e->work = e->own_live = 0;
    e->failed = false;
    e->rng_state = 0x7012395;
    e->trip = -1;
}

void eval_start(Eval *e, const EvalOptions *o, Diag *d)
{
    *e = (Eval){.arena = arena_new(), .on = {1, 1}, .memory = machine_memory()};
    e->live = &e->own_live;
    e->plans = map_new(e->arena);
    e->bodies = map_new(e->arena);
    e->loops = map_new(e->arena);
    e->groups = map_new(e->arena);
    e->meanings = map_new(e->arena);
    e->externs = map_new(e->arena);
    e->lapack = map_new(e->arena);
    start_run(e, o, d);
}

void eval_end(Eval *e)
{
    arena_free(e->scratch);
    arena_free(e->arena);
}

/* Each array alone must fit: what is absurd is refused before anything runs. */
static bool arrays_fit(Eval *e, const Comp *c)
{
    for (const Inst *i = c->first; i; i = i->next) {
        if (!shape_is_array(i->shape))
            continue;
        int64_t bytes = shape_bytes(i->shape);
        if (i->shape->rank > WALK_RANK) {
            eval_fail(e, i, "%s %%%s: more than %d dimensions", op_name(i->op), i->name, WALK_RANK);
            return false;
        }
        if (bytes < 0 || bytes > e->limit) {
            eval_fail(e, i, "%s %%%s: an array of this size does not fit into memory", op_name(i->op), i->name);
            return false;
        }
    }
    return true;
}

bool eval_fits(Eval *e, const Module *m)
{
    bool ok = true;
    for (const Comp *c = m->first; c && ok; c = c->next)
        ok = arrays_fit(e, c);
    return ok;
}

Literal *eval_entry(Eval *e, const Module *m, int32_t n_args, Literal *const *args)
{
    Literal **own = ARENA_ARRAY(e->scratch, Literal *, n_args);
    for (int32_t k = 0; k < n_args; k++)
        own[k] = literal_ref(args[k]);
    Literal *result = eval_comp(e, m->entry->root, m->entry, own);
    transfer_end(e);
    return result;
}

void eval_count_work(const Eval *e)
{
    int64_t most = e->options->work_limit;
    if (e->options->work)
        *e->options->work += most && e->work > most ? most : e->work;
}

struct Evaluation {
    Eval          e;
    const Module *m;
    int64_t       fits; /* every array of m fits under this limit */
};

Evaluation *evaluation_open(const Module *m)
{
    Evaluation *v = mem_alloc(1, sizeof *v);
    v->m = m;
    return v;
}

Literal *evaluation_run(Evaluation *v, int32_t n_args, Literal *const *args, const EvalOptions *o, Diag *d)
{
    Eval *e = &v->e;
    if (e->arena)
        start_run(e, o, d);
    else
        eval_start(e, o, d);
    if ((v->fits == 0 || v->fits > e->limit) && eval_fits(e, v->m))
        v->fits = e->limit;
    Literal *result = e->failed ? NULL : eval_entry(e, v->m, n_args, args);
    eval_count_work(e);
    arena_free(e->scratch);
    e->scratch = NULL;
    return result;
}

void evaluation_close(Evaluation *v)
{
    if (!v)
        return;
    eval_end(&v->e);
    mem_free(v);
}

Literal *eval_module(const Module *m, int32_t n_args, Literal *const *args, const EvalOptions *o, Diag *d)
{
    Evaluation *v = evaluation_open(m);
    Literal *result = evaluation_run(v, n_args, args, o, d);
    evaluation_close(v);
    return result;
}

Literal *eval_inst(const Inst *i, Literal *const *operands, const EvalOptions *o, Diag *d)
{
    Eval e;
    eval_start(&e, o, d);
    Literal **x = ARENA_ARRAY(e.scratch, Literal *, i->n_operands);
    bool ok = !type_is_array(i->shape->type) || i->shape->rank <= WALK_RANK;
    for (int32_t k = 0; k < i->n_operands; k++) {
        x[k] = literal_ref(operands[k]);
        ok = ok && x[k]->rank <= WALK_RANK;
    }
    Literal *r = ok ? eval_handlers[i->op](&e, i, x) : eval_fail(&e, i, "%s %%%s: more than %d dimensions", op_name(i->op), i->name, WALK_RANK);
    drop_operands(&e, x, i->n_operands);
    if (e.failed)
        eval_drop(&e, eval_move(&r, 0));
    eval_count_work(&e);
    eval_end(&e);
    return r;
}
