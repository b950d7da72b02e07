/* Whether a kernel may put a result where an operand is. */
#include "emit/kernel_ir.h"

/* ---- all of it, or element by element ---- */

/* The operand is read before the result is first written, or element by element at the place that is written next. */
typedef struct UpdateCheck {
    const KArray *result, *operand;
    bool          stored, bad;
} UpdateCheck;

static bool stores_to(const KBlock *b, const KArray *array)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if ((s->kind == KS_STORE && s->array == array) || (s->body && stores_to(s->body, array)) || (s->other && stores_to(s->other, array)))
            return true;
    return false;
}

/* s or a statement behind it in its block writes the result at that index. */
static bool is_stored_next(const UpdateCheck *c, const KStmt *s, const Ix *index)
{
    for (; s; s = s->next)
        if (s->kind == KS_STORE && s->array == c->result)
            return ix_equal(s->index, index);
    return false;
}

static void check_order(UpdateCheck *c, const KStmt *s, const KExpr *x, bool repeated)
{
    if (!x)
        return;
    if (x->kind == KX_LOAD && x->array == c->operand)
        c->bad |= c->stored || (repeated && !is_stored_next(c, s, x->index));
    for (int32_t i = 0; i < x->n; i++)
        check_order(c, s, x->arg[i], repeated);
}

/* repeated: a loop around b writes the result. */
static void check_update(UpdateCheck *c, const KBlock *b, bool repeated)
{
    for (const KStmt *s = b->first; s; s = s->next) {
        if (s->kind == KS_IF && s->value->kind == KX_DISTINCT && s->value->array == c->result && s->value->other == c->operand)
            continue;
        check_order(c, s, s->value, repeated);
        c->stored |= s->kind == KS_STORE && s->array == c->result;
        bool loop = s->kind == KS_FOR || s->kind == KS_LOOP;
        if (s->body)
            check_update(c, s->body, repeated || (loop && stores_to(s->body, c->result)));
        if (s->other)
            check_update(c, s->other, repeated);
    }
}

bool kernel_reads_in_time(const Kernel *k, const KArray *result, const KArray *operand)
{
    UpdateCheck c = { .result = result, .operand = operand };
    check_update(&c, k->body, false);
    return !c.bad;
}

/* ---- the same part by part ---- */

enum { MOST_LOOPS = 32 };

/* Each trip of the loops around reads and writes a part of the memory that no other one touches (rows, of which the loops are the outer ones); in the innermost of them
 * all is read before something is written there:
 *
 *   for i  { m = max over j of x[8*i + j];  for j  r[8*i + j] = x[8*i + j] / m }
 *
 * The result may be read as well: what is there has been written by then. */
typedef struct PartCheck {
    const KArray *result, *operand;
    const IxAtom *loop[MOST_LOOPS]; /* those around, from outside in, whose trips have parts of their own */
    int32_t       n;
    bool          bad;
} PartCheck;

/* Places, from where the loops around are. */
typedef struct Places {
    int64_t lo, hi;
    bool    some;
} Places;

static bool is_around(const PartCheck *c, const IxAtom *x)
{
    for (int32_t k = 0; k < c->n; k++)
        if (c->loop[k] == x)
            return true;
    return false;
}

static void add_places(Places *p, Places more)
{
    if (!more.some)
        return;
    p->lo = p->some && p->lo < more.lo ? p->lo : more.lo;
    p->hi = p->some && p->hi > more.hi ? p->hi : more.hi;
    p->some = true;
}

static Places places_at(PartCheck *c, const Ix *x)
{
    Places p = { x->c, x->c, true };
    for (int32_t k = 0; k < x->n; k++) {
        const IxTerm t = x->t[k];
        int64_t      a, b;
        if (!is_around(c, t.atom))
            c->bad |= __builtin_mul_overflow(t.k, t.k < 0 ? t.atom->hi : t.atom->lo, &a) || __builtin_mul_overflow(t.k, t.k < 0 ? t.atom->lo : t.atom->hi, &b) ||
                      __builtin_add_overflow(p.lo, a, &p.lo) || __builtin_add_overflow(p.hi, b, &p.hi);
    }
    return p;
}

/* What a statement does with the two. */
typedef struct Touched {
    PartCheck *check;
    Places     read, written;
    const Ix  *first; /* an index of one of them; NULL: there is none */
    bool       apart; /* all of them count the loops around alike */
} Touched;

