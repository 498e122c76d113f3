/*
 * option: one line of a command's table of options, from which they are parsed and explained.
 *
 *     {"batch", OPTION_INT, "N", offsetof(job, batch), 1, 65536, "samples in a batch"}
 */
#ifndef STK_CLI_OPTIONS_H
#define STK_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum option_kind {
    OPTION_FLAG,   /* --json: sets a bool */
    OPTION_SWITCH, /* --shuffle, --no-shuffle: sets or clears a bool */
    OPTION_INT,    /* --batch N: an int64_t in [min, max] */
    OPTION_CHOICE, /* --order input|completion: an int, the number of the word */
} option_kind;

typedef struct option {
    const char *name;
    option_kind kind;
    const char *value; /* "N", or the words of a choice with '|' between; NULL: none */
    size_t offset;     /* of the field in the struct that is filled */
    int64_t min, max;
    const char *help;
} option;

/* Takes the options out of argv[1..argc), in any place before "--", and leaves the others from
 * argv[0] on; returns how many.  -1: wrong, and said so; -2: --help or -h was among them. */
int options_parse(const option *table, int argc, char **argv, void *values);

/* A line an option. */
void options_print(const option *table, FILE *to);

#endif /* STK_CLI_OPTIONS_H */
