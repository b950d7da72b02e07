/* A loop over rows is cut into stages: a stage ends with a long loop, and the steps behind one that are loops themselves are a stage too. So are numbers of a row that something dear is made
 * of: their stage has no loops and joins no lanes, and rows are its vectors. Of long rows the steps behind a long loop are part of its stage, lanes being joined where they are registers; and
 * what lanes begin with waits for the loop that goes on with it, since stages would hand it on. */
#include "emit/abreast.h"

#include <string.h>

#include "analysis/cost.h"
#include "support/vec.h"

enum {
    ABREAST = 4,
    ABREAST_DEAR = 16, /* where numbers of rows are dear */
    ABREAST_LONG = 2,  /* of long rows, of which there are */
    LEAST_EVEN = 16, LEAST_ODD = 64, /* so many: the one that is left is as much text again */
    LONG = 17,       /* trips: others start lanes, or join them */
    MOST_ROW = 128,  /* trips of a row's longest loop */
    LEAST_LONG_ROW = 512, MOST_LONG_ROW = 2048, /* of a long row's where nothing is dear, of any long row's: of more the first cache holds one */
    LARGE = 48 << 20, /* bytes */
    MOST_BYTES = 16384, MOST_LONG_BYTES = 49152 /* of what the stages hand on */
};

typedef VEC(KStmt *) Stage;

typedef struct Loops {
    const IxAtom *was, *is;
} Loops;

/* A loop over rows that is being looked at, then rewritten. */
typedef struct Rows {
    Kernel *k;
    IxCtx  *cx;
    KStmt  *loop;
    VEC(Stage) stages;
    Map     stage_of; /* temporaries and arrays that a stage declares: the stage, as the address of its element of `marks` */
    char   *marks;
    int32_t at;       /* the stage that is gone through */
    bool    in_long;  /* in its long loop */
    bool    waits;    /* a long loop needs a number that an earlier stage finishes */
    bool    bad, large; /* the kernel's operands and results are no cache's */
    int64_t abreast;
    Map     shared;   /* temporary or array: the array that it becomes */
    VEC(KArray *) arrays;
    int64_t bytes;
    const IxAtom *block;  /* the rows abreast */
    const Ix     *row;    /* which of them */
    bool          fetches; /* the stage that is rewritten is the first one that comes back to long rows */
    VEC(Loops)    loops;
} Rows;

/* ---- stages ---- */

static int64_t trips(const IxAtom *loop)
{
    return loop->hi - loop->lo + 1;
}

static int64_t all_trips(const KStmt *loop)
{
    int64_t inner = 1;
    for (const KStmt *s = loop->body->first; s; s = s->next)
        if (s->kind == KS_FOR && all_trips(s) > inner)
            inner = all_trips(s);
    return inner > MOST_LONG_ROW || trips(loop->loop) > MOST_LONG_ROW ? MOST_LONG_ROW + 1 : inner * trips(loop->loop);
}

/* Stages have no others; `most`: trips of a loop. */
static bool can_be_staged(const KStmt *s, int64_t most)
{
    if (s->kind != KS_FOR)
        return s->kind == KS_DECLARE || s->kind == KS_ASSIGN || s->kind == KS_STORE || s->kind == KS_ARRAY;
    return !s->from && !s->end && all_trips(s) <= most;
}

static void note_load(void *cookie, const KExpr *x)
{
    *(bool *)cookie |= x->kind == KX_LOAD;
}

static bool reads(const KStmt *loop)
{
    bool     any = false;
    KVisitor v = { note_load, NULL, &any };
    kernel_visit(loop->body, &v);
    return any;
}

/* A call joins lanes. */
static void note_place(void *cookie, const KExpr *x)
{
    *(bool *)cookie |= x->kind == KX_UNARY && x->op == KOP_PLACE;
}

static bool joins_lanes(const KStmt *s)
{
    bool     any = false;
    KVisitor v = { note_place, NULL, &any };
    kernel_visit_stmt(s, &v);
    return any;
}

static void note_rounding(void *cookie, const KExpr *x)
{
    *(bool *)cookie |= kx_rounds(x);
}

static void note_division(void *cookie, const KExpr *x)
{
    *(bool *)cookie |= (x->kind == KX_BINARY && x->op == KOP_DIV && type_is_float(x->type)) || (x->kind == KX_CALL && strncmp(x->fn, "sqrt", 4) == 0);
}

