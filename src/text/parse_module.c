/* The header, the stack-frame tables, computations, and what is settled when the whole text was read.
 * Source: reference text 2 and 4. */
#include "config.h"

#include <stdlib.h>

#include "text/parse.h"
#include "text/parse_int.h"

/* ---- header ---- */

void module_begin(Parser *p, const char *name)
{
    p->m->name = name;
    p->headed = true;
}

bool header_seen(Parser *p, const char *name, Loc loc)
{
    for (int32_t k = 0; k < p->header.n; k++)
        if (p->header.v[k].s == name) {
            parse_error(p, loc, "the attribute '%s' is given twice", name);
            parse_note(p, p->header.v[k].loc, "the first one is here");
            return false;
        }
    vec_push(p->tmp, &p->header, ((Name){name, loc}));
    return true;
}

void header_int(Parser *p, const char *name, Loc loc, int64_t v)
{
    header_seen(p, name, loc);
    if (strcmp(name, "replica_count") == 0)
        p->m->replica_count = v;
    else
        p->m->num_partitions = v;
}

void header_bool(Parser *p, const char *name, Loc loc, int64_t v)
{
    header_seen(p, name, loc);
    if (strcmp(name, "is_scheduled") == 0)
        p->m->is_scheduled = v;
    else
        p->m->alias_passthrough_params = v;
}

void header_bools(Parser *p, const char *name, Loc loc, Ints v)
{
    header_seen(p, name, loc);
    if (v.n == 0)
        return;
    if (strcmp(name, "allow_spmd_sharding_propagation_to_output") == 0)
        p->m->spmd_to_output = v;
    else
        p->m->spmd_to_parameters = v;
}

/* One output aliased twice: the first entry counts. */
void header_alias(Parser *p, Loc loc, Ints output, int64_t param, Ints index, const char *kind, Loc kind_loc)
{
    AliasKind k = ALIAS_MAY;
    if (kind && strcmp(kind, "must-alias") == 0)
        k = ALIAS_MUST;
    else if (kind && strcmp(kind, "may-alias") != 0)
        parse_error(p, kind_loc, "expected 'may-alias' or 'must-alias', found '%s'", kind);
    vec_push(p->tmp, &p->aliases, ((InputAlias){output, param, index, k, loc}));
}

void header_donor(Parser *p, Loc loc, int64_t param, Ints index)
{
    if (param < 0)
        parse_error(p, loc, "a parameter number is 0 or more, found %lld", (long long)param);
    vec_push(p->tmp, &p->donors, ((Donor){param, index, loc}));
}

void header_layout(Parser *p, const char *name, Loc loc, const ShapeVec *params, const Shape *result)
{
    header_seen(p, name, loc);
    p->m->has_entry_layout = true;
    p->m->entry_params = list_shapes(p, params);
    p->m->entry_result = result;
}

void header_key_values(Parser *p, const char *name, Loc loc, const StatVec *v)
{
    header_seen(p, name, loc);
    p->m->frontend_attributes = key_values(p, v);
}

void header_config(Parser *p, const char *name, Loc loc, const char *v)
{
    header_seen(p, name, loc);
    p->m->backend_config = config_value(p, v);
}

static int compare_ints(Ints x, Ints y)
{
    for (int32_t k = 0; k < x.n && k < y.n; k++)
        if (x.v[k] != y.v[k])
            return x.v[k] < y.v[k] ? -1 : 1;
    return x.n - y.n;
}

static int compare_arrays(const OriginArray *x, const OriginArray *y)
{
    const char *s = x->name ? x->name : "", *t = y->name ? y->name : "";
    size_t      m = x->name ? intern_len(s) : 0, n = y->name ? intern_len(t) : 0;
    int         order = memcmp(s, t, m < n ? m : n);
    return order ? order : m != n ? (m < n ? -1 : 1) : compare_ints(x->index, y->index);
}

/* {} is the array without a name. */
static OriginArray named_array(Parser *p, OriginArray x)
{
    if (!x.known)
        x = (OriginArray){.known = true, .name = intern_str(p->strings, "")};
    return x;
}

