/* Several results of one kernel. A group has one root at first; what would be a kernel of its own joins a group whose loops go over the same elements,
 * where nothing outside stands between:
 *
 *   m' = f(m, g);  p' = h(p, m')              =>   (m', p') = fusion(m, g, p)
 *   s = reduce(x);  q = reduce(x * x)         =>   (s, q) = fusion(x)
 *   m = reduce(x);  y = x - broadcast(m)      =>   (m, y) = fusion(x)                 m is one value a row of y, which others want too
 *
 * Reductions of one group that go over the same elements, none of which needs another, ask for their operands in one context: the code makes them in the
 * same loops (emit/lower_together.c). */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "passes/fusion.h"

/* ---- what waits for what ---- */

static const Group *head_of(const Group *g)
{
    while (g->head)
        g = g->head;
    return g;
}

static bool is_member(const Inst *i, const Group *g)
{
    const Node *n = node(i);
    for (int32_t k = 0; k < n->n_contexts; k++)
        if (head_of(n->contexts[k]->group) == head_of(g))
            return true;
    return false;
}

/* Instructions that have to wait for a value. */
typedef struct Search {
    VEC(const Inst *) list;
    int32_t number;
    bool    again; /* g needs one of them */
    bool    lost;  /* one of them is waited for by control, or there are too many: who knows */
} Search;

static void search_users(Fuser *f, Search *s, const Inst *i, const Group *g)
{
    for (const Use *u = i->uses; u; u = u->next) {
        Node *n = node(u->user);
        s->again |= is_member(u->user, g);
        s->lost |= u->user->n_control_succs > 0;
        if (n->searched == s->number)
            continue;
        n->searched = s->number;
        vec_push(f->scratch, &s->list, u->user);
    }
}

/* What waits for one part of a kernel waits for all its results. */
static void search_group(Fuser *f, Search *s, const Group *part, const Group *g)
{
    Group *h = (Group *)(uintptr_t)head_of(part);
    if (h == head_of(g) || h->searched == s->number)
        return;
    h->searched = s->number;
    for (; h; h = h->bundled) {
        search_users(f, s, h->root, g);
        for (int32_t r = 0; r < h->n_more; r++)
            search_users(f, s, h->more[r], g);
    }
}

/* Goes on from what has been found until g needs one of it. */
static bool search_on(Fuser *f, Search *s, const Group *g)
{
    enum { MOST = 400 };
    for (int32_t at = 0; at < s->list.n && !s->again && !s->lost; at++) {
        const Inst *u = s->list.v[at];
        const Node *n = node(u);
        for (int32_t k = 0; k < n->n_contexts; k++)
            search_group(f, s, n->contexts[k]->group, g);
        if (n->n_contexts == 0)
            search_users(f, s, u, g);
        s->lost |= s->list.n > MOST;
    }
    return s->again || s->lost;
}

/* What needs i outside of g may in turn be needed inside: then i has to be finished before g begins. */
static bool leads_to(Fuser *f, const Inst *i, const Group *g)
{
    Search s = {.number = ++f->searches};
    search_users(f, &s, i, g);
    s.again = false; /* those in g itself */
    return search_on(f, &s, g);
}

bool fusion_waits(Fuser *f, const Group *g, const Group *h)
{
    Search s = {.number = ++f->searches};
    search_group(f, &s, g, h);
    return search_on(f, &s, h);
}

/* ---- reductions that go over the same elements ---- */

bool fusion_is_result(const Inst *i, const Group *g)
{
    bool found = i == g->root;
    for (int32_t r = 0; r < g->n_more && !found; r++)
        found = i == g->more[r];
    return found;
}

enum { MOST_BEHIND = 100 };

/* Gives what i is made of a number; false when that is too much. */
static bool mark_behind(Fuser *f, const Inst *i, int32_t number)
{
    VEC(const Inst *) list = {0};
    vec_push(f->scratch, &list, i);
    for (int32_t at = 0; at < list.n && list.n <= MOST_BEHIND; at++)
        for (int32_t k = 0; k < list.v[at]->n_operands; k++) {
            Node *n = node(inst_operand(list.v[at], k));
            if (n->searched != number && n->role != ROLE_NONE && n->role != ROLE_CONTRACT && n->role != ROLE_UPDATE && n->role != ROLE_SCATTER)
                vec_push(f->scratch, &list, inst_operand(list.v[at], k));
            n->searched = number;
        }
    return list.n <= MOST_BEHIND;
}

static bool is_input(const Inst *i, double count)
{
    return node(i)->role != ROLE_LEAF && i->op != OP_BROADCAST && fusion_count(i) >= count;
}

