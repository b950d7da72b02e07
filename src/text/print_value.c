/* The text of attribute values: strings, lists, windows, metadata. Source: reference text 1.5, 1.6, 5.4, 6.2, 6.5. */
#include "text/print_value.h"

#include <string.h>

/* ---- strings ---- */

static void print_quoted_bytes(Buf *b, const char *s, size_t n)
{
    enum { OCTAL = 1 };
    static const char escapes[256] = {[0 ... 8] = OCTAL,   ['\t'] = 't', ['\n'] = 'n', [0x0b ... 0x0c] = OCTAL, ['\r'] = 'r',
                                      [0x0e ... 0x1f] = OCTAL, ['"'] = '"', ['\''] = '\'', ['\\'] = '\\', [0x7f ... 0xff] = OCTAL};
    size_t            done = 0;
    buf_putc(b, '"');
    for (size_t k = 0; k < n; k++) {
        unsigned char c = (unsigned char)s[k];
        char          escape = escapes[c];
        if (escape == 0)
            continue;
        buf_put(b, s + done, k - done);
        done = k + 1;
        if (escape == OCTAL)
            buf_printf(b, "\\%03o", c);
        else
            buf_put(b, (char[2]){'\\', escape}, 2);
    }
    buf_put(b, s + done, n - done);
    buf_putc(b, '"');
}

void print_quoted(Buf *b, const char *s)
{
    print_quoted_bytes(b, s, intern_len(s));
}

void print_thread(Buf *b, const char *s)
{
    buf_putc(b, '"');
    buf_put(b, s, intern_len(s));
    buf_putc(b, '"');
}

/* White space and comments from s[k] on; n + 1 when a comment does not end. */
static size_t skip_space(const char *s, size_t n, size_t k)
{
    for (;;) {
        while (k < n && memchr(" \t\r\n", s[k], 4) != NULL)
            k++;
        if (k + 1 >= n || s[k] != '/')
            return k;
        if (s[k + 1] == '/') {
            while (k < n && s[k] != '\n' && s[k] != '\r')
                k++;
        } else if (s[k + 1] == '*') {
            for (k += 2; k + 1 < n && !(s[k] == '*' && s[k + 1] == '/'); k++)
                ;
            if (k + 1 >= n)
                return n + 1;
            k += 2;
        } else {
            return k;
        }
    }
}

/* The end of the string whose opening quote is s[k]; 0 when it has none. A backslash does not go before a line end. */
static size_t skip_string(const char *s, size_t n, size_t k)
{
    for (k++; k < n && s[k] != '"'; k++)
        if (s[k] == '\\' && (++k == n || s[k] == '\n'))
            return 0;
    return k < n ? k + 1 : 0;
}

/* The end of the dictionary whose opening brace is s[k]; 0 when it is not closed. */
static size_t skip_dictionary(const char *s, size_t n, size_t k)
{
    int64_t depth = 0;
    while (k < n) {
        if (s[k] == '"') {
            k = skip_string(s, n, k);
            if (k == 0)
                return 0;
            continue;
        }
        depth += s[k] == '{' ? 1 : s[k] == '}' ? -1 : 0;
        k++;
        if (depth == 0)
            return k;
    }
    return 0;
}

/* Whether the text, written raw, is read back as one dictionary. */
static bool reads_as_dictionary(const char *s, size_t n)
{
    if (memchr(s, '\0', n) != NULL)
        return false;
    size_t k = skip_space(s, n, 0);
    if (k >= n || s[k] != '{')
        return false;
    k = skip_dictionary(s, n, k);
    return k > 0 && skip_space(s, n, k) == n;
}

void print_raw_or_quoted(Buf *b, const char *s)
{
    size_t n = intern_len(s);
    if (reads_as_dictionary(s, n))
        buf_put(b, s, n);
    else
        print_quoted_bytes(b, s, n);
}

void print_key_values(Buf *b, const KeyValues *kv)
{
    buf_putc(b, '{');
    for (int32_t k = 0; k < kv->n; k++) {
        buf_puts(b, k > 0 ? "," : "");
        buf_put(b, kv->v[k].key, intern_len(kv->v[k].key));
        buf_putc(b, '=');
        print_raw_or_quoted(b, kv->v[k].value);
    }
    buf_putc(b, '}');
}

/* ---- lists ---- */

void print_levels(Buf *b, int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        buf_puts(b, "  ");
}

void print_ints(Buf *b, Ints x)
{
    buf_putc(b, '{');
    for (int32_t k = 0; k < x.n; k++)
        buf_puts(b, k > 0 ? "," : ""), buf_int(b, x.v[k]);
    buf_putc(b, '}');
}

void print_bools(Buf *b, Ints x)
{
    buf_putc(b, '{');
    for (int32_t k = 0; k < x.n; k++) {
        buf_puts(b, k > 0 ? "," : "");
        buf_puts(b, x.v[k] != 0 ? "true" : "false");
    }
    buf_putc(b, '}');
}

void print_aliasing(Buf *b, const Aliasing *a)
{
    buf_putc(b, '{');
    for (int32_t k = 0; k < a->n; k++) {
        buf_puts(b, k > 0 ? ", " : "");
        print_ints(b, a->v[k].output);
        buf_printf(b, ": (%lld, ", (long long)a->v[k].operand);
        print_ints(b, a->v[k].index);
        buf_putc(b, ')');
    }
    buf_putc(b, '}');
}

/* ---- windows ---- */

