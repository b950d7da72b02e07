/* From an instruction to a kernel: which arrays there are, in which order they are computed, and trying again with what a try has
 * learned. See lower.h. */
#include "emit/abreast.h"
#include "emit/backwards.h"
#include "emit/beside.h"
#include "emit/dear_rows.h"
#include "emit/columns.h"
#include "emit/expand.h"
#include "emit/fetch_ahead.h"
#include "emit/found_rows.h"
#include "emit/loop_blocks.h"
#include "emit/loops_together.h"
#include "emit/lower.h"
#include "emit/lower_reduction.h"
#include "emit/row_in_result.h"
#include "emit/written_out.h"

#include "analysis/behind.h"
#include "analysis/cost.h"

enum { MAX_TRIES = 24, ROLE_ELEMENTS = 0, ROLE_PIECE = 100 };

/* Array leaves of a shape, in order. */
static int32_t array_leaves(const Shape *s, const Shape **out)
{
    int32_t n = 0;
    if (!shape_is_tuple(s)) {
        if (out && shape_is_array(s))
            out[0] = s;
        return shape_is_array(s);
    }
    for (int32_t k = 0; k < s->n_elems; k++)
        n += array_leaves(s->elems[k], out ? out + n : NULL);
    return n;
}

const Shape **leaves_of(Arena *a, const Shape *s, int32_t *n)
{
    *n = array_leaves(s, NULL);
    const Shape **v = ARENA_ARRAY(a, const Shape *, *n);
    array_leaves(s, v);
    return v;
}

/* One loop nest over the result, storing each of several values that have its dimensions and layout. */
typedef struct ElementStage {
    int32_t            n;
    const Inst *const *x;
    const int32_t     *leaf;
    KArray *const     *to;
    bool               open; /* the last operation needs no name */
    const KBlock     **row;  /* of each of the kernel's results: the loops of a row in which it was stored beside */
} ElementStage;

/* Results that are one value a row are stored where the row's loops begin. */
static void store_beside(Lower *L, ElementStage *s, const Ix *const *index)
{
    for (int32_t k = 0; k < L->k->n_results && L->results; k++) {
        Result *r = &L->results[k];
        if (!r->beside || (r->rows && r->rows != s->row) || !shape_is_row_of(r->to->shape, s->to[0]->shape))
            continue;
        r->rows = s->row;
        KBlock *cur = L->cur, *row = block_for(L, index_depth(index, r->to->shape->rank));
        if (s->row[k] == row)
            continue;
        s->row[k] = row;
        L->cur = row;
        store_at(L, r->to, index, value_at(L, r->x, r->leaf, index));
        L->cur = cur;
    }
}

static void element_body(Lower *L, void *cookie, const Ix *const *index)
{
    ElementStage *s = cookie;
    const KExpr **v = ARENA_ARRAY(L->arena, const KExpr *, s->n);
    for (int32_t k = 0; k < s->n; k++)
        v[k] = s->open ? open_value_at(L, s->x[k], s->leaf[k], index) : value_at(L, s->x[k], s->leaf[k], index);
    store_beside(L, s, index);
    for (int32_t k = 0; k < s->n; k++)
        store_at(L, s->to[k], index, v[k]);
}

/* Loops down the columns are inside of those over columns. */
static int32_t *loop_order(Lower *L, const Shape *s)
{
    int32_t *order = major_order(L, s), *inner = ARENA_ARRAY(L->arena, int32_t, s->rank), n = 0, n_inner = 0;
    bool    *reduced = ARENA_ARRAY(L->arena, bool, s->rank);
    if (!L->columns || !columns_are_of(L->columns, s, reduced))
        return order;
    for (int32_t k = 0; k < s->rank; k++)
        if (reduced[order[k]])
            inner[n_inner++] = order[k];
        else
            order[n++] = order[k];
    for (int32_t k = 0; k < n_inner; k++)
        order[n + k] = inner[k];
    return order;
}

void stage_loops(Lower *L, int32_t n, const Inst *const *x, const int32_t *leaf, KArray *const *to)
{
    ElementStage s = { .n = n, .x = x, .leaf = leaf, .to = to, .open = n == 1, .row = ARENA_ARRAY(L->arena, const KBlock *, L->k->n_results) };
    const Shape *shape = to[0]->shape;
    nest(L, shape->rank, plan_dims(L, x[0], ROLE_ELEMENTS, shape->rank, shape->dims), loop_order(L, shape), element_body, &s);
}

/* concatenate of many: a loop nest an operand. */
typedef struct Piece {
    const Inst *x;
    KArray     *to;
    int64_t     d, start; /* where it stands along the dimension */
} Piece;

