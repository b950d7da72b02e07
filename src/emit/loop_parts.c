/* Compilers make vectors of 32 or of 16 elements of a loop; what is left of 60, 12, they compute one by one, exponentials too. As loops of their own that are not unrolled, 8 and 4 are vectors.
 * Where no result is an operand a vector that ends with the loop does, which makes some elements once more. Beside bytes, of masks as well, vectors are of 64 and what is left of those is more. */
#include "emit/loop_parts.h"

#include <string.h>

enum {
    VECTOR = 16, WIDE_VECTOR = 8, BYTE_VECTOR = 64, /* elements; those of 64 bits; of which some have 8 */
    LEAST_PART = 4, MOST_SHORT = 512, MOST_BESIDE_BYTES = 4096, MANY_CHOICES = 4,
    LEAST_LEFT = 6, LEAST_NARROW = 3 /* of what is cheap, elements behind vectors and half ones, of 16 bits behind vectors, that take as long as one more */
};

typedef struct Look {
    const KStmt *loop;
    int32_t      choices;
    bool         dear, bytes, narrow, wide, other; /* no vectors of 16 and fewer */
} Look;

static void look_at_array(Look *l, const KArray *array, const Ix *at)
{
    const int32_t bits = type_bits(array->type);
    l->bytes |= bits <= 8;
    l->narrow |= bits == 16;
    l->wide |= bits == 64;
    l->other |= !ix_is_line(at, l->loop->loop) || bits > 64 || type_is_complex(array->type);
}

static bool divides_integers(const KExpr *x)
{
    const bool call = x->kind == KX_CALL && (strncmp(x->fn, "div_", 4) == 0 || strncmp(x->fn, "rem_", 4) == 0);
    return (call || (x->kind == KX_BINARY && (x->op == KOP_DIV || x->op == KOP_REM))) && !type_is_float(x->type);
}

static void look_at_expr(void *cookie, const KExpr *x)
{
    Look *l = cookie;
    l->choices += x->kind == KX_SELECT || x->kind == KX_CALL || (x->kind == KX_BINARY && x->op >= KOP_LT && x->op <= KOP_NE);
    l->dear |= kx_is_dear_call(x);
    l->other |= divides_integers(x);
    if (x->kind == KX_LOAD)
        look_at_array(l, x->array, x->index);
}

static void look_at_stmt(void *cookie, const KStmt *s)
{
    Look *l = cookie;
    l->other |= (s->kind != KS_DECLARE && s->kind != KS_STORE) || (s->kind == KS_STORE && (s->atomic || s->past || ix_coef(s->index, l->loop->loop) != 1));
    if (s->kind == KS_STORE)
        look_at_array(l, s->array, s->index);
}

static bool is_much_left(const Look *l, int64_t n)
{
    return l->narrow ? n % VECTOR >= LEAST_NARROW : !l->wide && n % (VECTOR / 2) >= LEAST_LEFT;
}

/* What takes long is worth parts: 94 elements beside a mask are 64 and, two of them again, 32. Parts of 16 are not: floats beside them are in vectors of four. */
static bool beside_bytes(const KStmt *s, const Look *l, LoopParts *out)
{
    enum { HALF = BYTE_VECTOR / 2 };
    const int64_t n = s->loop->hi - s->loop->lo + 1;
    *out = (LoopParts){ .n = n, .vector = BYTE_VECTOR, .least = VECTOR, .again = !kernel_loop_may_repeat(s) };
    if (l->other || l->narrow || l->wide || !(l->dear || l->choices >= MANY_CHOICES))
        return false;
    return n > HALF && (n % HALF > VECTOR || (n > BYTE_VECTOR && n % BYTE_VECTOR > HALF));
}

bool loop_in_parts(const KStmt *s, LoopParts *out)
{
    Look           l = { .loop = s };
    const KVisitor v = { look_at_expr, look_at_stmt, &l };
    const int64_t  n = s->loop->hi - s->loop->lo + 1;
    if (s->from || s->end || s->unrolled || s->in_turn || n > MOST_BESIDE_BYTES || n <= LEAST_PART)
        return false;
    kernel_visit(s->body, &v);
    if (l.bytes)
        return beside_bytes(s, &l, out);
    const int64_t vector = l.wide ? WIDE_VECTOR : VECTOR;
    const bool    again = !kernel_loop_may_repeat(s);
    *out = (LoopParts){ .n = n, .vector = vector, .least = l.wide || l.narrow ? WIDE_VECTOR : LEAST_PART, .again = again };
    if (l.other || n > MOST_SHORT || n % vector == 0 || n == VECTOR / 2 || (l.wide && (again || n < vector)))
        return false;
    if (l.dear || (!l.narrow && !l.wide && l.choices >= MANY_CHOICES))
        return n % vector >= LEAST_PART || !again;
    return !again && s->loop->depth > 1 && n > VECTOR / 2 && is_much_left(&l, n);
}

int64_t loop_next_part(const LoopParts *l, int64_t left, int64_t *back)
{
    *back = 0;
    if (left >= l->vector)
        return left / l->vector * l->vector;
    for (int64_t part = l->vector; part >= l->least && !l->again; part /= 2)
        if (left <= part && (2 * left > part || part == l->least) && l->n >= part) {
            *back = part - left;
            return left;
        }
    for (int64_t part = l->vector / 2; part >= VECTOR; part /= 2)
        if (left >= part)
            return part;
    return left >= VECTOR / 2 ? VECTOR / 2 : left >= LEAST_PART ? LEAST_PART : left;
}
