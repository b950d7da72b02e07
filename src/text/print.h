/* Module to text, as XLA's HloModule::ToString with large constants. Source: reference text 8. */
#ifndef TEXT_PRINT_H
#define TEXT_PRINT_H

#include "ir/inst.h"

typedef struct PrintOptions {
    bool percent;          /* %names */
    bool signatures;       /* "(x: f32[]) -> f32[]" after a computation's name */
    bool operand_shapes;
    bool metadata;
    bool backend_config;
    bool index_comments;   /* the comments with index=5 */
    bool large_constants;  /* all values; false: more than 10 elements and tuples are {...} */
    bool control_deps;
    bool async_sugar;
} PrintOptions;

PrintOptions print_options_default(void); /* the long form, large constants */

void print_module(Buf *b, const Module *m, const PrintOptions *o);
void print_comp(Buf *b, const Comp *c, const PrintOptions *o);
/* One instruction without indentation and line end: "%a = f32[] add(%x, %y)". */
void print_inst(Buf *b, const Inst *i, const PrintOptions *o);
void print_metadata(Buf *b, const Metadata *m);

#endif
