/* Building and walking kernel IR. Expression trees are shallow: lowering gives every instruction's value a name, so recursion here is
 * bounded by what one instruction expands to; blocks nest as deep as loops do. */
#include "emit/kernel_ir.h"

#include <string.h>

Type machine_type(Type t)
{
    switch (type_info[t].cls) {
    case CLASS_SIGNED: return type_bits(t) <= 8 ? TYPE_S8 : t;
    case CLASS_UNSIGNED: return type_bits(t) <= 8 ? TYPE_U8 : t;
    case CLASS_FLOAT: return t == TYPE_F64 ? TYPE_F64 : TYPE_F32;
    default: return t;
    }
}

Type storage_type(Type t)
{
    if (t == TYPE_F64 || t == TYPE_F32)
        return t;
    if (type_is_float(t))
        return type_bytes(t) == 2 ? TYPE_U16 : TYPE_U8;
    return t == TYPE_PRED ? TYPE_U8 : machine_type(t);
}

static KExpr *new_expr(Arena *a, KExprKind kind, Type t)
{
    KExpr *x = ARENA_NEW(a, KExpr);
    x->kind = kind;
    x->type = t;
    return x;
}

static void take_arg(KExpr *x, const KExpr *arg)
{
    x->arg[x->n++] = arg;
    if (arg->depth > x->depth)
        x->depth = arg->depth;
}

const KExpr *kx_int(Arena *a, Type t, int64_t v)
{
    KExpr *x = new_expr(a, KX_INT, t);
    x->i = v;
    return x;
}

const KExpr *kx_float(Arena *a, Type t, double v)
{
    KExpr *x = new_expr(a, KX_FLOAT, t);
    x->f = v;
    return x;
}

const KExpr *kx_temp(Arena *a, KTemp *t)
{
    KExpr *x = new_expr(a, KX_TEMP, t->type);
    x->temp = t;
    x->depth = t->depth;
    return x;
}

const KExpr *kx_index(Arena *a, const Ix *index)
{
    int64_t c;
    if (ix_is_const(index, &c))
        return kx_int(a, TYPE_S64, c);
    KExpr *x = new_expr(a, KX_INDEX, TYPE_S64);
    x->index = index;
    x->depth = ix_depth(index);
    return x;
}

const KExpr *kx_load(Arena *a, KArray *array, const Ix *index)
{
    KExpr *x = new_expr(a, KX_LOAD, storage_type(array->type));
    x->array = array;
    x->index = index;
    x->depth = ix_depth(index);
    array->read = true;
    return x;
}

const KExpr *kx_unary(Arena *a, KOp op, Type t, const KExpr *arg)
{
    if (op == KOP_NOT && t == TYPE_PRED && arg->kind == KX_INT)
        return kx_int(a, t, !arg->i);
    if (op == KOP_NEG && arg->kind == KX_FLOAT)
        return kx_float(a, t, -arg->f);
    KExpr *x = new_expr(a, KX_UNARY, t);
    x->op = op;
    take_arg(x, arg);
    return x;
}

/* Both read one variable or one element. */
static bool reads_same(const KExpr *p, const KExpr *q)
{
    if (p->kind != q->kind)
        return false;
    return p->kind == KX_TEMP ? p->temp == q->temp : p->kind == KX_LOAD && p->array == q->array && ix_equal(p->index, q->index);
}

/* x < x and the like of integers: compilers warn of it. NaN is not equal to itself. */
static bool compares_with_itself(KOp op, const KExpr *p, const KExpr *q)
{
    return op >= KOP_LT && op <= KOP_NE && !type_is_float(p->type) && !type_is_complex(p->type) && reads_same(p, q);
}

static bool compare(KOp op, int64_t p, int64_t q)
{
    switch (op) {
    case KOP_LT: return p < q;
    case KOP_LE: return p <= q;
    case KOP_GT: return p > q;
    case KOP_GE: return p >= q;
    case KOP_EQ: return p == q;
    default: return p != q;
    }
}

/* A comparison in which one side is the constant 0 or 1 of type pred: a constant, the other side or its opposite, since compilers warn
 * of bool > 1. NULL: it is none. */
