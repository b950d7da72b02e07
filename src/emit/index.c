/* Affine index maps. Maps are immutable and live in the context's arena. Arithmetic wraps: every map that lowering makes stays within
 * the sizes of arrays, whose products were checked when their shapes were. */
#include "emit/index.h"

#include "support/map.h"

struct IxSlot {
    const IxAtom  *atom;
    struct IxSlot *next;
};

static int64_t wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b < 0);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

IxCtx ix_context(Arena *a)
{
    return (IxCtx){ .arena = a };
}

static Ix *new_ix(IxCtx *cx, int32_t n)
{
    return arena_alloc(cx->arena, sizeof(Ix) + (size_t)n * sizeof(IxTerm));
}

const IxAtom *ix_new_atom(IxCtx *cx, IxKind kind, const char *name, int64_t lo, int64_t hi, int32_t depth, const void *owner)
{
    IxAtom *x = ARENA_NEW(cx->arena, IxAtom);
    *x = (IxAtom){ .kind = kind, .id = cx->n_atoms++, .depth = depth, .lo = lo, .hi = hi, .name = name, .owner = owner };
    return x;
}

const Ix *ix_const(IxCtx *cx, int64_t c)
{
    Ix *x = new_ix(cx, 0);
    x->c = c;
    return x;
}

const Ix *ix_of(IxCtx *cx, const IxAtom *atom)
{
    if (atom->lo == atom->hi)
        return ix_const(cx, atom->lo);
    Ix *x = new_ix(cx, 1);
    x->n = 1;
    x->t[0] = (IxTerm){ 1, atom };
    return x;
}

typedef void (*Split)(void *, const IxAtom *, int64_t, int64_t);

static const Ix *without(IxCtx *cx, const Ix *x, int32_t term)
{
    Ix *y = new_ix(cx, x->n);
    y->c = x->c;
    for (int32_t i = 0; i < x->n; i++)
        if (i != term)
            y->t[y->n++] = x->t[i];
    return y;
}

/* Is a floor(arg / by)? That of x + floor(y / n) is floor((x * n + y) / (n * by)). */
static bool is_quotient(IxCtx *cx, const IxAtom *a, const Ix *arg, int64_t by)
{
    if (a->kind != IX_DIV)
        return false;
    if (a->by == by && ix_equal(a->arg, arg))
        return true;
    for (int32_t i = 0; i < arg->n; i++) {
        const IxAtom *inner = arg->t[i].k == 1 && arg->t[i].atom->kind == IX_DIV ? arg->t[i].atom : NULL;
        if (inner && a->by == wrap_mul(inner->by, by) && ix_equal(a->arg, ix_add(cx, ix_times(cx, without(cx, arg, i), inner->by), inner->arg)))
            return true;
    }
    const Split split = cx->split;
    cx->split = NULL; /* was told when it was made */
    const Ix *quotient = ix_div(cx, arg, by); /* without factors that arg and by have in common */
    cx->split = split;
    return ix_equal(quotient, ix_of(cx, a));
}

/* The place of floor(arg / by) with k * by in x, where mod is arg % by with k; -1. */
static int32_t other_part(IxCtx *cx, const Ix *x, const IxTerm *mod)
{
    for (int32_t i = 0; i < x->n; i++)
        if (x->t[i].k == wrap_mul(mod->k, mod->atom->by) && is_quotient(cx, x->t[i].atom, mod->atom->arg, mod->atom->by))
            return i;
    return -1;
}

/* The place of (q + floor(arg / by)) % b with k * by in x, where mod is arg % by with k, and the two of them: (q * by + arg) % (by * b); -1. */
static int32_t middle_part(IxCtx *cx, const Ix *x, const IxTerm *mod, const Ix **both)
{
    for (int32_t i = 0; i < x->n; i++) {
        const IxAtom *m = x->t[i].atom;
        int64_t       by;
        if (m->kind != IX_MOD || x->t[i].k != wrap_mul(mod->k, mod->atom->by) || __builtin_mul_overflow(m->by, mod->atom->by, &by))
            continue;
        for (int32_t j = 0; j < m->arg->n; j++) {
            if (m->arg->t[j].k != 1 || !is_quotient(cx, m->arg->t[j].atom, mod->atom->arg, mod->atom->by))
                continue;
            const Split split = cx->split;
            cx->split = NULL; /* was told of both parts */
            *both = ix_mod(cx, ix_add(cx, ix_times(cx, without(cx, m->arg, j), mod->atom->by), mod->atom->arg), by);
            cx->split = split;
            return i;
        }
    }
    return -1;
}

