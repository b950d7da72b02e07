/* Which loops of a kernel can be spread over threads.
 *
 * Let P be some loops of a nest. For every array that the nest writes, take each access to it, or to what may be the same memory, and divide its index
 *
 *     index = c + sum of k_p * p, p in P  +  rest        lo <= rest <= hi over all accesses
 *
 * All accesses must agree in the k_p. When the rest changes in steps of g alone, p that together span less than g are apart, whatever the rest is: an
 * element of a row that is found by an index from data. So are those of a p beside whose k_p all that is smaller spans less, and with it and p less than the common divisor of
 * all that is larger: blocks of columns. Put the other p in the order of |k_p|. When each |k_p| is larger than what the rest and the loops
 * before it can span, two different values of P never lead to one element, so that no iteration sees another's. Loops that break this are done by each
 * thread from first to last, inside or outside of the others: their order is kept for every element. Scalars that are set before the nest belong to c.
 *
 * Updates whose order does not matter (out[i] = out[i] + x) may meet: they are done in one step each, by all loops' threads.
 *
 * A nest is a row of loops inside each other with nothing but values declared between them; a condition may stand there too. */
#include "emit/threads.h"

#include "analysis/scatter.h"
#include "emit/groups.h"
#include "support/map.h"
#include "support/vec.h"

#include <string.h>

enum { MOST_NEST = 32 };

typedef struct Access {
    const KArray *array;
    const Ix     *index;
    bool          store, apart;
} Access;

typedef struct Nest {
    Arena        *arena;
    const Kernel *k;
    VEC(Access)   accesses;
    VEC(const KStmt *) stores;  /* of what others can see */
    Map           declared, assigned; /* temporaries that the nest declares; assigns again */
    int32_t       n;
    const IxAtom *loop[MOST_NEST]; /* from outside in, those with constant bounds */
    bool          spread[MOST_NEST];
    const KStmt  *update; /* is done in one step; NULL: none */
} Nest;

/* ---- what a nest does ---- */

static void note_load(void *cookie, const KExpr *x)
{
    Nest *n = cookie;
    if (x->kind == KX_LOAD)
        vec_push(n->arena, &n->accesses, ((Access){ x->array, x->index, false, false }));
}

static void note_store(void *cookie, const KStmt *s)
{
    Nest *n = cookie;
    if (s->kind == KS_STORE)
        vec_push(n->arena, &n->accesses, ((Access){ s->array, s->index, true, s->apart }));
    if (s->kind == KS_STORE && s->array->kind != KARRAY_LOCAL)
        vec_push(n->arena, &n->stores, s);
    if (s->kind == KS_DECLARE)
        map_put(&n->declared, s->temp, n);
    if (s->kind == KS_ASSIGN)
        map_put(&n->assigned, s->temp, n);
}

bool kernel_same_memory(const Kernel *k, const KArray *x, const KArray *y)
{
    if (x == y)
        return true;
    if (x->kind != KARRAY_PARAM || y->kind != KARRAY_PARAM)
        return false;
    const KArray *result = x->param >= k->n_operands ? x : y, *operand = result == x ? y : x;
    return result->param >= k->n_operands && operand->param < k->n_operands &&
           k->may_alias[(result->param - k->n_operands) * k->n_operands + operand->param];
}

/* The loop or condition that all of b is, behind declarations; NULL: something else. */
static const KStmt *only_statement(const Nest *n, const KBlock *b)
{
    const KStmt *s = b->first;
    while (s && s->kind == KS_DECLARE && !map_has(&n->assigned, s->temp))
        s = s->next;
    if (!s || s->next || (s->kind != KS_FOR && (s->kind != KS_IF || s->other)))
        return NULL;
    return s;
}

static void note_nest(Nest *n, const KStmt *s)
{
    KVisitor v = { note_load, note_store, n };
    kernel_visit_stmt(s, &v);
    for (; s && n->n < MOST_NEST; s = only_statement(n, s->body))
        if (s->kind == KS_FOR && !s->from && !s->end && s->loop->hi >= s->loop->lo)
            n->loop[n->n++] = s->loop;
}

