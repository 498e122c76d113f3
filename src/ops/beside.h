/* Where what is installed together with this library may lie: modules, programs. */
#ifndef STK_OPS_BESIDE_H
#define STK_OPS_BESIDE_H

#include <stoker/base.h>

/* True: found. */
typedef bool stk_look_fn(void *ctx, const char *folder);

/* Shows `look` one folder after the other, until it says true: that of the library, the Python
 * extension or the program that this code is linked into, and those that installations put beside
 * it; last LIBDIR/stoker.  False: it is in none. */
bool stk_beside(stk_look_fn *look, void *ctx);

#endif /* STK_OPS_BESIDE_H */