/* What was divided comes together again: by * floor(x / by) + x % by is x, and by * (floor(x / by) % b) + x % by is x % (by * b). */
static const Ix *rejoin(IxCtx *cx, Ix *x)
{
    for (int32_t i = 0; i < x->n; i++) {
        const Ix *both = x->t[i].atom->arg;
        int32_t   j = x->t[i].atom->kind == IX_MOD ? other_part(cx, x, &x->t[i]) : -1;
        if (j < 0 && x->t[i].atom->kind == IX_MOD)
            j = middle_part(cx, x, &x->t[i], &both);
        if (j < 0)
            continue;
        const Ix *whole = ix_times(cx, both, x->t[i].k);
        int32_t   n = 0;
        for (int32_t k = 0; k < x->n; k++)
            if (k != i && k != j)
                x->t[n++] = x->t[k];
        x->n = n;
        return ix_add(cx, x, whole);
    }
    return x;
}

const Ix *ix_add(IxCtx *cx, const Ix *a, const Ix *b)
{
    if (a->n == 0 && a->c == 0)
        return b;
    if (b->n == 0 && b->c == 0)
        return a;
    Ix *x = new_ix(cx, a->n + b->n);
    x->c = wrap_add(a->c, b->c);
    int32_t i = 0, j = 0;
    while (i < a->n || j < b->n) {
        IxTerm t;
        if (j == b->n || (i < a->n && a->t[i].atom->id < b->t[j].atom->id))
            t = a->t[i++];
        else if (i == a->n || b->t[j].atom->id < a->t[i].atom->id)
            t = b->t[j++];
        else {
            t = (IxTerm){ wrap_add(a->t[i].k, b->t[j].k), a->t[i].atom };
            i++;
            j++;
        }
        if (t.k != 0)
            x->t[x->n++] = t;
    }
    return rejoin(cx, x);
}

const Ix *ix_plus(IxCtx *cx, const Ix *a, int64_t c)
{
    return c == 0 ? a : ix_add(cx, a, ix_const(cx, c));
}

const Ix *ix_times(IxCtx *cx, const Ix *a, int64_t k)
{
    if (k == 1)
        return a;
    if (k == 0)
        return ix_const(cx, 0);
    Ix *x = new_ix(cx, a->n);
    x->c = wrap_mul(a->c, k);
    x->n = a->n;
    for (int32_t i = 0; i < a->n; i++)
        x->t[i] = (IxTerm){ wrap_mul(a->t[i].k, k), a->t[i].atom };
    return x;
}

void ix_range(const Ix *a, int64_t *lo, int64_t *hi)
{
    *lo = *hi = a->c;
    for (int32_t i = 0; i < a->n; i++) {
        int64_t p = wrap_mul(a->t[i].k, a->t[i].atom->lo), q = wrap_mul(a->t[i].k, a->t[i].atom->hi);
        *lo = wrap_add(*lo, p < q ? p : q);
        *hi = wrap_add(*hi, p < q ? q : p);
    }
}

bool ix_equal(const Ix *a, const Ix *b)
{
    if (a == b)
        return true;
    if (a->n != b->n || a->c != b->c)
        return false;
    for (int32_t i = 0; i < a->n; i++)
        if (a->t[i].k != b->t[i].k || a->t[i].atom != b->t[i].atom)
            return false;
    return true;
}

bool ix_is_const(const Ix *a, int64_t *c)
{
    if (a->n != 0)
        return false;
    *c = a->c;
    return true;
}

int64_t ix_coef(const Ix *a, const IxAtom *atom)
{
    for (int32_t i = 0; i < a->n; i++)
        if (a->t[i].atom == atom)
            return a->t[i].k;
    return 0;
}

