/* From a message to a module, by way of text.
 *
 *   HloModuleProto    computations apart             put into an order in which callees come first
 *   HloComputationProto   instructions apart         likewise, operands first: XLA's own order is that of the ids
 *   HloInstructionProto   literal apart              one line of text; the literal waits for the instruction that the line becomes
 *
 * Whatever is named by its id must stand before, as XLA wants it. Of an instruction's id the lower 32 bits count, the upper ones repeat the computation.
 * A message is unpacked for one instruction at a time, so that a module takes little more than its text. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/canon.h"
#include "proto/proto_int.h"
#include "text/parse.h"
#include "text/print_rare.h"
#include "text/print_value.h"

/* Steps of a walk that puts things behind what they need. */
typedef enum { NEW, OPEN, DONE } State;

/* What is known of an instruction before it is unpacked. */
typedef struct InstHead {
    int64_t     id;      /* within the computation */
    int32_t     place;   /* in the message, counted over the module */
    const char *name; /* in the text */
    Bytes       message;
    WireNumbers operands, control, callees;
    State       state;
} InstHead;

typedef struct CompHead {
    int64_t     id, root;
    int32_t     place; /* in the message */
    const char *name;
    InstHead   *insts; /* by id */
    int32_t     n;
    const Pb__HloScheduleProto__InstructionSequence *schedule; /* NULL: none */
    const Pb__HloComputationProto *rest; /* without instructions */
    State       state;
    bool        fused; /* some fusion calls it */
} CompHead;

/* What text has no room for, in the order of the text. */
typedef struct InstExtra {
    const char    *name;
    const Literal *literal; /* of an array constant; NULL: none, or none such */
} InstExtra;

typedef struct ModuleDecoder {
    Decoder     x;
    Bytes       file;    /* that the message came in, or the message */
    Buf         subject; /* what a message is about, see about_inst */
    Diag       *d;
    Arena      *a;
    Map         inst_names, comp_names;
    int32_t     n_insts;
    CompHead   *comps; /* by id */
    int32_t     n;
    VEC(InstExtra) insts;
    VEC(const char *) comp_order; /* names */
    WireUnknown unknown;
    const Pb__HloModuleProto *rest; /* without computations */
} ModuleDecoder;

static bool fail(ModuleDecoder *m, const char *what, const char *why)
{
    diag_error(m->d, LOC_NONE, "%s: %s", what, why);
    return false;
}

/* "instruction %x of %main (byte 1234)": the byte where its message begins in the file. Until the next call. */
static const char *about_inst(ModuleDecoder *m, const CompHead *c, const InstHead *h)
{
    uintptr_t at = (uintptr_t)h->message.p - (uintptr_t)m->file.p;
    buf_clear(&m->subject);
    buf_printf(&m->subject, "instruction %%%s of %%%s", h->name, c->name);
    if (at < m->file.n)
        buf_printf(&m->subject, " (byte %zu)", (size_t)at);
    buf_putc(&m->subject, 0);
    return m->subject.p;
}

static const char *about_comp(ModuleDecoder *m, const CompHead *c)
{
    buf_clear(&m->subject);
    buf_printf(&m->subject, "computation %%%s", c->name);
    buf_putc(&m->subject, 0);
    return m->subject.p;
}

static void free_message(void *p)
{
    protobuf_c_message_free_unpacked(p, NULL);
}

/* The fields of message but for those numbered cut, unpacked for as long as m lives; the others are appended to v. */
static void *unpack_rest(ModuleDecoder *m, const ProtobufCMessageDescriptor *desc, Bytes message, uint32_t cut, BytesVec *v, const char *what)
{
    Buf               rest = {0};
    ProtobufCMessage *p = NULL;
    if (!wire_split(m->a, message, cut, &rest, v))
        fail(m, what, "it is cut off or damaged");
    else if (wire_fits(desc, (Bytes){(uint8_t *)rest.p, rest.n}, what, m->d) &&
             !(p = protobuf_c_message_unpack(desc, NULL, rest.n, (uint8_t *)rest.p)))
        fail(m, what, "it is damaged");
    buf_free(&rest);
    if (p)
        arena_defer(m->a, free_message, p);
    return p;
}

/* ---- heads ---- */

