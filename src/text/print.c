/* The printer: module, computations, instructions. What comes in is a complete module; the text is XLA's own, byte for byte,
 * except for what would not read back once a pass has changed the module: -0.0, wrappers of asynchronous instructions. Nothing here changes the module but the scratch fields of the orders.
 *
 *   HloModule NAME, header attributes            print_module
 *   stack tables
 *   %callee (...) -> T {                         print_computation, callees first
 *     %name = T opcode(operands), attributes     print_instruction
 *   }
 *
 * Source: reference text 8. */
#include "text/print.h"

#include <math.h>
#include <string.h>

#include "text/print_json.h"
#include "text/print_rare.h"
#include "text/print_value.h"

static void printer_init(Printer *p, Buf *b, const PrintOptions *o)
{
    *p = (Printer){.b = b, .o = o, .arena = arena_new()};
    p->starts = map_new(p->arena);
    p->single = map_new(p->arena);
    p->fusion_bodies = map_new(p->arena);
    p->async_bodies = map_new(p->arena);
    p->numbers = NULL;
    p->indent = o->indent;
}

static void printer_free(Printer *p)
{
    buf_free(&p->meta_text);
    arena_free(p->arena);
}

/* Without ids, up to the first dot. */
static void print_bare_name(Printer *p, const char *name)
{
    size_t      n = intern_len(name);
    const char *dot = p->o->ids ? NULL : memchr(name, '.', n);
    buf_put(p->b, name, dot != NULL ? (size_t)(dot - name) : n);
}

void print_name(Printer *p, const char *name)
{
    if (p->o->percent)
        buf_putc(p->b, '%');
    print_bare_name(p, name);
}

/* tmp_0 is what a computation's text mentions first. */
static void print_canonical_name(Printer *p, const Inst *i)
{
    Numbering *x = p->numbers;
    int64_t   *number = map_get(&x->numbers, i);
    if (number == NULL) {
        number = ARENA_NEW(p->arena, int64_t);
        *number = x->n++;
        map_put(&x->numbers, i, number);
    }
    buf_printf(p->b, "tmp_%lld", (long long)*number);
}

static void print_inst_name(Printer *p, const Inst *i)
{
    if (p->o->canonical_names)
        print_canonical_name(p, i);
    else
        print_name(p, i->name);
}

static void print_indent(Printer *p)
{
    print_levels(p->b, p->indent);
}

static void print_index_comment(Buf *b, int64_t k)
{
    if (k > 0 && k % 5 == 0)
        buf_puts(b, "/*index="), buf_int(b, k), buf_puts(b, "*/");
}

static bool is_main_thread(const char *thread)
{
    return thread == NULL || (intern_len(thread) == 4 && memcmp(thread, "main", 4) == 0);
}

/* ---- asynchronous instructions ----
 *
 *   wrapped (x: f32[4]) -> f32[4] { x = parameter(0)  ROOT y = negate(x) }
 *   a = ((f32[4]), f32[4], s32[]) async-start(p), calls=wrapped       printed as    a = (...) negate-start(p)
 *   b = f32[4] async-done(a)                                                        b = f32[4] negate-done(a)        */

static bool is_async(Op op)
{
    return op == OP_ASYNC_START || op == OP_ASYNC_UPDATE || op == OP_ASYNC_DONE;
}

/* One step from an asynchronous value towards its start: through earlier steps, and through tuples, barriers and copies.
 * path holds the tuple elements still to be entered, innermost last. NULL: the chain ends here. */
typedef VEC(int64_t) TuplePath;

static const Inst *step_to_start(Arena *a, const Inst *i, TuplePath *path)
{
    switch ((int)i->op) {
    case OP_ASYNC_UPDATE:
    case OP_ASYNC_DONE: return path->n == 0 && i->n_operands > 0 ? inst_operand(i, 0) : NULL;
    case OP_OPT_BARRIER:
    case OP_COPY: return inst_operand(i, 0);
    case OP_GET_TUPLE_ELEMENT: vec_push(a, path, inst_int(i, ATTR_INDEX, 0)); return inst_operand(i, 0);
    case OP_TUPLE: {
        int64_t k = path->n > 0 ? path->v[--path->n] : -1;
        return k >= 0 && k < i->n_operands ? inst_operand(i, (int32_t)k) : NULL;
    }
    default: return NULL;
    }
}

/* A start, or a step without one that names the computation itself. */
static bool begins_chain(const Inst *i)
{
    return i->op == OP_ASYNC_START || (is_async(i->op) && i->n_callees > 0);
}

