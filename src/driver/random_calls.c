/* Random instructions that call computations (reductions, windows, scatter, sort, map, calls, loops, branches, fusions), and the few others
 * that have a tuple as their result. */
#include "driver/random_int.h"

#include <math.h>
#include <string.h>

static bool done(Body *b, Value *v)
{
    body_keep(b, v);
    return true;
}

static bool is_array(const Ty *t)
{
    return t->type != TYPE_TUPLE;
}

static bool is_foldable(const Ty *t)
{
    return is_array(t) && t->type != TYPE_F8E8M0FNU;
}

static bool has_order(const Ty *t)
{
    return is_foldable(t) && !type_is_complex(t->type) && t->facts.acc != ROUGH && !t->facts.nan;
}

/* What a total order sees alike everywhere. */
static bool has_total_order(const Ty *t)
{
    return is_array(t) && !type_is_complex(t->type) && t->facts.acc != ROUGH && !t->facts.vague && t->rank > 0;
}

/* ---- computations of one instruction ---- */

typedef struct Fold {
    const char *op; /* "": the second argument itself */
    bool        sums;
} Fold;

/* Associative ones, so that any order will do. */
static Fold fold_random(Gen *g, Type t)
{
    static const Fold ints[] = { { "add", true }, { "maximum", false }, { "minimum", false }, { "and", false },
                                 { "or", false }, { "xor", false },     { "multiply", false } };
    if (t == TYPE_PRED)
        return ints[between(g, 1, 6)];
    if (type_is_int(t))
        return ints[below(g, 7)];
    return ints[type_is_complex(t) ? 0 : below(g, 3)];
}

static Facts fold_facts(Type t, Fold f, Facts x, Facts init, double n)
{
    Facts all = facts_join(x, init);
    if (f.sums)
        return facts_sum(t, all, n + 1);
    if (!type_is_float(t))
        return facts_int(t);
    all.vague = true;
    return all;
}

static const char *fold_comp(Gen *g, Type t, Fold f)
{
    Body      b;
    const Ty *ty = ty_array(g, t, 0, NULL, facts_int(TYPE_PRED));
    body_start(&b, g, SCOPE_SCALAR, 1);
    Value *x = body_param(&b, 0, ty), *y = body_param(&b, 1, ty);
    return body_finish(&b, *f.op ? chance(g, 4) ? body_emit(&b, ty, "%s(%s, %s)", f.op, y->name, x->name) : body_emit(&b, ty, "%s(%s, %s)", f.op, x->name, y->name) : y);
}

/* The parameters are those of pairs: number 0 with number `other`. */
static const char *compare_comp(Gen *g, int32_t n, const Type *types, const char *tail)
{
    Body   b;
    Value *v[4];
    body_start(&b, g, SCOPE_SCALAR, 1);
    for (int32_t k = 0; k < n; k++)
        v[k] = body_param(&b, k, ty_array(g, types[k], 0, NULL, facts_int(TYPE_PRED)));
    return body_finish(&b, body_emit(&b, ty_array(g, TYPE_PRED, 0, NULL, facts_int(TYPE_PRED)), "compare(%s, %s), direction=%s", v[0]->name, v[1]->name, tail));
}

/* ---- reductions ---- */

/* A subset of the dimensions goes, the others stay. */
typedef struct Cut {
    int64_t gone[MAX_RANK], dims[MAX_RANK], count; /* count: of the elements that become one */
    int32_t n_gone, rank;
} Cut;

static Cut cut_random(Gen *g, const Ty *t)
{
    Cut c = { .count = 1 };
    for (int32_t k = 0; k < t->rank; k++)
        if (chance(g, 2)) {
            c.gone[c.n_gone++] = k;
            c.count *= t->dims[k];
        } else
            c.dims[c.rank++] = t->dims[k];
    return c;
}

