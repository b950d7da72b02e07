/* Neighbours that a thread does at once, so that memory is read and written 16 bytes at a time:
 *
 *     const int i0 = thread / 1024, base = thread % 1024 * 4;
 *     const hlo_pack<float, 4> x_pack = hlo_load<4>(&x[i0 * 4096 + base]);
 *     hlo_pack<float, 4> t_pack;
 *     #pragma unroll
 *     for (int each = 0; each < 4; each++)
 *         t_pack.at[each] = tanhf(x_pack.at[each]);
 *     hlo_store(&t[i0 * 4096 + base], t_pack);
 *
 * The iterations of the loop that is cut do not depend on each other, or only sum up: so all that a pack reads may be read first, and what it writes be written last. What
 * is the same for the whole pack is computed once. All that varies within it has to lie side by side and begin at a multiple of the width, or there are no packs; a loop of one thread that stores nothing reads the rest one by one. What only
 * one of two branches reads, as of a concatenate, is read where that branch is taken, if all of a pack take the same one. */
#include "support/intern.h"
#include "support/map.h"
#include "support/vec.h"
#include "target-cuda/part.h"

enum { MOST_WIDE = 8, MOST_STATEMENTS = 64, LEAST_BLOCKS_EACH = 2 /* for each multiprocessor */ };

typedef struct Packer {
    Arena        *arena;
    const IxAtom *loop, *base;
    int           width;
    bool          rows;     /* arrays of the row are shared memory, which may be packed */
    bool          in_order; /* the iterations are done one after the other: all that is read lies in packs, */
    bool          reads;    /* unless nothing is stored: then something does */
    const Ix     *each;
    KBlock       *before, *body;
    VEC(Pack)     packs;
    VEC(const KTemp *) varying;
    int32_t       widest;   /* bytes of the largest element */
    int32_t       statements;
    bool          conditional; /* what is at hand may not be reached */
    const KExpr  *guard;       /* or only where that holds, which is the same for all of a pack; NULL: always */
    int           depth;       /* of blocks around what is at hand */
    bool          uses_index;
    bool          bad;
} Packer;

/* ---- what varies within a pack ---- */

static bool temp_varies(const Packer *p, const KTemp *t)
{
    for (int32_t j = 0; j < p->varying.n; j++)
        if (p->varying.v[j] == t)
            return true;
    return false;
}

static bool atom_varies(const Packer *p, const IxAtom *atom);

static bool index_varies(const Packer *p, const Ix *x)
{
    for (int32_t i = 0; i < x->n; i++)
        if (atom_varies(p, x->t[i].atom))
            return true;
    return false;
}

/* Within a pack x grows by one from element to element, from a multiple of the width on: the loop, what it is a part of, what is left of that by a multiple of the width. */
static bool is_in_step(const Packer *p, const Ix *x)
{
    int64_t step = 0;
    for (int32_t i = 0; i < x->n; i++) {
        const IxAtom *atom = x->t[i].atom;
        if (atom == p->loop || (atom->kind == IX_MOD && atom->by % p->width == 0 && is_in_step(p, atom->arg)))
            step += x->t[i].k;
        else if (x->t[i].k % p->width != 0 || atom_varies(p, atom))
            return false;
    }
    return step == 1 && x->c % p->width == 0;
}

static bool atom_varies(const Packer *p, const IxAtom *atom)
{
    if (atom->kind == IX_DIV && atom->by % p->width == 0 && is_in_step(p, atom->arg))
        return false;
    return atom == p->loop || (atom->arg && index_varies(p, atom->arg)) || (atom->kind == IX_VALUE && temp_varies(p, atom->owner));
}

static bool is_stored(const Packer *p, const KArray *x)
{
    for (int32_t j = 0; j < p->packs.n; j++)
        if (p->packs.v[j].stored && p->packs.v[j].array == x)
            return true;
    return false;
}

static bool varies(const Packer *p, const KExpr *x)
{
    if ((x->index && index_varies(p, x->index)) || (x->kind == KX_TEMP && (x->temp->assigned || temp_varies(p, x->temp))) || (x->kind == KX_LOAD && is_stored(p, x->array)))
        return true;
    for (int32_t j = 0; j < x->n; j++)
        if (varies(p, x->arg[j]))
            return true;
    return false;
}

/* ---- packs ---- */

