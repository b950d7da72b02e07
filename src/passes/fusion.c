/* fusion - join elementwise, movement and reduction instructions into kernels.
 *
 *   %b = f32[8,16] broadcast(%bias), dimensions={1}
 *   %s = f32[8,16] add(%x, %b)                              =>   ROOT %t = f32[8,16] fusion(%x, %bias), kind=kLoop
 *   ROOT %t = f32[8,16] tanh(%s)
 *
 * A group is one kernel: a root whose value is stored, and producers computed where they are used. A group asks a producer for
 * elements through contexts, one for each index map on the way from the root:
 *
 *   root ----same index----> add ----same index----> negate        negate and add have the context of the root
 *          \---transpose---> negate                                and negate one more
 *
 * Two transposes of the same kind ask for the same elements, and so do the indices of gathers that are put together for each element: the code computes
 * these once.
 *
 * A context counts the elements asked for. What a broadcast to the inner dimensions asks for is asked once a row, since the code
 * moves out of the inner loops what does not depend on them; so a row's sum can be computed inside the kernel that needs it in
 * every element:
 *
 *   root [rows, columns] <--- broadcast <--- divide [rows] <--- reduce [rows] <--- [rows, columns], a loop within the row
 *
 * Where a reduction down columns is wanted in the columns again (analysis/columns.h), a column takes the place of a row.
 *
 * Walking from users to producers, a producer is fused into all its users when every user is
 * in a group and what is computed twice costs less than storing it:
 *   movement and constants             always
 *   what several loops of one row of   always, for rows that fit the first caches: the code keeps the row (emit/lower_rows.c),
 *   one group need                     so each element is computed once
 *   reduce over the inner dimensions   when no more elements are asked for than it has, in one context, a row or an element of the root at a time, unless rows are so
 *                                      few and long that most of a device's units would have nothing to do
 *   exp, divide, ... (dear)            when no more elements are asked for than it has, or the device computes them again in less time than it takes to
 *                                      begin a kernel; of a device with many units, in half the time of storing and reading
 *   add, select, ... (cheap)           likewise, or when reading its operands again takes no longer than to write it and to read that: what is made of
 *                                      indices alone (a mask that compares two) reads none
 * Times are those of the device (analysis/device.h).
 * Groups have one root at first, so fusing never makes a cycle; further results join only where nothing outside stands between (fusion_join.c). A
 * producer that no group has swallowed whole stays, except that groups look through a stored broadcast to its smaller operand.
 *
 * A group may have a hero: a dot, a convolution, a reduce-window or a reduction of columns whose elements lead to one element of the root each.
 * The code computes the rest where the hero's element is finished (emit/lower_epilogue.c):
 *
 *   root <---same index--- add <---transpose--- dot                =>   fusion, kind=kOutput
 *
 * What ends such a chain is rather stored than computed by several groups, be it again or each a part of it, since the dot would have to be stored else.
 *
 * A dynamic-update-slice is the root of a group, never inside of one; it asks for its update and its indices; what it updates stays outside, to be
 * written in place. A reduce-window that is a root asks for each element once for every window that covers it.
 *
 * A gather of single elements asks for one element of each row that its loops go over: the sums of rows that it needs (cross-entropy picks one
 * logarithm of a softmax a row) are made once a row, too.
 *
 * Two dots with the rows of a softmax between them become one kernel in the end (fusion_attention.c).
 *
 * Of the operands of a contraction one kind is fused, a matrix of which each element is needed once, see is_vector_product and, for threads, needs_each_once.
 *
 * Pads between elements and scatters are other matters, see fusion_apart.c and fusion_scatter.c.
 *
 * A transpose whose layout leaves every element where it was is a bitcast where it is only handed on: JAX writes the gradients of weights so.
 *
 * Not fused: what has effects or control edges, sorting, other operands of contractions; a reshape that is stored is a view of its
 * operand and costs nothing, so it does not take producers either. */
#include "config.h"

#include "analysis/columns.h"
#include "analysis/cost.h"
#include "analysis/loops.h"
#include "passes/fusion.h"
#include "passes/util.h"

/* ---- groups ---- */

bool fusion_is_wanted(const Node *n, const Group *g)
{
    for (int32_t k = 0; k < n->n_wanting; k++)
        if (n->wanting[k] == g)
            return true;
    return false;
}

int32_t fusion_new_operands(const Inst *i, const Group *g)
{
    int32_t count = 0;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Node *o = node(inst_operand(i, k));
        count += o->role != ROLE_LEAF && !fusion_is_wanted(o, g);
    }
    return count;
}

