/* Flattening of a module's interface, and its text:
 *
 *   hlo-run 1
 *   name jit_f
 *   needs SCRATCH KERNELS COPIES
 *   error REDUCTION TYPE
 *   arg ALIAS TYPE RANK SIZE... ORDER... NAME
 *   result ...
 *   end
 *
 * The size of a dynamic dimension is written <=8.
 */
#include "config.h"

#include "driver/signature.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/memory.h"

enum { MAX_RANK = 64 };

typedef VEC(SigLeaf) Leaves;

/* An array of the given order in memory (NULL: row-major), with sizes and dynamic marks of s. */
static const Shape *plain_shape(Arena *a, const Shape *s)
{
    Shape *copy = arena_copy(a, s, sizeof *s);
    copy->dims = arena_copy(a, s->dims, (size_t)s->rank * sizeof *s->dims);
    if (s->dynamic)
        copy->dynamic = arena_copy(a, s->dynamic, (size_t)s->rank * sizeof *s->dynamic);
    copy->layout = NULL;
    if (!layout_is_row_major(s))
        copy->layout = layout_from_order(a, ints_copy(a, s->layout->minor_to_major));
    return copy;
}

/* Adds the array leaves of s, named base.0.1. False: there is a leaf that is neither an array nor a token. */
static bool flatten(Arena *a, const Shape *s, const char *base, Leaves *out)
{
    if (s->type == TYPE_TOKEN)
        return true;
    if (shape_is_tuple(s)) {
        for (int32_t k = 0; k < s->n_elems; k++)
            if (!flatten(a, s->elems[k], arena_printf(a, "%s.%d", base, k), out))
                return false;
        return true;
    }
    if (!shape_is_array(s) || s->rank > MAX_RANK)
        return false;
    vec_push(a, out, ((SigLeaf){ base, plain_shape(a, s), -1 }));
    return true;
}

static void set_aliases(Signature *s, const Module *m)
{
    for (int32_t k = 0; k < m->n_aliases; k++) {
        const InputAlias *x = &m->aliases[k];
        if (x->param < 0 || x->param >= m->entry_params->n)
            continue;
        int32_t result = shape_leaf_at(m->entry_result, x->output), arg = shape_leaf_at(m->entry_params->v[x->param], x->index);
        for (int64_t p = 0; p < x->param && arg >= 0; p++)
            arg += shape_leaf_count(m->entry_params->v[p], false);
        if (result >= 0 && result < s->n_results && arg >= 0 && arg < s->n_args)
            s->results[result].alias = arg;
    }
}

Signature *signature_of(Arena *a, const Module *m, Diag *d)
{
    Leaves     args = { 0 }, results = { 0 };
    Signature *s = ARENA_NEW(a, Signature);
    for (int32_t k = 0; k < m->entry_params->n; k++) {
        const Inst *p = comp_param(m->entry, k);
        if (!flatten(a, m->entry_params->v[k], arena_strndup(a, p->name, strlen(p->name)), &args)) {
            inst_error(d, p, "parameter %d has a type that no array can stand for", k);
            return NULL;
        }
    }
    if (!flatten(a, m->entry_result, "out", &results)) {
        inst_error(d, m->entry->root, "the result has a type that no array can stand for");
        return NULL;
    }
    for (int32_t k = 0; k < results.n; k++)
        results.v[k].name = arena_printf(a, "out%d", k);
    s->n_args = args.n;
    s->args = args.v;
    s->n_results = results.n;
    s->results = results.v;
    s->error = error_model(m);
    set_aliases(s, m);
    return s;
}

int64_t signature_bytes(const Signature *s)
{
    int64_t total = 0;
    for (int32_t k = 0; k < s->n_args + s->n_results; k++) {
        const SigLeaf *l = k < s->n_args ? &s->args[k] : &s->results[k - s->n_args];
        int64_t        bytes = shape_bytes(l->shape);
        if (bytes < 0 || !size_add(total, bytes, &total))
            return -1;
    }
    return total;
}

/* Text. */

