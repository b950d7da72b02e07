/* A run is a row of statements without loops: they become the body of one loop over columns. What they compute without looking at columns stays in front of it. Loops
 * are gone through in the same order by each column, so that nothing else changes. */
#include "emit/columns.h"

#include "analysis/columns.h"
#include "emit/threads.h"
#include "support/vec.h"

enum {
    WIDE = COLUMNS_WIDE, /* what is fetched ahead of shorter pieces of rows is of use to nobody */
    SECOND_CACHE = 768 << 10, /* bytes of what a block goes through */
    THIRD_CACHE = 4 << 20, /* likewise of rows that lie one behind the other, where half as many columns would already be too much for the second one */
    MOST_LOCAL = COLUMN_BYTES_LOCAL, /* of a block's own arrays */
    UNROLLED = 16,         /* trips at most of what gcc unrolls before it makes vectors */
    FEW = 64,              /* columns */
    LEAST_VECTOR = 4
};

typedef struct Loops {
    const IxAtom *was, *is;
} Loops;

typedef struct Columns {
    Kernel       *k;
    IxCtx        *cx;
    KStmt        *loop;
    int32_t       run, runs;
    Map           home;     /* temporary that the loop declares: the run, as the address of an element of `marks` */
    Map           private;  /* arrays that it declares */
    Map           used;     /* those of them that it reads or writes */
    Map           written;  /* arrays that it writes */
    Map           varies;   /* temporaries that are not the same in all columns, or not for long */
    Map           moved;    /* temporary or array: what it becomes */
    Map           own;      /* temporary that stays one: that of the blocks that are being made */
    VEC(KTemp *)  handed;   /* temporaries that a run hands on */
    VEC(KArray *) new_arrays;
    VEC(const IxAtom *) around; /* loops, while the body is looked at */
    Map           indexed;  /* temporaries in indices */
    Map           streams;  /* arrays of others: an element of `bytes`, those of a column */
    VEC(int64_t *) bytes;
    int64_t       own_bytes; /* of a column's own arrays */
    bool          bad, along; /* along: columns lie together */
    bool          alone;      /* nothing is around the loop */
    bool          rows;       /* of columns_of_rows */
    char         *marks;
    int64_t       width;
    const Ix     *at;       /* a column's number */
    VEC(Loops)    loops;    /* around what is being made */
} Columns;

/* ---- looking ---- */

static int64_t trips(const IxAtom *loop)
{
    return loop->hi - loop->lo + 1;
}

static bool has_loop(const KBlock *b)
{
    for (const KStmt *s = b ? b->first : NULL; s; s = s->next)
        if (s->kind == KS_FOR || has_loop(s->body) || has_loop(s->other))
            return true;
    return false;
}

static bool contains_loop(const KStmt *s)
{
    return s->kind == KS_FOR || has_loop(s->body) || has_loop(s->other);
}

static bool index_varies(const Columns *c, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        const IxAtom *y = x->t[i].atom;
        if (y == c->loop->loop || (y->kind == IX_VALUE && map_has(&c->varies, y->owner)) || index_varies(c, y->arg))
            return true;
    }
    return false;
}

static bool expr_varies(const Columns *c, const KExpr *x)
{
    bool varies = x && (index_varies(c, x->index) || (x->kind == KX_TEMP && map_has(&c->varies, x->temp)) || (x->kind == KX_LOAD && map_has(&c->written, x->array)));
    for (int32_t i = 0; x && i < x->n && !varies; i++)
        varies = expr_varies(c, x->arg[i]);
    return varies;
}

/* What each of the columns declares for itself. */
static bool is_own(const Columns *c, const KStmt *s)
{
    return s->kind == KS_DECLARE && (s->temp->assigned || !s->value || expr_varies(c, s->value));
}

