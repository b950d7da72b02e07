/* The planner's frame: a module comes in, the Program leaves. Arguments and results are the leaves of the ENTRY parameters and of its
 * root in the layouts of entry_computation_layout. */
#include "emit/kernel_ir.h"
#include "emit/plan.h"

#include <string.h>

#include "emit/effort.h"
#include "emit/expand.h"

static int32_t array_leaves(const Shape *s)
{
    return shape_leaf_count(s, false);
}

/* "p", or "p.0.1" for a leaf of a tuple, written into names[] for every array leaf of s. */
static void leaf_names(Arena *a, const Shape *s, const char *name, const char **names, int32_t *n)
{
    if (shape_is_tuple(s))
        for (int32_t k = 0; k < s->n_elems; k++)
            leaf_names(a, s->elems[k], arena_printf(a, "%s.%d", name, k), names, n);
    else if (type_bytes(s->type))
        names[(*n)++] = name;
}

/* ---- arguments and results ---- */

static Value **entry_params(Plan *p, Slot **args)
{
    const Comp *c = p->module->entry;
    Value     **v = ARENA_ARRAY(p->work, Value *, c->n_params);
    int32_t     n = 0, names = 0;
    const char **name = ARENA_ARRAY(p->arena, const char *, p->program->n_args);
    for (int32_t k = 0; k < c->n_params; k++) {
        const Inst   *i = comp_param(c, k);
        int32_t       leaves;
        const Shape **shapes = leaf_shapes(p, p->module->entry_params->v[k], &leaves);
        leaf_names(p->arena, i->shape, i->name, name, &names);
        v[k] = value_new(p, leaves);
        for (int32_t e = 0; e < leaves; e++) {
            v[k]->v[e] = (Leaf){ NULL, shapes[e] };
            if (!type_bytes(shapes[e]->type))
                continue;
            Slot *s = v[k]->v[e].slot = args[n] = slot_new(p, BUFFER_ARG, shapes[e], i);
            s->buffer.index = n;
            p->program->args[n] = (ProgramLeaf){ name[n], shapes[e], s->buffer.bytes, -1 };
            n++;
        }
    }
    return v;
}

static Slot **entry_results(Plan *p)
{
    int32_t       leaves, n = 0;
    const Shape **shapes = leaf_shapes(p, p->module->entry_result, &leaves);
    Slot        **v = ARENA_ARRAY(p->work, Slot *, p->program->n_results);
    for (int32_t e = 0; e < leaves; e++) {
        if (!type_bytes(shapes[e]->type))
            continue;
        v[n] = slot_new(p, BUFFER_RESULT, shapes[e], p->module->entry->root);
        v[n]->buffer.index = n;
        p->program->results[n] = (ProgramLeaf){ arena_printf(p->arena, "out%d", n), shapes[e], v[n]->buffer.bytes, -1 };
        n++;
    }
    return v;
}

/* The flattened array number of the leaf at index of s, from `first` on, or -1. */
static int32_t leaf_at(const Shape *s, Ints index, int32_t first)
{
    for (int32_t k = 0; k < index.n; k++) {
        if (!shape_is_tuple(s) || index.v[k] < 0 || index.v[k] >= s->n_elems)
            return -1;
        for (int64_t e = 0; e < index.v[k]; e++)
            first += array_leaves(s->elems[e]);
        s = s->elems[index.v[k]];
    }
    return shape_is_tuple(s) || !type_bytes(s->type) ? -1 : first;
}

/* input_output_alias: which result may be the memory of which argument. A pair that cannot be (other sizes, given twice) is ignored:
 * the argument is then only read. */
static void donations(Plan *p, Slot *const *args, Slot *const *results)
{
    const Module *m = p->module;
    for (int32_t k = 0; k < m->n_aliases; k++) {
        const InputAlias *x = &m->aliases[k];
        int32_t           first = 0;
        if (x->param < 0 || x->param >= m->entry->n_params)
            continue;
        for (int64_t e = 0; e < x->param; e++)
            first += array_leaves(m->entry_params->v[e]);
        int32_t arg = leaf_at(m->entry_params->v[x->param], x->index, first), result = leaf_at(m->entry_result, x->output, 0);
        if (arg < 0 || result < 0 || args[arg]->donee || results[result]->donee ||
            args[arg]->buffer.bytes != results[result]->buffer.bytes)
            continue;
        args[arg]->donee = results[result];
        results[result]->donee = args[arg];
        p->program->args[arg].alias = result;
        p->program->results[result].alias = arg;
    }
}

