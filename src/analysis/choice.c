/* Reducers that choose one of two pairs of a value and a number, as argmax does:
 *
 *   better = a > b | (a == b & i < j);  (better ? a : b, better ? i : j)
 *
 * May the pairs be taken in any order, and any of them more than once? Where a body is made of comparisons of values, comparisons of numbers, logic and selects,
 * what it gives depends on how its arguments are ordered and on nothing else: it is tried with all orders of three pairs. */
#include "analysis/choice.h"

enum { MOST_STEPS = 24, LEVELS = 3, NAN_LEVEL = 3, PAIRS = LEVELS * (LEVELS + 1) };

typedef struct ChoiceStep {
    Op      op;
    Word    direction;
    int32_t arg[3];
} ChoiceStep;

typedef struct Chooser {
    int32_t    n, root[2];
    ChoiceStep step[MOST_STEPS];
} Chooser;

/* Levels: 0 .. 2 in order, and that of NaN. */
typedef struct Pair { int value, number; } Pair;

static bool compares(Word direction, int a, int b)
{
    bool ordered = a != NAN_LEVEL && b != NAN_LEVEL;
    switch (direction) {
    case CMP_EQ: return ordered && a == b;
    case CMP_NE: return !ordered || a != b;
    case CMP_GE: return ordered && a >= b;
    case CMP_GT: return ordered && a > b;
    case CMP_LE: return ordered && a <= b;
    default: return ordered && a < b;
    }
}

static Pair chosen(const Chooser *x, Pair a, Pair b)
{
    int v[MOST_STEPS];
    const int params[] = { a.value, a.number, b.value, b.number };
    for (int32_t k = 0; k < x->n; k++) {
        const ChoiceStep *s = &x->step[k];
        switch (s->op) {
        case OP_PARAMETER: v[k] = params[s->arg[0]]; break;
        case OP_COMPARE: v[k] = compares(s->direction, v[s->arg[0]], v[s->arg[1]]); break;
        case OP_AND: v[k] = v[s->arg[0]] && v[s->arg[1]]; break;
        case OP_OR: v[k] = v[s->arg[0]] || v[s->arg[1]]; break;
        case OP_NOT: v[k] = !v[s->arg[0]]; break;
        default: v[k] = v[s->arg[0]] ? v[s->arg[1]] : v[s->arg[2]]; break;
        }
    }
    return (Pair){ v[x->root[0]], v[x->root[1]] };
}

/* What a step's result is: a value (0), a number (1), a truth (2); -1: it is no step of a choice. */
static int kind_of(const Inst *i, const int *kind, const int32_t *arg)
{
    const int a = i->op == OP_PARAMETER ? (int)(i->param % 2) : kind[arg[0]], b = i->n_operands > 1 ? kind[arg[1]] : a;
    switch (i->op) {
    case OP_PARAMETER: return a;
    case OP_COMPARE: return a == b && a != 2 && (a == 1 || !type_is_float(inst_operand(i, 0)->shape->type) || !compare_is_total(i)) ? 2 : -1;
    case OP_AND: case OP_OR: case OP_NOT: return a == 2 && b == 2 ? 2 : -1;
    case OP_SELECT: return a == 2 && b == kind[arg[2]] ? b : -1;
    default: return -1;
    }
}

static bool chooser(const Comp *c, Chooser *x)
{
    const Inst *made[MOST_STEPS];
    int         kind[MOST_STEPS];
    *x = (Chooser){ 0 };
    if (c->n_params != 4 || c->root->op != OP_TUPLE || c->root->n_operands != 2)
        return false;
    for (const Inst *i = c->first; i; i = i->next) {
        ChoiceStep *s = &x->step[x->n];
        if (i == c->root)
            continue;
        if (x->n == MOST_STEPS || i->n_operands > 3)
            return false;
        for (int32_t k = 0; k < i->n_operands; k++) {
            s->arg[k] = 0;
            while (s->arg[k] < x->n && made[s->arg[k]] != inst_operand(i, k))
                s->arg[k]++;
            if (s->arg[k] == x->n)
                return false;
        }
        kind[x->n] = kind_of(i, kind, s->arg);
        if (kind[x->n] < 0)
            return false;
        s->op = i->op;
        s->direction = i->op == OP_COMPARE ? inst_word(i, ATTR_DIRECTION) : CMP_EQ;
        s->arg[0] = i->op == OP_PARAMETER ? (int32_t)i->param : s->arg[0];
        made[x->n++] = i;
    }
    for (int32_t k = 0; k < 2; k++) {
        while (x->root[k] < x->n && made[x->root[k]] != inst_operand(c->root, k))
            x->root[k]++;
        if (x->root[k] == x->n || kind[x->root[k]] != k)
            return false;
    }
    return true;
}

static bool same(Pair a, Pair b)
{
    return a.value == b.value && a.number == b.number;
}

/* x(a, a) = a, x(a, b) = x(b, a), x(x(a, b), c) = x(a, x(b, c)) for the first n pairs; those with NaN are the last ones. */
static bool is_free(const Chooser *x, int n)
{
    Pair p[PAIRS];
    for (int k = 0; k < PAIRS; k++)
        p[k] = (Pair){ k / LEVELS, k % LEVELS };
    for (int a = 0; a < n; a++) {
        if (!same(chosen(x, p[a], p[a]), p[a]))
            return false;
        for (int b = 0; b < n; b++) {
            Pair ab = chosen(x, p[a], p[b]);
            if (!same(ab, chosen(x, p[b], p[a])))
                return false;
            for (int c = 0; c < n; c++)
                if (!same(chosen(x, ab, p[c]), chosen(x, p[a], chosen(x, p[b], p[c]))))
                    return false;
        }
    }
    return true;
}

/* Of every two pairs the one with the larger value is chosen, or the smaller; NaN is beyond all others. lowest: of equal values, the one with the lower number. */
bool choice_is_extreme(const Comp *c, Op op, bool lowest)
{
    Chooser x;
    if ((op != OP_MAXIMUM && op != OP_MINIMUM) || !chooser(c, &x))
        return false;
    int n = type_is_float(c->params[0]->shape->type) ? PAIRS : LEVELS * LEVELS;
    for (int k = 0; k < n * n; k++) {
        Pair a = { k / n / LEVELS, k / n % LEVELS }, b = { k % n / LEVELS, k % n % LEVELS }, got = chosen(&x, a, b);
        bool nan = a.value == NAN_LEVEL || b.value == NAN_LEVEL, first = op == OP_MAXIMUM ? a.value > b.value : a.value < b.value;
        if (got.value != (nan ? NAN_LEVEL : first ? a.value : b.value))
            return false;
        if (lowest && !nan && a.value == b.value && got.number != (a.number < b.number ? a.number : b.number))
            return false;
        if (lowest && !nan && a.value != b.value && got.number != (first ? a.number : b.number))
            return false;
    }
    return true;
}

Choice choice_of(const Comp *c)
{
    Chooser x;
    if (!chooser(c, &x) || !is_free(&x, LEVELS * LEVELS))
        return CHOICE_NONE;
    return !type_is_float(c->params[0]->shape->type) || is_free(&x, PAIRS) ? CHOICE_FREE : CHOICE_OF_NUMBERS;
}
