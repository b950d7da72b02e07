/* Kernel IR: what kernel_lower makes and the targets print.
 *
 * A kernel is a block of statements over typed scalars. A scalar has a machine type, written as one of the element types PRED, S8..S64,
 * U8..U64, F32, F64, C64, C128; values of other element types live in one of these (bf16 in F32, s4 in S8) and are rounded or wrapped by the
 * calls that lowering put in. Arrays hold elements in their own format; a load gives the raw element (U16 for bf16), and calls such
 * as bf16_to_f32 decode it.
 *
 * Every temporary is declared once, in the innermost block that all of its operands allow; accumulators alone are assigned again. */
#ifndef EMIT_KERNEL_IR_H
#define EMIT_KERNEL_IR_H

#include "analysis/device.h"
#include "emit/index.h"
#include "emit/kernel.h"

typedef struct KExpr  KExpr;
typedef struct KTemp  KTemp;
typedef struct KArray KArray;
typedef struct KBlock KBlock;
typedef struct KStmt  KStmt;

typedef enum KArrayKind {
    KARRAY_PARAM, /* a parameter of the kernel */
    KARRAY_TEMP,  /* at byte offset of the working memory */
    KARRAY_LOCAL, /* declared in a block */
    KARRAY_CONST  /* a static table of a literal's values */
} KArrayKind;

struct KArray {
    KArrayKind     kind;
    Type           type;  /* of the elements, any element type */
    const char    *name;
    int64_t        count;
    const Shape   *shape; /* dimensions and layout; NULL for what is only indexed flat */
    int32_t        param; /* PARAM: its number in kernel.h's order */
    int64_t        offset;
    const Literal *literal;
    bool           read, written;
    bool           rewritten;  /* elements are stored more than once: in place only where a copy under DISTINCT says so */
    bool           streamed;   /* a result that is stored past the caches where its elements lie in a row: loop_blocks.h */
    bool           restricted; /* PARAM: nothing else is at the same place */
    bool           in_f16;     /* of f32 whose digits that has */
    int32_t        serial;
};

struct KTemp {
    const char *name;
    Type        type;
    bool        assigned; /* more than once */
    int32_t     depth;    /* of the block that declares it */
    int32_t     serial;
    const IxAtom *atom;   /* of an index: the term that stands for it, NULL until wanted */
    const KTemp *element_of; /* NULL, or the accumulator that this goes with, in a reducer of pairs that gives the same in any order and more than once, */
    bool        minds_nan;   /* unless this is NaN */
    const KExpr  *decoded; /* what made it, if that is no more than operands' elements and a choice among them; else NULL */
    bool          in_bf16, in_f16; /* an f32 whose digits that has */
};

typedef enum KExprKind { KX_INT, KX_FLOAT, KX_TEMP, KX_INDEX, KX_LOAD, KX_UNARY, KX_BINARY, KX_SELECT, KX_CALL, KX_CAST,
    KX_DISTINCT /* array and other are different memory */
} KExprKind;

typedef enum KOp {
    KOP_NEG, KOP_NOT /* bits; logical on PRED */, KOP_REAL, KOP_IMAG, KOP_PLACE /* where the element that is loaded lies, for a call that reads it and its neighbours */,
    KOP_MUL, KOP_DIV, KOP_REM, KOP_ADD, KOP_SUB, KOP_SHL, KOP_SHR, KOP_LT, KOP_LE, KOP_GT, KOP_GE, KOP_EQ, KOP_NE, KOP_AND, KOP_XOR, KOP_OR,
    KOP_LAND, KOP_LOR
} KOp;

struct KExpr {
    KExprKind    kind;
    Type         type;
    KOp          op;    /* UNARY, BINARY */
    int32_t      depth; /* of the innermost block that it depends on */
    int32_t      n;     /* args used */
    const KExpr *arg[4];
    int64_t      i;     /* INT */
    double       f;     /* FLOAT */
    const char  *fn;    /* CALL: a function of libm or of the target's prelude */
    KTemp       *temp;
    KArray      *array; /* LOAD, DISTINCT */
    KArray      *other; /* DISTINCT */
    const Ix    *index; /* LOAD, INDEX */
};

typedef enum KStmtKind { KS_DECLARE, KS_ASSIGN, KS_STORE, KS_FOR, KS_IF, KS_ARRAY,
    KS_LOOP,  /* until a KS_BREAK of its own block */
    KS_BREAK, /* unless the condition holds */
    KS_BLOCK  /* statements with names of their own */
} KStmtKind;

/* Neighbours in memory that the caches are asked for before they are wanted. */
typedef struct KFetch {
    const KArray *array;
    const Ix     *index; /* of the first one */
    int64_t       bytes;
    bool          written, far;
} KFetch;