/* The async-start of the chain, NULL when it cannot be found. Steps are printed after what they take, so that the walk ends at the
 * step before; the limit is for texts that put thousands of copies or tuples between two steps. */
static const Inst *async_start_of(Printer *p, const Inst *i)
{
    enum { MAX_STEPS = 1000 };
    TuplePath   path = {0};
    const Inst *at = i, *known = NULL;
    for (int steps = 0; at != NULL && !begins_chain(at) && known == NULL; steps++) {
        known = path.n == 0 ? map_get(&p->starts, at) : NULL;
        if (known == NULL)
            at = steps < MAX_STEPS ? step_to_start(p->arena, at, &path) : NULL;
    }
    if (known != NULL)
        at = begins_chain(known) ? known : NULL;
    if (path.n > 0)
        at = NULL;
    map_put(&p->starts, i, (void *)(uintptr_t)(at != NULL ? at : i));
    return at;
}

/* The short form shows what is handed to the wrapper: it reads back only where the root takes the parameters as they come, only where
 * its operation has no steps of its own, and only where it has none of what is printed again for the start. */
static bool short_form_reads_back(const Inst *root)
{
    bool all = op_has_sugar(root->op) && root->n_operands == root->comp->n_params && !inst_attr(root, ATTR_STATISTICS) && !inst_attr(root, ATTR_SHARDING);
    for (int32_t k = 0; all && k < root->n_operands; k++)
        all = inst_operand(root, k) == comp_param(root->comp, k);
    return all;
}

/* The root of a computation that has only parameters beside it; NULL for any other computation, and once a pass has changed the module
 * for one that the short form would lose. */
static const Inst *single_inst(Printer *p, const Comp *c)
{
    const void *known = map_get(&p->single, c);
    if (known == NULL) {
        const Inst *i = c->first;
        while (i != NULL && (i == c->root || i->op == OP_PARAMETER))
            i = i->next;
        known = i == NULL && (!c->module->changed || short_form_reads_back(c->root)) ? (const void *)c->root : (const void *)c;
        map_put(&p->single, c, (void *)(uintptr_t)known);
    }
    return known == (const void *)c ? NULL : known;
}

/* The instruction that an asynchronous one is printed as, NULL: it is printed as it is. */
static const Inst *async_sugar(Printer *p, const Inst *i)
{
    if (!p->o->async_sugar || !is_async(i->op))
        return NULL;
    const Inst *start = async_start_of(p, i);
    return start != NULL && start->n_callees > 0 ? single_inst(p, start->callees[0]) : NULL;
}

static const char *async_suffix(Op op)
{
    return op == OP_ASYNC_START ? "-start" : op == OP_ASYNC_UPDATE ? "-update" : "-done";
}

/* ---- instructions ---- */

static bool all_leaves_are_integers(const Literal *l)
{
    bool all = l->type == TYPE_TUPLE || type_is_int(l->type);
    for (int32_t k = 0; all && k < l->n_elems; k++)
        all = all_leaves_are_integers(l->elems[k]);
    return all;
}

/* v is 0 or 1; -0.0 is not 0. */
static bool is_part(double x, double v)
{
    return x == v && !signbit(x);
}

static bool is_all(const Literal *l, double v)
{
    if (!type_is_array(l->type) || l->elided)
        return false;
    for (int64_t k = 0; k < l->count; k++)
        if (!is_part(literal_get_f64(l, k), v) || (type_is_complex(l->type) && !is_part(literal_get_imag(l, k), 0)))
            return false;
    return true;
}

/* Random weights are not what a program is known by: XLA's fingerprint leaves them out. */
static void print_essential(Buf *b, const Literal *l, bool signed_zero)
{
    enum { MAX_LISTED = 500000 };
    if (is_all(l, 0) || is_all(l, 1))
        buf_puts(b, is_all(l, 0) ? "0" : "1");
    else if (all_leaves_are_integers(l) && (l->type == TYPE_TUPLE || l->count <= MAX_LISTED))
        literal_print(b, l, signed_zero);
    else
        buf_puts(b, "{...}");
}

static void print_constant(Printer *p, const Inst *i)
{
    const Literal *l = i->literal;
    if (p->o->essential_constants)
        print_essential(p->b, l, i->comp->module->changed);
    else if (p->o->large_constants || (l->type != TYPE_TUPLE && l->count <= 10))
        literal_print(p->b, l, i->comp->module->changed);
    else
        buf_puts(p->b, "{...}");
}

