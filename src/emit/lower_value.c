/* Elements: the scalar x[index] for an instruction of a fusion. Elementwise operations and data movement are expanded by a worklist (chains may be
 * long), each value once per block and index. What has a condition or a loop of its own (concatenate, pad, reduce) expands its operands
 * in the block that it opens; that nests only so deep, then the instruction gets an array in memory instead. */
#include "analysis/int_range.h"
#include "analysis/softmax.h"
#include "emit/lower.h"

typedef struct Memo Memo;
struct Memo {
    const Inst      *x;
    int32_t          leaf, rank;
    const Ix *const *index;
    const KExpr     *value;
    const KBlock    *block; /* where the value is known */
    bool             unkept; /* an expression, not a name, of what had no memory then */
    Memo            *next;
};

const Shape *shape_leaf(const Shape *s, int32_t leaf)
{
    while (shape_is_tuple(s)) {
        int32_t k = 0, n;
        while (leaf >= (n = shape_leaf_count(s->elems[k], false))) {
            leaf -= n;
            k++;
        }
        s = s->elems[k];
    }
    return s;
}

static int32_t rank_of(const Inst *x, int32_t leaf)
{
    return shape_leaf(x->shape, leaf)->rank;
}

static uint64_t memo_key(const Inst *x, int32_t leaf, int32_t rank, const Ix *const *index)
{
    uint64_t h = hash_u64(hash_u64(0, (uint64_t)(uintptr_t)x), (uint64_t)leaf);
    for (int32_t d = 0; d < rank; d++)
        h = ix_hash(h, index[d]);
    return h;
}

static bool is_open(const Lower *L, const KBlock *b)
{
    for (const KBlock *p = L->cur; p && p->depth >= b->depth; p = p->parent)
        if (p == b)
            return true;
    return false;
}

static const KExpr *memo_find(Lower *L, const Inst *x, int32_t leaf, const Ix *const *index)
{
    int32_t rank = rank_of(x, leaf);
    for (Memo *m = map_get_u64(&L->memo, memo_key(x, leaf, rank, index)); m; m = m->next) {
        bool same = m->x == x && m->leaf == leaf && is_open(L, m->block) && !(m->unkept && memory_of(L, x, leaf));
        for (int32_t d = 0; d < rank && same; d++)
            same = ix_equal(m->index[d], index[d]);
        if (same)
            return m->value;
    }
    return NULL;
}

bool value_is_known(Lower *L, const Inst *x, int32_t leaf, const Ix *const *index)
{
    return memo_find(L, x, leaf, index) != NULL;
}

void known_value(Lower *L, const Inst *x, int32_t leaf, const Ix *const *index, const KExpr *value)
{
    int32_t  rank = rank_of(x, leaf), depth = value->depth;
    uint64_t key = memo_key(x, leaf, rank, index);
    Memo    *m = ARENA_NEW(L->arena, Memo);
    const Ix **copy = ARENA_ARRAY(L->arena, const Ix *, rank);
    for (int32_t d = 0; d < rank; d++) {
        copy[d] = index[d];
        if (ix_depth(index[d]) > depth)
            depth = ix_depth(index[d]);
    }
    bool named = value->kind == KX_TEMP || value->kind == KX_INT || value->kind == KX_FLOAT;
    *m = (Memo){ x, leaf, rank, copy, value, block_for(L, depth), !named && !memory_of(L, x, leaf), map_get_u64(&L->memo, key) };
    map_put_u64(&L->memo, key, m);
}

/* The operand that holds a leaf of a tuple; leaf becomes the operand's. */
static const Inst *tuple_part(const Inst *x, int32_t *leaf)
{
    int32_t k = 0, n;
    while (*leaf >= (n = shape_leaf_count(inst_operand(x, k)->shape, false))) {
        *leaf -= n;
        k++;
    }
    return inst_operand(x, k);
}

/* Tuples that are their operand's. */
static bool forwards_tuple(const Inst *x)
{
    return shape_is_tuple(x->shape) && (x->op == OP_COPY || x->op == OP_OPT_BARRIER || x->op == OP_DOMAIN || x->op == OP_ADD_DEPENDENCY);
}

const Inst *resolve(const Lower *L, const Inst *x, int32_t *leaf)
{
    while (!map_has(&L->memory, x))
        if (x->op == OP_TUPLE && x->n_operands > 0)
            x = tuple_part(x, leaf);
        else if (x->op == OP_GET_TUPLE_ELEMENT) {
            int64_t element = inst_int(x, ATTR_INDEX, 0);
            x = inst_operand(x, 0);
            for (int64_t k = 0; k < element; k++)
                *leaf += shape_leaf_count(x->shape->elems[k], false);
        } else if (forwards_tuple(x))
            x = inst_operand(x, 0);
        else
            break;
    return x;
}

KArray *memory_of(Lower *L, const Inst *x, int32_t leaf)
{
    KArray **leaves = map_get(&L->memory, x);
    return leaves ? leaves[leaf] : NULL;
}

void need_memory(Lower *L, const Inst *x)
{
    if (L->epilogue && epilogue_has(L, x)) { /* not at the place where it is finished */
        L->plan->no_epilogue = L->again = true;
        return;
    }
    if (!map_has(&L->plan->materialise, x)) {
        map_put(&L->plan->materialise, x, L->plan);
        L->again = true;
    } else if (!L->again)
        die("%%%s was to be in memory by now", x->name);
}

