/* Collectives of several participants become exchanges of whole blocks and ordinary instructions. Written for the n participants of a group:
 *
 *   all-reduce      small: GATHER [n,c], fold of its rows; large: cut into n chunks, TRADE, fold, GATHER
 *   reduce-scatter  dimension d as [n,c], TRADE, fold
 *   all-gather      GATHER [n,c], then dimension d out of it
 *   all-to-all      dimension d as [n,c], TRADE, and back
 *   broadcast, permute   BROADCAST, PERMUTE
 *   ragged-all-to-all    expand_pieces.c
 *
 * fold([n,c]) = ((row 0 + row 1) + row 2) + ... for each element, in the type of to_apply and in the group's order, whatever the sizes: the result
 * has the same bits on all devices. It is one fusion of up to FOLD rows at a time. What starts is done at its start. Source: reference
 * operations 16. */
#include "emit/expand_devices.h"

#include "ir/collective.h"

enum { FOLD = 16 };
#define LARGE (64 * 1024) /* bytes of an all-reduce from which each device folds a share of it alone */

/* ---- who takes part ---- */

typedef VEC(Ints) Groups;

static bool is_permute(const Inst *i)
{
    return i->op == OP_COLLECTIVE_PERMUTE || i->op == OP_COLLECTIVE_PERMUTE_START;
}

/* The groups as devices, each once. */
static void list_groups(DeviceExpansion *x)
{
    bool     ok;
    IntsList lists = is_permute(x->i) ? (IntsList){NULL, 0} : group_lists(x->arena, x->i, &ok);
    Groups   v = {0};
    bool    *seen = ARENA_ARRAY(x->arena, bool, devices_n(x->on));
    x->even = true;
    for (int64_t d = 0; d < devices_n(x->on); d++) {
        Ints group = seen[d] ? (Ints){NULL, 0} : group_devices(x->arena, group_mode(x->i), lists, x->on.replicas, x->on.partitions, d);
        if (group.n == 0)
            continue;
        for (int32_t k = 0; k < group.n; k++)
            seen[group.v[k]] = true;
        x->even &= x->n == 0 || group.n == x->n;
        x->n = group.n > x->n ? group.n : x->n;
        vec_push(x->arena, &v, group);
    }
    x->groups = (IntsList){v.v, v.n};
}

/* The pairs of each group of ids as pairs of devices. */
static void list_pairs(DeviceExpansion *x)
{
    const IntsList *pairs = inst_attr(x->i, ATTR_SOURCE_TARGET_PAIRS)->value.lists;
    Groups          v = {0};
    for (int32_t g = 0; g < x->groups.n; g++)
        for (int32_t k = 0; k < pairs->n; k++) {
            Ints pair = ints_make(x->arena, 2);
            for (int32_t e = 0; e < 2; e++)
                *ints_at(pair, e) = x->groups.v[g].v[pairs->v[k].v[e]];
            vec_push(x->arena, &v, pair);
        }
    x->pairs = (IntsList){v.v, v.n};
}

/* How many participants each device's group has. */
static Ints participants(const DeviceExpansion *x)
{
    Ints v = ints_make(x->arena, (int32_t)devices_n(x->on));
    for (int32_t g = 0; g < x->groups.n; g++)
        for (int32_t k = 0; k < x->groups.v[g].n; k++)
            *ints_at(v, (int32_t)x->groups.v[g].v[k]) = x->groups.v[g].n;
    return v;
}

/* ---- folds ---- */

/* Rows [from, end) of rows, onto acc if there is one; group: how many rows count, NULL: all. */
typedef struct Fold {
    Inst   *rows, *acc, *group;
    int64_t from, end;
    bool    last;
} Fold;

static Inst *row(const DeviceExpansion *x, Inst *rows, int64_t k, Type t)
{
    int64_t c = rows->shape->dims[1];
    Inst   *one = dev_slice(x, rows, (const int64_t[]){k, 0}, (const int64_t[]){k + 1, c});
    return dev_converted(x, dev_reshaped(x, one, 1, &c), t);
}

static Inst *applied(const DeviceExpansion *x, Inst *acc, Inst *y)
{
    Inst *sum = dev_made(x, OP_MAP, acc->shape, 2, (Inst *const[]){acc, y}, "acc");
    inst_set_callees(sum, 1, &x->i->callees[0]);
    inst_set_ints(sum, ATTR_DIMENSIONS, (Ints){(const int64_t[]){0}, 1});
    return sum;
}

