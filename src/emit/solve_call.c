/* Which systems a triangular solve is: op(a) is a by other distances and, where it is turned, of the other triangle. */
#include "emit/solve_call.h"

enum { LEAST_ROWS = 16, LEAST = 8192 }; /* unknowns of a column, multiplications of a system: below that loops in the text are as good */

static bool call_in(Type t, const Inst *i, SolveCall *out)
{
    const Shape *a = inst_operand(i, 0)->shape, *b = i->shape;
    const bool   turned = inst_word(i, ATTR_TRANSPOSE_A) != TRANSPOSE_NO;
    hlort_solve *d = &out->d;
    *out = (SolveCall){ .symbol = t == TYPE_F32 ? "hlort_solve_f32" : "hlort_solve_f64", .type = t };
    if ((t != TYPE_F32 && t != TYPE_F64) || shape_count(b) == 0 || !layout_is_row_major(a) || !layout_is_row_major(b) ||
        !layout_is_row_major(inst_operand(i, 1)->shape))
        return false;
    d->right = !inst_bool(i, ATTR_LEFT_SIDE);
    d->unit = inst_bool(i, ATTR_UNIT_DIAGONAL);
    d->rows = a->dims[a->rank - 1];
    d->others = b->dims[b->rank - (d->right ? 2 : 1)];
    d->count = shape_count(b) / d->rows / d->others;
    d->t_row = turned ? 1 : d->rows;
    d->t_col = turned ? d->rows : 1;
    d->t_batch = d->rows * d->rows;
    /* of a lower triangle on the left the first row has one element, on the right the last column */
    d->backward = (inst_bool(i, ATTR_LOWER) != turned) == (d->right != 0);
    return d->rows >= LEAST_ROWS && (double)d->rows * (double)d->rows * (double)d->others / 2 >= LEAST;
}

bool solve_call(const Inst *i, SolveCall *out)
{
    return call_in(i->shape->type, i, out);
}

bool solve_widens(const Inst *i)
{
    SolveCall unused;
    return i->op == OP_TRIANGULAR_SOLVE && type_is_float(i->shape->type) && type_bits(i->shape->type) < 32 && call_in(TYPE_F32, i, &unused);
}

bool solve_call_equal(const SolveCall *x, const SolveCall *y)
{
    return x->symbol == y->symbol && x->d.count == y->d.count && x->d.rows == y->d.rows && x->d.others == y->d.others && x->d.right == y->d.right &&
           x->d.backward == y->d.backward && x->d.unit == y->d.unit && x->d.t_row == y->d.t_row;
}
