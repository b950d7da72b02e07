/* What XLA's parser checks of an operation, and the types that it stores in place of the written ones. Everything else about an
 * operation is the verifier's. Source: reference text 5.3, 5.6, 9.3, 9.5. */
#include "config.h"

#include "text/parse_int.h"

static Inst *operand(const Parser *p, const Rhs *r, int32_t k)
{
    return p->operands.v[r->base + k];
}

static void note_operand(Parser *p, const Rhs *r, int32_t k)
{
    const Inst *i = operand(p, r, k);
    parse_note(p, i->loc, "'%s' is defined here", i->name);
}

static const char *operand_count(Parser *p, int32_t n)
{
    return arena_printf(p->tmp, "%d operand%s", n, n == 1 ? "" : "s");
}

bool op_check_arity(Parser *p, const Rhs *r)
{
    static const char *const kinds[] = {"operands", "a literal", "a number"};
    ArgsKind wanted = r->op == OP_CONSTANT ? ARGS_LITERAL : r->op == OP_PARAMETER ? ARGS_NUMBER : ARGS_OPERANDS;
    if (r->args != wanted) {
        parse_error(p, r->open, "%s takes %s in its parentheses", r->opcode.s, kinds[wanted]);
        return false;
    }
    int fixed = op_info[r->op].operands;
    if (wanted != ARGS_OPERANDS || fixed == MANY || fixed == r->n || r->sugar || (r->op == OP_ASYNC_DONE && r->n > 0))
        return true; /* what follows the first operand of an async-done is dropped */
    parse_error(p, r->open, "%s takes %s, found %s", r->opcode.s, operand_count(p, fixed), operand_count(p, r->n));
    return false;
}

static bool fail_count(Parser *p, const Rhs *r, const char *wanted)
{
    parse_error(p, r->open, "%s takes %s operands, found %s", r->opcode.s, wanted, operand_count(p, r->n));
    return false;
}

/* dimensions with one entry. */
static bool check_one_dimension(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    switch (r->op) {
    case OP_CONCATENATE:
    case OP_GET_DIMENSION_SIZE:
    case OP_SET_DIMENSION_SIZE:
    case OP_SCAN:
    case OP_SORT:
    case OP_ALL_GATHER:
    case OP_ALL_GATHER_START:
    case OP_REDUCE_SCATTER:
    case OP_ALL_TO_ALL:
    case OP_RAGGED_ALL_TO_ALL: break;
    default: return true;
    }
    const RawAttr *x = raw_attr(attrs, n, ATTR_DIMENSIONS);
    if (!x || x->value.ints.n == 1)
        return true;
    parse_error(p, x->value_loc, "dimensions of %s has one entry, found %d", r->opcode.s, x->value.ints.n);
    return false;
}

bool op_check_replication(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    const RawAttr *x = raw_attr(attrs, n, ATTR_PARAMETER_REPLICATION);
    if (!x)
        return true;
    int32_t leaves = r->shape ? shape_leaf_count(r->shape, true) : -1;
    if (r->op != OP_PARAMETER)
        parse_error(p, x->loc, "parameter_replication belongs to parameters");
    else if (x->value.ints.n != leaves)
        parse_error(p, x->value_loc, "parameter_replication has %d entries, the type has %d leaves", x->value.ints.n, leaves);
    else
        return true;
    return false;
}

static bool check_tuple(Parser *p, const Rhs *r)
{
    if (!r->shape || r->in_wrapper || (shape_is_tuple(r->shape) && r->shape->n_elems == r->n))
        return true;
    parse_error(p, r->open, "tuple of %s with the type %s", operand_count(p, r->n), shape_text(p->tmp, r->shape));
    return false;
}

/* The operand's rank; -1 after reporting that it has none. */
static int32_t rank_of(Parser *p, const Rhs *r, int32_t k)
{
    const Shape *s = operand(p, r, k)->shape;
    if (type_is_array(s->type))
        return s->rank;
    parse_error(p, p->operand_locs.v[r->base + k], "%s takes arrays, found %s", r->opcode.s, shape_text(p->tmp, s));
    return -1;
}

/* Start indices: one operand of rank 1 behind `before` others, or one for each dimension of operand 0. */
static bool check_start_indices(Parser *p, const Rhs *r, int32_t before)
{
    int32_t list = r->n == before + 1 ? rank_of(p, r, before) : 0;
    if (list < 0 || list == 1)
        return list == 1;
    int32_t rank = r->n >= before && r->n > 0 ? rank_of(p, r, 0) : 0;
    if (rank < 0)
        return false;
    if (r->n >= before && r->n == before + rank)
        return true;
    return fail_count(p, r, arena_printf(p->tmp, "%d and a start index for each dimension of the first", before));
}

