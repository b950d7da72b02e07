/* What makes a part a row of steps. All statements are looked at once; what is not understood makes it none. */
#include "emit/rows.h"

#include "support/map.h"
#include "support/vec.h"

#include <string.h>

enum { SHORT = 8 /* trips that are not worth sharing */, SHORT_INNER = 128 /* of a loop beside which others may be dealt out */ };

typedef struct Touch { /* of an element of an array */
    const KArray *array;
    const Ix     *index;
    const RowStep *step; /* NULL: outside of loops */
    bool          store;
    int32_t       at;    /* number of the step */
} Touch;

typedef struct Rows {
    Arena        *arena;
    const Kernel *k;
    const ThreadPart *part;
    RowPart      *out;
    VEC(RowStep *) steps;
    VEC(Touch)    touches;
    Map           accumulators; /* temporaries of the row that a loop will assign -> their declarations; NULL when it has */
    Map           own;          /* arrays and temporaries declared inside of the loop at hand */
    RowStep      *step;         /* at hand */
    int32_t       uses;         /* of accumulators in the loop at hand */
    VEC(const KStmt *) combined;
    VEC(const KStmt *) elements; /* declarations of a choice's elements in the loop at hand */
    bool          bad;
} Rows;

/* ---- one step ---- */

static void note_index(Rows *r, const Ix *x)
{
    for (int32_t i = 0; i < x->n; i++) {
        r->uses += x->t[i].atom->kind == IX_VALUE && map_get(&r->accumulators, x->t[i].atom->owner);
        if (x->t[i].atom->arg)
            note_index(r, x->t[i].atom->arg);
    }
}

static void note_load(void *cookie, const KExpr *x)
{
    Rows *r = cookie;
    if (x->kind == KX_LOAD && !map_has(&r->own, x->array))
        vec_push(r->arena, &r->touches, ((Touch){ x->array, x->index, r->step, false, r->steps.n - 1 }));
    if (x->kind == KX_TEMP && map_get(&r->accumulators, x->temp))
        r->uses++;
    if (x->index)
        note_index(r, x->index);
}

static bool is_call(const KExpr *x, const char *begins)
{
    return x->kind == KX_CALL && x->n == 2 && strncmp(x->fn, begins, strlen(begins)) == 0;
}

static bool is_extreme(const KExpr *x)
{
    return is_call(x, "max_") || is_call(x, "min_");
}

/* acc op x with an operation that may be done in any order, on a value that starts as its neutral element or that keeps what is equal. Integers wrap in calls. */
static bool is_combination(const KExpr *x, const KTemp *acc)
{
    bool first = x->n >= 2 && x->arg[0]->kind == KX_TEMP && x->arg[0]->temp == acc;
    if (x->kind == KX_CALL)
        return first && (is_extreme(x) || (type_is_int(x->type) && (is_call(x, "add_") || is_call(x, "mul_"))));
    return x->kind == KX_BINARY && first && (x->op == KOP_ADD || x->op == KOP_MUL || x->op == KOP_AND || x->op == KOP_OR || x->op == KOP_XOR);
}

static bool keeps_equal(const KExpr *x)
{
    return is_extreme(x) || (x->kind == KX_BINARY && (x->op == KOP_AND || x->op == KOP_OR));
}

static bool is_neutral(const KExpr *op, const KExpr *start)
{
    return keeps_equal(op) || (start && kx_is_number(start, is_call(op, "mul_") || (op->kind == KX_BINARY && op->op == KOP_MUL) ? 1 : 0));
}

static void note_stmt(void *cookie, const KStmt *s)
{
    Rows *r = cookie;
    switch (s->kind) {
    case KS_STORE:
        note_index(r, s->index);
        if (!map_has(&r->own, s->array))
            vec_push(r->arena, &r->touches, ((Touch){ s->array, s->index, r->step, true, r->steps.n - 1 }));
        return;
    case KS_ASSIGN:
        if (map_has(&r->own, s->temp))
            return;
        r->bad |= r->elements.n == 0 && !is_combination(s->value, s->temp);
        vec_push(r->arena, &r->combined, s);
        return;
    case KS_DECLARE: case KS_ARRAY: case KS_FOR: case KS_IF: case KS_LOOP: case KS_BREAK: case KS_BLOCK: return;
    }
    die("a statement of no kind");
}

/* What belongs to one iteration of the loop is known first. */
static void note_declared(void *cookie, const KStmt *s)
{
    Rows *r = cookie;
    if (s->kind == KS_DECLARE)
        map_put(&r->own, s->temp, r);
    if (s->kind == KS_DECLARE && s->temp->element_of)
        vec_push(r->arena, &r->elements, s);
    if (s->kind == KS_ARRAY)
        map_put(&r->own, s->array, r);
}

