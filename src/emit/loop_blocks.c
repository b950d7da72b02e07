/* Which loops can be in blocks. All of a block is read before its first element is written, so no array of the loop is both, but where each element is read to be written; what is under a condition (an arm of
 * a choice may be out of bounds) is not read before it is known to be wanted. */
#include "emit/loop_blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cost.h"
#include "emit/loop_halves.h"

enum { BLOCK = 32 /* more than gcc unrolls before it makes vectors */, BYTES_BLOCK = 64 /* where elements are of one byte */, DEEP_BLOCK = 64 /* where there are many steps */, FIXED_BLOCK = 16, LEAST_BLOCK = 8 /* of a size that is known */,
       LEAST_STREAMED = 128 /* elements of a loop */, LINE = 64, LONG_ROW = 2048 /* bytes */,
       LEAST_FETCHED = 1024, MOST_ROW_FETCHED = 128 * 1024 /* bytes of a row */, GAP = 1024 /* bytes that are not worth it */,
       LEAST_TAKEN_FROM = 2 << 20, MOST_ROW_TAKEN = 32 * 1024,
       LEAST_WRITTEN = 16 * 1024 /* bytes of a result */, WRITTEN_BLOCK = 2 * LINE, WRITTEN_AHEAD = 512 };

typedef struct Look {
    const KStmt *loop;
    LoopBlocks  *b;
} Look;

static bool is_call(const KExpr *x, const char *fn)
{
    return x->kind == KX_CALL && strcmp(x->fn, fn) == 0;
}

static int64_t trips(const KStmt *loop)
{
    return loop->loop->hi - loop->loop->lo + 1;
}

/* Neighbours in turn lie beside each other. */
static bool is_along(const Ix *x, const IxAtom *loop)
{
    int32_t uses = 0;
    for (int32_t k = 0; k < x->n; k++) {
        const IxAtom *t = x->t[k].atom;
        uses += t == loop || (t->arg && ix_has(t->arg, loop));
    }
    return uses == 1 && ix_coef(x, loop) == 1;
}

/* Parts that are stacked: neighbours in turn lie a few elements from each other. */
static bool is_spread(const Ix *x, const IxAtom *loop)
{
    enum { FAR = 16 };
    int32_t uses = 0;
    for (int32_t k = 0; k < x->n; k++) {
        const IxAtom *t = x->t[k].atom;
        uses += t == loop || (t->arg && ix_has(t->arg, loop));
    }
    return uses == 1 && ix_coef(x, loop) > 1 && ix_coef(x, loop) <= FAR;
}

static int32_t find(int32_t n, const Blocked *v, const KArray *array, const Ix *index)
{
    for (int32_t k = 0; k < n; k++)
        if (v[k].array == array && ix_equal(v[k].index, index))
            return k;
    return -1;
}

int32_t blocked_in(const LoopBlocks *b, const KExpr *x)
{
    const bool loads = (is_call(x, "f16_to_f32") || is_call(x, "bf16_to_f32")) && x->arg[0]->kind == KX_LOAD;
    return loads ? find(b->n_in, b->in, x->arg[0]->array, x->arg[0]->index) : -1;
}

int32_t blocked_out(const LoopBlocks *b, const KStmt *s)
{
    return s->kind == KS_STORE ? find(b->n_out, b->out, s->array, s->index) : -1;
}

const char *block_as_f32(const Blocked *x)
{
    return x->array->type == TYPE_BF16 ? "bf16_block_to_f32" : "f16_block_to_f32";
}

bool loop_joins(const LoopBlocks *b, const Blocked *x)
{
    return b->in_parts && b->size >= FIXED_BLOCK && x->half && !x->of && !x->as_f16 && (x->array->type == TYPE_F16 || b->size % FIXED_BLOCK == 0);
}

static void add_in(Look *l, const KExpr *load)
{
    LoopBlocks *b = l->b;
    if (b->n_in < MOST_BLOCKED && load->kind == KX_LOAD && is_along(load->index, l->loop->loop) && find(b->n_in, b->in, load->array, load->index) < 0)
        b->in[b->n_in++] = (Blocked){ load->array, load->index, true, false, NULL, false, true, false };
}