bool is_pointwise(const Inst *x)
{
    switch (x->op) {
    case OP_CONSTANT: case OP_IOTA: case OP_BROADCAST: case OP_RESHAPE: case OP_TRANSPOSE: case OP_REVERSE: case OP_SHUFFLE: case OP_SLICE: case OP_PAD:
    case OP_CONCATENATE: case OP_DYNAMIC_SLICE: case OP_DYNAMIC_UPDATE_SLICE: case OP_GATHER: case OP_BITCAST: case OP_BITCAST_CONVERT: case OP_COPY:
    case OP_OPT_BARRIER: case OP_DOMAIN: case OP_ADD_DEPENDENCY: case OP_MAP: case OP_REDUCE:
        return true;
    default:
        return op_has(x->op, F_ELEMENTWISE);
    }
}

/* One value that is being expanded. */
typedef struct Task {
    const Inst      *x;
    int32_t          leaf;
    const Ix *const *index;
    int              phase;
    const Ix       **at;     /* the operand's index, once known */
    const KExpr    **args;
} Task;
typedef VEC(Task) Tasks;

/* A leaf's value at index, or NULL after putting it on the worklist. */
static const KExpr *demand_leaf(Lower *L, Tasks *w, const Inst *x, int32_t leaf, const Ix *const *index)
{
    x = resolve(L, x, &leaf);
    const KExpr *v = memo_find(L, x, leaf, index);
    if (!v)
        vec_push(L->arena, w, ((Task){ .x = x, .leaf = leaf, .index = index }));
    return v;
}

/* The same for an operand that is an array. */
static const KExpr *demand(Lower *L, Tasks *w, const Inst *x, const Ix *const *index)
{
    return demand_leaf(L, w, x, 0, index);
}

static bool is_bare_load(const KExpr *v)
{
    while (v->kind == KX_CALL || v->kind == KX_CAST)
        v = v->arg[0];
    return v->kind == KX_LOAD;
}

/* An operand of arithmetic: loads that more than one instruction wants, and those that a movement has brought here, get names. */
const KExpr *keep(Lower *L, const Inst *x, const KExpr *v)
{
    int32_t leaf = 0;
    const Inst *source = resolve(L, x, &leaf);
    if (!is_bare_load(v))
        return v;
    if (L->body && memory_of(L, source, leaf) && source->n_uses <= 1)
        return v;
    if (!L->body)
        return v;
    return bind(L, v, memory_of(L, source, leaf) ? arena_printf(L->arena, "%s_at", source->name) : source->name);
}

/* Parts of a softmax have ranges that cheaper forms are made for: exponents of 0 at most, and sums of 1 at least, whose reciprocal is taken once a row; so have log(1 + e^-|x|), and quotients by what stays the
 * same along a loop. */
static const KExpr *cheaper_op(Lower *L, const Inst *x, const Type *types, const KExpr *const *args, const Ix *const *index)
{
    const Type   t = x->shape->type;
    const KExpr *q;
    if (machine_type(t) == TYPE_F32 && x->op == OP_EXPONENTIAL && types[0] == t && inst_is_below_max(inst_operand(x, 0)))
        return scalar_round_near(L->arena, t, kx_call(L->arena, "exp_below_f32", TYPE_F32, 1, args));
    if (machine_type(t) == TYPE_F32 && types[0] == t && inst_is_summed_below_max(x))
        return scalar_round_near(L->arena, t, kx_call(L->arena, "exp_summed_f32", TYPE_F32, 1, args));
    if (machine_type(t) == TYPE_F32 && x->op == OP_LOG_PLUS_ONE && types[0] == t && inst_is_one_at_most(inst_operand(x, 0)))
        return scalar_round_near(L->arena, t, kx_call(L->arena, "log1p_within_f32", TYPE_F32, 1, args));
    if (t == TYPE_F32 && x->op == OP_DIVIDE && types[0] == t && types[1] == t && inst_is_softmax_sum(inst_operand(x, 1))) {
        const KExpr *r = bind(L, kx_binary(L->arena, KOP_DIV, TYPE_F32, scalar_one(L->arena, TYPE_F32), args[1]), "reciprocal");
        return kx_binary(L->arena, KOP_MUL, TYPE_F32, args[0], r);
    }
    if (x->op == OP_DIVIDE && types[0] == t && types[1] == t && (q = quotient(L, x, args, index)) != NULL)
        return q;
    return scalar_op(L, x, types, args);
}

/* All operands at the same index; scalars beside arrays (select's predicate, clamp's bounds) at none. */
static const KExpr *step_elementwise(Lower *L, Tasks *w, Task t)
{
    const Inst   *x = t.x;
    const KExpr **args = ARENA_ARRAY(L->arena, const KExpr *, x->n_operands);
    Type         *types = ARENA_ARRAY(L->arena, Type, x->n_operands);
    bool          ready = true;
    for (int32_t k = 0; k < x->n_operands; k++) {
        args[k] = demand(L, w, inst_operand(x, k), t.index);
        types[k] = inst_operand(x, k)->shape->type;
        ready &= args[k] != NULL;
    }
    if (!ready)
        return NULL;
    for (int32_t k = 0; k < x->n_operands; k++) {
        int32_t      leaf = 0;
        const Inst  *source = resolve(L, inst_operand(x, k), &leaf);
        const KExpr *known = memo_find(L, source, leaf, t.index); /* an operand before may have given it a name */
        args[k] = keep(L, inst_operand(x, k), known);
        if (args[k] != known)
            known_value(L, source, leaf, t.index, args[k]);
    }
    if (x->op != OP_MAP)
        return L->plan->plain ? scalar_op(L, x, types, args) : cheaper_op(L, x, types, args, t.index);
    const KExpr *out;
    apply(L, inst_callee(x, 0), args, &out);
    return out;
}

