#include "columns.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"

enum {
    SILENCE_MS = 60000,
    MAX_SAID = 1 << 20, /* 200 columns of two words of 500 characters of at most 4 bytes fit */
};

/* Writes words, each with a NUL: "rows", how many, how many columns, and of each its name and type;
 * or "absent", "broken", "unsupported" and why.  What is in the working directory is not imported.
 */
static const char script[] =
    "import sys\n"
    "sys.path[:] = [path for path in sys.path if path]\n"
    "def say(*words):\n"
    "    short = [w if len(w) <= 500 else w[:497] + '...' for w in words]\n"
    "    data = [w.encode('utf-8', 'replace').replace(b'\\0', b'?') + b'\\0' for w in short]\n"
    "    sys.stdout.buffer.write(b''.join(data))\n"
    "def look(data):\n"
    "    if data[:3].to_pybytes() == b'PAR':\n"
    "        from pyarrow import parquet\n"
    "        file = parquet.ParquetFile(pa.BufferReader(data))\n"
    "        return file.metadata.num_rows, file.schema_arrow\n"
    "    if data[:6].to_pybytes() == b'ARROW1':\n"
    "        file = ipc.open_file(data)\n"
    "        batches = map(file.get_batch, range(file.num_record_batches))\n"
    "    else:\n"
    "        file = batches = ipc.open_stream(data)\n"
    "    return sum(batch.num_rows for batch in batches), file.schema\n"
    "try:\n"
    "    import mmap\n"
    "    import pyarrow as pa\n"
    "    from pyarrow import ipc\n"
    "except ImportError as error:\n"
    "    say('absent', str(error))\n"
    "    sys.exit()\n"
    "try:\n"
    "    with open(sys.argv[1], 'rb') as file:\n"
    "        data = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))\n"
    "    rows, schema = look(data)\n"
    "    columns = [w for field in list(schema)[:200] for w in (field.name, str(field.type))]\n"
    "    say('rows', str(rows), str(len(schema)), *columns)\n"
    "except (pa.ArrowNotImplementedError, ImportError) as error:\n"
    "    say('unsupported', str(error))\n"
    "except Exception as error:\n"
    "    say('broken', str(error) or type(error).__name__)\n";

static const char *python(void)
{
    const char *named = getenv("STOKER_PYTHON");
    return named && *named ? named : "python3";
}

/* Starts it with its output in *from. */
static int start(const char *path, pid_t *pid, int *from)
{
    extern char **environ;
    char *const line[] = {(char *)python(), "-c", (char *)script, (char *)path, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return errno;
    int failed = posix_spawn_file_actions_init(&actions);
    if (!failed) {
        failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        if (!failed) failed = posix_spawnp(pid, line[0], &actions, NULL, line, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (failed) close(ends[0]);
    *from = ends[0];
    return failed;
}

/* All that comes, up to MAX_SAID bytes, with a NUL behind it; false: silence. */
static bool hear(int from, char *said, size_t *got)
{
    *got = 0;
    for (;;) {
        struct pollfd fd = {.fd = from, .events = POLLIN};
        const int ready = poll(&fd, 1, SILENCE_MS);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        const ssize_t n = read(from, said + *got, MAX_SAID - *got);
        if (n < 0 && errno == EINTR) continue;
        if (n > 0) *got += (size_t)n;
        if (n <= 0 || *got == MAX_SAID) break;
    }
    said[*got] = '\0';
    return true;
}

static const char *next(const char *word, const char *end)
{
    const char *behind = word < end ? word + strlen(word) + 1 : end;
    return behind < end ? behind : end; /* the last word may lack its NUL */
}

/* What the words mean; those that are missing are "". */
static stk_err understand(column_facts *c, size_t got, int status, stk_diag *diag)
{
    const char *end = c->said + got;
    const char *first = c->said, *second = next(first, end), *third = next(second, end);
    if (!strcmp(first, "rows")) {
        c->rows = strtoll(second, NULL, 10);
        c->num = strtoll(third, NULL, 10);
        c->list = next(third, end);
        c->end = end;
        return STK_OK;
    }
    if (!strcmp(first, "absent"))
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "%s has no pyarrow, which reads it: pip install pyarrow (%s); another "
                            "Python is named by STOKER_PYTHON",
                            python(), second);
    if (!strcmp(first, "unsupported")) return stk_diag_set(diag, STK_EUNSUPPORTED, "%s", second);
    if (!strcmp(first, "broken")) return stk_diag_set(diag, STK_ECORRUPT, "%s", second);
    return stk_diag_set(diag, STK_EUNSUPPORTED,
                        "%s, whose pyarrow reads it, said nothing and ended with %s %d", python(),
                        WIFSIGNALED(status) ? "signal" : "exit code",
                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

stk_err columns_look(const char *path, column_facts *out, stk_diag *diag)
{
    pid_t pid = 0;
    int from = -1, status = 0;
    size_t got;
    *out = (column_facts){.said = malloc(MAX_SAID + 1)};
    if (!out->said) return stk_diag_set(diag, STK_ENOMEM, "%s", stk_err_str(STK_ENOMEM));
    const int failed = start(path, &pid, &from);
    if (failed)
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "Python with pyarrow reads it, and cannot be started: %s: %s; "
                            "STOKER_PYTHON names another",
                            python(), strerror(failed));
    const bool heard = hear(from, out->said, &got);
    close(from);
    if (!heard) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (!heard)
        return stk_diag_set(diag, STK_ETIMEOUT, "nothing came from %s for %d s", python(),
                            SILENCE_MS / 1000);
    return understand(out, got, status, diag);
}

void columns_fini(column_facts *c)
{
    free(c->said);
    *c = (column_facts){0};
}

/* On one line, whatever the file says. */
static void print_word(const char *word)
{
    const char *rest;
    for (; (rest = strchr(word, '\n')); word = rest + 1)
        say(stdout, "%.*s?", (int)(rest - word), word);
    say(stdout, "%s", word);
}

void columns_print(const column_facts *c)
{
    int64_t shown = 0;
    for (const char *name = c->list, *type; name < c->end; name = next(type, c->end), shown++) {
        type = next(name, c->end);
        say(stdout, "  ");
        print_word(name);
        say(stdout, ": ");
        print_word(type);
        say(stdout, "\n");
    }
    if (shown < c->num) say(stdout, "  and %" PRId64 " more\n", c->num - shown);
}

void columns_json(const column_facts *c, json *j)
{
    json_int(j, "rows", c->rows);
    json_int(j, "num_columns", c->num);
    json_open(j, "columns", '[');
    for (const char *name = c->list, *type; name < c->end; name = next(type, c->end)) {
        type = next(name, c->end);
        json_open(j, NULL, '{');
        json_string(j, "name", name);
        json_string(j, "type", type);
        json_close(j, '}');
    }
    json_close(j, ']');
}
