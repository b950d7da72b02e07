/* Which attention the runtime computes: softmax in f32, or rounded step by step, one dimension of keys, of terms and of a row of the result, in whatever order in memory. */
#include "emit/attention_call.h"

#include "emit/causal.h"
#include "emit/dot_call.h"
#include "emit/kernel.h"
#include "emit/view.h"
#include "passes/util.h"

#include <math.h>
#include <string.h>

enum { DIMS = ATTENTION_MOST_DIMS, MOST_STEPS = 64 };
_Static_assert((int)DIMS <= (int)VIEW_MOST_DIMS, "views of all operands");

/* Of few rows each member of the batch is one thread's; fewer of them than this are products, which are cut. */
enum { LEAST_MEMBERS = 8 };

static const struct {
    Type        in, out;
    const char *symbol;
} functions[] = {
    { TYPE_F32, TYPE_F32, "hlort_attention_f32" },
    { TYPE_BF16, TYPE_BF16, "hlort_attention_bf16" },
    { TYPE_BF16, TYPE_F32, "hlort_attention_bf16_f32" },
    { TYPE_F16, TYPE_F16, "hlort_attention_f16" },
    { TYPE_F16, TYPE_F32, "hlort_attention_f16_f32" },
};

typedef struct Finder {
    Attention      a;
    AttentionCall *c;
    const Inst    *x; /* what the softmax is of */
    Causal         causal;
    bool           masked; /* that is known */
    bool           rounded; /* every step of it is, to the type of the weights */
    bool           device;  /* it is for one */
    const Inst    *term, *with_term; /* NULL, or what a row's sum has e^ of as one more, and a part that has it as operand */
} Finder;

/* ---- the softmax ---- */

/* What x has the elements of, in another order. */
static const Inst *behind(const Inst *x)
{
    while (x->op == OP_COPY || x->op == OP_RESHAPE || x->op == OP_TRANSPOSE || x->op == OP_BITCAST)
        x = inst_operand(x, 0);
    return x;
}

/* The number for each row that x repeats. */
static const Inst *of_row(const Inst *x)
{
    x = behind(x);
    return x->op == OP_BROADCAST ? behind(inst_operand(x, 0)) : x;
}

static bool is_splat(const Inst *x, double v)
{
    const Literal *l = splat_value(x);
    return l && type_is_float(l->type) && literal_get_f64(l, 0) == v;
}

/* What x is, but for conversions between the type of the steps and f32. */
static const Inst *converted(const Inst *x, Type steps)
{
    while ((x = behind(x))->op == OP_CONVERT && (x->shape->type == TYPE_F32 || x->shape->type == steps) &&
           (inst_operand(x, 0)->shape->type == TYPE_F32 || inst_operand(x, 0)->shape->type == steps))
        x = inst_operand(x, 0);
    return x;
}

static bool is_reduction(const Inst *x, Op op, double first)
{
    return x->op == OP_REDUCE && x->n_operands == 2 && comp_binary_op(inst_callee(x, 0)) == op && is_splat(inst_operand(x, 1), first);
}

/* e and 1 / sum(e), as a quotient or a product. */
static bool is_quotient(const Inst *x, const Inst **e, const Inst **sum)
{
    if (x->op == OP_DIVIDE) {
        *e = behind(inst_operand(x, 0));
        *sum = of_row(inst_operand(x, 1));
        return true;
    }
    for (int32_t k = 0; k < 2 && x->op == OP_MULTIPLY; k++) {
        const Inst *inverse = of_row(inst_operand(x, k));
        *e = behind(inst_operand(x, 1 - k));
        if (inverse->op != OP_DIVIDE || !is_splat(inst_operand(inverse, 0), 1))
            continue;
        *sum = of_row(inst_operand(inverse, 1));
        return true;
    }
    return false;
}

/* x without sizes of 1 that came or went. */
static const Inst *row_value(const Inst *x)
{
    int32_t where[DIMS];
    while (x->op == OP_COPY || (x->op == OP_RESHAPE && x->shape->rank <= DIMS && inst_operand(x, 0)->shape->rank <= DIMS &&
                                shape_unit_dims(x->shape, inst_operand(x, 0)->shape, where)))
        x = inst_operand(x, 0);
    return x;
}