static bool has_division(const Ix *x)
{
    for (int32_t i = 0; i < x->n; i++)
        if (x->t[i].atom->arg)
            return true;
    return false;
}

/* An offset that is divided next. Where divisions are left in it already, it is given a name: the digits of digits would double at every reshape. */
static const Ix *undivided(Lower *L, const Ix *offset)
{
    if (!has_division(offset))
        return offset;
    const KExpr *v = bind(L, kx_index(L->arena, offset), "offset");
    int64_t      lo, hi;
    ix_range(offset, &lo, &hi);
    return ix_of(&L->ix, ix_new_atom(&L->ix, IX_VALUE, NULL, lo, hi, v->depth, v->temp));
}

static void digits_of(Lower *L, const Ix *offset, const Shape *s, const int64_t *dims, const Ix **digits)
{
    ix_split(&L->ix, undivided(L, offset), s->rank, dims, digits);
}

/* Sizes of 1 come and go: the others keep their index, however that is made. */
static bool unit_index(Lower *L, const Shape *from, const Shape *to, const Ix *const *index, const Ix **at)
{
    int32_t *where = ARENA_ARRAY(L->arena, int32_t, from->rank);
    if (!shape_unit_dims(from, to, where))
        return false;
    for (int32_t d = 0; d < from->rank; d++)
        at[d] = where[d] < 0 ? ix_const(&L->ix, 0) : index[where[d]];
    return true;
}

/* Index of the one operand from the result's. */
static const Ix **moved_index(Lower *L, const Inst *x, const Ix *const *index)
{
    const Shape *from = inst_operand(x, 0)->shape, *to = x->shape;
    const Ix   **at = ARENA_ARRAY(L->arena, const Ix *, from->rank > to->rank ? from->rank : to->rank);
    Ints         dims = inst_ints(x, ATTR_DIMENSIONS);
    switch (x->op) {
    case OP_BROADCAST:
        for (int32_t d = 0; d < from->rank; d++)
            at[d] = index[dims.v[d]];
        return at;
    case OP_TRANSPOSE:
        for (int32_t d = 0; d < from->rank; d++)
            at[dims.v[d]] = index[d];
        return at;
    case OP_REVERSE:
        for (int32_t d = 0; d < from->rank; d++)
            at[d] = ints_has(dims, d) ? ix_plus(&L->ix, ix_times(&L->ix, index[d], -1), from->dims[d] - 1) : index[d];
        return at;
    case OP_SHUFFLE:
        for (int32_t d = 0; d < from->rank; d++)
            at[d] = index[d];
        for (int32_t k = 0; k < dims.n; k++)
            if (inst_shift(x, k))
                at[dims.v[k]] = ix_mod(&L->ix, undivided(L, ix_plus(&L->ix, index[dims.v[k]], inst_shift(x, k))), from->dims[dims.v[k]]);
        return at;
    case OP_SLICE: {
        const Slices *s = inst_attr(x, ATTR_SLICE)->value.slices;
        for (int32_t d = 0; d < from->rank; d++)
            at[d] = ix_plus(&L->ix, ix_times(&L->ix, index[d], s->v[d].stride), s->v[d].start);
        return at;
    }
    case OP_RESHAPE:
        if (!unit_index(L, from, to, index, at))
            digits_of(L, ix_linear(&L->ix, to->rank, index, to->dims), from, from->dims, at);
        return at;
    default:
        for (int32_t d = 0; d < from->rank; d++)
            at[d] = index[d];
        return at;
    }
}

/* bitcast: the place in memory stays. Offset by the result's layout, then digits in the operand's order. */
static const Ix **bitcast_index(Lower *L, const Inst *x, const Ix *const *index)
{
    const Shape *from = inst_operand(x, 0)->shape;
    int32_t     *order = major_order(L, from);
    int64_t     *dims = ARENA_ARRAY(L->arena, int64_t, from->rank);
    const Ix   **digits = ARENA_ARRAY(L->arena, const Ix *, from->rank), **at = ARENA_ARRAY(L->arena, const Ix *, from->rank);
    for (int32_t k = 0; k < from->rank; k++)
        dims[k] = from->dims[order[k]];
    digits_of(L, shape_index(L, x->shape, index), from, dims, digits);
    for (int32_t k = 0; k < from->rank; k++)
        at[order[k]] = digits[k];
    return at;
}

static const KExpr *step_move(Lower *L, Tasks *w, Task *t)
{
    if (!t->at)
        t->at = t->x->op == OP_BITCAST ? bitcast_index(L, t->x, t->index) : moved_index(L, t->x, t->index);
    Type         from = inst_operand(t->x, 0)->shape->type;
    const KExpr *v = demand(L, w, inst_operand(t->x, 0), t->at);
    if (v && t->x->op == OP_BITCAST && from != t->x->shape->type)
        v = scalar_op(L, t->x, &from, &v);
    return v && t->x->op == OP_COPY ? scalar_convert(L->arena, from, t->x->shape->type, v) : v;
}

