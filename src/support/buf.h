/* Output is built in memory and written once, so that the next tool in a pipe never sees half a module. */
#ifndef SUPPORT_BUF_H
#define SUPPORT_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Buf {
    char  *p; /* NUL-terminated once something was put; NULL while empty */
    size_t n, cap;
} Buf; /* zero-initialised is empty */

void buf_free(Buf *b);
void buf_clear(Buf *b);
void buf_put(Buf *b, const void *p, size_t n);
void buf_puts(Buf *b, const char *s);
void buf_putc(Buf *b, char c);
void buf_printf(Buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(Buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* The whole of a file, or of stdin for "-" or NULL. False with errno set when it cannot be read (EISDIR for a folder); b is empty then. */
bool buf_read_file(Buf *b, const char *path);

/* Writes to stdout ("-" or NULL) or to a temporary beside path that is then renamed: never half a file. False with errno. */
bool buf_write_file(const Buf *b, const char *path);

#endif
