/* Custom calls of functions from outside: the types of hlo_custom_call.h, prototypes, and a function a call that says what is called with what.
 *
 *     static __attribute__((noinline)) int scaled(const hlo_env *env, void *const *out, const void *const *in)
 *     {
 *         static const int64_t sizes[] = { 2, 3, 2, 3 }, order[] = { 1, 0, 1, 0 };
 *         static const hlo_attribute attributes[] = { { "by", "3", "i64", 2, 3, 3 } };
 *         const hlo_buffer operands[] = { { "f32", 2, sizes, order, (void *)in[0], 24 } };
 *         const hlo_buffer results[] = { { "f32", 2, sizes + 2, order + 2, out[0], 24 } };
 *         char text[512] = "custom-call \"my.scale\" %scaled: it failed";
 *         const hlo_call call = { sizeof call, 4, "my.scale", "scaled", "{by = 3 : i64}", 14, 1, 1, 1, operands, results, attributes,
 *                                 text + 32, sizeof text - 32 };
 *         if (hlo_call_my_scale(&call)) { ... }
 */
#include "target-c/target_c.h"
#include "target-c/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char types_text[] =
    "#ifndef HLO_CUSTOM_CALL_H\n"
    "#define HLO_CUSTOM_CALL_H\n"
    "typedef struct hlo_buffer {\n"
    "    const char    *type;\n"
    "    int32_t        rank;\n"
    "    const int64_t *sizes;\n"
    "    const int64_t *minor_to_major;\n"
    "    void          *data;\n"
    "    int64_t        bytes;\n"
    "} hlo_buffer;\n"
    "typedef struct hlo_attribute {\n"
    "    const char *name, *text, *type;\n"
    "    int32_t     kind; // 0 other, 1 string, 2 integer, 3 real\n"
    "    int64_t     integer;\n"
    "    double      real;\n"
    "} hlo_attribute;\n"
    "typedef struct hlo_call {\n"
    "    uint32_t             size;\n"
    "    int32_t              api_version;\n"
    "    const char          *target, *name, *config;\n"
    "    uint64_t             config_bytes;\n"
    "    int32_t              n_operands, n_results, n_attributes;\n"
    "    const hlo_buffer    *operands, *results;\n"
    "    const hlo_attribute *attributes;\n"
    "    char                *error;\n"
    "    uint64_t             error_bytes;\n"
    "} hlo_call;\n"
    "#endif\n";

/* Does an earlier call have the same symbol? */
static bool is_seen(const Program *p, int32_t k)
{
    for (int32_t e = 0; e < k; e++)
        if (p->calls[e]->outside && strcmp(p->calls[e]->outside->symbol, p->calls[k]->outside->symbol) == 0)
            return true;
    return false;
}

void target_c_extern_symbols(Buf *b, const Program *p)
{
    const char *before = " and what has ";
    for (int32_t k = 0; k < p->n_calls; k++)
        if (p->calls[k]->outside && !is_seen(p, k)) {
            buf_printf(b, "%s%s", before, p->calls[k]->outside->symbol);
            before = ", ";
        }
}

void target_c_extern_prelude(Buf *b, const Program *p)
{
    if (!p->outside)
        return;
    buf_puts(b, "\n// Functions of custom calls: 0, or a text in error. hlo_custom_call.h has the same types, and what they mean.\n");
    buf_puts(b, types_text);
    for (int32_t k = 0; k < p->n_calls; k++)
        if (p->calls[k]->outside && !is_seen(p, k))
            buf_printf(b, "extern int %s(const hlo_call *call);\n", p->calls[k]->outside->symbol);
}

/* ---- the tables ---- */

static int64_t dims_of(int32_t n, const Shape *const *v)
{
    int64_t dims = 0;
    for (int32_t k = 0; k < n; k++)
        dims += v[k]->rank;
    return dims;
}

static void put_dims(Buf *b, int32_t n, const Shape *const *v, bool order, const char **before)
{
    for (int32_t k = 0; k < n; k++)
        for (int32_t d = 0; d < v[k]->rank; d++) {
            buf_printf(b, "%s%" PRId64, *before, order ? layout_dim(v[k], d) : v[k]->dims[d]);
            *before = ", ";
        }
}

static void put_sizes(Buf *b, const ExternCall *x)
{
    static const char *const names[] = { "    static const int64_t sizes[] = {", " }, order[] = {" };
    if (dims_of(x->n_operands, x->operands) + dims_of(x->n_results, x->results) == 0)
        return;
    for (int order = 0; order < 2; order++) {
        const char *before = " ";
        buf_puts(b, names[order]);
        put_dims(b, x->n_operands, x->operands, order, &before);
        put_dims(b, x->n_results, x->results, order, &before);
    }
    buf_puts(b, " };\n");
}

static void put_real(Buf *b, double v)
{
    if (isnan(v))
        buf_puts(b, "__builtin_nan(\"\")");
    else if (isinf(v))
        buf_printf(b, "%s__builtin_inf()", v < 0 ? "-" : "");
    else
        buf_printf(b, "%.17g", v);
}

