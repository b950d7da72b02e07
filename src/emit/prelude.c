/* What kernels call, put in front of them: only what is used, each thing once, what a helper itself calls before it.
 * What is no helper (helpers.h) is a function of libm and gets its prototype. */
#include "emit/beside.h"
#include "emit/dialect.h"
#include "emit/c_text.h"
#include "emit/fetch_ahead.h"
#include "emit/helpers.h"
#include "emit/loop_halves.h"
#include "emit/loop_parts.h"

#include <math.h>
#include <string.h>

/* (cpowf loses digits: complex power goes through double.) Functions of libm with their arity, and whether libmvec has them for vectors. */
static const struct { const char *name; int arity; bool vector; } libm[] = {
    { "atan", 1, true }, { "acos", 1, true }, { "acosh", 1, true }, { "asin", 1, true }, { "asinh", 1, true }, { "atanh", 1, true }, { "cbrt", 1, true },
    { "cos", 1, true }, { "cosh", 1, true }, { "erf", 1, true }, { "exp", 1, true }, { "exp2", 1, true }, { "expm1", 1, true },
    { "log", 1, true }, { "log2", 1, true }, { "log1p", 1, true }, { "sin", 1, true }, { "sinh", 1, true }, { "tan", 1, true },
    { "tanh", 1, true }, { "atan2", 2, true }, { "pow", 2, true }, { "fabs", 1, false }, { "sqrt", 1, false }, { "floor", 1, false },
    { "ceil", 1, false }, { "round", 1, false }, { "rint", 1, false }, { "trunc", 1, false }, { "fmod", 2, false },
    { "copysign", 2, false },
};

typedef struct Prelude {
    Arena    *arena;
    const Dialect *dialect;
    Interner *strings;
    Map       done;
    Buf       prototypes, text; /* of libm; helpers */
    bool      vectors;     /* some prototype says HLO_VECTOR */
    bool      independent; /* some loop wants HLO_INDEPENDENT */
    bool      rolled;      /* some loop wants HLO_ROLLED */
    bool      unrolled;    /* some loop wants HLO_UNROLLED */
    bool      in_turn;     /* some loop wants HLO_IN_TURN */
    bool      within;      /* some helper is HLO_WITHIN */
    bool      halves;      /* some loop has numbers of type hlo_half */
    bool           idle; /* what is needed is so in one form of what needs it only */
} Prelude;

static void need(Prelude *p, const char *name);

static const char *int_name(bool is_signed, int bits)
{
    static const char *const names[2][4] = { { "uint8_t", "uint16_t", "uint32_t", "uint64_t" }, { "int8_t", "int16_t", "int32_t", "int64_t" } };
    return names[is_signed][bits <= 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3];
}

static const char *wide_name(bool is_signed, int bits)
{
    return bits == 64 ? (is_signed ? "__int128" : "unsigned __int128") : int_name(is_signed, bits * 2 < 16 ? 16 : bits * 2);
}

static void put_bound(Buf *b, Type t, bool high)
{
    int  bits = type_bits(t);
    bool is_signed = type_is_signed_int(t);
    if (!high && !is_signed)
        buf_putc(b, '0');
    else if (bits == 64)
        buf_puts(b, !high ? "(-9223372036854775807 - 1)" : is_signed ? "9223372036854775807" : "18446744073709551615u");
    else {
        int64_t end = (int64_t)1 << (is_signed ? bits - 1 : bits);
        if (!high && bits == 32)
            buf_puts(b, "(-2147483647 - 1)");
        else
            buf_printf(b, "%lld%s", (long long)(high ? end - 1 : -end), bits == 32 && !is_signed ? "u" : "");
    }
}

static int float_kind(Type t)
{
    switch (type_info[t].specials) {
    case SPECIALS_FN: return 1;
    case SPECIALS_FNUZ: return 2;
    case SPECIALS_FINITE: return 3;
    default: return 0;
    }
}

