/* algsimp - rewrite instructions to simpler ones that give the same bits.
 *
 *   %r = f32[1,8] reshape(%x)                                  (%x is f32[8])
 *   %s = f32[8] reshape(%r)
 *   ROOT %b = f32[4,8] broadcast(%s), dimensions={1}     =>    ROOT %b = f32[4,8] broadcast(%x), dimensions={1}
 *
 * The rules are rows of algsimp_rules.def; only=NAME and disable=NAME (repeatable) choose among them, finite leaves out those that may round
 * otherwise, exact also those that count on finite values; loose adds those that mind neither overflow nor the sign of a zero. A computation is swept in stored order, what a rule makes is looked at again at once, and sweeps go on until one changes nothing. Rules shrink, so that ends;
 * a bound on rewrites guards against two rules that undo each other. */
#include "config.h"

#include "analysis/loops.h"
#include "passes/algsimp.h"

#include <string.h>

#include "passes/pass.h"

enum { MAX_SWEEPS = 16, REWRITES_PER_INST = 32, REWRITES_AT_LEAST = 4096 };

typedef enum { SAME, FINITE, ROUNDS, LOOSE } Keeps;

typedef struct Rule {
    Inst *(*fire)(Simp *s, Inst *i);
    Op          op; /* OP_COUNT: every one */
    const char *name, *summary;
    Keeps       keeps;
} Rule;

static const Rule rules[] = {
#define RULE(id, op, name, keeps, summary) {rule_##id, OP_##op, name, summary, keeps},
#include "passes/algsimp_rules.def"
#undef RULE
};
enum { N_RULES = sizeof rules / sizeof *rules };

typedef struct Driver {
    Simp    s;
    PassCtx *cx;
    int16_t first[OP_COUNT + 1]; /* by opcode: an entry of chain, -1 at the end */
    int16_t next[N_RULES];
    int64_t left; /* rewrites before giving up */
} Driver;

/* ---- what rules are made of ---- */

static Inst *note_made(Simp *s, Inst *i)
{
    if (!i->meta)
        i->meta = s->at->meta;
    if (i->loc.off < 0)
        i->loc = s->at->loc;
    vec_push(s->scratch, &s->made, i);
    return i;
}

Inst *simp_new(Simp *s, Op op, const Shape *shape, int32_t n, Inst *const *operands)
{
    return note_made(s, inst_new(s->at->comp, s->at, op, shape, n, operands, NULL));
}

Inst *simp_like(Simp *s, const Inst *i, const Shape *shape, Inst *const *operands)
{
    Inst *j = simp_new(s, i->op, shape, i->n_operands, operands);
    inst_take_attrs(j, i);
    inst_set_callees(j, i->n_callees, i->callees);
    return j;
}

const Shape *simp_shape(Simp *s, Type t, int32_t rank, const int64_t *dims)
{
    return shape_array(s->arena, t, rank, dims);
}

Inst *simp_reshape(Simp *s, const Shape *shape, Inst *x)
{
    return shape_equal(shape, x->shape) ? x : simp_new(s, OP_RESHAPE, shape, 1, &x);
}

Inst *simp_broadcast(Simp *s, const Shape *shape, Inst *x, Ints dims)
{
    Inst *b = simp_new(s, OP_BROADCAST, shape, 1, &x);
    inst_set_ints(b, ATTR_DIMENSIONS, dims);
    return b;
}

Inst *simp_constant(Simp *s, const Shape *shape, Literal *v)
{
    Inst *c = note_made(s, inst_constant(s->at->comp, s->at, v, NULL));
    c->shape = shape;
    return c;
}

Inst *simp_splat_literal(Simp *s, const Shape *shape, Literal *one)
{
    Inst *c = simp_constant(s, shape_scalar(s->arena, one->type), one);
    return shape->rank == 0 ? c : simp_broadcast(s, shape, c, (Ints){NULL, 0});
}

Inst *simp_splat(Simp *s, const Shape *shape, int64_t v)
{
    return simp_splat_literal(s, shape, literal_from_s64(shape->type, v));
}

