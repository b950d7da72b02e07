/* Instructions, computations, modules: the IR.
 *
 * A module owns an arena with everything in it. A computation is a list of instructions in which operands and control
 * predecessors stand before their users (the order of the text); every edit keeps that. An instruction knows its operands and, through
 * the operand slots themselves, its users: the slot is a node in the operand's list of uses, so that both directions are O(1)
 * to change. Only the functions here change them.
 *
 * Source: reference text 2, 4, 5; XLA's hlo_module.h, hlo_computation.h, hlo_instruction.h. */
#ifndef IR_INST_H
#define IR_INST_H

#include "ir/attr.h"
#include "support/diag.h"
#include "support/intern.h"
#include "support/map.h"
#include "support/vec.h"

typedef enum Op {
#define OP(id, text, n, family, shape, flags) OP_##id,
#include "ir/ops.def"
#undef OP
    OP_COUNT
} Op;

enum OpFlags {
    F_ELEMENTWISE = 1, F_MOVES = 2, F_COMMUTES = 4, F_INFERS = 8, F_ACCURACY = 16, F_CALLS = 32, F_EFFECT = 64, F_COLLECTIVE = 128
};

#define MANY (-1)
typedef struct OpInfo {
    const char *text;
    int         operands; /* MANY: any number */
    unsigned    flags;
} OpInfo;
extern const OpInfo op_info[OP_COUNT];

static inline const char *op_name(Op op) { return op_info[op].text; }
static inline bool        op_has(Op op, unsigned flag) { return (op_info[op].flags & flag) != 0; }

/* Rows of op_attrs.def. */
typedef enum AttrPrint {
    PRINT_ALWAYS, PRINT_GIVEN, PRINT_TRUE, PRINT_NONEMPTY, PRINT_NOT_ONE, PRINT_NOT_FIRST, PRINT_NONZERO, PRINT_NEVER, PRINT_SPECIAL
} AttrPrint;
typedef struct OpAttr {
    Op        op;
    AttrId    attr;
    bool      required;
    AttrPrint print;
} OpAttr;
/* The rows of op, in print order; *n is set. */
const OpAttr *op_attrs(Op op, int *n);

typedef struct Inst   Inst;
typedef struct Comp   Comp;
typedef struct Module Module;

/* One operand slot: the use of def by user. */
typedef struct Use Use;
struct Use {
    Inst   *def;
    Inst   *user;
    Use    *prev, *next; /* the other uses of def */
    int32_t index;       /* which operand of user */
};

struct Inst {
    Op           op;
    int32_t      n_operands, n_uses; /* uses are slots, so a user that takes this twice counts twice */
    int32_t      n_callees, n_attrs, n_control, n_control_succs;
    int32_t      visit;       /* comp_post_order's own */
    Comp        *comp;
    Inst        *prev, *next; /* in the computation, stored order */
    const char  *name;        /* interned, without '%' */
    const Shape *shape;
    Use         *operands;    /* slots; read through inst_operand */
    Use         *uses;        /* first of the list of uses */
    Comp       **callees;     /* in XLA's order: while: body, condition; select-and-scatter: select, scatter; conditional: branches */
    Attr        *attrs;
    Inst       **control_preds; /* control-predecessors, in the order written */
    const Metadata *meta;     /* NULL: none */
    int64_t      param;       /* OP_PARAMETER: its number */
    const Literal *literal;   /* OP_CONSTANT */
    Loc          loc;         /* of the opcode in the text it came from */
    bool         auto_named;  /* the name was made up and may be given away by inst_replace */
    int16_t      maker;       /* inst_maker's */
    int64_t      mark;        /* scratch of whoever walks at the moment; of no meaning between passes */
    void        *aux;         /* likewise */
};

struct Comp {
    Module     *module;
    Comp       *prev, *next; /* in the module, callees before callers */
    const char *name;
    Inst       *first, *last; /* stored order */
    Inst       *root;
    int32_t     n_insts;
    int32_t     n_params;
    int32_t     n_calling; /* instructions that call computations */
    Inst      **params;      /* by number */
    const char *execution_thread; /* NULL: main */
    const char *backend_config;   /* NULL: none */
    bool        async_wrapped;    /* made by the parser for X-start sugar */
    enum { EFFECT_UNKNOWN, EFFECT_NONE, EFFECT_SOME } effect; /* inst_has_effect's memory */
    Loc         loc;
    const struct Counter *counter; /* NULL, or what the counter of the loop may be whose body this is, while somebody asks (analysis/loops.h) */
    int64_t     mark;
    void       *aux;
};

