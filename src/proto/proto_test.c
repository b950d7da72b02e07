/* Messages that no tool of ours writes: nested too deeply, too large, snapshots, references to nothing, old spellings. */
#include "config.h"

#include <string.h>

#include "proto/proto.h"
#include "proto/proto_int.h"
#include "proto/wire.h"
#include "support/check.h"
#include "text/parse.h"
#include "text/print.h"

static Diag start(Arena *a)
{
    Diag d;
    diag_init(&d, a);
    diag_source(&d, "test", NULL, 0);
    return d;
}

static void put_int(Buf *b, uint32_t number, uint64_t v)
{
    wire_put_tag(b, number, WIRE_VARINT);
    wire_put_varint(b, v);
}

static void put_buf(Buf *b, uint32_t number, Buf *inner)
{
    wire_put_bytes(b, number, inner->p, inner->n);
    buf_free(inner);
}

/* f32 without dimensions. */
static Buf scalar(void)
{
    Buf b = {0};
    put_int(&b, 2, PB__PRIMITIVE_TYPE__F32);
    return b;
}

/* ENTRY e with that instruction, whose id is 7, and a signature that says nothing. */
static Buf module_of(Buf *inst)
{
    Buf comp = {0}, m = {0}, signature = {0}, result = scalar();
    put_buf(&signature, 2, &result);
    wire_put_bytes(&comp, 1, "e", 1);
    put_buf(&comp, 2, inst);
    put_int(&comp, 5, 3);
    put_int(&comp, 6, 7);
    wire_put_bytes(&m, 1, "m", 1);
    put_buf(&m, 3, &comp);
    put_buf(&m, 4, &signature);
    put_int(&m, 6, 3);
    return m;
}

/* ENTRY e { ROOT x = f32[] parameter(0) }, with operand ids and a shape to make it wrong. */
static Buf module_message(uint64_t operand, bool has_operand, Buf *shape)
{
    Buf inst = {0};
    wire_put_bytes(&inst, 1, "x", 1);
    wire_put_bytes(&inst, 2, has_operand ? "negate" : "parameter", has_operand ? 6 : 9);
    put_buf(&inst, 3, shape);
    put_int(&inst, 35, 7);
    if (has_operand)
        put_int(&inst, 36, operand);
    return module_of(&inst);
}

static Module *read_message(Buf *b, Snapshot *s, Diag *d)
{
    Module *m = proto_read(b->p, b->n, s, d);
    buf_free(b);
    return m;
}

static bool says(const Diag *d, const char *text)
{
    for (const DiagMessage *m = d->first; m; m = m->next)
        if (strstr(m->text, text))
            return true;
    return false;
}

static void test_module(Arena *a)
{
    Diag    d = start(a);
    Buf     shape = scalar(), b = module_message(0, false, &shape);
    Module *m = read_message(&b, NULL, &d);
    CHECK(m && d.errors == 0);
    CHECK(strcmp(m->entry->root->name, "x") == 0 && m->entry->root->op == OP_PARAMETER);
    module_free(m);
}

static void test_references(Arena *a)
{
    Diag d = start(a);
    Buf  shape = scalar(), b = module_message(99, true, &shape);
    CHECK(!read_message(&b, NULL, &d) && says(&d, "an operand is no instruction of the computation that stands before it"));
    d = start(a);
    shape = scalar();
    b = module_message(7, true, &shape);
    CHECK(!read_message(&b, NULL, &d) && says(&d, "instruction %x of %e (byte ") && says(&d, "an operand is no instruction"));
}

static void test_depth(Arena *a)
{
    Diag d = start(a);
    Buf  shape = scalar();
    for (int k = 0; k < 5000; k++) {
        Buf outer = {0};
        put_int(&outer, 2, PB__PRIMITIVE_TYPE__TUPLE);
        put_buf(&outer, 4, &shape);
        shape = outer;
    }
    Buf b = module_message(0, false, &shape);
    CHECK(!read_message(&b, NULL, &d) && says(&d, "nested too deeply"));
}

static void test_unknown_type(Arena *a)
{
    Diag d = start(a);
    Buf  shape = {0};
    put_int(&shape, 2, 77);
    Buf b = module_message(0, false, &shape);
    CHECK(!read_message(&b, NULL, &d) && says(&d, "there is no element type 77"));
}

