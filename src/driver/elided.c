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

/* By name; names of instructions are unique in the module. */
static Map elided_constants(Arena *a, const Module *m)
{
    Map named = map_new(a);
    for (const Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first; i; i = i->next)
            if (is_elided(i))
                map_put(&named, i->name, i);
    return named;
}

/* What they need in all; -1 when that overflows. */
static int64_t elided_bytes(const Module *m)
{
    int64_t total = 0;
    for (const Comp *c = m->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next) {
            int64_t bytes = is_elided(i) ? shape_bytes(i->shape) : 0;
            if (bytes < 0 || !size_add(total, bytes, &total))
                return -1;
        }
    return total;
}

/* The file's arrays may be used where they are, so they live as long as the module. */
static bool fill_from_file(Module *m, const char *path, Diag *d)
{
    const ArrayFile *f = array_file_read(m->arena, path, elided_bytes(m), d);
    if (!f)
        return false;
    if (f->npy) {
        diag_error(d, LOC_NONE, "%s: constants come from an .npz or .safetensors file, whose members are named like them", path);
        return false;
    }
    Map named = elided_constants(d->arena, m);
    for (int32_t k = 0; k < f->n; k++) {
        Inst *i = map_get(&named, intern_str(m->strings, f->v[k].name));
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

/* XLA's own limit for what it prints as {...}. */
static bool is_large(const Inst *i)
{
    enum { SMALL = 10 };
    return i->op == OP_CONSTANT && shape_is_array(i->shape) && !i->literal->elided && i->literal->count > SMALL;
}

bool elided_extract(Module *m, const char *path, Diag *d)
{
    VEC(const char *) names = {0};
    VEC(Literal *) values = {0};
    VEC(Inst *) constants = {0};
    for (const Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first; i; i = i->next)
            if (is_large(i)) {
                vec_push(d->arena, &names, i->name);
                vec_push(d->arena, &values, (Literal *)(uintptr_t)i->literal);
                vec_push(d->arena, &constants, i);
            }
    if (!array_file_write(d->arena, path, names.n, names.v, values.v, d))
        return false;
    for (int32_t k = 0; k < constants.n; k++)
        give(constants.v[k], literal_elided(constants.v[k]->shape));
    return true;
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
