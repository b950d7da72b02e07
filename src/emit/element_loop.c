/* Says what each element of a loop's state is. A value of the body is `alike` when no element of the state has a part in it, else it is an element's:
 * elementwise, of the loop's shape up to sizes of 1. */
#include "emit/element_loop.h"

#include "analysis/cost.h"
#include "analysis/loops.h"

#include <string.h>

enum { MOST_RANK = 8, MOST_LEAVES = 64, MOST_INSTS = 1000, MOST_TRIPS = 1 << 20, MOST_STEPS = 6, LEAST_LINE = 16 };

typedef enum { OF_ALL = 1, OF_ELEMENT, OF_ROWS } Level; /* what a value depends on */

typedef struct Finder {
    const Inst  *w, *param;
    ElementLoop *loop;
    Map          level; /* Inst -> a Level */
    int64_t     *starts; /* scratch of where rows go */
} Finder;

static bool is_plain(const Shape *s)
{
    return shape_is_array(s) && s->rank <= MOST_RANK && layout_is_row_major(s) && !shape_is_dynamic(s) && shape_bytes(s) > 0;
}

int32_t element_loop_line(const Shape *s)
{
    int32_t d = s->rank - 1;
    while (d >= 0 && s->dims[d] == 1)
        d--;
    return d;
}

static bool is_leaf(const Finder *f, const Inst *x, int32_t k)
{
    return x->op == OP_GET_TUPLE_ELEMENT && inst_operand(x, 0) == f->param && inst_int(x, ATTR_INDEX, 0) == k;
}

static Level level_of(const Finder *f, const Inst *x)
{
    return (Level)(uintptr_t)map_get(&f->level, x);
}

/* ---- kinds of leaves ---- */

/* The element of the state begins as a constant and counts, within its type. */
static bool counts(const Finder *f, int32_t k, LoopLeaf *leaf)
{
    const Shape *s = f->param->shape->elems[k];
    int64_t      last;
    return s->rank == 0 && type_is_int(s->type) && type_bits(s->type) >= 32 && while_steps(f->w, k, &leaf->init, &leaf->step) &&
           !__builtin_mul_overflow(leaf->step, f->loop->trips, &last) && !__builtin_add_overflow(last, leaf->init, &last) && leaf->init >= INT32_MIN &&
           leaf->init <= INT32_MAX && last >= INT32_MIN && last <= INT32_MAX && (!type_is_unsigned_int(s->type) || (leaf->init >= 0 && last >= 0));
}

static bool sort_leaves(Finder *f)
{
    const Inst *root = while_body(f->w)->root;
    for (int32_t k = 0; k < root->n_operands; k++) {
        const Inst *x = inst_operand(root, k);
        LoopLeaf   *leaf = &f->loop->leaf[k];
        leaf->value = x;
        if (is_leaf(f, x, k))
            leaf->kind = LEAF_SAME;
        else if (counts(f, k, leaf))
            leaf->kind = LEAF_COUNT;
        else if (x->op == OP_DYNAMIC_UPDATE_SLICE && is_leaf(f, inst_operand(x, 0), k))
            leaf->kind = LEAF_ROWS;
        else if (x->shape->rank == 0)
            leaf->kind = LEAF_ALIKE;
        else {
            leaf->kind = LEAF_ELEMENTS;
            if (f->loop->shape && !shape_same_dims(f->loop->shape, x->shape))
                return false;
            f->loop->shape = x->shape;
        }
        f->loop->rows |= leaf->kind == LEAF_ROWS;
    }
    return f->loop->shape && shape_count(f->loop->shape) > 1;
}

/* ---- where rows go ---- */

