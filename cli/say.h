/*
 * say: lines for people, in which names from elsewhere can do no harm.
 *
 * Bytes that would steer a terminal are shown as '?'.
 */
#ifndef STK_CLI_SAY_H
#define STK_CLI_SAY_H

#include <stdio.h>

/* Prints to a stream as printf does. */
void say(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "stoker: ..." and a line's end, to stderr. */
void say_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* STK_CLI_SAY_H */
