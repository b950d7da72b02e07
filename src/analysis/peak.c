/* Every value is a list of leaves (arrays; tuples flattened), and a leaf is in a buffer. The computations that others run come first, and
 * what one needs at its worst is added where it is called. */
#include "analysis/peak.h"

#include "analysis/cost.h"
#include "analysis/memory.h"
#include "analysis/overwrite.h"
#include "analysis/schedule.h"

enum { OUTSIDE = -1 }; /* the buffer of a leaf that is an argument, a constant, or the caller's. An argument that is given away has one, of no bytes */

typedef struct Buffer {
    int64_t bytes;
    int32_t from, last; /* places in the schedule */
    int32_t into;       /* the buffer that it is, unless what is there is read later; OUTSIDE: none */
    int32_t first_over, n_over; /* others, of its size alone, of which it may be one */
} Buffer;

typedef struct Peak {
    Arena      *arena; /* of one computation */
    const Map  *needs; /* computation -> bytes it needs at its worst */
    const Comp *comp;
    int32_t     now;
    VEC(Buffer) buffers;
    VEC(int32_t) over;
} Peak;

static int32_t leaf_count(const Shape *s)
{
    return shape_leaf_count(s, false);
}

static int32_t *leaves_of(const Inst *i)
{
    return i->aux;
}

static int32_t buffer_new(Peak *p, int64_t bytes)
{
    vec_push(p->arena, &p->buffers, ((Buffer){bytes < 0 ? 0 : bytes, p->now, p->now, OUTSIDE, 0, 0}));
    return p->buffers.n - 1;
}

/* Buffers for the leaves of s from to on; returns behind the last. */
static int32_t *give_buffers(Peak *p, const Shape *s, int32_t *to)
{
    if (shape_is_tuple(s)) {
        for (int32_t k = 0; k < s->n_elems; k++)
            to = give_buffers(p, s->elems[k], to);
        return to;
    }
    if (s->type == TYPE_TOKEN)
        return to;
    *to = buffer_new(p, shape_bytes(s));
    return to + 1;
}

static int32_t *new_leaves(Peak *p, const Inst *i)
{
    int32_t *v = ARENA_ARRAY(p->arena, int32_t, leaf_count(i->shape));
    give_buffers(p, i->shape, v);
    return v;
}

static int32_t *tuple_leaves(Peak *p, const Inst *i)
{
    int32_t *v = ARENA_ARRAY(p->arena, int32_t, leaf_count(i->shape)), n = 0;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *x = i->operands[k].def;
        for (int32_t j = 0, count = leaf_count(x->shape); j < count; j++)
            v[n++] = leaves_of(x)[j];
    }
    return v;
}

static int32_t *element_leaves(const Inst *i)
{
    const Inst *x = i->operands[0].def;
    int64_t     index = inst_int(i, ATTR_INDEX, 0), at = 0;
    if (leaf_count(x->shape) == x->shape->n_elems && x->shape->inside.depth == 1)
        return leaves_of(x) + index; /* a tuple of arrays, which may have a hundred thousand */
    for (int64_t k = 0; k < index; k++)
        at += leaf_count(x->shape->elems[k]);
    return leaves_of(x) + at;
}

static bool keeps_state(const Inst *w, int32_t k)
{
    const Inst *root = while_body(w)->root, *x = root->op == OP_TUPLE ? root->operands[k].def : NULL;
    return x && x->op == OP_GET_TUPLE_ELEMENT && x->operands[0].def->op == OP_PARAMETER && inst_int(x, ATTR_INDEX, 0) == k;
}

/* The state is where it was, or copied to where it can change. */
static int32_t *while_leaves(Peak *p, const Inst *w)
{
    const Inst *start = w->operands[0].def;
    int32_t    *v = new_leaves(p, w), n = 0;
    for (int32_t k = 0; k < (shape_is_tuple(w->shape) ? w->shape->n_elems : 1); k++) {
        const Shape *s = shape_is_tuple(w->shape) ? w->shape->elems[k] : w->shape;
        for (int32_t j = 0, count = leaf_count(s); j < count; j++, n++) {
            int32_t before = leaves_of(start)[n];
            if (shape_is_tuple(w->shape) && keeps_state(w, k)) {
                p->buffers.v[v[n]].bytes = 0;
                v[n] = before;
            } else {
                p->buffers.v[v[n]].into = before;
            }
        }
    }
    return v;
}