bool ix_has(const Ix *a, const IxAtom *atom)
{
    for (int32_t i = 0; i < a->n; i++)
        if (a->t[i].atom == atom || (a->t[i].atom->arg && ix_has(a->t[i].atom->arg, atom)))
            return true;
    return false;
}

bool ix_is_line(const Ix *a, const IxAtom *loop)
{
    const int64_t k = ix_coef(a, loop);
    bool          line = k == 0 || k == 1;
    for (int32_t j = 0; j < a->n; j++)
        line &= a->t[j].atom->kind == IX_LOOP || a->t[j].atom->depth < loop->depth;
    return line;
}

int32_t ix_depth(const Ix *a)
{
    int32_t d = 0;
    for (int32_t i = 0; i < a->n; i++)
        if (a->t[i].atom->depth > d)
            d = a->t[i].atom->depth;
    return d;
}

uint64_t ix_hash(uint64_t h, const Ix *a)
{
    h = hash_u64(h, (uint64_t)a->c);
    for (int32_t i = 0; i < a->n; i++) {
        h = hash_u64(h, (uint64_t)a->t[i].k);
        h = hash_u64(h, (uint64_t)a->t[i].atom->id);
    }
    return h;
}

/* The unique atom floor(arg/by) or arg mod by. */
static const IxAtom *division(IxCtx *cx, IxKind kind, const Ix *arg, int64_t by, int64_t lo, int64_t hi)
{
    for (struct IxSlot *s = cx->divisions; s; s = s->next)
        if (s->atom->kind == kind && s->atom->by == by && ix_equal(s->atom->arg, arg))
            return s->atom;
    IxAtom *x = (IxAtom *)(uintptr_t)ix_new_atom(cx, kind, NULL, lo, hi, ix_depth(arg), NULL);
    x->arg = arg;
    x->by = by;
    struct IxSlot *s = ARENA_NEW(cx->arena, struct IxSlot);
    *s = (struct IxSlot){ x, cx->divisions };
    cx->divisions = s;
    return x;
}

/* a = by * quotient + rest, where rest has no multiple of by left and 0 <= its constant < by. */
static void take_multiples(IxCtx *cx, const Ix *a, int64_t by, const Ix **quotient, const Ix **rest)
{
    Ix *q = new_ix(cx, a->n), *r = new_ix(cx, a->n);
    q->c = floor_div(a->c, by);
    r->c = wrap_add(a->c, -wrap_mul(q->c, by));
    for (int32_t i = 0; i < a->n; i++) {
        if (a->t[i].k % by == 0)
            q->t[q->n++] = (IxTerm){ a->t[i].k / by, a->t[i].atom };
        else
            r->t[r->n++] = a->t[i];
    }
    *quotient = q;
    *rest = r;
}

/* Divides out what by and all of rest's multiples have in common: floor((g*x + c) / (g*b)) = floor((x + c/g) / b). */
static const Ix *reduce_fraction(IxCtx *cx, const Ix *rest, int64_t *by)
{
    int64_t g = *by;
    for (int32_t i = 0; i < rest->n; i++)
        g = gcd(g, rest->t[i].k);
    if (g <= 1)
        return rest;
    Ix *x = new_ix(cx, rest->n);
    x->c = floor_div(rest->c, g);
    x->n = rest->n;
    for (int32_t i = 0; i < rest->n; i++)
        x->t[i] = (IxTerm){ rest->t[i].k / g, rest->t[i].atom };
    *by /= g;
    return x;
}

/* rest = g * big + low, where g divides by and 0 <= low < g: low decides nothing of rest / by. False when there are no such parts. */
static bool part_low(IxCtx *cx, const Ix *rest, int64_t by, int64_t *g, const Ix **big, const Ix **low)
{
    for (int32_t i = 0; i < rest->n; i++) {
        int64_t lo, hi;
        *g = gcd(by, rest->t[i].k);
        if (*g <= 1)
            continue;
        take_multiples(cx, rest, *g, big, low);
        ix_range(*low, &lo, &hi);
        if ((*low)->n > 0 && lo >= 0 && hi < *g)
            return true;
    }
    return false;
}

