/* Roundings that change nothing, conversions of what is in no vector, and choices of what functions of libm give or of what is scaled. */
#include "emit/kernel_ir.h"

#include <math.h>
#include <string.h>

#include "support/map.h"

enum { SHORT = 8 }; /* trips of a loop */

static bool is_call(const KExpr *x, const char *fn)
{
    return x && x->kind == KX_CALL && strcmp(x->fn, fn) == 0;
}

/* ---- once is enough ---- */

enum { DEEPEST = 4 /* choices among choices */ };

typedef struct Into {
    const KTemp  *temp;
    struct Into  *next;
} Into;

typedef struct Uses {
    int32_t all, narrowed, chosen; /* how often; of these to make an f16 of it; to be one of those among which a temporary is chosen */
    Into   *into;                  /* such temporaries */
} Uses;

static Uses *uses_of(Map *m, const KTemp *temp)
{
    Uses *u = map_get(m, temp);
    if (!u) {
        u = ARENA_NEW(m->arena, Uses);
        map_put(m, temp, u);
    }
    return u;
}

/* What x is, or is chosen among, goes into that temporary; NULL: it is made an f16. Signs and choices may come before a rounding or behind it. */
static void note_values(Map *uses, const KExpr *x, const KTemp *into)
{
    if (x->kind == KX_SELECT || (x->kind == KX_UNARY && x->op == KOP_NEG))
        for (int32_t k = x->kind == KX_SELECT; k < x->n; k++)
            note_values(uses, x->arg[k], into);
    if (x->kind != KX_TEMP)
        return;
    Uses *u = uses_of(uses, x->temp);
    u->narrowed += !into;
    u->chosen += into != NULL;
    if (into) {
        Into *i = ARENA_NEW(uses->arena, Into);
        *i = (Into){ into, u->into };
        u->into = i;
    }
}

static void note_use(void *uses, const KExpr *x)
{
    if (x->kind == KX_TEMP)
        uses_of(uses, x->temp)->all++;
    if (is_call(x, "f32_to_f16"))
        note_values(uses, x->arg[0], NULL);
}

static void note_declared(void *uses, const KStmt *s)
{
    if (s->kind == KS_DECLARE && s->value && !s->temp->assigned && s->temp->type == TYPE_F32)
        note_values(uses, s->value, s->temp);
}

/* It is made an f16 in the end, whatever becomes of it. */
static bool is_narrowed(Map *uses, const KTemp *temp, int depth)
{
    const Uses *u = uses_of(uses, temp);
    bool        narrowed = depth < DEEPEST && u->all == u->narrowed + u->chosen;
    for (const Into *i = u->into; i && narrowed; i = i->next)
        narrowed = is_narrowed(uses, i->temp, depth + 1);
    return narrowed;
}

static void leave_wide(Map *uses, KTemp *temp)
{
    temp->in_f16 = false;
    for (const Into *i = uses_of(uses, temp)->into; i; i = i->next)
        leave_wide(uses, (KTemp *)i->temp);
}

static void round_once(KBlock *b, Map *uses)
{
    for (KStmt *s = b->first; s; s = s->next) {
        if (s->kind == KS_DECLARE && is_call(s->value, "f16_round") && !s->temp->assigned && is_narrowed(uses, s->temp, 0)) {
            s->value = s->value->arg[0];
            leave_wide(uses, s->temp);
        }
        if (s->body)
            round_once(s->body, uses);
        if (s->other)
            round_once(s->other, uses);
    }
}

void kernel_round_once(Kernel *k)
{
    Map      uses = map_new(k->arena);
    KVisitor v = { note_use, note_declared, &uses };
    kernel_visit(k->body, &v);
    round_once(k->body, &uses);
}

/* ---- in no vector ---- */

