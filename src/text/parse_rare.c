/* Values of attributes that few instructions carry: sparsity, scaling, domains, statistics, accuracy, origins.
 * Source: reference text 5.4, 6.3, 6.4. */
#include "config.h"

#include <math.h>

#include "text/parse_int.h"

/* ---- sparsity_config, block_scaling_config ---- */

static const char *const side_words[] = {"lhs", "rhs"};

/* Which of the two sides; each at most once. -1 after reporting. */
static int side_number(Parser *p, const SideVec *v, int32_t k)
{
    for (int32_t j = 0; j < k; j++)
        if (v->v[j].name.s == v->v[k].name.s) {
            parse_error(p, v->v[k].name.loc, "'%s' is given twice", v->v[k].name.s);
            return -1;
        }
    return strcmp(v->v[k].name.s, side_words[0]) == 0 ? 0 : 1;
}

/* The one number of an entry. */
static int64_t pair_int(Parser *p, const Pair *x)
{
    if (x->value->n != 1)
        parse_error(p, x->key.loc, "'%s' takes one number, found %d", x->key.s, x->value->n);
    return x->value->v[0];
}

static bool pair_twice(Parser *p, const PairVec *v, int32_t k)
{
    for (int32_t j = 0; j < k; j++)
        if (v->v[j].key.s == v->v[k].key.s) {
            parse_error(p, v->v[k].key.loc, "'%s' is given twice", v->v[k].key.s);
            return true;
        }
    return false;
}

static void unknown_pair(Parser *p, const Pair *x, const char *wanted)
{
    parse_error(p, x->key.loc, "expected %s, found '%s'", wanted, x->key.s);
}

static SparsitySide sparsity_side(Parser *p, const PairVec *v)
{
    SparsitySide s = {.given = true};
    for (int32_t k = 0; v && k < v->n; k++) {
        const Pair *x = &v->v[k];
        if (pair_twice(p, v, k))
            continue;
        if (strcmp(x->key.s, "sparsity") == 0) {
            if (x->value->n != 2)
                parse_error(p, x->key.loc, "'sparsity' is written as 2x4: non-zero values, block size");
            else {
                s.nonzero = x->value->v[0];
                s.block = x->value->v[1];
            }
        } else if (strcmp(x->key.s, "dimension") == 0)
            s.dimension = pair_int(p, x);
        else if (strcmp(x->key.s, "stride") == 0)
            s.stride = pair_int(p, x);
        else if (strcmp(x->key.s, "idx") == 0)
            s.operand = pair_int(p, x);
        else
            unknown_pair(p, x, "sparsity, dimension, stride or idx");
    }
    return s;
}

void attr_sparsity(Parser *p, const char *name, Loc loc, Loc value_loc, const SideVec *v)
{
    Sparsity *x = ARENA_NEW(p->a, Sparsity);
    for (int32_t k = 0; v && k < v->n; k++) {
        int side = side_number(p, v, k);
        if (side >= 0)
            *(side ? &x->rhs : &x->lhs) = sparsity_side(p, v->v[k].items);
    }
    attr_add(p, name, ATTR_CLASS_SPARSITY, loc, value_loc)->value.sparsity = x;
}

static ScalingSide scaling_side(Parser *p, const PairVec *v)
{
    ScalingSide s = {.given = true};
    for (int32_t k = 0; v && k < v->n; k++) {
        const Pair *x = &v->v[k];
        if (pair_twice(p, v, k))
            continue;
        if (strcmp(x->key.s, "scale_idx") == 0) {
            s.has_scale = true;
            s.scale = pair_int(p, x);
        } else if (strcmp(x->key.s, "zero_idx") == 0) {
            s.has_zero = true;
            s.zero = pair_int(p, x);
        } else if (strcmp(x->key.s, "strides") == 0)
            s.strides = list_ints(p, x->value);
        else if (strcmp(x->key.s, "steps") == 0)
            s.steps = list_ints(p, x->value);
        else
            unknown_pair(p, x, "scale_idx, zero_idx, strides or steps");
    }
    return s;
}

void attr_scaling(Parser *p, const char *name, Loc loc, Loc value_loc, const SideVec *v)
{
    Scaling *x = ARENA_NEW(p->a, Scaling);
    for (int32_t k = 0; v && k < v->n; k++) {
        int side = side_number(p, v, k);
        if (side >= 0)
            *(side ? &x->rhs : &x->lhs) = scaling_side(p, v->v[k].items);
    }
    attr_add(p, name, ATTR_CLASS_SCALING, loc, value_loc)->value.scaling = x;
}

/* ---- domain ---- */

void domain_begin(Parser *p)
{
    p->domain = ARENA_NEW(p->tmp, DomainDraft);
}

void domain_kind(Parser *p, Loc loc, const char *v, Loc at)
{
    if (p->domain->kind)
        parse_error(p, loc, "'kind' is given twice");
    if (strcmp(v, "sharding") != 0)
        parse_error(p, at, "the kind of a domain is \"sharding\", found \"%s\"", v);
    p->domain->kind = true;
}

void domain_side(Parser *p, const char *key, Loc loc, const Sharding *s)
{
    const Sharding **at = strcmp(key, "entry") == 0 ? &p->domain->domain.entry : &p->domain->domain.exit;
    if (*at)
        parse_error(p, loc, "'%s' is given twice", key);
    *at = s;
}

void attr_domain(Parser *p, const char *name, Loc loc, Loc value_loc, const DomainDraft *v)
{
    if (!v->kind || !v->domain.entry || !v->domain.exit)
        parse_error(p, value_loc, "a domain needs kind, entry and exit");
    attr_add(p, name, ATTR_CLASS_DOMAIN, loc, value_loc)->value.domain = arena_copy(p->a, &v->domain, sizeof v->domain);
}

