/* What the files of the parser share. Private to src/text and grammar/.
 *
 *   text -> scanner (grammar/hlo.l) -> token filter (filter.c) -> grammar (grammar/hlo.y) -> actions (parse_*.c) -> module
 *
 * The grammar's values live in p->tmp, which goes away with the parser; what stays is in the module's arena. Operands are resolved
 * as soon as they are read, so errors come in the order of the text. After a syntax error the grammar gives up; parse.c looks for
 * the next line that looks like an instruction and starts the grammar again there, with the state that is kept here. */
#ifndef TEXT_PARSE_INT_H
#define TEXT_PARSE_INT_H

#include <string.h>

#include "ir/attr_rare.h"
#include "ir/canon.h"
#include "ir/inst.h"

typedef struct Parser Parser;
union HLO_STYPE;

enum { MAX_NESTING = 8192 };

typedef struct Name {
    const char *s;
    Loc         loc;
} Name;

typedef VEC(int64_t) IntVec;
typedef VEC(Ints) IntsVec;
typedef VEC(const Shape *) ShapeVec;
typedef VEC(Name) LocNames;
typedef VEC(const char *) NameVec;
typedef VEC(Comp *) CompVec;
typedef VEC(SliceRange) SliceVec;
typedef VEC(OperandAlias) AliasVec;
typedef VEC(const Metadata *) MetaVec;
typedef VEC(const Sharding *) ShardVec;
typedef VEC(AttrLiteral) TypedVec;

typedef struct Dim {
    int64_t size;
    bool    dynamic;
} Dim;
typedef VEC(Dim) DimVec;

/* A layout under construction; the fields come in the order of this list, each once. */
typedef enum {
    FIELD_NONE, FIELD_D, FIELD_T, FIELD_L, FIELD_INDEX, FIELD_POINTER, FIELD_E, FIELD_S, FIELD_SC, FIELD_P, FIELD_M
} LayoutField;
typedef struct LayoutDraft {
    Layout      l;
    LayoutField last;
    VEC(Tile) tiles;
    VEC(SplitConfig) splits;
} LayoutDraft;

/* Numbers as written. */
typedef enum { NUM_INT, NUM_DECIMAL, NUM_NAN, NUM_INF } NumKind;
typedef struct Number {
    NumKind kind;
    bool    negative, has_payload; /* NAN, INF */
    union {
        int64_t  i;
        double   f;
        uint64_t payload;
    };
} Number;
double number_value(Number x); /* as a double; payloads are lost */

/* A literal as it was written, flat: an entry for each value, brace, parenthesis, and comma inside parentheses. */
typedef enum {
    LIT_INT, LIT_DECIMAL, LIT_NAN, LIT_INF, LIT_TRUE, LIT_FALSE, LIT_DOTS, LIT_OPEN, LIT_CLOSE, LIT_LPAR, LIT_RPAR, LIT_COMMA,
    LIT_DENSE
} LitKind;
typedef struct LitToken {
    uint8_t  kind;
    bool     negative, has_payload;
    uint32_t off; /* into the text */
    union {
        int64_t  i;
        double   f;
        uint64_t payload;
        Literal *dense; /* the whole of it, kept by p->tmp */
    };
} LitToken;
typedef VEC(LitToken) LitVec;

/* opcode(arguments) with its type, before the attributes. */
typedef enum { ARGS_OPERANDS, ARGS_LITERAL, ARGS_NUMBER } ArgsKind;
typedef enum { SUGAR_NONE, SUGAR_START, SUGAR_UPDATE, SUGAR_DONE } AsyncSugar;
typedef struct Rhs {
    const Shape *shape; /* NULL: left out */
    Loc          shape_loc;
    Name         opcode;
    Op           op;         /* OP_COUNT: unknown, reported */
    AsyncSugar   sugar;      /* X-start and so on: op is OP_ASYNC_START and so on, wrapped is X */
    Op           wrapped;
    bool         in_wrapper; /* the X of an X-start, of which XLA does not count the operands */
    ArgsKind     args;
    int32_t      base, n;    /* operands in p->operands; n is known at the closing parenthesis */
    int32_t      lit_base;   /* first token in p->lits */
    int32_t      attrs_base; /* first attribute in p->raw */
    int64_t      number;
    Loc          number_loc, open;
    int          depth;      /* open brackets behind its ')' */
    int          errors;     /* d->errors when it began */
    struct Rhs  *spare;      /* the next of p->spare */
} Rhs;