static void note_array(Columns *c, const KArray *array, const Ix *index)
{
    if (map_has(&c->private, array) && !map_has(&c->used, array)) {
        map_put(&c->used, array, c);
        c->own_bytes += array->count * type_bytes(array->type);
    }
    if (array->kind == KARRAY_LOCAL || ix_coef(index, c->loop->loop) == 0)
        return;
    c->along |= ix_coef(index, c->loop->loop) == 1;
    int64_t bytes = type_bytes(array->type), *known = map_get(&c->streams, array);
    for (int32_t k = 0; k < c->around.n; k++)
        if (ix_has(index, c->around.v[k]))
            bytes *= trips(c->around.v[k]);
    if (!known) {
        known = ARENA_NEW(c->k->arena, int64_t);
        map_put(&c->streams, array, known);
        vec_push(c->k->arena, &c->bytes, known);
    }
    *known = bytes > *known ? bytes : *known;
}

static void use_temp(Columns *c, const KTemp *t)
{
    const char *home = map_get(&c->home, t);
    if (!home || home == &c->marks[c->run] || map_has(&c->moved, t))
        return;
    map_put(&c->moved, t, c);
    vec_push(c->k->arena, &c->handed, (KTemp *)(uintptr_t)t);
}

static void use_index(Columns *c, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        const IxAtom *y = x->t[i].atom;
        if (y->kind == IX_VALUE) {
            use_temp(c, y->owner);
            map_put(&c->indexed, y->owner, c);
        }
        use_index(c, y->arg);
    }
}

static bool is_place(const KExpr *x)
{
    return x->kind == KX_UNARY && x->op == KOP_PLACE;
}

static void look_at_expr(void *cookie, const KExpr *x)
{
    Columns *c = cookie;
    use_index(c, x->index);
    if (x->kind == KX_TEMP)
        use_temp(c, x->temp);
    if (x->kind == KX_LOAD)
        note_array(c, x->array, x->index);
    c->bad |= x->kind == KX_DISTINCT || (is_place(x) && map_has(&c->private, x->arg[0]->array)); /* whose neighbours would be other columns' */
}

static void look_at_stmt(void *cookie, const KStmt *s)
{
    Columns *c = cookie;
    if (s->kind == KS_DECLARE && is_own(c, s)) {
        map_put(&c->varies, s->temp, c);
        map_put(&c->home, s->temp, &c->marks[c->run]);
    }
    if (s->kind == KS_ASSIGN) {
        c->bad |= !map_has(&c->home, s->temp);
        use_temp(c, s->temp);
    }
    if (s->kind == KS_STORE) {
        c->bad |= s->atomic || (s->array->kind == KARRAY_LOCAL && !map_has(&c->private, s->array));
        note_array(c, s->array, s->index);
    }
    use_index(c, s->index);
    c->bad |= s->from || s->end;
}

static void look_at(Columns *c, const KBlock *b)
{
    c->run = c->runs++;
    for (const KStmt *s = b->first; s; s = s->next) {
        if (!contains_loop(s)) {
            kernel_visit_stmt(s, &(KVisitor){ look_at_expr, look_at_stmt, c });
            continue;
        }
        c->bad |= s->kind != KS_FOR || s->from || s->end;
        if (c->bad)
            return;
        vec_push(c->k->arena, &c->around, s->loop);
        look_at(c, s->body);
        c->around.n--;
        c->run = c->runs++;
    }
}

static void note_written(void *cookie, const KStmt *s)
{
    Columns *c = cookie;
    c->runs++;
    if (s->kind == KS_STORE)
        map_put(&c->written, s->array, c);
    if (s->kind == KS_ARRAY)
        map_put(&c->private, s->array, c);
}

/* A scalar in an index has to be one. */
static bool hands_indices_on(const Columns *c)
{
    for (int32_t k = 0; k < c->handed.n; k++)
        if (map_has(&c->indexed, c->handed.v[k]))
            return true;
    return false;
}

static bool is_independent(const Columns *c)
{
    const IxAtom *const *loops;
    int32_t n = kernel_independent_loops(c->k->arena, c->k, c->loop, &loops);
    for (int32_t k = 0; k < n; k++)
        if (loops[k] == c->loop->loop)
            return true;
    return false;
}