static bool finite_splat(const Inst *x, float *v)
{
    const Literal *l = splat_value(x);
    *v = l && type_is_float(l->type) ? (float)literal_get_f64(l, 0) : 0;
    return l && type_is_float(l->type) && isfinite(*v);
}

/* x is e^(t - most), for the same t that most is the maximum of, or any number where it is of none (other == NULL). */
static bool is_term(Finder *f, const Inst *x, const Inst *most, const Inst *other)
{
    hlort_attention *d = &f->c->d;
    if (x->op != OP_EXPONENTIAL || (f->rounded && x->shape->type != most->shape->type))
        return false;
    const Inst *off = row_value(inst_operand(x, 0)), *t = off->op == OP_SUBTRACT ? inst_operand(off, 0) : NULL;
    float       number, same;
    if ((off->op != OP_SUBTRACT && off->op != OP_NEGATE) || row_value(inst_operand(off, t != NULL)) != most || off->shape->type != most->shape->type)
        return false;
    d->term |= HLORT_TERM | (other ? 0 : HLORT_TERM_BESIDE);
    if (!t || finite_splat(t, &number)) {
        d->term_value = t ? number : 0;
        return !other || (finite_splat(other, &same) && same == d->term_value);
    }
    f->term = other;
    f->with_term = most;
    return other && row_value(t) == row_value(other);
}

/* The sum of e in a sum with a term: *sum becomes it. */
static bool find_term(Finder *f, const Inst **sum, const Inst *most, const Inst *other, Type steps)
{
    const Inst *all = *sum;
    for (int32_t k = 0; k < 2 && (all->shape->type == steps || all->shape->type == TYPE_F32); k++) {
        const Inst *term = row_value(inst_operand(all, k)), *others = row_value(inst_operand(all, 1 - k));
        if (!is_term(f, all->shape->type == steps ? term : converted(term, steps), most, other))
            continue;
        f->c->d.term |= f->rounded && (all->shape->type == steps || others->op == OP_CONVERT) ? HLORT_TERM_LAST : 0;
        *sum = others;
        return true;
    }
    return false;
}

/* All steps are in f32, or all are rounded to the type of the weights, but for the sum. */
static bool find_softmax(Finder *f, Type weights)
{
    const Inst *w = behind(f->a.parts[f->a.n - 1].x), *e, *sum;
    if (w->shape->type != weights)
        return false;
    if (w->op == OP_CONVERT)
        w = behind(inst_operand(w, 0));
    const Type steps = w->shape->type;
    f->rounded = steps != TYPE_F32;
    if ((f->rounded && (steps != weights || w->op != OP_DIVIDE)) || !is_quotient(w, &e, &sum) || e->op != OP_EXPONENTIAL || e->shape->type != steps)
        return false;
    const Inst *off = behind(inst_operand(e, 0)), *most = off->op == OP_SUBTRACT ? of_row(inst_operand(off, 1)) : off, *largest = most, *other = NULL;
    f->x = off->op == OP_SUBTRACT ? behind(inst_operand(off, 0)) : off;
    for (int32_t k = 0; most->op == OP_MAXIMUM && k < 2 && !other; k++)
        if (attention_part(&f->a, inst_operand(most, k)) && !attention_part(&f->a, inst_operand(most, 1 - k))) {
            largest = behind(inst_operand(most, k));
            other = inst_operand(most, 1 - k);
        }
    sum = converted(sum, steps);
    if (sum->op == OP_ADD ? !find_term(f, &sum, most, other, steps) : other != NULL)
        return false;
    sum = converted(sum, steps);
    if (!is_reduction(sum, OP_ADD, 0) || (sum->shape->type != TYPE_F32 && sum->shape->type != steps) || converted(inst_operand(sum, 0), steps) != e)
        return false;
    return is_reduction(largest, OP_MAXIMUM, -INFINITY) && behind(inst_operand(largest, 0)) == f->x && off->shape->type == steps && most->shape->type == steps &&
           f->x->shape->type == steps && (f->x == f->a.scores || attention_part(&f->a, f->x));
}