/* One attribute as read. Classes that Attr does not hold have members of their own. */
typedef struct RawAttr {
    const char     *name; /* interned */
    AttrClass       cls;
    Loc             loc, value_loc;
    AttrValue       value;
    bool            nested;
    Number          number;  /* NUMBER */
    LocNames       *words;   /* PRECISION, INSTS */
    CompVec        *comps;   /* COMP, COMPS */
    const Metadata *meta;
    AttrId          id;      /* found when the instruction is made */
} RawAttr;

/* A computation that is being read. */
typedef struct Scope Scope;
struct Scope {
    Scope       *parent; /* the computation with the instruction that has this one inline */
    Comp        *comp;
    const char  *written; /* its name in the text; NULL when it is inline */
    int32_t      serial; /* 1 for the first of the text */
    bool         entry, inlined, failed; /* failed: some instruction was not made */
    Loc          head;   /* its name, or its '{' */
    Loc          close;
    Loc          root_loc;
    const Shape *result; /* of the signature, NULL: none */
    Loc          result_loc;
    const Rhs   *outer;  /* what the parent is reading */
    int          errors; /* d->errors at its start */
    Name         pending; /* the instruction whose right-hand side is being read */
    int64_t      n_single_params;
    bool         has_thread, has_config;
    Scope       *spare;  /* the next of p->spare_scope */
};

/* What a name stands for in the scope that defined it last. */
typedef struct Binding {
    Inst   *inst;
    int32_t scope; /* its serial number, 0: none */
} Binding;
typedef struct Shadowed {
    Binding  binding;
    uint32_t tag;
    int32_t  by; /* the scope that hides it */
} Shadowed;

/* The values of attributes while they are read. */
typedef struct WindowDraft {
    Ints          size, stride, base_dilation, window_dilation, reversal;
    const PadDim *pad;
    int32_t       n_pad;
    bool          given[6];
} WindowDraft;
typedef struct Pair {
    Name          key;
    const IntVec *value;
} Pair;
typedef VEC(Pair) PairVec;
typedef struct Side {
    Name           name;
    const PairVec *items;
} Side;
typedef VEC(Side) SideVec;
typedef struct DomainDraft {
    Domain domain;
    bool   kind;
} DomainDraft;
typedef struct Stat {
    const char *key, *value; /* value: of frontend_attributes */
    Number      number;      /* of statistics */
    Loc         loc;
} Stat;
typedef VEC(Stat) StatVec;
typedef enum { ORIGIN_OPEN, ORIGIN_CLOSE, ORIGIN_COMMA, ORIGIN_LEAF, ORIGIN_CALL, ORIGIN_SYNTHETIC } OriginKind;
typedef struct OriginItem {
    OriginKind  kind;
    Loc         loc;
    OriginArray array;
    const char *call;
} OriginItem;
typedef VEC(OriginItem) OriginVec;
typedef VEC(DebugAttr) DebugVec;

typedef struct AxisDraft {
    const char *name;
    Loc         loc;
    int64_t     pre, size;
    bool        sub;
} AxisDraft;
typedef VEC(AxisDraft) AxisVec;
typedef struct NamedDimDraft {
    const AxisVec *axes;
    bool           open;
} NamedDimDraft;
typedef VEC(NamedDimDraft) NamedDimVec;
typedef struct MeshDraft {
    VEC(MeshAxis) axes;
    const Mesh *mesh; /* set when it is complete; NULL after an error */
    Loc         loc;
} MeshDraft;
typedef struct ReplicaGroups GroupsDraft;
typedef struct ShardDraft {
    /* old style: what was seen */
    bool       replicated, manual, unknown, unreduced, maximal, replicate_last, has_subgroups;
    IntVec    *subgroups, *dims, *list;
    IntVec    *iota_dims, *iota_perm; /* iota_dims NULL: none */
    ShardGroup group;
    int64_t    group_id;
    MetaVec   *metas;
    /* named style: the result */
    Sharding   named;
    MeshDraft *mesh;
} ShardDraft;
typedef enum { NAMED_REPLICATED, NAMED_MANUAL } NamedWhole;

