"""From an array to an image file in one call."""

from __future__ import annotations

from .. import _stoker
from ..errors import InvalidArgumentError
from ._codec import VIDEO
from ._encode import Muxer
from ._encode_config import VideoEncodeConfig
from ._frames import VideoFrames

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

__all__ = ["encode_image", "save_image"]


def _picture(data: Any, pix_fmt: str) -> VideoFrames:
    """One frame over the image, with its extents and type checked."""
    if not isinstance(pix_fmt, str):
        raise TypeError(f"pix_fmt must be a str, not {type(pix_fmt).__name__}")
    if hasattr(data, "data_ptr") and hasattr(data, "numpy"):  # a tensor of PyTorch
        data = data.numpy()
    import numpy

    array = numpy.asarray(data)
    if array.ndim not in (2, 3):
        raise InvalidArgumentError(f"an image has 2 or 3 dimensions, not the shape {array.shape}")
    return VideoFrames._hold(
        _stoker.av_frames_over(numpy.ascontiguousarray(array)[None], VIDEO, pix_fmt, 1, 1, 0)
    )


def _write(path: str | os.PathLike[str], frames: VideoFrames, config: VideoEncodeConfig) -> None:
    muxer = Muxer(path)
    encoder = muxer.add_encode_stream(config)
    first, rest = encoder.encode(frames), encoder.flush()
    # A name with a % is a name, and no pattern for many images.
    with muxer.open({"update": "1"} if muxer.format == "image2" else None):
        for packets in (first, rest):
            if packets is not None:
                muxer.write(0, packets)


def save_image(
    path: str | os.PathLike[str],
    data: Any,
    pix_fmt: str = "rgb24",
    *,
    bit_rate: int = -1,
    compression_level: int = -1,
    qscale: int = -1,
    gop_size: int = -1,
    max_b_frames: int = -1,
    colorspace: str | None = None,
    color_primaries: str | None = None,
    color_trc: str | None = None,
) -> None:
    """Writes an array to an image file, whose ending says which kind it is.

    data: "rgb24", "bgr24": uint8, (height, width, 3); "gray": uint8, (height, width); "gray16", "gray16le",
        "gray16be": uint16, (height, width), whose bytes are what is written; "yuv444p": uint8, (3, height, width);
        other formats as `convert_frames` gives them.  An array, or a tensor of PyTorch.
    pix_fmt: what the file's encoder takes of these: "rgb24" and "gray16be" for PNG, "yuvj444p" for JPEG.
    The other parameters are those of `video_encode_config`.
    Errors: `InvalidArgumentError` (a ValueError): the array is not of the format, or no format goes by that ending;
        `UnsupportedError` (a RuntimeError): the encoder does not take it; the text lists what it takes.
    """
    frames = _picture(data, pix_fmt)
    config = VideoEncodeConfig(
        height=frames.height,
        width=frames.width,
        frame_rate=1,
        pix_fmt=pix_fmt,
        bit_rate=bit_rate,
        compression_level=compression_level,
        qscale=qscale,
        gop_size=gop_size,
        max_b_frames=max_b_frames,
        colorspace=colorspace,
        color_primaries=color_primaries,
        color_trc=color_trc,
    )
    _write(path, frames, config)


def encode_image(
    path: str | os.PathLike[str],
    data: Any,
    pix_fmt: str = "rgb24",
    *,
    encode_config: VideoEncodeConfig | None = None,
) -> None:
    """The same as `save_image`, with the options of encoding as one value.

    encode_config: what `video_encode_config` makes, for the size and the pix_fmt of `data`; by default the encoder's
        own choices.
    """
    if encode_config is None:
        return save_image(path, data, pix_fmt)
    if not isinstance(encode_config, VideoEncodeConfig):
        raise TypeError(
            f"encode_config must be made by video_encode_config(), not {type(encode_config).__name__}"
        )
    _write(path, _picture(data, pix_fmt), encode_config)