/* A scalar of the body in trip t, of few operations on what counts; false: it is something else. */
static bool number_in_trip(const Finder *f, const Inst *x, int64_t t, int steps, int64_t *v)
{
    int64_t n[3];
    if (steps == 0 || x->shape->rank > 0 || (x->shape->type != TYPE_PRED && (!type_is_int(x->shape->type) || type_bits(x->shape->type) < 32)))
        return false;
    if (x->op == OP_CONSTANT) {
        *v = x->literal->elided ? 0 : literal_get_s64(x->literal, 0);
        return !x->literal->elided;
    }
    if (x->op == OP_GET_TUPLE_ELEMENT) {
        const LoopLeaf *leaf = inst_operand(x, 0) == f->param ? &f->loop->leaf[inst_int(x, ATTR_INDEX, 0)] : NULL;
        *v = leaf && leaf->kind == LEAF_COUNT ? leaf->init + leaf->step * t : 0;
        return leaf && leaf->kind == LEAF_COUNT;
    }
    for (int32_t k = 0; k < x->n_operands; k++)
        if (x->n_operands > 3 || !number_in_trip(f, inst_operand(x, k), t, steps - 1, &n[k]))
            return false;
    switch (x->op) {
    case OP_ADD: *v = n[0] + n[1]; break;
    case OP_SUBTRACT: *v = n[0] - n[1]; break;
    case OP_SELECT: *v = n[0] ? n[1] : n[2]; break;
    case OP_CONVERT: *v = n[0]; break;
    case OP_COMPARE:
        switch (inst_word(x, ATTR_DIRECTION)) {
        case CMP_LT: *v = n[0] < n[1]; break;
        case CMP_LE: *v = n[0] <= n[1]; break;
        case CMP_GT: *v = n[0] > n[1]; break;
        case CMP_GE: *v = n[0] >= n[1]; break;
        default: return false;
        }
        break;
    default: return false;
    }
    return *v >= (type_is_unsigned_int(x->shape->type) ? 0 : INT32_MIN) && *v <= INT32_MAX;
}

/* Which dimension the rows that u writes, or reads, of s are along; -1: they are no rows of the loop's shape. */
static int32_t row_dim(const Finder *f, const Shape *s, const int64_t *size, int32_t rank)
{
    int32_t along = -1, at = 0;
    for (int32_t d = 0; d < rank; d++) {
        while (at < f->loop->shape->rank && f->loop->shape->dims[at] == 1)
            at++;
        if (size[d] == 1) {
            if (s->dims[d] > 1 && along >= 0)
                return -1;
            along = s->dims[d] > 1 || along < 0 ? d : along;
        } else if (size[d] != s->dims[d] || at == f->loop->shape->rank || size[d] != f->loop->shape->dims[at++])
            return -1;
    }
    while (at < f->loop->shape->rank && f->loop->shape->dims[at] == 1)
        at++;
    return at == f->loop->shape->rank ? along : -1;
}

/* The rows along that dimension lie in one piece, or their elements at one distance from each other. */
static bool rows_are_lines(const int64_t *size, int32_t rank, int32_t along)
{
    bool before = false, behind = false;
    for (int32_t d = 0; d < rank; d++) {
        before |= d < along && size[d] > 1;
        behind |= d > along && size[d] > 1;
    }
    return !before || !behind;
}

/* As many trips as rows, each writes another one. */
static bool writes_all_rows(Finder *f, const Inst *u)
{
    const Shape *s = u->shape, *row = inst_operand(u, 1)->shape;
    int32_t      d = row_dim(f, s, row->dims, row->rank);
    if (d < 0 || s->dims[d] != f->loop->trips || u->n_operands != 2 + s->rank)
        return false;
    memset(f->starts, 0, (size_t)f->loop->trips * sizeof *f->starts);
    for (int64_t t = 0; t < f->loop->trips; t++) {
        int64_t at;
        if (!number_in_trip(f, inst_operand(u, 2 + d), t, MOST_STEPS, &at) || at < 0 || at >= f->loop->trips || f->starts[at]++)
            return false;
    }
    f->loop->flat &= rows_are_lines(row->dims, row->rank, d);
    return true;
}

/* ---- values ---- */

static bool has_loop_dims(const Finder *f, const Shape *s)
{
    return is_plain(s) && shape_unit_dims(s, f->loop->shape, NULL);
}

/* Of one operand, the same elements in the same order. */
static bool only_renames(const Inst *x)
{
    if (x->op == OP_BROADCAST) {
        Ints dims = inst_ints(x, ATTR_DIMENSIONS);
        for (int32_t k = 1; k < dims.n; k++)
            if (dims.v[k] <= dims.v[k - 1])
                return false;
    } else if (x->op != OP_RESHAPE && x->op != OP_COPY)
        return false;
    return shape_unit_dims(inst_operand(x, 0)->shape, x->shape, NULL);
}