static const KExpr *compare_pred(Arena *a, KOp op, const KExpr *p, const KExpr *q)
{
    bool left = p->kind == KX_INT;
    if (op < KOP_LT || op > KOP_NE || p->type != TYPE_PRED || q->type != TYPE_PRED || (!left && q->kind != KX_INT))
        return NULL;
    bool if_no = left ? compare(op, p->i, 0) : compare(op, 0, q->i), if_yes = left ? compare(op, p->i, 1) : compare(op, 1, q->i);
    const KExpr *x = left ? q : p;
    return if_no == if_yes ? kx_int(a, TYPE_PRED, if_yes) : if_yes ? x : kx_unary(a, KOP_NOT, TYPE_PRED, x);
}

/* Nothing of a type is beyond its range: compilers warn of the question. x op limit; NULL: it is a question. */
static const KExpr *beyond_range(Arena *a, KOp op, Type t, const KExpr *x, const KExpr *limit)
{
    int bits = type_is_int(x->type) ? type_bits(x->type) : 64;
    if (limit->kind != KX_INT || x->kind == KX_INT || bits > 32)
        return NULL;
    int64_t least = type_is_signed_int(x->type) ? -(INT64_C(1) << (bits - 1)) : 0, most = least + (INT64_C(1) << bits) - 1;
    if ((op == KOP_GT || op == KOP_LE) && limit->i == most)
        return kx_int(a, t, op == KOP_LE);
    if ((op == KOP_LT || op == KOP_GE) && limit->i == least)
        return kx_int(a, t, op == KOP_GE);
    return NULL;
}

static KOp mirrored(KOp op)
{
    switch (op) {
    case KOP_LT: return KOP_GT;
    case KOP_GT: return KOP_LT;
    case KOP_LE: return KOP_GE;
    case KOP_GE: return KOP_LE;
    default: return op;
    }
}

/* true | x is true, false | x is x: compilers warn of what they need not compute. NULL: neither. */
static const KExpr *with_known(KOp op, const KExpr *known, const KExpr *x)
{
    if (known->kind != KX_INT || known->type != TYPE_PRED || x->type != TYPE_PRED || (op != KOP_OR && op != KOP_AND))
        return NULL;
    return (known->i != 0) == (op == KOP_OR) ? known : x;
}

const KExpr *kx_binary(Arena *a, KOp op, Type t, const KExpr *p, const KExpr *q)
{
    if (compares_with_itself(op, p, q))
        return kx_int(a, t, op == KOP_EQ || op == KOP_LE || op == KOP_GE);
    const KExpr *simple = compare_pred(a, op, p, q);
    simple = simple ? simple : with_known(op, p, q);
    simple = simple ? simple : with_known(op, q, p);
    simple = simple ? simple : beyond_range(a, op, t, p, q);
    simple = simple ? simple : beyond_range(a, mirrored(op), t, q, p);
    if (simple)
        return simple;
    KExpr *x = new_expr(a, KX_BINARY, t);
    x->op = op;
    take_arg(x, p);
    take_arg(x, q);
    return x;
}

const KExpr *kx_select(Arena *a, const KExpr *c, const KExpr *p, const KExpr *q)
{
    if (c->kind == KX_INT)
        return c->i ? p : q;
    KExpr *x = new_expr(a, KX_SELECT, p->type);
    take_arg(x, c);
    take_arg(x, p);
    take_arg(x, q);
    return x;
}

const KExpr *kx_call(Arena *a, const char *fn, Type t, int32_t n, const KExpr *const *args)
{
    KExpr *x = new_expr(a, KX_CALL, t);
    x->fn = fn;
    for (int32_t i = 0; i < n; i++)
        take_arg(x, args[i]);
    return x;
}

const KExpr *kx_distinct(Arena *a, KArray *p, KArray *q)
{
    KExpr *x = new_expr(a, KX_DISTINCT, TYPE_PRED);
    x->array = p;
    x->other = q;
    return x;
}