static bool can_be_columns(Columns *c)
{
    Arena *a = c->k->arena;
    if (c->loop->from || c->loop->end || !has_loop(c->loop->body))
        return false;
    c->home = map_new(a);
    c->private = map_new(a);
    c->used = map_new(a);
    c->own = map_new(a);
    c->written = map_new(a);
    c->varies = map_new(a);
    c->moved = map_new(a);
    c->streams = map_new(a);
    c->indexed = map_new(a);
    kernel_visit(c->loop->body, &(KVisitor){ NULL, note_written, c });
    c->marks = ARENA_ARRAY(a, char, 2 * c->runs + 2);
    c->runs = 0;
    look_at(c, c->loop->body);
    return !c->bad && (c->along || c->rows) && !hands_indices_on(c) && is_independent(c);
}

/* ---- how many ---- */

/* A divisor of n that is not much smaller than most, or what leaves not much less than a block. */
static int64_t even_width(int64_t n, int64_t most)
{
    for (int64_t w = most; w >= most / 2 && w >= LEAST_COLUMNS; w -= LEAST_COLUMNS)
        if (n % w == 0)
            return w;
    const int64_t even = n / ((n + most - 1) / most);
    return (even + LEAST_COLUMNS - 1) / LEAST_COLUMNS * LEAST_COLUMNS;
}

static int64_t width(const Columns *c)
{
    int64_t n = trips(c->loop->loop), bytes = c->own_bytes, most = WIDE;
    for (int32_t k = 0; k < c->bytes.n; k++)
        bytes += *c->bytes.v[k];
    if (bytes > 0 && SECOND_CACHE / bytes < WIDE / 2 && THIRD_CACHE / bytes >= n)
        most = n;
    if (c->own_bytes > 0 && most > MOST_LOCAL / c->own_bytes)
        most = MOST_LOCAL / c->own_bytes / LEAST_COLUMNS * LEAST_COLUMNS;
    if (most < LEAST_COLUMNS)
        most = LEAST_COLUMNS;
    return n <= most ? n : even_width(n, most);
}

/* ---- rewriting ---- */

static const Ix *new_index(Columns *c, const Ix *x)
{
    if (!x)
        return NULL;
    x = ix_replace(c->cx, x, c->loop->loop, c->at);
    for (int32_t i = 0; i < c->loops.n; i++)
        x = ix_replace(c->cx, x, c->loops.v[i].was, ix_of(c->cx, c->loops.v[i].is));
    return x;
}

static const Ix *column_of(Columns *c, const Ix *index, const Ix *column)
{
    return index ? ix_add(c->cx, ix_times(c->cx, new_index(c, index), c->width), column) : column;
}

/* The temporary that stands for t in these blocks. */
static KTemp *own_temp(const Columns *c, KTemp *t)
{
    KTemp *own = t ? map_get(&c->own, t) : NULL;
    return own ? own : t;
}

static const KExpr *new_expr(Columns *c, const KExpr *x, const Ix *column)
{
    if (!x)
        return NULL;
    KArray *y = x->kind == KX_TEMP ? map_get(&c->moved, x->temp) : x->kind == KX_LOAD ? map_get(&c->moved, x->array) : NULL;
    if (y)
        return kx_load(c->k->arena, y, column_of(c, x->index, column));
    KExpr *copy = arena_copy(c->k->arena, x, sizeof *x);
    copy->temp = own_temp(c, x->temp);
    copy->index = new_index(c, x->index);
    for (int32_t i = 0; i < x->n; i++)
        copy->arg[i] = new_expr(c, x->arg[i], column);
    return copy;
}

static KBlock *new_body(Columns *c, const KBlock *b, const Ix *column);

