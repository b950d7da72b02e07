/* Between scanner and grammar: looks words and attribute names up, and decides what needs more than the current token, so that the
 * grammar is plain LALR(1). Source: reference text 11.2; the numbers below are its rows.
 *
 *   1  { after backend_config= or a key of frontend_attributes={}: a raw dictionary, one string
 *   2  ] { followed by an integer or ':': the brace opens a layout
 *   3  , device_ids= with nothing but blanks between them: one token, of the scanner
 *   4  T after ] : ) and before ( : the word of layouts and iotas
 *   5  the first tokens say which of three kinds of input it is
 *   6  words that are keywords in some places and names in others
 *   7  attribute names, by the class of their value
 *
 * Array types of sizes and an order come as one token with their shape, which equal texts share.
 *
 * The braces of a long constant come as one token: parse_dense.c has read its values by then. So do the plain values of attributes,
 * by parse_plain.c. */
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

struct WordRow {
    const char *text;
    int         token;
};

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

static const Vocabulary *vocabulary_of(const Parser *p, const char *word)
{
    uint32_t tag = intern_tag(word);
    return &p->vocabulary[tag <= p->n_vocabulary ? tag : 0];
}

Op op_lookup(const Parser *p, const char *word)
{
    return vocabulary_of(p, word)->op;
}

/* ---- what the scanner's actions call ---- */

const char *lex_name(Parser *p, const char *s, size_t n)
{
    return intern(p->strings, s, n);
}

