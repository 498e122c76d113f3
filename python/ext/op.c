#include "op.h"

#include <stoker/image.h>
#include <stoker/isolate.h>
#include <stoker/ops.h>

typedef struct {
    PyObject_HEAD
    stk_op *core; /* never changes; immutable itself */
} Op;

stk_op *ext_op_borrow(ext_state *state, PyObject *op)
{
    if (Py_IS_TYPE(op, state->op_type)) return ((Op *)op)->core;
    PyErr_Format(PyExc_TypeError, "expected an Op, not %.80s", Py_TYPE(op)->tp_name);
    return NULL;
}

PyObject *ext_op_give(PyObject *module, stk_op **core, const stk_diag *diag)
{
    if (!*core) return ext_raise(diag->err ? diag->err : STK_ENOMEM, diag);
    PyTypeObject *type = ((ext_state *)PyModule_GetState(module))->op_type;
    Op *self = (Op *)type->tp_alloc(type, 0);
    if (!self) {
        stk_op_unref(core);
        return NULL;
    }
    self->core = *core;
    *core = NULL;
    return (PyObject *)self;
}

PyObject *ext_op_read(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"max_bytes", NULL};
    Py_ssize_t max_bytes = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|n:op_read", names, &max_bytes)) return NULL;
    if (max_bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "max_bytes must not be negative");
        return NULL;
    }
    stk_diag diag = {0};
    stk_op *core = stk_op_read(&(stk_read_opts){.max_bytes = (size_t)max_bytes}, &diag);
    return ext_op_give(module, &core, &diag);
}

PyObject *ext_op_load_npy(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"parts", NULL};
    stk_npy_opts opts = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "I:op_load_npy", names, &opts.parts))
        return NULL;
    stk_diag diag = {0};
    stk_op *core = stk_op_load_npy(&opts, &diag);
    return ext_op_give(module, &core, &diag);
}

PyObject *ext_op_isolate(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "timeout", NULL};
    ext_state *state = PyModule_GetState(module);
    PyObject *op;
    stk_isolate_opts opts = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!d:op_isolate", names, state->op_type, &op,
                                     &opts.timeout))
        return NULL;
    stk_diag diag = {0};
    stk_op *core = stk_op_isolate(stk_op_ref(((Op *)op)->core), &opts, &diag);
    return ext_op_give(module, &core, &diag);
}

/* In the order of the enums of stoker/ops.h, as are the next. */
static const char *const crops[] = {"none", "center", "random_resized", NULL};
static const char *const filters[] = {"bilinear", "bicubic", "lanczos", "box", "nearest", NULL};
static const char *const qualities[] = {"fast", "exact", NULL};
static const char *const colors[] = {"rgb", "gray", NULL};
static const char *const layouts[] = {"NHWC", "NCHW", NULL};

bool ext_image_opts(PyObject *kwargs, stk_image_opts *opts)
{
    static char *names[] = {"width",
                            "height",
                            "crop",
                            "filter",
                            "quality",
                            "color",
                            "flip",
                            "scale",
                            "ratio",
                            "resize",
                            "ignore_orientation",
                            "nearest_parts",
                            "gray_parts",
                            "parts",
                            "max_pixels",
                            "max_side",
                            NULL};
    PyObject *crop, *filter, *quality, *color;
    int ignore_orientation;
    long long max_pixels;
    PyObject *none = PyTuple_New(0);
    const int ok =
        none &&
        PyArg_ParseTupleAndKeywords(
            none, kwargs, "$iiUUUUd(dd)(dd)ipIIILi:image options", names, &opts->width,
            &opts->height, &crop, &filter, &quality, &color, &opts->flip, &opts->scale[0],
            &opts->scale[1], &opts->ratio[0], &opts->ratio[1], &opts->resize, &ignore_orientation,
            &opts->nearest_parts, &opts->gray_parts, &opts->parts, &max_pixels, &opts->max_side);
    Py_XDECREF(none);
    if (!ok) return false;

    const int chosen[] = {
        ext_choice("crop", crop, crops),
        ext_choice("filter", filter, filters),
        ext_choice("quality", quality, qualities),
        ext_choice("color", color, colors),
    };
    for (size_t i = 0; i < sizeof(chosen) / sizeof(*chosen); i++)
        if (chosen[i] < 0) return false;
    opts->crop = (stk_crop)chosen[0];
    opts->filter = (stk_filter)chosen[1];
    opts->quality = (stk_quality)chosen[2];
    opts->color = (stk_color)chosen[3];
    opts->ignore_orientation = ignore_orientation;
    opts->max_pixels = max_pixels;
    return true;
}

PyObject *ext_op_decode_image(PyObject *module, PyObject *args, PyObject *kwargs)
{
    stk_image_opts opts = {0};
    if (!PyArg_ParseTuple(args, ":op_decode_image") || !ext_image_opts(kwargs, &opts)) return NULL;
    stk_diag diag = {0};
    stk_op *core = stk_op_decode_image(&opts, &diag);
    return ext_op_give(module, &core, &diag);
}