/* `later` is not made of i, but reads an array of some size that i, of which everything is marked, reads too. */
static bool meets_apart(Fuser *f, const Inst *later, const Inst *i, int32_t marked)
{
    double  count = fusion_count(inst_operand(i, 0)) / 2;
    int32_t number = ++f->searches;
    bool    meets = false;
    VEC(const Inst *) list = {0};
    vec_push(f->scratch, &list, later);
    for (int32_t at = 0; at < list.n && list.n <= MOST_BEHIND; at++)
        for (int32_t k = 0; k < list.v[at]->n_operands; k++) {
            const Inst *o = inst_operand(list.v[at], k);
            Node       *n = node(o);
            if (o == i)
                return false;
            meets |= n->searched == marked && is_input(o, count);
            if (n->searched == marked || n->searched == number || (meets && n->order < node(i)->order))
                continue;
            n->searched = number;
            vec_push(f->scratch, &list, o);
        }
    return meets && list.n <= MOST_BEHIND;
}

bool fusion_go_together(Fuser *f, const Inst *i, const Inst *later)
{
    int32_t marked = ++f->searches;
    return i->op == OP_REDUCE && later->op == OP_REDUCE && inst_same_loops(i, later) && mark_behind(f, i, marked) && meets_apart(f, later, i, marked);
}

/* i and all that already share the loops of context `from`, whose operands are asked for in `to`. */
static bool goes_with_all(Fuser *f, const Inst *i, const Group *g, const Context *from, const Context *to)
{
    for (int32_t k = 0; k < g->n_loops; k++)
        if (g->loops[k].from == from && g->loops[k].to == to && g->loops[k].of != i && !fusion_go_together(f, i, g->loops[k].of))
            return false;
    return true;
}

Context *fusion_shared_context(Fuser *f, const Inst *u, Context *c)
{
    Group *g = c->group;
    for (int32_t k = 0; k < g->n_loops; k++) {
        if (g->loops[k].from != c || !goes_with_all(f, u, g, c, g->loops[k].to))
            continue;
        Context *to = g->loops[k].to;
        if (g->loops[k].of != u)
            fusion_share_context(u, c, to);
        return to;
    }
    return NULL;
}

void fusion_share_context(const Inst *u, const Context *from, Context *to)
{
    Group *g = from->group;
    if (g->n_loops < MAX_TOGETHER)
        g->loops[g->n_loops++] = (ReduceLoops){u, from, to};
}

static bool is_read(const Inst *i, const Group *g)
{
    for (const Use *u = i->uses; u; u = u->next)
        if (is_member(u->user, g))
            return true;
    return false;
}

static bool may_join_reduction(Fuser *f, const Inst *i, const Group *g)
{
    if (g->columns || g->n_more == MAX_RESULTS || g->n_loops == MAX_TOGETHER || g->size + 1 > f->max_size ||
        g->operands + fusion_new_operands(i, g) > MAX_OPERANDS || is_read(i, g) || !fusion_go_together(f, i, g->root))
        return false;
    for (int32_t r = 0; r < g->n_more; r++)
        if (!fusion_go_together(f, i, g->more[r]))
            return false;
    return !leads_to(f, i, g);
}

/* i, a reduction that is stored, becomes another result of a group that is one as well. */
static Group *reduction_to_join(Fuser *f, const Inst *i)
{
    enum { MOST_GROUPS = 8 };
    for (int32_t k = f->reductions.n; k-- > 0 && k >= f->reductions.n - MOST_GROUPS;)
        if (may_join_reduction(f, i, f->reductions.v[k]))
            return f->reductions.v[k];
    return NULL;
}

/* ---- results that are made element by element ---- */

/* Asked by g for each of its elements once, as the root is, or not at all. */
static bool asked_as_root(const Inst *i, const Group *g)
{
    const Node *n = node(i);
    for (int32_t k = 0; k < n->n_contexts; k++)
        if (n->contexts[k]->group == g && n->contexts[k] != g->all)
            return false;
    return true;
}

/* Asked for in loops of rows alone, every element once in each: they compute it again, and the last one of all stores it.
 *
 *   x = a + r;  y = x - mean(x)       =>     (y, x) = fusion(a, r) */
static bool asked_by_rows(const Fuser *f, const Inst *i, const Group *g)
{
    const Node *n = node(i);
    int32_t     loops = 0;
    if (n->role != ROLE_ELEMENTWISE || n->n_contexts >= MAX_CONTEXTS)
        return false;
    for (int32_t k = 0; k < n->n_contexts; k++) {
        const Context *c = n->contexts[k];
        if (c->group != g || c == g->all)
            continue;
        if (!c->nested || c->loose || c->count != fusion_count(i))
            return false;
        loops++;
    }
    return loops > 0 && fusion_pays_beside(f, i, loops);
}

