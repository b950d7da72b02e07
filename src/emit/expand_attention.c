/* A fusion that is attention (analysis/attention.h), where its dots are worth calls of the runtime: blocks of rows of the scores that stay in the second-level
 * cache, one after another,
 *
 *     out = fusion(q, k, v, mask), kind=kCustom       =>      for each block of batch dimensions:  q', k', v' = slices of q, k, v
 *                                                                 for each block of rows at r:     s = dot(slice of q' at r, k')
 *                                                                                                  p = fusion(s, r, mask)
 *                                                                                                  out at r = dot(p, v')
 *
 * where the fusion p has of everything that is not made of the scores, a mask say, the slice that belongs to the block, element by element. Slices at the end
 * are moved inwards, as dynamic slices are, so that the last rows may be computed twice with the same results. Where the scores are small beside what the
 * slices copy, there is one block. What the fusion makes of out comes after it.
 *
 * Where rows see no keys behind their own place (emit/causal.h) there are several loops over blocks of rows, each of which takes only the keys that its last
 * rows see. Whether that gives what all keys do is known when the arrays are: unless it is so, the last loop, which takes all keys, goes through all rows. */
#include "emit/attention_call.h"
#include "emit/causal.h"
#include "emit/dot_call.h"
#include "emit/expand.h"

#include <math.h>

#include "analysis/attention.h"
#include "passes/util.h"

enum { BLOCK_BYTES = 1 << 18, LEAST_ROWS = 32, MOST_LOOPS = 4, DIMS = ATTENTION_MOST_DIMS };

typedef struct Blocks {
    Inst      *fusion;
    Comp      *body;
    Arena     *arena;
    Attention  a;
    int64_t    size[DIMS], count[DIMS]; /* of blocks along each dimension of the scores */
    Map        needed; /* of the body: what the weights need and what is not made of the scores */
    bool       sliced[DIMS]; /* some of that has a slice for each block along the dimension */
    Causal     causal; /* where is_causal */
} Blocks;

/* Arrays of one level: inside of loops they are elements of the state. */
typedef struct Level {
    Comp  *comp;
    Inst  *before;
    Inst  *out;         /* what blocks are put into; NULL: there is one block */
    Inst  *few;         /* whether keys that a row does not see make no difference; NULL: nobody asks */
    Inst  *lhs, *rhs, *v;
    Inst  *start[DIMS]; /* NULL: 0 */
    Inst **params;      /* the fusion's operands; NULL: not needed */
} Level;

static bool is_body(void *cookie, const Inst *i)
{
    (void)cookie;
    return i->op != OP_PARAMETER;
}

/* ---- which ---- */

static bool is_called(const Inst *dot)
{
    DotCall d;
    return dot_call(dot, inst_operand(dot, 0)->shape, inst_operand(dot, 1)->shape, dot->shape, &d);
}

static bool find(const Inst *i, Attention *a)
{
    if (i->op != OP_FUSION || i->n_callees != 1)
        return false;
    for (const Inst *x = inst_callee(i, 0)->last; x; x = x->prev)
        if (x->op == OP_DOT && attention_find(x, is_body, NULL, a))
            return is_called(a->scores) && is_called(a->out);
    return false;
}

bool attention_stays(const Inst *i)
{
    Attention     a;
    AttentionCall c;
    return find(i, &a) && attention_call(i, NULL, &c) && c.alone;
}

bool attention_expands(const Inst *i)
{
    Attention a;
    return find(i, &a) && !attention_stays(i);
}

static double bytes_of(const Inst *i)
{
    return (double)shape_count(i->shape) * type_bytes(i->shape->type);
}