/* A literal f32[2]: packed, or one by one as before proto3. */
static Buf literal_message(bool packed, int n)
{
    static const float v[] = {1.5f, -2.0f, 3.0f};
    Buf                b = {0}, shape = {0}, layout = {0};
    put_int(&layout, 1, 0);
    put_int(&shape, 2, PB__PRIMITIVE_TYPE__F32);
    put_int(&shape, 3, 2);
    put_buf(&shape, 5, &layout);
    put_buf(&b, 1, &shape);
    if (packed)
        wire_put_bytes(&b, 8, v, (size_t)n * sizeof *v);
    for (int k = 0; !packed && k < n; k++) {
        wire_put_tag(&b, 8, WIRE_FIXED32);
        buf_put(&b, &v[k], sizeof *v);
    }
    return b;
}

static void test_literals(Arena *a)
{
    for (int packed = 0; packed < 2; packed++)
        for (int n = 0; n <= 3; n++) {
            Diag     d = start(a);
            Buf      b = literal_message(packed, n);
            Literal *l = literal_decode(a, (Bytes){(uint8_t *)b.p, b.n}, NULL, "x", &d);
            CHECK((l != NULL) == (n == 2));
            CHECK(n == 2 || says(&d, n < 2 ? "fewer values" : "more values"));
            CHECK(n != 2 || (literal_get_f64(l, 0) == 1.5 && literal_get_f64(l, 1) == -2));
            literal_unref(l);
            buf_free(&b);
        }
}

/* A shape of 2^60 elements in a message of a few bytes is not allocated. */
static void test_lying_literal(Arena *a)
{
    Diag d = start(a);
    Buf  b = {0}, shape = {0}, layout = {0};
    put_int(&layout, 1, 0);
    put_int(&shape, 2, PB__PRIMITIVE_TYPE__F32);
    put_int(&shape, 3, 1ull << 60);
    put_buf(&shape, 5, &layout);
    put_buf(&b, 1, &shape);
    CHECK(!literal_decode(a, (Bytes){(uint8_t *)b.p, b.n}, NULL, "x", &d) && says(&d, "fewer values"));
    buf_free(&b);
}

static void test_snapshot(Arena *a)
{
    Diag     d = start(a);
    Snapshot s;
    Buf      shape = scalar(), module = module_message(0, false, &shape), hlo = {0}, b = {0};
    put_buf(&hlo, 1, &module);
    put_buf(&b, 1, &hlo);
    for (int k = 0; k < 2; k++) {
        Buf l = literal_message(true, 2);
        put_buf(&b, 2, &l);
    }
    Buf result = literal_message(false, 2);
    put_buf(&b, 3, &result);
    wire_put_bytes(&b, 4, "Host", 4);
    Module *m = read_message(&b, &s, &d);
    CHECK(m && s.kind == PROTO_SNAPSHOT && s.n_args == 2 && strcmp(s.platform, "Host") == 0);
    CHECK(literal_get_f64(s.args[1], 1) == -2 && s.result && literal_get_f64(s.result, 0) == 1.5);
    module_free(m);
}

static void test_before_optimization(Arena *a)
{
    Diag     d = start(a);
    Snapshot s;
    Buf      shape = scalar(), module = module_message(0, false, &shape), inputs = {0}, b = {0}, l = literal_message(true, 2);
    put_buf(&inputs, 1, &l);
    put_buf(&b, 1, &module);
    put_buf(&b, 2, &inputs);
    Module *m = read_message(&b, &s, &d);
    CHECK(m && s.kind == PROTO_UNOPTIMIZED_SNAPSHOT && s.n_args == 1 && literal_get_f64(s.args[0], 0) == 1.5);
    module_free(m);
}

static void test_unknown_field(Arena *a)
{
    Diag    d = start(a);
    Buf     shape = scalar();
    put_int(&shape, 300, 1);
    Buf     b = module_message(0, false, &shape);
    Module *m = read_message(&b, NULL, &d);
    CHECK(m && d.warnings == 1 && says(&d, "field 300 of ShapeProto is not known"));
    module_free(m);
}

/* What the writer makes of a text, taken apart by protobuf-c; freed with a. */
static void free_message(void *p)
{
    protobuf_c_message_free_unpacked(p, NULL);
}

static Pb__HloModuleProto *written(Arena *a, const char *text)
{
    Diag    d = start(a);
    Buf     b = {0};
    Module *m = parse_module(text, strlen(text), &d);
    CHECK(m && proto_write(&b, m, PROTO_MODULE, &d));
    Pb__HloModuleProto *p = pb__hlo_module_proto__unpack(NULL, b.n, (uint8_t *)b.p);
    CHECK(p != NULL);
    arena_defer(a, free_message, p);
    buf_free(&b);
    module_free(m);
    return p;
}

