/* cse - merge instructions that compute the same value.
 *
 *   %a = f32[4] add(%x, %y)
 *   %b = f32[4] add(%y, %x)
 *   ROOT %m = f32[4] multiply(%a, %b)        =>     ROOT %m = f32[4] multiply(%a, %a)
 *
 * Two instructions are the same when opcode, shape with layout, operands (in any order when the operation commutes) and attributes
 * are, and what they call is equal by structure; two constants when their bits are. Operands stand before users, so one walk in
 * stored order finds chains too. Exchanges that wait are the same over whatever channel: all devices leave out the same one.
 * Never merged: parameters, effects, control edges, exchanges that are awaited later, tokens, barriers, elided constants (their
 * values are not known).
 *
 * Equal computations are found first, callees before callers: comp->aux is the first of those equal to it. */
#include "config.h"

#include "passes/pass.h"
#include "passes/util.h"

typedef struct Entry {
    void         *thing; /* Inst or Comp */
    struct Entry *next;  /* of the same hash */
} Entry;

static Comp *representative(const Comp *c)
{
    return c->aux;
}

static uint64_t attrs_hash(const Inst *i)
{
    uint64_t h = 0;
    for (int32_t k = 0; k < i->n_attrs; k++)
        if (!attr_is_comment(&i->attrs[k]) && i->attrs[k].id != ATTR_CHANNEL_ID)
            h += hash_u64((uint64_t)i->attrs[k].id, attr_value_hash(&i->attrs[k])); /* in any order */
    return h;
}

/* Everything but operands and control edges. */
static uint64_t own_hash(const Inst *i)
{
    uint64_t h = hash_u64(shape_hash(i->shape), (uint64_t)i->op);
    h = hash_u64(h, attrs_hash(i));
    h = hash_u64(h, (uint64_t)i->param);
    if (i->op == OP_CONSTANT)
        h = hash_u64(h, literal_hash(i->literal));
    for (int32_t k = 0; k < i->n_callees; k++)
        h = hash_u64(h, (uint64_t)representative(i->callees[k])->mark);
    return hash_u64(h, (uint64_t)i->n_operands);
}

/* An exchange between devices that waits for its result. */
static bool is_exchange(const Inst *i)
{
    switch (i->op) {
    case OP_ALL_GATHER: case OP_ALL_REDUCE: case OP_REDUCE_SCATTER: case OP_ALL_TO_ALL: case OP_RAGGED_ALL_TO_ALL: case OP_COLLECTIVE_BROADCAST:
    case OP_COLLECTIVE_REDUCE: case OP_COLLECTIVE_PERMUTE:
        return !i->n_control && !i->n_control_succs && !inst_has_effect(i);
    default:
        return false;
    }
}

/* Everything but operands, control edges and attributes. */
static bool body_equal(const Inst *a, const Inst *b)
{
    if (a->op != b->op || a->param != b->param || a->n_operands != b->n_operands || a->n_callees != b->n_callees || !shape_equal(a->shape, b->shape))
        return false;
    if (a->op == OP_CONSTANT &&
        (literal_has_elided(a->literal) || literal_has_elided(b->literal) || !literal_equal(a->literal, b->literal)))
        return false;
    for (int32_t k = 0; k < a->n_callees; k++)
        if (representative(a->callees[k]) != representative(b->callees[k]))
            return false;
    return true;
}

static bool own_equal(const Inst *a, const Inst *b)
{
    return body_equal(a, b) && inst_attrs_equal(a, b);
}

/* ---- computations ---- */

/* Instructions are numbered by place: i->mark. */
static uint64_t comp_hash(Comp *c)
{
    uint64_t h = hash_u64((uint64_t)c->n_insts, (uint64_t)c->n_params);
    int64_t  place = 0;
    for (Inst *i = c->first; i; i = i->next) {
        i->mark = place++;
        h = hash_u64(h, own_hash(i));
        for (int32_t k = 0; k < i->n_operands; k++)
            h = hash_u64(h, (uint64_t)inst_operand(i, k)->mark);
    }
    return hash_u64(h, (uint64_t)c->root->mark);
}

static bool same_thread(const Comp *a, const Comp *b)
{
    return a->execution_thread == b->execution_thread && a->backend_config == b->backend_config; /* interned */
}

