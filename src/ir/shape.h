/* Shapes: an element type with dimensions and a layout, a tuple of shapes, a token. Immutable once built; they live in the
 * arena that made them and are passed by pointer.
 *
 * Source: reference text 3; XLA's shape.h and layout.h. */
#ifndef IR_SHAPE_H
#define IR_SHAPE_H

#include "ir/type.h"
#include "support/arena.h"
#include "support/buf.h"

#define DIM_UNBOUNDED INT64_MIN /* the size written '?' */

/* A list of integers, as attributes and dimension lists have them. */
typedef struct Ints {
    const int64_t *v;
    int32_t        n;
} Ints;

typedef struct Tile {
    Ints dims; /* TILE_COMBINE where '*' is written */
} Tile;
#define TILE_COMBINE INT64_MIN

typedef struct SplitConfig {
    int64_t dim;
    Ints    indices;
} SplitConfig;

#define LAYOUT_NO_TYPE TYPE_TUPLE

/* Everything between the braces of a layout. A shape whose layout is the default one (n-1,...,0 and no field) has NULL. */
typedef struct Layout {
    Ints         minor_to_major; /* empty: the text gives none; taken as n-1,...,0, but printed and compared as none */
    const Tile  *tiles;
    int32_t      n_tiles;
    int64_t      tail_padding;  /* L, 1 by default */
    Type         index_type;    /* '#', TYPE_COUNT when not given, LAYOUT_NO_TYPE when it was not valid */
    Type         pointer_type;  /* '*', likewise */
    int64_t      element_bits;  /* E, 0 by default */
    int64_t      memory_space;  /* S, 0 by default */
    const SplitConfig *splits;  /* SC */
    int32_t      n_splits;
    int64_t      metadata_prefix; /* M, 0 by default */
} Layout;

typedef struct Shape Shape;
struct Shape {
    Type           type;    /* TYPE_TUPLE for tuples */
    bool           buffer;  /* written b(...) */
    int32_t        rank;    /* of arrays */
    const int64_t *dims;    /* sizes; the bound of a dynamic dimension, DIM_UNBOUNDED for '?' */
    const bool    *dynamic; /* one per dimension, NULL when none is; '?' counts as dynamic */
    const Layout  *layout;  /* NULL: the default one */
    int32_t        n_elems; /* of tuples */
    const Shape *const *elems;
    struct {                /* of tuples: what is in them, so that nobody walks through a hundred thousand elements to know */
        int32_t depth;      /* of nesting; a tuple of arrays has 1 */
        int32_t nodes, arrays, leaves; /* below it; leaves: arrays and tokens. INT32_MAX: that many or more */
        bool    dynamic, unbounded, buffer;
    } inside;
};

/* Building. dims are copied; layout is kept as given. */
const Shape *shape_array(Arena *a, Type t, int32_t rank, const int64_t *dims);
const Shape *shape_scalar(Arena *a, Type t);
const Shape *shape_tuple(Arena *a, int32_t n, const Shape *const *elems);
const Shape *shape_with_layout(Arena *a, const Shape *s, const Layout *l); /* s itself when nothing changes */
const Shape *shape_with_type(Arena *a, const Shape *s, Type t);             /* dims, dynamic marks and layout kept */
const Shape *shape_copy(Arena *a, const Shape *s);                          /* deep, into a */

static inline bool shape_is_tuple(const Shape *s) { return s->type == TYPE_TUPLE; }
static inline bool shape_is_array(const Shape *s) { return type_is_array(s->type) && !s->buffer; }
static inline bool shape_is_scalar(const Shape *s) { return shape_is_array(s) && s->rank == 0; }
bool shape_is_dynamic(const Shape *s);   /* any dynamic dimension, also inside a tuple */
bool shape_is_unbounded(const Shape *s); /* any '?' */

bool shape_has_buffer(const Shape *s);   /* any b(...) */

/* Product of the sizes (1 for scalars). -1 when it overflows int64 or a dimension is unbounded. Arrays only. */
int64_t shape_count(const Shape *s);
/* Bytes of the array in our memory, or of all leaves of a tuple; -1 as above. */
int64_t shape_bytes(const Shape *s);
/* Array and token leaves, depth first; tokens are counted only when asked for. */
int32_t shape_leaf_count(const Shape *s, bool tokens);

/* Comparison. compatible ignores layouts and dynamic marks, as XLA's Compatible does. */
bool shape_equal(const Shape *a, const Shape *b);
bool shape_compatible(const Shape *a, const Shape *b);
bool shape_compatible_ignoring_precision(const Shape *a, const Shape *b); /* any float matches any float */
bool shape_same_dims(const Shape *a, const Shape *b);                     /* arrays: rank and sizes */
bool shape_is_row_of(const Shape *s, const Shape *of); /* s has one element for each row of `of`: its leading sizes, and fewer elements; default layouts */
/* The shapes differ by sizes of 1 alone: where[k] is the dimension of `to` that is dimension k of `from`, -1 for a size of 1; room for from->rank entries, or NULL. */
bool shape_unit_dims(const Shape *from, const Shape *to, int32_t *where);

/* Layouts. */
bool          layout_equal(const Layout *a, const Layout *b, int32_t rank);
static inline bool layout_has_no_order(const Shape *s) { return s->layout && s->layout->minor_to_major.n < s->rank; }
bool          layout_is_row_major(const Shape *s); /* descending order, whatever the other fields say */
const Layout *layout_from_order(Arena *a, Ints minor_to_major); /* NULL when that is the default */
bool          layout_tiles_fit(const Layout *l); /* tiles have dimensions, each positive or '*' */
bool          layout_splits_fit(const Layout *l, const Shape *s); /* splits of dimensions of s, at rising places inside of them */
int64_t       layout_dim(const Shape *s, int32_t k); /* the k-th most minor dimension */
/* strides[d]: elements between neighbours along d in memory; room for rank entries. */
void shape_strides(const Shape *s, int64_t *strides);

/* Text as XLA writes it: with layout "f32[2,3]{1,0}", without "f32[2,3]". Tuples carry index comments. */
void  shape_print(Buf *b, const Shape *s, bool with_layout);
char *shape_text(Arena *a, const Shape *s); /* without layout, for messages */
char *shape_brief(Arena *a, const Shape *s); /* likewise; only the beginning of a long tuple */

/* Integer lists. */
Ints ints_copy(Arena *a, Ints x);
Ints ints_make(Arena *a, int32_t n);       /* zeroed; fill through ints_at */
Ints ints_iota(Arena *a, int32_t n);       /* 0, 1, ..., n-1 */
bool ints_equal(Ints a, Ints b);
bool ints_has(Ints a, int64_t x);
static inline int64_t *ints_at(Ints a, int32_t k) { return (int64_t *)(uintptr_t)&a.v[k]; } /* only while building */

/* a * b, false on overflow or negative result. */
bool size_mul(int64_t a, int64_t b, int64_t *out);
bool size_add(int64_t a, int64_t b, int64_t *out);

#endif
