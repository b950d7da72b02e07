/* The fuzz target of legal modules: the input is the seed of a random one, which goes through every form there is.
 *
 *   text -> module -> text            the same bytes, in the long form and in the short one
 *   module -> message -> module       the same text
 */
#include <stdlib.h>
#include <string.h>

#include "driver/random_module.h"
#include "ir/canon.h"
#include "ir/verify.h"
#include "proto/proto.h"
#include "support/map.h"
#include "text/fuzz.h"
#include "text/fuzz_target.h"
#include "text/parse.h"
#include "text/print.h"

enum { LARGEST = 300 };

static Module *read_text(Arena *a, const char *p, size_t n)
{
    Diag d;
    diag_init(&d, a);
    diag_source(&d, "random.hlo", p, n);
    Module *m = parse_module(p, n, &d);
    if (!m || !verify_module(m, &d)) {
        diag_print(&d, stderr, false);
        die("a module is not legal");
    }
    return m;
}

/* The module that m's print reads as; the print goes to text. */
static Module *reread(Arena *a, Module *m, Buf *text, const PrintOptions *o)
{
    buf_clear(text);
    m->changed = true; /* -0 is printed so that it reads back */
    print_module(text, m, o);
    return read_text(a, text->p, text->n);
}

static void expect_same(const Buf *x, const Buf *y, const char *what)
{
    if (x->n != y->n || memcmp(x->p, y->p, x->n) != 0)
        die("%s", what);
}

/* From the first print on nothing changes. */
static void check_print(Arena *a, const Module *m, const PrintOptions *o, const char *what)
{
    Buf     first = {0}, second = {0};
    Module *x = module_clone(m), *once, *twice, *thrice;
    module_settle_order(x); /* else it is the order of XLA's reader, which its own print may change */
    once = reread(a, x, &first, o);
    module_settle_order(once);
    twice = reread(a, once, &first, o);
    thrice = reread(a, twice, &second, o);
    expect_same(&first, &second, what);
    module_free(x);
    module_free(once);
    module_free(twice);
    module_free(thrice);
    buf_free(&first);
    buf_free(&second);
}

static void check_message(Arena *a, Module *m, ProtoKind kind)
{
    PrintOptions o = print_options_default();
    Buf          before = {0}, after = {0}, message = {0};
    Snapshot     s = {0};
    Diag         d;
    diag_init(&d, a);
    m->changed = true;
    print_module(&before, m, &o);
    if (!proto_write(&message, m, kind, &d))
        die("a module cannot be written");
    Module *back = proto_is(message.p, message.n) ? proto_read(message.p, message.n, &s, &d) : NULL;
    if (!back || s.kind != kind)
        die("a message does not read back");
    back->changed = true;
    print_module(&after, back, &o);
    expect_same(&before, &after, "a message reads back as another module");
    module_free(back);
    buf_free(&before);
    buf_free(&after);
    buf_free(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    uint64_t     seed = hash_bytes(1, p, n);
    Arena       *a = arena_new();
    PrintOptions plain = print_options_default(), brief = print_options_short(), types = print_options_default();
    RandomModule r = random_module(a, seed, 10 + (int32_t)fuzz_below(&seed, LARGEST));
    Module      *m = read_text(a, r.text, r.n);
    types.operand_shapes = true;
    check_print(a, m, &plain, "printing twice differs");
    check_print(a, m, &brief, "printing twice differs in the short form");
    check_print(a, m, &types, "printing twice differs with the types of operands");
    check_message(a, m, PROTO_MODULE);
    check_message(a, m, PROTO_HLO);
    module_free(m);
    arena_free(a);
    return 0;
}
