/* From what an op of Python has made to what the engine's next stage takes. */
#include "lane.h"

#include <string.h>

/* What was made, taken apart: references. */
typedef struct made {
    PyObject *data, *rest, *key, *label;
    stk_source *source; /* whose sample `id` it is, borrowed from a Sample that the caller has */
    int64_t id;
} made;

static void made_fini(made *m)
{
    Py_CLEAR(m->data);
    Py_CLEAR(m->rest);
    Py_CLEAR(m->key);
    Py_CLEAR(m->label);
}

static bool is_followed(ext_state *state, PyObject *value)
{
    return value && Py_IS_TYPE(value, state->sample_type) && ((ext_sample *)value)->followed;
}

static bool take_apart(ext_state *state, PyObject *value, PyObject *result, made *m)
{
    const bool whole = Py_IS_TYPE(result, state->sample_type);
    ext_sample *s = NULL;
    *m = (made){.id = -1};
    if (whole)
        s = (ext_sample *)result;
    else if (is_followed(state, value))
        s = (ext_sample *)value;
    if (s) {
        Py_BEGIN_CRITICAL_SECTION(s);
        m->data = Py_NewRef(!whole ? result : s->data ? s->data : Py_None);
        m->rest = Py_XNewRef(s->rest);
        m->key = Py_XNewRef(s->key);
        m->label = Py_XNewRef(s->label);
        Py_END_CRITICAL_SECTION();
        m->source = s->source;
        m->id = PyLong_AsLongLong(s->id);
        if (m->id == -1 && PyErr_Occurred()) return false;
    }
    else {
        m->data = Py_NewRef(result);
    }
    if (PyTuple_CheckExact(m->data) && PyTuple_GET_SIZE(m->data) == 2) { /* (data, label) */
        PyObject *pair = m->data;
        Py_XSETREF(m->label, Py_NewRef(PyTuple_GET_ITEM(pair, 1)));
        m->data = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
        Py_DECREF(pair);
    }
    return true;
}

static bool check(stk_err err)
{
    if (err) ext_raise(err, NULL);
    return !err;
}

static const char *takes(stk_kind kind)
{
    switch (kind) {
    case STK_KIND_KEY: return "a str or os.PathLike";
    case STK_KIND_BYTES: return "a bytes-like object";
    case STK_KIND_ARRAY: return "an array";
    case STK_KIND_BATCH: return "a Batch";
    default: return "something else";
    }
}

static bool refuse(const ext_taker *t, PyObject *value)
{
    const bool path = PyUnicode_Check(value);
    const char *remedy = t->kind == STK_KIND_BATCH           ? ": put batch() before it"
                         : t->kind == STK_KIND_BYTES && path ? ": put ops.read() before it"
                         : t->kind == STK_KIND_KEY && !path && PyBytes_Check(value)
                             ? ": these are bytes already"
                         : t->kind == STK_KIND_ARRAY && !path && !PyBytes_Check(value)
                             ? ": aggregate() groups anything"
                             : "";
    PyErr_Format(PyExc_TypeError, "stage '%s' takes %s%s, not %.200s%s", t->name, takes(t->kind),
                 t->kind == STK_KIND_BATCH ? "" : ", a Sample of it, or a pair of it and a label",
                 Py_TYPE(value)->tp_name, remedy);
    return false;
}

/* The current exception, if it is about types or values, says which stage could not take what. */
static bool name_stage(const ext_taker *t)
{
    PyObject *kinds[] = {PyExc_TypeError, PyExc_ValueError, PyExc_BufferError};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (!PyErr_ExceptionMatches(kinds[i])) continue;
        PyObject *cause = ext_take_exception();
        PyErr_Format(kinds[i], "stage '%s': %S", t->name, cause);
        PyObject *named = ext_take_exception();
        PyException_SetCause(named, cause); /* takes it */
        PyErr_SetObject((PyObject *)Py_TYPE(named), named);
        Py_DECREF(named);
        break;
    }
    return false;
}

/* --- who it is --- */

static bool set_identity(stk_item *item, const made *m)
{
    stk_source *own = stk_item_source(item);
    if (m->source && m->source == own && m->id == stk_item_id(item)) return true;
    if (m->source) {
        const stk_err err = stk_item_become(item, m->source, m->id);
        if (err != STK_ENOTFOUND) return check(err);
    }
    /* Of another run, or of nobody's: a source that knows nothing by that number need not mind. */
    const stk_source_class *cls = own ? stk_source_get_class(own) : NULL;
    if (m->id >= 0 && cls && !cls->columns && !cls->key)
        stk_item_set_id(item, m->id, stk_item_epoch(item));
    return true;
}

/* A path, as the file system has it; false with an exception. */
static bool set_key(stk_item *item, size_t part, PyObject *path)
{
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes)) return false;
    const bool good = check(stk_item_set_key(item, part, PyBytes_AS_STRING(bytes)));
    Py_DECREF(bytes);
    return good;
}

static bool set_text_label(stk_item *item, PyObject *text)
{
    PyObject *bytes;
    if (!PyUnicode_FSConverter(text, &bytes)) return false;
    const bool good = check(stk_item_set_label(item, &(stk_spec){0}, PyBytes_AS_STRING(bytes)));
    Py_DECREF(bytes);
    return good;
}

