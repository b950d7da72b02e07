/* rematerialization - values are computed again where they are needed, so that they need not be kept.
 *
 *   %big = broadcast(%x)                                         %big = broadcast(%x)
 *   %first = reduce(%big)                                        %first = reduce(%big)
 *   %worst = ... (much memory)                          =>       %worst = ... (much memory)
 *   %last = add(%big, %worst)                                    %again = broadcast(%x)
 *                                                                %last = add(%again, %worst)
 *
 * Until no moment needs more than limit=BYTES of temporaries (K, M, G: 2^10, 2^20, 2^30), as far as that can be had: of the values that are
 * kept over the worst moment those that free most are tried, and kept where what all moments need above the limit gets less: alone, or else with one, two, four
 * or more of the instructions that they are made of, where these would have to be kept instead. Computed again are
 * arrays of elementwise and moving instructions, reductions and fusions without updates in place; of a fusion of several results the one that is needed,
 * by a fusion of what it is made of; with each its other names (bitcasts, reshapes that move nothing). First what the entry keeps over the worst
 * moment; where that is a loop, a branch or a call and the limit is not kept yet, likewise within, as far as what is kept outside leaves room. A module without a schedule gets one first (hlo-memory-scheduler). Without a limit
 * nothing is done. */
#include "config.h"

#include "analysis/cost.h"
#include "analysis/memory.h"
#include "analysis/peak.h"
#include "passes/flow.h"
#include "passes/pass.h"
#include "passes/util.h"

#include <ctype.h>
#include <stdlib.h>

enum { MAX_STEPS = 1000, MAX_TRIES = 8, MAX_NAMES = 8, MAX_BLOCK = 16 };
static const int64_t max_work = 200000000; /* instructions looked at in all steps */

typedef struct Remat {
    PassCtx *cx;
    Comp    *c;
    Map     *needs; /* of what runs: bytes at its worst */
    int64_t  limit, work;
} Remat;

/* ---- the limit ---- */

static int64_t read_limit(PassCtx *cx)
{
    const char *text = pass_arg(cx, "limit");
    char       *end;
    if (!text)
        return INT64_MAX;
    long long v = strtoll(text, &end, 10);
    int       shift = 0;
    if (*end)
        shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : -1;
    if (!isdigit((unsigned char)*text) || shift < 0 || (*end && end[1]) || v > INT64_MAX >> shift) {
        diag_error(cx->diag, LOC_NONE, "rematerialization expects limit=BYTES, with K, M or G after the number if need be");
        return -1;
    }
    return (int64_t)v << shift;
}

/* ---- what can be computed again ---- */

static bool updates(const Inst *i)
{
    return i->op == OP_DYNAMIC_UPDATE_SLICE || i->op == OP_SCATTER;
}

static bool can_repeat(const Inst *i)
{
    if (!shape_is_array(i->shape) || !inst_is_value(i) || !inst_is_free(i) || inst_names_buffer(i) || updates(i))
        return false;
    if (i->op == OP_FUSION)
        return i->callees[0]->root->op != OP_TUPLE && !updates(i->callees[0]->root);
    return op_has(i->op, F_ELEMENTWISE) || op_has(i->op, F_MOVES) || i->op == OP_BROADCAST || i->op == OP_IOTA || i->op == OP_REDUCE ||
           i->op == OP_PAD || i->op == OP_CONCATENATE || i->op == OP_DYNAMIC_SLICE || i->op == OP_SLICE;
}

/* One of several results of a fusion, of the root's operand `made`; NULL: it is none that can be computed alone. */
static const Inst *made_part(const Inst *i)
{
    const Inst *f = i->op == OP_GET_TUPLE_ELEMENT ? inst_operand(i, 0) : NULL, *root = f && f->op == OP_FUSION ? inst_callee(f, 0)->root : NULL;
    if (!root || root->op != OP_TUPLE || !shape_is_array(i->shape) || !inst_is_value(f) || !inst_is_free(f) || !inst_is_free(i))
        return NULL;
    const Inst *made = inst_operand(root, (int32_t)inst_int(i, ATTR_INDEX, 0));
    return made->op != OP_PARAMETER && shape_is_array(made->shape) && !updates(made) ? made : NULL;
}

/* The operand as it is, with other dimensions. */
static bool is_name(const Inst *i)
{
    return (i->op == OP_BITCAST || i->op == OP_RESHAPE) && inst_forwards(i) == 0 && inst_is_free(i);
}