/* The operand that the update i, or the fusion of it, writes into; NULL: it is none, or others read that operand. */
static const Inst *updated_operand(const Inst *i, const Inst *update)
{
    const Inst *x = update->op == OP_DYNAMIC_UPDATE_SLICE || update->op == OP_SCATTER ? update->operands[0].def : NULL;
    while (x && i->op == OP_FUSION && (x->op == OP_BITCAST || x->op == OP_RESHAPE))
        x = x->operands[0].def;
    if (x && i->op == OP_FUSION)
        x = x->op == OP_PARAMETER ? i->operands[x->param].def : NULL;
    return x && x->n_uses == 1 && shape_is_array(x->shape) ? x : NULL;
}

static void write_in_place(Peak *p, const Inst *i, const Inst *update, int32_t *leaf)
{
    const Inst *x = updated_operand(i, update);
    int32_t     into = x ? leaves_of(x)[0] : OUTSIDE;
    bool        state = x && into == OUTSIDE && p->comp != p->comp->module->entry && x->op != OP_CONSTANT;
    if (into == OUTSIDE && !state)
        return;
    p->buffers.v[*leaf].bytes = 0;
    *leaf = into;
}

/* Element `element` of the value of i is its operands' memory. */
static void share_operands(const Inst *i, int32_t element, int32_t *v, Peak *p)
{
    int32_t at = 0, n = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        n += leaf_count(i->operands[k].def->shape);
    if (!shape_is_tuple(i->shape) || element >= i->shape->n_elems || leaf_count(i->shape->elems[element]) != n)
        return;
    for (int32_t k = 0; k < element; k++)
        at += leaf_count(i->shape->elems[k]);
    for (int32_t k = 0; k < i->n_operands; k++)
        for (int32_t j = 0, count = leaf_count(i->operands[k].def->shape); j < count; j++, at++) {
            p->buffers.v[v[at]].bytes = 0;
            v[at] = leaves_of(i->operands[k].def)[j];
        }
}

/* What a step that ends something hands on of its operand, a tuple; NULL: that is not so. */
static int32_t *done_leaves(const Inst *i)
{
    int32_t      element = i->op == OP_COPY_DONE || i->op == OP_RECV_DONE ? 0 : 1;
    const Shape *s = i->n_operands ? i->operands[0].def->shape : NULL;
    if (!s || !shape_is_tuple(s) || element >= s->n_elems || leaf_count(s->elems[element]) != leaf_count(i->shape))
        return NULL;
    return leaves_of(i->operands[0].def) + (element ? leaf_count(s->elems[0]) : 0);
}

/* Operands that element `result` of i may be written over, should nobody read them later. */
static void write_over(Peak *p, const Inst *i, int32_t result, int32_t leaf)
{
    enum { MOST = 4 };
    Buffer *b = &p->buffers.v[leaf];
    b->first_over = p->over.n;
    for (int32_t k = i->n_operands; k-- > 0 && b->n_over < MOST;) { /* as results are given theirs */
        const Inst *x = i->operands[k].def;
        int32_t     old = shape_is_array(x->shape) ? leaves_of(x)[0] : OUTSIDE;
        if (old == OUTSIDE || old == leaf || p->buffers.v[old].bytes != b->bytes || !inst_may_overwrite(i, result, k))
            continue;
        vec_push(p->arena, &p->over, old);
        b->n_over++;
    }
}

static int32_t *kernel_leaves(Peak *p, const Inst *i)
{
    int32_t    *v = new_leaves(p, i);
    const Inst *root = i->op == OP_FUSION ? i->callees[0]->root : i;
    if (shape_is_array(i->shape))
        write_in_place(p, i, root, &v[0]);
    else if (i->op == OP_FUSION && root->op == OP_TUPLE && leaf_count(i->shape) == root->n_operands)
        for (int32_t k = 0; k < root->n_operands; k++)
            write_in_place(p, i, root->operands[k].def, &v[k]);
    for (int32_t k = 0, n = leaf_count(i->shape); k < n; k++)
        if (v[k] != OUTSIDE && p->buffers.v[v[k]].from == p->now && p->buffers.v[v[k]].bytes > 0 && (n == 1 || (i->op == OP_FUSION && root->n_operands == n)))
            write_over(p, i, k, v[k]);
    return v;
}

