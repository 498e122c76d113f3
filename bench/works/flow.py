# SPDX-License-Identifier: BSD-2-Clause
"""How many items a second go through stages of Python, each kind with a check of what arrives."""

import resource
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, repeat
from typing import Any

from bench.works.options import Options, Result, check

STAGES = 3
BATCH = 32
ARRAY_BYTES = 1024
SLEEP_S = 0.01
SPINS = 2000  # about 100 us of pure Python


@dataclass
class Flow:
    """A source, the stages behind it, and what has to arrive."""

    source: Iterable[Any]
    build: Callable[[Any], Any]  # adds the stages to a builder
    verify: Callable[[list[Any]], None]
    options: dict[str, Any] = field(default_factory=dict)  # of build()


def noop(item: Any) -> Any:
    return item


async def async_noop(item: Any) -> Any:
    return item


def sleep(item: int) -> int:
    time.sleep(SLEEP_S)  # check: allow sleep: the stage that is measured
    return item


def spin(item: int) -> int:
    x = item
    for _ in range(SPINS):
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
    return item


BARE = {"sleep": sleep, "spin": spin}  # what threads without a pipeline do, too


def verify_all(o: Options) -> Callable[[list[int]], None]:
    """Each number once; in order where order was asked for, or nothing could change it."""

    def verify(got: list[int]) -> None:
        in_order = o.order == "input" or o.concurrency == 1
        wanted = list(range(o.items))
        check((got if in_order else sorted(got)) == wanted, f"{len(got)} of {o.items} items, or not in order")

    return verify


def chain(o: Options, op: Callable[[Any], Any], stages: int = STAGES) -> Flow:
    def build(builder: Any) -> Any:
        for _ in range(stages):
            builder.pipe(op, concurrency=o.concurrency, output_order=o.order)
        return builder

    return Flow(range(o.items), build, verify_all(o))


def hooked(o: Options) -> Flow:
    """Hooks and queues of a user's class, which do nothing of their own."""
    api = o.api()
    seen = {"tasks": 0, "puts": 0}

    class Hook(api.TaskHook):  # type: ignore[misc, name-defined]
        @asynccontextmanager
        async def task_hook(self, input_item: Any = None) -> AsyncIterator[None]:
            seen["tasks"] += 1
            yield

    class Queue(api.StatsQueue):  # type: ignore[misc, name-defined]
        async def put(self, item: Any) -> None:
            seen["puts"] += 1
            await super().put(item)

    flow = chain(o, noop)
    arrived = flow.verify

    def verify(got: list[int]) -> None:
        arrived(got)
        check(seen["tasks"] >= STAGES * o.items, f"hooks saw {seen['tasks']} tasks")
        check(seen["puts"] >= (STAGES + 1) * o.items, f"queues saw {seen['puts']} items")

    return Flow(flow.source, flow.build, verify, {"task_hook_factory": lambda info: [Hook()], "queue_class": Queue})


def collated(o: Options) -> Flow:
    import numpy as np

    array = np.arange(ARRAY_BYTES, dtype=np.uint8)

    def build(builder: Any) -> Any:
        return builder.aggregate(BATCH).pipe(np.stack)

    def verify(got: list[Any]) -> None:
        rows = sum(len(batch) for batch in got)
        check(rows == o.items, f"{rows} of {o.items} arrays")
        check(all(batch.shape[1] == ARRAY_BYTES and (batch == array).all() for batch in got), "another array")

    return Flow(repeat(array, o.items), build, verify)


KINDS: dict[str, Callable[[Options], Flow]] = {
    "noop": lambda o: chain(o, noop),
    "async": lambda o: chain(o, async_noop),
    "hooks": hooked,
    "collate": collated,
    "sleep": lambda o: chain(o, sleep, 1),
    "spin": lambda o: chain(o, spin, 1),
}


def through_pipeline(o: Options, flow: Flow) -> list[Any]:
    builder = o.api().PipelineBuilder().add_source(flow.source)
    pipeline = flow.build(builder).add_sink(3).build(num_threads=o.threads, **flow.options)
    got = []
    with pipeline.auto_stop():
        for item in pipeline:
            got.append(item)
    return got


def through_threads(o: Options, flow: Flow) -> list[Any]:
    """A thread for the source and one for each stage, with the queue that `kind` names between them."""
    import queue
    import threading

    def make() -> Any:  # a SimpleQueue has no bound; of queue.Queue it would hide the waits
        return queue.Queue(1000) if o.kind == "queue" else queue.SimpleQueue()

    queues = [make() for _ in range(STAGES + 1)]
    end = object()

    def feed() -> None:
        for item in flow.source:
            queues[0].put(item)
        queues[0].put(end)

    def work(come: Any, go: Any) -> None:
        while (item := come.get()) is not end:
            go.put(noop(item))
        go.put(end)

    threads = [threading.Thread(target=feed)]
    threads += [threading.Thread(target=work, args=pair) for pair in zip(queues, queues[1:], strict=False)]
    for thread in threads:
        thread.start()
    got = []
    while (item := queues[-1].get()) is not end:
        got.append(item)
    for thread in threads:
        thread.join()
    return got


def alone(o: Options, flow: Flow) -> list[Any]:
    """Threads that do nothing but the stage, each with its share: the most that the machine lets through."""
    import threading

    items, op = list(flow.source), BARE[o.kind]
    got: list[list[Any]] = [[] for _ in range(o.threads)]

    def work(number: int) -> None:
        got[number] = [op(item) for item in items[number :: o.threads]]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(o.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(item for part in got for item in part)


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def run(o: Options) -> Result:
    bare = o.package == "threads"
    flow = chain(o, noop) if bare and o.kind not in BARE else KINDS[o.kind](o)
    if not bare:
        o.api().PipelineBuilder  # noqa: B018  # lazily imported modules are imports, which are not measured
    cpu, start = cpu_seconds(), time.perf_counter()
    through = (alone if o.kind in BARE else through_threads) if bare else through_pipeline
    got = through(o, flow)
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    flow.verify(got)
    return {"items": o.items, "seconds": seconds, "cpu_s": cpu}


def endless(package: str) -> Iterator[int]:
    """Small items without end through three stages; an item out of order ends it."""
    o = Options([f"package={package}", "work=flow.run"])
    flow = Flow(count(), chain(o, noop).build, lambda got: None)
    builder = o.api().PipelineBuilder().add_source(flow.source)
    pipeline = flow.build(builder).add_sink(3).build(num_threads=o.threads)
    with pipeline.auto_stop():
        for number, item in enumerate(pipeline):
            check(item == number, f"{item} in place of {number}")
            yield item
