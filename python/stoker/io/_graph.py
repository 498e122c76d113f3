"""Filters between several inputs and outputs."""

from __future__ import annotations

import sys

from .. import _stoker
from .._check import integer
from ..errors import InvalidArgumentError, NotFoundError
from ._frames import AudioFrames, Frames, VideoFrames, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._frames import ImageFrames

__all__ = ["FilterGraph", "UnknownLabelError"]


class UnknownLabelError(InvalidArgumentError, IndexError):
    """The graph has no such input or output."""


def _unknown(error: NotFoundError) -> UnknownLabelError:
    return UnknownLabelError(str(error))


class FilterGraph:
    """FFmpeg's filters between any number of inputs and outputs.

        FilterGraph("buffer@a=...[a];buffer@b=...[b];[a][b]hstack,buffersink@both")

    desc: all of it, in FFmpeg's syntax; `buffer` and `abuffer` (see `get_buffer_desc`, `get_abuffer_desc`) are
        inputs, `buffersink` and `abuffersink` outputs.  Where there are several, `@` and a label tell them apart.
    Errors: `InvalidArgumentError`, a ValueError, with FFmpeg's words.

    Filters run when frames are asked for.  Frames that wait for those of another input are kept.  One thread at a time
    may use it: a second one gets a `BusyError`.
    """

    __slots__ = ("__weakref__", "_core")

    def __init__(self, desc: str) -> None:
        if not isinstance(desc, str):
            raise TypeError(f"desc must be a str, not {type(desc).__name__}")
        self._core = _stoker.av_graph(desc)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs: "buffer@a"."""
        return tuple(_stoker.av_graph_names(self._core, False))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs: "buffersink@both"."""
        return tuple(_stoker.av_graph_names(self._core, True))

    def add_frames(self, frames: AudioFrames | VideoFrames | ImageFrames, key: str | None = None) -> None:
        """Puts frames in, which are consumed.

        key: the input, "buffer@a" or just "a"; None: the only one.
        Errors: `UnknownLabelError`, an IndexError; `InvalidArgumentError`: there are several inputs, the frames are not
        such as the input was described with, or the graph was flushed.
        """
        if not isinstance(frames, Frames):
            raise TypeError(f"expected frames, not {type(frames).__name__}")
        handle = frames._take()
        try:
            _stoker.av_graph_add(self._core, key, handle)
        except NotFoundError as error:
            frames._give_back(handle)
            raise _unknown(error) from None
        except BaseException:
            frames._give_back(handle)
            raise

    def get_frames(
        self, key: str | None = None, *, num_frames: int = -1
    ) -> AudioFrames | VideoFrames | None:
        """What an output can give of the frames that were put in; None: nothing.

        key: the output, "buffersink@both" or just "both"; None: the only one.
        num_frames: at most so many (video: frames, audio: FFmpeg's blocks of samples); -1: all, up to 4 GiB.
        Errors: `UnknownLabelError`, an IndexError; `InvalidArgumentError`: there are several outputs; `LimitError`:
        more than 4 GiB, as of sources that do not end.
        """
        count = integer("num_frames", num_frames, -1, sys.maxsize)
        if count == 0:
            raise ValueError("num_frames must be -1 or at least 1, not 0")
        try:
            handle = _stoker.av_graph_get(self._core, key, max(count, 0), 0 if count < 0 else sys.maxsize)
        except NotFoundError as error:
            raise _unknown(error) from None
        frames: AudioFrames | VideoFrames = wrap(handle)
        return frames if len(frames) else None

    def flush(self) -> None:
        """No more frames come in: what filters hold back can be had."""
        _stoker.av_graph_flush(self._core)

    def dump(self) -> str:
        """A drawing of the graph."""
        return _stoker.av_graph_dump(self._core)

    def __repr__(self) -> str:
        return f"FilterGraph<{', '.join(self.inputs)} -> {', '.join(self.outputs)}>"
