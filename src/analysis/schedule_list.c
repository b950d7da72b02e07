/* A list of what is ready; always that goes next which frees most and takes least. When the last but one reader of some memory has run, the last one
 * frees it: it is entered again, with its new value. Memory that has several names (elements, bitcasts) belongs to the instruction that made it.
 *
 * And an order in which nothing runs sooner than it is wanted, unless it frees more than it takes. */
#include "analysis/schedule.h"

#include <stdlib.h>

#include "analysis/cost.h"

typedef struct Item {
    const Inst *inst;
    int64_t     value; /* bytes freed less bytes taken, when it was entered */
} Item;

/* Of each instruction that runs, by its mark, its place in the other order. */
typedef struct Node {
    int64_t bytes;   /* that it takes, if it is the owner of its memory */
    int32_t owner;   /* whose memory it names */
    int32_t readers; /* instructions that are still to read the memory of an owner */
    int32_t waits;   /* operands and control predecessors that have not run */
    bool    done;
} Node;

typedef struct Lister {
    Arena *arena;
    Node  *node;
    const Inst *const *run; /* in another order, by mark */
    int32_t n;
    VEC(Item) heap;
} Lister;

static bool before(Item a, Item b)
{
    return a.value != b.value ? a.value > b.value : a.inst->mark < b.inst->mark;
}

static void heap_push(Lister *l, Item x)
{
    vec_push(l->arena, &l->heap, x);
    int32_t k = l->heap.n - 1;
    for (; k > 0 && before(x, l->heap.v[(k - 1) / 2]); k = (k - 1) / 2)
        l->heap.v[k] = l->heap.v[(k - 1) / 2];
    l->heap.v[k] = x;
}

static Item heap_pop(Lister *l)
{
    Item    top = l->heap.v[0], x = l->heap.v[--l->heap.n];
    int32_t k = 0;
    for (;;) {
        int32_t child = 2 * k + 1;
        if (child >= l->heap.n)
            break;
        child += child + 1 < l->heap.n && before(l->heap.v[child + 1], l->heap.v[child]);
        if (!before(l->heap.v[child], x))
            break;
        l->heap.v[k] = l->heap.v[child];
        k = child;
    }
    if (l->heap.n)
        l->heap.v[k] = x;
    return top;
}

static Node *node_of(const Lister *l, const Inst *i)
{
    return &l->node[i->mark];
}

static Node *owner_of(const Lister *l, const Inst *i)
{
    return &l->node[node_of(l, i)->owner];
}

static bool read_before(const Inst *i, int32_t k)
{
    enum { FEW = 64 };
    for (int32_t j = 0; j < k && j < FEW; j++)
        if (inst_operand(i, j) == inst_operand(i, k))
            return true;
    return false;
}

static int64_t value_of(const Lister *l, const Inst *i)
{
    int64_t freed = 0;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Node *owner = owner_of(l, inst_operand(i, k));
        if (owner->readers == 1 && !read_before(i, k))
            freed = cost_add(freed, owner->bytes);
    }
    return freed - node_of(l, i)->bytes;
}

static void prepare(Lister *l, const Comp *c)
{
    for (int32_t k = 0; k < l->n; k++) {
        const Inst *i = l->run[k];
        Node       *n = &l->node[k];
        bool        names = inst_names_buffer(i) || i->op == OP_GET_TUPLE_ELEMENT;
        n->owner = names && i->n_operands == 1 ? node_of(l, inst_operand(i, 0))->owner : k;
        bool given = i->op == OP_PARAMETER || i->op == OP_CONSTANT || i == c->root;
        n->bytes = names || given || shape_bytes(i->shape) < 0 ? 0 : shape_bytes(i->shape);
        n->waits = i->n_operands + i->n_control;
        for (int32_t o = 0; o < i->n_operands; o++)
            owner_of(l, inst_operand(i, o))->readers += !read_before(i, o);
    }
}

/* One reader fewer; when one is left, it frees the memory. */
static void release(Lister *l, Node *owner)
{
    if (--owner->readers != 1)
        return;
    for (const Use *u = l->run[owner - l->node]->uses; u; u = u->next)
        if (u->user->mark >= 0 && !node_of(l, u->user)->done && node_of(l, u->user)->waits == 0)
            heap_push(l, (Item){u->user, value_of(l, u->user)});
}

static void run_next(Lister *l, const Inst *i)
{
    node_of(l, i)->done = true;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!read_before(i, k))
            release(l, owner_of(l, inst_operand(i, k)));
    for (const Use *u = i->uses; u; u = u->next)
        if (u->user->mark >= 0 && --node_of(l, u->user)->waits == 0)
            heap_push(l, (Item){u->user, value_of(l, u->user)});
}

