/* conditional-code-motion - what all branches compute alike is computed once before them, and what reads a result alone is computed in them.
 *
 *   %c = conditional(%p, %x, %x), true: x -> (exp(x), sqrt(x)), false: x -> (sin(x), sqrt(x))
 *   %r = add(multiply(%c.0, 3), %y)
 *         =>
 *   %s = sqrt(%x)
 *   %c = conditional(%p, (%x, %y), (%x, %y)), true: (x, y) -> exp(x) * 3 + y, false: (x, y) -> sin(x) * 3 + y
 *
 *   - out: a result of which all branches compute the same from the same values, whatever it is made of
 *   - in: an elementwise instruction, a reduction or a part, of results that nobody else reads, of numbers and of values that are in memory when the
 *     branches begin; where the result is no larger, and what makes it in a branch can be one kernel with it
 *   - {tails}: nothing in, but out, too, what all branches do last alike with a value of their own each. XLA does that; no level has it, since a branch
 *     would have to write that value to memory
 *
 * Conditionals without control edges. Of effects in the branches nothing is moved. */
#include "config.h"

#include "analysis/cost.h"
#include "passes/conditional.h"
#include "passes/pass.h"
#include "passes/util.h"

#include <string.h>

enum { MAX_ALIKE = 64, MAX_BRANCHES = 8 }; /* instructions that move out at once, branches that get a copy of what moves in */

/* ---- out ---- */

/* What the branches compute alike: one instruction of each, and the same outside once it is there. */
typedef struct Alike {
    Inst   **of;
    int32_t *operands; /* places in the group */
    Inst    *outside;
} Alike;

typedef struct Group {
    const Inst *c;
    Arena      *scratch;
    int32_t     n;
    int32_t     differs; /* the place of a value that each branch has of its own, -1: there is none */
    Alike       v[MAX_ALIKE];
} Group;

/* Its place, -1 where there is no room. */
static int32_t add_to_group(Group *g, Inst **of)
{
    size_t bytes = (size_t)g->c->n_callees * sizeof *of;
    for (int32_t q = 0; q < g->n; q++)
        if (memcmp(g->v[q].of, of, bytes) == 0)
            return q;
    if (g->n == MAX_ALIKE)
        return -1;
    g->v[g->n] = (Alike){.of = of};
    return g->n++;
}

static Inst *same_from_outside(const Inst *c, Inst *const *of)
{
    Inst *x = conditional_handed_on(c, 0, of[0]);
    for (int32_t k = 1; k < c->n_callees && x; k++)
        if (conditional_handed_on(c, k, of[k]) != x)
            x = NULL;
    return x && shape_equal(x->shape, of[0]->shape) ? x : NULL;
}

static bool same_callees(const Inst *a, const Inst *b)
{
    bool same = a->n_callees == b->n_callees;
    for (int32_t k = 0; k < a->n_callees && same; k++)
        same = a->callees[k] == b->callees[k] || (a->callees[k]->aux && a->callees[k]->aux == b->callees[k]->aux);
    return same;
}

static bool can_move_out(const Inst *i)
{
    switch (i->op) {
    case OP_WHILE: case OP_CONDITIONAL: case OP_CALL: case OP_FUSION: case OP_CUSTOM_CALL: case OP_TUPLE: case OP_GET_TUPLE_ELEMENT:
        return false;
    default:
        return inst_is_value(i) && inst_is_free(i) && shape_is_array(i->shape);
    }
}

static bool same_instruction(const Inst *a, const Inst *b)
{
    return a->op == b->op && a->n_operands == b->n_operands && shape_equal(a->shape, b->shape) && inst_attrs_equal(a, b) && same_callees(a, b) &&
           (a->op != OP_CONSTANT || literal_equal(a->literal, b->literal));
}

static bool all_alike(const Inst *c, Inst *const *of)
{
    bool alike = true;
    for (int32_t k = 0; k < c->n_callees && alike; k++)
        alike = can_move_out(of[k]) && same_instruction(of[0], of[k]);
    return alike;
}

static bool add_operands(Group *g, Alike *a)
{
    bool room = true;
    a->operands = ARENA_ARRAY(g->scratch, int32_t, a->of[0]->n_operands);
    for (int32_t j = 0; j < a->of[0]->n_operands && room; j++) {
        Inst **operands = ARENA_ARRAY(g->scratch, Inst *, g->c->n_callees);
        for (int32_t k = 0; k < g->c->n_callees; k++)
            operands[k] = inst_operand(a->of[k], j);
        a->operands[j] = add_to_group(g, operands);
        room = a->operands[j] >= 0;
    }
    return room;
}

