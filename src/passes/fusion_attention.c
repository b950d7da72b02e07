/* Attention as one kernel (analysis/attention.h). By now a group makes the weights out of the scores, and both dots stand for themselves or with what
 * follows the second one:
 *
 *   s = dot(q, k)                                      out = fusion(q, k, mask, v), kind=kCustom
 *   p = fusion(s, mask), kind=kInput            =>       s = dot(q, k);  p = ...;  ROOT out = dot(p, v)
 *   out = dot(p, v), or a fusion around it
 *
 * On a device queries, keys or values that are torn out of one array, which several kernels would compute, are read where they lie in it: it is stored, by the
 * kernel of the product that it is made of.
 *
 * Scores and weights that nobody else reads are never whole in memory then: code goes through them in blocks of rows. Nothing is computed twice. */
#include "config.h"

#include "analysis/attention.h"
#include "passes/fusion.h"

enum { WIDE = 512 /* elements of a key or a value: no head has more */, DEVICE_HEAD = 256 /* of a device's kernel */ };

/* The group whose one result i is, NULL: it is no such thing. */
static Group *group_of_root(const Inst *i)
{
    const Node *n = node(i);
    Group      *g = n->n_contexts == 1 && !n->fused ? n->contexts[0]->group : NULL;
    return g && g->root == i && g->n_more == 0 ? g : NULL;
}

static bool is_in(const Inst *i, const Group *g)
{
    const Node *n = node(i);
    for (int32_t k = 0; k < n->n_contexts; k++)
        if (n->contexts[k]->group == g)
            return true;
    return false;
}

static bool only_in(const Inst *i, const Group *g)
{
    for (const Use *u = i->uses; u; u = u->next)
        if (!is_in(u->user, g))
            return false;
    return true;
}

/* The groups that make the weights. */
typedef struct Makers {
    Group *weights; /* its root they are */
    Group *scores;  /* NULL, or what makes of the scores, its hero, all that the other one reads of them */
} Makers;

static bool is_member(const Inst *i, const Group *g)
{
    return g && (i == g->root || (node(i)->fused && is_in(i, g)));
}

/* A member of them, or a dot that nobody else reads. */
static bool is_inside(void *cookie, const Inst *i)
{
    Makers *m = cookie;
    Group  *g = group_of_root(i);
    if (is_member(i, m->weights) || is_member(i, m->scores))
        return true;
    if (g && g->vector)
        return false;
    if (g && g->hero && g->hero->op == OP_DOT && !m->scores && only_in(i, m->weights)) {
        m->scores = g;
        return true;
    }
    return i->op == OP_DOT && node(i)->role == ROLE_CONTRACT && !node(i)->fused && i != i->comp->root && only_in(i, m->weights);
}

static bool find_makers(const Inst *out, Attention *a, Makers *m)
{
    for (int32_t k = 0; k < 2; k++) {
        *m = (Makers){.weights = group_of_root(inst_operand(out, k))};
        if (m->weights && m->weights->reduces && !m->weights->hero && attention_find(out, is_inside, m, a) && a->side == k)
            return true;
    }
    return false;
}

static int32_t size_of(const Group *g)
{
    return g ? g->size : 0;
}

static int32_t operands_of(const Group *g)
{
    return g ? g->operands : 0;
}

/* Two layers with a norm between them: matrices of weights, each of which is read once, and an array between them that is small beside those. */
static bool is_layers(const Attention *a)
{
    const Inst *out = a->out, *x = inst_operand(a->scores, 0), *y = inst_operand(a->scores, 1), *v = inst_operand(out, 1 - a->side);
    const Ints  along = inst_ints(a->scores, ATTR_LHS_CONTRACTING_DIMS);
    double      keys = 1, head = 1;
    for (int32_t d = 0; d < a->scores->shape->rank; d++)
        keys *= a->key[d] ? (double)a->scores->shape->dims[d] : 1;
    for (int32_t k = 0; k < along.n; k++)
        head *= (double)x->shape->dims[along.v[k]];
    const double between = fusion_count(a->scores), wide = fusion_count(v) / keys, k_count = fusion_count(x) + fusion_count(y) - between / keys * head;
    return a->n_batch == 0 && (head > WIDE || wide > WIDE) && between < k_count + fusion_count(v);
}

