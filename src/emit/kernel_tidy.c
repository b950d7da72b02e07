/* The last steps on a kernel before it is printed: loops that walk memory in one go become one loop, and everything gets its name. */
#include "emit/dialect.h"

#include <string.h>

typedef struct Pair {
    const IxAtom *outer, *inner;
    const IxAtom *joined; /* NULL: only looking */
    int64_t       n;      /* trips of inner */
    bool          bad;
    IxCtx        *cx;
} Pair;

/* Looking: is x a function of outer * n + inner? Joining: writes it so. */
static const Ix *join_index(Pair *p, const Ix *x)
{
    int64_t o = ix_coef(x, p->outer), i = ix_coef(x, p->inner);
    if (!p->joined) {
        for (int32_t k = 0; k < x->n; k++)
            if (x->t[k].atom->arg && (ix_has(x->t[k].atom->arg, p->outer) || ix_has(x->t[k].atom->arg, p->inner)))
                p->bad = true;
        p->bad |= o != i * p->n;
        return x;
    }
    if (o == 0 && i == 0)
        return x;
    x = ix_add(p->cx, x, ix_times(p->cx, ix_of(p->cx, p->outer), -o));
    x = ix_add(p->cx, x, ix_times(p->cx, ix_of(p->cx, p->inner), -i));
    return ix_add(p->cx, x, ix_times(p->cx, ix_of(p->cx, p->joined), i));
}

static void join_expr(void *cookie, const KExpr *x)
{
    if (x->index)
        ((KExpr *)(uintptr_t)x)->index = join_index(cookie, x->index);
}

static void join_stmt(void *cookie, const KStmt *s)
{
    KStmt *t = (KStmt *)(uintptr_t)s;
    if (s->index)
        t->index = join_index(cookie, s->index);
    if (s->from)
        t->from = join_index(cookie, s->from);
    if (s->end)
        t->end = join_index(cookie, s->end);
}

/* for outer { for inner { body } }  =>  for joined { body } */
static bool join(KStmt *s, IxCtx *cx)
{
    KStmt *t = s->body->first;
    if (!t || t->next || t->kind != KS_FOR || t->loop->lo != 0 || s->from || s->end || t->from || t->end)
        return false;
    Pair     p = { .outer = s->loop, .inner = t->loop, .n = t->loop->hi + 1, .cx = cx };
    KVisitor v = { join_expr, join_stmt, &p };
    kernel_visit(t->body, &v);
    if (p.bad)
        return false;
    p.joined = ix_new_atom(cx, IX_LOOP, s->loop->name, s->loop->lo * p.n, (s->loop->hi + 1) * p.n - 1, s->loop->depth, NULL);
    kernel_visit(t->body, &v);
    s->loop = p.joined;
    t->body->parent = s->body->parent;
    t->body->from = s;
    s->body = t->body;
    return true;
}

void kernel_join(KStmt *loop, IxCtx *cx)
{
    while (join(loop, cx))
        ;
}

/* A loop of one trip, whose variable nobody sees: its index is the constant. */
static bool runs_once(const KStmt *s)
{
    return s->kind == KS_FOR && s->loop->lo == s->loop->hi && !s->from && !s->end;
}

static void collapse_block(KBlock *b, IxCtx *cx)
{
    KStmt **link = &b->first;
    while (*link) {
        KStmt *s = *link;
        if (s->body)
            collapse_block(s->body, cx);
        if (s->other)
            collapse_block(s->other, cx);
        if (runs_once(s)) {
            for (KStmt *t = s->body->first; t; t = t->next)
                if (t->body)
                    t->body->parent = b;
            s->body->last->next = s->next;
            *link = s->body->first;
            link = &s->body->last->next;
            b->last = s->next ? b->last : s->body->last;
            continue;
        }
        if (s->kind == KS_FOR)
            kernel_join(s, cx);
        link = &s->next;
    }
}

void kernel_collapse(Kernel *k, IxCtx *cx)
{
    collapse_block(k->body, cx);
}

/* Uses, for dropping temporaries and working arrays that nothing reads: lowering names some values before it knows whether they matter. */
static void use_index(Map *used, const Ix *x)
{
    for (int32_t i = 0; i < x->n; i++) {
        const IxAtom *y = x->t[i].atom;
        if (y->arg)
            use_index(used, y->arg);
        else if (y->kind == IX_VALUE)
            map_put(used, y->owner, used);
    }
}

