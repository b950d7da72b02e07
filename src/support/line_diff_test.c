/* line_diff: hunks by hand, and random texts that the hunks must turn into each other. */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "support/check.h"
#include "support/line_diff.h"

static Buf text(const char *s)
{
    Buf b = {0};
    buf_puts(&b, s);
    return b;
}

static bool is_section(const char *line, size_t n)
{
    return n > 0 && line[0] != ' ' && line[n - 1] == '{';
}

static void expect(const char *before, const char *after, const char *hunks)
{
    Buf a = text(before), b = text(after), out = {0};
    CHECK(line_diff(&out, &a, &b, is_section) == (*hunks != 0));
    CHECK(strcmp(out.n ? out.p : "", hunks) == 0);
    buf_free(&a);
    buf_free(&b);
    buf_free(&out);
}

static void check_hunks(void)
{
    expect("", "", "");
    expect("a\nb\n", "a\nb\n", "");
    expect("a\n", "", "@@ -1,1 +0,0 @@\n-a\n");
    expect("", "a\n", "@@ -0,0 +1,1 @@\n+a\n");
    expect("a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
    expect("f {\n 1\n 2\n 3\n 4\n 5\n}\n", "f {\n 1\n 2\n 3\n 4\n 6\n}\n", "@@ -3,5 +3,5 @@ f {\n  2\n  3\n  4\n- 5\n+ 6\n }\n");
    /* nearer than two contexts: one hunk */
    expect("a\n1\n2\n3\n4\n5\n6\nb\n", "x\n1\n2\n3\n4\n5\n6\ny\n", "@@ -1,8 +1,8 @@\n-a\n+x\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+y\n");
    expect("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "x\n1\n2\n3\n4\n5\n6\n7\ny\n",
           "@@ -1,4 +1,4 @@\n-a\n+x\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+y\n");
    /* a line that moved */
    expect("a\nb\nc\nd\n", "b\nc\nd\na\n", "@@ -1,4 +1,4 @@\n-a\n b\n c\n d\n+a\n");
    /* equal lines that are not unique */
    expect("}\n}\nq\n}\n}\n", "}\n}\n}\n}\n", "@@ -1,5 +1,4 @@\n }\n }\n-q\n }\n }\n");
}

static uint64_t state = 1;

static int below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

/* What applying the hunks to a gives. */
static void patch(Buf *to, const Buf *a, const Buf *hunks)
{
    const char *p = a->n ? a->p : "", *h = hunks->n ? hunks->p : "";
    long long   line = 1;
    while (*h) {
        long long from, count;
        CHECK(sscanf(h, "@@ -%lld,%lld", &from, &count) == 2);
        for (from += count == 0; line < from; line++) {
            const char *stop = strchr(p, '\n') + 1;
            buf_put(to, p, (size_t)(stop - p));
            p = stop;
        }
        for (h = strchr(h, '\n') + 1; *h && *h != '@'; h = strchr(h, '\n') + 1) {
            size_t n = (size_t)(strchr(h, '\n') - h);
            if (*h != '+') {
                CHECK(strncmp(p, h + 1, n) == 0);
                p = strchr(p, '\n') + 1;
                line++;
            }
            if (*h != '-')
                buf_put(to, h + 1, n);
        }
    }
    buf_puts(to, p);
}

static void check_random(void)
{
    for (int round = 0; round < 3000; round++) {
        Buf a = {0}, b = {0}, hunks = {0}, made = {0};
        int words = 1 + below(40);
        for (int k = below(60); k > 0; k--) {
            int w = below(words);
            if (below(8))
                buf_printf(&a, "%d\n", w);
            if (below(8))
                buf_printf(&b, "%d\n", below(8) ? w : below(words));
        }
        bool differs = a.n != b.n || (a.n && memcmp(a.p, b.p, a.n) != 0);
        CHECK(line_diff(&hunks, &a, &b, NULL) == differs);
        patch(&made, &a, &hunks);
        CHECK(made.n == b.n && (made.n == 0 || memcmp(made.p, b.p, b.n) == 0));
        buf_free(&a);
        buf_free(&b);
        buf_free(&hunks);
        buf_free(&made);
    }
}

int main(void)
{
    check_hunks();
    check_random();
    return 0;
}
