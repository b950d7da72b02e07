/* Instructions to steps. Comes in: a computation and the values of its parameters; leaves: its steps at the end of a list, and the value of
 * its root. Tuples are structure only, a value is the list of its leaves; calls are walked in place. Every result gets a slot of
 * its own here: what may share memory is found later, from where the slots are live. */
#include "emit/plan.h"
#include "emit/conv_graph.h"
#include "emit/fft_call.h"
#include "emit/product_call.h"
#include "emit/split.h"

#include <string.h>

#include "analysis/memory.h"
#include "analysis/peak.h"
#include "ir/call_meaning.h"
#include "ir/custom_call.h"
#include "ir/region.h"

#define DEEPEST 200
#define MOST_WALKED (1 << 20)

void plan_fail(Plan *p, const Inst *i, const char *fmt, ...)
{
    va_list ap;
    p->bad = true;
    if (map_has(&p->reported, i) || diag_full(p->diag))
        return;
    map_put(&p->reported, i, p);
    va_start(ap, fmt);
    inst_error(p->diag, i, "%s: %s", op_name(i->op), arena_vprintf(p->work, fmt, ap));
    va_end(ap);
}

/* ---- slots and leaves ---- */

Slot *slot_new(Plan *p, BufferKind kind, const Shape *shape, const Inst *i)
{
    Slot *s = ARENA_NEW(p->work, Slot);
    s->buffer = (Buffer){ .kind = kind, .index = -1, .shape = shape, .bytes = shape_bytes(shape) };
    if (s->buffer.bytes < 0) {
        plan_fail(p, i, "the size of %s does not fit in 63 bits", shape_text(p->work, shape));
        s->buffer.bytes = 0;
    }
    s->inst = i;
    s->id = p->slots.n;
    s->first_def = -1;
    s->copy = s->live_at = -1;
    vec_push(p->work, &p->slots, s);
    return s;
}

Slot *slot_constant(Plan *p, const Literal *l, const Shape *shape, const Inst *i)
{
    uint64_t h = literal_hash(l);
    Slot    *first = map_get_u64(&p->constants, h);
    for (Slot *s = first; s; s = s->next)
        if (literal_equal(s->literal, l) && shape_same_memory(s->buffer.shape, shape))
            return s;
    Slot *s = slot_new(p, BUFFER_CONST, shape, i);
    s->literal = l;
    s->next = first;
    map_put_u64(&p->constants, h, s);
    return s;
}

Slot *slot_zeros(Plan *p, const Shape *shape, const Inst *i)
{
    if (!type_bytes(shape->type))
        return NULL;
    Slot *s = slot_new(p, BUFFER_CONST, shape, i);
    s->literal = literal_keep(p->arena, literal_for_shape(shape, true));
    return s;
}

static void push_leaf_shapes(const Shape *s, const Shape **v, int32_t *n)
{
    if (shape_is_tuple(s))
        for (int32_t k = 0; k < s->n_elems; k++)
            push_leaf_shapes(s->elems[k], v, n);
    else
        v[(*n)++] = s;
}

const Shape **leaf_shapes(Plan *p, const Shape *s, int32_t *n)
{
    const Shape **v = ARENA_ARRAY(p->work, const Shape *, shape_leaf_count(s, true));
    *n = 0;
    push_leaf_shapes(s, v, n);
    return v;
}

/* ---- values ---- */

Value *value_new(Plan *p, int32_t n)
{
    Value *x = ARENA_NEW(p->work, Value);
    x->n = n;
    x->v = ARENA_ARRAY(p->work, Leaf, n);
    return x;
}

Value *value_fresh(Plan *p, const Shape *s, const Inst *i)
{
    int32_t       n;
    const Shape **shapes = leaf_shapes(p, s, &n);
    Value        *x = value_new(p, n);
    for (int32_t k = 0; k < n; k++)
        x->v[k] = (Leaf){ type_bytes(shapes[k]->type) ? slot_new(p, BUFFER_SCRATCH, shapes[k], i) : NULL, shapes[k] };
    return x;
}

