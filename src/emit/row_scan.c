/* Loops of a row whose sum so far is used in the loop:
 *
 *     for k:                              its sums alone:
 *         v = x[i * 1000 + k]                 v = x[i * 1000 + k]
 *         w = y[k]                            acc = acc + v
 *         acc = acc + v
 *         out[i * 1000 + k] = acc * w
 *
 * What is summed up may not depend on the sum, so that threads can sum up their iterations first, and then go through them with what is before theirs. */
#include "emit/rows.h"

#include "support/map.h"
#include "support/vec.h"

typedef struct Front {
    Arena               *arena;
    const Kernel        *k;
    const RowStep       *step;
    Map                  needed;   /* temporaries */
    VEC(const KArray *)  loaded;
    VEC(const KArray *)  stored;   /* before the last accumulator is assigned */
    int32_t              assigned; /* of accumulators */
    bool                 bad;      /* something depends on an accumulator */
} Front;

static bool is_accumulator(const RowStep *step, const KTemp *t)
{
    for (int32_t j = 0; j < step->n_combined; j++)
        if (step->combined[j]->temp == t)
            return true;
    return false;
}

static void need_temp(Front *f, const KTemp *t)
{
    f->bad |= is_accumulator(f->step, t);
    map_put(&f->needed, t, f);
}

static void need_index(Front *f, const Ix *x)
{
    for (int32_t i = 0; i < x->n; i++) {
        if (x->t[i].atom->kind == IX_VALUE)
            need_temp(f, x->t[i].atom->owner);
        if (x->t[i].atom->arg)
            need_index(f, x->t[i].atom->arg);
    }
}

static void need(Front *f, const KExpr *x)
{
    if (x->kind == KX_TEMP)
        need_temp(f, x->temp);
    if (x->kind == KX_LOAD)
        vec_push(f->arena, &f->loaded, x->array);
    if (x->index)
        need_index(f, x->index);
    for (int32_t j = 0; j < x->n; j++)
        need(f, x->arg[j]);
}

static KBlock *front_of(Front *f, const KBlock *b);

/* Whether the sums need s, of which later statements are known. */
static bool keep(Front *f, const KStmt *s, KStmt *copy)
{
    *copy = *s;
    switch (s->kind) {
    case KS_DECLARE:
        if (map_has(&f->needed, s->temp) && s->value)
            need(f, s->value);
        return map_has(&f->needed, s->temp);
    case KS_ASSIGN:
        if (is_accumulator(f->step, s->temp)) {
            f->assigned++;
            need(f, s->value->arg[1]);
            return true;
        }
        if (map_has(&f->needed, s->temp)) /* the iteration's own, in a branch */
            need(f, s->value);
        return map_has(&f->needed, s->temp);
    case KS_STORE:
        if (f->assigned > 0)
            vec_push(f->arena, &f->stored, s->array);
        return false;
    case KS_IF: case KS_BLOCK:
        copy->body = front_of(f, s->body);
        copy->other = s->other ? front_of(f, s->other) : NULL;
        if (copy->other && !copy->other->first)
            copy->other = NULL;
        if (!copy->body->first && !copy->other)
            return false;
        if (s->kind == KS_IF)
            need(f, s->value);
        return true;
    case KS_FOR: case KS_ARRAY: case KS_LOOP: case KS_BREAK:
        f->bad = true;
        return false;
    }
    die("a statement of no kind");
}

static KBlock *front_of(Front *f, const KBlock *b)
{
    VEC(const KStmt *) all = { 0 };
    VEC(KStmt) kept = { 0 };
    KBlock    *out = ARENA_NEW(f->arena, KBlock);
    for (const KStmt *s = b->first; s; s = s->next)
        vec_push(f->arena, &all, s);
    for (int32_t j = all.n; j-- > 0;) {
        KStmt copy;
        if (keep(f, all.v[j], &copy))
            vec_push(f->arena, &kept, copy);
    }
    for (int32_t j = kept.n; j-- > 0;)
        kblock_append_copy(f->arena, out, &kept.v[j]);
    return out;
}

const KBlock *kernel_scan_sums(Arena *a, const KBlock *body, const RowStep *step)
{
    Front f = { .arena = a, .step = step, .needed = map_new(a) };
    return front_of(&f, body);
}

typedef struct Uses {
    const RowStep *step;
    int32_t        n;
} Uses;

static void count_use(void *cookie, const KExpr *x)
{
    Uses *u = cookie;
    u->n += x->kind == KX_TEMP && is_accumulator(u->step, x->temp);
}

/* Lanes can hand on what is summed up; of complex numbers sums alone, since a product with 1 may change what is not finite. */
static bool hands_on(const KStmt *s)
{
    const Type t = s->temp->type;
    return type_is_complex(t) ? s->value->kind == KX_BINARY && s->value->op == KOP_ADD : type_bytes(t) <= 8;
}

bool kernel_is_scan(Arena *a, const Kernel *k, const RowStep *step, int32_t uses)
{
    Front    f = { .arena = a, .k = k, .step = step, .needed = map_new(a) };
    Uses     u = { step, 0 };
    KVisitor v = { count_use, NULL, &u };
    if (step->n_combined == 0 || step->stmt != step->dealt)
        return false;
    kernel_visit(step->dealt->body, &v);
    front_of(&f, step->dealt->body);
    for (int32_t j = 0; j < step->n_combined; j++) {
        f.bad |= !hands_on(step->combined[j]);
        for (int32_t i = 0; i < j; i++)
            f.bad |= step->combined[i]->temp == step->combined[j]->temp;
    }
    for (int32_t j = 0; j < f.stored.n; j++)
        for (int32_t i = 0; i < f.loaded.n; i++)
            f.bad |= kernel_same_memory(k, f.stored.v[j], f.loaded.v[i]);
    return !f.bad && f.assigned == step->n_combined && u.n == uses;
}
