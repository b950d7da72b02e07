/* Compiling a loop. Instructions become values (a place, a part of a place, a tuple of values) and steps; when all steps are there, updates are done
 * in place where nobody reads the old array any more, and only then do steps learn addresses. NULL everywhere: the engine runs the loop. */
#include "eval/loop.h"

#include <string.h>

#define SMALL_BYTES (4 << 10)   /* of a value that a trip writes as a whole */
#define STATE_BYTES (64 << 10)  /* of an array of the state that no trip copies */
#define MOST_BYTES  (16 << 20)  /* of all loops of an evaluation, tables included */
#define MOST_INSTS  1000
#define MOST_LEAVES 200
#define MOST_DEPTH  64

/* Of a tuple that is made from values: tuples of tuples may have more leaves than anyone can count. */
static int64_t leaf_count(const Value *v)
{
    int64_t n = v->elems ? 0 : 1;
    for (int32_t k = 0; k < v->n && n <= MOST_LEAVES; k++)
        n += leaf_count(v->elems[k]);
    return n;
}

typedef struct Compiler {
    Eval *e;
    Map   values; /* Inst -> Value. A computation that is called twice is compiled twice, each time with its own values. */
    int   depth, insts;
    Values made;  /* all that have a place, in the order of their making */
} Compiler;

/* ---- places ---- */

/* Counts bytes of a loop; false when there are too many. */
static bool room(Compiler *c, int64_t bytes)
{
    c->e->loop_bytes += bytes;
    return c->e->loop_bytes <= MOST_BYTES;
}

static Value *array_value(Compiler *c, const Shape *s, Place *p, int64_t offset)
{
    Value *v = ARENA_NEW(c->e->arena, Value);
    *v = (Value){.place = p, .offset = offset, .shape = s};
    vec_push(c->e->arena, &c->made, v);
    return v;
}

/* A value of shape s that b writes, with places of its own, of at most `most` bytes each. */
static Value *new_value(Compiler *c, const LoopBlock *b, const Shape *s, int64_t most)
{
    if (shape_is_tuple(s)) {
        Value *v = ARENA_NEW(c->e->arena, Value);
        *v = (Value){.shape = s, .n = s->n_elems, .elems = ARENA_ARRAY(c->e->arena, Value *, s->n_elems)};
        for (int32_t k = 0; k < s->n_elems; k++)
            if (!(v->elems[k] = new_value(c, b, s->elems[k], most)))
                return NULL;
        return v;
    }
    int64_t bytes = shape_is_array(s) ? shape_bytes(s) : -1;
    if (bytes < 0 || bytes > most || s->rank > WALK_RANK || !room(c, bytes + (int64_t)sizeof(Value)))
        return NULL;
    Place *p = ARENA_NEW(c->e->arena, Place);
    *p = (Place){.bytes = bytes, .home = b};
    return array_value(c, s, p, 0);
}

static Place *memory_of(Place *p)
{
    while (p->over)
        p = p->over;
    return p;
}

static char *address(Compiler *c, const Value *v)
{
    Place *p = memory_of(v->place);
    if (!p->at)
        p->at = arena_array(c->e->arena, (p->bytes + 15) / 16, 16);
    return p->at + v->offset;
}

static void set_literal(Compiler *c, Value *v)
{
    if (!v->literal)
        v->literal = (Literal *)literal_keep(c->e->arena, literal_borrow(v->shape->type, v->shape->rank, v->shape->dims, address(c, v)));
}

static void leaves(Compiler *c, Value *v, Values *all)
{
    for (int32_t k = 0; k < v->n; k++)
        leaves(c, v->elems[k], all);
    if (!v->elems)
        vec_push(c->e->arena, all, v);
}

static bool is_like(const Value *v, const Shape *s)
{
    if (v->elems || shape_is_tuple(s)) {
        bool like = v->elems && shape_is_tuple(s) && v->n == s->n_elems;
        for (int32_t k = 0; like && k < v->n; k++)
            like = is_like(v->elems[k], s->elems[k]);
        return like;
    }
    return v->shape->type == s->type && shape_same_dims(v->shape, s);
}

/* ---- steps ---- */

