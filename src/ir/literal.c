/* Literals: allocation and reference counts, elements as numbers. Counts are atomic, since devices that run in threads of
 * one process share the module's constants. Array data is aligned to a cache line, with its size rounded up to whole lines so
 * that vector code may read past the end of the last row. Small data lies in the literal's own block, behind the dimensions. */
#include "ir/literal.h"

#include <stdlib.h>
#include <string.h>

#include "ir/numeric.h"
#include "support/map.h"

enum { ALIGNMENT = 64, SMALL = 512 };

static int64_t count_of(int32_t rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int32_t d = 0; d < rank; d++)
        if (dims[d] == 0)
            return 0;
    for (int32_t d = 0; d < rank; d++)
        if (dims[d] < 0 || __builtin_mul_overflow(n, dims[d], &n))
            die_out_of_memory("a literal");
    return n;
}

/* A literal of so many elements without values, with `room` bytes behind the dimensions. */
static Literal *new_block(Type t, int32_t rank, const int64_t *dims, int64_t count, size_t room)
{
    Literal *l = malloc(sizeof *l + (size_t)rank * sizeof *dims + room);
    if (l == NULL)
        die_out_of_memory("a literal");
    *l = (Literal){.refs = 1, .type = t, .rank = rank, .count = count};
    for (int32_t d = 0; d < rank; d++)
        l->dims[d] = dims[d];
    return l;
}

static Literal *literal_header(Type t, int32_t rank, const int64_t *dims)
{
    return new_block(t, rank, dims, count_of(rank, dims), 0);
}

static size_t padded_size(int64_t count, int bytes)
{
    int64_t size;
    if (__builtin_mul_overflow(count, (int64_t)bytes, &size) || size > INT64_MAX - ALIGNMENT)
        die_out_of_memory("a literal");
    return ((size_t)size / ALIGNMENT + 1) * ALIGNMENT;
}

Literal *literal_new(Type t, int32_t rank, const int64_t *dims)
{
    int64_t count = count_of(rank, dims);
    size_t size = padded_size(count, type_bytes(t));
    Literal *l = new_block(t, rank, dims, count, size <= SMALL ? size + ALIGNMENT : 0);
    l->inside = size <= SMALL;
    char *behind = (char *)(l->dims + rank);
    l->data = l->inside ? behind + (ALIGNMENT - (uintptr_t)behind % ALIGNMENT) : mem_array(size, "a literal");
    return l;
}

Literal *literal_new_zero(Type t, int32_t rank, const int64_t *dims)
{
    Literal *l = literal_new(t, rank, dims);
    memset(l->data, 0, (size_t)literal_bytes(l));
    return l;
}

Literal *literal_for_shape(const Shape *s, bool zero)
{
    if (s->type == TYPE_TOKEN)
        return literal_token();
    if (!shape_is_tuple(s))
        return zero ? literal_new_zero(s->type, s->rank, s->dims) : literal_new(s->type, s->rank, s->dims);
    Literal *l = literal_tuple(s->n_elems, NULL);
    for (int32_t k = 0; k < s->n_elems; k++)
        l->elems[k] = literal_for_shape(s->elems[k], zero);
    return l;
}

Literal *literal_tuple(int32_t n, Literal *const *elems)
{
    Literal *l = literal_header(TYPE_TUPLE, 0, NULL);
    l->n_elems = n;
    l->elems = mem_alloc(n, sizeof *l->elems);
    for (int32_t k = 0; k < n && elems != NULL; k++)
        l->elems[k] = elems[k];
    return l;
}

Literal *literal_token(void)
{
    return literal_header(TYPE_TOKEN, 0, NULL);
}

Literal *literal_elided(const Shape *s)
{
    Literal *l = literal_header(s->type, s->rank, s->dims);
    l->elided = true;
    return l;
}

Literal *literal_borrow(Type t, int32_t rank, const int64_t *dims, void *data)
{
    Literal *l = literal_header(t, rank, dims);
    l->data = data;
    l->borrowed = true;
    return l;
}

Literal *literal_ref(const Literal *l)
{
    Literal *shared = (Literal *)(uintptr_t)l;
    __atomic_add_fetch(&shared->refs, 1, __ATOMIC_RELAXED);
    return shared;
}