/* ---- what it is of ---- */

/* x is the scores times a number, which the call takes. */
static bool is_scaled(const Finder *f, const Inst *x, double *scale)
{
    *scale = 1;
    for (int32_t step = 0; step < MOST_STEPS && (x = behind(x)) != f->a.scores; step++) {
        const Literal *l = x->op == OP_MULTIPLY || x->op == OP_DIVIDE ? splat_value(inst_operand(x, 1)) : NULL;
        if (!l || l->type != TYPE_F32)
            return false;
        const double v = literal_get_f64(l, 0);
        *scale = x->op == OP_MULTIPLY ? *scale * v : *scale / v;
        x = inst_operand(x, 0);
    }
    return x == f->a.scores && *scale > 1e-30 && *scale < 1e30;
}

/* Which operand of the mask's instruction is made of the scores. */
static const Inst *seen_scores(const Finder *f)
{
    const Inst *x = f->causal.masked;
    for (int32_t k = 0; k < x->n_operands; k++)
        if (attention_part(&f->a, inst_operand(x, k)))
            return inst_operand(x, k);
    return NULL;
}

static bool is_plain(const Finder *f, double *scale)
{
    if (f->masked && behind(f->x) == f->causal.masked)
        return is_scaled(f, seen_scores(f), scale);
    return is_scaled(f, f->x, scale);
}

static void fill_mask(Finder *f, int32_t row)
{
    hlort_attention *d = &f->c->d;
    d->masked = 1;
    d->mask_row = row;
    d->beside_it = f->causal.added;
    d->above = f->causal.above < HLORT_MOST_KEYS ? f->causal.above : INT64_C(1) << 40;
    d->below = f->causal.below < HLORT_MOST_KEYS ? f->causal.below : HLORT_MOST_KEYS;
    d->hidden = f->causal.hidden < -3e38 ? -__builtin_inff() : (float)f->causal.hidden;
    d->bound = (float)f->causal.factor;
}

/* ---- sizes and distances ---- */

/* The one dimension of s with more than one element for which none of the others' is; -1: there is none, -2: several. */
static int32_t only(const Shape *s, const bool *taken)
{
    int32_t found = -1;
    for (int32_t d = 0; d < s->rank; d++)
        if (!taken[d] && s->dims[d] != 1)
            found = found == -1 ? d : -2;
    return found;
}

static void mark(bool *taken, Ints dims)
{
    for (int32_t k = 0; k < dims.n; k++)
        taken[dims.v[k]] = true;
}

/* The one dimension among some with more than one element. */
static int32_t only_of(const Shape *s, Ints dims)
{
    bool taken[DIMS];
    for (int32_t d = 0; d < s->rank; d++)
        taken[d] = !ints_has(dims, d);
    return only(s, taken);
}

static bool find_function(Finder *f)
{
    AttentionCall *c = f->c;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (functions[k].in == c->in && functions[k].out == c->out)
            c->symbol = functions[k].symbol;
    const Type scores = f->a.scores->shape->type; /* rounded to the operands' type, it is a function in the text that does so */
    return c->symbol && (scores == TYPE_F32 || scores == c->in) && c->of[1]->shape->type == c->in && c->of[2]->shape->type == c->in;
}

/* Fusion i's result is the second dot's, or has its elements; then of is where they are. Of operands that were widened it may be rounded to their type. */
static bool is_result(Finder *f, const Inst *i, Along *of)
{
    const Inst *root = inst_callee(i, 0)->root;
    if (f->c->widened && root->op == OP_CONVERT && root->shape->type == f->c->in && layout_equal(inst_operand(root, 0)->shape->layout, root->shape->layout, root->shape->rank)) {
        f->c->out = root->shape->type;
        root = inst_operand(root, 0);
        find_function(f);
    }
    return shape_is_array(i->shape) && root->shape->type == f->a.out->shape->type && view_in_root(f->a.out, root, of);
}

typedef struct Sides {
    const Shape   *shape[5]; /* q, k, v, t, the result of the second dot */
    Along          of[5][DIMS];
    const int32_t *q, *k;    /* dimensions of the scores in them */
    int32_t        t[DIMS];
    int32_t        key;      /* of the scores */
} Sides;