static bool are_like_arrays(const Inst *c, Inst *const *of)
{
    bool like = shape_is_array(of[0]->shape) && !shape_is_dynamic(of[0]->shape);
    for (int32_t k = 1; k < c->n_callees && like; k++)
        like = shape_equal(of[0]->shape, of[k]->shape);
    return like;
}

/* What the results `of` are made of. False: it is not alike. */
static bool find_group(Group *g, Inst **of, bool tails)
{
    add_to_group(g, of);
    for (int32_t q = 0; q < g->n; q++) {
        Alike *a = &g->v[q];
        a->outside = same_from_outside(g->c, a->of);
        if (a->outside || (all_alike(g->c, a->of) && add_operands(g, a)))
            continue;
        if (!tails || q == 0 || g->differs >= 0 || !are_like_arrays(g->c, a->of) || a->operands)
            return false;
        g->differs = q;
    }
    return true;
}

/* In front of `before`, in the order of the first branch. */
static Inst *copy_group(Group *g, Inst *before)
{
    for (const Inst *i = inst_callee(g->c, 0)->first; i; i = i->next)
        for (int32_t q = 0; q < g->n; q++) {
            Alike *a = &g->v[q];
            if (a->of[0] != i || a->outside)
                continue;
            Inst **operands = ARENA_ARRAY(g->scratch, Inst *, i->n_operands);
            for (int32_t j = 0; j < i->n_operands; j++)
                operands[j] = g->v[a->operands[j]].outside;
            a->outside = inst_clone_into(before->comp, before, i, i->n_operands, operands);
        }
    return g->v[0].outside;
}

static bool is_in_group(const Group *g, int32_t k, const Inst *i)
{
    bool in = false;
    for (int32_t q = 0; q < g->n && !in; q++)
        in = g->v[q].of[k] == i;
    return in;
}

/* Takes time, and a branch has other uses for it than the group and its own result r. */
static bool is_wanted_within(const Group *g, const Alike *a, int32_t r)
{
    const Inst *i = a->of[0];
    if (a->outside || (!inst_is_dear(i) && (op_has(i->op, F_ELEMENTWISE) || op_has(i->op, F_MOVES) || !i->n_operands)))
        return false;
    for (int32_t k = 0; k < g->c->n_callees; k++)
        for (const Use *u = a->of[k]->uses; u; u = u->next) {
            bool result = u->user == inst_callee(g->c, k)->root && u->index == r;
            if (!result && !is_in_group(g, k, u->user))
                return true;
        }
    return false;
}

/* The r-th result of each branch, all of it where r is -1; NULL: it is not one instruction. */
static Inst **results(const Flow *f, const Inst *c, int32_t r)
{
    Inst **of = ARENA_ARRAY(f->scratch, Inst *, c->n_callees);
    for (int32_t k = 0; k < c->n_callees; k++) {
        Inst *root = inst_callee(c, k)->root;
        of[k] = r < 0 ? root : tuple_element_known(root, r);
        if (!of[k])
            return NULL;
    }
    return of;
}

static bool result_is_read(const Inst *c, int32_t r)
{
    bool read = c->comp->root == c;
    for (const Use *u = c->uses; u && !read; u = u->next)
        read = u->user->op != OP_GET_TUPLE_ELEMENT || (is_element_of(u->user, r) && (u->user->n_uses || u->user->comp->root == u->user));
    return read;
}

static void read_instead(Inst *c, int32_t r, Inst *now)
{
    for (Use *u = c->uses, *next; u; u = next) {
        next = u->next;
        if (is_element_of(u->user, r) && u->user != now && shape_equal(u->user->shape, now->shape))
            inst_replace(u->user, now);
    }
    tuple_sweep(c);
}

/* What takes time and the branches go on with is handed in. */
static void hand_in_wanted(Flow *f, Inst *c, const Group *g, const bool *wanted)
{
    Inst ***in = ARENA_ARRAY(f->scratch, Inst **, c->n_callees);
    for (int32_t k = 0; k < c->n_callees; k++)
        in[k] = ARENA_ARRAY(f->scratch, Inst *, 1);
    for (int32_t q = 0; q < g->n; q++) {
        if (!wanted[q])
            continue;
        conditional_hand_in(f, c, 1, &g->v[q].outside, in);
        for (int32_t k = 0; k < c->n_callees; k++)
            if (!callee_is_later_slot(c, k))
                inst_replace(g->v[q].of[k], in[k][0]);
    }
}