Value *value_of(Plan *p, const Inst *i)
{
    Value *x = map_get(&p->values, i);
    if (!x)
        die("no value for %s", i->name);
    return x;
}

static Value *operand(Plan *p, const Inst *i, int32_t k)
{
    return value_of(p, i->operands[k].def);
}

Value *value_element(Plan *p, Value *whole, const Shape *s, int64_t k)
{
    Value *x = ARENA_NEW(p->work, Value);
    if (!whole->starts) {
        whole->starts = ARENA_ARRAY(p->work, int32_t, s->n_elems + 1);
        for (int32_t e = 0; e < s->n_elems; e++)
            whole->starts[e + 1] = whole->starts[e] + shape_leaf_count(s->elems[e], true);
    }
    x->v = whole->v + whole->starts[k];
    x->n = whole->starts[k + 1] - whole->starts[k];
    return x;
}

static void constant_leaves(Plan *p, const Inst *i, const Literal *l, const Shape *s, Value *x)
{
    if (shape_is_tuple(s))
        for (int32_t k = 0; k < s->n_elems; k++)
            constant_leaves(p, i, l->elems[k], s->elems[k], x);
    else
        x->v[x->n++] = (Leaf){ type_bytes(s->type) ? slot_constant(p, l, s, i) : NULL, s };
}

static Value *constant_value(Plan *p, const Inst *i)
{
    Value *x = value_new(p, shape_leaf_count(i->shape, true));
    x->n = 0;
    constant_leaves(p, i, i->literal, i->shape, x);
    return x;
}

/* ---- steps ---- */

PlanStep *step_new(Plan *p, StepList *out, StepKind kind, const Inst *i, int32_t n_slots)
{
    PlanStep *s = ARENA_NEW(p->arena, PlanStep);
    s->step.kind = kind;
    s->step.inst = i;
    s->step.callers = p->callers;
    s->step.n_buffers = n_slots;
    s->slots = ARENA_ARRAY(p->arena, Slot *, n_slots);
    s->depth = p->loops;
    vec_push(p->work, out, s);
    return s;
}

PlanStep *step_copy(Plan *p, StepList *out, Slot *to, Slot *from, const Inst *i)
{
    PlanStep *s = step_new(p, out, STEP_COPY, i, 2);
    s->step.n_operands = 1;
    s->slots[0] = from;
    s->slots[1] = to;
    return s;
}

/* What lowering an instruction gave. */
typedef struct Lowered {
    Kernel         *kernel; /* NULL: it was refused and reported */
    int32_t         function;
    struct Lowered *next;   /* functions with the same hash */
} Lowered;

/* The function of a kernel that is equal to an earlier one, or a new one. */
static const Lowered *function_of(Plan *p, Kernel *k, const Inst *i)
{
    uint64_t h = kernel_hash(k);
    Lowered *first = map_get_u64(&p->shared, h);
    for (Lowered *l = first; l; l = l->next)
        if (kernel_equal(l->kernel, k))
            return l;
    Lowered *l = ARENA_NEW(p->work, Lowered);
    *l = (Lowered){ k, p->functions.n, first };
    map_put_u64(&p->shared, h, l);
    Function f = { .name = names_take(&p->names, "", i->name), .kernel = k, .inst = i };
    vec_push(p->arena, &p->functions, f);
    return l;
}

/* Of kernel k of i, which lives in an arena of its own. */
static const Lowered *lowered(Plan *p, Kernel *k, const Inst *i, Arena *own)
{
    static const Lowered refused;
    const Lowered *l = k ? function_of(p, k, i) : &refused;
    if (k && l->kernel == k)
        arena_defer(p->arena, (void (*)(void *))arena_free, own);
    else
        arena_free(own);
    map_put(&p->kernels, i, (void *)(uintptr_t)l);
    return l;
}

