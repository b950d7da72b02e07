# A module with a long constant of every type that has plain numbers, 5x40 each, with the forms that numbers are written in.
function values(list, n,    k, out, v) {
    split(list, v, " ")
    for (k = 0; k < 200; k++)
        out = out (k % 40 ? ", " : k ? " }, { " : "{ ") v[k % n + 1]
    return out " }"
}
function constant(type, list,    v) {
    printf "  c%d = %s[5,40] constant({ %s })\n", ++count, type, values(list, split(list, v, " "))
    tuple = tuple (count > 1 ? ", c" : "c") count
    types = types (count > 1 ? ", " : "") type "[5,40]"
}
BEGIN {
    print "HloModule m\nENTRY e {"
    floats = "0 -0 0.0 -0.0 1 -1 1. -1.5 0.1 1e0 2E+1 0.3333333333333333 -0.33333334 6.5e-1"
    wide = " 3.4028235e38 1.17549435e-38 1e-45 1.401298464324817e-45 7e-46 16777217 0.30000001192092896 123456789012345678 9007199254740993 1e22 1e-22"
    constant("f32", floats wide " 33554433.5 1.00000017881393432617187499 8.5e-40")
    constant("f64", floats wide " 1e23 4.9e-324 1.7976931348623157e308 2.2250738585072014e-308 1234567890123456789e3 0.1e-5 17976931348623157e292")
    constant("f16", floats " 65504 65519 6e-8 2.9e-8 6.1e-5 1.0009765625 1.00048828125")
    constant("bf16", floats " 3.38e38 9.2e-41 1.00390625 1.01171875 257 4.6e-41")
    constant("f8e4m3fn", floats " 448 240 0.001953125 0.0009765625 17 9.5")
    constant("f8e5m2", floats " 57344 1.5e-5 7e-6 5")
    constant("f4e2m1fn", "0 -0.0 0.5 1 -1.5 6 -6 2.5 4.9 0.25 0.75")
    constant("s1", "0 -1")
    constant("s4", "0 -0 7 -8 003")
    constant("u4", "0 15 8")
    constant("s8", "127 -128 0")
    constant("u8", "255 0 1")
    constant("s16", "32767 -32768 5")
    constant("u32", "4294967295 0 7")
    constant("s64", "9223372036854775807 -9223372036854775808 5 -7")
    constant("u64", "9223372036854775808 -1 9999999999999999999 007")
    constant("s64", "9223372036854775807 -9223372036854775808 12345678901234567 18446744073709551615")
    constant("u64", "18446744073709551615 9223372036854775808 -1 00000000000000000000007")
    constant("pred", "0 1 2 -3")
    print "  ROOT t = (" types ") tuple(" tuple ")\n}"
}
