/* A dot, a convolution, a triangular solve, a Fourier transform or a running sum by itself that is worth it to a call of the runtime. Its operands are read as they lie. */
#include "emit/attention_device.h"
#include "emit/dot_call.h"
#include "emit/expand.h"
#include "emit/plan.h"
#include "runtime/hlort.h"

static int64_t dot_packed_bytes(const DotCall *d)
{
    hlort_dot of = { .m = d->m, .n = d->n, .k = d->k, .b_col = d->b_col, .n_batch = d->n_batch };
    for (int32_t k = 0; k < d->n_batch; k++) {
        of.batch[k].count = d->batch[k].count;
        of.batch[k].b = d->batch[k].b;
    }
    return type_is_complex(d->in) ? 0 : hlort_dot_packed(&of, type_bytes(d->in));
}

/* What its second operand takes packed, if that is worth keeping. */
static int64_t packed_bytes(const Plan *p, const LibraryCall *c, const Slot *b)
{
    if (b->buffer.kind != BUFFER_CONST || p->options->plain_constants)
        return 0;
    return c->dot ? dot_packed_bytes(c->dot) : c->conv ? hlort_conv_packed(&c->conv->v, type_bytes(c->conv->in)) : 0;
}

/* Its buffers: operand a and, unless it is NULL, b, the result, working memory. */
static Value *call_of(Plan *p, StepList *out, LibraryCall *c, Slot *a, Slot *b)
{
    const Inst *i = c->inst;
    Value      *result = value_fresh(p, i->shape, i);
    PlanStep   *s = step_new(p, out, STEP_CALL, i, b ? 4 : 3);
    int32_t     n = 0;
    c->packed_bytes = b ? packed_bytes(p, c, b) : 0;
    s->step.function = plan_call_number(p, c);
    s->step.call = p->calls.v[s->step.function];
    s->step.n_operands = b ? 2 : 1;
    s->n_results = 1;
    s->slots[n++] = a;
    if (b)
        s->slots[n++] = b;
    s->slots[n++] = result->v[0].slot;
    s->slots[n++] = slot_new(p, BUFFER_SCRATCH, shape_array(p->arena, TYPE_U8, 1, &c->temp_bytes), i);
    return result;
}

Value *plan_dot(Plan *p, StepList *out, const Inst *i)
{
    const Leaf *lhs = &value_of(p, i->operands[0].def)->v[0], *rhs = &value_of(p, i->operands[1].def)->v[0];
    DotCall    *d = ARENA_NEW(p->arena, DotCall);
    if (!p->options->runtime || inst_attr(i, ATTR_SPARSITY_CONFIG) || !dot_call(i, lhs->shape, rhs->shape, i->shape, d))
        return NULL;
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .dot = d, .temp_bytes = HLORT_WORK_BYTES };
    return call_of(p, out, c, (d->swapped ? rhs : lhs)->slot, (d->swapped ? lhs : rhs)->slot);
}

Value *plan_conv(Plan *p, StepList *out, const Inst *i)
{
    const Leaf *lhs = &value_of(p, i->operands[0].def)->v[0], *rhs = &value_of(p, i->operands[1].def)->v[0];
    ConvCall   *v = ARENA_NEW(p->arena, ConvCall);
    if (!p->options->runtime || !conv_call(i, lhs->shape, rhs->shape, i->shape, v))
        return NULL;
    v->v.fewer = !p->options->direct_convolutions && conv_call_fewer(v, i);
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .conv = v, .temp_bytes = HLORT_WORK_BYTES };
    return call_of(p, out, c, lhs->slot, rhs->slot);
}

/* The value of the operand of fusion i that its body's instruction x is. */
static Leaf leaf_of(Plan *p, const Inst *i, const Inst *x)
{
    return value_of(p, i->operands[x->param].def)->v[0];
}

/* The dot or the convolution of i's body; its operands are read as they lie if that can be. */
static bool fill_call(Plan *p, StepList *out, const Inst *i, const Inst *hero, LibraryCall *c, Slot *operands[2])
{
    const Inst *sides[2] = { hero->operands[0].def, hero->operands[1].def };
    Leaf        l[2] = { leaf_of(p, i, sides[0]), leaf_of(p, i, sides[1]) };
    for (int k = 0; k < 2; k++) {
        bool found;
        if (hero->op == OP_CONVOLUTION) {
            ConvCall *v = ARENA_NEW(p->arena, ConvCall);
            found = conv_call(hero, l[0].shape, l[1].shape, hero->shape, v);
            c->conv = v;
        } else {
            DotCall *d = ARENA_NEW(p->arena, DotCall);
            found = dot_call(hero, l[0].shape, l[1].shape, hero->shape, d);
            c->dot = d;
        }
        const bool swapped = c->dot && c->dot->swapped;
        operands[0] = l[swapped].slot;
        operands[1] = l[!swapped].slot;
        if (found)
            return true;
        for (int e = 0; e < 2 && k == 0; e++)
            l[e] = leaf_as(p, out, l[e], sides[e]->shape, i);
    }
    return false;
}

