/* Time by instruction. An instruction's own time is without that of what it calls:
 *
 *   while.1   |==|          |==|     |=|      own: what is left
 *   add.2        |====|add.3|   ...           total of while.1: all of it
 *
 * Of several devices each has a clock, which stands while another one has its turn: what passes between two events is the second one's. */
#include "config.h"

#include "driver/find.h"

#include <inttypes.h>
#include <stdlib.h>

#include "driver/driver.h"
#include "support/vec.h"

typedef struct Row {
    const char *name; /* a copy: instructions that a custom call stands for are gone after the run */
    const char *what, *source; /* opcode or the like; the model's line, NULL: unknown */
    int64_t     count;
    double      own, total;
} Row;

typedef struct Running {
    Row   *row;
    double start, callees;
} Running;

typedef struct Clock {
    double now;
    VEC(Running) running; /* innermost last */
} Clock;

struct Profile {
    Arena       *arena;
    Map          rows; /* key, of an instruction itself -> Row */
    VEC(Row *)   list;
    double       last; /* event */
    Clock       *clocks; /* of each device */
    EvalWatch    watch;
};

static Row *new_row(Profile *p, const void *key, const Inst *i, const char *what)
{
    Row *r = ARENA_NEW(p->arena, Row);
    *r = (Row){.name = arena_strndup(p->arena, i->name, strlen(i->name)), .what = what, .source = inst_source_line(p->arena, i)};
    map_put(&p->rows, key, r);
    vec_push(p->arena, &p->list, r);
    return r;
}

static Clock *clock_of(Profile *p, int32_t device)
{
    double now = seconds_now();
    p->clocks[device].now += now - p->last;
    p->last = now;
    return &p->clocks[device];
}

static void begin(Profile *p, const void *key, const Inst *i, const char *what, int32_t device)
{
    Clock *c = clock_of(p, device);
    Row   *r = map_get(&p->rows, key);
    if (!r)
        r = new_row(p, key, i, what);
    vec_push(p->arena, &c->running, ((Running){.row = r, .start = c->now}));
}

static void end(Profile *p, int32_t device)
{
    Clock   *c = clock_of(p, device);
    Running *r = &c->running.v[--c->running.n];
    double   took = c->now - r->start;
    r->row->count++;
    r->row->total += took;
    r->row->own += took - r->callees;
    if (c->running.n > 0)
        r[-1].callees += took;
}

void profile_begin(Profile *p, const void *key, const Inst *i, const char *what)
{
    begin(p, key, i, what, 0);
}

void profile_end(Profile *p)
{
    end(p, 0);
}

static void before(void *cookie, const Inst *i, int32_t device)
{
    begin(cookie, i, i, op_name(i->op), device);
}

static bool after(void *cookie, const EvalStep *s)
{
    end(cookie, s->device);
    return true;
}

Profile *profile_open(Arena *a, int64_t devices)
{
    Profile *p = ARENA_NEW(a, Profile);
    *p = (Profile){.arena = a, .rows = map_new(a), .last = seconds_now(), .clocks = ARENA_ARRAY(a, Clock, devices)};
    p->watch = (EvalWatch){.cookie = p, .before = before, .after = after};
    return p;
}

const EvalWatch *profile_watch(const Profile *p)
{
    return &p->watch;
}

static int by_own_time(const void *x, const void *y)
{
    const Row *a = *(Row *const *)x, *b = *(Row *const *)y;
    return a->own != b->own ? (a->own < b->own ? 1 : -1) : strcmp(a->name, b->name);
}

/* Longest first; *sum gets their own times together. */
static Row **sorted(const Profile *p, double *sum)
{
    Row **rows = ARENA_ARRAY(p->arena, Row *, p->list.n);
    *sum = 0;
    for (int32_t k = 0; k < p->list.n; k++) {
        rows[k] = p->list.v[k];
        *sum += rows[k]->own;
    }
    if (p->list.n > 1)
        qsort(rows, (size_t)p->list.n, sizeof *rows, by_own_time);
    return rows;
}

static double share(const Row *r, double sum)
{
    return sum > 0 ? r->own / sum : 0;
}

void profile_table(Buf *b, const Profile *p)
{
    double sum;
    Row  **rows = sorted(p, &sum);
    buf_printf(b, "%12s %12s %7s %10s  %s\n", "own us", "total us", "share", "count", "instruction");
    for (int32_t k = 0; k < p->list.n; k++)
        buf_printf(b, "%12.1f %12.1f %6.1f%% %10" PRId64 "  %s (%s)%s%s\n", rows[k]->own * 1e6, rows[k]->total * 1e6,
                   100 * share(rows[k], sum), rows[k]->count, rows[k]->name, rows[k]->what, rows[k]->source ? " from " : "",
                   rows[k]->source ? rows[k]->source : "");
}

void profile_json(Buf *b, const Profile *p)
{
    double sum;
    Row  **rows = sorted(p, &sum);
    buf_printf(b, "{\"own_us\": %.3f, \"instructions\": [", sum * 1e6);
    for (int32_t k = 0; k < p->list.n; k++) {
        buf_puts(b, k ? ",\n  {\"name\": " : "\n  {\"name\": ");
        json_text(b, rows[k]->name);
        buf_printf(b, ", \"opcode\": \"%s\", \"count\": %" PRId64 ", \"own_us\": %.3f, \"total_us\": %.3f, \"share\": %.6f",
                   rows[k]->what, rows[k]->count, rows[k]->own * 1e6, rows[k]->total * 1e6, share(rows[k], sum));
        if (rows[k]->source) {
            buf_puts(b, ", \"source\": ");
            json_text(b, rows[k]->source);
        }
        buf_putc(b, '}');
    }
    buf_puts(b, "]}\n");
}