static void use_expr(void *used, const KExpr *x)
{
    if (x->kind == KX_TEMP)
        map_put(used, x->temp, used);
    if (x->kind == KX_LOAD)
        map_put(used, x->array, used);
    if (x->index)
        use_index(used, x->index);
}

static void use_stmt(void *used, const KStmt *s)
{
    if (s->index)
        use_index(used, s->index);
    if (s->from)
        use_index(used, s->from);
    if (s->end)
        use_index(used, s->end);
}

static bool prune_block(KBlock *b, const Map *used)
{
    bool    changed = false;
    KStmt **link = &b->first;
    b->last = NULL;
    while (*link) {
        KStmt *s = *link;
        bool   dead = (s->kind == KS_DECLARE || s->kind == KS_ASSIGN) && !map_has(used, s->temp);
        if (s->body)
            changed |= prune_block(s->body, used);
        if (s->other)
            changed |= prune_block(s->other, used);
        dead |= (s->kind == KS_FOR || s->kind == KS_BLOCK) && !s->body->first;
        dead |= s->kind == KS_IF && !s->body->first && (!s->other || !s->other->first);
        dead |= s->kind == KS_STORE && s->array->kind != KARRAY_PARAM && !map_has(used, s->array);
        if (dead) {
            *link = s->next;
            changed = true;
            continue;
        }
        b->last = s;
        link = &s->next;
    }
    return changed;
}

void kernel_prune(Kernel *k)
{
    bool changed = true;
    while (changed) {
        Map      used = map_new(k->arena);
        KVisitor v = { use_expr, use_stmt, &used };
        kernel_visit(k->body, &v);
        changed = prune_block(k->body, &used);
    }
}

typedef struct Conditions {
    bool loads, tests;
    bool chooses, more; /* an element is one of two values; there are scalars that are kept, or loops */
    bool finds;         /* where elements are has just been read */
    bool sums;          /* something is added to elements of a working array */
    bool scales;        /* with a value that the loop around has just made */
    bool strides, aside; /* elements are not neighbours; there are working arrays */
    bool counts;         /* with the loop's number, of which each trip has another constant when it is unrolled */
    bool narrow, halves; /* integers of less than 32 bits; elements of 16 bits are stored */
    bool rounds;         /* to bf16, by integers, which unrolled are no vector's */
    bool computes;       /* a polynomial, which has a test for NaN in it */
    bool fills;          /* a call stores several elements */
    int32_t stores;
    const IxAtom *loop;
} Conditions;

/* A row that was found by a number in memory: of its elements, unrolled, gcc makes vectors across rows (50000 of 1000 rows of 16: 340 and 56 us). */
static bool is_found(const Ix *x, const IxAtom *loop)
{
    for (int32_t k = 0; k < x->n; k++)
        if (x->t[k].atom->kind == IX_VALUE && x->t[k].atom->depth >= loop->depth - 1)
            return true;
    return false;
}

/* Elements that are the same ones in each trip of the loops around are no vector's. */
static bool is_of_others(const Ix *x, const IxAtom *loop)
{
    for (int32_t k = 0; k < x->n; k++)
        if (x->t[k].atom != loop)
            return true;
    return false;
}

/* What a call of two values computes may depend on a test, and then a load that is only wanted after it moves behind it. */
static bool may_test(const KExpr *x)
{
    static const char *const plain[] = { "add_", "sub_", "mul_", "max_", "min_", "larger_", "smaller_", "div_known_", "div_bounded_", "div_by_", "f32_within_" };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (x->kind == KX_CALL && strncmp(x->fn, plain[i], strlen(plain[i])) == 0)
            return false;
    return x->kind == KX_SELECT || (x->kind == KX_CALL && x->n > 1) || (x->kind == KX_BINARY && (x->op == KOP_LAND || x->op == KOP_LOR));
}

static bool chooses(const KExpr *x)
{
    static const char *const choices[] = { "max_", "min_", "larger_", "smaller_", "div_by_", "f32_within_" };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (x->kind == KX_CALL && strncmp(x->fn, choices[i], strlen(choices[i])) == 0)
            return true;
    return x->kind == KX_SELECT;
}