static int64_t step(const Sides *s, int32_t which, int32_t dim)
{
    return dim >= 0 ? s->of[which][dim].by : 0;
}

static int64_t members(const hlort_attention *d)
{
    int64_t n = 1;
    for (int64_t k = 0; k < d->n_batch; k++)
        n *= d->batch[k].count;
    return n;
}

static int64_t rows_of_member(const Finder *f, const Sides *s)
{
    int64_t n = 1;
    for (int32_t e = f->a.n_batch; e < f->a.scores->shape->rank; e++)
        n *= e == s->key ? 1 : f->a.scores->shape->dims[e];
    return n;
}

/* Heads that have keys and values in common are rows of one member, if they are the last of the batch, so that scores are numbered as before: then keys and
 * values are packed, or read, once. */
static bool fill_batch(Finder *f, const Sides *s, int32_t e)
{
    hlort_attention *d = &f->c->d;
    const int64_t    count = f->a.scores->shape->dims[e];
    const int32_t    at[5] = { s->q[e], s->k[e], f->a.v[e], s->t[e], f->a.result[e] };
    Along            of[5];
    int64_t          each = count;
    bool             last = true;
    for (int32_t which = 0; which < 5; which++) {
        of[which] = at[which] < 0 ? (Along){ count, 0, 0 } : s->of[which][at[which]];
        each = of[which].each < each ? of[which].each : each;
    }
    for (int32_t which = 0; which < 5; which++)
        if (of[which].each == count)
            of[which].far = of[which].by * each;
        else if (of[which].each != each)
            return false;
    for (int32_t b = e + 1; b < f->a.n_batch; b++)
        last &= f->a.scores->shape->dims[b] == 1;
    if (d->n_batch + 2 > HLORT_MOST_BATCHES)
        return false;
    if (each < count) {
        d->batch[d->n_batch].count = count / each;
        d->batch[d->n_batch].q = of[0].far;
        d->batch[d->n_batch].k = of[1].far;
        d->batch[d->n_batch].v = of[2].far;
        d->batch[d->n_batch].t = of[3].far;
        d->batch[d->n_batch++].o = of[4].far;
    }
    if (last && of[1].by == 0 && of[2].by == 0 && (f->device || members(d) >= LEAST_MEMBERS || each * rows_of_member(f, s) > HLORT_FEW_ROWS)) {
        d->row[0].count = each;
        d->row[0].q = of[0].by;
        d->row[0].t = of[3].by;
        d->row[0].o = of[4].by;
        d->n_rows = 1;
        d->rows = each;
        return true;
    }
    d->batch[d->n_batch].count = each;
    d->batch[d->n_batch].q = of[0].by;
    d->batch[d->n_batch].k = of[1].by;
    d->batch[d->n_batch].v = of[2].by;
    d->batch[d->n_batch].t = of[3].by;
    d->batch[d->n_batch++].o = of[4].by;
    return true;
}

/* Rows and the batch, in the order of the scores. */
static bool fill_dims(Finder *f, const Sides *s)
{
    const Shape     *scores = f->a.scores->shape;
    hlort_attention *d = &f->c->d;
    int32_t          row = -1;
    d->rows = 1;
    for (int32_t e = 0; e < scores->rank; e++) {
        const int64_t count = scores->dims[e];
        if ((count == 1 && !(f->masked && f->causal.row == e)) || e == s->key)
            continue;
        if (e < f->a.n_batch) {
            if (!fill_batch(f, s, e))
                return false;
            continue;
        }
        if (d->n_rows == HLORT_MOST_BATCHES)
            return false;
        if (f->masked && f->causal.row == e)
            row = (int32_t)d->n_rows;
        d->row[d->n_rows].count = count;
        d->row[d->n_rows].q = step(s, 0, s->q[e]);
        d->row[d->n_rows].t = step(s, 3, s->t[e]);
        d->row[d->n_rows++].o = step(s, 4, f->a.result[e]);
        d->rows *= count;
    }
    if (row >= 0)
        fill_mask(f, row);
    return true;
}