/* ---- statistics, accuracy ---- */

/* The first entry is the index of the statistic to show. */
void attr_statistics(Parser *p, const char *name, Loc loc, Loc value_loc, const StatVec *v)
{
    Statistics *x = ARENA_NEW(p->a, Statistics);
    int32_t     n = v && v->n ? v->n - 1 : 0;
    Statistic  *out = ARENA_ARRAY(p->a, Statistic, n);
    for (int32_t k = 0; k < n; k++) {
        const Stat *s = &v->v[k + 1];
        out[k] = (Statistic){s->key, s->number.kind == NUM_NAN ? NAN : number_value(s->number)};
    }
    *x = (Statistics){v && v->n ? v->v[0].number.i : 0, n, out};
    attr_add(p, name, ATTR_CLASS_STATISTICS, loc, value_loc)->value.statistics = x;
}

Accuracy *accuracy_new(Parser *p)
{
    Accuracy *x = ARENA_NEW(p->a, Accuracy);
    x->has_tolerance = true;
    return x;
}

static bool same_word(const char *s, const char *lower)
{
    for (; *s && *lower; s++, lower++)
        if ((*s >= 'A' && *s <= 'Z' ? *s - 'A' + 'a' : *s) != *lower)
            return false;
    return *s == *lower;
}

Accuracy *accuracy_mode(Parser *p, const char *key, Loc loc, const char *word, Loc at)
{
    Accuracy *x = ARENA_NEW(p->a, Accuracy);
    if (strcmp(key, "mode") != 0)
        parse_error(p, loc, "expected 'mode' or 'tolerance', found '%s'", key);
    else if (same_word(word, "highest"))
        x->highest = true;
    else if (!same_word(word, "default"))
        parse_error(p, at, "an accuracy mode is 'default' or 'highest', found '%s'", word);
    return x;
}

Accuracy *accuracy_number(Parser *p, Accuracy *x, const char *key, Number v, Loc at)
{
    double f = number_value(v);
    if (v.kind == NUM_DECIMAL && isinf(f))
        parse_error(p, at, "this number is out of range for f64");
    bool ulps = strcmp(key, "ulps") == 0; /* read as a float, too, and then truncated */
    if (!(f >= 0 || (ulps && f > -1)))
        parse_error(p, at, "a tolerance is 0 or more");
    else if (ulps && f >= 0x1p63)
        parse_error(p, at, "ulps is a 64-bit integer");
    else if (ulps)
        x->ulps = (int64_t)f;
    else if (strcmp(key, "atol") == 0)
        x->atol = f;
    else
        x->rtol = f;
    return x;
}

/* ---- origin ---- */

/* A tree under construction: a node is there once a leaf is in it or behind it. */
typedef struct Draft Draft;
struct Draft {
    bool        leaf;
    OriginArray array;
    VEC(Draft *) elems;
};

/* The node where the stream of brackets stands: at holds the element's number in each tuple that is open. */
static Draft *draft_here(Parser *p, Draft *d, const IntVec *at)
{
    for (int32_t k = 0; k < at->n; k++) {
        d->leaf = false;
        while (d->elems.n <= at->v[k])
            vec_push(p->tmp, &d->elems, ARENA_NEW(p->tmp, Draft));
        d = d->elems.v[at->v[k]];
    }
    return d;
}

static OriginNode draft_node(Parser *p, const Draft *d)
{
    if (d->leaf || d->elems.n == 0)
        return (OriginNode){.leaf = d->leaf, .array = d->array};
    OriginNode *v = ARENA_ARRAY(p->a, OriginNode, d->elems.n);
    for (int32_t k = 0; k < d->elems.n; k++)
        v[k] = draft_node(p, d->elems.v[k]);
    return (OriginNode){.n = d->elems.n, .elems = v};
}

/* XLA reads a stream of brackets: '(' goes down to element 0, ',' to the next element, ')' up again; a leaf is put where the stream
 * stands, and what was there before is lost. An empty name is none. False after reporting. */
static bool read_origin(Parser *p, const OriginVec *v, Draft *root, const char **call)
{
    IntVec            at = {0};
    const OriginItem *below = NULL; /* a ')' without '(', after which there is no place for a leaf */
    for (int32_t k = 0; v && k < v->n; k++) {
        const OriginItem *x = &v->v[k];
        switch (x->kind) {
        case ORIGIN_OPEN: vec_push(p->tmp, &at, 0); break;
        case ORIGIN_CLOSE:
            if (at.n == 0)
                below = x;
            else
                at.n--;
            break;
        case ORIGIN_COMMA:
            if (at.n)
                at.v[at.n - 1]++;
            break;
        case ORIGIN_LEAF: {
            if (below) {
                parse_error(p, below->loc, "')' without '(' in front of a leaf of an origin");
                return false;
            }
            bool named = x->array.known && x->array.name[0];
            *draft_here(p, root, &at) = (Draft){.leaf = true, .array = named ? x->array : (OriginArray){0}};
            break;
        }
        case ORIGIN_CALL:
        case ORIGIN_SYNTHETIC:
            if (*call) {
                parse_error(p, x->loc, "an origin has one call hierarchy");
                return false;
            }
            *call = x->kind == ORIGIN_CALL ? x->call : intern_str(p->strings, "");
            break;
        }
    }
    return true;
}

void attr_origin(Parser *p, const char *name, Loc loc, Loc value_loc, const OriginVec *v)
{
    Draft   root = {0};
    Origin *x = ARENA_NEW(p->a, Origin);
    if (read_origin(p, v, &root, &x->call))
        x->tree = draft_node(p, &root);
    attr_add(p, name, ATTR_CLASS_ORIGIN, loc, value_loc)->value.origin = x;
}