/* Each of its elements is part of a sum of its own, or of a maximum. */
static bool adds_up(const KStmt *loop)
{
    for (const KStmt *s = loop->body->first; s; s = s->next)
        if (s->kind == KS_STORE && s->array->kind == KARRAY_LOCAL && kx_loads_from(s->value, s->array, s->index))
            return true;
    return false;
}

/* Lanes, whole vectors of f32 or half of one: gcc takes vectors of half the size where it converts bf16 between those, and chooses the larger of two numbers by a mask where one is converted. */
static bool are_lanes_of_f32(const KStmt *loop)
{
    enum { MOST = 64 };
    const int64_t n = trips(loop);
    const bool    fixed = !loop->from && !loop->end, lanes = n % FIXED_BLOCK == 0 || (loop->rolled && n == FIXED_BLOCK / 2);
    return fixed && lanes && n <= MOST && (loop->rolled || adds_up(loop));
}

/* What x always loads. */
static void look_at(Look *l, const KExpr *x)
{
    bool choice = x->kind == KX_SELECT || (x->kind == KX_BINARY && (x->op == KOP_LAND || x->op == KOP_LOR));
    if (is_call(x, "f16_to_f32") || (is_call(x, "bf16_to_f32") && are_lanes_of_f32(l->loop)))
        add_in(l, x->arg[0]);
    for (int32_t k = 0; k < (choice ? 1 : x->n); k++)
        look_at(l, x->arg[k]);
}

/* Rows begin with a line, and fill all or most of those that they are in. */
static bool fills_lines(const KStmt *loop, const KArray *array, const Ix *x)
{
    const int64_t bytes = type_bytes(array->type);
    bool          whole = (trips(loop) * bytes % LINE == 0 || trips(loop) * bytes >= LONG_ROW) && (x->c + loop->loop->lo) * bytes % LINE == 0;
    for (int32_t k = 0; k < x->n; k++)
        whole &= x->t[k].atom == loop->loop || x->t[k].k * bytes % LINE == 0;
    return whole;
}

/* A line of which a part is stored past the caches and a part through them costs as much as some 10 KB save: blocks begin with the first whole line, which is one for
 * all that the loop stores so. */
static bool finds_lines(LoopBlocks *b, const KStmt *loop, const KArray *array, const Ix *x)
{
    bool others = false;
    for (int32_t k = 0; k < b->n_out; k++)
        others |= b->out[k].streamed && (b->line < 0 || type_bytes(b->out[k].array->type) != type_bytes(array->type) || !ix_equal(b->out[k].index, x));
    if (others || loop->from || loop->end || trips(loop) * type_bytes(array->type) < LONG_ROW)
        return false;
    if (b->line < 0)
        b->line = b->n_out;
    return true;
}

/* All of the loop is that neighbours of f32 are converted. */
static const KExpr *plain_source(const KStmt *loop, const KStmt *s)
{
    const KStmt *first = loop->body->first;
    const KExpr *x = s->value->arg[0];
    if (first->kind == KS_DECLARE && first->next == s && x->kind == KX_TEMP && x->temp == first->temp && first->value)
        x = first->value;
    else if (first != s)
        return NULL;
    const bool plain = !s->next && x->kind == KX_LOAD && x->array->type == TYPE_F32 && is_along(x->index, loop->loop);
    return plain && s->array->kind == KARRAY_PARAM && s->array->restricted && x->array != s->array ? x : NULL;
}

/* Of bf16 gcc makes vectors, and where there are 2, 4, 8, ... it makes those of their neighbours, too. */
static bool wants_spread(const KExpr *x, int64_t by)
{
    return is_call(x, "f32_to_f16") || ((is_call(x, "f32_to_bf16") || is_call(x, "upper_bf16")) && (by & (by - 1)) != 0);
}