/* The text of a row for type t. */
static void put_text(Buf *b, const Dialect *dialect, const char *s, Type t)
{
    static const char *const words[] = { "LO", "HI", "END", "T", "U", "M", "W", "N", "Q", "X", "R", "P", "E", "B", "K", "f", "C" };
    bool is_signed = type_is_signed_int(t), single = type_component(t) == TYPE_F32;
    int  bits = type_bits(t);
    for (; *s; s++) {
        if (*s != '$') {
            buf_putc(b, *s);
            continue;
        }
        size_t w = 0;
        while (strncmp(s + 1, words[w], strlen(words[w])) != 0)
            w++;
        s += strlen(words[w]);
        switch (words[w][0]) {
        case 'L': put_bound(b, t, false); break;
        case 'H': put_bound(b, t, true); break;
        case 'T':
            buf_puts(b, t == TYPE_PRED ? dialect->boolean : type_is_int(t) ? int_name(is_signed, bits) : type_is_complex(t) ? (single ? "float _Complex" : "double _Complex") : single ? "float" : "double");
            break;
        case 'U': buf_puts(b, int_name(false, bits)); break;
        case 'M': buf_puts(b, int_name(false, bits < 32 ? 32 : bits)); break;
        case 'W': buf_puts(b, wide_name(is_signed, bits)); break;
        case 'N': buf_printf(b, "%d", bits); break;
        case 'Q': buf_puts(b, bits < 32 ? "float" : "double"); break;
        case 'X': buf_puts(b, type_name(t)); break;
        case 'R': buf_puts(b, single ? "float" : "double"); break;
        case 'P': buf_puts(b, dialect->boolean); break;
        case 'C': buf_puts(b, type_name(type_component(t))); break;
        case 'B': buf_printf(b, "%d", type_info[t].man); break;
        case 'K': buf_printf(b, "%d, %d", type_info[t].bias, float_kind(t)); break;
        case 'f': buf_puts(b, single ? "f" : ""); break;
        case 'E':
            if (words[w][1] == '\0')
                buf_printf(b, "%d", type_info[t].exp);
            else
                buf_printf(b, "%.1f", ldexp(1.0, is_signed ? bits - 1 : bits));
            break;
        default: die("no such word in a helper");
        }
    }
}

static bool class_fits(HelperClass c, Type t)
{
    switch (c) {
    case H_SIGNED: return type_is_signed_int(t);
    case H_UNSIGNED: return type_is_unsigned_int(t);
    case H_INT: return type_is_int(t);
    case H_FLOAT: return t == TYPE_F32 || t == TYPE_F64;
    case H_COMPLEX: return type_is_complex(t);
    case H_ANY: return true;
    default: return false;
    }
}

/* The type that row h is used with when it is called name, TYPE_COUNT when it is another's name. */
static Type match(const Helper *h, const char *name)
{
    size_t n = strlen(name), m = strlen(h->name);
    Type   t = TYPE_COUNT;
    switch (h->cls) {
    case H_EXACT: case H_WHOLE: return strcmp(name, h->name) == 0 ? TYPE_F32 : TYPE_COUNT;
    case H_SMALL: {
        size_t before = strcspn(h->name, "$"), after = m - before - 1;
        if (n <= m - 1 || strncmp(name, h->name, before) != 0 || strcmp(name + n - after, h->name + before + 1) != 0)
            return TYPE_COUNT;
        t = type_lookup(name + before, n - before - after);
        return t != TYPE_COUNT && type_is_float(t) && type_bits(t) <= 8 ? t : TYPE_COUNT;
    }
    case H_TO_INT: case H_TO_SHORT:
        if (strncmp(name, h->name, m) == 0)
            t = type_lookup(name + m, n - m);
        return t != TYPE_COUNT && type_is_int(t) && (h->cls == H_TO_INT || type_bits(t) <= 16) ? t : TYPE_COUNT;
    default:
        if (strncmp(name, h->name, m) == 0 && name[m] == '_')
            t = type_lookup(name + m + 1, n - m - 1);
        return t != TYPE_COUNT && class_fits(h->cls, t) ? t : TYPE_COUNT;
    }
}

