/* sort and topk. Always stable. Source: reference operations 8.1, 8.2. */
#include <string.h>

#include "eval/body.h"
#include "eval/engine.h"
#include "eval/order.h"
#include "eval/walk.h"

EvalFn eval_sort, eval_topk;

typedef struct Sorter {
    Eval        *e;
    Body        *body;
    int32_t      n;
    Literal    **x, **y; /* y: the second parameter's, NULL: it has the first one's type */
    int64_t      base, step; /* of the line that is sorted */
    const void **params;     /* a1, b1, a2, b2, ... */
    int64_t      compared;
} Sorter;

static bool body_says_before(void *cookie, int64_t a, int64_t b)
{
    Sorter *s = cookie;
    if (s->e->failed)
        return false;
    for (int32_t k = 0; k < s->n; k++) {
        const Literal *x = s->x[k], *y = s->y[k] ? s->y[k] : x;
        s->params[2 * k] = (const char *)x->data + (s->base + a * s->step) * type_bytes(x->type);
        s->params[2 * k + 1] = (const char *)y->data + (s->base + b * s->step) * type_bytes(y->type);
    }
    uint8_t yes = 0;
    void *results[] = {&yes};
    s->compared++;
    return body_run(s->e, s->body, s->params, results, 1) && yes;
}

/* The line of x that starts at base, permuted. */
static void permute_line(const Sorter *s, const Literal *x, const int64_t *order, int64_t n, char *room)
{
    int bytes = type_bytes(x->type);
    char *line = (char *)x->data + s->base * bytes;
    for (int64_t j = 0; j < n; j++)
        memcpy(room + j * bytes, line + order[j] * s->step * bytes, (size_t)bytes);
    walk_copy_row(line, s->step, room, 1, n, bytes);
}

static void sort_lines(Eval *e, const Inst *i, Sorter *s, int64_t dim, int64_t *order, int64_t *merged, char *room)
{
    const Literal *first = s->x[0];
    int64_t n = first->dims[dim], strides[WALK_RANK];
    walk_strides(first->rank, first->dims, strides);
    s->step = strides[dim];
    Odometer lines = {.rank = first->rank, .arrays = 1};
    memcpy(lines.dims, first->dims, (size_t)first->rank * sizeof first->dims[0]);
    memcpy(lines.stride[0], strides, (size_t)first->rank * sizeof strides[0]);
    lines.dims[dim] = 1;
    do {
        s->base = lines.at[0];
        s->compared = 0;
        for (int64_t j = 0; j < n; j++)
            order[j] = j;
        order_sort(order, merged, n, body_says_before, s);
        for (int32_t k = 0; k < s->n; k++) {
            permute_line(s, s->x[k], order, n, room);
            if (s->y[k])
                permute_line(s, s->y[k], order, n, room);
        }
    } while (eval_work(e, i, s->compared) && !e->failed && walk_next(&lines));
}

Literal *eval_sort(Eval *e, const Inst *i, Literal **x)
{
    int64_t dim = inst_ints(i, ATTR_DIMENSIONS).v[0];
    Sorter s = {.e = e, .body = body_get(e, i, inst_callee(i, 0)), .n = i->n_operands};
    s.x = ARENA_ARRAY(e->scratch, Literal *, s.n);
    s.y = ARENA_ARRAY(e->scratch, Literal *, s.n);
    s.params = ARENA_ARRAY(e->scratch, const void *, 2 * s.n);
    for (int32_t k = 0; k < s.n; k++) {
        Type     first = body_param_type(s.body, 2 * k), second = body_param_type(s.body, 2 * k + 1);
        Literal *own = eval_take(e, i, x, k);
        s.y[k] = own && first != second ? eval_cast(e, i, literal_ref(own), second) : NULL;
        s.x[k] = eval_cast(e, i, own, first);
    }
    if (!e->failed && s.x[0]->count > 0 && s.x[0]->dims[dim] > 1) {
        int64_t n = s.x[0]->dims[dim], bytes = 0;
        Literal *order = eval_new(e, i, TYPE_S64, 1, &n), *merged = eval_new(e, i, TYPE_S64, 1, &n);
        Literal *room = size_mul(n, 16, &bytes) ? eval_new(e, i, TYPE_U8, 1, &bytes) : NULL;
        if (order && merged && room)
            sort_lines(e, i, &s, dim, order->data, merged->data, room->data);
        eval_drop(e, order);
        eval_drop(e, merged);
        eval_drop(e, room);
    }
    for (int32_t k = 0; k < s.n; k++)
        if (s.y[k])
            eval_drop(e, s.y[k]);
    return eval_results(e, i, s.n, s.x);
}

/* Keys that order as the type does: floats by their total order, unsigned 64 bits moved into the signed range. */
typedef struct Keys {
    const int64_t *key;
    bool           largest;
} Keys;

static bool key_before(void *cookie, int64_t a, int64_t b)
{
    const Keys *k = cookie;
    return k->largest ? k->key[a] > k->key[b] : k->key[a] < k->key[b];
}

static void set_keys(Type t, const void *p, int64_t n, int64_t *key)
{
    if (type_is_float(t)) {
        for (int64_t j = 0; j < n; j++)
            key[j] = value_total_key(t, p, j);
        return;
    }
    Domain d = t == TYPE_PRED ? DOMAIN_U64 : value_domain(t);
    const int64_t *v = value_load(d, t, p, n, key);
    for (int64_t j = 0; j < n; j++)
        key[j] = t == TYPE_U64 ? v[j] ^ INT64_MIN : v[j];
}

Literal *eval_topk(Eval *e, const Inst *i, Literal **x)
{
    const Literal *from = x[0];
    if (type_is_complex(from->type))
        return eval_fail(e, i, "topk %%%s: complex numbers have no order", i->name);
    int64_t n = from->dims[from->rank - 1], k = i->shape->elems[0]->dims[from->rank - 1];
    Literal *r[] = {eval_new_for(e, i, i->shape->elems[0]), eval_new_for(e, i, i->shape->elems[1])};
    Literal *key = eval_new(e, i, TYPE_S64, 1, &n), *order = eval_new(e, i, TYPE_S64, 1, &n), *room = eval_new(e, i, TYPE_S64, 1, &n);
    Keys keys = {key ? key->data : NULL, inst_int(i, ATTR_LARGEST, 1) != 0};
    int bytes = type_bytes(from->type);
    for (int64_t line = 0; !e->failed && n > 0 && line < from->count / n && eval_work(e, i, n); line++) {
        const char *p = (const char *)from->data + line * n * bytes;
        int64_t *o = order->data;
        set_keys(from->type, p, n, key->data);
        for (int64_t j = 0; j < n; j++)
            o[j] = j;
        order_sort(o, room->data, n, key_before, &keys);
        for (int64_t j = 0; j < k; j++) {
            memcpy((char *)r[0]->data + (line * k + j) * bytes, p + o[j] * bytes, (size_t)bytes);
            literal_set_s64(r[1], line * k + j, o[j]);
        }
    }
    eval_drop(e, key);
    eval_drop(e, order);
    eval_drop(e, room);
    return eval_results(e, i, 2, r);
}