/* All dimensions but those of the batch are neighbours. */
static bool is_even(const Finder *f, const Sides *s)
{
    for (int32_t which = 0; which < 4; which++)
        for (int32_t d = 0; s->shape[which] && d < s->shape[which]->rank; d++) {
            bool of_batch = false;
            for (int32_t e = 0; e < f->a.n_batch; e++)
                of_batch |= d == (which == 0 ? s->q[e] : which == 1 ? s->k[e] : which == 2 ? f->a.v[e] : s->t[e]);
            if (!of_batch && s->of[which][d].each != s->shape[which]->dims[d])
                return false;
        }
    return true;
}

static int32_t key_of_scores(const Attention *a)
{
    bool taken[DIMS];
    for (int32_t e = 0; e < a->scores->shape->rank; e++)
        taken[e] = !a->key[e];
    return only(a->scores->shape, taken);
}

/* The second dot: keys and columns of v, columns of the result. */
static bool fill_values(Finder *f, const Sides *s)
{
    const Inst      *out = f->a.out;
    const bool       rhs = f->a.side == 1;
    hlort_attention *d = &f->c->d;
    Ints             sums = inst_ints(out, rhs ? ATTR_LHS_CONTRACTING_DIMS : ATTR_RHS_CONTRACTING_DIMS);
    bool             of_v[DIMS] = { false }, of_out[DIMS] = { false };
    mark(of_v, sums);
    mark(of_v, inst_ints(out, rhs ? ATTR_LHS_BATCH_DIMS : ATTR_RHS_BATCH_DIMS));
    for (int32_t e = 0; e < f->a.scores->shape->rank; e++)
        if (f->a.result[e] >= 0)
            of_out[f->a.result[e]] = true;
    const int32_t key = only_of(s->shape[2], sums), column = only(s->shape[2], of_v), to = only(s->shape[4], of_out);
    if (key < 0 || column == -2 || to == -2)
        return false;
    d->wide = column < 0 ? 1 : s->shape[2]->dims[column];
    d->v_row = s->of[2][key].by;
    d->v_col = column < 0 ? 1 : s->of[2][column].by;
    d->o_col = to < 0 ? 1 : s->of[4][to].by;
    return s->shape[2]->dims[key] == d->keys && d->wide == (to < 0 ? 1 : s->shape[4]->dims[to]) && d->wide <= HLORT_MOST_WIDE;
}

/* Which dimension of the term each of the scores is. */
static void place_term(const Finder *f, Sides *s)
{
    const AttentionPart *p = f->term ? attention_part(&f->a, f->with_term) : NULL;
    for (int32_t e = 0; e < DIMS; e++)
        s->t[e] = -1;
    for (int32_t d = 0; p && d < p->x->shape->rank; d++)
        if (p->dim[d] >= 0)
            s->t[p->dim[d]] = d;
    s->shape[3] = NULL;
}

static bool fill_sizes(Finder *f, Sides *s, bool keys_of_lhs)
{
    const Inst      *scores = f->a.scores;
    hlort_attention *d = &f->c->d;
    const int32_t    q = only_of(s->shape[0], inst_ints(scores, keys_of_lhs ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS));
    const int32_t    k = only_of(s->shape[1], inst_ints(scores, keys_of_lhs ? ATTR_LHS_CONTRACTING_DIMS : ATTR_RHS_CONTRACTING_DIMS));
    if (q == -2 || k == -2 || s->k[s->key] < 0)
        return false;
    d->keys = scores->shape->dims[s->key];
    d->head = q < 0 ? 1 : s->shape[0]->dims[q];
    d->q_col = q < 0 ? 1 : s->of[0][q].by;
    d->k_col = k < 0 ? 1 : s->of[1][k].by;
    d->k_row = s->of[1][s->k[s->key]].by;
    return d->keys <= HLORT_MOST_KEYS && d->head <= HLORT_MOST_HEAD && is_even(f, s) && fill_dims(f, s) && fill_values(f, s) &&
           (f->device || d->rows > HLORT_FEW_ROWS || (hlort_attention_few(d) && members(d) >= LEAST_MEMBERS));
}

