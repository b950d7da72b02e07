/* Values for constants whose text is "{...}". */
#include "config.h"

#include "driver/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/fill.h"
#include "data/npz.h"

static bool is_elided(const Inst *i)
{
    return i->op == OP_CONSTANT && i->literal && literal_has_elided(i->literal);
}

static void give(Inst *i, Literal *l)
{
    i->literal = literal_keep(i->comp->module->arena, l);
}

static Inst *find_elided(const Module *m, const char *name)
{
    for (const Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first; i; i = i->next)
            if (is_elided(i) && !strcmp(i->name, name))
                return i;
    return NULL;
}

/* The file's arrays may be used where they are, so they live as long as the module. */
static bool fill_from_file(Module *m, const char *path, Diag *d)
{
    const ArrayFile *f = array_file_read(m->arena, path, d);
    if (!f)
        return false;
    if (f->npy) {
        diag_error(d, LOC_NONE, "%s: constants come from an .npz file, whose members are named like them", path);
        return false;
    }
    for (int32_t k = 0; k < f->n; k++) {
        Inst *i = find_elided(m, f->v[k].name);
        if (!i) {
            diag_error(d, LOC_NONE, "%s: member '%s' is no constant without values", f->path, f->v[k].name);
            return false;
        }
        Literal *l = literal_from_array(&f->v[k], i->shape, arena_printf(d->arena, "%s: constant %s", f->path, i->name), d);
        if (!l)
            return false;
        give(i, l);
    }
    return true;
}

static bool fill_by_seed(Module *m, const char *fill, Diag *d)
{
    char              *end;
    bool               zeros = !strcmp(fill, "zeros");
    errno = 0;
    unsigned long long seed = zeros ? 0 : strtoull(fill, &end, 10);
    if (!zeros && (*end || errno || *fill < '0' || *fill > '9')) {
        diag_error(d, LOC_NONE, "--fill-elided expects a number or 'zeros', got '%s'", fill);
        return false;
    }
    uint64_t n = 0;
    for (const Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first; i; i = i->next) {
            if (!is_elided(i) || !shape_is_array(i->shape))
                continue;
            Literal *l = literal_for_shape(i->shape, true);
            bool     real = type_is_float(i->shape->type) || type_is_complex(i->shape->type);
            if (!zeros && real)
                fill_uniform(l, fill_hash(seed, n), 1, 0);
            else if (!zeros)
                fill_int(l, fill_hash(seed, n), 0, 2);
            n++;
            give(i, l);
        }
    return true;
}

bool elided_fill(Module *m, const char *fill, const char *constants, Diag *d)
{
    return (!constants || fill_from_file(m, constants, d)) && (!fill || fill_by_seed(m, fill, d));
}

bool elided_check(const Module *m, Diag *d)
{
    for (const Comp *c = m->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            if (is_elided(i)) {
                inst_error(d, i, "the values of constant %s are not in the text ('{...}')", i->name);
                diag_note(d, LOC_NONE, "--constants=FILE.npz gives them, --fill-elided=SEED or =zeros makes some up");
                return false;
            }
    return true;
}