static bool is_constant(const Value *v)
{
    for (int32_t k = 0; k < v->n; k++)
        if (!is_constant(v->elems[k]))
            return false;
    return v->elems || !v->place->home;
}

static LoopStep new_step(Compiler *c, LoopStepKind kind, const Inst *i)
{
    LoopStep s = {.kind = kind, .inst = i, .n_x = i->n_operands, .x = ARENA_ARRAY(c->e->arena, Value *, i->n_operands)};
    for (int32_t k = 0; k < i->n_operands; k++)
        s.x[k] = map_get(&c->values, inst_operand(i, k));
    return s;
}

static void become_constant(Value *v)
{
    for (int32_t k = 0; k < v->n; k++)
        become_constant(v->elems[k]);
    if (!v->elems)
        v->place->home = NULL;
}

/* What a step needs to run: addresses. */
static void link_step(Compiler *c, LoopStep *s);

/* A step of b with a result of its own; done at once when all it reads is known. */
static Value *add_step(Compiler *c, LoopBlock *b, LoopStep s)
{
    s.to = new_value(c, b, s.inst->shape, s.kind == LOOP_UPDATE ? STATE_BYTES : SMALL_BYTES);
    if (!s.to)
        return NULL;
    bool constant = s.kind < LOOP_HANDLER || s.inst->op == OP_IOTA;
    for (int32_t k = 0; k < s.n_x && constant; k++)
        constant = is_constant(s.x[k]);
    if (!constant) {
        vec_push(c->e->arena, &b->steps, s);
        return s.to;
    }
    LoopBlock once = {0};
    vec_push(c->e->arena, &once.steps, s);
    link_step(c, &once.steps.v[0]);
    loop_run_block(c->e, &once);
    become_constant(s.to);
    return s.to;
}

static Value *kernel(Compiler *c, LoopBlock *b, const Inst *i, const Arith *k)
{
    LoopStep s = new_step(c, LOOP_KERNEL, i);
    s.kernel = arena_copy(c->e->arena, k, sizeof *k);
    s.direct = arith_is_direct(k);
    s.n = shape_count(i->shape);
    return add_step(c, b, s);
}

/* ---- movement ---- */

#define FROM(operand, element) ((int64_t)(operand) << 32 | (element))

/* Where each element of i's result comes from: its handler is run on operands whose values say where they stand. */
static int64_t *sources(Compiler *c, const Inst *i, int64_t n)
{
    Eval    *e = c->e;
    Inst     numbers = *i;
    Literal **x = ARENA_ARRAY(e->arena, Literal *, i->n_operands);
    numbers.shape = shape_with_type(e->arena, i->shape, TYPE_S64);
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Shape *s = inst_operand(i, k)->shape;
        x[k] = eval_new(e, i, TYPE_S64, s->rank, s->dims);
        for (int64_t j = 0; j < x[k]->count; j++)
            ((int64_t *)x[k]->data)[j] = FROM(k, j);
    }
    Literal *r = eval_handlers[i->op](e, &numbers, x);
    int64_t *from = room(c, n * 16) ? arena_copy(e->arena, r->data, (size_t)(n * 8)) : NULL;
    for (int32_t k = 0; k < i->n_operands; k++)
        eval_drop(e, x[k]);
    eval_drop(e, r);
    return from;
}

static Value *movement(Compiler *c, LoopBlock *b, const Inst *i)
{
    LoopStep s = new_step(c, LOOP_MOVE, i);
    int64_t  bytes = shape_bytes(i->shape);
    if (bytes < 0 || bytes > STATE_BYTES || i->shape->rank > WALK_RANK)
        return NULL;
    s.n = shape_count(i->shape);
    s.bytes = type_bytes(i->shape->type);
    for (int32_t k = 0; k < s.n_x; k++)
        if (s.x[k]->elems || s.x[k]->shape->type != i->shape->type)
            return NULL;
    s.where = sources(c, i, s.n);
    if (!s.where || s.n == 0)
        return NULL;
    bool part = true;
    for (int64_t j = 1; j < s.n && part; j++)
        part = s.where[j] == s.where[0] + j;
    if (!part)
        return add_step(c, b, s);
    const Value *of = s.x[s.where[0] >> 32];
    return array_value(c, i->shape, of->place, of->offset + (s.where[0] & 0xffffffff) * s.bytes);
}

