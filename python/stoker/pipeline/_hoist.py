"""Executors of a configuration that goes to another process."""

from __future__ import annotations

from concurrent.futures import Executor

from .._value import Value
from ._forking import warn_of_fork
from ._priority import PriorityExecutorEntrypoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.process import BaseProcess
    from typing import Any

    from ._pool_worker import Link

__all__ = ["Hoist", "replace", "restore"]


def replace(thing: Any, change: Callable[[Executor], Any]) -> Any:
    """A configuration with other executors."""
    if isinstance(thing, (Executor, _Pool, _Hoisted)):
        return change(thing)  # type: ignore[arg-type]
    if isinstance(thing, Value):
        changed = {name: replace(value, change) for name, value in thing._items()}
        if all(changed[name] is value for name, value in thing._items()):
            return thing
        other = object.__new__(type(thing))
        other._set(**changed)
        return other
    if type(thing) in (tuple, list):
        items = [replace(value, change) for value in thing]
        return thing if all(a is b for a, b in zip(items, thing)) else type(thing)(items)
    return thing


class _Pool:
    """A pool of threads or of interpreters, not yet made."""

    def __init__(self, kind: type, options: dict[str, Any]) -> None:
        self.kind = kind
        self.options = options


class _Hoisted:
    """A pool of processes that runs already."""

    def __init__(self, links: list[Link]) -> None:
        self.links = links


class Hoist:
    """Replaces the executors of a configuration by what another process can make them of.

    Starts the workers of process pools.  `processes`: to be ended by whoever has this; `ends`: pipes that
    are to be closed here once the other process was started.
    """

    def __init__(self, *, processes: bool = True) -> None:
        self._hoists = processes
        self.processes: list[BaseProcess] = []
        self.ends: list[Any] = []
        self._made: dict[int, Any] = {}

    def change(self, executor: Executor) -> Any:
        from concurrent import futures

        if id(executor) not in self._made:
            kinds = (futures.ThreadPoolExecutor, getattr(futures, "InterpreterPoolExecutor", None))
            if type(executor) is futures.ProcessPoolExecutor:
                if not self._hoists:
                    raise ValueError("a ProcessPoolExecutor cannot be used from another interpreter")
                self._made[id(executor)] = _Hoisted(self._start(executor))
            elif type(executor) in kinds:
                self._made[id(executor)] = _Pool(type(executor), _options(executor))
            else:  # an entry point of a priority pool, or one of the user's: it pickles, or does not
                self._made[id(executor)] = executor
        return self._made[id(executor)]

    def _start(self, pool: ProcessPoolExecutor) -> list[Link]:
        from ._pool_worker import Link, work

        state: Any = pool
        if state._queue_count or state._executor_manager_thread is not None or state._shutdown_thread:
            raise ValueError("an executor of the pipeline was used already: it cannot go to a subprocess")
        if getattr(state, "_max_tasks_per_child", None) is not None:
            raise ValueError("max_tasks_per_child: workers that are replaced cannot go to a subprocess")
        context = state._mp_context
        forks = context.get_start_method() == "fork"
        warn_of_fork("a ProcessPoolExecutor", context)
        links = []
        for _ in range(state._max_workers):
            calls, to_worker = context.Pipe(duplex=False)
            from_worker, results = context.Pipe(duplex=False)
            others = [to_worker, from_worker, *self.ends] if forks else []
            process = context.Process(
                target=work,
                args=(calls, results, state._initializer, state._initargs, others),
                name="stoker pool worker",
            )
            self.ends += [to_worker, from_worker]
            process.start()
            self.processes.append(process)
            calls.close()
            results.close()
            links.append(Link(process.pid, to_worker, from_worker))
        return links

    def close_ends(self) -> None:
        for end in self.ends:
            end.close()


def _options(pool: Any) -> dict[str, Any]:
    if pool._threads:
        raise ValueError("an executor of the pipeline was used already: it cannot go to a subprocess")
    options = {"max_workers": pool._max_workers, "thread_name_prefix": pool._thread_name_prefix}
    if hasattr(pool, "_initializer"):
        return {**options, "initializer": pool._initializer, "initargs": pool._initargs}
    context = pool._create_worker_context()  # Python 3.14 keeps them there
    if hasattr(context, "initdata"):
        initializer, initargs = (context.initdata or (None, ()))[:2]
    else:
        initializer, initargs = context.initializer, context.initargs
    return {**options, "initializer": initializer, "initargs": initargs}


def restore(config: Any) -> Any:
    """In the other process: the configuration with executors that work."""
    made: dict[int, Any] = {}

    def make(thing: Any) -> Any:
        if isinstance(thing, _Pool):
            return thing.kind(**thing.options)
        if isinstance(thing, _Hoisted):
            from ._pool_worker import HoistedExecutor

            return HoistedExecutor(thing.links)
        if isinstance(thing, PriorityExecutorEntrypoint):
            # A forked process has the pool, but not its threads.
            owner = thing._owner
            if id(owner) not in made:
                rebuild, arguments = owner.__reduce__()
                made[id(owner)] = rebuild(*arguments)
            return PriorityExecutorEntrypoint(made[id(owner)], thing._priority)
        return thing

    def change(thing: Any) -> Any:
        if id(thing) not in made:
            made[id(thing)] = make(thing)
        return made[id(thing)]

    return replace(config, change)