/* A function of the text. Unrolled, its test for NaN is a branch for each trip, and gcc finds no vectors. */
static bool is_polynomial(const KExpr *x)
{
    static const char *const of[] = { "expf", "expm1f", "logf", "log1pf", "tanhf", "erff", "exp", "tanh" };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (x->kind == KX_CALL && strcmp(x->fn, of[i]) == 0)
            return true;
    return false;
}

static void note_expr_test(void *cookie, const KExpr *x)
{
    Conditions *c = cookie;
    c->computes |= is_polynomial(x);
    c->rounds |= kx_rounds(x) && strcmp(x->fn, "f16_round") != 0;
    c->counts |= x->kind == KX_INDEX && ix_has(x->index, c->loop);
    c->narrow |= (x->kind == KX_BINARY || x->kind == KX_CAST) && type_is_int(x->type) && type_bytes(x->type) < 4;
    c->loads |= x->kind == KX_LOAD && (x->array->kind == KARRAY_LOCAL || is_of_others(x->index, c->loop));
    c->tests |= may_test(x);
    c->chooses |= chooses(x);
    c->finds |= x->kind == KX_LOAD && is_found(x->index, c->loop);
    c->strides |= x->kind == KX_LOAD && !ix_is_line(x->index, c->loop);
    c->aside |= x->kind == KX_LOAD && x->array->kind == KARRAY_LOCAL;
    c->scales |= x->kind == KX_TEMP && x->temp->depth == c->loop->depth - 1;
}

static void note_stmt_test(void *cookie, const KStmt *s)
{
    Conditions *c = cookie;
    c->tests |= s->kind == KS_IF;
    c->more |= s->kind == KS_ASSIGN || s->kind == KS_FOR;
    c->fills |= s->fill_work > 0;
    c->stores += s->kind == KS_STORE;
    c->narrow |= s->kind == KS_STORE && type_bytes(s->array->type) < (s->array->type == TYPE_BF16 ? 2 : 4);
    c->halves |= s->kind == KS_STORE && s->array->type == TYPE_BF16;
    c->strides |= s->kind == KS_STORE && !ix_is_line(s->index, c->loop);
    c->aside |= s->kind == KS_STORE && s->array->kind == KARRAY_LOCAL;
    c->sums |= s->kind == KS_STORE && s->array->kind == KARRAY_LOCAL && kx_loads_from(s->value, s->array, s->index);
}

/* The elements of a row so short that it is one vector of 64 or 128 bits. */
static bool changes_row_found(const KStmt *row, const IxAtom *loop)
{
    enum { SHORTEST = 8, LONGEST = 16 /* bytes */ };
    const KStmt *s = row->kind == KS_FOR && !row->from && !row->end ? row->body->first : NULL;
    while (s && s->kind == KS_DECLARE)
        s = s->next;
    const int64_t bytes = s && s->kind == KS_STORE ? (row->loop->hi - row->loop->lo + 1) * type_bytes(s->array->type) : 0;
    return (bytes == SHORTEST || bytes == LONGEST) && !s->next && is_found(s->index, loop) && ix_coef(s->index, row->loop) == 1;
}

/* A scatter of single elements: for i: { start = x[i];  if (start is inside) out[start] = ... }, or of such rows (9280 of 1000 rows of 2: 6.8 and 4.5 us, of 4: 6.5 and 5.0). */
static bool changes_found(const KStmt *loop)
{
    const KStmt *s = loop->body->first;
    while (s && s->kind == KS_DECLARE)
        s = s->next;
    bool changes = s && s->kind == KS_IF && !s->other && !s->next;
    for (const KStmt *t = changes ? s->body->first : NULL; t; t = t->next)
        changes &= t->kind == KS_DECLARE || (t->kind == KS_STORE && is_found(t->index, loop->loop)) || changes_row_found(t, loop->loop);
    return changes;
}