static void piece_body(Lower *L, void *cookie, const Ix *const *index)
{
    Piece      *p = cookie;
    int32_t     rank = p->x->shape->rank, leaf = 0;
    const Inst *x = resolve(L, p->x, &leaf);
    const Ix  **at = ARENA_ARRAY(L->arena, const Ix *, rank);
    for (int32_t d = 0; d < rank; d++)
        at[d] = d == p->d ? ix_plus(&L->ix, index[d], p->start) : index[d];
    store_at(L, p->to, at, scalar_convert(L->arena, p->x->shape->type, p->to->type, value_at(L, x, leaf, index)));
}

void stage_concatenate(Lower *L, const Inst *x, KArray *const *to)
{
    Piece p = { .to = to[0], .d = inst_ints(x, ATTR_DIMENSIONS).v[0] };
    for (int32_t k = 0; k < x->n_operands; k++) {
        p.x = inst_operand(x, k);
        const Shape *s = p.x->shape;
        if (shape_count(s) > 0)
            nest(L, s->rank, plan_dims(L, x, ROLE_PIECE + k, s->rank, s->dims), major_order(L, x->shape), piece_body, &p);
        p.start += s->dims[p.d];
    }
}

bool is_staged(const Inst *x)
{
    switch (x->op) {
    case OP_CONCATENATE: return x->n_operands > MAX_BRANCHES;
    case OP_REDUCE: case OP_DOT: case OP_CONVOLUTION: case OP_DYNAMIC_UPDATE_SLICE: case OP_SCATTER: case OP_SELECT_AND_SCATTER: case OP_REDUCE_WINDOW:
    case OP_SORT: case OP_TOPK: case OP_FFT: case OP_CHOLESKY: case OP_TRIANGULAR_SOLVE: case OP_RNG_BIT_GENERATOR: case OP_WHILE:
        return true;
    default:
        return false;
    }
}

void stage(Lower *L, const Inst *x, KArray *const *to)
{
    static const int32_t first = 0;
    if (to[0]->count == 0)
        return;
    switch (x->op) {
    case OP_REDUCE: stage_reduce(L, 1, &x, &to); break;
    case OP_DOT: stage_dot(L, x, to); break;
    case OP_CONCATENATE:
        if (is_staged(x)) {
            stage_concatenate(L, x, to);
            break;
        }
        stage_loops(L, 1, &x, &first, to);
        break;
    case OP_DYNAMIC_UPDATE_SLICE: stage_update(L, x, to); break;
    case OP_SCATTER: stage_scatter(L, x, to); break;
    case OP_SELECT_AND_SCATTER: stage_select_and_scatter(L, x, to); break;
    case OP_REDUCE_WINDOW: stage_reduce_window(L, x, to); break;
    case OP_CONVOLUTION: stage_convolution(L, x, to); break;
    case OP_SORT: stage_sort(L, x, to); break;
    case OP_TOPK: stage_topk(L, x, to); break;
    case OP_FFT: stage_fft(L, x, to); break;
    case OP_CHOLESKY: stage_cholesky(L, x, to); break;
    case OP_TRIANGULAR_SOLVE: stage_triangular_solve(L, x, to); break;
    case OP_RNG_BIT_GENERATOR: stage_rng_bit_generator(L, x, to); break;
    default: stage_loops(L, 1, &x, &first, to); break;
    }
}

static KArray *param_array(Lower *L, const char *name, const Shape *s)
{
    KArray *x = ARENA_NEW(L->arena, KArray);
    *x = (KArray){ .kind = KARRAY_PARAM, .type = s->type, .name = name, .count = shape_count(s), .shape = s, .param = L->arrays.n,
                   .restricted = true, .serial = L->arrays.n };
    vec_push(L->arena, &L->arrays, x);
    return x;
}

/* Scalars and arrays of one value are written into the code instead of being loaded. */
static bool is_inlined(const Inst *x)
{
    return x->op == OP_CONSTANT && !x->literal->elided && x->literal->count > 0 && literal_all_equal_bits(x->literal);
}

