/* FileCheck tests out of what a command prints. */
#ifndef DRIVER_CHECKS_H
#define DRIVER_CHECKS_H

#include "support/buf.h"

/* Appends the test (n bytes of HLO text with // comments) as it is when its command prints `printed`: the directives of this prefix ("CHECK") that
 * it has are left out, and where the first of them stood, else behind the comments that it begins with, stand new ones that expect exactly this
 * text, line after line. They end as the first line of the test does. */
void checks_write(Buf *out, const char *test, size_t n, const Buf *printed, const char *prefix);

/* FileCheck takes it: a letter, then letters, digits, - and _. */
bool checks_prefix_is_good(const char *prefix);

/* What ends the first line: "\r\n", else "\n". */
const char *checks_line_end(const char *test, size_t n);

/* The test has a RUN line, in a comment of its own. */
bool checks_have_run(const char *test, size_t n);

#endif