static bool is_large(const Kernel *k)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < k->n_operands + k->n_results; i++)
        bytes = cost_add(bytes, cost_mul(k->params[i]->count, type_bytes(k->params[i]->type)));
    return bytes >= LARGE;
}

/* Behind memory divisions are not waited for. */
static bool is_dear_number(const Rows *r, const KStmt *s)
{
    bool dear = false;
    if (!s->value || s->kind == KS_FOR)
        return false;
    kernel_visit_stmt(s, &(KVisitor){ note_rounding, NULL, &dear });
    if (!r->large)
        kernel_visit_stmt(s, &(KVisitor){ note_division, NULL, &dear });
    return dear || kernel_has_dear_call(s);
}

static void end_stage(Rows *r, Stage *stage)
{
    if (stage->n)
        vec_push(r->k->arena, &r->stages, *stage);
    *stage = (Stage){ 0 };
}

/* false: there are statements that no stage can have, or rows are long. */
static bool make_stages(Rows *r)
{
    Arena  *a = r->k->arena;
    Stage   stage = { 0 };
    int32_t n_long = 0;
    bool    steps = false; /* the stage has loops that go on with what is there */
    bool    loops = false, numbers = false, any_loop = false, any_number = false; /* of the stage, and of all */
    for (KStmt *s = r->loop->body->first; s; s = s->next) {
        if (!can_be_staged(s, MOST_ROW))
            return false;
        int64_t n = s->kind == KS_FOR ? all_trips(s) : 0;
        const bool loop = s->kind == KS_FOR || joins_lanes(s), number = r->abreast == ABREAST_DEAR && is_dear_number(r, s);
        if ((n >= LONG && steps) || (numbers && loop) || (number && loops)) {
            end_stage(r, &stage);
            steps = loops = numbers = false;
        }
        vec_push(a, &stage, s);
        loops |= loop;
        numbers |= number && !loop;
        any_loop |= s->kind == KS_FOR;
        any_number |= number && !loop;
        steps = s->kind == KS_FOR ? (n < LONG && (steps || reads(s))) : steps || joins_lanes(s);
        if (n >= LONG) {
            end_stage(r, &stage);
            loops = numbers = false;
            n_long++;
        }
    }
    end_stage(r, &stage);
    return r->abreast == ABREAST_DEAR ? any_loop && any_number : n_long > 1;
}

/* ---- stages of long rows ---- */

/* Temporaries and local arrays that a statement touches. */
static void touch_index(Map *touched, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        if (x->t[i].atom->kind == IX_VALUE)
            map_put(touched, x->t[i].atom->owner, touched);
        touch_index(touched, x->t[i].atom->arg);
    }
}

static void touch_expr(void *cookie, const KExpr *x)
{
    touch_index(cookie, x->index);
    if (x->kind == KX_TEMP)
        map_put(cookie, x->temp, cookie);
    if (x->kind == KX_LOAD)
        map_put(cookie, x->array, cookie);
}

static void touch_stmt(void *cookie, const KStmt *s)
{
    touch_index(cookie, s->index);
    if (s->temp)
        map_put(cookie, s->temp, cookie);
    if (s->array)
        map_put(cookie, s->array, cookie);
}

typedef struct Found {
    const Map *touched;
    bool       any;
} Found;

static void find_in_expr(void *cookie, const KExpr *x)
{
    Found *f = cookie;
    f->any |= (x->kind == KX_TEMP && map_has(f->touched, x->temp)) || (x->kind == KX_LOAD && map_has(f->touched, x->array));
}

static void find_in_stmt(void *cookie, const KStmt *s)
{
    Found *f = cookie;
    f->any |= (s->temp && map_has(f->touched, s->temp)) || (s->array && map_has(f->touched, s->array));
}

static bool shares(const KStmt *s, const Map *touched)
{
    Found    f = { .touched = touched };
    KVisitor v = { find_in_expr, find_in_stmt, &f };
    kernel_visit_stmt(s, &v);
    return f.any;
}

static void note_outside(void *cookie, const KStmt *s)
{
    *(bool *)cookie |= s->kind == KS_ASSIGN || (s->kind == KS_STORE && s->array->kind != KARRAY_LOCAL);
}

static void note_value(void *cookie, const KExpr *x)
{
    *(bool *)cookie |= x->kind == KX_TEMP || x->kind == KX_LOAD;
}

