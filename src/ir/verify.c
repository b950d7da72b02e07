/* The verifier's order of work: structure, then each instruction, then the tables of the module. */
#include "ir/verify.h"

#include "ir/verify_rules.h"

bool verify_fail(const Verify *v, const Inst *i, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    inst_error(v->d, i, "%s: %s", op_name(i->op), arena_vprintf(v->a, fmt, ap));
    va_end(ap);
    return false;
}

const Shape *shape_at(const Shape *s, Ints index)
{
    for (int32_t k = 0; k < index.n; k++) {
        if (!shape_is_tuple(s) || index.v[k] < 0 || index.v[k] >= s->n_elems)
            return NULL;
        s = s->elems[index.v[k]];
    }
    return s;
}

const char *index_text(const Verify *v, Ints index)
{
    Buf b = {0};
    buf_putc(&b, '{');
    for (int32_t k = 0; k < index.n; k++)
        buf_printf(&b, "%s%lld", k ? "," : "", (long long)index.v[k]);
    buf_putc(&b, '}');
    const char *text = arena_strndup(v->a, b.p, b.n);
    buf_free(&b);
    return text;
}

const char *comp_thread(const Comp *c) { return c->execution_thread ? c->execution_thread : "main"; }

/* Scratch is emptied after each computation: shapes that inference makes are compared and forgotten. */
static void verify_comp(Verify v, const Comp *c)
{
    v.a = arena_new();
    for (const Inst *i = c->first; i && !diag_full(v.d); i = i->next) {
        int before = v.d->errors;
        verify_shape(&v, i);
        if (v.d->errors != before)
            continue; /* what follows trusts the types */
        verify_invariants(&v, i);
        verify_sharding(&v, i);
        verify_pairs(&v, i);
        verify_async(&v, i);
        verify_collective(&v, i);
    }
    arena_free(v.a);
}

bool verify_module(const Module *m, Diag *d)
{
    int    before = d->errors;
    Verify v = {.m = m, .d = d, .a = arena_new()};
    verify_structure(&v);
    if (d->errors == before) {
        verify_async_callees(&v);
        for (const Comp *c = m->first; c && !diag_full(d); c = c->next)
            verify_comp(v, c);
        verify_entry_layout(&v);
        verify_aliases(&v);
        verify_constrain_layout(&v);
    }
    arena_free(v.a);
    return d->errors == before;
}