/* With compact_elements, an element of a tuple is written as %tuple#1, one within another as %tuple#1#0. */
static bool is_compacted(const Printer *p, const Inst *i)
{
    return p->o->compact_elements && i->op == OP_GET_TUPLE_ELEMENT;
}

static void print_element_name(Printer *p, const Inst *i)
{
    TuplePath path = {0};
    for (; is_compacted(p, i); i = inst_operand(i, 0))
        vec_push(p->arena, &path, inst_int(i, ATTR_INDEX, 0));
    print_inst_name(p, i);
    while (path.n > 0)
        buf_printf(p->b, "#%lld", (long long)path.v[--path.n]);
}

static void print_type(Printer *p, const Shape *s, bool layouts)
{
    TypeText *t = p->types ? &p->types[((uintptr_t)s / 64 + layouts) % TYPE_TEXTS] : NULL;
    if (t && t->shape == s && t->layouts == layouts) {
        buf_put(p->b, t->text, t->len);
        return;
    }
    size_t from = p->b->n;
    shape_print(p->b, s, layouts);
    size_t len = p->b->n - from;
    if (t && len <= sizeof t->text) {
        *t = (TypeText){.shape = s, .layouts = layouts, .len = (uint8_t)len};
        memcpy(t->text, p->b->p + from, len);
    }
}

static void print_operand(Printer *p, const Inst *x)
{
    bool named = p->o->canonical_names ? p->numbers != NULL : p->o->operand_names;
    if (p->o->operand_shapes) {
        print_type(p, x->shape, p->o->layouts);
        buf_puts(p->b, named ? " " : "");
    }
    if (named && is_compacted(p, x))
        print_element_name(p, x);
    else if (named)
        print_inst_name(p, x);
}

static void print_operand_list(Printer *p, const Inst *i)
{
    enum { MAX_COMPACT = 4 };
    int32_t shown = p->o->compact_operands && i->n_operands > MAX_COMPACT ? MAX_COMPACT : i->n_operands;
    for (int32_t k = 0; k < shown; k++) {
        buf_puts(p->b, k > 0 ? ", " : "");
        if (p->o->index_comments)
            print_index_comment(p->b, k);
        print_operand(p, inst_operand(i, k));
    }
    if (shown < i->n_operands)
        buf_printf(p->b, ", ...(+%d)", (int)(i->n_operands - shown));
}

static void print_operands(Printer *p, const Inst *i)
{
    if (i->op == OP_CONSTANT)
        print_constant(p, i);
    else if (i->op != OP_PARAMETER)
        print_operand_list(p, i);
    else if (p->o->parameter_numbers)
        buf_int(p->b, i->param);
}

static void print_control_preds(Printer *p, const Inst *i)
{
    if (!p->o->control_deps || i->n_control == 0)
        return;
    buf_puts(p->b, ", control-predecessors={");
    for (int32_t k = 0; k < i->n_control; k++) {
        buf_puts(p->b, k > 0 ? ", " : "");
        print_name(p, i->control_preds[k]->name);
    }
    buf_putc(p->b, '}');
}

static void print_attrs(Printer *p, const Inst *i, const Inst *outer);

/* The wrapped instruction's attributes are the own ones of the start; its body, when bodies are printed, comes on top of them. */
static void print_wrapped(Printer *p, const Inst *start, const Inst *wrapped)
{
    if (p->o->extra_attributes) {
        print_own_attr(p, start, ATTR_ASYNC_EXECUTION_THREAD);
        print_attrs(p, wrapped, start);
        print_own_attr(p, start, ATTR_OUTPUT_TO_OPERAND_ALIASING);
    }
    if (p->o->callees != CALLEES_NAMED)
        print_own_attr(p, start, ATTR_CALLS);
}