static void add_out(Look *l, const KStmt *s)
{
    LoopBlocks *b = l->b;
    bool        stored = s->kind == KS_STORE && !s->atomic && b->n_out < MOST_BLOCKED && is_along(s->index, l->loop->loop);
    bool        streamed = stored && (s->array->streamed || s->past) && trips(l->loop) >= LEAST_STREAMED;
    streamed = streamed && ((b->line < 0 && fills_lines(l->loop, s->array, s->index)) || finds_lines(b, l->loop, s->array, s->index));
    const bool bare = streamed && is_call(s->value, "f32_to_bf16") && s->value->arg[0]->kind == KX_LOAD; /* a block of f32 would be a copy */
    const bool half = stored && (is_call(s->value, "f32_to_f16") || is_call(s->value, "f32_to_bf16")) && !bare;
    if (half || streamed)
        b->out[b->n_out++] = (Blocked){ s->array, s->index, half, streamed, half ? plain_source(l->loop, s) : NULL, false, true, false };
    else if (s->kind == KS_STORE && !s->atomic && b->n_out < MOST_BLOCKED && wants_spread(s->value, ix_coef(s->index, l->loop->loop)) && is_spread(s->index, l->loop->loop))
        b->out[b->n_out++] = (Blocked){ s->array, s->index, true, false, NULL, false, true, true };
}

/* How often the loop stores to the array, and whether it loads from it more than the element that it stores, before. */
static int32_t stores_to(const KStmt *loop, const KArray *array, bool *loaded)
{
    const KStmt *store = NULL;
    int32_t      n = 0;
    *loaded = false;
    for (const KStmt *s = loop->body->first; s; s = s->next)
        if (s->kind == KS_STORE && s->array == array) {
            store = s;
            n++;
        }
    for (const KStmt *s = loop->body->first, *own = store; s; s = s->next) {
        *loaded |= s->value && kx_loads_other(s->value, array, own ? own->index : NULL);
        own = s == store ? NULL : own;
    }
    return n;
}

/* All that the loop stores to the array is spread: it is stored as the loop has it, one element after the other. */
static bool is_all_spread(const LoopBlocks *b, const KArray *array, int32_t stores)
{
    for (int32_t k = 0; k < b->n_out; k++)
        stores -= b->out[k].array == array && b->out[k].spread;
    return stores == 0;
}

/* Without spread ones beside which the loop stores others to the same array, or reads it. */
static void drop_spread(LoopBlocks *b, const KStmt *loop)
{
    bool    loaded, apart = true;
    int32_t n = 0;
    for (int32_t k = 0; k < b->n_out; k++)
        if (b->out[k].spread) {
            const int32_t stores = stores_to(loop, b->out[k].array, &loaded);
            apart &= !loaded && is_all_spread(b, b->out[k].array, stores);
        }
    for (int32_t k = 0; k < b->n_out; k++)
        if (apart || !b->out[k].spread) {
            b->line = b->line == k ? n : b->line;
            b->out[n++] = b->out[k];
        }
    b->n_out = n;
}

static bool are_apart(const KStmt *loop, const LoopBlocks *b)
{
    bool loaded;
    for (int32_t k = 0; k < b->n_in; k++) {
        const int32_t stores = stores_to(loop, b->in[k].array, &loaded);
        if (stores > 1 || (stores == 1 && loaded))
            return false;
    }
    for (int32_t k = 0; k < b->n_out; k++) {
        const int32_t stores = stores_to(loop, b->out[k].array, &loaded);
        if ((stores > 1 && !is_all_spread(b, b->out[k].array, stores)) || loaded)
            return false;
    }
    return true;
}

/* Of a block in which elements are taken: what the first cache holds beside them, and so that little of the loop is left. */
static int64_t size_with_taken(const LoopBlocks *b, int64_t n, bool fixed)
{
    enum { MOST = 256, BYTES = 8192, LITTLE = 32 /* of the loop so much is left at most, where that can be */ };
    const int64_t step = b->n_in + b->n_out > 0 ? BLOCK : FIXED_BLOCK, room = BYTES / (taken_bytes(&b->taken) + 1) / BLOCK * BLOCK;
    const int64_t most = room > MOST ? MOST : room < BLOCK ? BLOCK : room;
    if (fixed && n <= most && (n % BLOCK == 0 || b->n_in + b->n_out == 0))
        return n;
    int64_t best = most;
    for (int64_t size = most; fixed && n % best * LITTLE > n && size >= most / 2; size -= step)
        if (size > 0 && n % size < n % best)
            best = size;
    return best;
}

