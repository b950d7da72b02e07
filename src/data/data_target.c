/* The fuzz target of files of arrays: .npy, .npz, .safetensors, gzipped or not. What is read becomes literals of every type that it may stand
 * for; those, written as .safetensors, read back as they are. */
#include <stdlib.h>
#include <string.h>

#include "data/npz.h"
#include "text/fuzz_target.h"

enum { LARGEST = 1 << 16 }; /* elements */

typedef struct Written {
    Literal    *values[TYPE_COUNT];
    const char *names[TYPE_COUNT];
    int32_t     n;
} Written;

/* The literals of the types that x may stand for. */
static void add_literals(Arena *a, const NpyArray *x, Written *w)
{
    for (Type t = 0; t < TYPE_COUNT; t++) {
        Diag d;
        diag_init(&d, a);
        Literal *l = type_is_array(t) ? literal_from_array(x, shape_array(a, t, x->rank, x->dims), "x", &d) : NULL;
        if (l && (l->type != t || l->rank != x->rank || l->count != x->count))
            die("a literal that is not its array");
        if (l && t != TYPE_C128) {
            w->names[w->n] = type_name(t);
            w->values[w->n++] = l;
        } else {
            literal_unref(l);
        }
    }
}

static void check_written(Arena *a, const Written *w)
{
    Buf  b = { 0 };
    Diag d;
    diag_init(&d, a);
    if (!safetensors_header(&b, w->n, w->names, w->values, &d)) { /* dimensions beyond 2^53 */
        buf_free(&b);
        return;
    }
    for (int32_t k = 0; k < w->n; k++)
        buf_put(&b, w->values[k]->data, (size_t)literal_bytes(w->values[k]));
    const ArrayFile *f = array_file_parse(a, "x", b.p, b.n, ARRAY_ANY, &d);
    for (int32_t k = 0; k < w->n; k++) {
        const NpyArray *x = f ? array_file_find(f, w->names[k]) : NULL;
        Literal        *l = x ? literal_from_array(x, literal_shape(a, w->values[k]), "x", &d) : NULL;
        if (!l || !literal_equal(l, w->values[k]))
            die("what was written reads back as something else: %s", d.first ? d.first->text : w->names[k]);
        literal_unref(l);
    }
    buf_free(&b);
}

static void check_array(const NpyArray *x)
{
    Arena  *a = arena_new();
    Written w = { .n = 0 };
    if (x->count <= LARGEST)
        add_literals(a, x, &w);
    if (x->data && w.n)
        check_written(a, &w);
    for (int32_t k = 0; k < w.n; k++)
        literal_unref(w.values[k]);
    arena_free(a);
}

/* most: how many bytes somebody could want. */
static void check_file(const char *name, const uint8_t *p, size_t n, int64_t most)
{
    enum { ARRAYS = 20 };
    Arena *a = arena_new();
    Diag   d;
    diag_init(&d, a);
    const ArrayFile *f = array_file_parse(a, name, p, n, most, &d);
    if (!f != (d.errors > 0))
        die("an error without a report, or a report without an error");
    for (int32_t k = 0; f && k < f->n && k < ARRAYS; k++)
        check_array(&f->v[k]);
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    check_file("x", p, n, 1 << 24);
    check_file("x.safetensors", p, n, 100);
    return 0;
}
