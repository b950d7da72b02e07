/* Attributes: what an instruction carries besides operands. An instruction has a short list of them, one entry per attribute that
 * was given; each value is immutable, in the module's arena, and may be shared. attrs.def names them, words.def has the words of
 * enumerations, op_attrs.def says which opcode takes which and how they print.
 *
 * Source: reference text 5.3 to 5.8 and 6. */
#ifndef IR_ATTR_H
#define IR_ATTR_H

#include "ir/literal.h"
#include "ir/shape.h"

typedef enum AttrId {
#define ATTR(id, text, cls) ATTR_##id,
#include "ir/attrs.def"
#undef ATTR
    ATTR_COUNT
} AttrId;

typedef enum AttrClass {
    ATTR_CLASS_INT, ATTR_CLASS_NUMBER, ATTR_CLASS_BOOL, ATTR_CLASS_WORD, ATTR_CLASS_STRING, ATTR_CLASS_RAW,
    ATTR_CLASS_INTS, ATTR_CLASS_LISTS, ATTR_CLASS_INTS_OR_LISTS, ATTR_CLASS_BOOLS,
    ATTR_CLASS_SLICES, ATTR_CLASS_PADDING, ATTR_CLASS_WINDOW, ATTR_CLASS_DIM_LABELS, ATTR_CLASS_PRECISION,
    ATTR_CLASS_SHAPE, ATTR_CLASS_SHAPES, ATTR_CLASS_LITERAL, ATTR_CLASS_ALIASING, ATTR_CLASS_GROUPS,
    ATTR_CLASS_SPARSITY, ATTR_CLASS_SCALING, ATTR_CLASS_DOMAIN, ATTR_CLASS_SHARDING, ATTR_CLASS_KEY_VALUES,
    ATTR_CLASS_STATISTICS, ATTR_CLASS_ACCURACY, ATTR_CLASS_ORIGIN, ATTR_CLASS_METADATA, ATTR_CLASS_INSTS,
    ATTR_CLASS_COMP, ATTR_CLASS_COMPS
} AttrClass;

typedef struct AttrWord {
    AttrId      attr;
    const char *text;
    bool        fold_case;
} AttrWord;
/* The words, as CMP_EQ, FUSION_LOOP, ...: the rows of words.def. */
typedef enum Word {
#define WORD(attr, id, text, fold) id,
#include "ir/words.def"
#undef WORD
    WORD_COUNT
} Word;
extern const AttrWord attr_words[WORD_COUNT]; /* indexed by Word */

typedef struct AttrInfo {
    const char *text;
    AttrClass   cls;
} AttrInfo;
extern const AttrInfo attr_info[ATTR_COUNT];

/* The word of this attribute spelled text (n bytes), or WORD_COUNT. */
Word attr_word_lookup(AttrId attr, const char *text, size_t n);
/* The default word: the first of the attribute's rows. */
Word attr_word_default(AttrId attr);

typedef struct IntsList {
    const Ints *v;
    int32_t     n;
} IntsList;

typedef struct SliceRange { int64_t start, limit, stride; } SliceRange;
typedef struct Slices {
    int32_t           n;
    const SliceRange *v;
} Slices;

typedef struct PadDim { int64_t lo, hi, interior; } PadDim;
typedef struct Padding {
    int32_t       n;
    const PadDim *v;
    bool          three; /* some entry was written with three numbers */
} Padding;

typedef struct WindowDim { int64_t size, stride, pad_lo, pad_hi, base_dilation, window_dilation; bool reversal; } WindowDim;
typedef struct Window {
    int32_t          n;
    const WindowDim *v;
} Window;

/* Dimension numbers of a convolution; the k-th spatial dimension of the window is at *_spatial[k]. Unused positions ('?') are
 * simply named by nobody. */
typedef struct DimLabels {
    int32_t spatial;
    int64_t lhs_batch, lhs_feature, rhs_in, rhs_out, out_batch, out_feature;
    int64_t lhs_spatial[10], rhs_spatial[10], out_spatial[10];
} DimLabels;

typedef struct ShapeList {
    int32_t             n;
    const Shape *const *v;
} ShapeList;

/* output_to_operand_aliasing */
typedef struct OperandAlias { Ints output; int64_t operand; Ints index; } OperandAlias;
typedef struct Aliasing {
    int32_t             n;
    const OperandAlias *v;
} Aliasing;

typedef struct KeyValue { const char *key, *value; } KeyValue; /* interned; value is the unescaped bytes */
typedef struct KeyValues {
    int32_t         n;
    const KeyValue *v; /* sorted by key, no key twice */
} KeyValues;

typedef struct AttrLiteral { /* literal= : every leaf with its type and layout */
    const Shape   *shape;
    const Literal *value;
} AttrLiteral;

/* Source information, reference text 6.5. Strings are interned; NULL is absent. */
typedef struct Metadata {
    const char *op_type, *op_name, *source_file, *deduplicated_name, *scheduling_name;
    const char *payload; /* metadata_payload: present even when empty */
    int32_t     source_line, source_end_line, source_column, source_end_column;
    Ints        profile_type;
    int32_t     stack_frame_id; /* 1-based, 0: none */
} Metadata;

/* Structures of attr_rare.h: shardings, replica groups, meshes, origins, ... */
struct Sharding;
struct ReplicaGroups;
struct Statistics;
struct Accuracy;
struct Origin;
struct Sparsity;
struct Scaling;
struct Domain;

typedef union AttrValue {
    int64_t                     i; /* INT, BOOL (0 or 1), WORD (a Word) */
    double                      f; /* NUMBER */
    const char                 *s; /* STRING, RAW: interned bytes, unescaped */
    Ints                        ints; /* INTS, PRECISION (Words), BOOLS; INTS_OR_LISTS uses lists */
    const IntsList             *lists; /* LISTS, INTS_OR_LISTS where lists were written (Attr.nested) */
    const Slices               *slices;
    const Padding              *padding;
    const Window               *window;
    const DimLabels            *dim_labels;
    const Shape                *shape;
    const ShapeList            *shapes;
    const AttrLiteral          *literal;
    const Aliasing             *aliasing;
    const KeyValues            *key_values;
    const struct ReplicaGroups *groups;
    const struct Sharding      *sharding;
    const struct Statistics    *statistics;
    const struct Accuracy      *accuracy;
    const struct Origin        *origin;
    const struct Sparsity      *sparsity;
    const struct Scaling       *scaling;
    const struct Domain        *domain;
} AttrValue;

typedef struct Attr {
    AttrId    id;
    bool      nested; /* INTS_OR_LISTS: value.lists is set */
    AttrValue value;
} Attr;

bool attr_value_equal(const Attr *a, const Attr *b); /* by meaning; same id */
uint64_t attr_value_hash(const Attr *a);
/* A deep copy of the value into a (compaction, cloning into another module). Strings are interned in t. */
struct Interner;
Attr attr_copy(Arena *a, struct Interner *t, const Attr *x);
const KeyValues *key_values_copy(Arena *a, struct Interner *t, const KeyValues *x);

#endif
