# A module with a parameter of every element type and a copy of each as results, in nested tuples with a token. -v prefix=: the parameters'
# names, out0, out1, ... for example.
BEGIN {
    if (prefix == "")
        prefix = "x"
    n = split("pred s1 s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz " \
              "f8e5m2fnuz f8e4m3fnuz f8e3m4 f8e8m0fnu f4e2m1fn f6e2m3fn f6e3m2fn c64 c128", type, " ")
    print "HloModule types\nENTRY e {\n  t = token[] after-all()"
    for (k = 1; k <= n; k++) {
        printf "  %s%d = %s[3,5] parameter(%d)\n  r%d = %s[3,5] copy(%s%d)\n", prefix, k - 1, type[k], k - 1, k, type[k], prefix, k - 1
        half = k <= 10 ? 1 : 2
        names[half] = names[half] ", r" k
        types[half] = types[half] ", " type[k] "[3,5]"
    }
    printf "  first = (token[]%s) tuple(t%s)\n  ROOT r = ((token[]%s)%s, token[]) tuple(first%s, t)\n}\n", types[1], names[1], types[1], types[2], names[2]
}
