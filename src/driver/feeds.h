/* The host's side of infeed and outfeed: arrays of a file, in the order in which the module asks for them.
 *
 * infeed0, infeed1, ... are the array leaves of everything that infeeds take, whichever infeed it is: one that runs ten times in a loop
 * takes its leaves ten times. outfeed0, outfeed1, ... are likewise what outfeeds give; read back, they are infeeds, and so are arr_0, ...
 *
 * On several devices each of them goes through the whole file: an array with one more dimension in front, of the number of devices, is a slice
 * for each, others are for all. What they give is stored with that dimension, or, without the axis, as the first device gives it. */
#ifndef DRIVER_FEEDS_H
#define DRIVER_FEEDS_H

#include "eval/eval.h"

typedef struct Feeds Feeds;

/* in: the file with infeed0, ... (NULL: none); out: whether outfeeds are taken; assignment: the device of each of n processes, none: its
 * number. NULL after reporting. */
Feeds          *feeds_open(Arena *a, const char *in, bool out, int64_t n, Ints assignment, Diag *d);
const EvalHost *feeds_host(const Feeds *f);
void            feeds_rewind(Feeds *f); /* before each run: from infeed0 on, and outfeeds are dropped */
bool            feeds_done(Feeds *f);   /* after a run: reports what no infeed took */
/* For compiled code: the next array, of this type ("f32[2,3]"), to bytes by rows, or from them. False after reporting. Not for two threads at once. */
bool            feeds_put(Feeds *f, int32_t process, const char *type, int64_t bytes, void *to);
bool            feeds_take(Feeds *f, int32_t process, const char *type, int64_t bytes, const void *from);
bool            feeds_write(Feeds *f, const char *path, bool axis);

#endif