/* Elements, where '?' counts as 1. */
static int64_t count_known(Parser *p, const Shape *s)
{
    Shape    known = *s;
    int64_t *dims = arena_copy(p->tmp, s->dims, (size_t)s->rank * sizeof *dims);
    for (int32_t k = 0; k < s->rank; k++)
        if (dims[k] == DIM_UNBOUNDED)
            dims[k] = 1;
    known.dims = dims;
    return shape_count(&known);
}

/* The same number of elements; bounds count as sizes, what reshape takes with '?' is not compared. */
static bool check_reshape(Parser *p, const Rhs *r)
{
    const Shape *from = operand(p, r, 0)->shape, *to = r->shape;
    bool         any = r->op == OP_RESHAPE && shape_is_unbounded(from);
    if (type_is_array(from->type) && type_is_array(to->type) && (any || count_known(p, from) == count_known(p, to)))
        return true;
    parse_error(p, r->open, "%s of %s to %s: the numbers of elements differ", r->opcode.s, shape_text(p->tmp, from),
                shape_text(p->tmp, to));
    note_operand(p, r, 0);
    return false;
}

static bool check_compare(Parser *p, const RawAttr *attrs, int32_t n)
{
    const RawAttr *type = raw_attr(attrs, n, ATTR_TYPE), *order = raw_attr(attrs, n, ATTR_ORDER);
    if (!type || !order)
        return true;
    parse_error(p, type->loc, "'type' is the old spelling of 'order': only one of them can be given");
    parse_note(p, order->loc, "'order' is given here");
    return false;
}

static bool check_conditional(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    if (r->n < 1)
        return fail_count(p, r, "1 and one for each branch");
    const Shape *s = operand(p, r, 0)->shape;
    if (!shape_is_scalar(s) || (s->type != TYPE_PRED && s->type != TYPE_S32)) {
        parse_error(p, p->operand_locs.v[r->base], "the first operand of conditional is pred[] or s32[], found %s",
                    shape_text(p->tmp, s));
        return false;
    }
    const RawAttr *branches = raw_attr(attrs, n, ATTR_BRANCH_COMPUTATIONS);
    int32_t        wanted = s->type == TYPE_PRED ? 2 : branches && branches->comps ? branches->comps->n : 0;
    if (s->type == TYPE_PRED && (!raw_attr(attrs, n, ATTR_TRUE_COMPUTATION) || !raw_attr(attrs, n, ATTR_FALSE_COMPUTATION))) {
        parse_error(p, r->opcode.loc, "conditional on pred[] needs true_computation and false_computation");
        return false;
    }
    if (s->type == TYPE_S32 && !branches) {
        parse_error(p, r->opcode.loc, "conditional on s32[] needs branch_computations");
        return false;
    }
    if (r->n == wanted + 1)
        return true;
    return fail_count(p, r, arena_printf(p->tmp, "1 and %d", wanted));
}

static bool check_global_ids(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    const RawAttr *global = raw_attr(attrs, n, ATTR_USE_GLOBAL_DEVICE_IDS);
    if (!global || !global->value.i || raw_attr(attrs, n, ATTR_MODE) || raw_attr(attrs, n, ATTR_CHANNEL_ID))
        return true;
    parse_error(p, global->loc, "%s with use_global_device_ids=true needs a channel_id", r->opcode.s);
    return false;
}

static bool check_permute(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    const RawAttr *pairs = raw_attr(attrs, n, ATTR_SOURCE_TARGET_PAIRS);
    for (int32_t k = 0; k < pairs->value.lists->n; k++)
        if (pairs->value.lists->v[k].n != 2) {
            parse_error(p, pairs->value_loc, "entry %d of source_target_pairs has %d numbers, a pair has 2", k,
                        pairs->value.lists->v[k].n);
            return false;
        }
    return !raw_attr(attrs, n, ATTR_SLICE_SIZES) || r->n == 4 || fail_count(p, r, "with slice_sizes 4");
}

