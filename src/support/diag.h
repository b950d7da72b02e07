/* Diagnostics: "file:line:col: error: text", the source line and a caret. Libraries report here and return false; only
 * tools print and choose the exit status. Positions are byte offsets into one source text; lines and columns (both from 1,
 * columns in bytes) are computed when a message is shown. */
#ifndef SUPPORT_DIAG_H
#define SUPPORT_DIAG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "support/arena.h"

typedef struct Loc {
    int64_t off; /* byte offset of the first byte, -1: nowhere */
    int32_t len; /* bytes to underline, 0 or 1: the caret alone */
} Loc;
#define LOC_NONE ((Loc){-1, 0})

typedef enum { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE, DIAG_REMARK } DiagKind;

typedef struct DiagMessage {
    DiagKind             kind;
    Loc                  loc;
    const char          *text;
    const char          *where; /* for a message about another place ("model.py:88"): shown instead of file:line:col */
    struct DiagMessage  *next;
} DiagMessage;

typedef struct Diag {
    Arena       *arena;
    const char  *file;      /* as shown; "<stdin>" for a pipe */
    const char  *text;      /* the source, len bytes, kept by the caller; NULL when there is none */
    size_t       len;
    int          first_line; /* added to lines (split input); 0 normally */
    int          max_errors; /* 0: no limit; 20 by default */
    int          errors, warnings;
    bool         werror;
    DiagMessage *first, *last; /* in order of report */
    const char  *context;   /* prefix for messages without a position, "after pass dce: " or NULL */
} Diag;

void diag_init(Diag *d, Arena *a);
void diag_source(Diag *d, const char *file, const char *text, size_t len);

void diag_error(Diag *d, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_warning(Diag *d, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_remark(Diag *d, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_note(Diag *d, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4))); /* belongs to the message before */
void diag_note_at(Diag *d, const char *where, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_vreport(Diag *d, DiagKind kind, Loc loc, const char *fmt, va_list ap) __attribute__((format(printf, 4, 0)));

/* The errors after this message (NULL: all) become warnings; not with werror, and not once messages were dropped. */
void diag_soften(Diag *d, DiagMessage *after);

bool diag_full(const Diag *d);     /* max_errors reached: stop looking for more */
void diag_position(const Diag *d, int64_t off, int *line, int *col);
void diag_print(Diag *d, FILE *to, bool color); /* shows and forgets all messages; counts stay */

/* The entry of names[0..n) nearest to word, or NULL when none is near enough to be meant ("did you mean"). */
const char *nearest_word(const char *word, const char *const *names, int n);

#endif