/* Header: input_output_alias and buffer_donor. */
typedef enum { ALIAS_MAY, ALIAS_MUST } AliasKind;
typedef struct InputAlias { Ints output; int64_t param; Ints index; AliasKind kind; Loc loc; } InputAlias;
typedef struct Donor { int64_t param; Ints index; Loc loc; } Donor;

/* Stack-frame tables; ids are 1-based, 0 is none. */
typedef struct FileLocation { int32_t file, function, line, end_line, column, end_column; } FileLocation;
typedef struct StackFrame { int32_t location, parent; } StackFrame; /* parent already lowered by one: 0 is none */
typedef struct StackTables {
    int32_t             n_files, n_functions, n_locations, n_frames;
    const char *const  *files, *const *functions;
    const FileLocation *locations;
    const StackFrame   *frames;
} StackTables;

struct OriginTable; /* attr_rare.h */
struct DebugTable;

struct Module {
    Arena      *arena;
    Interner   *strings;
    const char *name;
    Comp       *first, *last; /* completion order of the text: callees before callers */
    Comp       *entry;
    int32_t     n_comps;

    bool        is_scheduled;     /* stored order is the schedule of every computation that is not a fusion body */
    bool        alias_passthrough_params;
    int64_t     replica_count, num_partitions; /* 1 by default */
    int32_t     n_aliases, n_donors;
    const InputAlias *aliases; /* sorted by output index */
    const Donor      *donors;  /* sorted */
    bool        has_entry_layout;  /* entry_computation_layout was written */
    const ShapeList *entry_params; /* with layouts; always set once the module is complete */
    const Shape     *entry_result;
    Ints        spmd_to_parameters, spmd_to_output; /* allow_spmd_sharding_propagation_*: bools; v NULL: the default {false} */
    const KeyValues *frontend_attributes;
    const char *backend_config;
    const struct OriginTable *origin_recovery;
    const struct DebugTable  *debug_attributes;
    StackTables stack;

    VEC(const char *) makers; /* who was ever named by module_set_maker */
    int16_t     maker;        /* the one of now: 1 is makers.v[0], 0 nobody */

    bool        changed; /* a pass has run on it: -0 prints as -0.0 from then on */
    struct NameTable *name_table; /* for inst_unique_name */
    uint32_t name_tables;         /* how many there were */
};

/* Modules. */
Module *module_new(void); /* an empty module with its own arena */
void    module_free(Module *m);
Module *module_clone(const Module *m);
void    module_remove_dead_comps(Module *m); /* computations that nobody calls, the entry kept */

Comp *comp_new(Module *m, const char *name);      /* appended; name interned by the caller or plain, made unique by comp_unique_name */
void  comp_move_before(Comp *c, Comp *at);         /* module order */
/* A copy in the same module, before c's callers: instructions and callees as in c (callees are shared). name is made unique. */
Comp *comp_clone(const Comp *c, const char *name);

/* A name not yet used in the module, made from base by XLA's rule (reference text 2.5). Whoever renames instructions wholesale
 * sets m->name_table to NULL, so that it is made again. */
const char *inst_unique_name(Module *m, const char *base);
const char *comp_unique_name(Module *m, const char *base);

/* Building. The instruction is put before `before`, at the end when that is NULL. name NULL: the opcode's. Attributes,
 * callees and so on are set by the functions below. */
Inst *inst_new(Comp *c, Inst *before, Op op, const Shape *shape, int32_t n, Inst *const *operands, const char *name);
Inst *inst_parameter(Comp *c, Inst *before, int64_t number, const Shape *shape, const char *name);
Inst *inst_constant(Comp *c, Inst *before, Literal *value, const char *name); /* takes over the reference; default layout */
/* With attributes and metadata, and a new unique name. */
Inst *inst_clone_into(Comp *c, Inst *before, const Inst *i, int32_t n, Inst *const *operands);

/* Who makes the instructions that are new from now on, for those who want to know which pass an instruction comes from; NULL: nobody, as while a
 * text is read. A copy of an instruction in its module has the maker of the original. */
void        module_set_maker(Module *m, const char *name);
void        inst_set_maker(Inst *i, const char *name);
const char *inst_maker(const Inst *i); /* NULL: nobody */