static void keep_rolled(KBlock *b, bool inner, bool tested)
{
    enum { UNROLLED = 16, /* trips at most, what gcc unrolls before it makes vectors */ LANES = 4, LINE = 8 };
    for (KStmt *s = b->first; s; s = s->next) {
        if (s->kind == KS_FOR && inner && s->loop->hi - s->loop->lo < UNROLLED) {
            Conditions c = { .tests = tested, .loop = s->loop };
            KVisitor   v = { note_expr_test, note_stmt_test, &c };
            kernel_visit(s->body, &v);
            const int64_t trips = s->loop->hi - s->loop->lo + 1;
            const bool    lanes = ((c.chooses || (c.computes && !c.strides) || c.stores > 1) && trips >= LANES) || ((c.aside ? c.sums && (c.scales || c.rounds) && trips % LINE == 0 : !c.strides) && trips >= LINE);
            const bool    numbers = c.counts && !c.more && !c.strides && !c.narrow && c.stores > 0 && (c.halves ? trips % LINE == 0 : trips >= LANES);
            s->rolled = !c.fills && (numbers || (c.loads && (c.tests || (c.finds && !c.more) || (lanes && !c.more))));
        }
        if (s->kind == KS_FOR && s->loop->hi - s->loop->lo >= UNROLLED)
            s->unrolled = changes_found(s);
        if (s->body)
            keep_rolled(s->body, inner || s->kind == KS_FOR, tested || (inner && s->kind == KS_IF));
        if (s->other)
            keep_rolled(s->other, inner, tested || inner);
    }
}

void kernel_keep_rolled(Kernel *k)
{
    keep_rolled(k->body, false, false);
}

/* Elements that a choice takes or leaves, loaded before it. */
typedef struct Lifted {
    Kernel  *k;
    KBlock  *b;
    KStmt  **link; /* of the statement */
    KStmt   *from; /* the first that was put in front of it */
    Map     *read; /* temporaries of the loop that come of elements */
    int32_t *serial;
} Lifted;

static bool comes_of_elements(const KExpr *x, const Map *read)
{
    bool found = x->kind == KX_LOAD || (x->kind == KX_TEMP && map_has(read, x->temp));
    for (int32_t j = 0; j < x->n && !found; j++)
        found = comes_of_elements(x->arg[j], read);
    return found;
}

static bool is_in_range(const KExpr *load)
{
    int64_t lo, hi;
    ix_range(load->index, &lo, &hi);
    return lo >= 0 && hi < load->array->count;
}

/* x is an element, or one of f16, which vectors convert where it is always wanted; what a block declares is lanes, which are at hand. */
static const KExpr *harmless_load(const KExpr *x)
{
    const KExpr *load = x->kind == KX_CALL && x->n == 1 && strcmp(x->fn, "f16_to_f32") == 0 ? x->arg[0] : x;
    return load->kind == KX_LOAD && load->array->kind != KARRAY_LOCAL && is_in_range(load) ? load : NULL;
}

static const KExpr *lift_one(Lifted *l, const KExpr *x, const KExpr *load)
{
    Arena *a = l->k->arena;
    for (const KStmt *s = l->from; s && s != *l->link; s = s->next) {
        const KExpr *other = harmless_load(s->value);
        if (s->value->kind == x->kind && other->array == load->array && ix_equal(other->index, load->index))
            return kx_temp(a, s->temp);
    }
    KTemp *t = ARENA_NEW(a, KTemp);
    KStmt *s = ARENA_NEW(a, KStmt);
    *t = (KTemp){ .name = arena_printf(a, "%s_at", load->array->name), .type = x->type, .depth = l->b->depth, .serial = (*l->serial)++ };
    *s = (KStmt){ .kind = KS_DECLARE, .next = *l->link, .temp = t, .value = x };
    l->from = l->from ? l->from : s;
    *l->link = s;
    l->link = &s->next;
    return kx_temp(a, t);
}

enum { ALWAYS, BY_PLACE, BY_ELEMENTS };