static int64_t trips(const KStmt *loop)
{
    return loop->loop->hi - loop->loop->lo + 1;
}

static bool has_fixed_bounds(const KStmt *s)
{
    return s->kind == KS_FOR && !s->from && !s->end;
}

/* Of loops with nothing but each other inside, the one with most trips, the innermost of those. */
static const KStmt *dealt_loop(const KStmt *s)
{
    const KStmt *best = s;
    while (s->body->first && !s->body->first->next && has_fixed_bounds(s->body->first)) {
        s = s->body->first;
        if (trips(s) >= trips(best))
            best = s;
    }
    return best;
}

static bool is_among(const KBlock *b, const KStmt *s)
{
    for (const KStmt *t = b->first; t; t = t->next)
        if (t == s)
            return true;
    return false;
}

/* The loop's accumulators are those of one choice alone, which is behind its elements. */
static void add_choice(Rows *r)
{
    RowStep *step = r->step;
    step->n_chosen = r->elements.n;
    step->chosen = ARENA_ARRAY(r->arena, const KTemp *, r->elements.n);
    step->starts = ARENA_ARRAY(r->arena, const KStmt *, r->elements.n);
    r->bad |= r->elements.n != r->combined.n;
    for (int32_t j = 0; j < r->elements.n && !r->bad; j++) {
        const KStmt *s = r->elements.v[j], *start = map_get(&r->accumulators, s->temp->element_of);
        bool         assigned = false;
        for (int32_t i = 0; i < r->combined.n; i++)
            assigned |= r->combined.v[i]->temp == s->temp->element_of && is_among(step->dealt->body, r->combined.v[i]);
        r->bad |= !assigned || !start || !is_among(step->dealt->body, s);
        step->chosen[j] = s->temp;
        step->starts[j] = start;
        step->choose = s->next;
    }
    for (int32_t j = 0; j < r->elements.n; j++)
        map_put(&r->accumulators, r->elements.v[j]->temp->element_of, NULL);
    r->out->sums = true;
}

static void add_loop(Rows *r, const KStmt *s)
{
    KVisitor names = { NULL, note_declared, r }, all = { note_load, note_stmt, r };
    r->step->dealt = dealt_loop(s);
    r->own = map_new(r->arena);
    r->combined.n = r->elements.n = 0;
    r->uses = 0;
    kernel_visit_stmt(s, &names);
    kernel_visit_stmt(s, &all);
    r->bad |= !has_fixed_bounds(s);
    if (trips(r->step->dealt) > r->out->longest)
        r->out->longest = trips(r->step->dealt);
    if (r->elements.n > 0) {
        add_choice(r);
        return;
    }
    r->step->n_combined = r->combined.n;
    r->step->combined = arena_copy(r->arena, r->combined.v, (size_t)r->combined.n * sizeof *r->combined.v);
    r->step->scan = !r->bad && r->uses != r->combined.n && kernel_is_scan(r->arena, r->k, r->step, r->uses);
    r->bad |= r->uses != r->combined.n && !r->step->scan;
    for (int32_t j = 0; j < r->combined.n; j++) {
        const KStmt *declared = map_get(&r->accumulators, r->combined.v[j]->temp);
        r->bad |= !declared || (!r->step->scan && !is_neutral(r->combined.v[j]->value, declared->value));
        map_put(&r->accumulators, r->combined.v[j]->temp, NULL); /* from now on a scalar as others */
    }
    r->out->sums |= r->combined.n > 0 && !r->step->scan;
    r->out->scans |= r->step->scan;
}

static void add_single(Rows *r, const KStmt *s)
{
    KVisitor all = { note_load, NULL, r };
    r->uses = 0;
    r->own = map_new(r->arena);
    kernel_visit_stmt(s, &all);
    r->bad |= r->uses > 0;
    if (s->kind == KS_STORE)
        vec_push(r->arena, &r->touches, ((Touch){ s->array, s->index, NULL, true, r->steps.n - 1 }));
}

static void add_step(Rows *r, const KStmt *s)
{
    RowStep *step = ARENA_NEW(r->arena, RowStep);
    *step = (RowStep){ .kind = s->kind == KS_FOR ? ROW_LOOP : s->kind == KS_STORE ? ROW_STORE : ROW_SCALAR, .stmt = s };
    r->step = step->kind == ROW_LOOP ? step : NULL;
    vec_push(r->arena, &r->steps, step);
    switch (s->kind) {
    case KS_FOR: add_loop(r, s); return;
    case KS_ARRAY: r->out->array_bytes += s->array->count * type_bytes(s->array->type); return;
    case KS_DECLARE:
        add_single(r, s);
        if (s->temp->assigned)
            map_put(&r->accumulators, s->temp, (void *)(uintptr_t)s);
        return;
    case KS_STORE: add_single(r, s); return;
    case KS_ASSIGN: case KS_IF: case KS_LOOP: case KS_BREAK: case KS_BLOCK: r->bad = true; return;
    }
    die("a statement of no kind");
}

