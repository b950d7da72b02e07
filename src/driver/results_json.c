/* A comparison as JSON. */
#include "config.h"

#include "driver/results.h"

#include <inttypes.h>
#include <math.h>

#include "driver/find.h"

static void put_field(Buf *b, const char *name, double v)
{
    buf_printf(b, ", \"%s\": ", name);
    json_real(b, v);
}

static void put_value(Buf *b, const Literal *l, int64_t i)
{
    if (type_is_complex(l->type)) {
        buf_putc(b, '[');
        json_real(b, literal_get_f64(l, i));
        buf_puts(b, ", ");
        json_real(b, literal_get_imag(l, i));
        buf_putc(b, ']');
    } else if (type_is_float(l->type))
        json_real(b, literal_get_f64(l, i));
    else if (l->type == TYPE_U64)
        buf_printf(b, "%" PRIu64, (uint64_t)literal_get_s64(l, i));
    else
        buf_printf(b, "%" PRId64, literal_get_s64(l, i));
}

static void put_worst(Buf *b, const Literal *actual, const Literal *expected, const Comparison *c)
{
    int32_t shown = c->shown ? c->shown : COMPARE_SHOWN;
    buf_puts(b, ", \"worst\": [");
    for (int32_t k = 0; k < c->n_worst && k < shown; k++) {
        buf_puts(b, k ? ", {\"index\": " : "{\"index\": ");
        place_index(b, expected, c->worst[k]);
        buf_puts(b, ", \"expected\": ");
        put_value(b, expected, c->worst[k]);
        buf_puts(b, ", \"actual\": ");
        put_value(b, actual, c->worst[k]);
        buf_putc(b, '}');
    }
    buf_putc(b, ']');
}

static void put_histogram(Buf *b, const Histogram *h)
{
    HistogramRow rows[HISTOGRAM_SHOWN + 2];
    int          n = histogram_rows(h, rows);
    buf_puts(b, ", \"relative_errors\": [");
    for (int k = 0; k < n; k++) {
        buf_puts(b, k ? ", {\"upto\": " : "{\"upto\": ");
        json_real(b, rows[k].upto);
        buf_printf(b, ", \"count\": %" PRId64 "}", rows[k].count);
    }
    buf_putc(b, ']');
}

static void put_rule(Buf *b, Type type, const Tolerance *t, const char *from)
{
    bool exact = !type_is_float(type) && !type_is_complex(type);
    buf_printf(b, ", \"rule\": \"%s\"", exact ? "exact" : t->rule == COMPARE_SUM ? "sum" : t->rule == COMPARE_BOTH ? "both" : "ulp");
    if (!exact && t->rule == COMPARE_ULP)
        buf_printf(b, ", \"ulp\": %" PRId64, t->ulp);
    if (!exact && t->rule != COMPARE_ULP) {
        put_field(b, "atol", t->atol);
        put_field(b, "rtol", t->rtol);
    }
    if (!exact)
        buf_printf(b, ", \"tolerance\": \"%s\"", from);
}

void comparison_json(Buf *b, const Literal *actual, const Literal *expected, const Tolerance *t, const char *from, const Comparison *c)
{
    buf_printf(b, ", \"agrees\": %s, \"elements\": %" PRId64 ", \"wrong\": %" PRId64, c->wrong ? "false" : "true", c->count, c->wrong);
    put_rule(b, expected->type, t, from);
    put_field(b, "needed_factor", c->needed);
    if (type_is_float(expected->type) || type_is_complex(expected->type)) {
        put_field(b, "needed_atol", isfinite(c->least_ulp) ? c->max_abs : INFINITY);
        put_field(b, "needed_rtol", c->least_rtol);
        put_field(b, "needed_ulp", c->least_ulp);
    }
    put_field(b, "largest_error", c->max_abs);
    put_field(b, "largest_relative_error", c->max_rel);
    put_field(b, "mean_error", c->mean_abs);
    buf_printf(b, ", \"nan\": {\"expected\": %" PRId64 ", \"actual\": %" PRId64 "}, \"infinite\": {\"expected\": %" PRId64 ", \"actual\": %" PRId64 "}",
               c->nan_expected, c->nan_actual, c->inf_expected, c->inf_actual);
    put_histogram(b, &c->relative);
    put_worst(b, actual, expected, c);
}

void results_json(Buf *b, const char *name, const Literal *actual, const Literal *expected, const Tolerance *t, const char *from, const Comparison *c)
{
    buf_puts(b, "{\"result\": ");
    json_text(b, name);
    comparison_json(b, actual, expected, t, from, c);
    buf_puts(b, "}\n");
}
