/* What the files that print kernel IR have in common; others use dialect.h. */
#ifndef EMIT_PRINTER_H
#define EMIT_PRINTER_H

#include "emit/dialect.h"
#include "emit/loop_blocks.h"

typedef struct Printer {
    Buf           *b;
    const Dialect *dialect;
    const LoopBlocks *blocks; /* of the loop that is printed in blocks; NULL: none */
    const IxAtom  *blocked; /* that loop's variable */
    const char    *place;   /* what stands for it */
    bool           alone;   /* what is printed is in no vector */
    const KStmt   *halves;  /* that loop, where what is printed is computed as f16; NULL: it is not */
} Printer;

/* Names in loops in blocks. No identifier made of an HLO name is of this form: those that begin with "hlo_" end in "_k" and a number. */
#define BLOCK_FROM "hlo_from"
#define BLOCK_LINE "hlo_line"
#define BLOCK_PLACE "hlo_k"
#define BLOCK_IN "hlo_in"
#define BLOCK_OUT "hlo_out"
#define BLOCK_NARROW "hlo_narrow"
#define BLOCK_PLACES "hlo_place"
#define BLOCK_TAKEN "hlo_taken"
#define BLOCK_WIDE "hlo_wide"
#define BLOCK_KEPT "hlo_kept"
#define HALF "hlo_half"
#define BLOCK_IN_FLOAT "hlo_in_as_float" /* what is read or kept as the one type, where steps want the other one, too, */
#define BLOCK_IN_FLOATS "hlo_in_floats" /* and room for it */
#define BLOCK_FLOAT "hlo_as_float"
#define BLOCK_FLOATS "hlo_floats"
#define BLOCK_HALF "hlo_as_half"
#define BLOCK_HALVES "hlo_halves"

/* Binding strength of what an expression prints as. */
enum { P_SELECT = 3, P_LOR, P_LAND, P_OR, P_XOR, P_AND, P_EQ, P_REL, P_SHIFT, P_ADD, P_MUL, P_UNARY, P_PRIMARY };

const char *element_type(const Dialect *d, const KArray *x);

void indent(Printer *p, int depth);
void print_stmt(Printer *p, const KStmt *s, int depth);
int  print_index(Printer *p, const Ix *x);                    /* how strongly what was printed binds */
void print_expr(Printer *p, const KExpr *x, int least);       /* in parentheses where it binds less */

/* Of a loop: its first index, the one behind its last, what is said to compilers of it. */
void print_start(Printer *p, const KStmt *s);
void print_end(Printer *p, const KStmt *s);
void print_hints(Printer *p, const KStmt *s, int depth);

/* The loop as it is. start, end: NULL, or the name of where it begins or ends instead. */
void print_plain_for(Printer *p, const KStmt *s, const char *start, const char *end, int depth);

/* The blocks, and where they end the loop itself. */
void print_in_blocks(Printer *p, const KStmt *s, const LoopBlocks *b, int depth);

/* Elements of f16 that are taken, as f32. */
bool is_wide(const LoopBlocks *b, int32_t taken);

#endif
