/* Finding the kernel of an instruction and running it over any number of values. */
#include "eval/arith.h"

/* The domain that holds the values of all operands: mixed floats meet in the wider one; 32-bit integers have their own. */
static Domain common_domain(const Arith *k)
{
    if (k->type[0] == TYPE_S32 || k->type[0] == TYPE_U32)
        return k->type[0] == TYPE_S32 ? DOMAIN_S32 : DOMAIN_U32;
    Domain d = value_domain(k->type[0]);
    for (int32_t j = 1; j < k->n; j++)
        if (value_domain(k->type[j]) > d)
            d = value_domain(k->type[j]);
    return d;
}

static void set_domains(Arith *k, Domain d)
{
    for (int32_t j = 0; j < k->n; j++)
        k->domain[j] = d;
    k->out_domain = d;
}

static bool use_raw(Arith *k, ArithFn *fn)
{
    k->raw = true;
    k->fn = fn;
    return true;
}

static bool find_compare(Arith *k, const Inst *i)
{
    Word direction = inst_word(i, ATTR_DIRECTION);
    if (compare_is_total(i) && type_is_float(k->type[0])) {
        k->bits = (int)direction;
        return use_raw(k, arith_compare_total);
    }
    set_domains(k, k->type[0] == TYPE_F8E8M0FNU ? DOMAIN_U64 : common_domain(k)); /* e8m0 orders as its byte */
    k->out_domain = DOMAIN_PRED;
    k->fn = arith_compare(direction, k->domain[0]);
    return k->fn != NULL;
}

static bool find_select(Arith *k)
{
    if (k->type[1] == k->out && k->type[2] == k->out)
        return use_raw(k, arith_select(type_bytes(k->out)));
    Domain d = value_domain(k->type[1]);
    if (value_domain(k->type[2]) > d)
        d = value_domain(k->type[2]);
    set_domains(k, d);
    k->domain[0] = DOMAIN_PRED;
    k->fn = arith_select(type_bytes(domain_type(d)));
    return true;
}

static bool find_arithmetic(Arith *k, Op op)
{
    Domain d = op == OP_COMPLEX ? value_domain(k->out) : common_domain(k);
    set_domains(k, d);
    switch (d) {
    case DOMAIN_PRED: case DOMAIN_S32: case DOMAIN_U32: case DOMAIN_S64: case DOMAIN_U64: k->fn = arith_int(op, d); break;
    case DOMAIN_F32: case DOMAIN_F64: k->fn = arith_float(op, d); break;
    case DOMAIN_C64: case DOMAIN_C128: k->fn = arith_complex(op, d); break;
    case DOMAIN_COUNT: break;
    }
    if (op == OP_COMPLEX)
        k->domain[0] = k->domain[1] = d == DOMAIN_C64 ? DOMAIN_F32 : DOMAIN_F64;
    if (op == OP_IS_FINITE)
        k->out_domain = DOMAIN_PRED;
    else if (op == OP_ABS || op == OP_REAL || op == OP_IMAG)
        k->out_domain = d == DOMAIN_C64 ? DOMAIN_F32 : d == DOMAIN_C128 ? DOMAIN_F64 : d;
    return k->fn != NULL;
}

bool arith_of(Arith *k, Op op, Type t, int32_t n)
{
    *k = (Arith){.n = n, .type = {t, t, t}, .out = t, .bits = type_bits(t)};
    return find_arithmetic(k, op);
}

bool arith_find(Arith *k, const Inst *i)
{
    *k = (Arith){.n = i->n_operands, .out = i->shape->type};
    if (k->n < 1 || k->n > ARITH_OPERANDS || !type_is_array(k->out))
        return false;
    for (int32_t j = 0; j < k->n; j++) {
        k->type[j] = inst_operand(i, j)->shape->type;
        if (!type_is_array(k->type[j]))
            return false;
    }
    k->bits = type_bits(k->type[0]);
    k->exponent_bits = (int)inst_int(i, ATTR_EXPONENT_BITS, 0);
    k->mantissa_bits = (int)inst_int(i, ATTR_MANTISSA_BITS, 0);
    switch (i->op) {
    case OP_CONVERT: case OP_COPY:
        return use_raw(k, k->type[0] == k->out ? arith_copy : arith_convert);
    case OP_STOCHASTIC_CONVERT: return type_is_signed_int(k->out) && use_raw(k, arith_stochastic_convert);
    case OP_COMPARE: return find_compare(k, i);
    case OP_SELECT: return find_select(k);
    case OP_CLAMP:
        set_domains(k, common_domain(k));
        k->fn = arith_clamp(k->out_domain);
        return k->fn != NULL;
    default:
        return op_has(i->op, F_ELEMENTWISE) && find_arithmetic(k, i->op);
    }
}

bool arith_is_direct(const Arith *k)
{
    bool direct = k->raw || domain_type(k->out_domain) == k->out;
    for (int32_t j = 0; j < k->n && direct; j++)
        direct = !k->scalar[j] && (k->raw || domain_type(k->domain[j]) == k->type[j]);
    return direct;
}

/* Repeats the first of n values of `bytes` bytes. */
static void spread(char *p, int bytes, int64_t n)
{
    for (int64_t b = bytes; b < n * bytes; b++)
        p[b] = p[b - bytes];
}

/* Operand j as fn reads it, values at..at+n. */
static const void *operand(const Arith *k, int32_t j, const void *x, int64_t at, int64_t n, Block *room)
{
    Type t = k->type[j], as = k->raw ? t : domain_type(k->domain[j]);
    const char *p = (const char *)x + (k->scalar[j] ? 0 : at) * type_bytes(t);
    if (!k->scalar[j])
        return k->raw ? p : value_load(k->domain[j], t, p, n, room);
    const char *v = k->raw ? p : value_load(k->domain[j], t, p, 1, room);
    for (int b = 0; b < type_bytes(as); b++)
        ((char *)room)[b] = v[b];
    spread((char *)room, type_bytes(as), n);
    return room;
}

void arith_run(const Arith *k, void *out, const void *const *x, int64_t n)
{
    if (arith_is_direct(k)) {
        k->fn(k, out, x, n);
        return;
    }
    Block rooms[ARITH_OPERANDS], result;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        const void *v[ARITH_OPERANDS];
        for (int32_t j = 0; j < k->n; j++)
            v[j] = operand(k, j, x[j], at, m, &rooms[j]);
        char *to = (char *)out + at * type_bytes(k->out);
        if (k->raw || domain_type(k->out_domain) == k->out) {
            k->fn(k, to, v, m);
        } else {
            k->fn(k, &result, v, m);
            value_store(k->out, to, k->out_domain, &result, m);
        }
    }
}
