#include <stoker/shards.h>

#include "column.h"

/* Names and endings, borrowed from Python's lists. */
typedef struct fields {
    const char **paths;
    stk_shard_part parts[STK_MAX_PARTS];
    stk_shard_column *columns;
    size_t num_paths, num_parts, num_columns;
} fields;

static bool take_parts(fields *f, PyObject *list)
{
    const Py_ssize_t n = PyList_GET_SIZE(list);
    if (n < 1 || n > STK_MAX_PARTS) {
        PyErr_Format(PyExc_ValueError, "a sample has 1 to %d files, not %zd", STK_MAX_PARTS, n);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        stk_shard_part *p = &f->parts[f->num_parts++];
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "yy", &p->name, &p->endings)) return false;
    }
    return true;
}

static bool take_columns(fields *f, PyObject *list)
{
    const Py_ssize_t n = PyList_GET_SIZE(list);
    f->columns = PyMem_Calloc((size_t)n + 1, sizeof(*f->columns));
    if (!f->columns) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        stk_shard_column *c = &f->columns[f->num_columns++];
        int is_text;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "yyp", &c->name, &c->endings, &is_text))
            return false;
        c->is_text = is_text;
    }
    return true;
}

PyObject *ext_shards_source(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"kind",  "paths", "files", "columns", "samples_per_shard",
                            "order", NULL};
    PyObject *paths, *files, *columns;
    stk_order_opts order;
    const char *kind;
    long long per_shard;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO!O!O!LO&:shards_source", names, &kind,
                                     &PyList_Type, &paths, &PyList_Type, &files, &PyList_Type,
                                     &columns, &per_shard, ext_order_convert, &order))
        return NULL;
    fields f = {.paths = ext_strings("shards", paths)};
    PyObject *made = NULL;
    if (f.paths && take_parts(&f, files) && take_columns(&f, columns)) {
        const stk_shards_opts opts = {
            .num_shards = (size_t)PyList_GET_SIZE(paths),
            .paths = f.paths,
            .num_parts = f.num_parts,
            .parts = f.parts,
            .num_columns = f.num_columns,
            .columns = f.columns,
            .samples_per_shard = per_shard,
            .order = order,
        };
        stk_diag diag = {0};
        stk_source *core =
            strcmp(kind, "zip") ? stk_tar_source(&opts, &diag) : stk_zip_source(&opts, &diag);
        made = ext_source_give(module, &core, &diag);
    }
    PyMem_Free(f.columns);
    PyMem_Free(f.paths);
    return made;
}
