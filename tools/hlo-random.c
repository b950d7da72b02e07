/* Prints a random module: hlo-random SEED SIZE. */
#include <stdio.h>
#include <stdlib.h>

#include "driver/random_module.h"

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: hlo-random SEED SIZE\n");
        return 2;
    }
    Arena       *a = arena_new();
    RandomModule m = random_module(a, strtoull(argv[1], NULL, 10), (int32_t)atoi(argv[2]));
    fwrite(m.text, 1, m.n, stdout);
    arena_free(a);
    return ferror(stdout) || fflush(stdout) ? 2 : 0;
}
