/* Reading a module: one run of the grammar when all is well, one more after each syntax error, from the next line that looks like
 * an instruction, a closing brace or a computation. A module with errors is thrown away at the end. */
#include "config.h"

#include "text/parse.h"

#include <ctype.h>
#include <strings.h>

#include "text/parse_int.h"

#include "hlo_parse.h"

void parse_error(Parser *p, Loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diag_vreport(p->d, DIAG_ERROR, loc, fmt, ap);
    va_end(ap);
}

void parse_note(Parser *p, Loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diag_vreport(p->d, DIAG_NOTE, loc, fmt, ap);
    va_end(ap);
}

bool parse_suggest(Parser *p, Loc loc, const char *word, const char *const *names, int n)
{
    enum { GUESSES = 100 }; /* a text with more errors than that is not about spelling */
    const char *near = p->d->errors <= GUESSES ? nearest_word(word, names, n) : NULL;
    if (near)
        parse_note(p, loc, "did you mean '%s'?", near);
    return near != NULL;
}

const char *names_listed(Parser *p, const NameVec *names, int from, int end)
{
    const char *text = "";
    for (int k = from; k < end; k++)
        text = arena_printf(p->tmp, "%s%s%s", text, k > from ? ", " : "", names->v[k]);
    return text;
}

/* How a symbol of the grammar is called in a message; NULL for those that are never worth naming. */
static const char *phrase(Parser *p, const char *symbol)
{
    static const char *const known[][2] = {
        {"name", "a name"}, {"string", "a string"}, {"integer", "an integer"}, {"number", "a number"}, {"-inf", "a number"},
        {"inf", "a number"}, {"element type", "a type"}, {"array type", "a type"}, {"dimension labels", "dimension labels"}, {"sizes", "sizes such as 2x3"},
        {"padding", "padding such as 0_1x2_2"}, {"key=", "a key"}, {"{ of a layout", "a layout"},
        {"end of file", "the end of the text"}, {"literal", NULL}, {"integers in braces", NULL}, {"metadata", NULL},
        {", device_ids=", NULL}, {"unknown attribute", NULL}, {"b", NULL}, {"parameter", NULL}, {"mesh", NULL},
        {"single_device", NULL}, {"maximal_mesh", NULL}, {"synthetic_call", NULL},
        {"D", NULL}, {"L", NULL}, {"E", NULL}, {"S", NULL}, {"SC", NULL}, {"P", NULL},
        {"M", NULL}, {"T", NULL},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(known[k][0], symbol) == 0)
            return known[k][1];
    if (*symbol == '\'')
        return symbol;
    size_t n = strlen(symbol);
    if ((isupper((unsigned char)symbol[0]) && symbol[1] == '_') || symbol[n - 1] == '=')
        return "an attribute";
    return arena_printf(p->tmp, "'%s'", symbol);
}

static bool expects(const char *symbol, int n, const char *const *expected)
{
    for (int k = 0; k < n; k++)
        if (strcmp(expected[k], symbol) == 0)
            return true;
    return false;
}

/* "a name, ',' or ')'" from the symbols that could have come; "" when there are too many to say. */
static const char *expectation(Parser *p, int n, const char *const *symbols)
{
    enum { MOST = 5 };
    const char *said[MOST + 1];
    int         count = 0;
    bool        opcode = !expects("name", n, symbols) && expects("constant", n, symbols);
    for (int k = 0; k < n; k++) {
        const char *s = phrase(p, symbols[k]);
        if (strcmp(symbols[k], "word") == 0 || strcmp(symbols[k], "constant") == 0)
            s = opcode ? "an opcode" : expects("name", n, symbols) ? NULL : "a word";
        bool        twice = s == NULL || (strcmp(symbols[k], "ROOT") == 0 && expects("name", n, symbols)); /* ROOT goes before one */
        for (int j = 0; j < count && !twice; j++)
            twice = strcmp(said[j], s) == 0;
        if (twice)
            continue;
        if (count == MOST)
            return "";
        said[count++] = s;
    }
    const char *text = "";
    for (int k = 0; k < count; k++)
        text = arena_printf(p->tmp, "%s%s%s", text, k == 0 ? "" : k + 1 < count ? ", " : " or ", said[k]);
    return text;
}

/* Whether loc stands in the brackets of a mesh. */
static bool in_mesh(const Parser *p, Loc loc)
{
    int64_t at = loc.off;
    while (at > 0 && !strchr("[]{}\n", p->text[at - 1]))
        at--;
    return at > 4 && memcmp(p->text + at - 5, "mesh[", 5) == 0;
}