/* ---- all of them ---- */

static bool inside_division(const Ix *x, const IxAtom *loop)
{
    for (int32_t i = 0; i < x->n; i++)
        if (x->t[i].atom->arg && ix_has(x->t[i].atom->arg, loop))
            return true;
    return false;
}

/* A loop of the touch's nest. */
static bool is_of_nest(const Touch *t, const IxAtom *loop)
{
    bool found = false;
    for (const KStmt *s = t->step->stmt; s && s->kind == KS_FOR && !found; s = s->body->first)
        found = s->loop == loop;
    return found;
}

/* Whatever x has besides its own loops, y has too. */
static bool has_rest_of(const Touch *y, const Touch *x)
{
    for (int32_t k = 0; k < x->index->n; k++)
        if (!is_of_nest(x, x->index->t[k].atom) && ix_coef(y->index, x->index->t[k].atom) != x->index->t[k].k)
            return false;
    return true;
}

/* Elements that both lead to are those of the same value of the loops that are dealt out, of touches that spread. */
static bool same_element(const Touch *x, const Touch *y)
{
    return x->index->c == y->index->c && ix_coef(x->index, x->step->dealt->loop) == ix_coef(y->index, y->step->dealt->loop) && has_rest_of(x, y) && has_rest_of(y, x);
}

/* Different values of the loop that is dealt out lead to different elements, whatever those of the nest's other loops are. */
static bool spreads(const Touch *t)
{
    const KStmt *dealt = t->step->dealt;
    int64_t      k = ix_coef(t->index, dealt->loop), span;
    if (k == 0 || inside_division(t->index, dealt->loop) || __builtin_mul_overflow(k, trips(dealt), &span))
        return false;
    for (const KStmt *s = t->step->stmt; s && s->kind == KS_FOR; s = s->body->first)
        if (s != dealt && ix_coef(t->index, s->loop) % span != 0)
            return false;
    return true;
}

static bool makes_wait(const RowStep *step)
{
    return step->kind == ROW_LOOP && !step->scan && (step->n_combined > 0 || step->n_chosen > 0);
}

/* All threads have read before any of them stores. */
static bool reads_before(const Rows *r, const Touch *t, const Touch *s)
{
    bool waits = false;
    for (int32_t j = t->at; j >= 0 && j < s->at; j++)
        waits |= makes_wait(r->steps.v[j]);
    return !t->store && waits;
}

/* What the tail stores others have read before, and later ones of the tail are the same thread's. */
static bool agree(const Rows *r, const Touch *s, const Touch *t)
{
    if (s == t || !kernel_same_memory(r->k, s->array, t->array) || (s->at >= r->out->tail && (!t->store || t->at >= r->out->tail)))
        return true;
    if (reads_before(r, t, s)) {
        r->steps.v[s->at]->overwrites = true;
        return true;
    }
    if (!s->step || !t->step || trips(s->step->dealt) != trips(t->step->dealt) || s->step->dealt->loop->lo != t->step->dealt->loop->lo)
        return false;
    return same_element(s, t) && spreads(t);
}

/* Behind the last loop, if that makes everybody wait. */
static void find_tail(const Rows *r)
{
    int32_t last = r->steps.n - 1;
    while (last >= 0 && r->steps.v[last]->kind != ROW_LOOP)
        last--;
    bool waits = last >= 0 && makes_wait(r->steps.v[last]);
    for (int32_t j = last + 1; j < r->steps.n; j++)
        waits &= r->steps.v[j]->stmt->kind != KS_ARRAY;
    r->out->tail = waits ? last + 1 : r->steps.n;
}

static bool all_agree(const Rows *r)
{
    for (int32_t i = 0; i < r->touches.n; i++) {
        const Touch *s = &r->touches.v[i];
        if (!s->store)
            continue;
        if (s->step && !spreads(s))
            return false;
        for (int32_t j = 0; j < r->touches.n; j++)
            if (!agree(r, s, &r->touches.v[j]))
                return false;
    }
    return true;
}

static bool is_one_for_all(const Rows *r, const Ix *x)
{
    for (int32_t j = 0; j < r->part->n_loops; j++)
        if (ix_has(x, r->part->loops[j]))
            return false;
    return r->part->n_loops > 0;
}

