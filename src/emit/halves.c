/* Which loops can be in blocks. All of a block is read before its first element is written, so no array of the loop is both; what is under a condition (an arm of
 * a choice may be out of bounds) is not read before it is known to be wanted. */
#include "emit/halves.h"

#include <string.h>

typedef struct Look {
    const KStmt *loop;
    Halves      *h;
} Look;

static bool is_call(const KExpr *x, const char *fn)
{
    return x->kind == KX_CALL && strcmp(x->fn, fn) == 0;
}

/* Neighbours in turn lie beside each other. */
static bool is_along(const Ix *x, const IxAtom *loop)
{
    int32_t uses = 0;
    for (int32_t k = 0; k < x->n; k++) {
        const IxAtom *t = x->t[k].atom;
        uses += t == loop || (t->arg && ix_has(t->arg, loop));
    }
    return uses == 1 && ix_coef(x, loop) == 1;
}

static int32_t find(int32_t n, const Half *v, const KArray *array, const Ix *index)
{
    for (int32_t k = 0; k < n; k++)
        if (v[k].array == array && ix_equal(v[k].index, index))
            return k;
    return -1;
}

int32_t halves_in(const Halves *h, const KExpr *x)
{
    bool loads = is_call(x, "f16_to_f32") && x->arg[0]->kind == KX_LOAD;
    return loads ? find(h->n_in, h->in, x->arg[0]->array, x->arg[0]->index) : -1;
}

int32_t halves_out(const Halves *h, const KStmt *s)
{
    bool stores = s->kind == KS_STORE && is_call(s->value, "f32_to_f16");
    return stores ? find(h->n_out, h->out, s->array, s->index) : -1;
}

static void add_in(Look *l, const KExpr *load)
{
    Halves *h = l->h;
    if (h->n_in < MOST_HALVES && load->kind == KX_LOAD && is_along(load->index, l->loop->loop) && find(h->n_in, h->in, load->array, load->index) < 0)
        h->in[h->n_in++] = (Half){ load->array, load->index };
}

/* What x always loads. */
static void look_at(Look *l, const KExpr *x)
{
    bool choice = x->kind == KX_SELECT || (x->kind == KX_BINARY && (x->op == KOP_LAND || x->op == KOP_LOR));
    if (is_call(x, "f16_to_f32"))
        add_in(l, x->arg[0]);
    for (int32_t k = 0; k < (choice ? 1 : x->n); k++)
        look_at(l, x->arg[k]);
}

static void add_out(Look *l, const KStmt *s)
{
    Halves *h = l->h;
    if (h->n_out < MOST_HALVES && s->kind == KS_STORE && !s->atomic && is_call(s->value, "f32_to_f16") && is_along(s->index, l->loop->loop))
        h->out[h->n_out++] = (Half){ s->array, s->index };
}

static bool loads_from(const KExpr *x, const KArray *array)
{
    bool found = x->kind == KX_LOAD && x->array == array;
    for (int32_t k = 0; k < x->n && !found; k++)
        found = loads_from(x->arg[k], array);
    return found;
}

/* How often the loop stores to the array, and whether it loads from it. */
static int32_t stores_to(const KStmt *loop, const KArray *array, bool *loaded)
{
    int32_t n = 0;
    *loaded = false;
    for (const KStmt *s = loop->body->first; s; s = s->next) {
        n += s->kind == KS_STORE && s->array == array;
        *loaded |= s->value && loads_from(s->value, array);
    }
    return n;
}

static bool are_apart(const KStmt *loop, const Halves *h)
{
    bool loaded;
    for (int32_t k = 0; k < h->n_in; k++)
        if (stores_to(loop, h->in[k].array, &loaded) > 0)
            return false;
    for (int32_t k = 0; k < h->n_out; k++)
        if (stores_to(loop, h->out[k].array, &loaded) > 1 || loaded)
            return false;
    return true;
}

static void set_size(Halves *h, const KStmt *s)
{
    enum { MOST = 64 }; /* a loop that has a fixed size, such as one of lanes, keeps it */
    int64_t n = s->loop->hi - s->loop->lo + 1;
    bool    fixed = !s->from && !s->end;
    h->size = fixed && n <= MOST && n % HALVES_BLOCK == 0 ? n : HALVES_BLOCK;
    h->rest = !fixed || n % h->size != 0;
}

bool halves_of(const KStmt *loop, Halves *h)
{
    Look l = { loop, h };
    h->n_in = h->n_out = 0;
    if (loop->loop->hi - loop->loop->lo + 1 < HALVES_BLOCK || loop->rolled)
        return false;
    for (const KStmt *s = loop->body->first; s; s = s->next) {
        if (s->kind != KS_DECLARE && s->kind != KS_ASSIGN && s->kind != KS_STORE)
            return false;
        if (s->value)
            look_at(&l, s->value);
        add_out(&l, s);
    }
    set_size(h, loop);
    return h->n_in + h->n_out > 0 && are_apart(loop, h);
}
