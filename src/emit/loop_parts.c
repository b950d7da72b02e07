/* Compilers make vectors of 32 or of 16 elements of a loop; what is left of 60, 12, they compute one by one, exponentials too. As loops of their own that are not unrolled, 8 and 4 are vectors.
 * Where no result is an operand a vector that ends with the loop does, which makes some elements once more. */
#include "emit/loop_parts.h"

enum { HALF_VECTOR = LOOP_VECTOR / 2, LEAST_PART = 4, MOST_SHORT = 512, MANY_CHOICES = 4 };

typedef struct Look {
    const KStmt *loop;
    int32_t      choices;
    bool         dear, narrow, other, again; /* no vectors of 16 and fewer; what is stored is read, or may be */
} Look;

/* Vectors of 16 and fewer are made of such neighbours, or of one element for all. */
static bool is_in_vectors(const Look *l, const KArray *array, const Ix *at)
{
    const int64_t step = ix_has(at, l->loop->loop) ? ix_coef(at, l->loop->loop) : 0;
    return step == 0 ? !ix_has(at, l->loop->loop) : step == 1 && (type_bits(array->type) == 32 || type_bits(array->type) == 16);
}

static bool reads(const KBlock *b, const KArray *array)
{
    bool found = false;
    for (const KStmt *s = b->first; s && !found; s = s->next)
        found = s->value && kx_loads_from(s->value, array, NULL);
    return found;
}

static void look_at_expr(void *cookie, const KExpr *x)
{
    Look *l = cookie;
    l->choices += x->kind == KX_SELECT || x->kind == KX_CALL || (x->kind == KX_BINARY && x->op >= KOP_LT && x->op <= KOP_NE);
    l->dear |= kx_is_dear_call(x);
    l->narrow |= x->kind == KX_LOAD && type_bits(x->array->type) == 16;
    l->other |= x->kind == KX_LOAD && !is_in_vectors(l, x->array, x->index);
}

static void look_at_stmt(void *cookie, const KStmt *s)
{
    Look *l = cookie;
    l->other |= (s->kind != KS_DECLARE && s->kind != KS_STORE) || (s->kind == KS_STORE && (s->atomic || !is_in_vectors(l, s->array, s->index)));
    l->again |= s->kind == KS_STORE && (!s->array->restricted || reads(l->loop->body, s->array));
}

bool loop_in_parts(const KStmt *s, LoopParts *out)
{
    Look           l = { .loop = s };
    const KVisitor v = { look_at_expr, look_at_stmt, &l };
    const int64_t  n = s->loop->hi - s->loop->lo + 1;
    if (s->from || s->end || s->unrolled || s->in_turn || n > MOST_SHORT || n < LEAST_PART || n % LOOP_VECTOR == 0 || n == LEAST_PART || n == HALF_VECTOR)
        return false;
    kernel_visit(s->body, &v);
    *out = (LoopParts){ .n = n, .again = l.again };
    return !l.other && (l.dear || (!l.narrow && l.choices >= MANY_CHOICES)) && (n % LOOP_VECTOR >= LEAST_PART || !l.again);
}

int64_t loop_next_part(const LoopParts *l, int64_t left, int64_t *back)
{
    *back = 0;
    if (left >= LOOP_VECTOR)
        return left / LOOP_VECTOR * LOOP_VECTOR;
    for (int64_t part = LOOP_VECTOR; part >= LEAST_PART && !l->again; part /= 2)
        if (left <= part && (2 * left > part || part == LEAST_PART) && l->n >= part) {
            *back = part - left;
            return left;
        }
    return left >= HALF_VECTOR ? HALF_VECTOR : left >= LEAST_PART ? LEAST_PART : left;
}