static bool is_elementwise(const Inst *x)
{
    return op_has(x->op, F_ELEMENTWISE) && x->op != OP_MAP && !(x->op == OP_BITCAST_CONVERT && inst_operand(x, 0)->shape->rank != x->shape->rank);
}

/* An element's: others have no part in it. */
static bool fits_element(const Finder *f, const Inst *x)
{
    for (int32_t k = 0; k < x->n_operands; k++)
        if (inst_operand(x, k)->shape->rank > 0 && !has_loop_dims(f, inst_operand(x, k)->shape))
            return false;
    return has_loop_dims(f, x->shape) && (is_elementwise(x) || only_renames(x));
}

/* Expanded for each element in each trip: nothing that is computed may be repeated so. */
static bool repeats_little(const Inst *x)
{
    const Inst *from = inst_operand(x, 0);
    while (from->op == OP_RESHAPE || from->op == OP_BROADCAST || from->op == OP_DYNAMIC_SLICE || from->op == OP_SLICE || from->op == OP_TRANSPOSE || from->op == OP_CONVERT)
        from = inst_operand(from, 0);
    return from->shape->rank == 0 || from->op == OP_GET_TUPLE_ELEMENT || from->op == OP_CONSTANT || from->op == OP_IOTA;
}

/* Alike for all elements, or an element of what the loop does not change. */
static bool fits_alike(Finder *f, const Inst *x)
{
    const bool scalar = x->shape->rank == 0, same = has_loop_dims(f, x->shape);
    switch (x->op) {
    case OP_CONSTANT:
        f->loop->flat &= scalar || x->literal->elided || literal_all_equal_bits(x->literal);
        return !x->literal->elided;
    case OP_IOTA: f->loop->flat = false; return true;
    case OP_BROADCAST:
        f->loop->flat &= inst_operand(x, 0)->shape->rank == 0 || (same && only_renames(x));
        return repeats_little(x);
    case OP_RESHAPE: case OP_COPY:
        f->loop->flat &= scalar || shape_unit_dims(inst_operand(x, 0)->shape, x->shape, NULL);
        return true;
    case OP_DYNAMIC_SLICE: {
        const Shape *from = inst_operand(x, 0)->shape;
        f->loop->rows |= same;
        const int32_t along = row_dim(f, from, x->shape->dims, x->shape->rank);
        f->loop->flat &= scalar || (along >= 0 && rows_are_lines(x->shape->dims, x->shape->rank, along));
        return x->n_operands == 1 + from->rank;
    }
    case OP_SLICE: case OP_TRANSPOSE: case OP_REVERSE: f->loop->flat &= scalar; return true;
    default: f->loop->flat &= scalar || same; return is_elementwise(x);
    }
}

/* The element of the state is read by its own row's update alone. */
static bool is_written_alone(const Finder *f, int32_t k)
{
    const Inst *u = f->loop->leaf[k].value;
    return u->n_uses == 1 && inst_operand(u, 0)->n_uses == 1;
}

static bool sort_values(Finder *f)
{
    for (const Inst *x = while_body(f->w)->first; x; x = x->next) {
        Level level = OF_ALL;
        if (x == f->param || (x == while_body(f->w)->root && x->op == OP_TUPLE))
            continue;
        if (!is_plain(x->shape) || x->n_control || x->n_control_succs || inst_has_effect(x))
            return false;
        if (x->op == OP_GET_TUPLE_ELEMENT) {
            if (inst_operand(x, 0) != f->param)
                return false;
            LoopLeaf *leaf = &f->loop->leaf[inst_int(x, ATTR_INDEX, 0)];
            LeafKind  kind = leaf->kind;
            leaf->read = x;
            level = kind == LEAF_ELEMENTS ? OF_ELEMENT : kind == LEAF_ROWS ? OF_ROWS : OF_ALL;
        } else {
            for (int32_t k = 0; k < x->n_operands; k++)
                level = level_of(f, inst_operand(x, k)) > level ? level_of(f, inst_operand(x, k)) : level;
            if (level == OF_ROWS) {
                for (int32_t k = 2; k < x->n_operands; k++)
                    if (level_of(f, inst_operand(x, k)) != OF_ALL)
                        return false;
                if (x->op != OP_DYNAMIC_UPDATE_SLICE || level_of(f, inst_operand(x, 1)) == OF_ROWS)
                    return false;
            } else if (level == OF_ELEMENT ? !fits_element(f, x) : !fits_alike(f, x))
                return false;
        }
        f->loop->dear |= inst_is_dear(x) && op_has(x->op, F_ELEMENTWISE);
        map_put(&f->level, x, (void *)(uintptr_t)level);
    }
    return true;
}