static void put_attributes(Buf *b, const ExternCall *x)
{
    if (x->n_attributes == 0)
        return;
    buf_puts(b, "    static const hlo_attribute attributes[] = {\n");
    for (int32_t k = 0; k < x->n_attributes; k++) {
        const hlo_attribute *a = &x->attributes[k];
        const char *const    texts[] = { a->name, a->text, a->type };
        for (int t = 0; t < 3; t++) {
            buf_puts(b, t == 0 ? "        { " : ", ");
            c_string(b, texts[t]);
        }
        buf_printf(b, ", %d, ", a->kind);
        if (a->integer == INT64_MIN)
            buf_puts(b, "-9223372036854775807 - 1, ");
        else
            buf_printf(b, "%" PRId64 ", ", a->integer);
        put_real(b, a->real);
        buf_puts(b, " },\n");
    }
    buf_puts(b, "    };\n");
}

static void put_buffers(Buf *b, const ExternCall *x, bool results, int64_t first_dim)
{
    int32_t             n = results ? x->n_results : x->n_operands;
    const Shape *const *v = results ? x->results : x->operands;
    Arena              *a = arena_new();
    int32_t            *over = ARENA_ARRAY(a, int32_t, x->n_operands); /* 1 + the result that is the operand's memory */
    for (int32_t k = 0; k < x->n_results; k++)
        if (x->alias[k] >= 0)
            over[x->alias[k]] = k + 1;
    if (n == 0) {
        arena_free(a);
        return;
    }
    buf_printf(b, "    const hlo_buffer %s[] = {\n", results ? "results" : "operands");
    for (int32_t k = 0; k < n; k++) {
        buf_printf(b, "        { \"%s\", %d, ", type_name(v[k]->type), v[k]->rank);
        if (v[k]->rank > 0)
            buf_printf(b, "sizes + %" PRId64 ", order + %" PRId64 ", ", first_dim, first_dim);
        else
            buf_puts(b, "0, 0, ");
        if (results || over[k])
            buf_printf(b, "out[%d]", results ? k : over[k] - 1);
        else
            buf_printf(b, "(void *)in[%d]", k);
        buf_printf(b, ", %" PRId64 " },\n", shape_bytes(v[k]));
        first_dim += v[k]->rank;
    }
    buf_puts(b, "    };\n");
    arena_free(a);
}

/* ---- the function ---- */

static void put_signature(Buf *b, const LibraryCall *x)
{
    buf_printf(b, "static __attribute__((noinline)) int %s(const hlo_env *env, void *const *out, const void *const *in)\n{\n", x->name);
}

static void put_call(Buf *b, const ExternCall *x)
{
    Buf who = { 0 };
    buf_printf(&who, "%sit failed", x->who);
    size_t n = strlen(x->who);
    buf_puts(b, "    char text[512] = ");
    c_string(b, who.p);
    buf_printf(b, ";\n    const hlo_call call = { sizeof call, %d, ", x->api_version);
    c_string(b, x->target);
    buf_puts(b, ", ");
    c_string(b, x->name);
    buf_puts(b, ", ");
    c_bytes(b, x->config, (size_t)x->config_bytes);
    buf_printf(b, ", %" PRId64 ", %d, %d, %d,\n                            %s, %s, %s, text + %zu, sizeof text - %zu };\n", x->config_bytes, x->n_operands,
               x->n_results, x->n_attributes, x->n_operands > 0 ? "operands" : "0", x->n_results > 0 ? "results" : "0",
               x->n_attributes > 0 ? "attributes" : "0", n, n);
    for (int32_t k = 0; k < x->n_results; k++)
        if (x->alias[k] >= 0 && shape_bytes(x->results[k]) > 0)
            buf_printf(b, "    if (out[%d] != in[%d])\n        __builtin_memcpy(out[%d], in[%d], %" PRId64 ");\n", k, x->alias[k], k, x->alias[k],
                       shape_bytes(x->results[k]));
    buf_printf(b, "    if (!%s(&call))\n        return 0;\n    text[sizeof text - 1] = 0;\n    return hlo_fail(env, text);\n}\n", x->symbol);
    buf_free(&who);
}

void target_c_extern(Buf *b, const LibraryCall *x)
{
    const ExternCall *c = x->outside;
    c_origin(b, x->inst);
    put_signature(b, x);
    if (c->n_results == 0)
        buf_puts(b, "    (void)out;\n");
    if (c->n_operands == 0)
        buf_puts(b, "    (void)in;\n");
    put_sizes(b, c);
    put_attributes(b, c);
    put_buffers(b, c, false, 0);
    put_buffers(b, c, true, dims_of(c->n_operands, c->operands));
    put_call(b, c);
}

void target_c_extern_call(Buf *b, const LibraryCall *x, const char *const *args)
{
    int32_t n = x->outside->n_operands;
    buf_printf(b, "%s(env, (void *const[]){ ", x->name);
    for (int32_t k = 0; k < x->outside->n_results; k++)
        buf_printf(b, "%s, ", args[n + k]);
    buf_puts(b, "0 }, (const void *const[]){ ");
    for (int32_t k = 0; k < n; k++)
        buf_printf(b, "%s, ", args[k]);
    buf_puts(b, "0 })");
}