void header_recovery(Parser *p, OriginArray old, OriginArray replacement, const char *text, Loc loc)
{
    OriginRecovery r = {named_array(p, old), named_array(p, replacement), NULL};
    if (text) {
        Diag d;
        diag_init(&d, p->tmp);
        diag_source(&d, "the module of origin_recovery_table", text, intern_len(text));
        r.module = parse_module(text, intern_len(text), &d);
        if (r.module)
            arena_defer(p->a, (void (*)(void *))module_free, r.module);
        else
            parse_error(p, loc, "in the module of this entry: %s", d.first ? d.first->text : "an error");
    }
    for (int32_t k = 0; k < p->recoveries.n; k++) /* of two entries for one array the first counts */
        if (compare_arrays(&p->recoveries.v[k].old, &r.old) == 0)
            return;
    vec_push(p->tmp, &p->recoveries, r);
}

void debug_begin(Parser *p)
{
    p->debug = ARENA_NEW(p->tmp, DebugAttr);
}

void debug_log_mode(Parser *p, const char *word, Loc loc)
{
    if (strcmp(word, "default") == 0)
        p->debug->log_mode = LOG_MODE_DEFAULT;
    else if (strcmp(word, "fusion_debugger") == 0)
        p->debug->log_mode = LOG_MODE_FUSION_DEBUGGER;
    else
        parse_error(p, loc, "expected log mode 'default' or 'fusion_debugger', found '%s'", word);
}

void debug_int(Parser *p, const char *key, Loc loc, int64_t v)
{
    if (strcmp(key, "callback_id") == 0)
        p->debug->callback_id = v;
    else if (strcmp(key, "op_id") == 0)
        p->debug->op_id = v;
    else
        parse_error(p, loc, "expected log_mode, callback_id, partitioned or op_id, found '%s'", key);
}

void header_debug_row(Parser *p, OriginArray key, const DebugVec *v)
{
    DebugEntry e = {key, v ? v->n : 0, v ? arena_copy(p->a, v->v, (size_t)v->n * sizeof *v->v) : NULL};
    e.array.known = true;
    if (!e.array.name)
        e.array.name = intern_str(p->strings, "");
    vec_push(p->tmp, &p->debug_rows, e);
}

/* Both tables are sorted by key; of one key given twice the last entry stays. */
typedef struct Keyed {
    const OriginArray *key;
    int32_t            row; /* in the order of the text */
} Keyed;

static int compare_keyed(const void *x, const void *y)
{
    const Keyed *a = x, *b = y;
    int          order = compare_arrays(a->key, b->key);
    return order ? order : a->row < b->row ? -1 : 1;
}

static int32_t sort_rows(Keyed *v, int32_t n)
{
    int32_t kept = 0;
    if (n)
        qsort(v, (size_t)n, sizeof *v, compare_keyed);
    for (int32_t k = 0; k < n; k++)
        if (k + 1 == n || compare_arrays(v[k].key, v[k + 1].key) != 0)
            v[kept++] = v[k];
    return kept;
}

void header_origins(Parser *p, const char *name, Loc loc)
{
    header_seen(p, name, loc);
    Keyed *order = ARENA_ARRAY(p->tmp, Keyed, p->recoveries.n);
    for (int32_t k = 0; k < p->recoveries.n; k++)
        order[k] = (Keyed){&p->recoveries.v[k].old, k};
    OriginTable    *t = ARENA_NEW(p->a, OriginTable);
    OriginRecovery *v = ARENA_ARRAY(p->a, OriginRecovery, p->recoveries.n);
    *t = (OriginTable){sort_rows(order, p->recoveries.n), v};
    for (int32_t k = 0; k < t->n; k++)
        v[k] = p->recoveries.v[order[k].row];
    p->m->origin_recovery = t;
}

/* An entry without attributes is dropped, and so is an empty table. */
void header_debug(Parser *p, const char *name, Loc loc)
{
    header_seen(p, name, loc);
    Keyed *order = ARENA_ARRAY(p->tmp, Keyed, p->debug_rows.n);
    for (int32_t k = 0; k < p->debug_rows.n; k++)
        order[k] = (Keyed){&p->debug_rows.v[k].array, k};
    int32_t     n = sort_rows(order, p->debug_rows.n);
    DebugTable *t = ARENA_NEW(p->a, DebugTable);
    DebugEntry *v = ARENA_ARRAY(p->a, DebugEntry, n);
    for (int32_t k = 0; k < n; k++)
        if (p->debug_rows.v[order[k].row].n)
            v[t->n++] = p->debug_rows.v[order[k].row];
    t->v = v;
    p->m->debug_attributes = t->n ? t : NULL;
}

/* ---- computations ---- */

static void scope_done(Parser *p, Scope *s)
{
    s->spare = p->spare_scope;
    p->spare_scope = s;
}

