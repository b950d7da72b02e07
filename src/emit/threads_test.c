/* Which loops of a kernel are spread: a module of one computing instruction, and its kernel's parts as "count:trips", the loops in the order of their
 * digits, the last one fastest; "1" is a part for one thread. */
#include <stdio.h>
#include <string.h>

#include "emit/program.h"
#include "emit/threads.h"
#include "support/check.h"
#include "text/parse.h"

static const char sum[] = "HloModule m\nsum { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\n"
    "count { x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT s = s32[] add(x, y) }\nENTRY e {\n";

/* The parts of all kernels of the module, those of a kernel separated by " ", kernels by "; ". */
static const char *parts_of(Arena *a, const char *entry)
{
    const char *text = arena_printf(a, "%s%s }", sum, entry);
    Buf         out = { 0 };
    Diag        d;
    diag_init(&d, a);
    diag_source(&d, "test", text, strlen(text));
    Module        *m = parse_module(text, strlen(text), &d);
    const Program *p = m ? program_plan(a, m, NULL, &d) : NULL;
    for (int32_t k = 0; p && k < p->n_functions; k++) {
        ThreadPart *parts;
        int32_t     n = kernel_threads(a, p->functions[k].kernel, &parts);
        buf_puts(&out, k ? "; " : "");
        for (int32_t j = 0; j < n; j++) {
            buf_printf(&out, "%s%lld", j ? " " : "", (long long)parts[j].count);
            for (int32_t l = 0; l < parts[j].n_loops; l++)
                buf_printf(&out, "%c%lld", l ? ',' : ':', (long long)(parts[j].loops[l]->hi - parts[j].loops[l]->lo + 1));
        }
    }
    diag_print(&d, stdout, false);
    const char *s = p ? arena_strndup(a, out.p ? out.p : "", out.n) : "no program";
    buf_free(&out);
    if (m)
        module_free(m);
    return s;
}

static const struct { const char *parts, *entry; } rows[] = {
    /* Each element alone; loops that lie side by side in memory were one already. */
    { "12:12", "x = f32[3,4] parameter(0)\n ROOT r = f32[3,4] negate(x)" },
    { "12:4,3", "x = f32[3,4] parameter(0)\n ROOT r = f32[4,3] transpose(x), dimensions={1,0}" },
    /* The order of memory, not of the dimensions, says which loop is the fastest. */
    { "12:4,3", "x = f32[3,4]{1,0} parameter(0)\n ROOT r = f32[3,4]{0,1} copy(x)" },
    /* A thread for each row, whose sum is its own; all of it is one sum. */
    { "3:3", "x = f32[3,4] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[3] reduce(x, z), dimensions={1}, to_apply=sum" },
    { "1", "x = f32[3] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum" },
    /* Pieces of a result are written one after the other. */
    { "4:4 3:3", "x = f32[4] parameter(0)\n y = f32[3] parameter(1)\n ROOT r = f32[7] concatenate(x, y), dimensions={0}" },
    /* An update at a place that is known only when it runs: that place is one for all threads. */
    { "40:40 6:2,3", "x = f32[4,10] parameter(0)\n u = f32[2,3] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n "
                     "ROOT r = f32[4,10] dynamic-update-slice(x, u, i, j)" },
    /* Where an update of a scatter goes differs from one to the next, and two may meet; elements of one update never do. */
    { "8:8 1", "x = f32[8] parameter(0)\n i = s32[3,1] parameter(1)\n u = f32[3] parameter(2)\n ROOT r = f32[8] scatter(x, i, u), "
               "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum" },
    /* Rows of a scatter keep their columns apart, in the order of the updates; integers do not mind the order. */
    { "32:32 4:4", "x = f32[8,4] parameter(0)\n i = s32[3,1] parameter(1)\n u = f32[3,4] parameter(2)\n ROOT r = f32[8,4] scatter(x, i, u), "
               "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum" },
    { "8:8 3:3", "x = s32[8] parameter(0)\n i = s32[3,1] parameter(1)\n u = s32[3] parameter(2)\n ROOT r = s32[8] scatter(x, i, u), "
               "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=count" },
    /* Running sums go through one scalar. */
    { "1", "x = f32[8] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[8] reduce-window(x, z), window={size=8 pad=7_0}, to_apply=sum" },
    /* One thread finds nothing to do. */
    { "1", "x = f32[0] parameter(0)\n ROOT r = f32[0] negate(x)" },
};

int main(void)
{
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        Arena      *a = arena_new();
        const char *parts = parts_of(a, rows[k].entry);
        if (strcmp(parts, rows[k].parts) != 0)
            printf("%s\n    expected \"%s\", got \"%s\"\n", rows[k].entry, rows[k].parts, parts);
        CHECK(strcmp(parts, rows[k].parts) == 0);
        arena_free(a);
    }
    return 0;
}