void literal_unref(Literal *l)
{
    if (l == NULL)
        return;
    bool only = __atomic_load_n(&l->refs, __ATOMIC_ACQUIRE) == 1; /* then no other thread can ask for one */
    if (!only && __atomic_sub_fetch(&l->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (int32_t k = 0; k < l->n_elems; k++)
        literal_unref(l->elems[k]);
    literal_unref(l->whole);
    if (l->elems != NULL)
        mem_free(l->elems);
    if (!l->borrowed && !l->inside)
        free(l->data);
    free(l);
}

static void unref_deferred(void *l)
{
    literal_unref(l);
}

const Literal *literal_keep(Arena *a, Literal *l)
{
    arena_defer(a, unref_deferred, l);
    return l;
}

static Literal *copy_of(const Literal *l)
{
    if (l->type == TYPE_TUPLE) {
        Literal *t = literal_tuple(l->n_elems, NULL);
        for (int32_t k = 0; k < l->n_elems; k++)
            t->elems[k] = copy_of(l->elems[k]);
        return t;
    }
    Literal *c = l->data ? literal_new(l->type, l->rank, l->dims) : literal_header(l->type, l->rank, l->dims);
    c->elided = l->elided;
    if (l->data != NULL)
        memcpy(c->data, l->data, (size_t)literal_bytes(l));
    return c;
}

Literal *literal_own(Literal *l)
{
    if (__atomic_load_n(&l->refs, __ATOMIC_ACQUIRE) == 1 && !l->borrowed) {
        for (int32_t k = 0; k < l->n_elems; k++)
            l->elems[k] = literal_own(l->elems[k]);
        return l;
    }
    Literal *c = copy_of(l);
    literal_unref(l);
    return c;
}

Literal *literal_from_s64(Type t, int64_t v)
{
    Literal *l = literal_new_zero(t, 0, NULL);
    literal_set_s64(l, 0, v);
    return l;
}

Literal *literal_from_f64(Type t, double v)
{
    Literal *l = literal_new_zero(t, 0, NULL);
    literal_set_f64(l, 0, v, 0);
    return l;
}

/* ---- whole literals ---- */

bool literal_has_elided(const Literal *l)
{
    for (int32_t k = 0; k < l->n_elems; k++)
        if (literal_has_elided(l->elems[k]))
            return true;
    return l->elided;
}

bool literal_matches(const Literal *l, const Shape *s)
{
    if (l->type != s->type || l->rank != s->rank || l->n_elems != s->n_elems)
        return false;
    for (int32_t d = 0; d < l->rank; d++)
        if (l->dims[d] != s->dims[d])
            return false;
    for (int32_t k = 0; k < l->n_elems; k++)
        if (!literal_matches(l->elems[k], s->elems[k]))
            return false;
    return true;
}

/* Elided values are unknown: such a literal equals itself alone. */
bool literal_equal(const Literal *a, const Literal *b)
{
    if (a == b)
        return true;
    if (a->type != b->type || a->rank != b->rank || a->n_elems != b->n_elems || a->elided || b->elided)
        return false;
    for (int32_t d = 0; d < a->rank; d++)
        if (a->dims[d] != b->dims[d])
            return false;
    for (int32_t k = 0; k < a->n_elems; k++)
        if (!literal_equal(a->elems[k], b->elems[k]))
            return false;
    return !a->data || memcmp(a->data, b->data, (size_t)literal_bytes(a)) == 0; /* tuples have none of their own */
}

uint64_t literal_hash(const Literal *l)
{
    uint64_t h = hash_u64((uint64_t)l->type, (uint64_t)l->n_elems);
    for (int32_t d = 0; d < l->rank; d++)
        h = hash_u64(h, (uint64_t)l->dims[d]);
    for (int32_t k = 0; k < l->n_elems; k++)
        h = hash_u64(h, literal_hash(l->elems[k]));
    return l->data == NULL ? h : hash_bytes(h, l->data, (size_t)literal_bytes(l));
}

int64_t literal_bytes(const Literal *l)
{
    int64_t bytes = 0;
    if (type_is_array(l->type))
        return l->elided ? 0 : l->count * type_bytes(l->type);
    for (int32_t k = 0; k < l->n_elems; k++)
        bytes += literal_bytes(l->elems[k]);
    return bytes;
}

Literal *literal_stack(int64_t n, const Literal *const *l)
{
    int32_t  rank = l[0]->rank;
    int64_t  bytes = literal_bytes(l[0]);
    size_t   size = (size_t)rank * sizeof *l[0]->dims;
    for (int64_t k = 1; k < n; k++)
        if (l[k]->type != l[0]->type || l[k]->rank != rank || memcmp(l[k]->dims, l[0]->dims, size) != 0)
            return NULL;
    int64_t *dims = mem_alloc(rank + 1, sizeof *dims);
    dims[0] = n;
    memcpy(dims + 1, l[0]->dims, size);
    Literal *all = literal_new(l[0]->type, rank + 1, dims);
    mem_free(dims);
    for (int64_t k = 0; k < n && bytes > 0; k++)
        memcpy((char *)all->data + k * bytes, l[k]->data, (size_t)bytes);
    return all;
}

const Shape *literal_shape(Arena *a, const Literal *l)
{
    if (l->type != TYPE_TUPLE)
        return shape_array(a, l->type, l->rank, l->dims);
    const Shape **elems = ARENA_ARRAY(a, const Shape *, l->n_elems);
    for (int32_t k = 0; k < l->n_elems; k++)
        elems[k] = literal_shape(a, l->elems[k]);
    return shape_tuple(a, l->n_elems, elems);
}

/* Equal to itself moved on by one element. */
bool literal_all_equal_bits(const Literal *l)
{
    size_t width = (size_t)type_bytes(l->type);
    if (l->data == NULL || l->count < 1)
        return false;
    return memcmp(l->data, (const char *)l->data + width, (size_t)literal_bytes(l) - width) == 0;
}

/* ---- one element ---- */

/* The bytes of element i, zero-extended. Complex types: use component. */
static uint64_t load_bits(const void *data, int bytes, int64_t i)
{
    switch (bytes) {
    case 1: return ((const uint8_t *)data)[i];
    case 2: return ((const uint16_t *)data)[i];
    case 4: return ((const uint32_t *)data)[i];
    case 8: return ((const uint64_t *)data)[i];
    default: die("no element of %d bytes", bytes);
    }
}

static void store_bits(void *data, int bytes, int64_t i, uint64_t x)
{
    switch (bytes) {
    case 1: ((uint8_t *)data)[i] = (uint8_t)x; break;
    case 2: ((uint16_t *)data)[i] = (uint16_t)x; break;
    case 4: ((uint32_t *)data)[i] = (uint32_t)x; break;
    case 8: ((uint64_t *)data)[i] = x; break;
    default: die("no element of %d bytes", bytes);
    }
}

/* Complex data is an array of twice as many floats, real parts at even places. */
static double load_float(const Literal *l, int64_t i, int part)
{
    Type t = type_component(l->type);
    return float_decode(t, load_bits(l->data, type_bytes(t), type_is_complex(l->type) ? 2 * i + part : i));
}

static void store_float(Literal *l, int64_t i, int part, uint64_t bits)
{
    store_bits(l->data, type_bytes(type_component(l->type)), type_is_complex(l->type) ? 2 * i + part : i, bits);
}

static bool has_float_parts(Type t)
{
    return type_is_float(t) || type_is_complex(t);
}

int64_t literal_get_s64(const Literal *l, int64_t i)
{
    if (has_float_parts(l->type))
        return int_convert_from_f64(TYPE_S64, load_float(l, i, 0));
    return int_wrap(l->type, (int64_t)load_bits(l->data, type_bytes(l->type), i));
}

double literal_get_f64(const Literal *l, int64_t i)
{
    if (has_float_parts(l->type))
        return load_float(l, i, 0);
    int64_t v = literal_get_s64(l, i);
    return l->type == TYPE_U64 ? (double)(uint64_t)v : (double)v;
}

double literal_get_imag(const Literal *l, int64_t i)
{
    return type_is_complex(l->type) ? load_float(l, i, 1) : 0;
}

void literal_set_s64(Literal *l, int64_t i, int64_t v)
{
    if (!has_float_parts(l->type)) {
        store_bits(l->data, type_bytes(l->type), i, (uint64_t)int_wrap(l->type, v));
        return;
    }
    store_float(l, i, 0, float_convert_from_s64(type_component(l->type), v));
    if (type_is_complex(l->type))
        store_float(l, i, 1, 0);
}

void literal_set_f64(Literal *l, int64_t i, double re, double im)
{
    Type part = type_component(l->type);
    if (!has_float_parts(l->type)) {
        store_bits(l->data, type_bytes(l->type), i, (uint64_t)int_convert_from_f64(l->type, re));
        return;
    }
    store_float(l, i, 0, float_convert_from_f64(part, re));
    if (type_is_complex(l->type))
        store_float(l, i, 1, float_convert_from_f64(part, im));
}
