/*
 * command: one word that `stoker` understands: how it is called, what it does, its options.
 *
 * main.c holds the table of them; `stoker help` and `--help` are printed from it.
 */
#ifndef STK_CLI_COMMAND_H
#define STK_CLI_COMMAND_H

#include "options.h"

typedef enum exit_code {
    EXIT_FINE = 0,
    EXIT_FAILED = 1,        /* a sample, or the run */
    EXIT_USAGE = 2,         /* the command line */
    EXIT_WORLD = 3,         /* a folder, a file, memory, threads: what surrounds the command */
    EXIT_INTERRUPTED = 130, /* Ctrl-C: 128 + SIGINT */
} exit_code;

typedef struct command {
    const char *name;
    const char *args;  /* "DIR", for the usage line */
    const char *help;  /* one line */
    const char *about; /* what more there is to say, or NULL */
    size_t min_args, max_args;
    const option *options;             /* ends with a NULL name; NULL: none */
    int (*run)(int argc, char **argv); /* argv[0]: the command's name; returns an exit_code */
} command;

extern const command bench_command, info_command, plan_command, sheet_command;

/* Parses argv into `values` and leaves the arguments that are no options in argv[0..*argc).
 * False: the command is over, with *code (after --help, or a wrong option). */
bool command_parse(const command *cmd, int *argc, char ***argv, void *values, int *code);

/* Prints usage, text and options. */
void command_help(const command *cmd, FILE *to);

#endif /* STK_CLI_COMMAND_H */
