/* Calls of LAPACK routines as C functions, and the prototypes of the Fortran symbols.
 *
 *     static __attribute__((noinline)) void cholesky_11(float *a, int32_t *info, const float *a_in)
 *     {
 *         const int n = 6, ldn = 6;
 *         if (a != a_in)
 *             __builtin_memcpy(a, a_in, 288);
 *         for (int64_t i = 0; i < 2; i++)
 *             spotrf_("L", &n, a + 36 * i, &ldn, info + i, 1);           // uplo
 *     }
 *
 * Fortran takes addresses alone; behind the arguments stands the length of every text. */
#include "target-c/target_c.h"
#include "target-c/text.h"
#include "text/print.h"

#include <string.h>

static const char *c_type(Type t)
{
    switch (t) {
    case TYPE_S32: return "int32_t";
    case TYPE_F32: return "float";
    case TYPE_F64: return "double";
    case TYPE_C64: return "float _Complex";
    case TYPE_C128: return "double _Complex";
    default: die("%s is no type of LAPACK's", type_name(t));
    }
}

static Type arg_type(const LapackCall *c, const LapackArg *x)
{
    switch (x->kind) {
    case LAPACK_RWORK: return lapack_real_type(c->type);
    case LAPACK_IWORK: return TYPE_S32;
    default: return c->type;
    }
}

static bool is_overwritten(const LapackBuffer *b)
{
    return b->operand >= 0 && b->result >= 0;
}

static int64_t all_bytes(const LapackCall *c, const LapackBuffer *b)
{
    return c->batch * b->count * type_bytes(b->type);
}

static const LapackBuffer *buffer_of(const LapackCall *c, bool result, int32_t number)
{
    for (int32_t k = 0; k < c->n_buffers; k++)
        if ((result ? c->buffers[k].result : c->buffers[k].operand) == number)
            return &c->buffers[k];
    return NULL;
}

/* ---- prototypes ---- */

static void put_prototype(Buf *b, const LapackCall *c)
{
    int32_t texts = 0;
    buf_printf(b, "extern void %s(", c->symbol);
    for (int32_t k = 0; k < c->n_args; k++) {
        LapackArgKind kind = c->args[k].kind;
        texts += kind == LAPACK_OPTION;
        buf_puts(b, k > 0 ? ", " : "");
        buf_puts(b, kind == LAPACK_OPTION ? "const char *" : kind == LAPACK_SIZE ? "const int *" : "void *");
    }
    for (int32_t k = 0; k < texts; k++)
        buf_puts(b, ", __SIZE_TYPE__");
    buf_puts(b, ");\n");
}

static bool needs_unpacking(const LapackCall *c, Type real)
{
    for (int32_t k = 0; k < c->n_args; k++)
        if (c->args[k].kind == LAPACK_PACKED && c->type == real && !lapack_is_empty(c))
            return true;
    return false;
}

/* Vectors of a conjugate pair come as real and imaginary part: v[:,j] = p[:,j] + i p[:,j+1], v[:,j+1] = p[:,j] - i p[:,j+1]. */
static void put_unpack(Buf *b, const char *real)
{
    buf_printf(b, "\n// Column j of v from the columns of p: of a real eigenvalue its vector, of a pair p[j] + i p[j+1] and p[j] - i p[j+1].\n"
                  "static void hlo_unpack_%s(%s _Complex *v, const %s *p, const %s *wi, int64_t n)\n"
                  "{\n"
                  "    for (int64_t j = 0; j < n; j++) {\n"
                  "        const int pair = wi[j] != 0 && wi[j] == wi[j] && j + 1 < n;\n"
                  "        for (int64_t r = 0; r < n; r++) {\n"
                  "            __real__ v[j * n + r] = p[j * n + r];\n"
                  "            __imag__ v[j * n + r] = pair ? p[(j + 1) * n + r] : 0;\n"
                  "            if (pair) {\n"
                  "                __real__ v[(j + 1) * n + r] = p[j * n + r];\n"
                  "                __imag__ v[(j + 1) * n + r] = -p[(j + 1) * n + r];\n"
                  "            }\n"
                  "        }\n"
                  "        j += pair;\n"
                  "    }\n"
                  "}\n",
               real, real, real, real);
}

void target_c_library_prelude(Buf *b, const Program *p)
{
    bool single = false, twice = false;
    if (p->lapack)
        buf_puts(b, "\n// LAPACK, in OpenBLAS: column by column, all by address\n");
    for (int32_t k = 0; k < p->n_calls; k++) {
        const LapackCall *c = &p->calls[k]->lapack;
        bool              seen = !library_is_lapack(p->calls[k]) || lapack_is_empty(c);
        for (int32_t e = 0; e < k && !seen; e++)
            seen = library_is_lapack(p->calls[e]) && strcmp(p->calls[e]->lapack.symbol, c->symbol) == 0 && !lapack_is_empty(&p->calls[e]->lapack);
        if (!seen)
            put_prototype(b, c);
        single |= library_is_lapack(p->calls[k]) && needs_unpacking(c, TYPE_F32);
        twice |= library_is_lapack(p->calls[k]) && needs_unpacking(c, TYPE_F64);
    }
    if (single)
        put_unpack(b, "float");
    if (twice)
        put_unpack(b, "double");
}