typedef struct Token Token;

/* A key of metadata or of the stack tables as it was read, with its row in parse_attr.c; NULL: no list has it. */
typedef struct SubKey SubKey;
typedef struct SeenKey {
    Name          key;
    const SubKey *row;
} SeenKey;

/* What a word of the language can mean. */
typedef struct WordRow WordRow;
typedef struct Vocabulary {
    const WordRow *word, *attr; /* of filter.c; NULL: no keyword or element type, no attribute */
    Op             op;          /* OP_COUNT: no opcode */
} Vocabulary;

struct Parser {
    Arena      *a, *tmp; /* the module's, the parser's */
    Interner   *strings;
    Module     *m;
    Diag       *d;
    const char *text;
    size_t      len;

    /* scanner and filter */
    void    *scanner;
    char    *buf;                   /* the text as the scanner works on it: a copy, or the caller's bytes */
    Vocabulary *vocabulary;         /* by tag of the interned word; 0: of all other words */
    uint32_t n_vocabulary;
    Interner *array_texts;          /* array types that came in one token, tagged by number from 1 on */
    VEC(const Shape *) array_shapes; /* theirs; NULL: it is not as simple as it looked */
    bool     raw_next;
    int      raw_depth;
    int64_t  raw_start;             /* of the dictionary that is being scanned */
    int      plain_after;           /* the attribute before, whose value parse_plain.c may know; 0: the token before is another */
    int64_t  plain_at;              /* behind its '=' */
    int      keys;                  /* inside frontend_attributes={} or statistics={} */
    bool     keys_raw;
    int      start;                 /* artificial first token, -1 once it was returned */
    bool     in_meta;               /* inside of metadata={...} */
    bool     text_begins;           /* the token returned last is the first of the text */
    Token   *queue;
    int      head, queued;
    int      before;                /* the token returned last */
    int      depth;                 /* open brackets */
    const Shape *constant;          /* of the constant whose '(' is or was the last token; NULL: of no array, or already tried */
    Loc      error_loc;             /* of the token at which the grammar gave up */
    Loc      token_loc;             /* of the token returned last */
    int64_t  resumed;               /* where the grammar was started again last, -1: nowhere */

    /* tables */
    const char *attr_names[ATTR_COUNT]; /* interned */

    /* actions */
    Scope      *scope;
    int32_t     n_scopes;
    VEC(Binding) bindings;    /* by tag of the interned name */
    VEC(Shadowed) shadowed;   /* bindings of outer scopes that inner ones hide, innermost last */
    Map         comps;        /* name -> Comp */
    Uniquer    *uniquer;      /* of the instructions' names, in the order of the text */
    bool        names_change; /* some name is not unique as it was written, or the parser made it up */
    int64_t     unknown_opcode; /* offset of the last one, -1: none; what its parentheses hold cannot be judged */
    Inst       *poison;       /* what failed instructions define */
    Comp       *poison_comp;
    Scope      *spare_scope;  /* scopes that are done with, to be used again */
    Scope      *heading;      /* a computation whose '{' was not yet read */
    Rhs        *current;      /* the instruction whose attributes are being read */
    Rhs        *spare;        /* right-hand sides that are done with, to be used again */
    bool        single;       /* single-instruction input */
    bool        single_head;  /* and its opcode was read */
    bool        headed;       /* HloModule was read */
    LitVec      lits;
    Literal    *dense;        /* what dense_read read last */
    IntVec      indices;
    Map         starts;       /* asynchronous step -> the async-start of its chain */
    Loc         alias_loc;    /* input_output_alias */
    Comp       *entry;        /* marked ENTRY */
    Loc         entry_loc;
    LocNames    header;       /* attributes seen */
    VEC(Inst *) operands;     /* of the instructions that are being read, innermost last */
    VEC(Loc) operand_locs;
    CompVec     callees;      /* of the instruction that is being made */
    CompVec    *spare_comps;  /* a list of an attribute that has been stored, to be used again */
    VEC(RawAttr) raw;         /* attributes likewise */
    VEC(InputAlias) aliases;
    VEC(Donor) donors;
    VEC(OriginRecovery) recoveries;
    VEC(DebugEntry) debug_rows;
    VEC(const char *) files, functions;
    VEC(FileLocation) locations;
    VEC(StackFrame) frames;