/* The kernel's parameters: operand leaves under the name that the code inside knows them by, then result leaves. */
static void make_params(Lower *L)
{
    const Inst *i = L->inst;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst   *outside = inst_operand(i, k), *inside = L->body ? comp_param(L->body, k) : outside;
        int32_t       n;
        const Shape **leaves = leaves_of(L->arena, outside->shape, &n);
        KArray      **arrays = ARENA_ARRAY(L->arena, KArray *, n);
        for (int32_t j = 0; j < n; j++)
            arrays[j] = param_array(L, n > 1 ? arena_printf(L->arena, "%s_%d", inside->name, j) : inside->name, leaves[j]);
        if (!is_inlined(outside) && !map_has(&L->memory, inside))
            map_put(&L->memory, inside, arrays);
    }
    if (L->plan->tile_hero)
        tile_param(L);
    L->k->n_operands = L->arrays.n;
    int32_t       n;
    const Shape **leaves = leaves_of(L->arena, i->shape, &n);
    const Inst   *root = L->body ? L->body->root : i;
    for (int32_t j = 0; j < n; j++) {
        const Inst *of = root->op == OP_TUPLE && root->n_operands == n ? inst_operand(root, j) : root;
        param_array(L, of == root && n > 1 ? arena_printf(L->arena, "%s_%d", root->name, j) : of->name, leaves[j]);
    }
    L->k->n_results = n;
    L->k->params = ARENA_ARRAY(L->arena, KArray *, L->arrays.n);
    for (int32_t j = 0; j < L->arrays.n; j++)
        L->k->params[j] = L->arrays.v[j];
}

/* Parameters of a fusion that are constants outside: the body's parameter stands for the value. */
static void inline_constants(Lower *L)
{
    for (int32_t k = 0; L->body && k < L->inst->n_operands; k++)
        if (is_inlined(inst_operand(L->inst, k)))
            map_put(&L->inlined, comp_param(L->body, k), (void *)(uintptr_t)inst_operand(L->inst, k)->literal);
}

/* A result that is the same memory as what makes it (a bitcast of an update) is written under the maker's shape. */
static void look_behind(Lower *L, Result *r)
{
    const Inst *x = behind_bitcasts(L, r->x);
    if (x == r->x || !is_staged(x) || !shape_is_array(x->shape))
        return;
    r->x = x;
    r->to->shape = x->shape;
}

static Result *fusion_results(Lower *L)
{
    const Inst *root = L->body->root;
    Result     *r = ARENA_ARRAY(L->arena, Result, L->k->n_results);
    for (int32_t k = 0; k < L->k->n_results; k++) {
        r[k].leaf = shape_is_tuple(root->shape) ? k : 0;
        r[k].x = resolve(L, root, &r[k].leaf);
        r[k].to = L->k->params[L->k->n_operands + k];
        look_behind(L, &r[k]);
    }
    return r;
}

/* A value that all rows have in common, in memory that threads share. */
static bool is_shared(const Lower *L, const Inst *x)
{
    return map_get(&L->plan->materialise, x) == x;
}

/* Arrays of a fused instruction that gets memory: results where it is one, else working memory. */
static KArray **arrays_for(Lower *L, const Inst *x, const Result *r)
{
    int32_t       n;
    const Shape **leaves = leaves_of(L->arena, x->shape, &n);
    KArray      **to = ARENA_ARRAY(L->arena, KArray *, n);
    for (int32_t j = 0; j < n; j++) {
        for (int32_t k = 0; k < L->k->n_results && !to[j]; k++)
            if (r[k].x == x && r[k].leaf == j)
                to[j] = r[k].to;
        const char *name = n > 1 ? arena_printf(L->arena, "%s_%d", x->name, j) : x->name;
        if (!to[j] && x->op != OP_WHILE)
            to[j] = is_shared(L, x) ? shared_array(L, leaves[j], name) : stage_array(L, leaves[j], name);
    }
    return to;
}

static bool is_done(Lower *L, const Result *r)
{
    return memory_of(L, r->x, r->leaf) == r->to || r->to->count == 0;
}

/* A loop body of many thousand instructions is more than compilers take: every so many, one goes to memory. */
static void break_long_bodies(Lower *L)
{
    int32_t n = 0;
    for (const Inst *i = L->body->first; i; i = i->next)
        if (op_has(i->op, F_ELEMENTWISE) && ++n % MAX_BODY == 0)
            map_put(&L->plan->materialise, i, L->plan);
}

static void lower_kept(Lower *L, const Inst *i, const Result *r)
{
    if (map_has(&L->memory, i))
        return;
    const Inst *all[1 + MOST_TOGETHER] = {i};
    KArray    **to[1 + MOST_TOGETHER];
    int32_t     n = i->op == OP_REDUCE ? 1 + together_staged(L, i, all + 1) : 1;
    for (int32_t k = 0; k < n; k++)
        to[k] = arrays_for(L, all[k], r);
    if (i->op == OP_WHILE)
        stage_element_loop(L, i, to[0]);
    else if (n > 1 && to[0][0]->count > 0)
        stage_reduce(L, n, all, (KArray *const *const *)to);
    else if (n == 1)
        stage(L, i, to[0]);
    for (int32_t k = 0; k < n; k++)
        map_put(&L->memory, all[k], to[k]);
}

/* Known not to be in place: made like what a fusion makes element by element. */
static bool is_whole(const Lower *L, const Inst *x)
{
    return L->plan->whole_updates && is_placed_update(x);
}

