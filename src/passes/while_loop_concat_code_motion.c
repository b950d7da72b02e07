/* while-loop-concat-code-motion - arrays of a loop's state that each trip puts together are kept together.
 *
 *   %w = while(tuple(0, a, b)):  (i, a, b) = let c = f(concatenate(a, b)) in (i + 1, first half of c, second half of c)
 *         =>
 *   %ab = concatenate(a, b)
 *   %w = while(tuple(0, %ab)):  (i, ab) = (i + 1, f(ab))                        a and b are slices of ab, for whoever else reads them
 *
 * Where the next ones can be had together as well: they are parts of one array, in the same order, the elements themselves, numbers, one value that all have,
 * or elementwise of such. No level runs it: a routine that reads one of the parts would want a copy of it. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"
#include "passes/while.h"

enum { MAX_DEPTH = 16, MAX_STEPS = 256 };

typedef struct Joint {
    Flow   *f;
    Inst   *w, *cat;   /* the loop, the concatenation in its body */
    Inst   *whole;     /* the element of the state that has all parts; NULL: it is only asked whether it could be */
    int32_t n, dim, steps;
} Joint;

static Inst *join(Joint *j, Inst *const *x, int32_t depth);

/* ---- together ---- */

static const Shape *longer(const Inst *i, int32_t dim, int64_t size)
{
    Arena *a = i->comp->module->arena;
    Ints   dims = ints_make(a, i->shape->rank);
    for (int32_t d = 0; d < i->shape->rank; d++)
        *ints_at(dims, d) = d == dim ? size : i->shape->dims[d];
    return shape_array(a, i->shape->type, i->shape->rank, dims.v);
}

static const Shape *joint_shape(const Joint *j, const Inst *part)
{
    return longer(part, j->dim, j->cat->shape->dims[j->dim]);
}

/* In front of the root, with the origin of one of the parts. */
static Inst *made(Inst *i, const Inst *part)
{
    i->meta = part->meta ? part->meta : i->meta;
    return i;
}

static bool is_plain(const Inst *i)
{
    return shape_is_array(i->shape) && !i->shape->layout && !shape_is_dynamic(i->shape);
}

static Inst *join_elements(const Joint *j, Inst *const *x)
{
    for (int32_t k = 0; k < j->n; k++)
        if (x[k] != inst_operand(j->cat, k))
            return NULL;
    return j->whole ? j->whole : j->cat;
}

/* Slices of one array that are all of it, one after the other. */
static Inst *join_parts(const Joint *j, Inst *const *x)
{
    Inst   *of = x[0]->op == OP_SLICE ? inst_operand(x[0], 0) : NULL;
    int64_t at = 0;
    for (int32_t k = 0; k < j->n && of; k++) {
        const Slices *s = x[k]->op == OP_SLICE && inst_operand(x[k], 0) == of ? inst_attr(x[k], ATTR_SLICE)->value.slices : NULL;
        for (int32_t d = 0; s && d < s->n; d++) {
            int64_t start = d == j->dim ? at : 0, limit = start + (d == j->dim ? x[k]->shape->dims[d] : of->shape->dims[d]);
            if (s->v[d].start != start || s->v[d].limit != limit || s->v[d].stride != 1)
                s = NULL;
        }
        if (!s)
            return NULL;
        at += x[k]->shape->dims[j->dim];
    }
    return of && at == of->shape->dims[j->dim] && is_plain(of) ? of : NULL;
}

static bool same_number(const Inst *a, const Inst *b)
{
    return a == b || (a->op == OP_CONSTANT && b->op == OP_CONSTANT && !literal_has_elided(a->literal) && literal_equal(a->literal, b->literal));
}

/* Broadcasts of one scalar, or of equal numbers. */
static Inst *join_scalars(const Joint *j, Inst *const *x)
{
    for (int32_t k = 0; k < j->n; k++)
        if (x[k]->op != OP_BROADCAST || inst_operand(x[k], 0)->shape->rank || !same_number(inst_operand(x[0], 0), inst_operand(x[k], 0)))
            return NULL;
    Inst *root = while_body(j->w)->root;
    return j->whole ? made(expand_broadcast(root, joint_shape(j, x[0]), inst_operand(x[0], 0), (Ints){NULL, 0}), x[0]) : x[0];
}

