/* Custom calls of LAPACK routines, and of functions from outside, to steps. LAPACK's operands are brought into the order by columns where they
 * do not lie so; results lie so, and whoever wants another order brings them there. Functions from outside get the layouts of the text. */
#include "emit/plan.h"
#include "passes/util.h"

#include <string.h>

bool library_is_runtime(const LibraryCall *c)
{
    return c->dot || c->conv || c->solve || c->fft || c->scan || c->attention || c->order;
}

bool library_is_lapack(const LibraryCall *c)
{
    return !c->outside && !c->routine && !library_is_runtime(c);
}

bool library_is_routine(const Inst *i)
{
    return (i->op == OP_CHOLESKY || i->op == OP_TRIANGULAR_SOLVE) && shape_is_array(i->shape) && shape_count(i->shape) > 0;
}

bool library_may_alias(const LibraryCall *c, int32_t r, int32_t o)
{
    if (c->outside)
        return c->outside->alias[r] == o;
    if (c->routine || library_is_runtime(c))
        return false;
    for (int32_t k = 0; k < c->lapack.n_buffers; k++)
        if (c->lapack.buffers[k].operand == o && c->lapack.buffers[k].result == r)
            return true;
    return false;
}

const char *library_symbol(const LibraryCall *c)
{
    if (c->outside)
        return c->outside->symbol;
    if (c->routine)
        return op_name(c->inst->op);
    return c->dot ? c->dot->symbol : c->conv ? c->conv->symbol : c->solve ? c->solve->symbol : c->fft ? c->fft->symbol : c->scan ? c->scan->symbol : c->attention ? c->attention->symbol : c->order ? c->order->symbol : c->lapack.symbol;
}

static bool lie_alike(const Shape *a, const Shape *b)
{
    return shape_equal(a, b) && (a->layout == b->layout || (a->layout && b->layout && layout_equal(a->layout, b->layout, a->rank)));
}

/* The same opcode of arrays that are alike and lie alike. */
static bool routine_equal(const Inst *x, const Inst *y)
{
    bool same = x->op == y->op && inst_attrs_equal(x, y) && lie_alike(x->shape, y->shape);
    for (int32_t k = 0; k < x->n_operands && same; k++)
        same = lie_alike(inst_operand(x, k)->shape, inst_operand(y, k)->shape);
    return same;
}

bool library_equal(const LibraryCall *a, const LibraryCall *b)
{
    const LapackCall *x = &a->lapack, *y = &b->lapack;
    if (a->outside || b->outside) /* each call hands over its own name */
        return false;
    if (a->tile != b->tile || a->packed_bytes != b->packed_bytes)
        return false;
    if (a->routine || b->routine)
        return a->routine && b->routine && routine_equal(a->inst, b->inst);
    if (a->order || b->order)
        return a->order && b->order && order_call_equal(a->order, b->order);
    if (a->dot || b->dot)
        return a->dot && b->dot && dot_call_equal(a->dot, b->dot);
    if (a->solve || b->solve)
        return a->solve && b->solve && solve_call_equal(a->solve, b->solve);
    if (a->scan || b->scan)
        return a->scan && b->scan && scan_call_equal(a->scan, b->scan);
    if (a->fft || b->fft)
        return a->fft && b->fft && fft_call_equal(a->fft, b->fft);
    if (a->attention || b->attention)
        return a->attention && b->attention && attention_call_equal(a->attention, b->attention);
    if (a->conv || b->conv)
        return a->conv && b->conv && conv_call_equal(a->conv, b->conv);
    bool same = strcmp(x->symbol, y->symbol) == 0 && x->batch == y->batch && x->n_args == y->n_args && x->n_buffers == y->n_buffers;
    for (int32_t k = 0; same && k < x->n_args; k++)
        same = x->args[k].kind == y->args[k].kind && x->args[k].value == y->args[k].value;
    for (int32_t k = 0; same && k < x->n_buffers; k++)
        same = x->buffers[k].rows == y->buffers[k].rows && x->buffers[k].columns == y->buffers[k].columns;
    return same;
}

static int64_t argument_bytes(const LapackCall *c, const LapackArg *x)
{
    switch (x->kind) {
    case LAPACK_COPY:
    case LAPACK_PACKED: return c->buffers[x->value].count * type_bytes(c->type);
    case LAPACK_WORK: return c->work * type_bytes(c->type);
    case LAPACK_RWORK: return c->rwork * type_bytes(lapack_real_type(c->type));
    case LAPACK_IWORK: return c->iwork * type_bytes(TYPE_S32);
    default: return 0;
    }
}