const char *function_alone(const char *fn)
{
    static const char *const of[][2] = { { "max_f32", "max_alone_f32" }, { "max_f64", "max_alone_f64" }, { "min_f32", "min_alone_f32" }, { "min_f64", "min_alone_f64" },
                                         { "f16_to_f32", "f16_alone_to_f32" }, { "f32_to_f16", "f32_alone_to_f16" }, { "f16_round", "f16_round_alone" } };
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++)
        if (strcmp(fn, of[k][0]) == 0)
            return of[k][1];
    return fn;
}

const KExpr *kx_alone(Arena *a, const KExpr *x)
{
    KExpr *y = arena_copy(a, x, sizeof *x);
    for (int32_t k = 0; k < x->n; k++)
        y->arg[k] = kx_alone(a, x->arg[k]);
    if (x->kind == KX_CALL)
        y->fn = function_alone(x->fn);
    return y;
}

static void note_loop(void *found, const KStmt *s)
{
    *(bool *)found |= s->kind == KS_FOR;
}

static void make_alone(Arena *a, KBlock *b)
{
    for (KStmt *s = b->first; s; s = s->next) {
        if (s->value)
            s->value = kx_alone(a, s->value);
        if (s->body)
            make_alone(a, s->body);
        if (s->other)
            make_alone(a, s->other);
    }
}

static void note_half(void *found, const KExpr *x)
{
    *(bool *)found |= is_call(x, "f16_to_f32") || is_call(x, "f32_to_f16") || is_call(x, "f16_round");
}

/* A loop without loops in it, of f16, too short for blocks of vectors (loop_blocks.h). */
static bool is_short(const KStmt *s)
{
    bool     half = false, loops = false;
    KVisitor v = { note_half, NULL, &half }, inner = { NULL, note_loop, &loops };
    if (s->kind != KS_FOR || s->loop->hi - s->loop->lo + 1 >= SHORT)
        return false;
    kernel_visit(s->body, &inner);
    if (!loops)
        kernel_visit(s->body, &v);
    return half;
}

/* What is declared beside a loop of some length is in no vector either: compilers make those of the loop. Nor is f16 in short loops, or beside them. */
static void make_beside(Arena *a, KBlock *b)
{
    bool beside = false;
    for (const KStmt *s = b->first; s; s = s->next)
        beside |= s->kind == KS_FOR && (s->loop->hi - s->loop->lo + 1 >= SHORT || is_short(s));
    for (KStmt *s = b->first; s; s = s->next) {
        if (s->kind == KS_DECLARE && s->value && beside)
            s->value = kx_alone(a, s->value);
        if (s->body && is_short(s))
            make_alone(a, s->body);
        else if (s->body)
            make_beside(a, s->body);
        if (s->other)
            make_beside(a, s->other);
    }
}

void kernel_make_alone(Kernel *k)
{
    bool     loops = false;
    KVisitor v = { NULL, note_loop, &loops };
    kernel_visit(k->body, &v);
    if (loops)
        make_beside(k->arena, k->body);
    else
        make_alone(k->arena, k->body);
}

/* ---- bounds ---- */

static const KExpr *made_of(const Map *made, const KExpr *x)
{
    const KStmt *s = x->kind == KX_TEMP ? map_get(made, x->temp) : NULL;
    return s ? s->value : x;
}

/* x = fn(other, bound), either way round, bound a number. */
static bool is_bound(const KExpr *x, const char *fn, const KExpr **other, const KExpr **bound)
{
    if (!is_call(x, fn))
        return false;
    const int32_t k = x->arg[0]->kind == KX_FLOAT;
    *other = x->arg[k];
    *bound = x->arg[1 - k];
    return (*bound)->kind == KX_FLOAT && (*other)->kind != KX_FLOAT;
}