/* From the opcode's own attributes to result_accuracy. outer: the asynchronous instruction that i is printed in, or NULL. */
static void print_attrs(Printer *p, const Inst *i, const Inst *outer)
{
    Buf        *b = p->b;
    const Attr *x;
    const Inst *wrapped = i->op == OP_ASYNC_START ? async_sugar(p, i) : NULL;
    x = p->o->extra_attributes && p->o->ids ? inst_attr(i, ATTR_PARAMETER_REPLICATION) : NULL;
    if (x != NULL && i->op == OP_PARAMETER) {
        buf_puts(b, ", parameter_replication=");
        print_bools(b, x->value.ints);
    }
    if (wrapped != NULL)
        print_wrapped(p, i, wrapped);
    else
        print_own_attrs(p, i);
    if ((x = inst_attr(i, ATTR_SHARDING)) != NULL) {
        buf_puts(b, ", sharding=");
        print_sharding(b, x->value.sharding, p->o->metadata);
    }
    x = p->o->frontend_attributes ? inst_attr(i, ATTR_FRONTEND_ATTRIBUTES) : NULL;
    if (x != NULL && x->value.key_values->n > 0 && (outer == NULL || inst_attr(outer, ATTR_FRONTEND_ATTRIBUTES) == NULL)) {
        buf_puts(b, ", frontend_attributes=");
        print_key_values(b, x->value.key_values);
    }
    print_control_preds(p, i);
    if ((x = inst_attr(i, ATTR_STATISTICS)) != NULL && x->value.statistics->n > 0) {
        buf_puts(b, ", statistics=");
        print_statistics(b, x->value.statistics);
    }
    if ((x = inst_attr(i, ATTR_RESULT_ACCURACY)) != NULL && !accuracy_is_default(x->value.accuracy)) {
        buf_puts(b, ", result_accuracy=");
        print_accuracy(b, x->value.accuracy);
    }
}

static void print_config(Printer *p, const char *config)
{
    if (!p->o->sorted_config || !json_print_sorted(p->b, config, intern_len(config)))
        print_raw_or_quoted(p->b, config);
}

static void print_provenance(Printer *p, const Inst *i)
{
    Buf        *b = p->b;
    const Attr *x;
    if (p->o->origin && (x = inst_attr(i, ATTR_ORIGIN)) != NULL) {
        buf_puts(b, ", origin=");
        print_origin(b, x->value.origin);
    }
    if (p->o->metadata && i->meta != NULL && metadata_is_printed(i->meta)) {
        buf_puts(b, ", metadata=");
        if (p->meta != i->meta) {
            buf_clear(&p->meta_text);
            p->meta = i->meta;
            if (p->o->only_op_name)
                print_op_name(&p->meta_text, i->meta);
            else
                print_metadata(&p->meta_text, i->meta);
        }
        buf_put(b, p->meta_text.p, p->meta_text.n);
    }
    if (p->o->backend_config && (x = inst_attr(i, ATTR_BACKEND_CONFIG)) != NULL && intern_len(x->value.s) > 0) {
        buf_puts(b, ", backend_config=");
        print_config(p, x->value.s);
    }
}

static void print_instruction(Printer *p, const Inst *i)
{
    const Inst *sugar = async_sugar(p, i);
    if (!p->o->canonical_names || p->numbers != NULL) {
        print_inst_name(p, i);
        buf_puts(p->b, " = ");
    }
    if (p->o->result_shapes) {
        print_type(p, i->shape, p->o->layouts);
        buf_putc(p->b, ' ');
    }
    buf_puts(p->b, op_name(sugar != NULL ? sugar->op : i->op));
    if (sugar != NULL)
        buf_puts(p->b, async_suffix(i->op));
    buf_putc(p->b, '(');
    print_operands(p, i);
    buf_putc(p->b, ')');
    print_attrs(p, i, NULL);
    print_provenance(p, i);
}

/* ---- computations ---- */

static void print_signature(Printer *p, const Comp *c)
{
    buf_putc(p->b, '(');
    for (int32_t k = 0; k < c->n_params; k++) {
        buf_puts(p->b, k > 0 ? ", " : "");
        print_bare_name(p, c->params[k]->name);
        buf_puts(p->b, ": ");
        print_type(p, c->params[k]->shape, false);
    }
    buf_puts(p->b, ") -> ");
    print_type(p, c->root->shape, false);
    buf_putc(p->b, ' ');
}

static void print_line(Printer *p, const Comp *c, const Inst *i)
{
    if (is_compacted(p, i) && i != c->root)
        return;
    print_indent(p);
    buf_puts(p->b, i == c->root ? "ROOT " : "");
    print_instruction(p, i);
    if (p->o->makers && inst_maker(i) != NULL)
        buf_printf(p->b, "  // %s", inst_maker(i));
    buf_putc(p->b, '\n');
    buf_rest(p->b);
}

static void print_lines(Printer *p, const Comp *c, bool in_stored_order)
{
    Numbering  own = {.numbers = map_new(p->arena)};
    Numbering *outer = p->numbers;
    p->numbers = &own;
    p->indent++;
    if (in_stored_order) {
        for (const Inst *i = c->first; i != NULL; i = i->next)
            print_line(p, c, i);
    } else {
        Arena *a = arena_new();
        Inst **order = comp_post_order(a, c);
        for (int32_t k = 0; k < c->n_insts; k++)
            print_line(p, c, order[k]);
        arena_free(a);
    }
    p->indent--;
    p->numbers = outer;
}

