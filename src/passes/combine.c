/* Two collectives are of the same kind when all but their channels is equal: groups, reducer, dimensions, ... In each computation, kind by
 * kind: the level of a collective is the largest number of its kind on a way to it, so that those of one level do not need each other.
 * The joined one stands where the last of them stood; what uses the others may stand before it then, so that the computation is put
 * in order at the end, each instruction as near to its place as can be. */
#include "config.h"

#include "passes/combine.h"

#include "passes/flow.h"
#include "passes/util.h"

enum { MAX_KINDS = 64, MAX_BYTES = 30 << 20, MAX_COUNT = 256 };

typedef VEC(Inst *) Insts;

typedef struct Combiner {
    PassCtx *cx;
    Op       op;
    int64_t  bytes, count;
} Combiner;

static bool may_combine(const Combiner *x, const Inst *i)
{
    return i->op == x->op && i->n_operands == 1 && shape_is_array(i->shape) && !shape_is_dynamic(i->shape) && !i->n_control &&
           !i->n_control_succs && !inst_attr(i, ATTR_SHARDING);
}

static bool same_reducer(const Inst *a, const Inst *b)
{
    if (a->n_callees == 0 || a->callees[0] == b->callees[0])
        return true;
    Op op = comp_binary_op(a->callees[0]);
    return op != OP_COUNT && op_has(op, F_COMMUTES) && op == comp_binary_op(b->callees[0]) &&
           shape_equal(a->callees[0]->root->shape, b->callees[0]->root->shape);
}

/* Attributes but for the number of the channel. */
static bool attrs_within(const Inst *a, const Inst *b)
{
    for (int32_t k = 0; k < a->n_attrs; k++) {
        const Attr *x = &a->attrs[k], *y = inst_attr(b, x->id);
        if (!attr_is_comment(x) && (!y || (x->id != ATTR_CHANNEL_ID && !attr_value_equal(x, y))))
            return false;
    }
    return true;
}

bool collectives_alike(const Inst *a, const Inst *b)
{
    return inst_operand(a, 0)->shape->type == inst_operand(b, 0)->shape->type && attrs_within(a, b) && attrs_within(b, a) && same_reducer(a, b);
}

/* ---- levels ---- */

/* Sets mark of each instruction of c: how many collectives of the kind of `kind`, joined ones too, are on the way that has most. */
static void find_levels(const Combiner *x, Comp *c, const Inst *kind)
{
    for (Inst *i = c->first; i; i = i->next) {
        i->mark = 0;
        for (int32_t k = 0; k < i->n_operands; k++)
            i->mark = inst_operand(i, k)->mark > i->mark ? inst_operand(i, k)->mark : i->mark;
        for (int32_t k = 0; k < i->n_control; k++)
            i->mark = i->control_preds[k]->mark > i->mark ? i->control_preds[k]->mark : i->mark;
        i->mark += i->op == x->op && i->n_operands > 0 && collectives_alike(i, kind);
    }
}

/* ---- joining ---- */

static void join(const Combiner *x, const Insts *all)
{
    Inst         *first = all->v[0], *last = all->v[all->n - 1];
    Comp         *c = first->comp;
    Inst        **operands = ARENA_ARRAY(x->cx->scratch, Inst *, all->n);
    const Shape **shapes = ARENA_ARRAY(x->cx->scratch, const Shape *, all->n);
    for (int32_t k = 0; k < all->n; k++) {
        operands[k] = inst_operand(all->v[k], 0);
        shapes[k] = all->v[k]->shape;
    }
    Inst *joined = inst_new(c, last, x->op, shape_tuple(c->module->arena, all->n, shapes), all->n, operands, NULL);
    inst_take_attrs(joined, first);
    inst_set_callees(joined, first->n_callees, first->callees);
    joined->meta = first->meta;
    joined->loc = first->loc;
    pass_remark(x->cx, first, "%d collectives become one", all->n);
    for (int32_t k = 0; k < all->n; k++) {
        Inst *e = tuple_new_element(joined, k, last);
        e->meta = all->v[k]->meta;
        inst_replace(all->v[k], e);
    }
    for (int32_t k = 0; k < all->n; k++)
        inst_delete(all->v[k]);
}

/* Those of one level, as many at once as the limits allow. */
static int64_t join_level(const Combiner *x, const Insts *level)
{
    int64_t joined = 0, bytes = 0;
    Insts   some = {0};
    for (int32_t k = 0; k <= level->n; k++) {
        int64_t size = k < level->n ? shape_bytes(inst_operand(level->v[k], 0)->shape) : 0;
        if (k == level->n || some.n == x->count || size > x->bytes - bytes) {
            if (some.n > 1 && x->cx->rewrites < x->cx->limit) {
                x->cx->did_at = some.v[0]->name;
                join(x, &some);
                x->cx->rewrites++;
                joined++;
            }
            some.n = 0;
            bytes = 0;
        }
        if (k < level->n && size <= x->bytes) {
            vec_push(x->cx->scratch, &some, level->v[k]);
            bytes += size;
        }
    }
    return joined;
}

static int64_t join_kind(const Combiner *x, Comp *c, const Insts *kind)
{
    if (kind->n < 2)
        return 0;
    Insts  *levels = ARENA_ARRAY(x->cx->scratch, Insts, c->n_insts + 1);
    int64_t joined = 0, most = 0;
    find_levels(x, c, kind->v[0]);
    for (int32_t k = 0; k < kind->n; k++) {
        int64_t level = kind->v[k]->mark;
        vec_push(x->cx->scratch, &levels[level], kind->v[k]);
        most = level > most ? level : most;
    }
    for (int64_t l = 0; l <= most; l++)
        joined += join_level(x, &levels[l]);
    if (joined)
        comp_restore_order(c, x->cx->scratch);
    return joined;
}

static void join_in(const Combiner *x, Comp *c)
{
    Insts   kinds[MAX_KINDS] = {{0}};
    int32_t n = 0, effects = 0;
    for (Inst *i = c->first; i; i = i->next) {
        effects += inst_has_effect(i);
        if (!may_combine(x, i))
            continue;
        int32_t k = 0;
        while (k < n && !collectives_alike(kinds[k].v[0], i))
            k++;
        if (k == MAX_KINDS)
            continue;
        n = k == n ? n + 1 : n;
        vec_push(x->cx->scratch, &kinds[k], i);
    }
    for (int32_t k = 0; k < n && effects < 2; k++) /* the order of effects is that of the text */
        join_kind(x, c, &kinds[k]);
}

bool combine_collectives(Module *m, PassCtx *cx, Op op)
{
    Combiner x = {cx, op, pass_arg_int(cx, "bytes", MAX_BYTES), pass_arg_int(cx, "count", MAX_COUNT)};
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        if (c->mark == COMP_FLOW)
            join_in(&x, c);
    return cx->rewrites > 0;
}
