/* ragged-all-to-all: pieces of rows go from everywhere to everywhere. All inputs and all tables are gathered; then, with the pieces for
 * this device numbered by sender, p = sender * each + j, and N rows in all gathered inputs,
 *
 *   ok      = all over p of  size, at, to >= 0,  at + size <= rows there,  to + size <= rows here
 *   key[q]  = max over p of  to[p] <= q < to[p] + size[p] ? p * N + sender * rows + at[p] + (q - to[p]) : -1
 *   out[q]  = key[q] < 0 ? old[q] : inputs[key[q] mod N]
 *
 * so that of pieces on one row the last one stays. Unless ok the run fails. Source: reference operations 16. */
#include "emit/expand_devices.h"

#include "ir/collective.h"

enum { AT, SIZE, TO, TABLES };

typedef struct Pieces {
    DeviceExpansion *x;
    int64_t          n, each, pieces, rows, old_rows, width; /* participants, for each; all; of an input, of the result; elements of a row */
} Pieces;

/* ---- instructions of fusions ---- */

static DeviceExpansion body_of(const Pieces *r, const char *name)
{
    DeviceExpansion in = *r->x;
    Module         *m = r->x->i->comp->module;
    in.c = comp_new(m, comp_unique_name(m, name));
    in.before = NULL;
    comp_move_before(in.c, r->x->i->comp);
    return in;
}

static Inst *fused(const Pieces *r, Comp *body, int32_t n, Inst *const *operands, const char *what)
{
    Inst *f = dev_made(r->x, OP_FUSION, body->root->shape, n, operands, what);
    inst_set_word(f, ATTR_FUSION_KIND, FUSION_LOOP);
    inst_set_callees(f, 1, &body);
    return f;
}

static Inst *binary(const DeviceExpansion *x, Op op, Inst *a, Inst *b)
{
    return dev_made(x, op, a->shape, 2, (Inst *const[]){a, b}, "v");
}

static Inst *compared(const DeviceExpansion *x, Inst *a, Word direction, Inst *b)
{
    Inst *c = dev_made(x, OP_COMPARE, dev_array(x, TYPE_PRED, a->shape->rank, a->shape->dims), 2, (Inst *const[]){a, b}, "is");
    inst_set_word(c, ATTR_DIRECTION, direction);
    return c;
}

/* a along dimension d of the sizes; a scalar everywhere. */
static Inst *spread(const DeviceExpansion *x, Inst *a, int32_t rank, const int64_t *dims, int64_t d)
{
    Inst *b = dev_made(x, OP_BROADCAST, dev_array(x, a->shape->type, rank, dims), 1, &a, "each");
    inst_set_ints(b, ATTR_DIMENSIONS, (Ints){&d, a->shape->rank});
    return b;
}

static Inst *number(const DeviceExpansion *x, int64_t v, int32_t rank, const int64_t *dims)
{
    return spread(x, dev_constant(x, literal_from_s64(TYPE_S64, v)), rank, dims, 0);
}

static Inst *iota(const DeviceExpansion *x, int32_t rank, const int64_t *dims, int64_t d)
{
    Inst *y = dev_made(x, OP_IOTA, dev_array(x, TYPE_S64, rank, dims), 0, NULL, "number");
    inst_set_int(y, ATTR_IOTA_DIMENSION, d);
    return y;
}

/* Row t of the tables [TABLES, pieces]. */
static Inst *table(const DeviceExpansion *x, Inst *tables, int64_t t)
{
    int64_t pieces = tables->shape->dims[1];
    return dev_reshaped(x, dev_slice(x, tables, (const int64_t[]){t, 0}, (const int64_t[]){t + 1, pieces}), 1, &pieces);
}

static Inst *reduced(const DeviceExpansion *x, Op op, Inst *a, Inst *init, int64_t d)
{
    Module      *m = x->i->comp->module;
    Comp        *c = comp_new(m, comp_unique_name(m, op_name(op)));
    const Shape *s = shape_scalar(x->arena, a->shape->type);
    comp_move_before(c, x->c);
    Inst *p[] = {inst_parameter(c, NULL, 0, s, NULL), inst_parameter(c, NULL, 1, s, NULL)};
    c->root = inst_new(c, NULL, op, s, 2, p, NULL);
    Inst *r = dev_made(x, OP_REDUCE, dev_array(x, a->shape->type, a->shape->rank - 1, a->shape->dims), 2, (Inst *const[]){a, init}, "over");
    inst_set_callees(r, 1, &c);
    inst_set_ints(r, ATTR_DIMENSIONS, (Ints){&d, 1});
    return r;
}