static bool may_be_inside(void *cookie, const Inst *i)
{
    const Role r = node(i)->role;
    (void)cookie;
    return i->op == OP_DOT ? r == ROLE_CONTRACT && i->n_uses == 1 : r == ROLE_ELEMENTWISE || r == ROLE_REDUCE || r == ROLE_VIEW || r == ROLE_MOVE || i->op == OP_BROADCAST;
}

bool fusion_is_weights(const Inst *i)
{
    const Inst *out = i->n_uses == 1 && i != i->comp->root ? i->uses->user : NULL;
    Attention   a;
    return out && out->op == OP_DOT && attention_find(out, may_be_inside, NULL, &a) && inst_operand(out, a.side) == i && !is_layers(&a);
}

/* Why the parts stay kernels of their own; NULL: they need not. */
static const char *obstacle(const Fuser *f, const Attention *a, const Group *g, const Makers *m)
{
    if (inst_operand(a->out, a->side)->n_uses > 1)
        return "the weights are needed elsewhere, too";
    if (g && g->n_more)
        return "its kernel has other results";
    if (is_layers(a))
        return "they are layers, whose weights are more than what is between them";
    if (2 + size_of(m->weights) + size_of(m->scores) + size_of(g) > f->max_size ||
        2 + operands_of(m->weights) + operands_of(m->scores) + operands_of(g) > MAX_OPERANDS)
        return "a kernel would have too many instructions or operands";
    return NULL;
}

/* An instruction that was found as a constant one. */
static Inst *to_change(const Inst *i)
{
    const Use *u = inst_operand(i, 0)->uses;
    while (u->user != i)
        u = u->next;
    return u->user;
}

/* What g was becomes part of the kernel. */
static void swallow(Group *into, Group *g)
{
    node(g->root)->fused = true;
    if (g == into)
        return;
    into->size += g->size;
    into->operands += g->operands;
    g->head = into;
    g->root = NULL;
}

/* All of the makers and both dots become part of g, or the makers' group that of the second dot. */
static void merge(Inst *out, const Attention *a, Group *g, const Makers *m)
{
    Inst *scores = to_change(a->scores);
    Group *all = g ? g : m->weights;
    if (m->scores)
        swallow(all, m->scores);
    swallow(all, m->weights);
    if (!node(scores)->fused) {
        node(scores)->fused = true;
        node(scores)->contexts[0] = all->all;
        node(scores)->n_contexts = 1;
    }
    if (!g) {
        all->root = out;
        node(out)->contexts[0] = all->all;
        node(out)->n_contexts = 1;
    }
    all->size += 2;
    all->hero = out;
    all->attention = true;
}

/* Keys or values that are repeated for some heads go inside, which reads them where they lie: what is repeated is stored instead. */
static void take_repeated(Group *all, Inst *of, int32_t operand)
{
    Inst *x = inst_operand(of, operand), *repeats = x;
    while (repeats->op == OP_RESHAPE && repeats->n_uses == 1 && node(repeats)->role == ROLE_VIEW)
        repeats = inst_operand(repeats, 0);
    Group *g = repeats->op == OP_BROADCAST && repeats->n_uses == 1 ? group_of_root(repeats) : NULL;
    if (!g || g->reduces || g->hero || x->n_uses != 1)
        return;
    Inst *stored = inst_operand(repeats, 0);
    Node *n = node(stored);
    if (n->fused && (n->n_contexts != 1 || n->contexts[0]->group != g || stored->n_uses != 1))
        return;
    if (n->fused) {
        n->fused = false;
        n->contexts[0] = g->all;
        g->all->count = fusion_count(stored);
        g->root = stored;
        g->size--;
    } else {
        g->head = all;
        g->root = NULL;
    }
    for (Inst *i = x;; i = inst_operand(i, 0)) {
        node(i)->fused = true;
        node(i)->contexts[0] = all->all;
        node(i)->n_contexts = 1;
        all->size++;
        if (i == repeats)
            break;
    }
}