static bool comp_equal(const Comp *a, const Comp *b)
{
    if (a->n_insts != b->n_insts || a->n_params != b->n_params || a->root->mark != b->root->mark || !same_thread(a, b))
        return false;
    const Inst *i = a->first, *j = b->first;
    for (; i && j; i = i->next, j = j->next) {
        if (!own_equal(i, j) || i->n_control != j->n_control)
            return false;
        for (int32_t k = 0; k < i->n_operands; k++)
            if (inst_operand(i, k)->mark != inst_operand(j, k)->mark)
                return false;
        for (int32_t k = 0; k < i->n_control; k++)
            if (i->control_preds[k]->mark != j->control_preds[k]->mark)
                return false;
    }
    return true;
}

static Entry *enter(Map *table, Arena *a, uint64_t hash, void *thing)
{
    Entry *e = ARENA_NEW(a, Entry);
    *e = (Entry){thing, map_get_u64(table, hash)};
    map_put_u64(table, hash, e);
    return e;
}

void comps_find_equal(Module *m, Arena *scratch)
{
    Map     table = map_new(scratch);
    int64_t number = 0;
    for (Comp *c = m->first; c; c = c->next) {
        uint64_t h = comp_hash(c);
        c->aux = NULL;
        for (Entry *e = map_get_u64(&table, h); e && !c->aux; e = e->next)
            if (comp_equal(e->thing, c))
                c->aux = e->thing;
        if (!c->aux) {
            c->aux = c;
            c->mark = number++;
            enter(&table, scratch, h, c);
        }
    }
}

/* ---- instructions ---- */

/* The larger of 0 and -0 is the one that the order says. */
static bool commutes(const Inst *i)
{
    bool picks = (i->op == OP_MAXIMUM || i->op == OP_MINIMUM) && type_is_float(i->shape->type);
    return i->n_operands == 2 && op_has(i->op, F_COMMUTES) && !picks;
}

static uint64_t inst_hash(const Inst *i)
{
    uint64_t h = own_hash(i);
    if (commutes(i))
        return hash_u64(h, (uint64_t)(inst_operand(i, 0)->mark + inst_operand(i, 1)->mark));
    for (int32_t k = 0; k < i->n_operands; k++)
        h = hash_u64(h, (uint64_t)inst_operand(i, k)->mark);
    return h;
}

static bool operands_equal(const Inst *a, const Inst *b)
{
    for (int32_t k = 0; k < a->n_operands; k++)
        if (inst_operand(a, k) != inst_operand(b, k))
            return commutes(a) && inst_operand(a, 0) == inst_operand(b, 1) && inst_operand(a, 1) == inst_operand(b, 0);
    return true;
}

static Inst *find_same(const Map *table, uint64_t hash, const Inst *i)
{
    for (Entry *e = map_get_u64(table, hash); e; e = e->next)
        if (operands_equal(e->thing, i) && body_equal(e->thing, i) && (is_exchange(i) ? inst_exchanges_alike(e->thing, i) : inst_attrs_equal(e->thing, i)))
            return e->thing;
    return NULL;
}

static int64_t merge_in(Comp *c, PassCtx *cx, int64_t most)
{
    Arena  *scratch = cx->scratch;
    Map     table = map_new(scratch);
    int64_t merged = 0, place = 0;
    for (Inst *i = c->first, *next; i && merged < most; i = next) {
        next = i->next;
        i->mark = place++;
        if (!inst_is_value(i) && !is_exchange(i))
            continue;
        uint64_t h = inst_hash(i);
        Inst    *same = find_same(&table, h, i);
        if (!same) {
            enter(&table, scratch, h, i);
        } else if (i->n_uses || c->root == i) {
            cx->did_at = i->name;
            pass_remark(cx, i, "%%%s is %%%s once more", i->name, same->name);
            inst_replace(i, same);
            inst_delete_dead(i, scratch);
            merged++;
        }
    }
    return merged;
}

bool pass_cse(Module *m, PassCtx *cx)
{
    comps_find_equal(m, cx->scratch);
    for (Comp *c = m->first; c; c = c->next)
        if (!c->async_wrapped)
            cx->rewrites += merge_in(c, cx, cx->limit - cx->rewrites);
    return cx->rewrites > 0;
}
