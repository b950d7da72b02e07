/* A folder of compiled modules, found by content: $XDG_CACHE_HOME/hlo-tools, by default ~/.cache/hlo-tools. Two kinds of entries:
 *
 *   KEY/        a folder with files, made elsewhere in the cache and renamed into place; the file "sum" has the hash of what matters
 *   KEY.txt     a small text with its hash in front
 *
 * Any number of processes may use it at once, and one may be killed at any moment: what is in place is whole, what is not in place has a
 * name that starts with "tmp.". An entry that does not fit its hash counts as absent and is replaced. Nothing here fails for good:
 * without a folder to write to, a temporary one is used while something is made. */
#ifndef DRIVER_CACHE_H
#define DRIVER_CACHE_H

#include <stdbool.h>

#include "support/arena.h"
#include "support/buf.h"

typedef struct Cache Cache;

/* persistent false: nothing is found, and what is made is gone after cache_end. */
Cache *cache_open(Arena *a, bool persistent);

/* Around everything that puts something there: makes the temporary folder where it takes one, and removes it. False with errno set: it
 * could not be made. Code that was loaded from it stays usable. */
bool cache_begin(Cache *c, Arena *a);
void cache_end(Cache *c);

/* 128 bits as 32 hex digits. */
typedef struct CacheKey {
    unsigned long long h[2];
} CacheKey;
void        cache_key_add(CacheKey *k, const void *p, size_t n);
void        cache_key_add_text(CacheKey *k, const char *s);
const char *cache_key_text(Arena *a, const CacheKey *k);

/* Texts. */
bool cache_get_text(Cache *c, Arena *a, const char *key, const char **text);
void cache_put_text(Cache *c, Arena *a, const char *key, const Buf *text);

/* Folders. The file `name` of the entry when it is there and fits its hash, else NULL. */
const char *cache_get_file(Cache *c, Arena *a, const char *key, const char *name);
/* A new folder to fill; NULL with errno set. cache_put_folder sums the file `name` in it and moves it into place (an entry that another
 * process has put there meanwhile is as good); cache_drop_folder removes it. */
char *cache_new_folder(Cache *c, Arena *a);
bool  cache_put_folder(Cache *c, Arena *a, const char *folder, const char *key, const char *name);
void  cache_drop_folder(const char *folder);

#endif
