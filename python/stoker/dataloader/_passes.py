"""What loaders share: passes, and what is known of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .._stoker import Stats
    from ..pipeline import Pipeline

__all__ = ["Passes"]


class Passes:
    """Reads pipelines, one a pass; passes are independent of each other."""

    _running: Pipeline | None = None  # of the pass that was begun last
    _ended: Stats | None = None

    def stats(self) -> Stats | None:
        """What each stage of the pass that was begun last did, as Pipeline.stats(); None before the first."""
        running = self._running
        return self._ended if running is None else running.stats()

    def _read(
        self,
        pipeline: Pipeline,
        timeout: float | None,
        leave: Callable[[bool], object] = bool,
    ) -> Iterator[Any]:
        """One pass.  `leave` is called before the pipeline is stopped: whether everything was read."""
        self._running, self._ended = pipeline, None
        finished = False
        try:
            with pipeline.auto_stop():
                try:
                    yield from pipeline.get_iterator(timeout=timeout)
                    finished = True
                finally:
                    leave(finished)
        finally:
            if self._running is pipeline:
                self._running, self._ended = None, pipeline.stats()

    def __getstate__(self) -> dict[str, Any]:
        """Without what belongs to the passes of this process."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_running", "_ended")}