/* Each of the names in a row's needs: $ is the type, @ its parts', # the suffix of libm. */
static void need_all(Prelude *p, const char *needs, Type t)
{
    Buf name = { 0 };
    for (const char *s = needs; *s; s++) {
        if (*s == '$')
            buf_puts(&name, type_name(t));
        else if (*s == '#')
            buf_puts(&name, type_component(t) == TYPE_F32 ? "f" : "");
        else if (*s == '@')
            buf_puts(&name, type_name(type_component(t)));
        else if (*s != ' ')
            buf_putc(&name, *s);
        if (s[1] == ' ' || s[1] == '\0') {
            need(p, name.p);
            buf_clear(&name);
        }
    }
    buf_free(&name);
}

/* fn is base, with f behind it for float, c before it for complex. */
static void prototype(Prelude *p, const char *fn)
{
    if (strcmp(fn, "cabsf") == 0 || strcmp(fn, "cabs") == 0) {
        bool single = fn[4] == 'f';
        buf_printf(&p->prototypes, "%s %s(%s _Complex);\n", single ? "float" : "double", fn, single ? "float" : "double");
        return;
    }
    for (int complex = 0; complex < 2; complex++)
        for (size_t k = 0; k < sizeof libm / sizeof libm[0]; k++) {
            const char *base = fn + complex;
            size_t      n = strlen(libm[k].name);
            if ((complex && fn[0] != 'c') || strncmp(base, libm[k].name, n) != 0 || (base[n] != '\0' && strcmp(base + n, "f") != 0))
                continue;
            const char *real = base[n] ? "float" : "double", *imag = complex ? " _Complex" : "";
            bool        vector = libm[k].vector && !complex;
            buf_printf(&p->prototypes, "%s%s%s %s(%s%s", vector ? "HLO_VECTOR " : "", real, imag, fn, real, imag);
            buf_printf(&p->prototypes, libm[k].arity == 2 ? ", %s%s);\n" : ");\n", real, imag);
            p->vectors |= vector;
            return;
        }
    die("no helper and no function of libm is called %s", fn);
}

#define FOR_PROCESSORS "#if defined __GNUC__ && !defined __CUDACC__\n"

/* Without what is for processors, which is all of such a function that needs others. */
static bool is_shorter(const Prelude *p, const Helper *h)
{
    return p->dialect->form && strstr(h->text, FOR_PROCESSORS);
}

static const char *shorter_text(Arena *a, const char *text)
{
    const char *from = strstr(text, FOR_PROCESSORS), *end = "#endif\n", *to = strstr(from, end) + strlen(end);
    return arena_printf(a, "%.*s%s", (int)(from - text), text, to);
}

/* "... {\n body }\n", behind the form that the dialect has of it. */
static void put_helper(Prelude *p, const Helper *h, Type t)
{
    const char *form = p->dialect->form ? p->dialect->form(h->name) : NULL;
    if (!form) {
        put_text(&p->text, p->dialect, is_shorter(p, h) ? shorter_text(p->arena, h->text) : h->text, t);
        return;
    }
    const char *body = strstr(h->text, "{\n") + 2;
    put_text(&p->text, p->dialect, arena_printf(p->arena, "%.*s%s", (int)(body - h->text), h->text, form), t);
    put_text(&p->text, p->dialect, arena_printf(p->arena, "%.*s#endif\n}\n", (int)strlen(body) - 2, body), t);
}

static void need(Prelude *p, const char *name)
{
    const char *key = intern_str(p->strings, name);
    if (map_has(&p->done, key) || strncmp(name, "__builtin_", 10) == 0)
        return;
    map_put(&p->done, key, p);
    const Helper *h;
    for (size_t k = 0; (h = helper_at(k)); k++) {
        Type t = match(h, name);
        if (t == TYPE_COUNT)
            continue;
        const bool idle = p->idle;
        p->idle |= p->dialect->form && p->dialect->form(h->name);
        if (!is_shorter(p, h))
            need_all(p, h->needs, t);
        p->idle = idle;
        buf_puts(&p->text, idle && p->dialect->helper[0] != '[' ? "\n[[maybe_unused]] " : "\n");
        p->vectors |= h->cls == H_WHOLE;
        const bool within = p->dialect->hints && strstr(h->name, "_block_");
        p->within |= within;
        if (h->cls != H_WHOLE)
            buf_printf(&p->text, within ? "%s HLO_WITHIN " : "%s ", p->dialect->helper);
        put_helper(p, h, t);
        return;
    }
    if (p->dialect->prototypes)
        prototype(p, name);
}