/* Blocks of about BLOCK_BYTES, whole in the inner dimensions. */
static void cut(Blocks *b)
{
    const Shape *s = b->a.scores->shape;
    const Inst  *v = inst_operand(b->a.out, 1 - b->a.side);
    double       bytes = type_bytes(s->type), copied = bytes_of(inst_operand(b->a.scores, 0)) + bytes_of(inst_operand(b->a.scores, 1)) + bytes_of(v);
    bool         whole = bytes_of(b->a.scores) <= BLOCK_BYTES || bytes_of(b->a.scores) <= copied;
    for (int32_t d = 0; d < s->rank; d++)
        if (b->a.key[d])
            bytes *= (double)s->dims[d];
    for (int32_t d = s->rank; d-- > 0;) {
        int64_t n = s->dims[d], least = d >= b->a.n_batch ? LEAST_ROWS : 1, fit = bytes > BLOCK_BYTES ? 0 : (int64_t)(BLOCK_BYTES / bytes);
        b->size[d] = n;
        b->count[d] = 1;
        if (b->a.key[d])
            continue;
        if (!whole && n > fit && n > least) {
            b->count[d] = (n + (fit > least ? fit : least) - 1) / (fit > least ? fit : least);
            b->size[d] = (n + b->count[d] - 1) / b->count[d];
        }
        bytes *= (double)b->size[d];
    }
}

/* ---- small parts ---- */

static Inst *number(Level *l, int64_t v)
{
    return inst_constant(l->comp, l->before, literal_from_s64(TYPE_S64, v), NULL);
}

static Inst *binary(Level *l, Op op, Inst *x, Inst *y)
{
    return inst_new(l->comp, l->before, op, x->shape, 2, (Inst *[]){x, y}, NULL);
}

static Inst *element(Comp *c, Inst *tuple, int32_t k)
{
    Inst *e = inst_new(c, NULL, OP_GET_TUPLE_ELEMENT, tuple->shape->elems[k], 1, &tuple, NULL);
    inst_set_int(e, ATTR_INDEX, k);
    return e;
}

/* x with the sizes of a block in dimensions at[d] of those of the scores. */
static const Shape *block_shape(const Blocks *b, const Shape *x, const int32_t *at)
{
    int64_t dims[DIMS];
    for (int32_t d = 0; d < x->rank; d++)
        dims[d] = x->dims[d];
    for (int32_t d = 0; d < b->a.scores->shape->rank; d++)
        if (at[d] >= 0)
            dims[at[d]] = b->size[d];
    return shape_array(b->arena, x->type, x->rank, dims);
}

/* One start for each of x's dimensions. */
static void add_starts(Level *l, const Blocks *b, const Shape *x, const int32_t *at, Inst *const *start, Inst **operands)
{
    Inst *zero = number(l, 0);
    for (int32_t d = 0; d < x->rank; d++)
        operands[d] = zero;
    for (int32_t d = 0; d < b->a.scores->shape->rank; d++)
        if (at[d] >= 0 && start[d])
            operands[at[d]] = start[d];
}

/* The part of x that has the sizes of `part`. */
static Inst *take(Level *l, const Blocks *b, Inst *x, const Shape *part, const int32_t *at, Inst *const *start)
{
    Inst *operands[DIMS + 1] = {x};
    if (shape_same_dims(x->shape, part))
        return x;
    add_starts(l, b, x->shape, at, start, operands + 1);
    Inst *y = inst_new(l->comp, l->before, OP_DYNAMIC_SLICE, part, 1 + x->shape->rank, operands, NULL);
    inst_set_ints(y, ATTR_DYNAMIC_SLICE_SIZES, (Ints){part->dims, part->rank});
    return y;
}

static Inst *put(Level *l, const Blocks *b, Inst *x, Inst *part)
{
    Inst *operands[DIMS + 2] = {x, part};
    add_starts(l, b, x->shape, b->a.result, l->start, operands + 2);
    return inst_new(l->comp, l->before, OP_DYNAMIC_UPDATE_SLICE, x->shape, 2 + x->shape->rank, operands, NULL);
}

