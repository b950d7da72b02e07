/* scan(inputs.., carries..) becomes a while whose state is (t, inputs.., outputs.., carries..):
 *
 *   condition:  t < length
 *   body:       at = t, or length - 1 - t when reversed
 *               (y.., carries'..) = call(to_apply, slices of the inputs at `at`.., carries..)
 *               (t + 1, inputs.., outputs with y at `at`.., carries'..)
 *
 * The state's inputs pass through unchanged and outputs are updated in place, so a step costs its slices. Source: reference
 * operations 8.3. */
#include "emit/expand.h"

typedef struct Scan {
    Inst         *inst;
    Arena        *arena;
    int32_t       dim, inputs, outputs, carries, state; /* counts; state includes t */
    int64_t       length;
    const Shape **shapes; /* of the state */
} Scan;

static const Shape *result_shape(const Inst *i, int32_t k)
{
    return shape_is_tuple(i->shape) ? i->shape->elems[k] : i->shape;
}

static Inst *element(Comp *c, Inst *tuple, int32_t k)
{
    Inst *e = inst_new(c, NULL, OP_GET_TUPLE_ELEMENT, tuple->shape->elems[k], 1, &tuple, NULL);
    inst_set_int(e, ATTR_INDEX, k);
    return e;
}

static Inst *number(Comp *c, Inst *before, int64_t v)
{
    return inst_constant(c, before, literal_from_s64(TYPE_S64, v), NULL);
}

/* The slice of whole at place `at` of the dimension, which it keeps with size 1. */
static const Shape *slice_shape(Scan *s, const Shape *whole)
{
    int64_t *dims = arena_copy(s->arena, whole->dims, (size_t)whole->rank * sizeof *dims);
    dims[s->dim] = 1;
    return shape_array(s->arena, whole->type, whole->rank, dims);
}

/* whole, then one start per dimension: `at` along the scanned one, 0 else. */
static int32_t with_starts(Scan *s, Inst **operands, int32_t n, int32_t rank, Inst *at, Inst *zero)
{
    for (int32_t k = 0; k < rank; k++)
        operands[n++] = k == s->dim ? at : zero;
    return n;
}

static Inst *take(Scan *s, Comp *c, Inst *whole, const Shape *part, Inst *at, Inst *zero)
{
    Inst       **operands = ARENA_ARRAY(s->arena, Inst *, whole->shape->rank + 1);
    const Shape *slice = slice_shape(s, whole->shape);
    operands[0] = whole;
    int32_t n = with_starts(s, operands, 1, whole->shape->rank, at, zero);
    Inst   *cut = inst_new(c, NULL, OP_DYNAMIC_SLICE, slice, n, operands, NULL);
    inst_set_ints(cut, ATTR_DYNAMIC_SLICE_SIZES, (Ints){slice->dims, slice->rank});
    return inst_new(c, NULL, OP_RESHAPE, part, 1, &cut, NULL);
}

static Inst *put(Scan *s, Comp *c, Inst *whole, Inst *part, Inst *at, Inst *zero)
{
    Inst **operands = ARENA_ARRAY(s->arena, Inst *, whole->shape->rank + 2);
    operands[0] = whole;
    operands[1] = inst_new(c, NULL, OP_RESHAPE, slice_shape(s, whole->shape), 1, &part, NULL);
    int32_t n = with_starts(s, operands, 2, whole->shape->rank, at, zero);
    return inst_new(c, NULL, OP_DYNAMIC_UPDATE_SLICE, whole->shape, n, operands, NULL);
}

static Comp *new_comp(Scan *s, const char *name)
{
    Module *m = s->inst->comp->module;
    Comp   *c = comp_new(m, comp_unique_name(m, name));
    comp_move_before(c, s->inst->comp);
    return c;
}

static Comp *make_condition(Scan *s, const Shape *state)
{
    Comp *c = new_comp(s, "scan_condition");
    Inst *p = inst_parameter(c, NULL, 0, state, NULL);
    Inst *operands[] = {element(c, p, 0), number(c, NULL, s->length)};
    c->root = inst_new(c, NULL, OP_COMPARE, shape_scalar(s->arena, TYPE_PRED), 2, operands, NULL);
    inst_set_word(c->root, ATTR_DIRECTION, CMP_LT);
    return c;
}

