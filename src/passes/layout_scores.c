/* Front ends give a transpose the layout in which it moves nothing, and what is made of it that layout, too: scores of grouped heads, say, whose keys then lie apart.
 * Others take the largest of a row before they transpose, and its weights after. Nothing says that either has to be so. In one order of the dimensions, each row of keys
 * in one piece, weights are made of scores in one kernel, or in none beside the dots (fusion_attention.c):
 *
 *   %m = f32[2,2,256,4] reduce(%scores, %c), dimensions={4}                     %s = f32[4,2,2,256,256] transpose(%scores)
 *   %t = f32[4,2,2,256,256]{4,0,3,2,1} transpose(%scores)                =>     %m = f32[4,2,2,256] reduce(%s, %c), dimensions={4}
 *   %y = f32[4,2,2,256,256]{4,0,3,2,1} subtract(%t, broadcast(%m'))             %y = f32[4,2,2,256,256] subtract(%s, broadcast(%m))
 *
 * The order is that of the weights, and lies by default. That is done where attention (analysis/attention.h) alone reads all of it. */
#include "config.h"

#include "passes/layout_scores.h"

#include "analysis/attention.h"
#include "passes/util.h"
#include "support/map.h"

typedef struct Maker {
    PassCtx  *cx;
    Arena    *arena;
    Attention a;
    const AttentionPart *whole;   /* the weights: what all parts that have keys will look like */
    Ints      kept, keys;         /* dimensions of those that a row has, and those that it has not */
    Map       made;               /* parts in their new form */
} Maker;

static bool may_be_part(void *cookie, const Inst *i)
{
    (void)cookie;
    switch (i->op) {
    case OP_DOT: case OP_REDUCE: case OP_BROADCAST: case OP_RESHAPE: case OP_TRANSPOSE: case OP_COPY: return true;
    default: return op_has(i->op, F_ELEMENTWISE);
    }
}

/* ---- whether ---- */

static bool is_own(const Attention *a, const Inst *x)
{
    for (const Use *u = x->uses; u; u = u->next)
        if (u->user != a->out && !attention_part(a, u->user))
            return false;
    return x != x->comp->root && inst_is_free(x) && !shape_is_dynamic(x->shape);
}

/* A layout that says in which order dimensions lie, and no more. */
static bool is_order(PassCtx *cx, const Shape *s)
{
    return !s->layout || layout_equal(s->layout, layout_from_order(cx->scratch, s->layout->minor_to_major), s->rank);
}

static bool has_keys(const Attention *a, const AttentionPart *p)
{
    for (int32_t d = 0; d < p->x->shape->rank; d++)
        if (p->dim[d] >= 0 && a->key[p->dim[d]])
            return true;
    return false;
}

/* The next dimension of p that is not of size 1. */
static int32_t next_dim(const AttentionPart *p, int32_t d, bool keys, const Attention *a)
{
    while (d < p->x->shape->rank && (p->dim[d] < 0 || (!keys && a->key[p->dim[d]])))
        d++;
    return d;
}

/* Both have the same dimensions of the scores, but for keys where one of them is a row, in the same order. */
static bool is_alike(const Attention *a, const AttentionPart *p, const AttentionPart *whole)
{
    const bool keys = has_keys(a, p);
    int32_t    d = next_dim(p, 0, true, a), e = next_dim(whole, 0, keys, a);
    for (; d < p->x->shape->rank && e < whole->x->shape->rank; d = next_dim(p, d + 1, true, a), e = next_dim(whole, e + 1, keys, a))
        if (p->dim[d] != whole->dim[e])
            return false;
    return d == p->x->shape->rank && e == whole->x->shape->rank;
}

/* p is a row, or has all dimensions, in whatever order. */
static bool is_complete(const Attention *a, const AttentionPart *p, const AttentionPart *whole)
{
    const bool keys = has_keys(a, p);
    int32_t    n = 0, all = 0;
    for (int32_t d = 0; d < p->x->shape->rank; d++)
        n += p->dim[d] >= 0;
    for (int32_t d = 0; d < whole->x->shape->rank; d++)
        all += whole->dim[d] >= 0 && (keys || !a->key[whole->dim[d]]);
    return n == all;
}

static bool is_wanted(PassCtx *cx, const Attention *a)
{
    const AttentionPart *whole = &a->parts[a->n - 1];
    bool                 any = false;
    if (!has_keys(a, whole) || !has_keys(a, &a->parts[0]))
        return false;
    for (int32_t k = 1; k < a->n; k++) {
        const AttentionPart *p = &a->parts[k];
        if (!is_own(a, p->x) || !is_order(cx, p->x->shape) || !is_complete(a, p, whole))
            return false;
        const bool moves = p->x->op == OP_TRANSPOSE || p->x->op == OP_RESHAPE || p->x->op == OP_COPY;
        any |= p->x->shape->layout || (!moves && !is_alike(a, p, whole) && has_keys(a, p));
    }
    return any;
}

/* ---- doing it ---- */

static Inst *new_inst(const Inst *like, Inst *before, Op op, const Shape *shape, int32_t n, Inst *const *operands)
{
    Inst *i = inst_new(before->comp, before, op, shape, n, operands, NULL);
    i->meta = like->meta;
    i->loc = like->loc;
    return i;
}

/* What p has, or a part like it, will have these sizes. */
static const Shape *new_shape(const Maker *m, const AttentionPart *p, Type t)
{
    int64_t dims[ATTENTION_MOST_DIMS];
    if (has_keys(&m->a, p))
        return shape_array(m->arena, t, m->whole->x->shape->rank, m->whole->x->shape->dims);
    for (int32_t k = 0; k < m->kept.n; k++)
        dims[k] = m->whole->x->shape->dims[m->kept.v[k]];
    return shape_array(m->arena, t, m->kept.n, dims);
}