static bool moves_elements(const Inst *x)
{
    return x->op == OP_SLICE || x->op == OP_TRANSPOSE || x->op == OP_RESHAPE || x->op == OP_BROADCAST || x->op == OP_COPY;
}

/* A part of an array that is stored, in whatever order or repeated: the three of a product with one matrix, say. */
static bool only_moves(const Inst *x, const Group *g)
{
    while (is_member(x, g) && moves_elements(x))
        x = inst_operand(x, 0);
    return !is_member(x, g) && node(x)->role != ROLE_LEAF;
}

/* What only moves elements goes inside, which reads them where they lie. */
static void take_moved(Group *all, Inst *of, int32_t operand)
{
    Inst *x = inst_operand(of, operand), *made = x;
    while (made->op == OP_RESHAPE && made->n_uses == 1 && node(made)->role == ROLE_VIEW && !node(made)->fused)
        made = inst_operand(made, 0);
    Group *g = made->n_uses == 1 && x->n_uses == 1 ? group_of_root(made) : NULL;
    if (!g || g == all || g->reduces || g->hero || !only_moves(made, g) || all->size + g->size > MAX_SIZE || all->operands + g->operands > MAX_OPERANDS)
        return;
    for (Inst *i = x; i != made; i = inst_operand(i, 0)) {
        node(i)->fused = true;
        node(i)->contexts[0] = all->all;
        node(i)->n_contexts = 1;
        all->size++;
    }
    swallow(all, g);
}

enum { PARTS = 3 };

typedef struct Groups {
    int32_t n;
    Group  *v[MAX_INDEX_CONTEXTS];
} Groups;

static bool has_group(const Groups *s, const Group *g)
{
    for (int32_t k = 0; k < s->n; k++)
        if (s->v[k] == g)
            return true;
    return false;
}

/* The array that the root of g has elements of, and moves only. */
static Inst *source_of(const Group *g)
{
    Inst *x = g->root;
    while (moves_elements(x) && x->n_operands == 1 && is_member(x, g))
        x = inst_operand(x, 0);
    return x != g->root && is_member(x, g) && node(x)->role == ROLE_ELEMENTWISE ? x : NULL;
}

/* Those that compute x. */
static Groups groups_with(const Inst *x)
{
    const Node *n = node(x);
    Groups      s = { 0 };
    for (int32_t k = 0; k < n->n_contexts && s.n < MAX_INDEX_CONTEXTS; k++)
        if (!has_group(&s, n->contexts[k]->group))
            s.v[s.n++] = n->contexts[k]->group;
    return s;
}

/* g wants y for something else than x. */
static bool wants_besides(const Group *g, const Inst *y, const Inst *x)
{
    for (const Use *u = y->uses; u; u = u->next)
        if (u->user != x && (is_member(u->user, g) || (!node(u->user)->fused && is_in(u->user, g))))
            return true;
    return false;
}

/* What x, which `to` stores now, is made of inside of it, and no more in the others that did. */
static void ask_once(const Inst *x, const Groups *s, Group *to)
{
    for (int32_t k = 0; k < x->n_operands; k++) {
        const Inst *y = inst_operand(x, k);
        Node       *n = node(y);
        int32_t     kept = 0;
        bool        asked = false;
        for (int32_t c = 0; n->fused && c < n->n_contexts; c++) {
            const bool theirs = has_group(s, n->contexts[c]->group);
            asked |= theirs;
            if (!theirs || (n->contexts[c]->group != to && wants_besides(n->contexts[c]->group, y, x)))
                n->contexts[kept++] = n->contexts[c];
        }
        if (!asked || kept == n->max_contexts)
            continue;
        n->contexts[kept++] = to->all;
        n->n_contexts = kept;
        to->size++;
        ask_once(y, s, to);
    }
}