Literal *simp_scalar(const Literal *l)
{
    return type_is_float(l->type) ? literal_from_f64(l->type, literal_get_f64(l, 0)) : literal_from_s64(l->type, literal_get_s64(l, 0));
}

Inst *simp_same(const Simp *s, Inst *x)
{
    return shape_equal(x->shape, s->at->shape) ? x : NULL;
}

static bool is_real(Type t)
{
    return type_is_int(t) || type_is_float(t) || t == TYPE_PRED;
}

bool splat_is(const Inst *i, int64_t v)
{
    const Literal *l = is_real(i->shape->type) ? splat_value(i) : NULL;
    if (!l)
        return false;
    if (!type_is_float(l->type))
        return literal_get_s64(l, 0) == v;
    double f = literal_get_f64(l, 0);
    return f == (double)v && !(f == 0 && __builtin_signbit(f));
}

bool simp_seen_by_index(const Inst *i)
{
    for (const Use *u = i->uses; u; u = u->next)
        if (!op_has(u->user->op, F_ELEMENTWISE) && u->user->op != OP_REDUCE && u->user->op != OP_DOT)
            return false;
    return i != i->comp->root;
}

bool splat_is_minus_zero(const Inst *i)
{
    const Literal *l = type_is_float(i->shape->type) ? splat_value(i) : NULL;
    return l && literal_get_f64(l, 0) == 0 && __builtin_signbit(literal_get_f64(l, 0));
}

/* ---- the driver ---- */

static bool listed(const PassCtx *cx, const char *key, const char *name, bool *any)
{
    bool found = false;
    for (int k = 0; k < cx->n_args; k++)
        if (strcmp(cx->args[k].key, key) == 0) {
            *any = true;
            found |= strcmp(cx->args[k].value, name) == 0;
        }
    return found;
}

static bool check_names(PassCtx *cx)
{
    const char *names[N_RULES];
    for (int r = 0; r < N_RULES; r++)
        names[r] = rules[r].name;
    bool good = true;
    for (int k = 0; k < cx->n_args; k++) {
        bool known = strcmp(cx->args[k].key, "only") != 0 && strcmp(cx->args[k].key, "disable") != 0;
        for (int r = 0; r < N_RULES && !known; r++)
            known = strcmp(cx->args[k].value, names[r]) == 0;
        if (known)
            continue;
        const char *near = nearest_word(cx->args[k].value, names, N_RULES);
        diag_error(cx->diag, LOC_NONE, "algsimp has no rule '%s'%s%s%s", cx->args[k].value, near ? ", did you mean '" : "",
                   near ? near : "", near ? "'?" : " (hlo-passes(7) lists them)");
        good = false;
    }
    return good;
}

/* What the rules that run may change. */
static Keeps loosest(const PassCtx *cx)
{
    return pass_arg(cx, "exact") ? SAME : pass_arg(cx, "finite") ? FINITE : pass_arg(cx, "loose") ? LOOSE : ROUNDS;
}

/* Rules by opcode, in the order of the table; those for every opcode come first. */
static void choose_rules(Driver *d, const PassCtx *cx)
{
    for (int op = 0; op <= OP_COUNT; op++)
        d->first[op] = -1;
    for (int r = N_RULES; r-- > 0;) {
        bool limited = false, excluded = false;
        bool wanted = listed(cx, "only", rules[r].name, &limited) || !limited;
        if (!wanted || listed(cx, "disable", rules[r].name, &excluded) || rules[r].keeps > loosest(cx))
            continue;
        d->next[r] = d->first[rules[r].op];
        d->first[rules[r].op] = (int16_t)r;
    }
}

static bool may_mix_types(Op op)
{
    return op == OP_REDUCE || op == OP_REDUCE_WINDOW || (op_has(op, F_ELEMENTWISE) && op != OP_CONVERT);
}

/* What also rounds from one float type to another: no rule counts with that. */
static bool rounds_too(const Inst *i)
{
    if (!may_mix_types(i->op) || !type_is_float(i->shape->type))
        return false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        Type t = inst_operand(i, k)->shape->type;
        if (type_is_float(t) && t != i->shape->type)
            return true;
    }
    return false;
}