/* ---- the call ---- */

static bool is_body(void *cookie, const Inst *i)
{
    (void)cookie;
    return i->op != OP_PARAMETER;
}

static bool find(const Inst *i, Attention *a)
{
    if (i->op != OP_FUSION || i->n_callees != 1)
        return false;
    for (const Inst *x = inst_callee(i, 0)->last; x; x = x->prev)
        if (x->op == OP_DOT && attention_find(x, is_body, NULL, a))
            return true;
    return false;
}

static bool can_be_changed(const Inst *i, const Finder *f)
{
    const Inst   *hero;
    Module       *m = module_new();
    Inst         *scores = attention_scores(m, i, &hero);
    Arena        *a = arena_new();
    const Kernel *k = !scores ? NULL : f->device ? kernel_lower_element(a, scores, hero, f->c->d.keys) : kernel_lower_tile(a, scores, hero, f->c->d.keys);
    const bool    can = k && kernel_tile_row(k) && kernel_tile_in_place(k) == 0;
    arena_free(a);
    module_free(m);
    return can;
}

static bool is_widened(const Inst *x, Type from)
{
    return x->op == OP_CONVERT && x->shape->type == TYPE_F32 && inst_operand(x, 0)->shape->type == from;
}

/* A device reads elements of 16 bits, and multiplies them as f32 anyway. */
static void find_widened(Finder *f)
{
    AttentionCall *c = f->c;
    const Type     from = c->of[0]->op == OP_CONVERT ? inst_operand(c->of[0], 0)->shape->type : TYPE_F32;
    c->widened = f->device && (from == TYPE_BF16 || from == TYPE_F16);
    for (int32_t k = 0; k < 3; k++)
        c->widened &= is_widened(c->of[k], from);
    for (int32_t k = 0; k < 3 && c->widened; k++)
        c->of[k] = inst_operand(c->of[k], 0);
}

static bool find_call(const Inst *i, const Shape *const *lie, bool device, AttentionCall *out)
{
    Finder f = { .c = out, .device = device };
    Sides  s;
    double scale = 1;
    *out = (AttentionCall){ 0 };
    if (!find(i, &f.a))
        return false;
    s.key = key_of_scores(&f.a);
    if (s.key < 0)
        return false;
    const bool keys_of_lhs = f.a.lhs[s.key] >= 0;
    out->of[0] = inst_operand(f.a.scores, keys_of_lhs);
    out->of[1] = inst_operand(f.a.scores, !keys_of_lhs);
    out->of[2] = inst_operand(f.a.out, 1 - f.a.side);
    find_widened(&f);
    out->in = out->of[0]->shape->type;
    out->out = f.a.out->shape->type;
    if (!find_function(&f) || !find_softmax(&f, out->widened ? TYPE_F32 : out->in))
        return false;
    f.masked = causal_find(&f.a, &f.causal) && f.causal.row >= f.a.n_batch && f.causal.key == s.key;
    out->plain = !f.rounded && f.a.scores->shape->type == TYPE_F32 && is_plain(&f, &scale);
    out->d.rounded = f.rounded;
    out->d.scale = out->plain ? (float)scale : 1;
    out->alone = true;
    s.q = keys_of_lhs ? f.a.rhs : f.a.lhs;
    s.k = keys_of_lhs ? f.a.lhs : f.a.rhs;
    out->of[3] = f.term;
    out->n = f.term ? 4 : 3;
    place_term(&f, &s);
    for (int32_t k = 0; k < out->n; k++) {
        s.shape[k] = out->of[k]->shape;
        if (view_of_param(out->of[k], lie ? lie[k] : NULL, s.of[k], &out->start[k], &out->of[k]))
            continue;
        view_of_shape(s.shape[k], s.of[k]);
        out->alone = false;
    }
    s.shape[4] = f.a.out->shape;
    view_of_shape(s.shape[4], s.of[4]);
    out->alone &= is_result(&f, i, s.of[4]);
    return fill_sizes(&f, &s, keys_of_lhs) && (out->plain || can_be_changed(i, &f));
}

bool attention_call(const Inst *i, const Shape *const *lie, AttentionCall *out)
{
    return find_call(i, lie, false, out);
}

