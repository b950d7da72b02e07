/* Reads lapack.def: the description of a routine, word by word, against the shapes and options of an instruction. */
#include "ir/lapack.h"

#include <string.h>

#include "ir/call_options.h"

enum { MOST_OPTIONS = 4, MOST_ELEMENTS = 1 << 28, BLOCK = 32, HESSENBERG_BLOCK = 65 * 64 };

typedef struct Routine {
    LapackId    id;
    const char *types, *name, *operands, *results, *options, *arguments;
} Routine;

static const Routine routines[] = {
#define LAPACK(id, types, name, operands, results, options, arguments) { LAPACK_##id, types, name, operands, results, options, arguments },
#include "ir/lapack.def"
#undef LAPACK
};

typedef struct Check {
    Arena         *arena;
    const Inst    *inst;
    const Routine *routine;
    LapackCall    *call;
    CallOptions    written;
    int32_t        n_options, n_batch;
    struct { const char *name; int64_t value; } options[MOST_OPTIONS];
    const int64_t *batch;  /* dimensions */
    int64_t        size[128]; /* of a letter, -1: not known yet */
    const char    *why;
} Check;

static void refuse(Check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void refuse(Check *c, const char *fmt, ...)
{
    va_list ap;
    if (c->why)
        return;
    va_start(ap, fmt);
    c->why = arena_vprintf(c->arena, fmt, ap);
    va_end(ap);
}

/* ---- words of the table ---- */

/* The next word of *s, "" at the end. */
static const char *next_word(Arena *a, const char **s)
{
    *s += strspn(*s, " ");
    size_t      n = strcspn(*s, " ");
    const char *w = arena_strndup(a, *s, n);
    *s += n;
    return w;
}

/* "a:tmn" to "a" and "tmn". */
static const char *split(Arena *a, const char *w, const char **rest)
{
    size_t n = strcspn(w, ":");
    *rest = w + n + (w[n] == ':');
    return arena_strndup(a, w, n);
}

static const Routine *find_routine(const char *target, char *letter)
{
    size_t n = strlen(target);
    if (strncmp(target, "lapack_", 7) != 0 || n < 12 || strcmp(target + n - 4, "_ffi") != 0)
        return NULL;
    for (size_t k = 0; k < sizeof routines / sizeof *routines; k++) {
        const Routine *r = &routines[k];
        *letter = target[7];
        if (strchr(r->types, *letter) && n - 12 == strlen(r->name) && strncmp(target + 8, r->name, n - 12) == 0)
            return r;
    }
    return NULL;
}

bool lapack_known(const char *target)
{
    char letter;
    return target && find_routine(target, &letter);
}

Type lapack_real_type(Type t)
{
    return t == TYPE_C64 ? TYPE_F32 : t == TYPE_C128 ? TYPE_F64 : t;
}

static Type type_of(const Check *c, char letter)
{
    Type t = c->call->type, r = lapack_real_type(t);
    switch (letter) {
    case 't': return t;
    case 'r': return r;
    case 'c': return r == TYPE_F32 ? TYPE_C64 : TYPE_C128;
    case 'i': return TYPE_S32;
    default: die("lapack.def has no type %c", letter);
    }
}

/* ---- options ---- */

static bool is_option(const Check *c, const char *name)
{
    for (int32_t k = 0; k < c->n_options; k++)
        if (strcmp(c->options[k].name, name) == 0)
            return true;
    return false;
}

static int64_t option(const Check *c, const char *name)
{
    for (int32_t k = 0; k < c->n_options; k++)
        if (strcmp(c->options[k].name, name) == 0)
            return c->options[k].value;
    die("lapack.def has no option %s", name);
}

/* A letter comes as its number or as a text of one letter. */
static void read_option(Check *c, const char *name, const char *allowed)
{
    const CallOption *o = call_option(&c->written, name);
    if (!o) {
        refuse(c, "its backend_config says no %s", name);
        return;
    }
    int64_t v = !o->is_number && strlen(o->text) == 1 ? o->text[0] : o->number;
    bool    ok = o->is_number || strlen(o->text) == 1;
    if (allowed[0] == '#')
        ok = o->is_number && v >= INT32_MIN && v <= INT32_MAX;
    else if (allowed[0] == '?') {
        ok = o->is_number && (v == 0 || v == 1);
        v = ok ? allowed[1 + v] : 0;
    } else
        ok = ok && v > 0 && v < 128 && strchr(allowed, (int)v);
    if (!ok)
        refuse(c, "its backend_config has %s = %s, which is none of its values", name, o->text);
    c->options[c->n_options].name = name;
    c->options[c->n_options++].value = v;
}

static void read_options(Check *c)
{
    const char *s = c->routine->options, *w, *allowed;
    if (!call_options_read(c->arena, c->inst, &c->written)) {
        refuse(c, "its backend_config is no dictionary");
        return;
    }
    while (*(w = next_word(c->arena, &s))) {
        const char *name = split(c->arena, w, &allowed);
        read_option(c, name, allowed);
    }
    for (int32_t k = 0; k < c->written.n; k++)
        if (!is_option(c, c->written.v[k].name))
            refuse(c, "its backend_config has %s, an option that it does not take", c->written.v[k].name);
}

/* ---- shapes ---- */

/* Whether a dimension is what its letter says; the first one of a letter says it. */
static bool size_is(Check *c, char letter, int64_t n)
{
    int64_t *known = &c->size[(unsigned char)letter];
    if (letter == 's')
        *known = c->size['m'] < c->size['n'] ? c->size['m'] : c->size['n'];
    if (letter == 'h')
        *known = c->size['n'] > 0 ? c->size['n'] - 1 : 0;
    if (*known < 0)
        *known = n;
    return *known == n;
}

static bool shape_fits(Check *c, const Shape *s, const char *letters)
{
    int32_t rank = (int32_t)strlen(letters) - 1;
    if (!shape_is_array(s) || shape_is_dynamic(s) || s->type != type_of(c, letters[0]) || s->rank < rank)
        return false;
    if (!c->batch) {
        c->batch = s->dims;
        c->n_batch = s->rank - rank;
    }
    bool ok = s->rank == c->n_batch + rank;
    for (int32_t k = 0; ok && k < s->rank; k++)
        ok = k < c->n_batch ? s->dims[k] == c->batch[k] : s->dims[k] <= INT32_MAX && size_is(c, letters[1 + k - c->n_batch], s->dims[k]);
    return ok;
}

static void set_buffer(const Shape *s, const char *letters, LapackBuffer *b)
{
    b->type = s->type;
    b->rank = (int32_t)strlen(letters) - 1;
    b->rows = b->rank > 0 ? s->dims[s->rank - b->rank] : 1;
    b->columns = b->rank > 1 ? s->dims[s->rank - 1] : 1;
    b->count = b->rows * b->columns;
}

int32_t lapack_buffer(const LapackCall *call, const char *name)
{
    for (int32_t k = 0; k < call->n_buffers; k++)
        if (strcmp(call->buffers[k].name, name) == 0)
            return k;
    return -1;
}

static const Shape *result_shape(const Inst *i, int32_t k)
{
    return shape_is_tuple(i->shape) ? i->shape->elems[k] : i->shape;
}

static int32_t count_words(const char *s)
{
    int32_t n = *s != '\0';
    for (; *s; s++)
        n += *s == ' ';
    return n;
}

static void read_operands(Check *c)
{
    const char *s = c->routine->operands, *w, *letters;
    int32_t     n = count_words(s);
    if (c->inst->n_operands != n)
        refuse(c, "it takes %d operand%s, not %d", n, n == 1 ? "" : "s", c->inst->n_operands);
    for (int32_t k = 0; !c->why && *(w = next_word(c->arena, &s)); k++) {
        const char  *name = split(c->arena, w, &letters);
        const Shape *shape = inst_operand(c->inst, k)->shape;
        if (!shape_fits(c, shape, letters)) {
            refuse(c, "it does not take %s as operand %d", shape_brief(c->arena, shape), k);
            return;
        }
        LapackBuffer *b = &c->call->buffers[c->call->n_buffers++];
        *b = (LapackBuffer){ .name = name, .operand = k, .result = -1 };
        set_buffer(shape, letters, b);
    }
}

static void read_results(Check *c)
{
    const char *s = c->routine->results, *w, *letters;
    int32_t     n = count_words(s), given = shape_is_tuple(c->inst->shape) ? c->inst->shape->n_elems : 1;
    if (given != n)
        refuse(c, "it has %d result%s, not %d", n, n == 1 ? "" : "s", given);
    for (int32_t k = 0; !c->why && *(w = next_word(c->arena, &s)); k++) {
        const char  *name = split(c->arena, w, &letters);
        const Shape *shape = result_shape(c->inst, k);
        if (!shape_fits(c, shape, letters)) {
            refuse(c, "its result %d is not %s", k, shape_brief(c->arena, shape));
            return;
        }
        int32_t at = lapack_buffer(c->call, name);
        if (at < 0) {
            at = c->call->n_buffers++;
            c->call->buffers[at] = (LapackBuffer){ .name = name, .operand = -1 };
            set_buffer(shape, letters, &c->call->buffers[at]);
        }
        c->call->buffers[at].result = k;
    }
}

/* What the letters do not say. */
static void check_sizes(Check *c)
{
    const int64_t *z = c->size;
    int64_t        low, high, least = z['m'] < z['n'] ? z['m'] : z['n'];
    bool           full;
    switch (c->routine->id) {
    case LAPACK_GEHRD:
        low = option(c, "low");
        high = option(c, "high");
        if (z['n'] > 0 ? low < 1 || high < low || high > z['n'] : low != 1 || high != 0)
            refuse(c, "low = %lld, high = %lld are no part of %lld rows", (long long)low, (long long)high, (long long)z['n']);
        break;
    case LAPACK_GESDD:
    case LAPACK_GESVD:
        full = option(c, "mode") == 'A';
        if (option(c, "mode") != 'N' && (z['u'] != (full ? z['m'] : least) || z['v'] != (full ? z['n'] : least)))
            refuse(c, "with mode '%c' its vectors have other shapes", (char)option(c, "mode"));
        break;
    case LAPACK_ORGQR:
        if (z['k'] > z['n'] || z['n'] > z['m'])
            refuse(c, "it makes %lld columns of %lld rows from %lld reflectors", (long long)z['n'], (long long)z['m'], (long long)z['k']);
        break;
    case LAPACK_ORMQR:
        if (z['q'] != (option(c, "left") == 'L' ? z['m'] : z['n']) || z['k'] > z['q'])
            refuse(c, "its reflectors do not fit the side they are multiplied from");
        break;
    case LAPACK_TRSM:
        if (z['q'] != (option(c, "side") == 'L' ? z['m'] : z['n']))
            refuse(c, "its triangle does not fit the side it stands on");
        break;
    default:
        break;
    }
    for (int32_t k = 0; k < c->call->n_buffers && c->call->buffers[k].operand >= 0; k++)
        if (c->call->buffers[k].count > MOST_ELEMENTS)
            refuse(c, "a matrix of more than %d elements is too large for LAPACK's 32-bit sizes", MOST_ELEMENTS);
}

/* ---- working memory ---- */

/* In elements: the documented least, and for blocked algorithms 32 columns more (Hessenberg reduction wants 65 * 64 besides). */
static void set_work(const Check *c)
{
    LapackCall *x = c->call;
    bool        complex = type_is_complex(x->type), vectors;
    int64_t     m = c->size['m'], n = c->size['n'], mn = m < n ? m : n, mx = m < n ? n : m, blocks = BLOCK * (m + n);
    switch (x->id) {
    case LAPACK_GEEV:
        x->work = 4 * n + BLOCK * n + HESSENBERG_BLOCK;
        x->rwork = complex ? 2 * n : 0;
        break;
    case LAPACK_GEES:
        x->work = 3 * n + BLOCK * n + HESSENBERG_BLOCK;
        x->rwork = complex ? n : 0;
        break;
    case LAPACK_GEHRD:
        x->work = BLOCK * n + HESSENBERG_BLOCK;
        break;
    case LAPACK_GEQP3:
        x->work = 2 * n + BLOCK * (n + 1);
        x->rwork = complex ? 2 * n : 0;
        break;
    case LAPACK_GEQRF:
    case LAPACK_ORGQR:
        x->work = BLOCK * n;
        break;
    case LAPACK_ORMQR:
        x->work = BLOCK * (m > n ? m : n) + HESSENBERG_BLOCK;
        break;
    case LAPACK_GESDD:
        vectors = option(c, "mode") != 'N';
        if (complex) {
            x->work = (vectors ? mn * mn : 0) + 3 * mn + mx + blocks;
            x->rwork = !vectors ? 7 * mn : 5 * mn * mn + 5 * mn > 2 * mx * mn + 2 * mn * mn + mn ? 5 * mn * mn + 5 * mn
                                                                                                  : 2 * mx * mn + 2 * mn * mn + mn;
        } else
            x->work = (vectors ? 4 * mn * mn : 0) + 10 * mn + mx + blocks;
        x->iwork = 8 * mn;
        break;
    case LAPACK_GESVD:
        x->work = mn * mn + 8 * mn + mx + blocks;
        x->rwork = complex ? 5 * mn : 0;
        break;
    case LAPACK_SYEVD:
        vectors = option(c, "mode") == 'V';
        x->work = (vectors ? 1 + 6 * n + 2 * n * n : 1 + 2 * n) + BLOCK * n;
        x->iwork = vectors ? 3 + 5 * n : 1;
        break;
    case LAPACK_HEEVD:
        vectors = option(c, "mode") == 'V';
        x->work = (vectors ? 2 * n + n * n : n + 1) + BLOCK * n;
        x->rwork = vectors ? 1 + 5 * n + 2 * n * n : n;
        x->iwork = vectors ? 3 + 5 * n : 1;
        break;
    case LAPACK_SYTRD:
        x->work = BLOCK * n;
        break;
    case LAPACK_GETRF:
    case LAPACK_GTSV:
    case LAPACK_POTRF:
    case LAPACK_TRSM:
        return;
    }
    x->work = x->work < 1 ? 1 : x->work > INT32_MAX ? INT32_MAX : x->work; /* the documented least is below that */
}

/* ---- arguments ---- */

static int64_t buffer_named(const Check *c, const char *name)
{
    int32_t k = lapack_buffer(c->call, name);
    if (k < 0)
        die("lapack.def has no operand or result %s of %s", name, c->routine->name);
    return k;
}

static LapackArg argument(const Check *c, const char *w)
{
    const LapackCall *x = c->call;
    size_t            n = strlen(w);
    if (is_option(c, w))
        return (LapackArg){ strcmp(w, "low") == 0 || strcmp(w, "high") == 0 ? LAPACK_SIZE : LAPACK_OPTION, w, option(c, w) };
    if (w[0] == '~')
        return (LapackArg){ LAPACK_COPY, w + 1, buffer_named(c, w + 1) };
    if (w[0] == '#')
        return (LapackArg){ LAPACK_PACKED, w + 1, buffer_named(c, w + 1) };
    if (n > 2 && strcmp(w + n - 2, "+1") == 0)
        return (LapackArg){ LAPACK_SECOND, w, buffer_named(c, arena_strndup(c->arena, w, n - 2)) };
    if (strcmp(w, "work") == 0)
        return (LapackArg){ LAPACK_WORK, w, 0 };
    if (strcmp(w, "rwork") == 0)
        return (LapackArg){ LAPACK_RWORK, w, 0 };
    if (strcmp(w, "iwork") == 0)
        return (LapackArg){ LAPACK_IWORK, w, 0 };
    if (strcmp(w, "lwork") == 0)
        return (LapackArg){ LAPACK_SIZE, w, x->work };
    if (strcmp(w, "lrwork") == 0)
        return (LapackArg){ LAPACK_SIZE, w, x->rwork };
    if (strcmp(w, "liwork") == 0)
        return (LapackArg){ LAPACK_SIZE, w, x->iwork };
    if (strcmp(w, "null") == 0)
        return (LapackArg){ LAPACK_NULL, w, 0 };
    if (strcmp(w, "alpha") == 0)
        return (LapackArg){ LAPACK_ONE, w, 0 };
    if (n == 3 && w[0] == 'l' && w[1] == 'd')
        return (LapackArg){ LAPACK_SIZE, w, c->size[(unsigned char)w[2]] > 0 ? c->size[(unsigned char)w[2]] : 1 };
    if (lapack_buffer(x, w) >= 0)
        return (LapackArg){ LAPACK_BUFFER, w, buffer_named(c, w) };
    if (strcmp(w, "info") == 0)
        return (LapackArg){ LAPACK_INFO, w, 0 };
    if (n == 1 && c->size[(unsigned char)w[0]] >= 0)
        return (LapackArg){ LAPACK_SIZE, w, c->size[(unsigned char)w[0]] };
    die("lapack.def has an argument %s of %s", w, c->routine->name);
}

static void set_arguments(const Check *c)
{
    const char *s = c->routine->arguments, *w;
    while (*(w = next_word(c->arena, &s)))
        c->call->args[c->call->n_args++] = argument(c, w);
}

const char *lapack_call(Arena *a, const Inst *i, LapackCall *call)
{
    static const Type types[128] = { ['s'] = TYPE_F32, ['d'] = TYPE_F64, ['c'] = TYPE_C64, ['z'] = TYPE_C128 };
    Check c = { .arena = a, .inst = i, .call = call };
    char  letter = 0;
    c.routine = find_routine(inst_string(i, ATTR_CUSTOM_CALL_TARGET), &letter);
    for (size_t k = 0; k < sizeof c.size / sizeof *c.size; k++)
        c.size[k] = -1;
    *call = (LapackCall){ .id = c.routine->id, .type = types[(unsigned char)letter], .batch = 1 };
    call->symbol = arena_printf(a, "%c%s_", letter, c.routine->name);
    call->finite = call->id == LAPACK_GEEV || call->id == LAPACK_GEES || call->id == LAPACK_GESDD || call->id == LAPACK_GESVD;
    read_options(&c);
    if (!c.why)
        read_operands(&c);
    if (!c.why)
        read_results(&c);
    if (!c.why)
        check_sizes(&c);
    if (c.why)
        return c.why;
    for (int32_t k = 0; k < c.n_batch; k++)
        if (!size_mul(call->batch, c.batch[k], &call->batch))
            return "its batch has more matrices than can be counted";
    set_work(&c);
    set_arguments(&c);
    return NULL;
}

bool lapack_is_empty(const LapackCall *call)
{
    return call->buffers[0].count == 0;
}