/* Where the elements of a window of these dims lie in an array: elements from the window's first. */
static int64_t *window_elements(Compiler *c, const Shape *whole, const Shape *window)
{
    int64_t n = shape_count(window), *where = room(c, n * 8) ? ARENA_ARRAY(c->e->arena, int64_t, n) : NULL, j = 0;
    if (!where || n == 0)
        return NULL;
    Odometer o;
    walk_start(&o, window->rank, window->dims);
    walk_strides(whole->rank, whole->dims, o.stride[0]);
    do {
        where[j++] = o.at[0];
    } while (walk_next(&o));
    return where;
}

static Value *dynamic_window(Compiler *c, LoopBlock *b, const Inst *i)
{
    bool     update = i->op == OP_DYNAMIC_UPDATE_SLICE;
    LoopStep s = new_step(c, update ? LOOP_UPDATE : LOOP_SLICE, i);
    const Shape *whole = s.x[0]->shape, *window = update ? s.x[1]->shape : i->shape;
    int32_t  first = update ? 2 : 1;
    if (whole->rank == 0)
        return s.x[update];
    if (window->type != whole->type || i->shape->type != whole->type || s.n_x != first + whole->rank)
        return NULL;
    for (int32_t k = first; k < s.n_x; k++)
        if (!shape_is_scalar(s.x[k]->shape))
            return NULL; /* the old spelling, a vector */
    s.bytes = type_bytes(whole->type);
    s.n = shape_count(window);
    s.where = window_elements(c, whole, window);
    return s.where ? add_step(c, b, s) : NULL;
}

/* ---- loops, branches, calls ---- */

static Value *compile_comp(Compiler *c, LoopBlock *b, const Comp *comp, Value *const *args);

/* Whether the body hands on leaf k of a flat state as it was. */
static bool hands_on(const Inst *i, int32_t k)
{
    const Inst *root = while_body(i)->root, *leaf = root->op == OP_TUPLE ? inst_operand(root, k) : NULL;
    return leaf && leaf->op == OP_GET_TUPLE_ELEMENT && inst_int(leaf, ATTR_INDEX, 0) == k && inst_operand(leaf, 0)->op == OP_PARAMETER;
}

/* The state's value: of an inner loop, what the body hands on is the value that it starts with. */
static Value *state_value(Compiler *c, Loop *l, const Value *first)
{
    Value *v = new_value(c, &l->body, l->inst->shape, STATE_BYTES);
    for (int32_t k = 0; v && first && k < v->n; k++)
        if (!v->elems[k]->elems && hands_on(l->inst, k))
            v->elems[k] = first->elems[k];
    return v;
}

static Loop *compile_loop(Compiler *c, const Inst *i, Value *first)
{
    Loop *l = ARENA_NEW(c->e->arena, Loop);
    l->inst = i;
    l->tree = !first || is_like(first, i->shape) ? state_value(c, l, first) : NULL;
    if (!l->tree)
        return NULL;
    leaves(c, l->tree, &l->state);
    if (first)
        leaves(c, first, &l->first);
    if (l->state.n > MOST_LEAVES)
        return NULL;
    Value *more = compile_comp(c, &l->test, while_condition(i), &l->tree);
    if (!more || more->elems)
        return NULL;
    vec_push(c->e->arena, &l->test.out, more);
    Value *next = compile_comp(c, &l->body, while_body(i), &l->tree);
    if (!next || !is_like(next, i->shape))
        return NULL;
    leaves(c, next, &l->body.out);
    return l;
}

static Value *inner_loop(Compiler *c, LoopBlock *b, const Inst *i)
{
    LoopStep s = new_step(c, LOOP_WHILE, i);
    s.loop = compile_loop(c, i, s.x[0]);
    if (!s.loop)
        return NULL;
    vec_push(c->e->arena, &b->steps, s);
    return s.loop->tree;
}

