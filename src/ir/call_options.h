/* The options of a custom call: its backend_config, an attribute dictionary as MLIR prints it or a JSON object,
 *
 *     {uplo = 76 : ui8, mode = "S"}        {"uplo": 76, "mode": "S"}
 *
 * or, where that is empty, the frontend attribute mhlo.backend_config. Of a dictionary within the dictionary the entries count as the outer
 * one's. Source: reference operations 19.2. */
#ifndef IR_CALL_OPTIONS_H
#define IR_CALL_OPTIONS_H

#include "ir/inst.h"

typedef struct CallOption {
    const char *name, *text; /* the value as written, without quotes */
    const char *type;        /* what is written behind its colon; "": nothing */
    int64_t     number;      /* of an integer; true is 1, false is 0; unsigned ones above INT64_MAX by their bits */
    double      real;        /* of a number of any kind */
    bool        is_number, is_real, is_string; /* an integer, another number, text in quotes; none: a list and the like */
} CallOption;

typedef struct CallOptions {
    CallOption *v;
    int32_t     n;
} CallOptions;

/* False when what is written is no dictionary; nothing written is an empty one. */
bool call_options_read(Arena *a, const Inst *i, CallOptions *out);
const CallOption *call_option(const CallOptions *o, const char *name); /* NULL: not given */
CallOption *call_option_entries(Arena *a, const CallOption *o, int32_t *n); /* of a list; anything else is a list of one. n = 0: none, or not well made */
const char *call_config_text(const Inst *i); /* the configuration as it is written, "" when there is none */

#endif
