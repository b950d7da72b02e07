/* HLO names in, C identifiers out. Long names are cut: an identifier of a megabyte helps nobody, and what follows makes it unique.
 *
 * Emitted files share their name space with the C library's headers (--emit=main includes some), so every word that a header may
 * declare is avoided by form, not by a list: words of letters and digits alone, and the few families with an underscore. */
#include "emit/names.h"

#include "ir/type.h"

#include <string.h>

#define LONGEST 96

NameSet names_new(Arena *a)
{
    return (NameSet){ a, interner_new(a), map_new(a), map_new(a) };
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && strcmp(s + n - k, suffix) == 0;
}

/* What functions of the emitted text are called: exp_f32, f32_block_to_f16. */
static bool names_type(const char *s)
{
    for (Type t = 0; t < TYPE_COUNT; t++) {
        const char  *name = type_name(t);
        const size_t n = strlen(name), length = strlen(s);
        if ((length > n && s[length - n - 1] == '_' && strcmp(s + length - n, name) == 0) || (strncmp(s, name, n) == 0 && s[n] == '_'))
            return true;
    }
    return false;
}

/* Whether a header, the compiler or the emitted prelude may have this identifier. */
static bool may_be_taken(const char *s)
{
    static const char *const words[] = { "aligned_alloc", "at_quick_exit", "quick_exit", "static_assert", "thread_local", "and_eq",
                                         "not_eq", "or_eq", "xor_eq", "const_cast", "static_cast", "dynamic_cast", "reinterpret_cast",
                                         "co_await", "co_return", "co_yield", "FP_NAN", "FP_ZERO", "FP_NORMAL", "FP_INFINITE",
                                         "FP_SUBNORMAL", "HUGE_VAL", "floor_div", "floor_mod", "store_past_caches", "end_stores_past_caches", "repaired_product",
                                         "special_quotient" };
    if (!strchr(s, '_'))
        return true;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcmp(s, words[k]) == 0)
            return true;
    return ends(s, "_t") || ends(s, "_r") || ends(s, "_MAX") || ends(s, "_MIN") || ends(s, "_unlocked") || starts(s, "hlo_") ||
           starts(s, "HLO_") || starts(s, "hlort_") || starts(s, "pow_") || names_type(s) || starts(s, "pthread_") || starts(s, "posix_") || starts(s, "M_") || starts(s, "EXIT_") || starts(s, "SEEK_") ||
           starts(s, "RAND_") || starts(s, "atomic_");
}

static char *plain_identifier(Arena *a, const char *hlo_name, bool after_prefix)
{
    size_t n = strnlen(hlo_name, LONGEST);
    char  *s = arena_alloc(a, n + 8), *p = s;
    if (!after_prefix && (n == 0 || !letter(hlo_name[0]) || hlo_name[0] == '_'))
        *p++ = 'm';
    for (size_t k = 0; k < n; k++)
        *p++ = letter(hlo_name[k]) || digit(hlo_name[k]) ? hlo_name[k] : '_';
    return s;
}

/* A legal identifier of C and C++ that no header of the C library declares: a plain word gets "_k" behind it ("select", "tanh" and "int" are
 * taken). */
static const char *c_identifier(Arena *a, const char *hlo_name)
{
    char *s = plain_identifier(a, hlo_name, false);
    if (may_be_taken(s))
        memcpy(s + strlen(s), "_k", 2); /* there is room, and zeros behind it */
    return s;
}

const char *c_prefix(Arena *a, const char *hlo_name)
{
    return plain_identifier(a, hlo_name, false);
}

void names_reserve(NameSet *s, const char *identifier)
{
    map_put(&s->used, intern_str(s->strings, identifier), s);
}

const char *names_take(NameSet *s, const char *prefix, const char *hlo_name)
{
    const char *base = *prefix ? intern_printf(s->strings, "%s%s", prefix, plain_identifier(s->arena, hlo_name, true))
                               : intern_str(s->strings, c_identifier(s->arena, hlo_name));
    int64_t    *count = map_get(&s->counts, base); /* so that a thousand equal names cost a thousand steps */
    const char *name = base;
    if (!count) {
        count = ARENA_NEW(s->arena, int64_t);
        map_put(&s->counts, base, count);
        *count = 1;
    }
    while (map_has(&s->used, name))
        name = intern_printf(s->strings, "%s_%lld", base, (long long)++*count);
    map_put(&s->used, name, s);
    return name;
}