/* Tells the owner that cutting a loop would let the division vanish: the loop whose multiple divides by. */
static void ask_for_split(IxCtx *cx, const Ix *rest, int64_t by)
{
    if (!cx->split)
        return;
    for (int32_t i = 0; i < rest->n; i++) {
        const IxAtom *x = rest->t[i].atom;
        int64_t       k = rest->t[i].k;
        if (x->kind == IX_LOOP && k > 0 && k < by && by % k == 0 && x->hi - x->lo >= by / k)
            cx->split(cx->cookie, x, by / k, cx->digits && rest->c % k == 0 ? (by - rest->c) / k % (by / k) : 0);
    }
}

const Ix *ix_div(IxCtx *cx, const Ix *a, int64_t by)
{
    if (by == 1)
        return a;
    const Ix *q, *rest;
    int64_t   lo, hi;
    take_multiples(cx, a, by, &q, &rest);
    rest = reduce_fraction(cx, rest, &by);
    ix_range(rest, &lo, &hi);
    lo = floor_div(lo, by);
    hi = floor_div(hi, by);
    if (lo == hi)
        return ix_plus(cx, q, lo);
    int64_t   g;
    const Ix *big, *low;
    if (part_low(cx, rest, by, &g, &big, &low))
        return ix_add(cx, q, ix_div(cx, big, by / g));
    ask_for_split(cx, rest, by);
    return ix_add(cx, q, ix_of(cx, division(cx, IX_DIV, rest, by, lo, hi)));
}

const Ix *ix_mod(IxCtx *cx, const Ix *a, int64_t by)
{
    if (by == 1)
        return ix_const(cx, 0);
    const Ix *q, *rest;
    int64_t   lo, hi;
    take_multiples(cx, a, by, &q, &rest);
    ix_range(rest, &lo, &hi);
    if (floor_div(lo, by) == floor_div(hi, by))
        return ix_plus(cx, rest, -floor_div(lo, by) * by);
    int64_t   g;
    const Ix *big, *low;
    if (part_low(cx, rest, by, &g, &big, &low))
        return ix_add(cx, ix_times(cx, ix_mod(cx, big, by / g), g), low);
    ask_for_split(cx, rest, by);
    return ix_of(cx, division(cx, IX_MOD, rest, by, 0, by - 1));
}

const Ix *ix_replace(IxCtx *cx, const Ix *a, const IxAtom *atom, const Ix *v)
{
    if (!ix_has(a, atom))
        return a;
    const Ix *x = ix_const(cx, a->c);
    for (int32_t i = 0; i < a->n; i++) {
        const IxAtom *y = a->t[i].atom;
        const Ix     *z;
        if (y == atom)
            z = v;
        else if (y->kind == IX_DIV)
            z = ix_div(cx, ix_replace(cx, y->arg, atom, v), y->by);
        else if (y->kind == IX_MOD)
            z = ix_mod(cx, ix_replace(cx, y->arg, atom, v), y->by);
        else
            z = ix_of(cx, y);
        x = ix_add(cx, x, ix_times(cx, z, a->t[i].k));
    }
    return x;
}

const Ix *ix_linear(IxCtx *cx, int32_t n, const Ix *const *index, const int64_t *dims)
{
    const Ix *x = ix_const(cx, 0);
    int64_t   stride = 1;
    for (int32_t d = n - 1; d >= 0; d--) {
        x = ix_add(cx, x, ix_times(cx, index[d], stride));
        stride = wrap_mul(stride, dims[d]);
    }
    return x;
}

void ix_split(IxCtx *cx, const Ix *linear, int32_t n, const int64_t *dims, const Ix **index)
{
    int64_t stride = 1;
    cx->digits = true;
    for (int32_t d = n - 1; d >= 0; d--) {
        int64_t next = wrap_mul(stride, dims[d]);
        bool    outermost = true;
        for (int32_t e = 0; e < d; e++)
            outermost &= dims[e] == 1;
        const Ix *x = ix_div(cx, linear, stride);
        index[d] = dims[d] == 1 ? ix_const(cx, 0) : outermost ? x : ix_mod(cx, x, dims[d]);
        stride = next;
    }
    cx->digits = false;
}
