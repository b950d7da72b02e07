/* A hash map from pointers (interned strings, instructions) or 64-bit numbers to pointers. Storage is an arena's.
 * It is for lookup only: nothing ever walks it, so no output can depend on hash order. */
#ifndef SUPPORT_MAP_H
#define SUPPORT_MAP_H

#include <stdbool.h>

#include "support/arena.h"

typedef struct Map {
    Arena           *arena;
    struct MapSlot  *slots;
    uint64_t         cap, n; /* cap is a power of two or 0 */
} Map;

Map   map_new(Arena *a);
void *map_get(const Map *m, const void *key); /* NULL when absent */
bool  map_has(const Map *m, const void *key);
void  map_put(Map *m, const void *key, void *value); /* replaces */
void *map_get_u64(const Map *m, uint64_t key);
void  map_put_u64(Map *m, uint64_t key, void *value);
void  map_clear(Map *m); /* its storage stays */

/* Mixing for callers that build their own keys. */
uint64_t hash_u64(uint64_t h, uint64_t x);
uint64_t hash_bytes(uint64_t h, const void *p, size_t n);

#endif