static bool is_update(const Inst *x)
{
    return x->op == OP_DYNAMIC_UPDATE_SLICE || x->op == OP_SCATTER;
}

/* Wanted by nothing in the fusion, only outside: the root tuple's, or the root's through one element or one bitcast. */
static bool is_last(const Lower *L, const Inst *x)
{
    const Inst *root = L->body->root;
    for (const Use *u = x->uses; u; u = u->next) {
        const Inst *user = u->user;
        bool        leads = user->op == OP_GET_TUPLE_ELEMENT || user->op == OP_BITCAST || user->op == OP_RESHAPE;
        bool        ends = user == root || (user->n_uses == 1 && user->uses->user == root);
        if (user == root ? root->op != OP_TUPLE && !leads : !leads || !ends || root->op != OP_TUPLE)
            return false;
    }
    return true;
}

/* i is what update x writes over, of which it makes what it writes element by element: each is read just before. */
static bool is_window_of(const Inst *i, const Inst *x)
{
    if (i->op != OP_SLICE || x->op != OP_DYNAMIC_UPDATE_SLICE || !is_placed_update(x) || inst_operand(i, 0) != inst_operand(x, 0) || !shape_same_dims(i->shape, inst_operand(x, 1)->shape))
        return false;
    const SliceRange *range = inst_attr(i, ATTR_SLICE)->value.slices->v;
    for (int32_t d = 0; d < x->shape->rank; d++)
        if (range[d].stride != 1 || range[d].start != literal_get_s64(inst_operand(x, d + 2)->literal, 0))
            return false;
    while (i != inst_operand(x, 1) && i->n_uses == 1 && op_has(i->uses->user->op, F_ELEMENTWISE))
        i = i->uses->user;
    return i == inst_operand(x, 1) && i->n_uses == 1;
}

/* Its other readers than the update x, but for one that reads what x writes over. */
static bool is_read_elsewhere(const Inst *from, const Inst *x)
{
    int32_t there = 0;
    for (const Use *u = from->uses; u; u = u->next)
        there += is_window_of(u->user, x);
    return from->n_uses - (there == 1) > 1;
}

/* Updates write results where operands may be, so they come last; what they write and where is computed before them when the fusion
 * reads such an operand elsewhere too.
 *
 *     root = tuple(dynamic-update-slice(p, f(p, q), i), dynamic-update-slice(q, g(p), i))
 *     =>  t = f(p, q);  u = g(p);  p at i = t;  q at i = u */
static bool reads_what_is_updated(Lower *L, const Result *r)
{
    for (int32_t k = 0; k < L->k->n_results; k++) {
        const Inst *x = r[k].x;
        while (x->op == OP_DYNAMIC_UPDATE_SLICE && inst_operand(x, 0)->op == x->op)
            x = inst_operand(x, 0);
        for (int32_t o = 0; is_update(x) && o < (x->op == OP_SCATTER ? x->n_operands / 2 : 1); o++) {
            const Inst *from = inst_operand(x, o);
            bool        elsewhere = is_read_elsewhere(from, x);
            for (; !map_has(&L->memory, from) && behind_bitcasts(L, from) != from; elsewhere |= from->n_uses > 1)
                from = inst_operand(from, 0);
            int32_t leaf = 0;
            if (elsewhere && map_has(&L->memory, resolve(L, from, &leaf)))
                return true;
        }
    }
    return false;
}

static void keep_operand(Lower *L, const Inst *x, int32_t o)
{
    int32_t     leaf = 0;
    const Inst *u = resolve(L, inst_operand(x, o), &leaf);
    bool        computed = !map_has(&L->memory, u) && u->op != OP_CONSTANT && u->op != OP_IOTA && u->op != OP_PARAMETER;
    if (computed && shape_count(u->shape) <= shape_count(shape_leaf(x->shape, 0)) / 2)
        map_put(&L->plan->materialise, u, L->plan);
}

static void keep_updates(Lower *L, const Inst *x)
{
    for (int32_t o = x->n_operands / 2; x->op == OP_SCATTER && o < x->n_operands; o++)
        keep_operand(L, x, o);
    for (; x->op == OP_DYNAMIC_UPDATE_SLICE; x = inst_operand(x, 0))
        keep_operand(L, x, 1);
}

enum { MANY_RESULTS = 8, MOST_BEHIND = 1000 };