static void write_results(Plan *p, StepList *body, const Value *root, Slot *const *results)
{
    int32_t n = 0;
    Slot  **from = ARENA_ARRAY(p->work, Slot *, p->program->n_results);
    for (int32_t k = 0; k < root->n; k++)
        if (root->v[k].slot) {
            from[n] = leaf_as(p, body, root->v[k], results[n]->buffer.shape, p->module->entry->root).slot;
            n++;
        }
    parallel_copy(p, body, n, results, from, p->module->entry->root);
}

/* ---- the finished tree ---- */

typedef struct Finish {
    Plan *p;
    VEC(const Buffer *) buffers;
    VEC(Constant) constants;
    VEC(Step *) steps;
    VEC(int32_t) ticks; /* of the steps */
} Finish;

static void number_constant(Finish *f, Slot *s)
{
    Plan *p = f->p;
    s->buffer.index = f->constants.n;
    if (literal_has_elided(s->literal)) {
        plan_fail(p, s->inst, "the values of this constant were left out of the text ({...})");
        diag_note(p->diag, LOC_NONE, "--fill-elided=SEED|zeros makes values up, --constants=F.npz brings them");
    }
    Constant c = { names_take(&p->names, "c_", s->inst->name), s->buffer.shape, s->literal, s->buffer.bytes, s->inst };
    vec_push(p->arena, &f->constants, c);
}

static const Buffer *finish_buffer(Finish *f, Slot *s)
{
    if (!s)
        return NULL;
    s = slot_root(s);
    if (s->final)
        return s->final;
    if (s->buffer.kind == BUFFER_CONST)
        number_constant(f, s);
    if (s->buffer.kind == BUFFER_COUNT)
        s->buffer.index = finish_buffer(f, s->counts)->index;
    if (s->buffer.kind == BUFFER_SCRATCH)
        s->buffer.name = names_take(&f->p->names, "v_", s->inst->name);
    s->final = arena_copy(f->p->arena, &s->buffer, sizeof s->buffer);
    if (s->buffer.kind == BUFFER_SCRATCH)
        vec_push(f->p->arena, &f->buffers, s->final);
    return s->final;
}

/* Nothing is to be copied, so that nothing need be there. */
static bool copies_nothing(const PlanStep *s)
{
    return s->step.kind == STEP_COPY && s->slots[1]->buffer.bytes == 0;
}

static Block finish_block(Finish *f, const StepList *list)
{
    Block b = { 0, ARENA_ARRAY(f->p->arena, Step *, list->n) };
    for (int32_t k = 0; k < list->n; k++) {
        PlanStep *s = list->v[k];
        if (s->dropped || copies_nothing(s))
            continue;
        f->p->program->n_kernels += s->step.kind == STEP_KERNEL;
        f->p->program->n_library += s->step.kind == STEP_CALL;
        f->p->program->n_copies += s->step.kind == STEP_COPY;
        f->p->program->random |= s->step.kind == STEP_RANDOM;
        f->p->program->may_fail |= s->step.kind == STEP_EXCHANGE || s->step.kind == STEP_CHECK || (s->step.call && s->step.call->outside);
        f->p->program->infeeds |= s->step.kind == STEP_EXCHANGE && s->step.exchange->kind == EXCHANGE_INFEED;
        f->p->program->outfeeds |= s->step.kind == STEP_EXCHANGE && s->step.exchange->kind == EXCHANGE_OUTFEED;
        f->p->program->on_devices |= s->step.kind == STEP_EXCHANGE || s->step.kind == STEP_REPLICA || s->step.kind == STEP_PARTITION;
        s->step.buffers = ARENA_ARRAY(f->p->arena, const Buffer *, s->step.n_buffers);
        for (int32_t e = 0; e < s->step.n_buffers; e++)
            s->step.buffers[e] = finish_buffer(f, s->slots[e]);
        s->step.number = f->steps.n;
        vec_push(f->p->arena, &f->steps, &s->step);
        vec_push(f->p->work, &f->ticks, s->tick);
        s->step.turns = ARENA_ARRAY(f->p->arena, Turn, s->turned.n);
        for (int32_t e = 0; e < s->turned.n; e++)
            s->step.turns[s->step.n_turns++] = (Turn){ finish_buffer(f, s->turned.v[e]->slots[1]), finish_buffer(f, s->turned.v[e]->slots[0]) };
        s->step.condition = finish_block(f, &s->condition);
        s->step.blocks = ARENA_ARRAY(f->p->arena, Block, s->step.n_blocks);
        for (int32_t e = 0; e < s->step.n_blocks; e++)
            s->step.blocks[e] = finish_block(f, &s->blocks[e]);
        b.v[b.n++] = &s->step;
    }
    return b;
}