/* ---- are its iterations apart? ---- */

static int64_t magnitude(int64_t k)
{
    return k < 0 ? -k : k;
}

static int32_t loop_number(const Nest *n, const IxAtom *x)
{
    for (int32_t j = 0; j < n->n; j++)
        if (n->spread[j] && n->loop[j] == x)
            return j;
    return -1;
}

/* A scalar that was set before the nest, and only once. */
static bool is_fixed(const Nest *n, const IxAtom *x)
{
    return x->kind == IX_VALUE && !((const KTemp *)x->owner)->assigned && !map_has(&n->declared, x->owner);
}

/* What an index may be besides its spread loops and fixed scalars: from lo to hi, if that is known, in steps; 0: one value. */
typedef struct Rest {
    int64_t lo, hi, step;
    bool    open; /* not known */
} Rest;

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Widens rest by that of x; false when a fixed scalar has another multiple than in first. */
static bool add_rest(const Nest *n, const Ix *x, const Ix *first, Rest *rest)
{
    int64_t from = x->c, to = x->c;
    for (int32_t i = 0; i < x->n; i++) {
        const IxTerm *t = &x->t[i];
        if (loop_number(n, t->atom) >= 0)
            continue;
        if (is_fixed(n, t->atom)) {
            if (ix_coef(first, t->atom) != t->k)
                return false;
            continue;
        }
        int64_t a, b;
        if (__builtin_mul_overflow(t->k, t->k < 0 ? t->atom->hi : t->atom->lo, &a) || __builtin_mul_overflow(t->k, t->k < 0 ? t->atom->lo : t->atom->hi, &b) ||
            __builtin_add_overflow(from, a, &from) || __builtin_add_overflow(to, b, &to))
            rest->open = true;
        rest->step = common_divisor(magnitude(t->k), rest->step);
    }
    int64_t between;
    if (__builtin_sub_overflow(x->c, first->c, &between) || between == INT64_MIN)
        return false;
    rest->step = common_divisor(magnitude(between), rest->step);
    rest->lo = from < rest->lo ? from : rest->lo;
    rest->hi = to > rest->hi ? to : rest->hi;
    return true;
}

static int32_t fixed_terms(const Nest *n, const Ix *x)
{
    int32_t fixed = 0;
    for (int32_t i = 0; i < x->n; i++)
        fixed += is_fixed(n, x->t[i].atom);
    return fixed;
}

/* The range of the rest over all accesses to what stored may be; loops whose multiples differ are no longer spread. */
static bool rest_of(Nest *n, const Access *stored, Rest *rest)
{
    *rest = (Rest){ INT64_MAX, INT64_MIN, 0, false };
    for (int32_t i = 0; i < n->accesses.n; i++) {
        const Access *x = &n->accesses.v[i];
        if (!kernel_same_memory(n->k, x->array, stored->array))
            continue;
        for (int32_t j = 0; j < n->n; j++)
            if (n->spread[j] && ix_coef(x->index, n->loop[j]) != ix_coef(stored->index, n->loop[j])) {
                n->spread[j] = false;
                return rest_of(n, stored, rest);
            }
        if (fixed_terms(n, x->index) != fixed_terms(n, stored->index) || !add_rest(n, x->index, stored->index, rest))
            return false;
    }
    return true;
}

/* The spread loop with the smallest multiple in index that is larger than `than` or, when equal, comes after `last`; -1: none. */
static int32_t next_loop(const Nest *n, const Ix *index, int64_t than, int32_t last)
{
    int32_t best = -1;
    for (int32_t j = 0; j < n->n; j++) {
        int64_t k = magnitude(ix_coef(index, n->loop[j]));
        if (n->spread[j] && (k > than || (k == than && j > last)) && (best < 0 || k < magnitude(ix_coef(index, n->loop[best]))))
            best = j;
    }
    return best;
}