static bool has_room(const Fuser *f, const Inst *i)
{
    const Node *n = node(i);
    for (int32_t k = 0; k < n->n_contexts; k++) {
        const Group *g = n->contexts[k]->group;
        if (g->size + 1 > f->max_size || g->operands - 1 + fusion_new_operands(i, g) > MAX_OPERANDS)
            return false;
    }
    return true;
}

void fusion_take_in(Group *g, const Inst *i)
{
    g->size++;
    g->reduces |= i->op == OP_REDUCE || i->op == OP_REDUCE_WINDOW;
    for (int32_t k = 0; k < i->n_operands; k++) {
        Node *o = node(inst_operand(i, k));
        if (o->role == ROLE_LEAF || fusion_is_wanted(o, g))
            continue;
        g->operands++;
        if (o->n_wanting < MAX_CONTEXTS)
            o->wanting[o->n_wanting++] = g;
    }
}

static void enter_groups(Inst *i)
{
    Node *n = node(i);
    n->fused = true;
    n->chain = fusion_chain(i);
    for (int32_t k = 0; k < n->n_contexts; k++) {
        Group *g = n->contexts[k]->group;
        bool   again = false;
        for (int32_t j = 0; j < k && !again; j++)
            again = n->contexts[j]->group == g;
        if (!again) {
            g->operands--;
            fusion_take_in(g, i);
        }
    }
}

/* A reduction behind root that goes down columns, and whose values root, or what it is made of, wants in the columns again; NULL, also when rows of as much come first. */
static const Inst *columns_behind(Fuser *f, const Inst *root)
{
    enum { MOST = 100 };
    int32_t number = ++f->searches;
    VEC(const Inst *) list = {0};
    vec_push(f->scratch, &list, root);
    for (int32_t at = 0; at < list.n && list.n <= MOST; at++) {
        const Inst *i = list.v[at];
        Role        role = node(i)->role;
        if (role == ROLE_REDUCE && fusion_count(inst_operand(i, 0)) >= fusion_count(root) && fusion_reduces_inner(i))
            return NULL;
        for (int32_t k = 0; role != ROLE_NONE && role != ROLE_APART && role != ROLE_CONTRACT && role != ROLE_WINDOW && k < i->n_operands; k++) {
            const Inst *o = inst_operand(i, k);
            if (node(o)->searched != number)
                vec_push(f->scratch, &list, o);
            node(o)->searched = number;
        }
    }
    for (int32_t at = 0; at < list.n; at++) {
        const Inst *r = list.v[at];
        bool        fits = node(r)->role == ROLE_REDUCE && reduces_columns(r) && (columns_are_of(r, root->shape, NULL) || columns_number(r, root->shape));
        for (int32_t k = 0; k < list.n && fits; k++)
            if (columns_repeat(r, list.v[k]) && columns_make(r, inst_operand(list.v[k], 0)))
                return r;
    }
    return NULL;
}

static void start_group(Fuser *f, Inst *i)
{
    Node    *n = node(i);
    Group   *g = ARENA_NEW(f->scratch, Group);
    Context *c = ARENA_NEW(f->scratch, Context);
    g->root = i;
    fusion_take_in(g, i);
    if (shape_is_array(i->shape))
        g->columns = columns_behind(f, i);
    bool row_major = shape_is_array(i->shape) && (!i->shape->layout || g->columns);
    *c = (Context){.group = g, .count = fusion_count(i), .nested = row_major, .common = fusion_count(i), .leading = row_major ? fusion_count(i) : 1, .whole = true};
    g->rows = c;
    n->contexts[0] = c; /* instead of what was collected for a fused one */
    n->n_contexts = 1;
    g->all = c;
    vec_push(f->scratch, &f->groups, g);
    if (n->role == ROLE_REDUCE)
        vec_push(f->scratch, &f->reductions, g);
}

/* ---- what a kernel ends with ---- */

/* A contraction, a pooling or a reduction of columns whose elements the group wants one by one: the rest is computed where they are finished.
 * One such loop nest is in a group, and no reduction beside it but those that its loops make as well. */
static bool may_be_hero(Fuser *f, const Inst *i)
{
    const Node *n = node(i);
    if (n->role != ROLE_CONTRACT && n->role != ROLE_WINDOW && n->role != ROLE_REDUCE)
        return false;
    const Context *c = n->n_contexts == 1 ? n->contexts[0] : NULL;
    if (!c || !c->whole || !shape_is_array(i->shape))
        return false;
    const Group *g = c->group;
    return g->hero ? fusion_go_together(f, i, g->hero) : !g->reduces;
}

