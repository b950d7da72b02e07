/* Modules and computations: making, copying, ordering. */
#include "ir/inst.h"

#include <stdlib.h>
#include <string.h>

#include "ir/attr_rare.h"
#include "ir/name_table.h"

Module *module_new(void)
{
    Arena  *a = arena_new();
    Module *m = mem_alloc(1, sizeof *m);
    m->arena = a;
    m->strings = interner_new(a);
    m->name = intern_str(m->strings, "module");
    m->replica_count = m->num_partitions = 1;
    return m;
}

void module_free(Module *m)
{
    if (!m)
        return;
    arena_free(m->arena);
    mem_free(m);
}

Comp *comp_new(Module *m, const char *name)
{
    Comp *c = ARENA_NEW(m->arena, Comp);
    c->module = m;
    c->name = intern_str(m->strings, name);
    c->loc = LOC_NONE;
    c->prev = m->last;
    if (m->last)
        m->last->next = c;
    else
        m->first = c;
    m->last = c;
    m->n_comps++;
    return c;
}

static void unlink_comp(Comp *c)
{
    Module *m = c->module;
    if (c->prev)
        c->prev->next = c->next;
    else
        m->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        m->last = c->prev;
    m->n_comps--;
}

void comp_move_before(Comp *c, Comp *at)
{
    if (c == at)
        return;
    Module *m = c->module;
    unlink_comp(c);
    c->next = at;
    c->prev = at ? at->prev : m->last;
    if (c->prev)
        c->prev->next = c;
    else
        m->first = c;
    if (at)
        at->prev = c;
    else
        m->last = c;
    m->n_comps++;
}

/* Names in use: a name's mark (intern.h) is the table's number, and who has it. next holds, by root, the smallest number that may be free. */
typedef struct NameTable {
    uint32_t number;
    Map      next_inst, next_comp;
} NameTable;

enum { NAMES_INST = 1, NAMES_COMP = 2, NAMES_KINDS = 4 };

static char taken;

static bool name_is_used(const NameTable *t, const char *name, uint32_t by)
{
    uint32_t mark = intern_mark(name);
    return mark / NAMES_KINDS == t->number && (mark & by);
}

static void name_use(const NameTable *t, const char *name, uint32_t by)
{
    uint32_t mark = intern_mark(name);
    intern_set_mark(name, (mark / NAMES_KINDS == t->number ? mark : t->number * NAMES_KINDS) | by);
}

static NameTable *name_table(Module *m)
{
    if (m->name_table)
        return m->name_table;
    NameTable *t = ARENA_NEW(m->arena, NameTable);
    t->number = ++m->name_tables;
    t->next_inst = map_new(m->arena);
    t->next_comp = map_new(m->arena);
    for (Comp *c = m->first; c; c = c->next) {
        name_use(t, c->name, NAMES_COMP);
        for (Inst *i = c->first; i; i = i->next)
            name_use(t, i->name, NAMES_INST);
    }
    m->name_table = t;
    return t;
}

void name_table_note_inst(Module *m, const char *name)
{
    if (m->name_table)
        name_use(m->name_table, name, NAMES_INST);
}

/* The reader takes "x" and "x.0" for one name (canon.h): this is the other of the two. */
static const char *other_spelling(Module *m, const char *name)
{
    size_t n = intern_len(name);
    bool   zero = n > 2 && strcmp(name + n - 2, ".0") == 0;
    return zero ? intern(m->strings, name, n - 2) : intern_printf(m->strings, "%s.0", name);
}

/* root.N with the smallest free N; root itself when N is 0. A base that ends in ".N" has that taken off first. */
static const char *unique(Module *m, uint32_t by, Map *next, const char *base)
{
    const NameTable *t = m->name_table;
    const char      *whole = intern_str(m->strings, base);
    if (!name_is_used(t, whole, by) && !name_is_used(t, other_spelling(m, whole), by)) {
        name_use(t, whole, by);
        return whole;
    }
    size_t n = strlen(base), end = n;
    while (end > 0 && base[end - 1] >= '0' && base[end - 1] <= '9')
        end--;
    bool        numbered = end < n && end > 1 && base[end - 1] == '.';
    const char *root = intern(m->strings, base, numbered ? end - 1 : n);
    intptr_t    id = (intptr_t)map_get(next, root);
    const char *name;
    do {
        id++;
        name = intern_printf(m->strings, "%s.%lld", root, (long long)id);
    } while (name_is_used(t, name, by));
    map_put(next, root, (void *)id);
    name_use(t, name, by);
    return name;
}

const char *inst_unique_name(Module *m, const char *base)
{
    NameTable *t = name_table(m);
    return unique(m, NAMES_INST, &t->next_inst, base);
}

