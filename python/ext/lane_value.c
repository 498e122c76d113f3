#include "lane.h"

stk_foreign *ext_foreign_new(ext_state *state, PyObject *object)
{
    stk_foreign *f = NULL;
    stk_err err = stk_foreign_new(state->domain, object, &f);
    if (err == STK_EFORK) { /* a child of fork: the parent's domain is dead weight here */
        err = ext_domain_new(&state->domain);
        if (!err) err = stk_foreign_new(state->domain, object, &f);
    }
    if (err)
        ext_raise(err, NULL);
    else
        Py_INCREF(object);
    return f;
}

PyObject *ext_item_value(ext_state *state, stk_item *item)
{
    stk_foreign *f = stk_item_foreign(item);
    if (f) return Py_NewRef(stk_foreign_handle(f));
    stk_batch *batch = stk_item_batch(item);
    if (!batch) return ext_sample_of(state, item);
    batch = stk_batch_ref(batch);
    return ext_batch_give(state, &batch);
}

bool ext_item_set_value(ext_state *state, stk_item *item, PyObject *value)
{
    stk_foreign *f = stk_item_foreign(item);
    if (f) {
        PyObject *before = stk_foreign_swap(f, value);
        Py_XDECREF(before);
        return true;
    }
    f = ext_foreign_new(state, value);
    Py_DECREF(value);
    if (!f) return false;
    stk_item_clear(item); /* what it was before */
    stk_item_set_foreign(item, &f);
    return true;
}

PyObject *ext_item_take_value(stk_item *item)
{
    stk_foreign *f = stk_item_take_foreign(item);
    return f ? stk_foreign_take(&f) : NULL;
}

PyObject *ext_take_exception(void)
{
#if PY_VERSION_HEX >= 0x030c0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *exc, *traceback;
    PyErr_Fetch(&type, &exc, &traceback);
    PyErr_NormalizeException(&type, &exc, &traceback);
    if (traceback) PyException_SetTraceback(exc, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return exc;
#endif
}

/* What ends programs (KeyboardInterrupt, SystemExit) and what is no Exception otherwise; but
 * asyncio's CancelledError, which cancels one item.  Where nobody has imported it, none was raised.
 */
static bool is_fatal(PyObject *exc)
{
    if (PyErr_GivenExceptionMatches(exc, PyExc_Exception)) return false;
    PyObject *name = PyUnicode_FromString("asyncio.exceptions");
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *cancelled = module ? PyObject_GetAttrString(module, "CancelledError") : NULL;
    const bool fatal = !cancelled || !PyErr_GivenExceptionMatches(exc, cancelled);
    Py_XDECREF(cancelled);
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Clear();
    return fatal;
}

void ext_describe(PyObject *exc, stk_diag *diag)
{
    PyObject *text = PyObject_Str(exc);
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    const char *type = Py_TYPE(exc)->tp_name;
    if (utf8 && *utf8)
        stk_diag_set(diag, STK_EFOREIGN, "%.200s: %.1700s", type, utf8);
    else
        stk_diag_set(diag, STK_EFOREIGN, "%.200s", type);
    Py_XDECREF(text);
    PyErr_Clear();
    diag->fatal = is_fatal(exc);
}

stk_err ext_item_fail(ext_state *state, stk_item *item, PyObject *report, PyObject *value,
                      stk_diag *diag)
{
    PyObject *exc = ext_take_exception();
    if (report) {
        PyObject *told = PyObject_CallFunction(report, "OOL", exc, value ? value : Py_None,
                                               (long long)stk_item_id(item));
        if (!told) PyErr_WriteUnraisable(report);
        Py_XDECREF(told);
    }
    ext_describe(exc, diag);
    if (!ext_item_set_value(state, item, exc)) PyErr_Clear(); /* no memory: the text is left */
    return STK_EFOREIGN;
}
