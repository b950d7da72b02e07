/* reshape-mover - reshapes and transposes below elementwise instructions.
 *
 *   %a = f32[1,8] reshape(%x)
 *   %b = f32[1,8] reshape(%y)
 *   ROOT %s = f32[1,8] add(%a, %b)      =>     %s = f32[8] add(%x, %y)
 *                                              ROOT %r = f32[1,8] reshape(%s)
 *
 * Below, they meet others that cancel them. A group is what such movements of one kind reach: elementwise instructions all of whose operands are
 * moved alike, are of the group, are scalars, or are broadcasts or constants that can as well be made in the shape before. It moves as a whole, and only when
 * there are no more movements after it than vanish: one that has users outside stays, each value with users outside gets one. So nothing is
 * moved twice, and as movements only ever go down, that ends.
 *
 * Keeps: everything computed, in the same order; layouts that are written are left alone. */
#include "config.h"

#include "passes/pass.h"

#include "passes/util.h"
#include "support/vec.h"

typedef struct Node {
    Inst   *move;  /* the movement that stands for its kind; NULL: none reaches this instruction */
    int32_t group; /* union-find over the computation's instructions */
    bool    member; /* elementwise, else the movement itself */
    int32_t gain;  /* of a group: movements that vanish less those that are made */
    bool    asked, goes; /* of a group */
    Inst   *moved; /* the instruction in the shape before */
} Node;

typedef struct Mover {
    PassCtx *cx;
    Comp    *comp;
    Node    *nodes; /* by mark */
} Mover;

static Node *node_of(Mover *m, const Inst *i)
{
    return &m->nodes[i->mark];
}

static int32_t group_of(Mover *m, const Inst *i)
{
    int32_t g = (int32_t)i->mark;
    while (m->nodes[g].group != g)
        g = m->nodes[g].group = m->nodes[m->nodes[g].group].group;
    return g;
}

/* ---- what belongs together ---- */

static bool has_plain_shape(const Inst *i)
{
    return shape_is_array(i->shape) && !i->shape->layout && !shape_is_dynamic(i->shape);
}

static bool is_move(const Inst *i)
{
    if ((i->op != OP_RESHAPE && i->op != OP_TRANSPOSE) || !inst_is_free(i) || !has_plain_shape(i) || !has_plain_shape(inst_operand(i, 0)))
        return false;
    Op from = inst_operand(i, 0)->op;
    return from != OP_CONSTANT && from != OP_BROADCAST && from != OP_IOTA && inst_operand(i, 0)->shape->type == i->shape->type;
}

static bool same_move(const Inst *a, const Inst *b)
{
    return a->op == b->op && shape_same_dims(inst_operand(a, 0)->shape, inst_operand(b, 0)->shape) && shape_same_dims(a->shape, b->shape) &&
           (a->op == OP_RESHAPE || ints_equal(inst_ints(a, ATTR_DIMENSIONS), inst_ints(b, ATTR_DIMENSIONS)));
}

/* The dimensions that broadcast b has in the shape before the movement; false: it would need a movement of its own. */
static bool broadcast_before(Mover *m, const Inst *b, const Inst *move, Ints *dims)
{
    if (b->op != OP_BROADCAST || !has_plain_shape(b) || inst_operand(b, 0)->shape->type != b->shape->type)
        return false;
    const Shape *small = inst_operand(b, 0)->shape;
    if (move->op == OP_RESHAPE) {
        Ints sizes;
        return broadcast_reshaped(m->cx->scratch, b, inst_operand(move, 0)->shape, &sizes, dims) &&
               ints_equal(sizes, (Ints){small->dims, small->rank});
    }
    Ints    perm = inst_ints(move, ATTR_DIMENSIONS), from = inst_ints(b, ATTR_DIMENSIONS);
    int64_t last = -1;
    *dims = ints_make(m->cx->scratch, from.n);
    for (int32_t k = 0; k < from.n; k++) {
        int64_t d = perm.v[from.v[k]];
        if (d < last)
            return false;
        last = *ints_at(*dims, k) = d;
    }
    return true;
}

