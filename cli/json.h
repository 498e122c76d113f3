/*
 * json: writes one JSON value to a stream, piece by piece; commas and quotes are its work.
 *
 *     json j = {.to = stdout};
 *     json_open(&j, NULL, '{');  json_int(&j, "images", 2000);  json_close(&j, '}');
 *
 * A piece in an object has a name, one in an array has NULL.  Bytes of a string that are not
 * UTF-8 become lone surrogates, "\udc80" to "\udcff", as in Python's os.fsdecode.
 */
#ifndef STK_CLI_JSON_H
#define STK_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json {
    FILE *to;
    int depth;
    bool some; /* the innermost object or array has a piece already */
} json;

void json_open(json *j, const char *name, char bracket);
void json_close(json *j, char bracket);
void json_int(json *j, const char *name, int64_t value);
void json_number(json *j, const char *name, double value); /* null unless finite */
void json_bool(json *j, const char *name, bool value);
void json_string(json *j, const char *name, const char *value); /* NULL: null */

#endif /* STK_CLI_JSON_H */
