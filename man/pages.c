/* Fills a manual page: lines like @TYPES@ become mdoc lists made from the tables, so that no page can disagree with the code.
 *
 *   pages SOURCE-DIR PAGE.in > PAGE
 *
 * Run by make only. What stands between the marks is copied. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/inst.h"
#include "passes/pass.h"
#include "support/buf.h"

/* Text that mdoc leaves alone: a dot or quote at its start would make a request, quotes join arguments, a backslash starts an
 * escape. */
static void put_text(Buf *b, const char *s)
{
    if (*s == '.' || *s == '\'')
        buf_puts(b, "\\&");
    for (; *s; s++) {
        if (*s == '\\')
            buf_puts(b, "\\e");
        else if (*s == '"')
            buf_puts(b, "\\(dq");
        else
            buf_putc(b, *s);
    }
}

/* ---- element types ---- */

static const char *const class_names[] = {"boolean", "signed", "unsigned", "float", "complex", "token", "opaque", "tuple"};

static const char *const specials_text[] = {
    [SPECIALS_NONE] = "",
    [SPECIALS_IEEE] = "inf, nan, -0",
    [SPECIALS_FN] = "nan, -0",
    [SPECIALS_FNUZ] = "one nan",
    [SPECIALS_FINITE] = "-0",
    [SPECIALS_FNU] = "one nan; no zero, no sign",
};

static void put_types(Buf *b, const char *source)
{
    (void)source;
    buf_puts(b, ".Bl -column \"f8e4m3b11fnuz\" \"unsigned\" \"Bits\" \"Exponent\" \"Significand\" \"specials\"\n"
                ".It Sy Name Ta Sy Class Ta Sy Bits Ta Sy Exponent Ta Sy Significand Ta Sy Specials\n");
    for (int t = 0; t < TYPE_COUNT; t++) {
        const TypeInfo *x = &type_info[t];
        if (x->cls == CLASS_TUPLE)
            continue;
        buf_printf(b, ".It Li %s Ta %s Ta ", x->text, class_names[x->cls]);
        if (x->bits)
            buf_printf(b, "%d", x->bits);
        if (x->cls == CLASS_FLOAT || x->cls == CLASS_COMPLEX)
            buf_printf(b, " Ta %d Ta %d Ta %s\n", x->exp, x->man, specials_text[x->specials]);
        else
            buf_puts(b, " Ta Ta Ta\n");
    }
    buf_puts(b, ".El\n");
}

/* ---- opcodes ---- */

static bool has_own_attrs(Op op)
{
    int n;
    op_attrs(op, &n);
    return n > 0;
}

static void put_plain_ops(Buf *b, const char *heading, int operands, bool accuracy)
{
    const char *before = "";
    for (int op = 0; op < OP_COUNT; op++) {
        if (op_info[op].operands != operands || has_own_attrs((Op)op) || op_has((Op)op, F_ACCURACY) != accuracy)
            continue;
        if (!*before)
            buf_printf(b, ".It %s\n", heading);
        buf_printf(b, "%s%s", before, op_name((Op)op));
        before = ",\n";
    }
    buf_puts(b, *before ? ".\n" : "");
}

static void put_operands(Buf *b, Op op)
{
    int n = op_info[op].operands;
    if (n == MANY)
        buf_puts(b, "any number of operands");
    else
        buf_printf(b, "%d operand%s", n, n == 1 ? "" : "s");
}

static void put_op(Buf *b, Op op)
{
    int           n;
    const OpAttr *rows = op_attrs(op, &n);
    buf_printf(b, ".It %s\n", op_name(op));
    put_operands(b, op);
    for (int k = 0; k < n; k++)
        buf_printf(b, rows[k].required ? ",\n.Cm %s" : ",\n.Op Cm %s", attr_info[rows[k].attr].text);
    buf_puts(b, "\n");
}

static void put_opcodes(Buf *b, const char *source)
{
    (void)source;
    buf_puts(b, ".Bl -tag -width indent\n");
    put_plain_ops(b, "no operand", 0, false);
    put_plain_ops(b, "1 operand", 1, false);
    put_plain_ops(b, "1 operand and optionally result_accuracy", 1, true);
    put_plain_ops(b, "2 operands", 2, false);
    put_plain_ops(b, "3 operands", 3, false);
    put_plain_ops(b, "any number of operands", MANY, false);
    for (int op = 0; op < OP_COUNT; op++)
        if (has_own_attrs((Op)op))
            put_op(b, (Op)op);
    buf_puts(b, ".El\n");
}

/* ---- attributes ---- */

