/* The text of literals, on one line, as XLA writes it.
 *
 *   rank 0     1.5                          pred: true, false
 *   rank 1     {1, 2, 3}                    pred: {1, 0}
 *   rank 2     { { 1, 2 }, { 3, 4 } }       rows of at most one element: { {1}, {2} }
 *   rank 4     braces between the outermost and the innermost carry a comment: { { i0=0 { i1=0 { 1, 2 } } } }
 *   tuple      ( 1, {2, 3} )
 *
 * Source: reference text 8.5. */
#include "ir/literal.h"
#include "ir/numeric.h"

#include <string.h>

/* Decimal digits of v at the end of a buffer of 24 bytes; returns the first of them. */
static const char *integer_text(char end[24], bool negative, uint64_t magnitude, size_t *n)
{
    char *p = end + 24;
    do
        *--p = (char)('0' + magnitude % 10);
    while ((magnitude /= 10) != 0);
    if (negative)
        *--p = '-';
    *n = (size_t)(end + 24 - p);
    return p;
}

static void print_integer(Buf *b, Type t, int64_t v)
{
    char        text[24];
    size_t      n;
    bool        negative = v < 0 && t != TYPE_U64;
    const char *p = integer_text(text, negative, negative ? 0 - (uint64_t)v : (uint64_t)v, &n);
    buf_put(b, p, n);
}

static uint64_t float_bits(const Literal *l, Type part, int64_t at)
{
    uint64_t x = 0;
    memcpy(&x, (const char *)l->data + at * type_bytes(part), (size_t)type_bytes(part)); /* little endian */
    return x;
}

static void print_element(Buf *b, const Literal *l, int64_t i, bool signed_zero)
{
    Type part = type_component(l->type);
    if (type_is_float(l->type)) {
        number_print_float(b, part, float_bits(l, part, i), signed_zero);
    } else if (type_is_complex(l->type)) {
        buf_putc(b, '(');
        number_print_float(b, part, float_bits(l, part, 2 * i), signed_zero);
        buf_puts(b, ", ");
        number_print_float(b, part, float_bits(l, part, 2 * i + 1), signed_zero);
        buf_putc(b, ')');
    } else if (l->type == TYPE_PRED && l->rank == 0) {
        buf_puts(b, literal_get_s64(l, i) != 0 ? "true" : "false");
    } else {
        print_integer(b, l->type, literal_get_s64(l, i));
    }
}

static void open_brace(Buf *b, const Literal *l, int32_t depth, int64_t index)
{
    int64_t size = l->dims[depth];
    bool    innermost = depth == l->rank - 1;
    if (l->rank == 1)
        buf_putc(b, '{');
    else if (innermost)
        buf_puts(b, size <= 1 ? "{" : "{ ");
    else if (l->rank > 3 && depth > 0)
        buf_printf(b, "{ /*i%d=%lld*/%s", depth - 1, (long long)index, size > 0 ? " " : "");
    else
        buf_puts(b, "{ ");
}

static void close_brace(Buf *b, const Literal *l, int32_t depth)
{
    bool tight = l->rank == 1 || (depth == l->rank - 1 && l->dims[depth] <= 1);
    buf_puts(b, tight ? "}" : " }");
}

/* The part of l below the index-th entry of the level above, from element *at on, which moves to its end. The depth is the rank,
 * which the parser limits. */
static void print_level(Buf *b, const Literal *l, int32_t depth, int64_t index, int64_t *at, bool signed_zero)
{
    if (depth == l->rank) {
        print_element(b, l, (*at)++, signed_zero);
        return;
    }
    open_brace(b, l, depth, index);
    for (int64_t k = 0; k < l->dims[depth]; k++) {
        if (k > 0)
            buf_put(b, ", ", 2);
        buf_rest(b);
        print_level(b, l, depth + 1, k, at, signed_zero);
    }
    close_brace(b, l, depth);
}

static void print_array(Buf *b, const Literal *l, bool signed_zero)
{
    int64_t at = 0;
    if (l->elided)
        buf_puts(b, "{...}");
    else
        print_level(b, l, 0, 0, &at, signed_zero);
}

/* With a shape each leaf is preceded by its type, which for a dynamic one ends in the sizes it has. */
static void print_typed(Buf *b, const Shape *s, const Literal *l, bool signed_zero)
{
    if (l->type == TYPE_TUPLE) {
        buf_puts(b, "( ");
        for (int32_t k = 0; k < l->n_elems; k++) {
            buf_puts(b, k > 0 ? ", " : "");
            print_typed(b, s != NULL ? s->elems[k] : NULL, l->elems[k], signed_zero);
        }
        buf_puts(b, " )");
        return;
    }
    if (s != NULL) {
        shape_print(b, s, true);
        if (shape_is_dynamic(s)) {
            for (int32_t d = 0; d < l->rank; d++)
                buf_printf(b, "%c%lld", d == 0 ? '(' : ',', (long long)l->dims[d]);
            buf_putc(b, ')');
        }
        buf_putc(b, ' ');
    }
    if (l->type == TYPE_TOKEN)
        buf_puts(b, "token[]");
    else
        print_array(b, l, signed_zero);
}

int64_t literal_braces(int32_t rank, const int64_t *dims)
{
    int64_t total = 0, level = 1;
    for (int32_t d = 0; d < rank && level > 0; d++)
        if (!size_add(total, level, &total) || !size_mul(level, dims[d], &level))
            return INT64_MAX;
    return total;
}

void literal_print(Buf *b, const Literal *l, bool signed_zero)
{
    print_typed(b, NULL, l, signed_zero);
}

void literal_print_typed(Buf *b, const Shape *s, const Literal *l, bool signed_zero)
{
    print_typed(b, s, l, signed_zero);
}
