#include "ext.h"

#define FUNCTION(name, doc)                                                               \
    {                                                                                     \
#name, (PyCFunction)(void (*)(void))ext_##name, METH_VARARGS | METH_KEYWORDS, doc \
    }

static PyMethodDef functions[] = {
    FUNCTION(dir_source, PyDoc_STR("A Source; use stoker.source.Directory.")),
    FUNCTION(list_source, PyDoc_STR("A Source; use stoker.source.List.")),
    FUNCTION(op_read, PyDoc_STR("An Op; use stoker.ops.read.")),
    FUNCTION(op_decode_image, PyDoc_STR("An Op; use stoker.ops.decode_image.")),
    FUNCTION(op_normalize, PyDoc_STR("An Op; use stoker.ops.normalize.")),
    FUNCTION(decode_image, PyDoc_STR("decode_image(data, seed, **options): one image as a Field, "
                                     "outside of any run.")),
    {"plan", ext_plan, METH_NOARGS, PyDoc_STR("plan($module, /)\n--\n\nAn empty Plan.")},
    {NULL, NULL, 0, NULL}, /* end */
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, type) < 0) Py_CLEAR(type);
    return type;
}

static int add_constants(PyObject *module)
{
    if (PyModule_AddStringConstant(module, "VERSION", stk_version()) < 0 ||
        PyModule_AddIntConstant(module, "END", STK_EEND) < 0 ||
        PyModule_AddIntConstant(module, "EPOCH_END", STK_EEPOCH) < 0 ||
        PyModule_AddIntConstant(module, "TIMED_OUT", STK_ETIMEOUT) < 0 ||
        PyModule_AddIntConstant(module, "CANCELLED", STK_ECANCELLED) < 0)
        return -1;
    PyObject *codes = ext_error_codes();
    const int failed = codes ? PyModule_AddObjectRef(module, "ERROR_CODES", codes) : -1;
    Py_XDECREF(codes);
    return failed;
}

static int module_exec(PyObject *module)
{
    ext_state *state = PyModule_GetState(module); /* zeroed; module_clear cleans up after failure */

    if (!(state->field_type = add_type(module, &ext_field_spec))) return -1;
    if (!(state->batch_type = add_type(module, &ext_batch_spec))) return -1;
    if (!(state->sample_type = add_type(module, &ext_sample_spec))) return -1;
    if (!(state->source_type = add_type(module, &ext_source_spec))) return -1;
    if (!(state->op_type = add_type(module, &ext_op_spec))) return -1;
    if (!(state->plan_type = add_type(module, &ext_plan_spec))) return -1;
    if (!(state->run_type = add_type(module, &ext_run_spec))) return -1;
    return add_constants(module);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    ext_state *state = PyModule_GetState(module);
    Py_VISIT(state->field_type);
    Py_VISIT(state->batch_type);
    Py_VISIT(state->sample_type);
    Py_VISIT(state->source_type);
    Py_VISIT(state->op_type);
    Py_VISIT(state->plan_type);
    Py_VISIT(state->run_type);
    return 0;
}

static int module_clear(PyObject *module)
{
    ext_state *state = PyModule_GetState(module);
    Py_CLEAR(state->field_type);
    Py_CLEAR(state->batch_type);
    Py_CLEAR(state->sample_type);
    Py_CLEAR(state->source_type);
    Py_CLEAR(state->op_type);
    Py_CLEAR(state->plan_type);
    Py_CLEAR(state->run_type);
    return 0;
}

static void module_free(void *module)
{
    (void)module_clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_mod_multiple_interpreters /* 3.12 */
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil /* 3.13: we never lean on the GIL */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}, /* end */
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_stoker",
    .m_doc = "The C core of stoker; use the stoker package.",
    .m_size = sizeof(ext_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__stoker(void)
{
    return PyModuleDef_Init(&definition);
}