static int memory_bits(Type t)
{
    return type_bits(t) == 6 ? 8 : type_bits(t);
}

/* bitcast-convert to another width: part j of a wider element, or an element put together from its parts. */
static const KExpr *step_bits(Lower *L, Tasks *w, Task *t)
{
    Arena       *a = L->arena;
    const Shape *from = inst_operand(t->x, 0)->shape, *to = t->x->shape;
    int          nf = memory_bits(from->type), nt = memory_bits(to->type);
    if (from->rank == to->rank) {
        const KExpr *v = demand(L, w, inst_operand(t->x, 0), t->index);
        return v ? scalar_op(L, t->x, &from->type, &v) : NULL;
    }
    Type unsigned_to = nt <= 8 ? TYPE_U8 : nt == 16 ? TYPE_U16 : nt == 32 ? TYPE_U32 : TYPE_U64;
    if (from->rank < to->rank) { /* wide to narrow */
        const KExpr *v = demand(L, w, inst_operand(t->x, 0), t->index);
        if (!v)
            return NULL;
        const KExpr *bits = kx_cast(a, TYPE_U64, scalar_bits(a, from->type, v));
        const KExpr *part = kx_index(a, ix_times(&L->ix, t->index[to->rank - 1], nt));
        const KExpr *x = kx_cast(a, unsigned_to, kx_binary(a, KOP_SHR, TYPE_U64, bits, part));
        if (nt < 8)
            x = kx_call(a, arena_printf(a, "wrap_u%d", nt), TYPE_U8, 1, &x);
        return scalar_from_bits(a, to->type, x);
    }
    const KExpr *whole = NULL;
    bool         ready = true;
    for (int64_t j = 0; j < from->dims[from->rank - 1]; j++) {
        const Ix **at = ARENA_ARRAY(a, const Ix *, from->rank);
        for (int32_t d = 0; d < to->rank; d++)
            at[d] = t->index[d];
        at[to->rank] = ix_const(&L->ix, j);
        const KExpr *v = demand(L, w, inst_operand(t->x, 0), at);
        ready &= v != NULL;
        if (!v)
            continue;
        const KExpr *part = kx_binary(a, KOP_SHL, TYPE_U64, kx_cast(a, TYPE_U64, scalar_bits(a, from->type, v)), kx_int(a, TYPE_U64, j * nf));
        whole = bind(L, whole ? kx_binary(a, KOP_OR, TYPE_U64, whole, part) : part, "bits");
    }
    return ready ? scalar_from_bits(a, to->type, kx_cast(a, unsigned_to, whole)) : NULL;
}

/* The index that x is, when it is one in 0..hi: an iota's. NULL when that is not known. */
static const Ix *plain_index(const KExpr *x, int64_t hi)
{
    int64_t least, most;
    while (x->kind == KX_CAST && type_is_int(x->type) && type_bits(x->type) >= 32)
        x = x->arg[0];
    if (x->kind != KX_INDEX)
        return NULL;
    ix_range(x->index, &least, &most);
    return least >= 0 && most <= hi && most <= INT32_MAX ? x->index : NULL;
}

/* x in 0..hi, by 32 bits where those hold all of it: vectors have twice as many. */
static const KExpr *clamped(Arena *a, const KExpr *x, int64_t hi)
{
    const bool natural = x->type == TYPE_U32;
    if (!type_is_int(x->type) || type_bits(x->type) > 32 || hi > (natural ? (int64_t)UINT32_MAX : INT32_MAX))
        return kx_call(a, "clamp_index", TYPE_S64, 2, (const KExpr *const[]){ kx_cast(a, TYPE_S64, x), kx_int(a, TYPE_S64, hi) });
    if (natural)
        x = kx_call(a, "min_u32", TYPE_U32, 2, (const KExpr *const[]){ x, kx_int(a, TYPE_U32, hi) });
    else
        x = kx_call(a, "clamp_s32", TYPE_S32, 2, (const KExpr *const[]){ kx_cast(a, TYPE_S32, x), kx_int(a, TYPE_S32, hi) });
    return x;
}

/* Of values that are indices up to hi: a GPU's registers have 32 bits. */
Type index_type(const Lower *L, int64_t hi)
{
    return L->plan->plain && hi <= INT32_MAX ? TYPE_S32 : TYPE_S64;
}

/* x in 0..hi, of which `of` is what makes it, or an array with it, or NULL. */
const Ix *clamped_index(Lower *L, const KExpr *x, const Inst *of, int64_t hi, const char *name)
{
    Arena   *a = L->arena;
    IntRange r;
    if (x->kind == KX_INT)
        return ix_const(&L->ix, x->i < 0 ? 0 : x->i > hi ? hi : x->i);
    const Ix *plain = plain_index(x, hi);
    if (plain)
        return plain;
    const bool within = of && int_range(of, &r) && r.lo >= 0 && r.hi <= hi && (x->kind != KX_TEMP || !x->temp->assigned || !L->plan->plain);
    x = bind(L, kx_cast(a, index_type(L, hi), within ? x : clamped(a, x, hi)), name);
    if (!x->temp->atom)
        x->temp->atom = ix_new_atom(&L->ix, IX_VALUE, NULL, 0, hi, x->depth, x->temp);
    return ix_of(&L->ix, x->temp->atom);
}