static Scope *scope_new(Parser *p)
{
    Scope *s = p->spare_scope;
    if (!s)
        return ARENA_NEW(p->tmp, Scope);
    p->spare_scope = s->spare;
    return s;
}

void scope_push(Parser *p, Comp *c, Loc head)
{
    Scope *s = scope_new(p);
    *s = (Scope){.parent = p->scope, .comp = c, .serial = ++p->n_scopes, .head = head, .outer = p->current, .root_loc = LOC_NONE,
                 .close = LOC_NONE, .errors = p->d->errors};
    c->loc = head;
    p->scope = s;
}

Inst *name_get(const Parser *p, const char *name)
{
    uint32_t tag = intern_tag(name);
    if ((int64_t)tag >= p->bindings.n || p->bindings.v[tag].scope != p->scope->serial)
        return NULL;
    return p->bindings.v[tag].inst;
}

void name_put(Parser *p, const char *name, Inst *i)
{
    uint32_t tag = intern_tag(name);
    if (tag == 0) {
        tag = (uint32_t)(p->bindings.n > (int32_t)p->n_vocabulary ? p->bindings.n : (int32_t)p->n_vocabulary + 1);
        intern_set_tag(name, tag);
    }
    while (p->bindings.n <= (int32_t)tag) {
        Binding *before = p->bindings.v;
        size_t   n = (size_t)p->bindings.n * sizeof *before;
        vec_push(p->tmp, &p->bindings, (Binding){0});
        if (p->bindings.v != before)
            arena_drop(p->tmp, before, n);
    }
    Binding *b = &p->bindings.v[tag];
    if (b->scope && b->scope != p->scope->serial && p->scope->parent)
        vec_push(p->tmp, &p->shadowed, ((Shadowed){*b, tag, p->scope->serial}));
    *b = (Binding){i, p->scope->serial};
}

void comp_begin(Parser *p, bool entry, Loc entry_loc, const char *name, Loc loc)
{
    Scope *s = scope_new(p);
    *s = (Scope){.pending = {name, loc}, .head = loc, .entry = entry, .errors = p->d->errors};
    p->heading = s;
    if (entry && p->entry_loc.len) {
        parse_error(p, entry_loc, "a module has one ENTRY computation");
        parse_note(p, p->entry_loc, "the first one is here");
    } else if (entry)
        p->entry_loc = entry_loc;
    const Comp *before = map_get(&p->comps, name);
    if (before && before != p->poison_comp) {
        parse_error(p, loc, "the computation '%s' is defined twice", name);
        parse_note(p, before->loc, "the first definition is here");
    }
}

void comp_result(Parser *p, const Shape *s, Loc loc)
{
    p->heading->result = s;
    p->heading->result_loc = loc;
}

void comp_open(Parser *p)
{
    Scope *h = p->heading;
    p->heading = NULL;
    scope_push(p, comp_new(p->m, h->pending.s), h->head);
    p->scope->entry = h->entry;
    p->scope->result = h->result;
    p->scope->result_loc = h->result_loc;
    p->scope->errors = h->errors;
    p->scope->written = h->pending.s;
    scope_done(p, h);
}

void comp_open_inline(Parser *p, Loc loc)
{
    scope_push(p, comp_new(p->m, "_"), loc);
    p->scope->inlined = true;
}

void scope_thread(Parser *p, Loc loc, const char *v)
{
    if (p->scope->has_thread)
        parse_error(p, loc, "the attribute 'execution_thread' is given twice");
    p->scope->has_thread = true;
    p->scope->comp->execution_thread = strcmp(v, "main") == 0 ? NULL : v;
}

void scope_config(Parser *p, Loc loc, const char *v)
{
    if (p->scope->has_config)
        parse_error(p, loc, "the attribute 'backend_config' is given twice");
    p->scope->has_config = true;
    p->scope->comp->backend_config = config_value(p, v);
}

Comp *comp_find(Parser *p, const char *name, Loc loc)
{
    Comp *c = map_get(&p->comps, name);
    if (c)
        return c;
    parse_error(p, loc, "there is no computation '%s' before this", name);
    for (const Scope *s = p->scope; s; s = s->parent)
        if (s->written == name) {
            parse_note(p, loc, "a computation cannot call itself");
            return p->poison_comp;
        }
    enum { EXPLAINED = 100 }; /* a text with more errors has another problem */
    Loc later = p->d->errors <= EXPLAINED ? defined_later(p, loc.off, name, true) : LOC_NONE;
    if (later.off >= 0) {
        parse_note(p, later, "'%s' is defined here: a computation stands before what calls it", name);
        return p->poison_comp;
    }
    NameVec names = {0};
    for (const Comp *k = p->m->first; k; k = k->next)
        vec_push(p->tmp, &names, k->name);
    parse_suggest(p, loc, name, names.v, names.n);
    return p->poison_comp;
}