/* One value that all have: n of it, [2,3] as [2,n,3] and [2,3n] where dim is 1. */
static Inst *join_same(const Joint *j, Inst *const *x)
{
    const Shape *s = x[0]->shape;
    for (int32_t k = 0; k < j->n; k++)
        if (x[k] != x[0])
            return NULL;
    if (!j->whole)
        return x[0];
    Arena *a = j->w->comp->module->arena;
    Ints   dims = ints_make(a, s->rank + 1), places = ints_make(a, s->rank);
    for (int32_t d = 0; d <= s->rank; d++)
        *ints_at(dims, d) = d < j->dim ? s->dims[d] : d == j->dim ? j->n : s->dims[d - 1];
    for (int32_t d = 0; d < s->rank; d++)
        *ints_at(places, d) = d < j->dim ? d : d + 1;
    Inst *root = while_body(j->w)->root;
    Inst *b = made(expand_broadcast(root, shape_array(a, s->type, s->rank + 1, dims.v), x[0], places), x[0]);
    return made(expand_reshape(root, joint_shape(j, x[0]), b), x[0]);
}

static bool computes_alike(const Joint *j, Inst *const *x)
{
    const Inst *i = x[0];
    bool        alike = op_has(i->op, F_ELEMENTWISE);
    for (int32_t k = 0; k < j->n && alike; k++)
        alike = x[k]->op == i->op && x[k]->n_operands == i->n_operands && x[k]->n_uses == 1 && inst_is_value(x[k]) && inst_is_free(x[k]) &&
                x[k]->shape->type == i->shape->type && inst_attrs_equal(x[k], i);
    return alike;
}

static Inst *join_operands(Joint *j, Inst *const *x, int32_t o, int32_t depth)
{
    Inst **operands = ARENA_ARRAY(j->f->scratch, Inst *, j->n);
    bool   scalar = x[0]->shape->rank && !inst_operand(x[0], o)->shape->rank;
    for (int32_t k = 0; k < j->n; k++) {
        operands[k] = inst_operand(x[k], o);
        if (scalar && !same_number(operands[k], operands[0]))
            return NULL;
    }
    return scalar ? operands[0] : join(j, operands, depth);
}

static Inst *join_elementwise(Joint *j, Inst *const *x, int32_t depth)
{
    if (!computes_alike(j, x))
        return NULL;
    Inst **operands = ARENA_ARRAY(j->f->scratch, Inst *, x[0]->n_operands);
    for (int32_t o = 0; o < x[0]->n_operands; o++) {
        operands[o] = join_operands(j, x, o, depth + 1);
        if (!operands[o])
            return NULL;
    }
    if (!j->whole)
        return x[0];
    Inst *i = inst_clone_into(x[0]->comp, while_body(j->w)->root, x[0], x[0]->n_operands, operands);
    inst_set_shape(i, joint_shape(j, x[0]));
    return i;
}

/* The array of which x are the parts; NULL: there is none. Without j->whole only whether there is one. */
static Inst *join(Joint *j, Inst *const *x, int32_t depth)
{
    if (depth > MAX_DEPTH || ++j->steps > MAX_STEPS)
        return NULL;
    for (int32_t k = 0; k < j->n; k++)
        if (!is_plain(x[k]) || x[k]->shape->rank != j->cat->shape->rank || x[k]->shape->dims[j->dim] != inst_operand(j->cat, k)->shape->dims[j->dim])
            return NULL;
    Inst *(*const ways[])(const Joint *, Inst *const *) = {join_elements, join_parts, join_scalars, join_same};
    for (size_t v = 0; v < sizeof ways / sizeof *ways; v++) {
        Inst *all = ways[v](j, x);
        if (all)
            return all;
    }
    return join_elementwise(j, x, depth);
}

/* ---- which ---- */

/* The number of the element of the state that i is, or -1. */
static int32_t element_number(const Inst *i)
{
    return i->op == OP_GET_TUPLE_ELEMENT && inst_operand(i, 0)->op == OP_PARAMETER ? (int32_t)inst_int(i, ATTR_INDEX, 0) : -1;
}

static Inst **next_parts(const Joint *j)
{
    Inst **next = ARENA_ARRAY(j->f->scratch, Inst *, j->n);
    for (int32_t k = 0; k < j->n; k++)
        next[k] = while_next(j->w, element_number(inst_operand(j->cat, k)));
    return next;
}

