#include "emit/backwards.h"

#include "emit/beside.h"
#include "support/vec.h"

enum { LEAST_PIECES = 4, MOST_PIECE = 32 /* bytes: longer ones are vectors, or two of one */, MOST_BYTES = 32768 /* of a line: the first cache has them and what is made of them */ };

/* Loads of one line, piece by piece from its end. */
typedef struct Line {
    const KExpr *load;
    const Ix    *first; /* of the line in the array */
    KArray      *turned;
} Line;

typedef struct Pieces {
    Kernel      *k;
    IxCtx       *cx;
    const KStmt *loop, *inner; /* over pieces, over elements of one */
    int64_t      n, each;
    bool         bad;
    VEC(Line)    lines;
} Pieces;

static int64_t trips(const KStmt *s)
{
    return s->kind == KS_FOR && !s->from && !s->end && s->loop->lo == 0 ? s->loop->hi + 1 : 0;
}

static Line *line_of(const Pieces *p, const KExpr *load)
{
    for (int32_t i = 0; i < p->lines.n; i++)
        if (p->lines.v[i].load->array == load->array && ix_equal(p->lines.v[i].load->index, load->index))
            return &p->lines.v[i];
    return NULL;
}

static bool goes_backwards(const Pieces *p, const KExpr *x)
{
    return x->kind == KX_LOAD && x->array->kind != KARRAY_LOCAL && ix_coef(x->index, p->loop->loop) == -p->each && ix_coef(x->index, p->inner->loop) == 1;
}

/* Where the line begins: index without the loops, at the last piece. */
static const Ix *first_of(const Pieces *p, const Ix *index)
{
    return ix_plus(p->cx, ix_replace(p->cx, ix_replace(p->cx, index, p->inner->loop, ix_const(p->cx, 0)), p->loop->loop, ix_const(p->cx, 0)), -(p->n - 1) * p->each);
}

static void look_at(void *cookie, const KExpr *x)
{
    Pieces *p = cookie;
    int64_t lo, hi;
    p->bad |= x->kind == KX_UNARY && x->op == KOP_PLACE;
    if (!goes_backwards(p, x) || line_of(p, x))
        return;
    const Line line = { .load = x, .first = first_of(p, x->index) };
    ix_range(line.first, &lo, &hi);
    p->bad |= lo < 0 || hi + p->n * p->each > x->array->count;
    vec_push(p->k->arena, &p->lines, line);
}

static bool only_declares_and_stores(const KBlock *b)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if (!(s->kind == KS_DECLARE && s->value && !s->temp->assigned) && !(s->kind == KS_STORE && !s->atomic))
            return false;
    return true;
}

static bool is_written(const Pieces *p)
{
    for (const KStmt *s = p->inner->body->first; s; s = s->next)
        for (int32_t i = 0; i < p->lines.n; i++)
            if (s->kind == KS_STORE && s->array == p->lines.v[i].load->array)
                return true;
    return false;
}

static bool has_pieces(Pieces *p)
{
    p->inner = p->loop->body ? p->loop->body->first : NULL;
    p->n = trips(p->loop);
    p->each = p->inner && !p->inner->next ? trips(p->inner) : 0;
    if (p->loop->turning || p->n < LEAST_PIECES || p->each < 2 || !only_declares_and_stores(p->inner->body))
        return false;
    kernel_visit(p->inner->body, &(KVisitor){ look_at, NULL, p });
    for (int32_t i = 0; i < p->lines.n; i++) {
        const int64_t bytes = p->each * type_bytes(p->lines.v[i].load->array->type);
        p->bad |= bytes > MOST_PIECE || bytes * p->n > MOST_BYTES;
    }
    return p->lines.n > 0 && !p->bad && !is_written(p);
}