/* Likewise, of the terms that are larger than k alone the step, of the others what they span: neighbouring columns of a block, whose rows are far apart. */
static bool columns_apart(const Nest *n, const Access *stored, const IxAtom *loop, int64_t own)
{
    int64_t k = magnitude(ix_coef(stored->index, loop)), lo = INT64_MAX, hi = INT64_MIN, step = 0;
    for (int32_t i = 0; i < n->accesses.n; i++) {
        const Ix *x = n->accesses.v[i].index;
        if (!kernel_same_memory(n->k, n->accesses.v[i].array, stored->array))
            continue;
        int64_t from = x->c, to = x->c;
        for (int32_t t = 0; t < x->n; t++) {
            const IxAtom *atom = x->t[t].atom;
            int64_t       a, b;
            if (magnitude(x->t[t].k) > k)
                step = common_divisor(magnitude(x->t[t].k), step);
            else if (atom != loop) {
                if (is_fixed(n, atom) || __builtin_mul_overflow(x->t[t].k, x->t[t].k < 0 ? atom->hi : atom->lo, &a) ||
                    __builtin_mul_overflow(x->t[t].k, x->t[t].k < 0 ? atom->lo : atom->hi, &b) || __builtin_add_overflow(from, a, &from) ||
                    __builtin_add_overflow(to, b, &to))
                    return false;
            }
        }
        lo = from < lo ? from : lo;
        hi = to > hi ? to : hi;
    }
    int64_t span, all;
    return !__builtin_sub_overflow(hi, lo, &span) && span < k && !__builtin_add_overflow(span, own, &all) && all < step;
}

/* Keeps iterations of the spread loops apart in that array by giving up loops. False when one was given up: other arrays may now be otherwise. */
static bool keep_apart(Nest *n, const Access *stored)
{
    int64_t span = 0, wide, within = 0; /* what loops so far span, with the rest; without it, and less than its steps */
    Rest    rest;
    int32_t before = 0, after = 0;
    for (int32_t j = 0; j < n->n; j++)
        before += n->spread[j];
    if (before == 0)
        return true;
    if (!rest_of(n, stored, &rest) || (!rest.open && __builtin_sub_overflow(rest.hi, rest.lo, &span))) {
        for (int32_t j = 0; j < n->n; j++)
            n->spread[j] = false;
        return false;
    }
    for (int32_t j = next_loop(n, stored->index, 0, -1); j >= 0;) {
        int64_t own, k = magnitude(ix_coef(stored->index, n->loop[j]));
        if (k > within && !__builtin_mul_overflow(k, n->loop[j]->hi - n->loop[j]->lo, &own) && own < rest.step - within &&
            !__builtin_add_overflow(span, own, &wide)) {
            within += own;
            span = wide;
            j = next_loop(n, stored->index, k, j);
            continue;
        }
        if (!rest.open && !__builtin_mul_overflow(k, n->loop[j]->hi - n->loop[j]->lo, &own) && columns_apart(n, stored, n->loop[j], own) &&
            !__builtin_add_overflow(span, own, &wide)) {
            span = wide;
            j = next_loop(n, stored->index, k, j);
            continue;
        }
        within = INT64_MAX; /* no other one is */
        if (rest.open || k <= span || __builtin_mul_overflow(k, n->loop[j]->hi - n->loop[j]->lo, &own) || __builtin_add_overflow(span, own, &span)) {
            n->spread[j] = false;
            return false;
        }
        j = next_loop(n, stored->index, k, j);
    }
    for (int32_t j = 0; j < n->n; j++)
        after += n->spread[j];
    return after == before;
}

/* The first store that others than its own thread can see; NULL: there is none. */
static const Access *first_store(const Nest *n)
{
    for (int32_t i = 0; i < n->accesses.n; i++)
        if (n->accesses.v[i].store && n->accesses.v[i].array->kind != KARRAY_LOCAL)
            return &n->accesses.v[i];
    return NULL;
}