static bool is_joint(Joint *j)
{
    bool *taken = ARENA_ARRAY(j->f->scratch, bool, j->w->shape->n_elems);
    if (j->cat->op != OP_CONCATENATE || j->n < 2 || !inst_is_free(j->cat) || !is_plain(j->cat))
        return false;
    for (int32_t k = 0; k < j->n; k++) {
        int32_t     e = element_number(inst_operand(j->cat, k));
        const Inst *init = e >= 0 ? while_init(j->w, e) : NULL;
        if (!init || taken[e] || !is_plain(init) || !while_next(j->w, e))
            return false;
        taken[e] = true;
    }
    return join(j, next_parts(j), 0);
}

static bool find_joint(Joint *j)
{
    for (Inst *i = while_body(j->w)->first; i; i = i->next) {
        j->cat = i;
        j->n = i->n_operands;
        j->dim = i->op == OP_CONCATENATE ? (int32_t)inst_ints(i, ATTR_DIMENSIONS).v[0] : 0;
        j->steps = 0;
        if (is_joint(j))
            return true;
    }
    return false;
}

/* ---- what becomes of it ---- */

/* Parts of an element of the state, in front of `at`, for those who read the elements: instead[number]. */
static void cut(const Joint *j, Inst *whole, Inst *at, const int32_t *numbers, Inst **instead)
{
    int64_t start = 0;
    for (int32_t k = 0; k < j->n; k++) {
        int64_t size = j->w->shape->elems[numbers[k]]->dims[j->dim];
        instead[numbers[k]] = made(expand_slice(at, whole, j->dim, start, start + size), whole);
        start += size;
    }
}

static void read_parts_within(const Joint *j, Comp *c, Inst *whole, const int32_t *numbers)
{
    Inst **instead = ARENA_ARRAY(j->f->scratch, Inst *, j->w->shape->n_elems);
    cut(j, whole, whole->next, numbers, instead);
    state_read_instead(c, instead);
    comp_sweep_dead(c, INT64_MAX);
}

static void read_parts_behind(const Joint *j, int32_t number, const int32_t *numbers)
{
    Inst  *w = j->w, *whole = tuple_new_element(w, number, w->next);
    Inst **instead = ARENA_ARRAY(j->f->scratch, Inst *, w->shape->n_elems);
    cut(j, whole, whole->next, numbers, instead);
    for (Use *u = w->uses, *next; u; u = next) {
        next = u->next;
        Inst *e = u->user;
        if (e != whole && instead[inst_int(e, ATTR_INDEX, 0)])
            inst_replace(e, instead[inst_int(e, ATTR_INDEX, 0)]);
    }
    for (int32_t k = 0; k < j->n; k++)
        inst_delete_dead(instead[numbers[k]], j->f->scratch);
    tuple_sweep(w);
}

static void keep_together(Joint *j)
{
    Inst    *w = j->w, **init = ARENA_ARRAY(j->f->scratch, Inst *, j->n), **next = next_parts(j);
    int32_t *numbers = ARENA_ARRAY(j->f->scratch, int32_t, j->n);
    for (int32_t k = 0; k < j->n; k++) {
        numbers[k] = element_number(inst_operand(j->cat, k));
        init[k] = while_init(w, numbers[k]);
    }
    Inst   *first = inst_clone_into(w->comp, w, j->cat, j->n, init);
    int32_t number = while_append(j->f, w, 1, &first);
    Comp   *body = while_body(w);
    j->whole = inst_operand(body->root, number);
    j->steps = 0;
    inst_set_operand(body->root, number, join(j, next, 0));
    inst_replace(j->cat, j->whole);
    inst_delete_dead(j->cat, j->f->scratch);
    read_parts_within(j, body, j->whole, numbers);
    Inst *tested = tuple_new_element(comp_param(while_condition(w), 0), number, comp_param(while_condition(w), 0)->next);
    read_parts_within(j, while_condition(w), tested, numbers);
    read_parts_behind(j, number, numbers);
    while_drop_unneeded(j->f, w);
}

static int64_t move_out(Flow *f, Inst *w)
{
    Joint j = {.f = f, .w = w};
    if (!while_could_be_edited(f, w) || !find_joint(&j) || !while_editable(f, w))
        return 0;
    int64_t n = 0;
    for (; find_joint(&j); n++) { /* the body may be a copy now */
        keep_together(&j);
        j.whole = NULL;
    }
    return n;
}

bool pass_while_loop_concat_code_motion(Module *m, PassCtx *cx)
{
    return while_pass_moves_out(m, cx, move_out, "arrays that each trip puts together");
}