/* An integer constant cut to the bits of t. */
static int64_t cut(Type t, int64_t v)
{
    int bits = type_bits(t);
    if (t == TYPE_PRED)
        return v != 0;
    if (bits >= 64)
        return v;
    uint64_t mask = ((uint64_t)1 << bits) - 1, u = (uint64_t)v & mask;
    if (type_is_signed_int(t) && (u >> (bits - 1)))
        u |= ~mask;
    return (int64_t)u;
}

static bool fits_s32(const KExpr *index)
{
    int64_t lo, hi;
    ix_range(index->index, &lo, &hi);
    return lo >= INT32_MIN && hi <= INT32_MAX;
}

/* Before AVX-512 vectors of 64-bit integers cannot be converted to floats, those of 32 bits can. */
const KExpr *kx_cast(Arena *a, Type t, const KExpr *arg)
{
    if (arg->type == t)
        return arg;
    if (arg->kind == KX_INDEX && type_is_float(t) && fits_s32(arg))
        arg = kx_cast(a, TYPE_S32, arg);
    if (arg->kind == KX_INT && (type_is_int(t) || t == TYPE_PRED))
        return kx_int(a, t, cut(t, arg->i));
    if (arg->kind == KX_INT && type_is_float(t))
        return kx_float(a, t, t == TYPE_F32 ? (arg->type == TYPE_U64 ? (float)(uint64_t)arg->i : (float)arg->i)
                                            : (arg->type == TYPE_U64 ? (double)(uint64_t)arg->i : (double)arg->i));
    if (arg->kind == KX_FLOAT && type_is_float(t))
        return kx_float(a, t, t == TYPE_F32 ? (double)(float)arg->f : arg->f);
    KExpr *x = new_expr(a, KX_CAST, t);
    take_arg(x, arg);
    return x;
}

static void visit_expr(const KVisitor *v, const KExpr *x)
{
    if (!x || !v->expr)
        return;
    v->expr(v->cookie, x);
    for (int32_t i = 0; i < x->n; i++)
        visit_expr(v, x->arg[i]);
}

void kernel_visit_stmt(const KStmt *s, const KVisitor *v)
{
    if (v->stmt)
        v->stmt(v->cookie, s);
    visit_expr(v, s->value);
    if (s->body)
        kernel_visit(s->body, v);
    if (s->other)
        kernel_visit(s->other, v);
}

void kernel_visit(const KBlock *b, const KVisitor *v)
{
    for (const KStmt *s = b->first; s; s = s->next)
        kernel_visit_stmt(s, v);
}

const KExpr *kx_rewrite(Arena *a, const KExpr *x, const KRewriter *r)
{
    const KExpr *instead = x->kind == KX_LOAD ? r->load(r->cookie, x) : NULL;
    if (instead)
        return instead;
    if (x->n == 0 || (x->kind == KX_UNARY && x->op == KOP_PLACE))
        return x;
    KExpr *copy = arena_copy(a, x, sizeof *x);
    for (int32_t i = 0; i < x->n; i++)
        copy->arg[i] = kx_rewrite(a, x->arg[i], r);
    return copy;
}

KBlock *kernel_rewrite(Arena *a, const KBlock *b, const KRewriter *r)
{
    KBlock *out = ARENA_NEW(a, KBlock);
    for (const KStmt *s = b->first; s; s = s->next) {
        KStmt copy = *s;
        copy.value = s->value ? kx_rewrite(a, s->value, r) : NULL;
        copy.body = s->body ? kernel_rewrite(a, s->body, r) : NULL;
        copy.other = s->other ? kernel_rewrite(a, s->other, r) : NULL;
        if (s->kind == KS_STORE && r->store)
            r->store(r->cookie, &copy);
        kblock_append_copy(a, out, &copy);
    }
    return out;
}

/* The name-free text of a kernel: equal text is an equal kernel. Loops are numbered by their atom in order of appearance. */
typedef struct Signer {
    Buf *out;
    VEC(const IxAtom *) atoms;
    Arena *arena;
} Signer;

static int32_t atom_number(Signer *s, const IxAtom *x)
{
    for (int32_t i = s->atoms.n - 1; i >= 0; i--)
        if (s->atoms.v[i] == x)
            return i;
    vec_push(s->arena, &s->atoms, x);
    return s->atoms.n - 1;
}