/* A dot that y alone is made of, element by element, is what its kernel goes on from. */
static void take_product(Group *g, const Inst *y)
{
    for (int32_t k = 0; k < y->n_operands && !g->hero; k++) {
        Inst *dot = inst_operand(y, k);
        Node *n = node(dot);
        if (dot->op != OP_DOT || n->role != ROLE_CONTRACT || n->fused || dot->n_uses != 1 || !shape_same_dims(dot->shape, y->shape) || dot->shape->layout)
            continue;
        n->fused = true;
        n->contexts[0] = g->all;
        n->n_contexts = 1;
        g->hero = dot;
        g->size++;
        g->operands++;
    }
}

/* Queries, keys or values that are parts of one array, which several kernels would compute: the array is stored, and its parts are read where they lie. */
static void take_torn(Group *all, Inst *const *readers, const int32_t *operands)
{
    Inst  *source = NULL;
    Group *g[PARTS] = { NULL }, *to = NULL;
    for (int32_t k = 0; k < PARTS; k++) {
        Inst *made = inst_operand(readers[k], operands[k]);
        while (made->op == OP_RESHAPE && made->n_uses == 1 && node(made)->role == ROLE_VIEW && !node(made)->fused)
            made = inst_operand(made, 0);
        Group *of = made->n_uses == 1 ? group_of_root(made) : NULL;
        if (!of || of == all || of->reduces || of->hero || of->vector || !source_of(of) || (source && source_of(of) != source) || of == g[0] || of == g[1])
            continue;
        g[k] = of;
        source = source_of(of);
        to = to ? to : of;
    }
    const Groups s = source ? groups_with(source) : (Groups){ 0 };
    if (s.n < 2 || s.n == MAX_INDEX_CONTEXTS || has_group(&s, all))
        return;
    for (int32_t k = 0; k < PARTS; k++)
        for (Inst *i = inst_operand(readers[k], operands[k]); g[k] && i != source; i = inst_operand(i, 0)) {
            Node   *n = node(i);
            int32_t kept = 0;
            for (int32_t c = 0; n->fused && c < n->n_contexts; c++)
                if (n->contexts[c]->group != g[0] && n->contexts[c]->group != g[1] && n->contexts[c]->group != g[2] && n->contexts[c]->group != all)
                    n->contexts[kept++] = n->contexts[c];
            if (kept == n->max_contexts)
                kept--;
            n->fused = true;
            n->contexts[kept++] = all->all;
            n->n_contexts = kept;
            all->size++;
        }
    for (int32_t k = 0; k < PARTS; k++)
        if (g[k] && g[k] != to) {
            g[k]->head = all;
            g[k]->root = NULL;
            all->operands--;
        }
    to->root = source;
    to->size = 1;
    to->all->count = fusion_count(source);
    ask_once(source, &s, to);
    node(source)->fused = false;
    node(source)->contexts[0] = to->all;
    node(source)->n_contexts = 1;
    take_product(to, source);
}

/* The kernel of a device that it is (emit/attention_device.h), whatever its scores become: for whole attention whose softmax is in f32. */
static bool is_device_kernel(const Attention *a, const AttentionSize *s)
{
    bool in_f32 = s->type == TYPE_F32 || s->type == TYPE_F16 || s->type == TYPE_BF16;
    for (int32_t k = 0; k < a->n; k++)
        in_f32 &= a->parts[k].x->op != OP_EXPONENTIAL || a->parts[k].x->shape->type == TYPE_F32;
    return in_f32 && s->head <= DEVICE_HEAD && s->wide <= DEVICE_HEAD;
}

