/* Module to text, as XLA's HloModule::ToString with large constants. Source: reference text 8. */
#ifndef TEXT_PRINT_H
#define TEXT_PRINT_H

#include "ir/inst.h"

/* How the computations that an instruction calls are shown. */
typedef enum CalleeForm {
    CALLEES_NAMED,      /* to_apply=%add */
    CALLEES_WHOLE,      /* the body follows on the next line, without its name */
    CALLEES_PARALLEL,   /* likewise, but nothing for call, conditional and while */
    CALLEES_LEFT_OUT
} CalleeForm;

/* As XLA's HloPrintOptions: the parts of print_parts.def, and two that are no yes or no. */
typedef struct PrintOptions {
#define PART(field, name, l, s, c, f, help) bool field;
#include "text/print_parts.def"
#undef PART
    bool       makers; /* // and who made it behind an instruction that was not in the text */
    CalleeForm callees;
    int32_t    indent; /* levels of two blanks in front of every line */
} PrintOptions;

PrintOptions print_options_default(void);     /* the long form, large constants */
PrintOptions print_options_short(void);       /* what XLA calls ShortParsable */
PrintOptions print_options_canonical(void);   /* equal for isomorphic computations: Canonical */
PrintOptions print_options_fingerprint(void); /* what XLA hashes of an instruction: Fingerprint */

/* With whole callees the text may be exponentially longer than the module. False after reporting that it would be too long or too
 * deeply nested; the functions below count on it. */
bool print_is_feasible(const Module *m, const PrintOptions *o, Diag *d);

void print_module(Buf *b, const Module *m, const PrintOptions *o);
/* Only the computations that `wanted` picks (NULL: all), as they stand in the module's text. Gives their number. */
int32_t print_computations(Buf *b, const Module *m, const PrintOptions *o, bool (*wanted)(const Comp *c, const void *cookie),
                           const void *cookie);
/* One instruction without indentation and line end: "%a = f32[] add(%x, %y)". */
void print_inst(Buf *b, const Inst *i, const PrintOptions *o);

/* Values of attributes, without the attribute's name. Strings are interned ones. */
void print_metadata(Buf *b, const Metadata *m);        /* {op_name="a" source_line=3} */
void print_op_name(Buf *b, const Metadata *m);         /* {op_name="a"}, {} without one */
void print_ints(Buf *b, Ints x);                       /* {1,2} */
void print_window(Buf *b, const Window *w);            /* {size=3x3 pad=1_1x1_1} */
void print_dim_labels(Buf *b, const DimLabels *d);     /* b01f_01io->b01f */
void print_thread(Buf *b, const char *s); /* the name of a thread, as it is: XLA does not escape it */
void print_quoted(Buf *b, const char *s);              /* "a\"b", escaped as absl::CEscape does */
void print_raw_or_quoted(Buf *b, const char *s);       /* a brace-delimited dictionary as it is, anything else quoted */
bool metadata_is_printed(const Metadata *m);           /* line numbers alone are not enough */

#endif
