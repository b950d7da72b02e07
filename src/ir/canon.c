/* Names are made unique with one table of roots for all instructions and another for all computations. */
#include "config.h"

#include "ir/canon.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* The numbers in use behind one root. Most roots have one, which is the table's entry itself; the others are mostly numbered through. */
enum { WORD_BITS = 8 * sizeof(uintptr_t) };
typedef struct Root {
    int64_t first;
    Map    *more; /* number / WORD_BITS -> a word with a bit for each number in use; NULL: only first is in use */
    int64_t next;
} Root;

struct Uniquer {
    Arena    *arena;
    Interner *strings;
    Map       roots; /* interned root -> Root, or twice its only number and 1 */
};

Uniquer *uniquer_new(Arena *a, Interner *strings)
{
    Uniquer *u = ARENA_NEW(a, Uniquer);
    *u = (Uniquer){a, strings, map_new(a)};
    return u;
}

/* "q.007" is root q with number 7. False when name ends in no number. */
static bool split_number(const char *name, size_t n, size_t *root, int64_t *id)
{
    const char *dot = memrchr(name, '.', n);
    if (!dot || dot == name || dot == name + n - 1)
        return false;
    const char *s = dot + 1, *end = name + n;
    bool        negative = *s == '-';
    int64_t     x = 0;
    s += *s == '-' || *s == '+';
    if (s == end)
        return false;
    for (; s < end; s++) /* towards the sign's side, so that -2^63 fits */
        if (*s < '0' || *s > '9' || __builtin_mul_overflow(x, 10, &x)
            || __builtin_add_overflow(x, negative ? '0' - *s : *s - '0', &x))
            return false;
    *id = x;
    *root = (size_t)(dot - name);
    return true;
}

static uintptr_t root_word(const Root *r, uint64_t id)
{
    return (uintptr_t)map_get_u64(r->more, id / WORD_BITS);
}

static bool root_has(const Root *r, int64_t id)
{
    return id == r->first || (r->more && root_word(r, (uint64_t)id) >> ((uint64_t)id % WORD_BITS) & 1);
}

static void root_add(Uniquer *u, Root *r, int64_t id)
{
    if (!r->more) {
        r->more = ARENA_NEW(u->arena, Map);
        *r->more = map_new(u->arena);
    }
    uintptr_t word = root_word(r, (uint64_t)id) | (uintptr_t)1 << ((uint64_t)id % WORD_BITS);
    map_put_u64(r->more, (uint64_t)id / WORD_BITS, (void *)word);
}

static Root *root_new(Uniquer *u, int64_t first)
{
    Root *r = ARENA_NEW(u->arena, Root);
    r->first = first;
    return r;
}

static void root_begin(Uniquer *u, const char *root, int64_t id)
{
    bool fits = id >= 0 && id <= INTPTR_MAX >> 1;
    map_put(&u->roots, root, fits ? (void *)((uintptr_t)id << 1 | 1) : root_new(u, id));
}

/* A second name with that root. */
static Root *root_open(Uniquer *u, const char *root, void *entry)
{
    if (((uintptr_t)entry & 1) == 0)
        return entry;
    Root *r = root_new(u, (int64_t)((uintptr_t)entry >> 1));
    map_put(&u->roots, root, r);
    return r;
}

const char *uniquer_name(Uniquer *u, const char *name)
{
    size_t  n = intern_len(name), root_len = n;
    int64_t id = 0;
    bool    had = split_number(name, n, &root_len, &id);
    const char *root = had ? intern(u->strings, name, root_len) : name;
    void       *entry = map_get(&u->roots, root);
    int64_t     wanted = id;
    if (!entry) {
        root_begin(u, root, id);
    } else {
        Root *r = root_open(u, root, entry);
        if (root_has(r, id)) {
            for (id = r->next; root_has(r, id);)
                id++;
            r->next = id + 1;
        }
        root_add(u, r, id);
    }
    if (id == 0 && !had)
        return root;
    if (id == wanted) { /* the same name, unless it has leading zeros or a sign */
        const char *digits = name + root_len + 1;
        bool        plain = *digits != '+' && (*digits != '0' || !digits[1]) && strcmp(digits, "-0") != 0
                     && (*digits != '-' || digits[1] != '0');
        if (plain)
            return name;
    }
    return intern_printf(u->strings, "%s.%lld", root, (long long)id);
}