static void need_index(Prelude *p, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        const IxAtom *y = x->t[i].atom;
        int64_t       lo, hi;
        if (!y->arg)
            continue;
        ix_range(y->arg, &lo, &hi);
        if (lo < 0)
            need(p, y->kind == IX_DIV ? "floor_div" : "floor_mod");
        need_index(p, y->arg);
    }
}

static bool is_complex_call(const KExpr *x)
{
    return type_is_complex(x->type) || (x->n > 0 && type_is_complex(x->arg[0]->type));
}

const char *dialect_helper(size_t *at)
{
    for (const Helper *h; (h = helper_at(*at));) {
        ++*at;
        if (h->cls == H_EXACT || h->cls == H_WHOLE)
            return h->name;
    }
    return NULL;
}

const char *dialect_function(const Dialect *d, const KExpr *x)
{
    static const char *const own[][2] = {
        { "expf", "exp_f32" }, { "expm1f", "expm1_f32" }, { "tanhf", "tanh_f32" }, { "erff", "erf_f32" }, { "tanh", "tanh_f64" },
        { "exp", "exp_f64" }, { "logf", "log_f32" }, { "log1pf", "log1p_f32" }, { "rsqrtf", "rsqrt_f32" }, { "atanf", "atan_f32" }, { "fmodf", "rem_f32" }, { "fmod", "rem_f64" },
        { "sinf", "sin_f32" }, { "cosf", "cos_f32" }, { "sin", "sin_f64" }, { "cos", "cos_f64" },
        { "cabsf", "abs_c64" }, { "cabs", "abs_c128" }, { "csqrt", "sqrt_c128" }, { "cexpf", "exp_c64" }, { "clogf", "log_c64" }, { "csqrtf", "sqrt_c64" }, { "csinf", "sin_c64" }, { "ccosf", "cos_c64" },
        { "ctanf", "tan_c64" }, { "csinhf", "sinh_c64" }, { "ccoshf", "cosh_c64" }, { "ctanhf", "tanh_c64" },
    };
    if (x->kind == KX_BINARY && x->op == KOP_MUL && type_is_complex(x->type) && !d->complex_function)
        return x->type == TYPE_C64 ? "mul_c64" : "mul_c128";
    if (x->kind == KX_BINARY && x->op == KOP_DIV && type_is_complex(x->type) && !d->complex_function)
        return x->type == TYPE_C64 ? "div_c64" : "div_c128";
    if (x->kind != KX_CALL)
        return NULL;
    for (size_t k = 0; k < sizeof own / sizeof own[0] && d->own_math; k++)
        if (strcmp(x->fn, own[k][0]) == 0)
            return own[k][1];
    return d->complex_function && is_complex_call(x) ? d->complex_function(x->fn) : x->fn;
}

static void need_expr(void *cookie, const KExpr *x)
{
    Prelude *p = cookie;
    const char *fn = dialect_function(p->dialect, x);
    if (fn && !(p->dialect->complex_function && is_complex_call(x)))
        need(p, fn);
    need_index(cookie, x->index);
}

static void need_half_expr(Prelude *p, const KExpr *x)
{
    const char *fn = half_function(x);
    if (fn)
        need(p, fn);
    for (int32_t k = 0; k < x->n; k++)
        need_half_expr(p, x->arg[k]);
}

/* What steps call, and what makes one type of the other. */
static void need_halves(Prelude *p, const KStmt *s, const LoopBlocks *b)
{
    const LoopRounds *r = &b->rounds;
    int32_t           k = 0;
    p->halves |= r->halves;
    for (int32_t i = 0; i < b->n_in && r->halves; i++) {
        if (b->in[i].as_f16)
            need(p, "half_block_load");
        if (b->in[i].as_f16 && b->in[i].as_f32)
            need(p, "half_block_to_f32");
    }
    for (const KStmt *t = s->body->first; t && (r->n_steps > 1 || r->halves); t = t->next, k++) {
        const bool half = r->role[k] & ROUND_HALF, other = !half && r->role[k] & ROUND_AS_F16;
        if (half)
            need_half_expr(p, t->value);
        if (r->role[k] & ROUND_BLOCK || other)
            need(p, half ? "half_block_round" : other ? "half_block_of_f32" : "f16_block_round");
        if (r->role[k] & ROUND_AS_F32 && (half || other))
            need(p, "half_block_to_f32");
    }
}

