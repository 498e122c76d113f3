/* The helper's side of an isolated op. */
#ifndef STK_OPS_SERVE_H
#define STK_OPS_SERVE_H

#include <stoker/error.h>

/* Makes the op that the hello asks for, and runs it for each request, until the other side closes
 * the socket (STK_OK) or says what cannot be understood (STK_EINVAL).  STK_ENOMEM, STK_EIO: it
 * could not even say so. */
STK_NODISCARD stk_err stk_serve(int socket, int memory);

#endif /* STK_OPS_SERVE_H */
