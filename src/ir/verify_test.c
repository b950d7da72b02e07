/* What the verifier says about modules that no text can give, because the parser would refuse them or put them right: broken order,
 * foreign operands, missing roots and parameters, names used twice. */
#include "ir/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Module *m;
static Comp   *c;
static Inst   *x;

/* A module with the computation %e, whose parameter is %x. */
static void start(void)
{
    m = module_new();
    m->name = "m";
    c = comp_new(m, "e");
    m->entry = c;
    x = inst_parameter(c, NULL, 0, shape_scalar(m->arena, TYPE_F32), "x");
    c->root = x;
}

/* The verifier's first message is text, or nothing is wrong and text is NULL. */
static void expect(const char *what, const char *text)
{
    Diag d;
    diag_init(&d, m->arena);
    bool        ok = verify_module(m, &d);
    const char *got = d.first ? d.first->text : NULL;
    bool        same = text ? got && strcmp(got, text) == 0 : !got;
    if (!same || ok != (text == NULL)) {
        fprintf(stderr, "%s: got %s, expected %s\n", what, got ? got : "nothing", text ? text : "nothing");
        exit(1);
    }
    module_free(m);
    printf("ok %s\n", what);
}

static Inst *negate(Comp *where, Inst *before, Inst *operand, const char *name)
{
    return inst_new(where, before, OP_NEGATE, operand->shape, 1, &operand, name);
}

static Comp *other_comp(const char *name)
{
    Comp *o = comp_new(m, name);
    o->root = inst_parameter(o, NULL, 0, x->shape, NULL);
    return o;
}

int main(void)
{
    start();
    expect("smallest", NULL);

    start();
    m->entry = NULL;
    expect("no_entry", "module m has no entry computation");

    start();
    c->root = NULL;
    expect("no_root", "computation %e has no root");

    start();
    c->root = other_comp("f")->root;
    expect("foreign_root", "computation %e has no root");

    start();
    Inst *late = negate(c, NULL, x, "late");
    negate(c, x, late, "early");
    expect("order", "negate: operand %late does not come before it");

    start();
    negate(c, NULL, other_comp("f")->root, "n");
    expect("foreign_operand", "negate: operand %parameter is in another computation, %f");

    start();
    Inst *first = negate(c, NULL, x, "first");
    inst_add_control(first, negate(c, NULL, x, "second"));
    expect("control_order", "negate: control predecessor %second does not come before it");

    start();
    Comp *f = other_comp("f"); /* stands after its caller */
    inst_set_callees(inst_new(c, NULL, OP_CALL, x->shape, 1, &x, "k"), 1, &f);
    expect("callee_order", "call: computation %f does not come before its caller");

    start();
    f = other_comp("f");
    comp_move_before(f, c);
    inst_set_callees(inst_new(c, NULL, OP_CALL, x->shape, 1, &x, "k"), 1, &f);
    expect("callee", NULL);

    start();
    f = other_comp("f");
    comp_move_before(f, c);
    inst_set_callees(negate(c, NULL, x, "n"), 1, &f);
    expect("no_calls", "negate: this opcode calls no computation");

    start();
    inst_parameter(c, NULL, 2, x->shape, "y");
    expect("parameter_gap", "computation %e has no parameter 1, but 2");

    start();
    inst_parameter(c, NULL, 1, x->shape, "y")->param = 0;
    expect("parameter_twice", "parameter: number 0 is used twice or out of range in %e");

    start();
    negate(c, NULL, x, "n");
    negate(c, NULL, x, "n");
    expect("instruction_twice", "instruction name %n is used twice");

    start();
    other_comp("e");
    expect("computation_twice", "computation name %e is used twice");

    start();
    negate(c, NULL, x, "n")->shape = NULL;
    expect("no_type", "negate: has no type");

    start();
    inst_new(c, NULL, OP_ADD, x->shape, 1, &x, "a");
    expect("operands", "add: expects 2 operands, has 1");

    start();
    inst_new(c, NULL, OP_WHILE, x->shape, 1, &x, "w");
    expect("callees", "while: calls 2 computations, has 0");

    start();
    inst_new(c, NULL, OP_IOTA, x->shape, 0, NULL, "i");
    expect("attribute", "iota: attribute iota_dimension is missing");
    return 0;
}
