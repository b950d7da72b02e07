/* A module in double precision. Every float type becomes f64 and every complex type c128, in arguments, constants and results, so that
 * nothing is rounded to less; integers and pred stay.
 *
 * What looks at the bits of a float, or is made for its type, runs as it was, between converts:
 *
 *   x = f32[4] add(a, b)                        x = f64[4] add(a, b)
 *   n = f32[4] reduce-precision(x)      =>      y = f32[4] convert(x)
 *   r = f32[4] multiply(n, a)                   n = f32[4] reduce-precision(y)
 *                                               z = f64[4] convert(n)
 *                                               r = f64[4] multiply(z, a)
 *
 * and what such an instruction calls stays as it was, too: a copy, when others call it as well. */
#include "config.h"

#include "driver/shadow.h"

#include "ir/custom_call.h"
#include "support/vec.h"

typedef struct Raise {
    Module *m;
    Arena  *scratch;
    Map     operands; /* Inst that stays as it was -> the shapes of its operands before */
    Map     plain;    /* Comp -> the copy of it that stays as it was; the copy -> itself */
} Raise;

static Type raised_type(Type t)
{
    return type_is_float(t) ? TYPE_F64 : type_is_complex(t) ? TYPE_C128 : t;
}

/* s itself when there is no smaller float in it. */
static const Shape *raised_shape(Arena *a, const Shape *s)
{
    if (raised_type(s->type) != s->type)
        return shape_with_type(a, s, raised_type(s->type));
    const Shape **elems = ARENA_ARRAY(a, const Shape *, s->n_elems);
    bool          same = true;
    for (int32_t k = 0; k < s->n_elems; k++) {
        elems[k] = raised_shape(a, s->elems[k]);
        same = same && elems[k] == s->elems[k];
    }
    return same ? s : shape_tuple(a, s->n_elems, elems);
}

Literal *shadow_raise(const Literal *l)
{
    Type t = raised_type(l->type);
    if (l->type == TYPE_TUPLE) {
        Literal *r = literal_tuple(l->n_elems, NULL);
        for (int32_t k = 0; k < l->n_elems; k++)
            r->elems[k] = shadow_raise(l->elems[k]);
        return r;
    }
    if (t == l->type)
        return literal_ref(l);
    Literal *r = literal_new(t, l->rank, l->dims);
    for (int64_t k = 0; k < l->count; k++)
        literal_set_f64(r, k, literal_get_f64(l, k), type_is_complex(t) ? literal_get_imag(l, k) : 0);
    return r;
}

/* ---- what stays ---- */

static bool stays(const Inst *i)
{
    switch (i->op) {
    case OP_BITCAST_CONVERT: case OP_REDUCE_PRECISION: case OP_STOCHASTIC_CONVERT: case OP_RNG: case OP_RNG_BIT_GENERATOR:
    case OP_INFEED: case OP_OUTFEED: case OP_SEND: case OP_SEND_DONE: case OP_RECV: case OP_RECV_DONE: return true;
    case OP_BITCAST: return i->shape->type != inst_operand(i, 0)->shape->type;
    case OP_CUSTOM_CALL: return custom_call_kind(inst_string(i, ATTR_CUSTOM_CALL_TARGET)) != CALL_MARKER;
    default: return false;
    }
}

static void set_plain_callees(Raise *r, Inst *i)
{
    Comp **callees = ARENA_ARRAY(r->scratch, Comp *, i->n_callees);
    for (int32_t k = 0; k < i->n_callees; k++)
        callees[k] = map_get(&r->plain, inst_callee(i, k));
    if (i->n_callees > 0)
        inst_set_callees(i, i->n_callees, callees);
}