/* Where one step waits for the other, and that for another, there are more elements to go on with: where the loop is long, and no more are left over for that. */
static int64_t size_for_steps(const LoopBlocks *b, int64_t n, bool fixed)
{
    enum { DEEP = 3, LEAST = 512, LONG = 1024 };
    const bool fits = !fixed || n >= LONG || (n >= LEAST && n % DEEP_BLOCK == n % BLOCK);
    return b->rounds.n_steps >= DEEP && fits ? DEEP_BLOCK : BLOCK;
}

static bool has_f16(const LoopBlocks *b)
{
    bool found = false;
    for (int32_t k = 0; k < b->n_in; k++)
        found |= b->in[k].array->type == TYPE_F16;
    for (int32_t k = 0; k < b->n_out; k++)
        found |= b->out[k].array->type == TYPE_F16;
    return found;
}

static void set_size(LoopBlocks *b, const KStmt *s)
{
    enum { MOST = 64 }; /* a loop that has a fixed size, such as one of lanes, keeps it */
    int64_t n = trips(s);
    bool    fixed = !s->from && !s->end;
    b->size = fixed && n <= MOST && n % LEAST_BLOCK == 0 ? n : fixed && n < BLOCK && has_f16(b) ? n / LEAST_BLOCK * LEAST_BLOCK : size_for_steps(b, n, fixed);
    bool bytes = b->size == BLOCK && n >= BYTES_BLOCK && loop_halves_by_bytes(s, b);
    for (int32_t k = 0; k < b->n_out; k++)
        bytes |= type_bytes(b->out[k].array->type) == 1;
    if (bytes)
        b->size = BYTES_BLOCK;
    b->in_parts = fixed && n < BYTES_BLOCK && loop_halves_by_bytes(s, b);
    if (b->taken.n)
        b->size = size_with_taken(b, n, fixed);
    b->rest = !fixed || n % b->size != 0 || b->line >= 0;
}

/* ---- what is fetched ---- */

/* No term is a division of what a loop counts. */
static bool is_plain(const Ix *x)
{
    for (int32_t k = 0; k < x->n; k++)
        if (x->t[k].atom->arg)
            return false;
    return true;
}

/* The same lines but for one at the ends. */
static bool is_fetched(const LoopBlocks *b, const KArray *array, const Ix *index)
{
    for (int32_t k = 0; k < b->n_fetched; k++) {
        const Fetched *f = &b->fetched[k];
        bool           same = f->array == array && f->index->n == index->n;
        for (int32_t t = 0; same && t < index->n; t++)
            same = f->index->t[t].atom == index->t[t].atom && f->index->t[t].k == index->t[t].k;
        if (same && llabs(f->index->c - index->c) * type_bytes(array->type) <= LINE)
            return true;
    }
    return false;
}

static void fetch_row(LoopBlocks *b, const KStmt *loop, const KStmt *around, const KArray *array, const Ix *index)
{
    const int64_t bytes = type_bytes(array->type), by = ix_coef(index, loop->loop), next = ix_coef(index, around->loop), row = trips(loop) * llabs(by) * bytes;
    if (array->kind != KARRAY_PARAM || by == 0 || next == 0 || llabs(by) * bytes > LINE || !is_plain(index) || b->n_fetched == MOST_FETCHED)
        return;
    if (row < LEAST_FETCHED || row > MOST_ROW_FETCHED || llabs(next - trips(loop) * by) * bytes <= GAP || is_fetched(b, array, index))
        return;
    b->fetched[b->n_fetched++] = (Fetched){ array, index, next + (by < 0 ? by * (b->size - 1) : 0), b->size * llabs(by) * bytes, false, 0, false };
}

static void fetch_rows(LoopBlocks *b, const KStmt *loop, const KStmt *around, const KExpr *x)
{
    if (x->kind == KX_LOAD)
        fetch_row(b, loop, around, x->array, x->index);
    for (int32_t k = 0; k < x->n; k++)
        fetch_rows(b, loop, around, x->arg[k]);
}

bool is_term_around(const IxTerm *t, const IxAtom *loop)
{
    return t->atom->kind == IX_LOOP && t->atom != loop;
}