/* ---- the three fusions ---- */

static Inst *is_inside(const Pieces *r, Inst *tables)
{
    DeviceExpansion in = body_of(r, "inside");
    const int64_t  *all = &r->pieces;
    Inst           *p = inst_parameter(in.c, NULL, 0, tables->shape, NULL), *at = table(&in, p, AT), *size = table(&in, p, SIZE);
    Inst           *to = table(&in, p, TO), *zero = number(&in, 0, 1, all);
    Inst           *there = binary(&in, OP_SUBTRACT, number(&in, r->rows, 1, all), size);
    Inst           *here = binary(&in, OP_SUBTRACT, number(&in, r->old_rows, 1, all), size);
    Inst           *ok = compared(&in, size, CMP_GE, zero);
    ok = binary(&in, OP_AND, ok, compared(&in, at, CMP_GE, zero));
    ok = binary(&in, OP_AND, ok, compared(&in, to, CMP_GE, zero));
    ok = binary(&in, OP_AND, ok, compared(&in, at, CMP_LE, there));
    ok = binary(&in, OP_AND, ok, compared(&in, to, CMP_LE, here));
    in.c->root = reduced(&in, OP_AND, ok, dev_constant(&in, literal_from_s64(TYPE_PRED, 1)), 0);
    return fused(r, in.c, 1, &tables, "ok");
}

static Inst *keys(const Pieces *r, Inst *tables)
{
    DeviceExpansion in = body_of(r, "keys");
    const int64_t   dims[] = {r->old_rows, r->pieces};
    Inst           *p = inst_parameter(in.c, NULL, 0, tables->shape, NULL), *q = iota(&in, 2, dims, 0), *piece = iota(&in, 2, dims, 1);
    Inst           *at = spread(&in, table(&in, p, AT), 2, dims, 1), *size = spread(&in, table(&in, p, SIZE), 2, dims, 1);
    Inst           *to = spread(&in, table(&in, p, TO), 2, dims, 1), *minus = number(&in, -1, 2, dims);
    Inst           *sender = binary(&in, OP_DIVIDE, piece, number(&in, r->each, 2, dims));
    Inst           *key = binary(&in, OP_MULTIPLY, piece, number(&in, r->n * r->rows, 2, dims));
    key = binary(&in, OP_ADD, key, binary(&in, OP_MULTIPLY, sender, number(&in, r->rows, 2, dims)));
    key = binary(&in, OP_ADD, binary(&in, OP_ADD, key, at), binary(&in, OP_SUBTRACT, q, to));
    Inst *covers = binary(&in, OP_AND, compared(&in, to, CMP_LE, q), compared(&in, q, CMP_LT, binary(&in, OP_ADD, to, size)));
    key = dev_made(&in, OP_SELECT, key->shape, 3, (Inst *const[]){covers, key, minus}, "key");
    in.c->root = reduced(&in, OP_MAXIMUM, key, dev_constant(&in, literal_from_s64(TYPE_S64, -1)), 1);
    return fused(r, in.c, 1, &tables, "keys");
}

/* inputs [N, width], old [rows, width] */
static Inst *taken(const Pieces *r, Inst *inputs, Inst *key, Inst *old)
{
    DeviceExpansion in = body_of(r, "taken");
    const int64_t  *rows = &r->old_rows, size[] = {1, r->width};
    Inst           *p = inst_parameter(in.c, NULL, 0, inputs->shape, NULL), *k = inst_parameter(in.c, NULL, 1, key->shape, NULL);
    Inst           *o = inst_parameter(in.c, NULL, 2, old->shape, NULL);
    Inst           *source = binary(&in, OP_REMAINDER, k, number(&in, r->n * r->rows, 1, rows));
    Inst           *index = dev_reshaped(&in, source, 2, (const int64_t[]){r->old_rows, 1});
    Inst           *g = dev_made(&in, OP_GATHER, old->shape, 2, (Inst *const[]){p, index}, "rows");
    inst_set_ints(g, ATTR_OFFSET_DIMS, (Ints){(const int64_t[]){1}, 1});
    inst_set_ints(g, ATTR_COLLAPSED_SLICE_DIMS, (Ints){(const int64_t[]){0}, 1});
    inst_set_ints(g, ATTR_START_INDEX_MAP, (Ints){(const int64_t[]){0}, 1});
    inst_set_int(g, ATTR_INDEX_VECTOR_DIM, 1);
    inst_set_ints(g, ATTR_SLICE_SIZES, (Ints){size, 2});
    Inst *is = spread(&in, compared(&in, k, CMP_GE, number(&in, 0, 1, rows)), 2, old->shape->dims, 0);
    in.c->root = dev_made(&in, OP_SELECT, old->shape, 3, (Inst *const[]){is, g, o}, "taken");
    return fused(r, in.c, 3, (Inst *const[]){inputs, key, old}, "taken");
}

