/* A signature survives being written and read; text that is not one is refused. */
#include "config.h"

#include "driver/signature.h"

#include <string.h>

#include "support/check.h"

int main(void)
{
    Arena    *a = arena_new();
    int64_t   dims[] = { 2, 3 };
    Ints      order = ints_iota(a, 2); /* column-major */
    SigLeaf   args[] = { { "x.0", shape_array(a, TYPE_BF16, 2, dims), -1 },
                         { "y", shape_with_layout(a, shape_array(a, TYPE_F32, 2, dims), layout_from_order(a, order)), -1 } };
    SigLeaf   results[] = { { "out0", shape_scalar(a, TYPE_PRED), 1 } };
    bool      dynamic[] = { false, true }; /* bf16[2,<=3] */
    Shape     bounded = *args[0].shape;
    bounded.dynamic = dynamic;
    args[0].shape = &bounded;
    Signature s = { "jit_f", 2, 1, args, results, { 300, TYPE_F16 }, 4096, 7, 1, 1, FEEDS_OUT };
    Buf       b = { 0 };
    signature_write(&b, &s);
    Signature *r = signature_read(a, b.p);
    CHECK(r && !strcmp(r->name, "jit_f") && r->n_args == 2 && r->n_results == 1);
    CHECK(r->scratch_bytes == 4096 && r->n_kernels == 7 && r->n_copies == 1 && r->meets == 1 && r->feeds == FEEDS_OUT);
    CHECK(r->error.reduction == 300 && r->error.coarsest == TYPE_F16);
    for (int k = 0; k < 2; k++)
        CHECK(!strcmp(r->args[k].name, args[k].name) && shape_equal(r->args[k].shape, args[k].shape) && r->args[k].alias == -1);
    CHECK(shape_equal(r->results[0].shape, results[0].shape) && r->results[0].alias == 1);
    puts("ok round trip");
    for (size_t n = 0; n + 1 < b.n; n++) {
        char *cut = arena_strndup(a, b.p, n);
        CHECK(!signature_read(a, cut) || n + 1 >= b.n - 1);
    }
    puts("ok cut off");
    buf_free(&b);
    arena_free(a);
    return 0;
}