/* Its buffers: two operands, those of the epilogue, the results, working memory. */
Value *plan_output(Plan *p, StepList *out, const Inst *i)
{
    int64_t     row;
    const Inst *hero = p->options->runtime ? output_hero(i, &row) : NULL;
    int32_t     function, n = 2;
    Slot       *operands[2];
    if (!hero)
        return NULL;
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .temp_bytes = HLORT_WORK_BYTES, .tile = plan_tile(p, i, hero, row, &function) };
    if (!c->tile || !fill_call(p, out, i, hero, c, operands))
        return NULL;
    c->tile_function = function;
    c->packed_bytes = packed_bytes(p, c, operands[1]);
    Slot **others = ARENA_ARRAY(p->work, Slot *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        if (kernel_uses_param(c->tile, k))
            others[k] = leaf_as(p, out, value_of(p, i->operands[k].def)->v[0], i->operands[k].def->shape, i).slot;
    Value    *result = value_fresh(p, i->shape, i);
    PlanStep *s = step_new(p, out, STEP_CALL, i, 2 + i->n_operands + result->n + 1);
    s->step.function = plan_call_number(p, c);
    s->step.call = p->calls.v[s->step.function];
    s->step.n_operands = 2 + i->n_operands;
    s->n_results = result->n;
    s->slots[0] = operands[0];
    s->slots[1] = operands[1];
    for (int32_t k = 0; k < i->n_operands; k++)
        s->slots[n++] = others[k];
    for (int32_t k = 0; k < result->n; k++)
        s->slots[n++] = result->v[k].slot;
    s->slots[n++] = slot_new(p, BUFFER_SCRATCH, shape_array(p->arena, TYPE_U8, 1, &c->temp_bytes), i);
    return result;
}

/* Its buffers: q, k, v, perhaps t, those of the epilogue, the result, working memory. */
Value *plan_attention(Plan *p, StepList *out, const Inst *i)
{
    AttentionCall *a = ARENA_NEW(p->arena, AttentionCall);
    const Shape   *lie[4];
    const Inst    *hero;
    int32_t        function, n = 0;
    const Device  *device = p->options->device;
    if (device ? !attention_on_device(i, NULL, device, a) : !p->options->runtime || !attention_call(i, NULL, a) || !a->alone)
        return NULL;
    for (int k = 0; k < a->n; k++)
        lie[k] = leaf_of(p, i, a->of[k]).shape;
    if (device ? !attention_on_device(i, lie, device, a) : !attention_call(i, lie, a))
        return NULL;
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .attention = a, .temp_bytes = device ? attention_memory(a, device) : hlort_attention_bytes(&a->d) };
    if (!a->plain) {
        const Inst *scores = attention_scores(plan_helper(p), i, &hero);
        c->tile = plan_tile(p, scores, hero, a->d.keys, &function);
        c->tile_function = function;
    }
    const int32_t others = c->tile ? i->n_operands : 0;
    Value        *result = value_fresh(p, i->shape, i);
    const bool    works = !device || c->temp_bytes > 0;
    PlanStep     *s = step_new(p, out, STEP_CALL, i, a->n + others + 1 + works);
    s->step.function = plan_call_number(p, c);
    s->step.call = p->calls.v[s->step.function];
    s->step.n_operands = a->n + others;
    s->n_results = 1;
    for (int k = 0; k < a->n; k++)
        s->slots[n++] = leaf_of(p, i, a->of[k]).slot;
    for (int32_t k = 0; k < others; k++, n++)
        if (kernel_uses_param(c->tile, k))
            s->slots[n] = leaf_as(p, out, value_of(p, i->operands[k].def)->v[0], i->operands[k].def->shape, i).slot;
    s->slots[n++] = result->v[0].slot;
    if (works)
        s->slots[n++] = slot_new(p, BUFFER_SCRATCH, shape_array(p->arena, TYPE_U8, 1, &c->temp_bytes), i);
    return result;
}

Value *plan_solve(Plan *p, StepList *out, const Inst *i)
{
    SolveCall *d = ARENA_NEW(p->arena, SolveCall);
    if (!p->options->runtime || !solve_call(i, d))
        return NULL;
    Leaf a = leaf_as(p, out, value_of(p, i->operands[0].def)->v[0], i->operands[0].def->shape, i);
    Leaf b = leaf_as(p, out, value_of(p, i->operands[1].def)->v[0], i->operands[1].def->shape, i);
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .solve = d, .temp_bytes = HLORT_WORK_BYTES };
    return call_of(p, out, c, a.slot, b.slot);
}

enum { MOST_TABLES = 2 << 20 }; /* bytes: of more they are a small part of the work */

Value *plan_fft(Plan *p, StepList *out, const Inst *i)
{
    FftCall *d = ARENA_NEW(p->arena, FftCall);
    if (!p->options->runtime || !fft_call(i, d))
        return NULL;
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .fft = d, .temp_bytes = hlort_fft_bytes(&d->d, type_bytes(d->type)), .tables_bytes = p->options->plain_constants ? 0 : hlort_fft_tables(&d->d, type_bytes(d->type)) };
    if (c->tables_bytes > MOST_TABLES)
        c->tables_bytes = 0;
    Leaf x = leaf_as(p, out, value_of(p, i->operands[0].def)->v[0], i->operands[0].def->shape, i);
    return call_of(p, out, c, x.slot, NULL);
}

Value *plan_scan(Plan *p, StepList *out, const Inst *i)
{
    ScanCall *d = ARENA_NEW(p->arena, ScanCall);
    if (!p->options->runtime || !scan_call(i, d))
        return NULL;
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .scan = d, .temp_bytes = hlort_scan_bytes(&d->d) };
    Leaf x = leaf_as(p, out, value_of(p, i->operands[0].def)->v[0], i->operands[0].def->shape, i);
    return call_of(p, out, c, x.slot, value_of(p, i->operands[1].def)->v[0].slot);
}