/* Where a choice depends on the place alone, as in a triangle, much may be left that lies in one piece: memory that is then not read. What is converted one by one takes longer than that. */
static const KExpr *lift(Lifted *l, const KExpr *x, int chosen)
{
    const KExpr *load = chosen == BY_ELEMENTS || (chosen == BY_PLACE && x->kind == KX_CALL) ? harmless_load(x) : NULL;
    if (load)
        return lift_one(l, x, load);
    if (x->kind == KX_LOAD || (x->kind == KX_UNARY && x->op == KOP_PLACE))
        return x;
    const bool guards = x->kind == KX_BINARY && (x->op == KOP_LAND || x->op == KOP_LOR);
    const int  by = x->kind != KX_SELECT ? ALWAYS : comes_of_elements(x->arg[0], l->read) ? BY_ELEMENTS : BY_PLACE, inside = by > chosen ? by : chosen;
    KExpr     *y = NULL;
    for (int32_t j = 0; j < (guards ? 1 : x->n); j++) {
        const KExpr *arg = lift(l, x->arg[j], j > 0 ? inside : chosen);
        if (arg != x->arg[j] && !y) {
            y = ARENA_NEW(l->k->arena, KExpr);
            *y = *x;
        }
        if (y)
            y->arg[j] = arg;
    }
    return y ? y : x;
}

static bool is_straight(const KBlock *b)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if (s->kind != KS_DECLARE && s->kind != KS_ASSIGN && s->kind != KS_STORE)
            return false;
    return true;
}

static void lift_in(Kernel *k, KBlock *b, bool inner, int32_t *serial)
{
    Map read = map_new(k->arena);
    for (KStmt **link = &b->first; *link; link = &(*link)->next) {
        KStmt *s = *link;
        if (s->body)
            lift_in(k, s->body, s->kind == KS_FOR && is_straight(s->body), serial);
        if (s->other)
            lift_in(k, s->other, false, serial);
        if (!inner || !s->value)
            continue;
        Lifted l = { .k = k, .b = b, .link = link, .read = &read, .serial = serial };
        if (s->temp && comes_of_elements(s->value, &read))
            map_put(&read, s->temp, s);
        s->value = lift(&l, s->value, ALWAYS);
        link = l.link;
    }
}

static void note_serial(void *most, const KStmt *s)
{
    int32_t *n = most;
    *n = s->temp && s->temp->serial > *n ? s->temp->serial : *n;
}

void kernel_lift_loads(Kernel *k)
{
    int32_t  serial = 0;
    KVisitor v = { NULL, note_serial, &serial };
    kernel_visit(k->body, &v);
    serial++;
    lift_in(k, k->body, false, &serial);
}

/* Names. A temporary is called after its instruction, an array after its parameter; C's words, functions that the kernel calls, those of the prelude
 * (dialect_helper) and loop variables are taken. */
static const char *const reserved[] = {
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float", "for", "goto", "if", "inline",
    "int", "long", "register", "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned",
    "void", "volatile", "while", "asm", "typeof", "linux", "unix", "i386", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t",
    "uint32_t", "uint64_t", "bool", "true", "false", "class", "new", "delete", "this", "template", "operator", "private", "public", "protected",
    "namespace", "using", "virtual", "catch", "throw", "try", "friend", "explicit", "export", "mutable", "typename", "and", "or", "not", "xor",
    "half", "main", "memory", "HLO_VECTOR", "HLO_INDEPENDENT", "HLO_ROLLED", "HLO_UNROLLED", "HLO_MINOR", "HLO_INLINE", "HLO_WITHIN", "HLO_TABLE", "bitand",
    "bitor", "compl", "and_eq", "or_eq", "xor_eq", "not_eq", "nullptr", "constexpr", "decltype", "noexcept", "alignas", "alignof", "static_cast",
    "const_cast", "dynamic_cast", "reinterpret_cast", "static_assert", "thread_local", "typeid", "wchar_t", "NULL", "EOF", "errno", "stdin", "stdout",
    "stderr", "assert", "range_from", "range_end", "range_row", "mul_c64", "mul_c128", "sign_c64", "sign_c128", "end_stores_past_caches", "thread",
    "threadIdx", "blockIdx", "blockDim", "gridDim"
};

/* What threads that share a kernel's loops have in their text. */
static const char *const reserved_for_threads[] = {
    "lane", "group", "share", "first", "row", "tile", "from_m", "from_n", "from_k", "at_m", "at_n", "at_k", "at_batch", "a_at", "b_at", "lhs_tile", "rhs_tile", "tile_sums", "piece_sums",
    "at", "piece", "at_piece", "turned", "turn_tile", "from_in", "from_out", "at_out", "at_tile", "tile_r", "tile_c", "warp", "warp_m", "warp_n", "warp_sums", "at_step", "lhs_part",
    "rhs_part", "nvcuda", "base", "each", "odd", "by"
};