/* A name that text can have, taken from then on. NULL when it was taken before. */
static const char *text_name(ModuleDecoder *m, Map *taken, Bytes name)
{
    const char *better, *s = name.n ? intern(m->x.strings, (const char *)name.p, name.n) : intern_str(m->x.strings, "_");
    if (!name_is_sanitary(m->x.strings, s, &better))
        s = better;
    if (map_has(taken, s))
        return NULL;
    map_put(taken, s, (void *)(uintptr_t)s);
    return s;
}

static int64_t local_id(int64_t id)
{
    return id & UINT32_MAX;
}

static bool inst_head(ModuleDecoder *m, const CompHead *c, Bytes message, InstHead *h)
{
    enum { NAME = 1, ID = 35, OPERANDS = 36, CONTROL = 37, CALLEES = 38 };
    Bytes     name = {0}, r = message;
    WireField f;
    *h = (InstHead){.message = message, .place = m->n_insts++, .name = "?"};
    while (wire_next(&r, &f)) {
        switch (f.number) {
        case NAME: name = f.bytes; break;
        case ID: h->id = (int64_t)f.value; break;
        case OPERANDS: wire_take_numbers(m->a, &f, &h->operands); break;
        case CONTROL: wire_take_numbers(m->a, &f, &h->control); break;
        case CALLEES: wire_take_numbers(m->a, &f, &h->callees); break;
        default: break;
        }
    }
    if (h->id < 0 || local_id(h->id) > INT32_MAX)
        return fail(m, about_inst(m, c, h), "its id is negative or too large");
    h->id = local_id(h->id);
    h->name = name.n ? text_name(m, &m->inst_names, name) : NULL;
    if (!h->name) {
        h->name = arena_strndup(m->a, name.n ? (const char *)name.p : "?", name.n ? name.n : 1);
        return fail(m, about_inst(m, c, h), name.n ? "another instruction has its name" : "it has no name");
    }
    return true;
}

static int by_inst_id(const void *x, const void *y)
{
    int64_t a = ((const InstHead *)x)->id, b = ((const InstHead *)y)->id;
    return (a > b) - (a < b);
}

static int by_comp_id(const void *x, const void *y)
{
    int64_t a = ((const CompHead *)x)->id, b = ((const CompHead *)y)->id;
    return (a > b) - (a < b);
}

static InstHead *find_inst(const CompHead *c, int64_t id)
{
    return bsearch(&(InstHead){.id = local_id(id)}, c->insts, (size_t)c->n, sizeof *c->insts, by_inst_id);
}

static CompHead *find_comp(const ModuleDecoder *m, int64_t id)
{
    return bsearch(&(CompHead){.id = id}, m->comps, (size_t)m->n, sizeof *m->comps, by_comp_id);
}

/* Instructions of c that stand before user. */
static bool all_before(const CompHead *c, const WireNumbers *ids, const InstHead *user)
{
    for (int32_t k = 0; k < ids->n; k++) {
        const InstHead *i = find_inst(c, ids->v[k]);
        if (!i || i->place >= user->place)
            return false;
    }
    return true;
}

static bool all_callees_before(const ModuleDecoder *m, const CompHead *c, const WireNumbers *ids)
{
    for (int32_t k = 0; k < ids->n; k++) {
        const CompHead *callee = find_comp(m, ids->v[k]);
        if (!callee || callee->place >= c->place)
            return false;
    }
    return true;
}

static bool references_exist(ModuleDecoder *m, const CompHead *c)
{
    for (int32_t k = 0; k < c->n; k++) {
        const InstHead *i = &c->insts[k];
        if (k && i->id == c->insts[k - 1].id)
            return fail(m, about_inst(m, c, i), "another instruction of the computation has its id");
        if (!all_before(c, &i->operands, i))
            return fail(m, about_inst(m, c, i), "an operand is no instruction of the computation that stands before it");
        if (!all_before(c, &i->control, i))
            return fail(m, about_inst(m, c, i), "a control predecessor is no instruction of the computation that stands before it");
        if (!all_callees_before(m, c, &i->callees))
            return fail(m, about_inst(m, c, i), "it calls what is no computation of the module that stands before its own");
    }
    return find_inst(c, c->root) || fail(m, about_comp(m, c), "its root is none of its instructions");
}

