/* Numbers of 16 bits that are only compared with known ones, and chosen among, stay as they are in memory: twice as many to a vector as floats. total_s16 makes an integer
 * of such a one that grows with it, so that those in a relation to c lie side by side, with NaN beyond the infinities at either end:
 *
 *     x <= c      total_s16(-infinity) <= total_s16(x) <= total_s16(c), but of 0 that of 0, and for >= of -0 */
#include "emit/lower.h"
#include "ir/numeric.h"

#include <math.h>

static bool is_half(Type t) { return t == TYPE_BF16 || t == TYPE_F16; }

/* x neither needs an operand's value nor makes one. */
static bool only_chooses(const Inst *x)
{
    switch (x->op) {
    case OP_PARAMETER: case OP_CONSTANT: case OP_BROADCAST: case OP_RESHAPE: case OP_BITCAST: case OP_TRANSPOSE: case OP_SLICE: case OP_REVERSE: case OP_COPY: case OP_TUPLE:
    case OP_SELECT: case OP_COMPARE: case OP_NEGATE: case OP_ABS: return true;
    default: return false;
    }
}

static bool is_of_halves(const Inst *x)
{
    bool halves = shape_is_array(x->shape) && is_half(x->shape->type);
    for (int32_t k = 0; k < x->n_operands; k++)
        halves |= shape_is_array(inst_operand(x, k)->shape) && is_half(inst_operand(x, k)->shape->type);
    return halves;
}

static bool are_only_chosen(const Lower *L)
{
    bool chosen = L->body != NULL && !L->plan->plain && !L->plan->device;
    for (const Inst *i = chosen ? L->body->first : NULL; i && chosen; i = i->next)
        chosen = only_chooses(i) || !is_of_halves(i);
    return chosen;
}

static const KExpr *between(Arena *a, const KExpr *x, int64_t least, int64_t most)
{
    return kx_binary(a, KOP_AND, TYPE_PRED, kx_binary(a, KOP_GE, TYPE_PRED, x, kx_int(a, TYPE_S16, least)), kx_binary(a, KOP_LE, TYPE_PRED, x, kx_int(a, TYPE_S16, most)));
}

static int64_t magnitude(Type t, double c) { return (int64_t)(float_encode(t, c) & 0x7fff); }
static int64_t total(Type t, double c) { return c < 0 ? -1 - magnitude(t, c) : magnitude(t, c); }

/* bits in a relation to c, which is no NaN. */
static const KExpr *compare_known(Arena *a, Word direction, Type t, const KExpr *bits, double c)
{
    const KExpr  *x = scalar_order_key(a, t, scalar_decode(a, t, bits)), *size = kx_binary(a, KOP_AND, TYPE_U16, bits, kx_int(a, TYPE_U16, 0x7fff));
    const int64_t most = total(t, HUGE_VAL), at = total(t, c), least_at = c == 0 ? -1 : at;
    const KOp     same = direction == CMP_EQ ? KOP_EQ : KOP_NE;
    switch (direction) {
    case CMP_LT: return between(a, x, -1 - most, least_at - 1);
    case CMP_LE: return between(a, x, -1 - most, at);
    case CMP_GT: return between(a, x, at + 1, most);
    case CMP_GE: return between(a, x, least_at, most);
    default: return kx_binary(a, same, TYPE_PRED, c == 0 ? size : bits, kx_int(a, TYPE_U16, c == 0 ? 0 : (int64_t)float_encode(t, c)));
    }
}

const KExpr *compare_chosen(const Lower *L, Word direction, Type t, const KExpr *x, const KExpr *y)
{
    const KExpr *bits = is_half(t) && are_only_chosen(L) ? scalar_encoded(L->arena, t, x) : NULL;
    if (!bits || x->kind == KX_FLOAT)
        return NULL;
    if (y->kind == KX_FLOAT)
        return y->f == y->f ? compare_known(L->arena, direction, t, bits, y->f) : NULL;
    if (y != x || (direction != CMP_EQ && direction != CMP_NE))
        return NULL;
    const KExpr *size = kx_binary(L->arena, KOP_AND, TYPE_U16, bits, kx_int(L->arena, TYPE_U16, 0x7fff));
    return kx_binary(L->arena, direction == CMP_EQ ? KOP_LE : KOP_GT, TYPE_PRED, size, kx_int(L->arena, TYPE_U16, magnitude(t, HUGE_VAL)));
}

/* Of a choice gcc would make one of int, in vectors of which there are none: it has a name. */
const KExpr *select_chosen(Lower *L, const Inst *x, const KExpr *const *args)
{
    const Type   t = x->shape->type;
    const bool   chosen = is_half(t) && are_only_chosen(L);
    const KExpr *on = chosen ? scalar_encoded(L->arena, t, args[1]) : NULL, *off = on ? scalar_encoded(L->arena, t, args[2]) : NULL;
    return off ? scalar_decode(L->arena, t, bind(L, kx_select(L->arena, args[0], on, off), x->name)) : NULL;
}
