#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

bool table_init(table *t, size_t columns)
{
    *t = (table){.columns = columns};
    t->cells = open_memstream(&t->text, &t->size);
    return t->cells != NULL;
}

void table_cell(table *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfprintf(t->cells, fmt, args);
    va_end(args);
    fputc('\0', t->cells);
}

static void measure(const table *t, int *widths)
{
    size_t column = 0;
    for (const char *cell = t->text; cell < t->text + t->size; cell += strlen(cell) + 1) {
        const int width = (int)strlen(cell);
        if (width > widths[column]) widths[column] = width;
        column = (column + 1) % t->columns;
    }
}

static void print_rows(const table *t, const int *widths, FILE *to)
{
    size_t column = 0;
    for (const char *cell = t->text; cell < t->text + t->size; cell += strlen(cell) + 1) {
        say(to, column ? "  %*s" : "%-*s", column ? widths[column] : widths[0], cell);
        column = (column + 1) % t->columns;
        if (column == 0) fputc('\n', to);
    }
}

bool table_print(table *t, FILE *to)
{
    int widths[TABLE_MAX_COLUMNS] = {0};
    bool fine = !ferror(t->cells);
    fine &= !fclose(t->cells);
    if (fine) {
        measure(t, widths);
        print_rows(t, widths, to);
    }
    free(t->text);
    *t = (table){0};
    return fine;
}
