#include "column.h"

#include <limits.h>

typedef struct {
    PyObject_HEAD
    stk_source *core; /* never changes; locks for itself */
} Source;

stk_source *ext_source_borrow(ext_state *state, PyObject *op)
{
    if (Py_IS_TYPE(op, state->source_type)) return ((Source *)op)->core;
    PyErr_Format(PyExc_TypeError, "expected a Source, not %.80s", Py_TYPE(op)->tp_name);
    return NULL;
}

PyObject *ext_source_give(PyObject *module, stk_source **core, const stk_diag *diag)
{
    if (!*core) return ext_raise(diag->err ? diag->err : STK_ENOMEM, diag);
    PyTypeObject *type = ((ext_state *)PyModule_GetState(module))->source_type;
    Source *self = (Source *)type->tp_alloc(type, 0);
    if (!self) {
        stk_source_unref(core);
        return NULL;
    }
    self->core = *core;
    *core = NULL;
    return (PyObject *)self;
}

int ext_order_convert(PyObject *tuple, void *out)
{
    int shuffle;
    unsigned long long seed;
    long long rank, world_size, epochs;
    if (!PyArg_ParseTuple(tuple, "pKLLL:order", &shuffle, &seed, &rank, &world_size, &epochs))
        return 0;
    *(stk_order_opts *)out = (stk_order_opts){
        .shuffle = shuffle, .seed = seed, .rank = rank, .world_size = world_size, .epochs = epochs};
    return 1;
}

PyObject *ext_dir_source(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", "labels", "pattern", "flat", "no_follow", "order", NULL};
    const char *path, *pattern;
    int labels, flat, no_follow;
    stk_order_opts order;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ypzppO&:dir_source", names, &path, &labels,
                                     &pattern, &flat, &no_follow, ext_order_convert, &order))
        return NULL;
    const stk_dir_opts opts = {
        .labels = labels ? STK_LABELS_DIR : STK_LABELS_NONE,
        .pattern = pattern,
        .flat = flat,
        .no_follow = no_follow,
        .order = order,
    };
    stk_diag diag = {0};
    stk_source *core = stk_dir_source(path, &opts, &diag);
    return ext_source_give(module, &core, &diag);
}

typedef struct parts {
    const char *names[STK_MAX_PARTS];
    const char **paths[STK_MAX_PARTS];
    size_t n, rows;
} parts;

static bool add_part(parts *p, PyObject *part)
{
    PyObject *name, *paths;
    if (!PyArg_ParseTuple(part, "SO", &name, &paths)) return false;
    if (!(p->paths[p->n] = ext_strings(PyBytes_AS_STRING(name), paths))) return false;
    p->names[p->n++] = PyBytes_AS_STRING(name);

    const size_t rows = (size_t)PyList_GET_SIZE(paths);
    if (p->n == 1) p->rows = rows;
    if (rows == p->rows) return true;
    PyErr_Format(PyExc_ValueError, "%s has %zu paths, but %s has %zu", p->names[p->n - 1], rows,
                 p->names[0], p->rows);
    return false;
}

static bool parts_init(parts *p, PyObject *list)
{
    const Py_ssize_t n = PyList_GET_SIZE(list);
    if (n < 1 || n > STK_MAX_PARTS) {
        PyErr_Format(PyExc_ValueError, "a sample has 1 to %d files, not %zd", STK_MAX_PARTS, n);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!add_part(p, PyList_GET_ITEM(list, i))) return false;
    return true;
}

static void parts_fini(parts *p)
{
    for (size_t i = 0; i < STK_MAX_PARTS; i++) PyMem_Free(p->paths[i]);
}

PyObject *ext_list_source(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"parts", "columns", "order", NULL};
    PyObject *part_list, *column_list;
    stk_order_opts order;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO&:list_source", names, &PyList_Type,
                                     &part_list, &column_list, ext_order_convert, &order))
        return NULL;

    parts p = {0};
    ext_columns columns = {0};
    PyObject *made = NULL;
    if (parts_init(&p, part_list) && ext_columns_init(&columns, column_list, p.rows)) {
        const stk_list_opts opts = {
            .num_samples = p.rows,
            .num_parts = p.n,
            .part_names = p.names,
            .paths = (const char *const *const *)p.paths,
            .num_columns = columns.n,
            .columns = columns.columns,
            .order = order,
        };
        stk_diag diag = {0};
        stk_source *core = stk_list_source(&opts, &diag);
        made = ext_source_give(module, &core, &diag);
    }
    ext_columns_fini(&columns);
    parts_fini(&p);
    return made;
}

static PyObject *source_classes(PyObject *op, PyObject *unused)
{
    (void)unused;
    stk_source *core = ((Source *)op)->core;
    stk_diag diag = {0};
    stk_err err;
    size_t n = 0;
    Py_BEGIN_ALLOW_THREADS
    err = stk_dir_source_classes(core, &n, &diag);
    Py_END_ALLOW_THREADS
    if (err) return ext_raise(err, &diag);

    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(stk_dir_source_class(core, i));
        if (name)
            PyList_SET_ITEM(list, (Py_ssize_t)i, name);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *source_count(PyObject *op, PyObject *unused)
{
    (void)unused;
    stk_source *core = ((Source *)op)->core;
    stk_diag diag = {0};
    stk_err err;
    int64_t n = 0;
    Py_BEGIN_ALLOW_THREADS
    err = stk_source_count(core, &n, &diag);
    Py_END_ALLOW_THREADS
    if (err) return ext_raise(err, &diag);
    return PyLong_FromLongLong(n);
}

static PyObject *source_key(PyObject *op, PyObject *arg)
{
    stk_source *core = ((Source *)op)->core;
    const stk_source_class *cls = stk_source_get_class(core);
    const long long id = PyLong_AsLongLong(arg);
    if (id == -1 && PyErr_Occurred()) return NULL;
    char key[EXT_KEY_SIZE];
    if (!cls->key || cls->key(stk_source_params(core), id, 0, key, sizeof(key))) Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(key);
}

static PyObject *source_memory(PyObject *op, PyObject *unused)
{
    (void)unused;
    return PyLong_FromSize_t(stk_source_memory(((Source *)op)->core));
}

static int source_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void source_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    Py_BEGIN_ALLOW_THREADS /* a listing that goes on in the background is waited for */
    stk_source_unref(&((Source *)op)->core);
    Py_END_ALLOW_THREADS
    ext_drain(type);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef source_methods[] = {
    {"classes", source_classes, METH_NOARGS,
     PyDoc_STR("classes($self, /)\n--\n\nNames of the first-level folders, in order.")},
    {"count", source_count, METH_NOARGS,
     PyDoc_STR("count($self, /)\n--\n\nSamples on all ranks; waits for the listing.")},
    {"key", source_key, METH_O,
     PyDoc_STR("key($self, id, /)\n--\n\nThe path of a sample that was listed; None: not known.")},
    {"memory", source_memory, METH_NOARGS,
     PyDoc_STR("memory($self, /)\n--\n\nBytes that the listing holds.")},
    {NULL, NULL, 0, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot source_slots[] = {
    {Py_tp_doc, (void *)"A source of samples; use stoker.source."},
    {Py_tp_traverse, source_traverse},
    {Py_tp_dealloc, source_dealloc},
    {Py_tp_methods, source_methods},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_source_spec = {
    .name = "stoker._stoker.Source",
    .basicsize = sizeof(Source),
    .flags = EXT_TYPE_FLAGS,
    .slots = source_slots,
};