static bool comp_head(ModuleDecoder *m, Bytes message, int32_t place, CompHead *c)
{
    BytesVec insts = {0};
    *c = (CompHead){.rest = unpack_rest(m, &pb__hlo_computation_proto__descriptor, message, FIELD_COMPUTATION_INSTRUCTIONS, &insts,
                                        arena_printf(m->a, "computation %d", place)),
                    .place = place};
    if (!c->rest)
        return false;
    c->id = c->rest->id;
    c->root = local_id(c->rest->root_id);
    c->name = text_name(m, &m->comp_names, (Bytes){(const uint8_t *)c->rest->name, strlen(c->rest->name)});
    if (!c->name) {
        c->name = c->rest->name;
        return fail(m, about_comp(m, c), "another computation has its name");
    }
    c->insts = ARENA_ARRAY(m->a, InstHead, insts.n);
    c->n = insts.n;
    for (int32_t k = 0; k < insts.n; k++)
        if (!inst_head(m, c, insts.v[k], &c->insts[k]))
            return false;
    if (c->n == 0)
        return fail(m, about_comp(m, c), "a computation has at least one instruction");
    qsort(c->insts, (size_t)c->n, sizeof *c->insts, by_inst_id);
    return true;
}

static bool module_heads(ModuleDecoder *m, const BytesVec *comps)
{
    m->n = comps->n;
    m->comps = ARENA_ARRAY(m->a, CompHead, comps->n);
    for (int32_t k = 0; k < m->n; k++)
        if (!comp_head(m, comps->v[k], k, &m->comps[k]))
            return false;
    if (m->n == 0)
        return fail(m, "the module", "it has no computations");
    qsort(m->comps, (size_t)m->n, sizeof *m->comps, by_comp_id);
    for (int32_t k = 0; k < m->n; k++) {
        if (k && m->comps[k].id == m->comps[k - 1].id)
            return fail(m, about_comp(m, &m->comps[k]), "another computation has its id");
        if (!references_exist(m, &m->comps[k]))
            return false;
    }
    return true;
}

/* ---- orders: whoever has the smaller id comes first unless something with a larger one is needed before ---- */

typedef VEC(InstHead *) InstStack;
typedef VEC(CompHead *) CompStack;

static void push_needed(ModuleDecoder *m, const CompHead *c, const WireNumbers *ids, InstStack *stack)
{
    for (int32_t k = ids->n; k-- > 0;) {
        InstHead *i = find_inst(c, ids->v[k]);
        if (i->state == NEW)
            vec_push(m->a, stack, i);
    }
}

static void order_by_need(ModuleDecoder *m, CompHead *c, InstStack *order)
{
    InstStack stack = {0};
    for (int32_t k = 0; k < c->n; k++) {
        if (c->insts[k].state == NEW)
            vec_push(m->a, &stack, &c->insts[k]);
        while (stack.n) {
            InstHead *i = stack.v[stack.n - 1];
            if (i->state == NEW) {
                i->state = OPEN;
                push_needed(m, c, &i->operands, &stack);
                push_needed(m, c, &i->control, &stack);
                continue;
            }
            stack.n--;
            if (i->state == OPEN)
                vec_push(m->a, order, i);
            i->state = DONE;
        }
    }
}

static bool order_by_schedule(ModuleDecoder *m, CompHead *c, InstStack *order)
{
    if (c->schedule->n_instruction_ids != (size_t)c->n)
        return fail(m, about_comp(m, c), "its schedule does not name each instruction once");
    for (int32_t k = 0; k < c->n; k++) {
        InstHead *i = find_inst(c, c->schedule->instruction_ids[k]);
        if (!i || i->state == DONE)
            return fail(m, about_comp(m, c), "its schedule does not name each instruction once");
        i->state = DONE;
        vec_push(m->a, order, i);
    }
    return true;
}

static void push_callees(ModuleDecoder *m, const CompHead *c, CompStack *stack)
{
    for (int32_t k = 0; k < c->n; k++)
        for (int32_t j = 0; j < c->insts[k].callees.n; j++) {
            CompHead *callee = find_comp(m, c->insts[k].callees.v[j]);
            if (callee->state == NEW)
                vec_push(m->a, stack, callee);
        }
}

static void order_comps(ModuleDecoder *m, CompStack *order)
{
    CompStack stack = {0};
    for (int32_t k = 0; k < m->n; k++) {
        vec_push(m->a, &stack, &m->comps[k]);
        while (stack.n) {
            CompHead *c = stack.v[stack.n - 1];
            if (c->state == NEW) {
                c->state = OPEN;
                push_callees(m, c, &stack);
                continue;
            }
            stack.n--;
            if (c->state == OPEN)
                vec_push(m->a, order, c);
            c->state = DONE;
        }
    }
}