/* An instruction, and up to `at` the other names of what it makes. Marks are places. */
typedef struct Names {
    Inst   *inst[MAX_NAMES];
    int32_t n;
} Names;

static Names find_names(Inst *i, int64_t at)
{
    Names x = {.inst = {i}, .n = 1};
    for (int32_t k = 0; k < x.n; k++)
        for (const Use *u = x.inst[k]->uses; u && x.n < MAX_NAMES; u = u->next)
            if (is_name(u->user) && u->user->mark <= at)
                x.inst[x.n++] = u->user;
    return x;
}

/* The first reader after `at`, under whatever name; NULL: all are before, or one is no kernel (a tuple, a loop). */
static Inst *next_reader(Inst *i, int64_t at)
{
    Names x = find_names(i, at);
    Inst *first = NULL;
    for (int32_t k = 0; k < x.n; k++)
        for (const Use *u = x.inst[k]->uses; u; u = u->next) {
            if (inst_names_buffer(u->user) && !is_name(u->user))
                return NULL;
            if (u->user->mark > at && (!first || u->user->mark < first->mark))
                first = u->user;
        }
    return first;
}

typedef struct Tries {
    Inst   *inst[MAX_TRIES];
    int32_t n;
} Tries;

/* The largest ones, sorted. */
static void enter(Tries *t, Inst *i)
{
    int64_t bytes = shape_bytes(i->shape);
    int32_t k = t->n < MAX_TRIES ? t->n++ : MAX_TRIES;
    for (; k > 0 && shape_bytes(t->inst[k - 1]->shape) < bytes; k--)
        if (k < MAX_TRIES)
            t->inst[k] = t->inst[k - 1];
    if (k < MAX_TRIES)
        t->inst[k] = i;
}

static Tries find_tries(const Remat *r, const Inst *at)
{
    Tries   t = {.n = 0};
    int64_t place = 0;
    for (Inst *i = r->c->first; i; i = i->next)
        i->mark = place++;
    for (Inst *i = r->c->first; i && i != at; i = i->next)
        if ((can_repeat(i) || made_part(i)) && !is_name(i) && shape_bytes(i->shape) > 0 && next_reader(i, at->mark))
            enter(&t, i);
    return t;
}

/* ---- trying ---- */

static void read_instead(Inst *from, Inst *to, int64_t after)
{
    for (Use *u = from->uses, *next; u; u = next) {
        next = u->next;
        if (u->user->mark > after)
            inst_set_operand(u->user, u->index, to);
    }
}

/* The parameters of a body that an instruction of it is made of. */
static void find_needed(const Comp *body, const Inst *made, bool *needed)
{
    for (Inst *i = body->last; i; i = i->prev)
        i->mark = 0;
    for (Inst *i = body->last; i; i = i->prev) {
        i->mark |= i == made;
        for (int32_t k = 0; k < i->n_operands && i->mark; k++)
            inst_operand(i, k)->mark = 1;
        if (i->op == OP_PARAMETER)
            needed[i->param] = i->mark;
    }
}

/* A fusion in front of reader that gives element i of one alone; it has the whole body until own_body. */
static Inst *repeat_part(const Remat *r, Inst *i, const Inst *made, Inst *reader)
{
    Inst   *f = inst_operand(i, 0);
    Inst  **operands = ARENA_ARRAY(r->cx->scratch, Inst *, f->n_operands);
    bool   *needed = ARENA_ARRAY(r->cx->scratch, bool, f->n_operands);
    int32_t n = 0;
    find_needed(inst_callee(f, 0), made, needed);
    for (int32_t k = 0; k < f->n_operands; k++)
        if (needed[k])
            operands[n++] = inst_operand(f, k);
    Inst *again = inst_new(r->c, reader, OP_FUSION, i->shape, n, operands, NULL);
    inst_set_word(again, ATTR_FUSION_KIND, inst_word(f, ATTR_FUSION_KIND));
    inst_set_callees(again, 1, f->callees);
    again->meta = made->meta ? made->meta : f->meta;
    again->loc = f->loc;
    return again;
}

/* Names, and the same of the copy that those after `at` read; NULL: nobody does. What the copy is made of may have been computed again, too: made[k] of
 * made_of[k]. */
