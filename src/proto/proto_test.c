/* Messages that no tool of ours writes: nested too deeply, too large, snapshots, references to nothing, old spellings. */
#include "config.h"

#include <string.h>

#include "proto/proto.h"
#include "proto/proto_int.h"
#include "proto/wire.h"
#include "support/check.h"
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

/* ENTRY e { ROOT x = f32[] parameter(0) }, with operand ids and a shape to make it wrong. */
static Buf module_message(uint64_t operand, bool has_operand, Buf *shape)
{
    Buf inst = {0}, comp = {0}, m = {0};
    wire_put_bytes(&inst, 1, "x", 1);
    wire_put_bytes(&inst, 2, has_operand ? "negate" : "parameter", has_operand ? 6 : 9);
    put_buf(&inst, 3, shape);
    put_int(&inst, 35, 7);
    if (has_operand)
        put_int(&inst, 36, operand);
    wire_put_bytes(&comp, 1, "e", 1);
    put_buf(&comp, 2, &inst);
    put_int(&comp, 5, 3);
    put_int(&comp, 6, 7);
    wire_put_bytes(&m, 1, "m", 1);
    put_buf(&m, 3, &comp);
    put_int(&m, 6, 3);
    return m;
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
    CHECK(!read_message(&b, NULL, &d) && says(&d, "an operand is no instruction of the computation"));
    d = start(a);
    shape = scalar();
    b = module_message(7, true, &shape);
    CHECK(!read_message(&b, NULL, &d) && says(&d, "it needs its own result"));
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
    Buf                b = {0}, shape = {0};
    put_int(&shape, 2, PB__PRIMITIVE_TYPE__F32);
    put_int(&shape, 3, 2);
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
            Literal *l = literal_decode(a, (Bytes){(uint8_t *)b.p, b.n}, "x", &d);
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
    Buf  b = {0}, shape = {0};
    put_int(&shape, 2, PB__PRIMITIVE_TYPE__F32);
    put_int(&shape, 3, 1ull << 60);
    put_buf(&b, 1, &shape);
    CHECK(!literal_decode(a, (Bytes){(uint8_t *)b.p, b.n}, "x", &d) && says(&d, "fewer values"));
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

int main(void)
{
    static void (*const tests[])(Arena *) = {test_module, test_references, test_depth, test_unknown_type, test_literals, test_lying_literal,
                                             test_snapshot, test_before_optimization, test_unknown_field};
    for (size_t k = 0; k < sizeof tests / sizeof *tests; k++) {
        Arena *a = arena_new();
        tests[k](a);
        arena_free(a);
    }
    puts("ok proto");
    return 0;
}