/* Notes the arrays that x reads, of more than one element; true: one of them was known, or there is much to look at. */
static bool note_reads(Lower *L, Map *reads, const Inst *x)
{
    Map  seen = map_new(L->arena);
    bool known = false;
    VEC(const Inst *) list = {0};
    vec_push(L->arena, &list, x);
    for (int32_t at = 0; at < list.n && list.n < MOST_BEHIND; at++) {
        const Inst *i = list.v[at];
        if (map_has(&seen, i))
            continue;
        map_put(&seen, i, L);
        for (int32_t k = 0; k < i->n_operands && !map_has(&L->memory, i); k++)
            vec_push(L->arena, &list, inst_operand(i, k));
        if (map_has(&L->memory, i) && shape_is_array(i->shape) && shape_count(i->shape) > 1) {
            known |= map_has(reads, i);
            map_put(reads, i, L);
        }
    }
    return known || list.n >= MOST_BEHIND;
}

/* A loop nest of many results, n so far, has no room for those that are made of other arrays. */
static bool has_room(Lower *L, Map *reads, int32_t n, const Inst *x)
{
    return L->k->n_results <= MANY_RESULTS || note_reads(L, reads, x) || n < MANY_RESULTS;
}

/* Results that are made element by element, several in one loop nest where they have one shape, and many of one nest need the same arrays. */
static void lower_elements(Lower *L, const Result *r, const bool *now)
{
    int32_t      n_results = L->k->n_results;
    const Inst **x = ARENA_ARRAY(L->arena, const Inst *, n_results);
    int32_t     *leaf = ARENA_ARRAY(L->arena, int32_t, n_results), n = 0;
    KArray     **to = ARENA_ARRAY(L->arena, KArray *, n_results);
    Map          reads = map_new(L->arena);
    for (int32_t k = 0; k <= n_results; k++) {
        bool done = k == n_results || !now[k] || is_done(L, &r[k]);
        if (n > 0 && (done || !shape_same_dims(r[k].to->shape, to[0]->shape) ||
                      !layout_equal(r[k].to->shape->layout, to[0]->shape->layout, to[0]->shape->rank) || !has_room(L, &reads, n, r[k].x))) {
            stage_loops(L, n, x, leaf, to);
            n = 0;
        }
        if (done)
            continue;
        if (n == 0) {
            reads = map_new(L->arena);
            has_room(L, &reads, n, r[k].x);
        }
        x[n] = r[k].x;
        leaf[n] = r[k].leaf;
        to[n++] = r[k].to;
    }
}

/* What is made element by element in a nest of its own, of whatever layout. */
static bool makes_elements(const Lower *L, const Result *r)
{
    return !is_staged(r->x) && !is_update(r->x) && !epilogue_has(L, r->x) && is_pointwise(r->x) && !map_has(&L->plan->materialise, r->x);
}

/* What of the body is made of x, itself too. */
static Map made_of(Lower *L, const Inst *x)
{
    Map made = map_new(L->arena);
    map_put(&made, x, L);
    for (const Inst *i = x->next; i; i = i->next)
        for (int32_t k = 0; k < i->n_operands; k++)
            if (map_has(&made, inst_operand(i, k)))
                map_put(&made, i, L);
    return made;
}

/* A value of each row of another result, which is made of it. */
static bool goes_beside(Lower *L, const Result *all, const Result *r)
{
    bool inside = false, fits = false;
    if ((r->x->op != OP_REDUCE && !op_has(r->x->op, F_ELEMENTWISE)) || epilogue_has(L, r->x) || map_has(&L->plan->materialise, r->x))
        return false;
    for (const Use *u = r->x->uses; u; u = u->next)
        inside |= u->user != L->body->root;
    for (int32_t k = 0; k < L->k->n_results && inside; k++)
        fits |= shape_is_row_of(r->to->shape, all[k].to->shape) && makes_elements(L, &all[k]);
    if (!fits)
        return false;
    Map made = made_of(L, r->x);
    fits = false;
    for (int32_t k = 0; k < L->k->n_results && !fits; k++)
        fits = shape_is_row_of(r->to->shape, all[k].to->shape) && makes_elements(L, &all[k]) && map_has(&made, all[k].x);
    return fits;
}

static bool goes_down_columns(const Lower *L, const Inst *r)
{
    return reduces_columns(r) && !map_has(&L->plan->materialise, r) && !(L->plan->device && columns_starve(r, L->plan->device));
}

/* A reduction down columns whose values the body repeats down them, all of which it may compute where it needs them; NULL. */
static const Inst *find_columns(const Lower *L)
{
    const Inst *of = NULL;
    if (L->plan->tile_hero)
        return NULL;
    for (const Inst *r = L->body->first; r && !of; r = r->next)
        for (const Inst *b = goes_down_columns(L, r) ? L->body->first : NULL; b && !of; b = b->next)
            if (columns_repeat(r, b) && columns_make(r, inst_operand(b, 0)))
                of = r;
    return of;
}