/* A statement without loops, for one column; NULL: nothing is left of it. */
static KStmt *new_stmt(Columns *c, const KStmt *s, const Ix *column)
{
    KArray *y = s->temp ? map_get(&c->moved, s->temp) : s->kind == KS_STORE ? map_get(&c->moved, s->array) : NULL;
    if (s->kind == KS_DECLARE && y && !s->value)
        return NULL;
    KStmt *copy = arena_copy(c->k->arena, s, sizeof *s);
    copy->value = new_expr(c, s->value, column);
    if (s->kind == KS_DECLARE && !y && !map_has(&c->indexed, s->temp))
        map_put(&c->own, s->temp, arena_copy(c->k->arena, s->temp, sizeof *s->temp));
    copy->temp = own_temp(c, s->temp);
    copy->index = y ? column_of(c, s->index, column) : new_index(c, s->index);
    if (y) {
        copy->kind = KS_STORE;
        copy->array = y;
        copy->temp = NULL;
    }
    copy->body = s->body ? new_body(c, s->body, column) : NULL;
    copy->other = s->other ? new_body(c, s->other, column) : NULL;
    return copy;
}

static KBlock *new_body(Columns *c, const KBlock *b, const Ix *column)
{
    KBlock *copy = arena_copy(c->k->arena, b, sizeof *b);
    copy->first = copy->last = NULL;
    for (const KStmt *s = b->first; s; s = s->next) {
        KStmt *x = new_stmt(c, s, column);
        if (x)
            kblock_append(copy, x);
    }
    return copy;
}

static KArray *new_array(Columns *c, const char *name, Type type, int64_t count)
{
    KArray *x = ARENA_NEW(c->k->arena, KArray);
    *x = (KArray){ .kind = KARRAY_LOCAL, .type = type, .name = name, .count = count, .restricted = true };
    vec_push(c->k->arena, &c->new_arrays, x);
    return x;
}

static void declare_array(Columns *c, KBlock *to, KArray *x)
{
    KStmt *s = ARENA_NEW(c->k->arena, KStmt);
    *s = (KStmt){ .kind = KS_ARRAY, .array = x };
    kblock_append(to, s);
}

/* The arrays that scalars become which the run declares, for all columns. */
static void declare_handed(Columns *c, KBlock *to, const KStmt *s)
{
    if (s->kind == KS_ARRAY && map_has(&c->used, s->array)) {
        KArray *x = new_array(c, s->array->name, s->array->type, s->array->count * c->width);
        map_put(&c->moved, s->array, x);
        declare_array(c, to, x);
    }
    if (s->kind == KS_DECLARE && map_has(&c->moved, s->temp)) {
        KArray *x = new_array(c, s->temp->name, s->temp->type, c->width);
        map_put(&c->moved, s->temp, x);
        declare_array(c, to, x);
    }
}

/* The run from `from` to before `end`, for columns lo to before hi of the block. */
static void run_loop(Columns *c, KBlock *to, const KStmt *from, const KStmt *end, int64_t lo, int64_t hi)
{
    const Ix     *before = c->at, *number;
    const IxAtom *was = c->loop->loop, *column = ix_new_atom(c->cx, IX_LOOP, was->name, lo, hi - 1, was->depth, NULL);
    KStmt        *loop = ARENA_NEW(c->k->arena, KStmt);
    KBlock       *body = ARENA_NEW(c->k->arena, KBlock);
    number = ix_of(c->cx, column);
    c->at = ix_add(c->cx, c->at, number);
    for (const KStmt *x = from; x != end; x = x->next) {
        bool   done = x->kind == KS_ARRAY || (x->kind == KS_DECLARE && !is_own(c, x));
        KStmt *copy = done ? NULL : new_stmt(c, x, number);
        if (copy)
            kblock_append(body, copy);
    }
    c->at = before;
    *loop = (KStmt){ .kind = KS_FOR, .loop = column, .body = body, .rolled = hi - lo <= UNROLLED, .beside = c->rows };
    if (body->first)
        kblock_append(to, loop);
}

/* The run that begins with `from`; what is behind it. Few columns that are whole vectors of several sizes have a loop for each: gcc with vectors of 512 bits takes twice as
 * long over 20 columns otherwise. */