/* q, k and v are converted from a type of 16 bits, each by a kernel of its own; the type, TYPE_F32: they are not. */
static Type widened_from(Inst *const *readers, const int32_t *operands)
{
    Type from = TYPE_F32;
    for (int32_t k = 0; k < PARTS; k++) {
        const Inst  *x = inst_operand(readers[k], operands[k]), *narrow = x->op == OP_CONVERT ? inst_operand(x, 0) : NULL;
        const Group *g = x->n_uses == 1 ? group_of_root(x) : NULL;
        if (!narrow || x->shape->type != TYPE_F32 || (narrow->shape->type != TYPE_BF16 && narrow->shape->type != TYPE_F16) || (k > 0 && narrow->shape->type != from) || !g || g->reduces ||
            g->hero || g->vector || node(narrow)->fused)
            return TYPE_F32;
        from = narrow->shape->type;
    }
    return from;
}

/* The result in another order, and rounded to what the operands were, if that is no f32. */
static bool is_order_of(const Group *g, const Inst *out, Type narrow)
{
    const Inst *x = g->root;
    if (narrow != TYPE_F32 && x->op == OP_CONVERT && x->shape->type == narrow && x != out)
        x = inst_operand(x, 0);
    while (x != out && (x->op == OP_TRANSPOSE || x->op == OP_RESHAPE || x->op == OP_COPY) && is_member(x, g))
        x = inst_operand(x, 0);
    return x == out;
}

/* What makes more of the result than another order of it goes on from what that kernel stores. False: it stays. */
static bool leaves(Inst *out, Group *g, Type narrow)
{
    if (g->hero != out || is_order_of(g, out, narrow) || is_member(inst_operand(out, 0), g) || is_member(inst_operand(out, 1), g))
        return false;
    node(out)->fused = false;
    g->hero = NULL;
    g->size--;
    g->operands--;
    return true;
}

/* Libraries of a device want them for themselves. */
static void take_operand(bool by_library, Group *all, Inst *of, int32_t operand)
{
    if (!by_library)
        take_moved(all, of, operand);
    take_repeated(all, of, operand);
}

static void try_dot(Fuser *f, Inst *out)
{
    Attention a;
    Makers    m;
    Group    *g = node(out)->fused ? node(out)->contexts[0]->group : NULL;
    if ((group_of_root(out) && group_of_root(out)->vector) || !find_makers(out, &a, &m))
        return;
    const char *why = obstacle(f, &a, g, &m);
    const Inst *weights = inst_operand(out, a.side);
    if (why) {
        pass_remark(f->cx, out, "attention of %%%s and %%%s stays several kernels: %s", a.scores->name, out->name, why);
        return;
    }
    pass_remark(f->cx, out, "attention is one kernel: %%%s and %%%s, %.0f elements each, are not stored", a.scores->name, weights->name,
                fusion_count(weights));
    const AttentionSize size = attention_size(&a);
    const bool          by_library = f->cx->device->shared > 0 && !attention_pays(&size, f->cx->device);
    const bool          by_kernel = f->cx->device->shared > 0 && !by_library;
    Inst *const   readers[PARTS] = { to_change(a.scores), to_change(a.scores), out };
    const int32_t operands[PARTS] = { 0, 1, 1 - a.side };
    const bool    whole = by_kernel && is_device_kernel(&a, &size);
    const Type    narrow = whole ? widened_from(readers, operands) : TYPE_F32;
    merge(out, &a, g && whole && leaves(out, g, narrow) ? NULL : g, &m);
    if (by_kernel)
        take_torn(node(out)->contexts[0]->group, readers, operands);
    for (int32_t k = 0; k < PARTS && narrow != TYPE_F32; k++)
        swallow(node(out)->contexts[0]->group, group_of_root(inst_operand(readers[k], operands[k])));
    for (int32_t k = 0; k < 2; k++)
        take_operand(by_library, node(out)->contexts[0]->group, to_change(a.scores), k);
    take_operand(by_library, node(out)->contexts[0]->group, out, 1 - a.side);
}

void fusion_attention(Fuser *f, Comp *c)
{
    for (Inst *i = c->last; i; i = i->prev)
        if (i->op == OP_DOT && node(i)->role == ROLE_CONTRACT)
            try_dot(f, i);
}