/* ---- instructions ---- */

static Op op_find(const char *name)
{
    Op op = 0;
    while (op < OP_COUNT && strcmp(op_name(op), name) != 0)
        op++;
    return op;
}

/* The literal of an instruction is not unpacked with it. *literal: one reference, or NULL when it has none. */
static Pb__HloInstructionProto *inst_unpack(ModuleDecoder *m, Arena *a, const InstHead *h, Literal **literal, const Shape **shape)
{
    Buf                      rest = {0};
    BytesVec                 literals = {0};
    Pb__HloInstructionProto *p = NULL;
    Bytes                    l = wire_field(a, h->message, FIELD_INSTRUCTION_LITERAL);
    wire_split(a, h->message, FIELD_INSTRUCTION_LITERAL, &rest, &literals);
    if (wire_fits(&pb__hlo_instruction_proto__descriptor, (Bytes){(uint8_t *)rest.p, rest.n}, m->x.what, m->d) &&
        !(p = pb__hlo_instruction_proto__unpack(NULL, rest.n, (uint8_t *)rest.p)))
        fail(m, m->x.what, "it is damaged");
    buf_free(&rest);
    *literal = NULL;
    if (p && literals.n && !(*literal = literal_decode(a, l, shape, m->x.what, m->d))) {
        free_message(p);
        p = NULL;
    }
    return p;
}

static void put_operands(ModuleDecoder *m, const CompHead *c, const InstHead *h)
{
    for (int32_t k = 0; k < h->operands.n; k++)
        buf_printf(m->x.b, "%s%%%s", k ? ", " : "", find_inst(c, h->operands.v[k])->name);
}

static void put_control(ModuleDecoder *m, const CompHead *c, const InstHead *h)
{
    for (int32_t k = 0; k < h->control.n; k++)
        buf_printf(m->x.b, "%s%%%s", k ? ", " : ", control-predecessors={", find_inst(c, h->control.v[k])->name);
    buf_puts(m->x.b, h->control.n ? "}" : "");
}

/* The values of arrays do not go through the parser: the text says {...} and they are put in when it is read. So it does when there is no literal. */
static bool put_constant(ModuleDecoder *m, const Pb__HloInstructionProto *p, const Literal *l, const Shape *literal_shape)
{
    const Shape *s = p->shape ? shape_decode(m->a, p->shape, m->x.what, m->d) : NULL;
    if (!s)
        return p->shape ? false : fail(m, m->x.what, "its shape is missing");
    if (!l) {
        buf_puts(m->x.b, "{...}");
        return true;
    }
    if (!literal_matches(l, s) || !shape_same_order(literal_shape, s) || !shape_has_layouts(p->shape))
        return fail(m, m->x.what, "its literal has another shape than the constant");
    if (!shape_is_array(s) || s->rank == 0) {
        literal_print(m->x.b, l, true);
        return true;
    }
    buf_puts(m->x.b, "{...}");
    m->insts.v[m->insts.n - 1].literal = literal_keep(m->a, literal_ref(l));
    return true;
}

/* Which of its two forms a conditional has depends on the type of its first operand. */
static bool on_pred(Arena *a, const CompHead *c, const InstHead *h)
{
    enum { SHAPE = 3, ELEMENT_TYPE = 2 };
    WireField f;
    Bytes     shape = h->operands.n ? wire_field(a, find_inst(c, h->operands.v[0])->message, SHAPE) : (Bytes){0};
    uint64_t  type = 0;
    while (wire_next(&shape, &f))
        if (f.number == ELEMENT_TYPE)
            type = f.value;
    return type == PB__PRIMITIVE_TYPE__PRED;
}