static bool has_rolled_piece(const LoopBlocks *b)
{
    bool rolled = false;
    for (int64_t from = 0; from < b->size && !rolled;)
        from += loop_piece(b, from, &rolled);
    return rolled;
}

static void need_alone(void *cookie, const KExpr *x)
{
    Prelude    *p = cookie;
    const char *fn = dialect_function(p->dialect, x);
    if (fn && function_alone(fn) != fn)
        need(p, function_alone(fn));
}

static void need_blocks(Prelude *p, const KStmt *s)
{
    LoopBlocks b;
    for (int32_t k = 0; p->dialect->hints && k < s->n_fetched; k++)
        need(p, kernel_fetching_function(&s->fetched[k]));
    if (s->turning && p->dialect->blocks) {
        need(p, turning_function(s->turning));
        return;
    }
    if (s->kind != KS_FOR || !p->dialect->blocks || !loop_blocks(s, &b))
        return;
    LoopBlocks small;
    loop_small_blocks(s, &b, &small); /* which there are where the loop's range is shared, too */
    p->rolled |= loop_rolls_places(&b) || has_rolled_piece(&b) || has_rolled_piece(&small);
    need_halves(p, s, &b);
    if (loop_rest_is_alone(s, &b) || loop_shared_is_alone(&b))
        kernel_visit(s->body, &(KVisitor){ need_alone, NULL, p });
    for (int32_t k = 0; k < b.n_in; k++)
        if (!b.in[k].as_f16)
            need(p, block_as_f32(&b.in[k]));
    for (int32_t k = 0; k < b.n_fetched; k++)
        need(p, fetching_function(&b.fetched[k]));
    for (int32_t k = 0; k < b.taken.n; k++) {
        need(p, arena_printf(p->arena, b.taken.v[k].by ? "hlo_step_%s" : "hlo_take_%s", type_name(storage_type(b.taken.v[k].array->type))));
        if (b.taken.v[k].half)
            need(p, "f16_block_to_f32");
    }
    for (int32_t k = 0; k < b.n_out; k++) {
        if (loop_joins(&b, &b.out[k]))
            need(p, "float_block_join");
        if (b.out[k].half)
            need(p, b.out[k].array->type == TYPE_BF16 ? "f32_block_to_bf16" : b.out[k].as_f16 ? "half_block_store" : "f32_block_to_f16");
        if (b.out[k].streamed)
            need(p, "store_past_caches");
    }
}

static void need_update(Prelude *p, const KStmt *s)
{
    Arena            *a = arena_new();
    const char *const names[] = { dialect_update_function(s), dialect_update_code(a, s, true), dialect_update_code(a, s, false) };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k])
            need(p, names[k]);
    arena_free(a);
}

static void need_stmt(void *cookie, const KStmt *s)
{
    Prelude  *p = cookie;
    LoopParts l;
    need_index(p, s->index);
    need_index(p, s->from);
    need_index(p, s->end);
    if (s->kind == KS_FOR && kernel_loop_is_independent(s))
        p->independent = true;
    need_blocks(p, s);
    if (s->kind == KS_STORE && dialect_is_update(s))
        need_update(p, s);
    p->rolled |= s->rolled || (s->kind == KS_FOR && loop_in_parts(s, &l));
    p->unrolled |= s->unrolled;
    p->in_turn |= s->in_turn;
}

static const char vector_macro[] =
    "\n/* libm's functions have forms for vectors; gcc wants to be told. */\n"
    "#if defined __GNUC__ && !defined __clang__ && defined __x86_64__ && defined __gnu_linux__ && !defined HLO_NO_LIBMVEC\n"
    "#define HLO_VECTOR __attribute__((simd(\"notinbranch\")))\n"
    "#else\n"
    "#define HLO_VECTOR\n"
    "#endif\n";

