/* The one parser of command lines. Every form that users of LLVM and GNU tools type is read; what is not in the table is an error
 * with the nearest name, never a file. */
#include "config.h"

#include "support/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/buf.h"
#include "support/diag.h"
#include "support/vec.h"

typedef VEC(const char *) Words;

typedef struct Parse {
    const ToolInfo *tool;
    char           *args;
    Arena          *arena;
    Words           words;
    int             next; /* index into words of the word after the current one */
    OptionList     *files;
} Parse;

static OptionsResult bad(const Parse *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static OptionsResult bad(const Parse *p, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "%s: error: ", p->tool->name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return OPTIONS_BAD;
}

static void list_add(Arena *a, OptionList *l, const char *s)
{
    const char **v = ARENA_ARRAY(a, const char *, l->n + 1);
    if (l->n)
        memcpy(v, l->v, (size_t)l->n * sizeof *v);
    v[l->n++] = s;
    l->v = v;
}

static const Option *find(const ToolInfo *t, const char *name, size_t n)
{
    for (const Option *o = t->options; o->name; o++)
        if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
            return o;
    return NULL;
}

static bool choice_has(const char *words, const char *s)
{
    size_t n = strlen(s);
    for (const char *w = words; *w; w += strcspn(w, "|"), w += *w == '|')
        if (strcspn(w, "|") == n && memcmp(w, s, n) == 0)
            return true;
    return false;
}

/* Is given as --name or --no-name, without a value of its own. */
static bool is_bool(const Option *o)
{
    return o->kind == OPT_FLAG || o->kind == OPT_SWITCH || o->kind == OPT_TOGGLE;
}

static bool may_stand_alone(const Option *o)
{
    return o->kind == OPT_FORM || o->kind == OPT_MAYBE;
}

/* The --no- form is worth showing: without it the option may be on. */
static bool shows_no(const Option *o)
{
    return o->kind == OPT_SWITCH || o->kind == OPT_TOGGLE;
}

static OptionsResult store(Parse *p, const Option *o, const char *value)
{
    void *at = p->args + o->offset;
    char *end;
    errno = 0;
    switch (o->kind) {
    case OPT_FLAG:
    case OPT_SWITCH:
    case OPT_TOGGLE: {
        if (value && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
            return bad(p, "--%s takes true or false, not '%s'", o->name, value);
        bool on = !value || strcmp(value, "true") == 0;
        if (o->kind == OPT_TOGGLE)
            *(int *)at = on;
        else
            *(bool *)at = on;
        return OPTIONS_RUN;
    }
    case OPT_INT: {
        long long v = strtoll(value, &end, 10);
        if (!*value || *end || errno)
            return bad(p, "--%s takes an integer, not '%s'", o->name, value);
        *(int64_t *)at = v;
        return OPTIONS_RUN;
    }
    case OPT_DOUBLE: {
        double v = strtod(value, &end);
        if (!*value || *end)
            return bad(p, "--%s takes a number, not '%s'", o->name, value);
        *(double *)at = v;
        return OPTIONS_RUN;
    }
    case OPT_MAYBE: *(const char **)at = value ? value : ""; return OPTIONS_RUN;
    case OPT_STRING: *(const char **)at = value; return OPTIONS_RUN;
    case OPT_LIST: list_add(p->arena, at, value); return OPTIONS_RUN;
    case OPT_LEVEL:
        if (strlen(value) != 1 || value[0] < '0' || value[0] > '3')
            return bad(p, "-O takes 0, 1, 2 or 3, not '%s'", value);
        *(int *)at = value[0] - '0';
        return OPTIONS_RUN;
    case OPT_FORM:
        if (!value)
            value = arena_strndup(p->arena, o->arg, strcspn(o->arg, "|"));
        /* fall through */
    case OPT_CHOICE:
        if (!choice_has(o->arg, value))
            return bad(p, "--%s takes %s, not '%s'", o->name, o->arg, value);
        *(const char **)at = value;
        return OPTIONS_RUN;
    }
    die("option --%s has no kind", o->name);
}

static OptionsResult unknown(const Parse *p, const char *word, const char *name, size_t n)
{
    Words names = {0};
    for (const Option *o = p->tool->options; o->name; o++)
        vec_push(p->arena, &names, o->name);
    vec_push(p->arena, &names, "help");
    vec_push(p->arena, &names, "version");
    const char *near = nearest_word(arena_strndup(p->arena, name, n), names.v, names.n);
    if (near)
        return bad(p, "unknown option '%s'; did you mean '--%s'?", word, near);
    return bad(p, "unknown option '%s'; '%s --help' lists them", word, p->tool->name);
}

static void print_version(const ToolInfo *t)
{
    printf("%s %s\n", t->name, PACKAGE_VERSION);
}

/* --name, --name=value, --name value, --no-name; one dash does too. */
static OptionsResult long_option(Parse *p, const char *word)
{
    const char *name = word + (word[1] == '-' ? 2 : 1);
    size_t      n = strcspn(name, "=");
    const char *value = name[n] ? name + n + 1 : NULL;
    if (n == 4 && memcmp(name, "help", 4) == 0 && !value) {
        options_help(p->tool, stdout, false);
        return OPTIONS_DONE;
    }
    if (n == 11 && memcmp(name, "help-hidden", 11) == 0 && !value) {
        options_help(p->tool, stdout, true);
        return OPTIONS_DONE;
    }
    if (n == 9 && memcmp(name, "help-mdoc", 9) == 0 && !value) { /* for the build: the man page's list */
        options_mdoc(p->tool, stdout);
        return OPTIONS_DONE;
    }
    if (n == 9 && memcmp(name, "help-bash", 9) == 0 && !value) { /* for the build: the completion function */
        options_bash(p->tool, stdout);
        return OPTIONS_DONE;
    }
    if (n == 7 && memcmp(name, "version", 7) == 0 && !value) {
        print_version(p->tool);
        return OPTIONS_DONE;
    }
    const Option *o = find(p->tool, name, n);
    if (!o && n > 3 && memcmp(name, "no-", 3) == 0) {
        o = find(p->tool, name + 3, n - 3);
        if (o && is_bool(o))
            return value ? bad(p, "--no-%s takes no value", o->name) : store(p, o, "false");
        o = NULL;
    }
    if (!o)
        return unknown(p, word, name, n);
    if (is_bool(o) || may_stand_alone(o))
        return store(p, o, value);
    if (!value) {
        if (p->next >= p->words.n)
            return bad(p, "--%s needs a value: --%s=%s", o->name, o->name, o->arg ? o->arg : "VALUE");
        value = p->words.v[p->next++];
    }
    return store(p, o, value);
}

/* -o FILE, -oFILE, -O2, -f. OPTIONS_DONE with *matched false: no such letter. */
static OptionsResult short_option(Parse *p, const char *word, bool *matched)
{
    *matched = true;
    if (strcmp(word, "-h") == 0) {
        options_help(p->tool, stdout, false);
        return OPTIONS_DONE;
    }
    for (const Option *o = p->tool->options; o->name; o++) {
        if (!o->letter || o->letter != word[1])
            continue;
        if (is_bool(o) && !word[2])
            return store(p, o, NULL);
        if (is_bool(o) || (o->kind == OPT_LEVEL && strlen(word) > 3))
            continue;
        if (word[2])
            return store(p, o, word + 2);
        if (p->next >= p->words.n)
            return bad(p, "-%c needs a value", o->letter);
        return store(p, o, p->words.v[p->next++]);
    }
    *matched = false;
    return OPTIONS_RUN;
}

static OptionsResult one_file(Parse *p, const char *word)
{
    if (p->files->n >= p->tool->max_files)
        return bad(p, p->tool->max_files == 1 ? "more than one file: '%s' and '%s'" : "too many files: '%s' before '%s'",
                   p->files->n ? p->files->v[p->files->n - 1] : "", word);
    list_add(p->arena, p->files, word);
    return OPTIONS_RUN;
}

static OptionsResult one_word(Parse *p, const char *word)
{
    if (word[0] != '-' || !word[1])
        return one_file(p, word);
    if (word[1] == '-')
        return long_option(p, word);
    size_t n = strcspn(word + 1, "=");
    if (find(p->tool, word + 1, n)) /* -passes=... of LLVM's habit wins over -p asses */
        return long_option(p, word);
    bool          matched;
    OptionsResult r = short_option(p, word, &matched);
    return matched ? r : long_option(p, word);
}

/* Splits a response file at white space; quotes keep it, a backslash takes the next byte as it is. */
static bool add_response_file(Parse *p, const char *path)
{
    Buf text = {0};
    if (!buf_read_file(&text, path)) {
        bad(p, "%s: %s", path, strerror(errno));
        buf_free(&text);
        return false;
    }
    Buf  word = {0};
    char quote = 0;
    bool open = false;
    for (size_t k = 0; k <= text.n; k++) {
        char c = k < text.n ? text.p[k] : '\n';
        if (!quote && strchr(" \t\r\n", c)) {
            if (open)
                vec_push(p->arena, &p->words, arena_strndup(p->arena, word.p ? word.p : "", word.n));
            open = false;
            buf_clear(&word);
        } else if (quote ? c == quote : c == '"' || c == '\'') {
            quote = quote ? 0 : c;
            open = true;
        } else {
            if (c == '\\' && quote != '\'' && k + 1 < text.n)
                c = text.p[++k];
            buf_putc(&word, c);
            open = true;
        }
    }
    buf_free(&word);
    buf_free(&text);
    return true;
}

OptionsResult options_parse(const ToolInfo *t, int argc, char **argv, void *args, Arena *a, OptionList *files)
{
    Parse p = {.tool = t, .args = args, .arena = a, .files = files};
    *files = (OptionList){0};
    for (int k = 1; k < argc; k++) {
        if (argv[k][0] == '@' && argv[k][1]) {
            if (!add_response_file(&p, argv[k] + 1))
                return OPTIONS_BAD;
        } else
            vec_push(a, &p.words, argv[k]);
    }
    bool only_files = false;
    while (p.next < p.words.n) {
        const char *word = p.words.v[p.next++];
        if (!only_files && strcmp(word, "--") == 0) {
            only_files = true;
            continue;
        }
        OptionsResult r = only_files ? one_file(&p, word) : one_word(&p, word);
        if (r != OPTIONS_RUN)
            return r;
    }
    return OPTIONS_RUN;
}

/* "-o, --output=FILE", "--[no-]verify", "--stats[=text|json]" */
static char *left_side(Arena *a, const Option *o)
{
    const char *arg = o->arg ? o->arg : "VALUE";
    char       *letter = o->letter ? arena_printf(a, "-%c, ", o->letter) : arena_printf(a, "%s", "");
    if (o->kind == OPT_LEVEL)
        return arena_printf(a, "-%c0 ... -%c3", o->letter, o->letter);
    if (is_bool(o))
        return arena_printf(a, "%s--%s%s", letter, shows_no(o) ? "[no-]" : "", o->name);
    return arena_printf(a, may_stand_alone(o) ? "%s--%s[=%s]" : "%s--%s=%s", letter, o->name, arg);
}

static void help_row(FILE *to, const char *left, const char *text)
{
    if (strlen(left) > 28)
        fprintf(to, "  %s\n%32s%s\n", left, "", text);
    else
        fprintf(to, "  %-28s  %s\n", left, text);
}

static bool in_group(const Option *o, const char *group)
{
    return group ? o->group && strcmp(o->group, group) == 0 : !o->group;
}

static void help_group(const ToolInfo *t, FILE *to, const char *group, Arena *a)
{
    fprintf(to, "\n%s:\n", group ? group : "Rare options");
    for (const Option *o = t->options; o->name; o++)
        if (in_group(o, group))
            help_row(to, left_side(a, o), o->help);
}

static bool group_seen(const ToolInfo *t, const Option *until)
{
    for (const Option *o = t->options; o != until; o++)
        if (in_group(o, until->group))
            return true;
    return false;
}

void options_help(const ToolInfo *t, FILE *to, bool hidden)
{
    Arena *a = arena_new();
    bool   any_hidden = false;
    fprintf(to, "%s: %s\n\nUsage: %s %s\n", t->name, t->summary, t->name, t->usage);
    for (const Option *o = t->options; o->name; o++) {
        any_hidden = any_hidden || !o->group;
        if (o->group && !group_seen(t, o))
            help_group(t, to, o->group, a);
    }
    if (hidden && any_hidden)
        help_group(t, to, NULL, a);
    fprintf(to, "\nAbout:\n");
    help_row(to, "-h, --help", "show this text");
    if (any_hidden)
        help_row(to, "--help-hidden", "show rare options too");
    help_row(to, "--version", "show the version");
    help_row(to, "@FILE", "read more arguments from a file");
    fprintf(to, "\nExit status: 0 done or yes, 1 no, 2 trouble.\n");
    arena_free(a);
}

/* ---- the manual page ---- */

static void mdoc_row(FILE *to, const Option *o)
{
    const char *arg = o->arg ? o->arg : "VALUE";
    fprintf(to, ".It ");
    if (o->kind == OPT_LEVEL) {
        fprintf(to, "Fl %c0 ... Fl %c3\n%s.\n", o->letter, o->letter, o->help);
        return;
    }
    if (o->letter)
        fprintf(to, "Fl %c , ", o->letter);
    fprintf(to, "Fl -%s", o->name);
    if (shows_no(o))
        fprintf(to, " , Fl -no-%s", o->name);
    else if (may_stand_alone(o))
        fprintf(to, " Ns Oo Ns = Ns Ar %s Oc", arg);
    else if (!is_bool(o))
        fprintf(to, " Ns = Ns Ar %s", arg);
    fprintf(to, "\n%s.\n", o->help);
}

static void mdoc_group(const ToolInfo *t, FILE *to, const char *group)
{
    fprintf(to, ".Ss %s\n.Bl -tag -width indent\n", group ? group : "Rare options");
    for (const Option *o = t->options; o->name; o++)
        if (in_group(o, group))
            mdoc_row(to, o);
    fprintf(to, ".El\n");
}

void options_mdoc(const ToolInfo *t, FILE *to)
{
    for (const Option *o = t->options; o->name; o++)
        if (!group_seen(t, o))
            mdoc_group(t, to, o->group);
    fprintf(to, ".Ss About\n.Bl -tag -width indent\n"
                ".It Fl h , Fl -help\nshow the options; rare ones too with\n.Fl -help-hidden .\n"
                ".It Fl -version\nshow the version.\n"
                ".It @ Ns Ar FILE\nread more arguments from a file, separated by white space; quotes and backslashes keep it.\n"
                ".El\n");
}

/* ---- completion ---- */

/* "--emit) words="hlo checks none" ;;": what may stand behind an option and its =. */
static void bash_values(FILE *to, const Option *o)
{
    if (is_bool(o) || o->kind == OPT_LEVEL)
        return;
    fprintf(to, "    --%s", o->name);
    if (o->letter)
        fprintf(to, " | -%c", o->letter);
    if (o->kind != OPT_CHOICE && o->kind != OPT_FORM) {
        fprintf(to, ") ;;\n");
        return;
    }
    fprintf(to, ") words=\"");
    for (const char *w = o->arg; *w; w++)
        fputc(*w == '|' ? ' ' : *w, to);
    fprintf(to, "\" ;;\n");
}

static void bash_names(FILE *to, const Option *o)
{
    if (o->kind == OPT_LEVEL)
        fprintf(to, "-%c0 -%c1 -%c2 -%c3 ", o->letter, o->letter, o->letter, o->letter);
    else
        fprintf(to, "--%s%s ", o->name, is_bool(o) || may_stand_alone(o) ? "" : "=");
    if (shows_no(o))
        fprintf(to, "--no-%s ", o->name);
}

/* Bash cuts words at "=": --emit=hlo arrives as three. Where neither words nor names fit, files do. */
void options_bash(const ToolInfo *t, FILE *to)
{
    fprintf(to, "_%s()\n{\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} name=${COMP_WORDS[COMP_CWORD-1]} words=\n"
                "    if [ \"$cur\" = = ]; then\n        cur=\n"
                "    elif [ \"$name\" = = ]; then\n        name=${COMP_WORDS[COMP_CWORD-2]}\n    fi\n"
                "    case $name in\n", t->name);
    for (const Option *o = t->options; o->name; o++)
        bash_values(to, o);
    fprintf(to, "    *) case $cur in -*) words=\"");
    for (const Option *o = t->options; o->name; o++)
        bash_names(to, o);
    fprintf(to, "--help --help-hidden --version\" ;; esac ;;\n    esac\n"
                "    if [ \"$words\" ]; then\n        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                "    else\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n    fi\n}\n"
                "complete -o nospace -F _%s %s\n", t->name, t->name);
}