static const Lowered *lower(Plan *p, const Inst *i, Diag *d)
{
    const Lowered *l = map_get(&p->kernels, i);
    if (l)
        return l;
    Arena  *own = arena_new();
    Kernel *k = kernel_lower(own, i, (KernelOptions){ p->options->device, p->options->any_order, p->options->ranges }, d);
    if (k && p->options->device) {
        k->device = p->options->device;
        kernel_reserve_split(k);
    }
    if (k && p->options->products) {
        kernel_for_product(k);
        kernel_for_graph(k);
        kernel_for_transform(k);
    }
    return lowered(p, k, i, own);
}

const Kernel *plan_tile(Plan *p, const Inst *i, const Inst *hero, int64_t row, int32_t *function)
{
    const Lowered *l = map_get(&p->kernels, i);
    if (!l) {
        Arena  *own = arena_new();
        Kernel *k = p->options->device ? kernel_lower_element(own, i, hero, row) : kernel_lower_tile(own, i, hero, row);
        if (!k) {
            arena_free(own);
            return NULL;
        }
        l = lowered(p, k, i, own);
    }
    *function = l->function;
    return l->kernel && kernel_tile_row(l->kernel) ? l->kernel : NULL;
}

/* A call of i's kernel: operand leaves, result leaves, working memory. */
static void kernel_step(Plan *p, StepList *out, const Inst *i, const Value *in, const Value *result)
{
    const Lowered *l = lower(p, i, p->diag);
    if (!l->kernel) {
        p->bad = true;
        return;
    }
    int64_t   temp = kernel_temp_bytes(l->kernel);
    PlanStep *s = step_new(p, out, STEP_KERNEL, i, in->n + result->n + (temp > 0));
    int32_t   n = 0;
    s->step.kernel = l->kernel;
    s->step.function = l->function;
    for (int32_t k = 0; k < in->n; k++)
        if (in->v[k].slot)
            s->slots[n++] = in->v[k].slot;
    s->step.n_operands = n;
    for (int32_t k = 0; k < result->n; k++)
        if (result->v[k].slot)
            s->slots[n++] = result->v[k].slot;
    s->n_results = n - s->step.n_operands;
    if (temp > 0)
        s->slots[n++] = slot_new(p, BUFFER_SCRATCH, shape_array(p->arena, TYPE_U8, 1, &temp), i);
    s->step.n_buffers = n;
    for (int32_t k = 0; k < n; k++)
        if (!kernel_uses_param(l->kernel, k))
            s->slots[k] = NULL;
}

Module *plan_helper(Plan *p)
{
    if (!p->helper) {
        p->helper = module_new();
        arena_defer(p->arena, (void (*)(void *))module_free, p->helper);
    }
    return p->helper;
}

Leaf leaf_as(Plan *p, StepList *out, Leaf x, const Shape *want, const Inst *why)
{
    if (!x.slot || shape_same_memory(x.shape, want))
        return (Leaf){ x.slot, want };
    plan_helper(p);
    Comp *c = comp_new(p->helper, comp_unique_name(p->helper, "order"));
    Inst *param = inst_parameter(c, NULL, 0, shape_copy(p->helper->arena, x.shape), why->name);
    Inst *copy = inst_new(c, NULL, OP_COPY, shape_copy(p->helper->arena, want), 1, &param, arena_printf(p->work, "%s.order", why->name));
    copy->meta = why->meta;
    copy->loc = why->loc;
    Value in = { .n = 1, .v = &x }, *result = plan_transpose(p, out, copy, x);
    if (!result) {
        result = value_fresh(p, copy->shape, copy);
        kernel_step(p, out, copy, &in, result);
    }
    return result->v[0];
}

/* An instruction with a kernel of its own. Operands are handed over in the order in memory that its operands' shapes say. */
static Value *kernel_value(Plan *p, StepList *out, const Inst *i)
{
    int32_t n = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        n += operand(p, i, k)->n;
    Value *in = value_new(p, n), *result = value_fresh(p, i->shape, i);
    in->n = 0;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Value  *x = operand(p, i, k);
        const Shape **want = leaf_shapes(p, i->operands[k].def->shape, &n);
        for (int32_t e = 0; e < n; e++)
            in->v[in->n++] = leaf_as(p, out, x->v[e], want[e], i);
    }
    kernel_step(p, out, i, in, result);
    return result;
}

