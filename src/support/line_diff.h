/* What differs between two texts, line by line, as the hunks of a unified diff. */
#ifndef SUPPORT_LINE_DIFF_H
#define SUPPORT_LINE_DIFF_H

#include "support/buf.h"

/* The line (n bytes) begins a section whose later hunks are told by it; NULL: there are none. */
typedef bool LineIsHeading(const char *line, size_t n);

/* Appends the hunks that make b of a, each with three lines around it and, when its section began before it, that section's first line:
 *
 *   @@ -3,7 +3,7 @@ ENTRY %main (x: f32[4]) -> f32[4] {
 *      %x = f32[4]{0} parameter(0)
 *   -  %t = f32[4]{0} negate(%x)
 *   +  %t = f32[4]{0} abs(%x)
 *
 * Lines that stand once in each text are matched in the longest common order, the others where they adjoin matched ones: n log n for any
 * texts, and right, though of many equal lines not always the fewest are told. False, with nothing appended, when nothing differs. */
bool line_diff(Buf *out, const Buf *a, const Buf *b, LineIsHeading *heading);

#endif