static void unknown_key(Parser *p, Loc loc, const char *name, KeyFamily family)
{
    static const char *const owners[] = {[KEYS_OF_HEADER] = "the module has no attribute", [KEYS_OF_METADATA] = "metadata has no field"};
    NameVec     names = filter_keys(p, family);
    const char *near = nearest_word(name, names.v, (int)names.n);
    if (family == KEYS_ANY)
        parse_error(p, loc, "'%s' cannot be given here", name);
    else
        parse_error(p, loc, "%s '%s'", owners[family], name);
    if (family == KEYS_ANY && in_mesh(p, loc))
        parse_note(p, loc, "the name of an axis stands in quotes: '%s'=", name);
    else if (near && strcmp(near, name) != 0)
        parse_note(p, loc, "did you mean '%s'?", near);
    else if (family != KEYS_ANY)
        parse_note(p, loc, "there are %s", names_listed(p, &names, 0, (int)names.n));
}

/* Whether something stands before loc on its line that attributes can follow: operands, another attribute, the module's name. */
static bool follows_a_value(const Parser *p, Loc loc)
{
    int64_t at = loc.off;
    while (at > 0 && (p->text[at - 1] == ' ' || p->text[at - 1] == '\t'))
        at--;
    char before = at > 0 ? p->text[at - 1] : '\n';
    return before == ')' || before == '}' || before == ']' || before == '"' || (!p->scope && !p->heading && isalnum((unsigned char)before));
}

/* An attribute that fits nowhere here. word is its name with the '='. */
static void unexpected_attribute(Parser *p, Loc loc, const char *word, int n, const char *const *expected)
{
    const char *name = arena_strndup(p->tmp, word, strlen(word) - 1);
    if (expects("name", n, expected) && follows_a_value(p, loc)) {
        parse_error(p, loc, "expected ',' before the attribute '%s'", name);
        return;
    }
    if (expects("name", n, expected)) {
        parse_error(p, loc, "expected a name, found the attribute '%s'", word);
        parse_note(p, loc, "a name without %% needs a blank before the '='");
        return;
    }
    if (p->scope && p->current && p->depth <= p->current->depth) {
        attr_unknown(p, p->current, name, loc);
        return;
    }
    bool header = expects("input_output_alias=", n, expected);
    unknown_key(p, loc, name, header ? KEYS_OF_HEADER : p->in_meta ? KEYS_OF_METADATA : KEYS_ANY);
}

/* ENTRY, ROOT and HloModule in other letters, before what cannot follow a name. */
static void keyword_note(Parser *p, Loc loc)
{
    static const char *const keywords[] = {"HloModule", "ENTRY", "ROOT"};
    int64_t                  end = loc.off;
    while (end > 0 && (p->text[end - 1] == ' ' || p->text[end - 1] == '\t'))
        end--;
    for (size_t k = 0; k < sizeof keywords / sizeof *keywords; k++) {
        int64_t n = (int64_t)strlen(keywords[k]), at = end - n;
        if (at >= 0 && strncasecmp(p->text + at, keywords[k], (size_t)n) == 0 && strncmp(p->text + at, keywords[k], (size_t)n) != 0 &&
            (at == 0 || isspace((unsigned char)p->text[at - 1])))
            parse_note(p, (Loc){at, (int32_t)n}, "did you mean '%s'?", keywords[k]);
    }
}

/* Keywords of the language among what could have come. */
static void suggest_expected(Parser *p, Loc loc, const char *text, int n, const char *const *expected)
{
    NameVec words = {0};
    for (int k = 0; k < n; k++)
        if (expected[k][strspn(expected[k], "abcdefghijklmnopqrstuvwxyz_")] == '\0' && strlen(expected[k]) > 4)
            vec_push(p->tmp, &words, expected[k]);
    parse_suggest(p, loc, text, words.v, (int)words.n);
}

/* Whether a signature or a body follows the word at loc. */
static bool begins_computation(const Parser *p, Loc loc)
{
    int64_t at = loc.off + loc.len;
    while (at < (int64_t)p->len && (p->text[at] == ' ' || p->text[at] == '\t'))
        at++;
    return at < (int64_t)p->len && (p->text[at] == '{' || p->text[at] == '(');
}

/* Notes on mistakes that the message alone does not explain. text is the token found. */
static void unexpected_notes(Parser *p, Loc loc, const char *text, bool as_name, bool as_attr)
{
    keyword_note(p, loc);
    int64_t at = loc.off + loc.len;
    while (at < (int64_t)p->len && (p->text[at] == ' ' || p->text[at] == '\t'))
        at++;
    if (!isalpha((unsigned char)*text))
        return;
    if (as_attr && at > loc.off + loc.len && at < (int64_t)p->len && p->text[at] == '=')
        parse_note(p, loc, "an attribute has no blank before its '='");
    else if (as_name)
        parse_note(p, loc, "'%s' is a word of the language; as a name it is written '%%%s'", text, text);
}

