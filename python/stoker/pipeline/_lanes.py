"""The threads of Python that run the stages of a pipeline's run."""

from __future__ import annotations

import threading
import time
from weakref import WeakSet

from .. import _stoker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context
    from typing import Final

    from ._loop import Loop
    from ._wrappers import Closing

__all__ = ["Group", "Lanes", "at_exit"]

_PREFIX: Final = "stoker"


class Group:
    """Threads that run the same stages: at most `limit`, made when there is work for one more."""

    __slots__ = ("name", "limit", "source", "stop_waiting", "loop", "closing")

    def __init__(self, name: str, limit: int, source: _stoker.Source | None = None) -> None:
        """`source`: what the thread closes when the run has ended."""
        self.name = name
        self.limit = limit
        self.source = source
        self.stop_waiting: Callable[[], None] | None = None  # ends what its source waits for; does not wait itself
        self.loop: Loop | None = None  # what the thread runs instead of stages of the engine
        self.closing: list[Closing] = []  # what the last thread closes when the run has ended


class Lanes:
    """Makes the threads of one run.

    Nothing here refers to the pipeline, and the threads refer to the run alone: a pipeline that is
    dropped is collected, and its end ends them.  Any thread may call any method.
    """

    def __init__(self, run: _stoker.Run, groups: list[Group], context: Context) -> None:
        self._run = run
        self._groups = groups  # number g stands at g - 1
        self._context = context  # of whoever started the pipeline
        # Changed by single calls, without a lock: Ctrl-C inside of `with` may leave it taken.
        self._places = [[group] * group.limit for group in groups]  # each thread takes one
        self._made: list[dict[int, threading.Thread]] = [{} for _ in groups]  # by their numbers
        self._last = [[group] for group in groups]  # the last thread to leave takes it
        self._threads: list[tuple[Group | None, threading.Thread]] = []
        self._ends: list[Callable[[], None]] = []  # of those that run no stages

    def grow(self, number: int) -> None:
        """One more thread for a group, if it may have one.

        Where Ctrl-C ends this, nobody knows whether there will be one: then it may be called again.
        """
        group, made = self._groups[number - 1], self._made[number - 1]
        count = next((count for count in range(1, group.limit + 1) if count not in made), None)
        if count is None:
            return
        thread = threading.Thread(
            target=self._context.copy().run,
            args=(_live, self, self._run, number),
            name=f"{_PREFIX}-{group.name}" if group.limit == 1 else f"{_PREFIX}-{group.name}-{count}",
        )
        try:
            if made.setdefault(count, thread) is thread:  # no other call is at it
                self._threads.append((group, thread))
                thread.start()
        except BaseException:
            if thread.ident is None and made.get(count) is thread:
                del made[count]
            raise

    def enter(self, number: int) -> Group | None:
        """What a thread is for; None: there are enough without it."""
        try:
            return self._places[number - 1].pop()
        except IndexError:
            return None

    def leave(self, number: int) -> bool:
        """After enter().  Whether it is the last of its group, of a run that has ended."""
        places, group = self._places[number - 1], self._groups[number - 1]
        places.append(group)
        if len(places) < group.limit:
            return False
        try:
            self._last[number - 1].pop()
        except IndexError:  # another has left at the same moment
            return False
        return True

    def start(self) -> None:
        """One thread of each group; more are made when one of them, or a reader, sees work for them."""
        for number in range(1, len(self._groups) + 1):
            self.grow(number)

    def beside(self, work: Callable[[], None], name: str, end: Callable[[], None]) -> None:
        """One more thread, for what is no stage: `end` is to end it, and does not wait."""
        thread = threading.Thread(target=self._context.copy().run, args=(work,), name=f"{_PREFIX}-{name}")
        self._ends.append(end)
        self._threads.append((None, thread))
        thread.start()

    def cancel(self) -> None:
        self._run.cancel()
        self.stop_waiting()

    def stop_waiting(self) -> None:
        """Sources that know how give up whatever they wait for, as do threads of no stages: these are to end."""
        for end in self._ends:
            end()
        for group in self._groups:
            if group.stop_waiting is not None:
                group.stop_waiting()

    def join(self, timeout: float, sources: bool) -> list[str]:
        """Waits for the threads of a run that has ended, at most `timeout` seconds in all; gives the
        names of those that go on.  A thread of the run itself does not wait.

        `sources`: for theirs, too; one that is blocked lives on until its iterator returns.
        """
        deadline = time.monotonic() + timeout
        made = [(group, thread) for group, thread in list(self._threads) if thread.ident is not None]
        me = threading.current_thread()
        if any(thread is me for _, thread in made):
            return []
        threads = [thread for group, thread in made if sources or group is None or group.source is None]
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        late = [thread.name for thread in threads if thread.is_alive()]
        for loop in (group.loop for group in self._groups if group.loop is not None and late):
            late += loop.under_way()
        return late


_running: WeakSet[Lanes] = WeakSet()
_to_register = [True]  # the first takes it


def at_exit(lanes: Lanes) -> None:
    """Python's end cancels the run, before it waits for the run's threads."""
    _running.add(lanes)
    try:
        _to_register.pop()
    except IndexError:
        return
    # What concurrent.futures ends its own threads with: atexit comes after threads were joined.
    threading._register_atexit(_cancel_all)  # type: ignore[attr-defined]


def _cancel_all() -> None:
    for lanes in list(_running):
        lanes.cancel()


def _live(lanes: Lanes, run: _stoker.Run, number: int) -> None:
    group = lanes.enter(number)
    try:
        if group is None:
            return
        _stoker.trace_thread(threading.current_thread().name)
        if group.loop is not None:
            group.loop.run(run, number)
        else:
            _work(lanes, run, number, group)
    finally:
        # Errors that the run keeps refer to the frames of ops, and through them to these two.
        del lanes, run, group


def _work(lanes: Lanes, run: _stoker.Run, number: int, group: Group) -> None:
    try:
        _stoker.lane(run, number, lanes.grow, threading.current_thread() if group.source is None else None)
    finally:
        if group.source is not None:
            _stoker.source_finish(group.source)
        if lanes.leave(number):
            for closing in group.closing:
                closing.close()
        del lanes, run, group