/* What the index varies by in one run of the loop, whatever is taken. */
static void range_inside(const KStmt *loop, const Ix *x, int64_t *lo, int64_t *hi)
{
    *lo = *hi = x->c;
    for (int32_t k = 0; k < x->n; k++) {
        const IxTerm *t = &x->t[k];
        if (is_term_around(t, loop->loop))
            continue;
        *lo += t->k * (t->k < 0 ? t->atom->hi : t->atom->lo);
        *hi += t->k * (t->k < 0 ? t->atom->lo : t->atom->hi);
    }
}

static void fetch_taken(LoopBlocks *b, const KStmt *loop, const KStmt *around, const Taken *x)
{
    const int64_t bytes = type_bytes(x->array->type), next = ix_coef(x->index, around->loop);
    int64_t       lo, hi;
    range_inside(loop, x->index, &lo, &hi);
    const int64_t row = hi - lo + 1;
    if (x->array->kind != KARRAY_PARAM || next == 0 || b->n_fetched == MOST_FETCHED || x->array->count * bytes < LEAST_TAKEN_FROM)
        return;
    if (row < trips(loop) || row * bytes < LEAST_FETCHED || row * bytes > MOST_ROW_TAKEN || row * bytes > trips(loop) * LINE)
        return;
    const int64_t by = b->size < trips(loop) ? row / trips(loop) : 0;
    b->fetched[b->n_fetched++] = (Fetched){ x->array, x->index, lo + 2 * next, (by ? by * b->size : row) * bytes, true, by, false };
}

static void set_fetched_taken(LoopBlocks *b, const KStmt *loop)
{
    const KBlock *outside = loop->body->parent;
    for (int32_t k = 0; k < b->taken.n && outside && outside->from && outside->from->kind == KS_FOR; k++)
        if (!b->taken.v[k].by)
            fetch_taken(b, loop, outside->from, &b->taken.v[k]);
}

/* Where much is written that no cache holds much is read, and reading is what takes the time. */
static void set_fetched(LoopBlocks *b, const KStmt *loop)
{
    const KBlock *outside = loop->body->parent;
    bool          streamed = false;
    for (int32_t k = 0; k < b->n_out; k++)
        streamed |= b->out[k].streamed;
    if (!streamed || !outside || !outside->from || outside->from->kind != KS_FOR)
        return;
    for (const KStmt *s = loop->body->first; s; s = s->next)
        if (s->value)
            fetch_rows(b, loop, outside->from, s->value);
}

typedef struct Sources {
    const KStmt  *loop, *around;
    const KArray *first;
    bool          jumps, several, bytes, other; /* what is no plain copy or arithmetic of neighbours */
} Sources;

static bool is_plain_array(const KArray *x)
{
    return x->kind == KARRAY_PARAM && type_bits(x->type) >= 8 && type_bits(x->type) <= 64 && !type_is_complex(x->type);
}

/* Rows are at places that were computed, or do not follow each other. */
static bool row_jumps(const Sources *s, const Ix *x)
{
    for (int32_t k = 0; k < x->n; k++)
        if (x->t[k].atom->kind != IX_LOOP)
            return true;
    return s->around && ix_coef(x, s->around->loop) != trips(s->loop);
}

static void look_at_source(void *cookie, const KExpr *x)
{
    Sources *s = cookie;
    s->other |= kx_is_dear_call(x);
    if (x->kind != KX_LOAD || !is_along(x->index, s->loop->loop)) {
        s->other |= x->kind == KX_LOAD && ix_has(x->index, s->loop->loop);
        return;
    }
    s->other |= !is_plain_array(x->array);
    s->several |= s->first && s->first != x->array;
    s->first = x->array;
    s->bytes |= type_bytes(x->array->type) == 1;
    s->jumps |= row_jumps(s, x->index);
}