/* So the store says, and of what may be the same memory nothing but the same element is touched. */
static bool is_apart(const Nest *n, const Access *stored)
{
    for (int32_t i = 0; i < n->accesses.n && stored->apart; i++)
        if (kernel_same_memory(n->k, n->accesses.v[i].array, stored->array) &&
            (type_bytes(storage_type(n->accesses.v[i].array->type)) != type_bytes(storage_type(stored->array->type)) || !ix_equal(n->accesses.v[i].index, stored->index)))
            return false;
    return stored->apart;
}

static void spread_loops(Nest *n)
{
    for (int32_t j = 0; j < n->n; j++)
        n->spread[j] = first_store(n) != NULL;
    for (bool settled = false; !settled;) {
        settled = true;
        for (int32_t i = 0; settled && i < n->accesses.n; i++)
            if (n->accesses.v[i].store)
                settled = n->accesses.v[i].array->kind == KARRAY_LOCAL || is_apart(n, &n->accesses.v[i]) || keep_apart(n, &n->accesses.v[i]);
    }
}

/* ---- updates that may meet ---- */

/* The instruction that does what x does to two values; OP_COUNT: none of those that updates may do in any order. */
static Op operation_of(const KExpr *x)
{
    static const struct { const char *begins; Op op; } calls[] = { { "add_", OP_ADD }, { "mul_", OP_MULTIPLY }, { "min_", OP_MINIMUM }, { "max_", OP_MAXIMUM } };
    for (size_t k = 0; x->kind == KX_CALL && x->n == 2 && k < sizeof calls / sizeof *calls; k++)
        if (strncmp(x->fn, calls[k].begins, strlen(calls[k].begins)) == 0)
            return calls[k].op;
    if (x->kind != KX_BINARY)
        return OP_COUNT;
    return x->op == KOP_ADD ? OP_ADD : x->op == KOP_MUL ? OP_MULTIPLY : x->op == KOP_AND ? OP_AND : x->op == KOP_OR ? OP_OR : x->op == KOP_XOR ? OP_XOR : OP_COUNT;
}

/* What CUDA calls it, or would. */
static const char *atomic_name(Op op)
{
    return op == OP_ADD ? "Add" : op == OP_MULTIPLY ? "Mul" : op == OP_MINIMUM ? "Min" : op == OP_MAXIMUM ? "Max" : op == OP_AND ? "And" : op == OP_OR ? "Or" : "Xor";
}

static bool is_narrow_float(Type t)
{
    return type_is_float(t) && type_bits(t) <= 16;
}

/* What s stores: of narrow floats what is rounded then, of integers of less than a byte what is wrapped. */
static const KExpr *combined(const KStmt *s)
{
    const KExpr *x = s->value;
    const Type   t = s->array->type;
    const bool   call = x->kind == KX_CALL && x->n == 1, rounded = call && is_narrow_float(t) && (strncmp(x->fn, "f32_to_", 7) == 0 || strcmp(x->fn, "upper_bf16") == 0);
    return rounded || (call && type_is_int(t) && type_bits(t) < 8 && strncmp(x->fn, "wrap_", 5) == 0) ? x->arg[0] : x;
}

static bool is_decoded(const KExpr *x)
{
    const size_t n = x->kind == KX_CALL && x->n == 1 ? strlen(x->fn) : 0;
    return n > 7 && strcmp(x->fn + n - 7, "_to_f32") == 0;
}

static bool is_there(const KStmt *s, const KExpr *x)
{
    if (is_narrow_float(s->array->type) && is_decoded(x))
        x = x->arg[0];
    if (s->array->type == TYPE_PRED && x->kind == KX_CAST)
        x = x->arg[0];
    return x->kind == KX_LOAD && x->array == s->array && ix_equal(x->index, s->index);
}

