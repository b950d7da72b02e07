/* Changes of HLO text that know its grammar: what stands for something is replaced by what could stand there, so that most changes get
 * past the scanner and many past the parser. The text may be broken already; nothing here expects it to be whole.
 *
 *   word, name, type, number, string, opcode, attribute     for another one of the class: of this text, of another one, of the tables
 *   ", name=value"                                          removed, doubled, taken from elsewhere
 *   instruction, computation                                removed, doubled, moved, taken from elsewhere */
#include <ctype.h>
#include <string.h>

#include "ir/type.h"
#include "text/fuzz.h"

typedef enum PieceKind { PIECE_WORD, PIECE_NAME, PIECE_TYPE, PIECE_NUMBER, PIECE_STRING, PIECE_OPCODE, PIECE_ATTR, PIECE_MARK } PieceKind;

typedef struct Piece {
    PieceKind kind;
    size_t    at, n;
} Piece;

typedef VEC(Piece) Pieces;

typedef struct Text {
    const char *p;
    size_t      n;
} Text;

/* Tables: what the language has. */

static const char *const opcodes[] = {
#define OP(id, text, ...) text,
#include "ir/ops.def"
#undef OP
};
static const char *const attributes[] = {
#define ATTR(id, text, ...) text,
#include "ir/attrs.def"
#undef ATTR
};
static const char *const words[] = {
#define WORD(attr, id, text, ...) text,
#include "ir/words.def"
#undef WORD
    "true", "false", "HloModule", "ENTRY", "ROOT", "FileNames", "StackFrames",
};
static const char *const numbers[] = { "0",  "1",  "-1", "2",   "64",    "9223372036854775807", "-9223372036854775808", "18446744073709551615",
                                       "4294967296", "1e999", "-0.0", "nan", "inf", "0.1", "65536" };

#define PICK(rng, table) ((table)[fuzz_below((rng), sizeof(table) / sizeof *(table))])

/* Pieces. */

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

static size_t name_end(Text t, size_t at)
{
    while (at < t.n && in_name(t.p[at]))
        at++;
    return at;
}

/* Behind the bracket that closes the one at `at`; the end of the text when none does. */
static size_t group_end(Text t, size_t at)
{
    int depth = 0;
    for (; at < t.n; at++) {
        depth += strchr("([{", t.p[at]) && t.p[at] ? 1 : strchr(")]}", t.p[at]) && t.p[at] ? -1 : 0;
        if (depth <= 0)
            return at + 1;
    }
    return t.n;
}

/* f32[2,3]{1,0} */
static size_t type_end(Text t, size_t at)
{
    at = group_end(t, at);
    return at < t.n && t.p[at] == '{' ? group_end(t, at) : at;
}

static size_t string_end(Text t, size_t at)
{
    for (at++; at < t.n && t.p[at] != '"'; at++)
        at += t.p[at] == '\\';
    return at < t.n ? at + 1 : t.n;
}

static Piece word_at(Text t, size_t at)
{
    size_t end = name_end(t, at), next = end;
    char   c = end < t.n ? t.p[end] : 0;
    if (c == '[' && type_lookup(t.p + at, end - at) != TYPE_COUNT)
        return (Piece){ PIECE_TYPE, at, type_end(t, end) - at };
    while (next < t.n && t.p[next] == ' ')
        next++;
    PieceKind kind = c == '=' ? PIECE_ATTR : c == '(' ? PIECE_OPCODE : next < t.n && t.p[next] == '=' ? PIECE_NAME : PIECE_WORD;
    return (Piece){ kind, at, end - at };
}

static Piece piece_at(Text t, size_t at)
{
    char c = t.p[at];
    if (c == '"')
        return (Piece){ PIECE_STRING, at, string_end(t, at) - at };
    if (c == '%')
        return (Piece){ PIECE_NAME, at, name_end(t, at + 1) - at };
    if (isdigit((unsigned char)c) || (c == '-' && at + 1 < t.n && isdigit((unsigned char)t.p[at + 1])))
        return (Piece){ PIECE_NUMBER, at, name_end(t, at) - at };
    if (isalpha((unsigned char)c) || c == '_')
        return word_at(t, at);
    return (Piece){ PIECE_MARK, at, 1 };
}

static Pieces pieces_of(Arena *a, Text t)
{
    Pieces v = { 0 };
    for (size_t at = 0; at < t.n;) {
        if (isspace((unsigned char)t.p[at])) {
            at++;
            continue;
        }
        Piece x = piece_at(t, at);
        vec_push(a, &v, x);
        at += x.n;
    }
    return v;
}

/* One of a kind, NULL when there is none. */
static const Piece *pick_kind(const Pieces *v, PieceKind kind, uint64_t *rng)
{
    size_t start = fuzz_below(rng, (size_t)v->n);
    for (size_t k = 0; k < (size_t)v->n; k++) {
        const Piece *x = &v->v[(start + k) % (size_t)v->n];
        if (x->kind == kind)
            return x;
    }
    return NULL;
}

/* Changes. */

static void replace(Buf *b, const Piece *x, const char *p, size_t n)
{
    fuzz_splice(b, x->at, x->n, p, n);
}

/* The element type alone; what stands in brackets stays. */
static void replace_type(Buf *b, const Piece *x, uint64_t *rng)
{
    const char *name = type_name((Type)fuzz_below(rng, TYPE_COUNT));
    fuzz_splice(b, x->at, name_end((Text){ b->p, b->n }, x->at) - x->at, name, strlen(name));
}