static bool put_inst(ModuleDecoder *m, const CompHead *c, const InstHead *h, const Pb__HloInstructionProto *p, const Literal *literal,
                     const Shape *literal_shape)
{
    Buf *b = m->x.b;
    Op   op = op_find(p->opcode);
    m->x.on_pred = on_pred(m->a, c, h);
    if (op == OP_COUNT) {
        diag_error(m->d, LOC_NONE, "%s: there is no opcode '%s'", m->x.what, p->opcode);
        return false;
    }
    const char **callees = ARENA_ARRAY(m->a, const char *, h->callees.n + 1);
    for (int32_t k = 0; k < h->callees.n; k++) {
        CompHead *callee = find_comp(m, h->callees.v[k]);
        callee->fused |= op == OP_FUSION;
        callees[k] = callee->name;
    }
    if (op == OP_RAGGED_ALL_TO_ALL && h->operands.n != 6) { /* not asked of text */
        diag_error(m->d, LOC_NONE, "%s: ragged-all-to-all takes 6 operands, found %d", m->x.what, h->operands.n);
        return false;
    }
    buf_printf(b, "  %s%%%s = ", h->id == c->root ? "ROOT " : "", h->name);
    if (!decode_shape(&m->x, p->shape))
        return false;
    buf_printf(b, " %s(", p->opcode);
    if (op == OP_PARAMETER)
        buf_printf(b, "%lld", (long long)p->parameter_number);
    else if (op == OP_CONSTANT && !put_constant(m, p, literal, literal_shape))
        return false;
    else
        put_operands(m, c, h);
    buf_putc(b, ')');
    put_control(m, c, h);
    bool ok = decode_attrs(&m->x, op, p, callees, op == OP_CONSTANT ? NULL : literal);
    buf_putc(b, '\n');
    return ok;
}

static bool decode_inst(ModuleDecoder *m, const CompHead *c, const InstHead *h)
{
    Literal                 *literal;
    const Shape             *shape;
    m->x.what = about_inst(m, c, h);
    vec_push(m->a, &m->insts, ((InstExtra){.name = h->name}));
    Pb__HloInstructionProto *p = inst_unpack(m, m->a, h, &literal, &shape);
    bool                     ok = p && put_inst(m, c, h, p, literal, shape);
    literal_unref(literal);
    if (p)
        free_message(p);
    return ok;
}

/* ---- computations ---- */

static bool decode_comp(ModuleDecoder *m, CompHead *c)
{
    InstStack order = {0};
    Buf      *b = m->x.b;
    if (!c->schedule)
        order_by_need(m, c, &order);
    else if (!order_by_schedule(m, c, &order))
        return false;
    vec_push(m->a, &m->comp_order, c->name);
    buf_printf(b, "%s%%%s {\n", c->id == m->rest->entry_computation_id ? "ENTRY " : "", c->name);
    for (int32_t k = 0; k < order.n; k++)
        if (!decode_inst(m, c, order.v[k]))
            return false;
    buf_putc(b, '}');
    if (*c->rest->execution_thread) {
        buf_puts(b, ", execution_thread=");
        decode_string(&m->x, c->rest->execution_thread);
    }
    if (c->rest->backend_config.len) {
        buf_puts(b, ", backend_config=");
        decode_bytes(&m->x, c->rest->backend_config);
    }
    buf_puts(b, "\n\n");
    return true;
}

/* A sequence for a computation that the module does not have is nothing to it. */
static void take_schedule(ModuleDecoder *m)
{
    const Pb__HloScheduleProto *s = m->rest->schedule;
    for (size_t k = 0; s && k < s->n_sequences; k++) {
        CompHead *c = find_comp(m, s->sequences[k]->key);
        if (c)
            c->schedule = s->sequences[k]->value;
    }
}

/* A schedule that says something has a sequence for every computation but those of fusions. */
static bool check_schedule(ModuleDecoder *m)
{
    const Pb__HloScheduleProto *s = m->rest->schedule;
    for (int32_t k = 0; s && s->n_sequences && k < m->n; k++)
        if (!m->comps[k].schedule && !m->comps[k].fused)
            return fail(m, about_comp(m, &m->comps[k]), "the schedule has no sequence for it");
    return true;
}

/* ---- the header ---- */

static void put_index(ModuleDecoder *m, size_t n, const int64_t *v)
{
    decode_list(&m->x, n, v);
}

