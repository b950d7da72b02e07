/* optimize_input_output_buffer_alias - arguments that are given away become the memory of results.
 *
 *   HloModule m, buffer_donor={ (0, {}) }        =>      HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
 *
 * A donor says that its argument is not needed after the run, not what for: each takes a result of as many bytes that no other argument became, the
 * largest ones first. Those that find none stay donors. */
#include "config.h"

#include <stdlib.h>

#include "passes/pass.h"

typedef struct Place { /* an array of a result or of a donated argument */
    Ints         index;
    const Shape *shape;
    const Donor *donor;  /* NULL: a result */
    int32_t      number; /* in the order of the text */
} Place;

typedef VEC(Place) Places;

static int64_t space(const Shape *s) { return s->layout ? s->layout->memory_space : 0; }

static bool is_index(Ints a, Ints b)
{
    bool same = a.n == b.n;
    for (int32_t k = 0; same && k < a.n; k++)
        same = a.v[k] == b.v[k];
    return same;
}

static bool has_alias(const Module *m, Ints output)
{
    bool has = false;
    for (int32_t k = 0; k < m->n_aliases && !has; k++)
        has = is_index(m->aliases[k].output, output);
    return has;
}

/* The arrays of s, which is at index, that are results without an argument. */
static void find_results(const Module *m, const Shape *s, Ints index, Places *found, Arena *scratch)
{
    if (shape_is_array(s) && !shape_is_dynamic(s) && !has_alias(m, index))
        vec_push(scratch, found, ((Place){index, s, NULL, found->n}));
    for (int32_t k = 0; shape_is_tuple(s) && k < s->n_elems; k++) {
        Ints at = ints_make(m->arena, index.n + 1);
        for (int32_t j = 0; j < index.n; j++)
            *ints_at(at, j) = index.v[j];
        *ints_at(at, index.n) = k;
        find_results(m, s->elems[k], at, found, scratch);
    }
}

static void find_donors(const Module *m, Places *found, Arena *scratch)
{
    for (int32_t k = 0; k < m->n_donors; k++) {
        const Shape *s = comp_param(m->entry, m->donors[k].param)->shape;
        for (int32_t j = 0; j < m->donors[k].index.n; j++)
            s = s->elems[m->donors[k].index.v[j]];
        if (!shape_is_dynamic(s))
            vec_push(scratch, found, ((Place){m->donors[k].index, s, &m->donors[k], k}));
    }
}

static int compare_sizes(const Place *a, const Place *b)
{
    int64_t x = shape_bytes(a->shape), y = shape_bytes(b->shape), m = space(a->shape), n = space(b->shape);
    return x != y ? (x > y ? -1 : 1) : (m > n) - (m < n);
}

static int larger_first(const void *p, const void *q)
{
    const Place *a = p, *b = q;
    int          order = compare_sizes(a, b);
    return order ? order : a->number < b->number ? -1 : 1;
}

static int by_output(const void *p, const void *q)
{
    const InputAlias *a = p, *b = q;
    for (int32_t k = 0; k < a->output.n && k < b->output.n; k++)
        if (a->output.v[k] != b->output.v[k])
            return a->output.v[k] < b->output.v[k] ? -1 : 1;
    return (a->output.n > b->output.n) - (a->output.n < b->output.n);
}

/* Puts in the tables that the donor has become the result. */
static void make_alias(Module *m, const Place *donor, const Place *result)
{
    InputAlias *aliases = ARENA_ARRAY(m->arena, InputAlias, m->n_aliases + 1);
    Donor      *donors = ARENA_ARRAY(m->arena, Donor, m->n_donors);
    int32_t     n = 0;
    for (int32_t k = 0; k < m->n_aliases; k++)
        aliases[k] = m->aliases[k];
    aliases[m->n_aliases] = (InputAlias){result->index, donor->donor->param, donor->index, ALIAS_MAY, donor->donor->loc};
    qsort(aliases, (size_t)m->n_aliases + 1, sizeof *aliases, by_output);
    for (int32_t k = 0; k < m->n_donors; k++)
        if (m->donors[k].param != donor->donor->param || !is_index(m->donors[k].index, donor->index))
            donors[n++] = m->donors[k];
    m->aliases = aliases;
    m->n_aliases++;
    m->donors = donors;
    m->n_donors = n;
}

bool pass_optimize_input_output_buffer_alias(Module *m, PassCtx *cx)
{
    Places results = {0}, donors = {0};
    find_results(m, m->entry->root->shape, (Ints){NULL, 0}, &results, cx->scratch);
    find_donors(m, &donors, cx->scratch);
    if (results.n && donors.n) {
        qsort(results.v, (size_t)results.n, sizeof *results.v, larger_first);
        qsort(donors.v, (size_t)donors.n, sizeof *donors.v, larger_first);
    }
    for (int32_t d = 0, r = 0; d < donors.n && r < results.n && cx->rewrites < cx->limit;) {
        const Place *a = &donors.v[d], *b = &results.v[r];
        int          order = compare_sizes(a, b);
        if (order == 0) {
            cx->did_at = comp_param(m->entry, a->donor->param)->name;
            make_alias(m, a, b);
            cx->rewrites++;
        }
        d += order <= 0;
        r += order >= 0;
    }
    return cx->rewrites > 0;
}