static const Pb__Payload *payload_at(const Pb__HloModuleProto *p, size_t comp, size_t inst)
{
    return p->computations[comp]->instructions[inst]->metadata->metadata_payload;
}

/* Instructions name payloads by number, in order of first use; shardings hold theirs. Computations stand in the order of their ids. */
static void test_writer(Arena *a)
{
    static const char text[] = "HloModule %f32\n"
                               "%leaf {\n"
                               "  %p = f32[] parameter(0)\n"
                               "  ROOT %n = f32[] negate(%p), metadata={metadata_payload=\"one\"}\n"
                               "}\n"
                               "%loose {\n"
                               "  ROOT %q = f32[] parameter(0), metadata={metadata_payload=\"two\"}\n"
                               "}\n"
                               "ENTRY %main {\n"
                               "  %r = f32[] parameter(0), metadata={metadata_payload=\"one\"}, origin={[synthetic_call]},\n"
                               "    sharding={replicated metadata={op_name=\"s\" metadata_payload=\"three\"}}\n"
                               "  ROOT %c = f32[] call(%r), to_apply=%leaf\n"
                               "}\n";
    const Pb__HloModuleProto *p = written(a, text);
    CHECK(p->n_computations == 3 && p->n_payloads == 2);
    CHECK(strcmp(p->computations[0]->name, "leaf") == 0 && strcmp(p->computations[1]->name, "loose") == 0);
    CHECK(p->payloads[0].len == 3 && memcmp(p->payloads[0].data, "one", 3) == 0 && memcmp(p->payloads[1].data, "two", 3) == 0);
    CHECK(payload_at(p, 0, 1)->payload_source_case == PB__PAYLOAD__PAYLOAD_SOURCE_ID && payload_at(p, 0, 1)->id == 0);
    CHECK(payload_at(p, 1, 0)->id == 1 && payload_at(p, 2, 0)->id == 0);
    const Pb__HloInstructionProto *r = p->computations[2]->instructions[0];
    CHECK(r->sharding->metadata[0]->metadata_payload->payload_source_case == PB__PAYLOAD__PAYLOAD_SOURCE_VALUE);
    CHECK(r->original_value->is_synthetic_call && *r->original_value->call_hierarchy == 0);
    CHECK(strcmp(p->name, "f32") == 0 && p->extra && strcmp(p->extra->name, "f32") == 0);
}

/* A module of one parameter with something in a payload: metadata (field 7) or the configuration (field 99), by number. */
static Module *payload_message(Arena *a, uint32_t field, uint64_t id, Diag *d)
{
    Buf payload = {0}, inst = {0}, shape = scalar();
    put_int(&payload, 2, id);
    if (field == 7) {
        Buf metadata = {0};
        put_buf(&metadata, 20, &payload);
        payload = metadata;
    }
    wire_put_bytes(&inst, 1, "x", 1);
    wire_put_bytes(&inst, 2, "parameter", 9);
    put_buf(&inst, 3, &shape);
    put_int(&inst, 35, 7);
    wire_put_bytes(&inst, 43, "old", 3);
    put_buf(&inst, field, &payload);
    Buf b = module_of(&inst);
    wire_put_bytes(&b, 22, "zero", 4);
    wire_put_bytes(&b, 22, "one", 3);
    *d = start(a);
    return read_message(&b, NULL, d);
}

static void test_payloads(Arena *a)
{
    Diag    d;
    Module *m = payload_message(a, 7, 1, &d);
    CHECK(m && strcmp(m->entry->root->meta->payload, "one") == 0 && d.warnings == 0);
    module_free(m);
    m = payload_message(a, 99, 0, &d);
    CHECK(m && strcmp(inst_attr(m->entry->root, ATTR_BACKEND_CONFIG)->value.s, "zero") == 0 && d.warnings == 0);
    module_free(m);
    CHECK(!payload_message(a, 7, 2, &d) && says(&d, "it names a payload that the module does not have"));
    CHECK(!payload_message(a, 99, UINT64_MAX, &d) && says(&d, "it names a payload that the module does not have"));
}

/* Two parameters and their sum, with bytes added to one of the messages: a field that is there twice has its last value. */
typedef enum { IN_SHAPE, IN_FIRST, IN_SUM, IN_COMPUTATION, IN_SIGNATURE, IN_MODULE } Where;