const char *comp_unique_name(Module *m, const char *base)
{
    NameTable *t = name_table(m);
    return unique(m, NAMES_COMP, &t->next_comp, base);
}

Inst *comp_param(const Comp *c, int64_t k)
{
    if (k < 0 || k >= c->n_params)
        die("%s has no parameter %lld", c->name, (long long)k);
    return c->params[k];
}

bool comp_is_fusion_body(const Comp *c)
{
    for (const Comp *d = c->module->first; d; d = d->next)
        for (const Inst *i = d->first; i; i = i->next)
            if (i->op == OP_FUSION && i->n_callees && i->callees[0] == c)
                return true;
    return false;
}

Op comp_binary_op(const Comp *c)
{
    const Inst *r = c->root;
    if (c->n_params != 2 || c->n_insts != 3 || r->n_operands != 2 || !op_has(r->op, F_ELEMENTWISE))
        return OP_COUNT;
    const Inst *a = inst_operand(r, 0), *b = inst_operand(r, 1);
    if (a->op != OP_PARAMETER || b->op != OP_PARAMETER || a == b || a->shape->type != b->shape->type ||
        (a->param != 0 && !op_has(r->op, F_COMMUTES)))
        return OP_COUNT;
    return r->op;
}

const Metadata *metadata_copy(Arena *a, Interner *t, const Metadata *x)
{
    Metadata    *y = arena_copy(a, x, sizeof *x);
    const char **strings[] = {&y->op_type, &y->op_name, &y->source_file, &y->deduplicated_name, &y->scheduling_name, &y->payload};
    for (size_t k = 0; k < sizeof strings / sizeof *strings; k++)
        if (*strings[k])
            *strings[k] = intern(t, *strings[k], intern_len(*strings[k]));
    y->profile_type = ints_copy(a, x->profile_type);
    return y;
}

/* Copies the body of c into the empty d. comps maps old callees to new ones; NULL keeps them. keep_names: names are copied as they
 * are (another module), else made unique. */
static void clone_body(Comp *d, const Comp *c, const Map *comps, bool keep_names)
{
    Module *m = d->module;
    Arena  *scratch = arena_new();
    Map     map = map_new(scratch);
    VEC(Inst *) operands = {0};
    for (const Inst *i = c->first; i; i = i->next) {
        operands.n = 0;
        for (int32_t k = 0; k < i->n_operands; k++)
            vec_push(scratch, &operands, (Inst *)map_get(&map, inst_operand(i, k)));
        Inst *j;
        if (i->op == OP_PARAMETER) {
            const Shape *shape = keep_names ? shape_copy(m->arena, i->shape) : i->shape;
            j = inst_parameter(d, NULL, i->param, shape, keep_names ? i->name : inst_unique_name(m, i->name));
            j->loc = i->loc;
            j->meta = i->meta ? metadata_copy(m->arena, m->strings, i->meta) : NULL;
            for (int32_t k = 0; k < i->n_attrs; k++)
                inst_set_attr(j, attr_copy(m->arena, m->strings, &i->attrs[k]));
        } else {
            j = inst_clone_into(d, NULL, i, operands.n, operands.v);
            if (keep_names)
                j->name = intern(m->strings, i->name, intern_len(i->name));
        }
        j->auto_named = i->auto_named;
        if (comps && i->n_callees) {
            Comp **callees = arena_array(scratch, i->n_callees, sizeof *callees);
            for (int32_t k = 0; k < i->n_callees; k++)
                callees[k] = map_get(comps, i->callees[k]);
            inst_set_callees(j, i->n_callees, callees);
        }
        for (int32_t k = 0; k < i->n_control; k++)
            inst_add_control(j, map_get(&map, i->control_preds[k]));
        map_put(&map, i, j);
        if (c->root == i)
            d->root = j;
    }
    arena_free(scratch);
}

static const char *string_copy(Interner *t, const char *s)
{
    return s ? intern(t, s, intern_len(s)) : NULL;
}

Comp *comp_clone(const Comp *c, const char *name)
{
    Module *m = c->module;
    Comp   *d = comp_new(m, comp_unique_name(m, name));
    comp_move_before(d, c->next);
    d->execution_thread = c->execution_thread;
    d->backend_config = c->backend_config;
    d->loc = c->loc;
    clone_body(d, c, NULL, false);
    return d;
}

static StackTables stack_copy(Arena *a, Interner *t, const StackTables *x)
{
    StackTables  y = *x;
    const char **files = ARENA_ARRAY(a, const char *, x->n_files), **functions = ARENA_ARRAY(a, const char *, x->n_functions);
    for (int32_t k = 0; k < x->n_files; k++)
        files[k] = string_copy(t, x->files[k]);
    for (int32_t k = 0; k < x->n_functions; k++)
        functions[k] = string_copy(t, x->functions[k]);
    y.files = files;
    y.functions = functions;
    y.locations = arena_copy(a, x->locations, (size_t)x->n_locations * sizeof *x->locations);
    y.frames = arena_copy(a, x->frames, (size_t)x->n_frames * sizeof *x->frames);
    return y;
}

