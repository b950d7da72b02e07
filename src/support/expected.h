/* Expected diagnostics, written in comments of a test's own text:
 *
 *   // expected-error@+1 {{operands of one shape}}      expected-warning, expected-note, expected-remark
 *
 * Where: nothing is this line; @+N, @-N lines from here; @above, @below the next lines that are no expectations; @unknown a message
 * without a place. The text between the braces is a part of the message; after expected-error-re the parts of it in {{...}} of their own
 * are regular expressions (POSIX extended). Each expectation takes one message; notes need not be expected. */
#ifndef SUPPORT_EXPECTED_H
#define SUPPORT_EXPECTED_H

#include "support/diag.h"

/* Compares the messages that d has collected for its source with what the source expects, and forgets them. What is missing or
 * unexpected goes to `to`; true when that is nothing. */
bool expected_check(Diag *d, FILE *to);

#endif