typedef struct Again {
    Names       was, now;
    Inst       *reader; /* the first */
    Inst       *made[MAX_BLOCK], *made_of[MAX_BLOCK];
    int32_t     n_made, most_made;
} Again;

/* Whether an operand would have to be kept for the copy's sake, and can be computed again with it instead. */
static bool can_be_made(Inst *o, int64_t at)
{
    return o->mark <= at && (can_repeat(o) || is_name(o)) && !next_reader(o, at) && shape_bytes(o->shape) > 0;
}

/* x, or a copy of it in front of reader, with those of its own operands that would have to be kept. */
static Inst *made_again(const Remat *r, Again *a, Inst *x, int64_t at)
{
    for (int32_t k = 0; k < a->n_made; k++)
        if (a->made_of[k] == x)
            return a->made[k];
    if (a->n_made >= a->most_made || !can_be_made(x, at))
        return x;
    Inst  **operands = ARENA_ARRAY(r->cx->scratch, Inst *, x->n_operands);
    int32_t place = a->n_made++;
    a->made_of[place] = x;
    for (int32_t k = 0; k < x->n_operands; k++)
        operands[k] = made_again(r, a, inst_operand(x, k), at);
    a->made[place] = inst_clone_into(r->c, a->reader, x, x->n_operands, operands);
    a->made[place]->mark = at;
    return a->made[place];
}

