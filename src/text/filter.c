/* Between scanner and grammar: looks words and attribute names up, and decides what needs more than the current token, so that the
 * grammar is plain LALR(1). Source: reference text 11.2; the numbers below are its rows.
 *
 *   1  { after backend_config= or a key of frontend_attributes={}: a raw dictionary, one string
 *   2  ] { followed by an integer or ':': the brace opens a layout
 *   3  , device_ids= : one token
 *   4  T after ] : ) and before ( : the word of layouts and iotas
 *   5  the first tokens say which of three kinds of input it is
 *   6  words that are keywords in some places and names in others
 *   7  attribute names, by the class of their value
 *
 * The braces of a long constant come as one token: parse_dense.c has read its values by then. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "text/parse_int.h"

#include "hlo_parse.h"

struct Token {
    int       kind;
    HLO_STYPE v;
    Loc       loc;
};

/* The scanner's functions, from grammar/hlo.l. */
struct yy_buffer_state;
int   hlo_lex_lex(HLO_STYPE *v, Loc *loc, void *scanner);
int   hlo_lex_lex_init_extra(Parser *p, void **scanner);
int   hlo_lex_lex_destroy(void *scanner);
void  hlo_lex_release(void *scanner);
void  hlo_lex_move(void *scanner, char *s);
struct yy_buffer_state *hlo_lex__scan_buffer(char *base, size_t size, void *scanner);

typedef struct WordRow {
    const char *text;
    int         token;
} WordRow;

static const WordRow keywords[] = {
    {"HloModule", K_MODULE}, {"ENTRY", K_ENTRY}, {"ROOT", K_ROOT}, {"FileNames", K_FILE_NAMES}, {"FunctionNames", K_FUNCTION_NAMES},
    {"FileLocations", K_FILE_LOCATIONS}, {"StackFrames", K_STACK_FRAMES}, {"true", K_TRUE}, {"false", K_FALSE}, {"inf", K_INF},
    {"maximal", K_MAXIMAL}, {"replicated", K_REPLICATED}, {"manual", K_MANUAL}, {"last_tile_dim_replicate", K_LAST_TILE_DIM_REPLICATE},
    {"shard_as", K_SHARD_AS}, {"shard_like", K_SHARD_LIKE}, {"unknown", K_UNKNOWN}, {"unreduced", K_UNREDUCED},
    {"b", W_B}, {"constant", W_CONSTANT}, {"parameter", W_PARAMETER}, {"mesh", W_MESH}, {"single_device", W_SINGLE_DEVICE},
    {"maximal_mesh", W_MAXIMAL_MESH}, {"synthetic_call", W_SYNTHETIC_CALL},
    {"D", W_D}, {"L", W_L}, {"E", W_E}, {"S", W_S}, {"SC", W_SC}, {"P", W_P}, {"M", W_M},
};