/* Neighbours in the loop are neighbours in memory, and a pack begins at a multiple of its width. */
static bool lies_in_packs(const Packer *p, const KArray *array, const Ix *x)
{
    const int size = type_bytes(storage_type(array->type));
    bool      aligned = array->kind == KARRAY_PARAM || (array->kind == KARRAY_TEMP && array->offset % PACK_BYTES == 0) ||
                   (array->kind == KARRAY_LOCAL && p->rows && array->count % p->width == 0);
    return aligned && size <= PACK_BYTES / 2 && is_in_step(p, x);
}

/* Read without being asked for, it is still within the array. */
static bool is_inside(const KArray *array, const Ix *x)
{
    int64_t lo, hi;
    ix_range(x, &lo, &hi);
    return lo >= 0 && hi < array->count;
}

static const Ix *from_base(const Packer *p, const Ix *x)
{
    Ix *y = arena_copy(p->arena, x, sizeof *x + (size_t)x->n * sizeof x->t[0]);
    for (int32_t i = 0; i < y->n; i++) {
        const IxAtom *atom = y->t[i].atom;
        if (atom == p->loop)
            y->t[i].atom = p->base;
        else if (atom->arg && ix_has(atom->arg, p->loop)) {
            IxAtom *of_base = arena_copy(p->arena, atom, sizeof *atom);
            of_base->arg = from_base(p, atom->arg);
            y->t[i].atom = of_base;
        }
    }
    return y;
}

static const KExpr *expr_from_base(const Packer *p, const KExpr *x)
{
    KExpr *y = arena_copy(p->arena, x, sizeof *x);
    if (x->index)
        y->index = from_base(p, x->index);
    for (int32_t j = 0; j < x->n; j++)
        y->arg[j] = expr_from_base(p, x->arg[j]);
    return y;
}

/* i1 + 8 < 1024: true for all of a pack, or for none. */
static bool is_same_for_all(const Packer *p, const KExpr *x)
{
    if (!varies(p, x))
        return x->kind != KX_LOAD;
    if (x->kind == KX_BINARY && (x->op == KOP_LAND || x->op == KOP_LOR || ((x->op == KOP_AND || x->op == KOP_OR) && x->type == TYPE_PRED)))
        return is_same_for_all(p, x->arg[0]) && is_same_for_all(p, x->arg[1]);
    if (x->kind != KX_BINARY || x->op < KOP_LT || x->op > KOP_GE || x->arg[0]->kind != KX_INDEX || x->arg[1]->kind != KX_INT)
        return false;
    const Ix *index = x->arg[0]->index;
    int64_t   limit;
    if (__builtin_sub_overflow(x->arg[1]->i, index->c, &limit) || __builtin_add_overflow(limit, x->op == KOP_LE || x->op == KOP_GT, &limit))
        return false;
    for (int32_t i = 0; i < index->n; i++) {
        const IxAtom *atom = index->t[i].atom;
        if (atom == p->loop ? index->t[i].k != 1 : index->t[i].k % p->width != 0 || atom->kind != IX_LOOP)
            return false;
    }
    return limit % p->width == 0;
}

/* The pack that holds the array's elements from there on. */
static Pack *pack_of(Packer *p, KArray *array, const Ix *index, bool stored)
{
    for (int32_t j = 0; j < p->packs.n; j++) {
        Pack *x = &p->packs.v[j];
        if (x->array == array && x->stored == stored && x->guard == p->guard && ix_equal(x->from, index))
            return x;
        if (x->array == array && stored != x->stored && (!stored || !ix_equal(x->from, index)))
            p->bad = true; /* what one of the pack has stored another reads */
    }
    const int size = type_bytes(storage_type(array->type));
    KArray   *here = arena_copy(p->arena, array, sizeof *array);
    p->widest = size > p->widest ? size : p->widest;
    here->kind = KARRAY_LOCAL;
    vec_push(p->arena, &p->packs, ((Pack){ .array = array, .from = index, .index = from_base(p, index), .here = here, .guard = p->guard, .stored = stored }));
    return &p->packs.v[p->packs.n - 1];
}

/* ---- what each of a pack does ---- */