/* The value of operand k under i's own shape: no work unless the text changes the order in memory. */
static Value *forwarded_value(Plan *p, StepList *out, const Inst *i, int32_t k)
{
    const Inst   *from = i->operands[k].def;
    const Value  *x = operand(p, i, k);
    int32_t       n, m;
    const Shape **had = leaf_shapes(p, from->shape, &n), **has = leaf_shapes(p, i->shape, &m);
    if (n != m) {
        plan_fail(p, i, "the result %s is not of the operand's structure %s", shape_text(p->work, i->shape), shape_text(p->work, from->shape));
        return value_fresh(p, i->shape, i);
    }
    Value *y = value_new(p, n);
    for (int32_t e = 0; e < n; e++) {
        if (x->v[e].slot && (had[e]->type != has[e]->type || shape_count(had[e]) != shape_count(has[e])))
            plan_fail(p, i, "%s and %s are not the same array on one device", shape_text(p->work, had[e]), shape_text(p->work, has[e]));
        y->v[e] = leaf_as(p, out, x->v[e], shape_same_dims(had[e], has[e]) ? x->v[e].shape : had[e], i);
        if (!shape_same_dims(had[e], has[e]))
            y->v[e].shape = has[e];
    }
    return y;
}

static bool is_array_copy(const Inst *i)
{
    return i->op == OP_COPY && shape_is_array(i->shape) && !shape_same_memory(i->shape, i->operands[0].def->shape);
}

static Value *several_or_one(Plan *p, StepList *out, const Inst *i)
{
    return i->n_operands > 1 && shape_is_tuple(i->shape) ? plan_tuple(p, i) : forwarded_value(p, out, i, 0);
}

static Value *custom_call_value(Plan *p, StepList *out, const Inst *i)
{
    const char *target = inst_string(i, ATTR_CUSTOM_CALL_TARGET), *why = custom_call_refused(p->work, i);
    const Comp *c;
    switch (custom_call_kind(target)) {
    case CALL_LAPACK:
        return plan_library(p, out, i);
    case CALL_MEANING:
        if ((c = call_meaning(p->arena, i, &why)) != NULL)
            return plan_call(p, out, i, c);
        break;
    case CALL_UNDEFINED: /* memory with any contents, or no memory at all */
        return value_fresh(p, i->shape, i);
    case CALL_SEED:
        why = "emitted code has no seed";
        break;
    case CALL_CUT:
    case CALL_JOIN:
        if (p->program->on.partitions > 1) { /* it would have been expanded */
            why = region_refused(p->work, i, p->program->on);
            break;
        }
        if (!why)
            return several_or_one(p, out, i);
        break;
    case CALL_MARKER:
        if (!why)
            return several_or_one(p, out, i);
        break;
    case CALL_UNKNOWN:
        return plan_extern(p, out, i);
    }
    plan_fail(p, i, "\"%s\" %%%s: %s", target, i->name, why);
    return value_fresh(p, i->shape, i);
}

/* Words of the run's own: its random state, its seed. */
static Value *run_value(Plan *p, StepList *out, const Inst *i, StepKind kind)
{
    Value    *x = value_fresh(p, i->shape, i);
    PlanStep *s;
    if (i->shape->type != TYPE_U64 || i->shape->rank != (kind == STEP_RANDOM) || i->n_operands > 0) {
        plan_fail(p, i, "the result must be %s", kind == STEP_RANDOM ? "u64[2]" : "u64[]");
        return x;
    }
    s = step_new(p, out, kind, i, 1);
    s->slots[0] = x->v[0].slot;
    s->n_results = 1;
    return x;
}

static bool is_seed(const Inst *i)
{
    const char *target = i->op == OP_CUSTOM_CALL ? inst_string(i, ATTR_CUSTOM_CALL_TARGET) : NULL;
    return target && strcmp(target, "GetRngSeed") == 0;
}