static const struct { AttrClass cls; const char *what; } classes[] = {
    {ATTR_CLASS_INT, "an integer: 3"},
    {ATTR_CLASS_NUMBER, "a number: 0.001"},
    {ATTR_CLASS_BOOL, "true or false"},
    {ATTR_CLASS_WORD, "one of its words, see below"},
    {ATTR_CLASS_STRING, "a string: \"text\""},
    {ATTR_CLASS_RAW, "a string, or any text in balanced braces"},
    {ATTR_CLASS_INTS, "integers: {0,2}"},
    {ATTR_CLASS_LISTS, "lists of integers: {{0,1},{1,2}}"},
    {ATTR_CLASS_INTS_OR_LISTS, "integers, or lists of them"},
    {ATTR_CLASS_BOOLS, "booleans: {true,false}"},
    {ATTR_CLASS_SLICES, "start, limit and stride for each dimension: {[0:4], [2:8:3]}"},
    {ATTR_CLASS_PADDING, "low, high and interior for each dimension: 0_1x2_2_1"},
    {ATTR_CLASS_WINDOW, "a window: {size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}"},
    {ATTR_CLASS_DIM_LABELS, "what each dimension is, of input, kernel and output: b01f_01io->b01f"},
    {ATTR_CLASS_PRECISION, "a word for each operand: {highest,default}"},
    {ATTR_CLASS_SHAPE, "a type"},
    {ATTR_CLASS_SHAPES, "types with layouts: {f32[2]{0}, f32[]}"},
    {ATTR_CLASS_LITERAL, "a type and its literal: s32[2]{0} {1, 2}"},
    {ATTR_CLASS_ALIASING, "output index and what it shares memory with: {{0}: (1, {})}"},
    {ATTR_CLASS_GROUPS, "groups of devices, see below"},
    {ATTR_CLASS_SPARSITY, "structured sparsity: {lhs={sparsity=2x4 dimension=1 stride=1 idx=2}}"},
    {ATTR_CLASS_SCALING, "scales of blocks: {lhs={scale_idx=2 strides=2x1 steps=1x2}}"},
    {ATTR_CLASS_DOMAIN, "two shardings: {kind=\"sharding\", entry={replicated}, exit={maximal device=0}}"},
    {ATTR_CLASS_SHARDING, "see below"},
    {ATTR_CLASS_KEY_VALUES, "names with strings, or with any text in balanced braces: {a=\"x\",b={k = 1}}"},
    {ATTR_CLASS_STATISTICS, "{visualizing_index=1,stat-1=33}"},
    {ATTR_CLASS_ACCURACY, "{mode=highest} or {tolerance={atol=0,rtol=0.5,ulps=2}}"},
    {ATTR_CLASS_ORIGIN, "a tree like the type, of names and indices: {({\"a\"}, {\"b\" {1}})}"},
    {ATTR_CLASS_METADATA, "see below"},
    {ATTR_CLASS_INSTS, "instructions: {%a, %b}"},
    {ATTR_CLASS_COMP, "a computation: its name, or its body in braces"},
    {ATTR_CLASS_COMPS, "computations: {%f, %g}"},
};

/* algorithm and mode are in the table once for each kind of opcode. */
static bool named_before(AttrId id)
{
    for (int k = 0; k < (int)id; k++)
        if (attr_info[k].cls == attr_info[id].cls && strcmp(attr_info[k].text, attr_info[id].text) == 0)
            return true;
    return false;
}

static void put_attributes(Buf *b, const char *source)
{
    (void)source;
    buf_puts(b, ".Bl -tag -width indent\n");
    for (size_t c = 0; c < sizeof classes / sizeof *classes; c++) {
        const char *before = "";
        buf_puts(b, ".It ");
        put_text(b, classes[c].what);
        buf_putc(b, '\n');
        for (int k = 0; k < ATTR_COUNT; k++)
            if (attr_info[k].cls == classes[c].cls && !named_before((AttrId)k)) {
                buf_printf(b, "%s%s", before, attr_info[k].text);
                before = ",\n";
            }
        buf_puts(b, ".\n");
    }
    buf_puts(b, ".El\n");
}

static void put_words(Buf *b, const char *source)
{
    (void)source;
    buf_puts(b, ".Bl -tag -width indent\n");
    for (int w = 0; w < WORD_COUNT; w++) {
        AttrId id = attr_words[w].attr;
        bool   first = w == 0 || attr_words[w - 1].attr != id, last = w + 1 == WORD_COUNT || attr_words[w + 1].attr != id;
        if (first)
            buf_printf(b, ".It Cm %s\n", attr_info[id].text);
        buf_printf(b, "%s%s\n", attr_words[w].text, last ? "." : ",");
    }
    buf_puts(b, ".El\n");
}

/* ---- passes ---- */

static const char *const pass_ids[] = {
#define PASS(id, ...) #id,
#include "passes/passes.def"
#undef PASS
};