/* NULL: x is no such conversion. */
static const KExpr *bounded(Arena *a, const KExpr *x, const Map *made)
{
    static const struct {
        const char *in, *to, *within;
        double      least, most;
    } whole[] = {
        { "f32_in_s8", "f32_to_s8", "f32_within_s8", INT8_MIN, INT8_MAX },
        { "f32_in_u8", "f32_to_u8", "f32_within_u8", 0, UINT8_MAX },
        { "f32_in_s16", "f32_to_s16", "f32_within_s16", INT16_MIN, INT16_MAX },
        { "f32_in_u16", "f32_to_u16", "f32_within_u16", 0, UINT16_MAX },
    };
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) {
        const KExpr *inner, *v, *low, *high;
        if ((!is_call(x, whole[k].in) && !is_call(x, whole[k].to)) || !is_bound(made_of(made, x->arg[0]), "min_f32", &inner, &high) ||
            !is_bound(made_of(made, inner), "max_f32", &v, &low))
            continue;
        if (v->kind == KX_TEMP && !v->temp->assigned && low->f >= whole[k].least && high->f <= whole[k].most && high->f > 0 && low->f <= high->f && !(low->f == 0 && signbit(low->f)))
            return kx_call(a, whole[k].within, x->type, 3, (const KExpr *[]){ v, low, high });
    }
    return NULL;
}

static void bound_in(Arena *a, KBlock *b, Map *made)
{
    for (KStmt *s = b->first; s; s = s->next) {
        const KExpr *x = s->value ? bounded(a, s->value, made) : NULL;
        s->value = x ? x : s->value;
        if (s->kind == KS_DECLARE && !s->temp->assigned && s->value)
            map_put(made, s->temp, s);
        if (s->body)
            bound_in(a, s->body, made);
        if (s->other)
            bound_in(a, s->other, made);
    }
}

void kernel_bound_once(Kernel *k)
{
    Map made = map_new(k->arena);
    bound_in(k->arena, k->body, &made);
}

/* ---- choices of what functions give ---- */

/* Compilers make vectors of such a function's calls, not of those that they have moved behind a test. */
static bool is_function(const KExpr *x)
{
    static const char *const of_libm[] = { "sinf", "cosf", "tanf", "powf", "fmodf", "atan2f", "cbrtf", "hypotf", "asinf", "acosf", "atanf", "sin", "cos", "tan", "pow", "fmod", "atan2", "cbrt", "hypot", "log", "log1p",
                                           "expm1", "erf" };
    for (size_t k = 0; x->kind == KX_CALL && k < sizeof of_libm / sizeof *of_libm; k++)
        if (strcmp(x->fn, of_libm[k]) == 0)
            return true;
    return false;
}

static bool comes_of_function(const KExpr *x, const Map *made)
{
    if (is_function(x) || (x->kind == KX_TEMP && map_has(made, x->temp)))
        return true;
    for (int32_t k = 0; k < x->n; k++)
        if (comes_of_function(x->arg[k], made))
            return true;
    return false;
}

/* A number brought nearer to an end of its type's range, as the size of a complex number is computed. What is made of it where it is not chosen, which compilers compute with the choice behind that,
 * may be subnormal: on Intel's processors that takes a hundred times as long. */
static bool is_scaled(const KExpr *x, const Map *scaled)
{
    const double least = 0x1p-32, most = 0x1p32;
    if (x->kind == KX_TEMP)
        return map_has(scaled, x->temp);
    if (x->kind == KX_SELECT)
        return is_scaled(x->arg[1], scaled) || is_scaled(x->arg[2], scaled);
    for (int32_t k = 0; x->kind == KX_BINARY && x->op == KOP_MUL && k < 2; k++)
        if (x->arg[k]->kind == KX_FLOAT && x->arg[k]->f != 0 && (fabs(x->arg[k]->f) < least || fabs(x->arg[k]->f) > most))
            return true;
    return false;
}

typedef struct Met {
    Map           function, scaled, compared; /* temporaries */
    const IxAtom *loop;
} Met;

static bool is_of_bf16(const KExpr *x)
{
    return x->kind == KX_TEMP && x->temp->in_bf16;
}

/* By what is the same for all of the loop, for which gcc has no mask in a vector: others it loads where that says so, or makes a loop for each answer, if there are few (one thread of an Emerald Rapids, a
 * pixel of 32 features between four, beside the image or not, 980 of them: bf16 319 and 34 us; f16 16.5 and 25.7, f32 7.4 and 9.1). */