static bool reduce(Body *b)
{
    Value *x = any_of(b, is_foldable);
    if (!x)
        return false;
    Type   t = x->ty->type;
    Cut    c = cut_random(b->g, x->ty);
    Fold   f = fold_random(b->g, t);
    Value *init = want(b, t, 0, NULL);
    Facts  facts = fold_facts(t, f, x->ty->facts, init->ty->facts, (double)c.count);
    return done(b, body_emit(b, ty_array(b->g, t, c.rank, c.dims, facts), "reduce(%s, %s), %s, to_apply=%s", x->name, init->name,
                        ints_text(b->g, "dimensions=", c.n_gone, c.gone), fold_comp(b->g, t, f)));
}

/* (value, place): the larger value, of equal ones the smaller place. */
static const char *argmax_comp(Gen *g, Type t)
{
    Body      b;
    Facts     f = facts_int(TYPE_S32);
    const Ty *value = ty_array(g, t, 0, NULL, f), *place = ty_array(g, TYPE_S32, 0, NULL, f), *pred = ty_array(g, TYPE_PRED, 0, NULL, f);
    body_start(&b, g, SCOPE_SCALAR, 1);
    Value *v = body_param(&b, 0, value), *i = body_param(&b, 1, place), *w = body_param(&b, 2, value), *j = body_param(&b, 3, place);
    Value *more = body_emit(&b, pred, "compare(%s, %s), direction=GT", v->name, w->name);
    Value *same = body_emit(&b, pred, "compare(%s, %s), direction=EQ", v->name, w->name);
    Value *first = body_emit(&b, pred, "compare(%s, %s), direction=LT", i->name, j->name);
    Value *tie = body_emit(&b, pred, "and(%s, %s)", same->name, first->name);
    Value *left = body_emit(&b, pred, "or(%s, %s)", more->name, tie->name);
    Value *out[2] = { body_emit(&b, value, "select(%s, %s, %s)", left->name, v->name, w->name), body_emit(&b, place, "select(%s, %s, %s)", left->name, i->name, j->name) };
    return body_finish(&b, tuple_of(&b, 2, out));
}

static bool reduce_pair(Body *b)
{
    Gen   *g = b->g;
    Value *x = any_of(b, has_order), *init = x ? want_exact(b, x->ty->type, 0, NULL) : NULL;
    if (!x || init->ty->facts.nan)
        return false;
    Type      t = x->ty->type;
    Cut       c = cut_random(g, x->ty);
    Value    *at = want(b, TYPE_S32, x->ty->rank, x->ty->dims), *none = constant_scalar(b, TYPE_S32, (double)between(g, 0, 9));
    Facts     f = facts_join(x->ty->facts, init->ty->facts);
    f.vague = true;
    const Ty *elems[2] = { ty_array(g, t, c.rank, c.dims, f), ty_array(g, TYPE_S32, c.rank, c.dims, facts_int(TYPE_S32)) };
    return done(b, body_emit(b, ty_tuple(g, 2, elems), "reduce(%s, %s, %s, %s), %s, to_apply=%s", x->name, at->name, init->name, none->name,
                        ints_text(g, "dimensions=", c.n_gone, c.gone), argmax_comp(g, t)));
}

/* ---- windows ---- */

typedef struct Windows {
    int64_t dims[MAX_RANK], count; /* of the result; elements in a window */
    char   *text;
} Windows;

static int64_t positions(int64_t d, int64_t size, int64_t stride, int64_t lo, int64_t hi, int64_t base, int64_t inner)
{
    int64_t padded = lo + (d > 0 ? (d - 1) * base + 1 : 0) + hi, reach = (size - 1) * inner + 1;
    return padded < reach ? 0 : (padded - reach) / stride + 1;
}

