/* The cache folder. Renaming is what makes an entry appear; everything before that happens under a name of its own. */
#include "config.h"

#include "driver/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/host.h"
#include "support/outfile.h"

enum {
    MAX_ENTRIES = 2000, /* when there are more, the older half goes */
    LEFT_BEHIND = 24 * 3600 /* seconds after which a temporary belongs to nobody */
};

struct Cache {
    const char *dir; /* NULL: there is none at the moment */
    bool        temporary;
};

/* Removes a folder with the files in it. */
void cache_drop_folder(const char *folder)
{
    DIR *d = opendir(folder);
    if (d) {
        for (const struct dirent *e; (e = readdir(d));)
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                unlinkat(dirfd(d), e->d_name, 0);
        closedir(d);
    }
    rmdir(folder);
}

/* mkdir -p */
static bool make_folders(Arena *a, const char *path)
{
    char *p = arena_strndup(a, path, strlen(path));
    for (char *s = p + 1; *s; s++)
        if (*s == '/') {
            *s = 0;
            if (mkdir(p, 0700) < 0 && errno != EEXIST)
                return false;
            *s = '/';
        }
    return (mkdir(p, 0700) == 0 || errno == EEXIST) && access(p, W_OK | X_OK) == 0;
}

static const char *wanted_folder(Arena *a)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (xdg && xdg[0] == '/')
        return arena_printf(a, "%s/hlo-tools", xdg);
    return home && home[0] == '/' ? arena_printf(a, "%s/.cache/hlo-tools", home) : NULL;
}

Cache *cache_open(Arena *a, bool persistent)
{
    Cache *c = ARENA_NEW(a, Cache);
    c->dir = persistent ? wanted_folder(a) : NULL;
    if (c->dir && make_folders(a, c->dir))
        return c;
    c->dir = NULL;
    c->temporary = true;
    return c;
}

bool cache_begin(Cache *c, Arena *a)
{
    const char *tmp = getenv("TMPDIR");
    if (!c->temporary)
        return true;
    char *dir = arena_printf(a, "%s/hlo-tools.XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
    c->dir = mkdtemp(dir);
    return c->dir != NULL;
}

/* A temporary cache has folders and texts in it. */
void cache_end(Cache *c)
{
    if (!c->temporary || !c->dir)
        return;
    DIR   *d = opendir(c->dir);
    Arena *a = arena_new();
    if (d) {
        for (const struct dirent *e; (e = readdir(d));)
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlinkat(dirfd(d), e->d_name, 0) < 0)
                cache_drop_folder(arena_printf(a, "%s/%s", c->dir, e->d_name));
        closedir(d);
    }
    rmdir(c->dir);
    arena_free(a);
    c->dir = NULL;
}

/* Keys. */

void cache_key_add(CacheKey *k, const void *p, size_t n)
{
    k->h[0] = host_hash(k->h[0] + 0x5bd1e995, p, n);
    k->h[1] = host_hash(k->h[1] + 0xc2b2ae35, p, n);
}

void cache_key_add_text(CacheKey *k, const char *s)
{
    cache_key_add(k, s, strlen(s) + 1);
}

const char *cache_key_text(Arena *a, const CacheKey *k)
{
    return arena_printf(a, "%016llx%016llx", k->h[0], k->h[1]);
}

/* Texts. */

bool cache_get_text(Cache *c, Arena *a, const char *key, const char **text)
{
    Buf                b = { 0 };
    unsigned long long sum;
    int                start = 0;
    bool ok = c->dir && buf_read_file(&b, arena_printf(a, "%s/%s.txt", c->dir, key)) && b.n > 17 && sscanf(b.p, "%16llx%n", &sum, &start) == 1 &&
              start == 16 && host_hash(1, b.p + 17, b.n - 17) == sum;
    if (ok)
        *text = arena_strndup(a, b.p + 17, b.n - 17);
    buf_free(&b);
    return ok;
}

void cache_put_text(Cache *c, Arena *a, const char *key, const Buf *text)
{
    OutFile     f;
    const char *sum = arena_printf(a, "%016llx\n", (unsigned long long)host_hash(1, text->p, text->n));
    outfile_open(&f, a, arena_printf(a, "%s/%s.txt", c->dir, key));
    outfile_put(&f, sum, 17);
    outfile_put(&f, text->p, text->n);
    outfile_close(&f); /* a cache that cannot be written is only slower */
}

