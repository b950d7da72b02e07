/* The editing functions keep operands, users, control edges and order in step; copies are whole. */
#include "ir/inst.h"

#include <string.h>

#include "support/check.h"

static Module *small_module(void)
{
    Module      *m = module_new();
    Comp        *c = comp_new(m, "main");
    const Shape *s = shape_array(m->arena, TYPE_F32, 1, (int64_t[]){4});
    Inst        *x = inst_parameter(c, NULL, 0, s, "x");
    Inst        *n = inst_new(c, NULL, OP_NEGATE, s, 1, &x, "n");
    Inst        *r = inst_new(c, NULL, OP_ADD, s, 2, (Inst *[]){n, n}, "r");
    c->root = r;
    m->entry = c;
    return m;
}

static Inst *named(const Module *m, const char *name)
{
    for (Inst *i = m->entry->first; i; i = i->next)
        if (strcmp(i->name, name) == 0)
            return i;
    return NULL;
}

static void test_uses(void)
{
    Module *m = small_module();
    Inst   *x = named(m, "x"), *n = named(m, "n"), *r = named(m, "r");
    CHECK(x->n_uses == 1 && n->n_uses == 2 && inst_user(n) == r && !inst_user(r));
    inst_set_operand(r, 1, x);
    CHECK(x->n_uses == 2 && n->n_uses == 1 && inst_operand(r, 1) == x && inst_user(x) == NULL);
    Inst *a = inst_new(m->entry, n, OP_ABS, x->shape, 1, &x, NULL);
    CHECK(a->next == n && strcmp(a->name, "abs") == 0 && a->auto_named);
    inst_replace(n, a);
    CHECK(n->n_uses == 0 && inst_operand(r, 0) == a && strcmp(a->name, "n") == 0 && strcmp(n->name, "abs") == 0);
    inst_delete(n);
    CHECK(m->entry->n_insts == 3 && x->n_uses == 2);
    inst_append_operand(r, a);
    CHECK(r->n_operands == 3 && a->n_uses == 2 && inst_operand(r, 1) == x);
    module_free(m);
    puts("ok uses");
}

static void test_replace_by_user(void)
{
    Module *m = small_module();
    Inst   *n = named(m, "n"), *r = named(m, "r");
    Inst   *c = inst_new(m->entry, r, OP_COPY, n->shape, 1, &n, NULL);
    inst_replace(n, c); /* the copy itself keeps its operand */
    CHECK(inst_operand(c, 0) == n && inst_operand(r, 0) == c && inst_operand(r, 1) == c && n->n_uses == 1);
    inst_replace(r, c);
    CHECK(m->entry->root == c);
    module_free(m);
    puts("ok replace_by_user");
}

static void test_control(void)
{
    Module *m = small_module();
    Inst   *x = named(m, "x"), *n = named(m, "n"), *r = named(m, "r");
    Inst   *k = inst_new(m->entry, r, OP_ABS, x->shape, 1, &x, "k");
    inst_add_control(k, n);
    inst_add_control(k, n);
    inst_add_control(r, k);
    CHECK(k->n_control == 1 && n->n_control_succs == 1);
    inst_delete(k); /* n before k before r: n still comes before r */
    CHECK(r->n_control == 1 && r->control_preds[0] == n && n->n_control_succs == 1);
    module_free(m);
    puts("ok control");
}

static void test_names(void)
{
    Module *m = small_module();
    CHECK(strcmp(inst_unique_name(m, "fresh"), "fresh") == 0);
    CHECK(strcmp(inst_unique_name(m, "n"), "n.1") == 0);
    CHECK(strcmp(inst_unique_name(m, "n"), "n.2") == 0);
    CHECK(strcmp(inst_unique_name(m, "n.1"), "n.3") == 0);
    CHECK(strcmp(inst_unique_name(m, "n.0"), "n.4") == 0); /* which would be read as "n" */
    CHECK(strcmp(inst_unique_name(m, "zero.0"), "zero.0") == 0 && strcmp(inst_unique_name(m, "zero"), "zero.1") == 0);
    CHECK(strcmp(comp_unique_name(m, "n"), "n") == 0); /* computations have names of their own */
    module_free(m);
    puts("ok names");
}

static void test_copies(void)
{
    Module *m = small_module();
    Comp   *dead = comp_new(m, "unused");
    dead->root = inst_parameter(dead, NULL, 0, shape_scalar(m->arena, TYPE_F32), "p");
    inst_set_ints(named(m, "n"), ATTR_DIMENSIONS, (Ints){(int64_t[]){3, 1}, 2});
    Comp *copy = comp_clone(m->entry, "main");
    CHECK(strcmp(copy->name, "main.1") == 0 && strcmp(copy->root->name, "r.1") == 0 && copy->prev == m->entry);
    CHECK(copy->n_params == 1 && inst_operand(copy->root, 0) != named(m, "n"));
    Module *n = module_clone(m);
    CHECK(n->n_comps == 3 && n->entry->root->comp == n->entry && strcmp(n->entry->root->name, "r") == 0);
    CHECK(ints_equal(inst_ints(named(n, "n"), ATTR_DIMENSIONS), (Ints){(int64_t[]){3, 1}, 2}));
    module_free(m);
    module_remove_dead_comps(n);
    CHECK(n->n_comps == 1 && n->entry->module == n && named(n, "x")->n_uses == 1);
    CHECK(strcmp(inst_unique_name(n, "r"), "r.2") == 0 || strcmp(inst_unique_name(n, "s"), "s") == 0);
    module_free(n);
    puts("ok copies");
}

/* a <- b <- c with a control edge d -> b; e unused: e keeps its place among the walk's roots. */
static void test_order(void)
{
    Module      *m = module_new();
    Comp        *c = comp_new(m, "main");
    const Shape *s = shape_scalar(m->arena, TYPE_F32);
    Inst        *a = inst_parameter(c, NULL, 0, s, "a");
    Inst        *e = inst_new(c, NULL, OP_ABS, s, 1, &a, "e");
    Inst        *d = inst_new(c, NULL, OP_NEGATE, s, 1, &a, "d");
    Inst        *b = inst_new(c, NULL, OP_SINE, s, 1, &a, "b");
    inst_add_control(b, d);
    c->root = inst_new(c, NULL, OP_ADD, s, 2, (Inst *[]){b, a}, "c");
    m->entry = c;
    Inst **order = comp_post_order(m->arena, c);
    CHECK(order[0] == a && order[1] == e && order[2] == d && order[3] == b && order[4] == c->root);
    module_free(m);
    puts("ok order");
}

/* A chain of 100,000 instructions needs no deep recursion. */
static void test_long_chain(void)
{
    Module      *m = module_new();
    Comp        *c = comp_new(m, "main");
    const Shape *s = shape_scalar(m->arena, TYPE_F32);
    Inst        *i = inst_parameter(c, NULL, 0, s, "x");
    for (int k = 0; k < 100000; k++)
        i = inst_new(c, NULL, OP_NEGATE, s, 1, &i, NULL);
    c->root = i;
    m->entry = c;
    CHECK(comp_post_order(m->arena, c)[100000] == i);
    CHECK(!inst_has_effect(i));
    module_free(m);
    puts("ok long_chain");
}

int main(void)
{
    test_uses();
    test_replace_by_user();
    test_control();
    test_names();
    test_copies();
    test_order();
    test_long_chain();
    return 0;
}