/* A row may repeat a name of attrs.def ("kind", "sharding"): the later row counts. */
static const WordRow attributes[] = {
#define ATTR(id, text, cls) {text, A_##cls},
#include "ir/attrs.def"
#undef ATTR
    {"kind", A_KIND},
    {"replica_count", H_INT}, {"num_partitions", H_INT}, {"is_scheduled", H_BOOL}, {"alias_passthrough_params", H_BOOL},
    {"allow_spmd_sharding_propagation_to_parameters", H_BOOLS}, {"allow_spmd_sharding_propagation_to_output", H_BOOLS},
    {"input_output_alias", H_ALIAS}, {"buffer_donor", H_DONOR}, {"entry_computation_layout", H_LAYOUT},
    {"origin_recovery_table", H_ORIGINS}, {"debug_attributes", H_DEBUG}, {"execution_thread", C_THREAD},
    {"op_type", S_STRING}, {"op_name", S_STRING}, {"source_file", S_STRING}, {"deduplicated_name", S_STRING},
    {"scheduling_name", S_STRING}, {"metadata_payload", S_STRING}, {"profile_type", S_INTS},
    {"source_line", S_INT}, {"source_end_line", S_INT}, {"source_column", S_INT}, {"source_end_column", S_INT},
    {"stack_frame_id", S_INT},
    {"file_name_id", S_INT}, {"function_name_id", S_INT}, {"line", S_INT}, {"end_line", S_INT},
    {"column", S_INT}, {"end_column", S_INT},
    {"file_location_id", S_INT}, {"parent_frame_id", S_INT}, {"callback_id", S_INT}, {"op_id", S_INT}, {"device_id", S_INT},
    {"device", S_INT}, {"dimension", S_INT}, {"idx", S_INT}, {"scale_idx", S_INT}, {"zero_idx", S_INT},
    {"log_mode", S_LOG_MODE}, {"partitioned", S_BOOL},
    {"size", S_DXD}, {"stride", S_DXD}, {"lhs_dilate", S_DXD}, {"rhs_dilate", S_DXD}, {"rhs_reversal", S_DXD}, {"strides", S_DXD},
    {"steps", S_DXD}, {"sparsity", S_DXD}, {"pad", S_PAD}, {"atol", S_NUMBER}, {"rtol", S_NUMBER}, {"ulps", S_NUMBER},
    {"tolerance", S_TOLERANCE}, {"lhs", S_SIDE}, {"rhs", S_SIDE}, {"entry", S_SHARDING}, {"exit", S_SHARDING},
    {"devices", S_DEVICES}, {"last_tile_dims", S_LAST_TILE_DIMS}, {"replicated", S_AXES},
    {"manual", S_AXES}, {"unreduced", S_UNREDUCED},
};
enum { N_KEYWORDS = sizeof keywords / sizeof *keywords, N_ATTRIBUTES = sizeof attributes / sizeof *attributes };

enum { QUEUE = 4, KEYS_NO = 0, KEYS_AHEAD = 1, KEYS_INSIDE = 2 };

/* ---- what the scanner's actions call ---- */

const char *lex_name(Parser *p, const char *s, size_t n)
{
    return intern(p->strings, s, n);
}

int lex_word(Parser *p, HLO_STYPE *v, const char *s, size_t n)
{
    const char    *word = intern(p->strings, s, n);
    const WordRow *row = map_get(&p->words, word);
    if (!row) {
        v->name = word;
        return T_IDENT;
    }
    if (row->token == T_TYPE)
        v->type = type_lookup(s, n);
    else
        v->name = word;
    return row->token;
}

int lex_attr(Parser *p, HLO_STYPE *v, const char *s, size_t n)
{
    v->name = intern(p->strings, s, n);
    if (p->keys == KEYS_INSIDE) {
        p->raw_next = p->keys_raw;
        return T_KEY;
    }
    const WordRow *row = map_get(&p->attrs, v->name);
    if (!row)
        return A_OTHER;
    p->raw_next = row->token == A_RAW;
    if (row->token == A_KEY_VALUES || row->token == A_STATISTICS) {
        p->keys = KEYS_AHEAD;
        p->keys_raw = row->token == A_KEY_VALUES;
    }
    return row->token;
}

/* Without '-', 0 to 2^64-1 by bit pattern; with '-', down to -2^63. */
int lex_int(Parser *p, HLO_STYPE *v, Loc loc, const char *s)
{
    bool     negative = *s == '-';
    uint64_t x = 0;
    for (s += negative; *s; s++)
        if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, (uint64_t)(*s - '0'), &x))
            return lex_error(p, loc, "this integer does not fit 64 bits");
    if (negative && x > (uint64_t)INT64_MAX + 1)
        return lex_error(p, loc, "this integer does not fit 64 bits");
    v->i = (int64_t)(negative ? 0 - x : x);
    return T_INT;
}

int lex_decimal(HLO_STYPE *v, const char *s)
{
    v->num = (Number){.kind = NUM_DECIMAL, .f = strtod(s, NULL)};
    return T_DECIMAL;
}

