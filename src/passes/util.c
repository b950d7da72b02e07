/* Questions and edits that several passes share. */
#include "config.h"

#include "passes/util.h"

#include "support/vec.h"

static int64_t use_of_callee(Op op)
{
    switch (op) {
    case OP_WHILE:
    case OP_CONDITIONAL:
    case OP_CALL:
        return COMP_FLOW;
    case OP_FUSION:
        return COMP_FUSED;
    case OP_CUSTOM_CALL:
    case OP_ASYNC_START:
    case OP_ASYNC_UPDATE:
    case OP_ASYNC_DONE:
        return COMP_OPAQUE;
    default:
        return COMP_EMBEDDED;
    }
}

void comps_mark_uses(Module *m)
{
    for (Comp *c = m->first; c; c = c->next)
        c->mark = c == m->entry ? COMP_FLOW : 0;
    for (Comp *c = m->first; c; c = c->next)
        for (const Inst *i = comp_calling(c); i; i = i->next)
            for (int32_t k = 0; k < i->n_callees; k++)
                i->callees[k]->mark |= use_of_callee(i->op);
    for (Comp *c = m->first; c; c = c->next)
        if (c->async_wrapped)
            c->mark |= COMP_OPAQUE;
}

Map comps_applied(Module *m, Arena *scratch)
{
    Map applied = map_new(scratch);
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        if (c->mark & COMP_EMBEDDED)
            map_put(&applied, c, c);
    return applied;
}

bool inst_is_free(const Inst *i)
{
    if (i->n_control || i->n_control_succs || shape_is_dynamic(i->shape) || inst_has_effect(i))
        return false;
    return i->comp->module->num_partitions == 1 || !inst_attr(i, ATTR_SHARDING);
}

static bool is_tied(const Inst *i)
{
    return i->n_control || i->n_control_succs || inst_has_effect(i);
}

/* What an asynchronous instruction was started or updated by, NULL for what starts and for all others. */
static const Inst *earlier_step(const Inst *i)
{
    switch (i->op) {
    case OP_ASYNC_UPDATE: case OP_ASYNC_DONE: case OP_COPY_DONE: case OP_ALL_GATHER_DONE: case OP_ALL_REDUCE_DONE:
    case OP_COLLECTIVE_PERMUTE_DONE:
        return inst_operand(i, 0);
    default: return NULL;
    }
}

/* Every start has its done: they go together or not at all. */
bool inst_must_stay(const Inst *i)
{
    bool stays = false;
    for (; i && !stays; i = earlier_step(i))
        stays = is_tied(i);
    return stays;
}

static bool inst_is_dead(const Inst *i)
{
    return !i->n_uses && i != i->comp->root && i->op != OP_PARAMETER && !inst_must_stay(i);
}

int64_t inst_delete_dead(Inst *i, Arena *scratch)
{
    VEC(Inst *) stack = {0};
    int64_t deleted = 0;
    vec_push(scratch, &stack, i);
    while (stack.n) {
        Inst *dead = stack.v[--stack.n];
        if (!dead->comp || !inst_is_dead(dead))
            continue;
        int32_t n = dead->n_operands; /* inst_delete leaves the slots */
        inst_delete(dead);
        dead->comp = NULL;
        deleted++;
        for (int32_t k = 0; k < n; k++)
            if (dead->operands[k].def->n_uses == 0)
                vec_push(scratch, &stack, dead->operands[k].def);
    }
    return deleted;
}

static bool awaits_done(const Inst *i)
{
    switch (i->op) {
    case OP_ASYNC_START: case OP_ASYNC_UPDATE: case OP_COPY_START: case OP_ALL_GATHER_START: case OP_ALL_REDUCE_START:
    case OP_COLLECTIVE_PERMUTE_START:
        return true;
    default: return false;
    }
}

/* The start of a deleted done goes with it, and the two are one. */
int64_t comp_sweep_dead(Comp *c, int64_t most)
{
    int64_t deleted = 0;
    for (Inst *i = c->last, *prev; i; i = prev) {
        prev = i->prev;
        if ((deleted < most || awaits_done(i)) && inst_is_dead(i)) {
            inst_delete(i);
            deleted += !awaits_done(i);
        }
    }
    return deleted;
}