/* A send-done or recv-done of a send or recv has its channel. */
static bool check_channel(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    const Inst    *start = operand(p, r, 0);
    const RawAttr *x = raw_attr(attrs, n, ATTR_CHANNEL_ID);
    if (start->op != OP_SEND && start->op != OP_RECV)
        return true;
    const Attr *y = inst_attr(start, ATTR_CHANNEL_ID);
    if ((x != NULL) == (y != NULL) && (!x || x->value.i == y->value.i))
        return true;
    parse_error(p, x ? x->loc : r->opcode.loc, "%s has another channel_id than its operand '%s'", r->opcode.s, start->name);
    parse_note(p, start->loc, "it is defined here");
    return false;
}

static bool check_tuple_type(Parser *p, const Rhs *r)
{
    if (shape_is_tuple(r->shape) && r->shape->n_elems > 0)
        return true;
    parse_error(p, r->opcode.loc, "%s has a tuple type, found %s", r->opcode.s, shape_text(p->tmp, r->shape));
    return false;
}

static bool check_constraints(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    const RawAttr *x = raw_attr(attrs, n, ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    if (!x)
        return true;
    const ShapeList *l = x->value.shapes;
    if (l->n != r->n) {
        parse_error(p, x->value_loc, "%d layout constraints for %s", l->n, operand_count(p, r->n));
        return false;
    }
    for (int32_t k = 0; k < l->n; k++)
        if (!shape_compatible(l->v[k], operand(p, r, k)->shape)) {
            parse_error(p, x->value_loc, "constraint %d is %s, the operand has the type %s", k, shape_text(p->tmp, l->v[k]),
                        shape_text(p->tmp, operand(p, r, k)->shape));
            return false;
        }
    return true;
}

/* With a written type the index is the verifier's, unless the tuple itself is the operand: there XLA looks the element up. */
static bool check_element(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    const Shape   *s = operand(p, r, 0)->shape;
    const RawAttr *x = raw_attr(attrs, n, ATTR_INDEX);
    if ((r->shape && operand(p, r, 0)->op != OP_TUPLE) || (shape_is_tuple(s) && x->value.i >= 0 && x->value.i < s->n_elems))
        return true;
    parse_error(p, x->value_loc, "there is no element %lld in %s", (long long)x->value.i, shape_text(p->tmp, s));
    note_operand(p, r, 0);
    return false;
}

static bool check_scan(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    int32_t        wanted = raw_attr(attrs, n, ATTR_TO_APPLY)->comps->v[0]->n_params;
    const RawAttr *carries = raw_attr(attrs, n, ATTR_NUM_CARRIES);
    if (carries->value.i < 0 || carries->value.i > r->n) {
        parse_error(p, carries->value_loc, "num_carries is %lld, with %s", (long long)carries->value.i, operand_count(p, r->n));
        return false;
    }
    return r->n == wanted || fail_count(p, r, arena_printf(p->tmp, "as its computation, %d", wanted));
}

static bool check_constant(Parser *p, const Rhs *r)
{
    const Shape *s = r->shape;
    if (!shape_is_tuple(s) && (!type_is_array(s->type) || shape_is_unbounded(s))) {
        parse_error(p, r->opcode.loc, "there are no literals of type %s", shape_text(p->tmp, s));
        return false;
    }
    const char *fault = literal_fault(p, s);
    if (fault)
        parse_error(p, r->opcode.loc, "the type of this constant has a layout with %s", fault);
    return !fault;
}

static bool check_map(Parser *p, const Rhs *r)
{
    if (!r->shape || type_is_array(r->shape->type))
        return true;
    parse_error(p, r->opcode.loc, "map has an array type, found %s", shape_text(p->tmp, r->shape));
    return false;
}

static bool check_copy(Parser *p, const Rhs *r)
{
    if (!r->shape || r->shape->type != TYPE_OPAQUE)
        return true;
    parse_error(p, r->opcode.loc, "there are no copies of type %s", shape_text(p->tmp, r->shape));
    return false;
}

static bool check_device_number(Parser *p, const Rhs *r)
{
    if (!r->shape || (shape_is_scalar(r->shape) && r->shape->type == TYPE_U32))
        return true;
    parse_error(p, r->opcode.loc, "%s has the type u32[], found %s", r->opcode.s, shape_text(p->tmp, r->shape));
    return false;
}

static bool check_own(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    switch (r->op) {
    case OP_TUPLE: return check_tuple(p, r);
    case OP_REPLICA_ID:
    case OP_PARTITION_ID: return check_device_number(p, r);
    case OP_MAP: return check_map(p, r);
    case OP_COPY: return check_copy(p, r);
    case OP_CONSTANT: return check_constant(p, r);
    case OP_GET_TUPLE_ELEMENT: return check_element(p, r, attrs, n);
    case OP_RESHAPE: return check_reshape(p, r);
    case OP_DYNAMIC_RESHAPE:
        return r->n == 1 + r->shape->rank ? check_reshape(p, r) : fail_count(p, r, "1 and a size for each dimension of the result");
    case OP_DYNAMIC_SLICE: return check_start_indices(p, r, 1);
    case OP_DYNAMIC_UPDATE_SLICE: return check_start_indices(p, r, 2);
    case OP_COMPARE: return check_compare(p, attrs, n);
    case OP_REDUCE: return r->n % 2 == 0 || fail_count(p, r, "an even number of");
    case OP_REDUCE_WINDOW: return (r->n > 0 && r->n % 2 == 0) || fail_count(p, r, "an even number of");
    case OP_SCATTER: return r->n % 2 == 1 || fail_count(p, r, "an odd number of");
    case OP_DOT:
    case OP_CONVOLUTION: return r->n >= 2 || r->in_wrapper || fail_count(p, r, "at least 2");
    case OP_SCAN: return check_scan(p, r, attrs, n);
    case OP_CONDITIONAL: return check_conditional(p, r, attrs, n);
    case OP_ALL_REDUCE:
    case OP_ALL_REDUCE_START:
    case OP_REDUCE_SCATTER: return check_global_ids(p, r, attrs, n);
    case OP_COLLECTIVE_PERMUTE:
    case OP_COLLECTIVE_PERMUTE_START: return check_permute(p, r, attrs, n);
    case OP_SEND_DONE: return check_channel(p, r, attrs, n);
    case OP_RECV_DONE:
        if (!shape_is_tuple(operand(p, r, 0)->shape) || operand(p, r, 0)->shape->n_elems < 1) {
            parse_error(p, p->operand_locs.v[r->base], "recv-done takes the tuple of a recv, found %s",
                        shape_text(p->tmp, operand(p, r, 0)->shape));
            return false;
        }
        return check_channel(p, r, attrs, n);
    case OP_RECV:
    case OP_INFEED: return check_tuple_type(p, r);
    case OP_CUSTOM_CALL: return check_constraints(p, r, attrs, n);
    default: return true; /* nothing that XLA's parser looks at */
    }
}

bool op_check(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    return check_one_dimension(p, r, attrs, n) && op_check_replication(p, r, attrs, n) && check_own(p, r, attrs, n);
}

/* ---- stored types ---- */

static const Shape *with_token(Parser *p, const Shape *first, bool context)
{
    const Shape *v[3] = {first, shape_scalar(p->a, TYPE_U32), shape_scalar(p->a, TYPE_TOKEN)};
    if (!context)
        v[1] = v[2];
    return shape_tuple(p->a, context ? 3 : 2, v);
}

/* Static sizes, no b(), a layout without element sizes. */
const Shape *literal_type(Parser *p, const Shape *s)
{
    Shape *t = arena_copy(p->a, s, sizeof *s);
    t->buffer = false;
    t->dynamic = NULL;
    if (s->layout && s->rank == 0 && s->layout->n_tiles == 0 && s->layout->memory_space == 0)
        t->layout = NULL; /* what is left of a scalar's is nothing to XLA */
    else if (s->layout && s->layout->element_bits) {
        Layout *l = arena_copy(p->a, s->layout, sizeof *l);
        l->element_bits = 0;
        t->layout = layout_settled(p, l);
    }
    const Shape **elems = ARENA_ARRAY(p->a, const Shape *, s->n_elems);
    for (int32_t k = 0; k < s->n_elems; k++)
        elems[k] = literal_type(p, s->elems[k]);
    t->elems = elems;
    return t;
}

const Shape *op_stored_type(Parser *p, const Rhs *r)
{
    switch (r->op) {
    case OP_SEND: return with_token(p, operand(p, r, 0)->shape, true);
    case OP_RECV: return with_token(p, r->shape->elems[0], true);
    case OP_RECV_DONE: return with_token(p, operand(p, r, 0)->shape->elems[0], false);
    case OP_INFEED: return with_token(p, r->shape->elems[0], false);
    case OP_SEND_DONE:
    case OP_OUTFEED:
    case OP_AFTER_ALL: return shape_scalar(p->a, TYPE_TOKEN);
    case OP_ADD_DEPENDENCY: return operand(p, r, 0)->shape;
    case OP_CONSTANT: return literal_type(p, r->shape);
    default: return r->shape;
    }
}