/* Stores wait for lines of a result which is in a cache but not in the first one. A stream that goes on and on has them in time; rows from places of their own have not, nor has what waits for several operands. */
static bool row_is_written(LoopBlocks *b, const KStmt *loop)
{
    const KBlock *outside = loop->body->parent;
    const KStmt  *around = outside && outside->from && outside->from->kind == KS_FOR ? outside->from : NULL, *store = NULL;
    Sources       from = { .loop = loop, .around = around };
    for (const KStmt *s = loop->body->first; s; s = s->next) {
        from.other |= s->kind == KS_ASSIGN || (s->kind == KS_STORE && (store || s->atomic || s->past || !is_along(s->index, loop->loop)));
        store = s->kind == KS_STORE ? s : store;
    }
    const KVisitor v = { look_at_source, NULL, &from };
    kernel_visit(loop->body, &v);
    if (!store || from.other || !from.first || !(from.jumps || from.several) || !is_plain_array(store->array) || store->array->read || store->array->streamed)
        return false;
    const int64_t bytes = type_bytes(store->array->type), size = bytes >= WRITTEN_BLOCK / BLOCK ? from.bytes ? BYTES_BLOCK : BLOCK : WRITTEN_BLOCK / bytes, row = trips(loop) * bytes;
    if (trips(loop) < size || store->array->count * bytes < LEAST_WRITTEN || (around && row < LONG_ROW && ix_coef(store->index, around->loop) != trips(loop)))
        return false;
    b->size = size;
    b->rest = loop->from || loop->end || trips(loop) % size != 0;
    b->fetched[b->n_fetched++] = (Fetched){ store->array, store->index, WRITTEN_AHEAD / bytes, size * bytes, false, 0, true };
    return true;
}

const char *fetching_function(const Fetched *x)
{
    return x->written ? "fetch_to_write" : x->taken ? "fetch_row_ahead" : "fetch_ahead";
}

/* Of what is taken some lies at places that the loop computes, or is only stored. */
static bool places_or_stores(const LoopTaken *t)
{
    bool found = t->n > 0 && t->n_places > 0;
    for (int32_t k = 0; k < t->n; k++)
        found |= t->v[k].to != NULL;
    return found;
}

static bool is_kept_out(void *cookie, const KStmt *s)
{
    return blocked_out(cookie, s) >= 0;
}

bool loop_blocks(const KStmt *loop, LoopBlocks *b)
{
    Look l = { loop, b };
    b->n_in = b->n_out = b->n_fetched = b->taken.n = 0;
    b->line = -1;
    if (trips(loop) < LEAST_BLOCK)
        return false;
    for (const KStmt *s = loop->body->first; s; s = s->next) {
        if (s->kind != KS_DECLARE && s->kind != KS_ASSIGN && s->kind != KS_STORE)
            return false;
        if (s->value)
            look_at(&l, s->value);
        add_out(&l, s);
    }
    drop_spread(b, loop);
    loop_taken(loop, &b->taken);
    b->rounds.n_steps = 1;
    b->rounds.halves = false;
    if (!places_or_stores(&b->taken))
        loop_rounds(loop, is_kept_out, b, &b->rounds);
    if (!b->taken.n)
        loop_halves(loop, b);
    for (int32_t k = 0; k < b->n_out; k++)
        b->out[k].of = b->out[k].as_f16 ? NULL : b->out[k].of;
    set_size(b, loop);
    if (loop->rolled && (b->rest || b->size != trips(loop)) && !(has_f16(b) && b->size < BLOCK))
        return false;
    set_fetched(b, loop);
    set_fetched_taken(b, loop);
    if (b->n_in + b->n_out + b->taken.n + b->rounds.n_steps == 1)
        return !loop->rolled && !loop->unrolled && !loop->in_turn && b->n_fetched == 0 && !b->rounds.halves && row_is_written(b, loop);
    return b->size <= trips(loop) && are_apart(loop, b);
}

bool loop_small_blocks(const KStmt *loop, const LoopBlocks *b, LoopBlocks *small)
{
    const bool fixed = !loop->from && !loop->end && b->line < 0;
    *small = *b;
    small->size = b->taken.n ? BLOCK : LEAST_BLOCK;
    small->n_fetched = 0;
    for (int32_t k = 0; k < b->n_out; k++) {
        if (!b->out[k].half)
            return false;
        small->out[k].streamed = false;
    }
    return b->rest && b->n_in + b->n_out + b->taken.n > 0 && small->size < b->size && !(fixed && trips(loop) % b->size < small->size);
}

static void find_local(void *cookie, const KExpr *x)
{
    *(bool *)cookie |= x->kind == KX_LOAD && x->array->kind == KARRAY_LOCAL;
}

