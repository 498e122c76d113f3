/* The `stoker` command: finds the command in the table and runs it. */
#include <stdio.h>
#include <string.h>

#include <stoker/base.h>

#include "command.h"
#include "say.h"

static int run_help(int argc, char **argv);
static int run_version(int argc, char **argv);

static const command help_command = {
    .name = "help",
    .args = "[COMMAND]",
    .help = "print the commands, or what one of them does",
    .max_args = 1,
    .run = run_help,
};

static const command version_command = {
    .name = "version",
    .args = "",
    .help = "print the version",
    .run = run_version,
};

static const command *const commands[] = {
    &bench_command, &info_command, &sheet_command, &plan_command, &help_command, &version_command,
};
#define NUM_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char exit_codes[] =
    "exit codes:\n"
    "  0    all went well\n"
    "  1    an image failed, or the run did\n"
    "  2    the command line is wrong\n"
    "  3    a folder or file cannot be read or written, or memory or threads ran out\n"
    "  130  ended by Ctrl-C\n";

static const command *find(const char *name)
{
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        if (!strcmp(commands[i]->name, name)) return commands[i];
    return NULL;
}

static void print_commands(FILE *to)
{
    fputs("usage: stoker COMMAND [OPTION]...\n\n"
          "Loads images from folders and hands out batches, fast.\n\ncommands:\n",
          to);
    for (size_t i = 0; i < NUM_COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof(left), "%s %s", commands[i]->name, commands[i]->args);
        fprintf(to, "  %-17s  %s\n", left, commands[i]->help);
    }
    fprintf(to, "\n\"stoker COMMAND --help\" explains one of them.\n\n%s", exit_codes);
}

void command_help(const command *cmd, FILE *to)
{
    fprintf(to, "usage: stoker %s%s%s%s\n\n%s\n", cmd->name, cmd->options ? " [OPTION]..." : "",
            *cmd->args ? " " : "", cmd->args, cmd->help);
    if (cmd->about) fprintf(to, "\n%s\n", cmd->about);
    fputs("\noptions:\n", to);
    options_print(cmd->options, to);
    fprintf(to, "\n%s", exit_codes);
}

bool command_parse(const command *cmd, int *argc, char ***argv, void *values, int *code)
{
    const int n = options_parse(cmd->options, *argc, *argv, values);
    *code = EXIT_FINE;
    if (n == -2) {
        command_help(cmd, stdout);
        return false;
    }
    if (n >= 0 && (size_t)n >= cmd->min_args && (size_t)n <= cmd->max_args) {
        *argc = n;
        return true;
    }
    if (n >= 0 && cmd->min_args > (size_t)n)
        say_error("%s needs %s", cmd->name, cmd->args);
    else if (n >= 0)
        say_error("%s: too many arguments: %s", cmd->name, (*argv)[cmd->max_args]);
    fprintf(stderr, "usage: stoker %s [OPTION]... %s\n\"stoker %s --help\" prints the options\n",
            cmd->name, cmd->args, cmd->name);
    *code = EXIT_USAGE;
    return false;
}

static int run_help(int argc, char **argv)
{
    int code = EXIT_FINE;
    if (!command_parse(&help_command, &argc, &argv, NULL, &code)) return code;
    const command *cmd = argc ? find(argv[0]) : NULL;
    if (argc && !cmd) {
        say_error("no such command: %s", argv[0]);
        return EXIT_USAGE;
    }
    if (cmd)
        command_help(cmd, stdout);
    else
        print_commands(stdout);
    return EXIT_FINE;
}

static int run_version(int argc, char **argv)
{
    int code = EXIT_FINE;
    if (!command_parse(&version_command, &argc, &argv, NULL, &code)) return code;
    printf("stoker %s\n", stk_version());
    return EXIT_FINE;
}

/* --help and --version before any command are the commands of that name. */
static const char *spelled(const char *word)
{
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) return "help";
    return strcmp(word, "--version") ? word : "version";
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_commands(stderr);
        return EXIT_USAGE;
    }
    const command *cmd = find(spelled(argv[1]));
    if (!cmd) {
        say_error("no such command: %s; \"stoker help\" prints them", argv[1]);
        return EXIT_USAGE;
    }
    const int code = cmd->run(argc - 1, argv + 1);
    if (fflush(stdout) || ferror(stdout)) {
        say_error("the output cannot be written");
        return EXIT_WORLD;
    }
    return code;
}