/* More elements than the reduction has results. */
static bool has_more(const Shape *s, const Inst *reduce)
{
    const Shape *out = shape_is_tuple(reduce->shape) ? reduce->shape->elems[0] : reduce->shape;
    return shape_is_array(s) && shape_count(s) > shape_count(out);
}

/* All that is reduced are short rows. */
static bool has_short_rows(const Lower *L)
{
    bool any = false;
    if (L->plan->plain || L->plan->tile_hero || L->plan->not_beside)
        return false;
    for (const Inst *r = L->body->first; r; r = r->next) {
        bool more = false;
        for (const Inst *i = r->op == OP_REDUCE ? L->body->first : NULL; i && !more; i = i->next)
            more = inst_is_dear(i) && has_more(i->shape, r);
        for (int32_t k = 0; k < L->k->n_results && r->op == OP_REDUCE; k++)
            more |= has_more(L->results[k].to->shape, r);
        if (r->op == OP_REDUCE && !reduces_short_rows(r, more))
            return false;
        any |= r->op == OP_REDUCE;
    }
    return any;
}

/* Wanted in each of many rows alone. */
static bool is_of_all_rows(const Inst *x)
{
    enum { MANY_ROWS = 16, MOST = 1 << 14 };
    const int64_t count = shape_is_array(x->shape) ? shape_count(x->shape) : 0;
    bool          rows = x->n_uses > 0 && count > 1 && count <= MOST;
    for (const Use *u = x->uses; u && rows; u = u->next)
        rows = u->user->op == OP_BROADCAST && shape_count(u->user->shape) / MANY_ROWS >= count;
    return rows;
}

/* Scales and shifts of norms that are narrow in memory take as long to widen as the rest of the norm takes: that is done once, not in each row. */
static void widen_once(Lower *L)
{
    bool reduces = false;
    for (const Inst *i = L->body->first; i; i = i->next)
        reduces |= i->op == OP_REDUCE;
    if (!reduces || L->plan->plain || L->plan->tile_hero)
        return;
    for (const Inst *i = L->body->first; i; i = i->next)
        if (i->op == OP_CONVERT && type_is_float(i->shape->type) && type_bytes(inst_operand(i, 0)->shape->type) < type_bytes(i->shape->type) &&
            type_is_float(inst_operand(i, 0)->shape->type) && map_has(&L->memory, inst_operand(i, 0)) && is_of_all_rows(i))
            map_put(&L->plan->materialise, i, (void *)(uintptr_t)i);
}

/* x has a value of each of many rows that are reduced for it. */
static bool is_of_reduced_rows(Lower *L, const Inst *x)
{
    const int64_t count = shape_is_array(x->shape) ? shape_count(x->shape) : 0;
    Behind        b = behind_of(L->arena, x, &L->memory);
    bool          any = false;
    for (const Inst *i; count > 1 && !any && (i = behind_next(&b));)
        any = i->op == OP_REDUCE && shape_count(reduction_shape(i, 0)) == count && rows_are_for_threads(count, shape_count(inst_operand(i, 0)->shape));
    return any;
}

/* So long, and so few, that launches of many blocks for each (split.h) are nothing beside one block's work. */
static bool is_for_blocks(const Lower *L, const Inst *r)
{
    enum { LONG = 1 << 16, EACH = 8 };
    const int64_t count = shape_count(reduction_shape(r, 0));
    return count > 0 && (double)count * EACH <= L->plan->device->units && shape_count(inst_operand(r, 0)->shape) / count >= LONG;
}

/* On a device: what is summed over many rows, of each of which many threads may make a value first, and sums that all of it works on before anything is made of them. */
static void keep_for_threads(Lower *L)
{
    if (!L->plan->device)
        return;
    int32_t n = 0;
    bool    more = false; /* than a few numbers of one sum, which whoever finishes that may make */
    for (const Inst *r = L->body->first; r; r = r->next) {
        if (r->op != OP_REDUCE)
            continue;
        for (int32_t k = 0; k < r->n_operands / 2; k++)
            if (has_more(inst_operand(r, k)->shape, r) && is_of_reduced_rows(L, inst_operand(r, k)))
                map_put(&L->plan->materialise, inst_operand(r, k), L->plan);
        for (int32_t k = 0; k < L->k->n_results && is_for_blocks(L, r); k++)
            more |= has_more(L->results[k].to->shape, r);
        n += is_for_blocks(L, r);
    }
    for (const Inst *r = L->body->first; r && (more || n > 1); r = r->next)
        if (r->op == OP_REDUCE && r != L->body->root && is_for_blocks(L, r))
            map_put(&L->plan->materialise, r, L->plan);
}

