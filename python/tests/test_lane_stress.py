"""Pipelines of Python stages that end at random moments, in processes with a watchdog."""

from __future__ import annotations

import os

import pytest

from support import ok

SEED = 1000 * int(os.environ.get("STK_SEED", "1"))
SHARE = 8 if "TSAN_OPTIONS" in os.environ else 1  # of the rounds and processes: all is that slow there

ROUNDS = """
import asyncio, faulthandler, gc, itertools, logging, os, random, signal, sys, threading
from lanes import chain, same
from support import pass_time
from stoker.pipeline.defs import Aggregate, Disaggregate, PathVariants, Pipe
faulthandler.dump_traceback_later(110, exit=True)  # says where it hangs
logging.disable()
rng = random.Random(int(sys.argv[1]))

def fail(x):
    if rng.random() < 0.02:
        raise ValueError(x)
    return x

def wait(x):
    pass_time(rng.random() * 1e-4)
    return x

def many(x):
    yield x
    yield x

async def pause(x):
    await asyncio.sleep(0)
    return x

async def fail_late(x):
    await pause(x)
    return fail(x)

async def at_once(x):
    return x

async def many_late(x):
    yield x
    yield await pause(x)

def make():
    kinds = [
        lambda: Pipe(same, concurrency=rng.randint(1, 4), output_order=rng.choice(["completion", "input"])),
        lambda: Pipe(fail, max_failures=rng.choice([-1, 0, 3])),
        lambda: Pipe(wait, concurrency=rng.randint(1, 4)),
        lambda: Pipe(many, concurrency=2),
        lambda: Pipe(pause, concurrency=rng.randint(1, 4), output_order=rng.choice(["completion", "input"])),
        lambda: Pipe(fail_late, concurrency=2, max_failures=rng.choice([-1, 0, 3])),
        lambda: Pipe(at_once),
        lambda: Pipe(many_late, concurrency=2),
        lambda: Aggregate(rng.randint(1, 9)),
        lambda: PathVariants(lambda x: rng.randrange(2), [[Pipe(same)], [Aggregate(2), Disaggregate()]]),
    ]
    stages = [rng.choice(kinds)() for _ in range(rng.randint(0, 4))]
    src = rng.choice([itertools.count, lambda: range(30), lambda: (wait(i) for i in range(200))])()
    epochs = rng.random() < 0.2 and isinstance(src, range)
    return chain(*stages, src=src, continuous=epochs, sink=rng.randint(1, 5))

def some(pipeline):
    try:
        for item in itertools.islice(pipeline, rng.choice([0, 1, 5, 40])):
            pass
        if rng.random() < 0.2:
            pipeline.get_item(timeout=0)
    except (ExceptionGroup, EOFError, TimeoutError, RuntimeWarning):  # which says: exhausted
        pass
"""


@pytest.mark.parametrize("seed", range(3))
def test_stop_break_fail_drop(seed):
    out = ok(
        ROUNDS
        + """
before, kept = threading.active_count(), []
for i in range(100 // int(sys.argv[2])):
    pipeline = make()
    end = rng.randrange(5)
    try:
        if end == 0:
            with pipeline.auto_stop():
                some(pipeline)
        elif end == 1:
            some(pipeline)
            pipeline.stop()
        elif end == 2:
            some(pipeline)
        elif end == 3:
            with pipeline.auto_stop():
                some(pipeline)
                raise KeyError
        else:
            reader = threading.Thread(target=some, args=(pipeline,))
            reader.start()
            pass_time(rng.random() * 1e-3)
            pipeline.stop()
            reader.join()
    except (KeyError, ExceptionGroup):
        pass
    if rng.random() < 0.1:
        gc.collect()
del pipeline
reader = None
gc.collect()
while threading.active_count() > before:
    pass_time(0.001)
print("end")
""",
        SEED + seed,
        SHARE,
    )
    assert out == "end\n"


@pytest.mark.parametrize("seed", range(10, 11 + 12 // SHARE))
def test_exits(seed):
    out = ok(
        ROUNDS
        + """
kept = [make() for _ in range(4)]
for pipeline in kept[1:]:
    some(pipeline)
pass_time(rng.random() * 2e-3)
print("end")
""",
        SEED + seed,
        SHARE,
    )
    assert out == "end\n"


def test_forks():
    """A child of fork has nothing of the parent's pipelines, and may build its own."""
    out = ok(
        ROUNDS
        + """
for i in range(40 // int(sys.argv[2])):
    pipeline = make()
    some(pipeline)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        del pipeline
        gc.collect()
        assert list(chain(Pipe(same), src=range(5))) == [0, 1, 2, 3, 4]
        os._exit(0)
    some(pipeline)
    assert os.waitpid(child, 0)[1] == 0
    try:
        pipeline.stop()
    except ExceptionGroup:
        pass
print("end")
""",
        SEED + 3,
        SHARE,
    )
    assert out == "end\n"