static const char half_type[] =
    "\n/* What is rounded to f16 between operations, in blocks: f16 where the processor computes with that and gcc makes vectors of it. */\n"
    "#if defined __AVX512FP16__ && defined __GNUC__ && !defined __clang__\n"
    "#define HLO_HALF\n"
    "typedef _Float16 hlo_half;\n"
    "#else\n"
    "typedef float hlo_half;\n"
    "#endif\n";

static const char within_macro[] =
    "\n/* Of blocks, whose size is known, a few instructions are left; where there are many gcc would make functions of them. */\n"
    "#if defined __GNUC__\n"
    "#define HLO_WITHIN __attribute__((always_inline))\n"
    "#else\n"
    "#define HLO_WITHIN\n"
    "#endif\n";

static const char independent_macro[] =
    "\n/* A result may be an operand's own place, element by element: the loop's iterations do not depend on each other. */\n"
    "#if defined __GNUC__ && !defined __clang__\n"
    "#define HLO_INDEPENDENT _Pragma(\"GCC ivdep\")\n"
    "#else\n"
    "#define HLO_INDEPENDENT\n"
    "#endif\n";

static const char rolled_macro[] =
    "\n/* Short loops with choices, or with several stores: gcc unrolls them before it makes vectors, and finds none afterwards; before 12.4 and 13.3 it mixes up lanes there (PR 114375). */\n"
    "#if defined __GNUC__ && !defined __clang__\n"
    "#define HLO_ROLLED _Pragma(\"GCC unroll 1\")\n"
    "#else\n"
    "#define HLO_ROLLED\n"
    "#endif\n";

static const char unrolled_macro[] =
    "\n/* Loops that change one element after the other, of which no vectors are made: gcc leaves them as they are. */\n"
    "#if defined __GNUC__ && !defined __clang__\n"
    "#define HLO_UNROLLED _Pragma(\"GCC unroll 4\")\n"
    "#else\n"
    "#define HLO_UNROLLED\n"
    "#endif\n";

static const char in_turn_macro[] =
    "\n/* A loop whose trips go through the same lanes: gcc would make two trips one, and then finds no vectors where both write to memory. */\n"
    "#if defined __GNUC__ && !defined __clang__\n"
    "#define HLO_IN_TURN __asm__ volatile(\"\")\n"
    "#else\n"
    "#define HLO_IN_TURN (void)0\n"
    "#endif\n";

static bool have_misread_table(int32_t n, const Kernel *const *kernels)
{
    for (int32_t k = 0; k < n; k++)
        for (int32_t i = 0; i < kernels[k]->n_arrays; i++) {
            const KArray *x = kernels[k]->arrays[i];
            if (x->kind == KARRAY_CONST && strcmp(c_table(x->literal->data, x->count * type_bytes(x->type), type_bytes(x->type)), "const") != 0)
                return true;
        }
    return false;
}

void dialect_prelude(Buf *b, const Dialect *d, int32_t n, const Kernel *const *kernels)
{
    Arena  *a = arena_new();
    Prelude p = { .arena = a, .dialect = d, .strings = interner_new(a), .done = map_new(a) };
    for (int32_t k = 0; k < n; k++) {
        KVisitor v = { need_expr, need_stmt, &p };
        kernel_visit(kernels[k]->body, &v);
    }
    for (const char *const *name = d->called; name && *name; name++)
        need(&p, *name);
    if (p.vectors)
        buf_puts(b, vector_macro);
    if (p.halves)
        buf_puts(b, half_type);
    if (p.within)
        buf_puts(b, within_macro);
    if (p.independent && d->hints)
        buf_puts(b, independent_macro);
    if (p.rolled && d->hints)
        buf_puts(b, rolled_macro);
    if (p.unrolled && d->hints)
        buf_puts(b, unrolled_macro);
    if (p.in_turn && d->hints)
        buf_puts(b, in_turn_macro);
    if (d->hints && have_misread_table(n, kernels)) {
        buf_putc(b, '\n');
        buf_puts(b, c_table_macro);
    }
    if (p.prototypes.n)
        buf_putc(b, '\n');
    buf_put(b, p.prototypes.p, p.prototypes.n);
    buf_put(b, p.text.p, p.text.n);
    buf_free(&p.prototypes);
    buf_free(&p.text);
    arena_free(a);
}
