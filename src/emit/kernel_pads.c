/* Elements of f16 under a condition, such as where a pad ends, in loops of lanes: blocks (loop_blocks.h) have no conditions, and without blocks such a loop is scalar.
 *
 *   for l < 16: { x = 0; if (l + 45 < 60) x = f16_to_f32(a[l + 45]);  lane[l] += f(x) }
 *   =>  u16 padded[16];  for l < 16: padded[l] = l + 45 < 60 ? a[l + 45] : 0;  for l < 16: { x = f16_to_f32(padded[l]);  lane[l] += f(x) }
 *
 * The first loop moves bits alone: a masked load where processors have that for 16 bits (one thread of an Emerald Rapids, 15 steps of conjugate gradients on a grid of 60 x 60 of f16, two sums of
 * four neighbours each, 725 and 114 us, XLA 124). */
#include "emit/kernel_ir.h"

#include <string.h>

#include "ir/numeric.h"

enum { LEAST = 8, MOST = 64 /* trips: a loop that has a fixed size in blocks */, UNROLLED = 16 /* by gcc, before it makes vectors */ };

typedef struct Pads {
    Kernel *k;
    IxCtx  *cx;
} Pads;

static bool is_halves_load(const KExpr *x)
{
    return x->kind == KX_CALL && strcmp(x->fn, "f16_to_f32") == 0 && x->arg[0]->kind == KX_LOAD;
}

/* Something that the loop itself has computed or stored. */
static bool is_of_body(const KExpr *x, const KBlock *b)
{
    bool found = (x->kind == KX_TEMP && kblock_declares(b, x->temp)) || kblock_computes(b, x->index);
    for (const KStmt *s = b->first; s && x->kind == KX_LOAD && !found; s = s->next)
        found = s->kind == KS_STORE && s->array == x->array;
    for (int32_t k = 0; k < x->n && !found; k++)
        found = is_of_body(x->arg[k], b);
    return found;
}

/* { x = 0; if (c) x = f16_to_f32(a[i]) }, of which the declaration is this. NULL: it is none. */
static const KStmt *padding_of(const KStmt *s, const KBlock *b)
{
    const KStmt *test = s->next, *only = test && test->kind == KS_IF && !test->other ? test->body->first : NULL;
    if (s->kind != KS_DECLARE || s->temp->type != TYPE_F32 || !s->value || s->value->kind != KX_FLOAT || !only || only->next)
        return NULL;
    if (only->kind != KS_ASSIGN || only->temp != s->temp || !is_halves_load(only->value) || float_decode(TYPE_F16, float_encode(TYPE_F16, s->value->f)) != s->value->f)
        return NULL;
    return is_of_body(test->value, b) || is_of_body(only->value->arg[0], b) ? NULL : test;
}

/* All that the loop has besides is what blocks can have. */
static bool has_pads(const KStmt *loop)
{
    const int64_t n = loop->kind == KS_FOR && !loop->from && !loop->end ? loop->loop->hi - loop->loop->lo + 1 : 0;
    bool          found = false;
    if (n < LEAST || n > MOST || n % LEAST != 0 || loop->loop->lo != 0)
        return false;
    for (const KStmt *s = loop->body->first; s; s = s->next) {
        const KStmt *test = padding_of(s, loop->body);
        if (!test && s->kind != KS_DECLARE && s->kind != KS_ASSIGN && s->kind != KS_STORE)
            return false;
        found |= test != NULL;
        s = test ? test : s;
    }
    return found;
}

static const KExpr *moved(const Pads *p, const KExpr *x, const IxAtom *from, const Ix *to)
{
    KExpr *y = arena_copy(p->k->arena, x, sizeof *x);
    y->index = x->index ? ix_replace(p->cx, x->index, from, to) : NULL;
    for (int32_t k = 0; k < x->n; k++)
        y->arg[k] = moved(p, x->arg[k], from, to);
    return y;
}

/* for l < 16: padded[l] = c ? a[i] : 0 */
static KStmt *padding_loop(const Pads *p, const KStmt *loop, const KStmt *s, const KStmt *test, KArray *padded)
{
    Arena        *a = p->k->arena;
    const IxAtom *of = loop->loop, *l = ix_new_atom(p->cx, IX_LOOP, of->name, of->lo, of->hi, of->depth, of->owner);
    const Ix     *at = ix_of(p->cx, l);
    KStmt        *copy = arena_copy(a, loop, sizeof *loop), *store = ARENA_NEW(a, KStmt);
    KBlock       *body = arena_copy(a, loop->body, sizeof *body);
    const KExpr  *cond = moved(p, test->value, of, at), *load = moved(p, test->body->first->value->arg[0], of, at), *pad = kx_int(a, load->type, (int64_t)float_encode(TYPE_F16, s->value->f));
    *store = (KStmt){ .kind = KS_STORE, .array = padded, .index = at, .value = kx_select(a, cond, load, pad) };
    body->first = body->last = store;
    body->from = copy;
    copy->loop = l;
    copy->body = body;
    copy->rolled = of->hi < UNROLLED;
    return copy;
}

/* Puts what pads the elements in front of the loop, from where link is; gives where it is then. */
static KStmt **pads_before(const Pads *p, KStmt *loop, KStmt **link)
{
    Arena *a = p->k->arena;
    for (KStmt *s = loop->body->first; s; s = s->next) {
        const KStmt *test = padding_of(s, loop->body);
        if (!test)
            continue;
        KArray *padded = ARENA_NEW(a, KArray), **all = &padded;
        *padded = (KArray){ .kind = KARRAY_LOCAL, .type = TYPE_F16, .name = arena_printf(a, "%s_padded", s->temp->name), .count = loop->loop->hi + 1, .serial = p->k->n_arrays };
        kernel_add_arrays(p->k, 1, all);
        KStmt *array = ARENA_NEW(a, KStmt), *fill = padding_loop(p, loop, s, test, padded);
        *array = (KStmt){ .kind = KS_ARRAY, .array = padded, .next = fill };
        fill->next = loop;
        *link = array;
        link = &fill->next;
        s->value = kx_call(a, "f16_to_f32", TYPE_F32, 1, (const KExpr *[]){ kx_load(a, padded, ix_of(p->cx, loop->loop)) });
        s->temp->assigned = false;
        s->next = test->next;
        if (!s->next)
            loop->body->last = s;
    }
    return link;
}

static void in_block(const Pads *p, KBlock *b)
{
    for (KStmt **link = &b->first; *link; link = &(*link)->next) {
        KStmt *s = *link;
        if (has_pads(s)) {
            link = pads_before(p, s, link);
            continue;
        }
        if (s->body)
            in_block(p, s->body);
        if (s->other)
            in_block(p, s->other);
    }
}

void kernel_pads_apart(Kernel *k, IxCtx *cx)
{
    IxCtx quiet = *cx;
    quiet.split = NULL;
    in_block(&(Pads){ k, &quiet }, k->body);
    kernel_prune(k);
    quiet.split = cx->split;
    *cx = quiet;
}