bool attention_kernel(const Inst *i, const Shape *const *lie, AttentionCall *out)
{
    return find_call(i, lie, true, out) && out->alone;
}

bool attention_call_equal(const AttentionCall *x, const AttentionCall *y)
{
    const hlort_attention *a = &x->d, *b = &y->d;
    bool same = x->symbol == y->symbol && memcmp(x->start, y->start, sizeof x->start) == 0 && a->rows == b->rows && a->keys == b->keys && a->head == b->head && a->wide == b->wide && a->q_col == b->q_col &&
                a->k_row == b->k_row && a->k_col == b->k_col && a->v_row == b->v_row && a->v_col == b->v_col && a->o_col == b->o_col && a->n_rows == b->n_rows &&
                a->n_batch == b->n_batch && a->scale == b->scale && a->masked == b->masked && a->rounded == b->rounded && a->beside_it == b->beside_it && a->mask_row == b->mask_row &&
                a->above == b->above && a->below == b->below && a->hidden == b->hidden && a->bound == b->bound && a->term == b->term && a->term_value == b->term_value && x->n == y->n;
    for (int64_t k = 0; same && k < a->n_rows; k++)
        same = a->row[k].count == b->row[k].count && a->row[k].q == b->row[k].q && a->row[k].o == b->row[k].o && a->row[k].t == b->row[k].t;
    for (int64_t k = 0; same && k < a->n_batch; k++)
        same = a->batch[k].count == b->batch[k].count && a->batch[k].q == b->batch[k].q && a->batch[k].k == b->batch[k].k && a->batch[k].v == b->batch[k].v &&
               a->batch[k].o == b->batch[k].o && a->batch[k].t == b->batch[k].t;
    return same;
}

/* ---- the function ---- */

/* Dimensions of the scores in the order of the call: the batch, rows, keys. */
static void order_of_call(const Finder *f, int32_t *order)
{
    const int32_t rank = f->a.scores->shape->rank;
    int32_t       n = 0;
    const bool    keys_of_lhs = f->a.lhs[key_of_scores(&f->a)] >= 0;
    for (int32_t e = 0; e < f->a.n_batch; e++)
        order[n++] = e;
    for (int k = 0; k < 2; k++)
        for (int32_t e = f->a.n_batch; e < rank; e++)
            if ((f->a.lhs[e] >= 0) == (keys_of_lhs ? k == 1 : k == 0))
                order[n++] = e;
}

/* The scores in their order, made of a product that has them in that of the call. */
static Inst *product_of_call(Comp *c, const Finder *f, const int32_t *order, Inst *lhs, Inst *rhs, const Inst **hero)
{
    const Inst   *dot = f->a.scores;
    const Shape  *s = dot->shape;
    const int32_t rank = s->rank;
    int64_t       dims[DIMS], back[DIMS];
    bool          same = true;
    for (int32_t k = 0; k < rank; k++) {
        dims[k] = s->dims[order[k]];
        back[order[k]] = k;
        same &= order[k] == k;
    }
    Inst *y = inst_clone_into(c, NULL, dot, 2, same ? (Inst *[]){ lhs, rhs } : (Inst *[]){ rhs, lhs });
    *hero = y;
    y->shape = shape_array(c->module->arena, TYPE_F32, rank, dims);
    if (!same) {
        inst_set_ints(y, ATTR_LHS_BATCH_DIMS, inst_ints(dot, ATTR_RHS_BATCH_DIMS));
        inst_set_ints(y, ATTR_RHS_BATCH_DIMS, inst_ints(dot, ATTR_LHS_BATCH_DIMS));
        inst_set_ints(y, ATTR_LHS_CONTRACTING_DIMS, inst_ints(dot, ATTR_RHS_CONTRACTING_DIMS));
        inst_set_ints(y, ATTR_RHS_CONTRACTING_DIMS, inst_ints(dot, ATTR_LHS_CONTRACTING_DIMS));
    }
    if (s->type != TYPE_F32)
        y = inst_new(c, NULL, OP_CONVERT, shape_array(c->module->arena, s->type, rank, dims), 1, &y, NULL);
    if (same)
        return y;
    Inst *t = inst_new(c, NULL, OP_TRANSPOSE, shape_array(c->module->arena, s->type, rank, s->dims), 1, &y, NULL);
    inst_set_ints(t, ATTR_DIMENSIONS, (Ints){ back, rank });
    return t;
}