    /* one value under construction each; these do not nest */
    DimVec       dims;
    LayoutDraft *layout;
    Metadata     meta;
    FileLocation location;
    StackFrame   frame;
    VEC(SeenKey) keys_seen;   /* of metadata and the stack tables */
    const char  *meta_text;   /* the metadata that meta_plain read last, in p->buf */
    size_t       meta_len;    /* 0: none yet */
    const Metadata *meta_read;
    DomainDraft *domain;
    OriginItem   origin_item;
    DebugAttr   *debug;
    ShardDraft  *shard;
    Subgroup     subgroup;
    NamedDimDraft named_dim;
};

static inline Loc loc_span(Loc first, Loc last)
{
    int64_t len = last.off + last.len - first.off;
    return (Loc){first.off, len > INT32_MAX ? INT32_MAX : (int32_t)len};
}

/* Scanner helpers and the filter (filter.c). The helpers return the token. */
const char *lex_name(Parser *p, const char *s, size_t n);
int lex_word(Parser *p, union HLO_STYPE *v, const char *s, size_t n);
int lex_attr(Parser *p, union HLO_STYPE *v, const char *s, size_t n);
Op   op_lookup(const Parser *p, const char *word); /* OP_COUNT when an interned word is no opcode */
char *name_end(char *s);  /* behind the characters of a name at s */
char *array_end(char *s); /* behind "2,3]{1,0}" at s, the rest of an array type; s itself when it is not so simple */
/* An array type in one token, such as f32[2,3]{1,0}: false for one with an error, and where `next` or the text behind it could belong
 * to it, so that the grammar reads it piece by piece. */