static void place_memory(LibraryCall *c)
{
    for (int32_t k = 0; k < c->lapack.n_args; k++) {
        int64_t bytes = lapack_is_empty(&c->lapack) ? 0 : argument_bytes(&c->lapack, &c->lapack.args[k]);
        c->place[k] = bytes > 0 ? c->temp_bytes : -1;
        c->temp_bytes += (bytes + PROGRAM_ALIGN - 1) / PROGRAM_ALIGN * PROGRAM_ALIGN;
    }
}

int32_t plan_call_number(Plan *p, LibraryCall *c)
{
    for (int32_t k = 0; k < p->calls.n; k++)
        if (library_equal(p->calls.v[k], c))
            return k;
    c->name = names_take(&p->names, "", c->inst->name);
    vec_push(p->arena, &p->calls, c);
    return p->calls.n - 1;
}

/* s with its last two dimensions by columns, the others in order. */
static const Shape *by_columns(Arena *a, const Shape *s, int32_t matrix_rank)
{
    Layout *l = ARENA_NEW(a, Layout);
    Ints    order = ints_make(a, s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        *ints_at(order, k) = s->rank - 1 - k;
    if (matrix_rank == 2) {
        *ints_at(order, 0) = s->rank - 2;
        *ints_at(order, 1) = s->rank - 1;
    }
    *l = (Layout){ .minor_to_major = order, .tail_padding = 1, .index_type = TYPE_COUNT, .pointer_type = TYPE_COUNT };
    return shape_with_layout(a, s, l);
}

/* An int for each matrix. */
static int64_t routine_bytes(const Inst *i)
{
    const Shape *s = i->shape;
    return i->op == OP_CHOLESKY ? (shape_count(s) / s->dims[s->rank - 1] / s->dims[s->rank - 2] * 4 + PROGRAM_ALIGN - 1) / PROGRAM_ALIGN * PROGRAM_ALIGN : 0;
}

/* Routine i of operands that lie there, as its own operands' shapes say. */
static Value *routine_step(Plan *p, StepList *out, const Inst *i, Slot *const *in)
{
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .routine = true, .temp_bytes = routine_bytes(i) };
    Value    *result = value_fresh(p, i->shape, i);
    PlanStep *s = step_new(p, out, STEP_CALL, i, i->n_operands + 1 + (c->temp_bytes > 0));
    s->step.function = plan_call_number(p, c);
    s->step.call = p->calls.v[s->step.function];
    s->step.n_operands = i->n_operands;
    s->n_results = 1;
    for (int32_t k = 0; k < i->n_operands; k++)
        s->slots[k] = in[k];
    s->slots[i->n_operands] = result->v[0].slot;
    if (c->temp_bytes > 0)
        s->slots[i->n_operands + 1] = slot_new(p, BUFFER_SCRATCH, shape_array(p->arena, TYPE_U8, 1, &c->temp_bytes), i);
    return result;
}