static void sign_ix(Signer *s, const Ix *x)
{
    buf_printf(s->out, "[%lld", (long long)x->c);
    for (int32_t i = 0; i < x->n; i++) {
        const IxAtom *y = x->t[i].atom;
        buf_printf(s->out, "+%lld*", (long long)x->t[i].k);
        if (y->arg) {
            buf_printf(s->out, "%c%lld", y->kind == IX_DIV ? '/' : '%', (long long)y->by);
            sign_ix(s, y->arg);
        } else if (y->kind == IX_VALUE)
            buf_printf(s->out, "t%d", ((const KTemp *)y->owner)->serial);
        else
            buf_printf(s->out, "i%d", atom_number(s, y));
    }
    buf_putc(s->out, ']');
}

static void sign_expr(Signer *s, const KExpr *x)
{
    buf_printf(s->out, "(%d:%d", x->kind, x->type);
    switch (x->kind) {
    case KX_INT: buf_printf(s->out, " %lld", (long long)x->i); break;
    case KX_FLOAT: buf_put(s->out, &x->f, sizeof x->f); break;
    case KX_TEMP: buf_printf(s->out, " t%d", x->temp->serial); break;
    case KX_INDEX: sign_ix(s, x->index); break;
    case KX_LOAD:
        buf_printf(s->out, " a%d", x->array->serial);
        sign_ix(s, x->index);
        break;
    case KX_DISTINCT: buf_printf(s->out, " a%d a%d", x->array->serial, x->other->serial); break;
    case KX_CALL: buf_puts(s->out, x->fn); break;
    case KX_UNARY:
    case KX_BINARY: buf_printf(s->out, " o%d", x->op); break;
    case KX_SELECT:
    case KX_CAST: break;
    }
    for (int32_t i = 0; i < x->n; i++)
        sign_expr(s, x->arg[i]);
    buf_putc(s->out, ')');
}

static void sign_block(Signer *s, const KBlock *b)
{
    for (const KStmt *t = b->first; t; t = t->next) {
        buf_printf(s->out, "\n%d", t->kind);
        if (t->temp)
            buf_printf(s->out, " t%d:%d", t->temp->serial, t->temp->type);
        if (t->array)
            buf_printf(s->out, " a%d", t->array->serial);
        if (t->loop)
            buf_printf(s->out, " i%d %lld %lld", atom_number(s, t->loop), (long long)t->loop->lo, (long long)t->loop->hi);
        for (int k = 0; k < 3; k++) {
            const Ix *x = k == 0 ? t->index : k == 1 ? t->from : t->end;
            if (x)
                sign_ix(s, x);
            else
                buf_putc(s->out, '-');
        }
        if (t->value)
            sign_expr(s, t->value);
        if (t->body) {
            buf_putc(s->out, '{');
            sign_block(s, t->body);
            buf_putc(s->out, '}');
        }
        if (t->other) {
            buf_putc(s->out, '{');
            sign_block(s, t->other);
            buf_putc(s->out, '}');
        }
    }
}

static void free_signature(void *p)
{
    buf_free(p);
}

static void sign(Kernel *k)
{
    Signer s = { .out = &k->signature, .arena = k->arena };
    arena_defer(k->arena, free_signature, &k->signature);
    for (int32_t i = 0; i < k->n_arrays; i++) {
        const KArray *x = k->arrays[i];
        buf_printf(s.out, "a%d %d %d %lld %d %lld %d%d%d;", x->serial, x->kind, x->type, (long long)x->count, x->param,
                   (long long)x->offset, x->read, x->written, x->restricted);
        if (x->literal)
            buf_put(s.out, x->literal->data, (size_t)literal_bytes(x->literal));
    }
    buf_printf(s.out, "%lld %d", (long long)k->tile_row, k->tile_in_place);
    sign_block(&s, k->body);
}

bool kernel_equal(const Kernel *a, const Kernel *b)
{
    size_t n = a->signature.n; /* 0 for kernels that do nothing */
    return n == b->signature.n && (n == 0 || memcmp(a->signature.p, b->signature.p, n) == 0);
}