struct KStmt {
    KStmtKind     kind;
    KStmt        *next;
    KTemp        *temp;  /* DECLARE, ASSIGN */
    const KExpr  *value; /* DECLARE (NULL: no value yet), ASSIGN, STORE; IF, BREAK: the condition */
    KArray       *array; /* STORE, ARRAY */
    const Ix     *index; /* STORE */
    const IxAtom *loop;  /* FOR: from loop->lo to loop->hi by 1 */
    const Ix     *from, *end; /* FOR: NULL, or where it starts and before what it ends, in the range of loop or empty */
    KBlock       *body;  /* FOR, IF, LOOP, BLOCK */
    KBlock       *other; /* IF: NULL or else */
    const char   *atomic; /* STORE: NULL, or "Add", "Mul", "Max": the element becomes that of itself and value, which other threads may do at the same time; of floats of 16 bits and fewer value is f32 */
    bool          apart;  /* STORE: no other iteration of the loops around touches that element */
    int64_t       group;  /* STORE: 0, or how many iterations of the loop group_loop, from a multiple of it on, are a group: of what the kernel stores no group touches elements of another group of the same size, nor */
    const IxAtom *group_loop; /* of larger groups, and of operands only what lies where the group does */
    bool          past;   /* STORE: past the caches as if the array were streamed */
    int64_t       fill_work; /* STORE: 0, or what the call that is value takes, as ranges.h counts work, which stores several elements from that one on by itself, in an array of the kernel's own */
    bool          rolled; /* FOR: compilers should not unroll it, see kernel_keep_rolled */
    bool          unrolled; /* FOR: they should, although they make no vectors of it: it changes elements that it finds */
    bool          in_turn; /* FOR, of which each trip goes through lanes: compilers should make no two trips one */
    const IxAtom *ahead;  /* FOR, of which each trip goes through lanes: NULL, or the loop around of whose next trip it fetches what it touches (fetch_ahead.h) */
    int32_t       n_fetched;
    const KFetch *fetched; /* FOR: with each trip */
    bool          beside; /* FOR: over rows that are beside each other: beside.h */
    const struct Turning *turning; /* FOR, around another one: NULL, or how it moves rows to columns, or back: beside.h */
};

struct KBlock {
    KBlock *parent;
    int32_t depth;
    bool    fence; /* nothing from inside may be moved out: it is under a condition, or changes from time to time */
    KStmt  *from;  /* the statement that it belongs to; put into parent when the block is closed */
    KStmt  *first, *last;
};

struct Kernel {
    Arena      *arena;
    const Inst *inst;
    int32_t     n_operands, n_results; /* leaves */
    KArray    **params;                /* operand leaves, result leaves */
    int32_t     n_arrays;
    KArray    **arrays;
    int64_t     temp_bytes;
    bool        temp_asked;            /* its launcher asks for that memory when it starts the kernel: none is planned */
    int64_t     tile_row;              /* of kernel_lower_tile, or 0 */
    int32_t     tile_in_place;
    bool        tile_uses_row;
    int64_t     split_offset;          /* of what split.h has reserved of it, up to its end */
    const Device *device;              /* whose threads it is for; NULL: for one thread */
    bool        any_order;             /* floats may be added to an element in any order, which gives other bits from run to run */
    KBlock     *body;
    bool       *may_alias; /* [result * n_operands + operand] */
    Buf         signature; /* the body without names */
};

/* Every expression and statement of a block, depth first; nested blocks too. */
typedef struct KVisitor {
    void (*expr)(void *cookie, const KExpr *x); /* NULL, or called for each node */
    void (*stmt)(void *cookie, const KStmt *s); /* likewise */
    void *cookie;
} KVisitor;
void kernel_visit(const KBlock *b, const KVisitor *v);
void kernel_visit_stmt(const KStmt *s, const KVisitor *v); /* that one alone, not what follows it */

/* Copies with something else in the place of elements. A load whose place is asked for stays. */
typedef struct KRewriter {
    const KExpr *(*load)(void *cookie, const KExpr *x); /* what stands for the load; NULL: itself */
    void (*store)(void *cookie, KStmt *s);              /* NULL, or changes the copy of a KS_STORE */
    void *cookie;
} KRewriter;
const KExpr *kx_rewrite(Arena *a, const KExpr *x, const KRewriter *r);
KBlock *kernel_rewrite(Arena *a, const KBlock *b, const KRewriter *r);

/* Puts the statement at the end of b. */
void kblock_append(KBlock *b, KStmt *s);
/* One of b's own statements declares t. */
bool kblock_declares(const KBlock *b, const KTemp *t);
/* A value that b declares is in x. */
bool kblock_computes(const KBlock *b, const Ix *x);

/* Puts a copy of the statement at the end of b, for those who deal the statements of a block out to others. */
void kblock_append_copy(Arena *a, KBlock *b, const KStmt *s);

/* Makes them the first ones of the kernel's, which have the first choice of names. */
void kernel_add_arrays(Kernel *k, int32_t n, KArray *const *arrays);

/* Takes tens of cycles: an exponential, a logarithm. */
bool kx_is_dear_call(const KExpr *x);
bool kx_rounds(const KExpr *x); /* a call that rounds f32 to bf16 or f16, as f32 */
bool kernel_has_dear_call(const KStmt *s); /* that one alone, with what is in it */

/* The literal v, or the complex number that is made of it and 0. */
bool kx_is_number(const KExpr *x, double v);

