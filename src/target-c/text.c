/* Text of a model (names, paths) comes in, text that is safe inside of C comes out. */
#include "target-c/text.h"

#include <string.h>

void c_comment_text(Buf *b, const char *s)
{
    for (; *s; s++) {
        bool end = s[0] == '*' && s[1] == '/', open = s[0] == '/' && s[1] == '*';
        buf_putc(b, (unsigned char)*s < ' ' || *s == '\\' ? '?' : *s);
        if (end || open)
            buf_putc(b, ' ');
    }
}

void c_bytes(Buf *b, const char *s, size_t n)
{
    buf_putc(b, '"');
    for (; n > 0; n--, s++)
        if (*s == '"' || *s == '\\')
            buf_printf(b, "\\%c", *s);
        else if ((unsigned char)*s < ' ' || *s == '?' || *s == 127)
            buf_printf(b, "\\%03o", (unsigned)(unsigned char)*s);
        else
            buf_putc(b, *s);
    buf_putc(b, '"');
}

void c_string(Buf *b, const char *s)
{
    c_bytes(b, s, strlen(s));
}

void c_env_type(Buf *b)
{
    buf_puts(b, "#ifndef HLO_ENV\n"
                "#define HLO_ENV\n"
                "typedef struct hlo_env {\n"
                "    uint32_t size;        /* sizeof(hlo_env) where the caller was compiled */\n"
                "    uint32_t threads;     /* how many may work; 0 and 1: the caller's alone */\n"
                "    char    *error;       /* room for the text of a failure, or NULL */\n"
                "    uint64_t error_bytes; /* its size; the text is cut to fit and ends in NUL */\n"
                "    uint64_t seed;        /* of rng */\n"
                "    uint64_t *random;     /* {low, high} of the random state, moved on by the call; NULL: starts as ever */\n"
                "    const struct hlo_devices *devices; /* of a module for several: which one this is, and the others */\n"
                "    struct hlort_pool *pool; /* threads of the runtime, hlort_pool_new; NULL: none */\n"
                "} hlo_env;\n"
                "#endif\n");
}