static const KExpr *of_each(Packer *p, const KExpr *x)
{
    bool conditional = p->conditional;
    if (x->kind == KX_INDEX)
        p->uses_index |= index_varies(p, x->index);
    if (x->kind == KX_LOAD && (index_varies(p, x->index) || is_stored(p, x->array))) {
        const bool in_packs = lies_in_packs(p, x->array, x->index) && !(conditional && !is_inside(x->array, x->index));
        p->uses_index |= !in_packs;
        p->bad |= !in_packs && !p->reads;
        return p->bad || !in_packs ? x : kx_load(p->arena, pack_of(p, x->array, x->index, false)->here, p->each);
    }
    p->bad |= x->kind == KX_LOAD && p->in_order && !p->reads;
    if (x->index && !index_varies(p, x->index))
        return expr_from_base(p, x);
    if (x->n == 0)
        return x;
    KExpr *y = arena_copy(p->arena, x, sizeof *x);
    for (int32_t j = 0; j < x->n; j++) {
        p->conditional = conditional || (j > 0 && (x->kind == KX_SELECT || (x->kind == KX_BINARY && (x->op == KOP_LAND || x->op == KOP_LOR))));
        y->arg[j] = of_each(p, x->arg[j]);
    }
    p->conditional = conditional;
    return y;
}

static KBlock *block_of_each(Packer *p, const KBlock *b);

/* A branch: what it reads is read where it is taken, if that is the same for the whole pack. */
static KBlock *branch_of_each(Packer *p, const KBlock *b, const KExpr *taken)
{
    const KExpr *guard = p->guard;
    bool         conditional = p->conditional;
    if (taken)
        p->guard = guard ? kx_binary(p->arena, KOP_LAND, TYPE_PRED, guard, taken) : taken;
    else
        p->conditional = true;
    KBlock *out = block_of_each(p, b);
    p->guard = guard;
    p->conditional = conditional;
    return out;
}

static void add_stmt(Packer *p, KBlock *to, const KStmt *s)
{
    KStmt copy = *s;
    bool  nested = p->conditional || p->guard || p->depth > 0;
    p->statements++;
    switch (s->kind) {
    case KS_DECLARE:
        if (!nested && !p->in_order && s->value && !s->temp->assigned && !varies(p, s->value)) {
            copy.value = expr_from_base(p, s->value);
            kblock_append_copy(p->arena, p->before, &copy);
            return;
        }
        vec_push(p->arena, &p->varying, s->temp);
        copy.value = s->value ? of_each(p, s->value) : NULL;
        break;
    case KS_ASSIGN:
        copy.value = of_each(p, s->value);
        break;
    case KS_STORE:
        p->bad |= nested || s->atomic || !index_varies(p, s->index) || !lies_in_packs(p, s->array, s->index) || is_stored(p, s->array);
        copy.value = of_each(p, s->value);
        if (p->bad)
            return;
        copy.array = pack_of(p, s->array, s->index, true)->here;
        copy.index = p->each;
        break;
    case KS_IF: {
        const KExpr *taken = !p->conditional && is_same_for_all(p, s->value) ? expr_from_base(p, s->value) : NULL;
        copy.value = taken ? taken : of_each(p, s->value);
        copy.body = branch_of_each(p, s->body, taken);
        copy.other = s->other ? branch_of_each(p, s->other, taken ? kx_unary(p->arena, KOP_NOT, TYPE_PRED, taken) : NULL) : NULL;
        break;
    }
    case KS_BLOCK:
        copy.body = block_of_each(p, s->body);
        break;
    case KS_FOR: case KS_ARRAY: case KS_LOOP: case KS_BREAK: p->bad = true; return;
    }
    kblock_append_copy(p->arena, to, &copy);
}

static KBlock *block_of_each(Packer *p, const KBlock *b)
{
    KBlock *out = ARENA_NEW(p->arena, KBlock);
    p->depth++;
    for (const KStmt *s = b->first; s && !p->bad; s = s->next)
        add_stmt(p, out, s);
    p->depth--;
    return out;
}

typedef struct Names {
    Interner *strings;
    Map       taken;
} Names;

static void take(Names *n, const char *name)
{
    map_put(&n->taken, intern_str(n->strings, name), n);
}

static void note_used(void *cookie, const KExpr *x)
{
    if (x->kind == KX_TEMP)
        take(cookie, x->temp->name);
}

static void note_declared(void *cookie, const KStmt *s)
{
    if (s->temp)
        take(cookie, s->temp->name);
}