/* plain: without dilation, as select-and-scatter has them. False when the result would be too large. */
static bool windows_random(Gen *g, const Ty *t, bool plain, Windows *w)
{
    Buf     parts[5] = { { 0 } };
    int64_t total = 1;
    bool    base_dilated = !plain && chance(g, 4), inner_dilated = !plain && chance(g, 4);
    w->count = 1;
    for (int32_t k = 0; k < t->rank; k++) {
        int64_t size = between(g, 1, 3), stride = between(g, 1, 2), lo = between(g, 0, size - 1), hi = between(g, 0, size - 1);
        int64_t base = base_dilated ? between(g, 1, 2) : 1, inner = inner_dilated ? between(g, 1, 2) : 1;
        const char *x = k ? "x" : "";
        w->dims[k] = positions(t->dims[k], size, stride, lo, hi, base, inner);
        w->count *= size;
        total *= w->dims[k];
        buf_printf(&parts[0], "%s%lld", x, (long long)size);
        buf_printf(&parts[1], "%s%lld", x, (long long)stride);
        buf_printf(&parts[2], "%s%lld_%lld", x, (long long)lo, (long long)hi);
        buf_printf(&parts[3], "%s%lld", x, (long long)base);
        buf_printf(&parts[4], "%s%lld", x, (long long)inner);
    }
    for (int k = 0; k < 5; k++)
        buf_putc(&parts[k], '\0');
    w->text = arena_printf(g->a, "window={size=%s stride=%s pad=%s", parts[0].p, parts[1].p, parts[2].p);
    w->text = arena_printf(g->a, base_dilated ? "%s lhs_dilate=%s" : "%s", w->text, parts[3].p);
    w->text = arena_printf(g->a, inner_dilated ? "%s rhs_dilate=%s}" : "%s}", w->text, parts[4].p);
    for (int k = 0; k < 5; k++)
        buf_free(&parts[k]);
    return total <= MAX_COUNT;
}

static bool reduce_window(Body *b)
{
    Value  *x = any_of(b, is_foldable);
    Windows w;
    if (!x || x->ty->rank == 0 || x->ty->rank > 3 || !windows_random(b->g, x->ty, false, &w))
        return false;
    Type   t = x->ty->type;
    Fold   f = fold_random(b->g, t);
    Value *init = want(b, t, 0, NULL);
    Facts  facts = fold_facts(t, f, x->ty->facts, init->ty->facts, (double)w.count);
    return done(b, body_emit(b, ty_array(b->g, t, x->ty->rank, w.dims, facts), "reduce-window(%s, %s), %s, to_apply=%s", x->name, init->name, w.text,
                        fold_comp(b->g, t, f)));
}

static bool select_and_scatter(Body *b)
{
    Value  *x = any_of(b, has_order);
    Windows w;
    if (!x || x->ty->rank == 0 || x->ty->rank > 3 || !windows_random(b->g, x->ty, true, &w))
        return false;
    Type        t = x->ty->type;
    Fold        f = fold_random(b->g, t);
    Value      *source = want(b, t, x->ty->rank, w.dims), *init = want(b, t, 0, NULL);
    Facts       facts = fold_facts(t, f, source->ty->facts, init->ty->facts, (double)w.count);
    const char *select = compare_comp(b->g, 2, (const Type[]){ t, t }, chance(b->g, 2) ? "GE" : "LE");
    return done(b, body_emit(b, ty_as(b->g, x->ty, t, facts), "select-and-scatter(%s, %s, %s), %s, select=%s, scatter=%s", x->name, source->name, init->name,
                        w.text, select, fold_comp(b->g, t, f)));
}

/* ---- scatter, sort, top-k ---- */