static Comp *new_comp(const Blocks *b, const char *name)
{
    Module *m = b->fusion->comp->module;
    Comp   *c = comp_new(m, comp_unique_name(m, name));
    comp_move_before(c, b->fusion->comp);
    return c;
}

static Inst *clone_as(Level *l, const Inst *x, const Shape *shape, int32_t n, Inst *const *operands)
{
    Inst *y = inst_clone_into(l->comp, l->before, x, n, operands);
    y->shape = shape;
    return y;
}

/* ---- the weights of a block ---- */

/* The same number everywhere. */
static bool is_uniform(const Inst *x)
{
    return shape_is_scalar(x->shape) || (x->op == OP_BROADCAST && shape_is_scalar(inst_operand(x, 0)->shape));
}

static void need(Blocks *b, const AttentionPart *p, const Inst *x)
{
    map_put(&b->needed, x, b);
    for (int32_t d = 0; d < p->x->shape->rank && !is_uniform(x); d++)
        if (p->dim[d] >= 0)
            b->sliced[p->dim[d]] |= b->count[p->dim[d]] > 1;
}

static void find_needed(Blocks *b)
{
    b->needed = map_new(b->arena);
    for (int32_t k = 1; k < b->a.n; k++)
        for (int32_t o = 0; o < b->a.parts[k].x->n_operands; o++)
            if (!attention_part(&b->a, inst_operand(b->a.parts[k].x, o)))
                need(b, &b->a.parts[k], inst_operand(b->a.parts[k].x, o));
    for (const Inst *x = b->body->last; x; x = x->prev)
        for (int32_t o = 0; map_has(&b->needed, x) && o < x->n_operands; o++)
            map_put(&b->needed, inst_operand(x, o), b);
}

/* For dimension d of the scores the one of part p, -1: it has not. */
static void dims_of_part(const Blocks *b, const AttentionPart *p, int32_t *at)
{
    for (int32_t d = 0; d < b->a.scores->shape->rank; d++)
        at[d] = -1;
    for (int32_t d = 0; d < p->x->shape->rank; d++)
        if (p->dim[d] >= 0)
            at[p->dim[d]] = d;
}

/* What part p has beside other parts: the block's piece of it, a number as it is. */
static Inst *beside(Level *l, const Blocks *b, Inst *x, const AttentionPart *p, Inst *const *start)
{
    int32_t at[DIMS];
    if (shape_is_scalar(x->shape))
        return x;
    dims_of_part(b, p, at);
    const Shape *part = block_shape(b, x->shape, at);
    if (is_uniform(x))
        return clone_as(l, x, part, 1, (Inst *[]){inst_operand(x, 0)});
    return take(l, b, x, part, at, start);
}