Value *plan_routine(Plan *p, StepList *out, const Inst *i)
{
    if (!p->options->device || !library_is_routine(i))
        return NULL;
    Slot **in = ARENA_ARRAY(p->work, Slot *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        in[k] = leaf_as(p, out, value_of(p, i->operands[k].def)->v[0], i->operands[k].def->shape, i).slot;
    return routine_step(p, out, i, in);
}

static int64_t option_of(const LapackCall *c, const char *name)
{
    for (int32_t k = 0; k < c->n_args; k++)
        if (c->args[k].kind == LAPACK_OPTION && strcmp(c->args[k].name, name) == 0)
            return c->args[k].value;
    die("a call without the option %s", name);
}

/* trsm as the opcode, whose routine needs no library: of matrices by columns. */
static const Inst *solve_of(Plan *p, const Inst *i, const LapackCall *c)
{
    Module       *m = plan_helper(p);
    Comp         *comp = comp_new(m, comp_unique_name(m, "solve"));
    Inst         *in[2];
    const int64_t transposed = option_of(c, "trans_x");
    for (int32_t k = 0; k < 2; k++) {
        const LapackBuffer *b = &c->buffers[k];
        const Shape        *shape = by_columns(p->work, i->operands[b->operand].def->shape, b->rank);
        in[k] = inst_parameter(comp, NULL, k, shape_copy(m->arena, shape), b->name);
    }
    Inst *solve = inst_new(comp, NULL, OP_TRIANGULAR_SOLVE, in[1]->shape, 2, in, i->name);
    inst_set_int(solve, ATTR_LEFT_SIDE, option_of(c, "side") == 'L');
    inst_set_int(solve, ATTR_LOWER, option_of(c, "uplo") == 'L');
    inst_set_int(solve, ATTR_UNIT_DIAGONAL, option_of(c, "diag") == 'U');
    inst_set_word(solve, ATTR_TRANSPOSE_A, transposed == 'N' ? TRANSPOSE_NO : transposed == 'T' ? TRANSPOSE_YES : TRANSPOSE_ADJOINT);
    solve->meta = i->meta;
    solve->loc = i->loc;
    return solve;
}

Value *plan_library(Plan *p, StepList *out, const Inst *i)
{
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    const char  *why = lapack_call(p->arena, i, &c->lapack);
    int32_t      n_results, n = 0;
    if (why) {
        plan_fail(p, i, "\"%s\" %%%s: %s", inst_string(i, ATTR_CUSTOM_CALL_TARGET), i->name, why);
        return value_fresh(p, i->shape, i);
    }
    c->inst = i;
    if (!p->options->device) /* whose libraries say when they run how much they need */
        place_memory(c);
    const bool    solves = p->options->device && c->lapack.id == LAPACK_TRSM && shape_count(i->shape) > 0;
    const Shape **shapes = leaf_shapes(p, i->shape, &n_results);
    Value        *result = value_new(p, n_results);
    PlanStep     *s = NULL;
    Slot        **in = ARENA_ARRAY(p->work, Slot *, i->n_operands);
    for (int32_t k = 0; k < c->lapack.n_buffers; k++) {
        const LapackBuffer *b = &c->lapack.buffers[k];
        if (b->operand >= 0) {
            const Shape *want = by_columns(p->arena, i->operands[b->operand].def->shape, b->rank);
            in[b->operand] = leaf_as(p, out, value_of(p, i->operands[b->operand].def)->v[0], want, i).slot;
        }
        if (b->result >= 0 && !solves) {
            const Shape *shape = by_columns(p->arena, shapes[b->result], b->rank);
            result->v[b->result] = (Leaf){ slot_new(p, BUFFER_SCRATCH, shape, i), shape };
        }
    }
    if (solves) {
        const LapackBuffer *const b = c->lapack.buffers;
        return routine_step(p, out, solve_of(p, i, &c->lapack), (Slot *const[]){ in[b[0].operand], in[b[1].operand] });
    }
    s = step_new(p, out, STEP_CALL, i, i->n_operands + n_results + (c->temp_bytes > 0));
    s->step.function = plan_call_number(p, c);
    s->step.call = p->calls.v[s->step.function];
    s->step.n_operands = i->n_operands;
    s->n_results = n_results;
    for (int32_t k = 0; k < i->n_operands; k++)
        s->slots[n++] = in[k];
    for (int32_t k = 0; k < n_results; k++)
        s->slots[n++] = result->v[k].slot;
    if (c->temp_bytes > 0)
        s->slots[n++] = slot_new(p, BUFFER_SCRATCH, shape_array(p->arena, TYPE_U8, 1, &c->temp_bytes), i);
    return result;
}

/* The leaves of i's operands in the orders that the call wants, tokens left out. */
static void extern_operands(Plan *p, StepList *out, const Inst *i, const ExternCall *x, Slot **slots)
{
    int32_t n = 0;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Value *v = value_of(p, i->operands[k].def);
        for (int32_t e = 0; e < v->n; e++)
            if (v->v[e].slot) {
                slots[n] = leaf_as(p, out, v->v[e], x->operands[n], i).slot;
                n++;
            }
    }
}

Value *plan_extern(Plan *p, StepList *out, const Inst *i)
{
    ExternCall  *x = ARENA_NEW(p->arena, ExternCall);
    const char  *target = inst_string(i, ATTR_CUSTOM_CALL_TARGET), *symbol = extern_symbol(p->work, target), *why = NULL;
    const PlanOptions *o = p->options;
    Value       *result = value_fresh(p, i->shape, i);
    if (!o->has_function || !o->has_function(o->cookie, symbol)) {
        bool first = !map_has(&p->reported, i) && !diag_full(p->diag);
        plan_fail(p, i, "no implementation for target \"%s\" (%%%s)", target, i->name);
        if (first)
            diag_note(p->diag, LOC_NONE, "hlo-run --custom-call=LIBRARY and hlo-codegen --extern-calls call functions of one's own: this one would be %s", symbol);
        return result;
    }
    if ((why = extern_call(p->arena, i, x)) != NULL) {
        plan_fail(p, i, "\"%s\" %%%s: %s", target, i->name, why);
        return result;
    }
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .outside = x };
    Slot   **in = ARENA_ARRAY(p->work, Slot *, x->n_operands);
    int32_t  n = 0;
    extern_operands(p, out, i, x, in);
    PlanStep *s = step_new(p, out, STEP_CALL, i, x->n_operands + x->n_results);
    c->name = names_take(&p->names, "", i->name);
    s->step.function = p->calls.n;
    vec_push(p->arena, &p->calls, c);
    s->step.call = c;
    s->step.n_operands = x->n_operands;
    s->n_results = x->n_results;
    for (int32_t k = 0; k < x->n_operands; k++)
        s->slots[n++] = in[k];
    for (int32_t k = 0; k < result->n; k++)
        if (result->v[k].slot)
            s->slots[n++] = result->v[k].slot;
    return result;
}
