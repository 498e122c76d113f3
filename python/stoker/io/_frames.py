"""Frames: decoded audio, video, or one image."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from .. import _stoker
from ._cell import Consumable
from ._codec import AUDIO, IMAGE, VIDEO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, overload
else:

    def overload(function: object) -> object:
        return function


__all__ = ["AudioFrames", "ImageFrames", "VideoFrames"]


class Frames(Consumable):
    """They do not change, so any number of threads may use them at once."""

    __slots__ = ()

    def __dlpack__(self, **options: Any) -> Any:
        """The array of `convert_frames`, in new memory, by the protocol of arrays: so `numpy.from_dlpack` and native
        ops of a pipeline take frames as they are.  The frames are not consumed."""
        return _stoker.av_convert((self._handle,), False, None).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # memory of the CPU

    def _get(self, name: str) -> Any:
        return _stoker.av_frames_info(self._handle)[name]

    @property
    def num_failed(self) -> int:
        """Packets before these frames that could not be decoded and were left out."""
        return int(self._get("num_failed"))

    @property
    def time_base(self) -> tuple[int, int]:
        """What `get_pts()` counts in, in seconds."""
        num, den = self._get("time_base") or (0, 1)
        return num, den

    def _seconds(self) -> list[float]:
        num, den = self.time_base
        return [float("nan") if pts is None else pts * num / den for pts in self._pts()]

    def _pts(self) -> list[int | None]:
        return _stoker.av_frames_times(self._handle)

    def _shown(self) -> list[str]:
        times = self._seconds()
        return [f"timestamp=[{times[0]:.3f}, {times[-1]:.3f}]"] if times else []


class AudioFrames(Frames):
    """Decoded audio."""

    __slots__ = ()

    @property
    def num_frames(self) -> int:
        """Samples of each channel."""
        return int(self._get("num_samples"))

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return int(self._get("sample_rate"))

    @property
    def num_channels(self) -> int:
        return int(self._get("num_channels"))

    @property
    def sample_fmt(self) -> str:
        """FFmpeg's name of the sample format."""
        return str(self._get("sample_fmt"))

    def __len__(self) -> int:
        return self.num_frames

    def __repr__(self) -> str:
        parts = [f"num_frames={self.num_frames}", f'sample_format="{self.sample_fmt}"']
        parts += [f"sample_rate={self.sample_rate}", f"num_channels={self.num_channels}"]
        return f"AudioFrames<{', '.join(parts + self._shown())}>"


class _Pictures(Frames):
    __slots__ = ()

    @property
    def width(self) -> int:
        """Pixels."""
        return int(self._get("width"))

    @property
    def height(self) -> int:
        """Pixels."""
        return int(self._get("height"))

    @property
    def pix_fmt(self) -> str:
        """FFmpeg's name of the pixel format."""
        return str(self._get("pix_fmt"))

    @property
    def num_planes(self) -> int:
        return int(self._get("num_planes"))

    def _size(self) -> list[str]:
        info = _stoker.av_frames_info(self._handle)
        return [
            f'pixel_format="{info["pix_fmt"]}"',
            f"num_planes={info['num_planes']}",
            f"width={info['width']}",
            f"height={info['height']}",
        ]


class VideoFrames(_Pictures):
    """Decoded video: a sequence of frames.  An index gives an `ImageFrames`, a slice or a list of indices a
    `VideoFrames`; both share the data, and stay when these frames were consumed."""

    __slots__ = ()

    @property
    def num_frames(self) -> int:
        return int(self._get("num_frames"))

    @property
    def frame_rate(self) -> tuple[int, int] | None:
        """Frames a second, as numerator and denominator; None: not known."""
        rate: tuple[int, int] | None = self._get("frame_rate")
        return rate

    def get_pts(self) -> list[int | None]:
        """When each frame is shown, in units of `time_base`; None: not known."""
        return self._pts()

    def get_timestamps(self) -> list[float]:
        """The same in seconds; NaN: not known."""
        return self._seconds()

    def __len__(self) -> int:
        return self.num_frames

    @overload
    def __getitem__(self, key: int) -> ImageFrames: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int]) -> VideoFrames: ...
    def __getitem__(self, key: int | slice | Sequence[int]) -> ImageFrames | VideoFrames:
        handle = self._handle
        n = int(_stoker.av_frames_info(handle)["num_frames"])
        if isinstance(key, slice):
            picked = tuple(range(*key.indices(n)))
        elif isinstance(key, SupportsIndex):
            one = _inside(index(key), n)
            return ImageFrames._hold(_stoker.av_frames_pick(handle, (one,), IMAGE))
        else:
            picked = tuple(_inside(index(i), n) for i in key)
        return VideoFrames._hold(_stoker.av_frames_pick(handle, picked, VIDEO))

    def __repr__(self) -> str:
        return f"VideoFrames<{', '.join([f'num_frames={len(self)}', *self._size(), *self._shown()])}>"


def _inside(i: int, n: int) -> int:
    if not -n <= i < n:
        raise IndexError(f"there is no frame {i}, of {n}")
    return i % n


class ImageFrames(_Pictures):
    """One decoded image."""

    __slots__ = ()

    @property
    def pts(self) -> float:
        """When it is shown, in seconds; NaN: not known."""
        times = self._seconds()
        return times[0] if times else float("nan")

    @property
    def metadata(self) -> dict[str, str]:
        """What FFmpeg found beside the pixels, EXIF for example."""
        return _stoker.av_frames_metadata(self._handle)

    def __repr__(self) -> str:
        return f"ImageFrames<{', '.join(self._size())}>"


_CLASSES: dict[int, type[Frames]] = {AUDIO: AudioFrames, VIDEO: VideoFrames, IMAGE: ImageFrames}


def wrap(handle: _stoker.AvHandle) -> Any:
    """The Frames object of what the extension made."""
    return _CLASSES[_stoker.av_frames_info(handle)["media"]]._hold(handle)