/* A fusion is one kernel, or if that cannot be (it holds loops, other fusions, trees of tuples) its instructions one by one. */
static Value *fusion_value(Plan *p, StepList *out, const Inst *i)
{
    Diag   quiet;
    Value *called = plan_attention(p, out, i);
    if (!called)
        called = plan_output(p, out, i);
    if (called)
        return called;
    diag_init(&quiet, p->work);
    return lower(p, i, &quiet)->kernel ? kernel_value(p, out, i) : plan_call(p, out, i, inst_callee(i, 0));
}

static Value *product_value(Plan *p, StepList *out, const Inst *i)
{
    Value *called = plan_routine(p, out, i);
    if (called)
        return called;
    called = i->op == OP_DOT ? plan_dot(p, out, i) : i->op == OP_CONVOLUTION ? plan_conv(p, out, i) : i->op == OP_FFT ? plan_fft(p, out, i)
                                                           : i->op == OP_REDUCE_WINDOW ? plan_scan(p, out, i)
                                                           : i->op == OP_TRIANGULAR_SOLVE ? plan_solve(p, out, i) : NULL;
    return called ? called : kernel_value(p, out, i);
}

static Value *transpose_value(Plan *p, StepList *out, const Inst *i)
{
    Value *called = plan_transpose(p, out, i, operand(p, i, 0)->v[0]);
    return called ? called : kernel_value(p, out, i);
}

static Value *sort_value(Plan *p, StepList *out, const Inst *i)
{
    Value *called = i->op == OP_SORT ? plan_sort(p, out, i) : plan_topk(p, out, i);
    return called ? called : kernel_value(p, out, i);
}

/* A bitcast to another layout: the same memory, read otherwise. */
static bool is_renamed(const Inst *i)
{
    const Shape *from = i->op == OP_BITCAST ? i->operands[0].def->shape : NULL;
    return from && shape_is_array(from) && shape_is_array(i->shape) && from->type == i->shape->type && !shape_is_dynamic(from) && !shape_is_dynamic(i->shape) &&
           shape_count(from) == shape_count(i->shape);
}

static Value *renamed_value(Plan *p, StepList *out, const Inst *i)
{
    Value *y = value_new(p, 1);
    y->v[0] = leaf_as(p, out, operand(p, i, 0)->v[0], i->operands[0].def->shape, i);
    y->v[0].shape = i->shape;
    return y;
}

static Value *inst_value(Plan *p, StepList *out, const Inst *i)
{
    Exchange *x = map_get(&p->exchanges, i);
    int32_t   k = is_array_copy(i) ? -1 : inst_forwards(i);
    if (x)
        return plan_exchange(p, out, i, x);
    if (is_renamed(i))
        return renamed_value(p, out, i);
    if (k >= 0 && i->op != OP_CUSTOM_CALL)
        return forwarded_value(p, out, i, k);
    if (is_seed(i))
        return run_value(p, out, i, STEP_SEED);
    switch (i->op) {
    case OP_CONSTANT:
        return constant_value(p, i);
    case OP_TUPLE:
        return plan_tuple(p, i);
    case OP_GET_TUPLE_ELEMENT:
        return value_element(p, operand(p, i, 0), i->operands[0].def->shape, inst_int(i, ATTR_INDEX, 0));
    case OP_AFTER_ALL:
        return value_fresh(p, i->shape, i);
    case OP_REPLICA_ID:
    case OP_PARTITION_ID:
        return plan_device_number(p, out, i);
    case OP_RNG_GET_AND_UPDATE_STATE:
        return run_value(p, out, i, STEP_RANDOM);
    case OP_COPY_START:
        return plan_started(p, i);
    case OP_COPY_DONE:
        return value_element(p, operand(p, i, 0), i->operands[0].def->shape, 0);
    case OP_ASYNC_START:
        return plan_async_start(p, out, i);
    case OP_ASYNC_DONE:
    case OP_ALL_GATHER_DONE:
    case OP_COLLECTIVE_PERMUTE_DONE:
        return value_element(p, operand(p, i, 0), i->operands[0].def->shape, 1);
    case OP_SEND:
    case OP_SEND_DONE:
    case OP_RECV:
    case OP_RECV_DONE:
        return plan_message(p, out, i);
    case OP_INFEED:
    case OP_OUTFEED:
        return plan_feed(p, out, i);
    case OP_GET_DIMENSION_SIZE:
        return plan_dimension_size(p, i);
    case OP_SET_DIMENSION_SIZE:
        plan_check_size(p, i);
        return forwarded_value(p, out, i, 0);
    case OP_FUSION:
        return fusion_value(p, out, i);
    case OP_CALL:
        return plan_call(p, out, i, inst_callee(i, 0));
    case OP_WHILE:
        return plan_while(p, out, i);
    case OP_CONDITIONAL:
        return plan_conditional(p, out, i);
    case OP_CHOLESKY:
    case OP_CONVOLUTION:
    case OP_DOT:
    case OP_FFT:
    case OP_REDUCE_WINDOW:
    case OP_TRIANGULAR_SOLVE:
        return product_value(p, out, i);
    case OP_SORT:
    case OP_TOPK:
        return sort_value(p, out, i);
    case OP_TRANSPOSE:
        return transpose_value(p, out, i);
    case OP_COPY:
        return is_array_copy(i) ? transpose_value(p, out, i) : kernel_value(p, out, i);
    default:
        if (op_has(i->op, F_COLLECTIVE))
            return plan_collective(p, i);
        return i->op == OP_CUSTOM_CALL ? custom_call_value(p, out, i) : kernel_value(p, out, i);
    }
}

