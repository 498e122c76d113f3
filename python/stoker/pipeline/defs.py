"""What a PipelineBuilder has collected, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ops import Op
from ..source import Source

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


@dataclass(frozen=True)
class SourceConfig:
    source: Source
    continuous: bool = False

    def __repr__(self) -> str:
        continuous = ", continuous=True" if self.continuous else ""
        return f"SourceConfig({self.source!r}{continuous})"


@dataclass(frozen=True)
class PipeConfig:
    """A stage.  None stands for what depends on the op."""

    name: str
    op: Op
    concurrency: int | None = None
    output_order: str = "input"
    on_error: str = "raise"
    max_failures: int | Fraction | None = None

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


@dataclass(frozen=True)
class BatchConfig:
    n: int
    drop_last: bool = False
    keep_empty: bool = False

    def __repr__(self) -> str:
        return f"batch({self.n}, drop_last={self.drop_last}, keep_empty={self.keep_empty})"


@dataclass(frozen=True)
class DisaggregateConfig:
    name: str = "disaggregate"

    def __repr__(self) -> str:
        return "disaggregate()"


@dataclass(frozen=True)
class SinkConfig:
    buffer_size: int


@dataclass(frozen=True)
class PipelineConfig:
    src: SourceConfig
    pipes: tuple[PipeConfig | BatchConfig | DisaggregateConfig, ...]
    sink: SinkConfig

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
