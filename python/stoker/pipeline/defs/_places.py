"""Where stages run: executors by description, and the marks between which stages run elsewhere."""

from __future__ import annotations

from ..._value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.context import BaseContext
    from typing import Any, Final


class ExecutorConfig(Value):
    """An executor by description: a pipeline that is built of it makes its own.

    `max_workers`: None leaves the number to the executor.
    `initializer(*initargs)`: runs in each worker before its first call.
    """

    __slots__ = ("max_workers", "initializer", "initargs")
    __module__ = "stoker.pipeline.defs"

    max_workers: int | None
    initializer: Callable[..., object] | None
    initargs: tuple[Any, ...]

    def __init__(
        self,
        max_workers: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        self._set(max_workers=max_workers, initializer=initializer, initargs=tuple(initargs))

    def __repr__(self) -> str:
        from ._text import executor_text

        return executor_text(self)


class ProcessPoolExecutorConfig(ExecutorConfig):
    """Worker processes.  `mp_context`: of multiprocessing, or the name of a start method."""

    __slots__ = ("mp_context",)
    __module__ = "stoker.pipeline.defs"

    mp_context: BaseContext | str | None

    def __init__(
        self,
        max_workers: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        mp_context: BaseContext | str | None = None,
    ) -> None:
        super().__init__(max_workers, initializer, initargs)
        self._set(mp_context=mp_context)


class InterpreterPoolExecutorConfig(ExecutorConfig):
    """Worker threads, each with an interpreter of its own: Python 3.14 or later."""

    __slots__ = ()
    __module__ = "stoker.pipeline.defs"


class _MainProcess:
    """Marks the end of a region: what follows runs in the process that reads the pipeline."""

    __slots__ = ()
    __module__ = "stoker.pipeline.defs"

    def __repr__(self) -> str:
        return "MAIN_PROCESS"

    def __reduce__(self) -> str:
        return "MAIN_PROCESS"  # there is one


MAIN_PROCESS: Final = _MainProcess()


class PlacementConfig(Value):
    """A mark among the stages: those up to the next one run in `target`.

    `buffer_size`: how many items cross this mark at once, at most.
    """

    __slots__ = ("target", "name", "buffer_size")
    __module__ = "stoker.pipeline.defs"

    target: ProcessPoolExecutorConfig | InterpreterPoolExecutorConfig | _MainProcess
    name: str
    buffer_size: int

    def __init__(
        self,
        target: ProcessPoolExecutorConfig | InterpreterPoolExecutorConfig | _MainProcess,
        name: str = "placement",
        buffer_size: int = 1,
    ) -> None:
        self._set(target=target, name=name, buffer_size=buffer_size)

    def __repr__(self) -> str:
        size = "" if self.buffer_size == 1 else f", buffer_size={self.buffer_size}"
        return f"{self.name}({self.target!r}{size})"