static void write_leaf(Buf *b, const char *what, const SigLeaf *l)
{
    const Shape *s = l->shape;
    buf_printf(b, "%s %d %s %d", what, l->alias, type_name(s->type), s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        buf_printf(b, " %s%" PRId64, s->dynamic && s->dynamic[k] ? "<=" : "", s->dims[k]);
    for (int32_t k = 0; k < s->rank; k++)
        buf_printf(b, " %" PRId64, layout_dim(s, k));
    buf_printf(b, " %s\n", l->name);
}

void signature_write(Buf *b, const Signature *s)
{
    buf_printf(b, "hlo-run 1\nname %s\nneeds %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", s->name, s->scratch_bytes,
               s->n_kernels, s->n_copies, s->meets, s->feeds);
    buf_printf(b, "error %" PRId64 " %s\n", s->error.reduction, type_name(s->error.coarsest));
    for (int32_t k = 0; k < s->n_args; k++)
        write_leaf(b, "arg", &s->args[k]);
    for (int32_t k = 0; k < s->n_results; k++)
        write_leaf(b, "result", &s->results[k]);
    buf_puts(b, "end\n");
}

/* The next word of *text into out, false at the end of the line. */
static bool word(const char **text, char *out, size_t size)
{
    const char *p = *text + strspn(*text, " ");
    size_t      n = strcspn(p, " \n");
    if (n == 0 || n >= size)
        return false;
    memcpy(out, p, n);
    out[n] = 0;
    *text = p + n;
    return true;
}

static bool number(const char **text, int64_t *out)
{
    char w[32], more;
    return word(text, w, sizeof w) && sscanf(w, "%" SCNd64 "%c", out, &more) == 1;
}

static bool size(const char **text, int64_t *out, bool *dynamic)
{
    const char *p = *text + strspn(*text, " ");
    *dynamic = strncmp(p, "<=", 2) == 0;
    *text = *dynamic ? p + 2 : p;
    return number(text, out);
}

static bool read_leaf(Arena *a, const char **text, SigLeaf *l)
{
    char    type[32], *name;
    int64_t alias, rank, dims[MAX_RANK];
    bool    dynamic[MAX_RANK], any = false;
    if (!number(text, &alias) || !word(text, type, sizeof type) || !number(text, &rank) || rank < 0 || rank > MAX_RANK)
        return false;
    Type t = type_lookup(type, strlen(type));
    Ints order = ints_make(a, (int32_t)rank);
    for (int32_t k = 0; k < rank; k++) {
        if (!size(text, &dims[k], &dynamic[k]))
            return false;
        any = any || dynamic[k];
    }
    for (int32_t k = 0; k < rank; k++)
        if (!number(text, ints_at(order, k)) || order.v[k] < 0 || order.v[k] >= rank)
            return false;
    size_t n = strcspn(*text, "\n");
    if (t == TYPE_COUNT || n < 2)
        return false;
    name = arena_strndup(a, *text + 1, n - 1);
    *text += n;
    const Layout *layout = layout_from_order(a, order);
    Shape        *s = arena_copy(a, shape_array(a, t, (int32_t)rank, dims), sizeof *s);
    s->dynamic = any ? arena_copy(a, dynamic, (size_t)rank * sizeof dynamic[0]) : NULL;
    *l = (SigLeaf){ name, layout ? shape_with_layout(a, s, layout) : s, (int32_t)alias };
    return true;
}

static bool line_end(const char **text)
{
    if (**text != '\n')
        return false;
    ++*text;
    return true;
}

/* The lines from "hlo-run 1" to "error ...". */
static bool read_head(Arena *a, const char **text, Signature *s)
{
    char head[8], version[4], w[256];
    if (!word(text, head, sizeof head) || !word(text, version, sizeof version) || strcmp(version, "1") != 0 || !line_end(text))
        return false;
    if (!word(text, head, sizeof head) || !word(text, w, sizeof w) || !line_end(text))
        return false;
    s->name = arena_strndup(a, w, strlen(w));
    if (!word(text, head, sizeof head) || !number(text, &s->scratch_bytes) || !number(text, &s->n_kernels) ||
        !number(text, &s->n_copies) || !number(text, &s->meets) || !number(text, &s->feeds) || !line_end(text))
        return false;
    if (!word(text, head, sizeof head) || !number(text, &s->error.reduction) || !word(text, w, sizeof w) || !line_end(text))
        return false;
    s->error.coarsest = type_lookup(w, strlen(w));
    return s->error.coarsest != TYPE_COUNT;
}

Signature *signature_read(Arena *a, const char *text)
{
    Signature *s = ARENA_NEW(a, Signature);
    Leaves     args = { 0 }, results = { 0 };
    char       w[16] = "";
    if (!read_head(a, &text, s))
        return NULL;
    while (word(&text, w, sizeof w) && strcmp(w, "end") != 0) {
        SigLeaf l;
        bool    is_arg = !strcmp(w, "arg");
        if ((!is_arg && strcmp(w, "result") != 0) || !read_leaf(a, &text, &l))
            return NULL;
        if (is_arg)
            vec_push(a, &args, l);
        else
            vec_push(a, &results, l);
        if (!line_end(&text))
            return NULL;
    }
    s->n_args = args.n;
    s->args = args.v;
    s->n_results = results.n;
    s->results = results.v;
    return strcmp(w, "end") == 0 ? s : NULL;
}
