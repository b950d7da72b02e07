/* transpose.h - rectangles that are turned, and runs that are copied: between transpose.c and the code of each set of instructions. Distances are in bytes. */
#ifndef HLORT_TRANSPOSE_H
#define HLORT_TRANSPOSE_H

#include <stdint.h>

enum { HLORT_LINE = 64, /* of a cache */
       HLORT_PIECE = 16, /* a vector of the smallest size */
       HLORT_COLLECTED = 1024 /* bytes of a row that are put together before they are written past the caches */ };

/* How a result is written: into the caches, or past them where rows begin with a line, or where they do not. */
typedef enum TurnStores { HLORT_STORED, HLORT_LINES, HLORT_ANYWHERE } TurnStores;

/* to[c][r] = from[r][c]. Both edges are as long as a piece, at least. */
typedef struct TurnPart {
    const char *from;
    char       *to;
    int64_t     rows, columns; /* in elements */
    int64_t     from_row, to_row;
    TurnStores  past;
    int64_t     times, from_next, to_next; /* so many such parts, the next one so far behind in either */
} TurnPart;

typedef void TurnFunction(const TurnPart *x);

/* Likewise, where neither rows nor columns are evenly apart: to[to_row[c] + r] = from[from_row[r] + c], in bytes. Tables have as many entries as a line has elements, at least.
 * Of each side's axes the innermost one has so many; what it is no multiple of are its pieces, of which this is one. Edges may be short. */
typedef struct GridPart {
    const char    *from;
    char          *to;
    int64_t        rows, columns, inner_rows, inner_columns;
    const int64_t *from_row, *to_row;
    int64_t        times, from_next, to_next; /* likewise */
} GridPart;

typedef void GridFunction(const GridPart *x);

/* Rows of the result that lie as they are in the source. */
typedef struct RunsPart {
    const char *from;
    char       *to;
    int64_t     count, bytes, from_row, to_row;
    const int64_t *at; /* where each is in the source, instead of from_row; NULL */
    int64_t     beside, to_beside; /* of short ones: so many lie one behind the other in the source, and so far apart in the result */
    TurnStores  past;
} RunsPart;

typedef void RunsFunction(const RunsPart *x);

enum { HLORT_TURN_SIZES = 5 }; /* of elements: 1, 2, 4, 8 and 16 bytes */

#endif