/* folded where row k is there, else acc. */
static Inst *where_there(const DeviceExpansion *x, Inst *group, int64_t k, Inst *folded, Inst *acc)
{
    const Shape *pred = shape_scalar(x->arena, TYPE_PRED);
    Inst        *is = dev_made(x, OP_COMPARE, pred, 2, (Inst *const[]){dev_constant(x, literal_from_s64(TYPE_S32, k)), group}, "there");
    inst_set_word(is, ATTR_DIRECTION, CMP_LT);
    Inst *all = dev_made(x, OP_BROADCAST, dev_array(x, TYPE_PRED, 1, acc->shape->dims), 1, &is, "there");
    inst_set_ints(all, ATTR_DIMENSIONS, (Ints){NULL, 0});
    return dev_made(x, OP_SELECT, acc->shape, 3, (Inst *const[]){all, folded, acc}, "kept");
}

static Comp *fold_body(const DeviceExpansion *x, const Fold *f)
{
    Module         *m = x->i->comp->module;
    DeviceExpansion in = *x;
    Type            t = comp_param(inst_callee(x->i, 0), 0)->shape->type;
    in.c = comp_new(m, comp_unique_name(m, "fold"));
    in.before = NULL;
    comp_move_before(in.c, x->i->comp);
    int32_t n = 0;
    Inst   *rows = inst_parameter(in.c, NULL, n++, f->rows->shape, NULL);
    Inst   *acc = f->acc ? inst_parameter(in.c, NULL, n++, f->acc->shape, NULL) : row(&in, rows, f->from, t);
    Inst   *group = f->group ? inst_parameter(in.c, NULL, n++, f->group->shape, NULL) : NULL;
    for (int64_t k = f->acc ? f->from : f->from + 1; k < f->end; k++) {
        Inst *next = applied(&in, acc, row(&in, rows, k, t));
        acc = group ? where_there(&in, group, k, next, acc) : next;
    }
    in.c->root = f->last ? dev_converted(&in, acc, rows->shape->type) : acc;
    return in.c;
}

static Inst *fold_some(const DeviceExpansion *x, const Fold *f)
{
    Inst   *operands[3];
    int32_t n = 0;
    Comp   *body = fold_body(x, f);
    operands[n++] = f->rows;
    if (f->acc)
        operands[n++] = f->acc;
    if (f->group)
        operands[n++] = f->group;
    Inst *y = dev_made(x, OP_FUSION, body->root->shape, n, operands, "fold");
    inst_set_word(y, ATTR_FUSION_KIND, FUSION_LOOP);
    inst_set_callees(y, 1, &body);
    return y;
}

/* [n, c] -> [c] */
static Inst *folded(const DeviceExpansion *x, Inst *rows)
{
    Inst *acc = NULL, *group = x->even ? NULL : dev_number(x, participants(x));
    for (int64_t from = 0; from < x->n; from += FOLD) {
        int64_t end = x->n - from > FOLD ? from + FOLD : x->n;
        acc = fold_some(x, &(Fold){.rows = rows, .acc = acc, .group = group, .from = from, .end = end, .last = end == x->n});
    }
    return acc;
}

/* ---- one array ---- */

static Inst *as_rows(const DeviceExpansion *x, Inst *y, int64_t n)
{
    return dev_reshaped(x, y, 2, (const int64_t[]){n, shape_count(y->shape) / n});
}

/* [a, b, c] -> [b, a, c], y having a * b * c elements */
static Inst *swapped(const DeviceExpansion *x, Inst *y, int64_t a, int64_t b, int64_t c)
{
    if (a == 1 || b == 1)
        return dev_reshaped(x, y, 3, (const int64_t[]){b, a, c});
    Inst *cube = dev_reshaped(x, y, 3, (const int64_t[]){a, b, c});
    Inst *turned = dev_made(x, OP_TRANSPOSE, dev_array(x, y->shape->type, 3, (const int64_t[]){b, a, c}), 1, &cube, "turned");
    inst_set_ints(turned, ATTR_DIMENSIONS, (Ints){(const int64_t[]){1, 0, 2}, 3});
    return turned;
}