static bool may_rewrite(const Inst *i)
{
    if (i->op == OP_PARAMETER || !inst_is_free(i) || rounds_too(i))
        return false;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (shape_is_dynamic(inst_operand(i, k)->shape))
            return false;
    return i->n_uses > 0 || i->comp->root == i;
}

static Inst *fire_first(Driver *d, Op list, Inst *i)
{
    for (int r = d->first[list]; r >= 0; r = d->next[r]) {
        Inst *new_ = rules[r].fire(&d->s, i);
        if (new_) {
            d->cx->did = rules[r].name;
            d->cx->did_at = i->name;
            d->cx->finite |= rules[r].keeps == FINITE;
            pass_remark(d->cx, i, "%s: %s: %%%s is now %%%s", rules[r].name, rules[r].summary, i->name, new_->name);
            return new_;
        }
    }
    return NULL;
}

/* What says something of the value, whoever computes it. */
static void keep_annotations(Inst *to, const Inst *from)
{
    static const AttrId kept[] = {ATTR_SHARDING, ATTR_FRONTEND_ATTRIBUTES, ATTR_ORIGIN};
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
        const Attr *a = inst_attr(from, kept[k]);
        if (a && !inst_attr(to, kept[k]))
            inst_set_attr(to, *a);
    }
}

/* What the rule has made is its work. */
static void sign_made(Driver *d, int32_t before)
{
    const char *name = arena_printf(d->s.scratch, "algsimp: %s", d->cx->did);
    for (int32_t k = before; k < d->s.made.n; k++)
        inst_set_maker(d->s.made.v[k], name);
}

/* Applies one rule to i. Gives whether one fired. */
static bool simplify_one(Driver *d, Inst *i)
{
    if (!i->comp || !may_rewrite(i))
        return false;
    int32_t made = d->s.made.n;
    d->s.at = i;
    Inst *new_ = fire_first(d, OP_COUNT, i);
    if (!new_)
        new_ = fire_first(d, i->op, i);
    if (!new_)
        return false;
    if (d->s.made.n > made && new_ == d->s.made.v[d->s.made.n - 1])
        keep_annotations(new_, i);
    if (i->comp->module->maker)
        sign_made(d, made);
    inst_replace(i, new_);
    inst_delete_dead(i, d->s.scratch);
    d->left--;
    return true;
}

/* i, then whatever that makes. */
static int64_t simplify(Driver *d, Inst *i)
{
    int64_t fired = 0;
    d->s.made.n = 0;
    fired += simplify_one(d, i);
    for (int32_t k = 0; k < d->s.made.n && d->left > 0; k++)
        fired += simplify_one(d, d->s.made.v[k]);
    return fired;
}

static int64_t simplify_comp(Driver *d, Comp *c, int64_t most)
{
    int64_t total = 0;
    d->left = REWRITES_AT_LEAST + (int64_t)REWRITES_PER_INST * c->n_insts;
    d->left = d->left < most ? d->left : most;
    for (int sweep = 0; sweep < MAX_SWEEPS && d->left > 0; sweep++) {
        int64_t fired = 0;
        for (Inst *i = c->first, *next; i && d->left > 0; i = next) {
            next = i->next;
            fired += simplify(d, i);
        }
        total += fired;
        if (!fired)
            break;
    }
    if (d->left <= 0 && total < most)
        diag_warning(d->cx->diag, c->root->loc, "algsimp gave up on %%%s after %lld rewrites, the last by rule %s", c->name, (long long)total, d->cx->did);
    return total;
}

bool pass_algsimp(Module *m, PassCtx *cx)
{
    if (!check_names(cx))
        return false;
    Driver d = {.s = {.arena = m->arena, .scratch = cx->scratch, .rounds = loosest(cx) >= ROUNDS}, .cx = cx};
    choose_rules(&d, cx);
    comps_mark_uses(m);
    loops_note_counters(m, cx->scratch);
    for (Comp *c = m->first; c; c = c->next)
        if (!(c->mark & (COMP_FUSED | COMP_OPAQUE)))
            cx->rewrites += simplify_comp(&d, c, cx->limit - cx->rewrites);
    loops_forget_counters(m);
    return cx->rewrites > 0;
}