/* Rows of which each element goes on with a column's sum: they would be a loop without lanes in the loop over what the columns end with. */
static bool crosses_columns(const Inst *i)
{
    enum { FEW = 8 };
    bool crosses = false;
    for (int32_t k = 0; node(i)->role == ROLE_REDUCE && k < node(i)->n_contexts; k++) {
        const Group *g = node(i)->contexts[k]->group;
        crosses |= g->hero && node(g->hero)->role == ROLE_REDUCE;
    }
    return crosses && fusion_reduces_inner(i) && fusion_count(inst_operand(i, 0)) >= FEW * fusion_count(i);
}

/* The kernel of dot i makes its matrix, if there is one that only it needs. */
static void make_operand(const Fuser *f, const Inst *i)
{
    Group        *g = node(i)->contexts[0]->group;
    const int32_t side = fusion_made_side(f, i);
    g->vector = side >= 0;
    g->made = side;
}

/* ---- remarks ---- */

/* The user that reads i from memory, NULL when all could take it in. */
static const Inst *reader_of(const Inst *i)
{
    for (const Use *u = i->uses; u; u = u->next)
        if (!fusion_takes_operand(u->user, u->index))
            return u->user;
    return NULL;
}

static void tell_stored(Fuser *f, const Inst *i, bool asked, bool room)
{
    if (!f->cx->remarks || i == i->comp->root || !i->n_uses)
        return;
    const Device *v = f->cx->device;
    const Inst *reader = reader_of(i);
    double      bytes = fusion_count(i) * type_bytes(i->shape->type);
    if (reader)
        pass_remark(f->cx, i, "%%%s is stored: %s %%%s reads it from memory", i->name, op_name(reader->op), reader->name);
    else if (!asked)
        pass_remark(f->cx, i, "%%%s is stored: it is asked for at more than %d kinds of indices", i->name, node(i)->max_contexts);
    else if (!room)
        pass_remark(f->cx, i, "%%%s is stored: a kernel would have more than %lld instructions or %d operands", i->name, (long long)f->max_size,
                    MAX_OPERANDS);
    else if (node(i)->role == ROLE_CONTRACT || node(i)->role == ROLE_WINDOW)
        pass_remark(f->cx, i, "%%%s is stored: not one kernel alone wants its elements, each for one of its own", i->name);
    else {
        double again = fusion_asked(i) / fusion_count(i) - 1;
        pass_remark(f->cx, i, "%%%s is stored: it has %.0f elements (%.0f bytes), %d kernels or loops would compute %.0f%s; %s: again %.0f ns, stored %.0f ns, a kernel %.0f ns",
                    i->name, fusion_count(i), bytes, node(i)->n_contexts, fusion_asked(i), inst_is_dear(i) ? ", which are dear" : "", v->name,
                    fusion_again_ns(v, i, again), fusion_stored_ns(v, i, again), v->launch);
    }
}

/* With the names of before the fusion took them over. */
static void tell_built(Fuser *f, const Group *g, const char *name, const char *hero)
{
    pass_remark(f->cx, g->root, "the kernel of %%%s: instructions %d, operands %d, results %d%s%s", name, g->size, g->operands, g->n_more + 1,
                hero ? "; it goes on with the elements of %" : "", hero ? hero : "");
}

static void decide(Fuser *f, Inst *i)
{
    Node *n = node(i);
    if (n->role == ROLE_NONE || n->role == ROLE_LEAF)
        return;
    if (n->role == ROLE_APART) {
        if (fusion_decide_apart(f, i) && has_room(f, i))
            enter_groups(i);
        else
            n->n_contexts = 0;
        return;
    }
    n->chosen = fusion_feeds_maximum(i);
    bool asked = i != i->comp->root && n->role != ROLE_UPDATE && n->role != ROLE_SCATTER && fusion_collect_contexts(f, i);
    bool room = asked && has_room(f, i) && !fusion_stays_out(i) && !crosses_columns(i) && !fusion_stays_unscattered(i, f->cx->device->shared == 0);
    if (room) {
        bool inside = n->role != ROLE_WINDOW && n->role != ROLE_CONTRACT;
        bool keeps = inside && (inst_is_dear(i) || n->chosen) && fusion_wanted_in_one_row(f, i);
        if (!keeps && !(inside && fusion_pays(f, i)) && may_be_hero(f, i)) {
            n->contexts[0]->group->hero = i;
            enter_groups(i);
            if (n->role == ROLE_CONTRACT && f->cx->device->shared > 0)
                make_operand(f, i);
            return;
        }
        if (keeps || (inside && fusion_pays(f, i))) {
            enter_groups(i);
            if (keeps)
                fusion_keep_row(f, i);
            return;
        }
    }
    tell_stored(f, i, asked, room);
    if (n->role == ROLE_CONTRACT && fusion_made_side(f, i) >= 0) {
        start_group(f, i);
        make_operand(f, i);
        n->contexts[0]->group->hero = i;
    } else if (n->role == ROLE_VIEW || n->role == ROLE_CONTRACT)
        n->n_contexts = 0;
    else if (fusion_puts_together(i) || !fusion_join(f, i))
        start_group(f, i);
}

