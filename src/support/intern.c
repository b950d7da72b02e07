/* Each string is kept behind its length, so intern_len needs no search. The table is open addressing over pointers to entries. */
#include "config.h"

#include "support/intern.h"

#include <stdio.h>
#include <string.h>

#include "support/map.h"

typedef struct Entry {
    size_t   len;
    uint32_t tag, mark;
    char     text[];
} Entry;

/* The hash lies beside the pointer, so that entries of other strings are not looked at. */
typedef struct Slot {
    Entry   *entry;
    uint32_t hash;
} Slot;

struct Interner {
    Arena *arena;
    Slot  *slots;
    size_t cap, n;
};

Interner *interner_new(Arena *a)
{
    Interner *t = ARENA_NEW(a, Interner);
    t->arena = a;
    return t;
}

static void grow(Interner *t)
{
#ifdef HLO_STRESS
    size_t cap = t->cap ? t->cap * 2 : 2;
#else
    size_t cap = t->cap ? t->cap * 2 : 64;
#endif
    Slot *slots = ARENA_ARRAY(t->arena, Slot, (int64_t)cap);
    for (size_t k = 0; k < t->cap; k++)
        if (t->slots[k].entry) {
            size_t j = t->slots[k].hash & (cap - 1);
            while (slots[j].entry)
                j = (j + 1) & (cap - 1);
            slots[j] = t->slots[k];
        }
    arena_drop(t->arena, t->slots, t->cap * sizeof *slots);
    t->slots = slots;
    t->cap = cap;
}

const char *intern(Interner *t, const char *s, size_t n)
{
    if ((t->n + 1) * 3 > t->cap * 2)
        grow(t);
    uint32_t h = (uint32_t)hash_bytes(0, s, n);
    size_t   k = h & (t->cap - 1);
    for (; t->slots[k].entry; k = (k + 1) & (t->cap - 1)) {
        Entry *e = t->slots[k].entry;
        if (t->slots[k].hash == h && e->len == n && memcmp(e->text, s, n) == 0)
            return e->text;
    }
    Entry *e = arena_alloc(t->arena, sizeof *e + n + 1);
    e->len = n;
    if (n)
        memcpy(e->text, s, n);
    t->slots[k] = (Slot){e, h};
    t->n++;
    return e->text;
}

const char *intern_str(Interner *t, const char *s)
{
    return intern(t, s, strlen(s));
}

const char *intern_printf(Interner *t, const char *fmt, ...)
{
    char    small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof small)
        return intern(t, small, (size_t)n);
    va_start(ap, fmt);
    const char *s = arena_vprintf(t->arena, fmt, ap);
    va_end(ap);
    return intern_str(t, s);
}

static Entry *entry_of(const char *s)
{
    return (Entry *)(uintptr_t)(s - offsetof(Entry, text));
}

size_t intern_len(const char *s)
{
    return entry_of(s)->len;
}

uint32_t intern_tag(const char *s)
{
    return entry_of(s)->tag;
}

void intern_set_tag(const char *s, uint32_t tag)
{
    entry_of(s)->tag = tag;
}

uint32_t intern_mark(const char *s)
{
    return entry_of(s)->mark;
}

void intern_set_mark(const char *s, uint32_t mark)
{
    entry_of(s)->mark = mark;
}
