/* Configurations, which are JSON, with the keys of each object in order. */
#ifndef TEXT_PRINT_JSON_H
#define TEXT_PRINT_JSON_H

#include "support/buf.h"

/* {"b":1, "a":[2, 3]} -> {"a":[2,3],"b":1}: no white space, fields sorted by their bytes, arrays and numbers as they are. False, and
 * nothing written, for what is not JSON or nested deeper than 200 levels. */
bool json_print_sorted(Buf *b, const char *s, size_t n);

#endif