int lex_word(Parser *p, HLO_STYPE *v, const char *s, size_t n)
{
    const char    *word = intern(p->strings, s, n);
    const WordRow *row = vocabulary_of(p, word)->word;
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
    const WordRow *row = vocabulary_of(p, v->name)->attr;
    if (!row)
        return A_OTHER;
    p->raw_next = row->token == A_RAW;
    if (row->token == A_KEY_VALUES || row->token == A_STATISTICS) {
        p->keys = KEYS_AHEAD;
        p->keys_raw = row->token == A_KEY_VALUES;
    }
    return row->token;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "2,3" behind s, which moves behind it; NULL when a number is too long to be sure that it fits. */
static IntVec *short_ints(Parser *p, const char **s)
{
    enum { SURE = 18 };
    IntVec *v = int_list_empty(p);
    for (;; ++*s) {
        const char *from = *s;
        int64_t     x = 0;
        for (; is_digit(**s); ++*s)
            x = *s - from < SURE ? x * 10 + (**s - '0') : 0;
        if (*s - from > SURE)
            return NULL;
        if (*s > from)
            int_list(p, v, x);
        if (**s != ',')
            return v;
    }
}

char *name_end(char *s)
{
    while (name_chars[(unsigned char)*s])
        s++;
    return s;
}

/* Behind "2,0,1" at s; s itself when nothing of that is there. */
static char *ints_end(char *s)
{
    while (is_digit(*s)) {
        while (is_digit(*s))
            s++;
        if (*s != ',' || !is_digit(s[1]))
            break;
        s++;
    }
    return s;
}

char *array_end(char *s)
{
    char *end = ints_end(s);
    if (*end != ']')
        return s;
    char *order = *++end == '{' ? ints_end(end + 1) : end;
    return order > end + 1 && *order == '}' ? order + 1 : end;
}

/* The shape of s, NULL when it is not one without errors. s ends with a NUL. */
static const Shape *array_shape(Parser *p, const char *s, size_t n)
{
    size_t         word = strcspn(s, "[");
    const WordRow *row = vocabulary_of(p, intern(p->strings, s, word))->word;
    const char    *at = s + word + 1;
    if (!row || row->token != T_TYPE)
        return NULL;
    Type    t = type_lookup(s, word);
    IntVec *sizes = short_ints(p, &at), *order = NULL;
    if (sizes && at + 1 < s + n && (at += 2))
        order = short_ints(p, &at);
    bool with_layout = s[n - 1] == '}';
    if (!sizes || (with_layout && (!order || order->n != sizes->n)) || (!type_is_array(t) && n > word + 2))
        return NULL;
    dims_begin(p);
    for (int32_t k = 0; k < sizes->n; k++)
        dim_add(p, sizes->v[k], false, LOC_NONE);
    return type_array(p, t, &p->dims, with_layout ? layout_begin(p, order) : NULL, LOC_NONE, LOC_NONE);
}

static const char *skip_space(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

/* A layout could follow (row 2), or a comment before one. next is the first byte behind the type. */
static bool type_goes_on(const char *behind, char next)
{
    if (next == ',' || next == ')')
        return false;
    if (next == ' ' && *skip_space(behind + 1) != '{')
        return *skip_space(behind + 1) == '/';
    if (next != ' ' && next != '{')
        return next == '/' || next == '\t' || next == '\r' || next == '\n';
    const char *inside = skip_space((next == '{' ? behind : skip_space(behind + 1)) + 1);
    return *inside == ':' || *inside == '/' || *inside == '-' || is_digit(*inside);
}

bool lex_array(Parser *p, HLO_STYPE *v, const char *s, size_t n, char next)
{
    if (s[n - 1] == '[' || type_goes_on(s + n, next))
        return false;
    const char *text = intern(p->array_texts, s, n);
    if (!intern_tag(text)) {
        vec_push(p->tmp, &p->array_shapes, array_shape(p, s, n));
        intern_set_tag(text, (uint32_t)p->array_shapes.n);
    }
    v->shape = p->array_shapes.v[intern_tag(text) - 1];
    return v->shape != NULL;
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

/* The value right behind an attribute, found without the scanner: its kind, 0 when it is for the scanner. */
static int fetch_plain(Parser *p, HLO_STYPE *v, Loc *loc)
{
    int attr = p->plain_after;
    p->plain_after = 0;
    hlo_lex_release(p->scanner);
    int kind = plain_value(p, attr, v, loc, p->plain_at);
    if (kind)
        hlo_lex_move(p->scanner, p->buf + loc->off + loc->len);
    return kind;
}

/* The scanner's next token where a dictionary may begin or end. */
static int fetch_in_keys(Parser *p, HLO_STYPE *v, Loc *loc)
{
    bool raw = p->raw_next;
    int  keys = p->keys;
    int  kind = hlo_lex_lex(v, loc, p->scanner);
    if (raw && kind != HLO_error)
        p->raw_next = false;
    if (keys == KEYS_AHEAD)
        p->keys = kind == '{' ? KEYS_INSIDE : KEYS_NO;
    else if (keys == KEYS_INSIDE && kind == '}')
        p->keys = KEYS_NO;
    return kind;
}

/* The scanner's next token: its kind. */
static inline int fetch(Parser *p, HLO_STYPE *v, Loc *loc)
{
    int kind = p->plain_after ? fetch_plain(p, v, loc) : 0;
    if (kind)
        return kind;
    kind = p->raw_next || p->keys != KEYS_NO ? fetch_in_keys(p, v, loc) : hlo_lex_lex(v, loc, p->scanner);
    switch (kind) {
    case A_METADATA: case A_INTS: case A_INTS_OR_LISTS: case S_STRING: case A_STRING:
        p->plain_after = kind;
        p->plain_at = loc->off + loc->len;
        break;
    case 0:
        *loc = (Loc){(int64_t)p->len, 0};
        break;
    default:
        break;
    }
    return kind;
}

static Token *peek(Parser *p, int k)
{
    while (p->queued <= k) {
        Token *t = &p->queue[(p->head + p->queued++) % QUEUE];
        t->kind = fetch(p, &t->v, &t->loc);
    }
    return &p->queue[(p->head + k) % QUEUE];
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

static int open_bracket(Parser *p, int kind, Loc loc)
{
    if (++p->depth <= MAX_NESTING)
        return kind;
    p->error_loc = loc;
    parse_error(p, loc, "nested more than %d levels deep", MAX_NESTING);
    return HLO_error;
}

/* The braces behind "constant(", when they are plain. */
static bool next_is_dense(Parser *p, Loc *loc)
{
    if (p->before != '(' || p->queued > 0)
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
    if (p->d->errors && diag_full(p->d))
        return HLO_error;
    if (p->constant && next_is_dense(p, loc))
        return p->before = T_DENSE;
    int kind;
    if (p->queued > 0) {
        const Token *t = &p->queue[p->head];
        kind = t->kind;
        *v = t->v;
        *loc = t->loc;
        p->head = (p->head + 1) % QUEUE;
        p->queued--;
    } else {
        kind = fetch(p, v, loc);
    }
    p->text_begins = p->before == START_INST;
    switch (kind) {
    case '(': case '[': case '{': case T_LAYOUT:
        kind = open_bracket(p, kind, *loc);
        break;
    case ']':
        if (peek(p, 0)->kind == '{' && (peek(p, 1)->kind == T_INT || peek(p, 1)->kind == ':'))
            peek(p, 0)->kind = T_LAYOUT;
        p->depth--;
        break;
    case ')': case '}':
        p->depth--;
        break;
    case T_IDENT:
        if (v->name[0] == 'T' && !v->name[1] && (p->before == ']' || p->before == ':' || p->before == ')') && peek(p, 0)->kind == '(')
            kind = K_T;
        break;
    default:
        break;
    }
    p->token_loc = *loc;
    return p->before = kind;
}

/* ---- setting up ---- */

/* The entry of a word that the language knows, made when it is not there yet. */
static Vocabulary *vocabulary_entry(Parser *p, const char *text)
{
    const char *word = intern_str(p->strings, text);
    if (!intern_tag(word)) {
        p->vocabulary[++p->n_vocabulary] = (Vocabulary){.op = OP_COUNT};
        intern_set_tag(word, p->n_vocabulary);
    }
    return &p->vocabulary[intern_tag(word)];
}

static void put_tables(Parser *p)
{
    static const WordRow type_row = {"", T_TYPE};
    p->vocabulary = ARENA_ARRAY(p->tmp, Vocabulary, 1 + N_KEYWORDS + N_ATTRIBUTES + TYPE_COUNT + OP_COUNT);
    p->vocabulary[0].op = OP_COUNT;
    p->array_texts = interner_new(p->tmp);
    for (int k = 0; k < N_KEYWORDS; k++)
        vocabulary_entry(p, keywords[k].text)->word = &keywords[k];
    for (int k = 0; k < N_ATTRIBUTES; k++)
        vocabulary_entry(p, attributes[k].text)->attr = &attributes[k];
    for (Type t = 0; t < TYPE_COUNT; t++)
        if (t != TYPE_TUPLE)
            vocabulary_entry(p, type_name(t))->word = &type_row;
    for (Op op = 0; op < OP_COUNT; op++)
        vocabulary_entry(p, op_name(op))->op = op;
    for (AttrId id = 0; id < ATTR_COUNT; id++)
        p->attr_names[id] = intern_str(p->strings, attr_info[id].text);
}

/* "I0521 12:04:45.883483    1509 file.cc:186] " at s: its length, else 0. */
static size_t log_prefix(const char *s, const char *end)
{
    const char *at = s;
    for (const char *form = "L#### ##:##:##.#"; *form; form++, at++) {
        bool fits = at < end && (*form == 'L' ? strchr("IWEF", *at) && *at : *form == '#' ? is_digit(*at) : *at == *form);
        if (!fits)
            return 0;
    }
    while (at < end && is_digit(*at))
        at++;
    const char *mark = at;
    while (at < end && *at == ' ')
        at++;
    if (at == mark)
        return 0;
    for (mark = at; at < end && is_digit(*at);)
        at++;
    if (at == mark || at == end || *at != ' ')
        return 0;
    while (at < end && *at == ' ')
        at++;
    for (mark = at; at < end && *at != ':' && *at != '\n';)
        at++;
    if (at == mark || at == end || *at != ':')
        return 0;
    for (mark = ++at; at < end && is_digit(*at);)
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
    p->plain_after = 0;
    p->head = p->queued = 0;
    p->depth = 0;
    p->before = 0;
    p->start = start;
}

static bool is_in_family(const WordRow *row, KeyFamily family)
{
    static const char *const elsewhere[] = {"frontend_attributes", "backend_config"};
    bool is_common = strcmp(row->text, elsewhere[0]) == 0 || strcmp(row->text, elsewhere[1]) == 0;
    switch (family) {
    case KEYS_ANY: return true;
    case KEYS_OF_HEADER: return (row->token >= H_INT && row->token <= H_DEBUG) || is_common;
    case KEYS_OF_METADATA: return metadata_has_key(row->text);
    }
    die("no family %d of keys", (int)family);
}

NameVec filter_keys(Parser *p, KeyFamily family)
{
    NameVec names = {0};
    for (int k = 0; k < N_ATTRIBUTES; k++)
        if (is_in_family(&attributes[k], family))
            vec_push(p->tmp, &names, attributes[k].text);
    return names;
}
