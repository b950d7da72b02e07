/* From a module to a message. Instructions are packed one at a time. Fields stand in the order of their numbers, as in what XLA writes: what comes
 * before the computations (or instructions, or the literal) of a message is packed, then those, then what comes after.
 *
 * Ids as XLA makes them: a computation's is its number in the module, an instruction's is that times 2^32 plus its own number, both in stored order.
 * Computations stand in that order, too (in a module that was read, callees come first), instructions in the order in which they are printed;
 * whoever reads them goes by the ids. Payloads of metadata are numbers into a list of the module, in order of first use. */
#include "config.h"

#include "ir/canon.h"
#include "proto/proto_int.h"

/* The payloads so far. */
typedef struct Payloads {
    Arena *a;
    Map    ids; /* payload -> its place in values */
    VEC(const char *) values;
} Payloads;

static int64_t payload_id(Payloads *t, const char *payload)
{
    if (!map_has(&t->ids, payload)) {
        vec_push(t->a, &t->values, payload);
        map_put(&t->ids, payload, (void *)(intptr_t)(t->values.n - 1));
    }
    return (intptr_t)map_get(&t->ids, payload);
}

static int64_t inst_id(const Inst *i)
{
    return i->comp->mark << 32 | i->mark;
}

/* ---- instructions ---- */

