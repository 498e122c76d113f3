/* What every public header needs: visibility, attributes, timeouts. */
#ifndef STK_BASE_H
#define STK_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define STK_API __attribute__((visibility("default")))
#define STK_NODISCARD __attribute__((warn_unused_result))
#define STK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define STK_API
#define STK_NODISCARD
#define STK_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
#define STK_BEGIN extern "C" {
#define STK_END }
#else
#define STK_BEGIN
#define STK_END
#endif

/* A timeout in nanoseconds, or one of these two. */
#define STK_NOWAIT INT64_C(0)
#define STK_FOREVER INT64_C(-1)

STK_BEGIN

/* "0.1.0"; static storage. */
STK_API const char *stk_version(void);

STK_END

#endif /* STK_BASE_H */