/* What is neither a parameter that is given away nor made here. */
static int32_t *outside_leaves(Peak *p, const Inst *i)
{
    int32_t  n = leaf_count(i->shape);
    int32_t *v = ARENA_ARRAY(p->arena, int32_t, n);
    for (int32_t k = 0; k < n; k++)
        v[k] = OUTSIDE;
    if (i->op != OP_PARAMETER || p->comp != p->comp->module->entry)
        return v;
    for (int32_t k = 0; k < p->comp->module->n_aliases; k++) {
        const InputAlias *x = &p->comp->module->aliases[k];
        int32_t           leaf = x->param == i->param ? shape_leaf_at(i->shape, x->index) : -1;
        if (leaf >= 0)
            v[leaf] = buffer_new(p, 0);
    }
    return v;
}

static int32_t *find_leaves(Peak *p, const Inst *i)
{
    int32_t n = leaf_count(i->shape);
    switch (i->op) {
    case OP_TUPLE: return tuple_leaves(p, i);
    case OP_GET_TUPLE_ELEMENT: return element_leaves(i);
    case OP_WHILE: return while_leaves(p, i);
    case OP_PARAMETER: case OP_CONSTANT: return outside_leaves(p, i);
    case OP_ASYNC_START: case OP_ALL_GATHER_START: case OP_COLLECTIVE_PERMUTE_START: case OP_COPY_START: {
        int32_t *v = new_leaves(p, i);
        share_operands(i, i->op == OP_COPY_START ? 1 : 0, v, p);
        return v;
    }
    case OP_ASYNC_DONE: case OP_ALL_GATHER_DONE: case OP_COLLECTIVE_PERMUTE_DONE: case OP_COPY_DONE: case OP_RECV_DONE: {
        int32_t *v = done_leaves(i);
        return v ? v : new_leaves(p, i);
    }
    default:
        if (inst_names_buffer(i) && i->n_operands > 0 && leaf_count(i->operands[0].def->shape) == n && !i->n_callees)
            return leaves_of(i->operands[0].def);
        return kernel_leaves(p, i);
    }
}

static int64_t callee_needs(const Peak *p, const Inst *i)
{
    int64_t most = 0;
    for (int32_t k = 0; k < i->n_callees && p->needs; k++) {
        int64_t needs = (int64_t)(intptr_t)map_get(p->needs, i->callees[k]);
        most = needs > most ? needs : most;
    }
    return most;
}

static void read_leaves(Peak *p, const Inst *i)
{
    bool element = i->op == OP_GET_TUPLE_ELEMENT; /* looks at its own leaves alone */
    for (int32_t k = 0; k < (element ? 1 : i->n_operands); k++) {
        const Inst *x = element ? i : i->operands[k].def;
        for (int32_t j = 0, n = leaf_count(x->shape); j < n; j++)
            if (leaves_of(x)[j] != OUTSIDE)
                p->buffers.v[leaves_of(x)[j]].last = p->now;
    }
}

static CompPeak worst_moment(const Peak *p, const Inst *const *run, int32_t n, int64_t limit)
{
    __int128 *come = ARENA_ARRAY(p->arena, __int128, n), *gone = ARENA_ARRAY(p->arena, __int128, n), live = 0;
    CompPeak  worst = {0};
    for (int32_t k = 0; k < p->buffers.n; k++) {
        const Buffer *b = &p->buffers.v[k];
        come[b->from] += b->bytes;
        gone[b->last] += b->bytes;
    }
    for (int32_t k = 0; k < n; k++) {
        live += come[k];
        int64_t needs = cost_add(live > INT64_MAX ? INT64_MAX : (int64_t)live, callee_needs(p, run[k]));
        if (needs > worst.bytes) {
            worst.bytes = needs;
            worst.at = run[k];
        }
        worst.excess += needs > limit ? (double)(needs - limit) : 0;
        live -= gone[k];
    }
    return worst;
}

/* The first of its choices that nothing reads when b has been made, OUTSIDE: none. */
static int32_t memory_for(const Peak *p, const Buffer *b)
{
    if (b->into != OUTSIDE)
        return p->buffers.v[b->into].last <= b->from ? b->into : OUTSIDE;
    for (int32_t k = 0; k < b->n_over; k++) {
        const Buffer *a = &p->buffers.v[p->over.v[b->first_over + k]];
        if (a->last <= b->from && a->bytes == b->bytes && a->into == OUTSIDE)
            return p->over.v[b->first_over + k];
    }
    return OUTSIDE;
}

/* A loop changes its state where that was before, and a kernel makes its result where an operand was, when nothing reads that there afterwards: later ones first, as
 * one may go on with another's. */