/* Folders. */

static bool hash_file(const char *path, uint64_t *out)
{
    int         fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return false;
    bool  ok = !fstat(fd, &st) && st.st_size > 0;
    void *p = ok ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (p == MAP_FAILED)
        return false;
    *out = host_hash(2, p, (size_t)st.st_size);
    munmap(p, (size_t)st.st_size);
    return true;
}

static bool fits_sum(Arena *a, const char *folder, const char *name)
{
    unsigned long long want;
    uint64_t           sum;
    FILE              *f = fopen(arena_printf(a, "%s/sum", folder), "re");
    if (!f)
        return false;
    bool ok = fscanf(f, "%16llx", &want) == 1;
    fclose(f);
    return ok && hash_file(arena_printf(a, "%s/%s", folder, name), &sum) && sum == want;
}

const char *cache_get_file(Cache *c, Arena *a, const char *key, const char *name)
{
    const char *folder = arena_printf(a, "%s/%s", c->dir ? c->dir : "", key);
    if (!c->dir || !fits_sum(a, folder, name))
        return NULL;
    utimensat(AT_FDCWD, folder, NULL, 0); /* used now: the last to go */
    return arena_printf(a, "%s/%s", folder, name);
}

typedef struct Aged {
    const char *path;
    bool        temporary;
    time_t      time;
} Aged;

static int older_first(const void *x, const void *y)
{
    time_t a = ((const Aged *)x)->time, b = ((const Aged *)y)->time;
    return a < b ? -1 : a > b;
}

/* "tmp.x" of a folder in the making, "KEY.txt.x" of a text. */
static bool is_temporary(const char *name)
{
    const char *txt = strstr(name, ".txt");
    return !strncmp(name, "tmp.", 4) || (txt && txt[4]);
}

static void drop(const char *path)
{
    if (unlink(path) < 0)
        cache_drop_folder(path);
}

/* Removes what killed processes left behind, and the older half of the entries when there are too many. */
static void tidy(const Cache *c)
{
    Arena *a = arena_new();
    DIR   *d = opendir(c->dir);
    Aged  *v = ARENA_ARRAY(a, Aged, MAX_ENTRIES * 2);
    int    n = 0;
    if (!d) {
        arena_free(a);
        return;
    }
    for (const struct dirent *e; n < MAX_ENTRIES * 2 && (e = readdir(d));) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        v[n++] = (Aged){ arena_printf(a, "%s/%s", c->dir, e->d_name), is_temporary(e->d_name), st.st_mtime };
    }
    closedir(d);
    qsort(v, (size_t)n, sizeof *v, older_first);
    time_t now = time(NULL);
    for (int k = 0; k < n; k++)
        if (v[k].temporary ? now - v[k].time > LEFT_BEHIND : n > MAX_ENTRIES && k < n / 2)
            drop(v[k].path);
    arena_free(a);
}

char *cache_new_folder(Cache *c, Arena *a)
{
    char *folder = arena_printf(a, "%s/tmp.XXXXXX", c->dir);
    if (!c->temporary)
        tidy(c);
    return mkdtemp(folder);
}

static bool write_sum(Arena *a, const char *folder, const char *name)
{
    uint64_t sum;
    OutFile  f;
    if (!hash_file(arena_printf(a, "%s/%s", folder, name), &sum))
        return false;
    outfile_open(&f, a, arena_printf(a, "%s/sum", folder));
    outfile_put(&f, arena_printf(a, "%016llx\n", (unsigned long long)sum), 17);
    return outfile_close(&f);
}

bool cache_put_folder(Cache *c, Arena *a, const char *folder, const char *key, const char *name)
{
    const char *place = arena_printf(a, "%s/%s", c->dir, key);
    if (!write_sum(a, folder, name))
        return false;
    for (int tries = 0; tries < 3; tries++) {
        if (!rename(folder, place))
            return true;
        if (fits_sum(a, place, name)) { /* someone else was faster */
            cache_drop_folder(folder);
            return true;
        }
        char *away = arena_printf(a, "%s/tmp.XXXXXX", c->dir); /* damaged: out of the way, in one step */
        if (mkdtemp(away) && !rename(place, away))
            cache_drop_folder(away);
        else
            rmdir(away);
    }
    return false;
}