/* The only store: op(what is there, x), or op(x, what is there). NULL: the nest does something else. */
static const KStmt *find_update(const Nest *n)
{
    const KStmt *s = n->stores.n == 1 ? n->stores.v[0] : NULL;
    int32_t      reads = 0;
    if (!s || !updates_have_no_order(s->array->type, operation_of(combined(s)), n->k->any_order))
        return NULL;
    for (int32_t i = 0; i < n->accesses.n; i++)
        reads += !n->accesses.v[i].store && kernel_same_memory(n->k, n->accesses.v[i].array, s->array);
    return reads == 1 && (is_there(s, combined(s)->arg[0]) || is_there(s, combined(s)->arg[1])) ? s : NULL;
}

/* s is one of the statements that append_stripped copies one by one. */
static bool is_stripped(const KStmt *from, const KStmt *s)
{
    for (; from; from = from->next)
        if (from == s || ((from->kind == KS_FOR || (from->kind == KS_IF && !from->other)) && is_stripped(from->body->first, s)))
            return true;
    return false;
}

/* When loops had to be given up for an update that may be done in any order, all of them are spread. */
static void spread_update(Nest *n, const KStmt *nest)
{
    bool all = true;
    for (int32_t j = 0; j < n->n; j++)
        all &= n->spread[j];
    const KStmt *update = all ? NULL : find_update(n);
    if (!update || !is_stripped(nest, update))
        return;
    n->update = update;
    for (int32_t j = 0; j < n->n; j++)
        n->spread[j] = true;
}

int32_t kernel_independent_loops(Arena *a, const Kernel *k, const KStmt *s, const IxAtom *const **loops)
{
    Nest           n = { .arena = a, .k = k, .declared = map_new(a), .assigned = map_new(a) };
    const IxAtom **v = ARENA_ARRAY(a, const IxAtom *, MOST_NEST);
    int32_t        found = 0;
    note_nest(&n, s);
    spread_loops(&n);
    for (int32_t j = 0; j < n.n; j++)
        if (n.spread[j])
            v[found++] = n.loop[j];
    *loops = v;
    return found;
}

/* ---- parts ---- */

/* s without the loops that are spread. */
static void append_stripped(const Nest *n, KBlock *to, const KStmt *s)
{
    for (; s; s = s->next) {
        const KStmt *inner = s->kind == KS_FOR || (s->kind == KS_IF && !s->other) ? s : NULL;
        if (inner && inner->kind == KS_FOR && loop_number(n, inner->loop) >= 0) {
            append_stripped(n, to, inner->body->first);
            continue;
        }
        kblock_append_copy(n->arena, to, s);
        if (s == n->update) {
            to->last->atomic = atomic_name(operation_of(combined(s)));
            to->last->value = combined(s)->arg[is_there(s, combined(s)->arg[0])];
        }
        if (inner) {
            KBlock *body = ARENA_NEW(n->arena, KBlock);
            append_stripped(n, body, inner->body->first);
            to->last->body = body;
        }
    }
}

/* How far apart in memory the access of neighbours in the loop is; what it does not move is farther than anything. */
static int64_t stride(const Access *x, const IxAtom *loop)
{
    int64_t k = magnitude(ix_coef(x->index, loop));
    return k ? k : INT64_MAX;
}

/* The load that most of the spread loops move; NULL: nothing is loaded. */
static const Access *widest_load(const Nest *n)
{
    const Access *widest = NULL;
    int32_t       most = -1;
    for (int32_t i = 0; i < n->accesses.n; i++) {
        int32_t moves = 0;
        for (int32_t j = 0; j < n->n; j++)
            moves += n->spread[j] && ix_coef(n->accesses.v[i].index, n->loop[j]) != 0;
        if (!n->accesses.v[i].store && moves > most) {
            widest = &n->accesses.v[i];
            most = moves;
        }
    }
    return widest;
}