static void put_aliases(ModuleDecoder *m)
{
    const Pb__HloInputOutputAliasProto *p = m->rest->input_output_alias;
    const Pb__HloBufferDonorProto      *q = m->rest->buffer_donor;
    Buf                                *b = m->x.b;
    for (size_t k = 0; p && k < p->n_entries; k++) {
        buf_puts(b, k ? ", " : ", input_output_alias={ ");
        put_index(m, p->entries[k]->n_output_shape_index, p->entries[k]->output_shape_index);
        buf_printf(b, ": (%lld, ", (long long)p->entries[k]->parameter_number);
        put_index(m, p->entries[k]->n_parameter_shape_index, p->entries[k]->parameter_shape_index);
        buf_puts(b, p->entries[k]->kind == PB__KIND__MAY_ALIAS ? ", may-alias)" : ", must-alias)");
    }
    buf_puts(b, p && p->n_entries ? " }" : "");
    for (size_t k = 0; q && k < q->n_entries; k++) {
        buf_printf(b, "%s(%lld, ", k ? ", " : ", buffer_donor={ ", (long long)q->entries[k]->parameter_number);
        put_index(m, q->entries[k]->n_parameter_shape_index, q->entries[k]->parameter_shape_index);
        buf_putc(b, ')');
    }
    buf_puts(b, q && q->n_entries ? " }" : "");
}

static bool put_layout(ModuleDecoder *m)
{
    const Pb__ProgramShapeProto *p = m->rest->host_program_shape;
    m->x.what = "the module's signature";
    if (!p)
        return fail(m, m->x.what, "it is missing");
    if (p->n_parameters != p->n_parameter_names)
        return fail(m, m->x.what, "it has another number of parameters than names of parameters");
    if (!p->result)
        return true;
    buf_puts(m->x.b, ", entry_computation_layout={(");
    for (size_t k = 0; k < p->n_parameters; k++) {
        buf_puts(m->x.b, k ? ", " : "");
        if (!decode_shape(&m->x, p->parameters[k]))
            return false;
    }
    buf_puts(m->x.b, ")->");
    if (!decode_shape(&m->x, p->result))
        return false;
    buf_putc(m->x.b, '}');
    return true;
}

static void put_bools(Buf *b, const char *name, size_t n, const protobuf_c_boolean *v)
{
    for (size_t k = 0; k < n; k++)
        buf_printf(b, "%s%s%s", k ? "," : name, k ? "" : "={", v[k] ? "true" : "false");
    buf_puts(b, n ? "}" : "");
}

/* What XLA keeps outside of the module. */
static void put_extra(ModuleDecoder *m)
{
    const Pb__HloModuleExtra *e = m->rest->extra;
    Buf                      *b = m->x.b;
    if (!e)
        return;
    buf_puts(b, e->alias_passthrough_params ? ", alias_passthrough_params=true" : "");
    put_bools(b, ", allow_spmd_sharding_propagation_to_parameters", e->n_propagate_to_parameters, e->propagate_to_parameters);
    put_bools(b, ", allow_spmd_sharding_propagation_to_output", e->n_propagate_to_output, e->propagate_to_output);
    if (e->has_replica_count_case)
        buf_printf(b, ", replica_count=%lld", (long long)e->replica_count);
    if (e->has_num_partitions_case)
        buf_printf(b, ", num_partitions=%lld", (long long)e->num_partitions);
}

static void put_debug_attr(Buf *b, const Pb__DebugAttributesProto *p)
{
    const char *more = "{";
    if (p->log_mode != PB__DEBUG_ATTRIBUTES_PROTO__DEBUG_LOG_MODE_PROTO__NONE) {
        buf_printf(b, "%slog_mode=%s", more, p->log_mode == PB__DEBUG_ATTRIBUTES_PROTO__DEBUG_LOG_MODE_PROTO__DEFAULT ? "default" : "fusion_debugger");
        more = ",";
    }
    if (p->callback_id) {
        buf_printf(b, "%scallback_id=%lld", more, (long long)p->callback_id);
        more = ",";
    }
    if (p->partitioned) {
        buf_printf(b, "%spartitioned=true", more);
        more = ",";
    }
    if (p->op_id) {
        buf_printf(b, "%sop_id=%lld", more, (long long)p->op_id);
        more = ",";
    }
    buf_puts(b, *more == '{' ? "{}" : "}");
}

static bool put_debug(ModuleDecoder *m)
{
    Buf *b = m->x.b;
    for (size_t k = 0; k < m->rest->n_debug_attributes; k++) {
        const Pb__DebugAttributeTableEntryProto *e = m->rest->debug_attributes[k];
        buf_puts(b, k ? ",\n  " : ",\ndebug_attributes={\n  ");
        if (!decode_origin_array(&m->x, e->original_array))
            return false;
        for (size_t j = 0; j < e->n_debug_attributes; j++) {
            buf_puts(b, j ? "," : ":(");
            put_debug_attr(b, e->debug_attributes[j]);
        }
        buf_puts(b, e->n_debug_attributes ? ")" : ":()");
    }
    buf_puts(b, m->rest->n_debug_attributes ? "\n}" : "");
    return true;
}

