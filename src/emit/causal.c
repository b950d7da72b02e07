/* What is known of each part, operands before their users. */
#include "config.h"

#include "emit/causal.h"

#include <math.h>

#include "passes/util.h"

/* exp(-800) is 0 in every type. */
#define FAR 800.0

/* What of a part is known: its elements behind, and those that are seen. */
typedef enum Known {
    UNKNOWN,
    SCORES,  /* nothing but numbers times the scores */
    ANY,     /* anything made of the scores, element by element */
    MASKED,  /* c behind */
    LARGEST, /* a number for each row, at least its largest element that is seen */
    SHIFTED, /* behind less than -FAR, or NaN in the whole row */
    ZERO,    /* zeros behind */
    SUM,     /* a number for each row, 1 at least */
    INVERSE, /* 1 divided by it */
    TERM     /* a number for each row, 0 at least, or NaN */
} Known;

typedef struct Finder {
    const Attention *a;
    Causal          *c;
    Known            known[ATTENTION_MOST];
    double           factor[ATTENTION_MOST]; /* of SCORES */
    double           most;                   /* the largest of them */
    bool             masked;
} Finder;

/* ---- masks ---- */

/* An index plus a number, or a number alone: dim -1. */
typedef struct Place {
    int32_t dim;
    int64_t plus;
} Place;

static bool is_index_type(Type t)
{
    return t == TYPE_S32 || t == TYPE_S64 || t == TYPE_U32 || t == TYPE_U64;
}

enum { MOST_PLUS = 1 << 30, MOST_STEPS = 64 };

static bool plus_constant(const Inst *x, int64_t *plus)
{
    const Literal *c = splat_value(x);
    if (!c || !is_index_type(c->type))
        return false;
    *plus = literal_get_s64(c, 0);
    return *plus > -MOST_PLUS && *plus < MOST_PLUS;
}

/* dim[d] is which dimension of the scores dimension d of x is; it becomes that of x's operand. */
static bool enter(const Inst *x, int32_t *dim)
{
    int32_t      of[ATTENTION_MOST_DIMS], where[ATTENTION_MOST_DIMS];
    const Shape *from = inst_operand(x, 0)->shape;
    Ints         dims = inst_ints(x, ATTR_DIMENSIONS);
    if (from->rank > ATTENTION_MOST_DIMS || (x->op == OP_RESHAPE && !shape_unit_dims(from, x->shape, where)))
        return false;
    for (int32_t d = 0; d < from->rank; d++) {
        if (x->op == OP_BROADCAST)
            of[d] = dim[dims.v[d]];
        else if (x->op == OP_RESHAPE)
            of[d] = where[d] < 0 ? -1 : dim[where[d]];
        else
            of[d] = dim[d];
    }
    for (int32_t d = 0; x->op == OP_TRANSPOSE && d < from->rank; d++)
        of[dims.v[d]] = dim[d];
    for (int32_t d = 0; d < from->rank; d++)
        dim[d] = of[d];
    return true;
}

static bool find_place(const Inst *x, const int32_t *dims, Place *p)
{
    int32_t dim[ATTENTION_MOST_DIMS];
    int64_t plus;
    *p = (Place){.dim = -1};
    for (int32_t d = 0; d < x->shape->rank; d++)
        dim[d] = dims[d];
    for (int32_t step = 0; step < MOST_STEPS && (is_index_type(x->shape->type)); step++) {
        if (plus_constant(x, &plus)) {
            p->plus += plus;
            return p->plus > -MOST_PLUS && p->plus < MOST_PLUS;
        }
        switch (x->op) {
        case OP_IOTA:
            p->dim = dim[inst_int(x, ATTR_IOTA_DIMENSION, 0)];
            return x->shape->dims[inst_int(x, ATTR_IOTA_DIMENSION, 0)] < MOST_PLUS && p->plus > -MOST_PLUS && p->plus < MOST_PLUS &&
                   (p->plus >= 0 || x->shape->type == TYPE_S32 || x->shape->type == TYPE_S64);
        case OP_ADD:
        case OP_SUBTRACT:
            if (!plus_constant(inst_operand(x, 1), &plus) || p->plus != 0)
                return false;
            p->plus = x->op == OP_ADD ? plus : -plus;
            break;
        case OP_CONVERT:
        case OP_COPY:
        case OP_BROADCAST:
        case OP_RESHAPE:
        case OP_TRANSPOSE:
            if (!enter(x, dim))
                return false;
            break;
        default: return false;
        }
        x = inst_operand(x, 0);
    }
    return false;
}

