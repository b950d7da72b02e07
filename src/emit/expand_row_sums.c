/* Sums over rows, or along them, of what is made of the rows' own sums.
 *
 * A sum over what short rows have (a cross-entropy of ten classes) is one of numbers in memory, so that the rows may go beside each other (beside.h):
 *
 *     s = fusion(x): sum(f(sum(x, {1})))             =>   r = fusion(x): f(sum(x, {1}));  s = sum(r)                         x: f32[4096,10]
 *
 * On a device, where lower.c does that of all rows, a sum over rows and along them of what is made of the rows' own sums (a cross-entropy of probabilities) is made one of
 * numbers of each row before, and a sum of short rows' sums is one sum. */
#include "emit/expand.h"

#include "analysis/behind.h"
#include "analysis/cost.h"
#include "emit/lower.h"
#include "emit/parts.h"
#include "passes/util.h"

/* ---- sums of what short rows have ---- */

/* x is made of short rows alone, one element of each. */
static bool is_of_short_rows(Arena *a, const Inst *x)
{
    Behind b = behind_of(a, x, NULL);
    bool   dear = false, any = false;
    for (const Inst *i; !dear && (i = behind_next(&b));)
        dear = inst_is_dear(i) && shape_is_array(i->shape) && shape_count(i->shape) > shape_count(x->shape);
    b = behind_of(a, x, NULL);
    for (const Inst *i; (i = behind_next(&b));) {
        if (i->op != OP_REDUCE)
            continue;
        if (i->n_operands != 2 || shape_count(i->shape) != shape_count(x->shape) || !reduces_short_rows(i, dear))
            return false;
        any = true;
    }
    return any;
}

/* What a sum to one number in i's body is of, where that is of short rows; NULL: nothing. */
static const Inst *summed_rows(const Inst *i)
{
    const Comp *body = i->op == OP_FUSION && i->n_callees == 1 ? inst_callee(i, 0) : NULL;
    const Inst *found = NULL;
    Arena      *a = arena_new();
    for (const Inst *r = body ? body->first : NULL; r && !found; r = r->next)
        if (r->op == OP_REDUCE && r->n_operands == 2 && shape_count(r->shape) == 1 && is_of_short_rows(a, inst_operand(r, 0)))
            found = inst_operand(r, 0);
    arena_free(a);
    return found;
}

bool row_sums_expand(const Inst *i)
{
    return summed_rows(i) != NULL;
}

void expand_row_sums(Inst *i)
{
    for (const Inst *x; (x = summed_rows(i));) {
        Comp *whole = inst_callee(i, 0), *body = comp_clone(whole, whole->name);
        Inst *copy = body->first;
        for (const Inst *y = whole->first; y != x; y = y->next)
            copy = copy->next;
        body->root = copy;
        Inst *rows = part_of_fusion(i, body);
        i = output_replace(i, 1, &x, &rows);
    }
    if (reduce_expands(i))
        expand_reduction(i);
}

/* ---- on a device: sums over rows, and along them, of what is made of the rows' own sums ---- */

/* How many rows are reduced for x, one value each, if more than r has results; 0. */
static int64_t rows_behind(Arena *a, const Inst *x, const Inst *r)
{
    Behind  b = behind_of(a, x, NULL);
    int64_t rows = 0;
    for (const Inst *i; (i = behind_next(&b));)
        if (i->op == OP_REDUCE && i->n_operands == 2 && shape_count(i->shape) > shape_count(r->shape) && shape_count(i->shape) > rows)
            rows = shape_count(i->shape);
    return rows;
}

bool rows_are_for_threads(int64_t rows, int64_t elements)
{
    enum { LONG_ROW = 16, SHORT_ROW = 2, LARGE = 8192 };
    return elements >= LONG_ROW * rows || (elements >= SHORT_ROW * rows && elements >= LARGE);
}

/* The first dimension of a row of what r reduces, where r reduces rows and others; the rank: there is none. */
static int32_t row_of_sum(Arena *a, const Inst *r)
{
    const Inst   *x = inst_operand(r, 0);
    const Shape  *in = x->shape;
    const Ints    dims = inst_ints(r, ATTR_DIMENSIONS);
    const int64_t rows = r->n_operands == 2 && reduction_has_parts(r) && layout_is_row_major(in) && layout_is_row_major(r->shape) && shape_count(in) > 0 ? rows_behind(a, x, r) : 0;
    int64_t       row = 1;
    int32_t       d = in->rank;
    if (rows < 2 || shape_count(in) % rows != 0 || !rows_are_for_threads(rows, shape_count(in)))
        return in->rank;
    while (d > 0 && row < shape_count(in) / rows && ints_has(dims, d - 1))
        row *= in->dims[--d];
    return row == shape_count(in) / rows && shape_count(r->shape) < rows ? d : in->rank;
}