/* x_pack, which is no other name of the kernel. */
static void name_packs(Packer *p, const Kernel *k)
{
    Names    n = { interner_new(p->arena), map_new(p->arena) };
    KVisitor v = { note_used, note_declared, &n };
    kernel_visit(k->body, &v);
    for (int32_t j = 0; j < k->n_arrays; j++)
        take(&n, k->arrays[j]->name);
    for (int32_t j = 0; j < p->packs.n; j++) {
        Pack       *x = &p->packs.v[j];
        const char *name = intern_printf(n.strings, "%s_pack", x->array->name);
        for (int i = 2; map_has(&n.taken, name); i++)
            name = intern_printf(n.strings, "%s_pack_%d", x->array->name, i);
        take(&n, name);
        x->name = name;
        x->here->name = arena_printf(p->arena, "%s.at", name);
    }
}

/* ---- a body ---- */

static const IxAtom *named(Arena *a, const IxAtom *like, const char *name)
{
    IxAtom *x = arena_copy(a, like, sizeof *like);
    x->name = name;
    x->arg = NULL;
    return x;
}

typedef enum Loop { OF_THREADS, OF_ROWS, IN_ORDER } Loop;

static void see_store(void *cookie, const KStmt *s)
{
    *(bool *)cookie |= s->kind == KS_STORE;
}

static bool stores(const KBlock *body)
{
    bool     any = false;
    KVisitor v = { NULL, see_store, &any };
    kernel_visit(body, &v);
    return any;
}

static bool pack_body(Arena *a, const Kernel *k, const KBlock *body, const IxAtom *loop, int width, Loop kind, Packs *out, int32_t *widest)
{
    const IxAtom *lane = named(a, loop, "each");
    Ix           *each = arena_alloc(a, sizeof *each + sizeof each->t[0]);
    *each = (Ix){ .n = 1 };
    each->t[0] = (IxTerm){ 1, lane };
    Packer p = { .arena = a, .loop = loop, .base = named(a, loop, "base"), .width = width, .rows = kind == OF_ROWS, .in_order = kind == IN_ORDER, .reads = kind == IN_ORDER && !stores(body), .each = each,
                 .before = ARENA_NEW(a, KBlock), .body = ARENA_NEW(a, KBlock) };
    for (const KStmt *s = body->first; s && !p.bad; s = s->next)
        add_stmt(&p, p.body, s);
    if (p.bad || p.packs.n == 0 || p.statements > MOST_STATEMENTS)
        return false;
    name_packs(&p, k);
    *out = (Packs){ .loop = loop, .width = width, .n = p.packs.n, .v = p.packs.v, .before = p.before, .body = p.body, .uses_index = p.uses_index };
    *widest = p.widest > *widest ? p.widest : *widest;
    return true;
}

static bool divides(int width, const IxAtom *loop)
{
    return loop->lo == 0 && (loop->hi + 1) % width == 0;
}

/* ---- parts ---- */

/* All loops of a row are dealt out alike: what a thread keeps in one it finds in the next. */
static bool pack_row(Arena *a, const Kernel *k, CudaPart *part, int width)
{
    const RowPart *r = &part->row;
    Packs         *packs = ARENA_ARRAY(a, Packs, r->n_steps);
    int32_t        widest = 0;
    const int64_t  threads = part->share == BY_WARP ? part->lanes : cuda_part_threads(part);
    if (r->longest / width < (part->share == BY_WARP ? threads : threads / 2) || (part->stage == 1 && part->split.length % width != 0))
        return false;
    for (int32_t j = 0; j < r->n_steps; j++) {
        const RowStep *s = &r->steps[j];
        if (s->kind == ROW_LOOP && (s->n_chosen > 0 || !divides(width, s->dealt->loop) || !pack_body(a, k, s->dealt->body, s->dealt->loop, width, OF_ROWS, &packs[j], &widest)))
            return false;
    }
    part->packs = packs;
    return widest * width <= PACK_BYTES;
}

static bool pack_elements(Arena *a, const Kernel *k, CudaPart *part, int width)
{
    const ThreadPart *t = &part->threads;
    int32_t           widest = 0;
    part->packs = ARENA_NEW(a, Packs);
    return divides(width, t->loops[t->n_loops - 1]) && (double)t->count >= part->device->units * LEAST_BLOCKS_EACH * THREADS * width &&
           pack_body(a, k, t->body, t->loops[t->n_loops - 1], width, OF_THREADS, part->packs, &widest) && widest * width <= PACK_BYTES;
}