uint64_t kernel_hash(const Kernel *k)
{
    return hash_bytes(0, k->signature.p, k->signature.n);
}

static void note_read(void *cookie, const KExpr *x)
{
    if (x->kind == KX_LOAD)
        x->array->read = true;
}

static void note_write(void *cookie, const KStmt *s)
{
    if (s->kind == KS_STORE)
        s->array->written = true;
}

/* Flags by what the finished body does; arrays that it does not touch are forgotten. */
static void note_accesses(Kernel *k)
{
    for (int32_t i = 0; i < k->n_arrays; i++)
        k->arrays[i]->read = k->arrays[i]->written = false;
    KVisitor v = { note_read, note_write, NULL };
    kernel_visit(k->body, &v);
    int32_t n = 0;
    for (int32_t i = 0; i < k->n_arrays; i++)
        if (k->arrays[i]->read || k->arrays[i]->written) {
            k->arrays[n] = k->arrays[i];
            k->arrays[n]->serial = n;
            n++;
        }
    k->n_arrays = n;
}

void kernel_finish(Kernel *k, bool plain)
{
    note_accesses(k);
    for (int32_t r = 0; r < k->n_results && !k->tile_row; r++) /* what the runtime calls is not in place: its operands have to stay as long as there are tiles */
        for (int32_t o = 0; o < k->n_operands; o++) {
            KArray *result = k->params[k->n_operands + r], *operand = k->params[o];
            bool   *may = &k->may_alias[r * k->n_operands + o];
            *may = (*may && kernel_reads_in_time(k, result, operand)) || !operand->read || kernel_same_place(k, result, operand, plain);
            if (*may && operand->read)
                result->restricted = operand->restricted = false;
        }
    sign(k);
}

static bool is_never_run(const Kernel *k, const KStmt *s, const bool *in_place)
{
    const KArray *result = s->kind == KS_IF && !s->other && s->value->kind == KX_DISTINCT ? s->value->array : NULL, *operand = result ? s->value->other : NULL;
    return result && result->kind == KARRAY_PARAM && operand->kind == KARRAY_PARAM && result->param >= k->n_operands && operand->param < k->n_operands &&
           in_place[(result->param - k->n_operands) * k->n_operands + operand->param];
}

void kernel_settle(Kernel *k, const bool *in_place)
{
    KStmt *last = NULL;
    for (KStmt *s = k->body->first, *next; s; s = next) {
        next = s->next;
        if (!is_never_run(k, s, in_place))
            last = s;
        else if (last)
            last->next = next;
        else
            k->body->first = next;
    }
    k->body->last = last;
    note_accesses(k);
    for (int32_t r = 0; r < k->n_results && !k->tile_row; r++)
        k->params[k->n_operands + r]->restricted = true;
    for (int32_t o = 0; o < k->n_operands && !k->tile_row; o++) {
        k->params[o]->restricted = true;
        for (int32_t r = 0; r < k->n_results && k->params[o]->read; r++)
            if (k->may_alias[r * k->n_operands + o])
                k->params[o]->restricted = k->params[k->n_operands + r]->restricted = false;
    }
}

bool kernel_uses_param(const Kernel *k, int32_t param)
{
    if (param >= k->n_operands + k->n_results)
        return k->temp_bytes > 0;
    return k->params[param]->read || k->params[param]->written;
}

int64_t kernel_temp_bytes(const Kernel *k)
{
    return k->temp_asked ? 0 : k->temp_bytes;
}

int64_t kernel_tile_row(const Kernel *k)
{
    return k->tile_row;
}

int32_t kernel_tile_in_place(const Kernel *k)
{
    return k->tile_in_place;
}

bool kernel_tile_uses_row(const Kernel *k)
{
    return k->tile_uses_row;
}

bool kernel_may_alias(const Kernel *k, int32_t result_leaf, int32_t operand_leaf)
{
    return k->may_alias[result_leaf * k->n_operands + operand_leaf];
}