/* p = fusion(s, starts.., operands..) */
static Inst *weights(Level *l, Blocks *b, Inst *scores)
{
    Level  in = {.comp = new_comp(b, "weights")};
    Map    made = map_new(b->arena);
    Inst **operands = ARENA_ARRAY(b->arena, Inst *, 1 + DIMS + b->fusion->n_operands), *start[DIMS] = {NULL};
    int32_t n = 0;
    operands[n++] = scores;
    map_put(&made, b->a.scores, inst_parameter(in.comp, NULL, 0, scores->shape, NULL));
    for (int32_t d = 0; d < b->a.scores->shape->rank; d++)
        if (l->start[d] && b->sliced[d]) {
            start[d] = inst_parameter(in.comp, NULL, n, l->start[d]->shape, NULL);
            operands[n++] = l->start[d];
        }
    for (const Inst *x = b->body->first; x; x = x->next) {
        Inst **of = ARENA_ARRAY(b->arena, Inst *, x->n_operands);
        if (!map_has(&b->needed, x))
            continue;
        if (x->op == OP_PARAMETER) {
            map_put(&made, x, inst_parameter(in.comp, NULL, n, x->shape, inst_unique_name(in.comp->module, x->name)));
            operands[n++] = l->params[x->param];
            continue;
        }
        for (int32_t k = 0; k < x->n_operands; k++)
            of[k] = map_get(&made, inst_operand(x, k));
        map_put(&made, x, inst_clone_into(in.comp, NULL, x, x->n_operands, of));
    }
    for (int32_t k = 1; k < b->a.n; k++) {
        const AttentionPart *p = &b->a.parts[k];
        Inst               **of = ARENA_ARRAY(b->arena, Inst *, p->x->n_operands);
        int32_t              at[DIMS];
        for (int32_t o = 0; o < p->x->n_operands; o++) {
            of[o] = map_get(&made, inst_operand(p->x, o));
            if (!attention_part(&b->a, inst_operand(p->x, o)))
                of[o] = beside(&in, b, of[o], p, start);
        }
        dims_of_part(b, p, at);
        in.comp->root = clone_as(&in, p->x, block_shape(b, p->x->shape, at), p->x->n_operands, of);
        map_put(&made, p->x, in.comp->root);
    }
    Inst *f = inst_new(l->comp, l->before, OP_FUSION, in.comp->root->shape, n, operands,
                       inst_unique_name(in.comp->module, b->a.parts[b->a.n - 1].x->name));
    inst_set_word(f, ATTR_FUSION_KIND, FUSION_INPUT);
    inst_set_callees(f, 1, &in.comp);
    f->meta = b->fusion->meta;
    f->loc = b->fusion->loc;
    return f;
}

/* ---- blocks ---- */

static int32_t own_dims(const Blocks *b, int32_t *at)
{
    int32_t rank = b->a.scores->shape->rank;
    for (int32_t d = 0; d < rank; d++)
        at[d] = d;
    return rank;
}

/* The innermost level: one block. */
static Inst *block(Level *l, Blocks *b)
{
    int32_t own[DIMS];
    own_dims(b, own);
    Inst *s = clone_as(l, b->a.scores, block_shape(b, b->a.scores->shape, own), 2, (Inst *[]){l->lhs, l->rhs}), *p = weights(l, b, s);
    Inst *of[2] = {p, p};
    of[1 - b->a.side] = l->v;
    Inst *o = clone_as(l, b->a.out, block_shape(b, b->a.out->shape, b->a.result), 2, of);
    return l->out ? put(l, b, l->out, o) : o;
}

/* Batch dimensions are those of the outer loop, rows those of the inner one. */
static bool is_of(const Blocks *b, int32_t d, bool rows)
{
    return (d >= b->a.n_batch) == rows && b->count[d] > 1;
}

static int64_t trips(const Blocks *b, bool rows)
{
    int64_t n = 1;
    for (int32_t d = 0; d < b->a.scores->shape->rank; d++)
        n *= is_of(b, d, rows) ? b->count[d] : 1;
    return n;
}

/* Slices for trip t, and where they start in the scores: the digits of t, times sizes. */
static void slice_all(Level *l, const Blocks *b, Inst *t, bool rows)
{
    int64_t inner = 1;
    int32_t lhs[DIMS], rhs[DIMS], v[DIMS], rank = b->a.scores->shape->rank;
    for (int32_t d = rank; d-- > 0;) {
        bool here = is_of(b, d, rows);
        lhs[d] = here ? b->a.lhs[d] : -1;
        rhs[d] = here ? b->a.rhs[d] : -1;
        v[d] = here ? b->a.v[d] : -1;
        if (!here)
            continue;
        Inst *digit = inner > 1 ? binary(l, OP_DIVIDE, t, number(l, inner)) : t;
        inner *= b->count[d];
        if (inner < trips(b, rows))
            digit = binary(l, OP_REMAINDER, digit, number(l, b->count[d]));
        /* not beyond the last whole block: every slice of the block then starts at the same place */
        Inst *last = number(l, b->a.scores->shape->dims[d] - b->size[d]);
        l->start[d] = binary(l, OP_MINIMUM, binary(l, OP_MULTIPLY, digit, number(l, b->size[d])), last);
    }
    l->lhs = take(l, b, l->lhs, block_shape(b, l->lhs->shape, lhs), lhs, l->start);
    l->rhs = take(l, b, l->rhs, block_shape(b, l->rhs->shape, rhs), rhs, l->start);
    l->v = take(l, b, l->v, block_shape(b, l->v->shape, v), v, l->start);
}

