/* Open addressing with linear probing; at most two thirds full. An empty slot has no value, so every key is legal; a NULL that was put
 * is kept as the address of no_value. */
#include "config.h"

#include "support/map.h"

#include <string.h>

typedef struct MapSlot {
    uint64_t key;
    void    *value;
} MapSlot;

static char no_value;

#ifdef HLO_STRESS
enum { FIRST_CAP = 2 };
#else
enum { FIRST_CAP = 16 };
#endif

uint64_t hash_u64(uint64_t h, uint64_t x)
{
    h ^= x + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
    return h ^ h >> 27;
}

/* Up to 8 bytes, all of them, some perhaps twice. */
static uint64_t few_bytes(const unsigned char *s, size_t n)
{
    uint32_t low = 0, high = 0;
    if (n >= 4) {
        memcpy(&low, s, 4);
        memcpy(&high, s + n - 4, 4);
        return (uint64_t)high << 32 | low;
    }
    return n ? (uint64_t)s[0] << 16 | (uint64_t)s[n / 2] << 8 | s[n - 1] : 0;
}

uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
    const unsigned char *s = p;
    h += n;
    for (; n > 8; n -= 8, s += 8) {
        uint64_t x;
        memcpy(&x, s, 8);
        h = (h ^ x) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    return hash_u64(h, few_bytes(s, n));
}

Map map_new(Arena *a)
{
    return (Map){a, NULL, 0, 0};
}

static MapSlot *find(MapSlot *slots, uint64_t cap, uint64_t key)
{
    uint64_t k = hash_u64(0, key) & (cap - 1);
    while (slots[k].value && slots[k].key != key)
        k = (k + 1) & (cap - 1);
    return &slots[k];
}

void *map_get_u64(const Map *m, uint64_t key)
{
    void *value = m->cap ? find(m->slots, m->cap, key)->value : NULL;
    return value == &no_value ? NULL : value;
}

void map_put_u64(Map *m, uint64_t key, void *value)
{
    if ((m->n + 1) * 3 > m->cap * 2) {
        uint64_t cap = m->cap ? m->cap * 2 : FIRST_CAP;
        MapSlot *slots = ARENA_ARRAY(m->arena, MapSlot, (int64_t)cap);
        for (uint64_t k = 0; k < m->cap; k++)
            if (m->slots[k].value)
                *find(slots, cap, m->slots[k].key) = m->slots[k];
        arena_drop(m->arena, m->slots, (size_t)m->cap * sizeof *slots);
        m->slots = slots;
        m->cap = cap;
    }
    MapSlot *s = find(m->slots, m->cap, key);
    m->n += !s->value;
    *s = (MapSlot){key, value ? value : &no_value};
}

void map_clear(Map *m)
{
    if (m->cap)
        memset(m->slots, 0, m->cap * sizeof *m->slots);
    m->n = 0;
}

void *map_get(const Map *m, const void *key)
{
    return map_get_u64(m, (uint64_t)(uintptr_t)key);
}

bool map_has(const Map *m, const void *key)
{
    return m->cap && find(m->slots, m->cap, (uint64_t)(uintptr_t)key)->value;
}

void map_put(Map *m, const void *key, void *value)
{
    map_put_u64(m, (uint64_t)(uintptr_t)key, value);
}
