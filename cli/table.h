/*
 * table: cells of text, printed in columns that fit the widest: the first to the left, the
 * others to the right.
 */
#ifndef STK_CLI_TABLE_H
#define STK_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_MAX_COLUMNS 16

typedef struct table {
    size_t columns; /* at most TABLE_MAX_COLUMNS */
    FILE *cells;    /* over `text`: the cells, each with its NUL */
    char *text;
    size_t size;
} table;

/* False: no memory. */
bool table_init(table *t, size_t columns);

/* The next cell, row by row. */
void table_cell(table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints the rows that are full, and frees what table_init took.  False: no memory for them. */
bool table_print(table *t, FILE *to);

#endif /* STK_CLI_TABLE_H */