/* Operands and users. */
static inline Inst *inst_operand(const Inst *i, int32_t k) { return i->operands[k].def; }
void  inst_set_operand(Inst *i, int32_t k, Inst *def);
void  inst_set_operands(Inst *i, int32_t n, Inst *const *operands);
void  inst_append_operand(Inst *i, Inst *def);
/* Every use of old becomes a use of new, and so does the root; control edges move too. new takes over old's name when new has
 * no other user and its name was made up, and old's metadata when it has none. old stays, without users. */
void  inst_replace(Inst *old, Inst *new_);
void  inst_delete(Inst *i); /* no users, not the root */
void  inst_move_before(Inst *i, Inst *at);
bool  op_has_sugar(Op op);  /* X-start wraps X */
bool  inst_has_effect(const Inst *i); /* by opcode, by custom_call_has_side_effect, or by what it calls */
void  module_forget_effects(Module *m); /* those that edits may have taken away are looked for again */
Inst *inst_user(const Inst *i); /* the only user, or NULL when there are none or several different ones */

void  inst_set_callees(Inst *i, int32_t n, Comp *const *callees);
/* Where to begin to look for instructions that call computations: the first instruction, NULL when none does. */
static inline Inst *comp_calling(const Comp *c) { return c->n_calling ? c->first : NULL; }
static inline Comp *inst_callee(const Inst *i, int32_t k) { return i->callees[k]; }
static inline Comp *while_body(const Inst *i) { return i->callees[0]; }
static inline Comp *while_condition(const Inst *i) { return i->callees[1]; }

void  inst_add_control(Inst *i, Inst *pred);
void  inst_drop_control(Inst *i); /* all edges to and from i; transitive order is kept by joining them */

/* Attributes. The getters give the default when the attribute was not given. */
const Attr *inst_attr(const Inst *i, AttrId id); /* NULL: not given */
void        inst_set_attr(Inst *i, Attr x);      /* replaces */
void        inst_drop_attr(Inst *i, AttrId id);
int64_t     inst_int(const Inst *i, AttrId id, int64_t otherwise);
bool        inst_bool(const Inst *i, AttrId id);  /* largest, is_stable of topk default to true: pass through inst_int(…, 1) */
Word        inst_word(const Inst *i, AttrId id);
const char *inst_string(const Inst *i, AttrId id); /* NULL: not given */
Ints        inst_ints(const Inst *i, AttrId id);   /* empty: not given */
const Window *inst_window(const Inst *i);          /* an empty window when not given */
void        inst_set_int(Inst *i, AttrId id, int64_t v);
void        inst_set_word(Inst *i, AttrId id, Word w);
void        inst_set_ints(Inst *i, AttrId id, Ints v); /* v is copied */

/* Two reductions go over the elements of arrays of one size and layout, along the same dimensions. */
bool inst_same_loops(const Inst *x, const Inst *y);

/* compare: whether the order is total, by attribute and operand type. */
bool compare_is_total(const Inst *i);
int64_t inst_shift(const Inst *i, int32_t k); /* of a shuffle: places that the k-th of its dimensions is turned by, in [0, size) */
bool inst_counts_along(const Inst *i, int64_t dim); /* its elements are 0, 1, 2, ... along dim: an iota, or a broadcast of one */
/* An operand of a compare that is the place of a float in the total order, b < 0 ? b ^ MAX : b of its bits, or MAX - b: the float, of the same sizes. Else NULL. */
Inst *compare_key_float(const Inst *i);

const Metadata *metadata_copy(Arena *a, Interner *t, const Metadata *x);

/* Parameters of a computation, calls. */
Inst *comp_param(const Comp *c, int64_t k);
bool  comp_is_fusion_body(const Comp *c);
/* The one instruction of a scalar computation that applies a binary opcode to its two parameters, of one type (in either order when it commutes), or OP_COUNT. */
Op    comp_binary_op(const Comp *c);

/* Post-order as XLA prints it (reference text 8.2): control predecessors and operands first. n_insts entries, in a. */
Inst **comp_post_order(Arena *a, const Comp *c);
/* XLA's print order of computations: callees before callers, depth first. *n is set. */
Comp **module_comp_order(Arena *a, const Module *m, int32_t *n);

/* Reports about an instruction: the message at its place, then a note with op_name and the model's source line when metadata or
 * the stack tables have them. */
/* After a report about i: where its first operands come from, and the computations that the report names. */
void inst_note_operands(Diag *d, const Inst *i);
void inst_error(Diag *d, const Inst *i, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* "model.py:88" from metadata, NULL when unknown. */
const char *inst_source_line(Arena *a, const Inst *i);

#endif