/* x has an element of that array in it; at NULL: any, else the one at that index. */
bool kx_loads_from(const KExpr *x, const KArray *array, const Ix *at);
/* x has an element of that array in it besides the one at `own`; NULL: any. */
bool kx_loads_other(const KExpr *x, const KArray *array, const Ix *own);

/* An innermost loop that writes what may be an operand's own place, element by element: its iterations are independent all the same. */
bool kernel_loop_is_independent(const KStmt *loop);
/* Nothing that the loop's own statements store is what they load, or may be: they may be done twice. */
bool kernel_loop_may_repeat(const KStmt *loop);

/* Expressions. Small simplifications happen here: constants fold, conversions that undo each other vanish. */
const KExpr *kx_int(Arena *a, Type t, int64_t v);
const KExpr *kx_float(Arena *a, Type t, double v);
const KExpr *kx_temp(Arena *a, KTemp *t);
const KExpr *kx_index(Arena *a, const Ix *x); /* S64 */
const KExpr *kx_load(Arena *a, KArray *array, const Ix *index);
const KExpr *kx_unary(Arena *a, KOp op, Type t, const KExpr *x);
const KExpr *kx_binary(Arena *a, KOp op, Type t, const KExpr *x, const KExpr *y);
const KExpr *kx_select(Arena *a, const KExpr *c, const KExpr *x, const KExpr *y);
const KExpr *kx_call(Arena *a, const char *fn, Type t, int32_t n, const KExpr *const *args);
const KExpr *kx_cast(Arena *a, Type t, const KExpr *x); /* C's conversion */
/* x in no vector: with functions that vectors have not. */
const KExpr *kx_alone(Arena *a, const KExpr *x);
const char  *function_alone(const char *fn);
const KExpr *kx_distinct(Arena *a, KArray *x, KArray *y);

/* The machine type of a value of element type t, and of an element in memory. */
Type machine_type(Type t);
Type storage_type(Type t);

/* Drops temporaries and working arrays that nothing reads. */
void kernel_prune(Kernel *k);
/* Numbers that are rounded to f16 only to be made one are no longer rounded before. */
void kernel_round_once(Kernel *k);
/* Floats between constant bounds that become integers of 16 bits and fewer: f32_in_s8(min_f32(max_f32(x, -127), 127)) is f32_within_s8(x, -127, 127). */
void kernel_bound_once(Kernel *k);
/* A kernel without loops computes in no vectors, nor does what is declared beside a loop. */
void kernel_make_alone(Kernel *k);
/* In innermost loops a choice of what a function of libm gave is made of bits: behind a test the function would be called element by element. */
void kernel_choose_by_bits(Kernel *k);
/* Marks short inner loops in which an element is one of two values, that store several, that add products with one value to whole vectors of sums, or that go along lines: gcc unrolls loops
 * of up to 16 trips before it makes vectors, and makes none of such pieces, or those of the loop around them, whose elements it has to pick out of as many lines (1024 x 1024
 * times 1024 x 8 of f32 in 8 x 8 sums: 2.8 ms, and 0.24 as loops; 512 rows of 16, each scaled and with a value of each column, 1.5 and 0.6 us).
 * Also those that load under a condition: unrolled, the pieces are loaded with a vector's mask and lanes are mixed up (gcc before 12.4, PR 114375).
 * And marks those that change single elements which they find, of which no vectors are made, to be unrolled. */
void kernel_keep_rolled(Kernel *k);
/* Elements of f16 that lanes have under a condition are moved beside each other first: kernel_pads.c. */
void kernel_pads_apart(Kernel *k, IxCtx *cx);
/* What a choice in an innermost loop takes or leaves is loaded before it, where it is in range whatever is chosen and the choice comes of elements: gcc makes no vectors of a load under a condition where
 * it has none with such a mask, of bytes above all. */
void kernel_lift_loads(Kernel *k);
/* Gives every array, temporary and loop a name that C accepts and nothing else in the kernel has. threads: nor what targets write around loops
 * that many threads share. */
void kernel_name(Kernel *k, bool threads);
/* Joins loops: for i0, for i1 with every index in multiples of i0*n1 + i1 become one loop; a loop of one trip becomes its body. */
void kernel_collapse(Kernel *k, IxCtx *cx);
void kernel_join(KStmt *loop, IxCtx *cx); /* that one with what is inside it */
/* Fills arrays' flags, may_alias, restricted, signature. */
void kernel_finish(Kernel *k, bool plain);

/* Each element of the operand is read before the result, in the same place, is first written there. A copy under DISTINCT, which an update begins with, does not run then. */
bool kernel_reads_in_time(const Kernel *k, const KArray *result, const KArray *operand);
/* The result, no update, can be made where the operand is. plain: of what many threads do at a time, element by element alone. */
bool kernel_same_place(const Kernel *k, const KArray *result, const KArray *operand, bool plain);
/* restricted again, when may_alias says where results are. in_place, likewise: where the operand always is, which then needs no copy under DISTINCT. */
void kernel_settle(Kernel *k, const bool *in_place);

#endif