/* How to compute what was lost is a module of its own, as a string. */
static bool put_recovery_module(ModuleDecoder *m, const Pb__HloModuleProto *p)
{
    PrintOptions form = print_options_default();
    Buf          bytes = {0}, text = {0};
    Diag         d;
    diag_init(&d, m->a);
    wire_put_message(&bytes, 0, &p->base);
    Module *inner = proto_read(bytes.p, bytes.n, NULL, &d);
    buf_free(&bytes);
    if (!inner) {
        diag_error(m->d, LOC_NONE, "a module of original_value_recovery_table: %s", d.first ? d.first->text : "it is damaged");
        return false;
    }
    print_module(&text, inner, &form);
    module_free(inner);
    buf_puts(m->x.b, ",\n  ");
    print_quoted(m->x.b, intern(m->x.strings, text.p, text.n));
    buf_free(&text);
    return true;
}

static bool put_recovery(ModuleDecoder *m)
{
    const Pb__OriginalValueRecoveryTableProto *t = m->rest->original_value_recovery_table;
    Buf                                       *b = m->x.b;
    if (!t || t->n_entries == 0)
        return true;
    buf_puts(b, ", origin_recovery_table={\n");
    for (size_t k = 0; k < t->n_entries; k++) {
        buf_puts(b, "  ");
        if (!decode_origin_array(&m->x, t->entries[k]->old_original_array))
            return false;
        buf_puts(b, " : ");
        if (!decode_origin_array(&m->x, t->entries[k]->new_original_array) ||
            (t->entries[k]->recovery_module && !put_recovery_module(m, t->entries[k]->recovery_module)))
            return false;
        buf_putc(b, '\n');
    }
    buf_puts(b, "}\n");
    return true;
}

/* Text may call a module what it may not call an instruction, f32 for example; whoever made the message of it kept that name. */
static const char *module_name(ModuleDecoder *m)
{
    const char *better, *name = m->rest->extra && *m->rest->extra->name ? m->rest->extra->name : NULL, *p = name ? name : "";
    while (isalnum((unsigned char)*p) || *p == '_' || *p == '.' || *p == '-')
        p++;
    if (name && !*p && (isalpha((unsigned char)*name) || *name == '_'))
        return name;
    name = intern_str(m->x.strings, *m->rest->name ? m->rest->name : "_");
    return name_is_sanitary(m->x.strings, name, &better) ? name : better;
}

static bool put_header(ModuleDecoder *m)
{
    Buf        *b = m->x.b;
    buf_printf(b, "HloModule %%%s%s", module_name(m), m->rest->schedule ? ", is_scheduled=true" : "");
    put_aliases(m);
    if (!put_layout(m))
        return false;
    put_extra(m);
    decode_frontend(&m->x, m->rest->frontend_attributes);
    if (m->rest->backend_config.len) {
        buf_puts(b, ", backend_config=");
        decode_bytes(&m->x, m->rest->backend_config);
    }
    m->x.what = "the module";
    return put_recovery(m) && put_debug(m);
}

static void put_strings(ModuleDecoder *m, const char *title, size_t n, char *const *v)
{
    buf_printf(m->x.b, "\n%s\n", title);
    for (size_t k = 0; k < n; k++) {
        buf_printf(m->x.b, "%zu ", k + 1);
        decode_string(&m->x, v[k]);
        buf_putc(m->x.b, '\n');
    }
}