/* indices [n, m]: each of the m mapped dimensions is inserted or part of the window. */
static bool scatter(Body *b)
{
    Gen    *g = b->g;
    Value  *x = any_of(b, is_foldable);
    int64_t map[MAX_RANK], inserted[MAX_RANK], window[MAX_RANK], dims[MAX_RANK + 1], index_dims[2];
    int32_t n_map = 0, n_inserted = 0, n_window = 0;
    if (!x || x->ty->rank == 0 || x->ty->rank >= MAX_RANK)
        return false;
    int64_t count = index_dims[0] = dims[0] = between(g, 1, 5);
    for (int32_t k = 0; k < x->ty->rank; k++) {
        bool mapped = chance(g, 2), gone = mapped && chance(g, 2);
        if (mapped)
            map[n_map++] = k;
        if (gone)
            inserted[n_inserted++] = k;
        else {
            dims[n_window + 1] = mapped && x->ty->dims[k] > 0 ? between(g, 1, x->ty->dims[k]) : x->ty->dims[k];
            count *= dims[n_window + 1];
            window[n_window] = n_window + 1;
            n_window++;
        }
    }
    index_dims[1] = n_map;
    if (n_map == 0 || count > MAX_COUNT)
        return false;
    Type   t = x->ty->type;
    Fold   f = chance(g, 3) ? (Fold){ "", false } : fold_random(g, t);
    Value *at = want_exact(b, chance(g, 3) ? TYPE_S64 : TYPE_S32, 2, index_dims), *u = want(b, t, n_window + 1, dims);
    Facts  facts = *f.op ? fold_facts(t, f, u->ty->facts, x->ty->facts, (double)index_dims[0]) : facts_join(x->ty->facts, u->ty->facts);
    return done(b, body_emit(b, ty_as(g, x->ty, t, facts), "scatter(%s, %s, %s), %s, %s, %s, index_vector_dim=1, to_apply=%s", x->name, at->name, u->name,
                        ints_text(g, "update_window_dims=", n_window, window), ints_text(g, "inserted_window_dims=", n_inserted, inserted),
                        ints_text(g, "scatter_dims_to_operand_dims=", n_map, map), fold_comp(g, t, f)));
}

static bool sort(Body *b)
{
    Gen        *g = b->g;
    Value      *x = any_of(b, has_total_order);
    const char *tail = chance(g, 2) ? "LT" : "GT";
    if (!x)
        return false;
    Type t = x->ty->type;
    int  k = (int)below(g, (size_t)x->ty->rank);
    if (type_is_float(t))
        tail = arena_printf(g->a, "%s, type=TOTALORDER", tail);
    if (chance(g, 2))
        return done(b, body_emit(b, ty_as(g, x->ty, t, x->ty->facts), "sort(%s), dimensions={%d}, to_apply=%s", x->name, k,
                            compare_comp(g, 2, (const Type[]){ t, t }, tail)));
    Type   u = type_random(g);
    Value *y = want(b, u, x->ty->rank, x->ty->dims);
    return done(b, body_emit(b, ty_tuple(g, 2, (const Ty *const[]){ x->ty, y->ty }), "sort(%s, %s), dimensions={%d}, is_stable=true, to_apply=%s", x->name,
                        y->name, k, compare_comp(g, 4, (const Type[]){ t, t, u, u }, tail)));
}

static bool topk(Body *b)
{
    Gen    *g = b->g;
    Value  *x = any_of(b, has_total_order);
    int64_t dims[MAX_RANK];
    if (!x || x->ty->dims[x->ty->rank - 1] == 0)
        return false;
    memcpy(dims, x->ty->dims, sizeof dims);
    int64_t  *last = &dims[x->ty->rank - 1];
    *last = between(g, 1, *last);
    const Ty *elems[2] = { ty_array(g, x->ty->type, x->ty->rank, dims, x->ty->facts), ty_array(g, TYPE_S32, x->ty->rank, dims, facts_int(TYPE_S32)) };
    return done(b, body_emit(b, ty_tuple(g, 2, elems), "topk(%s), k=%lld, largest=%s", x->name, (long long)*last, chance(g, 2) ? "true" : "false"));
}

static bool random_bits(Body *b)
{
    static const Type types[] = { TYPE_U32, TYPE_U64, TYPE_U8, TYPE_U16 };
    Gen              *g = b->g;
    Ints              dims = dims_random(g);
    Type              t = types[below(g, 4)];
    Value            *state = want_exact(b, TYPE_U64, 1, (const int64_t[]){ 2 });
    const Ty         *elems[2] = { ty_array(g, TYPE_U64, 1, (const int64_t[]){ 2 }, facts_int(TYPE_U64)), ty_array(g, t, dims.n, dims.v, facts_int(t)) };
    return done(b, body_emit(b, ty_tuple(g, 2, elems), "rng-bit-generator(%s), algorithm=%s", state->name, chance(g, 2) ? "rng_three_fry" : "rng_default"));
}

