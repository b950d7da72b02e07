/* Where statements go. Blocks are open from the kernel's body to L->cur; a loop is put into its parent when it is closed, so that
 * everything its inside moved out stands before it. */
#include "emit/lower.h"

static KStmt *new_stmt(Lower *L, KStmtKind kind)
{
    KStmt *s = ARENA_NEW(L->arena, KStmt);
    s->kind = kind;
    return s;
}

static KBlock *open_block(Lower *L, KStmt *from, bool fence)
{
    KBlock *b = ARENA_NEW(L->arena, KBlock);
    *b = (KBlock){ .parent = L->cur, .depth = L->cur->depth + 1, .fence = fence, .from = from };
    L->cur = b;
    return b;
}

const IxAtom *loop_open(Lower *L, int64_t lo, int64_t end, LoopDim *dim, int64_t stride)
{
    LoopRef *ref = ARENA_NEW(L->arena, LoopRef);
    *ref = (LoopRef){ dim, stride };
    KStmt *s = new_stmt(L, KS_FOR);
    s->body = open_block(L, s, false);
    s->loop = ix_new_atom(&L->ix, IX_LOOP, NULL, lo, end - 1, L->cur->depth, ref);
    return s->loop;
}

bool loop_between(Lower *L, const Ix *from, const Ix *end, const Ix **i)
{
    int64_t lo, hi, none, constant;
    ix_range(from, &lo, &none);
    ix_range(end, &none, &hi);
    if (lo >= hi)
        return false;
    *i = ix_of(&L->ix, loop_open(L, lo, hi, NULL, 1));
    L->cur->from->from = ix_is_const(from, &constant) ? NULL : from;
    L->cur->from->end = ix_is_const(end, &constant) ? NULL : end;
    return true;
}

void if_open(Lower *L, const KExpr *cond)
{
    KStmt *s = new_stmt(L, KS_IF);
    s->value = cond;
    s->body = open_block(L, s, true);
}

void if_else(Lower *L)
{
    KStmt *s = L->cur->from;
    L->cur = L->cur->parent;
    s->other = open_block(L, s, true);
}

void repeat_open(Lower *L)
{
    KStmt *s = new_stmt(L, KS_LOOP);
    s->body = open_block(L, s, true);
}

void break_unless(Lower *L, const KExpr *cond)
{
    KStmt *s = new_stmt(L, KS_BREAK);
    s->value = cond;
    kblock_append(L->cur, s);
}

void block_open(Lower *L)
{
    KStmt *s = new_stmt(L, KS_BLOCK);
    s->body = open_block(L, s, true);
}

void block_close(Lower *L)
{
    KStmt *s = L->cur->from;
    L->cur = L->cur->parent;
    kblock_append(L->cur, s);
}

KBlock *block_for(Lower *L, int32_t depth)
{
    KBlock *b = L->cur;
    while (b->depth > depth && !b->fence && b->parent)
        b = b->parent;
    return b;
}

static KTemp *new_temp(Lower *L, KBlock *b, Type t, const KExpr *init, const char *name)
{
    KTemp *x = ARENA_NEW(L->arena, KTemp);
    *x = (KTemp){ .name = name, .type = t, .depth = b->depth, .serial = L->serial++ };
    KStmt *s = new_stmt(L, KS_DECLARE);
    s->temp = x;
    s->value = init;
    kblock_append(b, s);
    return x;
}

/* x is an operand's element, what has a name in a format of 16 bits, a constant, or chosen among such: in a narrow format without being computed. */
static bool is_at_hand(const Lower *L, const KExpr *x, int choices)
{
    if (x->kind == KX_CALL && x->n == 1 && x->arg[0]->kind == KX_TEMP)
        return x->arg[0]->type == TYPE_U16 && !x->arg[0]->temp->assigned;
    if (x->kind == KX_CALL && x->n == 1)
        return x->arg[0]->kind == KX_LOAD && x->arg[0]->array->kind == KARRAY_PARAM && x->arg[0]->array->param < L->k->n_operands;
    if (x->kind == KX_TEMP)
        return x->temp->decoded && is_at_hand(L, x->temp->decoded, choices);
    return x->kind == KX_FLOAT || (x->kind == KX_SELECT && choices > 0 && is_at_hand(L, x->arg[1], choices - 1) && is_at_hand(L, x->arg[2], choices - 1));
}