static bool is_by_one(const KExpr *x, const IxAtom *loop)
{
    const bool numbers = (is_of_bf16(x->arg[1]) && (is_of_bf16(x->arg[2]) || x->arg[2]->kind == KX_FLOAT)) || (x->arg[1]->kind == KX_FLOAT && is_of_bf16(x->arg[2]));
    return loop && numbers && x->arg[0]->kind == KX_TEMP && x->arg[0]->temp->depth < loop->depth;
}

static void note_compared(void *cookie, const KExpr *x)
{
    const bool compares = x->kind == KX_BINARY && x->op >= KOP_LT && x->op <= KOP_NE;
    for (int32_t k = 0; compares && k < 2; k++)
        if (x->arg[k]->kind == KX_TEMP && x->arg[1 - k]->kind == KX_FLOAT)
            map_put(cookie, x->arg[k]->temp, cookie);
}

static bool is_float_choice(const KExpr *x)
{
    return x->kind == KX_SELECT && (x->type == TYPE_F32 || x->type == TYPE_F64);
}

static bool is_infinity(const KExpr *x)
{
    return x->kind == KX_FLOAT && isinf(x->f);
}

/* A choice of an infinity or something else which is then compared with a constant: gcc compares both first and chooses one of two truth values, for which it has no vectors (20 steps of 600 points of a
 * Mandelbrot set, |z| < 2, one thread of Zen 5, 85 and 7.9 us). */
static bool is_compared(const KStmt *s, const Map *compared)
{
    const KExpr *x = s->value;
    return s->kind == KS_DECLARE && is_float_choice(x) && (is_infinity(x->arg[1]) || is_infinity(x->arg[2])) && map_has(compared, s->temp);
}

static const KExpr *by_bits(Arena *a, const KExpr *x)
{
    return kx_call(a, x->type == TYPE_F32 ? "choose_f32" : "choose_f64", x->type, 3, (const KExpr *[]){ x->arg[0], x->arg[1], x->arg[2] });
}

static const KExpr *chosen_by_bits(Arena *a, const KExpr *x, const Met *m)
{
    KExpr *y = arena_copy(a, x, sizeof *x);
    for (int32_t k = 0; k < x->n; k++)
        y->arg[k] = chosen_by_bits(a, x->arg[k], m);
    if (!is_float_choice(x) ||
        !(is_by_one(x, m->loop) || is_scaled(x, &m->scaled) || comes_of_function(x->arg[1], &m->function) || comes_of_function(x->arg[2], &m->function)))
        return y;
    return by_bits(a, y);
}

static void choose_in(Arena *a, KBlock *b, const IxAtom *loop)
{
    Met  met = { map_new(a), map_new(a), map_new(a), loop };
    bool straight = loop;
    for (const KStmt *s = b->first; s; s = s->next)
        straight &= s->kind == KS_DECLARE || s->kind == KS_ASSIGN || s->kind == KS_STORE;
    if (straight)
        kernel_visit(b, &(KVisitor){ note_compared, NULL, &met.compared });
    for (KStmt *s = b->first; s; s = s->next) {
        if (straight && s->value) {
            if (s->kind == KS_DECLARE && comes_of_function(s->value, &met.function))
                map_put(&met.function, s->temp, s);
            if (s->kind == KS_DECLARE && is_scaled(s->value, &met.scaled))
                map_put(&met.scaled, s->temp, s);
            s->value = is_compared(s, &met.compared) ? by_bits(a, s->value) : chosen_by_bits(a, s->value, &met);
        }
        if (s->body)
            choose_in(a, s->body, s->kind == KS_FOR ? s->loop : NULL);
        if (s->other)
            choose_in(a, s->other, NULL);
    }
}

void kernel_choose_by_bits(Kernel *k)
{
    choose_in(k->arena, k->body, NULL);
}