/* A level's arrays as a list, without those that are not there. */
static int32_t list_level(const Blocks *b, Level *l, Inst ***slots)
{
    int32_t n = 0;
    slots[n++] = &l->out;
    if (l->few)
        slots[n++] = &l->few;
    slots[n++] = &l->lhs;
    slots[n++] = &l->rhs;
    slots[n++] = &l->v;
    for (int32_t d = 0; d < DIMS; d++)
        if (l->start[d])
            slots[n++] = &l->start[d];
    for (int32_t k = 0; k < b->fusion->n_operands; k++)
        if (l->params[k])
            slots[n++] = &l->params[k];
    return n;
}

static Comp *make_condition(const Blocks *b, const Shape *state, int64_t n)
{
    Level l = {.comp = new_comp(b, "blocks_condition")};
    Inst *p = inst_parameter(l.comp, NULL, 0, state, NULL);
    l.comp->root = inst_new(l.comp, NULL, OP_COMPARE, shape_scalar(b->arena, TYPE_PRED), 2, (Inst *[]){element(l.comp, p, 0), number(&l, n)}, NULL);
    inst_set_word(l.comp->root, ATTR_DIRECTION, CMP_LT);
    return l.comp;
}

static Inst *level(Level *l, Blocks *b, bool rows);

/* One trip: state (t, out, arrays..) to (t + 1, out with blocks, arrays..). */
static Comp *make_body(const Level *around, Blocks *b, const Shape *state, bool rows)
{
    Level   l = *around;
    int32_t most = 6 + DIMS + b->fusion->n_operands;
    Inst ***slots = ARENA_ARRAY(b->arena, Inst **, most), **next = ARENA_ARRAY(b->arena, Inst *, most);
    l.params = arena_copy(b->arena, l.params, (size_t)b->fusion->n_operands * sizeof *l.params);
    l.comp = new_comp(b, "blocks");
    l.before = NULL;
    int32_t n = list_level(b, &l, slots);
    Inst   *p = inst_parameter(l.comp, NULL, 0, state, NULL), *t = element(l.comp, p, 0);
    for (int32_t k = 0; k < n; k++)
        next[1 + k] = *slots[k] = element(l.comp, p, 1 + k);
    slice_all(&l, b, t, rows);
    next[0] = binary(&l, OP_ADD, t, number(&l, 1));
    next[1] = rows ? block(&l, b) : level(&l, b, true);
    l.comp->root = inst_new(l.comp, NULL, OP_TUPLE, state, 1 + n, next, NULL);
    comp_move_before(l.comp, b->fusion->comp); /* after what it calls */
    return l.comp;
}

/* out with the blocks of this level from one on, before another. */
static Inst *loop(Level *l, Blocks *b, bool rows, Inst *from, int64_t to)
{
    int32_t       most = 6 + DIMS + b->fusion->n_operands;
    Inst       ***slots = ARENA_ARRAY(b->arena, Inst **, most), **start = ARENA_ARRAY(b->arena, Inst *, most);
    const Shape **shapes = ARENA_ARRAY(b->arena, const Shape *, most);
    int32_t       arrays = list_level(b, l, slots);
    start[0] = from;
    for (int32_t k = 0; k < arrays; k++)
        start[1 + k] = *slots[k];
    for (int32_t k = 0; k <= arrays; k++)
        shapes[k] = start[k]->shape;
    const Shape *state = shape_tuple(b->arena, 1 + arrays, shapes);
    Comp        *callees[] = {make_body(l, b, state, rows), make_condition(b, state, to)};
    Inst        *init = inst_new(l->comp, l->before, OP_TUPLE, state, 1 + arrays, start, NULL);
    Inst        *loop = inst_new(l->comp, l->before, OP_WHILE, state, 1, &init, NULL);
    inst_set_callees(loop, 2, callees);
    loop->meta = b->fusion->meta;
    loop->loc = b->fusion->loc;
    Inst *out = inst_new(l->comp, l->before, OP_GET_TUPLE_ELEMENT, shapes[1], 1, &loop, NULL);
    inst_set_int(out, ATTR_INDEX, 1);
    return out;
}

