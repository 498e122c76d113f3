/*
 * columns: rows and columns of Arrow and Parquet files.
 *
 * The pyarrow of the user's Python reads them, in a process of its own: python3, or what the
 * environment variable STOKER_PYTHON names.
 */
#ifndef STK_CLI_COLUMNS_H
#define STK_CLI_COLUMNS_H

#include <stoker/error.h>

#include "json.h"

typedef struct column_facts {
    int64_t rows, num;      /* num: columns, of which at most 200 are listed */
    char *said;             /* what Python wrote */
    const char *list, *end; /* name, type, name, type... in `said`, each with a NUL */
} column_facts;

/* STK_EUNSUPPORTED: there is no Python, or no pyarrow, and the text says what to install; or
 * pyarrow cannot read it.  STK_ECORRUPT: pyarrow's words.  STK_ETIMEOUT: nothing came for a minute.
 */
stk_err columns_look(const char *path, column_facts *out, stk_diag *diag);
void columns_fini(column_facts *c);

/* A line for each column to stdout. */
void columns_print(const column_facts *c);

/* "rows", "num_columns" and "columns" of an object. */
void columns_json(const column_facts *c, json *j);

#endif /* STK_CLI_COLUMNS_H */