PyObject *ext_decode_image(PyObject *module, PyObject *args, PyObject *kwargs)
{
    Py_buffer data;
    unsigned long long seed;
    stk_image_opts opts = {0};
    if (!PyArg_ParseTuple(args, "y*K:decode_image", &data, &seed)) return NULL;
    if (!ext_image_opts(kwargs, &opts)) {
        PyBuffer_Release(&data);
        return NULL;
    }

    stk_diag diag = {0};
    stk_err err;
    stk_tensor view;
    stk_buffer *mem = NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_image_decode(data.buf, (size_t)data.len, &opts, seed, &view, &mem, &diag);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    if (err) return ext_raise(err, &diag);
    return ext_field_give(PyModule_GetState(module), &view, &mem, false);
}

#define MAX_CHANNELS 4 /* of mean and std: see stk_normalize_opts */

/* A tuple of 1 to 4 floats; the number of them, or 0 with an exception. */
static size_t channels(const char *arg, PyObject *tuple, double *out)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    if (n < 1 || n > MAX_CHANNELS) {
        PyErr_Format(PyExc_ValueError, "%s must have 1 to %d numbers, not %zd", arg, MAX_CHANNELS,
                     n);
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        out[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(tuple, i));
        if (out[i] == -1.0 && PyErr_Occurred()) return 0;
    }
    return (size_t)n;
}

PyObject *ext_op_normalize(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"mean", "std", "scale", "dtype", "layout", "field", NULL};
    PyObject *mean, *std, *layout;
    const char *dtype, *field;
    double scale;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!dsUy:op_normalize", names, &PyTuple_Type,
                                     &mean, &PyTuple_Type, &std, &scale, &dtype, &layout, &field))
        return NULL;

    double means[MAX_CHANNELS], stds[MAX_CHANNELS];
    const size_t n = channels("mean", mean, means);
    const size_t m = n ? channels("std", std, stds) : 0;
    if (!m) return NULL;
    if (n != m) {
        PyErr_Format(PyExc_ValueError, "mean has %zu numbers, but std has %zu", n, m);
        return NULL;
    }
    const int chosen = ext_choice("layout", layout, layouts);
    if (chosen < 0) return NULL;
    const stk_normalize_opts opts = {
        .num_channels = n,
        .mean = means,
        .std = stds,
        .scale = scale,
        .dtype = stk_dtype_parse(dtype),
        .layout = (stk_layout)chosen,
        .field = field,
    };
    if (opts.dtype == STK_DTYPE_NONE) {
        PyErr_Format(PyExc_ValueError, "dtype: '%s' is not one of its values", dtype);
        return NULL;
    }
    stk_diag diag = {0};
    stk_op *core = stk_op_normalize(&opts, &diag);
    return ext_op_give(module, &core, &diag);
}

static PyObject *op_get_name(PyObject *op, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(stk_op_get_class(((Op *)op)->core)->name);
}

static PyObject *op_get_takes(PyObject *op, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(stk_kind_str(stk_op_get_class(((Op *)op)->core)->in));
}

static PyObject *op_get_adds(PyObject *op, void *closure)
{
    (void)closure;
    const stk_op *core = ((Op *)op)->core;
    const stk_op_class *cls = stk_op_get_class(core);
    const char *name;
    stk_spec spec = {0};
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names && cls->adds && (name = cls->adds(stk_op_params(core), i, &spec));
         i++) {
        PyObject *text = ext_text(name);
        if (!text || PyList_Append(names, text) < 0) Py_CLEAR(names);
        Py_XDECREF(text);
    }
    PyObject *result = names ? PyList_AsTuple(names) : NULL;
    Py_XDECREF(names);
    return result;
}

static PyObject *op_repr(PyObject *op)
{
    const stk_op *core = ((Op *)op)->core;
    const stk_op_class *cls = stk_op_get_class(core);
    char text[512] = "";
    if (cls->print) cls->print(stk_op_params(core), text, sizeof(text));
    return ext_text(text[0] ? text : cls->name);
}

static int op_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void op_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    stk_op_unref(&((Op *)op)->core);
    ext_drain(type);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyGetSetDef op_getset[] = {
    {"name", op_get_name, NULL, PyDoc_STR("What it is called: \"decode_image\"."), NULL},
    {"takes", op_get_takes, NULL, PyDoc_STR("What it is given: \"keys\", \"bytes\"..."), NULL},
    {"adds", op_get_adds, NULL, PyDoc_STR("Names of the parts that it adds to samples."), NULL},
    {NULL, NULL, NULL, NULL, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot op_slots[] = {
    {Py_tp_doc, (void *)"What a stage does; use stoker.ops."},
    {Py_tp_traverse, op_traverse},
    {Py_tp_dealloc, op_dealloc},
    {Py_tp_repr, op_repr},
    {Py_tp_getset, op_getset},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_op_spec = {
    .name = "stoker._stoker.Op",
    .basicsize = sizeof(Op),
    .flags = EXT_TYPE_FLAGS,
    .slots = op_slots,
};