/* What something begins with: an array's room, a constant, a few constants or numbers in a local array. */
static bool is_start(const KStmt *s)
{
    bool more = false;
    if (s->kind == KS_ARRAY)
        return true;
    if (s->kind == KS_DECLARE)
        kernel_visit_stmt(s, &(KVisitor){ note_value, NULL, &more });
    else if (s->kind == KS_FOR && all_trips(s) <= MOST_ROW && !reads(s))
        kernel_visit_stmt(s, &(KVisitor){ NULL, note_outside, &more });
    else
        return false;
    return !more;
}

/* Those of the starts that s goes on with, and what they go on with, join the stage before it does. */
static void take_starts(Rows *r, Stage *starts, const KStmt *s, Stage *stage)
{
    Arena *a = r->k->arena;
    Map    touched = map_new(a);
    Stage  left = { 0 }, taken = { 0 };
    kernel_visit_stmt(s, &(KVisitor){ touch_expr, touch_stmt, &touched });
    for (int32_t i = starts->n; i-- > 0;) {
        KStmt *start = starts->v[i];
        const bool wanted = shares(start, &touched);
        if (wanted)
            kernel_visit_stmt(start, &(KVisitor){ touch_expr, touch_stmt, &touched });
        if (wanted)
            vec_push(a, &taken, start);
        else
            vec_push(a, &left, start);
    }
    for (int32_t i = taken.n; i-- > 0;)
        vec_push(a, stage, taken.v[i]);
    starts->n = 0;
    for (int32_t i = left.n; i-- > 0;)
        vec_push(a, starts, left.v[i]);
}

static void note_made(void *cookie, const KStmt *s)
{
    if (s->kind == KS_DECLARE || s->kind == KS_ASSIGN)
        map_put(cookie, s->temp, cookie);
}

static void find_made(void *cookie, const KExpr *x)
{
    Found *f = cookie;
    f->any |= x->kind == KX_TEMP && map_has(f->touched, x->temp);
}

/* A number that the stage makes. */
static bool waits_for(Rows *r, const KStmt *s, const Stage *stage)
{
    Map   made = map_new(r->k->arena);
    Found f = { .touched = &made };
    for (int32_t i = 0; i < stage->n; i++)
        kernel_visit_stmt(stage->v[i], &(KVisitor){ NULL, note_made, &made });
    kernel_visit_stmt(s, &(KVisitor){ find_made, NULL, &f });
    return f.any;
}

static void note_narrow(void *any, const KExpr *x)
{
    *(bool *)any |= x->kind == KX_LOAD && (x->array->type == TYPE_F16 || x->array->type == TYPE_BF16);
}

/* What converts is so many instructions that processors do not look as far as the next row. */
static bool loads_narrow(const KStmt *s)
{
    bool any = false;
    kernel_visit_stmt(s, &(KVisitor){ note_narrow, NULL, &any });
    return any;
}

/* Each has a long loop or more, and behind it what is made of its sums. */
static bool make_long_stages(Rows *r)
{
    Arena *a = r->k->arena;
    Stage   stage = { 0 }, starts = { 0 };
    bool    dear = false, narrow = false;
    int64_t longest = 0;
    for (KStmt *s = r->loop->body->first; s; s = s->next) {
        if (!can_be_staged(s, MOST_LONG_ROW))
            return false;
        if (is_start(s)) {
            vec_push(a, &starts, s);
            continue;
        }
        const int64_t n = s->kind == KS_FOR ? all_trips(s) : 0;
        const bool    is_long = n > MOST_ROW;
        dear |= is_long && kernel_has_dear_call(s);
        narrow |= is_long && loads_narrow(s);
        if (is_long && longest > MOST_ROW && waits_for(r, s, &stage))
            end_stage(r, &stage);
        longest = n > longest ? n : longest;
        take_starts(r, &starts, s, &stage);
        vec_push(a, &stage, s);
    }
    for (int32_t i = 0; i < starts.n; i++) /* nothing of the row goes on with them, what is behind the rows may */
        vec_push(a, &stage, starts.v[i]);
    end_stage(r, &stage);
    return narrow ? r->stages.n > 1 : r->stages.n > 2 && (dear || longest > LEAST_LONG_ROW);
}

/* ---- what stages hand on ---- */

