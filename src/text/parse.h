/* Text to module. Source: reference text, all of it. */
#ifndef TEXT_PARSE_H
#define TEXT_PARSE_H

#include "ir/inst.h"

/* Parses len bytes of text (any of the three forms of input). Errors go to d, whose source must be this text; NULL then. The module
 * is named and numbered as XLA does on loading: unique names, stack tables in the order of use. It is not verified. */
Module *parse_module(const char *text, size_t len, Diag *d);

/* The same without a copy: text[len] and text[len + 1] are NUL, and the bytes change while they are read; they
 * are what they were when this returns. */
Module *parse_module_in_place(char *text, size_t len, Diag *d);

#endif