static const KStmt *new_run(Columns *c, KBlock *to, const KStmt *from)
{
    const KStmt  *end = from;
    const bool    cut = c->width > UNROLLED && c->width < FEW && c->width % LEAST_VECTOR == 0;
    int64_t       at = 0;
    for (; end && !contains_loop(end); end = end->next) {
        declare_handed(c, to, end);
        if (end->kind == KS_DECLARE && !is_own(c, end))
            kblock_append(to, new_stmt(c, end, NULL));
    }
    for (int64_t vector = UNROLLED; cut && vector >= LEAST_VECTOR; vector /= 2)
        if (c->width - at >= vector) {
            const int64_t whole = (c->width - at) / vector * vector;
            run_loop(c, to, from, end, at, at + whole);
            at += whole;
        }
    if (at < c->width)
        run_loop(c, to, from, end, at, c->width);
    return end;
}

static void new_statements(Columns *c, KBlock *to, const KBlock *b)
{
    for (const KStmt *s = b->first; s;) {
        if (!contains_loop(s)) {
            s = new_run(c, to, s);
            continue;
        }
        KStmt  *loop = arena_copy(c->k->arena, s, sizeof *s);
        KBlock *body = arena_copy(c->k->arena, s->body, sizeof *s->body);
        body->first = body->last = NULL;
        loop->loop = ix_new_atom(c->cx, IX_LOOP, s->loop->name, s->loop->lo, s->loop->hi, s->loop->depth + 1, s->loop->owner);
        loop->body = body;
        vec_push(c->k->arena, &c->loops, ((Loops){ s->loop, loop->loop }));
        new_statements(c, body, s->body);
        c->loops.n--;
        kblock_append(to, loop);
        s = s->next;
    }
}

/* Blocks of `width` columns from `from` on. What stands alone among the kernel's own statements is a block too, so that threads may share the others. */
static void new_blocks(Columns *c, KBlock *to, int64_t from, int64_t n, int64_t width)
{
    const IxAtom *was = c->loop->loop, *block = ix_new_atom(c->cx, IX_LOOP, was->name, 0, n / width - 1, was->depth, NULL);
    c->width = width;
    c->own = map_new(c->k->arena);
    c->at = ix_plus(c->cx, ix_times(c->cx, ix_of(c->cx, block), width), was->lo + from);
    if (n == width && !c->alone) {
        new_statements(c, to, c->loop->body);
        return;
    }
    KStmt  *loop = arena_copy(c->k->arena, c->loop, sizeof *c->loop);
    KBlock *body = arena_copy(c->k->arena, c->loop->body, sizeof *c->loop->body);
    body->first = body->last = NULL;
    new_statements(c, body, c->loop->body);
    loop->kind = n == width ? KS_BLOCK : KS_FOR;
    loop->loop = n == width ? NULL : block;
    loop->body = body;
    kblock_append(to, loop);
}

/* ---- what waits ---- */

typedef struct Mention {
    const KTemp *temp;
    const Map   *written;
    bool         found, fixed; /* fixed: what the value reads stays as it is */
} Mention;

static bool index_has(const Ix *x, const KTemp *t)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        const IxAtom *y = x->t[i].atom;
        if ((y->kind == IX_VALUE && y->owner == t) || index_has(y->arg, t))
            return true;
    }
    return false;
}

static void mentioned_in_expr(void *cookie, const KExpr *x)
{
    Mention *m = cookie;
    m->found |= index_has(x->index, m->temp) || (x->kind == KX_TEMP && x->temp == m->temp);
    m->fixed &= x->kind != KX_LOAD || !map_has(m->written, x->array);
}

static void mentioned_in_stmt(void *cookie, const KStmt *s)
{
    Mention *m = cookie;
    m->found |= index_has(s->index, m->temp) || s->temp == m->temp || index_has(s->from, m->temp) || index_has(s->end, m->temp);
}

