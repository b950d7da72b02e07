/* The cache: what is put is found, damage counts as absent and is replaced, many processes at once agree. */
#include "config.h"

#include "driver/cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

static char home[64];

static void put_folder(Cache *c, Arena *a, const char *key, const char *content)
{
    char *folder = cache_new_folder(c, a);
    Buf   b = { 0 };
    CHECK(folder);
    buf_puts(&b, content);
    CHECK(buf_write_file(&b, arena_printf(a, "%s/data", folder)));
    buf_free(&b);
    CHECK(cache_put_folder(c, a, folder, key, "data"));
    CHECK(access(folder, F_OK) < 0);
}

static bool has(Cache *c, Arena *a, const char *key, const char *content)
{
    const char *path = cache_get_file(c, a, key, "data");
    Buf         b = { 0 };
    bool        same = path && buf_read_file(&b, path) && b.n == strlen(content) && !memcmp(b.p, content, b.n);
    buf_free(&b);
    return same;
}

static void overwrite(Arena *a, const char *name, const char *content)
{
    Buf b = { 0 };
    buf_puts(&b, content);
    CHECK(buf_write_file(&b, arena_printf(a, "%s/hlo-tools/%s", home, name)));
    buf_free(&b);
}

static void test_keys(Arena *a)
{
    CacheKey x = { { 0, 0 } }, y = { { 0, 0 } };
    cache_key_add_text(&x, "ab");
    cache_key_add_text(&x, "c");
    cache_key_add_text(&y, "a");
    cache_key_add_text(&y, "bc");
    CHECK(strcmp(cache_key_text(a, &x), cache_key_text(a, &y)) != 0);
    CHECK(strlen(cache_key_text(a, &x)) == 32);
    puts("ok keys");
}

static void test_texts(Cache *c, Arena *a)
{
    const char *text;
    Buf         b = { 0 };
    CHECK(!cache_get_text(c, a, "t", &text));
    buf_puts(&b, "one\ntwo\n");
    cache_put_text(c, a, "t", &b);
    CHECK(cache_get_text(c, a, "t", &text) && !strcmp(text, "one\ntwo\n"));
    overwrite(a, "t.txt", "0123456789abcdef\none\ntwo\n");
    CHECK(!cache_get_text(c, a, "t", &text));
    overwrite(a, "t.txt", "");
    CHECK(!cache_get_text(c, a, "t", &text));
    cache_put_text(c, a, "t", &b);
    CHECK(cache_get_text(c, a, "t", &text));
    buf_free(&b);
    puts("ok texts");
}

static void test_folders(Cache *c, Arena *a)
{
    CHECK(!cache_get_file(c, a, "f", "data"));
    put_folder(c, a, "f", "good");
    CHECK(has(c, a, "f", "good"));
    overwrite(a, "f/data", "bad");
    CHECK(!cache_get_file(c, a, "f", "data"));
    put_folder(c, a, "f", "again");
    CHECK(has(c, a, "f", "again"));
    overwrite(a, "f/sum", "");
    CHECK(!cache_get_file(c, a, "f", "data"));
    put_folder(c, a, "f", "third");
    CHECK(has(c, a, "f", "third"));
    puts("ok folders");
}

static void test_processes(Arena *a)
{
    enum { PROCESSES = 8, ROUNDS = 20 };
    fflush(stdout);
    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            Cache *c = cache_open(a, true);
            for (int k = 0; k < ROUNDS; k++) {
                const char *key = arena_printf(a, "p%d", k);
                if (!cache_get_file(c, a, key, "data"))
                    put_folder(c, a, key, key);
                CHECK(has(c, a, key, key));
            }
            _exit(0);
        }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        CHECK(wait(&status) > 0 && status == 0);
    }
    puts("ok processes");
}

int main(void)
{
    Arena      *a = arena_new();
    const char *tmp = getenv("TMPDIR");
    snprintf(home, sizeof home, "%.30s/cache_test.XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    CHECK(mkdtemp(home));
    setenv("XDG_CACHE_HOME", home, 1);
    Cache *c = cache_open(a, true);
    CHECK(c);
    test_keys(a);
    test_texts(c, a);
    test_folders(c, a);
    test_processes(a);
    arena_free(a);
    setenv("TMPDIR", home, 1); /* a temporary cache leaves nothing behind */
    a = arena_new();
    c = cache_open(a, false);
    CHECK(!has(c, a, "f", "x"));
    CHECK(cache_begin(c, a));
    put_folder(c, a, "f", "x");
    CHECK(has(c, a, "f", "x"));
    cache_end(c);
    CHECK(!has(c, a, "f", "x"));
    arena_free(a);
    char command[160];
    snprintf(command, sizeof command, "rm -r %s/hlo-tools && rmdir %s", home, home);
    CHECK(system(command) == 0);
    puts("ok temporary");
    return 0;
}
