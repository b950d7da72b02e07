/* For LD_PRELOAD: counts what is allocated, for memory-table. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void  __libc_free(void *);

static _Atomic long live, most;

static void *come(void *p)
{
    long n = p ? (long)malloc_usable_size(p) : 0, now = atomic_fetch_add(&live, n) + n, m = most;
    while (now > m && !atomic_compare_exchange_weak(&most, &m, now))
        ;
    return p;
}

static void go(void *p)
{
    if (p)
        atomic_fetch_sub(&live, (long)malloc_usable_size(p));
}

void *malloc(size_t n) { return come(__libc_malloc(n)); }
void *calloc(size_t n, size_t each) { return come(__libc_calloc(n, each)); }
void *memalign(size_t align, size_t n) { return come(__libc_memalign(align, n)); }
void *aligned_alloc(size_t align, size_t n) { return come(__libc_memalign(align, n)); }

void *realloc(void *old, size_t n)
{
    long  was = old ? (long)malloc_usable_size(old) : 0;
    void *p = __libc_realloc(old, n);
    if (p || n == 0)
        atomic_fetch_sub(&live, was);
    return come(p);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    void *q = come(__libc_memalign(align, n));
    if (q)
        *p = q;
    return q || n == 0 ? 0 : ENOMEM;
}

void free(void *p)
{
    go(p);
    __libc_free(p);
}

/* Bytes that are there; from now on most_bytes tells the most that there were at a time. */
long live_bytes(void) { return live; }
long begin(void) { return most = live; }
long most_bytes(void) { return most; }
