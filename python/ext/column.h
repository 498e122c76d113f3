/* Columns and lists of Python's, as C sees them. */
#ifndef STK_EXT_COLUMN_H
#define STK_EXT_COLUMN_H

#include "ext.h"

/* `columns` as C sees them: views of Python's memory, until ext_columns_fini. */
typedef struct ext_columns {
    stk_list_column *columns;
    Py_buffer *views;
    const char ***strings; /* per column, NULL where it is an array */
    size_t n;
} ext_columns;

/* From a list of (name: bytes, values), values being a list of bytes or a C-contiguous
 * buffer of `rows` rows.  False with an exception; all-zero before, fini after either way. */
bool ext_columns_init(ext_columns *c, PyObject *columns, size_t rows);
void ext_columns_fini(ext_columns *c);

/* The type of one element; STK_DTYPE_NONE: none that we have. */
stk_dtype ext_buffer_dtype(const Py_buffer *view);

/* The C strings of a list of bytes, borrowed from it: free with PyMem_Free.  NULL with an
 * exception if one is no bytes or has a NUL inside. */
const char **ext_strings(const char *what, PyObject *list);

/* For "O&": a tuple (shuffle, seed, rank, world_size, epochs), to an stk_order_opts. */
int ext_order_convert(PyObject *tuple, void *out);

/* shards.c */
PyObject *ext_shards_source(PyObject *module, PyObject *args, PyObject *kwargs);

#endif /* STK_EXT_COLUMN_H */