/* Callers stand after what they call: the marks go from the last computation to the first, the copies are made the other way. */
static void copy_plain(Raise *r)
{
    for (Comp *c = r->m->first; c; c = c->next)
        c->mark = 0;
    for (Comp *c = r->m->last; c; c = c->prev)
        for (Inst *i = c->first; i; i = i->next)
            for (int32_t k = 0; k < i->n_callees; k++)
                inst_callee(i, k)->mark |= c->mark || stays(i);
    for (Comp *c = r->m->first, *next; c; c = next) {
        next = c->next;
        if (!c->mark)
            continue;
        Comp *copy = comp_clone(c, c->name);
        for (Inst *i = copy->first; i; i = i->next)
            set_plain_callees(r, i);
        map_put(&r->plain, c, copy);
        map_put(&r->plain, copy, copy);
    }
}

/* ---- converting ---- */

/* x as a value of shape `to`, which differs in the types of floats; put before `before`. */
static Inst *converted(Raise *r, Comp *c, Inst *before, Inst *x, const Shape *to)
{
    const Shape *from = x->shape;
    if (from == to || from->type == TYPE_TOKEN)
        return x;
    if (from->type != TYPE_TUPLE)
        return from->type == to->type ? x : inst_new(c, before, OP_CONVERT, to, 1, &x, NULL);
    Inst **elems = ARENA_ARRAY(r->scratch, Inst *, from->n_elems);
    for (int32_t k = 0; k < from->n_elems; k++) {
        Inst *part = inst_new(c, before, OP_GET_TUPLE_ELEMENT, from->elems[k], 1, &x, NULL);
        inst_set_int(part, ATTR_INDEX, k);
        elems[k] = converted(r, c, before, part, to->elems[k]);
    }
    return inst_new(c, before, OP_TUPLE, to, from->n_elems, elems, NULL);
}

/* The users of i get it raised. */
static void raise_result(Raise *r, Inst *i)
{
    const Shape *to = raised_shape(r->m->arena, i->shape);
    VEC(Use *)   users = {0};
    if (to == i->shape)
        return;
    for (Use *u = i->uses; u; u = u->next)
        vec_push(r->scratch, &users, u);
    Inst *raised = converted(r, i->comp, i->next, i, to);
    for (int32_t k = 0; k < users.n; k++)
        inst_set_operand(users.v[k]->user, users.v[k]->index, raised);
    if (i->comp->root == i)
        i->comp->root = raised;
}

/* operands: the shapes of i's operands before anything was raised. */
static void keep_own_types(Raise *r, Inst *i, const Shape *const *operands)
{
    for (int32_t k = 0; k < i->n_operands; k++)
        inst_set_operand(i, k, converted(r, i->comp, i, inst_operand(i, k), operands[k]));
    raise_result(r, i);
}

static const Shape **operand_shapes(Arena *a, const Inst *i)
{
    const Shape **v = ARENA_ARRAY(a, const Shape *, i->n_operands + 1);
    for (int32_t k = 0; k < i->n_operands; k++)
        v[k] = inst_operand(i, k)->shape;
    return v;
}

static void raise_inst(Raise *r, Inst *i)
{
    if (i->op == OP_CONSTANT)
        i->literal = literal_keep(r->m->arena, shadow_raise(i->literal));
    i->shape = raised_shape(r->m->arena, i->shape);
}

static void raise_comp(Raise *r, Comp *c)
{
    VEC(Inst *) kept = {0};
    for (Inst *i = c->first; i; i = i->next)
        if (stays(i)) {
            vec_push(r->scratch, &kept, i);
            map_put(&r->operands, i, operand_shapes(r->scratch, i));
            set_plain_callees(r, i);
        }
    for (Inst *i = c->first; i; i = i->next)
        if (!map_has(&r->operands, i))
            raise_inst(r, i);
    for (int32_t k = 0; k < kept.n; k++)
        keep_own_types(r, kept.v[k], map_get(&r->operands, kept.v[k]));
}

Module *shadow_module(const Module *m)
{
    Arena *scratch = arena_new();
    Raise  r = {.m = module_clone(m), .scratch = scratch, .operands = map_new(scratch), .plain = map_new(scratch)};
    copy_plain(&r);
    for (Comp *c = r.m->first; c; c = c->next)
        if (map_get(&r.plain, c) != c)
            raise_comp(&r, c);
    module_remove_dead_comps(r.m);
    arena_free(scratch);
    return r.m;
}
