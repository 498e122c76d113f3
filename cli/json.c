#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Bytes of the UTF-8 character at `s`, or 0: not one (Unicode 15, table 3-7). */
static int utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80) return 1;
    const int n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    const bool too_long = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    const bool surrogate = s[0] == 0xed && s[1] > 0x9f;
    const bool too_big = s[0] == 0xf4 && s[1] > 0x8f;
    return too_long || surrogate || too_big ? 0 : n;
}

static void put_string(FILE *to, const char *value)
{
    fputc('"', to);
    for (const unsigned char *s = (const unsigned char *)value; *s;) {
        const int n = utf8_length(s);
        if (n == 0)
            fprintf(to, "\\udc%02x", *s);
        else if (*s == '"' || *s == '\\')
            fprintf(to, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(to, "\\u%04x", *s);
        else
            fwrite(s, 1, (size_t)n, to);
        s += n ? n : 1;
    }
    fputc('"', to);
}

static void begin(json *j, const char *name)
{
    if (j->some) fputc(',', j->to);
    if (j->depth > 0) fprintf(j->to, "\n%*s", 2 * j->depth, "");
    if (name) {
        put_string(j->to, name);
        fputs(": ", j->to);
    }
    j->some = true;
}

void json_open(json *j, const char *name, char bracket)
{
    begin(j, name);
    fputc(bracket, j->to);
    j->depth++;
    j->some = false;
}

void json_close(json *j, char bracket)
{
    j->depth--;
    if (j->some) fprintf(j->to, "\n%*s", 2 * j->depth, "");
    fputc(bracket, j->to);
    if (j->depth == 0) fputc('\n', j->to);
    j->some = true;
}

void json_int(json *j, const char *name, int64_t value)
{
    begin(j, name);
    fprintf(j->to, "%" PRId64, value);
}

void json_number(json *j, const char *name, double value)
{
    begin(j, name);
    if (isfinite(value))
        fprintf(j->to, "%.9g", value);
    else
        fputs("null", j->to);
}

void json_bool(json *j, const char *name, bool value)
{
    begin(j, name);
    fputs(value ? "true" : "false", j->to);
}

void json_string(json *j, const char *name, const char *value)
{
    begin(j, name);
    if (value)
        put_string(j->to, value);
    else
        fputs("null", j->to);
}