/* Start indices of a dynamic slice: operands first..first+rank-1 (or one of rank 1), clamped so that size fits. NULL: not yet. */
static const Ix **slice_starts(Lower *L, Tasks *w, const Inst *x, int32_t first, const int64_t *dims, const int64_t *size)
{
    int32_t    rank = inst_operand(x, 0)->shape->rank;
    bool       vector = rank > 0 && inst_operand(x, first)->shape->rank == 1, ready = true;
    const Ix **starts = ARENA_ARRAY(L->arena, const Ix *, rank);
    for (int32_t d = 0; d < rank; d++) {
        const Inst *from = inst_operand(x, vector ? first : first + d);
        const Ix  **at = ARENA_ARRAY(L->arena, const Ix *, 1);
        at[0] = ix_const(&L->ix, d);
        if (dims[d] == size[d]) {
            starts[d] = ix_const(&L->ix, 0);
            continue;
        }
        const KExpr *v = demand(L, w, from, at);
        ready &= v != NULL;
        if (v)
            starts[d] = clamped_index(L, v, from, dims[d] - size[d], arena_printf(L->arena, "%s_start%d", x->name, d));
    }
    return ready ? starts : NULL;
}

static const KExpr *step_dynamic_slice(Lower *L, Tasks *w, Task *t)
{
    const Shape *from = inst_operand(t->x, 0)->shape;
    if (!t->at) {
        const Ix **starts = slice_starts(L, w, t->x, 1, from->dims, t->x->shape->dims);
        if (!starts)
            return NULL;
        for (int32_t d = 0; d < from->rank; d++)
            starts[d] = ix_add(&L->ix, starts[d], t->index[d]);
        t->at = starts;
    }
    return demand(L, w, inst_operand(t->x, 0), t->at);
}

/* What makes element j of the indices along dimension d. */
static const Inst *start_of(const Inst *indices, int64_t d, int64_t j)
{
    while (indices->op == OP_CONCATENATE && inst_ints(indices, ATTR_DIMENSIONS).v[0] == d) {
        int32_t k = 0;
        while (j >= inst_operand(indices, k)->shape->dims[d])
            j -= inst_operand(indices, k++)->shape->dims[d];
        indices = inst_operand(indices, k);
    }
    return indices;
}

/* Positions: batch dims of the result in order are those of the indices without index_vector_dim. */
static const Ix **gather_index(Lower *L, Tasks *w, Task *t)
{
    const Inst  *x = t->x, *indices = inst_operand(x, 1);
    const Shape *from = inst_operand(x, 0)->shape, *ish = indices->shape;
    Ints         offset = inst_ints(x, ATTR_OFFSET_DIMS), collapsed = inst_ints(x, ATTR_COLLAPSED_SLICE_DIMS);
    Ints         map = inst_ints(x, ATTR_START_INDEX_MAP), size = inst_ints(x, ATTR_SLICE_SIZES);
    Ints         ob = inst_ints(x, ATTR_OPERAND_BATCHING_DIMS), ib = inst_ints(x, ATTR_START_INDICES_BATCHING_DIMS);
    int64_t      vector = inst_int(x, ATTR_INDEX_VECTOR_DIM, 0);
    const Ix   **at = ARENA_ARRAY(L->arena, const Ix *, from->rank), **g = ARENA_ARRAY(L->arena, const Ix *, ish->rank + 1);
    int32_t      batch = 0, window = 0;
    bool         ready = true;
    for (int32_t d = 0; d < x->shape->rank; d++) /* g: an index of indices, its vector dim open */
        if (!ints_has(offset, d)) {
            if (batch == vector)
                batch++;
            g[batch++] = t->index[d];
        }
    for (int32_t d = 0; d < from->rank; d++)
        at[d] = ints_has(collapsed, d) || ints_has(ob, d) ? ix_const(&L->ix, 0) : t->index[offset.v[window++]];
    for (int32_t j = 0; j < map.n; j++) {
        int64_t d = map.v[j], hi = from->dims[d] - size.v[d];
        if (hi == 0)
            continue;
        const Ix **pos = ARENA_ARRAY(L->arena, const Ix *, ish->rank + 1);
        for (int32_t k = 0; k < ish->rank; k++)
            pos[k] = k == vector ? ix_const(&L->ix, j) : g[k];
        const KExpr *v = demand(L, w, indices, pos);
        ready &= v != NULL;
        if (v)
            at[d] = ix_add(&L->ix, at[d], clamped_index(L, v, start_of(indices, vector, j), hi, arena_printf(L->arena, "%s_start%lld", x->name, (long long)d)));
    }
    for (int32_t j = 0; j < ob.n; j++)
        at[ob.v[j]] = ix_add(&L->ix, at[ob.v[j]], g[ib.v[j]]);
    return ready ? at : NULL;
}

static const KExpr *step_gather(Lower *L, Tasks *w, Task *t)
{
    if (shape_count(inst_operand(t->x, 0)->shape) == 0)
        return scalar_zero(L->arena, t->x->shape->type);
    if (!t->at)
        t->at = gather_index(L, w, t);
    return t->at ? demand(L, w, inst_operand(t->x, 0), t->at) : NULL;
}

/* Opens a nested expansion unless there are too many: then x gets memory. */
static bool enter(Lower *L, const Inst *x)
{
    if (L->nested >= MAX_NESTED) {
        need_memory(L, x);
        return false;
    }
    L->nested++;
    return true;
}