const KExpr *bind(Lower *L, const KExpr *x, const char *name)
{
    enum { MOST_CHOICES = 3 };
    if (x->kind == KX_INT || x->kind == KX_FLOAT || x->kind == KX_TEMP)
        return x;
    KTemp *t = new_temp(L, block_for(L, x->depth), x->type, x, name);
    t->decoded = x->type == TYPE_F32 && is_at_hand(L, x, MOST_CHOICES) ? x : NULL;
    t->in_bf16 = x->type == TYPE_F32 && scalar_in_bf16(x);
    t->in_f16 = x->type == TYPE_F32 && scalar_in_f16(x);
    return kx_temp(L->arena, t);
}

const KExpr *frozen(Lower *L, const KExpr *x, const char *name)
{
    if (x->kind == KX_INT || x->kind == KX_FLOAT || (x->kind == KX_TEMP && !x->temp->assigned))
        return x;
    return kx_temp(L->arena, new_temp(L, L->cur, x->type, x, name));
}

KTemp *accumulator(Lower *L, const KExpr *init, Type t, const char *name)
{
    KTemp *x = new_temp(L, L->cur, t, init, name);
    x->assigned = true;
    return x;
}

void assign(Lower *L, KTemp *t, const KExpr *x)
{
    if (x->kind == KX_TEMP && x->temp == t)
        return;
    KStmt *s = new_stmt(L, KS_ASSIGN);
    s->temp = t;
    s->value = x;
    kblock_append(L->cur, s);
}

void store(Lower *L, KArray *array, const Ix *index, const KExpr *value)
{
    KStmt *s = new_stmt(L, KS_STORE);
    s->array = array;
    s->index = index;
    s->value = scalar_encode(L->arena, array->type, value);
    array->written = true;
    kblock_append(L->cur, s);
}

const KExpr *load(Lower *L, KArray *array, const Ix *index)
{
    const KExpr *raw = kx_load(L->arena, array, index);
    return scalar_decode(L->arena, array->type, raw);
}

static const KExpr *pinned(Lower *L, const KExpr *x)
{
    KExpr *y = arena_copy(L->arena, x, sizeof *x);
    y->depth = L->cur->depth;
    return y;
}

const KExpr *current(Lower *L, KTemp *t)
{
    return pinned(L, kx_temp(L->arena, t));
}

const KExpr *load_current(Lower *L, KArray *array, const Ix *index)
{
    return scalar_decode(L->arena, array->type, pinned(L, kx_load(L->arena, array, index)));
}

static KArray *new_array(Lower *L, KArrayKind kind, Type t, int64_t count, const char *name)
{
    KArray *x = ARENA_NEW(L->arena, KArray);
    *x = (KArray){ .kind = kind, .type = t, .name = name, .count = count, .serial = L->arrays.n };
    vec_push(L->arena, &L->arrays, x);
    return x;
}

static void declare_array(Lower *L, KBlock *b, KArray *x)
{
    KStmt *s = new_stmt(L, KS_ARRAY);
    s->array = x;
    kblock_append(b, s);
}

KArray *local_array(Lower *L, Type t, int64_t count, const char *name)
{
    KArray *x = new_array(L, KARRAY_LOCAL, t, count, name);
    declare_array(L, L->cur, x);
    return x;
}

static bool reserve(Lower *L, int64_t bytes)
{
    if (bytes >= 0 && bytes <= INT64_MAX - 64 && size_add(L->k->temp_bytes, (bytes + 63) / 64 * 64, &L->k->temp_bytes))
        return true;
    inst_error(L->diag, L->inst, "%s needs more working memory than there can be", op_name(L->inst->op));
    L->failed = true;
    return false;
}

static KArray *memory_array(Lower *L, const Shape *s, const char *name, bool may_be_local)
{
    int64_t bytes = shape_bytes(s), offset = L->k->temp_bytes;
    bool    small = may_be_local && bytes >= 0 && bytes <= LOCAL_BYTES && L->local_bytes + bytes <= MOST_LOCAL_BYTES;
    KArray *x = new_array(L, small ? KARRAY_LOCAL : KARRAY_TEMP, s->type, shape_count(s), name);
    x->shape = s;
    if (small) {
        declare_array(L, L->k->body, x);
        L->local_bytes += bytes;
    } else if (reserve(L, bytes))
        x->offset = offset;
    return x;
}