const bool name_chars[256] = {['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['_'] = true, ['.'] = true, ['-'] = true};

static bool name_char(char c)
{
    return name_chars[(unsigned char)c];
}

bool name_is_sanitary(Interner *strings, const char *name, const char **better)
{
    size_t n = intern_len(name);
    bool   clean = n > 0 && ((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z') || name[0] == '_');
    for (size_t k = 1; k < n && clean; k++)
        clean = name_char(name[k]);
    bool is_type = n <= TYPE_NAME_MAX && !memchr(name, '.', n) && type_lookup(name, n) != TYPE_COUNT;
    bool reserved = n >= 2 && name[0] == '_' && name[1] == '_' && strncmp(name, "__xla_", 6) != 0;
    *better = name;
    if (clean && !is_type && !reserved)
        return true;
    char *s = mem_alloc((int64_t)n + 2, 1);
    memcpy(s, name, n);
    s[n] = 0;
    for (size_t k = 0; k < n; k++)
        if (!name_char(s[k]) || (k == 0 && (s[k] == '.' || s[k] == '-' || (s[k] >= '0' && s[k] <= '9'))))
            s[k] = '_';
    reserved = n >= 2 && s[0] == '_' && s[1] == '_' && strncmp(s, "__xla_", 6) != 0;
    if (is_type)
        s[n++] = '_';
    if (reserved)
        s[0] = 'a';
    *better = intern(strings, s, n);
    mem_free(s);
    return false;
}

void module_make_names_unique(Module *m, bool with_insts)
{
    Arena   *scratch = arena_new();
    Uniquer *insts = uniquer_new(scratch, m->strings), *comps = uniquer_new(scratch, m->strings);
    for (Comp *c = m->first; c; c = c->next) {
        c->name = uniquer_name(comps, c->name);
        for (Inst *i = c->first; i && with_insts; i = i->next)
            i->name = uniquer_name(insts, i->name);
    }
    arena_free(scratch);
    m->name_table = NULL;
}

/* ---- stack frames ---- */

/* New tables under construction. Old ids are 1-based; *_at gives the new id of an old one, 0: not moved yet. */
typedef struct Tables {
    Arena      *arena;
    const StackTables *old;
    StackTables t;
    const char **files, **functions;
    FileLocation *locations;
    StackFrame   *frames;
    int32_t      *frame_at;
    Map           files_seen, functions_seen, locations_seen, frames_seen;
} Tables;

/* The number of text in the list, which it joins. */
static int32_t place_string(Map *seen, const char **list, int32_t *n, const char *text)
{
    int32_t at = (int32_t)(intptr_t)map_get(seen, text);
    if (at == 0) {
        list[(*n)++] = text;
        at = *n;
        map_put(seen, text, (void *)(intptr_t)at);
    }
    return at;
}

/* Equal entries share a number: found by hash, compared in full. Chains through next. */
typedef struct Placed Placed;
struct Placed {
    int32_t at;
    Placed *next;
};

static int32_t place_location(Tables *x, FileLocation l)
{
    uint64_t h = hash_bytes(0, &l, sizeof l);
    Placed  *first = map_get_u64(&x->locations_seen, h);
    for (Placed *q = first; q; q = q->next)
        if (memcmp(&x->locations[q->at - 1], &l, sizeof l) == 0)
            return q->at;
    x->locations[x->t.n_locations++] = l;
    Placed *q = ARENA_NEW(x->arena, Placed);
    *q = (Placed){x->t.n_locations, first};
    map_put_u64(&x->locations_seen, h, q);
    return q->at;
}

static int32_t place_frame(Tables *x, StackFrame f)
{
    uint64_t h = hash_bytes(0, &f, sizeof f);
    Placed  *first = map_get_u64(&x->frames_seen, h);
    for (Placed *q = first; q; q = q->next)
        if (memcmp(&x->frames[q->at - 1], &f, sizeof f) == 0)
            return q->at;
    x->frames[x->t.n_frames++] = f;
    Placed *q = ARENA_NEW(x->arena, Placed);
    *q = (Placed){x->t.n_frames, first};
    map_put_u64(&x->frames_seen, h, q);
    return q->at;
}

static bool in_table(int32_t id, int32_t n)
{
    return id >= 1 && id <= n;
}

enum { FRAME_NEW = 0, FRAME_DANGLING = -1 };

/* The new number of a frame with this parent, FRAME_DANGLING when something that it refers to does not exist. */
static int32_t move_one_frame(Tables *x, int32_t id, int32_t parent)
{
    const StackTables *old = x->old;
    int32_t            at = old->frames[id - 1].location;
    if (parent == FRAME_DANGLING || !in_table(at, old->n_locations))
        return FRAME_DANGLING;
    FileLocation l = old->locations[at - 1];
    if (!in_table(l.file, old->n_files) || !in_table(l.function, old->n_functions))
        return FRAME_DANGLING;
    l.file = place_string(&x->files_seen, x->files, &x->t.n_files, old->files[l.file - 1]);
    l.function = place_string(&x->functions_seen, x->functions, &x->t.n_functions, old->functions[l.function - 1]);
    return place_frame(x, (StackFrame){place_location(x, l), parent});
}

/* The new number of an old frame: its ancestors come first. 0 when it or an ancestor is dangling or the chain is a cycle; what is whole
 * among the ancestors of a dangling one stays in the tables. */
static int32_t move_frame(Tables *x, int32_t id)
{
    const StackTables *old = x->old;
    int32_t           *chain = ARENA_ARRAY(x->arena, int32_t, (int64_t)old->n_frames + 1), n = 0, at = id;
    for (; in_table(at, old->n_frames) && x->frame_at[at - 1] == FRAME_NEW && n <= old->n_frames; at = old->frames[at - 1].parent)
        chain[n++] = at;
    bool    ends = n <= old->n_frames && (at == 0 || in_table(at, old->n_frames));
    int32_t moved = !ends ? FRAME_DANGLING : at ? x->frame_at[at - 1] : 0;
    while (n-- > 0) {
        moved = move_one_frame(x, chain[n], moved);
        x->frame_at[chain[n] - 1] = moved;
    }
    return moved > 0 ? moved : 0;
}

void module_rebuild_stack_frames(Module *m)
{
    const StackTables old = m->stack;
    Arena            *scratch = arena_new();
    Tables            x = {.arena = scratch, .old = &old, .files_seen = map_new(scratch), .functions_seen = map_new(scratch),
                           .locations_seen = map_new(scratch), .frames_seen = map_new(scratch)};
    x.files = ARENA_ARRAY(m->arena, const char *, old.n_files);
    x.functions = ARENA_ARRAY(m->arena, const char *, old.n_functions);
    x.locations = ARENA_ARRAY(m->arena, FileLocation, old.n_frames);
    x.frames = ARENA_ARRAY(m->arena, StackFrame, old.n_frames);
    x.frame_at = ARENA_ARRAY(scratch, int32_t, old.n_frames);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first; i; i = i->next) {
            if (!i->meta || i->meta->stack_frame_id == 0)
                continue;
            int32_t id = move_frame(&x, i->meta->stack_frame_id);
            if (id == i->meta->stack_frame_id)
                continue;
            Metadata *md = arena_copy(m->arena, i->meta, sizeof *md);
            md->stack_frame_id = id;
            i->meta = md;
        }
    x.t.files = x.files;
    x.t.functions = x.functions;
    x.t.locations = x.locations;
    x.t.frames = x.frames;
    m->stack = x.t;
    arena_free(scratch);
}

/* ---- order ---- */

static void settle_comp(Arena *scratch, Comp *c)
{
    Inst **order = comp_post_order(scratch, c);
    for (int32_t k = 0, n = c->n_insts; k < n; k++)
        inst_move_before(order[k], NULL);
}

void module_settle_order(Module *m)
{
    Arena *scratch = arena_new();
    Map    fusion_bodies = map_new(scratch);
    for (Comp *c = m->first; c && m->is_scheduled; c = c->next)
        for (Inst *i = c->first; i; i = i->next)
            if (i->op == OP_FUSION && i->n_callees)
                map_put(&fusion_bodies, i->callees[0], i);
    for (Comp *c = m->first; c; c = c->next)
        if (!m->is_scheduled || map_has(&fusion_bodies, c))
            settle_comp(scratch, c);
    int32_t n;
    Comp  **order = module_comp_order(scratch, m, &n);
    for (int32_t k = 0; k < n; k++)
        comp_move_before(order[k], NULL);
    arena_free(scratch);
}