/* In text the parent of a frame is one more than its number. */
static void put_stack(ModuleDecoder *m)
{
    const Pb__StackFrameIndexProto *t = m->rest->stack_frame_index;
    Buf                            *b = m->x.b;
    buf_putc(b, '\n');
    if (!t || t->n_stack_frames == 0)
        return;
    put_strings(m, "FileNames", t->n_file_names, t->file_names);
    put_strings(m, "FunctionNames", t->n_function_names, t->function_names);
    buf_puts(b, "\nFileLocations\n");
    for (size_t k = 0; k < t->n_file_locations; k++) {
        const Pb__StackFrameIndexProto__FileLocation *l = t->file_locations[k];
        buf_printf(b, "%zu {file_name_id=%d function_name_id=%d line=%d end_line=%d column=%d end_column=%d}\n", k + 1, l->file_name_id,
                   l->function_name_id, l->line, l->end_line, l->column, l->end_column);
    }
    buf_puts(b, "\nStackFrames\n");
    for (size_t k = 0; k < t->n_stack_frames; k++)
        buf_printf(b, "%zu {file_location_id=%d parent_frame_id=%lld}\n", k + 1, t->stack_frames[k]->file_location_id,
                   (long long)t->stack_frames[k]->parent_frame_id + 1);
    buf_putc(b, '\n');
}

/* ---- modules ---- */

void decode_lost(Decoder *x, const char *field)
{
    if (x->n_lost++ == 0)
        x->lost = field;
}

static void note_lost(ModuleDecoder *m)
{
    const Pb__HloModuleProto *p = m->rest;
    if (p->n_cross_program_prefetches)
        decode_lost(&m->x, "cross_program_prefetches");
    if (p->n_profile_info)
        decode_lost(&m->x, "profile_info");
    if (p->device_assignment)
        decode_lost(&m->x, "device_assignment");
    if (p->spmd_output_sharding || p->n_spmd_parameters_shardings)
        decode_lost(&m->x, "spmd_*_sharding");
    if (m->x.n_lost)
        diag_warning(m->d, LOC_NONE, "text has no place for the field %s%s", m->x.lost, m->x.n_lost > 1 ? " (and others)" : "");
    if (m->unknown.count)
        diag_warning(m->d, LOC_NONE, "field %u of %s is not known and is left out%s", m->unknown.first, m->unknown.message,
                     m->unknown.count > 1 ? " (and others)" : "");
}

static bool decode_module(ModuleDecoder *m, Bytes message)
{
    BytesVec  comps = {0};
    CompStack order = {0};
    m->rest = unpack_rest(m, &pb__hlo_module_proto__descriptor, message, FIELD_MODULE_COMPUTATIONS, &comps, "the module");
    if (!m->rest || !module_heads(m, &comps))
        return false;
    take_schedule(m);
    order_comps(m, &order);
    if (!find_comp(m, m->rest->entry_computation_id))
        return fail(m, "the module", "its entry is none of its computations");
    m->x.n_payloads = m->rest->n_payloads;
    m->x.payloads = m->rest->payloads;
    if (!put_header(m))
        return false;
    put_stack(m);
    buf_putc(m->x.b, '\n');
    for (int32_t k = 0; k < order.n; k++)
        if (!decode_comp(m, order.v[k]))
            return false;
    note_lost(m);
    return check_schedule(m);
}

/* The values of constants, and the names as they were: the parser drops leading zeros of numbers in them. */
static void attach_extras(const ModuleDecoder *m, Module *to)
{
    int32_t n_comps = 0, n = 0;
    for (Comp *c = to->first; c; c = c->next) {
        c->name = intern_str(to->strings, m->comp_order.v[n_comps++]);
        for (Inst *i = c->first; i; i = i->next) {
            const InstExtra *x = &m->insts.v[n++];
            i->name = intern_str(to->strings, x->name);
            if (x->literal)
                i->literal = literal_keep(to->arena, literal_ref(x->literal));
        }
    }
    if (n_comps != m->comp_order.n || n != m->insts.n)
        die("the text of a message has other instructions than the message");
}

Module *module_decode(Bytes message, Bytes file, Diag *d)
{
    Buf           text = {0};
    Arena        *a = arena_new();
    Module       *result = NULL;
    ModuleDecoder m = {.d = d, .a = a, .file = file, .inst_names = map_new(a), .comp_names = map_new(a)};
    m.x = (Decoder){.b = &text, .arena = a, .strings = interner_new(a), .d = d, .what = "the module"};
    if (wire_tidy(a, &pb__hlo_module_proto__descriptor, &message, file, "the module", &m.unknown, d) && decode_module(&m, message)) {
        diag_source(d, d->file ? arena_printf(d->arena, "%s(text)", d->file) : NULL, arena_copy(d->arena, text.p, text.n), text.n);
        result = parse_module(d->text, text.n, d);
    }
    if (result)
        attach_extras(&m, result);
    buf_free(&text);
    buf_free(&m.subject);
    arena_free(a);
    return result;
}
