/* Seeds and changes of text for the fuzzers. Everything follows from one number, so that a failure repeats. */
#include "text/fuzz.h"

#include <stdio.h>
#include <string.h>

uint64_t fuzz_random(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

size_t fuzz_below(uint64_t *state, size_t n)
{
    return n ? (size_t)(fuzz_random(state) % n) : 0;
}

static bool is_cut(const char *line)
{
    return strncmp(line, "// -----", 8) == 0 || strncmp(line, "//--- ", 6) == 0;
}

static void add_pieces(Arena *a, Seeds *seeds, const char *text)
{
    const char *piece = text;
    for (const char *line = text;; line++) {
        if (!*line || is_cut(line)) {
            if (line > piece)
                vec_push(a, seeds, ((Seed){arena_strndup(a, piece, (size_t)(line - piece)), (size_t)(line - piece)}));
            piece = line;
        }
        line += strcspn(line, "\n");
        if (!*line)
            break;
    }
    if (*piece)
        vec_push(a, seeds, ((Seed){arena_strndup(a, piece, strlen(piece)), strlen(piece)}));
}

Seeds fuzz_seeds(Arena *a, int n_files, char *const *files)
{
    Seeds seeds = {0};
    for (int k = 0; k < n_files; k++) {
        Buf b = {0};
        if (buf_read_file(&b, files[k]) && b.n > 0 && b.n < 1 << 20)
            add_pieces(a, &seeds, arena_strndup(a, b.p, b.n));
        buf_free(&b);
    }
    return seeds;
}

void fuzz_splice(Buf *b, size_t at, size_t cut, const char *add, size_t n_add)
{
    Buf out = {0};
    if (at > b->n)
        at = b->n;
    if (cut > b->n - at)
        cut = b->n - at;
    buf_put(&out, b->p, at);
    buf_put(&out, add, n_add);
    buf_put(&out, b->p + at + cut, b->n - at - cut);
    buf_free(b);
    *b = out;
}

size_t fuzz_give(uint8_t *out, Buf *b, size_t most)
{
    size_t n = b->n < most ? b->n : most;
    if (n)
        memcpy(out, b->p, n);
    buf_free(b);
    return n;
}

void fuzz_keep(const char *path, const char *comment, const Buf *text)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return;
    fputs(comment, f);
    fwrite(text->p ? text->p : "", 1, text->n, f);
    fclose(f);
}
