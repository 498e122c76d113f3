"""Stages, as plain values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum

from ... import _check
from ..._value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from fractions import Fraction
    from typing import Any, Generic, Literal, TypeAlias, Union

    from typing_extensions import TypeVar

    from ._places import ExecutorConfig, PlacementConfig

    OnError = Literal["raise", "skip", "substitute"]
    OutputOrder = Literal["completion", "input"]
    Stage: TypeAlias = Union[
        "PipeConfig",
        "BatchConfig",
        "AggregateConfig",
        "DisaggregateConfig",
        "PathVariantsConfig",
        PlacementConfig,
    ]
else:
    from ..._generic import Generic, TypeVar

T = TypeVar("T")
T_in = TypeVar("T_in", contravariant=True, default="Any")
T_out = TypeVar("T_out", covariant=True, default="Any")


class Aggregator(ABC, Generic[T_in, T_out]):
    """Makes items of several items.  One stage calls it, item by item."""

    __module__ = "stoker.pipeline.defs"

    @abstractmethod
    def accumulate(self, item: T_in, /) -> T_out | None:
        """Takes an item; gives what is complete with it, or None.  An exception fails the stage."""

    @abstractmethod
    def flush(self) -> T_out | None:
        """What is left at the end of an epoch or of everything, or None; forgets it."""


class Collate(Aggregator[T, "list[T]"]):
    """Lists of n items; the last one may be shorter."""

    __module__ = "stoker.pipeline.defs"

    def __init__(self, n: int) -> None:
        self.n = _check.integer("n", n, 1)
        self._items: list[T] = []

    def accumulate(self, item: T, /) -> list[T] | None:
        self._items.append(item)
        return self.flush() if len(self._items) >= self.n else None

    def flush(self) -> list[T] | None:
        items, self._items = self._items, []
        return items or None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Collate)
        return (self.n, self._items) == (other.n, other._items)

    def __hash__(self) -> int:
        return hash((type(self), self.n))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n})"


class _PipeType(Enum):
    """In which order a stage gives its results."""

    Pipe = "completion"
    OrderedPipe = "input"


_PipeType.__module__ = "stoker.pipeline.defs"


class _PipeArgs(Value):
    """How a stage runs its op.  concurrency None: as many as the run has threads."""

    __slots__ = ("op", "executor", "concurrency", "op_requires_eof")
    __module__ = "stoker.pipeline.defs"

    op: Any
    executor: Executor | ExecutorConfig | None
    concurrency: int | None
    op_requires_eof: bool

    def __init__(
        self,
        op: Any,
        executor: Executor | ExecutorConfig | None = None,
        concurrency: int | None = 1,
        op_requires_eof: bool = False,
    ) -> None:
        self._set(op=op, executor=executor, concurrency=concurrency, op_requires_eof=op_requires_eof)


class PipeConfig(Value, Generic[T_in, T_out]):
    """A stage that handles items one by one; made with Pipe() or PipelineBuilder.pipe()."""

    __slots__ = ("name", "_type", "_args", "_max_failures", "on_error", "retries", "timeout")
    __module__ = "stoker.pipeline.defs"

    name: str
    _type: _PipeType
    _args: _PipeArgs
    _max_failures: int | Fraction | None
    on_error: OnError
    retries: int
    timeout: float | None

    def __init__(
        self,
        name: str,
        _type: _PipeType,
        _args: _PipeArgs,
        _max_failures: int | Fraction | None = None,
        on_error: OnError = "skip",
        retries: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._set(
            name=name,
            _type=_type,
            _args=_args,
            _max_failures=_max_failures,
            on_error=on_error,
            retries=retries,
            timeout=timeout,
        )

    @property
    def op(self) -> Any:
        return self._args.op

    @property
    def executor(self) -> Executor | ExecutorConfig | None:
        return self._args.executor

    @property
    def concurrency(self) -> int | None:
        """None: as many as the run has threads, which only ops of stoker.ops can."""
        return self._args.concurrency

    @property
    def output_order(self) -> OutputOrder:
        return "input" if self._type is _PipeType.OrderedPipe else "completion"

    @property
    def max_failures(self) -> int | Fraction | None:
        """None: the limit of the whole pipeline counts, where failures are skipped at all."""
        return self._max_failures

    def __repr__(self) -> str:
        from ._text import pipe_text

        return pipe_text(self)


class BatchConfig(Value):
    """Batches of n samples, by planned position."""

    __slots__ = ("n", "drop_last", "keep_empty")
    __module__ = "stoker.pipeline.defs"
    name = "batch"

    n: int
    drop_last: bool
    keep_empty: bool

    def __init__(self, n: int, drop_last: bool = False, keep_empty: bool = False) -> None:
        self._set(
            n=_check.integer("n", n, 1, 1 << 20),
            drop_last=_check.flag("drop_last", drop_last),
            keep_empty=_check.flag("keep_empty", keep_empty),
        )

    def __repr__(self) -> str:
        return f"batch({self.n}, drop_last={self.drop_last}, keep_empty={self.keep_empty})"


class AggregateConfig(Value, Generic[T_out]):
    """A stage that makes items of several; the aggregator is shared by all pipelines of the config."""

    __slots__ = ("name", "op", "drop_last")
    __module__ = "stoker.pipeline.defs"

    name: str
    op: Aggregator[Any, Any]
    drop_last: bool

    def __init__(self, name: str, op: Aggregator[Any, Any], drop_last: bool = False) -> None:
        self._set(name=name, op=op, drop_last=drop_last)

    def __repr__(self) -> str:
        from ._text import aggregate_text

        return aggregate_text(self)


class DisaggregateConfig(Value, Generic[T_out]):
    """A stage that gives the items of each list, or the samples of each batch."""

    __slots__ = ("name",)
    __module__ = "stoker.pipeline.defs"

    name: str

    def __init__(self, name: str = "disaggregate") -> None:
        self._set(name=name)

    def __repr__(self) -> str:
        return f"{self.name}()"


class PathVariantsConfig(Value, Generic[T_out]):
    """Several chains of stages, of which a router picks one for each item."""

    __slots__ = ("name", "router", "paths", "batched")
    __module__ = "stoker.pipeline.defs"

    name: str
    router: Callable[[Any], Any]
    paths: tuple[tuple[Stage, ...], ...]
    batched: bool

    def __init__(
        self,
        name: str,
        router: Callable[[Any], Any],
        paths: Sequence[Sequence[Stage]],
        batched: bool = False,
    ) -> None:
        self._set(name=name, router=router, paths=tuple(tuple(path) for path in paths), batched=batched)

    def __repr__(self) -> str:
        from ._text import stage_lines

        return "\n".join(stage_lines(self))
