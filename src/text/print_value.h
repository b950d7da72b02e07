/* What the files of the printer share. */
#ifndef TEXT_PRINT_VALUE_H
#define TEXT_PRINT_VALUE_H

#include "text/print.h"

/* The canonical names of one computation's instructions. */
typedef struct Numbering {
    Map     numbers; /* instruction -> int64_t */
    int64_t n;
} Numbering;

/* One run of the printer. */
/* A type that was printed, with or without layouts: a module has few types, and each many times. */
typedef struct TypeText {
    const Shape *shape; /* NULL: none yet */
    bool         layouts;
    uint8_t      len;
    char         text[46];
} TypeText;
enum { TYPE_TEXTS = 128 };

typedef struct Printer {
    Buf                *b;
    const PrintOptions *o;
    Arena              *arena;  /* scratch */
    Map                 starts; /* asynchronous instruction -> the async-start of its chain, or itself when there is none */
    Map                 single; /* computation -> the instruction it is sugar for, or itself: see single_inst in print.c */
    Map                 fusion_bodies, async_bodies; /* sets of the module's computations; empty when one is printed alone */
    Numbering          *numbers; /* of the computation being printed; NULL outside of computations */
    int32_t             indent;
    TypeText           *types;     /* TYPE_TEXTS: the last of those that share a place; NULL: one instruction is printed alone */
    const Metadata     *meta;      /* printed last, NULL: none; instructions in a row share theirs */
    Buf                 meta_text;
} Printer;

void print_name(Printer *p, const char *name);
void print_callee_body(Printer *p, const Comp *c); /* "{ ... }", indented as what is being printed */

/* The attributes of the opcode, called computations included, or one of them, when they are printed: each with ", " before it. */
void print_own_attrs(Printer *p, const Inst *i);
void print_own_attr(Printer *p, const Inst *i, AttrId id);
/* frontend_attributes, also of the module: {a="x",b={k = 1}} */
void print_key_values(Buf *b, const KeyValues *kv);
void print_levels(Buf *b, int32_t n); /* 2 n blanks */
void print_bools(Buf *b, Ints x); /* {true,false} */
void print_aliasing(Buf *b, const Aliasing *a);

#endif