/* Reductions that i is made of are those of g's rows, or go over such rows too. */
static bool fits_rows(Fuser *f, const Inst *i, const Group *g)
{
    const Inst *own = NULL;
    int32_t     number = ++f->searches;
    bool        fits = true;
    VEC(const Inst *) list = {0};
    vec_push(f->scratch, &list, g->root);
    vec_push(f->scratch, &list, i);
    for (int32_t at = 0; at < list.n && list.n <= MOST_BEHIND && fits; at++)
        for (int32_t k = 0; k < list.v[at]->n_operands && fits; k++) {
            const Inst *o = inst_operand(list.v[at], k);
            Node       *n = node(o);
            if (n->searched == number || (n->role != ROLE_ELEMENTWISE && n->role != ROLE_REDUCE && o->op != OP_BROADCAST))
                continue;
            n->searched = number;
            if (n->role != ROLE_REDUCE)
                vec_push(f->scratch, &list, o);
            else if (own && fusion_reduces_inner(o))
                fits = inst_same_loops(o, own);
            else if (fusion_reduces_inner(o))
                own = o;
        }
    return fits && list.n <= MOST_BEHIND;
}

/* Every element once, where the root's are. */
static bool asked_beside(Fuser *f, const Inst *i, const Group *g)
{
    return asked_as_root(i, g) && (!g->reduces || (!g->columns && fits_rows(f, i, g)));
}

static bool may_join(Fuser *f, Inst *i, const Group *g)
{
    Role r = node(g->root)->role;
    if ((r != ROLE_ELEMENTWISE && r != ROLE_MOVE) || fusion_puts_together(g->root) || g->hero || g->n_more == MAX_RESULTS || g->size + 1 > f->max_size ||
        g->operands + fusion_new_operands(i, g) > MAX_OPERANDS)
        return false;
    const Shape *a = i->shape, *b = g->root->shape;
    return shape_same_dims(a, b) && layout_equal(a->layout, b->layout, a->rank) && ((g->reduces && asked_by_rows(f, i, g)) || asked_beside(f, i, g)) &&
           !leads_to(f, i, g) && !fusion_is_weights(i) && !fusion_is_weights(g->root);
}

/* ---- values of rows ---- */

bool fusion_is_row_result(const Inst *i, const Group *g)
{
    return fusion_is_result(i, g) && shape_is_row_of(i->shape, g->root->shape);
}

/* Each of its elements is made of a row that lies together, which the loops of another result can go through first. */
static bool is_made_of_rows(const Inst *i)
{
    Role r = node(i)->role;
    if (r == ROLE_ELEMENTWISE)
        return true;
    Ints dims = r == ROLE_REDUCE ? inst_ints(i, ATTR_DIMENSIONS) : (Ints){NULL, 0};
    if (r != ROLE_REDUCE || i->n_operands != 2 || !shape_is_row_of(i->shape, inst_operand(i, 0)->shape))
        return false;
    for (int32_t k = 0; k < dims.n; k++)
        if (dims.v[k] < i->shape->rank)
            return false;
    return true;
}

/* Asked for once in each row alone. */
static bool asked_once_a_row(const Inst *i, const Group *g)
{
    const Node *n = node(i);
    bool        asked = false;
    for (int32_t k = 0; k < n->n_contexts; k++) {
        const Context *c = n->contexts[k];
        if (c->group != g)
            continue;
        if (c == g->all || !c->nested || c->loose || c->count != fusion_count(i))
            return false;
        asked = true;
    }
    return asked;
}

/* On a CPU short rows go beside each other where there are many, else what is one value a row is better made for many rows at once, and of rows of two whole vectors always (64 rows of 16,
 * exp of what is below the largest, 0.7 us and 2.3 as one kernel; 4096 of 32, a norm with its gradients, 54 and 59). */
static bool suits_rows(const Fuser *f, const Inst *i, const Group *g)
{
    enum { LANES = 32, LEAST_ROWS = 128, VECTOR = 64 };
    int64_t rows = shape_count(i->shape), n = shape_count(g->root->shape) / rows;
    return f->cx->device->shared > 0 || (n < LANES ? rows >= LEAST_ROWS : n * type_bytes(g->root->shape->type) != 2 * VECTOR);
}

/* On a device rows of the group's own reductions are threads': its loops, between which i would be made, would be fewer. Weights with another result are no part of attention. */
static bool takes_threads(const Fuser *f, const Inst *i, const Group *g)
{
    bool fewer = false;
    for (int32_t k = 0; k < g->n_loops; k++)
        fewer |= fusion_count(g->loops[k].of) > fusion_count(i);
    return f->cx->device->shared > 0 && (fewer || fusion_is_weights(g->root));
}

static bool may_join_rows(Fuser *f, const Inst *i, const Group *g)
{
    return node(g->root)->role == ROLE_ELEMENTWISE && !g->hero && !g->columns && g->n_more < MAX_RESULTS && g->size + 1 <= f->max_size &&
           g->operands + fusion_new_operands(i, g) <= MAX_OPERANDS && shape_is_row_of(i->shape, g->root->shape) && suits_rows(f, i, g) &&
           is_made_of_rows(i) && asked_once_a_row(i, g) && !takes_threads(f, i, g) && !fusion_starves(f, i) && !leads_to(f, i, g);
}

