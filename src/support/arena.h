/* Memory with a lifetime instead of an owner.
 *
 * An arena hands out zeroed blocks and frees them all at once. A module has one, a pass has one for scratch, a tool has
 * one for its run. Nothing is freed singly, but for large tables that were outgrown. Out of memory and sizes that overflow are reported on stderr and end the
 * process with exit status 2 inside these functions, so that no caller has to check.
 */
#ifndef SUPPORT_ARENA_H
#define SUPPORT_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

Arena *arena_new(void);
void   arena_free(Arena *a); /* runs the deferred calls, last first; NULL is allowed */

/* n bytes, zeroed, aligned for whatever has that size: to 16 when n is a multiple of it, else to 8. n == 0 gives a valid pointer. */
void *arena_alloc(Arena *a, size_t n);
/* The n bytes at p are done with: a table that has grown. Gives back what is large, the rest stays until the end. */
void arena_drop(Arena *a, void *p, size_t n);
/* n * size bytes with an overflow check; n < 0 counts as overflow. */
void *arena_array(Arena *a, int64_t n, size_t size);
void *arena_copy(Arena *a, const void *p, size_t n);
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* fn(p) is called when the arena is freed: how an arena owns what lives outside of it. */
void arena_defer(Arena *a, void (*fn)(void *), void *p);

#define ARENA_NEW(a, T)      ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_array((a), (n), sizeof(T)))

/* Heap blocks for what outlives every arena. Same rules: zeroed, never NULL. */
void *mem_alloc(int64_t n, size_t size);
void *mem_grow(void *p, int64_t n, size_t size); /* contents kept, growth not zeroed */
void  mem_free(void *p);
/* n bytes for an array: not zeroed, from the beginning of a cache line on; what is large lies in huge pages where the system has them, since what reads it
 * waits for memory. Never NULL: `what` is for the message. free() takes it. */
void *mem_array(size_t n, const char *what);

/* The process's answer to "no memory": a message and exit 2. what may be NULL. */
_Noreturn void die_out_of_memory(const char *what);

/* Our own bug: prints file, line and text, asks for a report, aborts. */
#define die(...) die_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void die_at(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