/* x is declared by another stage than the one that is gone through. What no stage declares is of all rows. */
static bool is_elsewhere(const Rows *r, const void *x)
{
    const char *mark = map_get(&r->stage_of, x);
    return mark && mark != &r->marks[r->at];
}

static void hand_on(Rows *r, const void *x, const char *name, Type type, int64_t count, bool in_f16)
{
    if (map_has(&r->shared, x))
        return;
    int64_t bytes = count * r->abreast * type_bytes(type);
    KArray *y = ARENA_NEW(r->k->arena, KArray);
    *y = (KArray){ .kind = KARRAY_LOCAL, .type = type, .name = name, .count = count * r->abreast, .restricted = true, .in_f16 = in_f16 };
    map_put(&r->shared, x, y);
    vec_push(r->k->arena, &r->arrays, y);
    r->bytes = bytes > MOST_LONG_BYTES || r->bytes > MOST_LONG_BYTES ? MOST_LONG_BYTES + 1 : r->bytes + bytes;
}

static void look_at_temp(Rows *r, KTemp *t)
{
    if (!is_elsewhere(r, t))
        return;
    hand_on(r, t, t->name, t->type, 1, t->in_f16 && !t->assigned);
    r->waits |= r->in_long;
}

/* A temporary in an index has to be one: those that stages hand on are none. */
static void look_at_index(Rows *r, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        const IxAtom *y = x->t[i].atom;
        if (y->kind == IX_VALUE && is_elsewhere(r, y->owner))
            r->bad = true;
        look_at_index(r, y->arg);
    }
}

static void look_at_array(Rows *r, KArray *x)
{
    if (is_elsewhere(r, x))
        hand_on(r, x, x->name, x->type, x->count, x->in_f16);
}

static void look_at_expr(void *cookie, const KExpr *x)
{
    Rows *r = cookie;
    look_at_index(r, x->index);
    if (x->kind == KX_TEMP)
        look_at_temp(r, x->temp);
    if (x->kind == KX_LOAD)
        look_at_array(r, x->array);
    r->bad |= x->kind == KX_DISTINCT;
}

static void look_at_stmt(void *cookie, const KStmt *s)
{
    Rows *r = cookie;
    look_at_index(r, s->index);
    look_at_index(r, s->from);
    look_at_index(r, s->end);
    if (s->kind == KS_ASSIGN) {
        r->bad |= !map_has(&r->stage_of, s->temp); /* of all rows */
        look_at_temp(r, s->temp);
    }
    if (s->kind == KS_STORE)
        look_at_array(r, s->array);
}

static void declare(void *cookie, const KStmt *s)
{
    Rows *r = cookie;
    if (s->kind == KS_DECLARE)
        map_put(&r->stage_of, s->temp, &r->marks[r->at]);
    if (s->kind == KS_ARRAY)
        map_put(&r->stage_of, s->array, &r->marks[r->at]);
}

/* Arrays that the loop does not declare: read, or written by one stage that nobody reads from. */
typedef struct Outside {
    Rows *r;
    Map   written; /* array: its stage's mark */
} Outside;

static void note_written(void *cookie, const KStmt *s)
{
    Outside *o = cookie;
    if (s->kind != KS_STORE || map_has(&o->r->stage_of, s->array))
        return;
    const char *mark = map_get(&o->written, s->array);
    o->r->bad |= s->atomic || s->array->kind == KARRAY_LOCAL || (mark && mark != &o->r->marks[o->r->at]);
    map_put(&o->written, s->array, &o->r->marks[o->r->at]);
}

static void check_read(void *cookie, const KExpr *x)
{
    Outside *o = cookie;
    o->r->bad |= x->kind == KX_LOAD && map_has(&o->written, x->array);
}

static void each_stage(Rows *r, const KVisitor *v)
{
    for (r->at = 0; r->at < r->stages.n; r->at++)
        for (int32_t i = 0; i < r->stages.v[r->at].n; i++) {
            const KStmt *s = r->stages.v[r->at].v[i];
            r->in_long = s->kind == KS_FOR && all_trips(s) >= LONG;
            kernel_visit_stmt(s, v);
        }
}