static Word turned(Word direction)
{
    switch (direction) {
    case CMP_LT: return CMP_GT;
    case CMP_LE: return CMP_GE;
    case CMP_GT: return CMP_LT;
    default: return CMP_LE;
    }
}

static Word opposite(Word direction)
{
    switch (direction) {
    case CMP_LT: return CMP_GE;
    case CMP_LE: return CMP_GT;
    case CMP_GT: return CMP_LE;
    default: return CMP_LT;
    }
}

/* The keys that a row i sees: from i - above to i + below, as far as there are such bounds. */
typedef struct Seen {
    int32_t row, key; /* -1: there is no bound yet */
    int64_t above, below;
    bool    has_above, has_below;
} Seen;

/* row + x seen from key + y on, or up to it */
static bool bound_by(const Finder *f, const Inst *compare, const int32_t *dim, bool seen, Seen *s)
{
    Place x, y;
    Word  direction = inst_word(compare, ATTR_DIRECTION);
    if (!find_place(inst_operand(compare, 0), dim, &x) || !find_place(inst_operand(compare, 1), dim, &y) || direction == CMP_EQ || direction == CMP_NE ||
        x.dim < 0 || y.dim < 0)
        return false;
    if (!seen)
        direction = opposite(direction);
    if (f->a->key[x.dim]) {
        Place other = x;
        x = y;
        y = other;
        direction = turned(direction);
    }
    if (f->a->key[x.dim] || !f->a->key[y.dim] || (s->row >= 0 && (s->row != x.dim || s->key != y.dim)))
        return false;
    bool    below = direction == CMP_GE || direction == CMP_GT;
    int64_t n = (below ? x.plus - y.plus : y.plus - x.plus) - (direction == CMP_GT || direction == CMP_LT);
    s->row = x.dim;
    s->key = y.dim;
    if (below)
        s->below = s->has_below && s->below < n ? s->below : n;
    else
        s->above = s->has_above && s->above < n ? s->above : n;
    s->has_below |= below;
    s->has_above |= !below;
    return true;
}

/* mask is true, or false unless `seen`, where a row sees a key: all of several masks are. dim changes. */
static bool find_seen(const Finder *f, const Inst *mask, int32_t *dim, bool seen, int depth, Seen *s)
{
    int32_t other[ATTENTION_MOST_DIMS];
    for (int32_t step = 0; step < MOST_STEPS && mask->op != OP_COMPARE && mask->op != (seen ? OP_AND : OP_OR); step++) {
        if (mask->op == OP_NOT)
            seen = !seen;
        else if (mask->op != OP_BROADCAST && mask->op != OP_RESHAPE && mask->op != OP_TRANSPOSE && mask->op != OP_COPY)
            return false;
        if (!enter(mask, dim))
            return false;
        mask = inst_operand(mask, 0);
    }
    if (mask->op == OP_COMPARE)
        return bound_by(f, mask, dim, seen, s);
    if (mask->op != (seen ? OP_AND : OP_OR) || depth == 0 || mask->shape->rank > ATTENTION_MOST_DIMS)
        return false;
    for (int32_t d = 0; d < mask->shape->rank; d++)
        other[d] = dim[d];
    return find_seen(f, inst_operand(mask, 0), dim, seen, depth - 1, s) && find_seen(f, inst_operand(mask, 1), other, seen, depth - 1, s);
}

/* Every row sees a key. */
static bool sees_any(const Finder *f, const Seen *s)
{
    const Shape *scores = f->a->scores->shape;
    return !s->has_above || (s->above + s->below >= 0 && scores->dims[s->row] - s->above <= scores->dims[s->key]);
}

/* A truth value for each element of what has such dimensions. */
typedef struct Mask {
    const Inst *x;
    int32_t     dim[ATTENTION_MOST_DIMS];
    bool        seen; /* what is true is */
} Mask;

/* All of them hold where a row sees a key. */
static bool find_masks(Finder *f, Mask *masks, int32_t n)
{
    enum { MOST_MASKS = 6 };
    Seen s = {.row = -1, .key = -1};
    for (int32_t k = 0; k < n; k++)
        if (!find_seen(f, masks[k].x, masks[k].dim, masks[k].seen, MOST_MASKS, &s))
            return false;
    if (!s.has_below || s.below < 0 || !sees_any(f, &s))
        return false;
    *f->c = (Causal){.row = s.row, .key = s.key, .below = s.below, .above = s.has_above ? s.above : INT64_MAX};
    return true;
}