static Value *branches(Compiler *c, LoopBlock *b, const Inst *i)
{
    LoopStep s = new_step(c, LOOP_BRANCH, i);
    Values   read = {0};
    s.branch = ARENA_ARRAY(c->e->arena, LoopBlock, i->n_callees);
    s.to = new_value(c, b, i->shape, SMALL_BYTES);
    if (!s.to || s.x[0]->elems)
        return NULL;
    vec_push(c->e->arena, &read, s.x[0]);
    leaves(c, s.to, &read);
    for (int32_t k = 0; k < i->n_callees; k++) {
        Value *v = compile_comp(c, &s.branch[k], inst_callee(i, k), &s.x[1 + k]);
        if (!v || !is_like(v, i->shape))
            return NULL;
        leaves(c, v, &s.branch[k].out);
    }
    s.x = read.v;
    s.n_x = read.n;
    vec_push(c->e->arena, &b->steps, s);
    return s.to;
}

static Value *tuple_value(Compiler *c, const Inst *i)
{
    Value *v = ARENA_NEW(c->e->arena, Value);
    *v = (Value){.shape = i->shape, .n = i->n_operands, .elems = ARENA_ARRAY(c->e->arena, Value *, i->n_operands)};
    for (int32_t k = 0; k < i->n_operands; k++)
        v->elems[k] = map_get(&c->values, inst_operand(i, k));
    return leaf_count(v) <= MOST_LEAVES ? v : NULL;
}

static Value *constant(Compiler *c, const Literal *l)
{
    if (literal_has_elided(l) || l->type == TYPE_TUPLE)
        return NULL;
    Value *v = new_value(c, NULL, literal_shape(c->e->arena, l), STATE_BYTES);
    if (v && l->count > 0)
        memcpy(address(c, v), l->data, (size_t)literal_bytes(l));
    return v;
}

/* ---- instructions ---- */

EvalFn eval_batch_norm, eval_bitcast, eval_bitcast_convert, eval_broadcast, eval_cholesky, eval_concatenate, eval_convolution, eval_dot, eval_fft,
    eval_gather, eval_identity, eval_iota, eval_map, eval_pad, eval_reduce, eval_reduce_window, eval_reshape, eval_reverse, eval_scatter,
    eval_select, eval_select_and_scatter, eval_slice, eval_sort, eval_topk, eval_transpose, eval_triangular_solve;

static bool is_any(EvalFn *fn, int32_t n, EvalFn *const *list)
{
    for (int32_t k = 0; k < n; k++)
        if (fn == list[k])
            return true;
    return false;
}

static EvalFn *const movements[] = {eval_broadcast, eval_concatenate, eval_pad, eval_reshape, eval_reverse, eval_slice, eval_transpose};

/* What reads nothing but its operands. */
static EvalFn *const functions[] = {eval_batch_norm, eval_bitcast, eval_bitcast_convert, eval_cholesky, eval_convolution, eval_dot, eval_fft,
                                    eval_gather, eval_iota, eval_map, eval_reduce, eval_reduce_window, eval_scatter, eval_select,
                                    eval_select_and_scatter, eval_sort, eval_topk, eval_triangular_solve};

static Value *operation(Compiler *c, LoopBlock *b, const Inst *i)
{
    EvalFn *fn = eval_handlers[i->op];
    Value  *first = i->n_operands > 0 ? map_get(&c->values, inst_operand(i, 0)) : NULL;
    Arith   k;
    if (fn == eval_identity && is_like(first, i->shape))
        return first;
    for (int32_t j = 0; j < i->n_operands; j++)
        if (!shape_is_array(inst_operand(i, j)->shape))
            return NULL;
    if (is_any(fn, sizeof movements / sizeof movements[0], movements))
        return movement(c, b, i);
    if (elementwise_kernel(i, &k))
        return kernel(c, b, i, &k);
    return is_any(fn, sizeof functions / sizeof functions[0], functions) ? add_step(c, b, new_step(c, LOOP_HANDLER, i)) : NULL;
}

static Value *call(Compiler *c, LoopBlock *b, const Inst *i)
{
    LoopStep s = new_step(c, LOOP_HANDLER, i); /* for its operands */
    return compile_comp(c, b, inst_callee(i, 0), s.x);
}