/* Every leaf is made of what its kind may be made of. */
static bool leaves_fit(Finder *f)
{
    for (int32_t k = 0; k < f->param->shape->n_elems; k++) {
        const LoopLeaf *leaf = &f->loop->leaf[k];
        Level           level = level_of(f, leaf->value);
        if (leaf->kind == LEAF_ALIKE && level != OF_ALL)
            return false;
        if (leaf->kind == LEAF_ELEMENTS && level == OF_ROWS)
            return false;
        if (leaf->kind == LEAF_ROWS && (leaf->value->op != OP_DYNAMIC_UPDATE_SLICE || !is_written_alone(f, k) || !writes_all_rows(f, leaf->value)))
            return false;
    }
    return true;
}

/* ---- where rows begin ---- */

static bool has_number(const Finder *f, const Inst *x)
{
    for (int32_t k = 0; k < f->loop->numbers.n; k++)
        if (f->loop->numbers.v[k].x == x)
            return true;
    return false;
}

static void note_number(Arena *a, Finder *f, const Inst *x)
{
    LoopNumber number = {.x = x};
    int64_t    second;
    if (x->op == OP_CONSTANT || x->op == OP_GET_TUPLE_ELEMENT || has_number(f, x) || !number_in_trip(f, x, 0, MOST_STEPS, &number.init) ||
        !number_in_trip(f, x, 1, MOST_STEPS, &second))
        return;
    number.step = second - number.init;
    for (int64_t t = 2; t < f->loop->trips; t++) {
        int64_t v;
        if (!number_in_trip(f, x, t, MOST_STEPS, &v) || v != number.init + number.step * t)
            return;
    }
    vec_push(a, &f->loop->numbers, number);
}

static void note_numbers(Arena *a, Finder *f)
{
    for (const Inst *x = while_body(f->w)->first; x; x = x->next)
        for (int32_t k = x->op == OP_DYNAMIC_SLICE ? 1 : 2; (x->op == OP_DYNAMIC_SLICE || x->op == OP_DYNAMIC_UPDATE_SLICE) && k < x->n_operands; k++)
            note_number(a, f, inst_operand(x, k));
}

bool element_loop_find(Arena *a, const Inst *w, ElementLoop *out)
{
    const Comp *body = while_body(w);
    const Shape *s = w->shape;
    LoopCount   count;
    if (!shape_is_tuple(s) || s->n_elems > MOST_LEAVES || body->root->op != OP_TUPLE || body->root->n_operands != s->n_elems || body->n_insts > MOST_INSTS ||
        !while_counted(w, &count) || count.trips < 2 || count.trips > MOST_TRIPS)
        return false;
    for (int32_t k = 0; k < s->n_elems; k++)
        if (!is_plain(s->elems[k]) || !shape_same_dims(s->elems[k], inst_operand(body->root, k)->shape))
            return false;
    *out = (ElementLoop){.trips = count.trips, .flat = true, .leaf = ARENA_ARRAY(a, LoopLeaf, s->n_elems)};
    Finder f = {w, comp_param(body, 0), out, map_new(a), ARENA_ARRAY(a, int64_t, count.trips)};
    if (!sort_leaves(&f) || !sort_values(&f) || !leaves_fit(&f))
        return false;
    note_numbers(a, &f);
    return out->flat || out->shape->dims[element_loop_line(out->shape)] >= LEAST_LINE;
}