/* The spread loops, the one whose neighbours are written side by side last; or read, where it is data that says where they are written. */
static void order_loops(const Nest *n, ThreadPart *part)
{
    const IxAtom **v = ARENA_ARRAY(n->arena, const IxAtom *, n->n);
    const Access  *store = first_store(n), *load = store && store->apart ? widest_load(n) : NULL;
    store = load ? load : store;
    part->count = 1;
    for (int32_t j = 0; j < n->n; j++) {
        if (!n->spread[j])
            continue;
        int32_t at = part->n_loops++;
        for (; at > 0 && stride(store, v[at - 1]) < stride(store, n->loop[j]); at--)
            v[at] = v[at - 1];
        v[at] = n->loop[j];
        part->count *= n->loop[j]->hi - n->loop[j]->lo + 1;
    }
    part->loops = v;
}

/* A part for the nest s; false when none of its loops can be spread. */
static bool spread_part(Arena *a, const Kernel *k, const KStmt *s, ThreadPart *part)
{
    Nest    n = { .arena = a, .k = k, .declared = map_new(a), .assigned = map_new(a) };
    KBlock *body = ARENA_NEW(a, KBlock);
    KStmt  *alone = arena_copy(a, s, sizeof *s);
    alone->next = NULL;
    if (s->kind != KS_FOR && (s->kind != KS_IF || s->other))
        return false;
    note_nest(&n, s);
    spread_loops(&n);
    spread_update(&n, alone);
    *part = (ThreadPart){ 0 };
    order_loops(&n, part);
    append_stripped(&n, body, alone);
    part->body = body;
    return part->n_loops > 0;
}

/* Temporaries that statements use. */
static void use_index(Map *used, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        if (x->t[i].atom->kind == IX_VALUE)
            map_put(used, x->t[i].atom->owner, used);
        use_index(used, x->t[i].atom->arg);
    }
}

static void use_expr(void *cookie, const KExpr *x)
{
    if (x->temp)
        map_put(cookie, x->temp, cookie);
    use_index(cookie, x->index);
}

static void use_stmt(void *cookie, const KStmt *s)
{
    use_index(cookie, s->index);
    use_index(cookie, s->from);
    use_index(cookie, s->end);
}

/* The declarations of k's body that the part needs, but for those between from and end, and all of it as one body. */
static void finish_part(Arena *a, const Kernel *k, ThreadPart *part, const KStmt *from, const KStmt *end)
{
    Map      used = map_new(a);
    KVisitor v = { use_expr, use_stmt, &used };
    KBlock  *before = ARENA_NEW(a, KBlock), *all = ARENA_NEW(a, KBlock);
    VEC(const KStmt *) declared = { 0 };
    bool within = false;
    kernel_visit(part->body, &v);
    for (const KStmt *s = k->body->first; s; s = s->next) {
        within = (within || s == from) && s != end;
        if (s->kind == KS_DECLARE && !within)
            vec_push(a, &declared, s);
    }
    bool *needed = ARENA_ARRAY(a, bool, declared.n);
    for (int32_t j = declared.n; j-- > 0;) {
        needed[j] = map_has(&used, declared.v[j]->temp);
        if (needed[j])
            kernel_visit_stmt(declared.v[j], &v);
    }
    for (int32_t j = 0; j < declared.n; j++)
        if (needed[j]) {
            kblock_append_copy(a, before, declared.v[j]);
            kblock_append_copy(a, all, declared.v[j]);
        }
    for (const KStmt *s = part->body->first; s; s = s->next)
        kblock_append_copy(a, all, s);
    part->before = before;
    part->whole = kernel_part(a, k, all);
}

typedef struct Loads {
    const Kernel *k;
    bool          changed; /* some may be of what the kernel writes */
} Loads;

static void note_changed(void *cookie, const KExpr *x)
{
    Loads *l = cookie;
    for (int32_t j = 0; x->kind == KX_LOAD && j < l->k->n_arrays; j++)
        l->changed |= l->k->arrays[j]->written && kernel_same_memory(l->k, l->k->arrays[j], x->array);
}