/* r adds up what another sum makes of short rows of what nothing is reduced for: all of that is one sum, whose elements lie side by side. */
static bool is_sum_of_sums(Arena *a, const Inst *r)
{
    enum { SHORT_ROW = 16 };
    if (r->op != OP_REDUCE || r->n_operands != 2 || inst_operand(r, 0)->op != OP_REDUCE || !reduction_has_parts(r) || comp_binary_op(inst_callee(r, 0)) != OP_ADD)
        return false;
    const Inst   *rows = inst_operand(r, 0), *x = inst_operand(rows, 0), *start = inst_operand(rows, 1);
    const Ints    dims = inst_ints(rows, ATTR_DIMENSIONS);
    const int64_t count = rows->n_operands == 2 ? shape_count(rows->shape) : 0;
    if (count == 0 || rows->n_uses != 1 || rows->shape->type != r->shape->type || x->shape->type != r->shape->type || comp_binary_op(inst_callee(rows, 0)) != OP_ADD ||
        start->op != OP_CONSTANT || literal_get_f64(start->literal, 0) != 0 || shape_count(x->shape) / count >= SHORT_ROW || !layout_is_row_major(x->shape) ||
        !layout_is_row_major(rows->shape))
        return false;
    for (int32_t d = x->shape->rank - dims.n; d < x->shape->rank; d++)
        if (!ints_has(dims, d))
            return false;
    return rows_behind(a, x, r) == 0;
}

static void sum_at_once(Inst *r)
{
    Arena        *a = r->comp->module->arena;
    Inst         *rows = inst_operand(r, 0);
    const Ints    over = inst_ints(r, ATTR_DIMENSIONS);
    const int32_t rank = inst_operand(rows, 0)->shape->rank;
    int64_t      *all = ARENA_ARRAY(a, int64_t, rank);
    int32_t       n = 0;
    Comp         *by = inst_callee(r, 0);
    for (int32_t d = 0; d < rank; d++)
        if (d >= rows->shape->rank || ints_has(over, d))
            all[n++] = d;
    Inst *sum = inst_new(r->comp, r, OP_REDUCE, r->shape, 2, (Inst *const[]){ inst_operand(rows, 0), inst_operand(r, 1) }, NULL);
    inst_set_ints(sum, ATTR_DIMENSIONS, (Ints){ .v = all, .n = n });
    inst_set_callees(sum, 1, &by);
    sum->meta = r->meta;
    sum->loc = r->loc;
    inst_replace(r, sum);
    inst_delete(r);
    inst_delete(rows);
}

static Inst *sum_of_sums(const Comp *body)
{
    Inst  *found = NULL;
    Arena *a = arena_new();
    for (Inst *r = body->first; r && !found; r = r->next)
        if (is_sum_of_sums(a, r))
            found = r;
    arena_free(a);
    return found;
}

static Inst *sum_over_rows(const Comp *body)
{
    Inst  *found = NULL;
    Arena *a = arena_new();
    for (Inst *r = body->first; r && !found; r = r->next)
        if (r->op == OP_REDUCE && row_of_sum(a, r) < inst_operand(r, 0)->shape->rank)
            found = r;
    arena_free(a);
    return found;
}

bool sum_over_rows_expands(const Inst *i)
{
    return i->n_callees == 1 && (sum_of_sums(inst_callee(i, 0)) || sum_over_rows(inst_callee(i, 0)));
}

/* r as sums of each row, in front of it, and their sum. */
static void sum_rows_first(Inst *r)
{
    Arena        *a = r->comp->module->arena;
    const Shape  *in = inst_operand(r, 0)->shape;
    const Ints    dims = inst_ints(r, ATTR_DIMENSIONS);
    const int32_t first = row_of_sum(a, r);
    int64_t      *along = ARENA_ARRAY(a, int64_t, in->rank), *over = ARENA_ARRAY(a, int64_t, dims.n);
    int32_t       n_over = 0;
    for (int32_t d = first; d < in->rank; d++)
        along[d - first] = d;
    for (int32_t k = 0; k < dims.n; k++)
        if (dims.v[k] < first)
            over[n_over++] = dims.v[k];
    Comp *by = inst_callee(r, 0);
    Inst *row = inst_new(r->comp, r, OP_REDUCE, shape_array(a, in->type, first, in->dims), 2, (Inst *const[]){ inst_operand(r, 0), reduction_start_of_part(r) }, NULL);
    Inst *all = inst_new(r->comp, r, OP_REDUCE, r->shape, 2, (Inst *const[]){ row, inst_operand(r, 1) }, NULL);
    inst_set_ints(row, ATTR_DIMENSIONS, (Ints){ .v = along, .n = in->rank - first });
    inst_set_ints(all, ATTR_DIMENSIONS, (Ints){ .v = over, .n = n_over });
    inst_set_callees(row, 1, &by);
    inst_set_callees(all, 1, &by);
    row->meta = all->meta = r->meta;
    row->loc = all->loc = r->loc;
    inst_replace(r, all);
    inst_delete(r);
}

void expand_sum_over_rows(Inst *i)
{
    Comp *body = comp_clone(inst_callee(i, 0), inst_callee(i, 0)->name);
    for (Inst *r; (r = sum_of_sums(body));)
        sum_at_once(r);
    for (Inst *r; (r = sum_over_rows(body));)
        sum_rows_first(r);
    inst_set_callees(i, 1, &body);
}