/* ---- parts ---- */

static Known known_of(const Finder *f, const Inst *x)
{
    const AttentionPart *p = attention_part(f->a, x);
    return p ? f->known[p - f->a->parts] : UNKNOWN;
}

static double *factor_of(Finder *f, const Inst *x)
{
    return &f->factor[attention_part(f->a, x) - f->a->parts];
}

static double largest_of(Type t)
{
    switch (t) {
    case TYPE_F16: return 65504;
    case TYPE_BF16:
    case TYPE_F32: return 3e38;
    case TYPE_F64: return 1e308;
    default: return 0;
    }
}

static bool float_splat(const Inst *x, double *v)
{
    const Literal *c = splat_value(x);
    if (!c || !type_is_float(c->type))
        return false;
    *v = literal_get_f64(c, 0);
    return true;
}

/* The part is the scores times such a factor, and below the limit of its type. */
static Known scaled(Finder *f, const AttentionPart *p, double factor)
{
    *factor_of(f, p->x) = factor;
    f->most = fmax(f->most, factor);
    f->c->limit = fmin(f->c->limit, largest_of(p->x->shape->type) / 4);
    return SCORES;
}

/* The keys behind get c: of their own where the mask selects, beside the score where it is added. */
static Known mask_with(Finder *f, Mask *masks, int32_t n, double c, bool added, Known scores)
{
    double limit = f->c->limit;
    if (f->masked || !(c < 0) || !find_masks(f, masks, n))
        return UNKNOWN;
    f->masked = true;
    f->c->limit = limit;
    f->c->hidden = c;
    f->c->added = added;
    f->c->bounded = isinf(c) && !added;
    if (f->c->bounded)
        return MASKED;
    if (scores != SCORES)
        return added ? UNKNOWN : MASKED;
    f->c->factor = f->most;
    f->c->limit = fmin(limit, isinf(c) ? limit : (-c / 2 - FAR) / (added ? 2 : 1));
    f->c->bounded = f->c->limit > 0;
    return MASKED;
}

enum { MOST_ADDED = 4 };

static bool set_mask(Mask *m, const Inst *x, const Shape *of, const int32_t *dim, bool seen)
{
    *m = (Mask){.x = x, .seen = seen};
    for (int32_t d = 0; d < x->shape->rank; d++)
        m->dim[d] = dim[d];
    return x->shape->rank == of->rank;
}

static Known select_part(Finder *f, const AttentionPart *p)
{
    const Inst *of[] = {inst_operand(p->x, 1), inst_operand(p->x, 2)};
    Mask        mask;
    double      c;
    for (int k = 0; k < 2; k++) {
        Known x = known_of(f, of[k]);
        if ((x == SCORES || x == ANY) && !attention_part(f->a, inst_operand(p->x, 0)) && float_splat(of[1 - k], &c))
            return set_mask(&mask, inst_operand(p->x, 0), p->x->shape, p->dim, k == 0) ? mask_with(f, &mask, 1, c, false, x) : UNKNOWN;
    }
    return UNKNOWN;
}

/* Masks of x, a select of 0 and c or a sum of some, broadcast perhaps: where one of them hides, x is *c. n: how many there are already; -1: x is something else. */
static int32_t added_masks(const Inst *x, const int32_t *dims, int depth, double *c, Mask *masks, int32_t n)
{
    int32_t dim[ATTENTION_MOST_DIMS];
    double  zero, other;
    for (int32_t d = 0; d < x->shape->rank; d++)
        dim[d] = dims[d];
    for (int32_t step = 0; step < MOST_STEPS && x->op == OP_BROADCAST; step++) {
        if (!enter(x, dim))
            return -1;
        x = inst_operand(x, 0);
    }
    if (x->op == OP_ADD && depth > 0) {
        n = added_masks(inst_operand(x, 0), dim, depth - 1, c, masks, n);
        return n < 0 ? n : added_masks(inst_operand(x, 1), dim, depth - 1, c, masks, n);
    }
    for (int k = 0; k < 2 && x->op == OP_SELECT && n < MOST_ADDED; k++)
        if (float_splat(inst_operand(x, 1 + k), &zero) && zero == 0 && float_splat(inst_operand(x, 2 - k), &other) &&
            (n == 0 || (isinf(*c) && *c == other))) {
            *c = other;
            return set_mask(&masks[n], inst_operand(x, 0), x->shape, dim, k == 0) ? n + 1 : -1;
        }
    return -1;
}

