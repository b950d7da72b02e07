/* Arena, map, interned strings, output, messages. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/buf.h"
#include "support/check.h"
#include "support/diag.h"
#include "support/intern.h"
#include "support/map.h"
#include "support/vec.h"

static int deferred_order[3], deferred_n;

static void note(void *p)
{
    deferred_order[deferred_n++] = *(int *)p;
}

static void test_arena(void)
{
    static int ids[] = {1, 2, 3};
    Arena     *a = arena_new();
    for (int k = 0; k < 3; k++)
        arena_defer(a, note, &ids[k]);
    for (size_t n = 0; n < 5000; n = n * 2 + 1) {
        unsigned char *p = arena_alloc(a, n);
        CHECK(((uintptr_t)p & (n % 16 ? 7 : 15)) == 0);
        for (size_t k = 0; k < n; k++)
            CHECK(p[k] == 0);
        memset(p, 0xff, n);
    }
    CHECK(strcmp(arena_printf(a, "%s-%d", "x", 7), "x-7") == 0);
    VEC(int) v = {0};
    for (int k = 0; k < 1000; k++)
        vec_push(a, &v, k);
    for (int k = 0; k < 1000; k++)
        CHECK(v.v[k] == k);
    arena_free(a);
    CHECK(deferred_n == 3 && deferred_order[0] == 3 && deferred_order[2] == 1);
    puts("ok arena");
}

/* What is dropped is gone, whatever was asked for before and after it; a part of a block stays. */
static void test_arena_drop(void)
{
    enum { LARGE = 1 << 20, SMALL = 24 };
    Arena *a = arena_new();
    char  *kept[40];
    for (int k = 0; k < 40; k++) {
        size_t n = k % 2 ? LARGE : SMALL;
        char  *gone = arena_alloc(a, n);
        kept[k] = arena_alloc(a, n);
        memset(kept[k], k, n);
        memset(gone, 0xff, n);
        arena_drop(a, gone, n);
        arena_drop(a, gone + 1, n); /* nothing that was handed out */
    }
    for (int k = 0; k < 40; k++)
        CHECK(kept[k][0] == k && kept[k][(k % 2 ? LARGE : SMALL) - 1] == k);
    arena_free(a);
    puts("ok arena_drop");
}

static void test_array(void)
{
    static const size_t sizes[] = { 0, 1, 64, 65, (4 << 20) - 1, 4 << 20, (6 << 20) + 1 };
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        unsigned char *p = mem_array(sizes[k], "a test");
        CHECK((uintptr_t)p % (sizes[k] < 4 << 20 ? 64 : 2 << 20) == 0);
        memset(p, 0xff, sizes[k]);
        free(p);
    }
    puts("ok array");
}

static void test_map(void)
{
    Arena *a = arena_new();
    Map    m = map_new(a);
    CHECK(!map_get_u64(&m, 0) && !map_has(&m, a));
    int *values = ARENA_ARRAY(a, int, 2000);
    for (uint64_t k = 0; k < 2000; k++)
        map_put_u64(&m, k * 4096, &values[k]);
    map_put_u64(&m, 0, &values[7]);
    CHECK(m.n == 2000 && map_get_u64(&m, 0) == &values[7]);
    for (uint64_t k = 1; k < 2000; k++)
        CHECK(map_get_u64(&m, k * 4096) == &values[k]);
    CHECK(!map_get_u64(&m, 1));
    map_put(&m, "here", NULL);
    CHECK(map_has(&m, "here") || m.n == 2001);
    arena_free(a);
    puts("ok map");
}

static void test_intern(void)
{
    Arena      *a = arena_new();
    Interner   *t = interner_new(a);
    const char *x = intern(t, "a\0b", 3);
    CHECK(intern_len(x) == 3 && x != intern_str(t, "a") && x == intern(t, "a\0b", 3));
    CHECK(intern(t, "", 0) == intern_str(t, "") && intern_len(intern_str(t, "")) == 0);
    for (int k = 0; k < 500; k++)
        CHECK(intern_printf(t, "name.%d", k) == intern_printf(t, "name.%d", k));
    char long_name[1000];
    memset(long_name, 'q', sizeof long_name);
    long_name[999] = 0;
    CHECK(intern_printf(t, "%s", long_name) == intern_str(t, long_name));
    arena_free(a);
    puts("ok intern");
}

static void test_buf(void)
{
    Buf b = {0}, back = {0};
    for (int k = 0; k < 1000; k++)
        buf_printf(&b, "%d,", k);
    char path[] = "/tmp/support_test.XXXXXX";
    int  fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    CHECK(buf_write_file(&b, path) && buf_read_file(&back, path));
    CHECK(back.n == b.n && memcmp(back.p, b.p, b.n) == 0);
    errno = 0;
    CHECK(!buf_write_file(&b, "/nowhere/at/all") && errno == ENOENT);
    CHECK(!buf_write_file(&b, "/dev/full") && errno == ENOSPC);
    buf_clear(&back);
    CHECK(!buf_read_file(&back, "/tmp") && errno == EISDIR);
    unlink(path);
    buf_free(&b);
    buf_free(&back);
    puts("ok buf");
}

static void test_diag(void)
{
    static const char text[] = "one\n\ttwo %x\nthree";
    Arena            *a = arena_new();
    Diag              d;
    diag_init(&d, a);
    diag_source(&d, "f.hlo", text, sizeof text - 1);
    int line, col;
    diag_position(&d, 9, &line, &col);
    CHECK(line == 2 && col == 6);
    diag_position(&d, 1000, &line, &col);
    CHECK(line == 3 && col == 6);
    diag_error(&d, (Loc){9, 2}, "bad %s", "x");
    diag_note_at(&d, "model.py:3", "here");
    char  *shown = NULL;
    size_t n = 0;
    FILE  *f = open_memstream(&shown, &n);
    diag_print(&d, f, false);
    fclose(f);
    CHECK(strcmp(shown, "f.hlo:2:6: error: bad x\n\ttwo %x\n\t    ^~\nmodel.py:3: note: here\n") == 0);
    free(shown);
    d.max_errors = 3;
    for (int k = 0; k < 10; k++)
        diag_error(&d, LOC_NONE, "again");
    CHECK(d.errors == 11 && diag_full(&d));
    int kept = 0;
    for (DiagMessage *m = d.first; m; m = m->next)
        kept++;
    CHECK(kept == 2);
    static const char *const names[] = {"transpose", "reshape", "reverse"};
    CHECK(nearest_word("transpsoe", names, 3) == names[0] && !nearest_word("dot", names, 3));
    arena_free(a);
    puts("ok diag");
}

int main(void)
{
    test_arena();
    test_arena_drop();
    test_array();
    test_map();
    test_intern();
    test_buf();
    test_diag();
    return 0;
}