static Value *compile_inst(Compiler *c, LoopBlock *b, const Inst *i, Value *const *args)
{
    if (i->n_operands > MOST_LEAVES || shape_is_dynamic(i->shape) || inst_has_effect(i))
        return NULL;
    switch (i->op) {
    case OP_PARAMETER: return args[i->param];
    case OP_TUPLE: return tuple_value(c, i);
    case OP_GET_TUPLE_ELEMENT: return ((Value *)map_get(&c->values, inst_operand(i, 0)))->elems[inst_int(i, ATTR_INDEX, 0)];
    case OP_CALL: case OP_FUSION: return call(c, b, i);
    case OP_WHILE: return inner_loop(c, b, i);
    case OP_CONDITIONAL: return branches(c, b, i);
    case OP_CONSTANT: return constant(c, i->literal);
    case OP_DYNAMIC_SLICE: case OP_DYNAMIC_UPDATE_SLICE: return dynamic_window(c, b, i);
    default: return operation(c, b, i);
    }
}

/* The value of a call. What nobody reads and has no effect is left out. */
static Value *compile_comp(Compiler *c, LoopBlock *b, const Comp *comp, Value *const *args)
{
    if (c->depth == MOST_DEPTH)
        return NULL;
    c->depth++;
    bool ok = true;
    for (const Inst *i = comp->first; i && ok; i = i->next) {
        if (!i->uses && i != comp->root && !inst_has_effect(i))
            continue;
        Value *v = c->insts++ < MOST_INSTS && room(c, (int64_t)sizeof(LoopStep)) ? compile_inst(c, b, i, args) : NULL;
        map_put(&c->values, i, v);
        ok = v && is_like(v, i->shape);
    }
    c->depth--;
    return ok ? map_get(&c->values, comp->root) : NULL;
}

/* ---- updates in place ---- */

static bool value_reads(const Value *v, const Place *p)
{
    for (int32_t k = 0; k < v->n; k++)
        if (value_reads(v->elems[k], p))
            return true;
    return !v->elems && v->place == p;
}

static bool any_reads(const Values *all, const Place *p)
{
    for (int32_t k = 0; k < all->n; k++)
        if (value_reads(all->v[k], p))
            return true;
    return false;
}

static bool block_reads(const LoopBlock *b, int32_t from, const Place *p);

static bool step_reads(const LoopStep *s, const Place *p)
{
    for (int32_t k = 0; k < s->n_x; k++)
        if (value_reads(s->x[k], p))
            return true;
    if (s->kind == LOOP_WHILE)
        return block_reads(&s->loop->test, 0, p) || block_reads(&s->loop->body, 0, p);
    for (int32_t k = 0; s->kind == LOOP_BRANCH && k < s->inst->n_callees; k++)
        if (block_reads(&s->branch[k], 0, p))
            return true;
    return false;
}

/* Whether steps from `from` on, or who reads what comes out of b, read p. */
static bool block_reads(const LoopBlock *b, int32_t from, const Place *p)
{
    for (int32_t k = from; k < b->steps.n; k++)
        if (step_reads(&b->steps.v[k], p))
            return true;
    return any_reads(&b->out, p);
}

/* The array that b itself has written, or the state's whose body b is, and that nobody reads after the update, takes it. */
static void update_in_place(LoopBlock *b)
{
    for (int32_t k = 0; k < b->steps.n; k++) {
        LoopStep *s = &b->steps.v[k];
        if (s->kind == LOOP_WHILE) {
            update_in_place(&s->loop->test);
            update_in_place(&s->loop->body);
        }
        for (int32_t j = 0; s->kind == LOOP_BRANCH && j < s->inst->n_callees; j++)
            update_in_place(&s->branch[j]);
        if (s->kind != LOOP_UPDATE)
            continue;
        Value *whole = s->x[0];
        bool   other = false; /* operand that lies in the same place */
        for (int32_t j = 1; j < s->n_x; j++)
            other = other || value_reads(s->x[j], whole->place);
        if (!other && whole->place->home == b && whole->place->bytes == s->to->place->bytes && !block_reads(b, k + 1, whole->place))
            s->to->place->over = whole->place;
    }
}

/* ---- addresses ---- */

static void link_value(Compiler *c, Value *v)
{
    for (int32_t k = 0; k < v->n; k++)
        link_value(c, v->elems[k]);
    if (!v->elems)
        set_literal(c, v);
}