/* All of it: whoever read it reads what stands in front of the conditional. */
static void move_out(Flow *f, Inst *c, int32_t r, Group *g)
{
    bool *wanted = ARENA_ARRAY(f->scratch, bool, g->n);
    for (int32_t q = 0; q < g->n; q++)
        wanted[q] = is_wanted_within(g, &g->v[q], r);
    Inst *outside = copy_group(g, c);
    if (r >= 0) {
        hand_in_wanted(f, c, g, wanted);
        tuple_spell_out(c);
        read_instead(c, r, outside);
        conditional_drop_results(f, c);
    } else {
        inst_replace(c, outside);
    }
    if (!c->n_uses)
        inst_delete_dead(c, f->scratch);
}

/* The tail behind the value that differs, which becomes the result. */
static void move_tail_out(Flow *f, Inst *c, int32_t r, Group *g)
{
    Alike *d = &g->v[g->differs];
    if (r >= 0)
        tuple_spell_out(c);
    Use  *uses = c->uses;
    Inst *at = c->next;
    bool  root = c->comp->root == c;
    d->outside = c;
    if (r >= 0) {
        d->outside = inst_new(c->comp, at, OP_GET_TUPLE_ELEMENT, d->of[0]->shape, 1, &c, NULL);
        inst_set_int(d->outside, ATTR_INDEX, r);
        d->outside->meta = d->of[0]->meta ? d->of[0]->meta : c->meta;
        d->outside->loc = c->loc;
    }
    Inst *outside = copy_group(g, at);
    for (Use *u = uses, *next; u; u = next) {
        next = u->next;
        if (r < 0)
            inst_set_operand(u->user, u->index, outside);
        else if (is_element_of(u->user, r))
            inst_replace(u->user, outside);
    }
    if (r < 0 && root)
        c->comp->root = outside;
    conditional_set_result(f, c, r, d->of);
    tuple_sweep(c);
}

static bool result_moves_out(Flow *f, Inst *c, int32_t r, bool tails)
{
    Inst **of = result_is_read(c, r) ? results(f, c, r) : NULL;
    Group  g = {.c = c, .scratch = f->scratch, .differs = -1};
    if (!of || !find_group(&g, of, tails))
        return false;
    for (int32_t q = 0; q < g.n && g.differs >= 0; q++)
        if (q != g.differs && is_wanted_within(&g, &g.v[q], r))
            return false;
    conditional_own(f, c);
    Group own = {.c = c, .scratch = f->scratch, .differs = -1};
    find_group(&own, results(f, c, r), tails); /* the branches may be copies now */
    if (own.differs < 0)
        move_out(f, c, r, &own);
    else
        move_tail_out(f, c, r, &own);
    return true;
}

static bool moves_out(Flow *f, Inst *c, bool tails)
{
    if (!shape_is_tuple(c->shape))
        return result_moves_out(f, c, -1, tails);
    for (int32_t r = 0; r < c->shape->n_elems; r++)
        if (result_moves_out(f, c, r, tails))
            return true;
    return false;
}

/* ---- in ---- */

/* What an operand of the instruction that moves in is: */
typedef struct Source {
    enum { RESULT, LEAF, SPREAD } kind; /* a result, something that is known to the branches, a broadcast of that */
    int32_t r;                          /* RESULT: which one */
    Inst   *leaf;                       /* a number or an iota, of which each branch gets a copy, or else what is handed in */
    int32_t handed;                     /* its place among these, -1 */
} Source;

static bool is_copied(const Inst *i)
{
    return (i->op == OP_CONSTANT && shape_is_scalar(i->shape) && !i->literal->elided) || i->op == OP_IOTA;
}

/* What its computation is given: it may as well stand in front. */
static bool is_given(const Inst *i)
{
    return i->op == OP_PARAMETER || i->op == OP_CONSTANT || (i->op == OP_GET_TUPLE_ELEMENT && inst_operand(i, 0)->op == OP_PARAMETER);
}

/* In memory when c begins, and of no kernel. */
static bool is_stored(const Inst *i, const Inst *c)
{
    switch (i->op) {
    case OP_PARAMETER: case OP_CONSTANT:
        return shape_is_array(i->shape) && !shape_is_dynamic(i->shape);
    case OP_GET_TUPLE_ELEMENT: case OP_DOT: case OP_CONVOLUTION: case OP_SORT: case OP_WHILE: case OP_SCATTER:
        return shape_is_array(i->shape) && !shape_is_dynamic(i->shape) && (i->mark < c->mark || is_given(i));
    default:
        return false;
    }
}

