#include "av/module.h"

#include "av/call.h"

/* Found by its name, STK_AV_SYMBOL: the only thing that a module exports. */
extern STK_API const stk_av_table stk_av_module;

const stk_av_table stk_av_module = {.built_for = STK_AV_BUILD,
                                    .size = sizeof(stk_av_table),
                                    .start = stk_av_call_start,
#define F(name, params, args) .name = mod_##name,
#define Q(result, name, params, args) .name = mod_##name,
#define U(name, type) .name = mod_##name,
                                    STK_AV_CALLS(F) STK_AV_CHECKS(F) STK_AV_QUERIES(Q)
                                        STK_AV_DEEDS(F) STK_AV_ENDS(U)
#undef F
#undef Q
#undef U
};