static void header_copy(Module *n, const Module *m)
{
    Arena *a = n->arena;
    n->name = string_copy(n->strings, m->name);
    n->is_scheduled = m->is_scheduled;
    n->alias_passthrough_params = m->alias_passthrough_params;
    n->replica_count = m->replica_count;
    n->num_partitions = m->num_partitions;
    InputAlias *aliases = ARENA_ARRAY(a, InputAlias, m->n_aliases);
    for (int32_t k = 0; k < m->n_aliases; k++) {
        aliases[k] = m->aliases[k];
        aliases[k].output = ints_copy(a, m->aliases[k].output);
        aliases[k].index = ints_copy(a, m->aliases[k].index);
    }
    n->aliases = aliases;
    n->n_aliases = m->n_aliases;
    Donor *donors = ARENA_ARRAY(a, Donor, m->n_donors);
    for (int32_t k = 0; k < m->n_donors; k++) {
        donors[k] = m->donors[k];
        donors[k].index = ints_copy(a, m->donors[k].index);
    }
    n->donors = donors;
    n->n_donors = m->n_donors;
    n->has_entry_layout = m->has_entry_layout;
    if (m->entry_params) {
        const Shape **v = ARENA_ARRAY(a, const Shape *, m->entry_params->n);
        for (int32_t k = 0; k < m->entry_params->n; k++)
            v[k] = shape_copy(a, m->entry_params->v[k]);
        ShapeList *l = ARENA_NEW(a, ShapeList);
        *l = (ShapeList){m->entry_params->n, v};
        n->entry_params = l;
    }
    n->entry_result = m->entry_result ? shape_copy(a, m->entry_result) : NULL;
    if (m->spmd_to_parameters.v)
        n->spmd_to_parameters = ints_copy(a, m->spmd_to_parameters);
    if (m->spmd_to_output.v)
        n->spmd_to_output = ints_copy(a, m->spmd_to_output);
    n->frontend_attributes = m->frontend_attributes ? key_values_copy(a, n->strings, m->frontend_attributes) : NULL;
    n->backend_config = string_copy(n->strings, m->backend_config);
    n->origin_recovery = m->origin_recovery ? origin_table_copy(a, n->strings, m->origin_recovery) : NULL;
    n->debug_attributes = m->debug_attributes ? debug_table_copy(a, n->strings, m->debug_attributes) : NULL;
    n->stack = stack_copy(a, n->strings, &m->stack);
    n->changed = m->changed;
}

Module *module_clone(const Module *m)
{
    Module *n = module_new();
    header_copy(n, m);
    Arena *scratch = arena_new();
    Map    comps = map_new(scratch);
    for (const Comp *c = m->first; c; c = c->next) {
        Comp *d = comp_new(n, c->name);
        d->execution_thread = string_copy(n->strings, c->execution_thread);
        d->backend_config = string_copy(n->strings, c->backend_config);
        d->async_wrapped = c->async_wrapped;
        d->loc = c->loc;
        map_put(&comps, c, d);
        clone_body(d, c, &comps, true);
        if (m->entry == c)
            n->entry = d;
    }
    n->name_table = NULL; /* unique names made on the way were replaced */
    arena_free(scratch);
    return n;
}

void module_remove_dead_comps(Module *m)
{
    for (Comp *c = m->first; c; c = c->next)
        c->mark = 0;
    m->entry->mark = 1;
    for (Comp *c = m->last; c; c = c->prev) /* callers stand after what they call */
        if (c->mark)
            for (Inst *i = comp_calling(c); i; i = i->next)
                for (int32_t k = 0; k < i->n_callees; k++)
                    i->callees[k]->mark = 1;
    for (Comp *c = m->first, *next; c; c = next) {
        next = c->next;
        if (!c->mark)
            unlink_comp(c);
    }
}

/* Names are few: passes and their rules. */
static int16_t maker_number(Module *m, const char *name)
{
    const char *kept = intern_str(m->strings, name);
    for (int32_t k = 0; k < m->makers.n; k++)
        if (m->makers.v[k] == kept)
            return (int16_t)(k + 1);
    if (m->makers.n == INT16_MAX)
        return 0;
    vec_push(m->arena, &m->makers, kept);
    return (int16_t)m->makers.n;
}

void module_set_maker(Module *m, const char *name)
{
    m->maker = name ? maker_number(m, name) : 0;
}

void inst_set_maker(Inst *i, const char *name)
{
    i->maker = maker_number(i->comp->module, name);
}