static void link_step(Compiler *c, LoopStep *s)
{
    for (int32_t k = 0; k < s->n_x; k++)
        link_value(c, s->x[k]);
    for (int32_t k = 0; k < s->n_x && k < ARITH_OPERANDS; k++)
        s->from[k] = s->x[k]->elems ? NULL : s->x[k]->literal->data;
    if (s->to)
        link_value(c, s->to);
    if (s->to && !s->to->elems)
        s->out = s->to->literal->data;
    if (s->kind != LOOP_MOVE)
        return;
    s->source = ARENA_ARRAY(c->e->arena, const char *, s->n);
    for (int64_t j = 0; j < s->n; j++)
        s->source[j] = (const char *)s->x[s->where[j] >> 32]->literal->data + (s->where[j] & 0xffffffff) * s->bytes;
}

static bool link_block(Compiler *c, LoopBlock *b);

static bool is_state(const Loop *l, const Value *v)
{
    for (int32_t k = 0; k < l->state.n; k++)
        if (memory_of(l->state.v[k]->place) == memory_of(v->place))
            return true;
    return false;
}

/* What has to be copied before the first trip, or between two. */
static bool link_copies(Compiler *c, Loop *l)
{
    for (int32_t k = 0; k < l->state.n; k++) {
        Value *to = l->state.v[k], *next = l->body.out.v[k], *first = l->first.n > 0 ? l->first.v[k] : to;
        int64_t bytes = literal_bytes(to->literal);
        bool    starts = first->literal->data != to->literal->data, steps = next->literal->data != to->literal->data;
        if ((starts || steps) && bytes > SMALL_BYTES)
            return false;
        if (starts)
            vec_push(c->e->arena, &l->starts, ((LoopCopy){to->literal->data, first->literal->data, bytes, NULL}));
        if (steps)
            vec_push(c->e->arena, &l->nexts, ((LoopCopy){to->literal->data, next->literal->data, bytes,
                                                         is_state(l, next) ? arena_array(c->e->arena, bytes / 16 + 1, 16) : NULL}));
    }
    return true;
}

static bool link_loop(Compiler *c, Loop *l)
{
    Values *const all[] = {&l->state, &l->first, &l->test.out, &l->body.out};
    for (int a = 0; a < 4; a++)
        for (int32_t k = 0; k < all[a]->n; k++)
            link_value(c, all[a]->v[k]);
    l->more = l->test.out.v[0]->literal->data;
    return link_copies(c, l) && link_block(c, &l->test) && link_block(c, &l->body);
}

static bool link_block(Compiler *c, LoopBlock *b)
{
    for (int32_t k = 0; k < b->out.n; k++)
        link_value(c, b->out.v[k]);
    for (int32_t k = 0; k < b->steps.n; k++) {
        LoopStep *s = &b->steps.v[k];
        link_step(c, s);
        b->work += s->n;
        if (s->kind == LOOP_UPDATE && s->out != s->from[0] && s->to->place->bytes > SMALL_BYTES)
            return false;
        if (s->kind == LOOP_WHILE && !link_loop(c, s->loop))
            return false;
        for (int32_t j = 0; s->kind == LOOP_BRANCH && j < s->inst->n_callees; j++)
            if (!link_block(c, &s->branch[j]))
                return false;
    }
    return true;
}

static Loop *compile(Eval *e, const Inst *i)
{
    Compiler c = {.e = e, .values = map_new(e->arena)};
    Loop    *l = shape_is_dynamic(i->shape) ? NULL : compile_loop(&c, i, NULL);
    if (!l)
        return NULL;
    update_in_place(&l->test);
    update_in_place(&l->body);
    return link_loop(&c, l) ? l : NULL;
}

Loop *loop_get(Eval *e, const Inst *i)
{
    if (map_has(&e->loops, i))
        return map_get(&e->loops, i);
    const EvalOptions *options = e->options;
    EvalOptions no_limit = *options; /* what is run here is small, and no part of the run */
    int64_t work = e->work, limit = e->limit;
    no_limit.work_limit = 0;
    e->options = &no_limit;
    e->limit = INT64_MAX;
    Loop *l = compile(e, i);
    e->options = options;
    e->work = work;
    e->limit = limit;
    map_put(&e->loops, i, l);
    return l;
}