bool kx_is_dear_call(const KExpr *x)
{
    static const char *const dear[] = { "exp", "log", "tanh", "erf", "pow", "sin", "cos", "tan" };
    for (size_t i = 0; x->kind == KX_CALL && i < sizeof dear / sizeof dear[0]; i++)
        if (strncmp(x->fn, dear[i], strlen(dear[i])) == 0)
            return true;
    return false;
}

bool kx_rounds(const KExpr *x)
{
    static const char *const of[] = { "bf16_round", "bf16_near", "f16_round" };
    for (size_t i = 0; x->kind == KX_CALL && i < sizeof of / sizeof of[0]; i++)
        if (strcmp(x->fn, of[i]) == 0)
            return true;
    return false;
}

static void note_dear_call(void *cookie, const KExpr *x)
{
    *(bool *)cookie |= kx_is_dear_call(x);
}

bool kernel_has_dear_call(const KStmt *s)
{
    bool dear = false;
    kernel_visit_stmt(s, &(KVisitor){ note_dear_call, NULL, &dear });
    return dear;
}

bool kx_is_number(const KExpr *x, double v)
{
    if (x->kind == KX_CAST && type_is_complex(x->type))
        x = x->arg[0];
    if (x->kind == KX_CALL && strcmp(x->fn, "__builtin_complex") == 0)
        return kx_is_number(x->arg[0], v) && kx_is_number(x->arg[1], 0);
    return (x->kind == KX_INT && (double)x->i == v) || (x->kind == KX_FLOAT && x->f == v);
}

bool kx_loads_from(const KExpr *x, const KArray *array, const Ix *at)
{
    bool found = x->kind == KX_LOAD && x->array == array && (!at || ix_equal(x->index, at));
    for (int32_t k = 0; k < x->n && !found; k++)
        found = kx_loads_from(x->arg[k], array, at);
    return found;
}

bool kx_loads_other(const KExpr *x, const KArray *array, const Ix *own)
{
    bool found = x->kind == KX_LOAD && x->array == array && !(own && ix_equal(x->index, own));
    for (int32_t k = 0; k < x->n && !found; k++)
        found = kx_loads_other(x->arg[k], array, own);
    return found;
}

bool kernel_loop_is_independent(const KStmt *s)
{
    bool writes = false;
    for (const KStmt *t = s->body->first; t; t = t->next) {
        if (t->body || t->other)
            return false;
        writes |= t->kind == KS_STORE && t->array->kind == KARRAY_PARAM && !t->array->restricted && !t->array->read;
    }
    return writes;
}

bool kernel_loop_may_repeat(const KStmt *loop)
{
    bool may = true;
    for (const KStmt *s = loop->body->first; s && may; s = s->next) {
        may = s->kind != KS_STORE || s->array->restricted;
        for (const KStmt *t = loop->body->first; t && may && s->kind == KS_STORE; t = t->next)
            may = !t->value || !kx_loads_from(t->value, s->array, NULL);
    }
    return may;
}

void kblock_append(KBlock *b, KStmt *s)
{
    s->next = NULL;
    if (b->last)
        b->last->next = s;
    else
        b->first = s;
    b->last = s;
}

void kblock_append_copy(Arena *a, KBlock *b, const KStmt *s)
{
    kblock_append(b, arena_copy(a, s, sizeof *s));
}

bool kblock_declares(const KBlock *b, const KTemp *t)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if (s->kind == KS_DECLARE && s->temp == t)
            return true;
    return false;
}

bool kblock_computes(const KBlock *b, const Ix *x)
{
    for (int32_t k = 0; x && k < x->n; k++) {
        const IxAtom *t = x->t[k].atom;
        if (t->arg ? kblock_computes(b, t->arg) : t->kind == IX_VALUE && kblock_declares(b, t->owner))
            return true;
    }
    return false;
}

void kernel_add_arrays(Kernel *k, int32_t n, KArray *const *arrays)
{
    KArray **v = ARENA_ARRAY(k->arena, KArray *, n + k->n_arrays);
    for (int32_t i = 0; i < n; i++)
        v[i] = arrays[i];
    for (int32_t i = 0; i < k->n_arrays; i++)
        v[n + i] = k->arrays[i];
    k->arrays = v;
    k->n_arrays += n;
}