static Comp *make_body(Scan *s, const Shape *state)
{
    Comp        *c = new_comp(s, "scan_body"), *step = s->inst->callees[0];
    const Shape *index = shape_scalar(s->arena, TYPE_S64);
    Inst        *p = inst_parameter(c, NULL, 0, state, NULL);
    Inst       **now = ARENA_ARRAY(s->arena, Inst *, s->state), **args = ARENA_ARRAY(s->arena, Inst *, s->inputs + s->carries);
    for (int32_t k = 0; k < s->state; k++)
        now[k] = element(c, p, k);
    Inst *zero = number(c, NULL, 0), *at = now[0];
    if (inst_bool(s->inst, ATTR_IS_REVERSE))
        at = inst_new(c, NULL, OP_SUBTRACT, index, 2, (Inst *[]){number(c, NULL, s->length - 1), now[0]}, NULL);
    for (int32_t k = 0; k < s->inputs; k++)
        args[k] = take(s, c, now[1 + k], comp_param(step, k)->shape, at, zero);
    for (int32_t k = 0; k < s->carries; k++)
        args[s->inputs + k] = now[1 + s->inputs + s->outputs + k];
    Inst *made = inst_new(c, NULL, OP_CALL, step->root->shape, s->inputs + s->carries, args, NULL);
    inst_set_callees(made, 1, &step);
    made->meta = s->inst->meta;
    made->loc = s->inst->loc;
    now[0] = inst_new(c, NULL, OP_ADD, index, 2, (Inst *[]){now[0], number(c, NULL, 1)}, NULL);
    for (int32_t k = 0; k < s->outputs + s->carries; k++) {
        Inst   *y = shape_is_tuple(made->shape) ? element(c, made, k) : made;
        int32_t slot = 1 + s->inputs + k;
        now[slot] = k < s->outputs ? put(s, c, now[slot], y, at, zero) : y;
    }
    c->root = inst_new(c, NULL, OP_TUPLE, state, s->state, now, NULL);
    return c;
}

/* Zeros: where a scan of nothing writes nothing. */
static Inst *blank(Scan *s, const Shape *shape)
{
    Inst *zero = inst_constant(s->inst->comp, s->inst, literal_from_s64(shape->type, 0), NULL);
    Inst *b = inst_new(s->inst->comp, s->inst, OP_BROADCAST, shape, 1, &zero, NULL);
    inst_set_ints(b, ATTR_DIMENSIONS, (Ints){NULL, 0});
    return b;
}

/* The scan's result from its parts. */
static void finish(Inst *i, int32_t n, Inst *const *results)
{
    Inst *whole = shape_is_tuple(i->shape) ? inst_new(i->comp, i, OP_TUPLE, i->shape, n, results, NULL) : results[0];
    inst_replace(i, whole);
    inst_delete(i);
}

/* No step: outputs without elements along the dimension, carries as they came. */
static void replace_empty(Scan *s)
{
    Inst **results = ARENA_ARRAY(s->arena, Inst *, s->outputs + s->carries);
    for (int32_t k = 0; k < s->outputs; k++)
        results[k] = blank(s, s->shapes[1 + s->inputs + k]);
    for (int32_t k = 0; k < s->carries; k++)
        results[s->outputs + k] = inst_operand(s->inst, s->inputs + k);
    finish(s->inst, s->outputs + s->carries, results);
}

static void replace(Scan *s, const Shape *state)
{
    Inst  *i = s->inst;
    Comp  *c = i->comp, *callees[] = {make_body(s, state), make_condition(s, state)};
    Inst **start = ARENA_ARRAY(s->arena, Inst *, s->state);
    start[0] = number(c, i, 0);
    for (int32_t k = 0; k < s->inputs; k++)
        start[1 + k] = inst_operand(i, k);
    for (int32_t k = 0; k < s->outputs; k++)
        start[1 + s->inputs + k] = blank(s, s->shapes[1 + s->inputs + k]);
    for (int32_t k = 0; k < s->carries; k++)
        start[1 + s->inputs + s->outputs + k] = inst_operand(i, s->inputs + k);
    Inst *init = inst_new(c, i, OP_TUPLE, state, s->state, start, NULL);
    Inst *loop = inst_new(c, i, OP_WHILE, state, 1, &init, NULL);
    inst_set_callees(loop, 2, callees);
    loop->meta = i->meta;
    loop->loc = i->loc;
    Inst **results = ARENA_ARRAY(s->arena, Inst *, s->outputs + s->carries);
    for (int32_t k = 0; k < s->outputs + s->carries; k++) {
        results[k] = inst_new(c, i, OP_GET_TUPLE_ELEMENT, s->shapes[1 + s->inputs + k], 1, &loop, NULL);
        inst_set_int(results[k], ATTR_INDEX, 1 + s->inputs + k);
    }
    finish(i, s->outputs + s->carries, results);
}

void expand_scan(Inst *i)
{
    Arena  *a = i->comp->module->arena;
    int32_t n = shape_is_tuple(i->shape) ? i->shape->n_elems : 1;
    Scan    s = {.inst = i, .arena = a, .dim = (int32_t)inst_ints(i, ATTR_DIMENSIONS).v[0],
                 .carries = (int32_t)inst_int(i, ATTR_NUM_CARRIES, 0)};
    s.inputs = i->n_operands - s.carries;
    s.outputs = n - s.carries;
    s.state = 1 + s.inputs + n;
    s.length = s.inputs > 0 ? inst_operand(i, 0)->shape->dims[s.dim] : s.outputs > 0 ? result_shape(i, 0)->dims[s.dim] : 0;
    s.shapes = ARENA_ARRAY(a, const Shape *, s.state);
    s.shapes[0] = shape_scalar(a, TYPE_S64);
    for (int32_t k = 0; k < s.inputs; k++)
        s.shapes[1 + k] = inst_operand(i, k)->shape;
    for (int32_t k = 0; k < n; k++)
        s.shapes[1 + s.inputs + k] = result_shape(i, k);
    if (s.length > 0)
        replace(&s, shape_tuple(a, s.state, s.shapes));
    else
        replace_empty(&s);
}