/* to[piece * each + element] = line[(n - 1 - piece) * each + element] */
static KStmt *turning_nest(const Pieces *p, const Line *line, KArray *to, const Ix *at)
{
    Arena        *a = p->k->arena;
    const IxAtom *piece = ix_new_atom(p->cx, IX_LOOP, "piece", 0, p->n - 1, 0, NULL), *element = ix_new_atom(p->cx, IX_LOOP, "element", 0, p->each - 1, 0, NULL);
    const Ix     *forth = ix_add(p->cx, ix_times(p->cx, ix_of(p->cx, piece), p->each), ix_of(p->cx, element));
    const Ix     *back = ix_plus(p->cx, ix_add(p->cx, ix_times(p->cx, ix_of(p->cx, piece), -p->each), ix_of(p->cx, element)), (p->n - 1) * p->each);
    const Turning t = { .to = to, .from = line->load->array, .to_at = at, .from_at = line->first, .stride = p->each, .rows = p->n, .columns = p->each, .backwards = true };
    KStmt        *store = arena_copy(a, &(KStmt){ .kind = KS_STORE, .array = to, .index = ix_add(p->cx, at, forth), .value = kx_load(a, line->load->array, ix_add(p->cx, line->first, back)) }, sizeof(KStmt));
    KBlock       *inside = ARENA_NEW(a, KBlock), *around = ARENA_NEW(a, KBlock);
    inside->first = inside->last = store;
    around->first = around->last = arena_copy(a, &(KStmt){ .kind = KS_FOR, .loop = element, .body = inside }, sizeof(KStmt));
    return arena_copy(a, &(KStmt){ .kind = KS_FOR, .loop = piece, .body = around, .turning = arena_copy(a, &t, sizeof t) }, sizeof(KStmt));
}

/* The one store of the loops, if that copies the line; NULL. */
static const KStmt *mere_copy(const Pieces *p)
{
    const KStmt *s = p->inner->body->first;
    const bool   copies = s->kind == KS_STORE && !s->next && s->value == p->lines.v[0].load && s->array->type == p->lines.v[0].load->array->type;
    return copies && ix_coef(s->index, p->loop->loop) == p->each && ix_coef(s->index, p->inner->loop) == 1 ? s : NULL;
}

static const KExpr *load_turned(void *cookie, const KExpr *x)
{
    const Pieces *p = cookie;
    const Line   *line = line_of(p, x);
    return line ? kx_load(p->k->arena, line->turned, ix_add(p->cx, ix_times(p->cx, ix_of(p->cx, p->loop->loop), p->each), ix_of(p->cx, p->inner->loop))) : NULL;
}

/* Puts s into *link's place, or in front of what is there. */
static KStmt **insert(KStmt **link, KStmt *s)
{
    s->next = *link;
    *link = s;
    return &s->next;
}

static KStmt **turn_line(Pieces *p, Line *line, KStmt **link)
{
    Arena *a = p->k->arena;
    line->turned = ARENA_NEW(a, KArray);
    *line->turned = (KArray){ .kind = KARRAY_LOCAL, .type = line->load->array->type, .name = arena_printf(a, "%s_backwards", line->load->array->name), .count = p->n * p->each, .restricted = true };
    kernel_add_arrays(p->k, 1, &line->turned);
    link = insert(link, arena_copy(a, &(KStmt){ .kind = KS_ARRAY, .array = line->turned }, sizeof(KStmt)));
    return insert(link, turning_nest(p, line, line->turned, ix_const(p->cx, 0)));
}

static void in_block(Kernel *k, IxCtx *cx, KBlock *b)
{
    for (KStmt **link = &b->first; *link; link = &(*link)->next) {
        KStmt *s = *link;
        Pieces p = { .k = k, .cx = cx, .loop = s };
        if (s->kind != KS_FOR || !has_pieces(&p)) {
            if (s->body)
                in_block(k, cx, s->body);
            if (s->other)
                in_block(k, cx, s->other);
            continue;
        }
        const KStmt *copy = mere_copy(&p);
        if (copy) {
            KStmt *nest = turning_nest(&p, &p.lines.v[0], copy->array, ix_replace(cx, ix_replace(cx, copy->index, p.inner->loop, ix_const(cx, 0)), s->loop, ix_const(cx, 0)));
            nest->next = s->next;
            *link = nest;
            b->last = nest->next ? b->last : nest;
            continue;
        }
        for (int32_t i = 0; i < p.lines.n; i++)
            link = turn_line(&p, &p.lines.v[i], link);
        ((KStmt *)(uintptr_t)p.inner)->body = kernel_rewrite(k->arena, p.inner->body, &(KRewriter){ load_turned, NULL, &p });
        kernel_join(s, cx);
    }
}

void kernel_pieces_backwards(Kernel *k, IxCtx *cx)
{
    for (int32_t i = 0; i < k->n_results * k->n_operands; i++)
        if (k->may_alias[i])
            return;
    IxCtx quiet = *cx;
    quiet.split = NULL;
    in_block(k, &quiet, k->body);
    quiet.split = cx->split;
    *cx = quiet;
}