static bool can_go_abreast(Rows *r)
{
    Arena *a = r->k->arena;
    r->marks = ARENA_ARRAY(a, char, r->stages.n);
    r->stage_of = map_new(a);
    r->shared = map_new(a);
    each_stage(r, &(KVisitor){ NULL, declare, r });
    each_stage(r, &(KVisitor){ look_at_expr, look_at_stmt, r });
    Outside o = { .r = r, .written = map_new(a) };
    each_stage(r, &(KVisitor){ NULL, note_written, &o });
    each_stage(r, &(KVisitor){ check_read, NULL, &o });
    return !r->bad && (r->waits || r->abreast == ABREAST_DEAR) && r->bytes <= (r->abreast == ABREAST_LONG ? MOST_LONG_BYTES : MOST_BYTES);
}

/* ---- rewriting ---- */

static const Ix *new_index(Rows *r, const Ix *x)
{
    if (!x)
        return NULL;
    const Ix *at = ix_add(r->cx, ix_plus(r->cx, ix_times(r->cx, ix_of(r->cx, r->block), r->abreast), r->loop->loop->lo), r->row);
    x = ix_replace(r->cx, x, r->loop->loop, at);
    for (int32_t i = 0; i < r->loops.n; i++)
        x = ix_replace(r->cx, x, r->loops.v[i].was, ix_of(r->cx, r->loops.v[i].is));
    return x;
}

/* Where the row's part of an array begins that stages hand on. */
static const Ix *shared_index(Rows *r, const KArray *x, const Ix *index)
{
    const Ix *part = ix_times(r->cx, r->row, x->count / r->abreast);
    return index ? ix_add(r->cx, part, new_index(r, index)) : part;
}

static const KExpr *new_expr(Rows *r, const KExpr *x)
{
    if (!x)
        return NULL;
    KArray *y = x->kind == KX_TEMP ? map_get(&r->shared, x->temp) : x->kind == KX_LOAD ? map_get(&r->shared, x->array) : NULL;
    if (y)
        return kx_load(r->k->arena, y, shared_index(r, y, x->index));
    KExpr *copy = arena_copy(r->k->arena, x, sizeof *x);
    copy->index = new_index(r, x->index);
    for (int32_t i = 0; i < x->n; i++)
        copy->arg[i] = new_expr(r, x->arg[i]);
    return copy;
}

/* Lanes of f16 or bf16 that stages hand on. Those of one row compilers keep in registers where they have unrolled the loop; of several they make no vectors of what they convert. */
static bool adds_up_narrow(const Rows *r, const KStmt *loop)
{
    for (const KStmt *s = loop->body->first; s; s = s->next)
        if (s->kind == KS_STORE && map_has(&r->shared, s->array) && kx_loads_from(s->value, s->array, s->index))
            return loads_narrow(loop);
    return false;
}

static KBlock *new_block(Rows *r, const KBlock *b);

/* NULL: nothing is left of it. */
static KStmt *new_stmt(Rows *r, const KStmt *s)
{
    KArray *y = s->kind == KS_STORE || s->kind == KS_ARRAY ? map_get(&r->shared, s->array) : s->temp ? map_get(&r->shared, s->temp) : NULL;
    if (y && (s->kind == KS_ARRAY || !s->value))
        return NULL;
    KStmt *copy = arena_copy(r->k->arena, s, sizeof *s);
    copy->value = new_expr(r, s->value);
    copy->index = y ? shared_index(r, y, s->index) : new_index(r, s->index);
    copy->from = new_index(r, s->from);
    copy->end = new_index(r, s->end);
    if (y) {
        copy->kind = KS_STORE;
        copy->array = y;
        copy->temp = NULL;
    }
    if (s->kind == KS_FOR) {
        copy->loop = ix_new_atom(r->cx, IX_LOOP, s->loop->name, s->loop->lo, s->loop->hi, s->loop->depth + 1, s->loop->owner);
        copy->rolled |= adds_up_narrow(r, s);
        copy->ahead = r->fetches && all_trips(s) > MOST_ROW ? r->block : NULL;
        vec_push(r->k->arena, &r->loops, ((Loops){ s->loop, copy->loop }));
    }
    copy->body = s->body ? new_block(r, s->body) : NULL;
    copy->other = s->other ? new_block(r, s->other) : NULL;
    r->loops.n -= s->kind == KS_FOR;
    return copy;
}

static void append(KBlock *b, KStmt *s)
{
    if (s)
        kblock_append(b, s);
}

