/* Lists of keys and values: metadata and the rows of the stack tables. Source: reference text 3.4, 6.5. */
#include "config.h"

#include "text/parse_int.h"

#include "ir/attr_rare.h"

typedef enum { CTX_META = 1, CTX_LOCATION = 2, CTX_FRAME = 4 } SubContext;
typedef enum { SUB_STRING, SUB_INT, SUB_INTS } SubClass;
struct SubKey {
    const char *text;
    SubContext  ctx;
    SubClass    cls;
    size_t      offset;
};
#define FIELD(T, f) _Generic(((T *)0)->f, const char *: SUB_STRING, int32_t: SUB_INT, Ints: SUB_INTS), offsetof(T, f)
#define META(f)     CTX_META, FIELD(Metadata, f)
#define LOCATION(f) CTX_LOCATION, FIELD(FileLocation, f)
#define FRAME(f)    CTX_FRAME, FIELD(StackFrame, f)
static const SubKey sub_keys[] = {
    {"op_type", META(op_type)}, {"op_name", META(op_name)}, {"source_file", META(source_file)}, {"source_line", META(source_line)},
    {"source_end_line", META(source_end_line)}, {"source_column", META(source_column)},
    {"source_end_column", META(source_end_column)}, {"profile_type", META(profile_type)},
    {"deduplicated_name", META(deduplicated_name)}, {"scheduling_name", META(scheduling_name)},
    {"stack_frame_id", META(stack_frame_id)}, {"metadata_payload", META(payload)},
    {"file_name_id", LOCATION(file)}, {"function_name_id", LOCATION(function)}, {"line", LOCATION(line)},
    {"end_line", LOCATION(end_line)}, {"column", LOCATION(column)}, {"end_column", LOCATION(end_column)},
    {"file_location_id", FRAME(location)}, {"parent_frame_id", FRAME(parent)},
};
enum { N_SUB_KEYS = sizeof sub_keys / sizeof *sub_keys };

bool metadata_has_key(const char *key)
{
    for (int k = 0; k < N_SUB_KEYS; k++)
        if (sub_keys[k].ctx == CTX_META && strcmp(sub_keys[k].text, key) == 0)
            return true;
    return false;
}

void meta_begin(Parser *p)
{
    p->meta = (Metadata){0};
    p->location = (FileLocation){0};
    p->frame = (StackFrame){0};
    p->keys_seen.n = 0;
    p->in_meta = p->scope != NULL;
}

/* The row of key; NULL when no list has it. Given twice is reported. */
static const SubKey *sub_key(Parser *p, const char *key, Loc loc)
{
    const SubKey *row = NULL;
    for (int32_t k = 0; k < p->keys_seen.n; k++)
        if (p->keys_seen.v[k].key.s == key) {
            parse_error(p, loc, "'%s' is given twice", key);
            return NULL;
        }
    for (int k = 0; k < N_SUB_KEYS && !row; k++)
        row = *sub_keys[k].text == *key && strcmp(sub_keys[k].text, key) == 0 ? &sub_keys[k] : NULL;
    vec_push(p->tmp, &p->keys_seen, ((SeenKey){{key, loc}, row}));
    return row;
}

static void *sub_field(Parser *p, const SubKey *k)
{
    char *base = k->ctx == CTX_META ? (char *)&p->meta : k->ctx == CTX_LOCATION ? (char *)&p->location : (char *)&p->frame;
    return base + k->offset;
}

/* An explicit "" counts as absent, but for the payload. */
void meta_string(Parser *p, const char *key, Loc loc, const char *v)
{
    const SubKey *k = sub_key(p, key, loc);
    if (k && (intern_len(v) || strcmp(key, "metadata_payload") == 0))
        memcpy(sub_field(p, k), &v, sizeof v);
}

void meta_int(Parser *p, const char *key, Loc loc, int64_t v, Loc at)
{
    const SubKey *k = sub_key(p, key, loc);
    if (v < INT32_MIN || v > INT32_MAX)
        parse_error(p, at, "this number does not fit 32 bits");
    else if (k)
        *(int32_t *)sub_field(p, k) = (int32_t)v;
}

void meta_ints(Parser *p, const char *key, Loc loc, Ints v, Loc at)
{
    sub_key(p, key, loc);
    Ints kept = ints_make(p->a, v.n);
    for (int32_t k = 0; k < v.n; k++) {
        *ints_at(kept, k) = (int32_t)v.v[k];
        if (kept.v[k] < 0 || kept.v[k] > 3)
            parse_error(p, at, "a profile type is 0 to 3, found %lld", (long long)v.v[k]);
    }
    p->meta.profile_type = kept;
}