/* Every element of the transpose is where it was in its operand, and nobody but a tuple or a caller has the result: another name for the operand's memory. */
static bool only_renames(Arena *scratch, const Inst *t)
{
    const Inst *x = t->op == OP_TRANSPOSE ? inst_operand(t, 0) : NULL;
    if (!x || !fusion_is_static(t) || !inst_is_free(t))
        return false;
    for (const Use *u = t->uses; u; u = u->next)
        if (u->user->op != OP_TUPLE)
            return false;
    Ints     perm = inst_ints(t, ATTR_DIMENSIONS);
    int64_t *from = ARENA_ARRAY(scratch, int64_t, perm.n), *to = ARENA_ARRAY(scratch, int64_t, perm.n);
    shape_strides(x->shape, from);
    shape_strides(t->shape, to);
    for (int32_t k = 0; k < perm.n; k++)
        if (t->shape->dims[k] != 1 && to[k] != from[perm.v[k]])
            return false;
    return true;
}

static void rename_transposes(Comp *c, PassCtx *cx)
{
    for (Inst *i = c->first, *next; i; i = next) {
        next = i->next;
        if (cx->rewrites >= cx->limit || !only_renames(cx->scratch, i))
            continue;
        Inst *x = inst_operand(i, 0), *of = x->op == OP_BITCAST && inst_is_free(x) ? inst_operand(x, 0) : x;
        Inst *b = inst_new(c, i, OP_BITCAST, i->shape, 1, &of, NULL);
        b->meta = i->meta;
        b->loc = i->loc;
        cx->did_at = i->name;
        cx->rewrites++;
        inst_replace(i, b);
        inst_delete_dead(i, cx->scratch);
        next = b->next;
    }
}

static int64_t fuse_comp(Comp *c, PassCtx *cx, int64_t max_size, int64_t most)
{
    Fuser   f = {.scratch = cx->scratch, .cx = cx, .max_size = max_size};
    int32_t order = 0;
    bool    loops = cx->device->shared == 0;
    for (Inst *i = c->first; i; i = i->next) {
        Node *n = ARENA_NEW(f.scratch, Node);
        n->order = order++;
        n->contexts = n->own;
        n->max_contexts = MAX_CONTEXTS;
        i->aux = n;
        n->turns = loops && fusion_only_turns(i);
    }
    for (Inst *i = c->first; i; i = i->next)
        node(i)->role = fusion_role(i, loops);
    for (Inst *i = c->last; i; i = i->prev)
        decide(&f, i);
    fusion_attention(&f, c);
    if (!c->module->is_scheduled)
        fusion_bundle(&f);
    int64_t built = 0;
    bool    several = false;
    for (int32_t k = f.groups.n; k-- > 0 && built < most;) {
        const Group *g = f.groups.v[k];
        if (!g->root)
            continue;
        const char  *name = g->root->name, *hero = g->hero ? g->hero->name : NULL;
        if (!fusion_build(&f, g, k + 1))
            continue;
        cx->did_at = name;
        tell_built(&f, g, name, hero);
        built++;
        several |= g->n_more > 0;
    }
    if (several)
        fusion_restore_order(&f, c);
    if (built)
        comp_sweep_dead(c, c->n_insts);
    return built;
}

bool pass_fusion(Module *m, PassCtx *cx)
{
    int64_t max_size = pass_arg_int(cx, "max", MAX_SIZE);
    comps_mark_uses(m);
    if (cx->device->shared > 0)
        loops_note_counters(m, cx->scratch);
    for (Comp *c = m->last; c; c = c->prev)
        if (c->mark == COMP_FLOW) {
            rename_transposes(c, cx);
            cx->rewrites += fuse_comp(c, cx, max_size, cx->limit - cx->rewrites);
        }
    loops_forget_counters(m);
    return cx->rewrites > 0;
}