/* ---- the instruction ---- */

/* Which participant of its group each device is. */
static Ints positions(const DeviceExpansion *x)
{
    Ints v = ints_make(x->arena, (int32_t)devices_n(x->on));
    for (int32_t g = 0; g < x->groups.n; g++)
        for (int32_t k = 0; k < x->groups.v[g].n; k++)
            *ints_at(v, (int32_t)x->groups.v[g].v[k]) = k;
    return v;
}

static Inst *gathered(const Pieces *r, Inst *rows)
{
    return r->n > 1 ? dev_exchanged(r->x, EXCHANGE_GATHER, rows) : rows;
}

/* Everybody's tables of what comes here, as [TABLES, pieces]. */
static Inst *tables_of(const Pieces *r)
{
    DeviceExpansion *x = r->x;
    Inst            *v[TABLES];
    for (int32_t k = 0; k < TABLES; k++)
        v[k] = dev_converted(x, dev_reshaped(x, inst_operand(x->i, 2 + k), 4, (const int64_t[]){1, 1, r->n, r->each}), TYPE_S64);
    Inst *own = dev_made(x, OP_CONCATENATE, dev_array(x, TYPE_S64, 4, (const int64_t[]){1, TABLES, r->n, r->each}), TABLES, v, "tables");
    inst_set_ints(own, ATTR_DIMENSIONS, (Ints){(const int64_t[]){1}, 1});
    Inst         *all = gathered(r, own), *zero = dev_constant(x, literal_from_s64(TYPE_S32, 0));
    Inst         *me = r->n > 1 ? dev_number(x, positions(x)) : zero;
    const int64_t size[] = {r->n, TABLES, 1, r->each};
    Inst         *mine = dev_made(x, OP_DYNAMIC_SLICE, dev_array(x, TYPE_S64, 4, size), 5, (Inst *const[]){all, zero, zero, me, zero}, "mine");
    inst_set_ints(mine, ATTR_DYNAMIC_SLICE_SIZES, (Ints){size, 4});
    Inst *cube = dev_reshaped(x, mine, 3, (const int64_t[]){r->n, TABLES, r->each});
    Inst *turned = dev_made(x, OP_TRANSPOSE, dev_array(x, TYPE_S64, 3, (const int64_t[]){TABLES, r->n, r->each}), 1, &cube, "turned");
    inst_set_ints(turned, ATTR_DIMENSIONS, (Ints){(const int64_t[]){1, 0, 2}, 3});
    return dev_reshaped(x, turned, 2, (const int64_t[]){TABLES, r->pieces});
}

Inst *dev_pieces(DeviceExpansion *x)
{
    const Inst  *i = x->i;
    const Shape *in = inst_operand(i, 0)->shape, *out = i->shape;
    int64_t      count = shape_count(out);
    Pieces       r = {.x = x, .n = x->n, .pieces = shape_count(inst_operand(i, 2)->shape), .rows = in->dims[0], .old_rows = out->dims[0]};
    r.each = r.n > 0 ? r.pieces / r.n : 0;
    r.width = r.old_rows > 0 ? count / r.old_rows : 0;
    Inst *old = dev_reshaped(x, inst_operand(i, 1), 2, (const int64_t[]){r.old_rows, r.width});
    if (r.pieces == 0)
        return old;
    Inst *tables = tables_of(&r), *kept = dev_checked(x, old, is_inside(&r, tables), "a piece lies outside");
    if (count == 0 || r.rows == 0)
        return kept;
    Inst *inputs = gathered(&r, dev_reshaped(x, inst_operand(i, 0), 2, (const int64_t[]){1, r.rows * r.width}));
    return taken(&r, dev_reshaped(x, inputs, 2, (const int64_t[]){r.n * r.rows, r.width}), keys(&r, tables), kept);
}