void comp_place(Parser *p, Comp *c)
{
    const Scope *outermost = p->scope;
    while (outermost && outermost->parent)
        outermost = outermost->parent;
    if (outermost && outermost->comp != c)
        comp_move_before(c, outermost->comp);
}

/* Parameters by number. XLA reports a repeat and aborts at a gap. */
static bool collect_params(Parser *p, Comp *c)
{
    int32_t n = 0;
    for (const Inst *i = c->first; i; i = i->next)
        n += i->op == OP_PARAMETER;
    c->n_params = n;
    c->params = ARENA_ARRAY(p->a, Inst *, n);
    for (Inst *i = c->first; i; i = i->next) {
        if (i->op != OP_PARAMETER)
            continue;
        if (i->param >= n) {
            parse_error(p, i->loc, "parameter %lld of %d: the numbers must be 0 to %d", (long long)i->param, n, n - 1);
            return false;
        }
        if (c->params[i->param]) {
            parse_error(p, i->loc, "there are two parameters with the number %lld", (long long)i->param);
            parse_note(p, c->params[i->param]->loc, "the first one is here");
            return false;
        }
        c->params[i->param] = i;
    }
    return true;
}

static void check_signature(Parser *p, const Scope *s)
{
    const Shape *root = s->comp->root->shape;
    if (!s->result || shape_compatible(s->result, root))
        return;
    parse_error(p, s->result_loc, "the signature of '%s' gives %s, its root has the type %s", s->written,
                shape_text(p->tmp, s->result), shape_text(p->tmp, root));
    parse_note(p, s->comp->root->loc, "the root is here");
}

void scope_pop(Parser *p)
{
    Scope *s = p->scope;
    while (p->shadowed.n > 0 && p->shadowed.v[p->shadowed.n - 1].by == s->serial) {
        const Shadowed *hidden = &p->shadowed.v[--p->shadowed.n];
        p->bindings.v[hidden->tag] = hidden->binding;
    }
    p->current = (Rhs *)(uintptr_t)s->outer;
    p->scope = s->parent;
    scope_done(p, s);
}

Comp *comp_end(Parser *p)
{
    const Scope *s = p->scope;
    Comp        *c = s->comp;
    bool         ok = p->d->errors == s->errors && !s->failed;
    if (ok && !c->first)
        parse_error(p, s->close, "a computation has at least one instruction");
    if (!c->root)
        c->root = c->last;
    ok = ok && c->first && collect_params(p, c);
    if (ok)
        check_signature(p, s);
    ok = ok && p->d->errors == s->errors;
    comp_place(p, c);
    scope_pop(p); /* s is as it was until the next scope begins */
    if (s->inlined)
        return ok ? c : p->poison_comp;
    if (s->entry)
        p->entry = c;
    if (!map_has(&p->comps, s->written))
        map_put(&p->comps, s->written, ok ? c : p->poison_comp);
    const char *better;
    if (!name_is_sanitary(p->strings, c->name, &better))
        c->name = better;
    return c;
}

void comp_abandon(Parser *p)
{
    const Scope *s = p->scope;
    if (!map_has(&p->comps, s->written))
        map_put(&p->comps, s->written, p->poison_comp);
    scope_pop(p);
}

/* ---- the end of the text ---- */

static bool index_is_valid(const Shape *s, Ints index)
{
    for (int32_t k = 0; k < index.n; k++) {
        if (!shape_is_tuple(s) || index.v[k] < 0 || index.v[k] >= s->n_elems)
            return false;
        s = s->elems[index.v[k]];
    }
    return true;
}

static int compare_alias(const void *x, const void *y)
{
    const InputAlias *a = x, *b = y;
    int               order = compare_ints(a->output, b->output);
    return order ? order : a->loc.off < b->loc.off ? -1 : 1;
}

static int compare_donor(const void *x, const void *y)
{
    const Donor *d = x, *e = y;
    return d->param != e->param ? (d->param < e->param ? -1 : 1) : compare_ints(d->index, e->index);
}

