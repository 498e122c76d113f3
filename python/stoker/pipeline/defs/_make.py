"""Makes stages, and checks them."""

from __future__ import annotations

from ... import _check
from .. import _kinds
from ._ends import MergeConfig, PipelineConfig
from ._places import ExecutorConfig, PlacementConfig
from ._stages import (
    AggregateConfig,
    Aggregator,
    BatchConfig,
    Collate,
    DisaggregateConfig,
    PathVariantsConfig,
    PipeConfig,
    _PipeArgs,
    _PipeType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Executor
    from fractions import Fraction
    from typing import Any, Final

    from ._stages import OnError, OutputOrder, Stage

_MAX_NATIVE: Final = 1024  # STK_MAX_CONCURRENCY
_MAX_RETRIES: Final = 2**31 - 1


class _DependsOnTheOp:
    """The default of an argument whose value, when it is not passed, depends on the op."""

    def __repr__(self) -> str:
        return "<depends on the op>"


DEPENDS: Final[Any] = _DependsOnTheOp()


def Pipe(
    op: object,
    /,
    *,
    concurrency: int = DEPENDS,
    executor: Executor | ExecutorConfig | None = None,
    name: str | None = None,
    output_order: OutputOrder = DEPENDS,
    max_failures: int | Fraction | None = None,
    on_error: OnError = DEPENDS,
    retries: int = 0,
    timeout: float | None = None,
) -> PipeConfig:
    """A stage; PipelineBuilder.pipe() says what the arguments mean."""
    kind = _kinds.kind_of(op)
    native = kind == "native"
    if concurrency is not DEPENDS:
        concurrency = _check.integer("concurrency", concurrency, 1, _MAX_NATIVE if native else None)
    if output_order is DEPENDS:
        output_order = "input" if native else "completion"
    _check.choice("output_order", output_order, ("completion", "input"))
    if kind == "async_generator" and output_order == "input":
        raise ValueError("output_order='input' cannot be specified when op is an async generator.")
    if max_failures is not None:
        max_failures = _check.failure_limit(max_failures)
    if on_error is DEPENDS:
        on_error = "raise" if native and max_failures is None else "skip"
    _check.choice("on_error", on_error, ("raise", "skip", "substitute"))
    if max_failures is not None and on_error != "skip":
        raise ValueError(f"max_failures goes with on_error='skip', not with {on_error!r}")
    _check_executor(kind, executor)
    if concurrency is DEPENDS:
        limit = None if native else 1
    else:
        limit = concurrency
    return PipeConfig(
        _kinds.name_of(op) if name is None else _check_name(name),
        _PipeType.OrderedPipe if output_order == "input" else _PipeType.Pipe,
        _PipeArgs(op, executor, limit),
        max_failures,
        on_error,
        _check.integer("retries", retries, 0, _MAX_RETRIES),
        None if timeout is None else _check_timeout(timeout),
    )


def _check_executor(kind: str, executor: object) -> None:
    if executor is None:
        return
    if kind in ("async", "async_generator"):
        raise ValueError("`executor` cannot be specified when op is async.")
    if kind == "native":
        raise ValueError("`executor` cannot be specified when op is native: it runs on C threads")
    if isinstance(executor, type) or not hasattr(executor, "submit"):
        if not isinstance(executor, ExecutorConfig):
            raise TypeError(f"executor must be an Executor, not {type(executor).__name__}")


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError("name must be a str that is not empty")
    return name


def _check_timeout(timeout: object) -> float:
    seconds = _check.number("timeout", timeout)
    if seconds <= 0:
        raise ValueError(f"timeout must be above 0 seconds, not {seconds:g}")
    return seconds


def Aggregate(n: int | Aggregator[Any, Any], /, *, drop_last: bool = False) -> AggregateConfig:
    """Lists of n items, or what an Aggregator makes of them."""
    op: Aggregator[Any, Any] = n if isinstance(n, Aggregator) else Collate(n)
    return AggregateConfig("aggregate", op, _check.flag("drop_last", drop_last))


def Disaggregate() -> DisaggregateConfig:
    """The items of each list, or the samples of each batch."""
    return DisaggregateConfig()


def Merge(
    pipeline_configs: Iterable[PipelineConfig[Any]], op: Callable[..., Any] | None = None
) -> MergeConfig[Any]:
    """Several pipelines, in place of a source.

    `op`: `async def op(info, input_queues, output_queue)`; None passes items on as they arrive.
    ValueError: there is none.
    """
    configs = tuple(pipeline_configs)
    for config in configs:
        if not isinstance(config, PipelineConfig):
            raise TypeError(f"what is merged must be a PipelineConfig, not {type(config).__name__}")
    if op is not None and not (callable(op) and _kinds.kind_of_call(op) == "async"):
        raise TypeError("the op of a merge must be an async function")
    return MergeConfig(configs, op)


_IN_PATHS: Final = (
    PipeConfig,
    BatchConfig,
    AggregateConfig,
    DisaggregateConfig,
    PathVariantsConfig,
)


def PathVariants(
    router: Callable[[Any], Any],
    paths: Sequence[Sequence[Stage]],
    name: str | None = None,
    batched: bool = False,
) -> PathVariantsConfig:
    """Several chains of stages; `router(item)` gives the number of the one that an item takes.

    `router`: may be async, and may give bools where there are two.
    `batched`: it gets a list, and gives a number for each element.  The lists that the paths make of one
    are joined to one list, in the order of the paths: so all stages on them keep the order of their input.
    ValueError: a router that is none, no path, an empty path, or something else than stages in one.
    """
    if not callable(router) or _kinds.kind_of_call(router) not in ("function", "async"):
        raise ValueError("router must be a function or an async function")
    if not paths:
        raise ValueError("path_variants needs at least one path")
    for i, path in enumerate(paths):
        if isinstance(path, _IN_PATHS) or not path:
            raise ValueError(f"path{i} must be a list of stages that is not empty")
        for stage in path:
            if isinstance(stage, PlacementConfig) or not isinstance(stage, _IN_PATHS):
                raise ValueError(
                    f"path{i} may have Pipe, Aggregate, Disaggregate and PathVariants in it, "
                    f"not {type(stage).__name__}"
                )
    return PathVariantsConfig(
        "path_variants" if name is None else _check_name(name),
        router,
        paths,
        _check.flag("batched", batched),
    )
