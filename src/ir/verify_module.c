/* The module's tables: layout of the entry computation, aliases of parameters with results, donated parameters.
 * Source: reference operations 2.2, 20. */
#include <stdlib.h>
#include <string.h>

#include "ir/verify_rules.h"

/* One that is written is looked at by itself; the other one repeats the shapes of instructions. */
static void check_entry(const Verify *v, const Inst *i, const Shape *written, const char *what)
{
    if (v->m->has_entry_layout && !verify_possible(v, i, written))
        return;
    if (!shape_compatible(written, i->shape))
        verify_fail(v, i, "entry_computation_layout has %s for %s, which is %s", verify_text(v, written), what,
                    verify_text(v, i->shape));
}

void verify_entry_layout(const Verify *v)
{
    const Module *m = v->m;
    const Comp   *e = m->entry;
    if (!m->entry_params || !m->entry_result)
        return;
    if (m->entry_params->n != e->n_params) {
        diag_error(v->d, e->loc, "entry_computation_layout has %d parameters, but %%%s has %d", m->entry_params->n, e->name,
                   e->n_params);
        return;
    }
    for (int32_t k = 0; k < e->n_params; k++)
        check_entry(v, comp_param(e, k), m->entry_params->v[k], arena_printf(v->a, "parameter %d", k));
    check_entry(v, e->root, m->entry_result, "the result");
}

/* A part of a parameter that the tables name. */
typedef struct Part {
    int64_t     param;
    Ints        index;
    Loc         loc;
    const char *table;
} Part;

static int compare_index(Ints a, Ints b)
{
    for (int32_t k = 0; k < a.n && k < b.n; k++)
        if (a.v[k] != b.v[k])
            return a.v[k] < b.v[k] ? -1 : 1;
    return (a.n > b.n) - (a.n < b.n);
}

static int compare_part(const void *p, const void *q)
{
    const Part *a = p, *b = q;
    if (a->param != b->param)
        return a->param < b->param ? -1 : 1;
    return compare_index(a->index, b->index);
}

/* The array that a table names; NULL after a report. */
static const Shape *part_shape(const Verify *v, const Part *p)
{
    const Comp *e = v->m->entry;
    if (p->param < 0 || p->param >= e->n_params) {
        diag_error(v->d, p->loc, "%s: there is no parameter %lld", p->table, (long long)p->param);
        return NULL;
    }
    const Shape *s = comp_param(e, p->param)->shape, *part = shape_at(s, p->index);
    if (!part || !shape_is_array(part)) {
        diag_error(v->d, p->loc, "%s: parameter %lld, %s, has no array at %s", p->table, (long long)p->param, verify_text(v, s),
                   index_text(v, p->index));
        return NULL;
    }
    return part;
}

static void check_alias_entry(const Verify *v, const InputAlias *a, const Part *p)
{
    const Shape *r = v->m->entry->root->shape, *out = shape_at(r, a->output), *in = part_shape(v, p);
    if (!in)
        return;
    if (!out || !shape_is_array(out)) {
        diag_error(v->d, a->loc, "input_output_alias: the result %s has no array at %s", verify_text(v, r),
                   index_text(v, a->output));
        return;
    }
    bool ok = a->kind == ALIAS_MUST ? shape_compatible(in, out) : shape_bytes(in) == shape_bytes(out);
    if (!ok)
        diag_error(v->d, a->loc, "input_output_alias: output %s is %s, parameter %lld at %s is %s; they must have the same %s",
                   index_text(v, a->output), verify_text(v, out), (long long)a->param, index_text(v, a->index),
                   verify_text(v, in), a->kind == ALIAS_MUST ? "shape" : "size");
}

/* No part of a parameter may be given away twice. */
static void check_parts_once(const Verify *v, Part *parts, int32_t n)
{
    qsort(parts, (size_t)n, sizeof *parts, compare_part);
    for (int32_t k = 1; k < n; k++)
        if (compare_part(&parts[k - 1], &parts[k]) == 0) {
            diag_error(v->d, parts[k].loc, "%s: parameter %lld at %s is named twice", parts[k].table, (long long)parts[k].param,
                       index_text(v, parts[k].index));
            diag_note(v->d, parts[k - 1].loc, "it is also named here, in %s", parts[k - 1].table);
        }
}

static int compare_output(const void *p, const void *q)
{
    return compare_index(((const InputAlias *)p)->output, ((const InputAlias *)q)->output);
}

static void check_outputs_once(const Verify *v)
{
    int32_t     n = v->m->n_aliases;
    InputAlias *sorted = ARENA_ARRAY(v->a, InputAlias, n);
    for (int32_t k = 0; k < n; k++)
        sorted[k] = v->m->aliases[k];
    qsort(sorted, (size_t)n, sizeof *sorted, compare_output);
    for (int32_t k = 1; k < n; k++)
        if (compare_output(&sorted[k - 1], &sorted[k]) == 0)
            diag_error(v->d, sorted[k].loc, "input_output_alias: output %s is named twice", index_text(v, sorted[k].output));
}

void verify_aliases(const Verify *v)
{
    const Module *m = v->m;
    int32_t       n = 0;
    Part         *parts = ARENA_ARRAY(v->a, Part, (int64_t)m->n_aliases + m->n_donors);
    for (int32_t k = 0; k < m->n_aliases; k++) {
        const InputAlias *a = &m->aliases[k];
        parts[n] = (Part){a->param, a->index, a->loc, "input_output_alias"};
        check_alias_entry(v, a, &parts[n++]);
    }
    for (int32_t k = 0; k < m->n_donors; k++) {
        const Donor *a = &m->donors[k];
        parts[n] = (Part){a->param, a->index, a->loc, "buffer_donor"};
        part_shape(v, &parts[n++]);
    }
    check_outputs_once(v);
    check_parts_once(v, parts, n);
}

static bool is_all_reduce(Op op) { return op == OP_ALL_REDUCE || op == OP_ALL_REDUCE_START; }

/* All all-reduces of a module obey the layouts that are written, or none. */
void verify_constrain_layout(const Verify *v)
{
    const Inst *first = NULL;
    for (const Comp *c = v->m->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next) {
            if (!is_all_reduce(i->op))
                continue;
            if (first && inst_bool(i, ATTR_CONSTRAIN_LAYOUT) != inst_bool(first, ATTR_CONSTRAIN_LAYOUT)) {
                verify_fail(v, i, "constrain_layout must be the same on every all-reduce, %%%s differs", first->name);
                return;
            }
            first = i;
        }
}