static Buf instruction(const char *name, const char *opcode, uint64_t id, Where own, Where where, Bytes extra)
{
    Buf inst = {0}, shape = scalar();
    if (where == IN_SHAPE && own == IN_FIRST)
        buf_put(&shape, extra.p, extra.n);
    wire_put_bytes(&inst, 1, name, strlen(name));
    wire_put_bytes(&inst, 2, opcode, strlen(opcode));
    put_buf(&inst, 3, &shape);
    put_int(&inst, 9, id - 1);
    put_int(&inst, 35, id);
    for (uint64_t k = 1; own == IN_SUM && k <= 2; k++)
        put_int(&inst, 36, k);
    if (where == own)
        buf_put(&inst, extra.p, extra.n);
    return inst;
}

static Buf sum_message(Where where, Bytes extra)
{
    Buf comp = {0}, signature = {0}, result = scalar(), m = {0}, inst;
    wire_put_bytes(&comp, 1, "e", 1);
    inst = instruction("a", "parameter", 1, IN_FIRST, where, extra);
    put_buf(&comp, 2, &inst);
    inst = instruction("b", "parameter", 2, IN_MODULE, IN_SHAPE, extra);
    put_buf(&comp, 2, &inst);
    inst = instruction("s", "add", 3, IN_SUM, where, extra);
    put_buf(&comp, 2, &inst);
    put_int(&comp, 6, 3);
    if (where == IN_COMPUTATION)
        buf_put(&comp, extra.p, extra.n);
    put_buf(&signature, 2, &result);
    for (int k = 0; k < 2; k++) {
        Buf shape = scalar();
        put_buf(&signature, 1, &shape);
        wire_put_bytes(&signature, 3, "p", 1);
    }
    if (where == IN_SIGNATURE)
        buf_put(&signature, extra.p, extra.n);
    wire_put_bytes(&m, 1, "m", 1);
    put_buf(&m, 3, &comp);
    put_buf(&m, 4, &signature);
    if (where == IN_MODULE)
        buf_put(&m, extra.p, extra.n);
    return m;
}