static bool finish_aliases(Parser *p)
{
    Module     *m = p->m;
    InputAlias *v = arena_copy(p->a, p->aliases.v, (size_t)p->aliases.n * sizeof *v);
    int32_t     n = 0;
    bool        ok = true;
    qsort(v, (size_t)p->aliases.n, sizeof *v, compare_alias);
    for (int32_t k = 0; k < p->aliases.n; k++)
        if (n == 0 || !ints_equal(v[n - 1].output, v[k].output))
            v[n++] = v[k];
    for (int32_t k = 0; k < n; k++) {
        if (!index_is_valid(m->entry->root->shape, v[k].output))
            parse_error(p, v[k].loc, "this output index does not exist in the result type %s",
                        shape_text(p->tmp, m->entry->root->shape));
        else if (v[k].param < 0)
            parse_error(p, v[k].loc, "a parameter number is 0 or more, found %lld", (long long)v[k].param);
        else
            continue;
        ok = false;
    }
    m->aliases = v;
    m->n_aliases = n;
    Donor *donors = arena_copy(p->a, p->donors.v, (size_t)p->donors.n * sizeof *p->donors.v);
    qsort(donors, (size_t)p->donors.n, sizeof *donors, compare_donor);
    n = 0;
    for (int32_t k = 0; k < p->donors.n; k++)
        if (n == 0 || compare_donor(&donors[n - 1], &donors[k]) != 0)
            donors[n++] = donors[k];
    m->donors = donors;
    m->n_donors = n;
    return ok;
}

/* Whether XLA makes the module's configuration anew: for a single instruction, and when the header sets something that it keeps there.
 * The types of the entry computation then come into it with default layouts. */
static bool sets_configuration(const Parser *p)
{
    const Module *m = p->m;
    return p->single || m->replica_count != 1 || m->num_partitions != 1 || m->alias_passthrough_params || m->spmd_to_parameters.n > 0
           || m->spmd_to_output.n > 0;
}

static const Shape *default_layout(Parser *p, const Shape *s)
{
    Shape *t = arena_copy(p->a, s, sizeof *s);
    if (s->layout) {
        Layout *l = arena_copy(p->a, s->layout, sizeof *l);
        Ints    order = ints_make(p->a, s->rank);
        for (int32_t k = 0; k < s->rank; k++)
            *ints_at(order, k) = s->rank - 1 - k;
        l->minor_to_major = order;
        t->layout = layout_settled(p, l);
    }
    const Shape **elems = ARENA_ARRAY(p->a, const Shape *, s->n_elems);
    for (int32_t k = 0; k < s->n_elems; k++)
        elems[k] = default_layout(p, s->elems[k]);
    t->elems = elems;
    return t;
}

static void finish_layout(Parser *p)
{
    Module *m = p->m;
    if (m->has_entry_layout)
        return;
    bool          plain = sets_configuration(p);
    const Shape **params = ARENA_ARRAY(p->a, const Shape *, m->entry->n_params);
    for (int32_t k = 0; k < m->entry->n_params; k++)
        params[k] = plain ? default_layout(p, m->entry->params[k]->shape) : m->entry->params[k]->shape;
    ShapeList *l = ARENA_NEW(p->a, ShapeList);
    *l = (ShapeList){m->entry->n_params, params};
    m->entry_params = l;
    m->entry_result = plain ? default_layout(p, m->entry->root->shape) : m->entry->root->shape;
}

static void finish_stack(Parser *p)
{
    StackTables *t = &p->m->stack;
    *t = (StackTables){p->files.n, p->functions.n, p->locations.n, p->frames.n,
                       arena_copy(p->a, p->files.v, (size_t)p->files.n * sizeof *p->files.v),
                       arena_copy(p->a, p->functions.v, (size_t)p->functions.n * sizeof *p->functions.v),
                       arena_copy(p->a, p->locations.v, (size_t)p->locations.n * sizeof *p->locations.v),
                       arena_copy(p->a, p->frames.v, (size_t)p->frames.n * sizeof *p->frames.v)};
    if (!p->single)
        module_rebuild_stack_frames(p->m);
}

bool module_finish(Parser *p)
{
    Module *m = p->m;
    m->entry = p->entry ? p->entry : m->last;
    finish_layout(p);
    if (!finish_aliases(p) || !async_finish(p))
        return false;
    if (p->single) /* XLA adds its computation before the inline ones */
        comp_move_before(m->entry, m->first);
    module_make_names_unique(m, p->names_change);
    if (!p->headed && !p->single)
        m->name = intern_printf(p->strings, "module_%s", m->entry->name);
    if (p->single)
        comp_move_before(m->entry, NULL);
    finish_stack(p);
    return true;
}
