/* Configurations with sorted keys: what changes, what stays byte for byte, what is no JSON and is left alone. */
#include "text/print_json.h"

#include <string.h>

#include "support/check.h"

static void expect(const char *in, const char *out)
{
    Buf b = {0};
    buf_puts(&b, "<");
    CHECK(json_print_sorted(&b, in, strlen(in)) == (out != NULL));
    CHECK(strcmp(b.p + 1, out != NULL ? out : "") == 0);
    CHECK(b.p[0] == '<');
    buf_free(&b);
}

static void test_sorted(void)
{
    expect("{\"b\":1, \"a\":[3, 2,{\"z\":0,\"y\":null}]}", "{\"a\":[3,2,{\"y\":null,\"z\":0}],\"b\":1}");
    expect(" { } ", "{}");
    expect("[]", "[]");
    expect("{\"a b\": \"c, d\\\"}\" }", "{\"a b\":\"c, d\\\"}\"}");
    expect("{\"a\":1,\"a\":0,\"A\":-1.5e3}", "{\"A\":-1.5e3,\"a\":0,\"a\":1}");
    expect("true", "true");
}

static void test_no_json(void)
{
    expect("", NULL);
    expect("plain", NULL);
    expect("{k = 1}", NULL);
    expect("{\"a\":1", NULL);
    expect("{\"a\"}", NULL);
    expect("{\"a\":\"b}", NULL);
    expect("{} {}", NULL);
}

static void test_depth(void)
{
    char deep[1000];
    for (int depth = 150; depth <= 250; depth += 100) {
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        deep[2 * depth] = '\0';
        expect(deep, depth < 200 ? deep : NULL);
    }
}

int main(void)
{
    test_sorted();
    test_no_json();
    test_depth();
    puts("ok sorted configurations");
    return 0;
}
