/* On a device, the place of the largest or smallest of many: pairs of parts, which blocks share, then of those.
 *
 *     r = (f32[], s32[]) reduce(x, iota, ...)   =>   p = (f32[64], s32[64]) reduce(reshape(x), reshape(iota), ...), dimensions={1};  r = reduce(p.0, p.1, ...), dimensions={0} */
#include "analysis/choice.h"

#include "emit/expand.h"
#include "emit/parts.h"
#include "passes/util.h"

/* The reduction that i is, or ends with. */
static const Inst *last_reduction(const Inst *i)
{
    const Inst *r = i->op == OP_FUSION && i->n_callees == 1 ? inst_callee(i, 0)->root : i;
    return r->op == OP_REDUCE ? r : NULL;
}

/* What lies side by side is not reduced. */
static bool goes_down_columns(const Inst *r)
{
    const Shape *in = inst_operand(r, 0)->shape;
    int32_t      d = in->rank - 1;
    while (d > 0 && in->dims[d] == 1)
        d--;
    return d >= 0 && !ints_has(inst_ints(r, ATTR_DIMENSIONS), d);
}

/* How many parts r's outermost reduced dimension is cut into, for so many blocks; 0: it is not. A block has 32 columns. */
static int64_t choice_parts(const Inst *r)
{
    enum { MOST_BLOCKS = 1024, LEAST_PART = 4096 /* elements */, FEW = 64 /* results */, LANES = 32, LEAST_COLUMN_PART = 128, FEW_COLUMNS = 4096 };
    const Shape *in = inst_operand(r, 0)->shape;
    if (r->n_operands != 4 || !layout_is_row_major(in) || !layout_is_row_major(inst_operand(r, 1)->shape) || shape_count(in) == 0)
        return 0;
    const Shape *out = r->shape->elems[0];
    const Comp  *by = inst_callee(r, 0);
    const bool   columns = goes_down_columns(r);
    if (shape_count(out) > (columns ? FEW_COLUMNS : FEW) || !layout_is_row_major(out) || !layout_is_row_major(r->shape->elems[1]) ||
        !(choice_is_extreme(by, OP_MAXIMUM, true) || choice_is_extreme(by, OP_MINIMUM, true)))
        return 0;
    const int32_t cut = reduction_cut_dim(r);
    const int64_t row = shape_count(in) / shape_count(out), blocks = columns ? (shape_count(out) + LANES - 1) / LANES : shape_count(out);
    for (int64_t p = MOST_BLOCKS / blocks; cut >= 0 && p >= REDUCTION_LEAST_PARTS; p--)
        if (in->dims[cut] % p == 0 && row / p >= (columns ? LEAST_COLUMN_PART : LEAST_PART))
            return p;
    return 0;
}

bool choice_expands(const Inst *i)
{
    const Inst *r = last_reduction(i);
    return r && choice_parts(r) > 0;
}

static Cutting cutting_of(const Inst *r)
{
    return (Cutting){ reduction_cut_dim(r), inst_operand(r, 0)->shape->rank, choice_parts(r) };
}

/* A pair for each part, in front of r. */
static Inst *pairs_before(Inst *r)
{
    const Cutting c = cutting_of(r);
    return reduction_of_parts(r, &c, (Inst *const[]){ inst_operand(r, 2), inst_operand(r, 3) });
}

void expand_choice(Inst *i)
{
    const Inst   *r = last_reduction(i);
    const Cutting c = cutting_of(r);
    Inst         *parts, *starts[2];
    if (i->op == OP_FUSION) {
        Comp *body = comp_clone(inst_callee(i, 0), inst_callee(i, 0)->name);
        body->root = pairs_before(body->root);
        parts = part_of_fusion(i, body);
        for (int32_t k = 0; k < 2; k++)
            starts[k] = start_outside(i, inst_operand(r, 2 + k));
    } else {
        parts = pairs_before(i);
        for (int32_t k = 0; k < 2; k++)
            starts[k] = inst_operand(i, 2 + k);
    }
    inst_replace(i, reduction_of_all(i, r, &c, 4, (Inst *const[]){ element_before(i, parts, 0), element_before(i, parts, 1), starts[0], starts[1] }));
    inst_delete(i);
}
