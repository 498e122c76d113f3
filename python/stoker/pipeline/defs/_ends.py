"""Whole pipelines, where they begin and where they end, as plain values."""

from __future__ import annotations

from ... import _check
from ..._value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Iterable, Sequence
    from typing import Any, Generic

    from typing_extensions import TypeVar

    from ...source import Source
    from ._stages import Stage
else:
    from ..._generic import Generic, TypeVar

T = TypeVar("T", covariant=True, default="Any")


class SourceConfig(Value, Generic[T]):
    """What items come from.  continuous: over and over, with the end of an epoch after each pass."""

    __slots__ = ("source", "continuous")
    __module__ = "stoker.pipeline.defs"

    source: Iterable[T] | AsyncIterable[T] | Source
    continuous: bool

    def __init__(
        self, source: Iterable[T] | AsyncIterable[T] | Source, continuous: bool = False
    ) -> None:
        self._set(source=source, continuous=continuous)

    def __repr__(self) -> str:
        from ._text import source_text

        return source_text(self)


class MergeConfig(Value, Generic[T]):
    """Several pipelines, which take the place of a source; their sinks have no effect.

    `op`: `async def op(info, input_queues, output_queue)`; None passes items on as they arrive.
    """

    __slots__ = ("pipeline_configs", "op")
    __module__ = "stoker.pipeline.defs"

    pipeline_configs: tuple[PipelineConfig[Any], ...]
    op: Callable[..., Any] | None

    def __init__(
        self,
        pipeline_configs: Sequence[PipelineConfig[Any]],
        op: Callable[..., Any] | None = None,
    ) -> None:
        configs = tuple(pipeline_configs)
        if not configs:
            raise ValueError("a merge needs at least one upstream pipeline")
        self._set(pipeline_configs=configs, op=op)

    @property
    def continuous(self) -> bool:
        """Whether the pipelines are.  ValueError: some are, some are not."""
        modes = [config.src.continuous for config in self.pipeline_configs]
        if any(modes) != all(modes):
            numbers = " and ".join(str(i) for i, mode in enumerate(modes, 1) if mode)
            raise ValueError(
                f"Mixed continuous mode: of the {len(modes)} pipelines of a merge, {numbers} "
                "would never end, and the others would"
            )
        return modes[0]

    def __repr__(self) -> str:
        from ._text import merge_lines

        return "\n".join(merge_lines(self))


class SinkConfig(Value, Generic[T]):
    """The end.  buffer_size: how many results may wait for the reader."""

    __slots__ = ("buffer_size",)
    __module__ = "stoker.pipeline.defs"

    buffer_size: int

    def __init__(self, buffer_size: int = 3) -> None:
        self._set(buffer_size=_check.integer("buffer_size", buffer_size, 1))


class PipelineConfig(Value, Generic[T]):
    """A whole pipeline; build_pipeline() makes one of it."""

    __slots__ = ("src", "pipes", "sink")
    __module__ = "stoker.pipeline.defs"

    src: SourceConfig[Any] | MergeConfig[Any]
    pipes: tuple[Stage, ...]
    sink: SinkConfig[Any]

    def __init__(
        self,
        src: SourceConfig[Any] | MergeConfig[Any],
        pipes: Sequence[Stage],
        sink: SinkConfig[Any],
    ) -> None:
        self._set(src=src, pipes=tuple(pipes), sink=sink)

    def __repr__(self) -> str:
        from ._text import describe

        return describe("PipelineConfig", self.src, self.pipes, self.sink)
