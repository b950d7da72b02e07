/* The fuzz target of messages: whatever tools read (a message, text, either gzipped) to a module and its text; that to a message, and back. Once
 * a legal module has been through text, its message must read back as the same text, and give the same message. (Of others it need not:
 * feature_group_count=0 is no number that a message can tell from 1.) */
#include <stdlib.h>
#include <string.h>

#include "ir/verify.h"
#include "proto/proto.h"
#include "proto/read.h"
#include "proto/wire.h"
#include "text/fuzz.h"
#include "text/fuzz_target.h"
#include "text/parse.h"
#include "text/print.h"

static Module *read_input(Arena *a, const uint8_t *p, size_t n, Snapshot *s, Diag *d)
{
    Buf in = {0};
    buf_put(&in, p, n);
    diag_init(d, a);
    diag_source(d, "fuzz", NULL, 0);
    Module *m = module_input(&in, d) ? module_read(&in, s, d) : NULL;
    d->text = NULL;
    d->len = 0;
    buf_free(&in);
    return m;
}

static void print_text(Buf *b, Module *m)
{
    PrintOptions o = print_options_default();
    m->changed = true; /* -0 is printed so that it reads back */
    print_module(b, m, &o);
}

/* m's text, read: what a message loses against text is lost. */
static Module *settle(Arena *a, Module *m, Diag *d)
{
    Buf text = {0};
    print_text(&text, m);
    diag_init(d, a);
    diag_source(d, "fuzz.hlo", text.p, text.n);
    Module *settled = parse_module(text.p, text.n, d);
    buf_free(&text);
    return settled;
}

/* Message and text of m; false when it has no message (a constant without values). */
static bool forms(Arena *a, Module *m, Buf *message, Buf *text)
{
    Diag d;
    diag_init(&d, a);
    print_text(text, m);
    return proto_write(message, m, PROTO_MODULE, &d);
}

static bool same(const Buf *x, const Buf *y)
{
    return x->n == y->n && (!x->n || memcmp(x->p, y->p, x->n) == 0);
}

/* What m's message reads as must be m, if m is legal. */
static void check_back(Arena *a, Module *m, bool legal)
{
    Buf      message = {0}, text = {0}, message2 = {0}, text2 = {0};
    Diag     d;
    Snapshot s = {0};
    if (forms(a, m, &message, &text)) {
        Module *back = read_input(a, (const uint8_t *)message.p, message.n, &s, &d);
        if (!back && legal)
            die("what was written does not read back: %s", d.first ? d.first->text : "");
        if (back && (!forms(a, back, &message2, &text2) || !same(&text, &text2)) && legal)
            die("what was written reads back as something else");
        if (!same(&message, &message2) && legal)
            die("what was read back is written in another way");
        module_free(back);
    }
    buf_free(&message);
    buf_free(&text);
    buf_free(&message2);
    buf_free(&text2);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    Arena   *a = arena_new();
    Snapshot s = {0};
    Diag     d;
    Module  *m = read_input(a, p, n, &s, &d), *settled = m ? settle(a, m, &d) : NULL;
    if (settled)
        check_back(a, settled, verify_module(settled, &d));
    module_free(m);
    module_free(settled);
    arena_free(a);
    return 0;
}

/* Changes that leave a message a message: lengths are those of what they are of. */

enum { DEEP = 30, ADDED = 20 };

static bool is_message(Bytes x)
{
    WireField f;
    bool      any = false;
    while (wire_next(&x, &f))
        any = true;
    return any && x.n == 0;
}

static size_t count_fields(Bytes x)
{
    WireField f;
    size_t    n = 0;
    while (wire_next(&x, &f))
        n++;
    return n;
}

static bool pick_direct(Bytes x, uint64_t *rng, WireField *f)
{
    for (size_t k = fuzz_below(rng, count_fields(x)) + 1; k > 0; k--)
        if (!wire_next(&x, f))
            return false;
    return true;
}

