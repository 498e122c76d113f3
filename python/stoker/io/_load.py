"""From a file to an array in one call."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .._check import flag
from ._convert import convert_frames
from ._cuda import no_device
from ._decode import decode_packets, decode_whole
from ._demux import demux_audio, demux_image, demux_video
from ._filters import DEFAULT, get_video_filter_desc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._stoker import CPUBuffer
    from ._convert import StorageType
    from ._config import DecodeConfig, DemuxConfig
    from ._cuda import CUDAConfig
    from ._demux import SourceType
    from ._frames import ImageFrames
    from ._times import Window

__all__ = ["load_audio", "load_image", "load_image_batch", "load_video"]


def load_audio(
    src: SourceType,
    timestamp: Window | None = None,
    *,
    demux_config: DemuxConfig | None = None,
    decode_config: DecodeConfig | None = None,
    filter_desc: str | None = DEFAULT,
    device_config: CUDAConfig | None = None,
    name: str | None = None,
    strict: bool = False,
) -> CPUBuffer:
    """Audio as an array: by default float32, (channels, time).

    The parameters are those of `demux_audio` and `decode_packets`, as are the errors.
    device_config: needs CUDA, else `UnsupportedError`, a RuntimeError.
    """
    no_device(device_config)
    packets = demux_audio(src, timestamp=timestamp, demux_config=demux_config, name=name)
    return convert_frames(decode_whole(packets, filter_desc, decode_config, 0, strict, join=True))


def load_video(
    src: SourceType,
    timestamp: Window | None = None,
    *,
    demux_config: DemuxConfig | None = None,
    decode_config: DecodeConfig | None = None,
    filter_desc: str | None = DEFAULT,
    device_config: CUDAConfig | None = None,
    name: str | None = None,
    strict: bool = False,
) -> CPUBuffer:
    """Video as an array: by default uint8, (frames, height, width, 3).

    The parameters are those of `demux_video` and `decode_packets`, as are the errors.
    """
    no_device(device_config)
    packets = demux_video(src, timestamp=timestamp, demux_config=demux_config, name=name)
    return convert_frames(decode_packets(packets, filter_desc, decode_config, strict=strict))


def load_image(
    src: SourceType,
    *,
    demux_config: DemuxConfig | None = None,
    decode_config: DecodeConfig | None = None,
    filter_desc: str | None = DEFAULT,
    device_config: CUDAConfig | None = None,
    name: str | None = None,
) -> CPUBuffer:
    """An image as an array: by default uint8, (height, width, 3).

    The parameters are those of `demux_image` and `decode_packets`, as are the errors; animated WebP, which FFmpeg
    does not read, is an `UnsupportedError`.
    """
    no_device(device_config)
    packets = demux_image(src, demux_config=demux_config, name=name)
    return convert_frames(decode_packets(packets, filter_desc, decode_config, strict=True))


def _decode_one(
    src: SourceType, demux: DemuxConfig | None, decode: DecodeConfig | None, desc: str | None
) -> ImageFrames:
    return decode_packets(demux_image(src, demux_config=demux), desc, decode, strict=True)


def load_image_batch(
    srcs: Iterable[SourceType],
    *,
    width: int | None,
    height: int | None,
    pix_fmt: str | None = "rgb24",
    demux_config: DemuxConfig | None = None,
    decode_config: DecodeConfig | None = None,
    filter_desc: str | None = DEFAULT,
    device_config: CUDAConfig | None = None,
    storage: StorageType | None = None,
    strict: bool = True,
) -> CPUBuffer:
    """Images as one array: by default uint8, (images, height, width, 3), scaled with black bars.

    The images are decoded by as many threads as there are processors.
    srcs: at least one, in whatever can be iterated.  filter_desc: instead of what width, height and pix_fmt say.
    storage: see `convert_frames`.
    strict: an image that cannot be decoded raises its error; otherwise it is left out and logged, unless none is left.
    """
    no_device(device_config)
    if isinstance(srcs, (str, bytes, bytearray, memoryview, os.PathLike)):
        raise TypeError(f"srcs must be several sources, as a list, not one {type(srcs).__name__}")
    srcs = list(srcs)
    if not srcs:
        raise ValueError("srcs: there is no image to load")
    desc = filter_desc
    if filter_desc == DEFAULT:
        desc = get_video_filter_desc(scale_width=width, scale_height=height, pix_fmt=pix_fmt)
    from concurrent.futures import ThreadPoolExecutor

    threads = min(len(srcs), len(os.sched_getaffinity(0)))
    with ThreadPoolExecutor(threads, "stoker-images") as pool:
        jobs = [pool.submit(_decode_one, src, demux_config, decode_config, desc) for src in srcs]
        return convert_frames(_gather(jobs, flag("strict", strict)), storage)


def _gather(jobs: list[Any], strict: bool) -> list[ImageFrames]:
    frames, errors = [], []
    for i, job in enumerate(jobs):
        error = job.exception()
        if error is None:
            frames.append(job.result())
        elif strict or not isinstance(error, Exception):
            for later in jobs[i:]:
                later.cancel()
            raise error
        else:
            errors.append(error)
    if not frames:
        raise errors[0]
    if errors:
        import logging

        logging.getLogger("stoker.io").warning(
            "%d of %d images were left out; the first: %s", len(errors), len(jobs), errors[0]
        )
    return frames