/* ---- calls ---- */

enum { DEEPEST = 3, MOST_ARGS = 4 };

static int32_t body_size(Gen *g)
{
    return (int32_t)between(g, 1, g->left < 48 ? 4 : 12);
}

/* root alone, or with the parameters that nobody uses beside it. */
static Value *used_root(Body *c, Value *root, int32_t n, Value *const *params)
{
    Value      *v[MOST_ARGS + 1] = { root };
    int32_t     count = 1;
    const char *kept = body_prune(c, root);
    for (int32_t k = 0; k < n; k++)
        if (params[k] != root && !is_used(kept, params[k]->name))
            v[count++] = params[k];
    return count > 1 ? tuple_of(c, count, v) : root;
}

/* A computation of these parameters. must: what it returns, NULL when that is open; *root becomes what it does. */
static const char *callee(Body *b, Scope scope, int32_t n, const Ty *const *params, const Ty *must, const Ty **root)
{
    Body   c;
    Value *values[MOST_ARGS];
    body_start(&c, b->g, scope, b->depth + 1);
    for (int32_t k = 0; k < n; k++)
        values[k] = body_param(&c, k, params[k]);
    body_fill(&c, body_size(b->g));
    Value *r = must ? want_ty(&c, must) : body_root(&c);
    if (scope == SCOPE_FUSION)
        r = used_root(&c, r, n, values);
    *root = r->ty;
    return body_finish(&c, r);
}

/* Random operands: "%a, %b". */
static char *arguments(Body *b, int32_t n, const Ty **types)
{
    Buf text = { 0 };
    for (int32_t k = 0; k < n; k++) {
        Value *v = chance(b->g, 6) && b->values.n ? b->values.v[below(b->g, (size_t)b->values.n)] : any_array(b);
        types[k] = v->ty;
        v->uses++;
        buf_printf(&text, "%s%s", k ? ", " : "", v->name);
    }
    char *s = arena_strndup(b->g->a, text.p ? text.p : "", text.n);
    buf_free(&text);
    return s;
}

static bool call(Body *b)
{
    const Ty *types[MOST_ARGS], *root;
    int32_t   n = (int32_t)below(b->g, MOST_ARGS + 1);
    if (b->depth >= DEEPEST)
        return false;
    char       *args = arguments(b, n, types);
    const char *name = callee(b, SCOPE_ANY, n, types, NULL, &root);
    Value      *v = body_emit(b, root, "call(%s), to_apply=%s", args, name);
    if (chance(b->g, 3)) /* the same computation twice */
        body_keep(b, body_emit(b, root, "call(%s), to_apply=%s", args, name));
    return done(b, v);
}

static bool fusion(Body *b)
{
    const Ty *types[MOST_ARGS], *root;
    int32_t   n = (int32_t)between(b->g, 1, MOST_ARGS);
    if (b->depth >= DEEPEST)
        return false;
    char *args = arguments(b, n, types);
    for (int32_t k = 0; k < n; k++)
        if (!is_array(types[k]))
            return false;
    const char *name = callee(b, SCOPE_FUSION, n, types, NULL, &root);
    return done(b, body_emit(b, root, "fusion(%s), kind=kLoop, calls=%s", args, name));
}

