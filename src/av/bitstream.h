/* Bitstream filters (include/stoker/av_demux.h). */
#ifndef STK_AV_BITSTREAM_H
#define STK_AV_BITSTREAM_H

#include "av/packet_list.h"

struct stk_bsf {
    atomic_flag busy; /* guards everything below */
    stk_av_codec *codec;
    char *text;
    AVBSFContext *context;
    AVPacket *packet;
};

#endif /* STK_AV_BITSTREAM_H */