static void stop(Plan *p, const Inst *i, const char *fmt, int limit) __attribute__((format(printf, 3, 0)));
static void stop(Plan *p, const Inst *i, const char *fmt, int limit)
{
    if (!p->stopped)
        plan_fail(p, i, fmt, limit);
    p->stopped = true;
}

/* A step that shows the value x of i. */
static void show_value(Plan *p, StepList *out, const Inst *i, const Value *x)
{
    PlanStep *s = step_new(p, out, STEP_VALUE, i, x->n);
    s->step.n_operands = x->n;
    s->step.shapes = ARENA_ARRAY(p->arena, const Shape *, x->n);
    for (int32_t k = 0; k < x->n; k++) {
        s->slots[k] = x->v[k].slot;
        s->step.shapes[k] = shape_copy(p->arena, x->v[k].shape); /* it may be of the planner's own memory */
    }
}

static void walk_inst(Plan *p, StepList *out, const Inst *i, Value *const *params)
{
    if (plan_is_positions_alone(p, i))
        return;
    Value *given = map_get(&p->given, i), *x = i->op == OP_PARAMETER ? params[i->param] : given ? given : inst_value(p, out, i);
    map_put(&p->values, i, x);
    if (p->options->is_shown && p->options->is_shown(p->options->shown_cookie, i) && !p->bad)
        show_value(p, out, i, x);
}

Value *plan_comp(Plan *p, StepList *out, const Comp *c, Value *const *params, const Inst *caller)
{
    int32_t        n;
    const Callers *outer = p->callers;
    if (p->depth >= DEEPEST)
        stop(p, caller, "computations call each other more than %d deep", DEEPEST);
    if (p->walked > MOST_WALKED)
        stop(p, caller, "the module has more than %d instructions once calls are inlined", MOST_WALKED);
    if (p->stopped)
        return value_fresh(p, c->root->shape, c->root);
    CompPeak     peak;
    const Inst **order = schedule_for_peak(p->work, c, NULL, &n, &peak);
    p->depth++;
    if (caller)
        p->callers = arena_copy(p->arena, &(Callers){ outer, caller }, sizeof(Callers));
    for (int32_t k = 0; k < n && !p->stopped; k++) {
        const Inst *i = order[k];
        p->walked++;
        p->stopped = p->stopped || diag_full(p->diag);
        walk_inst(p, out, i, params);
    }
    p->depth--;
    p->callers = outer;
    return p->stopped ? value_fresh(p, c->root->shape, c->root) : value_of(p, c->root);
}