const char *inst_maker(const Inst *i)
{
    return i->maker ? i->comp->module->makers.v[i->maker - 1] : NULL;
}

/* Post-order without recursion: an instruction is pushed when it is first needed, its operands above it, and leaves when it is
 * found on top again. visit: 0 not seen, 1 pushed its operands, 2 in the order. */
typedef VEC(Inst *) InstStack;

static void push_needs(Arena *a, InstStack *stack, Inst *i)
{
    for (int32_t k = i->n_operands; k-- > 0;)
        if (inst_operand(i, k)->visit != 2)
            vec_push(a, stack, inst_operand(i, k));
    for (int32_t k = 0; k < i->n_control; k++)
        if (i->control_preds[k]->visit != 2)
            vec_push(a, stack, i->control_preds[k]);
}

Inst **comp_post_order(Arena *a, const Comp *c)
{
    Inst    **order = ARENA_ARRAY(a, Inst *, c->n_insts);
    int32_t   n = 0;
    Arena    *scratch = arena_new();
    InstStack stack = {0};
    for (Inst *i = c->first; i; i = i->next)
        i->visit = 0;
    for (Inst *r = c->first; r; r = r->next) {
        if (r->n_uses)
            continue;
        vec_push(scratch, &stack, r);
        while (stack.n) {
            Inst *i = stack.v[stack.n - 1];
            if (i->visit == 0) {
                i->visit = 1;
                push_needs(scratch, &stack, i);
                continue;
            }
            stack.n--;
            if (i->visit == 1) {
                i->visit = 2;
                order[n++] = i;
            }
        }
    }
    arena_free(scratch);
    if (n != c->n_insts)
        die("%s has %d instructions, %d are reachable from those without users", c->name, c->n_insts, n);
    return order;
}

typedef struct CompWalk {
    Comp *comp;
    Inst *at;
    bool  entered;
} CompWalk;
typedef VEC(CompWalk) CompStack;

typedef struct CompWalker {
    Arena    *scratch;
    CompStack stack;
    Map       pushed; /* computation -> number of the list of callees that brought it last */
    uintptr_t lists;
    int64_t   walk;   /* the mark of computations that were entered */
} CompWalker;

/* All callees of i that were not entered yet go on the stack, the first one on top; of one that i calls several times the last counts. One that
 * waits on the stack goes there again when what is entered before it calls it (a loop's condition that its body uses too). */
static void push_callees(CompWalker *w, const Inst *i)
{
    w->lists += i->n_callees > 1;
    for (int32_t k = i->n_callees; k-- > 0;) {
        Comp *c = i->callees[k];
        if (c->mark == w->walk || (i->n_callees > 1 && map_get(&w->pushed, c) == (void *)w->lists))
            continue;
        if (i->n_callees > 1)
            map_put(&w->pushed, c, (void *)w->lists);
        vec_push(w->scratch, &w->stack, ((CompWalk){c, comp_calling(c), false}));
    }
}

/* False for one that was entered from elsewhere by now. */
static bool enter(CompWalk *w, int64_t walk)
{
    if (w->entered)
        return true;
    w->entered = w->comp->mark != walk;
    w->comp->mark = walk;
    return w->entered;
}

Comp **module_comp_order(Arena *a, const Module *m, int32_t *n)
{
    Comp     **order = ARENA_ARRAY(a, Comp *, m->n_comps);
    Arena     *scratch = arena_new();
    Map        called = map_new(scratch), done = map_new(scratch);
    CompWalker w = {.scratch = scratch, .pushed = map_new(scratch)};
    *n = 0;
    for (Comp *c = m->first; c; c = c->next) {
        c->mark = 0;
        for (Inst *i = comp_calling(c); i; i = i->next)
            for (int32_t k = 0; k < i->n_callees; k++)
                map_put(&called, i->callees[k], &taken);
    }
    for (Comp *root = m->first; root; root = root->next) {
        if (map_has(&called, root))
            continue;
        w.walk++;
        for (Inst *r = comp_calling(root); r; r = r->next) {
            push_callees(&w, r);
            while (w.stack.n) {
                CompWalk *top = &w.stack.v[w.stack.n - 1];
                if (!enter(top, w.walk))
                    w.stack.n--;
                else if (top->at) {
                    Inst *i = top->at;
                    top->at = i->next;
                    push_callees(&w, i);
                } else {
                    Comp *c = w.stack.v[--w.stack.n].comp;
                    if (!map_has(&done, c)) {
                        map_put(&done, c, &taken);
                        order[(*n)++] = c;
                    }
                }
            }
        }
        map_put(&done, root, &taken);
        order[(*n)++] = root;
    }
    arena_free(scratch);
    return order;
}