static bool is_leaf(const Inst *i, const Inst *c)
{
    return is_copied(i) || is_stored(i, c);
}

/* Whether nobody but `reader` reads the result r of c. */
static bool is_only_reader(const Inst *c, int32_t r, const Inst *reader)
{
    if (c->comp->root == c)
        return false;
    for (const Use *u = c->uses; u; u = u->next) {
        const Inst *e = u->user;
        if (r < 0 && e != reader)
            return false;
        if (r >= 0 && (e->op != OP_GET_TUPLE_ELEMENT || e->comp->root == e || (is_element_of(e, r) && e->n_uses && inst_user(e) != reader)))
            return false;
    }
    return true;
}

static bool find_source(const Inst *c, const Inst *reader, Inst *o, Source *s)
{
    *s = (Source){.handed = -1, .r = -1};
    if (o == c || (o->op == OP_GET_TUPLE_ELEMENT && inst_operand(o, 0) == c)) {
        s->r = o == c ? -1 : (int32_t)inst_int(o, ATTR_INDEX, 0);
        return is_only_reader(c, s->r, reader);
    }
    s->kind = is_leaf(o, c) ? LEAF : SPREAD;
    s->leaf = s->kind == LEAF ? o : o->op == OP_BROADCAST && inst_is_free(o) ? inst_operand(o, 0) : NULL;
    return s->leaf && is_leaf(s->leaf, c);
}

static bool can_move_in(const Inst *i)
{
    bool kind = op_has(i->op, F_ELEMENTWISE) || i->op == OP_REDUCE || i->op == OP_SLICE;
    return kind && inst_is_value(i) && inst_is_free(i) && shape_is_array(i->shape) && (i->n_uses || i->comp->root == i);
}

/* Whether what makes a result in a branch can be one kernel with its reader. */
static bool can_join(const Inst *reader, const Inst *made)
{
    if (!made || made->n_uses > 1 || !shape_is_array(made->shape))
        return false;
    switch (made->op) {
    case OP_DOT:
        return op_has(reader->op, F_ELEMENTWISE);
    case OP_REDUCE:
        return reader->op != OP_REDUCE;
    case OP_BROADCAST: case OP_IOTA: case OP_PAD: case OP_CONCATENATE: case OP_DYNAMIC_SLICE: case OP_SLICE: case OP_TRANSPOSE: case OP_REVERSE:
        return true;
    default:
        return op_has(made->op, F_ELEMENTWISE);
    }
}

static bool joins_somewhere(const Inst *c, const Inst *reader, int32_t r)
{
    bool joins = false;
    for (int32_t k = 0; k < c->n_callees && !joins; k++) {
        const Inst *root = inst_callee(c, k)->root;
        joins = can_join(reader, r < 0 ? root : tuple_element_known(root, r));
    }
    return joins;
}

/* The sources of i, when it is to move in; else NULL. */
static Source *find_sources(const Flow *f, const Inst *c, const Inst *i)
{
    Source *s = ARENA_ARRAY(f->scratch, Source, i->n_operands);
    int64_t gone = 0;
    bool    joins = false;
    for (int32_t j = 0; j < i->n_operands; j++) {
        if (!find_source(c, i, inst_operand(i, j), &s[j]))
            return NULL;
        bool again = false;
        for (int32_t h = 0; h < j; h++)
            again |= inst_operand(i, h) == inst_operand(i, j);
        if (s[j].kind != RESULT || again || shape_count(inst_operand(i, j)->shape) <= 1)
            continue;
        gone = cost_add(gone, shape_bytes(inst_operand(i, j)->shape));
        joins |= joins_somewhere(c, i, s[j].r);
    }
    return joins && shape_bytes(i->shape) <= gone ? s : NULL;
}

static void bring_forward(Inst *i, Inst *c)
{
    if (i->mark < c->mark)
        return;
    if (i->n_operands)
        bring_forward(inst_operand(i, 0), c);
    inst_move_before(i, c);
    i->mark = c->mark - 1;
}