static bool is_own(const Rows *r, const Ix *x)
{
    bool own = true;
    for (int32_t j = 0; j < r->part->n_loops; j++)
        own &= ix_has(x, r->part->loops[j]);
    return own;
}

/* From one iteration of the loop to the next; where a few of them share an element, as bits of a byte do, from one element to the next. */
static int64_t step_of(const Ix *x, const IxAtom *loop)
{
    enum { FEW = 8 };
    int64_t k = ix_coef(x, loop);
    for (int32_t i = 0; i < x->n && k == 0; i++)
        if (x->t[i].atom->kind == IX_DIV && x->t[i].atom->by <= FEW && ix_has(x->t[i].atom->arg, loop))
            k = x->t[i].k;
    return k;
}

/* Something that the loop reads lies side by side along it; across it, along the part's last loop. What is the same for all rows does not count. */
static void find_directions(const Rows *r, const RowStep *step, bool *along, bool *across)
{
    const IxAtom *last = r->part->n_loops > 0 ? r->part->loops[r->part->n_loops - 1] : NULL;
    for (int32_t i = 0; i < r->touches.n; i++) {
        const Touch *t = &r->touches.v[i];
        int64_t      k = t->step == step ? step_of(t->index, step->dealt->loop) : 0;
        *along |= (k == 1 || k == -1) && !is_one_for_all(r, t->index);
        r->out->own |= (k == 1 || k == -1) && !t->store && is_own(r, t->index);
        *across |= last && k != 0 && k != 1 && k != -1 && ix_coef(t->index, last) == 1;
    }
}

/* Whether all loops go down a column, in which something is summed up or chosen. False when rows are read across in other ways, which threads do better one by one. */
static bool find_column(const Rows *r)
{
    bool along = false, across = false;
    for (int32_t j = 0; j < r->steps.n; j++)
        if (r->steps.v[j]->kind == ROW_LOOP) {
            r->out->n_loops++;
            find_directions(r, r->steps.v[j], &along, &across);
        }
    r->out->column = across && !along && r->out->sums && !r->out->scans;
    return !across || r->out->column;
}

/* for i: for j: acc += x[i * 64 + j] */
static bool is_beside(const Rows *r, const RowStep *step, const KStmt *outer, const KStmt *inner)
{
    bool along = false, across = false;
    if (!inner || inner->next || !has_fixed_bounds(inner))
        return false;
    for (int32_t i = 0; i < r->touches.n; i++) {
        const Touch  *t = &r->touches.v[i];
        const int64_t far = t->step == step ? ix_coef(t->index, outer->loop) : 0, near = t->step == step ? ix_coef(t->index, inner->loop) : 0;
        along |= far != 0 && (near == 1 || near == -1);
        across |= far == 1 || far == -1;
    }
    return along && !across;
}

/* The loop around s in its step; NULL: s is the outermost one. */
static const KStmt *loop_around(const RowStep *step, const KStmt *s)
{
    const KStmt *around = NULL;
    for (const KStmt *t = step->stmt; t != s; t = t->body->first)
        around = t;
    return around;
}

/* Short loops leave threads for the one around them. */
static void deal_two(const Rows *r, RowStep *step)
{
    if (step->kind != ROW_LOOP || step->n_combined == 0 || step->scan)
        return;
    const KStmt *inner = step->dealt->body->first, *outer = trips(step->dealt) <= SHORT_INNER ? loop_around(step, step->dealt) : NULL;
    if (is_beside(r, step, step->dealt, inner)) {
        step->beside = inner;
    } else if (outer && is_beside(r, step, outer, step->dealt)) {
        step->beside = step->dealt;
        step->dealt = outer;
    }
}

static void find_beside(const Rows *r)
{
    bool stores = false;
    for (int32_t i = 0; i < r->touches.n; i++)
        stores |= r->touches.v[i].store && r->touches.v[i].step;
    for (int32_t j = 0; j < r->steps.n && !stores; j++)
        deal_two(r, r->steps.v[j]);
}

bool kernel_row_part(Arena *a, const Kernel *k, const ThreadPart *part, RowPart *out)
{
    Rows r = { .arena = a, .k = k, .part = part, .out = out, .accumulators = map_new(a), .own = map_new(a) };
    *out = (RowPart){ 0 };
    for (const KStmt *s = part->body->first; s && !r.bad; s = s->next)
        add_step(&r, s);
    find_tail(&r);
    if (r.bad || out->longest < SHORT || !all_agree(&r) || !find_column(&r))
        return false;
    find_beside(&r);
    out->n_steps = r.steps.n;
    out->steps = ARENA_ARRAY(a, RowStep, r.steps.n);
    for (int32_t j = 0; j < r.steps.n; j++)
        out->steps[j] = *r.steps.v[j];
    return true;
}
