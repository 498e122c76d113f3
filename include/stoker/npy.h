/*
 * stk_npy: what the header of a NumPy file says, and where its elements are.
 *
 *     "\x93NUMPY", version, length, Python dict as text, elements
 *
 * (NumPy's documentation, numpy.lib.format, versions 1.0, 2.0 and 3.0.)  The dict is parsed, never
 * evaluated.  Objects and structures are refused: the first would have to be unpickled.
 *
 * Threads: any.
 */
#ifndef STK_NPY_H
#define STK_NPY_H

#include <stoker/tensor.h>

STK_BEGIN

#define STK_NPY_MAX_NDIM 64 /* NumPy's own */
#define STK_NPY_DESCR_SIZE 32

typedef struct stk_npy {
    char descr[STK_NPY_DESCR_SIZE]; /* the element as the file spells it: "<f4", "<M8[ns]" */
    char kind;                      /* b i u f c S U M m V, as NumPy's dtype.kind */
    bool big_endian;
    stk_dtype dtype;  /* STK_DTYPE_NONE: none of ours, or the bytes are in the other order */
    size_t item_size; /* bytes of an element */
    bool fortran;     /* the first index runs fastest */
    int32_t ndim;
    int64_t shape[STK_NPY_MAX_NDIM];
    size_t data_offset; /* the elements, from the first byte of the file */
    size_t data_size;   /* they lie inside the data; more may follow */
} stk_npy;

/* STK_ECORRUPT: no NumPy file, a broken header, fewer bytes than elements; STK_EUNSUPPORTED, with
 * its name: a kind of element or a version that is not read. */
STK_API STK_NODISCARD stk_err stk_npy_parse(const void *data, size_t size, stk_npy *out,
                                            stk_diag *diag);

STK_END

#endif /* STK_NPY_H */