/* The first of what i waits for that has not been placed, from its k-th on; placed ones have aux set. */
static Inst *waits_for(const Inst *i, int64_t *k)
{
    for (; *k < i->n_operands + i->n_control; ++*k) {
        Inst *x = *k < i->n_operands ? inst_operand(i, (int32_t)*k) : i->control_preds[*k - i->n_operands];
        if (!x->aux)
            return x;
    }
    return NULL;
}

void comp_restore_order(Comp *c, Arena *scratch)
{
    VEC(Inst *) stack = {0}, order = {0};
    for (Inst *i = c->first; i; i = i->next) {
        i->aux = NULL;
        i->mark = 0;
    }
    for (Inst *i = c->first; i; i = i->next) {
        if (!i->aux)
            vec_push(scratch, &stack, i);
        while (stack.n) {
            Inst *top = stack.v[stack.n - 1], *first = waits_for(top, &top->mark);
            if (first) {
                vec_push(scratch, &stack, first);
                continue;
            }
            stack.n--;
            if (!top->aux)
                vec_push(scratch, &order, top);
            top->aux = top;
        }
    }
    for (int32_t k = order.n - 1; k >= 0; k--)
        inst_move_before(order.v[k], k + 1 < order.n ? order.v[k + 1] : NULL);
}

const Literal *splat_value(const Inst *i)
{
    while (i->op == OP_BROADCAST || i->op == OP_RESHAPE)
        i = inst_operand(i, 0);
    if (i->op != OP_CONSTANT || i->literal->elided || !type_is_array(i->literal->type) || i->literal->count < 1)
        return NULL;
    return i->literal->count == 1 || literal_all_equal_bits(i->literal) ? i->literal : NULL;
}

enum { COUNTS_AT_LEAST = 16 }; /* shorter ones are better known one by one */

int64_t literal_step(const Literal *l)
{
    if (!type_is_int(l->type) || l->elided || l->rank != 1 || l->count < COUNTS_AT_LEAST || literal_get_s64(l, 0) != 0)
        return 0;
    int64_t step = literal_get_s64(l, 1), last;
    if (!size_mul(step, l->count, &last))
        return 0;
    for (int64_t k = 2; k < l->count; k++)
        if (literal_get_s64(l, k) != k * step)
            return 0;
    return step;
}

bool inst_is_value(const Inst *i)
{
    switch (i->op) {
    case OP_PARAMETER:
    case OP_OPT_BARRIER:
    case OP_DOMAIN:
    case OP_AFTER_ALL:
    case OP_ADD_DEPENDENCY:
    case OP_COPY_START:
    case OP_COPY_DONE:
    case OP_SET_DIMENSION_SIZE:
        return false;
    case OP_CONSTANT:
        return !literal_has_elided(i->literal) && !i->n_control && !i->n_control_succs;
    default:
        return !op_has(i->op, F_COLLECTIVE) && !i->n_control && !i->n_control_succs && !inst_has_effect(i);
    }
}

bool attr_is_comment(const Attr *x)
{
    return x->id == ATTR_STATISTICS || x->id == ATTR_ORIGIN;
}

static bool same_sizes(const Shape *a, const Shape *b)
{
    return shape_is_array(a) && shape_is_array(b) ? shape_same_dims(a, b) : shape_equal(a, b);
}

void inst_set_shape(Inst *i, const Shape *shape)
{
    inst_drop_attr(i, ATTR_ORIGIN);
    inst_drop_attr(i, ATTR_STATISTICS);
    if (!same_sizes(i->shape, shape))
        inst_drop_attr(i, ATTR_SHARDING);
    i->shape = shape;
}

void inst_take_attrs(Inst *to, const Inst *from)
{
    bool alike = same_sizes(to->shape, from->shape);
    for (int32_t k = 0; k < from->n_attrs; k++)
        if (!attr_is_comment(&from->attrs[k]) && (alike || from->attrs[k].id != ATTR_SHARDING))
            inst_set_attr(to, from->attrs[k]);
}

