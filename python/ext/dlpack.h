/*
 * The structs of DLPack 1.1, as published at https://dmlc.github.io/dlpack/latest/c_api.html:
 * the parts that describe arrays in the memory of the CPU.
 */
#ifndef STK_EXT_DLPACK_H
#define STK_EXT_DLPACK_H

#include "ext.h"

#include <stdint.h>

enum {
    DLPACK_CPU = 1,       /* DLDeviceType */
    DLPACK_CUDA_HOST = 3, /* the CPU's memory, pinned */

    DLPACK_INT = 0, /* DLDataTypeCode */
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_BOOL = 6,

    DLPACK_READ_ONLY = 1, /* flags of the versioned kind */
    DLPACK_COPIED = 2,
};

typedef struct dlpack_device {
    int32_t device_type;
    int32_t device_id;
} dlpack_device;

typedef struct dlpack_dtype {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} dlpack_dtype;

typedef struct dlpack_tensor {
    void *data;
    dlpack_device device;
    int32_t ndim;
    dlpack_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements */
    uint64_t byte_offset;
} dlpack_tensor;

/* "dltensor" */
typedef struct dlpack_managed {
    dlpack_tensor tensor;
    void *manager_ctx;
    void (*deleter)(struct dlpack_managed *self);
} dlpack_managed;

/* "dltensor_versioned" */
typedef struct dlpack_versioned {
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct dlpack_versioned *self);
    uint64_t flags;
    dlpack_tensor tensor;
} dlpack_versioned;

/* A capsule over `view`, with a reference of its own on `mem`: the versioned kind, or the legacy
 * one, which cannot say that memory is read-only. */
PyObject *ext_dlpack_capsule(const stk_tensor *view, stk_buffer *mem, bool versioned, bool readonly,
                             bool copied);

#endif /* STK_EXT_DLPACK_H */
