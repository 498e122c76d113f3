"""Single frames out of packets of video."""

from __future__ import annotations

from operator import index

from .. import _stoker
from ._codec import IMAGE
from ._decode import make_decoder, report
from ._filters import DEFAULT, get_video_filter_desc
from ._frames import ImageFrames
from ._packets import VideoPackets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._config import DecodeConfig

__all__ = ["sample_decode_video"]


def _numbers(indices: Sequence[int], n: int) -> tuple[int, ...]:
    numbers = tuple(index(i) for i in indices)
    if not numbers:
        raise ValueError("indices: there are none")
    for i in numbers:
        if not 0 <= i < n:
            raise IndexError(f"indices: there is no frame {i}, of {n}")
    for a, b in zip(numbers, numbers[1:], strict=False):
        if a >= b:
            raise ValueError(f"indices must ascend, and {b} comes after {a}")
    return numbers


def sample_decode_video(
    packets: VideoPackets,
    indices: Sequence[int],
    *,
    decode_config: DecodeConfig | None = None,
    filter_desc: str | None = DEFAULT,
    strict: bool = False,
) -> list[ImageFrames]:
    """Frames of the given numbers, as `decode_packets(packets)[i]` gives them; the packets are consumed.

    Only what the frames need is decoded: from the key frame before each.  Where times do not tell which packet a frame
    is (raw streams, AVI with B-frames, pictures in two packets), everything up to the last one is.
    indices: ascending, counted in the window of the packets, in the order in which the frames are shown.
    filter_desc: filters for each of these frames, which give one frame for one; by default those of
        `get_video_filter_desc()`.
    strict: a packet on the way that cannot be decoded raises `CorruptError`; otherwise it is logged, and is an error
        only if one of these frames cannot be decoded.
    Errors: `ValueError`: no indices, or not ascending; `IndexError`: there is no such frame; those of `decode_packets`.
    """
    if not isinstance(packets, VideoPackets):
        raise TypeError(f"expected VideoPackets, not {type(packets).__name__}")
    numbers = _numbers(indices, len(packets))
    desc = get_video_filter_desc() if filter_desc == DEFAULT else filter_desc
    decoder = make_decoder(packets._known(), desc, decode_config, strict, 0)
    handle = _stoker.av_decoder_pick(decoder, packets._take(), numbers)
    report(_stoker.av_frames_info(handle)["num_failed"])
    picked = range(len(numbers))
    return [ImageFrames._hold(_stoker.av_frames_pick(handle, (i,), IMAGE)) for i in picked]