/* The part of x with keys of the block, which are its dimension d. */
static Inst *first_keys(Level *l, const Blocks *b, Inst *x, int32_t d)
{
    int32_t at[DIMS];
    Inst   *start[DIMS] = {NULL};
    for (int32_t k = 0; k < DIMS; k++)
        at[k] = -1;
    at[b->causal.key] = d;
    return d < 0 ? x : take(l, b, x, block_shape(b, x->shape, at), at, start);
}

/* The dimension of v that is the keys. */
static int32_t keys_of_v(const Blocks *b)
{
    const AttentionPart *w = &b->a.parts[b->a.n - 1];
    bool                 rhs = b->a.side == 1;
    Ints                 of = inst_ints(b->a.out, rhs ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
    Ints                 other = inst_ints(b->a.out, rhs ? ATTR_LHS_CONTRACTING_DIMS : ATTR_RHS_CONTRACTING_DIMS);
    for (int32_t k = 0; k < of.n; k++)
        if (w->dim[of.v[k]] == b->causal.key)
            return (int32_t)other.v[k];
    return -1;
}

/* The keys that rows before block n see. */
static int64_t keys_seen(const Blocks *b, int64_t n)
{
    int64_t rows = b->a.scores->shape->dims[b->causal.row], keys = b->a.scores->shape->dims[b->causal.key];
    int64_t seen = (n * b->size[b->causal.row] < rows ? n * b->size[b->causal.row] : rows) + b->causal.below;
    return seen < keys ? seen : keys;
}

/* The first loops take the keys that their rows see, the last one all. */
static Inst *causal_loops(Level *around, Blocks *b)
{
    const int64_t n = b->count[b->causal.row], each = trips(b, true) / n, loops = n < MOST_LOOPS ? n : MOST_LOOPS, keys = b->size[b->causal.key];
    Level         l = *around;
    int64_t       from = 0;
    for (int64_t k = 1; k < loops && keys_seen(b, n * k / loops) < keys; k++) {
        int64_t to = n * k / loops;
        Level   some = l;
        Inst   *starts[] = {l.few, number(&l, from * each), number(&l, to * each)};
        b->size[b->causal.key] = keys_seen(b, to);
        some.lhs = first_keys(&l, b, l.lhs, b->a.lhs[b->causal.key]);
        some.rhs = first_keys(&l, b, l.rhs, b->a.rhs[b->causal.key]);
        some.v = first_keys(&l, b, l.v, keys_of_v(b));
        l.out = loop(&some, b, true, inst_new(l.comp, l.before, OP_SELECT, starts[1]->shape, 3, starts, NULL), to * each);
        from = to;
    }
    b->size[b->causal.key] = keys;
    Inst *starts[] = {l.few, number(&l, from * each), number(&l, 0)};
    return loop(&l, b, true, inst_new(l.comp, l.before, OP_SELECT, starts[1]->shape, 3, starts, NULL), n * each);
}

/* out with all blocks of this level: a loop, unless it has one trip. */
static Inst *level(Level *l, Blocks *b, bool rows)
{
    int64_t n = trips(b, rows);
    if (n == 1)
        return rows ? block(l, b) : level(l, b, true);
    return rows && l->few ? causal_loops(l, b) : loop(l, b, rows, number(l, 0), n);
}

/* ---- around it ---- */

static Inst *blank(const Blocks *b)
{
    const Shape *s = b->a.out->shape;
    Comp        *c = b->fusion->comp;
    Inst        *zero = inst_constant(c, b->fusion, literal_from_s64(s->type, 0), NULL), *x = inst_new(c, b->fusion, OP_BROADCAST, s, 1, &zero, NULL);
    inst_set_ints(x, ATTR_DIMENSIONS, (Ints){NULL, 0});
    return x;
}

/* Blocks along the rows are those of the outermost digit of a trip, and the first ones see fewer keys. */
static bool is_causal(Blocks *b)
{
    if (!causal_find(&b->a, &b->causal) || !b->causal.bounded || b->causal.row < b->a.n_batch || b->count[b->causal.row] < 2 || keys_seen(b, 1) >= b->size[b->causal.key])
        return false;
    for (int32_t d = b->a.n_batch; d < b->causal.row; d++)
        if (b->count[d] > 1)
            return false;
    return type_is_float(inst_operand(b->a.out, 1 - b->a.side)->shape->type);
}

static Inst *scalar(Comp *c, Inst *before, Type t, double v)
{
    return inst_constant(c, before, literal_from_f64(t, v), NULL);
}

/* The largest |element| of x; NaN when there is one. */
static Inst *largest(Blocks *b, Inst *x)
{
    const Shape *s = shape_scalar(b->arena, x->shape->type);
    Comp        *max = new_comp(b, "largest"), *c = new_comp(b, "largest_of");
    Inst        *two[] = {inst_parameter(max, NULL, 0, s, NULL), inst_parameter(max, NULL, 1, s, NULL)};
    max->root = inst_new(max, NULL, OP_MAXIMUM, s, 2, two, NULL);
    Inst   *p = inst_parameter(c, NULL, 0, x->shape, NULL);
    Inst   *of[] = {inst_new(c, NULL, OP_ABS, x->shape, 1, &p, NULL), scalar(c, NULL, s->type, 0)};
    int64_t all[DIMS];
    for (int32_t d = 0; d < x->shape->rank; d++)
        all[d] = d;
    c->root = inst_new(c, NULL, OP_REDUCE, s, 2, of, NULL);
    inst_set_ints(c->root, ATTR_DIMENSIONS, (Ints){all, x->shape->rank});
    inst_set_callees(c->root, 1, &max);
    return expand_fusion(b->fusion, FUSION_INPUT, c, 1, &x);
}

/* x as a number of type t. */
static Inst *as_type(Blocks *b, Inst *x, Type t)
{
    return x->shape->type == t ? x : inst_new(b->fusion->comp, b->fusion, OP_CONVERT, shape_scalar(b->arena, t), 1, &x, NULL);
}

static Inst *less(Blocks *b, Inst *x, Inst *y)
{
    Inst *c = inst_new(b->fusion->comp, b->fusion, OP_COMPARE, shape_scalar(b->arena, TYPE_PRED), 2, (Inst *[]){x, y}, NULL);
    inst_set_word(c, ATTR_DIRECTION, CMP_LT);
    return c;
}

/* Whether values are finite, and the largest possible score, with what rounding adds to it, is below the limit. */
static Inst *few_keys(Level *l, Blocks *b)
{
    Inst *v = largest(b, l->v), *ok = less(b, v, scalar(l->comp, l->before, v->shape->type, INFINITY));
    if (b->causal.factor == 0)
        return ok;
    Ints   sums = inst_ints(b->a.scores, ATTR_LHS_CONTRACTING_DIMS);
    double terms = 2 * b->causal.factor;
    for (int32_t k = 0; k < sums.n; k++)
        terms *= (double)l->lhs->shape->dims[sums.v[k]];
    Type  t = l->lhs->shape->type == TYPE_F64 || l->rhs->shape->type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
    Inst *most = binary(l, OP_MULTIPLY, as_type(b, largest(b, l->lhs), t), as_type(b, largest(b, l->rhs), t));
    Inst *few = less(b, binary(l, OP_MULTIPLY, most, scalar(l->comp, l->before, t, terms)), scalar(l->comp, l->before, t, b->causal.limit));
    return inst_new(l->comp, l->before, OP_AND, few->shape, 2, (Inst *[]){few, ok}, NULL);
}

static Blocks blocks_of(Inst *i)
{
    Blocks b = {.fusion = i, .body = inst_callee(i, 0), .arena = i->comp->module->arena};
    find(i, &b.a);
    return b;
}

/* The call's result, a fusion of its own, with what it sums beside each other, as rows of sums are made. */
static void lay_columns_together(const Blocks *b, Inst *out, const AttentionCall *call)
{
    const Shape *s = out->shape;
    Comp        *c = inst_callee(out, 0);
    Ints         order = ints_make(b->arena, s->rank);
    int32_t      at = 0, column = -1;
    bool         of_rows[DIMS] = {false};
    for (int32_t d = 0; d < b->a.scores->shape->rank; d++)
        if (b->a.result[d] >= 0)
            of_rows[b->a.result[d]] = true;
    for (int32_t d = 0; d < s->rank; d++)
        column = !of_rows[d] && s->dims[d] != 1 ? d : column;
    if (call->d.o_col == 1 || column < 0)
        return;
    *ints_at(order, at++) = column;
    for (int32_t d = s->rank; d-- > 0;)
        if (d != column)
            *ints_at(order, at++) = d;
    out->shape = shape_with_layout(b->arena, s, layout_from_order(b->arena, order));
    c->root = inst_new(c, NULL, OP_COPY, out->shape, 1, (Inst *[]){c->root}, NULL);
}

/* A call of the runtime with what its operands are made of in front of it, and what is made of the result behind. */
static void expand_call(Inst *i)
{
    AttentionCall now;
    for (int32_t k = 0; k < 4; k++) {
        attention_call(i, NULL, &now);
        if (k >= now.n || now.of[k]->op == OP_PARAMETER)
            continue;
        i = output_replace(i, 1, &now.of[k], (Inst *[]){ output_outside(i, now.of[k]) });
        inst_set_word(i, ATTR_FUSION_KIND, FUSION_CUSTOM);
    }
    if (attention_call(i, NULL, &now) && !now.alone) {
        Blocks b = blocks_of(i);
        Inst  *out = output_outside(i, b.a.out);
        inst_set_word(out, ATTR_FUSION_KIND, FUSION_CUSTOM);
        lay_columns_together(&b, out, &now);
        output_replace(i, 1, &b.a.out, &out);
    }
}

void expand_attention(Inst *i)
{
    Blocks        b = blocks_of(i);
    Level         l = {.comp = i->comp, .before = i};
    AttentionCall c;
    if (attention_call(i, NULL, &c)) {
        expand_call(i);
        return;
    }
    cut(&b);
    find_needed(&b);
    l.lhs = output_outside(i, inst_operand(b.a.scores, 0));
    l.rhs = output_outside(i, inst_operand(b.a.scores, 1));
    l.v = output_outside(i, inst_operand(b.a.out, 1 - b.a.side));
    l.params = ARENA_ARRAY(b.arena, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        l.params[k] = map_has(&b.needed, comp_param(b.body, k)) ? inst_operand(i, k) : NULL;
    if (trips(&b, false) * trips(&b, true) > 1)
        l.out = blank(&b);
    if (is_causal(&b))
        l.few = few_keys(&l, &b);
    Inst *out = level(&l, &b, false);
    if (b.a.out == b.body->root) {
        inst_replace(i, out);
        inst_delete(i);
    } else
        output_replace(i, 1, &b.a.out, &out);
}
