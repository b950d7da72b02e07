/* From the parameter on, what each instruction of the fusion needs of it. */
#include "analysis/overwrite.h"

#include "analysis/memory.h"

typedef enum Need {
    NEED_NOTHING,
    NEED_PLACE, /* an element needs that of the same place in memory */
    NEED_ROW,   /* an element for each row: it needs that row */
    NEED_WITH_ROW, /* an element needs the row that it is in */
    NEED_MORE
} Need;

typedef struct Cone {
    Map          needs; /* of instructions of the fusion, by number + 1 */
    const Inst  *param;
    int64_t      rows; /* 0: there are none */
    bool         late; /* something is made in another way than element by element or row by row */
} Cone;

static Need need_of(const Cone *c, const Inst *i)
{
    return (Need)(intptr_t)map_get(&c->needs, i);
}

static bool is_row_major(const Shape *s)
{
    return shape_is_array(s) && layout_is_row_major(s);
}

/* The elements of the elementwise i lie as those of its operands do. */
static bool same_layouts(const Inst *i)
{
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Shape *x = inst_operand(i, k)->shape;
        if (shape_is_array(x) && shape_same_dims(x, i->shape) && !layout_equal(i->shape->layout, x->layout, x->rank))
            return false;
    }
    return true;
}

static Need need_of_operands(const Cone *c, const Inst *i)
{
    Need most = NEED_NOTHING;
    bool rows = false, elements = false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        Need n = need_of(c, inst_operand(i, k));
        rows |= n == NEED_ROW;
        elements |= n == NEED_PLACE || n == NEED_WITH_ROW;
        most = n > most ? n : most;
    }
    return rows && elements && c->rows != shape_count(c->param->shape) ? NEED_MORE : most;
}

/* The sum of what lies together, of all rows alike: loops over rows have them one after the other. */
static bool sums_rows(Cone *c, const Inst *i)
{
    const Shape *in = inst_operand(i, 0)->shape;
    Ints         dims = inst_ints(i, ATTR_DIMENSIONS);
    int64_t      rows = 1;
    bool         inner = false;
    for (int32_t k = 0; k < in->rank; k++) {
        bool reduced = ints_has(dims, k);
        if (in->dims[k] != 1 && inner && !reduced)
            return false;
        inner |= reduced && in->dims[k] != 1;
        rows *= reduced ? 1 : in->dims[k];
    }
    if (i->n_operands != 2 || !is_row_major(in) || !is_row_major(i->shape) || shape_count(in) != shape_count(c->param->shape) || (c->rows && c->rows != rows))
        return false;
    c->rows = rows;
    return true;
}

/* Each row's value for all elements of the row. */
static Need need_of_broadcast(const Cone *c, const Inst *i)
{
    const Shape *from = inst_operand(i, 0)->shape;
    Ints         dims = inst_ints(i, ATTR_DIMENSIONS);
    int64_t      last = -1, rows = 1;
    for (int32_t k = 0; k < dims.n; k++) {
        if (from->dims[k] == 1)
            continue;
        for (int64_t d = last + 1; d < dims.v[k]; d++)
            if (i->shape->dims[d] != 1)
                return NEED_MORE;
        if (dims.v[k] <= last)
            return NEED_MORE;
        last = dims.v[k];
        rows *= from->dims[k];
    }
    return rows == c->rows && is_row_major(i->shape) && is_row_major(from) && shape_count(i->shape) == shape_count(c->param->shape) ? NEED_WITH_ROW : NEED_MORE;
}

static Need find_need(Cone *c, const Inst *i)
{
    if (i == c->param)
        return NEED_PLACE;
    Need before = need_of_operands(c, i);
    switch (i->op) {
    case OP_DOT: case OP_CONVOLUTION: case OP_REDUCE_WINDOW: case OP_SELECT_AND_SCATTER: case OP_SORT: case OP_SCATTER: case OP_DYNAMIC_UPDATE_SLICE: case OP_SCAN:
        c->late = true;
        return NEED_MORE;
    case OP_TUPLE:
        return NEED_NOTHING;
    case OP_REDUCE:
        if (before == NEED_ROW || before == NEED_MORE || !sums_rows(c, i)) {
            c->late = true;
            return NEED_MORE;
        }
        return before == NEED_NOTHING ? before : NEED_ROW;
    case OP_BROADCAST:
        return before == NEED_NOTHING ? before : before == NEED_ROW ? need_of_broadcast(c, i) : NEED_MORE;
    case OP_RESHAPE: case OP_BITCAST:
        return shape_same_memory(inst_operand(i, 0)->shape, i->shape) ? before : NEED_MORE;
    default:
        return before == NEED_NOTHING || (op_has(i->op, F_ELEMENTWISE) && shape_is_array(i->shape) && same_layouts(i)) ? before : NEED_MORE;
    }
}

static bool has_place(const Cone *c, const Inst *root, const Inst *made)
{
    bool more = c->late;
    for (const Inst *i = root->comp->first; i && !more; i = i->next)
        more = need_of(c, i) == NEED_MORE;
    Need n = need_of(c, made);
    return !more && (n == NEED_WITH_ROW || (!c->rows && n == NEED_PLACE));
}

bool inst_may_overwrite(const Inst *i, int32_t result, int32_t k)
{
    const Shape *x = inst_operand(i, k)->shape;
    if (!shape_is_array(x) || shape_count(x) <= 0)
        return false;
    if (i->op != OP_FUSION)
        return op_has(i->op, F_ELEMENTWISE) && shape_is_array(i->shape) && x->type == i->shape->type && shape_same_dims(x, i->shape) && same_layouts(i);
    if (inst_word(i, ATTR_FUSION_KIND) == FUSION_CUSTOM)
        return false; /* a library's */
    const Inst *root = inst_callee(i, 0)->root, *made = root->op == OP_TUPLE ? root->operands[result].def : root;
    if (!shape_is_array(made->shape) || made->shape->type != x->type || shape_count(made->shape) != shape_count(x))
        return false;
    Arena *a = arena_new();
    Cone   c = { .needs = map_new(a), .param = comp_param(root->comp, k) };
    for (const Inst *j = root->comp->first; j; j = j->next) {
        Need n = find_need(&c, j);
        if (n != NEED_NOTHING)
            map_put(&c.needs, j, (void *)(intptr_t)n);
    }
    bool may = has_place(&c, root, made);
    arena_free(a);
    return may;
}
