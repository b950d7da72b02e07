/* An argument as text is read as the constant of a module made for it, so that the language has one reader of literals. */
#include "config.h"

#include "driver/inputs_text.h"

#include <string.h>

#include "data/npz.h"
#include "ir/inst.h"
#include "support/buf.h"
#include "text/parse.h"

/* What stands behind the type that a literal may begin with; the text itself when it begins with none, or with another. */
static const char *behind_type(Arena *a, const char *text, const Shape *s)
{
    const char *type = shape_text(a, s);
    size_t      n = strlen(type);
    text += strspn(text, " \t\n");
    return strncmp(text, type, n) == 0 ? text + n : text;
}

/* The constant alone, with nothing after it that the text has brought in. */
static bool is_lone_constant(const Module *m)
{
    const Inst *i = m->entry->first;
    return m->n_comps == 1 && m->entry->n_insts == 1 && i->op == OP_CONSTANT && i->n_attrs == 0 && !i->meta && !i->literal->elided;
}

Literal *literal_from_text(const char *text, const Shape *s, const char *what, Diag *d)
{
    Buf  module = {0};
    Diag inner;
    if (shape_is_dynamic(s)) {
        diag_error(d, LOC_NONE, "%s: an argument with a dynamic size cannot be given as text", what);
        return NULL;
    }
    buf_printf(&module, "HloModule m\nENTRY e {\n  ROOT c = %s constant(%s", shape_text(d->arena, s), behind_type(d->arena, text, s));
    int64_t end = (int64_t)module.n;
    buf_puts(&module, ")\n}\n");
    diag_init(&inner, d->arena);
    Module  *m = parse_module(module.p, module.n, &inner);
    Literal *l = m && is_lone_constant(m) ? literal_ref(m->entry->first->literal) : NULL;
    if (!l)
        diag_error(d, LOC_NONE, "%s: this is no literal of its type: %s", what,
                   !inner.first ? text : inner.first->loc.off >= end ? "it ends too soon" : inner.first->text);
    if (m)
        module_free(m);
    buf_free(&module);
    return l;
}

/* The bytes of an array of shape s, which are read later. */
static NpyArray array_of(const Shape *s)
{
    NpyArray x = {.kind = npy_kind(s->type), .bytes = type_bytes(s->type), .rank = s->rank, .dims = s->dims, .count = shape_count(s)};
    x.size = (size_t)x.count * (size_t)x.bytes;
    return x;
}

Literal *literal_from_bytes(Arena *a, const char *path, const Shape *s, const Shape *all, const char *what, Diag *d)
{
    NpyArray x = array_of(s);
    size_t   n;
    if (shape_is_dynamic(s)) {
        diag_error(d, LOC_NONE, "%s: an argument with a dynamic size cannot be given as bytes", what);
        return NULL;
    }
    const void *bytes;
    if (!array_file_bytes(a, path, &bytes, &n, d))
        return NULL;
    if (n != x.size && all && n == array_of(all).size) {
        s = all;
        x = array_of(all);
    }
    x.data = bytes;
    if (n == x.size)
        return literal_from_array(&x, s, what, d);
    diag_error(d, LOC_NONE, "%s: %s has %zu bytes, %s takes %zu", what, path, n, shape_text(d->arena, s), x.size);
    return NULL;
}