/* How many elements the dimensions before d have together, and those from d on. */
static int64_t before(const Shape *s, int32_t d)
{
    int64_t n = 1;
    for (int32_t k = 0; k < d; k++)
        n *= s->dims[k];
    return n;
}

static int64_t from(const Shape *s, int32_t d)
{
    int64_t n = 1;
    for (int32_t k = d; k < s->rank; k++)
        n *= s->dims[k];
    return n;
}

static int32_t dimension(const Inst *i)
{
    return (int32_t)inst_ints(i, ATTR_DIMENSIONS).v[0];
}

static Inst *all_reduced(DeviceExpansion *x, Inst *y)
{
    int64_t count = shape_count(y->shape), chunk = count / x->n + (count % x->n != 0), whole;
    if (count == 0 || !x->even || shape_bytes(y->shape) < LARGE || !size_mul(chunk, x->n, &whole))
        return folded(x, dev_exchanged(x, EXCHANGE_GATHER, as_rows(x, y, 1)));
    Inst *line = dev_padded(x, dev_reshaped(x, y, 1, &count), &whole);
    Inst *share = folded(x, dev_exchanged(x, EXCHANGE_TRADE, as_rows(x, line, x->n)));
    Inst *all = dev_reshaped(x, dev_exchanged(x, EXCHANGE_GATHER, as_rows(x, share, 1)), 1, &whole);
    return whole == count ? all : dev_slice(x, all, (const int64_t[]){0}, &count);
}

static Inst *reduce_scattered(DeviceExpansion *x, Inst *y)
{
    int32_t d = dimension(x->i);
    Inst   *blocks = swapped(x, y, before(y->shape, d), x->n, from(y->shape, d) / x->n);
    return folded(x, dev_exchanged(x, EXCHANGE_TRADE, dev_reshaped(x, blocks, 2, (const int64_t[]){x->n, shape_count(y->shape) / x->n})));
}

static Inst *all_gathered(DeviceExpansion *x, Inst *y)
{
    int32_t d = dimension(x->i);
    return swapped(x, dev_exchanged(x, EXCHANGE_GATHER, as_rows(x, y, 1)), x->n, before(y->shape, d), from(y->shape, d));
}

static Inst *all_traded(DeviceExpansion *x, Inst *y)
{
    int32_t d = dimension(x->i);
    int64_t a = before(y->shape, d), c = from(y->shape, d) / x->n;
    Inst   *rows = dev_reshaped(x, swapped(x, y, a, x->n, c), 2, (const int64_t[]){x->n, a * c});
    return swapped(x, dev_exchanged(x, EXCHANGE_TRADE, rows), x->n, a, c);
}

static Inst *permuted(DeviceExpansion *x, Inst *y) { return dev_exchanged(x, EXCHANGE_PERMUTE, y); }
static Inst *broadcasted(DeviceExpansion *x, Inst *y) { return dev_exchanged(x, EXCHANGE_BROADCAST, y); }

typedef Inst *OneArray(DeviceExpansion *x, Inst *y);

static OneArray *work_of(Op op)
{
    switch (op) {
    case OP_ALL_REDUCE: case OP_ALL_REDUCE_START: return all_reduced;
    case OP_REDUCE_SCATTER: return reduce_scattered;
    case OP_ALL_GATHER: case OP_ALL_GATHER_START: return all_gathered;
    case OP_ALL_TO_ALL: return all_traded;
    case OP_COLLECTIVE_PERMUTE: case OP_COLLECTIVE_PERMUTE_START: return permuted;
    case OP_COLLECTIVE_BROADCAST: return broadcasted;
    default: return NULL;
    }
}

/* ---- the instruction ---- */

/* Operand k goes to participant k. */
static void trade_operands(DeviceExpansion *x, Inst **results)
{
    int32_t n = x->i->n_operands;
    int64_t c = shape_count(inst_operand(x->i, 0)->shape);
    Inst  **rows = ARENA_ARRAY(x->arena, Inst *, n);
    for (int32_t k = 0; k < n; k++)
        rows[k] = as_rows(x, inst_operand(x->i, k), 1);
    Inst *all = dev_made(x, OP_CONCATENATE, dev_array(x, rows[0]->shape->type, 2, (const int64_t[]){n, c}), n, rows, "blocks");
    inst_set_ints(all, ATTR_DIMENSIONS, (Ints){(const int64_t[]){0}, 1});
    all = dev_exchanged(x, EXCHANGE_TRADE, all);
    for (int32_t k = 0; k < n; k++)
        results[k] = dev_slice(x, all, (const int64_t[]){k, 0}, (const int64_t[]){k + 1, c});
}