typedef enum WindowField { W_SIZE, W_STRIDE, W_PAD, W_BASE_DILATION, W_WINDOW_DILATION, W_REVERSAL, W_FIELDS } WindowField;

static bool window_field_is_default(const WindowDim *d, WindowField f)
{
    switch (f) {
    case W_SIZE: return false;
    case W_STRIDE: return d->stride == 1;
    case W_PAD: return d->pad_lo == 0 && d->pad_hi == 0;
    case W_BASE_DILATION: return d->base_dilation == 1;
    case W_WINDOW_DILATION: return d->window_dilation == 1;
    case W_REVERSAL: return !d->reversal;
    case W_FIELDS: break;
    }
    die("no field %d of a window", (int)f);
}

static void print_window_value(Buf *b, const WindowDim *d, WindowField f)
{
    int64_t v = f == W_SIZE            ? d->size
                : f == W_STRIDE        ? d->stride
                : f == W_PAD           ? d->pad_lo
                : f == W_BASE_DILATION ? d->base_dilation
                : f == W_REVERSAL      ? d->reversal
                                       : d->window_dilation;
    buf_int(b, v);
    if (f == W_PAD)
        buf_putc(b, '_'), buf_int(b, d->pad_hi);
}

/* A field is written when some dimension needs it. */
void print_window(Buf *b, const Window *w)
{
    static const char *const names[W_FIELDS] = {"size=", " stride=", " pad=", " lhs_dilate=", " rhs_dilate=", " rhs_reversal="};
    buf_putc(b, '{');
    for (int f = 0; f < W_FIELDS; f++) {
        bool needed = false;
        for (int32_t k = 0; k < w->n; k++)
            needed |= !window_field_is_default(&w->v[k], (WindowField)f);
        for (int32_t k = 0; needed && k < w->n; k++) {
            buf_puts(b, k > 0 ? "x" : names[f]);
            print_window_value(b, &w->v[k], (WindowField)f);
        }
    }
    buf_putc(b, '}');
}

/* One part of dim_labels: as long as the highest position used, gaps are '?'. A later label hides an earlier one at its place. */
static void print_labels(Buf *b, char first, int64_t first_at, char second, int64_t second_at, int32_t n, const int64_t *spatial)
{
    int64_t last = first_at > second_at ? first_at : second_at;
    for (int32_t k = 0; k < n; k++)
        last = spatial[k] > last ? spatial[k] : last;
    for (int64_t at = 0; at <= last; at++) {
        char c = at == second_at ? second : at == first_at ? first : '?';
        for (int32_t k = 0; k < n; k++)
            c = spatial[k] == at ? (char)('0' + k) : c;
        buf_putc(b, c);
    }
}

void print_dim_labels(Buf *b, const DimLabels *d)
{
    print_labels(b, 'b', d->lhs_batch, 'f', d->lhs_feature, d->spatial, d->lhs_spatial);
    buf_putc(b, '_');
    print_labels(b, 'i', d->rhs_in, 'o', d->rhs_out, d->spatial, d->rhs_spatial);
    buf_puts(b, "->");
    print_labels(b, 'b', d->out_batch, 'f', d->out_feature, d->spatial, d->out_spatial);
}

/* ---- metadata ---- */

static bool given(const char *s)
{
    return s != NULL && intern_len(s) > 0;
}

bool metadata_is_printed(const Metadata *m)
{
    return given(m->op_type) || given(m->op_name) || given(m->source_file) || given(m->scheduling_name) || m->stack_frame_id != 0
           || m->payload != NULL;
}

static void put_key(Buf *b, bool *more, const char *key)
{
    buf_puts(b, *more ? " " : "");
    buf_puts(b, key);
    buf_putc(b, '=');
    *more = true;
}

static void put_string(Buf *b, bool *more, const char *key, const char *s)
{
    if (given(s)) {
        put_key(b, more, key);
        print_quoted(b, s);
    }
}

static void put_number(Buf *b, bool *more, const char *key, int32_t v)
{
    if (v != 0) {
        put_key(b, more, key);
        buf_int(b, v);
    }
}

void print_op_name(Buf *b, const Metadata *m)
{
    bool more = false;
    buf_putc(b, '{');
    put_string(b, &more, "op_name", m->op_name);
    buf_putc(b, '}');
}

void print_metadata(Buf *b, const Metadata *m)
{
    bool more = false;
    buf_putc(b, '{');
    put_string(b, &more, "op_type", m->op_type);
    put_string(b, &more, "op_name", m->op_name);
    put_string(b, &more, "source_file", m->source_file);
    put_number(b, &more, "source_line", m->source_line);
    put_number(b, &more, "source_end_line", m->source_end_line);
    put_number(b, &more, "source_column", m->source_column);
    put_number(b, &more, "source_end_column", m->source_end_column);
    if (m->profile_type.n > 0) {
        put_key(b, &more, "profile_type");
        print_ints(b, m->profile_type);
    }
    put_string(b, &more, "deduplicated_name", m->deduplicated_name);
    if (given(m->scheduling_name)) { /* XLA does not escape this one */
        put_key(b, &more, "scheduling_name");
        buf_putc(b, '"');
        buf_put(b, m->scheduling_name, intern_len(m->scheduling_name));
        buf_putc(b, '"');
    }
    put_number(b, &more, "stack_frame_id", m->stack_frame_id);
    if (m->payload != NULL) {
        put_key(b, &more, "metadata_payload");
        print_quoted(b, m->payload);
    }
    buf_putc(b, '}');
}