static void hand_in_leaves(Flow *f, Inst *c, int32_t n, Source *s, Inst ***in)
{
    Inst  **values = ARENA_ARRAY(f->scratch, Inst *, n);
    int32_t n_values = 0;
    for (int32_t j = 0; j < n; j++) {
        if (s[j].kind == RESULT || is_copied(s[j].leaf))
            continue;
        int32_t v = 0;
        while (v < n_values && values[v] != s[j].leaf)
            v++;
        n_values += v == n_values;
        values[v] = s[j].leaf;
        s[j].handed = v;
        bring_forward(values[v], c);
    }
    for (int32_t k = 0; k < c->n_callees; k++)
        in[k] = ARENA_ARRAY(f->scratch, Inst *, n);
    conditional_hand_in(f, c, n_values, values, in);
}

static Inst *copy_into(Flow *f, Comp *body, const Inst *i, const Source *s, Inst *const *in)
{
    Inst **operands = ARENA_ARRAY(f->scratch, Inst *, i->n_operands);
    for (int32_t j = 0; j < i->n_operands; j++) {
        if (s[j].kind == RESULT) {
            operands[j] = s[j].r < 0 ? body->root : tuple_element(body->root, s[j].r);
            continue;
        }
        operands[j] = s[j].handed >= 0 ? in[s[j].handed] : inst_clone_into(body, NULL, s[j].leaf, 0, NULL);
        if (s[j].kind == SPREAD)
            operands[j] = inst_clone_into(body, NULL, inst_operand(i, j), 1, &operands[j]);
    }
    return inst_clone_into(body, NULL, i, i->n_operands, operands);
}

static void move_in(Flow *f, Inst *c, Inst *i, Source *s)
{
    Inst  **values = ARENA_ARRAY(f->scratch, Inst *, c->n_callees), ***in = ARENA_ARRAY(f->scratch, Inst **, c->n_callees), *e = c;
    int32_t r = -1;
    conditional_own(f, c);
    hand_in_leaves(f, c, i->n_operands, s, in);
    for (int32_t j = i->n_operands - 1; j >= 0; j--)
        if (s[j].kind == RESULT)
            r = s[j].r;
    for (int32_t k = 0; k < c->n_callees; k++)
        comp_move_before(inst_callee(c, k), c->comp); /* behind what the reader calls */
    for (int32_t k = 0; k < c->n_callees; k++)
        if (!callee_is_later_slot(c, k))
            values[k] = copy_into(f, inst_callee(c, k), i, s, in[k]);
    conditional_set_result(f, c, r, values);
    if (r >= 0)
        e = tuple_new_element(c, r, i);
    inst_replace(i, e);
    inst_delete_dead(i, f->scratch);
    if (r >= 0)
        conditional_drop_results(f, c);
}

static bool reader_moves_in(Flow *f, Inst *c, Inst *i)
{
    Source *s = can_move_in(i) ? find_sources(f, c, i) : NULL;
    if (s)
        move_in(f, c, i, s);
    return s;
}

/* Places in c's computation are marks. */
static bool moves_in(Flow *f, Inst *c)
{
    int64_t place = 0;
    if (c->n_callees > MAX_BRANCHES)
        return false;
    for (Inst *i = c->comp->first; i; i = i->next)
        i->mark = place++;
    for (Use *u = c->uses; u; u = u->next) {
        Inst *e = u->user;
        if (e->op != OP_GET_TUPLE_ELEMENT && reader_moves_in(f, c, e))
            return true;
        for (Use *v = e->op == OP_GET_TUPLE_ELEMENT ? e->uses : NULL; v; v = v->next)
            if (reader_moves_in(f, c, v->user))
                return true;
    }
    return false;
}

/* ---- the pass ---- */

static bool moves(Flow *f, Inst *c, bool tails)
{
    return conditional_editable(f, c) && (moves_out(f, c, tails) || (!tails && moves_in(f, c)));
}

bool pass_conditional_code_motion(Module *m, PassCtx *cx)
{
    bool tails = pass_arg_is(cx, "tails");
    comps_find_equal(m, cx->scratch);
    Flow f = flow_of(m, cx->scratch);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c), *next; i; i = next) {
            next = i->next;
            if (i->op != OP_CONDITIONAL || i->n_control || i->n_control_succs)
                continue;
            const char *name = i->name;
            while (cx->rewrites < cx->limit && i->comp && moves(&f, i, tails)) {
                cx->did_at = name;
                cx->rewrites++;
                next = i->comp ? i->next : next;
            }
        }
    if (cx->rewrites)
        module_remove_dead_comps(m);
    return cx->rewrites > 0;
}