/* From the signature to what follows the closing brace. */
static void print_body(Printer *p, const Comp *c, bool in_stored_order)
{
    enum { FEW_INSTS = 5 };
    Buf *b = p->b;
    if (p->o->signatures)
        print_signature(p, c);
    buf_puts(b, "{\n");
    print_lines(p, c, in_stored_order);
    print_indent(p);
    buf_putc(b, '}');
    if (p->o->ids && !is_main_thread(c->execution_thread)) {
        buf_puts(b, ", execution_thread=");
        print_thread(b, c->execution_thread);
    }
    if (p->o->backend_config && c->backend_config != NULL && intern_len(c->backend_config) > 0) {
        buf_puts(b, ", backend_config=");
        print_raw_or_quoted(b, c->backend_config);
    }
    if (p->o->names_after_braces && c->n_insts > FEW_INSTS) {
        buf_puts(b, " // ");
        buf_puts(b, c->name);
    }
}

void print_callee_body(Printer *p, const Comp *c)
{
    print_indent(p);
    print_body(p, c, false);
}

static void print_computation(Printer *p, const Comp *c, bool fusion_body)
{
    print_indent(p);
    buf_puts(p->b, c == c->module->entry ? "ENTRY " : "");
    if (p->o->computation_names) {
        buf_puts(p->b, p->o->percent ? "%" : "");
        buf_puts(p->b, p->o->ids ? c->name : "");
        buf_puts(p->b, p->o->ids ? " " : "");
    }
    print_body(p, c, c->module->is_scheduled && !fusion_body);
}

/* ---- module ---- */

static void print_aliases(Buf *b, const Module *m)
{
    for (int32_t k = 0; k < m->n_aliases; k++) {
        const InputAlias *x = &m->aliases[k];
        buf_puts(b, k > 0 ? ", " : ", input_output_alias={ ");
        print_ints(b, x->output);
        buf_printf(b, ": (%lld, ", (long long)x->param);
        print_ints(b, x->index);
        buf_puts(b, x->kind == ALIAS_MUST ? ", must-alias)" : ", may-alias)");
    }
    buf_puts(b, m->n_aliases > 0 ? " }" : "");
    for (int32_t k = 0; k < m->n_donors; k++) {
        buf_printf(b, k > 0 ? ", (%lld, " : ", buffer_donor={ (%lld, ", (long long)m->donors[k].param);
        print_ints(b, m->donors[k].index);
        buf_putc(b, ')');
    }
    buf_puts(b, m->n_donors > 0 ? " }" : "");
}

static void print_entry_layout(Buf *b, const Module *m)
{
    const Comp *c = m->entry;
    int32_t     n = m->entry_params != NULL ? m->entry_params->n : c->n_params;
    buf_puts(b, ", entry_computation_layout={(");
    for (int32_t k = 0; k < n; k++) {
        buf_puts(b, k > 0 ? ", " : "");
        print_index_comment(b, k);
        shape_print(b, m->entry_params != NULL ? m->entry_params->v[k] : c->params[k]->shape, true);
    }
    buf_puts(b, ")->");
    shape_print(b, m->entry_result != NULL ? m->entry_result : c->root->shape, true);
    buf_putc(b, '}');
}

/* allow_spmd_sharding_propagation_*: nothing for {false}. */
static void print_allowed(Buf *b, const char *what, Ints x)
{
    if (x.v == NULL || (x.n == 1 && x.v[0] == 0))
        return;
    buf_printf(b, ", allow_spmd_sharding_propagation_to_%s=", what);
    print_bools(b, x);
}

