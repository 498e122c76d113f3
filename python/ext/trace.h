/* Traces: the functions of the module. */
#ifndef STK_EXT_TRACE_H
#define STK_EXT_TRACE_H

#include "ext.h"

bool ext_trace_add_functions(PyObject *module);

#endif /* STK_EXT_TRACE_H */