static bool map(Body *b)
{
    Gen      *g = b->g;
    const Ty *types[3], *root;
    Buf       text = { 0 };
    Value    *x = any_array(b);
    int32_t   n = (int32_t)between(g, 1, 3);
    int64_t   dims[MAX_RANK];
    for (int32_t k = 0; k < n; k++) {
        Value *v = k == 0 ? x : want(b, type_random(g), x->ty->rank, x->ty->dims);
        types[k] = ty_array(g, v->ty->type, 0, NULL, v->ty->facts);
        buf_printf(&text, "%s%s", k ? ", " : "", v->name);
    }
    for (int32_t k = 0; k < x->ty->rank; k++)
        dims[k] = k;
    const char *name = callee(b, SCOPE_SCALAR, n, types, NULL, &root);
    Value      *v = body_emit(b, ty_as(g, x->ty, root->type, root->facts), "map(%s), %s, to_apply=%s", text.p,
                         ints_text(g, "dimensions=", x->ty->rank, dims), name);
    buf_free(&text);
    return done(b, v);
}

/* The type of either a or b, which differ in facts alone. */
static const Ty *ty_join(Gen *g, const Ty *a, const Ty *b)
{
    if (is_array(a))
        return ty_as(g, a, a->type, facts_join(a->facts, b->facts));
    const Ty **elems = ARENA_ARRAY(g->a, const Ty *, a->n);
    for (int32_t k = 0; k < a->n; k++)
        elems[k] = ty_join(g, a->elems[k], b->elems[k]);
    return ty_tuple(g, a->n, elems);
}

static bool conditional(Body *b)
{
    Gen      *g = b->g;
    const Ty *type, *root = NULL, *other;
    bool      numbered = chance(g, 2);
    int32_t   n = numbered ? (int32_t)between(g, 1, 3) : 2;
    if (b->depth >= DEEPEST)
        return false;
    Value *at = want_exact(b, numbered ? TYPE_S32 : TYPE_PRED, 0, NULL);
    Buf    args = { 0 }, names = { 0 };
    for (int32_t k = 0; k < n; k++) {
        buf_printf(&args, ", %s", arguments(b, 1, &type));
        const char *name = callee(b, SCOPE_ANY, 1, &type, root, &other);
        root = root ? ty_join(g, root, other) : other;
        if (numbered)
            buf_printf(&names, "%s%s", k ? ", " : ", branch_computations={", name);
        else
            buf_printf(&names, k ? ", false_computation=%s" : ", true_computation=%s", name);
    }
    Value *v = body_emit(b, root, "conditional(%s%s)%s%s", at->name, args.p, names.p, numbered ? "}" : "");
    buf_free(&args);
    buf_free(&names);
    return done(b, v);
}

/* ---- loops ----
 *
 *   state (x0, ..., counter, ...);  while (counter < trips [and x]) { counter += 1; x = something of the type of x } */

typedef struct Loop {
    int32_t   n, counter; /* elements of the state; which one counts */
    const Ty *state;
} Loop;

static const char *loop_condition(Body *b, const Loop *l)
{
    Gen      *g = b->g;
    Body      c;
    const Ty *pred = ty_array(g, TYPE_PRED, 0, NULL, facts_int(TYPE_PRED));
    body_start(&c, g, SCOPE_ANY, DEEPEST);
    Value *p = body_param(&c, 0, l->state), *i = l->n ? element_of(&c, p, l->counter) : p;
    Value *trips = constant_scalar(&c, TYPE_S32, (double)between(g, 0, b->depth ? 3 : 5));
    Value *more = body_emit(&c, pred, chance(g, 2) ? "compare(%s, %s), direction=LT" : "compare(%s, %s), direction=NE", i->name, trips->name);
    for (int32_t k = 0; k < l->n; k++)
        if (ty_same(l->state->elems[k], pred) && chance(g, 2))
            more = body_emit(&c, pred, "and(%s, %s)", more->name, element_of(&c, p, k)->name);
    return body_finish(&c, more);
}

/* Element k of the next state: old, or a value that keeps to its facts. */
static Value *next_element(Body *b, Value *old)
{
    Facts  need = old->ty->facts;
    Value *v = NULL;
    if (chance(b->g, 4))
        return old;
    v = want_exact(b, old->ty->type, old->ty->rank, old->ty->dims);
    if (need.acc == WHOLE && v->ty->facts.acc == WHOLE && v->ty->facts.bound > need.bound)
        v = clamped(b, v, need.bound);
    return facts_within(v->ty->facts, need) ? v : old;
}

