/* Reads the rule of an old LAPACK call: the routine, a word for every operand, a colon, a word for every result.
 *
 *   operands   name=XYZ   a constant 0, 1, 2 that stands for that letter of an option of lapack.def; - leaves what was said before
 *              name=@     the letter itself     name=#   the number itself
 *              name:X     no operand: the option is always X
 *              -          a size or a length, which the shapes say too
 *              1          a constant that must be 1
 *              =          handed on
 *   results    k          result k of the call in lapack.def
 *              .          working memory: zeros; so is every result that the rule does not name
 *
 * Source: jaxlib's LAPACK kernels of the first custom-call interface. */
#include "ir/old_lapack.h"

#include <string.h>

#include "ir/custom_call.h"
#include "ir/lapack.h"

typedef struct Old {
    Arena       *arena;
    Comp        *body;
    Inst *const *in;
    const Inst  *call;
    const char  *rule; /* what is left of it */
    int32_t      next, n_handed;
    Inst       **handed;
    int32_t      n_options;
    struct { const char *name; int64_t value; } options[4];
    const char  *why;
} Old;

static const char *next_word(Old *o)
{
    o->rule += strspn(o->rule, " ");
    size_t      n = strcspn(o->rule, " ");
    const char *w = arena_strndup(o->arena, o->rule, n);
    o->rule += n;
    return w;
}

/* What is said last counts. */
static void set_option(Old *o, const char *name, int64_t v)
{
    int32_t k = 0;
    while (k < o->n_options && strcmp(o->options[k].name, name) != 0)
        k++;
    o->n_options += k == o->n_options;
    o->options[k].name = name;
    o->options[k].value = v;
}

static const char *config_of(const Old *o)
{
    const char *s = "";
    for (int32_t k = 0; k < o->n_options; k++)
        s = arena_printf(o->arena, "%s%s%s = %lld", s, k ? ", " : "", o->options[k].name, (long long)o->options[k].value);
    return s;
}

/* The next operand, where it is a constant. */
static const Literal *constant(Old *o)
{
    const Inst *x = inst_operand(o->call, o->next);
    if (x->op == OP_CONSTANT && shape_is_scalar(x->shape) && !x->literal->elided)
        return x->literal;
    o->why = arena_printf(o->arena, "its operand %d is no constant", o->next);
    return NULL;
}

static void read_option(Old *o, const char *word)
{
    const char *values = strchr(word, '=') + 1;
    const char *name = arena_strndup(o->arena, word, (size_t)(values - word) - 1);
    const Literal *x = constant(o);
    if (!x)
        return;
    if (!type_is_int(x->type)) {
        o->why = arena_printf(o->arena, "its operand %d is no integer", o->next);
        return;
    }
    int64_t v = literal_get_s64(x, 0);
    if (*values != '@' && *values != '#') {
        if (v < 0 || v >= (int64_t)strlen(values)) {
            o->why = arena_printf(o->arena, "its operand %d is %lld, which is none of its values", o->next, (long long)v);
            return;
        }
        if (values[v] == '-')
            return;
        v = values[v];
    }
    set_option(o, name, v);
}

static void read_one(Old *o)
{
    const Literal *x = constant(o);
    if (x && (literal_get_f64(x, 0) != 1 || (type_is_complex(x->type) && literal_get_imag(x, 0) != 0)))
        o->why = arena_printf(o->arena, "its operand %d is not 1", o->next);
}

static void read_operand(Old *o, const char *word)
{
    if (o->next == o->call->n_operands)
        o->why = arena_printf(o->arena, "it takes more operands than %d", o->next);
    else if (word[0] == '=')
        o->handed[o->n_handed++] = o->in[o->next];
    else if (strchr(word, '='))
        read_option(o, word);
    else if (word[0] == '1')
        read_one(o);
    o->next++;
}

static void read_operands(Old *o)
{
    const char *w;
    o->handed = ARENA_ARRAY(o->arena, Inst *, o->call->n_operands);
    while (!o->why && *(w = next_word(o)) != ':') {
        if (strchr(w, ':'))
            set_option(o, arena_strndup(o->arena, w, strcspn(w, ":")), strchr(w, ':')[1]);
        else
            read_operand(o, w);
    }
    if (!o->why && o->next != o->call->n_operands)
        o->why = arena_printf(o->arena, "it takes %d operands, not %d", o->next, o->call->n_operands);
}