enum { MAX_TRANSPOSED = 65536 }; /* elements */

/* A constant that nothing else reads is folded in the shape before. Beside scalars it is left: they are what starts and conditions are. */
static bool constant_before(const Inst *o, const Inst *move)
{
    return o->op == OP_CONSTANT && o->shape->rank > 0 && o->n_uses == 1 && !o->literal->elided && has_plain_shape(o) && inst_is_free(o) &&
           (move->op == OP_RESHAPE || o->literal->count <= MAX_TRANSPOSED);
}

static bool is_scalar_beside(const Inst *o, const Inst *i)
{
    return o->shape->rank == 0 && i->shape->rank != 0;
}

/* The kind of movement that reaches i through its operands, NULL when there is none or when there are several. */
static Inst *move_of_operands(Mover *m, const Inst *i)
{
    Inst *move = NULL;
    for (int32_t k = 0; k < i->n_operands; k++) {
        Inst *at = node_of(m, inst_operand(i, k))->move;
        if (at && move && !same_move(at, move))
            return NULL;
        move = move ? move : at;
    }
    return move;
}

static bool may_join(Mover *m, const Inst *i, const Inst *move)
{
    if (!has_plain_shape(i) || !shape_same_dims(i->shape, move->shape))
        return false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        Ints        dims;
        if (!node_of(m, o)->move && !is_scalar_beside(o, i) && !constant_before(o, move) && !broadcast_before(m, o, move, &dims))
            return false;
    }
    return true;
}

static void join(Mover *m, Inst *i)
{
    Inst *move = op_has(i->op, F_ELEMENTWISE) && inst_is_free(i) ? move_of_operands(m, i) : NULL;
    if (!move || !may_join(m, i, move))
        return;
    Node *n = node_of(m, i);
    n->move = move;
    n->member = true;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (node_of(m, inst_operand(i, k))->move)
            m->nodes[group_of(m, inst_operand(i, k))].group = n->group;
}

/* ---- what it is worth ---- */

static bool is_member(Mover *m, const Inst *i)
{
    return node_of(m, i)->member;
}

static bool used_outside(Mover *m, const Inst *i)
{
    if (i == m->comp->root)
        return true;
    for (const Use *u = i->uses; u; u = u->next)
        if (!is_member(m, u->user))
            return true;
    return false;
}

static void weigh(Mover *m)
{
    for (const Inst *i = m->comp->first; i; i = i->next) {
        const Node *n = node_of(m, i);
        if (!n->move)
            continue;
        bool outside = used_outside(m, i);
        m->nodes[group_of(m, i)].gain += n->member ? -outside : !outside;
    }
}

/* ---- moving ---- */

static Inst *with_meta(Inst *i, const Inst *like)
{
    i->meta = like->meta;
    i->loc = like->loc;
    return i;
}

/* Constant o as it is before the movement. */
static Inst *constant_undone(Mover *m, Inst *i, Inst *o, const Inst *move)
{
    const Shape *before = shape_with_type(m->comp->module->arena, inst_operand(move, 0)->shape, o->shape->type);
    Inst        *r = with_meta(inst_new(m->comp, i, move->op, before, 1, &o, NULL), o);
    if (move->op == OP_TRANSPOSE) {
        Ints perm = inst_ints(move, ATTR_DIMENSIONS), back = ints_make(m->cx->scratch, perm.n);
        for (int32_t k = 0; k < perm.n; k++)
            *ints_at(back, (int32_t)perm.v[k]) = k;
        inst_set_ints(r, ATTR_DIMENSIONS, back);
    }
    return r;
}

