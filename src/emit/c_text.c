/* Text of a model (names, paths) comes in, text that is safe inside of C comes out. */
#include "emit/c_text.h"
#include "text/print.h"

#include <ctype.h>
#include <string.h>

static bool is_in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool c_has_name(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *s = text; (s = strstr(s, word)); s += n)
        if ((s == text || !is_in_name(s[-1])) && !is_in_name(s[n]))
            return true;
    return false;
}

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
                "    void    *stream;      /* CUDA: the cudaStream_t to work on; NULL: the default one */\n"
                "} hlo_env;\n"
                "#endif\n");
}

static void print_inst_comment(Buf *b, const Inst *i, const char *prefix)
{
    PrintOptions o = print_options_short();
    Buf          text = { 0 };
    o.percent = true;
    o.large_constants = false;
    print_inst(&text, i, &o);
    buf_puts(b, prefix);
    if (text.n > 400) { /* long operand lists say little */
        text.p[400] = '\0';
        c_comment_text(b, text.p);
        buf_puts(b, "...");
    } else
        c_comment_text(b, text.p ? text.p : "");
    buf_free(&text);
}

static void print_origin(Buf *b, const Inst *i)
{
    Arena      *a = arena_new();
    const char *line = inst_source_line(a, i);
    if (i->meta && i->meta->op_name) {
        buf_puts(b, "  op_name=\"");
        c_comment_text(b, i->meta->op_name);
        buf_putc(b, '"');
    }
    if (line) {
        buf_putc(b, ' ');
        c_comment_text(b, line);
    }
    buf_putc(b, '\n');
    arena_free(a);
}

void c_step_origin(Buf *b, const Inst *i)
{
    buf_puts(b, "// %");
    c_comment_text(b, i->name);
    buf_printf(b, " = %s", op_name(i->op));
    print_origin(b, i);
}

static void print_body_comment(Buf *b, const Comp *c, const char *indent)
{
    for (const Inst *x = c->first; x; x = x->next) {
        if (x->op == OP_PARAMETER)
            continue;
        buf_puts(b, indent);
        print_inst_comment(b, x, x == c->root ? "ROOT " : "");
        buf_putc(b, '\n');
        if (x->op == OP_WHILE)
            print_body_comment(b, while_body(x), "//     ");
    }
}

void c_origin(Buf *b, const Inst *i)
{
    print_inst_comment(b, i, "// ");
    print_origin(b, i);
    if (i->op == OP_FUSION)
        print_body_comment(b, inst_callee(i, 0), "//   ");
}

static void c_leaf_comment(Buf *b, const char *array, int32_t k, const ProgramLeaf *x)
{
    buf_printf(b, " *     %s[%d]  ", array, k);
    c_comment_text(b, x->name);
    buf_puts(b, "  ");
    shape_print(b, x->shape, !layout_is_row_major(x->shape));
    buf_printf(b, ", %lld bytes", (long long)x->bytes);
}

void c_random_function(Buf *b)
{
    buf_puts(b, "\nstatic void hlo_random(uint64_t *state, void *to, uint64_t low, uint64_t high)\n"
                "{\n"
                "    uint64_t *words = (uint64_t *)to;\n"
                "    words[0] = state[0];\n"
                "    words[1] = state[1];\n"
                "    state[0] += low;\n"
                "    state[1] += high + (state[0] < low);\n"
                "}\n");
}

void c_int_types(Buf *b)
{
    static const int bits[] = { 8, 16, 32, 64 };
    for (size_t k = 0; k < 4; k++)
        buf_printf(b, "typedef __INT%d_TYPE__ int%d_t;\ntypedef __UINT%d_TYPE__ uint%d_t;\n", bits[k], bits[k], bits[k], bits[k]);
}

void c_interface_comment(Buf *b, const Program *p)
{
    for (int32_t k = 0; k < p->n_args; k++) {
        c_leaf_comment(b, "args", k, &p->args[k]);
        buf_putc(b, '\n');
    }
    for (int32_t k = 0; k < p->n_results; k++) {
        c_leaf_comment(b, "results", k, &p->results[k]);
        if (p->results[k].alias >= 0)
            buf_printf(b, "; may be args[%d]", p->results[k].alias);
        buf_putc(b, '\n');
    }
    if (p->scratch_bytes)
        buf_printf(b, " *     scratch: %lld bytes, aligned to %d */\n", (long long)p->scratch_bytes, PROGRAM_ALIGN);
    else
        buf_puts(b, " *     scratch: none, may be NULL */\n");
}