/* (operands, results, contexts), of which nobody reads the last. */
static Inst *started(const DeviceExpansion *x, Inst *result)
{
    const Shape *s = x->i->shape;
    Inst       **v = ARENA_ARRAY(x->arena, Inst *, s->n_elems), **operands = ARENA_ARRAY(x->arena, Inst *, x->i->n_operands);
    for (int32_t k = 0; k < x->i->n_operands; k++)
        operands[k] = inst_operand(x->i, k);
    v[0] = shape_is_tuple(s->elems[0]) ? dev_tuple(x, x->i->n_operands, operands) : operands[0];
    v[1] = result;
    for (int32_t k = 2; k < s->n_elems; k++)
        v[k] = dev_zeros(x, s->elems[k]);
    return dev_tuple(x, s->n_elems, v);
}

static void replace(Inst *i, Inst *y)
{
    inst_replace(i, y);
    inst_delete(i);
}

void expand_collective(Inst *i, Devices on, Map *exchanges)
{
    DeviceExpansion x = {.i = i, .c = i->comp, .before = i, .arena = i->comp->module->arena, .on = on, .exchanges = exchanges};
    const Shape    *given = collective_given(i);
    OneArray       *work = work_of(i->op);
    Inst          **results = ARENA_ARRAY(x.arena, Inst *, i->n_operands);
    list_groups(&x);
    if (is_permute(i))
        list_pairs(&x);
    if (i->op == OP_RAGGED_ALL_TO_ALL) {
        replace(i, dev_shaped(&x, dev_pieces(&x), i->shape));
        return;
    }
    if (i->op == OP_ALL_TO_ALL && inst_ints(i, ATTR_DIMENSIONS).n == 0)
        trade_operands(&x, results);
    for (int32_t k = 0; k < i->n_operands; k++) {
        if (!results[k])
            results[k] = work(&x, inst_operand(i, k));
        results[k] = dev_shaped(&x, results[k], collective_part(given, k));
    }
    Inst *y = shape_is_tuple(given) ? dev_tuple(&x, i->n_operands, results) : results[0];
    if (given != i->shape)
        y = started(&x, y);
    replace(i, y);
}

/* ---- which ones ---- */

/* Groups of one need no exchange. */
static bool has_others(const Inst *i, Devices on)
{
    GroupMode mode = group_mode(i);
    int64_t   all = group_ids(mode, on.replicas, on.partitions), most = 0;
    bool      ok;
    Arena    *a = arena_new();
    IntsList  lists = is_permute(i) ? (IntsList){NULL, 0} : group_lists(a, i, &ok);
    for (int32_t k = 0; k < lists.n; k++)
        most = lists.v[k].n > most ? lists.v[k].n : most;
    arena_free(a);
    most = lists.n > 0 ? most : all;
    return (mode == GROUP_CROSS_BOTH ? most * on.partitions : most) > 1;
}

/* The numbers of expand_pieces.c fit. */
static bool pieces_fit(const Inst *i)
{
    int64_t pieces = shape_count(inst_operand(i, 2)->shape), rows;
    return size_mul(pieces, inst_operand(i, 0)->shape->dims[0], &rows) && size_mul(rows, pieces, &rows);
}

static bool is_known(const Inst *i)
{
    if (i->op == OP_RAGGED_ALL_TO_ALL)
        return pieces_fit(i);
    return work_of(i->op) && !inst_bool(i, ATTR_HAS_DYNAMIC_ROOT) && !inst_attr(i, ATTR_SLICE_SIZES);
}

bool collective_expands(const Inst *i, Devices on)
{
    Arena *a = arena_new();
    bool   always = i->op == OP_RAGGED_ALL_TO_ALL || (i->op == OP_COLLECTIVE_BROADCAST && devices_n(on) > 1);
    bool   yes = is_known(i) && !collective_refused(a, i, on) && (always || has_others(i, on));
    arena_free(a);
    return yes;
}