static const Shape *dense(Module *m, const Shape *s)
{
    return shape_array(m->arena, s->type, s->rank, s->dims);
}

static Inst *zeros(Old *o, const Shape *s)
{
    Inst *zero = inst_constant(o->body, NULL, literal_from_s64(s->type, 0), NULL);
    return inst_new(o->body, NULL, OP_BROADCAST, dense(o->body->module, s), 1, &zero, NULL);
}

/* The call of lapack.def whose n results stand at place[0], place[1], ... of the old call's. */
static Inst *new_call(Old *o, const char *target, const Shape *const *results, int32_t n, const int32_t *place)
{
    Module       *m = o->body->module;
    const Shape **shapes = ARENA_ARRAY(m->arena, const Shape *, n);
    for (int32_t k = 0; k < n; k++)
        shapes[k] = dense(m, results[place[k]]);
    Inst *x = inst_new(o->body, NULL, OP_CUSTOM_CALL, n == 1 ? shapes[0] : shape_tuple(m->arena, n, shapes), o->n_handed, o->handed, NULL);
    inst_set_attr(x, (Attr){ .id = ATTR_CUSTOM_CALL_TARGET, .value.s = intern_str(m->strings, target) });
    inst_set_attr(x, (Attr){ .id = ATTR_BACKEND_CONFIG, .value.s = intern_printf(m->strings, "{%s}", config_of(o)) });
    o->why = custom_call_refused(o->arena, x);
    return x;
}

static Inst *results_of(Old *o, Inst *call, const Shape *const *results, int32_t n, const int32_t *number)
{
    Module *m = o->body->module;
    Inst  **parts = ARENA_ARRAY(o->arena, Inst *, n);
    for (int32_t k = 0; k < n; k++) {
        if (number[k] < 0)
            parts[k] = zeros(o, results[k]);
        else if (!shape_is_tuple(call->shape))
            parts[k] = call;
        else {
            parts[k] = inst_new(o->body, NULL, OP_GET_TUPLE_ELEMENT, call->shape->elems[number[k]], 1, &call, NULL);
            inst_set_int(parts[k], ATTR_INDEX, number[k]);
        }
    }
    if (!shape_is_tuple(o->call->shape))
        return parts[0];
    const Shape **shapes = ARENA_ARRAY(m->arena, const Shape *, n);
    for (int32_t k = 0; k < n; k++)
        shapes[k] = parts[k]->shape;
    return inst_new(o->body, NULL, OP_TUPLE, shape_tuple(m->arena, n, shapes), n, parts, NULL);
}

static Inst *made(Old *o, const char *target)
{
    const Shape        *s = o->call->shape, *one[] = { s };
    const Shape *const *results = shape_is_tuple(s) ? (const Shape *const *)s->elems : one;
    int32_t             n = shape_is_tuple(s) ? s->n_elems : 1, used = 0;
    int32_t            *number = ARENA_ARRAY(o->arena, int32_t, n), *place = ARENA_ARRAY(o->arena, int32_t, n);
    for (int32_t k = 0; k < n; k++) {
        const char *w = next_word(o);
        number[k] = *w && *w != '.' ? w[0] - '0' : -1;
        if (number[k] >= 0)
            place[used++] = k;
        if (!shape_is_array(results[k]) || shape_is_dynamic(results[k]))
            o->why = arena_printf(o->arena, "its result %d is %s", k, shape_brief(o->arena, results[k]));
    }
    if (!o->why && *next_word(o))
        o->why = arena_printf(o->arena, "it has more results than %d", n);
    Inst *call = o->why ? NULL : new_call(o, target, results, used, place);
    return o->why ? NULL : results_of(o, call, results, n, number);
}

Inst *old_lapack(Arena *a, Comp *body, Inst *const *in, const Inst *call, const char *rule, const char **why)
{
    Old         o = { .arena = a, .body = body, .in = in, .call = call, .rule = rule };
    const char *old = strchr(inst_string(call, ATTR_CUSTOM_CALL_TARGET), '_') + 1;
    const char *target = arena_printf(a, "lapack_%c%s_ffi", old[0], next_word(&o));
    Inst       *root = NULL;
    if (lapack_known(target))
        read_operands(&o);
    else
        o.why = "LAPACK has no such routine";
    if (!o.why)
        root = made(&o, target);
    *why = o.why;
    return root;
}