/* lo <= x < end as an expression. */
static const KExpr *range_test(Lower *L, const Ix *x, int64_t lo, int64_t end)
{
    Arena       *a = L->arena;
    const KExpr *v = kx_index(a, x), *below = NULL, *above = NULL;
    int64_t      least, most;
    ix_range(x, &least, &most);
    if (least < lo)
        below = kx_binary(a, KOP_GE, TYPE_PRED, v, kx_int(a, TYPE_S64, lo));
    if (most >= end)
        above = kx_binary(a, KOP_LT, TYPE_PRED, v, kx_int(a, TYPE_S64, end));
    if (below && above)
        return kx_binary(a, KOP_LAND, TYPE_PRED, below, above);
    return below ? below : above;
}

static const KExpr *both(Arena *a, const KExpr *x, const KExpr *y)
{
    return !x ? y : !y ? x : kx_binary(a, KOP_LAND, TYPE_PRED, x, y);
}

/* v = x[index] under the open condition, converted to type t. */
static void assign_value(Lower *L, KTemp *v, const Inst *x, const Ix *const *index, Type t)
{
    int32_t     leaf = 0;
    const Inst *source = resolve(L, x, &leaf);
    assign(L, v, scalar_convert(L->arena, x->shape->type, t, value_at(L, source, leaf, index)));
}

/* Operand k covers [start, end) along the dimension; the first whose end is above the index. */
static const KExpr *step_concatenate(Lower *L, Tasks *w, Task *t)
{
    const Inst *x = t->x;
    int64_t     d = inst_ints(x, ATTR_DIMENSIONS).v[0], start = 0;
    KTemp      *v = NULL;
    int32_t     opened = 0;
    bool        more = true;
    const Ix  **at = ARENA_ARRAY(L->arena, const Ix *, x->shape->rank);
    for (int32_t e = 0; e < x->shape->rank; e++)
        at[e] = t->index[e];
    /* All in one operand? */
    for (int32_t k = 0; k < x->n_operands && !t->at; k++) {
        int64_t n = inst_operand(x, k)->shape->dims[d];
        if (n > 0 && in_range(L, t->index[d], start, start + n) == 1) {
            at[d] = ix_plus(&L->ix, t->index[d], -start);
            t->at = at;
            t->phase = k;
        }
        start += n;
    }
    if (t->at) {
        const KExpr *only = demand(L, w, inst_operand(x, t->phase), t->at);
        return only ? scalar_convert(L->arena, inst_operand(x, t->phase)->shape->type, x->shape->type, only) : NULL;
    }
    if (L->body && x->n_operands > MAX_BRANCHES) {
        need_memory(L, x);
        return scalar_zero(L->arena, x->shape->type);
    }
    if (!enter(L, x))
        return scalar_zero(L->arena, x->shape->type);
    start = 0;
    v = accumulator(L, NULL, machine_type(x->shape->type), x->name);
    for (int32_t k = 0; k < x->n_operands && more; k++) {
        int64_t n = inst_operand(x, k)->shape->dims[d], least, most;
        ix_range(t->index[d], &least, &most);
        more = most >= start + n;
        if (n > 0 && least < start + n) {
            const Ix **to = ARENA_ARRAY(L->arena, const Ix *, x->shape->rank);
            for (int32_t e = 0; e < x->shape->rank; e++)
                to[e] = e == d ? ix_plus(&L->ix, t->index[d], -start) : t->index[e];
            if (more) {
                if_open(L, kx_binary(L->arena, KOP_LT, TYPE_PRED, kx_index(L->arena, t->index[d]), kx_int(L->arena, TYPE_S64, start + n)));
                opened++;
            }
            assign_value(L, v, inst_operand(x, k), to, x->shape->type);
            if (more)
                if_else(L);
        }
        start += n;
    }
    while (opened-- > 0)
        block_close(L);
    L->nested--;
    return kx_temp(L->arena, v);
}

/* Whether x, a remainder, is 0: 1 always, 0 never, -1 open, and the loop that it depends on is asked to break where that changes. */
static int is_on_step(Lower *L, const Ix *x)
{
    const IxAtom *t = x->n == 1 && x->c == 0 ? x->t[0].atom : NULL;
    int64_t       lo, hi;
    if (L->plan->plain && x->n > 0)
        return -1;
    if (!t || t->kind != IX_MOD)
        return in_range(L, x, 0, 1);
    ix_range(t->arg, &lo, &hi);
    int64_t whole = lo - (lo % t->by + t->by) % t->by;
    in_range(L, t->arg, whole, whole + t->by);
    in_range(L, t->arg, whole, whole + t->by + 1);
    return -1;
}