/* The innermost loop of a nest of loops and conditions, each of which is all that the one around it does. NULL: s is no such nest. */
static const KStmt *innermost(const KStmt *s)
{
    for (;; s = s->body->first) {
        const bool nests = (s->kind == KS_FOR && !s->from && !s->end) || (s->kind == KS_IF && !s->other);
        const KStmt *next = nests ? s->body->first : NULL;
        if (!nests)
            return NULL;
        if (!next || next->next || (next->kind != KS_FOR && next->kind != KS_IF))
            return s->kind == KS_FOR ? s : NULL;
    }
}

/* Loops of one thread along what lies side by side: neighbours of a warp are elsewhere. */
static void pack_inner(Arena *a, const Kernel *k, CudaPart *part)
{
    int32_t n = 0;
    for (const KStmt *s = part->threads.body->first; s; s = s->next)
        n++;
    part->inner = ARENA_ARRAY(a, Packs, n);
    for (const KStmt *s = part->threads.body->first; s; s = s->next, part->n_inner++) {
        Packs       *x = &part->inner[part->n_inner];
        const KStmt *f = innermost(s);
        for (int width = MOST_WIDE; width > 1 && f && x->n == 0; width /= 2) {
            int32_t widest = 0;
            if (f->loop->lo < 0 || f->loop->lo > f->loop->hi + 1 - width || (f->loop->hi + 1) % width != 0 || !pack_body(a, k, f->body, f->loop, width, IN_ORDER, x, &widest) || widest * width > PACK_BYTES)
                *x = (Packs){ 0 };
            x->width = width;
            x->at = f;
        }
    }
}

bool cuda_is_one_pack(const Packs *packs)
{
    return packs->n > 0 && packs->loop->hi - packs->loop->lo + 1 == packs->width;
}

void cuda_choose_packs(Arena *a, const Kernel *k, CudaPart *part)
{
    bool rows = (part->share == BY_WARP || part->share == BY_BLOCK) && part->stage != 2;
    part->width = 1;
    for (int width = MOST_WIDE; width > 1 && (rows || part->share == BY_THREAD); width /= 2)
        if (rows ? pack_row(a, k, part, width) : pack_elements(a, k, part, width)) {
            part->width = width;
            return;
        }
    if (part->share == BY_THREAD && !part->copy) {
        pack_inner(a, k, part);
        cuda_choose_alone(a, part);
    }
}

/* ---- text ---- */

static void put_place(Buf *b, const CudaPart *part, const Pack *x)
{
    buf_printf(b, "&%s[", x->array->name);
    dialect_index(b, part->dialect, x->index);
    buf_putc(b, ']');
}

static void put_type(Buf *b, const CudaPart *part, const Packs *packs, const Pack *x)
{
    buf_printf(b, "hlo_pack<%s, %d>", dialect_type(part->dialect, storage_type(x->array->type)), packs->width);
}

void cuda_put_pack_loads(Buf *b, const CudaPart *part, const Packs *packs, const char *inside, int depth)
{
    dialect_block(b, part->dialect, packs->before, depth);
    for (int32_t j = 0; j < packs->n; j++) {
        const Pack *x = &packs->v[j];
        const bool  asks = !x->stored && (x->guard || inside);
        buf_printf(b, "%*s%s", 4 * depth, "", x->stored ? "" : "const ");
        put_type(b, part, packs, x);
        buf_printf(b, " %s", x->name);
        if (!x->stored)
            buf_puts(b, " = ");
        if (asks && inside)
            buf_printf(b, "%s%s", inside, x->guard ? " && " : "");
        if (asks && x->guard) {
            buf_puts(b, inside ? "(" : "");
            dialect_expr(b, part->dialect, x->guard);
            buf_puts(b, inside ? ")" : "");
        }
        if (!x->stored) {
            buf_printf(b, "%shlo_load<%d>(", asks ? " ? " : "", packs->width);
            put_place(b, part, x);
            buf_putc(b, ')');
        }
        if (asks) {
            buf_puts(b, " : ");
            put_type(b, part, packs, x);
            buf_puts(b, "{}");
        }
        buf_puts(b, ";\n");
    }
}

typedef struct Wanted {
    const IxAtom *loop;
    bool          found;
} Wanted;

static void see_index(void *cookie, const KExpr *x)
{
    Wanted *w = cookie;
    w->found |= x->index && ix_has(x->index, w->loop);
}

