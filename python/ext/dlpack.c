#include "ext.h"

#include "dlpack.h"

/* One allocation: whichever struct the capsule is of, what it points to, and what it keeps. */
typedef struct holder {
    union {
        dlpack_managed legacy;
        dlpack_versioned versioned;
    } as;
    int64_t shape[STK_MAX_NDIM];
    int64_t strides[STK_MAX_NDIM];
    stk_buffer *mem;
} holder;

static const char LEGACY[] = "dltensor", VERSIONED[] = "dltensor_versioned";

/* Consumers drop tensors on threads of theirs, without the GIL: nothing here is Python's. */
static void holder_free(holder *h)
{
    stk_buffer_unref(&h->mem);
    PyMem_RawFree(h);
}

static void legacy_delete(dlpack_managed *self)
{
    holder_free(self->manager_ctx);
}

static void versioned_delete(dlpack_versioned *self)
{
    holder_free(self->manager_ctx);
}

/* A capsule that was consumed carries another name, and its tensor another owner. */
static void capsule_free(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, LEGACY)) {
        dlpack_managed *m = PyCapsule_GetPointer(capsule, LEGACY);
        m->deleter(m);
    }
    else if (PyCapsule_IsValid(capsule, VERSIONED)) {
        dlpack_versioned *m = PyCapsule_GetPointer(capsule, VERSIONED);
        m->deleter(m);
    }
}

static uint8_t code_of(stk_dtype dtype)
{
    switch (dtype) {
    case STK_BOOL: return DLPACK_BOOL;
    case STK_UINT8:
    case STK_UINT16:
    case STK_UINT32:
    case STK_UINT64: return DLPACK_UINT;
    case STK_FLOAT16:
    case STK_FLOAT32:
    case STK_FLOAT64: return DLPACK_FLOAT;
    case STK_BFLOAT16: return DLPACK_BFLOAT;
    default: return DLPACK_INT;
    }
}

static dlpack_tensor describe(holder *h, const stk_tensor *view)
{
    const int64_t item = (int64_t)stk_dtype_size(view->dtype);
    for (int32_t i = 0; i < view->ndim; i++) {
        h->shape[i] = view->shape[i];
        h->strides[i] = view->strides[i] / item;
    }
    return (dlpack_tensor){
        .data = view->data,
        .device = {.device_type = DLPACK_CPU},
        .ndim = view->ndim,
        .dtype = {.code = code_of(view->dtype), .bits = (uint8_t)(8 * item), .lanes = 1},
        .shape = h->shape,
        .strides = h->strides,
    };
}

PyObject *ext_dlpack_capsule(const stk_tensor *view, stk_buffer *mem, bool versioned, bool readonly,
                             bool copied)
{
    holder *h = PyMem_RawCalloc(1, sizeof(*h));
    if (!h) return PyErr_NoMemory();
    if (versioned) {
        h->as.versioned = (dlpack_versioned){
            .major = 1,
            .minor = 1,
            .manager_ctx = h,
            .deleter = versioned_delete,
            .flags = (readonly ? DLPACK_READ_ONLY : 0) | (copied ? DLPACK_COPIED : 0),
            .tensor = describe(h, view),
        };
    }
    else {
        h->as.legacy = (dlpack_managed){
            .tensor = describe(h, view),
            .manager_ctx = h,
            .deleter = legacy_delete,
        };
    }
    h->mem = stk_buffer_ref(mem);

    PyObject *capsule = PyCapsule_New(&h->as, versioned ? VERSIONED : LEGACY, capsule_free);
    if (!capsule) holder_free(h);
    return capsule;
}
