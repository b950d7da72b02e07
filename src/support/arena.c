/* Blocks double up to a limit; a large request gets a block of its own. Under AddressSanitizer every allocation is a block, so
 * that overruns show; in a stress build blocks are 64 bytes. */
#include "config.h"

#include "support/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct Block {
    struct Block *next;
    size_t        used, size;
    bool          own; /* holds one request */
    _Alignas(16) char data[];
} Block;

typedef struct Deferred {
    struct Deferred *next;
    void (*fn)(void *);
    void *p;
} Deferred;

struct Arena {
    Block    *blocks;
    Deferred *deferred;
    size_t    next_size;
};

#ifdef HLO_STRESS
enum { FIRST_BLOCK = 64, MAX_BLOCK = 64, LEAST_DROPPED = 1 };
#else
enum { FIRST_BLOCK = 4096, MAX_BLOCK = 1 << 20, LEAST_DROPPED = 1 << 16 };
#endif

void die_out_of_memory(const char *what)
{
    fprintf(stderr, "error: out of memory%s%s\n", what ? ": " : "", what ? what : "");
    exit(2);
}

void die_at(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "internal error: %s:%d: ", file, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nThis is a bug of hlo-tools; please report it with the module that caused it.\n");
    abort();
}

Arena *arena_new(void)
{
    Arena *a = calloc(1, sizeof *a);
    if (!a)
        die_out_of_memory(NULL);
    a->next_size = FIRST_BLOCK;
    return a;
}

void arena_free(Arena *a)
{
    if (!a)
        return;
    for (Deferred *d = a->deferred; d; d = d->next)
        d->fn(d->p);
    for (Block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

static Block *block_new(Arena *a, size_t size)
{
    Block *b = size > SIZE_MAX - sizeof *b ? NULL : calloc(1, sizeof *b + size);
    if (!b)
        die_out_of_memory(NULL);
    b->size = size;
    b->next = a->blocks;
    a->blocks = b;
    return b;
}

#ifndef HLO_ASAN
/* What an object of n bytes can ask for: its size is a multiple of its alignment. */
static size_t align_up(size_t at, size_t n)
{
    size_t mask = n % 16 == 0 ? 15 : 7;
    return (at + mask) & ~mask;
}
#endif

void *arena_alloc(Arena *a, size_t n)
{
    if (n > SIZE_MAX - 16)
        die_out_of_memory(NULL);
#ifdef HLO_ASAN
    Block *own = block_new(a, n); /* exactly n bytes: the red zone follows */
    own->used = n;
    own->own = true;
    return own->data;
#else
    Block *b = a->blocks;
    size_t at = b ? align_up(b->used, n) : 0;
    if (b && at <= b->size && b->size - at >= n) {
        b->used = at + n;
        return b->data + at;
    }
    if (n > a->next_size / 4 && b) { /* keeps the current block in front: it has room left */
        Block *own = block_new(a, n);
        own->used = n;
        own->own = true;
        a->blocks = b;
        own->next = b->next;
        b->next = own;
        return own->data;
    }
    b = block_new(a, n > a->next_size ? n : a->next_size);
    if (a->next_size < MAX_BLOCK)
        a->next_size *= 2;
    b->used = n;
    b->own = n == b->size;
    return b->data;
#endif
}

void arena_drop(Arena *a, void *p, size_t n)
{
    for (Block **at = &a->blocks; n >= LEAST_DROPPED && *at; at = &(*at)->next) {
        Block *b = *at;
        if (b->data == p && b->own) {
            *at = b->next;
            free(b);
            return;
        }
    }
}

void *arena_array(Arena *a, int64_t n, size_t size)
{
    size_t bytes;
    if (n < 0 || __builtin_mul_overflow((size_t)n, size, &bytes))
        die_out_of_memory("array size overflows");
    return arena_alloc(a, bytes);
}

void *arena_copy(Arena *a, const void *p, size_t n)
{
    void *q = arena_alloc(a, n);
    if (n)
        memcpy(q, p, n);
    return q;
}

char *arena_strndup(Arena *a, const char *s, size_t n)
{
    char *q = arena_alloc(a, n + 1);
    if (n)
        memcpy(q, s, n);
    return q;
}

char *arena_vprintf(Arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        die("vsnprintf failed on \"%s\"", fmt);
    char *s = arena_alloc(a, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    return s;
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return s;
}

void arena_defer(Arena *a, void (*fn)(void *), void *p)
{
    Deferred *d = ARENA_NEW(a, Deferred);
    *d = (Deferred){a->deferred, fn, p};
    a->deferred = d;
}

void *mem_alloc(int64_t n, size_t size)
{
    if (n < 0)
        die_out_of_memory("negative size");
    void *p = calloc(n ? (size_t)n : 1, size ? size : 1);
    if (!p)
        die_out_of_memory(NULL);
    return p;
}

void *mem_grow(void *p, int64_t n, size_t size)
{
    size_t bytes;
    if (n < 0 || __builtin_mul_overflow((size_t)n, size, &bytes))
        die_out_of_memory("array size overflows");
    void *q = realloc(p, bytes ? bytes : 1);
    if (!q)
        die_out_of_memory(NULL);
    return q;
}

void *mem_array(size_t n, const char *what)
{
    enum { LARGE = 4 << 20, HUGE_PAGE = 2 << 20, LINE = 64 };
    size_t page = n >= LARGE ? HUGE_PAGE : LINE, whole = n > SIZE_MAX - page ? 0 : (n / page + (n % page || !n)) * page;
    void  *p = whole ? aligned_alloc(page, whole) : NULL;
    if (!p)
        die_out_of_memory(what);
#ifdef MADV_HUGEPAGE
    if (page == HUGE_PAGE)
        (void)madvise(p, whole, MADV_HUGEPAGE); /* a wish */
#endif
    return p;
}

void mem_free(void *p)
{
    free(p);
}
