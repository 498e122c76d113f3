#include "say.h"

#include <stdarg.h>
#include <stdlib.h>

/* Control characters, and C1 controls in UTF-8 (0xc2 0x80 to 0xc2 0x9f). */
static void disarm(char *text)
{
    for (unsigned char *s = (unsigned char *)text; *s; s++) {
        const unsigned char before = s == (unsigned char *)text ? 0 : s[-1];
        if ((*s < 0x20 && *s != '\n') || *s == 0x7f || (before == 0xc2 && *s < 0xa0)) *s = '?';
    }
}

static void say_list(FILE *to, const char *fmt, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, fmt, args) < 0) {
        fputs("(no memory for this line)", to);
        return;
    }
    disarm(text);
    fputs(text, to);
    free(text);
}

void say(FILE *to, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say_list(to, fmt, args);
    va_end(args);
}

void say_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("stoker: ", stderr);
    say_list(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
}
