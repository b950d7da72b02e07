/* Finds what is written as other instructions; the module that is read stays as it is. */
#include "emit/attention_device.h"
#include "emit/element_loop.h"
#include "emit/expand.h"
#include "emit/solve_call.h"

#include "passes/util.h"

typedef void Expansion(Inst *i);

/* Devices' routines know f32, f64 and their complex numbers, the runtime's solves f32 and f64, its convolutions with fewer products f32; what is narrower is f32 for them. */
static bool is_narrow_routine(const Inst *i)
{
    return library_is_routine(i) && type_is_float(i->shape->type) && type_bits(i->shape->type) < 32;
}

static void expand_narrow_routine(Inst *i)
{
    Arena *a = i->comp->module->arena;
    Inst  *wide[2];
    for (int32_t k = 0; k < i->n_operands; k++) {
        Inst *x = inst_operand(i, k);
        wide[k] = inst_new(i->comp, i, OP_CONVERT, shape_with_type(a, x->shape, TYPE_F32), 1, &x, NULL);
    }
    Inst *x = inst_clone_into(i->comp, i, i, i->n_operands, wide);
    x->shape = shape_with_type(a, i->shape, TYPE_F32);
    inst_replace(i, inst_new(i->comp, i, OP_CONVERT, i->shape, 1, &x, NULL));
    inst_delete(i);
}

/* A fusion with something in it that devices have a routine for, which is no loop. */
static bool is_around_routine(const Inst *i)
{
    if (i->op == OP_FUSION && i->n_callees == 1)
        for (const Inst *x = inst_callee(i, 0)->first; x; x = x->next)
            if (library_is_routine(x) || is_around_routine(x))
                return true;
    return false;
}

void expand_calls(Comp *c, bool (*which)(const Inst *))
{
    Arena *scratch = arena_new();
    for (Inst *i = c->first, *before; i; i = before ? before->next : c->first) {
        while (i && !which(i))
            i = i->next;
        if (!i)
            break;
        before = i->prev;
        inst_inline(i, scratch);
    }
    arena_free(scratch);
}

Inst *expand_fusion(Inst *i, Word kind, Comp *body, int32_t n, Inst *const *operands)
{
    Inst *f = inst_new(i->comp, i, OP_FUSION, body->root->shape, n, operands, NULL);
    inst_set_word(f, ATTR_FUSION_KIND, kind);
    inst_set_callees(f, 1, &body);
    f->meta = i->meta;
    f->loc = i->loc;
    return f;
}

static Expansion *expansion_of(const Inst *i, const PlanOptions *o)
{
    const bool runtime = o->runtime;
    if (whole_window_expands(i))
        return expand_whole_window;
    if (o->device && is_narrow_routine(i))
        return expand_narrow_routine;
    switch (i->op) {
    case OP_SCAN: return expand_scan;
    case OP_WHILE: return loop_expands(i) ? expand_loop : NULL;
    case OP_RNG: return expand_rng;
    case OP_SCALED_DOT: return expand_scaled_dot;
    case OP_RAGGED_DOT: return expand_ragged_dot;
    case OP_DOT: return !o->device && dot_is_beside(i) ? expand_beside : !runtime ? NULL : dot_widens(i) ? expand_narrow_dot : dot_joins(i) ? expand_terms : NULL;
    case OP_FUSION:
        if (o->device && attention_on_device(i, NULL, o->device, &(AttentionCall){ 0 }))
            return NULL;
        if (runtime && attention_expands(i))
            return expand_attention;
        if (runtime && attention_stays(i))
            return NULL;
        if (runtime && output_expands(i))
            return expand_output;
        if (runtime && output_hero(i, &(int64_t){ 0 }))
            return NULL;
        if (o->products && product_expands(i))
            return expand_product;
        if (runtime && transpose_expands(i))
            return expand_transposes;
        if (!o->device && window_expands(i))
            return expand_windows;
        if (!o->device && row_sums_expand(i))
            return expand_row_sums;
        if (o->device && sum_over_rows_expands(i))
            return expand_sum_over_rows;
        if (o->device && choice_expands(i))
            return expand_choice;
        return runtime && reduce_expands(i) ? expand_reduction : NULL;
    case OP_TRIANGULAR_SOLVE: return runtime && solve_widens(i) ? expand_narrow_routine : NULL;
    case OP_CONVOLUTION:
        if (o->products && product_expands(i))
            return expand_product;
        if (runtime && !o->direct_convolutions && conv_widens(i))
            return expand_narrow_routine;
        return runtime && conv_turns(i) ? expand_conv : NULL;
    case OP_SCATTER: return !o->device && scatter_extreme_expands(i) ? expand_scatter_extreme : NULL;
    case OP_REDUCE_WINDOW: return !o->device && window_expands(i) ? expand_windows : NULL;
    case OP_REDUCE: return o->device && choice_expands(i) ? expand_choice : runtime && reduce_expands(i) ? expand_reduction : NULL;
    default: return NULL;
    }
}

static void free_module(void *m)
{
    module_free(m);
}

typedef void DeviceExpander(Inst *i, Devices on, Map *exchanges);

static DeviceExpander *on_devices(const Inst *i, Devices on)
{
    if (op_has(i->op, F_COLLECTIVE) && collective_expands(i, on))
        return expand_collective;
    return region_expands(i, on) ? expand_region : NULL;
}

static bool sets_size(const Inst *i)
{
    return i->op == OP_SET_DIMENSION_SIZE && !size_is_full(i);
}

static bool any_sets_size(const Comp *c)
{
    for (const Inst *i = c->first; i; i = i->next)
        if (sets_size(i))
            return true;
    return false;
}

const Module *module_expanded(Arena *a, const Module *m, Devices on, const PlanOptions *o, Map *exchanges)
{
    bool any = false;
    for (const Comp *c = m->first; c && !any; c = c->next)
        for (const Inst *i = c->first; i && !any; i = i->next)
            any = expansion_of(i, o) || sets_size(i) || on_devices(i, on) || (o->device ? is_around_routine(i) : extreme_expands(i) || narrow_window_expands(i));
    if (!any)
        return m;
    Module *copy = module_clone(m);
    arena_defer(a, free_module, copy);
    for (Comp *c = copy->first; c; c = c->next)
        if (any_sets_size(c))
            expand_sizes(c);
    comps_mark_uses(copy);
    for (Comp *c = copy->first; c && o->device; c = c->next)
        if (!(c->mark & (COMP_FUSED | COMP_EMBEDDED)))
            expand_calls(c, is_around_routine);
    for (Comp *c = copy->first; c; c = c->next)
        for (Inst *i = c->first, *next; i; i = next) {
            bool            inside = (i->op == OP_REDUCE || i->op == OP_REDUCE_WINDOW || i->op == OP_CONVOLUTION || i->op == OP_DOT) && (c->mark & (COMP_FUSED | COMP_EMBEDDED)); /* its caller's to divide */
            bool            extreme = !o->device && (c->mark & COMP_FUSED) && extreme_expands(i);
            bool            narrow = !o->device && !(c->mark & (COMP_FUSED | COMP_EMBEDDED)) && narrow_window_expands(i);
            Expansion      *expand = extreme ? expand_extreme : narrow ? expand_narrow_window : inside && !whole_window_expands(i) ? NULL : expansion_of(i, o);
            DeviceExpander *meet = expand ? NULL : on_devices(i, on);
            next = i->next;
            if (expand)
                expand(i);
            else if (meet)
                meet(i, on, exchanges);
        }
    return copy;
}