void parse_unexpected(Parser *p, Loc loc, int n, const char *const *expected)
{
    enum { SHOWN = 40 };
    filter_release(p);
    p->error_loc = loc;
    if (p->unknown_opcode >= 0 && loc.off < (int64_t)p->len &&
        !memchr(p->text + p->unknown_opcode, '\n', (size_t)(loc.off - p->unknown_opcode)))
        return; /* reported: 'paramter(1)' would be right for another opcode */
    bool        as_name = expects("name", n, expected), first = p->text_begins;
    const char *wanted = first ? "a module, a computation or an instruction" : expectation(p, n, expected);
    if (loc.off >= (int64_t)p->len) {
        parse_error(p, loc, *wanted ? "the text ends here, expected %s" : "the text ends too early%s", wanted);
        if (p->scope && !first)
            parse_note(p, p->scope->head, "this computation has no '}' yet");
        return;
    }
    size_t      len = loc.len > SHOWN ? SHOWN : (size_t)(loc.len > 0 ? loc.len : 1);
    const char *text = arena_strndup(p->tmp, p->text + loc.off, len);
    const char *more = loc.len > SHOWN ? "..." : "";
    if (len > 1 && text[len - 1] == '=' && *text != '<') {
        unexpected_attribute(p, loc, text, n, expected);
        return;
    }
    if (*wanted)
        parse_error(p, loc, "expected %s, found '%s%s'", wanted, text, more);
    else
        parse_error(p, loc, "unexpected '%s%s'", text, more);
    if (!*wanted)
        suggest_expected(p, loc, text, n, expected);
    if (p->single && expects("end of file", n, expected))
        parse_note(p, loc, "a text of one instruction ends with it; several stand in a computation: ENTRY main { ... }");
    as_name = (as_name && !first) || (!p->scope && expects("end of file", n, expected) && begins_computation(p, loc));
    unexpected_notes(p, loc, text, as_name, strstr(wanted, "an attribute") != NULL);
}

/* ---- going on after a syntax error ---- */

typedef enum { LINE_OTHER, LINE_INST, LINE_CLOSE, LINE_COMP } LineKind;

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

static const char *skip_blanks(const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\t'))
        s++;
    return s;
}

static const char *skip_name(const char *s, const char *end)
{
    while (s < end && in_name(*s))
        s++;
    return s;
}

/* s to end is a line. */
static LineKind line_kind(const char *s, const char *end)
{
    const char *first = s = skip_blanks(s, end);
    if (s < end && *s == '}')
        return LINE_CLOSE;
    const char *word = skip_name(s, end);
    bool        root = word - s == 4 && memcmp(s, "ROOT", 4) == 0, entry = word - s == 5 && memcmp(s, "ENTRY", 5) == 0;
    if (root || entry)
        s = skip_blanks(word, end);
    bool percent = s < end && *s == '%';
    s += percent;
    word = skip_name(s, end);
    if (word == s || isdigit((unsigned char)*s) || *s == '-' || *s == '.')
        return LINE_OTHER;
    const char *after = skip_blanks(word, end);
    if (after < end && *after == '=' && (percent || after > word))
        return LINE_INST;
    while (end > first && (isspace((unsigned char)end[-1])))
        end--;
    bool head = after < end && (*after == '(' || *after == '{') && end[-1] == '{';
    return head || entry ? LINE_COMP : LINE_OTHER;
}

static int64_t next_line(const Parser *p, int64_t off)
{
    const char *nl = memchr(p->buf + off, '\n', p->len - (size_t)off);
    return nl ? nl + 1 - p->buf : (int64_t)p->len;
}

/* Where name = ... or, for a computation, name { comes after `from`: what a use before it may have meant. Inside of a computation
 * the search ends with it. */
Loc defined_later(Parser *p, int64_t from, const char *name, bool computation)
{
    enum { LOOK_AT = 1 << 20 };
    size_t n = strlen(name);
    filter_release(p);
    for (int64_t at = next_line(p, from); at < (int64_t)p->len && at - from < LOOK_AT; at = next_line(p, at)) {
        const char *s = p->text + at, *end = p->text + next_line(p, at);
        LineKind    kind = line_kind(s, end);
        if (!computation && (kind == LINE_COMP || kind == LINE_CLOSE))
            break;
        if (kind != (computation ? LINE_COMP : LINE_INST))
            continue;
        s = skip_blanks(s, end);
        if (end - s > 5 && memcmp(s, "ROOT ", 5) == 0)
            s = skip_blanks(s + 5, end);
        s += *s == '%';
        if ((size_t)(skip_name(s, end) - s) == n && memcmp(s, name, n) == 0)
            return (Loc){s - p->text, (int32_t)n};
    }
    return LOC_NONE;
}

