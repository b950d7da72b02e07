# n computations, each of which calls the one before it `calls` times.
BEGIN {
    print "HloModule calls\nfn0 {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] negate(p)\n}"
    for (k = 1; k < n; k++) {
        printf "fn%d {\n  p = f32[4] parameter(0)\n", k
        for (c = 0; c < calls; c++)
            printf "  %sx%d = f32[4] call(%s), to_apply=fn%d\n", c + 1 == calls ? "ROOT " : "", c, c ? "x" c - 1 : "p", k - 1
        print "}"
    }
    printf "ENTRY main {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] call(p), to_apply=fn%d\n}\n", n - 1
}