static bool set_array_label(stk_item *item, const stk_tensor *view)
{
    const stk_spec spec = stk_tensor_spec(view);
    size_t bytes = 0;
    stk_err err = stk_spec_bytes(&spec, &bytes);
    void *packed = err ? NULL : PyMem_Malloc(bytes ? bytes : 1);
    if (packed) {
        stk_tensor_pack(view, packed);
        err = stk_item_set_label(item, &spec, packed);
        PyMem_Free(packed);
    }
    else if (!err) {
        err = STK_ENOMEM;
    }
    return check(err);
}

static bool set_number_label(stk_item *item, PyObject *value)
{
    if (PyBool_Check(value)) {
        const bool flag = value == Py_True;
        return check(stk_item_set_label(item, &(stk_spec){.dtype = STK_BOOL}, &flag));
    }
    if (PyFloat_CheckExact(value)) {
        const double number = PyFloat_AS_DOUBLE(value);
        return check(stk_item_set_label(item, &(stk_spec){.dtype = STK_FLOAT64}, &number));
    }
    const int64_t number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) return false;
    return check(stk_item_set_label(item, &(stk_spec){.dtype = STK_INT64}, &number));
}

static bool set_label(ext_state *state, stk_item *item, const ext_taker *t, PyObject *value)
{
    if (!value || value == Py_None) return true;
    if (PyLong_Check(value) || PyFloat_CheckExact(value)) return set_number_label(item, value);
    if (PyUnicode_Check(value)) return set_text_label(item, value);
    stk_tensor view;
    stk_buffer *mem;
    const ext_found found = ext_array_of(state, value, &view, &mem);
    if (found == EXT_FOUND) {
        const bool good = set_array_label(item, &view);
        stk_buffer_unref(&mem);
        return good;
    }
    if (found == EXT_RAISED) return name_stage(t);
    PyErr_Format(PyExc_TypeError, "stage '%s': a label is a number, a str or an array, not %.200s",
                 t->name, Py_TYPE(value)->tp_name);
    return false;
}

/* --- what it holds --- */

static bool is_path(PyObject *value)
{
    return PyUnicode_Check(value) ||
           PyObject_HasAttrString((PyObject *)Py_TYPE(value), "__fspath__");
}

/* A sample of which nothing was read yet can be batched, too: a batch of keys. */
static bool is_key_alone(const made *m)
{
    return m->key && !m->rest && PyUnicode_Check(m->data) && PyUnicode_Check(m->key) &&
           PyUnicode_Compare(m->data, m->key) == 0;
}

static bool set_part(ext_state *state, stk_item *item, const ext_taker *t, size_t part,
                     PyObject *value)
{
    ext_found found = EXT_NOT_FOUND;
    stk_tensor view;
    stk_buffer *mem = NULL;
    if (t->kind == STK_KIND_KEY && is_path(value)) return set_key(item, part, value);
    if (t->kind == STK_KIND_BYTES) found = ext_bytes_of(state, value, &mem);
    if (t->kind == STK_KIND_ARRAY) found = ext_array_of(state, value, &view, &mem);
    if (found == EXT_RAISED) return name_stage(t);
    if (found == EXT_NOT_FOUND) return refuse(t, value);
    if (t->kind == STK_KIND_BYTES)
        stk_item_set_bytes(item, part, &mem);
    else
        stk_item_set_array(item, part, &view, &mem);
    return true;
}

static bool set_parts(ext_state *state, stk_item *item, const ext_taker *t, const made *m)
{
    const size_t n = m->rest ? 1 + (size_t)PyTuple_GET_SIZE(m->rest) : 1;
    if (stk_item_set_num_parts(item, n)) {
        PyErr_Format(PyExc_ValueError,
                     "stage '%s': a sample of %zu parts, which no source here has", t->name, n);
        return false;
    }
    if (t->kind == STK_KIND_ARRAY && is_key_alone(m)) return true;
    for (size_t i = 0; i < n; i++) {
        PyObject *value = i ? PyTuple_GET_ITEM(m->rest, (Py_ssize_t)i - 1) : m->data;
        if (!set_part(state, item, t, i, value)) return false;
    }
    return true;
}

static bool set_batch(ext_state *state, stk_item *item, const ext_taker *t, PyObject *result)
{
    stk_batch *batch = ext_batch_borrow(state, result);
    if (!batch) return refuse(t, result);
    batch = stk_batch_ref(batch);
    stk_err err = stk_item_set_batch(item, &batch);
    stk_batch_unref(&batch);
    return check(err);
}

bool ext_item_set_native(ext_state *state, stk_item *item, const ext_taker *t, PyObject *value,
                         PyObject *result)
{
    if (t->kind == STK_KIND_BATCH) return set_batch(state, item, t, result);
    made m;
    bool good = take_apart(state, value, result, &m);
    if (good) stk_item_clear(item);
    good = good && set_identity(item, &m) && set_parts(state, item, t, &m);
    if (good && t->kind != STK_KIND_KEY && m.key && m.key != Py_None)
        good = set_key(item, 0, m.key);
    good = good && set_label(state, item, t, m.label);
    made_fini(&m);
    return good;
}