static void from_table(Buf *b, const Piece *x, uint64_t *rng)
{
    static const char *const marks[] = { "{", "}", "(", ")", "[", "]", ",", "=", "...", "?", "<=", "->", ":", "/*", "*/", "//", "%", "\"", "" };
    const char *with = NULL;
    switch (x->kind) {
    case PIECE_WORD: with = PICK(rng, words); break;
    case PIECE_NUMBER: with = PICK(rng, numbers); break;
    case PIECE_OPCODE: with = PICK(rng, opcodes); break;
    case PIECE_ATTR: with = PICK(rng, attributes); break;
    case PIECE_MARK: with = PICK(rng, marks); break;
    case PIECE_STRING: with = "\"\""; break;
    case PIECE_NAME: with = "%x"; break;
    case PIECE_TYPE: replace_type(b, x, rng); return;
    }
    replace(b, x, with, strlen(with));
}

static void change_piece(Arena *a, Buf *b, Text other, uint64_t *rng)
{
    Pieces mine = pieces_of(a, (Text){ b->p, b->n });
    if (!mine.n)
        return;
    const Piece *x = &mine.v[fuzz_below(rng, (size_t)mine.n)];
    if (fuzz_below(rng, 3) == 0) {
        from_table(b, x, rng);
        return;
    }
    Pieces       theirs = pieces_of(a, other);
    const Piece *y = pick_kind(&theirs, x->kind, rng);
    if (y)
        replace(b, x, arena_strndup(a, other.p + y->at, y->n), y->n);
}

/* An attribute with the comma in front of it: ", dimensions={0}". n is 0 when there is none. */
static Piece attribute_in(Arena *a, Text t, uint64_t *rng)
{
    Pieces       v = pieces_of(a, t);
    const Piece *x = pick_kind(&v, PIECE_ATTR, rng);
    if (!x)
        return (Piece){ PIECE_ATTR, 0, 0 };
    size_t at = x->at, end = x->at + x->n + 1;
    while (at > 0 && (t.p[at - 1] == ' ' || t.p[at - 1] == ','))
        at--;
    while (end < t.n && !strchr(",)}\n", t.p[end]))
        end = strchr("([{", t.p[end]) ? group_end(t, end) : t.p[end] == '"' ? string_end(t, end) : end + 1;
    return (Piece){ PIECE_ATTR, at, (end < t.n ? end : t.n) - at };
}

static size_t line_start(Text t, size_t at)
{
    while (at > 0 && t.p[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(Text t, size_t at)
{
    while (at < t.n && t.p[at] != '\n')
        at++;
    return at;
}

static void change_attribute(Arena *a, Buf *b, Text other, uint64_t *rng)
{
    Text  t = { b->p, b->n };
    Piece x = attribute_in(a, t, rng), y = attribute_in(a, other, rng);
    char *add = arena_strndup(a, other.p + y.at, y.n);
    switch (fuzz_below(rng, 3)) {
    case 0: replace(b, &x, "", 0); break;
    case 1: replace(b, &x, add, y.n); break;
    default: fuzz_splice(b, line_end(t, fuzz_below(rng, t.n)), 0, add, y.n); break; /* one more for some instruction */
    }
}

/* A line with its end. */
static Piece line_in(Text t, uint64_t *rng)
{
    size_t at = fuzz_below(rng, t.n), start = line_start(t, at), end = line_end(t, at);
    return (Piece){ PIECE_WORD, start, end + (end < t.n) - start };
}

/* The lines from one that ends in '{' to one that begins with '}', or from the text's beginning, to its end. */
static Piece computation_in(Text t, uint64_t *rng)
{
    size_t at = fuzz_below(rng, t.n), start = line_start(t, at);
    while (start > 0 && !(line_end(t, start) > start && t.p[line_end(t, start) - 1] == '{'))
        start = line_start(t, start - 1);
    size_t end = start;
    while (end < t.n && t.p[end] != '}')
        end = line_end(t, end) + 1;
    end = end < t.n ? line_end(t, end) : t.n;
    return (Piece){ PIECE_WORD, start, end + (end < t.n) - start };
}

/* Removed, put in place of x, or added before it. */
static void change_span(Arena *a, Buf *b, Piece x, Text other, Piece y, uint64_t *rng)
{
    char *add = arena_strndup(a, other.p + y.at, y.n);
    switch (fuzz_below(rng, 3)) {
    case 0: replace(b, &x, "", 0); break;
    case 1: replace(b, &x, add, y.n); break;
    default: fuzz_splice(b, x.at, 0, add, y.n); break;
    }
}

void fuzz_mutate(Buf *b, uint64_t *rng, const char *other, size_t n_other)
{
    Arena *a = arena_new();
    Text   t = { b->p, b->n }, from = { other, n_other };
    if (!b->n)
        fuzz_splice(b, 0, 0, other, n_other);
    else if (n_other)
        switch (fuzz_below(rng, 8)) {
        case 0: change_span(a, b, line_in(t, rng), from, line_in(from, rng), rng); break;
        case 1: change_span(a, b, computation_in(t, rng), from, computation_in(from, rng), rng); break;
        case 2: case 3: change_attribute(a, b, from, rng); break;
        default: change_piece(a, b, from, rng); break;
        }
    arena_free(a);
}
