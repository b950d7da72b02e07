# A module of 410 custom calls, one after the other.
BEGIN {
    print "HloModule many\nENTRY %e {\n  %n0 = s32[] parameter(0)"
    for (k = 1; k <= 410; k++)
        printf "  %s%%n%d = s32[] custom-call(%%n%d), custom_call_target=\"test.countdown\"\n", k == 410 ? "ROOT " : "", k, k - 1
    print "}"
}