static const char *loop_body(Body *b, const Loop *l)
{
    Gen     *g = b->g;
    Body     c;
    Value  **old = ARENA_ARRAY(g->a, Value *, l->n + 1), **next = ARENA_ARRAY(g->a, Value *, l->n + 1);
    body_start(&c, g, SCOPE_ANY, b->depth + 1);
    Value *p = body_param(&c, 0, l->state);
    for (int32_t k = 0; k < l->n; k++)
        old[k] = body_keep(&c, element_of(&c, p, k));
    body_fill(&c, body_size(g));
    for (int32_t k = 0; k < l->n; k++)
        next[k] = k == l->counter ? NULL : next_element(&c, old[k]);
    Value *i = l->n ? old[l->counter] : p, *one = constant_scalar(&c, TYPE_S32, 1);
    Value *sum = body_emit(&c, i->ty, "add(%s, %s)", i->name, one->name);
    if (!l->n)
        return body_finish(&c, sum);
    next[l->counter] = sum;
    return body_finish(&c, tuple_of(&c, l->n, next));
}

static bool while_loop(Body *b)
{
    enum { MOST = 5 };
    Gen      *g = b->g;
    Value    *init[MOST], *first;
    const Ty *types[MOST];
    Loop      l = { .n = (int32_t)below(g, MOST) };
    if (b->depth >= 2)
        return false;
    for (int32_t k = 0; k < l.n; k++) {
        init[k] = any_array(b);
        if (init[k]->ty->facts.acc == ROUGH)
            return false;
        types[k] = ty_as(g, init[k]->ty, init[k]->ty->type, facts_loop(init[k]->ty->type, init[k]->ty->facts));
    }
    first = constant_scalar(b, TYPE_S32, 0);
    l.state = ty_as(g, first->ty, TYPE_S32, facts_int(TYPE_S32));
    if (l.n > 0) {
        l.counter = (int32_t)below(g, (size_t)l.n);
        init[l.counter] = first;
        types[l.counter] = l.state;
        l.state = ty_tuple(g, l.n, types);
        first = tuple_of(b, l.n, init);
    }
    const char *condition = loop_condition(b, &l), *body = loop_body(b, &l);
    return done(b, body_emit(b, l.state, "while(%s), condition=%s, body=%s", first->name, condition, body));
}

/* x is cut along dimension d; the body takes a slice and what is carried, and gives a slice and what is carried next. */
static bool scan(Body *b)
{
    Gen      *g = b->g;
    Value    *x = any_of(b, is_array), *carry = x ? any_array(b) : NULL;
    int64_t   dims[MAX_RANK], out[MAX_RANK];
    Body      c;
    if (!x || x->ty->rank == 0 || b->depth >= 2 || carry->ty->facts.acc == ROUGH)
        return false;
    int32_t d = (int32_t)below(g, (size_t)x->ty->rank), rank = 0;
    for (int32_t k = 0; k < x->ty->rank; k++)
        if (k != d)
            dims[rank++] = x->ty->dims[k];
    const Ty *slice = ty_array(g, x->ty->type, rank, dims, x->ty->facts);
    const Ty *state = ty_as(g, carry->ty, carry->ty->type, facts_loop(carry->ty->type, carry->ty->facts));
    body_start(&c, g, SCOPE_ANY, b->depth + 1);
    Value *s = body_param(&c, 0, slice), *old = body_param(&c, 1, state);
    body_fill(&c, body_size(g));
    Value *y = want(&c, type_random(g), s->ty->rank, s->ty->dims), *next = next_element(&c, old);
    for (int32_t k = 0; k < rank; k++)
        out[k < d ? k : k + 1] = dims[k];
    out[d] = x->ty->dims[d];
    const Ty   *elems[2] = { ty_array(g, y->ty->type, x->ty->rank, out, y->ty->facts), state };
    const char *body = body_finish(&c, tuple_of(&c, 2, (Value *[]){ y, next }));
    return done(b, body_emit(b, ty_tuple(g, 2, elems), "scan(%s, %s), dimensions={%d}, num_carries=1%s, to_apply=%s", x->name, carry->name, d,
                             chance(g, 2) ? ", is_reverse=true" : "", body));
}