static void touch(Touched *t, const Ix *x, Places *where)
{
    const PartCheck *c = t->check;
    for (int32_t k = 0; k < c->n && t->first; k++)
        t->apart &= ix_coef(x, c->loop[k]) == ix_coef(t->first, c->loop[k]);
    t->first = x;
    add_places(where, places_at(t->check, x));
}

static void touch_load(void *cookie, const KExpr *x)
{
    Touched      *t = cookie;
    const KExpr  *at = x->kind == KX_UNARY && x->op == KOP_PLACE ? x->arg[0] : NULL;
    if (x->kind == KX_LOAD && x->array == t->check->operand)
        touch(t, x->index, &t->read);
    t->check->bad |= at && at->kind == KX_LOAD && (at->array == t->check->operand || at->array == t->check->result); /* its neighbours, too */
}

static void touch_store(void *cookie, const KStmt *s)
{
    Touched *t = cookie;
    if (s->kind == KS_STORE && s->array == t->check->result)
        touch(t, s->index, &t->written);
}

static Touched touched_by(PartCheck *c, const KStmt *s)
{
    Touched  t = { .check = c, .apart = true };
    KVisitor v = { touch_load, touch_store, &t };
    kernel_visit_stmt(s, &v);
    return t;
}

/* Trips of the loop s have parts of their own. */
static bool has_parts(PartCheck *c, const KStmt *s)
{
    c->loop[c->n++] = s->loop;
    Touched t = touched_by(c, s);
    c->n--;
    add_places(&t.read, t.written);
    int64_t step = ix_coef(t.first, s->loop), wide;
    return t.apart && !__builtin_sub_overflow(t.read.hi, t.read.lo, &wide) && (step > 0 ? wide < step : wide < -step);
}

static void check_parts(PartCheck *c, const KBlock *b)
{
    Places written = { .some = false };
    for (const KStmt *s = b->first; s && !c->bad; s = s->next) {
        Touched t = touched_by(c, s);
        c->bad |= t.read.some && written.some && t.read.lo <= written.hi && written.lo <= t.read.hi;
        add_places(&written, t.written);
        if (!t.read.some || !t.written.some || c->bad)
            continue;
        bool loop = s->kind == KS_FOR;
        if (s->kind == KS_LOOP || (loop && (c->n == MOST_LOOPS || !has_parts(c, s)))) {
            c->bad = true;
            break;
        }
        if (loop)
            c->loop[c->n++] = s->loop;
        if (s->body)
            check_parts(c, s->body);
        if (s->other)
            check_parts(c, s->other);
        c->n -= loop;
    }
}

static bool reads_parts_in_time(const Kernel *k, const KArray *result, const KArray *operand)
{
    PartCheck c = { .result = result, .operand = operand };
    check_parts(&c, k->body);
    return !c.bad;
}

/* ---- values in front of loops ---- */

typedef struct Sought {
    const KArray *array;
    bool          found;
} Sought;

static void seek_load(void *cookie, const KExpr *x)
{
    Sought *s = cookie;
    s->found |= x->kind == KX_LOAD && x->array == s->array;
}

/* Loops that write the result need a value of the operand from before them, which threads that share the loops could not read in time:
 *
 *   m = x[0];  for i  r[i] = x[i] / m
 *
 * Nor could many threads where one has written it beside them:
 *
 *   m = x[0];  r[0] = m + 1;  for i  y[i] = z[i] / m */
static bool needs_before(const Kernel *k, const KArray *result, const KArray *operand, bool plain)
{
    Sought   sought = { .array = operand };
    KVisitor v = { seek_load, NULL, &sought };
    bool     written = false;
    for (const KStmt *s = k->body->first; s; s = s->next) {
        if (s->kind == KS_DECLARE)
            kernel_visit_stmt(s, &v);
        else if (s->kind == KS_STORE)
            written |= plain && sought.found && s->array == result;
        else if (s->kind == KS_FOR && ((sought.found && stores_to(s->body, result)) || written))
            return true;
    }
    return false;
}

bool kernel_same_place(const Kernel *k, const KArray *result, const KArray *operand, bool plain)
{
    if (type_bytes(result->type) != type_bytes(operand->type) || result->count != operand->count || needs_before(k, result, operand, plain))
        return false;
    return (!result->rewritten && !result->read && kernel_reads_in_time(k, result, operand)) || (!plain && reads_parts_in_time(k, result, operand));
}
