/* Output is built in memory and written once it is known to be good, so that the next tool in a pipe never sees half a module. */
#ifndef SUPPORT_BUF_H
#define SUPPORT_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Buf {
    char  *p; /* NUL-terminated once something was put; NULL while empty */
    size_t n, cap;
    void (*spill)(struct Buf *); /* takes what is there away, called by buf_rest; NULL: everything stays until the end */
    void  *spill_to;             /* of spill alone */
} Buf; /* zero-initialised is empty */
enum { BUF_SPILL = 1 << 16 };

void buf_free(Buf *b);
void buf_clear(Buf *b);
void buf_reserve(Buf *b, size_t more); /* room for so many bytes and a NUL */
void buf_int(Buf *b, int64_t x);       /* in decimal */
void buf_printf(Buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_json(Buf *b, const char *s);  /* as a string of JSON */
void buf_vprintf(Buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

static inline void buf_put(Buf *b, const void *p, size_t n)
{
    if (b->cap - b->n <= n)
        buf_reserve(b, n);
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = 0;
}

/* A place at which nobody looks back: large output may leave. */
static inline void buf_rest(Buf *b)
{
    if (b->spill && b->n >= BUF_SPILL)
        b->spill(b);
}

static inline void buf_puts(Buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

static inline void buf_putc(Buf *b, char c)
{
    buf_put(b, &c, 1);
}

/* The whole of a file, or of stdin for "-" or NULL. False with errno set when it cannot be read (EISDIR for a folder); b is empty then. */
bool buf_read_file(Buf *b, const char *path);

/* Writes to stdout ("-" or NULL) or to a temporary beside path that is then renamed: never half a file. False with errno. */
bool buf_write_file(const Buf *b, const char *path);

#endif