static Inst *operand_before(Mover *m, Inst *i, int32_t k)
{
    Inst       *o = inst_operand(i, k);
    const Node *n = node_of(m, o);
    Ints        dims;
    if (n->move)
        return n->member ? n->moved : inst_operand(o, 0);
    if (is_scalar_beside(o, i))
        return o;
    const Inst *move = node_of(m, i)->move;
    if (constant_before(o, move))
        return constant_undone(m, i, o, move);
    if (!broadcast_before(m, o, move, &dims))
        die("reshape-mover: an operand of %%%s was a broadcast", i->name);
    Inst *x = inst_operand(o, 0);
    const Shape *before = shape_with_type(m->comp->module->arena, inst_operand(move, 0)->shape, o->shape->type);
    Inst *b = with_meta(inst_new(m->comp, i, OP_BROADCAST, before, 1, &x, NULL), o);
    inst_set_ints(b, ATTR_DIMENSIONS, dims);
    return b;
}

static Inst *move_after(Mover *m, Inst *i, Inst *moved)
{
    const Inst *move = node_of(m, i)->move;
    Inst       *r = with_meta(inst_new(m->comp, i, move->op, i->shape, 1, &moved, NULL), i);
    if (move->op == OP_TRANSPOSE)
        inst_set_ints(r, ATTR_DIMENSIONS, inst_ints(move, ATTR_DIMENSIONS));
    return r;
}

static void move_below(Mover *m, Inst *i)
{
    Inst **operands = ARENA_ARRAY(m->cx->scratch, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        operands[k] = operand_before(m, i, k);
    Node        *n = node_of(m, i);
    const Shape *before = inst_operand(n->move, 0)->shape;
    n->moved = inst_clone_into(m->comp, i, i, i->n_operands, operands);
    inst_set_shape(n->moved, shape_with_type(m->comp->module->arena, before, i->shape->type));
}

/* Whether i's group goes; asked in stored order, so that a limit of rewrites takes the first groups. */
static bool group_goes(Mover *m, const Inst *i)
{
    Node *group = &m->nodes[group_of(m, i)];
    if (group->gain < 0)
        return false;
    if (!group->asked) {
        group->asked = true;
        group->goes = m->cx->rewrites < m->cx->limit;
        m->cx->rewrites += group->goes;
    }
    return group->goes;
}

typedef VEC(Inst *) Members;

/* Operands come first; what is replaced goes from the end, so that users in the group are gone before. */
static void move_groups(Mover *m)
{
    Members members = {0};
    for (Inst *i = m->comp->first, *next; i; i = next) {
        next = i->next;
        if (!is_member(m, i) || !group_goes(m, i))
            continue;
        move_below(m, i);
        vec_push(m->cx->scratch, &members, i);
    }
    for (int32_t k = members.n - 1; k >= 0; k--) {
        Inst *i = members.v[k];
        if (!i->comp)
            continue;
        if (used_outside(m, i))
            inst_replace(i, move_after(m, i, node_of(m, i)->moved));
        inst_delete_dead(i, m->cx->scratch);
    }
}

static bool move_comp(PassCtx *cx, Comp *c)
{
    Mover   m = {cx, c, ARENA_ARRAY(cx->scratch, Node, c->n_insts)};
    int64_t before = cx->rewrites;
    int32_t n = 0;
    bool    any = false;
    for (Inst *i = c->first; i; i = i->next) {
        m.nodes[n] = (Node){.group = n};
        i->mark = n++;
        if (is_move(i)) {
            node_of(&m, i)->move = i;
            any = true;
        } else if (any)
            join(&m, i);
    }
    if (!any)
        return false;
    weigh(&m);
    move_groups(&m);
    return cx->rewrites > before;
}

bool pass_reshape_mover(Module *m, PassCtx *cx)
{
    bool changed = false;
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        if (!(c->mark & (COMP_FUSED | COMP_OPAQUE)))
            changed |= move_comp(cx, c);
    return changed;
}