/* f(scores) + such a mask. */
static Known add_part(Finder *f, const AttentionPart *p, const Inst *mask, Known x)
{
    Mask          masks[MOST_ADDED];
    double        c;
    const int32_t n = added_masks(mask, p->dim, MOST_ADDED, &c, masks, 0);
    return n > 0 ? mask_with(f, masks, n, c, true, x) : UNKNOWN;
}

static Known binary_part(Finder *f, const AttentionPart *p)
{
    const Inst *x = inst_operand(p->x, 0), *y = inst_operand(p->x, 1);
    Known       of_x = known_of(f, x), of_y = known_of(f, y);
    double      c;
    bool        scores = of_x == SCORES || of_x == ANY;
    switch (p->x->op) {
    case OP_MULTIPLY:
    case OP_DIVIDE:
        if (of_x == ZERO && of_y == (p->x->op == OP_DIVIDE ? SUM : INVERSE))
            return ZERO;
        if (p->x->op == OP_DIVIDE && of_y == SUM && float_splat(x, &c) && c == 1)
            return INVERSE;
        if (of_x == SCORES && float_splat(y, &c) && c != 0 && isfinite(c))
            return scaled(f, p, *factor_of(f, x) * (p->x->op == OP_DIVIDE ? 1 / fabs(c) : fabs(c)));
        break;
    case OP_MAXIMUM:
        if (of_x == LARGEST || of_y == LARGEST)
            return LARGEST;
        break;
    case OP_ADD:
        if ((of_x == SUM && of_y == TERM) || (of_x == TERM && of_y == SUM))
            return SUM;
        if (scores && of_y == UNKNOWN && !attention_part(f->a, y)) {
            Known sum = add_part(f, p, y, of_x);
            if (sum != UNKNOWN)
                return sum;
        }
        break;
    case OP_SUBTRACT:
        if (of_x == MASKED && of_y == LARGEST)
            return SHIFTED;
        break;
    default: break;
    }
    return (scores && (of_y == UNKNOWN || of_y == SCORES || of_y == ANY)) ? ANY : UNKNOWN;
}

static Known reduce_part(Finder *f, const AttentionPart *p)
{
    Known  x = known_of(f, inst_operand(p->x, 0));
    Op     op = comp_binary_op(inst_callee(p->x, 0));
    double first;
    if (x == MASKED && op == OP_MAXIMUM)
        return LARGEST;
    return x == ZERO && op == OP_ADD && float_splat(inst_operand(p->x, 1), &first) && first == 0 ? SUM : UNKNOWN;
}

static Known part(Finder *f, const AttentionPart *p)
{
    Known x = known_of(f, inst_operand(p->x, 0));
    switch (p->x->op) {
    case OP_REDUCE: return reduce_part(f, p);
    case OP_SELECT: return select_part(f, p);
    case OP_CONVERT:
        if (!type_is_float(p->x->shape->type))
            return UNKNOWN;
        break;
    case OP_NEGATE:
        if (x != SCORES)
            return x == ANY ? ANY : UNKNOWN;
        break;
    case OP_EXPONENTIAL: return x == SHIFTED ? ZERO : x == SCORES || x == ANY ? ANY : TERM;
    case OP_COPY:
    case OP_RESHAPE:
    case OP_TRANSPOSE:
    case OP_BROADCAST: break;
    default: return p->x->n_operands == 2 ? binary_part(f, p) : x == SCORES || x == ANY ? ANY : UNKNOWN;
    }
    return x == SCORES ? scaled(f, p, *factor_of(f, inst_operand(p->x, 0))) : x;
}

bool causal_find(const Attention *a, Causal *c)
{
    Finder f = {.a = a, .c = c};
    *c = (Causal){.limit = INFINITY};
    f.known[0] = scaled(&f, &a->parts[0], 1);
    for (int32_t k = 1; k < a->n; k++) {
        const bool masked = f.masked;
        f.known[k] = part(&f, &a->parts[k]);
        if (f.masked && !masked)
            c->masked = a->parts[k].x;
    }
    return f.known[a->n - 1] == ZERO;
}