/* With at most so many of what i is made of. */
static Again repeat(const Remat *r, Inst *i, int64_t at, int32_t most_made)
{
    const Inst *made = made_part(i);
    Inst       *reader = next_reader(i, at);
    Again       a = {.was = find_names(i, at), .reader = reader, .most_made = most_made};
    Inst      **operands = ARENA_ARRAY(r->cx->scratch, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        operands[k] = made ? inst_operand(i, k) : made_again(r, &a, inst_operand(i, k), at);
    a.now.n = a.was.n;
    for (int32_t k = 0; k < a.was.n; k++) {
        Inst *w = a.was.inst[k], *of = NULL;
        for (int32_t j = 0; j < k; j++)
            if (a.was.inst[j] == inst_operand(w, 0))
                of = a.now.inst[j];
        a.now.inst[k] = k && !next_reader(w, at) ? NULL
                        : k                      ? inst_clone_into(r->c, reader, w, 1, &of)
                        : made                   ? repeat_part(r, i, made, reader)
                                                 : inst_clone_into(r->c, reader, i, i->n_operands, operands);
    }
    for (int32_t k = 0; k < a.was.n; k++)
        if (a.now.inst[k]) {
            a.now.inst[k]->mark = at; /* reads nothing of i */
            read_instead(a.was.inst[k], a.now.inst[k], at);
        }
    return a;
}

/* The body of a fusion has one caller; that of one of several results, of i, is without the others. */
static void own_body(const Remat *r, Inst *again, const Inst *i)
{
    if (again->op != OP_FUSION)
        return;
    Comp *body = comp_clone(again->callees[0], again->callees[0]->name);
    inst_set_callees(again, 1, &body);
    if (i->op != OP_GET_TUPLE_ELEMENT)
        return;
    comp_set_root(body, inst_operand(body->root, (int32_t)inst_int(i, ATTR_INDEX, 0)), r->cx->scratch);
    comp_sweep_dead(body, INT64_MAX);
    comp_drop_unread(body, ARENA_ARRAY(r->cx->scratch, bool, body->n_params));
}

static void take_back(const Remat *r, Again *a)
{
    for (int32_t k = a->was.n - 1; k >= 0; k--)
        if (a->now.inst[k]) {
            read_instead(a->now.inst[k], a->was.inst[k], -1);
            inst_delete(a->now.inst[k]);
        }
    for (int32_t k = 0; k < a->n_made; k++)
        if (a->made[k]->comp && !a->made[k]->n_uses)
            inst_delete_dead(a->made[k], r->cx->scratch);
}

static void delete_unread(const Remat *r, Again *a)
{
    for (int32_t k = a->was.n - 1; k > 0; k--)
        if (!a->was.inst[k]->n_uses)
            inst_delete(a->was.inst[k]);
    if (!a->was.inst[0]->n_uses)
        inst_delete_dead(a->was.inst[0], r->cx->scratch);
}

/* The copy stays where what all moments need above the limit gets less. */
static bool try_again(Remat *r, CompPeak *peak, Inst *i, Again *again)
{
    CompPeak now = comp_peak(r->c, r->needs, r->limit);
    r->work += 2 * r->c->n_insts;
    if (now.excess >= peak->excess || now.bytes > peak->bytes) {
        take_back(r, again);
        return false;
    }
    r->cx->did_at = i->name;
    own_body(r, again->now.inst[0], i);
    for (int32_t k = 0; k < again->n_made; k++)
        own_body(r, again->made[k], again->made_of[k]);
    pass_remark(r->cx, i, "%lld bytes are not kept: it is computed again for %s", (long long)shape_bytes(i->shape), again->reader->name);
    delete_unread(r, again);
    r->cx->rewrites++;
    *peak = now;
    return true;
}

/* Alone, or with what it is made of, where that would have to be kept. */
static bool one_step(Remat *r, CompPeak *peak)
{
    if (!peak->at)
        return false;
    Tries   t = find_tries(r, peak->at);
    int64_t at = peak->at->mark;
    for (int32_t k = 0; k < t.n; k++)
        for (int32_t most = 0, made = 0; most == 0 || (most <= MAX_BLOCK && made == most / 2); most = most ? 2 * most : 1) {
            Again again = repeat(r, t.inst[k], at, most);
            if (most && !again.n_made) {
                take_back(r, &again);
                break;
            }
            made = again.n_made;
            if (try_again(r, peak, t.inst[k], &again))
                return true;
        }
    return false;
}

static int64_t shrink(Remat *r);

/* What runs at the worst moment may need as much as what is kept over it leaves of the limit. */
static bool shrink_callee(Remat *r, CompPeak *peak)
{
    Comp   *worst = NULL;
    int64_t most = 0;
    for (int32_t k = 0; peak->at && k < peak->at->n_callees; k++) {
        int64_t needs = (int64_t)(intptr_t)map_get(r->needs, peak->at->callees[k]);
        if (needs > most) {
            most = needs;
            worst = peak->at->callees[k];
        }
    }
    if (!worst)
        return false;
    int64_t left = r->limit - (peak->bytes - most);
    Remat   within = {.cx = r->cx, .c = worst, .needs = r->needs, .limit = left > 0 ? left : 0, .work = r->work};
    int64_t now = shrink(&within);
    r->work = within.work;
    map_put(r->needs, worst, (void *)(intptr_t)now);
    *peak = comp_peak(r->c, r->needs, r->limit);
    return now < most;
}

static int64_t shrink(Remat *r)
{
    CompPeak peak = comp_peak(r->c, r->needs, r->limit);
    for (int step = 0; step < MAX_STEPS && peak.bytes > r->limit && r->work < max_work && r->cx->rewrites < r->cx->limit; step++)
        if (!one_step(r, &peak) && !shrink_callee(r, &peak))
            break;
    return peak.bytes;
}

static void tell(const Remat *r, int64_t before, int64_t now)
{
    if (now > r->limit)
        diag_warning(r->cx->diag, LOC_NONE, "rematerialization: %lld bytes of temporaries were needed, and %lld still are; the limit is %lld",
                     (long long)before, (long long)now, (long long)r->limit);
    else if (before > r->limit)
        diag_note(r->cx->diag, LOC_NONE, "rematerialization: %lld bytes of temporaries were needed, now %lld; the limit is %lld",
                  (long long)before, (long long)now, (long long)r->limit);
}

bool pass_rematerialization(Module *m, PassCtx *cx)
{
    int64_t limit = read_limit(cx);
    if (limit < 0 || limit == INT64_MAX)
        return false;
    Map     needs = map_new(cx->scratch), runs = module_runs(cx->scratch, m, NULL);
    bool    scheduled = pass_hlo_memory_scheduler(m, cx);
    for (Comp *c = m->first; c && m->is_scheduled; c = c->next) { /* callees first */
        if (!map_has(&runs, c))
            continue;
        Remat r = {.cx = cx, .c = c, .needs = &needs, .limit = limit};
        map_put(&needs, c, (void *)(intptr_t)comp_peak(c, &needs, limit).bytes);
        if (c == m->entry) {
            int64_t before = (int64_t)(intptr_t)map_get(&needs, c);
            tell(&r, before, shrink(&r));
        }
    }
    if (cx->rewrites)
        module_remove_dead_comps(m);
    return scheduled || cx->rewrites > 0;
}
