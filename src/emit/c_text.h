/* Small pieces of C text that every target prints. */
#ifndef EMIT_C_TEXT_H
#define EMIT_C_TEXT_H

#include "emit/program.h"
#include "support/buf.h"

void c_comment_text(Buf *b, const char *s); /* what a comment can hold: no end of comment, no line end, no line joining */
void c_string(Buf *b, const char *s);       /* "s" */
void c_bytes(Buf *b, const char *s, size_t n); /* likewise n bytes, NUL among them */
bool c_has_name(const char *text, const char *word); /* word is a name in the text */
void c_env_type(Buf *b);                    /* hlo_env, guarded */
void c_int_types(Buf *b);                   /* int8_t ... uint64_t, without a header */
void c_random_function(Buf *b);             /* hlo_random: one state of 128 bits for the whole run */

/* c_devices.c: hlo_exchange and hlo_devices, guarded; a table for each exchange. */
void c_devices_types(Buf *b);
void c_exchanges(Buf *b, const Program *p);
const char *c_exchange_failure(const Exchange *x); /* what a failed one is told by */

/* "// %add.3 = add  op_name=... model.py:7", the instruction that a step is of. */
void c_step_origin(Buf *b, const Inst *i);
/* The instruction that a function was made for, and what a fusion and a loop in it hold, as a comment in front of it. */
void c_origin(Buf *b, const Inst *i);
/* All arguments, results and the scratch of a program: the end of the comment that its source begins with. */
void c_interface_comment(Buf *b, const Program *p);

/* c_header.c: --emit=h. types go in front of hlo_env, functions behind NAME_run. */
void c_header(Buf *b, const Program *p, const char *types, const char *functions);
/* c_main.c: what --emit=main has in front of the source and behind it. run: the function that main calls with memory of the host's and so
 * much scratch; before: what comes behind the tables of arguments and results. */
extern const char c_main_includes[];
void c_main(Buf *b, const Program *p, const char *run, int64_t scratch_bytes, const char *before);

/* c_numbers.c: the elements of a constant in the order of memory, in a or the literal's own data; what an array of it is declared as; the first n of
 * them (twice as many as elements when they are complex) as C's numbers, several in a line. */
const void *c_memory_order(Arena *a, const Constant *c);
const char *c_storage(Type t);
void        c_element(Buf *b, Type t, const void *data, int64_t k);
void        c_elements(Buf *b, Type t, const void *data, int64_t n);
/* "const", or HLO_TABLE for a static array of that many bytes of which gcc 12 may copy something else, if it knows its elements; the macro, guarded. */
const char *c_table(const void *data, int64_t bytes, int64_t element);
extern const char c_table_macro[];

#endif