static int64_t line_start(const Parser *p, int64_t off)
{
    while (off > 0 && p->buf[off - 1] != '\n')
        off--;
    return off;
}

/* What an instruction cut off in the middle leaves behind; inline computations are given up with it. */
static void drop_unfinished(Parser *p)
{
    if (p->heading)
        comp_open(p);
    while (p->scope && p->scope->parent)
        scope_pop(p);
    if (p->scope && p->scope->pending.s && !name_get(p, p->scope->pending.s))
        name_put(p, p->scope->pending.s, p->poison);
    p->operands.n = p->operand_locs.n = p->raw.n = p->lits.n = 0;
    p->current = NULL;
    p->in_meta = false;
}

/* Starts the scanner at the next place worth reading. False when there is none. */
static bool resume(Parser *p)
{
    int64_t error = p->error_loc.off, line = line_start(p, error < (int64_t)p->len ? error : (int64_t)p->len);
    int64_t began = p->scope && p->scope->pending.s ? p->scope->pending.loc.off : error;
    drop_unfinished(p);
    if (line <= began || line <= p->resumed)
        line = next_line(p, line > p->resumed ? line : p->resumed);
    for (; line < (int64_t)p->len; line = next_line(p, line)) {
        LineKind kind = line_kind(p->buf + line, p->buf + next_line(p, line));
        if (kind == LINE_COMP) {
            if (p->scope)
                comp_abandon(p);
        } else if (!p->scope || kind == LINE_OTHER)
            continue;
        p->resumed = line;
        if (p->scope)
            p->scope->pending = (Name){NULL, LOC_NONE};
        filter_start(p, line, p->scope ? START_BODY : START_MORE);
        return true;
    }
    return false;
}

static void parser_init(Parser *p, const char *text, char *in_place, size_t len, Diag *d)
{
    *p = (Parser){.d = d, .text = text, .len = len, .resumed = -1, .unknown_opcode = -1, .alias_loc = LOC_NONE};
    p->tmp = arena_new();
    p->m = module_new();
    p->a = p->m->arena;
    p->strings = p->m->strings;
    p->comps = map_new(p->tmp);
    p->starts = map_new(p->tmp);
    p->uniquer = uniquer_new(p->tmp, p->strings);
    p->poison = ARENA_NEW(p->tmp, Inst);
    p->poison_comp = ARENA_NEW(p->tmp, Comp);
    filter_init(p, in_place);
}

/* Front ends print other languages first. */
static void note_mlir(Parser *p)
{
    static const char *const begins[] = {"module @", "module {", "module attributes", "builtin.module", "func.func", "#loc"};
    size_t                   at = 0;
    while (at < p->len && isspace((unsigned char)p->text[at]))
        at++;
    for (size_t k = 0; k < sizeof begins / sizeof *begins; k++)
        if (p->len - at >= strlen(begins[k]) && memcmp(p->text + at, begins[k], strlen(begins[k])) == 0)
            parse_note(p, (Loc){(int64_t)at, (int32_t)strlen(begins[k])}, "this looks like MLIR (StableHLO); JAX prints HLO text with as_text(\"hlo\")");
}

static Module *parse(const char *text, char *in_place, size_t len, Diag *d)
{
    /* The scanner counts in ints. */
    if (len > INT32_MAX - 16) {
        diag_error(d, LOC_NONE, "a text of more than 2 GiB");
        return NULL;
    }
    int    errors = d->errors;
    Parser p;
    parser_init(&p, text, in_place, len, d);
    filter_start(&p, 0, 0);
    while (hlo_parse(&p) && !diag_full(d) && !p.single && resume(&p))
        ;
    if (d->errors != errors) {
        filter_release(&p);
        note_mlir(&p);
    }
    Module *m = d->errors == errors && module_finish(&p) ? p.m : NULL;
    if (!m)
        module_free(p.m);
    filter_free(&p);
    arena_free(p.tmp);
    return m;
}

Module *parse_module(const char *text, size_t len, Diag *d)
{
    return parse(text, NULL, len, d);
}

Module *parse_module_in_place(char *text, size_t len, Diag *d)
{
    return parse(text, text, len, d);
}