/* ---- started here, done later ---- */

static bool async(Body *b)
{
    Gen      *g = b->g;
    const Ty *types[MOST_ARGS], *root;
    int32_t   n = (int32_t)between(g, 1, MOST_ARGS);
    if (b->depth >= DEEPEST)
        return false;
    char       *args = arguments(b, n, types);
    const char *name = callee(b, SCOPE_ANY, n, types, NULL, &root);
    const Ty   *parts[3] = { ty_tuple(g, n, types), root, ty_array(g, TYPE_U32, 0, NULL, facts_int(TYPE_U32)) };
    Body        w; /* a computation of one instruction */
    Buf         text = { 0 };
    body_start(&w, g, SCOPE_FUSION, b->depth + 1);
    for (int32_t k = 0; k < n; k++)
        buf_printf(&text, "%s%s", k ? ", " : "", body_param(&w, k, types[k])->name);
    const char *wrapped = body_finish(&w, body_emit(&w, root, "call(%s), to_apply=%s", text.p, name));
    Value      *start = body_emit(b, ty_tuple(g, 3, parts), "async-start(%s), calls=%s", args, wrapped);
    body_fill(b, (int32_t)below(g, 4));
    buf_free(&text);
    return done(b, body_emit(b, root, "async-done(%s)", start->name));
}

static bool copy_async(Body *b)
{
    Value    *x = any_array(b);
    const Ty *parts[3] = { x->ty, x->ty, ty_array(b->g, TYPE_U32, 0, NULL, facts_int(TYPE_U32)) };
    Value    *start = body_emit(b, ty_tuple(b->g, 3, parts), "copy-start(%s)", x->name);
    body_fill(b, (int32_t)below(b->g, 4));
    return done(b, body_emit(b, x->ty, "copy-done(%s)", start->name));
}

/* Of one device: what it gives is what it takes. */
static bool collective(Body *b)
{
    Gen   *g = b->g;
    Value *x = any_of(b, is_foldable);
    if (!x)
        return false;
    switch (below(g, 3)) {
    case 0: return done(b, body_emit(b, x->ty, "all-reduce(%s), replica_groups={}, to_apply=%s", x->name, fold_comp(g, x->ty->type, fold_random(g, x->ty->type))));
    case 1: return done(b, body_emit(b, x->ty, "collective-permute(%s), source_target_pairs={{0,0}}", x->name));
    default: return x->ty->rank > 0 && done(b, body_emit(b, x->ty, "all-gather(%s), replica_groups={{0}}, dimensions={0}", x->name));
    }
}

const RandomOp random_calls[] = {
    { reduce, 4, SCOPE_FUSION },  { reduce_pair, 1, SCOPE_ANY },        { reduce_window, 2, SCOPE_ANY }, { select_and_scatter, 1, SCOPE_ANY },
    { scatter, 2, SCOPE_ANY },    { sort, 1, SCOPE_ANY },               { topk, 1, SCOPE_ANY },          { random_bits, 1, SCOPE_ANY },
    { call, 2, SCOPE_ANY },       { fusion, 3, SCOPE_ANY },             { map, 1, SCOPE_ANY },           { conditional, 2, SCOPE_ANY },
    { while_loop, 2, SCOPE_ANY }, { scan, 1, SCOPE_ANY },               { async, 1, SCOPE_ANY },         { copy_async, 1, SCOPE_ANY },
    { collective, 1, SCOPE_ANY },
};
const int32_t random_call_count = (int32_t)(sizeof random_calls / sizeof *random_calls);