static void set_ids(Arena *a, Pb__HloInstructionProto *p, const Inst *i)
{
    p->id = inst_id(i);
    p->n_operand_ids = (size_t)i->n_operands;
    p->operand_ids = ARENA_ARRAY(a, int64_t, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        p->operand_ids[k] = inst_id(inst_operand(i, k));
    p->n_control_predecessor_ids = (size_t)i->n_control;
    p->control_predecessor_ids = ARENA_ARRAY(a, int64_t, i->n_control);
    for (int32_t k = 0; k < i->n_control; k++)
        p->control_predecessor_ids[k] = inst_id(i->control_preds[k]);
    p->n_called_computation_ids = (size_t)i->n_callees;
    p->called_computation_ids = ARENA_ARRAY(a, int64_t, i->n_callees);
    for (int32_t k = 0; k < i->n_callees; k++)
        p->called_computation_ids[k] = i->callees[k]->mark;
}

static void set_payload(Payloads *t, Pb__Payload *p, const Inst *i)
{
    if (!p)
        return;
    p->payload_source_case = PB__PAYLOAD__PAYLOAD_SOURCE_ID;
    p->id = payload_id(t, i->meta->payload);
}

static bool encode_inst(Buf *b, Arena *a, const Inst *i, Payloads *t, Diag *d)
{
    Pb__HloInstructionProto head = PB__HLO_INSTRUCTION_PROTO__INIT, tail = PB__HLO_INSTRUCTION_PROTO__INIT;
    const Attr             *attr = inst_attr(i, ATTR_LITERAL);
    const Literal          *l = i->op == OP_CONSTANT ? i->literal : attr ? attr->value.literal->value : NULL;
    const Shape            *s = i->op == OP_CONSTANT ? i->shape : attr ? attr->value.literal->shape : NULL;
    if (l && literal_has_elided(l)) {
        inst_error(d, i, "the values of %%%s are left out of the text ({...})", i->name);
        diag_note(d, LOC_NONE, "--xla_dump_large_constants makes XLA write them");
        return false;
    }
    head.name = encode_string(a, i->name);
    head.opcode = arena_printf(a, "%s", op_name(i->op));
    head.shape = shape_encode(a, i->shape);
    head.metadata = encode_metadata(a, i->meta);
    set_payload(t, head.metadata->metadata_payload, i);
    wire_put_message(b, 0, &head.base);
    if (l)
        literal_encode(b, FIELD_INSTRUCTION_LITERAL, a, l, s);
    tail.parameter_number = i->op == OP_PARAMETER ? i->param : 0;
    encode_attrs(a, &tail, i);
    set_ids(a, &tail, i);
    wire_put_message(b, 0, &tail.base);
    return true;
}

/* ---- computations ---- */

static void put_signature(Arena *a, Pb__HloComputationProto *p, const Comp *c)
{
    const Shape **shapes = ARENA_ARRAY(a, const Shape *, c->n_params);
    const char  **names = ARENA_ARRAY(a, const char *, c->n_params);
    for (int32_t k = 0; k < c->n_params; k++) {
        shapes[k] = c->params[k]->shape;
        names[k] = c->params[k]->name;
    }
    p->program_shape = program_shape_encode(a, c->n_params, shapes, names, c->root->shape);
}

static bool encode_comp(Buf *b, const Comp *c, Payloads *t, Diag *d)
{
    Pb__HloComputationProto head = PB__HLO_COMPUTATION_PROTO__INIT, tail = PB__HLO_COMPUTATION_PROTO__INIT;
    Arena                  *a = arena_new();
    Inst                  **order = comp_post_order(a, c);
    Buf                     one = {0};
    bool                    ok = true;
    head.name = encode_string(a, c->name);
    wire_put_message(b, 0, &head.base);
    for (int32_t k = 0; ok && k < c->n_insts; k++) {
        Arena *inner = arena_new();
        buf_clear(&one);
        ok = encode_inst(&one, inner, order[k], t, d);
        wire_put_bytes(b, FIELD_COMPUTATION_INSTRUCTIONS, one.p, one.n);
        arena_free(inner);
    }
    put_signature(a, &tail, c);
    tail.id = c->mark;
    tail.root_id = inst_id(c->root);
    tail.is_fusion_computation = comp_is_fusion_body(c);
    if (c->execution_thread)
        tail.execution_thread = encode_string(a, c->execution_thread);
    tail.backend_config = encode_bytes(a, c->backend_config);
    wire_put_message(b, 0, &tail.base);
    buf_free(&one);
    arena_free(a);
    return ok;
}

/* ---- the module's own fields ---- */

static void put_layout(Arena *a, Pb__HloModuleProto *p, const Module *m)
{
    int32_t       n = m->entry_params->n;
    Interner     *strings = interner_new(a);
    const char  **names = ARENA_ARRAY(a, const char *, n);
    for (int32_t k = 0; k < n; k++)
        names[k] = intern_printf(strings, "p%d", k);
    p->host_program_shape = program_shape_encode(a, n, m->entry_params->v, names, m->entry_result);
}

static void put_schedule(Arena *a, Pb__HloModuleProto *p, const Module *m)
{
    if (!m->is_scheduled)
        return;
    Pb__HloScheduleProto *s = p->schedule = message_new(a, &pb__hlo_schedule_proto__descriptor);
    s->sequences = ARENA_ARRAY(a, Pb__HloScheduleProto__SequencesEntry *, m->n_comps);
    for (const Comp *c = m->first; c; c = c->next) {
        if (comp_is_fusion_body(c))
            continue;
        Pb__HloScheduleProto__InstructionSequence *q =
            message_new(a, &pb__hlo_schedule_proto__instruction_sequence__descriptor);
        q->instruction_ids = ARENA_ARRAY(a, int64_t, c->n_insts);
        for (const Inst *i = c->first; i; i = i->next)
            q->instruction_ids[q->n_instruction_ids++] = inst_id(i);
        Pb__HloScheduleProto__SequencesEntry *e =
            message_new(a, &pb__hlo_schedule_proto__sequences_entry__descriptor);
        e->key = c->mark;
        e->value = q;
        s->sequences[s->n_sequences++] = e;
    }
}

static void put_aliases(Arena *a, Pb__HloModuleProto *p, const Module *m)
{
    p->input_output_alias = message_new(a, &pb__hlo_input_output_alias_proto__descriptor);
    p->input_output_alias->n_entries = (size_t)m->n_aliases;
    p->input_output_alias->entries = ARENA_ARRAY(a, Pb__HloInputOutputAliasProto__AliasEntryProto *, m->n_aliases);
    for (int32_t k = 0; k < m->n_aliases; k++) {
        const InputAlias                                *x = &m->aliases[k];
        Pb__HloInputOutputAliasProto__AliasEntryProto *e =
            message_new(a, &pb__hlo_input_output_alias_proto__alias_entry_proto__descriptor);
        e->n_output_shape_index = (size_t)x->output.n;
        e->output_shape_index = encode_ints(a, x->output);
        e->parameter_number = x->param;
        e->n_parameter_shape_index = (size_t)x->index.n;
        e->parameter_shape_index = encode_ints(a, x->index);
        e->kind = x->kind == ALIAS_MUST ? PB__KIND__MUST_ALIAS : PB__KIND__MAY_ALIAS;
        p->input_output_alias->entries[k] = e;
    }
    p->buffer_donor = message_new(a, &pb__hlo_buffer_donor_proto__descriptor);
    p->buffer_donor->n_entries = (size_t)m->n_donors;
    p->buffer_donor->entries = ARENA_ARRAY(a, Pb__HloBufferDonorProto__BufferDonorEntryProto *, m->n_donors);
    for (int32_t k = 0; k < m->n_donors; k++) {
        Pb__HloBufferDonorProto__BufferDonorEntryProto *e =
            message_new(a, &pb__hlo_buffer_donor_proto__buffer_donor_entry_proto__descriptor);
        e->parameter_number = m->donors[k].param;
        e->n_parameter_shape_index = (size_t)m->donors[k].index.n;
        e->parameter_shape_index = encode_ints(a, m->donors[k].index);
        p->buffer_donor->entries[k] = e;
    }
}

static char **encode_strings(Arena *a, int32_t n, const char *const *v)
{
    char **r = ARENA_ARRAY(a, char *, n);
    for (int32_t k = 0; k < n; k++)
        r[k] = encode_string(a, v[k]);
    return r;
}

static void put_stack(Arena *a, Pb__HloModuleProto *p, const StackTables *t)
{
    if (t->n_frames == 0)
        return;
    Pb__StackFrameIndexProto *s = p->stack_frame_index = message_new(a, &pb__stack_frame_index_proto__descriptor);
    s->n_file_names = (size_t)t->n_files;
    s->file_names = encode_strings(a, t->n_files, t->files);
    s->n_function_names = (size_t)t->n_functions;
    s->function_names = encode_strings(a, t->n_functions, t->functions);
    s->n_file_locations = (size_t)t->n_locations;
    s->file_locations = ARENA_ARRAY(a, Pb__StackFrameIndexProto__FileLocation *, t->n_locations);
    for (int32_t k = 0; k < t->n_locations; k++) {
        const FileLocation                     *x = &t->locations[k];
        Pb__StackFrameIndexProto__FileLocation *l =
            message_new(a, &pb__stack_frame_index_proto__file_location__descriptor);
        l->file_name_id = x->file;
        l->function_name_id = x->function;
        l->line = x->line;
        l->end_line = x->end_line;
        l->column = x->column;
        l->end_column = x->end_column;
        s->file_locations[k] = l;
    }
    s->n_stack_frames = (size_t)t->n_frames;
    s->stack_frames = ARENA_ARRAY(a, Pb__StackFrameIndexProto__StackFrame *, t->n_frames);
    for (int32_t k = 0; k < t->n_frames; k++) {
        s->stack_frames[k] = message_new(a, &pb__stack_frame_index_proto__stack_frame__descriptor);
        s->stack_frames[k]->file_location_id = t->frames[k].location;
        s->stack_frames[k]->parent_frame_id = t->frames[k].parent;
    }
}

static protobuf_c_boolean *encode_bools(Arena *a, Ints x, size_t *n)
{
    protobuf_c_boolean *v = ARENA_ARRAY(a, protobuf_c_boolean, x.n);
    *n = (size_t)x.n;
    for (int32_t k = 0; k < x.n; k++)
        v[k] = x.v[k] != 0;
    return v;
}

/* Absent when the text says nothing of it. */
static void put_extra(Arena *a, Pb__HloModuleProto *p, const Module *m)
{
    const char *better;
    Pb__HloModuleExtra *e = message_new(a, &pb__hlo_module_extra__descriptor);
    e->alias_passthrough_params = m->alias_passthrough_params;
    e->propagate_to_parameters = encode_bools(a, m->spmd_to_parameters, &e->n_propagate_to_parameters);
    e->propagate_to_output = encode_bools(a, m->spmd_to_output, &e->n_propagate_to_output);
    if (m->replica_count != 1) {
        e->has_replica_count_case = PB__HLO_MODULE_EXTRA__HAS_REPLICA_COUNT_REPLICA_COUNT;
        e->replica_count = m->replica_count;
    }
    if (m->num_partitions != 1) {
        e->has_num_partitions_case = PB__HLO_MODULE_EXTRA__HAS_NUM_PARTITIONS_NUM_PARTITIONS;
        e->num_partitions = m->num_partitions;
    }
    if (!name_is_sanitary(m->strings, m->name, &better))
        e->name = encode_string(a, m->name);
    if (pb__hlo_module_extra__get_packed_size(e) > 0)
        p->extra = e;
}

static void free_message(void *p)
{
    protobuf_c_message_free_unpacked(p, NULL);
}

static bool put_recovery(Arena *a, Pb__HloModuleProto *p, const Module *m, Diag *d)
{
    const OriginTable *t = m->origin_recovery;
    if (!t || t->n == 0)
        return true;
    Pb__OriginalValueRecoveryTableProto *r = message_new(a, &pb__original_value_recovery_table_proto__descriptor);
    p->original_value_recovery_table = r;
    r->n_entries = (size_t)t->n;
    r->entries = ARENA_ARRAY(a, Pb__OriginalValueRecoveryTableProto__Entry *, t->n);
    for (int32_t k = 0; k < t->n; k++) {
        Pb__OriginalValueRecoveryTableProto__Entry *e = r->entries[k] =
            message_new(a, &pb__original_value_recovery_table_proto__entry__descriptor);
        e->old_original_array = encode_origin_array(a, &t->v[k].old);
        e->new_original_array = encode_origin_array(a, &t->v[k].replacement);
        if (!t->v[k].module)
            continue;
        Buf b = {0};
        if (!proto_write(&b, t->v[k].module, PROTO_MODULE, d)) {
            buf_free(&b);
            return false;
        }
        e->recovery_module = pb__hlo_module_proto__unpack(NULL, b.n, (uint8_t *)b.p);
        arena_defer(a, free_message, e->recovery_module);
        buf_free(&b);
    }
    return true;
}

static void put_payloads(Arena *a, Pb__HloModuleProto *p, const Payloads *t)
{
    p->n_payloads = (size_t)t->values.n;
    p->payloads = ARENA_ARRAY(a, ProtobufCBinaryData, t->values.n);
    for (int32_t k = 0; k < t->values.n; k++)
        p->payloads[k] = encode_bytes(a, t->values.v[k]);
}

static void put_debug(Arena *a, Pb__HloModuleProto *p, const DebugTable *t)
{
    if (!t)
        return;
    p->n_debug_attributes = (size_t)t->n;
    p->debug_attributes = ARENA_ARRAY(a, Pb__DebugAttributeTableEntryProto *, t->n);
    for (int32_t k = 0; k < t->n; k++) {
        Pb__DebugAttributeTableEntryProto *e = p->debug_attributes[k] =
            message_new(a, &pb__debug_attribute_table_entry_proto__descriptor);
        e->original_array = encode_origin_array(a, &t->v[k].array);
        e->n_debug_attributes = (size_t)t->v[k].n;
        e->debug_attributes = ARENA_ARRAY(a, Pb__DebugAttributesProto *, t->v[k].n);
        for (int32_t j = 0; j < t->v[k].n; j++) {
            const DebugAttr          *x = &t->v[k].v[j];
            Pb__DebugAttributesProto *q = e->debug_attributes[j] = message_new(a, &pb__debug_attributes_proto__descriptor);
            q->log_mode = x->log_mode == LOG_MODE_DEFAULT           ? PB__DEBUG_ATTRIBUTES_PROTO__DEBUG_LOG_MODE_PROTO__DEFAULT
                          : x->log_mode == LOG_MODE_FUSION_DEBUGGER ? PB__DEBUG_ATTRIBUTES_PROTO__DEBUG_LOG_MODE_PROTO__FUSION_DEBUGGER
                                                                    : PB__DEBUG_ATTRIBUTES_PROTO__DEBUG_LOG_MODE_PROTO__NONE;
            q->callback_id = x->callback_id;
            q->op_id = x->op_id;
            q->partitioned = x->partitioned;
        }
    }
}

/* ---- modules ---- */

static void number_everything(const Module *m)
{
    int64_t comp_id = 0;
    for (Comp *c = m->first; c; c = c->next) {
        int64_t id = 0;
        c->mark = comp_id++;
        for (Inst *i = c->first; i; i = i->next)
            i->mark = id++;
    }
}

static bool encode_module(Buf *b, const Module *m, Diag *d)
{
    Pb__HloModuleProto head = PB__HLO_MODULE_PROTO__INIT, tail = PB__HLO_MODULE_PROTO__INIT;
    Arena             *a = arena_new();
    Payloads           payloads = {.a = a, .ids = map_new(a)};
    Buf                one = {0};
    bool               ok = true;
    number_everything(m);
    head.name = encode_string(a, m->name);
    head.entry_computation_name = encode_string(a, m->entry->name);
    wire_put_message(b, 0, &head.base);
    for (const Comp *c = m->first; ok && c; c = c->next) {
        buf_clear(&one);
        ok = encode_comp(&one, c, &payloads, d);
        wire_put_bytes(b, FIELD_MODULE_COMPUTATIONS, one.p, one.n);
    }
    buf_free(&one);
    tail.entry_computation_id = m->entry->mark;
    put_layout(a, &tail, m);
    put_schedule(a, &tail, m);
    put_aliases(a, &tail, m);
    put_stack(a, &tail, &m->stack);
    tail.frontend_attributes = encode_frontend(a, m->frontend_attributes);
    tail.backend_config = encode_bytes(a, m->backend_config);
    put_payloads(a, &tail, &payloads);
    put_debug(a, &tail, m->debug_attributes);
    put_extra(a, &tail, m);
    ok = ok && put_recovery(a, &tail, m, d);
    wire_put_message(b, 0, &tail.base);
    arena_free(a);
    return ok;
}

/* Strings of text are bytes, those of messages are UTF-8 and end before a zero. */
static bool can_be_read(const Buf *b, Diag *d)
{
    Bytes       message = {(uint8_t *)b->p, b->n};
    WireUnknown unknown = {0};
    return wire_tidy(d->arena, &pb__hlo_module_proto__descriptor, &message, message, "no message can be made of it", &unknown, d);
}

bool proto_write(Buf *b, const Module *m, ProtoKind kind, Diag *d)
{
    Buf  one = {0};
    bool ok = encode_module(&one, m, d) && can_be_read(&one, d);
    if (kind == PROTO_MODULE)
        buf_put(b, one.p, one.n);
    else
        wire_put_bytes(b, 1, one.p, one.n);
    buf_free(&one);
    return ok;
}