/* ---- the function ---- */

static void put_signature(Buf *b, const LibraryCall *x)
{
    const LapackCall   *c = &x->lapack;
    const LapackBuffer *f;
    buf_printf(b, "static __attribute__((noinline)) void %s(", x->name);
    for (int32_t k = 0; (f = buffer_of(c, true, k)); k++)
        buf_printf(b, "%s%s *%s", k > 0 ? ", " : "", c_type(f->type), f->name);
    for (int32_t k = 0; (f = buffer_of(c, false, k)); k++)
        buf_printf(b, ", %s%s *%s%s", is_overwritten(f) || f->result < 0 ? "const " : "", c_type(f->type), f->name, is_overwritten(f) ? "_in" : "");
    buf_puts(b, x->temp_bytes > 0 ? ", char *memory)\n{\n" : ")\n{\n");
}

static void put_sizes(Buf *b, const LapackCall *c)
{
    bool first = true;
    for (int32_t k = 0; k < c->n_args; k++) {
        bool seen = c->args[k].kind != LAPACK_SIZE;
        for (int32_t e = 0; e < k && !seen; e++)
            seen = strcmp(c->args[e].name, c->args[k].name) == 0;
        if (seen)
            continue;
        buf_printf(b, "%s%s = %lld", first ? "    const int " : ", ", c->args[k].name, (long long)c->args[k].value);
        first = false;
    }
    if (!first)
        buf_puts(b, ";\n");
}

/* Names of what the table writes ~a and #v. */
static const char *suffix(const LapackArg *x)
{
    return x->kind == LAPACK_COPY ? "_copy" : x->kind == LAPACK_PACKED ? "_packed" : "";
}

static void put_memory(Buf *b, const LibraryCall *x)
{
    const LapackCall *c = &x->lapack;
    for (int32_t k = 0; k < c->n_args; k++) {
        const LapackArg *a = &c->args[k];
        const char      *type = c_type(arg_type(c, a));
        if (a->kind == LAPACK_INFO)
            buf_puts(b, "    int32_t info;\n");
        else if (a->kind == LAPACK_ONE)
            buf_printf(b, "    %s alpha = 1;\n", type);
        else if (x->place[k] >= 0)
            buf_printf(b, "    %s *const %s%s = (%s *)(memory + %lld);\n", type, a->name, suffix(a), type, (long long)x->place[k]);
    }
}

/* Some routines leave results as they are: vectors that nobody asked for, everything when they fail. */
static bool leaves_results(const LapackCall *c)
{
    switch (c->id) {
    case LAPACK_GEES: case LAPACK_GEEV: case LAPACK_GESDD: case LAPACK_GESVD: case LAPACK_HEEVD: case LAPACK_SYEVD: return true;
    default: return lapack_is_empty(c);
    }
}

static void put_copies(Buf *b, const LapackCall *c)
{
    for (int32_t k = 0; k < c->n_buffers; k++) {
        const LapackBuffer *f = &c->buffers[k];
        long long           bytes = (long long)all_bytes(c, f);
        if (is_overwritten(f) && bytes > 0)
            buf_printf(b, "    if (%s != %s_in)\n        __builtin_memcpy(%s, %s_in, %lld);\n", f->name, f->name, f->name, f->name, bytes);
        else if (is_overwritten(f))
            buf_printf(b, "    (void)%s, (void)%s_in;\n", f->name, f->name);
        else if (f->result >= 0 && bytes > 0 && leaves_results(c) && (f->rank > 0 || lapack_is_empty(c)))
            buf_printf(b, "    __builtin_memset(%s, 0, %lld);\n", f->name, bytes);
        else if (bytes == 0 || lapack_is_empty(c))
            buf_printf(b, "    (void)%s;\n", f->name);
    }
}

/* Member i of the batch. */
static void put_member(Buf *b, const LapackCall *c, const LapackBuffer *f)
{
    buf_puts(b, f->name);
    if (c->batch > 1 && f->count > 1)
        buf_printf(b, " + %lld * i", (long long)f->count);
    else if (c->batch > 1)
        buf_puts(b, " + i");
}

static void put_argument(Buf *b, const LibraryCall *x, int32_t k)
{
    const LapackCall *c = &x->lapack;
    const LapackArg  *a = &c->args[k];
    switch (a->kind) {
    case LAPACK_OPTION:
        buf_printf(b, "\"%c\"", (char)a->value);
        break;
    case LAPACK_SIZE:
    case LAPACK_INFO:
    case LAPACK_ONE:
        buf_printf(b, "&%s", a->name);
        break;
    case LAPACK_BUFFER:
        if (c->buffers[a->value].result < 0)
            buf_puts(b, "(void *)("); /* read only */
        put_member(b, c, &c->buffers[a->value]);
        buf_puts(b, c->buffers[a->value].result < 0 ? ")" : "");
        break;
    case LAPACK_SECOND:
        put_member(b, c, &c->buffers[a->value]);
        buf_puts(b, " + 1");
        break;
    case LAPACK_NULL:
        buf_puts(b, "(void *)0");
        break;
    default:
        if (x->place[k] >= 0)
            buf_printf(b, "%s%s", a->name, suffix(a));
        else
            buf_puts(b, "(void *)0");
        break;
    }
}