static bool has_control(const Comp *c)
{
    for (const Inst *i = c->first; i; i = i->next)
        if (i->n_control)
            return true;
    return false;
}

/* Marks are given back as they were. */
static int64_t *number(Arena *a, const Comp *c, const Inst *const *run, int32_t n)
{
    int64_t *marks = ARENA_ARRAY(a, int64_t, c->n_insts), k = 0;
    for (Inst *i = c->first; i; i = i->next) {
        marks[k++] = i->mark;
        i->mark = -1;
    }
    for (int32_t j = 0; j < n; j++)
        ((Inst *)(uintptr_t)run[j])->mark = j;
    return marks;
}

const Inst **schedule_list(Arena *a, const Comp *c, const Inst *const *run, int32_t n)
{
    if (has_control(c) || schedule_is_fixed(c))
        return NULL;
    Lister       l = {.arena = a, .node = ARENA_ARRAY(a, Node, n), .run = run, .n = n};
    const Inst **listed = ARENA_ARRAY(a, const Inst *, n);
    int32_t      ran = 0;
    int64_t     *marks = number(a, c, run, n), at = 0;
    prepare(&l, c);
    for (int32_t k = 0; k < n; k++)
        if (node_of(&l, run[k])->waits == 0)
            heap_push(&l, (Item){run[k], value_of(&l, run[k])});
    while (l.heap.n) {
        Item top = heap_pop(&l);
        if (node_of(&l, top.inst)->done)
            continue;
        listed[ran++] = top.inst;
        run_next(&l, top.inst);
    }
    for (Inst *i = c->first; i; i = i->next)
        i->mark = marks[at++];
    if (ran < n)
        return NULL;
    schedule_delay_updates(a, c, listed, n);
    return listed;
}

/* ---- late ---- */

/* That i and those that it is to stand before have as their place: the first user's, or its own. A name for memory goes with who reads it, as does what frees no more memory
 * than it takes. */
static int32_t late_place(const Lister *l, const Inst *i, int32_t k, const int32_t *place, const int32_t *last)
{
    const Node *n = &l->node[k];
    int64_t     freed = 0;
    int32_t     first = l->n;
    if (inst_has_effect(i) || i->op == OP_PARAMETER || i->op == OP_WHILE || i->n_control || i->n_control_succs)
        return k;
    for (int32_t o = 0; o < i->n_operands; o++) {
        int32_t owner = node_of(l, inst_operand(i, o))->owner;
        if (n->owner == k && last[owner] == k && !read_before(i, o))
            freed = cost_add(freed, l->node[owner].bytes);
    }
    for (const Use *u = i->uses; u; u = u->next)
        if (u->user->mark >= 0 && place[u->user->mark] < first)
            first = place[u->user->mark];
    return first < l->n && freed <= n->bytes ? first : k;
}

static int compare_places(const void *x, const void *y)
{
    const int32_t *a = x, *b = y;
    return a[0] != b[0] ? (a[0] < b[0] ? -1 : 1) : (a[1] > b[1]) - (a[1] < b[1]);
}

/* Those that have one place keep their order. */
static const Inst **in_places(Arena *a, const Inst *const *run, int32_t n, const int32_t *place)
{
    int32_t(*at)[2] = arena_array(a, n, sizeof *at);
    const Inst **late = ARENA_ARRAY(a, const Inst *, n);
    for (int32_t k = 0; k < n; k++) {
        at[k][0] = place[k];
        at[k][1] = k;
    }
    qsort(at, (size_t)n, sizeof *at, compare_places);
    for (int32_t k = 0; k < n; k++)
        late[k] = run[at[k][1]];
    return late;
}

const Inst **schedule_late(Arena *a, const Comp *c, const Inst *const *run, int32_t n)
{
    if (has_control(c) || schedule_is_fixed(c))
        return NULL;
    Lister   l = {.arena = a, .node = ARENA_ARRAY(a, Node, n), .run = run, .n = n};
    int32_t *place = ARENA_ARRAY(a, int32_t, n), *last = ARENA_ARRAY(a, int32_t, n);
    int64_t *marks = number(a, c, run, n), at = 0;
    prepare(&l, c);
    for (int32_t k = 0; k < n; k++)
        for (int32_t o = 0; o < run[k]->n_operands && l.node[k].owner == k; o++)
            last[node_of(&l, inst_operand(run[k], o))->owner] = k;
    for (int32_t k = n; k-- > 0;)
        place[k] = late_place(&l, run[k], k, place, last);
    for (Inst *i = c->first; i; i = i->next)
        i->mark = marks[at++];
    const Inst **late = in_places(a, run, n, place);
    schedule_delay_updates(a, c, late, n);
    return late;
}