/* The dimension of p that dimension e of the new form is, those of size 1 one after another; -1: there is none left. */
static int32_t dim_of(const Maker *m, const AttentionPart *p, int32_t e, bool *taken)
{
    for (int32_t d = 0; d < p->x->shape->rank; d++)
        if (!taken[d] && p->dim[d] == m->whole->dim[e]) {
            taken[d] = true;
            return d;
        }
    return -1;
}

/* x, which has p's dimensions, in the order of the new form. */
static Inst *brought(const Maker *m, Inst *x, const AttentionPart *p, Inst *before)
{
    const Shape *to = new_shape(m, p, x->shape->type);
    const bool   keys = has_keys(&m->a, p);
    int64_t      dims[ATTENTION_MOST_DIMS], from[ATTENTION_MOST_DIMS], ones[ATTENTION_MOST_DIMS];
    bool         taken[ATTENTION_MOST_DIMS] = { false };
    int32_t      n = 0;
    if (shape_is_scalar(x->shape) || (is_alike(&m->a, p, m->whole) && shape_equal(x->shape, to)))
        return x;
    if (x->op == OP_BROADCAST && shape_is_scalar(inst_operand(x, 0)->shape)) {
        Inst *b = new_inst(x, before, OP_BROADCAST, to, 1, (Inst *[]){ inst_operand(x, 0) });
        inst_set_ints(b, ATTR_DIMENSIONS, (Ints){ NULL, 0 });
        return b;
    }
    if (x->shape->layout)
        x = new_inst(x, before, OP_COPY, shape_array(m->arena, x->shape->type, x->shape->rank, x->shape->dims), 1, &x);
    for (int32_t e = 0; e < m->whole->x->shape->rank; e++) {
        const int32_t d = keys || m->whole->dim[e] < 0 || !m->a.key[m->whole->dim[e]] ? dim_of(m, p, e, taken) : -1;
        if (d >= 0) {
            from[n] = d;
            dims[n++] = x->shape->dims[d];
        }
    }
    for (int32_t d = 0, at = n; d < x->shape->rank; d++) /* sizes of 1 that are too many */
        if (!taken[d]) {
            from[at] = d;
            ones[at++] = 1;
        }
    for (int32_t k = 0; k < n; k++)
        ones[k] = dims[k];
    if (!is_alike(&m->a, p, m->whole)) {
        Inst *t = new_inst(x, before, OP_TRANSPOSE, shape_array(m->arena, x->shape->type, x->shape->rank, ones), 1, &x);
        inst_set_ints(t, ATTR_DIMENSIONS, (Ints){ from, x->shape->rank });
        x = t;
    }
    return shape_same_dims(x->shape, to) ? x : new_inst(x, before, OP_RESHAPE, to, 1, &x);
}

static Inst *made_again(const Maker *m, const AttentionPart *p, Inst *i)
{
    Inst *x = map_get(&m->made, inst_operand(i, 0));
    switch (i->op) {
    case OP_RESHAPE: case OP_TRANSPOSE: case OP_COPY: return x;
    case OP_BROADCAST:
        if (has_keys(&m->a, p) == has_keys(&m->a, attention_part(&m->a, inst_operand(i, 0))))
            return x;
        x = new_inst(i, i, OP_BROADCAST, new_shape(m, p, i->shape->type), 1, &x);
        inst_set_ints(x, ATTR_DIMENSIONS, m->kept);
        return x;
    default: break;
    }
    Inst **operands = ARENA_ARRAY(m->cx->scratch, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++) {
        operands[k] = map_get(&m->made, inst_operand(i, k));
        if (!operands[k])
            operands[k] = brought(m, inst_operand(i, k), p, i);
    }
    Inst *y = inst_clone_into(i->comp, i, i, i->n_operands, operands);
    inst_set_shape(y, new_shape(m, p, i->shape->type));
    if (i->op == OP_REDUCE)
        inst_set_ints(y, ATTR_DIMENSIONS, m->keys);
    return y;
}

bool layout_scores(PassCtx *cx, Inst *out)
{
    Maker m = { .cx = cx, .arena = out->comp->module->arena };
    Inst *w;
    if (!attention_find(out, may_be_part, NULL, &m.a) || !is_wanted(cx, &m.a))
        return false;
    w = inst_operand(out, m.a.side);
    m.whole = &m.a.parts[m.a.n - 1];
    m.made = map_new(cx->scratch);
    m.kept = ints_make(m.arena, w->shape->rank);
    m.keys = ints_make(m.arena, w->shape->rank);
    m.kept.n = m.keys.n = 0;
    for (int32_t d = 0; d < w->shape->rank; d++) {
        Ints *of = m.whole->dim[d] >= 0 && m.a.key[m.whole->dim[d]] ? &m.keys : &m.kept;
        of->n++;
        *ints_at(*of, of->n - 1) = d;
    }
    pass_remark(cx, out, "what is made of %%%s for %%%s lies in one order", m.a.scores->name, out->name);
    for (Inst *i = out->comp->first, *next; i != out; i = next) {
        next = i->next;
        const AttentionPart *p = attention_part(&m.a, i);
        if (p)
            map_put(&m.made, i, i == m.a.scores ? brought(&m, i, p, next) : made_again(&m, p, i));
    }
    inst_replace(w, map_get(&m.made, w));
    inst_delete_dead(w, cx->scratch);
    return true;
}