/* Result index o is operand element (o - lo) / (interior + 1) where that divides and is in range, else the padding value. */
static const KExpr *step_pad(Lower *L, Tasks *w, Task *t)
{
    const Inst    *x = t->x;
    const Shape   *from = inst_operand(x, 0)->shape;
    const Padding *p = inst_attr(x, ATTR_PADDING)->value.padding;
    const Ix     **at = ARENA_ARRAY(L->arena, const Ix *, from->rank);
    const KExpr   *cond = NULL;
    bool           outside = false;
    for (int32_t d = 0; d < from->rank && !outside; d++) {
        int64_t   step = p->v[d].interior + 1;
        const Ix *q = ix_plus(&L->ix, t->index[d], -p->v[d].lo);
        int       in = in_range(L, q, 0, (from->dims[d] - 1) * step + 1);
        outside = in == 0;
        if (in < 0)
            cond = both(L->arena, cond, range_test(L, q, 0, (from->dims[d] - 1) * step + 1));
        if (step > 1 && !outside) {
            const Ix *rest = ix_mod(&L->ix, q, step);
            int       on = is_on_step(L, rest);
            if (on < 0)
                cond = both(L->arena, cond, kx_binary(L->arena, KOP_EQ, TYPE_PRED, kx_index(L->arena, rest), kx_int(L->arena, TYPE_S64, 0)));
            outside |= on == 0;
            q = ix_div(&L->ix, q, step);
        }
        at[d] = q;
    }
    Type pad_type = inst_operand(x, 1)->shape->type, to = x->shape->type;
    if (outside || !cond) {
        const KExpr *v = demand(L, w, inst_operand(x, outside), outside ? NULL : at);
        return v ? scalar_convert(L->arena, outside ? pad_type : from->type, to, v) : NULL;
    }
    const KExpr *value = demand(L, w, inst_operand(x, 1), NULL);
    if (!value)
        return NULL;
    if (!enter(L, x))
        return scalar_zero(L->arena, to);
    KTemp *v = accumulator(L, scalar_convert(L->arena, pad_type, to, value), machine_type(to), x->name);
    if_open(L, cond);
    assign_value(L, v, inst_operand(x, 0), at, to);
    block_close(L);
    L->nested--;
    return kx_temp(L->arena, v);
}

const Ix **update_starts(Lower *L, const Inst *x)
{
    int32_t    rank = x->shape->rank;
    bool       vector = rank > 0 && inst_operand(x, 2)->shape->rank == 1;
    const Ix **starts = ARENA_ARRAY(L->arena, const Ix *, rank), *at;
    for (int32_t d = 0; d < rank; d++) {
        int64_t     hi = x->shape->dims[d] - inst_operand(x, 1)->shape->dims[d];
        int32_t     leaf = 0;
        const Inst *from = resolve(L, inst_operand(x, vector ? 2 : 2 + d), &leaf);
        at = ix_const(&L->ix, d);
        starts[d] = hi == 0 ? ix_const(&L->ix, 0)
                            : clamped_index(L, value_at(L, from, leaf, &at), from, hi, arena_printf(L->arena, "%s_start%d", x->name, d));
    }
    return starts;
}

/* The update where the index lies in its window, else the operand. */
static const KExpr *step_update(Lower *L, Tasks *w, Task *t)
{
    const Inst  *x = t->x, *u = inst_operand(x, 1);
    const Shape *s = x->shape;
    const Ix   **starts = slice_starts(L, w, x, 2, s->dims, u->shape->dims);
    const KExpr *cond = NULL;
    bool         outside = shape_count(u->shape) == 0;
    if (!starts)
        return NULL;
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    for (int32_t d = 0; d < s->rank && !outside; d++) {
        at[d] = ix_add(&L->ix, t->index[d], ix_times(&L->ix, starts[d], -1));
        int in = in_range(L, at[d], 0, u->shape->dims[d]);
        outside = in == 0;
        if (in < 0)
            cond = both(L->arena, cond, range_test(L, at[d], 0, u->shape->dims[d]));
    }
    if (outside || !cond) {
        const KExpr *v = demand(L, w, inst_operand(x, !outside), outside ? t->index : at);
        return v ? scalar_convert(L->arena, inst_operand(x, !outside)->shape->type, s->type, v) : NULL;
    }
    if (!enter(L, x))
        return scalar_zero(L->arena, s->type);
    KTemp *v = accumulator(L, NULL, machine_type(s->type), x->name);
    if_open(L, cond);
    assign_value(L, v, u, at, s->type);
    if_else(L);
    assign_value(L, v, inst_operand(x, 0), t->index, s->type);
    block_close(L);
    L->nested--;
    return kx_temp(L->arena, v);
}

static const KExpr *constant_at(Lower *L, const Inst *x, const Ix *const *index)
{
    const Literal *l = x->literal;
    int64_t        c;
    if (l->elided) {
        inst_error(L->diag, x, "the values of this constant are elided: give them with --fill-elided or --constants");
        L->failed = true;
        return scalar_zero(L->arena, l->type);
    }
    const Ix *at = ix_linear(&L->ix, l->rank, index, l->dims);
    if (ix_is_const(at, &c) || literal_all_equal_bits(l))
        return scalar_constant(L->arena, l, ix_is_const(at, &c) ? c : 0);
    KArray *table = memory_of(L, x, 0);
    if (!table) {
        KArray **leaves = ARENA_ARRAY(L->arena, KArray *, 1);
        table = leaves[0] = ARENA_NEW(L->arena, KArray);
        *table = (KArray){ .kind = KARRAY_CONST, .type = l->type, .name = x->name, .count = l->count, .literal = l, .serial = L->arrays.n };
        vec_push(L->arena, &L->arrays, table);
        map_put(&L->memory, x, leaves);
    }
    return load(L, table, at);
}

static const KExpr *iota_at(Lower *L, const Inst *x, const Ix *const *index)
{
    const KExpr *v = kx_index(L->arena, index[inst_int(x, ATTR_IOTA_DIMENSION, 0)]);
    return scalar_convert(L->arena, TYPE_S64, x->shape->type, v);
}

