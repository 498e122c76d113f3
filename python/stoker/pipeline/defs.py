"""What a PipelineBuilder has collected, as plain values."""

from __future__ import annotations

from .._value import Value
from ..ops import Op
from ..source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

__all__ = [
    "BatchConfig",
    "DisaggregateConfig",
    "PipeConfig",
    "PipelineConfig",
    "SinkConfig",
    "SourceConfig",
]


class SourceConfig(Value):
    __slots__ = ("source", "continuous")

    source: Source
    continuous: bool

    def __init__(self, source: Source, continuous: bool = False) -> None:
        self._set(source=source, continuous=continuous)

    def __repr__(self) -> str:
        continuous = ", continuous=True" if self.continuous else ""
        return f"SourceConfig({self.source!r}{continuous})"


class PipeConfig(Value):
    """A stage.  None stands for what depends on the op."""

    __slots__ = ("name", "op", "concurrency", "output_order", "on_error", "max_failures")

    name: str
    op: Op
    concurrency: int | None
    output_order: str
    on_error: str
    max_failures: int | Fraction | None

    def __init__(
        self,
        name: str,
        op: Op,
        concurrency: int | None = None,
        output_order: str = "input",
        on_error: str = "raise",
        max_failures: int | Fraction | None = None,
    ) -> None:
        self._set(
            name=name,
            op=op,
            concurrency=concurrency,
            output_order=output_order,
            on_error=on_error,
            max_failures=max_failures,
        )

    def __repr__(self) -> str:
        text = f"{self.name}({self.op!r}"
        if self.concurrency is not None:
            text += f", concurrency={self.concurrency}"
        if self.output_order != "input":
            text += f", output_order={self.output_order!r}"
        if self.on_error != "raise":
            text += f", on_error={self.on_error!r}"
        if self.max_failures is not None:
            text += f", max_failures={self.max_failures}"
        return f"{text})"


class BatchConfig(Value):
    __slots__ = ("n", "drop_last", "keep_empty")

    n: int
    drop_last: bool
    keep_empty: bool

    def __init__(self, n: int, drop_last: bool = False, keep_empty: bool = False) -> None:
        self._set(n=n, drop_last=drop_last, keep_empty=keep_empty)

    def __repr__(self) -> str:
        return f"batch({self.n}, drop_last={self.drop_last}, keep_empty={self.keep_empty})"


class DisaggregateConfig(Value):
    __slots__ = ("name",)

    name: str

    def __init__(self, name: str = "disaggregate") -> None:
        self._set(name=name)

    def __repr__(self) -> str:
        return "disaggregate()"


class SinkConfig(Value):
    __slots__ = ("buffer_size",)

    buffer_size: int

    def __init__(self, buffer_size: int) -> None:
        self._set(buffer_size=buffer_size)


class PipelineConfig(Value):
    __slots__ = ("src", "pipes", "sink")

    src: SourceConfig
    pipes: tuple[PipeConfig | BatchConfig | DisaggregateConfig, ...]
    sink: SinkConfig

    def __init__(
        self,
        src: SourceConfig,
        pipes: tuple[PipeConfig | BatchConfig | DisaggregateConfig, ...],
        sink: SinkConfig,
    ) -> None:
        self._set(src=src, pipes=pipes, sink=sink)

    def __repr__(self) -> str:
        return describe(self.src, self.pipes, self.sink)


def describe(
    src: SourceConfig | None,
    pipes: tuple[PipeConfig | BatchConfig | DisaggregateConfig, ...],
    sink: SinkConfig | None,
) -> str:
    """The text of a configuration that may not be complete."""
    lines = ["PipelineConfig", f"  Source: {src or '(none)'}", "  Pipes:"]
    lines += [f"    {pipe!r}" for pipe in pipes] or ["    (none)"]
    lines.append(f"  Sink: {sink or '(none)'}")
    return "\n".join(lines)