/* x, which has the dimensions of the scores, in that order; NULL: sizes of 1 come and go. */
static Inst *in_order(Comp *c, const Finder *f, const int32_t *order, Inst *x)
{
    const Shape         *scores = f->a.scores->shape;
    const AttentionPart *p = attention_part(&f->a, f->x);
    int64_t              from[DIMS], dims[DIMS];
    bool                 used[DIMS] = { false };
    if (p->x->shape->rank != scores->rank)
        return NULL;
    for (int32_t e = 0; e < scores->rank; e++) {
        from[e] = -1;
        dims[e] = scores->dims[order[e]];
        for (int32_t d = 0; d < scores->rank && from[e] < 0; d++)
            if (!used[d] && (dims[e] == 1 ? p->x->shape->dims[d] == 1 : p->dim[d] == order[e]))
                from[e] = d;
        if (from[e] < 0)
            return NULL;
        used[from[e]] = true;
    }
    if (x->shape->type != TYPE_F32)
        x = inst_new(c, NULL, OP_CONVERT, shape_array(c->module->arena, TYPE_F32, x->shape->rank, x->shape->dims), 1, &x, NULL);
    Inst *y = inst_new(c, NULL, OP_TRANSPOSE, shape_array(c->module->arena, TYPE_F32, scores->rank, dims), 1, &x, NULL);
    inst_set_ints(y, ATTR_DIMENSIONS, (Ints){ from, scores->rank });
    return y;
}

Inst *attention_scores(Module *m, const Inst *i, const Inst **hero)
{
    Finder         f;
    AttentionCall  c = { 0 };
    int32_t        order[DIMS];
    const Comp    *body = inst_callee(i, 0);
    Map            made = map_new(m->arena), needed = map_new(m->arena);
    Inst         **operands = ARENA_ARRAY(m->arena, Inst *, i->n_operands);
    f.c = &c;
    find(i, &f.a);
    find_softmax(&f, inst_operand(f.a.out, 1 - f.a.side)->shape->type);
    order_of_call(&f, order);
    Comp *in = comp_new(m, comp_unique_name(m, "scores")), *around = comp_new(m, comp_unique_name(m, "operands"));
    map_put(&needed, f.x, &f);
    for (const Inst *x = body->last; x; x = x->prev)
        for (int32_t o = 0; map_has(&needed, x) && o < x->n_operands; o++)
            map_put(&needed, inst_operand(x, o), &f);
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Shape *s = shape_copy(m->arena, comp_param(body, k)->shape);
        operands[k] = inst_parameter(around, NULL, k, s, NULL);
        map_put(&made, comp_param(body, k), inst_parameter(in, NULL, k, s, inst_unique_name(m, comp_param(body, k)->name)));
    }
    for (const Inst *x = body->first; x; x = x->next) {
        Inst **of = ARENA_ARRAY(m->arena, Inst *, x->n_operands);
        if (!map_has(&needed, x) || x->op == OP_PARAMETER)
            continue;
        if (x->n_callees > 0)
            return NULL;
        for (int32_t o = 0; o < x->n_operands; o++)
            of[o] = map_get(&made, inst_operand(x, o));
        map_put(&made, x, x == f.a.scores ? product_of_call(in, &f, order, of[0], of[1], hero) : inst_clone_into(in, NULL, x, x->n_operands, of));
    }
    in->root = in_order(in, &f, order, map_get(&made, f.x));
    if (!in->root)
        return NULL;
    Inst *g = inst_new(around, NULL, OP_FUSION, in->root->shape, i->n_operands, operands, inst_unique_name(m, i->name));
    inst_set_word(g, ATTR_FUSION_KIND, FUSION_OUTPUT);
    inst_set_callees(g, 1, &in);
    g->loc = i->loc;
    around->root = g;
    return g;
}