static void print_header(Buf *b, const Module *m, const PrintOptions *o)
{
    buf_puts(b, "HloModule ");
    buf_puts(b, o->ids ? m->name : "");
    buf_puts(b, m->is_scheduled ? ", is_scheduled=true" : "");
    print_aliases(b, m);
    buf_puts(b, m->alias_passthrough_params ? ", alias_passthrough_params=true" : "");
    print_entry_layout(b, m);
    print_allowed(b, "parameters", m->spmd_to_parameters);
    print_allowed(b, "output", m->spmd_to_output);
    if (m->replica_count != 1)
        buf_printf(b, ", replica_count=%lld", (long long)m->replica_count);
    if (m->num_partitions != 1)
        buf_printf(b, ", num_partitions=%lld", (long long)m->num_partitions);
    if (m->frontend_attributes != NULL && m->frontend_attributes->n > 0) {
        buf_puts(b, ", frontend_attributes=");
        print_key_values(b, m->frontend_attributes);
    }
    if (o->backend_config && m->backend_config != NULL && intern_len(m->backend_config) > 0) {
        buf_puts(b, ", backend_config=");
        print_raw_or_quoted(b, m->backend_config);
    }
    if (m->origin_recovery != NULL && m->origin_recovery->n > 0) {
        buf_puts(b, ", origin_recovery_table=");
        print_origin_table(b, m->origin_recovery, o);
    }
    if (m->debug_attributes != NULL && m->debug_attributes->n > 0) {
        buf_puts(b, ",\ndebug_attributes=");
        print_debug_table(b, m->debug_attributes, o->indent);
    }
}

static void print_string_table(Buf *b, const char *title, int32_t n, const char *const *v)
{
    buf_puts(b, title);
    for (int32_t k = 0; k < n; k++) {
        buf_printf(b, "%d ", (int)k + 1);
        print_quoted(b, v[k]);
        buf_putc(b, '\n');
    }
}

static void print_stack_tables(Buf *b, const StackTables *t)
{
    print_string_table(b, "\n\nFileNames\n", t->n_files, t->files);
    print_string_table(b, "\nFunctionNames\n", t->n_functions, t->functions);
    buf_puts(b, "\nFileLocations\n");
    for (int32_t k = 0; k < t->n_locations; k++) {
        const FileLocation *x = &t->locations[k];
        buf_printf(b, "%d {file_name_id=%d function_name_id=%d line=%d end_line=%d column=%d end_column=%d}\n", (int)k + 1, (int)x->file,
                   (int)x->function, (int)x->line, (int)x->end_line, (int)x->column, (int)x->end_column);
    }
    buf_puts(b, "\nStackFrames\n");
    for (int32_t k = 0; k < t->n_frames; k++)
        buf_printf(b, "%d {file_location_id=%d parent_frame_id=%d}\n", (int)k + 1, (int)t->frames[k].location, (int)t->frames[k].parent + 1);
}

static void note_callers(Printer *p, const Module *m)
{
    for (const Comp *c = m->first; c != NULL; c = c->next)
        for (Inst *i = c->first; i != NULL; i = i->next)
            for (int32_t k = 0; k < i->n_callees; k++)
                if (i->op == OP_FUSION || is_async(i->op))
                    map_put(i->op == OP_FUSION ? &p->fusion_bodies : &p->async_bodies, i->callees[k], i);
}

static Comp **stored_order(Arena *a, const Module *m, int32_t *n)
{
    Comp **order = ARENA_ARRAY(a, Comp *, m->n_comps);
    *n = 0;
    for (Comp *c = m->first; c != NULL; c = c->next)
        order[(*n)++] = c;
    return order;
}

int32_t print_computations(Buf *b, const Module *m, const PrintOptions *o, bool (*wanted)(const Comp *c, const void *cookie),
                           const void *cookie)
{
    Printer p;
    int32_t n, printed = 0;
    printer_init(&p, b, o);
    note_callers(&p, m);
    p.types = ARENA_ARRAY(p.arena, TypeText, TYPE_TEXTS);
    Comp **order = o->sorted_computations ? stored_order(p.arena, m, &n) : module_comp_order(p.arena, m, &n);
    for (int32_t k = 0; k < n; k++) {
        if (o->async_sugar && map_has(&p.async_bodies, order[k]) && single_inst(&p, order[k]) != NULL)
            continue;
        if (wanted && !wanted(order[k], cookie))
            continue;
        print_computation(&p, order[k], map_has(&p.fusion_bodies, order[k]));
        buf_puts(b, "\n\n");
        printed++;
    }
    printer_free(&p);
    return printed;
}

void print_module(Buf *b, const Module *m, const PrintOptions *o)
{
    print_levels(b, o->indent);
    print_header(b, m, o);
    if (o->metadata && m->stack.n_frames > 0)
        print_stack_tables(b, &m->stack);
    buf_puts(b, "\n\n");
    print_computations(b, m, o, NULL, NULL);
}

void print_inst(Buf *b, const Inst *i, const PrintOptions *o)
{
    Printer p;
    printer_init(&p, b, o);
    print_instruction(&p, i);
    printer_free(&p);
}
