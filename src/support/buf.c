#include "config.h"

#include "support/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/arena.h"
#include "support/outfile.h"

void buf_free(Buf *b)
{
    mem_free(b->p);
    *b = (Buf){0};
}

void buf_clear(Buf *b)
{
    b->n = 0;
    if (b->p)
        b->p[0] = 0;
}

void buf_reserve(Buf *b, size_t more)
{
    if (more > SIZE_MAX / 4 || b->n > SIZE_MAX / 4)
        die_out_of_memory("output too large");
    size_t need = b->n + more + 1;
    if (need <= b->cap)
        return;
    size_t cap = b->cap ? b->cap : 256;
    while (cap < need)
        cap *= 2;
    b->p = mem_grow(b->p, (int64_t)cap, 1);
    b->cap = cap;
}

void buf_int(Buf *b, int64_t x)
{
    if (x >= 0 && x < 10) {
        buf_putc(b, (char)('0' + x));
        return;
    }
    char     digits[20], *end = digits + sizeof digits, *at = end;
    uint64_t rest = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (x < 0)
        *--at = '-';
    buf_put(b, at, (size_t)(end - at));
}

void buf_json(Buf *b, const char *s)
{
    buf_putc(b, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c < 0x20)
            buf_printf(b, "\\u%04x", c);
        else
            buf_putc(b, *s);
    }
    buf_putc(b, '"');
}

void buf_vprintf(Buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    buf_reserve(b, 64);
    int n = vsnprintf(b->p + b->n, b->cap - b->n, fmt, ap);
    if (n < 0)
        die("vsnprintf failed on \"%s\"", fmt);
    if ((size_t)n >= b->cap - b->n) {
        buf_reserve(b, (size_t)n);
        vsnprintf(b->p + b->n, b->cap - b->n, fmt, again);
    }
    va_end(again);
    b->n += (size_t)n;
}

void buf_printf(Buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

bool buf_read_file(Buf *b, const char *path)
{
    bool std = !path || strcmp(path, "-") == 0;
    int  fd = std ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct stat st;
    bool        ok = true;
    size_t      size = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size : 0;
    buf_reserve(b, size < 1 << 16 ? 1 << 16 : size > INT32_MAX ? INT32_MAX : size + 2); /* +2: the end is found without another */
    for (;;) {
        if (b->cap - b->n <= 1)
            buf_reserve(b, 1 << 16);
        ssize_t n = read(fd, b->p + b->n, b->cap - b->n - 1);
        if (n < 0 && errno == EINTR)
            continue;
        ok = n >= 0;
        if (n <= 0)
            break;
        b->n += (size_t)n;
    }
    b->p[b->n] = 0;
    int saved = errno;
    if (!std)
        close(fd);
    if (!ok)
        buf_free(b);
    errno = saved;
    return ok;
}

bool buf_write_file(const Buf *b, const char *path)
{
    Arena  *a = arena_new();
    OutFile f;
    outfile_open(&f, a, path ? path : "-");
    outfile_put(&f, b->p, b->n);
    bool ok = outfile_close(&f);
    arena_free(a);
    if (!ok)
        errno = f.error;
    return ok;
}