static void put_call(Buf *b, const LibraryCall *x, const char *indent)
{
    const LapackCall *c = &x->lapack;
    int32_t           texts = 0;
    buf_printf(b, "%s%s(", indent, c->symbol);
    for (int32_t k = 0; k < c->n_args; k++) {
        buf_puts(b, k > 0 ? ", " : "");
        put_argument(b, x, k);
        texts += c->args[k].kind == LAPACK_OPTION;
    }
    for (int32_t k = 0; k < texts; k++)
        buf_puts(b, ", 1");
    buf_puts(b, ");");
    for (int32_t k = 0, n = 0; k < c->n_args; k++)
        if (c->args[k].kind == LAPACK_OPTION)
            buf_printf(b, "%s%s", n++ > 0 ? ", " : " // ", c->args[k].name);
    buf_putc(b, '\n');
}

/* The iterations for eigenvalues and singular values may go on for ever on what is not finite. */
static void put_finite(Buf *b, const LapackCall *c, const char *indent)
{
    const LapackBuffer *f = &c->buffers[0];
    const char         *info = c->batch > 1 ? "info[i]" : "info[0]", *real = c_type(lapack_real_type(c->type));
    buf_printf(b, "%s_Bool finite = 1;\n%sfor (int64_t j = 0; j < %lld; j++)\n%s    finite &= __builtin_isfinite(((const %s *)(", indent, indent,
               (long long)(f->count * (type_is_complex(c->type) ? 2 : 1)), indent, real);
    put_member(b, c, f);
    buf_printf(b, "))[j]);\n%sif (!finite) {\n%s    %s = -4;\n%s    %s;\n%s}\n", indent, indent, info, indent, c->batch > 1 ? "continue" : "return",
               indent);
}

static void put_body(Buf *b, const LibraryCall *x, const char *indent)
{
    const LapackCall *c = &x->lapack;
    if (c->finite)
        put_finite(b, c, indent);
    for (int32_t k = 0; k < c->n_args; k++)
        if (c->args[k].kind == LAPACK_COPY) {
            const LapackBuffer *f = &c->buffers[c->args[k].value];
            buf_printf(b, "%s__builtin_memcpy(%s_copy, ", indent, f->name);
            put_member(b, c, f);
            buf_printf(b, ", %lld);\n", (long long)(f->count * type_bytes(f->type)));
        }
    put_call(b, x, indent);
    for (int32_t k = 0; k < c->n_args; k++)
        if (c->args[k].kind == LAPACK_PACKED) {
            const LapackBuffer *v = &c->buffers[c->args[k].value];
            bool                wanted = false;
            for (int32_t e = 0; e < c->n_args; e++)
                wanted |= c->args[e].kind == LAPACK_OPTION && c->args[e].value == 'V' &&
                          strcmp(c->args[e].name, strcmp(v->name, "vl") == 0 ? "compute_left" : "compute_right") == 0;
            if (!wanted)
                continue;
            buf_printf(b, "%sif (%s == 0)\n%s    hlo_unpack_%s(", indent, c->batch > 1 ? "info[i]" : "info[0]", indent, c_type(c->type));
            put_member(b, c, v);
            buf_printf(b, ", %s_packed, ", v->name);
            put_member(b, c, &c->buffers[lapack_buffer(c, "wi")]);
            buf_puts(b, ", n);\n");
        }
}

void target_c_library(Buf *b, const LibraryCall *x)
{
    const LapackCall *c = &x->lapack;
    bool              calls = !lapack_is_empty(c) && c->batch > 0;
    c_origin(b, x->inst);
    put_signature(b, x);
    if (calls) {
        put_sizes(b, c);
        put_memory(b, x);
    } else if (x->temp_bytes > 0)
        buf_puts(b, "    (void)memory;\n");
    put_copies(b, c);
    if (calls && c->batch > 1) {
        buf_printf(b, "    for (int64_t i = 0; i < %lld; i++) {\n", (long long)c->batch);
        put_body(b, x, "        ");
        buf_puts(b, "    }\n");
    } else if (calls)
        put_body(b, x, "    ");
    buf_puts(b, "}\n");
}

void target_c_library_call(Buf *b, const LibraryCall *x, const char *const *args)
{
    const LapackCall *c = &x->lapack;
    int32_t           n_operands = 0, n_results = 0;
    while (buffer_of(c, false, n_operands))
        n_operands++;
    while (buffer_of(c, true, n_results))
        n_results++;
    buf_printf(b, "%s(", x->name);
    for (int32_t k = 0; k < n_results; k++)
        buf_printf(b, "%s%s", k > 0 ? ", " : "", args[n_operands + k]);
    for (int32_t k = 0; k < n_operands; k++)
        buf_printf(b, ", %s", args[k]);
    if (x->temp_bytes > 0)
        buf_printf(b, ", %s", args[n_operands + n_results]);
    buf_puts(b, ");");
}
