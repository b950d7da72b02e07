/* Modules shown while a pipeline runs: whole ones and their differences in the log, whole ones as numbered files. */
#include "config.h"

#include "passes/pass_int.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "support/line_diff.h"
#include "text/print.h"

static bool name_matches(const Comp *c, const void *regex)
{
    return regexec(regex, c->name, 0, NULL, 0) == 0;
}

/* The module, or those of its computations that --filter-computations picks; false when it picks none. */
static bool put_module(const Run *r, Buf *b)
{
    PrintOptions o = print_options_default();
    if (r->o->only_comps)
        return print_computations(b, r->m, &o, name_matches, r->o->only_comps) > 0;
    print_module(b, r->m, &o);
    return true;
}

/* The log of several dumps can be cut at its "// -----" lines into modules. */
static void dump(const Run *r, const char *when, const char *pass)
{
    Buf b = {0};
    buf_printf(&b, "// -----\n// %s %s\n", when, pass);
    if (put_module(r, &b))
        fwrite(b.p, 1, b.n, r->log);
    buf_free(&b);
}

/* DIR/NNN.pass.hlo. */
static bool dump_file(const Run *r, const char *pass)
{
    Buf          b = {0};
    PrintOptions o = print_options_default();
    const char  *path = arena_printf(r->d->arena, "%s/%03lld.%s.hlo", r->o->print_dir, (long long)r->runs, pass);
    print_module(&b, r->m, &o);
    bool good = buf_write_file(&b, path);
    if (!good)
        diag_error(r->d, LOC_NONE, "%s: %s", path, strerror(errno));
    buf_free(&b);
    return good;
}

bool dump_open_dir(const Run *r)
{
    const char *dir = r->o->print_dir;
    if (!dir)
        return true;
    if (mkdir(dir, 0777) == 0 || errno == EEXIST)
        return dump_file(r, "input");
    diag_error(r->d, LOC_NONE, "%s: %s", dir, strerror(errno));
    return false;
}

/* "ENTRY %main (x: f32[]) -> f32[] {" */
static bool begins_computation(const char *line, size_t n)
{
    return n > 0 && line[0] != ' ' && line[n - 1] == '{';
}

static void dump_diff(Run *r, const char *pass)
{
    Buf now = {0}, hunks = {0};
    put_module(r, &now);
    if (line_diff(&hunks, &r->shown, &now, begins_computation)) {
        fprintf(r->log, "--- before %s\n+++ after %s\n", pass, pass);
        fwrite(hunks.p, 1, hunks.n, r->log);
    }
    buf_free(&hunks);
    buf_free(&r->shown);
    r->shown = now;
}

void dump_start(Run *r)
{
    if (r->o->print_diff)
        put_module(r, &r->shown);
}

void dump_end(Run *r)
{
    buf_free(&r->shown);
}

void dump_before(const Run *r, const char *pass)
{
    if (r->o->print_before && list_has(r->o->print_before, pass))
        dump(r, "before", pass);
}

static bool wants_dump(const Run *r, const char *pass, bool changed)
{
    if (r->o->print_after && list_has(r->o->print_after, pass))
        return true;
    return r->o->print_changed ? changed : r->o->print_after_all;
}

bool dump_after(Run *r, const char *pass, bool changed)
{
    if (wants_dump(r, pass, changed))
        dump(r, "after", pass);
    if (r->o->print_diff && changed)
        dump_diff(r, pass);
    return !r->o->print_dir || (!changed && !r->o->print_unchanged) || dump_file(r, pass);
}