/* Every part may compute the values that stand before loops for itself. */
bool kernel_is_divisible(const Kernel *k)
{
    Loads    l = { k, false };
    KVisitor v = { note_changed, NULL, &l };
    for (const KStmt *s = k->body->first; s; s = s->next) {
        if (s->kind == KS_DECLARE && s->value && !s->temp->assigned)
            kernel_visit_stmt(s, &v);
        else if (s->kind != KS_FOR && s->kind != KS_IF && s->kind != KS_STORE && s->kind != KS_BLOCK)
            return false;
    }
    return !l.changed;
}

KernelPart kernel_part_with_values(Arena *a, const Kernel *k, const KBlock *body)
{
    ThreadPart part = { .body = body };
    finish_part(a, k, &part, NULL, NULL);
    return part.whole;
}

/* All of the group for one thread, or for those who share its rows (rows.h). */
static KBlock *group_body(Arena *a, const StmtGroups *g, const StmtGroup *x)
{
    KBlock *body = ARENA_NEW(a, KBlock);
    for (int32_t j = x->from; j < x->to; j++)
        kblock_append_copy(a, body, g->stmts[j]);
    return body;
}

typedef struct Written {
    const Kernel *k;
    const KBlock *by;
    const KArray *sought;
    bool          found;
} Written;

static void seek_store(void *cookie, const KStmt *s)
{
    Written *w = cookie;
    w->found |= s->kind == KS_STORE && kernel_same_memory(w->k, s->array, w->sought);
}

static void seek_load(void *cookie, const KExpr *x)
{
    Written *w = cookie;
    KVisitor v = { NULL, seek_store, w };
    w->sought = x->array;
    if (x->kind == KX_LOAD)
        kernel_visit(w->by, &v);
}

/* A value between those statements, which a part would have in front of it, is of what the part writes. */
static bool values_wait(const Kernel *k, const StmtGroups *g, int32_t from, int32_t to, const KBlock *part)
{
    Written w = { .k = k, .by = part };
    for (int32_t j = from; j < to && !w.found; j++) {
        KVisitor v = { seek_load, NULL, &w };
        if (g->again[j])
            kernel_visit_stmt(g->stmts[j], &v);
    }
    return w.found;
}

int32_t kernel_threads(Arena *a, const Kernel *k, ThreadPart **parts)
{
    VEC(ThreadPart) v = { 0 };
    StmtGroups      g;
    KBlock         *serial = NULL; /* the body of the last part, when that is single statements for one thread, */
    int32_t         serial_from = 0; /* from that one on */
    kernel_groups(a, k, &g);
    const StmtGroup **of = ARENA_ARRAY(a, const StmtGroup *, g.n); /* a part's own values are those of the group */
    for (int32_t j = 0; j < g.n; j++) {
        const StmtGroup *x = &g.v[j];
        const KStmt     *first = g.stmts[x->from];
        const bool       alone = x->to == x->from + 1;
        ThreadPart       part = { .count = 1 };
        const bool       spread = alone && spread_part(a, k, first, &part);
        if (alone && !spread && serial && !values_wait(k, &g, serial_from, x->from, serial)) {
            kblock_append_copy(a, serial, first);
            continue;
        }
        if (!spread)
            part = (ThreadPart){ .body = group_body(a, &g, x), .count = 1 };
        serial = alone && !spread ? (KBlock *)(uintptr_t)part.body : NULL;
        serial_from = x->from;
        of[v.n] = alone ? NULL : x;
        vec_push(a, &v, part);
    }
    for (int32_t j = 0; j < v.n; j++)
        finish_part(a, k, &v.v[j], of[j] ? g.stmts[of[j]->from] : NULL, of[j] && of[j]->to < g.n_stmts ? g.stmts[of[j]->to] : NULL);
    if (v.n == 0) {
        KernelPart whole = kernel_part(a, k, k->body);
        vec_push(a, &v, ((ThreadPart){ .whole = whole, .before = ARENA_NEW(a, KBlock), .body = k->body, .count = 1 }));
    }
    *parts = v.v;
    return v.n;
}