static void lower_fusion(Lower *L)
{
    Result *r = L->results = fusion_results(L);
    if (L->plan->tile_hero) {
        tile_stage(L);
        return;
    }
    bool   *early = ARENA_ARRAY(L->arena, bool, L->k->n_results), *late = ARENA_ARRAY(L->arena, bool, L->k->n_results);
    bool    keep = reads_what_is_updated(L, r);
    L->columns = find_columns(L);
    L->beside = !L->columns && has_short_rows(L);
    widen_once(L);
    keep_for_threads(L);
    break_long_bodies(L);
    rows_begin(L);
    together_begin(L);
    epilogue_begin(L);
    quotients_begin(L);
    for (int32_t k = 0; k < L->k->n_results; k++) {
        bool apart = epilogue_has(L, r[k].x), whole = is_whole(L, r[k].x);
        late[k] = is_update(r[k].x) && is_last(L, r[k].x) && !whole;
        r[k].beside = goes_beside(L, r, &r[k]);
        early[k] = !late[k] && !apart && !r[k].beside;
        if (is_staged(r[k].x) && !apart && !r[k].beside && !whole)
            map_put(&L->plan->materialise, r[k].x, L->plan);
        if (late[k] && keep)
            keep_updates(L, r[k].x);
    }
    for (const Inst *i = L->body->first; i; i = i->next)
        if (map_has(&L->plan->materialise, i) && !(is_update(i) && is_last(L, i)) && !epilogue_has(L, i))
            lower_kept(L, i, r);
    lower_elements(L, r, early);
    for (int32_t k = 0; k < L->k->n_results; k++)
        early[k] = r[k].beside && !r[k].to->written;
    lower_elements(L, r, early);
    if (L->epilogue)
        epilogue_stage(L);
    for (const Inst *i = L->body->first; i; i = i->next)
        if (map_has(&L->plan->materialise, i) && is_update(i) && is_last(L, i) && !is_whole(L, i))
            lower_kept(L, i, r);
    lower_elements(L, r, late); /* an update that is two results */
    rows_end(L);
}

/* Is an operand copied before it is updated where the two are never the same memory? */
static bool copies_in_vain(const Lower *L)
{
    for (int32_t j = 0; j < L->in_place.n; j++) {
        const InPlace *p = &L->in_place.v[j];
        if (p->known && !kernel_may_alias(L->k, p->result - L->k->n_operands, p->operand))
            return true;
    }
    return false;
}

/* Where more rows are going to be kept, reductions may be asked for in other loops. */
static void settle_repeated(Lower *L)
{
    for (int32_t k = 0; k < L->repeated.n && !L->keeps_more; k++)
        if (!map_has(&L->plan->materialise, L->repeated.v[k]))
            need_memory(L, L->repeated.v[k]);
}

static Kernel *lower_once(Arena *a, const Inst *i, Plan *plan, bool *again, Diag *d)
{
    Lower L = { .arena = a, .diag = d, .inst = i, .body = plan->body, .plan = plan };
    L.k = ARENA_NEW(a, Kernel);
    L.k->arena = a;
    L.k->inst = i;
    L.k->any_order = plan->any_order;
    L.ix = ix_context(a);
    L.ix.split = lower_split;
    L.ix.cookie = &L;
    L.memory = map_new(a);
    L.memo = map_new(a);
    L.divisors = map_new(a);
    L.inlined = map_new(a);
    L.chosen = map_new(a);
    L.computed = map_new(a);
    L.kept_rows = map_new(a);
    L.behind = map_new(a);
    L.cur = L.k->body = ARENA_NEW(a, KBlock);
    make_params(&L);
    inline_constants(&L);
    if (L.body) {
        lower_fusion(&L);
    } else {
        L.beside = i->op == OP_REDUCE && !plan->plain && !plan->not_beside && reduces_short_rows(i, false);
        stage(&L, i, L.k->params + L.k->n_operands);
    }
    settle_repeated(&L);
    L.k->may_alias = ARENA_ARRAY(a, bool, L.k->n_operands * L.k->n_results);
    for (int32_t j = 0; j < L.in_place.n; j++)
        L.k->may_alias[(L.in_place.v[j].result - L.k->n_operands) * L.k->n_operands + L.in_place.v[j].operand] = true;
    L.k->n_arrays = L.arrays.n;
    L.k->arrays = L.arrays.v;
    *again = L.again;
    if (L.failed)
        return NULL;
    if (!*again) {
        if (!plan->plain)
            kernel_bound_once(L.k);
        kernel_prune(L.k);
        kernel_round_once(L.k);
        kernel_collapse(L.k, &L.ix);
        if (!plan->plain && !plan->tile_hero)
            kernel_loops_together(L.k, &L.ix);
        if (L.beside && !kernel_rows_beside(L.k, &L.ix)) {
            plan->not_beside = *again = true;
            return L.k;
        }
        if (!L.beside && !L.columns && !L.looped && !plan->plain && !plan->tile_hero)
            L.beside = kernel_found_rows_beside(L.k, &L.ix) || kernel_dear_rows_beside(L.k, &L.ix);
        if (!plan->plain && !plan->tile_hero && !L.columns && !L.beside && !L.looped)
            kernel_write_out(L.k, &L.ix);
        kernel_keep_rolled(L.k);
        if (!plan->plain && !plan->tile_hero) {
            if (!L.columns && !L.beside && !L.looped)
                kernel_rows_abreast(L.k, &L.ix);
            if (!L.beside && !L.looped)
                kernel_rows_in_results(L.k, &L.ix);
            if (L.columns)
                kernel_columns(L.k, &L.ix);
            kernel_pads_apart(L.k, &L.ix);
            kernel_pieces_backwards(L.k, &L.ix);
        }
        if (plan->tile_hero)
            tile_finish(L.k);
        if (!plan->plain)
            kernel_lift_loads(L.k);
        if (!plan->plain && !plan->tile_hero)
            kernel_make_alone(L.k);
        if (!plan->plain)
            kernel_choose_by_bits(L.k);
        kernel_finish(L.k, plan->plain);
        if (!plan->plain && !plan->tile_hero)
            kernel_stream(L.k, plan->ranges);
        kernel_fetch_ahead(L.k, &L.ix);
        kernel_name(L.k, plan->plain);
        *again = L.body && !plan->plain && !plan->whole_updates && copies_in_vain(&L);
        plan->whole_updates |= *again;
    }
    return L.k;
}

