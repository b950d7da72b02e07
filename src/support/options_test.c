/* Every form of an option that is accepted, and what is refused. Messages go to stderr; only the verdict is checked. */
#include "support/options.h"

#include <string.h>

#include "support/check.h"

typedef struct Args {
    bool        verify, stats;
    int         names;
    int64_t     count;
    double      atol;
    const char *passes, *target, *output, *report, *profile;
    OptionList  inputs;
    int         level;
} Args;

static const Option options[] = {
    {"verify", 0, OPT_SWITCH, offsetof(Args, verify), NULL, "verify", "Checks"},
    {"names", 0, OPT_TOGGLE, offsetof(Args, names), NULL, "print names", "Checks"},
    {"report", 0, OPT_FORM, offsetof(Args, report), "text|json", "report", "Checks"},
    {"profile", 0, OPT_MAYBE, offsetof(Args, profile), "FILE", "times", "Checks"},
    {"stats", 's', OPT_FLAG, offsetof(Args, stats), NULL, "count", NULL},
    {"count", 0, OPT_INT, offsetof(Args, count), "N", "a number", "Numbers"},
    {"atol", 0, OPT_DOUBLE, offsetof(Args, atol), "X", "a tolerance", "Numbers"},
    {"passes", 0, OPT_STRING, offsetof(Args, passes), "LIST", "passes", "Checks"},
    {"target", 0, OPT_CHOICE, offsetof(Args, target), "cpu|cuda", "target", "Checks"},
    {"output", 'o', OPT_STRING, offsetof(Args, output), "FILE", "write there", "Checks"},
    {"inputs", 0, OPT_LIST, offsetof(Args, inputs), "FILE", "read there", "Checks"},
    {"O", 'O', OPT_LEVEL, offsetof(Args, level), NULL, "level", "Checks"},
    {0},
};
static const ToolInfo tool = {"options_test", "a test", "[OPTION...] [FILE]", options, 1};

static Arena     *arena;
static OptionList files;

static OptionsResult parse(Args *a, const char *const *words)
{
    char *argv[16] = {(char *)"options_test"};
    int   argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = arena_strndup(arena, words[argc - 1], strlen(words[argc - 1]));
    *a = (Args){.verify = true, .level = 2, .names = -1};
    return options_parse(&tool, argc, argv, a, arena, &files);
}
#define PARSE(a, ...) parse(a, (const char *const[]){__VA_ARGS__, NULL})

static void test_forms(void)
{
    Args a;
    CHECK(PARSE(&a, "--passes=x,y", "-O3", "m.hlo") == OPTIONS_RUN);
    CHECK(strcmp(a.passes, "x,y") == 0 && a.level == 3 && files.n == 1 && a.verify);
    CHECK(PARSE(&a, "-passes=", "--no-verify", "-") == OPTIONS_RUN && !*a.passes && !a.verify && strcmp(files.v[0], "-") == 0);
    CHECK(PARSE(&a, "--passes", "dce", "-o", "f", "-s") == OPTIONS_RUN && strcmp(a.output, "f") == 0 && a.stats);
    CHECK(PARSE(&a, "-o-") == OPTIONS_RUN && strcmp(a.output, "-") == 0);
    CHECK(PARSE(&a, "--inputs=a", "--inputs", "b") == OPTIONS_RUN && a.inputs.n == 2 && strcmp(a.inputs.v[1], "b") == 0);
    CHECK(PARSE(&a, "--count=-5", "--atol=1e-3", "--target=cuda") == OPTIONS_RUN && a.count == -5 && a.atol == 1e-3);
    CHECK(PARSE(&a, "--verify=false") == OPTIONS_RUN && !a.verify);
    CHECK(a.names == -1 && !a.report);
    CHECK(PARSE(&a, "--names", "--report", "x.hlo") == OPTIONS_RUN && a.names == 1 && strcmp(a.report, "text") == 0 && files.n == 1);
    CHECK(PARSE(&a, "--names", "--no-names", "--report=json") == OPTIONS_RUN && a.names == 0 && strcmp(a.report, "json") == 0);
    CHECK(!a.profile && PARSE(&a, "--profile", "x.hlo") == OPTIONS_RUN && a.profile && !*a.profile && files.n == 1);
    CHECK(PARSE(&a, "--profile=x.json") == OPTIONS_RUN && strcmp(a.profile, "x.json") == 0 && files.n == 0);
    CHECK(PARSE(&a, "--", "-weird") == OPTIONS_RUN && files.n == 1 && strcmp(files.v[0], "-weird") == 0);
    puts("ok forms");
}

static void test_refusals(void)
{
    Args a;
    CHECK(PARSE(&a, "--pases=x") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--count=x") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--count=") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--count=99999999999999999999") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--target=tpu") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--target=cpu|cuda") == OPTIONS_BAD);
    CHECK(PARSE(&a, "-O4") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--passes") == OPTIONS_BAD);
    CHECK(PARSE(&a, "-o") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--verify=maybe") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--names=maybe") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--report=xml") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--report=") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--no-report") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--no-count") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--no-verify=1") == OPTIONS_BAD);
    CHECK(PARSE(&a, "a.hlo", "b.hlo") == OPTIONS_BAD);
    CHECK(PARSE(&a, "--", "a.hlo", "b.hlo") == OPTIONS_BAD);
    CHECK(PARSE(&a, "@/nowhere") == OPTIONS_BAD);
    puts("ok refusals");
}

static void test_lists(void)
{
    char  *text = NULL;
    size_t n = 0;
    FILE  *f = open_memstream(&text, &n);
    options_help(&tool, f, false);
    fclose(f);
    CHECK(strstr(text, "--target=cpu|cuda") && strstr(text, "-o, --output=FILE") && !strstr(text, "--stats"));
    CHECK(strstr(text, "--[no-]verify ") && strstr(text, "--[no-]names ") && strstr(text, "--report[=text|json] "));
    CHECK(strstr(text, "--profile[=FILE] "));
    free(text);
    f = open_memstream(&text, &n);
    options_mdoc(&tool, f);
    fclose(f);
    for (const Option *o = options; o->name; o++)
        CHECK(strstr(text, o->help));
    CHECK(strstr(text, ".It Fl -verify , Fl -no-verify\n") && strstr(text, ".It Fl o , Fl -output Ns = Ns Ar FILE\n"));
    free(text);
    puts("ok lists");
}

int main(void)
{
    arena = arena_new();
    test_forms();
    test_refusals();
    test_lists();
    arena_free(arena);
    return 0;
}