void cuda_put_each(Buf *b, const CudaPart *part, const Packs *packs, const KBlock *body, int depth)
{
    Wanted   w = { packs->loop, false };
    KVisitor v = { see_index, NULL, &w };
    if (packs->uses_index)
        kernel_visit(body, &v);
    const bool braces = w.found || dialect_wants_braces(body);
    buf_printf(b, "%*s#pragma unroll\n%*sfor (int each = 0; each < %d; each++)%s\n", 4 * depth, "", 4 * depth, "", packs->width, braces ? " {" : "");
    if (w.found)
        buf_printf(b, "%*sconst %s %s = base + each;\n", 4 * depth + 4, "", part->dialect->index, packs->loop->name);
    dialect_block(b, part->dialect, body, depth + 1);
    if (braces)
        buf_printf(b, "%*s}\n", 4 * depth, "");
}

void cuda_put_pack_stores(Buf *b, const CudaPart *part, const Packs *packs, int depth)
{
    for (int32_t j = 0; j < packs->n; j++)
        if (packs->v[j].stored) {
            buf_printf(b, "%*shlo_store(", 4 * depth, "");
            put_place(b, part, &packs->v[j]);
            buf_printf(b, ", %s);\n", packs->v[j].name);
        }
}

void cuda_put_packs(Buf *b, const CudaPart *part, const Packs *packs, int depth)
{
    cuda_put_pack_loads(b, part, packs, NULL, depth);
    cuda_put_each(b, part, packs, packs->body, depth);
    cuda_put_pack_stores(b, part, packs, depth);
}

/* A loop that goes along packs, and what is before the first whole one. */
static void put_pack_loop(Buf *b, const CudaPart *part, const KStmt *s, const Packs *x, int64_t start, int depth)
{
    if (s->loop->lo < start) {
        IxAtom first = *s->loop;
        KStmt  alone = *s;
        first.hi = start - 1;
        alone.loop = &first;
        dialect_stmt(b, part->dialect, &alone, depth);
    }
    buf_printf(b, "%*sfor (%s base = %lld; base < %lld; base += %d) {\n", 4 * depth, "", part->dialect->index, (long long)start, (long long)s->loop->hi + 1, x->width);
    cuda_put_packs(b, part, x, depth + 1);
    buf_printf(b, "%*s}\n", 4 * depth, "");
}

/* What is around it. */
static void put_pack_nest(Buf *b, const CudaPart *part, const KStmt *s, const Packs *x, int depth)
{
    const int64_t start = (x->loop->lo + x->width - 1) / x->width * x->width;
    bool          braces = false;
    for (; s != x->at; s = s->body->first) {
        braces = s->body->first == x->at && x->loop->lo < start;
        if (s->kind == KS_FOR)
            buf_printf(b, "%*sfor (%s %s = %lld; %s < %lld; %s++)", 4 * depth, "", part->dialect->index, s->loop->name, (long long)s->loop->lo, s->loop->name, (long long)s->loop->hi + 1, s->loop->name);
        else {
            buf_printf(b, "%*sif (", 4 * depth, "");
            dialect_expr(b, part->dialect, s->value);
            buf_putc(b, ')');
        }
        buf_puts(b, braces ? " {\n" : "\n");
        depth++;
    }
    put_pack_loop(b, part, s, x, start, depth);
    if (braces)
        buf_printf(b, "%*s}\n", 4 * depth - 4, "");
}

void cuda_put_inner(Buf *b, const CudaPart *part, int depth)
{
    int32_t j = 0;
    for (const KStmt *s = part->threads.body->first; s; s = s->next, j++)
        if (j < part->n_inner && part->inner[j].n > 0)
            put_pack_nest(b, part, s, &part->inner[j], depth);
        else if (s->kind != KS_ARRAY || s->array->read || s->array->written)
            dialect_stmt(b, part->dialect, s, depth);
}

void cuda_pack_services(Buf *b)
{
    buf_puts(b, "\n/* Neighbours that are one access to memory, or two. */\n"
                "template <typename T, int n> struct __align__(sizeof(T) * n < 16 ? sizeof(T) * n : 16) hlo_pack {\n"
                "    T at[n];\n"
                "};\n"
                "\ntemplate <int n, typename T> static __device__ inline hlo_pack<T, n> hlo_load(const T *from)\n"
                "{\n"
                "    return *(const hlo_pack<T, n> *)from;\n"
                "}\n"
                "\ntemplate <int n, typename T> static __device__ inline void hlo_store(T *to, const hlo_pack<T, n> &v)\n"
                "{\n"
                "    *(hlo_pack<T, n> *)to = v;\n"
                "}\n");
}
