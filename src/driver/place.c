/* Where a value was computed, as a key and in words. */
#include "config.h"

#include "driver/find.h"

#include <inttypes.h>
#include <math.h>

#include "ir/custom_call.h"

static const char shared;

Places places_of(Arena *a, const Module *m)
{
    Places p = {a, map_new(a)};
    for (const Comp *c = m->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            for (int32_t k = 0; k < i->n_callees; k++)
                map_put(&p.callers, inst_callee(i, k), map_has(&p.callers, inst_callee(i, k)) ? (void *)(uintptr_t)&shared : (void *)(uintptr_t)i);
    return p;
}

/* The computation that frame f runs is inner's: the one with inner's caller in it, or the step's own. */
static void put_frames(Buf *b, const Places *p, const EvalFrame *f, const Comp *c)
{
    if (!f->outer)
        return;
    put_frames(b, p, f->outer, f->caller->comp);
    if (!p || map_get(&p->callers, c) == &shared)
        buf_printf(b, "@%s", f->caller->name);
    if (f->trip >= 0)
        buf_printf(b, "#%" PRId64, f->trip);
}

void place_key(Buf *b, const Places *p, const EvalStep *s)
{
    buf_puts(b, s->inst->name);
    put_frames(b, p, s->frame, s->inst->comp);
}

bool inst_has_steps(const Inst *i)
{
    switch (i->op) {
    case OP_CALL: case OP_FUSION: case OP_WHILE: case OP_CONDITIONAL: case OP_SCAN:
    case OP_ASYNC_START: case OP_ASYNC_UPDATE: case OP_ASYNC_DONE: return true;
    case OP_CUSTOM_CALL: return custom_call_kind(inst_string(i, ATTR_CUSTOM_CALL_TARGET)) == CALL_MEANING;
    default: return false;
    }
}

void place_text(Buf *b, const EvalFrame *f)
{
    for (bool first = true; f && f->outer; f = f->outer, first = false) {
        buf_puts(b, first ? "" : ", ");
        if (f->trip >= 0)
            buf_printf(b, "in trip %" PRId64 " of %s", f->trip, f->caller->name);
        else
            buf_printf(b, "called by %s", f->caller->name);
    }
}

void place_index(Buf *b, const Literal *l, int64_t i)
{
    int64_t step = l->count;
    buf_putc(b, '[');
    for (int32_t k = 0; k < l->rank; k++) {
        step /= l->dims[k]; /* there is an element, so none is 0 */
        buf_printf(b, k ? ",%" PRId64 : "%" PRId64, i / step);
        i %= step;
    }
    buf_putc(b, ']');
}

void json_text(Buf *b, const char *text)
{
    buf_putc(b, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buf_putc(b, '\\');
        if ((unsigned char)*text < ' ')
            buf_printf(b, "\\u%04x", (unsigned)*text);
        else
            buf_putc(b, *text);
    }
    buf_putc(b, '"');
}

void json_real(Buf *b, double v)
{
    if (isnan(v))
        buf_puts(b, "\"nan\"");
    else if (isinf(v))
        buf_puts(b, v > 0 ? "\"inf\"" : "\"-inf\"");
    else
        buf_printf(b, "%.17g", v);
}