/* The first statement behind s, a value that is declared once and stays what it is, that needs it; NULL: that is in front of the next loop, or there is none. */
static KStmt *where_needed(const Map *written, const KStmt *s)
{
    bool   loops = false;
    KStmt *to = s->next;
    if (s->kind != KS_DECLARE || s->temp->assigned || !s->value)
        return NULL;
    Mention m = { .temp = s->temp, .written = written, .fixed = true };
    kernel_visit_stmt(s, &(KVisitor){ mentioned_in_expr, NULL, &m });
    m.found = false;
    for (; to && m.fixed; to = to->next) {
        kernel_visit_stmt(to, &(KVisitor){ mentioned_in_expr, mentioned_in_stmt, &m });
        if (m.found)
            return loops ? to : NULL;
        loops |= contains_loop(to);
    }
    return NULL;
}

static void note_stored(void *cookie, const KStmt *s)
{
    if (s->kind == KS_STORE)
        map_put(cookie, s->array, cookie);
}

/* The loop with each value of its body declared where it is needed: one that is in an index then need not be handed from a loop over rows to another. */
static KStmt *with_late_values(Kernel *k, const KStmt *loop)
{
    Map     written = map_new(k->arena);
    KStmt  *copy = arena_copy(k->arena, loop, sizeof *loop);
    KBlock *body = arena_copy(k->arena, loop->body, sizeof *body);
    VEC(KStmt *) all = { 0 };
    kernel_visit(k->body, &(KVisitor){ NULL, note_stored, &written });
    body->first = body->last = NULL;
    for (const KStmt *s = loop->body->first; s; s = s->next) {
        KStmt *x = arena_copy(k->arena, s, sizeof *s);
        vec_push(k->arena, &all, x);
        kblock_append(body, x);
    }
    for (int32_t i = all.n; i-- > 0;) {
        KStmt  *x = all.v[i], *to = where_needed(&written, x), **link = &body->first;
        if (!to)
            continue;
        while (*link != x)
            link = &(*link)->next;
        *link = x->next;
        while (*link != to)
            link = &(*link)->next;
        *link = x;
        x->next = to;
    }
    copy->body = body;
    return copy;
}

KStmt *columns_of_rows(Kernel *k, IxCtx *cx, KStmt *loop, int64_t width, int32_t *n_arrays, KArray *const **arrays)
{
    Columns       c = { .k = k, .cx = cx, .alone = true, .rows = true };
    KBlock        all = { 0 };
    const int64_t n = loop->from || loop->end ? 0 : trips(loop->loop);
    if (n < width)
        return NULL;
    c.loop = with_late_values(k, loop);
    if (!can_be_columns(&c))
        return NULL;
    new_blocks(&c, &all, 0, n / width * width, width);
    *n_arrays = c.new_arrays.n;
    *arrays = c.new_arrays.v;
    return all.first;
}

static void in_block(Kernel *k, IxCtx *cx, KBlock *b)
{
    KBlock all = *b;
    KStmt *next;
    all.first = all.last = NULL;
    for (KStmt *s = b->first; s; s = next) {
        Columns c = { .k = k, .cx = cx, .loop = s, .alone = b == k->body };
        next = s->next;
        if (s->kind == KS_FOR && can_be_columns(&c)) {
            int64_t n = trips(s->loop), w = width(&c);
            new_blocks(&c, &all, 0, n / w * w, w);
            if (n % w)
                new_blocks(&c, &all, n / w * w, n % w, n % w);
            kernel_add_arrays(k, c.new_arrays.n, c.new_arrays.v);
            continue;
        }
        if (s->body)
            in_block(k, cx, s->body);
        if (s->other)
            in_block(k, cx, s->other);
        kblock_append(&all, s);
    }
    b->first = all.first;
    b->last = all.last;
}

void kernel_columns(Kernel *k, IxCtx *cx)
{
    IxCtx quiet = *cx;
    quiet.split = NULL;
    in_block(k, &quiet, k->body);
    quiet.split = cx->split;
    *cx = quiet;
}