static const Comp *body_of(Arena *a, const Inst *i, Map *materialise)
{
    if (i->op == OP_FUSION)
        return inst_callee(i, 0);
    return is_norm(i) ? norm_body(a, i, materialise) : NULL;
}

Kernel *kernel_lower(Arena *a, const Inst *i, KernelOptions o, Diag *d)
{
    if (!kernel_supported(i, d))
        return NULL;
    Arena  *scratch = arena_new();
    Plan    plan = { .arena = scratch, .dims = map_new(scratch), .materialise = map_new(scratch), .divisors = map_new(scratch), .rows = map_new(scratch),
                  .norms = map_new(scratch), .plain = o.device != NULL, .device = o.device, .any_order = o.any_order, .ranges = o.ranges };
    Kernel *k = NULL;
    bool    again = true;
    plan.body = body_of(a, i, &plan.materialise);
    for (int n = 0; n < MAX_TRIES && again; n++) {
        k = lower_once(a, i, &plan, &again, d);
        if (!k)
            break;
    }
    arena_free(scratch);
    if (k && again) {
        inst_error(d, i, "%s %%%s is too tangled to compile as one kernel", op_name(i->op), i->name);
        return NULL;
    }
    return k;
}

Kernel *kernel_lower_element(Arena *a, const Inst *i, const Inst *hero, int64_t row)
{
    Arena  *scratch = arena_new();
    Kernel *k = NULL;
    Diag    quiet;
    diag_init(&quiet, scratch);
    if (kernel_supported(i, &quiet)) {
        Plan plan = { .arena = scratch, .dims = map_new(scratch), .materialise = map_new(scratch), .divisors = map_new(scratch), .rows = map_new(scratch), .norms = map_new(scratch),
                      .body = inst_callee(i, 0), .plain = true, .tile_hero = hero, .tile_row = row, .tile_alone = true };
        bool again = false;
        k = lower_once(a, i, &plan, &again, &quiet);
        if (again || (k && k->temp_bytes > 0))
            k = NULL;
    }
    arena_free(scratch);
    return k;
}

Kernel *kernel_lower_tile(Arena *a, const Inst *i, const Inst *hero, int64_t row)
{
    enum { LEAST = 32 }; /* elements of a row, and of what it is made of: a vector of any type begins where another one would */
    Arena  *scratch = arena_new();
    Kernel *k = NULL;
    Diag    quiet;
    diag_init(&quiet, scratch);
    while (row >= LEAST && kernel_supported(i, &quiet)) {
        Plan plan = { .arena = scratch, .dims = map_new(scratch), .materialise = map_new(scratch), .divisors = map_new(scratch), .rows = map_new(scratch), .norms = map_new(scratch),
                      .body = inst_callee(i, 0), .tile_hero = hero, .tile_row = row };
        bool again = false;
        k = lower_once(a, i, &plan, &again, &quiet);
        if (again || (k && k->temp_bytes > 0))
            k = NULL;
        const int64_t shorter = k ? tile_shorter_row(k) : row;
        if (shorter == row)
            break;
        k = NULL;
        row = shorter % LEAST == 0 ? shorter : 0;
    }
    arena_free(scratch);
    return k;
}