/* What the loop reads has not just been stored by others, whose stores a vector would wait for. */
static bool may_end_twice(const KStmt *loop)
{
    bool           other = false;
    const KVisitor v = { find_local, NULL, &other };
    kernel_visit(loop->body, &v);
    for (const KStmt *s = loop->body->first; s; s = s->next)
        other |= s->kind != KS_DECLARE && (s->kind != KS_STORE || s->atomic);
    return !other && kernel_loop_may_repeat(loop);
}

bool loop_last_block(const KStmt *loop, const LoopBlocks *b, LoopBlocks *last)
{
    int64_t least = 3; /* fewer of bf16 take no longer one by one */
    loop_small_blocks(loop, b, last);
    for (int32_t k = 0; k < b->n_out; k++) {
        if (!b->out[k].half || b->out[k].streamed)
            return false;
        least = b->out[k].array->type == TYPE_F16 ? 1 : least;
    }
    least = b->taken.n ? LEAST_BLOCK : least;
    return b->rest && !loop->from && !loop->end && b->line < 0 && b->n_out > 0 && trips(loop) % last->size >= least && may_end_twice(loop);
}

bool loop_shared_is_alone(const LoopBlocks *b)
{
    return b->taken.n && has_f16(b);
}

bool loop_rest_is_alone(const KStmt *loop, const LoopBlocks *b)
{
    LoopBlocks small, last;
    const bool fixed = !loop->from && !loop->end && b->line < 0;
    if (!b->rest || !has_f16(b) || loop_last_block(loop, b, &last))
        return false;
    if (fixed && loop_small_blocks(loop, b, &small))
        return trips(loop) % small.size != 0;
    return fixed ? trips(loop) % b->size < LEAST_BLOCK : loop_shared_is_alone(b);
}

int64_t loop_piece(const LoopBlocks *b, int64_t from, bool *rolled)
{
    const int64_t left = b->size - from;
    bool          halves = false;
    for (int32_t k = 0; k < b->n_in; k++)
        halves |= b->in[k].as_f16;
    for (int32_t k = 0; k < b->n_out; k++)
        halves |= b->out[k].as_f16;
    *rolled = halves && left < BLOCK;
    return !halves ? left : left >= BLOCK ? left / BLOCK * BLOCK : left >= FIXED_BLOCK ? FIXED_BLOCK : left;
}

bool loop_rolls_places(const LoopBlocks *b)
{
    return b->taken.n && b->taken.n_places && b->size <= FIXED_BLOCK;
}

/* ---- past the caches ---- */

static int64_t array_bytes(const KArray *x)
{
    return x->count * type_bytes(x->type);
}

static void note_result(void *any, const KStmt *s)
{
    *(bool *)any |= s->kind == KS_STORE && s->array->kind == KARRAY_PARAM;
}

static bool stores_result(const KStmt *s)
{
    bool any = false;
    kernel_visit_stmt(s, &(KVisitor){ NULL, note_result, &any });
    return any;
}

/* Some loop computes at length what another one stores. */
static bool computes_rows(const KBlock *b)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if (s->kind == KS_FOR && kernel_has_dear_call(s) && (!stores_result(s) || computes_rows(s->body)))
            return true;
    return false;
}

static void store_past(KBlock *b)
{
    for (KStmt *s = b->first; s; s = s->next) {
        s->past = s->kind == KS_STORE;
        if (s->body)
            store_past(s->body);
    }
}

/* What of x loops of b, which run so many times, store past the caches. */
static int64_t streamed_bytes(const KBlock *b, const KArray *x, int64_t times)
{
    LoopBlocks l;
    int64_t    bytes = 0;
    for (const KStmt *s = b ? b->first : NULL; s; s = s->next) {
        const int64_t all = s->kind == KS_FOR ? times * trips(s) : times;
        if (s->kind == KS_FOR && loop_blocks(s, &l)) {
            for (int32_t k = 0; k < l.n_out; k++)
                bytes += l.out[k].streamed && l.out[k].array == x ? all * type_bytes(x->type) : 0;
        } else {
            bytes += streamed_bytes(s->body, x, all) + streamed_bytes(s->other, x, all);
        }
    }
    return bytes;
}