bool lex_array(Parser *p, union HLO_STYPE *v, const char *s, size_t n, char next);
int lex_int(Parser *p, union HLO_STYPE *v, Loc loc, const char *s);
int lex_decimal(union HLO_STYPE *v, const char *s);
int lex_nan(Parser *p, union HLO_STYPE *v, Loc loc, const char *s);
int lex_string(Parser *p, union HLO_STYPE *v, Loc loc, const char *s, size_t n);
static inline Loc raw_span(const Parser *p, Loc last) /* from the dictionary's brace to the end of the token last */
{
    return loc_span((Loc){p->raw_start, 0}, last);
}
int lex_error(Parser *p, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

void filter_init(Parser *p, char *in_place); /* NULL: on a copy of p->text */
void filter_start(Parser *p, int64_t off, int start); /* scan from off; start 0: find out what kind of input it is */
int  filter_next(Parser *p, union HLO_STYPE *v, Loc *loc);
void filter_free(Parser *p);
void filter_release(Parser *p); /* the text is as it was until the next token is fetched */
/* Names that stand before '=' in a place of the language, for "did you mean". */
typedef enum KeyFamily { KEYS_ANY, KEYS_OF_HEADER, KEYS_OF_METADATA } KeyFamily;
NameVec filter_keys(Parser *p, KeyFamily family);
bool    metadata_has_key(const char *key);

/* Errors (parse.c). The instruction in which one is reported is not made. */
void parse_error(Parser *p, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void parse_note(Parser *p, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool parse_suggest(Parser *p, Loc loc, const char *word, const char *const *names, int n); /* a note, and true, when one is near */
void parse_unexpected(Parser *p, Loc loc, int n, const char *const *expected);
const char *names_listed(Parser *p, const NameVec *names, int from, int end); /* "a, b, c" */
Loc  defined_later(Parser *p, int64_t from, const char *name, bool computation); /* LOC_NONE: nowhere after from */

/* Lists in p->tmp (parse_list.c). v NULL makes a new one; the list is returned. list_ints copies into the module. */
IntVec   *int_list(Parser *p, IntVec *v, int64_t x);
IntVec   *int_list_empty(Parser *p);
Ints      list_ints(Parser *p, const IntVec *v); /* NULL is empty */
IntsVec  *lists_add(Parser *p, IntsVec *v, Ints x);
IntsList  list_lists(Parser *p, const IntsVec *v);
LocNames *loc_names(Parser *p, LocNames *v, const char *s, Loc loc);
CompVec  *comp_list(Parser *p, CompVec *v, Comp *c);
ShapeVec *shape_list(Parser *p, ShapeVec *v, const Shape *s);
const ShapeList *list_shapes(Parser *p, const ShapeVec *v);
MetaVec  *meta_list(Parser *p, MetaVec *v, const Metadata *x);
StatVec  *stat_add(Parser *p, StatVec *v, Stat x);
PairVec  *pair_add(Parser *p, PairVec *v, const char *key, Loc loc, const IntVec *value);
SideVec  *side_add(Parser *p, SideVec *v, const char *name, Loc loc, const PairVec *items);
AxisVec  *axis_push(Parser *p, AxisVec *v, AxisDraft x);
ShardVec *shard_list(Parser *p, ShardVec *v, const Sharding *s);
OriginVec *origin_push(Parser *p, OriginVec *v); /* p->origin_item */
NamedDimVec *named_dim_push(Parser *p, NamedDimVec *v); /* p->named_dim */
DebugVec *debug_add(Parser *p, DebugVec *v, const DebugAttr *x);
TypedVec *typed_push(Parser *p, TypedVec *v, AttrLiteral x);

/* Plain values of attributes, which need no tokens (parse_plain.c); the bytes of p->buf are the text's. Where these give NULL or 0,
 * nothing was reported and the scanner goes on in front of the value. */
int         plain_value(Parser *p, int attr, union HLO_STYPE *v, Loc *loc, int64_t at); /* the kind of the token */
const char *plain_string(const Parser *p, const char *s);                               /* behind the string at s */
const char *plain_int(const char *s, int64_t *v);                                       /* behind the digits at s */
const char *meta_plain(Parser *p, const char *s, const Metadata **out);                 /* behind the metadata at s, a '{' */

/* Types (parse_type.c). */
void         dims_begin(Parser *p);
void         dim_add(Parser *p, int64_t size, bool dynamic, Loc loc);
LayoutDraft *layout_begin(Parser *p, const IntVec *minor_to_major);
void         layout_field(Parser *p, LayoutField f, Loc loc);
void         layout_int(Parser *p, LayoutField f, Loc loc, int64_t v, Loc at);
void         layout_type(Parser *p, LayoutField f, Loc loc, Type t);
void         layout_level(Parser *p, const char *word, Loc loc);
void         layout_tile(Parser *p, const IntVec *dims, Loc loc);
void         layout_split(Parser *p, int64_t dim, const IntVec *indices);
const Shape *type_array(Parser *p, Type t, const DimVec *dims, LayoutDraft *l, Loc loc, Loc layout_loc);
const Shape *type_tuple(Parser *p, const ShapeVec *elems, Loc loc);
const Shape *type_buffer(Parser *p, const Shape *inner, Loc loc);
const Layout *layout_settled(Parser *p, const Layout *l); /* NULL when it says nothing but the default */
const char  *layout_fault(Parser *p, const Shape *s); /* why XLA has no use for the layout of an array, NULL when it has */

/* Header and computations (parse_module.c). */
void  module_begin(Parser *p, const char *name);
bool  header_seen(Parser *p, const char *name, Loc loc); /* false: given before, reported */
void  header_int(Parser *p, const char *name, Loc loc, int64_t v);
void  header_bool(Parser *p, const char *name, Loc loc, int64_t v);
void  header_bools(Parser *p, const char *name, Loc loc, Ints v);
void  header_alias(Parser *p, Loc loc, Ints output, int64_t param, Ints index, const char *kind, Loc kind_loc);
void  header_donor(Parser *p, Loc loc, int64_t param, Ints index);
void  header_layout(Parser *p, const char *name, Loc loc, const ShapeVec *params, const Shape *result);
void  header_key_values(Parser *p, const char *name, Loc loc, const StatVec *v);
void  header_config(Parser *p, const char *name, Loc loc, const char *v);
void  header_origins(Parser *p, const char *name, Loc loc);
void  header_recovery(Parser *p, OriginArray old, OriginArray replacement, const char *text, Loc loc);
void  header_debug(Parser *p, const char *name, Loc loc);
void  header_debug_row(Parser *p, OriginArray key, const DebugVec *v);
void  debug_begin(Parser *p);
void  debug_log_mode(Parser *p, const char *word, Loc loc);
void  debug_int(Parser *p, const char *key, Loc loc, int64_t v);
void  stack_location(Parser *p, Loc loc);
void  stack_frame(Parser *p, Loc loc);
bool  module_finish(Parser *p); /* after the last computation: entry, aliases, names, tables */

void  comp_begin(Parser *p, bool entry, Loc entry_loc, const char *name, Loc loc);
void  comp_result(Parser *p, const Shape *s, Loc loc);
void  comp_open(Parser *p);
void  comp_open_inline(Parser *p, Loc loc);
Comp *comp_end(Parser *p);
void  scope_pop(Parser *p);
void  comp_abandon(Parser *p); /* its '}' will not come */
void  scope_thread(Parser *p, Loc loc, const char *v);
void  scope_config(Parser *p, Loc loc, const char *v);
Comp *comp_find(Parser *p, const char *name, Loc loc); /* p->poison_comp after reporting */
void  comp_place(Parser *p, Comp *c); /* completed now: before every computation that is still open */
void  scope_push(Parser *p, Comp *c, Loc head);
/* What an interned name stands for in the current scope; NULL: nothing yet. */
Inst *name_get(const Parser *p, const char *name);
void  name_put(Parser *p, const char *name, Inst *i);

/* Instructions (parse_inst.c). */
Rhs  *rhs_begin(Parser *p, const Shape *shape, const char *opcode, Loc loc);
Rhs  *rhs_operands(Parser *p, Rhs *r, Loc open);
Rhs  *rhs_literal(Parser *p, Rhs *r, Loc open, Loc loc);
Rhs  *rhs_number(Parser *p, Rhs *r, int64_t v, Loc loc);
void  operand_type_only(Parser *p, const Shape *type, Loc loc);
void  operand_name(Parser *p, const Shape *type, const char *name, Loc loc, const IntVec *indices);
void  operand_word(Parser *p, const Shape *type, const char *word, Loc loc); /* a name without % */
void  operand_nested(Parser *p, Rhs *r, Loc loc);
void  inst_pending(Parser *p, const char *name, Loc loc);
void  inst_end(Parser *p, Loc root_loc, Rhs *r); /* of what is pending; root_loc LOC_NONE: not the root */
void  single_begin(Parser *p);
void  single_end(Parser *p, Rhs *r, Loc loc);
Inst *inst_find(Parser *p, const char *name, Loc loc); /* p->poison after reporting */
/* An instruction that the parser adds; not known by name. */
Inst *inst_add(Parser *p, Op op, const Shape *shape, int32_t n, Inst *const *operands, const char *name, Loc loc);

/* What an instruction needs besides syntax (parse_op.c): n attributes from p->raw. NULL when it cannot be made, reported or
 * tainted. */
Inst *inst_build(Parser *p, Rhs *r, const char *name, RawAttr *attrs, int32_t n);
const RawAttr *raw_attr(const RawAttr *attrs, int32_t n, AttrId id);
void  attr_unknown(Parser *p, const Rhs *r, const char *name, Loc loc); /* reports it, with a guess */
/* The attributes go into i, computations into its callees. False when a name in them is not defined. */
bool  attrs_store(Parser *p, Inst *i, const RawAttr *attrs, int32_t n);
/* The instruction itself, once all checks are done. */
Inst *inst_make(Parser *p, const Rhs *r, const char *name, const RawAttr *attrs, int32_t n);
/* Operation-specific rules (parse_check.c). False after reporting. */
bool  op_check_arity(Parser *p, const Rhs *r);
bool  op_check(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n);
/* The type that is stored, from the one written; NULL: to be inferred. Call after op_check. */
const Shape *op_stored_type(Parser *p, const Rhs *r);
const Shape *literal_type(Parser *p, const Shape *s); /* what is stored of the type of a literal */
bool         op_check_replication(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n);

/* Attribute values (parse_attr.c, parse_meta.c, parse_rare.c). */
RawAttr *attr_add(Parser *p, const char *name, AttrClass cls, Loc loc, Loc value_loc);
const char *config_value(Parser *p, const char *v); /* a backend_config without what XLA drops of it */
void     attr_lists(Parser *p, const char *name, AttrClass cls, Loc loc, Loc value_loc, const IntsVec *v);
void     attr_slices(Parser *p, const char *name, Loc loc, Loc value_loc, const SliceVec *v);
void     attr_padding(Parser *p, const char *name, Loc loc, Loc text);
void     attr_window(Parser *p, const char *name, Loc loc, Loc value_loc, const WindowDraft *w);
void     attr_dim_labels(Parser *p, const char *name, Loc loc, Loc text);
void     attr_shapes(Parser *p, const char *name, Loc loc, Loc value_loc, const ShapeVec *v);
void     attr_literal(Parser *p, const char *name, Loc loc, Loc value_loc, AttrLiteral v);
void     attr_aliasing(Parser *p, const char *name, Loc loc, Loc value_loc, const AliasVec *v);
void     attr_groups(Parser *p, const char *name, Loc loc, Loc value_loc, const GroupsDraft *g);
void     attr_sparsity(Parser *p, const char *name, Loc loc, Loc value_loc, const SideVec *v);
void     attr_scaling(Parser *p, const char *name, Loc loc, Loc value_loc, const SideVec *v);
void     attr_domain(Parser *p, const char *name, Loc loc, Loc value_loc, const DomainDraft *v);
void     attr_key_values(Parser *p, const char *name, Loc loc, Loc value_loc, const StatVec *v);
void     attr_statistics(Parser *p, const char *name, Loc loc, Loc value_loc, const StatVec *v);
void     attr_origin(Parser *p, const char *name, Loc loc, Loc value_loc, const OriginVec *v);
void     attr_comps(Parser *p, const char *name, AttrClass cls, Loc loc, Loc value_loc, CompVec *v);
const KeyValues *key_values(Parser *p, const StatVec *v);

SliceVec    *range_add(Parser *p, SliceVec *v, const IntVec *parts, Loc loc);
IntVec      *dxd_list(Parser *p, Loc text);
WindowDraft *window_field(Parser *p, WindowDraft *w, const char *key, Loc loc, const IntVec *v);
WindowDraft *window_pad(Parser *p, WindowDraft *w, const char *key, Loc loc, Loc text);
AliasVec    *operand_alias(Parser *p, AliasVec *v, Ints output, int64_t operand, Ints index);
void         domain_begin(Parser *p);
void         domain_kind(Parser *p, Loc loc, const char *v, Loc at);
void         domain_side(Parser *p, const char *key, Loc loc, const Sharding *s);
Accuracy    *accuracy_new(Parser *p);
Accuracy    *accuracy_mode(Parser *p, const char *key, Loc loc, const char *word, Loc at);
Accuracy    *accuracy_number(Parser *p, Accuracy *x, const char *key, Number v, Loc at);
void         meta_begin(Parser *p);
const Metadata *meta_end(Parser *p);
void         meta_string(Parser *p, const char *key, Loc loc, const char *v);
void         meta_int(Parser *p, const char *key, Loc loc, int64_t v, Loc at);
void         meta_ints(Parser *p, const char *key, Loc loc, Ints v, Loc at);

/* Shardings, meshes, replica groups (parse_sharding.c, parse_mesh.c). */
ShardDraft     *shard_new(Parser *p);
void            shard_device(Parser *p, const char *key, Loc loc, int64_t device);
void            shard_devices(Parser *p, IntVec *dims, IntVec *list);
void            shard_iota(Parser *p, IntVec *dims, Iota x);
void            shard_group(Parser *p, ShardGroup group, int64_t id);
void            shard_subgroups(Parser *p, const IntVec *kinds);
void            shard_metas(Parser *p, const MetaVec *metas);
const Sharding *shard_old(Parser *p, const ShardDraft *s, Loc loc);
const Sharding *shard_tuple(Parser *p, const ShardVec *v);
ShardDraft     *named_single(Parser *p, const char *key, Loc loc, int64_t device, const MetaVec *metas);
ShardDraft     *named_all(Parser *p, MeshDraft *m, NamedWhole what, const MetaVec *metas);
ShardDraft     *named_partly_unreduced(Parser *p, MeshDraft *m, const char *op, Loc op_loc, const AxisVec *axes, const MetaVec *metas);
ShardDraft     *named_unreduced(Parser *p, MeshDraft *m, const char *op, Loc op_loc, const MetaVec *metas); /* the whole mesh */
void            named_begin(Parser *p, MeshDraft *m, const NamedDimVec *dims);
void            named_dim(Parser *p, const AxisVec *axes, bool open);
void            named_axes(Parser *p, const char *key, const AxisVec *axes);
void            named_unreduced_axes(Parser *p, const char *op, Loc op_loc, const AxisVec *axes);
void            named_metas(Parser *p, const MetaVec *metas);
const Sharding *shard_named(Parser *p, const ShardDraft *s, Loc loc);

MeshDraft   *mesh_new(Parser *p);
MeshDraft   *mesh_axis(Parser *p, MeshDraft *m, const char *name, Loc loc, int64_t size);
MeshDraft   *mesh_end(Parser *p, MeshDraft *m, const IntVec *devices, Loc loc);
MeshDraft   *mesh_iota(Parser *p, MeshDraft *m, Iota x, Loc loc);
GroupsDraft *groups_lists(Parser *p, const IntsVec *v);
GroupsDraft *groups_iota(Parser *p, Ints target, Iota x, Loc loc);
GroupsDraft *groups_mesh(Parser *p, const MeshDraft *m, const AxisVec *axes, Loc loc);
GroupsDraft *groups_single(Parser *p, const char *key, Loc loc, int64_t device, const AxisVec *axes, Loc whole);
const Mesh  *mesh_single(Parser *p, const char *key, Loc loc, int64_t device);
int64_t      wrapped_product(Ints x); /* as XLA multiplies: modulo 2^64 */
bool         iota_check(Parser *p, Iota x, const char *what, Loc loc);
bool         iota_covers(Parser *p, Iota x, int64_t count, const char *what, Loc loc); /* it has that many devices */
bool         axes_resolve(Parser *p, const Mesh *m, const AxisVec *v, AxisRefs *out); /* in the module's arena */
bool         axes_disjoint(Parser *p, const Mesh *m, int32_t n, const AxisRefs *const *lists, Loc loc);
bool         axes_sorted(Parser *p, AxisRefs x, Loc loc);

/* Literals (parse_literal.c). */
void           lit_value(Parser *p, Number x, Loc loc);
void           lit_mark(Parser *p, LitKind kind, Loc loc);
/* parse_dense.c: braces with plain numbers at p->buf + at, of a long array of shape s, read without tokens. The offset behind
 * them, with the literal in p->dense; -1, with nothing reported, for all other literals and for mistakes. */
int64_t dense_read(Parser *p, const Shape *s, int64_t at);
void    lit_dense(Parser *p, Loc loc);
void    lit_put_bits(void *data, int64_t i, int bytes, uint64_t bits); /* element i of an array */

const char *literal_fault(Parser *p, const Shape *s); /* why a literal cannot have the layout of s, NULL when it can */

/* The literal in p->lits from base on, of type *s; the tokens are taken off. *s changes where () stood for a tuple. NULL after
 * reporting. */
const Literal *literal_parse(Parser *p, const Shape **s, int32_t base);
AttrLiteral    literal_leaf(Parser *p, const Shape *s, int32_t base, Loc loc);
AttrLiteral    literal_typed_tuple(Parser *p, const TypedVec *v);

/* Asynchronous steps (parse_async.c). */
bool        async_typed(const Shape *s); /* ((operand types), result type, context...) */
bool        async_split(Parser *p, const char *opcode, AsyncSugar *sugar, Op *wrapped);
Inst       *async_build(Parser *p, Rhs *r, const char *name, RawAttr *attrs, int32_t n_attrs);
bool        async_finish(Parser *p); /* rules about called computations; at the end of the text */

#endif