static void merge_buffers(Peak *p)
{
    for (int32_t k = p->buffers.n; k-- > 0;) {
        Buffer *b = &p->buffers.v[k];
        b->into = memory_for(p, b);
        if (b->into == OUTSIDE)
            continue;
        Buffer *a = &p->buffers.v[b->into];
        a->last = b->last > a->last ? b->last : a->last;
        b->bytes = 0;
    }
}

static int32_t memory_of(const Peak *p, int32_t leaf)
{
    while (leaf != OUTSIDE && p->buffers.v[leaf].into != OUTSIDE)
        leaf = p->buffers.v[leaf].into;
    return leaf;
}

/* The caller's memory, or the result. But where that is an argument's memory, and the argument is read after the result has been made, it stands somewhere
 * else until the end. */
static void give_results(Peak *p, int32_t n)
{
    const Module *m = p->comp->module;
    const Inst   *root = p->comp->root;
    bool         *late = ARENA_ARRAY(p->arena, bool, leaf_count(root->shape));
    for (int32_t k = 0; k < m->n_aliases && p->comp == m->entry; k++) {
        const InputAlias *x = &m->aliases[k];
        const Inst       *arg = x->param >= 0 && x->param < p->comp->n_params ? comp_param(p->comp, (int32_t)x->param) : NULL;
        int32_t           to = shape_leaf_at(root->shape, x->output), from = arg ? shape_leaf_at(arg->shape, x->index) : -1;
        if (to < 0 || from < 0 || !leaves_of(arg) || leaves_of(root)[to] == OUTSIDE)
            continue;
        int32_t made = memory_of(p, leaves_of(root)[to]), given = leaves_of(arg)[from];
        late[to] = made != given && p->buffers.v[given].last > p->buffers.v[made].from;
    }
    for (int32_t k = 0, leaves = leaf_count(root->shape); k < leaves; k++) {
        int32_t made = memory_of(p, leaves_of(root)[k]);
        Buffer *b = made == OUTSIDE ? NULL : &p->buffers.v[made];
        if (b && late[k])
            b->last = n - 1;
        else if (b)
            b->bytes = 0;
    }
}

static CompPeak peak_of_run(const Comp *c, const Inst *const *run, int32_t n, const Map *needs, int64_t limit)
{
    Peak p = {.arena = arena_new(), .needs = needs, .comp = c};
    for (int32_t k = 0; k < c->n_params; k++)
        comp_param(c, k)->aux = NULL; /* it may have no part in the run */
    for (p.now = 0; p.now < n; p.now++) {
        Inst *i = (Inst *)(uintptr_t)run[p.now];
        i->aux = find_leaves(&p, i);
        read_leaves(&p, i);
    }
    merge_buffers(&p);
    give_results(&p, n);
    CompPeak worst = worst_moment(&p, run, n, limit);
    arena_free(p.arena);
    return worst;
}

CompPeak comp_peak(const Comp *c, const Map *needs, int64_t limit)
{
    Arena       *a = arena_new();
    int32_t      n;
    const Inst **run = schedule_comp(a, c, &n);
    CompPeak     worst = peak_of_run(c, run, n, needs, limit);
    arena_free(a);
    return worst;
}

const Inst **schedule_for_peak(Arena *a, const Comp *c, const Map *needs, int32_t *n, CompPeak *peak)
{
    const Inst **best = schedule_comp(a, c, n), **first = best, **listed = schedule_list(a, c, first, *n);
    const Inst **others[] = { listed, schedule_late(a, c, first, *n), listed ? schedule_late(a, c, listed, *n) : NULL };
    *peak = peak_of_run(c, best, *n, needs, INT64_MAX);
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        CompPeak other = others[k] && peak->bytes > 0 ? peak_of_run(c, others[k], *n, needs, INT64_MAX) : *peak;
        if (other.bytes >= peak->bytes)
            continue;
        *peak = other;
        best = others[k];
    }
    return best;
}

int64_t module_peak(Module *m, const Inst **at)
{
    Arena  *a = arena_new();
    Map     needs = map_new(a), runs = module_runs(a, m, NULL);
    int64_t worst = 0;
    *at = NULL;
    for (const Comp *c = m->first; c; c = c->next) { /* callees first */
        if (!map_has(&runs, c))
            continue;
        CompPeak here;
        int32_t  n;
        Arena   *order = arena_new();
        schedule_for_peak(order, c, &needs, &n, &here);
        arena_free(order);
        map_put(&needs, c, (void *)(intptr_t)here.bytes);
        if (c == m->entry) {
            worst = here.bytes;
            *at = here.at;
        }
    }
    arena_free(a);
    return worst;
}