/* What a load in that loop brings along: its element, or the line where neighbours in turn lie in others. */
static double bytes_of_load(const KExpr *x, const IxAtom *loop)
{
    const double  bytes = type_bytes(x->array->type);
    const int64_t step = loop ? llabs(ix_coef(x->index, loop)) : 1;
    const double  line = bytes > LINE ? bytes : LINE, more = bytes * (double)step;
    if (step == 0 && ix_has(x->index, loop))
        return line;
    return more < bytes ? bytes : more < line ? more : line;
}

static double bytes_in(const KExpr *x, const KArray *array, const IxAtom *loop)
{
    double n = x->kind == KX_LOAD && x->array == array ? bytes_of_load(x, loop) : 0;
    for (int32_t k = 0; k < x->n; k++)
        n += bytes_in(x->arg[k], array, loop);
    return n;
}

/* All that is loaded of an array in b, which that loop is around. */
static double loaded_bytes(const KBlock *b, const KArray *array, const IxAtom *loop)
{
    double n = 0;
    for (const KStmt *s = b ? b->first : NULL; s; s = s->next) {
        const IxAtom *around = s->kind == KS_FOR ? s->loop : loop;
        const double  own = (s->value ? bytes_in(s->value, array, loop) : 0) + loaded_bytes(s->body, array, around) + loaded_bytes(s->other, array, around);
        n += s->kind == KS_FOR ? own * (double)trips(s) : s->kind == KS_LOOP && own > 0 ? HUGE_VAL : own;
    }
    return n;
}

/* What of an operand or a result goes through the caches, at most: a gather meets few rows of a table. */
static int64_t met_bytes(const Kernel *k, const KArray *x)
{
    const double loaded = x->written ? 0 : loaded_bytes(k->body, x, NULL);
    return loaded > 0 && loaded < (double)array_bytes(x) ? (int64_t)loaded : array_bytes(x);
}

/* A kernel that goes through more than a last cache holds leaves little of it to who comes next. Several threads have most of what memory brings with stores past the
 * caches, where one has not: the last cache, whose bytes grow with threads, is worth more to them as long as it holds what the kernel goes through. Rows that take long to
 * compute are waited for, not memory, as long as that cache holds most of them. */
void kernel_stream(Kernel *k, bool ranges)
{
    enum { LARGE = 18 << 20, LARGE_RANGES = 44 << 20, LARGE_ROWS = 64 << 20, LEAST = 4 << 20 };
    const int64_t least = ranges ? LARGE_RANGES : LARGE, large = computes_rows(k->body) ? LARGE_ROWS : least;
    int64_t bytes = 0;
    for (int32_t p = 0; p < k->n_operands + k->n_results; p++)
        if (k->params[p]->read || k->params[p]->written)
            bytes = cost_add(bytes, met_bytes(k, k->params[p]));
    for (int32_t p = k->n_operands; p < k->n_operands + k->n_results; p++)
        k->params[p]->streamed = bytes >= large && array_bytes(k->params[p]) >= LEAST && !k->params[p]->read && !k->params[p]->rewritten;
    for (int32_t p = k->n_operands; p < k->n_operands + k->n_results; p++) /* little that goes past the caches between much that does not is waited for */
        if (k->params[p]->streamed && streamed_bytes(k->body, k->params[p], 1) < array_bytes(k->params[p]) / 4 * 3)
            k->params[p]->streamed = false;
    for (KStmt *s = k->body->first; s; s = s->next) /* the copy of what is changed afterwards */
        if (s->kind == KS_IF && s->value->kind == KX_DISTINCT && bytes >= least && array_bytes(s->value->array) >= LEAST)
            store_past(s->body);
}

bool block_streams(const KBlock *x)
{
    LoopBlocks b;
    bool       found = false;
    for (const KStmt *s = x->first; s && !found; s = s->next) {
        if (s->kind == KS_FOR && loop_blocks(s, &b))
            for (int32_t k = 0; k < b.n_out; k++)
                found |= b.out[k].streamed;
        found = found || (s->body && block_streams(s->body)) || (s->other && block_streams(s->other));
    }
    return found;
}