static bool attrs_within(const Inst *a, const Inst *b, bool any_channel)
{
    for (int32_t k = 0; k < a->n_attrs; k++) {
        if (attr_is_comment(&a->attrs[k]))
            continue;
        const Attr *y = inst_attr(b, a->attrs[k].id);
        if (!y || !(attr_value_equal(&a->attrs[k], y) || (any_channel && y->id == ATTR_CHANNEL_ID)))
            return false;
    }
    return true;
}

bool inst_attrs_equal(const Inst *a, const Inst *b)
{
    return attrs_within(a, b, false) && attrs_within(b, a, false);
}

bool inst_exchanges_alike(const Inst *a, const Inst *b)
{
    return attrs_within(a, b, true) && attrs_within(b, a, true);
}

static uint64_t ints_hash(uint64_t h, Ints x)
{
    h = hash_u64(h, (uint64_t)x.n);
    for (int32_t k = 0; k < x.n; k++)
        h = hash_u64(h, (uint64_t)x.v[k]);
    return h;
}

uint64_t shape_hash(const Shape *s)
{
    uint64_t h = hash_u64((uint64_t)s->type, (uint64_t)s->n_elems);
    h = ints_hash(h, (Ints){s->dims, s->rank});
    if (s->layout)
        h = ints_hash(h, s->layout->minor_to_major);
    for (int32_t k = 0; k < s->n_elems; k++)
        h = hash_u64(h, shape_hash(s->elems[k]));
    return h;
}

/* ---- reshaped broadcasts ---- */

bool shape_next_run(const Shape *from, const Shape *to, ShapeRun *r)
{
    r->from = r->from_end;
    r->to = r->to_end;
    if (r->from == from->rank && r->to == to->rank)
        return false;
    int64_t a = r->from_end < from->rank ? from->dims[r->from_end++] : 1;
    int64_t b = r->to_end < to->rank ? to->dims[r->to_end++] : 1;
    while (a != b) {
        if (a < b && r->from_end < from->rank)
            a *= from->dims[r->from_end++];
        else if (b < a && r->to_end < to->rank)
            b *= to->dims[r->to_end++];
        else
            break;
    }
    return a == b;
}

/* Dimensions of the run that come from the operand: all of those larger than 1, or none. -1: some. */
static int run_origin(Ints from_operand, const Shape *from, const ShapeRun *r)
{
    bool some = false, all = true;
    for (int32_t k = r->from; k < r->from_end; k++)
        if (from->dims[k] != 1) {
            some |= ints_has(from_operand, k);
            all &= ints_has(from_operand, k);
        }
    return !some ? 0 : all ? 1 : -1;
}

bool ints_increase(Ints x)
{
    for (int32_t k = 1; k < x.n; k++)
        if (x.v[k] <= x.v[k - 1])
            return false;
    return true;
}

/* Possible when every run is new as a whole or comes from the operand as a whole, and the operand's dimensions keep their order. */
bool broadcast_reshaped(Arena *a, const Inst *b, const Shape *to, Ints *sizes, Ints *dims)
{
    Ints from = inst_ints(b, ATTR_DIMENSIONS);
    if (!ints_increase(from) || shape_count(to) <= 0)
        return false;
    *sizes = ints_make(a, to->rank);
    *dims = ints_make(a, to->rank);
    int32_t n = 0;
    int64_t count = 1;
    for (ShapeRun r = {0}; shape_next_run(b->shape, to, &r);) {
        int origin = run_origin(from, b->shape, &r);
        if (origin < 0)
            return false;
        for (int32_t k = r.to; origin == 1 && k < r.to_end; k++) {
            *ints_at(*sizes, n) = to->dims[k];
            *ints_at(*dims, n++) = k;
            count *= to->dims[k];
        }
    }
    sizes->n = dims->n = n;
    return count == shape_count(inst_operand(b, 0)->shape);
}