/* A field of x, or of a message in it; false when there is none. */
static bool pick_field(Bytes x, uint64_t *rng, WireField *f)
{
    if (!pick_direct(x, rng, f))
        return false;
    for (int depth = 0; depth < DEEP && f->type == WIRE_BYTES && is_message(f->bytes) && fuzz_below(rng, 3); depth++)
        pick_direct(f->bytes, rng, f);
    return true;
}

static uint64_t odd_number(uint64_t *rng)
{
    static const uint64_t odd[] = {0, 1, 2, 127, 128, UINT32_MAX, INT32_MAX, INT64_MAX, UINT64_MAX, (uint64_t)INT64_MIN, 1u << 30};
    return fuzz_below(rng, 3) ? odd[fuzz_below(rng, sizeof odd / sizeof *odd)] : fuzz_below(rng, 40);
}

static void put_other_value(Buf *out, const WireField *f, uint64_t *rng)
{
    if (f->type == WIRE_VARINT) {
        wire_put_tag(out, f->number, f->type);
        wire_put_varint(out, odd_number(rng));
    } else if (f->type == WIRE_BYTES) {
        size_t   room = f->bytes.n + ADDED;
        uint8_t *p = mem_alloc((int64_t)room, 1);
        memcpy(p, f->bytes.p, f->bytes.n);
        wire_put_bytes(out, f->number, p, LLVMFuzzerMutate(p, f->bytes.n, room));
        mem_free(p);
    } else {
        size_t at = out->n;
        buf_put(out, f->whole.p, f->whole.n);
        for (size_t k = f->whole.n - f->bytes.n; k < f->whole.n; k++)
            out->p[at + k] = (char)fuzz_random(rng);
    }
}

static void change_field(Buf *out, const WireField *f, Bytes other, uint64_t *rng)
{
    WireField g;
    switch (fuzz_below(rng, 5)) {
    case 0: break; /* removed */
    case 1: /* doubled */
        buf_put(out, f->whole.p, f->whole.n);
        buf_put(out, f->whole.p, f->whole.n);
        break;
    case 2: /* something from elsewhere behind it, or in its place */
        if (fuzz_below(rng, 2))
            buf_put(out, f->whole.p, f->whole.n);
        if (pick_field(other, rng, &g))
            buf_put(out, g.whole.p, g.whole.n);
        break;
    case 3: /* another field's value */
        if (pick_field(other, rng, &g) && g.type == WIRE_BYTES)
            wire_put_bytes(out, f->number, g.bytes.p, g.bytes.n);
        break;
    default: put_other_value(out, f, rng); break;
    }
}

static void change_message(Buf *out, Bytes x, Bytes other, int depth, uint64_t *rng)
{
    WireField f;
    for (size_t k = fuzz_below(rng, count_fields(x)); wire_next(&x, &f); k--) {
        if (k != 0) {
            buf_put(out, f.whole.p, f.whole.n);
        } else if (depth < DEEP && f.type == WIRE_BYTES && is_message(f.bytes) && fuzz_below(rng, 4)) {
            Buf inner = {0};
            change_message(&inner, f.bytes, other, depth + 1, rng);
            wire_put_bytes(out, f.number, inner.p, inner.n);
            buf_free(&inner);
        } else {
            change_field(out, &f, other, rng);
        }
    }
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *p, size_t np, const uint8_t *q, size_t nq, uint8_t *out, size_t most, unsigned seed)
{
    uint64_t rng = seed;
    Buf      b = {0};
    change_message(&b, (Bytes){p, np}, (Bytes){q, nq}, 0, &rng);
    return fuzz_give(out, &b, most);
}

size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t most, unsigned seed)
{
    uint64_t rng = seed;
    Buf      b = {0};
    if (!proto_is(p, n) || fuzz_below(&rng, 4) == 0)
        return LLVMFuzzerMutate(p, n, most);
    change_message(&b, (Bytes){p, n}, (Bytes){p, n}, 0, &rng);
    return fuzz_give(p, &b, most);
}