/* The group whose rows ask for i, n being its contexts. */
static Group *rows_to_join(Fuser *f, const Inst *i)
{
    const Node *n = node(i);
    for (int32_t k = 0; k < n->n_contexts; k++)
        if (may_join_rows(f, i, n->contexts[k]->group))
            return n->contexts[k]->group;
    return NULL;
}

static void ask_in_rows(Node *n, const Group *g)
{
    int32_t k = 0;
    for (int32_t j = 0; j < n->n_contexts; j++)
        if (n->contexts[j]->group == g)
            n->contexts[k++] = n->contexts[j];
    n->n_contexts = k;
}

/* A group that reads o; one of rows, whose values i may want too, when i reads it through others. */
static Group *reader_to_join(Fuser *f, Inst *i, const Inst *o, bool direct)
{
    for (int32_t j = 0; j < node(o)->n_wanting && fusion_count(o) * 2 >= fusion_count(i); j++) {
        Group *g = node(o)->wanting[j];
        if (node(g->root)->role == ROLE_ELEMENTWISE && (direct || g->reduces) && may_join(f, i, g))
            return g;
    }
    return NULL;
}

static bool is_listed(const Inst *i, const Inst *const *list, int32_t n)
{
    while (n > 0 && list[n - 1] != i)
        n--;
    return n > 0;
}

/* The group that asks for i, or one that reads what i is made of. */
static Group *group_to_join(Fuser *f, Inst *i)
{
    enum { MOST = 16 };
    const Node *n = node(i);
    for (int32_t k = 0; k < n->n_contexts; k++)
        if (may_join(f, i, n->contexts[k]->group))
            return n->contexts[k]->group;
    const Inst *list[MOST] = {i};
    int32_t     n_list = 1;
    for (int32_t at = 0; at < n_list && n->role == ROLE_ELEMENTWISE; at++)
        for (int32_t k = 0; k < list[at]->n_operands; k++) {
            const Inst *o = inst_operand(list[at], k);
            Group      *g = reader_to_join(f, i, o, at == 0);
            if (g)
                return g;
            if (n_list < MOST && (node(o)->role == ROLE_ELEMENTWISE || node(o)->role == ROLE_REDUCE) && !is_listed(o, list, n_list))
                list[n_list++] = o;
        }
    return NULL;
}

/* The contexts in which those ask for i that can; false: they are too many. */
static bool find_contexts(Fuser *f, const Inst *i)
{
    node(i)->n_contexts = 0;
    for (const Use *u = i->uses; u; u = u->next)
        if (fusion_takes_operand(u->user, u->index) && !fusion_add_contexts(f, u->user, u->index))
            return false;
    return node(i)->n_contexts <= MAX_CONTEXTS;
}

/* The group, one of whose results i becomes. */
static Group *group_for(Fuser *f, Inst *i)
{
    Role r = node(i)->role;
    if ((r != ROLE_REDUCE && r != ROLE_ELEMENTWISE && r != ROLE_MOVE) || !find_contexts(f, i))
        return r == ROLE_REDUCE ? reduction_to_join(f, i) : NULL;
    Group *rows = rows_to_join(f, i);
    return rows ? rows : r == ROLE_REDUCE ? reduction_to_join(f, i) : group_to_join(f, i);
}

/* A result's operands are asked for where g computes it. */
static void ask_here(Node *n, Group *g)
{
    Context *here[1 + MAX_CONTEXTS] = {g->all};
    int32_t  k = 1;
    for (int32_t j = 0; j < n->n_contexts; j++)
        if (n->contexts[j]->group == g && n->contexts[j] != g->all)
            here[k++] = n->contexts[j];
    assert(k <= MAX_CONTEXTS);
    memcpy(n->contexts, here, (size_t)k * sizeof *here);
    n->n_contexts = k;
}

bool fusion_join(Fuser *f, Inst *i)
{
    Node  *n = node(i);
    Group *g = i->comp->module->is_scheduled || i == i->comp->root ? NULL : group_for(f, i);
    if (!g)
        return false;
    g->operands -= fusion_is_wanted(n, g);
    fusion_take_in(g, i);
    if (!g->more)
        g->more = ARENA_ARRAY(f->scratch, Inst *, MAX_RESULTS);
    g->more[g->n_more++] = i;
    if (fusion_is_row_result(i, g))
        ask_in_rows(n, g);
    else
        ask_here(n, g);
    pass_remark(f->cx, i, "%%%s is another result of the kernel of %%%s", i->name, g->root->name);
    return true;
}