/* The lines of the comment that opens a pass's file which are indented: " *   %t = ...". They are the picture of what it does. */
static void put_drawing(Buf *b, const char *source, const char *id)
{
    static const char open[] = " *   ";
    char              path[4096];
    Buf               text = {0};
    bool              any = false;
    snprintf(path, sizeof path, "%s/src/passes/%s.c", source, id);
    if (!buf_read_file(&text, path)) {
        buf_free(&text);
        return;
    }
    buf_putc(&text, '\0');
    const char *end = strstr(text.p, "*/");
    for (const char *p = text.p; end && p < end;) {
        const char *stop = strchr(p, '\n');
        bool        drawn = strncmp(p, open, sizeof open - 1) == 0, blank = strncmp(p, " *\n", 3) == 0;
        if (drawn && !any)
            buf_puts(b, ".Bd -literal -offset indent\n");
        if (drawn)
            buf_put(b, p + sizeof open - 1, (size_t)(stop - p) - (sizeof open - 1) + 1);
        any |= drawn;
        if (any && !drawn && !blank)
            break; /* prose for who reads the code */
        p = stop + 1;
    }
    buf_puts(b, any ? ".Ed\n" : "");
    buf_free(&text);
}

static void put_passes(Buf *b, const char *source)
{
    for (int k = 0; k < pass_count; k++) {
        const PassInfo *p = &pass_table[k];
        buf_printf(b, ".Ss %s%s%s%s\n", p->name, *p->options ? "{" : "", p->options, *p->options ? "}" : "");
        buf_printf(b, "%c", toupper((unsigned char)p->summary[0]));
        put_text(b, p->summary + 1);
        buf_puts(b, ".\n");
        put_drawing(b, source, pass_ids[k]);
    }
}

static void put_level(Buf *b, int level)
{
    const char *cpu = pipeline_for_level(level, "cpu"), *cuda = pipeline_for_level(level, "cuda");
    buf_printf(b, ".It Fl O%d\n%s\n", level, *cpu ? cpu : "no pass");
    if (strcmp(cpu, cuda) != 0)
        buf_printf(b, ".It Fl O%d Fl -target Ns =cuda\n%s\n", level, cuda);
}

static void put_levels(Buf *b, const char *source)
{
    (void)source;
    buf_puts(b, ".Bl -tag -width indent\n");
    for (int level = 0; level <= 3; level++)
        put_level(b, level);
    buf_puts(b, ".El\n");
}

static const struct { const char *name, *keeps, *summary; } rules[] = {
#define RULE(id, op, name, keeps, summary) {name, #keeps, summary},
#include "passes/algsimp_rules.def"
#undef RULE
};

static void put_rules(Buf *b, const char *source)
{
    (void)source;
    buf_puts(b, ".Bl -tag -width indent -compact\n");
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        buf_printf(b, ".It Cm %s\n", rules[k].name);
        put_text(b, rules[k].summary);
        buf_puts(b, strcmp(rules[k].keeps, "SAME") == 0     ? "\n"
                    : strcmp(rules[k].keeps, "FINITE") == 0 ? " (for finite values)\n"
                                                            : " (may round otherwise)\n");
    }
    buf_puts(b, ".El\n");
}

/* ---- the page ---- */

static const struct { const char *mark; void (*put)(Buf *b, const char *source); } marks[] = {
    {"@TYPES@", put_types}, {"@OPCODES@", put_opcodes}, {"@ATTRIBUTES@", put_attributes}, {"@WORDS@", put_words},
    {"@PASSES@", put_passes}, {"@LEVELS@", put_levels}, {"@RULES@", put_rules},
};

static bool put_mark(Buf *b, const char *line, size_t n, const char *source)
{
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
        if (strlen(marks[k].mark) == n && memcmp(marks[k].mark, line, n) == 0) {
            marks[k].put(b, source);
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    Buf in = {0}, out = {0};
    if (argc != 3 || !buf_read_file(&in, argv[2])) {
        fprintf(stderr, "pages: %s: %s\n", argc == 3 ? argv[2] : "usage: pages SOURCE-DIR PAGE.in", argc == 3 ? strerror(errno) : "");
        return 2;
    }
    for (size_t at = 0; at < in.n;) {
        const char *stop = memchr(in.p + at, '\n', in.n - at);
        size_t      n = stop ? (size_t)(stop - (in.p + at)) : in.n - at;
        if (!put_mark(&out, in.p + at, n, argv[1])) {
            buf_put(&out, in.p + at, n);
            buf_putc(&out, '\n');
        }
        at += n + 1;
    }
    bool good = buf_write_file(&out, "-");
    buf_free(&in);
    buf_free(&out);
    return good ? 0 : 2;
}