static const KExpr *step_reduce(Lower *L, Task *t)
{
    int32_t       n = t->x->n_operands / 2;
    const KExpr **out = ARENA_ARRAY(L->arena, const KExpr *, n);
    if (!reduce_is_inline(L, t->x, t->index)) {
        vec_push(L->arena, &L->repeated, t->x);
        L->again = true;
        return scalar_zero(L->arena, shape_leaf(t->x->shape, t->leaf)->type);
    }
    if (!enter(L, t->x)) {
        need_memory(L, t->x);
        return scalar_zero(L->arena, shape_leaf(t->x->shape, t->leaf)->type);
    }
    reduce_at(L, t->x, t->index, out);
    L->nested--;
    for (int32_t k = 0; k < n; k++)
        if (k != t->leaf)
            known_value(L, t->x, k, t->index, out[k]);
    return out[t->leaf];
}

/* The value if its operands' values are there, else NULL with those put on the worklist. */
static const KExpr *step(Lower *L, Tasks *w, Task *t)
{
    const Inst *x = t->x;
    KArray     *array = memory_of(L, x, t->leaf);
    if (array && array->kind != KARRAY_CONST)
        return load(L, array, shape_index(L, array->shape, t->index));
    const Literal *inlined = map_get(&L->inlined, x);
    if (inlined)
        return scalar_constant(L->arena, inlined, 0);
    const KExpr *kept = row_is_kept(L, x) ? row_value(L, x, t->index) : NULL;
    if (kept)
        return kept;
    switch (x->op) {
    case OP_CONSTANT: return constant_at(L, x, t->index);
    case OP_IOTA: return iota_at(L, x, t->index);
    case OP_BROADCAST: case OP_TRANSPOSE: case OP_REVERSE: case OP_SHUFFLE: case OP_SLICE: case OP_RESHAPE: case OP_COPY: case OP_BITCAST:
    case OP_OPT_BARRIER: case OP_DOMAIN: case OP_ADD_DEPENDENCY:
        return step_move(L, w, t);
    case OP_BITCAST_CONVERT: return step_bits(L, w, t);
    case OP_DYNAMIC_SLICE: return step_dynamic_slice(L, w, t);
    case OP_DYNAMIC_UPDATE_SLICE: return step_update(L, w, t);
    case OP_GATHER: return step_gather(L, w, t);
    case OP_CONCATENATE: return step_concatenate(L, w, t);
    case OP_PAD: return step_pad(L, w, t);
    case OP_REDUCE: return step_reduce(L, t);
    default:
        if (is_pointwise(x))
            return step_elementwise(L, w, *t);
        need_memory(L, x);
        return scalar_zero(L->arena, shape_leaf(x->shape, t->leaf)->type);
    }
}

static bool is_arithmetic(const Inst *x)
{
    return op_has(x->op, F_ELEMENTWISE) || x->op == OP_MAP || (x->op == OP_BITCAST_CONVERT && inst_operand(x, 0)->shape->rank != x->shape->rank);
}

/* Too much for one kernel means that something is expanded at many indices: what several instructions use goes to memory. */
static void give_up_expanding(Lower *L)
{
    if (L->again || L->failed)
        return;
    for (const Inst *i = L->body ? L->body->first : NULL; i; i = i->next)
        if (i->n_uses > 1 && i->op != OP_PARAMETER && i->op != OP_CONSTANT && i->op != OP_IOTA && shape_is_array(i->shape) && !shape_is_scalar(i->shape) &&
            !map_has(&L->plan->materialise, i))
            need_memory(L, i);
    if (L->again)
        return;
    inst_error(L->diag, L->inst, "%s %%%s computes too much to compile as one kernel", op_name(L->inst->op), L->inst->name);
    L->failed = true;
}

static const KExpr *expand(Lower *L, const Inst *root, int32_t leaf, const Ix *const *index, bool open)
{
    Tasks        w = { 0 };
    const KExpr *v = NULL;
    root = resolve(L, root, &leaf);
    if (!demand_leaf(L, &w, root, leaf, index) && L->work > MAX_WORK) {
        give_up_expanding(L);
        return scalar_zero(L->arena, shape_leaf(root->shape, leaf)->type);
    }
    while (w.n > 0) {
        Task    t = w.v[w.n - 1];
        int32_t at = w.n - 1;
        v = memo_find(L, t.x, t.leaf, t.index);
        if (v) {
            w.n--;
            continue;
        }
        v = step(L, &w, &t);
        if (!v) {
            w.v[at] = t;
            continue;
        }
        w.n = at;
        L->work++;
        bool computed = is_arithmetic(t.x) && !memory_of(L, t.x, t.leaf);
        if (computed && at == 0 && open)
            return v;
        if (computed) {
            v = bind(L, v, t.x->name);
            int32_t depth = index_depth(t.index, rank_of(t.x, t.leaf));
            row_note(L, t.x, t.index, block_for(L, v->depth > depth ? v->depth : depth));
        }
        known_value(L, t.x, t.leaf, t.index, v);
    }
    return memo_find(L, root, leaf, index);
}

const KExpr *value_at(Lower *L, const Inst *x, int32_t leaf, const Ix *const *index)
{
    return expand(L, x, leaf, index, false);
}

const KExpr *open_value_at(Lower *L, const Inst *x, int32_t leaf, const Ix *const *index)
{
    return expand(L, x, leaf, index, true);
}
