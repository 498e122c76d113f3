/*
 * The module's half of each public function: mod_x does what stk_x promises (include/stoker/av*.h).
 *
 * Hidden, and named otherwise than the public ones, which another library in the process exports.
 */
#ifndef STK_AV_MODULE_H
#define STK_AV_MODULE_H

#include "av/table.h"

#define F(name, params, args) STK_NODISCARD stk_err mod_##name params;
#define Q(result, name, params, args) result mod_##name params;
#define D(name, params, args) void mod_##name params;
#define U(name, type) void mod_##name(type **object);
STK_AV_CALLS(F)
STK_AV_CHECKS(F)
STK_AV_QUERIES(Q)
STK_AV_DEEDS(D)
STK_AV_ENDS(U)
#undef F
#undef Q
#undef D
#undef U

#endif /* STK_AV_MODULE_H */