static KBlock *new_block(Rows *r, const KBlock *b)
{
    KBlock *copy = arena_copy(r->k->arena, b, sizeof *b);
    copy->first = copy->last = NULL;
    for (const KStmt *s = b->first; s; s = s->next)
        append(copy, new_stmt(r, s));
    return copy;
}

static KStmt *stage_loop(Rows *r, const Stage *stage)
{
    Arena        *a = r->k->arena;
    const IxAtom *of = r->loop->loop, *row = ix_new_atom(r->cx, IX_LOOP, of->name, 0, r->abreast - 1, of->depth + 1, of->owner);
    KStmt        *loop = ARENA_NEW(a, KStmt);
    KBlock       *body = ARENA_NEW(a, KBlock);
    *loop = (KStmt){ .kind = KS_FOR, .loop = row, .body = body, .rolled = true };
    r->row = ix_of(r->cx, row);
    for (int32_t i = 0; i < stage->n; i++)
        append(body, new_stmt(r, stage->v[i]));
    return body->first ? loop : NULL;
}

/* The loop over blocks of rows; the old one, which stays behind it, has the rows that fill no block. */
static KStmt *blocks_of_rows(Rows *r)
{
    Arena        *a = r->k->arena;
    const IxAtom *of = r->loop->loop;
    KBlock       *body = arena_copy(a, r->loop->body, sizeof *r->loop->body);
    KStmt        *loop = arena_copy(a, r->loop, sizeof *r->loop);
    body->first = body->last = NULL;
    r->block = ix_new_atom(r->cx, IX_LOOP, of->name, 0, trips(of) / r->abreast - 1, of->depth, of->owner);
    loop->loop = r->block;
    loop->body = body;
    for (int32_t i = 0; i < r->arrays.n; i++) {
        KStmt *s = ARENA_NEW(a, KStmt);
        *s = (KStmt){ .kind = KS_ARRAY, .array = r->arrays.v[i] };
        append(body, s);
    }
    for (int32_t i = 0; i < r->stages.n; i++) {
        r->fetches = r->abreast == ABREAST_LONG && i == 1;
        append(body, stage_loop(r, &r->stages.v[i]));
    }
    return loop;
}

static int64_t least_rows(int64_t n, int64_t abreast)
{
    return abreast != ABREAST_LONG ? 2 * abreast : n % ABREAST_LONG ? LEAST_ODD : LEAST_EVEN;
}

/* Looks at the loop for so many rows; false: they cannot go abreast. */
static bool go_abreast(Rows *r, Kernel *k, IxCtx *cx, KStmt *loop, int64_t abreast)
{
    *r = (Rows){ .k = k, .cx = cx, .loop = loop, .abreast = abreast, .large = is_large(k) };
    return loop->kind == KS_FOR && !loop->from && !loop->end && trips(loop->loop) >= least_rows(trips(loop->loop), abreast) &&
           (abreast == ABREAST_LONG ? make_long_stages(r) : make_stages(r)) && can_go_abreast(r);
}

static void in_block(Kernel *k, IxCtx *cx, KBlock *b)
{
    for (KStmt **link = &b->first; *link; link = &(*link)->next) {
        KStmt *s = *link;
        Rows   r;
        if (!go_abreast(&r, k, cx, s, ABREAST_DEAR) && !go_abreast(&r, k, cx, s, ABREAST) && !go_abreast(&r, k, cx, s, ABREAST_LONG)) {
            if (s->body)
                in_block(k, cx, s->body);
            if (s->other)
                in_block(k, cx, s->other);
            continue;
        }
        const int64_t n = trips(s->loop), whole = n / r.abreast * r.abreast;
        kernel_add_arrays(k, r.arrays.n, r.arrays.v);
        KStmt *blocks = blocks_of_rows(&r);
        *link = blocks;
        blocks->next = whole < n ? s : s->next;
        ((IxAtom *)(uintptr_t)s->loop)->lo += whole;
        if (!blocks->next)
            b->last = blocks;
        if (whole < n && r.abreast != ABREAST_DEAR) /* of so many, enough may be left for fewer abreast */
            link = &blocks->next;
    }
}

void kernel_rows_abreast(Kernel *k, IxCtx *cx)
{
    IxCtx quiet = *cx;
    quiet.split = NULL;
    for (int32_t i = 0; i < k->n_results * k->n_operands; i++)
        if (k->may_alias[i])
            return;
    in_block(k, &quiet, k->body);
    quiet.split = cx->split;
    *cx = quiet;
}