KArray *temp_array(Lower *L, const Shape *s, const char *name)
{
    return memory_array(L, s, name, true);
}

/* Where threads do one stage after the other, each may be done by others. */
KArray *stage_array(Lower *L, const Shape *s, const char *name)
{
    return memory_array(L, s, name, !L->plan->plain);
}

KArray *shared_array(Lower *L, const Shape *s, const char *name)
{
    return memory_array(L, s, name, false);
}

void store_at(Lower *L, KArray *array, const Ix *const *index, const KExpr *value)
{
    store(L, array, shape_index(L, array->shape, index), value);
}

const Ix *shape_index(Lower *L, const Shape *s, const Ix *const *index)
{
    int64_t  *strides = ARENA_ARRAY(L->arena, int64_t, s->rank);
    const Ix *x = ix_const(&L->ix, 0);
    shape_strides(s, strides);
    for (int32_t d = 0; d < s->rank; d++)
        x = ix_add(&L->ix, x, ix_times(&L->ix, index[d], strides[d]));
    return x;
}

int32_t *major_order(Lower *L, const Shape *s)
{
    int32_t *order = ARENA_ARRAY(L->arena, int32_t, s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        order[s->rank - 1 - k] = (int32_t)layout_dim(s, k);
    return order;
}

typedef struct RoleDims {
    int              role;
    int32_t          n;
    LoopDim         *dims;
    struct RoleDims *next;
} RoleDims;

/* A try may make other loops of an instruction than the one before. */
static bool has_extents(const RoleDims *r, int32_t n, const int64_t *extents)
{
    for (int32_t d = 0; r->n == n && d < n; d++)
        if (r->dims[d].extent != extents[d])
            return false;
    return r->n == n;
}

LoopDim *plan_dims(Lower *L, const Inst *x, int role, int32_t n, const int64_t *extents)
{
    Plan     *p = L->plan;
    RoleDims *head = map_get(&p->dims, x);
    for (RoleDims *r = head; r; r = r->next)
        if (r->role == role && has_extents(r, n, extents))
            return r->dims;
    RoleDims *r = ARENA_NEW(p->arena, RoleDims);
    *r = (RoleDims){ role, n, ARENA_ARRAY(p->arena, LoopDim, n), head };
    for (int32_t d = 0; d < n; d++)
        r->dims[d].extent = extents[d];
    map_put(&p->dims, x, r);
    return r->dims;
}

enum { LEAST_BLOCKS = 2 };

/* Short steps, of paddings and strides, go through any long extent: what is left of it is a loop of its own. */
static bool may_have_rest(const Lower *L, int64_t extent, const LoopDim *d, int64_t inner)
{
    enum { LONGEST = 16 };
    return !L->plan->plain && inner <= LONGEST && extent >= LEAST_BLOCKS * inner && d->n_splits == 0;
}

/* A part of a concatenation, say, whose elements are those of rows of its own: the first of these begins at lead. */
static bool may_lead(const Lower *L, const LoopDim *d, int64_t inner, int64_t lead)
{
    const int64_t extent = d->extent - lead;
    return !L->plan->plain && d->n_splits == 0 && extent >= LEAST_BLOCKS * inner && (extent % inner == 0 || may_have_rest(L, extent, d, inner));
}

/* inner is the stride at which the dimension should be cut too, from lead on. Only chains of divisors can be cut. */
static void add_split(Lower *L, LoopDim *d, int64_t inner, int64_t lead)
{
    if (d->fixed || inner <= 1 || inner >= d->extent || d->n_splits == MAX_SPLITS)
        return;
    if (lead && may_lead(L, d, inner, lead))
        d->lead = lead;
    else if ((d->extent - d->lead) % inner != 0 && !may_have_rest(L, d->extent, d, inner))
        return;
    int32_t at = 0;
    while (at < d->n_splits && d->splits[at] < inner)
        at++;
    if (at < d->n_splits && (d->splits[at] == inner || d->splits[at] % inner != 0))
        return;
    if (at > 0 && inner % d->splits[at - 1] != 0)
        return;
    for (int32_t k = d->n_splits; k > at; k--)
        d->splits[k] = d->splits[k - 1];
    d->splits[at] = inner;
    d->n_splits++;
    L->again = true;
}

void lower_split(void *cookie, const IxAtom *loop, int64_t inner, int64_t lead)
{
    const LoopRef *ref = loop->owner;
    if (ref && ref->dim)
        add_split(cookie, ref->dim, ref->stride * inner, ref->stride * lead);
}

static void add_cut(Lower *L, LoopDim *d, int64_t stride, int64_t at)
{
    if (L->probed) { /* looking for one loop's cuts only */
        if (L->probed == d && L->probed_stride == stride) {
            Cut *c = ARENA_NEW(L->arena, Cut);
            *c = (Cut){ stride, at };
            vec_push(L->arena, &L->probe, c);
        }
        return;
    }
    for (int32_t k = 0; k < d->n_cuts; k++)
        if (d->cuts[k].stride == stride && d->cuts[k].at == at)
            return;
    if (d->fixed || d->n_cuts == MAX_CUTS)
        return;
    d->cuts[d->n_cuts++] = (Cut){ stride, at };
    L->again = true;
}

/* The term of x that grows most, when all are loops of one dimension. */
static const IxTerm *leading_term(const Ix *x)
{
    const IxTerm *best = NULL;
    for (int32_t k = 0; k < x->n; k++) {
        const LoopRef *ref = x->t[k].atom->kind == IX_LOOP ? x->t[k].atom->owner : NULL, *first = x->t[0].atom->owner;
        if (!ref || !ref->dim || ref->dim != first->dim)
            return NULL;
        if (!best || ref->stride > ((const LoopRef *)best->atom->owner)->stride)
            best = &x->t[k];
    }
    return best;
}

/* k * loop + c crosses the bound where loop = ceil((bound - c) / k). */
static void ask_for_cut_of(Lower *L, const IxTerm *t, int64_t c, int64_t bound)
{
    const IxAtom  *loop = t->atom;
    const LoopRef *ref = loop->owner;
    int64_t        k = t->k, v = bound - c;
    if (k < 0) {
        k = -k;
        v = -v + 1;
    }
    int64_t at = v >= 0 ? (v + k - 1) / k : -(-v / k);
    if (at > loop->lo && at <= loop->hi)
        add_cut(L, ref->dim, ref->stride, at);
}

/* x crosses the bound. Where it is a sum of a cut dimension's loops, the outermost one has to break where the first of what is inside crosses it, and where all of it
 * has done so. Many threads do the pieces of a loop one after the other, so they rather test. */
static void ask_for_cut(Lower *L, const Ix *x, int64_t bound)
{
    const IxTerm *t = L->plan->plain ? NULL : leading_term(x);
    if (!t)
        return;
    int64_t least, most, loop_least = t->k * (t->k < 0 ? t->atom->hi : t->atom->lo), loop_most = t->k * (t->k < 0 ? t->atom->lo : t->atom->hi);
    ix_range(x, &least, &most);
    ask_for_cut_of(L, t, most - loop_most, bound);
    if (x->n > 1)
        ask_for_cut_of(L, t, least - loop_least, bound);
}

int in_range(Lower *L, const Ix *x, int64_t lo, int64_t end)
{
    int64_t least, most;
    ix_range(x, &least, &most);
    if (least >= lo && most < end)
        return 1;
    if (most < lo || least >= end || lo >= end)
        return 0;
    if (least < lo)
        ask_for_cut(L, x, lo);
    if (most >= end)
        ask_for_cut(L, x, end);
    return -1;
}

typedef struct Level {
    LoopDim *dim;
    int32_t  which;  /* dimension */
    int64_t  n, stride;
    int64_t  lead;   /* of the dimension: that much is before these loops, */
    int64_t  rest;   /* and that much behind them */
    int32_t  n_dim;  /* levels of the dimension, this one included */
} Level;

typedef struct Nest {
    int32_t    n_levels;
    Level     *levels;
    const Ix **index;
    NestBody  *body;
    void      *cookie;
    int32_t    pieces; /* made so far */
} Nest;

static void nest_level(Lower *L, Nest *t, int32_t level);

/* One piece [lo, end) of a level, then the levels inside. */
static void nest_piece(Lower *L, Nest *t, int32_t level, int64_t lo, int64_t end)
{
    Level    *v = &t->levels[level];
    const Ix *before = t->index[v->which];
    bool      loops = end - lo > 1;
    const Ix *i = ix_const(&L->ix, lo);
    if (loops)
        i = ix_of(&L->ix, loop_open(L, lo, end, v->dim, v->stride));
    t->index[v->which] = ix_add(&L->ix, before, ix_times(&L->ix, i, v->stride));
    nest_level(L, t, level + 1);
    t->index[v->which] = before;
    if (loops)
        block_close(L);
}

/* The planned cuts of this level that matter here, ascending: expands the inside once and throws it away. */
static int32_t cuts_here(Lower *L, Nest *t, int32_t level, int64_t *cuts)
{
    Level *v = &t->levels[level];
    bool   planned = false;
    for (int32_t k = 0; k < v->dim->n_cuts; k++)
        planned |= v->dim->cuts[k].stride == v->stride;
    if (!planned || L->probed || t->pieces > 4 * MAX_CUTS)
        return 0;
    KBlock *cur = L->cur;
    KStmt   scratch = { .kind = KS_IF };
    L->probed = v->dim;
    L->probed_stride = v->stride;
    L->probe.n = 0;
    open_block(L, &scratch, true);
    nest_piece(L, t, level, 0, v->n);
    L->cur = cur;
    L->probed = NULL;
    int32_t n = 0;
    for (int32_t k = 0; k < L->probe.n && n < MAX_CUTS; k++) {
        int64_t at = L->probe.v[k]->at;
        int32_t j = n;
        bool    known = false;
        for (int32_t m = 0; m < n; m++)
            known |= cuts[m] == at;
        if (known)
            continue;
        for (; j > 0 && cuts[j - 1] > at; j--)
            cuts[j] = cuts[j - 1];
        cuts[j] = at;
        n++;
    }
    return n;
}

/* n elements of a dimension that are not in the loops that it is cut into, from first on. */
static void nest_beside(Lower *L, Nest *t, int32_t level, int64_t n, int64_t first)
{
    const Level *v = &t->levels[level];
    const Ix    *before = t->index[v->which], *i = ix_const(&L->ix, 0);
    if (n > 1)
        i = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
    t->index[v->which] = ix_plus(&L->ix, ix_add(&L->ix, before, i), first);
    nest_level(L, t, level + v->n_dim);
    t->index[v->which] = before;
    if (n > 1)
        block_close(L);
}

static void nest_level(Lower *L, Nest *t, int32_t level)
{
    if (level == t->n_levels) {
        t->pieces++;
        t->body(L, t->cookie, t->index);
        return;
    }
    const Level *v = &t->levels[level];
    const Ix    *before = t->index[v->which];
    if (v->lead)
        nest_beside(L, t, level, v->lead, 0);
    t->index[v->which] = ix_plus(&L->ix, before, v->lead);
    int64_t cuts[MAX_CUTS], lo = 0;
    int32_t n = cuts_here(L, t, level, cuts);
    for (int32_t k = 0; k < n; k++) {
        nest_piece(L, t, level, lo, cuts[k]);
        lo = cuts[k];
    }
    nest_piece(L, t, level, lo, v->n);
    if (v->rest)
        nest_beside(L, t, level, v->rest, v->n * v->stride);
    t->index[v->which] = before;
}

void nest(Lower *L, int32_t n, LoopDim *dims, const int32_t *order, NestBody *body, void *cookie)
{
    Nest    t = { .body = body, .cookie = cookie };
    int32_t most = 0;
    for (int32_t k = 0; k < n; k++)
        most += dims[k].n_splits + 1;
    t.levels = ARENA_ARRAY(L->arena, Level, most);
    t.index = ARENA_ARRAY(L->arena, const Ix *, n);
    for (int32_t k = 0; k < n; k++) {
        int32_t  d = order ? order[k] : k;
        LoopDim *x = &dims[d];
        int64_t  outer = x->extent - x->lead;
        t.index[d] = ix_const(&L->ix, 0);
        if (x->extent == 1)
            continue;
        for (int32_t s = x->n_splits; s >= 0; s--) {
            int64_t stride = s ? x->splits[s - 1] : 1;
            t.levels[t.n_levels++] = (Level){ x, d, outer / stride, stride, s == x->n_splits ? x->lead : 0, outer % stride, s + 1 };
            outer = stride;
        }
    }
    nest_level(L, &t, 0);
}