int lex_nan(Parser *p, HLO_STYPE *v, Loc loc, const char *s)
{
    v->num = (Number){.kind = NUM_NAN, .negative = *s == '-'};
    const char *hex = strchr(s, 'x');
    if (!hex)
        return T_DECIMAL;
    errno = 0;
    unsigned long long payload = strtoull(hex + 1, NULL, 16);
    if (errno || payload == 0 || payload >= 1ull << 52)
        return lex_error(p, loc, "a NaN payload is between 0x1 and 0xfffffffffffff");
    v->num.has_payload = true;
    v->num.payload = payload;
    return T_DECIMAL;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Exactly n hex digits as a code point in UTF-8 at to; the bytes written, 0 for an error. */
static size_t unescape_code_point(const char *s, const char *end, int n, char *to)
{
    uint32_t x = 0;
    if (end - s < n)
        return 0;
    for (int k = 0; k < n; k++) {
        if (hex_digit(s[k]) < 0)
            return 0;
        x = x << 4 | (uint32_t)hex_digit(s[k]);
    }
    if (x > 0x10FFFF || (x >= 0xD800 && x <= 0xDFFF))
        return 0;
    if (x < 0x80) {
        to[0] = (char)x;
        return 1;
    }
    int    more = x < 0x800 ? 1 : x < 0x10000 ? 2 : 3;
    size_t len = (size_t)more + 1;
    to[0] = (char)((0xF0 << (3 - more)) | (int)(x >> (6 * more)));
    for (int k = 1; k <= more; k++)
        to[k] = (char)(0x80 | ((x >> (6 * (more - k))) & 0x3F));
    return len;
}

/* One escape, s behind the backslash. Returns the character after it, NULL for an error; *out gets the bytes. */
static const char *unescape(const char *s, const char *end, char **out)
{
    static const char from[] = "abfnrtv\\?'\"", to[] = "\a\b\f\n\r\t\v\\\?'\"";
    const char       *known = strchr(from, *s);
    if (*s && known) {
        *(*out)++ = to[known - from];
        return s + 1;
    }
    if (*s >= '0' && *s <= '7') {
        unsigned x = 0;
        for (int k = 0; k < 3 && s < end && *s >= '0' && *s <= '7'; k++)
            x = x * 8 + (unsigned)(*s++ - '0');
        *(*out)++ = (char)x;
        return x > 0xff ? NULL : s;
    }
    if (*s == 'x' || *s == 'X') {
        const char *first = ++s;
        unsigned    x = 0;
        for (; s < end && hex_digit(*s) >= 0 && x <= 0xff; s++)
            x = x << 4 | (unsigned)hex_digit(*s);
        *(*out)++ = (char)x;
        return s == first || x > 0xff ? NULL : s;
    }
    if (*s == 'u' || *s == 'U') {
        int    n = *s == 'u' ? 4 : 8;
        size_t len = unescape_code_point(s + 1, end, n, *out);
        *out += len;
        return len ? s + 1 + n : NULL;
    }
    return NULL;
}

int lex_string(Parser *p, HLO_STYPE *v, Loc loc, const char *s, size_t n)
{
    const char *from = s + 1, *end = s + n - 1;
    if (!memchr(from, '\\', n - 2)) {
        v->name = intern(p->strings, from, n - 2);
        return T_STRING;
    }
    char *text = arena_alloc(p->tmp, n), *to = text; /* an escape is never shorter than what it stands for */
    while (from < end) {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        const char *rest = unescape(from + 1, end, &to);
        if (!rest)
            return lex_error(p, (Loc){loc.off + (from - s), 2}, "\\%c is no escape of a string here", from[1]);
        from = rest;
    }
    v->name = intern(p->strings, text, (size_t)(to - text));
    return T_STRING;
}

int lex_error(Parser *p, Loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(p->tmp, fmt, ap);
    va_end(ap);
    p->error_loc = loc;
    parse_error(p, loc, "%s", text);
    return HLO_error;
}

/* ---- the filter ---- */

static void fetch(Parser *p)
{
    Token *t = &p->queue[(p->head + p->queued++) % QUEUE];
    bool   raw = p->raw_next;
    int    keys = p->keys;
    t->loc = (Loc){(int64_t)p->len, 0};
    t->kind = hlo_lex_lex(&t->v, &t->loc, p->scanner);
    if (t->kind == 0)
        t->loc = (Loc){(int64_t)p->len, 0};
    if (raw && t->kind != HLO_error)
        p->raw_next = false;
    if (keys == KEYS_AHEAD)
        p->keys = t->kind == '{' ? KEYS_INSIDE : KEYS_NO;
    else if (keys == KEYS_INSIDE && t->kind == '}')
        p->keys = KEYS_NO;
}

static Token *peek(Parser *p, int k)
{
    while (p->queued <= k)
        fetch(p);
    return &p->queue[(p->head + k) % QUEUE];
}

/* Row 3: nothing but blanks between the comma and device_ids. */
static bool only_blanks(const Parser *p, int64_t from, int64_t to)
{
    for (; from < to; from++)
        if (!strchr(" \t\r\n", p->text[from]))
            return false;
    return true;
}

static bool is_device_ids(Parser *p, const Token *comma)
{
    const Token *t = peek(p, 0);
    return t->kind == A_OTHER && strcmp(t->v.name, "device_ids") == 0 && only_blanks(p, comma->loc.off + 1, t->loc.off);
}

/* Row 5. */
static int input_kind(Parser *p)
{
    int first = peek(p, 0)->kind;
    if (first == K_MODULE)
        return START_MODULE;
    if (first == K_ENTRY)
        return START_COMPS;
    if (first == HLO_error || first == 0)
        return START_INST;
    return peek(p, 1)->kind == '{' ? START_COMPS : START_INST;
}

static bool count_brackets(Parser *p, const Token *t)
{
    switch (t->kind) {
    case '(':
    case '[':
    case '{':
    case T_LAYOUT: p->depth++; break;
    case ')':
    case ']':
    case '}': p->depth--; break;
    default: break;
    }
    if (p->depth <= MAX_NESTING)
        return true;
    p->error_loc = t->loc;
    parse_error(p, t->loc, "nested more than %d levels deep", MAX_NESTING);
    return false;
}

/* The braces behind "constant(", when they are plain. */
static bool next_is_dense(Parser *p, Loc *loc)
{
    if (!p->constant || p->before != '(' || p->queued > 0)
        return false;
    int64_t at = p->token_loc.off + p->token_loc.len;
    hlo_lex_release(p->scanner);
    int64_t end = dense_read(p, p->constant, at);
    p->constant = NULL;
    if (end < 0)
        return false;
    hlo_lex_move(p->scanner, p->buf + end);
    *loc = p->token_loc = (Loc){at, (int32_t)(end - at)};
    return true;
}

int filter_next(Parser *p, HLO_STYPE *v, Loc *loc)
{
    if (p->start >= 0) {
        int start = p->start ? p->start : input_kind(p);
        p->start = -1;
        p->single = start == START_INST;
        *loc = (Loc){peek(p, 0)->loc.off, 0};
        return p->before = start;
    }
    if (diag_full(p->d))
        return HLO_error;
    if (next_is_dense(p, loc))
        return p->before = T_DENSE;
    Token t = *peek(p, 0);
    p->text_begins = p->before == START_INST;
    p->head = (p->head + 1) % QUEUE;
    p->queued--;
    if (t.kind == ']' && peek(p, 0)->kind == '{' && (peek(p, 1)->kind == T_INT || peek(p, 1)->kind == ':'))
        peek(p, 0)->kind = T_LAYOUT;
    else if (t.kind == ',' && is_device_ids(p, &t)) {
        t.kind = T_DEVICE_IDS;
        t.loc = loc_span(t.loc, peek(p, 0)->loc);
        p->head = (p->head + 1) % QUEUE;
        p->queued--;
    } else if (t.kind == T_IDENT && t.v.name[0] == 'T' && !t.v.name[1]
               && (p->before == ']' || p->before == ':' || p->before == ')') && peek(p, 0)->kind == '(')
        t.kind = K_T;
    if (!count_brackets(p, &t))
        t.kind = HLO_error;
    *v = t.v;
    *loc = p->token_loc = t.loc;
    return p->before = t.kind;
}

/* ---- setting up ---- */

static void put_rows(Parser *p, Map *map, const WordRow *rows, int n)
{
    for (int k = 0; k < n; k++)
        map_put(map, intern_str(p->strings, rows[k].text), (void *)(uintptr_t)&rows[k]);
}

static void put_tables(Parser *p)
{
    static const WordRow type_row = {"", T_TYPE};
    p->words = map_new(p->tmp);
    p->attrs = map_new(p->tmp);
    p->ops = map_new(p->tmp);
    put_rows(p, &p->words, keywords, N_KEYWORDS);
    put_rows(p, &p->attrs, attributes, N_ATTRIBUTES);
    for (Type t = 0; t < TYPE_COUNT; t++)
        if (t != TYPE_TUPLE)
            map_put(&p->words, intern_str(p->strings, type_name(t)), (void *)(uintptr_t)&type_row);
    for (Op op = 0; op < OP_COUNT; op++) {
        map_put(&p->ops, intern_str(p->strings, op_name(op)), (void *)(uintptr_t)&op_info[op]);
        p->op_rows[op] = op_attrs(op, &p->op_row_count[op]);
    }
    for (AttrId id = 0; id < ATTR_COUNT; id++)
        p->attr_names[id] = intern_str(p->strings, attr_info[id].text);
}

/* "I0521 12:04:45.883483    1509 file.cc:186] " at s: its length, else 0. */
static size_t log_prefix(const char *s, const char *end)
{
    const char *at = s;
    for (const char *form = "L#### ##:##:##.#"; *form; form++, at++) {
        bool fits = at < end && (*form == 'L' ? strchr("IWEF", *at) && *at : *form == '#' ? *at >= '0' && *at <= '9' : *at == *form);
        if (!fits)
            return 0;
    }
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    const char *mark = at;
    while (at < end && *at == ' ')
        at++;
    if (at == mark)
        return 0;
    for (mark = at; at < end && *at >= '0' && *at <= '9';)
        at++;
    if (at == mark || at == end || *at != ' ')
        return 0;
    while (at < end && *at == ' ')
        at++;
    for (mark = at; at < end && *at != ':' && *at != '\n';)
        at++;
    if (at == mark || at == end || *at != ':')
        return 0;
    for (mark = ++at; at < end && *at >= '0' && *at <= '9';)
        at++;
    return at == mark || at == end || *at != ']' ? 0 : (size_t)(at + 1 - s);
}

static const char *line_after(const char *line, const char *end)
{
    const char *next = memchr(line, '\n', (size_t)(end - line));
    return next ? next + 1 : end;
}

static bool has_log_prefix(const char *s, size_t n)
{
    for (const char *line = s; line < s + n; line = line_after(line, s + n))
        if (log_prefix(line, s + n))
            return true;
    return false;
}

/* Log prefixes become blanks, so that positions stay what they are in the file. */
static void blank_log_prefixes(char *s, size_t n)
{
    for (char *line = s; line < s + n; line += line_after(line, s + n) - line)
        memset(line, ' ', log_prefix(line, s + n));
}

void filter_init(Parser *p, char *in_place)
{
    put_tables(p);
    p->queue = ARENA_ARRAY(p->tmp, Token, QUEUE);
    if (in_place && !has_log_prefix(in_place, p->len)) {
        p->buf = in_place;
        return;
    }
    p->buf = arena_alloc(p->tmp, p->len + 2); /* the scanner wants two NULs behind the text */
    if (p->len)
        memcpy(p->buf, p->text, p->len);
    blank_log_prefixes(p->buf, p->len);
}

void filter_release(Parser *p)
{
    hlo_lex_release(p->scanner);
}

void filter_free(Parser *p)
{
    if (!p->scanner)
        return;
    hlo_lex_release(p->scanner);
    hlo_lex_lex_destroy(p->scanner);
    p->scanner = NULL;
}

void filter_start(Parser *p, int64_t off, int start)
{
    filter_free(p);
    if (hlo_lex_lex_init_extra(p, &p->scanner))
        die_out_of_memory("the scanner");
    if (!hlo_lex__scan_buffer(p->buf + off, p->len - (size_t)off + 2, p->scanner))
        die("the scanner refuses its buffer");
    p->constant = NULL;
    p->raw_next = false;
    p->raw_depth = 0;
    p->keys = KEYS_NO;
    p->head = p->queued = 0;
    p->depth = 0;
    p->before = 0;
    p->start = start;
}

int filter_attr_names(Parser *p, const char *const **names)
{
    const char **all = ARENA_ARRAY(p->tmp, const char *, N_ATTRIBUTES);
    for (int k = 0; k < N_ATTRIBUTES; k++)
        all[k] = attributes[k].text;
    *names = all;
    return N_ATTRIBUTES;
}
