/* A list of values in the order in which they came, and an index that is made anew at each turn. */
#include "eval/memo.h"

#include "support/buf.h"
#include "support/host.h"
#include "support/map.h"
#include "support/vec.h"
#include "text/print.h"

enum { FEW = 1 << 12 }; /* elements of operands and result: products of fewer are computed sooner than looked up */

typedef struct Kept {
    MemoKey  key;
    Literal *value;
    int64_t  work;
    bool     asked; /* since the last turn */
} Kept;

struct EvalMemo {
    Arena   *arena;  /* of kept and index */
    int64_t  room, held, found;
    VEC(Kept *) kept;
    Map      index; /* key.h[0] -> Kept */
    Buf      text;
};

static void start(EvalMemo *m)
{
    m->arena = arena_new();
    m->index = map_new(m->arena);
    m->kept.v = NULL;
    m->kept.n = m->kept.cap = 0;
}

EvalMemo *memo_new(int64_t room)
{
    EvalMemo *m = mem_alloc(1, sizeof *m);
    m->room = room;
    start(m);
    return m;
}

static void drop(EvalMemo *m, Kept *k)
{
    m->held -= literal_bytes(k->value);
    literal_unref(k->value);
}

void memo_free(EvalMemo *m)
{
    if (!m)
        return;
    for (int32_t k = 0; k < m->kept.n; k++)
        drop(m, m->kept.v[k]);
    arena_free(m->arena);
    buf_free(&m->text);
    mem_free(m);
}

static Kept *enter(EvalMemo *m, MemoKey key, Literal *value, int64_t work)
{
    Kept *k = ARENA_NEW(m->arena, Kept);
    *k = (Kept){.key = key, .value = value, .work = work};
    vec_push(m->arena, &m->kept, k);
    map_put_u64(&m->index, key.h[0], k);
    return k;
}

void memo_turn(EvalMemo *m)
{
    Arena  *old = m->arena;
    Kept  **kept = m->kept.v;
    int32_t n = m->kept.n;
    start(m);
    for (int32_t k = 0; k < n; k++)
        if (kept[k]->asked)
            enter(m, kept[k]->key, kept[k]->value, kept[k]->work);
        else
            drop(m, kept[k]);
    arena_free(old);
}

int64_t memo_found(const EvalMemo *m)
{
    return m->found;
}

bool memo_takes(const Inst *i, Literal *const *x)
{
    int64_t elements = shape_count(i->shape);
    if (i->op != OP_DOT && i->op != OP_CONVOLUTION)
        return false;
    for (int32_t k = 0; k < i->n_operands && elements < FEW; k++)
        elements += x[k]->count;
    return elements >= FEW;
}

MemoKey memo_key(EvalMemo *m, const Inst *i, Literal *const *x)
{
    PrintOptions o = print_options_canonical();
    o.canonical_names = false;
    buf_clear(&m->text);
    print_inst(&m->text, i, &o);
    const char *after = strstr(m->text.p, " = ");
    size_t      skipped = after ? (size_t)(after - m->text.p) : 0;
    MemoKey     key = {{1, 2}};
    host_hash_two(key.h, m->text.p + skipped, m->text.n - skipped);
    for (int32_t k = 0; k < i->n_operands; k++)
        host_hash_two(key.h, x[k]->data, (size_t)literal_bytes(x[k]));
    return key;
}

Literal *memo_get(EvalMemo *m, MemoKey key, int64_t *work)
{
    Kept *k = map_get_u64(&m->index, key.h[0]);
    if (!k || k->key.h[1] != key.h[1])
        return NULL;
    m->found++;
    k->asked = true;
    *work = k->work;
    return literal_ref(k->value);
}

bool memo_put(EvalMemo *m, MemoKey key, Literal *value, int64_t work)
{
    int64_t bytes = literal_bytes(value);
    if (bytes > m->room - m->held || map_get_u64(&m->index, key.h[0]))
        return false;
    m->held += bytes;
    enter(m, key, literal_ref(value), work)->asked = true;
    return true;
}