typedef struct Namer {
    Arena    *arena;
    Interner *strings;
    Map       taken;
    bool      threads;
} Namer;

/* What threads have beside an accumulator or a row is called so after it. */
static bool ends_as_for_threads(const char *name)
{
    static const char *const ends[] = { "_before", "_columns", "_parts", "_pieces", "_rows" };
    bool                     so = false;
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        so |= strlen(name) >= strlen(ends[k]) && strcmp(name + strlen(name) - strlen(ends[k]), ends[k]) == 0;
    return so;
}

static const char *take_name(Namer *n, const char *want)
{
    char   text[64];
    size_t m = 0;
    if ((want[0] >= '0' && want[0] <= '9') || strncmp(want, "hlo_", 4) == 0) /* what the printer has around loops begins so */
        text[m++] = '_';
    for (const char *p = want; *p && m < 48; p++) {
        bool word = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '_';
        text[m++] = word ? *p : '_';
    }
    text[m] = '\0';
    if (n->threads && ends_as_for_threads(text)) {
        text[m++] = '_';
        text[m] = '\0';
    }
    const char *name = intern_str(n->strings, m ? text : "v");
    for (int i = 2; map_has(&n->taken, name); i++)
        name = intern_printf(n->strings, "%s_%d", m ? text : "v", i);
    map_put(&n->taken, name, n);
    return name;
}

static void take_function(void *cookie, const KExpr *x)
{
    Namer *n = cookie;
    if (x->kind == KX_CALL)
        map_put(&n->taken, intern_str(n->strings, x->fn), n);
}

static int32_t nesting(const KBlock *b)
{
    int32_t deepest = 0;
    for (const KStmt *s = b->first; s; s = s->next) {
        int32_t below = s->body ? nesting(s->body) : 0;
        int32_t other = s->other ? nesting(s->other) : 0;
        below = (below > other ? below : other) + (s->kind == KS_FOR);
        deepest = below > deepest ? below : deepest;
    }
    return deepest;
}

static void name_block(Namer *n, KBlock *b, int32_t loops)
{
    for (KStmt *s = b->first; s; s = s->next) {
        if (s->kind == KS_FOR)
            ((IxAtom *)(uintptr_t)s->loop)->name = intern_printf(n->strings, "i%d", loops);
        if (s->kind == KS_DECLARE)
            s->temp->name = take_name(n, s->temp->name);
        if (s->body)
            name_block(n, s->body, loops + (s->kind == KS_FOR));
        if (s->other)
            name_block(n, s->other, loops);
    }
}

void kernel_name(Kernel *k, bool threads)
{
    Namer n = { .arena = k->arena, .strings = interner_new(k->arena), .taken = map_new(k->arena), .threads = threads };
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        map_put(&n.taken, intern_str(n.strings, reserved[i]), &n);
    size_t at = 0;
    for (const char *helper; (helper = dialect_helper(&at));)
        map_put(&n.taken, intern_str(n.strings, helper), &n);
    for (size_t i = 0; threads && i < sizeof reserved_for_threads / sizeof reserved_for_threads[0]; i++)
        map_put(&n.taken, intern_str(n.strings, reserved_for_threads[i]), &n);
    KVisitor v = { take_function, NULL, &n };
    kernel_visit(k->body, &v);
    for (int32_t i = nesting(k->body); i-- > 0;)
        map_put(&n.taken, intern_printf(n.strings, "i%d", i), &n);
    /* Results have the first choice of names. */
    for (int32_t i = k->n_operands; i < k->n_operands + k->n_results; i++)
        k->params[i]->name = take_name(&n, k->params[i]->name);
    for (int32_t i = 0; i < k->n_arrays; i++)
        if (k->arrays[i]->kind != KARRAY_PARAM || k->arrays[i]->param < k->n_operands)
            k->arrays[i]->name = take_name(&n, k->arrays[i]->name);
    name_block(&n, k->body, 0);
}