/* ---- what the report tells ---- */

/* How many steps begin before tick t. */
static int32_t steps_before(const Finish *f, int32_t t)
{
    int32_t lo = 0, hi = f->ticks.n;
    while (lo < hi) {
        int32_t mid = lo + (hi - lo) / 2;
        if (f->ticks.v[mid] < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* A range of points of time as steps: point 2t and 2t + 1 are of tick t. */
static StepSpan span_of(const Finish *f, const Range *r)
{
    int32_t from = steps_before(f, r->from / 2), to = steps_before(f, (r->to - 1) / 2 + 1) - 1;
    return (StepSpan){ from, to < from ? from : to };
}

static void note_lives(const Finish *f, Buffer *x, const Range *ranges)
{
    StepSpan *v;
    for (const Range *r = ranges; r; r = r->next)
        x->n_lives++;
    x->lives = v = ARENA_ARRAY(f->p->arena, StepSpan, x->n_lives);
    for (const Range *r = ranges; r; r = r->next)
        *v++ = span_of(f, r);
}

/* Slots are in the order of the text. */
static void note_values(const Finish *f)
{
    const Plan *p = f->p;
    for (int32_t k = 0; k < p->slots.n; k++) {
        Buffer *x = slot_root(p->slots.v[k])->final;
        if (x)
            x->n_values++;
        if (x && x == p->slots.v[k]->final && x->kind == BUFFER_SCRATCH)
            note_lives(f, x, p->slots.v[k]->ranges);
    }
    for (int32_t k = 0; k < p->slots.n; k++) {
        Buffer *x = slot_root(p->slots.v[k])->final;
        if (!x)
            continue;
        if (!x->values) {
            x->values = ARENA_ARRAY(p->arena, const Inst *, x->n_values);
            x->n_values = 0;
        }
        ((const Inst **)(uintptr_t)x->values)[x->n_values++] = p->slots.v[k]->inst;
    }
}

static bool same_place(const Buffer *x, const Buffer *y)
{
    return x && y && x->kind == y->kind && (x->kind == BUFFER_SCRATCH ? x == y : x->index == y->index);
}

static bool same_memory(const Program *p, const Buffer *x, const Buffer *y)
{
    if (!x || !y)
        return false;
    if (x->kind == BUFFER_SCRATCH && y->kind == BUFFER_SCRATCH)
        return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
    if (x->kind == BUFFER_ARG && y->kind == BUFFER_RESULT)
        return p->results[y->index].alias == x->index;
    return x->kind == y->kind && x->index == y->index;
}

/* Kernels were lowered for all places that their results might take. Now that places are given, what none of the steps does need not be thought of when
 * their loops are shared among threads. */
static void settle_aliases(const Plan *p, int32_t n_steps, Step *const *steps)
{
    bool **before = ARENA_ARRAY(p->work, bool *, p->functions.n), **always = ARENA_ARRAY(p->work, bool *, p->functions.n);
    bool  *called = ARENA_ARRAY(p->work, bool, p->functions.n);
    for (int32_t f = 0; f < p->functions.n; f++) {
        Kernel *k = p->functions.v[f].kernel;
        before[f] = k->may_alias;
        k->may_alias = ARENA_ARRAY(p->arena, bool, k->n_operands * k->n_results);
        always[f] = ARENA_ARRAY(p->work, bool, k->n_operands * k->n_results);
    }
    for (int32_t s = 0; s < n_steps; s++) {
        const Step *x = steps[s];
        Kernel     *k = x->kind == STEP_KERNEL ? p->functions.v[x->function].kernel : NULL;
        if (!k)
            continue;
        for (int32_t r = 0; r < k->n_results; r++)
            for (int32_t o = 0; o < k->n_operands; o++) {
                int32_t pair = r * k->n_operands + o;
                always[x->function][pair] = (always[x->function][pair] || !called[x->function]) && same_place(x->buffers[o], x->buffers[k->n_operands + r]);
                if (!kernel_uses_param(k, o) || !kernel_uses_param(k, k->n_operands + r)) /* functions are shared by those that use the same, whatever else they are given */
                    continue;
                k->may_alias[pair] |= before[x->function][pair] && same_memory(p->program, x->buffers[o], x->buffers[k->n_operands + r]);
            }
        called[x->function] = true;
    }
    for (int32_t f = 0; f < p->functions.n; f++)
        kernel_settle(p->functions.v[f].kernel, always[f]);
}

static void finish(Plan *p, const StepList *body)
{
    Finish f = { .p = p };
    p->program->body = finish_block(&f, body);
    settle_aliases(p, f.steps.n, f.steps.v);
    note_values(&f);
    p->program->n_functions = p->functions.n;
    p->program->functions = p->functions.v;
    p->program->n_calls = p->calls.n;
    for (int32_t k = 0; k < p->calls.n; k++) {
        p->program->outside |= p->calls.v[k]->outside != NULL;
        p->program->runtime |= library_is_runtime(p->calls.v[k]);
        p->program->lapack |= library_is_lapack(p->calls.v[k]);
    }
    for (int32_t k = 0; k < p->functions.n && p->options->runtime; k++) {
        Function *x = &p->functions.v[k];
        if (kernel_tile_row(x->kernel))
            continue;
        x->n_ranges = kernel_ranges(p->arena, x->kernel, &x->ranges);
        p->program->runtime |= x->n_ranges > 0;
    }
    p->program->calls = p->calls.v;
    p->program->n_exchanges = p->exchanged.n;
    p->program->exchanges = p->exchanged.v;
    p->program->n_constants = f.constants.n;
    p->program->constants = f.constants.v;
    p->program->n_steps = f.steps.n;
    p->program->steps = f.steps.v;
    p->program->watched = p->options->watched;
    p->program->n_buffers = f.buffers.n;
    p->program->buffers = f.buffers.v;
    if (!p->options->device)
        program_note_minor(p->program);
}

static void name_program(Plan *p, const char *name)
{
    static const char *const parts[] = { "run", "scratch_bytes", "weights", "args", "results", "env", "info", "watch" };
    p->program->name = name;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        names_reserve(&p->names, arena_printf(p->work, "%s_%s", name, parts[k]));
}

static void plan_module(Plan *p)
{
    Program      *g = p->program;
    const Module *m = p->module;
    StepList      body = { 0 };
    for (int32_t k = 0; k < m->entry->n_params; k++)
        g->n_args += array_leaves(comp_param(m->entry, k)->shape);
    g->n_results = array_leaves(m->entry->root->shape);
    g->args = ARENA_ARRAY(p->arena, ProgramLeaf, g->n_args);
    g->results = ARENA_ARRAY(p->arena, ProgramLeaf, g->n_results);

    Slot  **args = ARENA_ARRAY(p->work, Slot *, g->n_args);
    Value **params = entry_params(p, args);
    Value  *root = plan_comp(p, &body, m->entry, params, NULL);
    if (p->bad)
        return;
    Slot **results = entry_results(p);
    donations(p, args, results);
    write_results(p, &body, root, results);
    plan_liveness(p, &body);
    plan_share(p);
    plan_turns(p, &body);
    plan_offsets(p);
    finish(p, &body);
}

Program *program_plan(Arena *a, const Module *m, const PlanOptions *o, Diag *d)
{
    static const PlanOptions none;
    Plan p = { .arena = a, .work = arena_new(), .options = o ? o : &none, .diag = d, .program = ARENA_NEW(a, Program) };
    p.program->on = p.options->on.replicas > 0 ? p.options->on : (Devices){ 1, 1 };
    p.exchanges = map_new(p.work);
    p.messages = map_new(p.work);
    p.module = m = module_expanded(a, m, p.program->on, p.options, &p.exchanges);
    p.program->products = p.options->products;
    p.program->device = p.options->device;
    p.names = names_new(a);
    p.values = map_new(p.work);
    p.given = map_new(p.work);
    p.kernels = map_new(p.work);
    p.shared = map_new(p.work);
    p.constants = map_new(p.work);
    p.reported = map_new(p.work);
    p.program->module = m;
    name_program(&p, p.options->name ? p.options->name : c_prefix(a, m->name));
    plan_module(&p);
    arena_free(p.work);
    return p.bad ? NULL : p.program;
}