#define BYTES(s) {(const uint8_t *)(s), sizeof(s) - 1}
static const struct {
    Where       where;
    Bytes       extra;
    const char *says; /* NULL: it is read */
} rules[] = {
    {IN_SHAPE, BYTES(""), NULL},
    {IN_SHAPE, BYTES("\x18\3\x30\0\x30\0"), "it does not say of each dimension once whether it is dynamic"},
    {IN_SHAPE, BYTES("\x18\3\x2a\2\x08\1"), "its layout does not name each dimension once"},
    {IN_SHAPE, BYTES("\x18\3\x2a\4\x08\0\x32\0"), "a tile without dimensions"},
    {IN_SHAPE, BYTES("\x18\3\x2a\6\x08\0\x32\2\x08\0"), "a tile without dimensions or with one below 1"},
    {IN_SHAPE, BYTES("\x18\3\x2a\x09\x08\0\x8a\1\4\x08\0\x10\3"), "its layout splits a dimension"},
    {IN_SHAPE, BYTES("\x18\3\x2a\4\x08\0\x58\x08"), "that of a sparse array"},
    {IN_SHAPE, BYTES("\x18\3\x2a\x0d\x08\0\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), "its layout has a negative size"},
    {IN_SHAPE, BYTES("\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), "its size does not fit 64 bits"},
    {IN_SHAPE, BYTES("\x10\x0d\x2a\0"), "arrays alone have a layout"},
    {IN_SHAPE, BYTES("\x10\0"), "there is no element type 0"},
    {IN_SUM, BYTES("\x0a\0"), "it has no name"},
    {IN_SUM, BYTES("\x0a\1a"), "another instruction has its name"},
    {IN_SUM, BYTES("\x12\5bogus"), "there is no opcode 'bogus'"},
    {IN_SUM, BYTES("\x98\2\2"), "another instruction of the computation has its id"},
    {IN_SUM, BYTES("\x98\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), "its id is negative"},
    {IN_SUM, BYTES("\x98\2\x83\x80\x80\x80\x10"), NULL}, /* 3 + 2^32: the computation's number is not looked at */
    {IN_SUM, BYTES("\xa0\2\3"), "an operand is no instruction of the computation that stands before it"},
    {IN_SUM, BYTES("\xa2\2\1\3"), "an operand is no instruction"},
    {IN_FIRST, BYTES("\xa8\2\3"), "a control predecessor is no instruction of the computation that stands before it"},
    {IN_SUM, BYTES("\xb0\2\0"), "it calls what is no computation of the module that stands before its own"},
    {IN_SUM, BYTES("\x9a\3\0"), "'add' has neither a precision_config nor dot_dimension_numbers"},
    {IN_FIRST, BYTES("\x9a\3\0"), NULL},
    {IN_SUM, BYTES("\x0b\x10\1\x0c"), NULL}, /* a group is passed over, and so is what it holds */
    {IN_SUM, BYTES("\x0b\x10\1\x14"), "cut off or damaged"},
    {IN_SUM, BYTES("\x0a\2\xc3("), "field name of HloInstructionProto: it is no UTF-8"},
    {IN_SUM, BYTES("\x0a\3a\0b"), "field name of HloInstructionProto: it has a zero byte"},
    {IN_SUM, BYTES("\x72\2\1\x80"), "field dimensions of HloInstructionProto: a number in it is cut off"},
    {IN_SUM, BYTES("\x0a\xff\xff\xff\xff\x0f"), "cut off or damaged"},
    {IN_SUM, BYTES("\x18\1"), NULL}, /* a number where the shape should be is an unknown field */
    {IN_COMPUTATION, BYTES("\x30\7"), "its root is none of its instructions"},
    {IN_SIGNATURE, BYTES("\x1a\1q"), "another number of parameters than names of parameters"},
    {IN_MODULE, BYTES("\x30\7"), "its entry is none of its computations"},
    {IN_MODULE, BYTES("\x3a\4\x0a\2\x12\0"), "its schedule does not name each instruction once"},
    {IN_MODULE, BYTES("\x3a\6\x0a\4\x08\7\x12\0"), "computation %e: the schedule has no sequence for it"},
    {IN_MODULE, BYTES("\x3a\0"), NULL},
    {IN_SUM, BYTES("\x12\x11ragged-all-to-all"), "ragged-all-to-all takes 6 operands, found 2"},
    {IN_SUM, BYTES("\xc2\5\x12\x0a\x07\x12\5\x0a\3out\x0a\7\x0a\1\0\x12\2\x0a\0"), "a leaf of an original value stands inside another one"},
    {IN_SUM, BYTES("\xc2\5\x0f\x0a\x0d\x0a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0"), "an original value has an index out of range"},
};

static void test_rules(Arena *a)
{
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        Diag    d = start(a);
        Buf     b = sum_message(rules[k].where, rules[k].extra);
        Module *m = read_message(&b, NULL, &d);
        bool    right = rules[k].says ? !m && says(&d, rules[k].says) : m && d.errors == 0;
        if (!right)
            printf("rule %zu: %s\n", k, d.first ? d.first->text : "no message");
        CHECK(right);
        if (m)
            module_free(m);
    }
}

/* Leaves of an original value in any order, the later of two for one place, a gap. */
static void test_origin(Arena *a)
{
    static const struct {
        Bytes       extra;
        const char *text;
    } cases[] = {
        {BYTES("\xc2\5\x14\x0a\x08\x0a\1\1\x12\3\x0a\1b\x0a\x08\x0a\1\0\x12\3\x0a\1a"), "origin={({\"a\"}, {\"b\"})}"},
        {BYTES("\xc2\5\x14\x0a\x08\x0a\1\0\x12\3\x0a\1b\x0a\x08\x0a\1\0\x12\3\x0a\1a"), "origin={({\"a\"})}"},
        {BYTES("\xc2\5\x0a\x0a\x08\x0a\1\2\x12\3\x0a\1b"), "origin={((), (), {\"b\"})}"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        Diag         d = start(a);
        Buf          b = sum_message(IN_SUM, cases[k].extra), text = {0};
        Module      *m = read_message(&b, NULL, &d);
        PrintOptions options = print_options_default();
        CHECK(m && d.errors == 0);
        print_module(&text, m, &options);
        buf_putc(&text, '\0');
        CHECK(strstr(text.p, cases[k].text));
        buf_free(&text);
        module_free(m);
    }
}

int main(void)
{
    static void (*const tests[])(Arena *) = {test_module, test_references, test_depth, test_unknown_type, test_literals, test_lying_literal,
                                             test_snapshot, test_before_optimization, test_unknown_field, test_writer, test_payloads, test_rules, test_origin};
    for (size_t k = 0; k < sizeof tests / sizeof *tests; k++) {
        Arena *a = arena_new();
        tests[k](a);
        arena_free(a);
    }
    puts("ok proto");
    return 0;
}
