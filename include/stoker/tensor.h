/*
 * stk_tensor: a view of an array: address, element type, shape, strides.
 *
 * A plain value that owns nothing: whoever hands one out says what keeps the
 * memory alive.
 */
#ifndef STK_TENSOR_H
#define STK_TENSOR_H

#include <stoker/error.h>

STK_BEGIN

#define STK_MAX_NDIM 8

/*    name, value, bytes, text */
#define STK_DTYPE_MAP(X)           \
    X(BOOL, 1, 1, "bool")          \
    X(UINT8, 2, 1, "uint8")        \
    X(INT8, 3, 1, "int8")          \
    X(UINT16, 4, 2, "uint16")      \
    X(INT16, 5, 2, "int16")        \
    X(UINT32, 6, 4, "uint32")      \
    X(INT32, 7, 4, "int32")        \
    X(UINT64, 8, 8, "uint64")      \
    X(INT64, 9, 8, "int64")        \
    X(FLOAT16, 10, 2, "float16")   \
    X(BFLOAT16, 11, 2, "bfloat16") \
    X(FLOAT32, 12, 4, "float32")   \
    X(FLOAT64, 13, 8, "float64")

typedef enum stk_dtype {
    STK_DTYPE_NONE = 0,
#define X(name, value, bytes, text) STK_##name = value,
    STK_DTYPE_MAP(X)
#undef X
} stk_dtype;

/* Element size in bytes, 0 for an unknown type; its name, "none" for an unknown type;
 * and the type of that name, STK_DTYPE_NONE if there is none. */
STK_API size_t stk_dtype_size(stk_dtype dtype);
STK_API const char *stk_dtype_str(stk_dtype dtype);
STK_API stk_dtype stk_dtype_parse(const char *name);

/* What an array looks like, without the memory.  Rows are contiguous (C order). */
typedef struct stk_spec {
    stk_dtype dtype; /* STK_DTYPE_NONE: not known before the data is seen */
    int32_t ndim;
    int64_t shape[STK_MAX_NDIM];
} stk_spec;

typedef struct stk_tensor {
    void *data;
    stk_dtype dtype;
    int32_t ndim;
    int64_t shape[STK_MAX_NDIM];
    int64_t strides[STK_MAX_NDIM]; /* in bytes */
} stk_tensor;

/* Bytes of a contiguous array of that spec.
 * STK_EINVAL: bad dtype, ndim or a negative extent.  STK_ELIMIT: more than SIZE_MAX / 2. */
STK_API STK_NODISCARD stk_err stk_spec_bytes(const stk_spec *spec, size_t *out);
STK_API bool stk_spec_equal(const stk_spec *a, const stk_spec *b);

/* A contiguous view of `data`; `spec` must have passed stk_spec_bytes. */
STK_API stk_tensor stk_tensor_over(void *data, const stk_spec *spec);

/* The view's shape and dtype, as a spec. */
STK_API stk_spec stk_tensor_spec(const stk_tensor *t);
STK_API bool stk_tensor_contiguous(const stk_tensor *t);

/* Writes the elements to `dst`, contiguous, whatever the strides: as many bytes as stk_spec_bytes
 * says.  The two must not overlap. */
STK_API void stk_tensor_pack(const stk_tensor *t, void *dst);

STK_END

#endif /* STK_TENSOR_H */
