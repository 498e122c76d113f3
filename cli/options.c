#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

#define WRONG (-1)
#define HELP (-2)

static bool parse_int(const option *o, const char *text, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (end == text || *end || errno || n < o->min || n > o->max) {
        say_error("--%s takes a number from %lld to %lld, not \"%s\"", o->name, (long long)o->min,
                  (long long)o->max, text);
        return false;
    }
    *out = n;
    return true;
}

static bool parse_choice(const option *o, const char *text, int *out)
{
    const size_t length = strlen(text);
    int number = 0;
    for (const char *word = o->value;; number++) {
        const size_t n = strcspn(word, "|");
        if (n == length && !memcmp(word, text, n)) {
            *out = number;
            return true;
        }
        if (!word[n]) break;
        word += n + 1;
    }
    say_error("--%s takes one of %s, not \"%s\"", o->name, o->value, text);
    return false;
}

/* The option of that name (n bytes); *off is true for --no-NAME of a switch. */
static const option *find(const option *table, const char *name, size_t n, bool *off)
{
    for (const option *o = table; o && o->name; o++) {
        *off = o->kind == OPTION_SWITCH && n > 3 && !memcmp(name, "no-", 3);
        const char *wanted = *off ? name + 3 : name;
        const size_t length = *off ? n - 3 : n;
        if (strlen(o->name) == length && !memcmp(o->name, wanted, length)) return o;
    }
    return NULL;
}

/* One option, whose value may be the next argument; returns how many arguments it took. */
static int parse_one(const option *table, const char *arg, const char *next, void *values)
{
    const char *name = arg + 2;
    const size_t n = strcspn(name, "=");
    const char *value = name[n] ? name + n + 1 : NULL;
    bool off = false;
    const option *o = strncmp(arg, "--", 2) ? NULL : find(table, name, n, &off);
    if (!o) {
        say_error("no such option: %s", arg);
        return WRONG;
    }
    void *field = (char *)values + o->offset;
    if (o->kind == OPTION_FLAG || o->kind == OPTION_SWITCH) {
        if (value) {
            say_error("--%s takes no value", o->name);
            return WRONG;
        }
        *(bool *)field = !off;
        return 1;
    }
    const int took = value ? 1 : 2;
    if (!value) value = next;
    if (!value) {
        say_error("--%s needs a value: %s", o->name, o->value);
        return WRONG;
    }
    const bool fine =
        o->kind == OPTION_INT ? parse_int(o, value, field) : parse_choice(o, value, field);
    return fine ? took : WRONG;
}

int options_parse(const option *table, int argc, char **argv, void *values)
{
    int kept = 0;
    bool only_args = false;
    for (int i = 1; i < argc;) {
        char *arg = argv[i];
        if (only_args || arg[0] != '-' || !arg[1]) {
            argv[kept++] = arg;
            i++;
        }
        else if (!strcmp(arg, "--")) {
            only_args = true;
            i++;
        }
        else if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
            return HELP;
        }
        else {
            const int took = parse_one(table, arg, i + 1 < argc ? argv[i + 1] : NULL, values);
            if (took < 0) return WRONG;
            i += took;
        }
    }
    return kept;
}

void options_print(const option *table, FILE *to)
{
    for (const option *o = table; o && o->name; o++) {
        char left[64];
        if (o->kind == OPTION_SWITCH)
            snprintf(left, sizeof(left), "--%s, --no-%s", o->name, o->name);
        else
            snprintf(left, sizeof(left), "--%s%s%s", o->name, o->value ? " " : "",
                     o->value ? o->value : "");
        if (strlen(left) > 24)
            fprintf(to, "  %s\n  %-24s  %s\n", left, "", o->help);
        else
            fprintf(to, "  %-24s  %s\n", left, o->help);
    }
    fprintf(to, "  %-24s  %s\n", "--help", "print this and end");
}
