/* Module to text, as XLA's HloModule::ToString with large constants. Source: reference text 8. */
#ifndef TEXT_PRINT_H
#define TEXT_PRINT_H

#include "ir/inst.h"

/* As XLA's HloPrintOptions; false leaves it out. */
typedef struct PrintOptions {
    bool percent;          /* %names */
    bool signatures;       /* "(x: f32[]) -> f32[]" after a computation's name */
    bool operand_shapes;   /* types in front of operands */
    bool result_shapes;    /* types in front of opcodes */
    bool layouts;          /* in both, {1,0} */
    bool metadata;         /* and the stack tables */
    bool backend_config;
    bool index_comments;   /* the comments with index=5 between operands */
    bool large_constants;  /* all values; false: more than 10 elements and tuples are {...} */
    bool control_deps;
    bool origin;
    bool async_sugar;
} PrintOptions;

PrintOptions print_options_default(void); /* the long form, large constants */
PrintOptions print_options_short(void);   /* what XLA calls ShortParsable: no %, signatures, metadata, control dependencies */

void print_module(Buf *b, const Module *m, const PrintOptions *o);
/* Only the computations that `wanted` picks (NULL: all), as they stand in the module's text. Gives their number. */
int32_t print_computations(Buf *b, const Module *m, const PrintOptions *o, bool (*wanted)(const Comp *c, const void *cookie),
                           const void *cookie);
/* One instruction without indentation and line end: "%a = f32[] add(%x, %y)". */
void print_inst(Buf *b, const Inst *i, const PrintOptions *o);

/* Values of attributes, without the attribute's name. Strings are interned ones. */
void print_metadata(Buf *b, const Metadata *m);        /* {op_name="a" source_line=3} */
void print_ints(Buf *b, Ints x);                       /* {1,2} */
void print_window(Buf *b, const Window *w);            /* {size=3x3 pad=1_1x1_1} */
void print_dim_labels(Buf *b, const DimLabels *d);     /* b01f_01io->b01f */
void print_quoted(Buf *b, const char *s);              /* "a\"b", escaped as absl::CEscape does */
void print_raw_or_quoted(Buf *b, const char *s);       /* a brace-delimited dictionary as it is, anything else quoted */
bool metadata_is_printed(const Metadata *m);           /* line numbers alone are not enough */

#endif
