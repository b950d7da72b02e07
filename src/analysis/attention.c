/* Parts are found from the weights backwards, then their dimensions from the scores forwards. */
#include "config.h"

#include "analysis/attention.h"

#include "support/arena.h"
#include "support/map.h"
#include "support/vec.h"

typedef struct Finder {
    Attention       *a;
    AttentionInside *inside;
    void            *cookie;
    Arena           *arena;
    Map              made;    /* Inst -> AttentionPart: made of the scores */
    bool             reduced; /* some are, so the keys are known */
} Finder;

const AttentionPart *attention_part(const Attention *a, const Inst *x)
{
    for (int32_t k = 0; k < a->n; k++)
        if (a->parts[k].x == x)
            return &a->parts[k];
    return NULL;
}

static bool plain_dot(const Inst *i)
{
    return i->op == OP_DOT && i->n_operands == 2 && !inst_attr(i, ATTR_SPARSITY_CONFIG) && shape_is_array(i->shape) && !i->shape->layout &&
           !shape_is_dynamic(i->shape) && shape_count(i->shape) > 0 && i->shape->rank <= ATTENTION_MOST_DIMS;
}

/* ---- dimensions ---- */

/* The dimensions of a dot's operand that are neither batch nor contracted, in order. */
static int32_t free_dims(const Inst *dot, int32_t operand, int32_t *free)
{
    Ints    batch = inst_ints(dot, operand ? ATTR_RHS_BATCH_DIMS : ATTR_LHS_BATCH_DIMS);
    Ints    sums = inst_ints(dot, operand ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
    int32_t n = 0;
    for (int32_t d = 0; d < inst_operand(dot, operand)->shape->rank; d++)
        if (!ints_has(batch, d) && !ints_has(sums, d))
            free[n++] = d;
    return n;
}

static bool operands_fit(const Inst *dot)
{
    for (int32_t k = 0; k < 2; k++) {
        const Shape *s = inst_operand(dot, k)->shape;
        if (s->rank > ATTENTION_MOST_DIMS || shape_is_dynamic(s))
            return false;
    }
    return true;
}

static void scores_dims(Attention *a)
{
    const Inst *s = a->scores;
    Ints        lhs = inst_ints(s, ATTR_LHS_BATCH_DIMS), rhs = inst_ints(s, ATTR_RHS_BATCH_DIMS);
    int32_t     free[ATTENTION_MOST_DIMS], at = lhs.n;
    a->n_batch = lhs.n;
    for (int32_t d = 0; d < s->shape->rank; d++)
        a->lhs[d] = a->rhs[d] = a->v[d] = a->result[d] = -1;
    for (int32_t k = 0; k < lhs.n; k++) {
        a->lhs[k] = (int32_t)lhs.v[k];
        a->rhs[k] = (int32_t)rhs.v[k];
    }
    for (int32_t k = 0, n = free_dims(s, 0, free); k < n; k++)
        a->lhs[at++] = free[k];
    for (int32_t k = 0, n = free_dims(s, 1, free); k < n; k++)
        a->rhs[at++] = free[k];
}

/* Batch dimensions of out are those of the scores, it sums over all keys, and those are all that one operand of the scores has beside. */
static bool out_dims(Attention *a)
{
    const AttentionPart *w = &a->parts[a->n - 1];
    const Inst          *o = a->out;
    bool                 rhs = a->side == 1;
    Ints                 batch = inst_ints(o, rhs ? ATTR_RHS_BATCH_DIMS : ATTR_LHS_BATCH_DIMS);
    Ints                 other = inst_ints(o, rhs ? ATTR_LHS_BATCH_DIMS : ATTR_RHS_BATCH_DIMS);
    Ints                 sums = inst_ints(o, rhs ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
    int32_t              rank = a->scores->shape->rank, at = batch.n + (rhs ? free_dims(o, 0, (int32_t[ATTENTION_MOST_DIMS]){0}) : 0);
    bool                 of_lhs = true, of_rhs = true;
    for (int32_t k = 0; k < batch.n; k++) {
        int32_t d = w->dim[batch.v[k]];
        if (d >= a->n_batch)
            return false;
        if (d >= 0) {
            a->result[d] = k;
            a->v[d] = (int32_t)other.v[k];
        }
    }
    for (int32_t k = 0; k < w->x->shape->rank; k++) {
        int32_t d = w->dim[k];
        if (d >= 0 && ints_has(sums, k) != a->key[d])
            return false;
        if (ints_has(batch, k) || ints_has(sums, k))
            continue;
        if (d >= 0)
            a->result[d] = at;
        at++;
    }
    for (int32_t d = 0; d < rank; d++) {
        if (a->scores->shape->dims[d] == 1)
            continue;
        if (a->key[d] == (a->result[d] >= 0) || (a->v[d] >= 0) != (d < a->n_batch))
            return false;
        of_lhs &= d < a->n_batch || a->key[d] == (a->lhs[d] >= 0);
        of_rhs &= d < a->n_batch || a->key[d] == (a->rhs[d] >= 0);
    }
    return of_lhs || of_rhs;
}

/* ---- parts ---- */

/* It has every dimension of the scores. */
static bool is_whole(const Attention *a, const AttentionPart *p)
{
    bool has[ATTENTION_MOST_DIMS] = {false};
    for (int32_t d = 0; d < p->x->shape->rank; d++)
        if (p->dim[d] >= 0)
            has[p->dim[d]] = true;
    for (int32_t d = 0; d < a->scores->shape->rank; d++)
        if (!has[d] && a->scores->shape->dims[d] != 1)
            return false;
    return true;
}

static bool elementwise_dims(Finder *f, AttentionPart *p)
{
    const AttentionPart *first = NULL;
    for (int32_t k = 0; k < p->x->n_operands; k++) {
        const AttentionPart *o = map_get(&f->made, inst_operand(p->x, k));
        if (!o)
            continue;
        if (!shape_same_dims(o->x->shape, p->x->shape))
            return false;
        for (int32_t d = 0; d < p->x->shape->rank; d++)
            if (first && first->dim[d] != o->dim[d])
                return false;
        first = o;
    }
    for (int32_t d = 0; d < p->x->shape->rank; d++)
        p->dim[d] = first->dim[d];
    return true;
}

/* The first one says which dimensions are keys. */
static bool reduce_dims(Finder *f, AttentionPart *p)
{
    const AttentionPart *o = map_get(&f->made, inst_operand(p->x, 0));
    Ints                 over = inst_ints(p->x, ATTR_DIMENSIONS);
    int32_t              at = 0;
    if (!o || p->x->n_operands != 2 || map_get(&f->made, inst_operand(p->x, 1)) || !is_whole(f->a, o))
        return false;
    for (int32_t d = 0; d < o->x->shape->rank; d++) {
        bool is_over = ints_has(over, d);
        if (!is_over)
            p->dim[at++] = o->dim[d];
        if (o->dim[d] < 0)
            continue;
        if (!f->reduced)
            f->a->key[o->dim[d]] = is_over;
        else if (f->a->key[o->dim[d]] != is_over)
            return false;
    }
    f->reduced = true;
    return true;
}

/* New dimensions are the keys. (Where there are several, in another order than the scores', what is combined with them would not fit.) */
static bool broadcast_dims(Finder *f, AttentionPart *p)
{
    const AttentionPart *o = map_get(&f->made, inst_operand(p->x, 0));
    const Shape         *s = p->x->shape, *scores = f->a->scores->shape;
    Ints                 to = inst_ints(p->x, ATTR_DIMENSIONS);
    int32_t              key = 0;
    for (int32_t d = 0; d < s->rank; d++)
        p->dim[d] = -1;
    for (int32_t d = 0; d < to.n; d++)
        p->dim[to.v[d]] = o->dim[d]; /* -1 for sizes of 1 */
    for (int32_t d = 0; d < s->rank; d++) {
        if (ints_has(to, d) || s->dims[d] == 1)
            continue;
        while (key < scores->rank && !(f->a->key[key] && scores->dims[key] == s->dims[d]))
            key++;
        if (key == scores->rank)
            return false;
        p->dim[d] = key++;
    }
    return true;
}

static bool transpose_dims(Finder *f, AttentionPart *p)
{
    const AttentionPart *o = map_get(&f->made, inst_operand(p->x, 0));
    Ints                 from = inst_ints(p->x, ATTR_DIMENSIONS);
    for (int32_t d = 0; d < p->x->shape->rank; d++)
        p->dim[d] = o->dim[from.v[d]];
    return true;
}

/* Sizes of 1 come and go. */
static bool reshape_dims(Finder *f, AttentionPart *p)
{
    const AttentionPart *o = map_get(&f->made, inst_operand(p->x, 0));
    const Shape         *from = o->x->shape, *to = p->x->shape;
    int32_t              where[ATTENTION_MOST_DIMS];
    if (!shape_unit_dims(to, from, where))
        return false;
    for (int32_t d = 0; d < to->rank; d++)
        p->dim[d] = where[d] < 0 ? -1 : o->dim[where[d]];
    return true;
}

static bool part_dims(Finder *f, AttentionPart *p)
{
    switch (p->x->op) {
    case OP_REDUCE: return reduce_dims(f, p);
    case OP_BROADCAST: return broadcast_dims(f, p);
    case OP_RESHAPE: return reshape_dims(f, p);
    case OP_TRANSPOSE: return transpose_dims(f, p);
    case OP_COPY: return elementwise_dims(f, p);
    default: return op_has(p->x->op, F_ELEMENTWISE) && elementwise_dims(f, p);
    }
}

/* ---- finding ---- */

typedef struct Visit {
    const Inst *x;
    int32_t     next; /* operand */
} Visit;

/* Everything inside behind x, operands first; false when it is too much. */
static bool list_inside(Finder *f, const Inst *x, const Inst **list, int32_t *n)
{
    VEC(Visit) stack = {0};
    Map seen = map_new(f->arena);
    map_put(&seen, x, f);
    vec_push(f->arena, &stack, ((Visit){x, 0}));
    while (stack.n > 0) {
        Visit *top = &stack.v[stack.n - 1];
        if (top->next == top->x->n_operands || top->x->op == OP_DOT) {
            if (*n == ATTENTION_MOST)
                return false;
            list[(*n)++] = top->x;
            stack.n--;
            continue;
        }
        const Inst *o = inst_operand(top->x, top->next++);
        if (map_has(&seen, o) || !f->inside(f->cookie, o))
            continue;
        map_put(&seen, o, f);
        vec_push(f->arena, &stack, ((Visit){o, 0}));
    }
    return true;
}

/* The one dot in the list. */
static const Inst *scores_in(const Inst *const *list, int32_t n)
{
    const Inst *found = NULL;
    for (int32_t k = 0; k < n; k++)
        if (list[k]->op == OP_DOT) {
            if (found || !plain_dot(list[k]) || !operands_fit(list[k]))
                return NULL;
            found = list[k];
        }
    return found;
}

static bool is_made(Finder *f, const Inst *x)
{
    for (int32_t k = 0; k < x->n_operands; k++)
        if (map_has(&f->made, inst_operand(x, k)))
            return true;
    return false;
}

/* What is made of the scores has the right form, what is not can be asked for element by element. */
static bool sort_parts(Finder *f, const Inst *const *list, int32_t n)
{
    Attention *a = f->a;
    AttentionPart *first = &a->parts[a->n++];
    first->x = a->scores;
    map_put(&f->made, a->scores, first);
    for (int32_t d = 0; d < a->scores->shape->rank; d++)
        first->dim[d] = a->scores->shape->dims[d] == 1 ? -1 : d;
    for (int32_t k = 0; k < n; k++) {
        const Inst *x = list[k];
        if (x == a->scores)
            continue;
        if (!shape_is_array(x->shape) || shape_is_dynamic(x->shape) || x->shape->rank > ATTENTION_MOST_DIMS)
            return false;
        if (!is_made(f, x)) {
            if (x->op == OP_REDUCE || x->op == OP_REDUCE_WINDOW)
                return false;
            continue;
        }
        AttentionPart *p = &a->parts[a->n];
        p->x = x;
        if (!part_dims(f, p))
            return false;
        map_put(&f->made, x, p);
        a->n++;
    }
    return f->reduced && is_whole(a, &a->parts[a->n - 1]);
}

static bool find_side(Finder *f, int32_t side)
{
    Attention   *a = f->a;
    const Inst  *list[ATTENTION_MOST], *weights = inst_operand(a->out, side);
    int32_t      n = 0;
    *a = (Attention){.out = a->out, .side = side};
    f->made = map_new(f->arena);
    f->reduced = false;
    if (!f->inside(f->cookie, weights) || weights->op == OP_DOT || !list_inside(f, weights, list, &n))
        return false;
    a->scores = scores_in(list, n);
    if (!a->scores)
        return false;
    scores_dims(a);
    return sort_parts(f, list, n) && a->parts[a->n - 1].x == weights && out_dims(a);
}

bool attention_find(const Inst *out, AttentionInside *inside, void *cookie, Attention *a)
{
    if (!plain_dot(out) || !operands_fit(out))
        return false;
    Finder f = {.a = a, .inside = inside, .cookie = cookie, .arena = arena_new()};
    a->out = out;
    bool found = find_side(&f, 0) || find_side(&f, 1);
    arena_free(f.arena);
    return found;
}

/* ---- how long it takes ---- */

static double ceil_div(double n, double by)
{
    return (double)(int64_t)((n + by - 1) / by);
}

AttentionSize attention_size(const Attention *a)
{
    AttentionSize s = { .type = inst_operand(a->scores, 0)->shape->type, .members = 1, .rows = 1, .keys = 1, .head = 1 };
    const Inst   *v = inst_operand(a->out, 1 - a->side);
    const Ints    sums = inst_ints(a->scores, ATTR_LHS_CONTRACTING_DIMS);
    for (int32_t d = 0; d < a->scores->shape->rank; d++) {
        int64_t *of = a->key[d] ? &s.keys : d < a->n_batch ? &s.members : &s.rows;
        *of *= a->scores->shape->dims[d];
    }
    for (int32_t k = 0; k < sums.n; k++)
        s.head *= inst_operand(a->scores, 0)->shape->dims[sums.v[k]];
    s.wide = shape_count(v->shape) / s.keys / s.members;
    return s;
}

/* What part of the units has a tile, 1: all have. */
static double busy(const Device *v, double tiles)
{
    return tiles < v->units ? tiles / v->units : 1;
}

/* Tiles of 64 rows and columns, long sums in pieces of 512; scores and weights go through memory. */
static double library_ns(const AttentionSize *s, const Device *v)
{
    const double m = (double)s->members, scores = m * (double)s->rows * (double)s->keys, bytes = 2 * scores * (type_bytes(s->type) + 4), down = ceil_div((double)s->rows, 64);
    const double rate = type_bits(s->type) == 16 && v->tensor > 0 ? v->tensor / 2 : v->flops * 0.75;
    const double first = busy(v, m * down * ceil_div((double)s->keys, 64)), second = busy(v, m * down * ceil_div((double)s->wide, 64) * ceil_div((double)s->keys, 512));
    return 2 * scores * ((double)s->head / first + (double)s->wide / second) / rate + device_bytes_ns(v, bytes, bytes) + 2 * v->launch;
}

/* Half of what the units could do. With fragments shared memory is what there is least of: a warp's 16 rows by 32 keys of 64 terms and columns are 2^17 operations, for which
 * fragments and scores of 18 KiB go there and back, at 128 bytes a cycle of each multiprocessor, which adds 128 f32 and multiplies as many in it: 3.5 times as many operations. */
double attention_rate(Type type, const Device *v)
{
    const double by_fragments = 3 * v->flops < v->tensor / 4 ? 3 * v->flops : v->tensor / 4;
    return type_bits(type) == 16 && v->tensor > 0 ? by_fragments : v->flops / 2;
}

/* Tiles of 16 rows at least, which go through keys in steps of 256, by pieces of which units share them. */
static double kernel_ns(const AttentionSize *s, const Device *v)
{
    const double down = ceil_div((double)s->rows, 16), tiles = (double)s->members * down * ceil_div((double)s->keys, 256);
    return 2 * (double)s->members * 16 * down * (double)s->keys * (double)(s->head + s->wide) * (s->half ? 0.6 : 1) / attention_rate(s->type, v) / busy(v, tiles);
}

bool attention_pays(const AttentionSize *s, const Device *v)
{
    return s->rows <= ATTENTION_FEW || kernel_ns(s, v) <= library_ns(s, v);
}