/* Only keys of this list may have been given; all of them when `all`. */
static void sub_end(Parser *p, SubContext ctx, bool all, const char *what, Loc loc)
{
    int32_t given = 0;
    for (int32_t j = 0; j < p->keys_seen.n; j++)
        given += p->keys_seen.v[j].row && p->keys_seen.v[j].row->ctx == ctx;
    if (given == p->keys_seen.n && !all)
        return;
    const char *names[N_SUB_KEYS];
    int32_t     n = 0;
    for (int k = 0; k < N_SUB_KEYS; k++)
        if (sub_keys[k].ctx == ctx)
            names[n++] = sub_keys[k].text;
    for (int32_t j = 0; j < p->keys_seen.n; j++) {
        const SeenKey *seen = &p->keys_seen.v[j];
        if (!seen->row || seen->row->ctx != ctx) {
            parse_error(p, seen->key.loc, "%s has no entry '%s'", what, seen->key.s);
            parse_suggest(p, seen->key.loc, seen->key.s, names, n);
        }
    }
    if (all && given < n)
        parse_error(p, loc, "%s needs all of its %d entries, found %d", what, n, given);
}

const Metadata *meta_end(Parser *p)
{
    p->in_meta = false;
    sub_end(p, CTX_META, false, "metadata", LOC_NONE);
    return arena_copy(p->a, &p->meta, sizeof p->meta);
}

void stack_location(Parser *p, Loc loc)
{
    sub_end(p, CTX_LOCATION, true, "a file location", loc);
    vec_push(p->tmp, &p->locations, p->location);
}

/* A parent is written one higher than it is. */
void stack_frame(Parser *p, Loc loc)
{
    sub_end(p, CTX_FRAME, true, "a stack frame", loc);
    p->frame.parent--;
    vec_push(p->tmp, &p->frames, p->frame);
}

/* ---- metadata without tokens ---- */

/* The row of "key=" at s; NULL: there is no key of metadata. */
static const SubKey *plain_key(const char *s, size_t *len)
{
    *len = strcspn(s, "= {}\"");
    for (int k = 0; k < N_SUB_KEYS && s[*len] == '='; k++)
        if (sub_keys[k].ctx == CTX_META && *sub_keys[k].text == *s && strlen(sub_keys[k].text) == *len &&
            memcmp(sub_keys[k].text, s, *len) == 0)
            return &sub_keys[k];
    return NULL;
}

/* The value at s of the field of k; what is behind it, NULL when the value is not plain. */
static const char *plain_field(Parser *p, const SubKey *k, const char *s)
{
    if (k->cls == SUB_STRING) {
        const char *end = plain_string(p, s);
        if (!end)
            return NULL;
        const char *v = intern(p->strings, s + 1, (size_t)(end - s - 2));
        if (end - s > 2 || k->offset == offsetof(Metadata, payload))
            memcpy(sub_field(p, k), &v, sizeof v);
        return end;
    }
    int64_t     v;
    const char *end = k->cls == SUB_INT ? plain_int(s, &v) : NULL;
    if (!end || v > INT32_MAX)
        return NULL;
    *(int32_t *)sub_field(p, k) = (int32_t)v;
    return end;
}

/* Instructions that come from one line of a model have equal metadata, one behind the other: they share it. */
const char *meta_plain(Parser *p, const char *s, const Metadata **out)
{
    if (p->meta_len && p->meta_len <= p->len - (size_t)(s - p->buf) && memcmp(s, p->meta_text, p->meta_len) == 0) {
        *out = p->meta_read;
        return s + p->meta_len;
    }
    const char *at = s;
    uint32_t    seen = 0;
    p->meta = (Metadata){0};
    do {
        size_t        len;
        const SubKey *k = plain_key(++at, &len);
        if (!k || seen >> (k - sub_keys) & 1 || !(at = plain_field(p, k, at + len + 1)))
            return NULL;
        seen |= 1u << (k - sub_keys);
    } while (*at == ' ');
    if (*at != '}')
        return NULL;
    p->meta_text = s;
    p->meta_len = (size_t)(at + 1 - s);
    p->meta_read = *out = arena_copy(p->a, &p->meta, sizeof p->meta);
    return at + 1;
}
