"""Pipelines of Python stages that Ctrl-C and the interpreter's end meet at random moments."""

from __future__ import annotations

import os

import pytest

from support import ok
from test_lane_stress import ROUNDS

SEED = 1000 * int(os.environ.get("STK_SEED", "1"))

USE = """
def use(pipeline):
    try:
        how = rng.randrange(4)
        if how == 0:
            with pipeline.auto_stop():
                some(pipeline)
        elif how == 1:
            pipeline.start(timeout=rng.random() * 2e-4)
            some(pipeline)
            pipeline.stop()
        elif how == 2:
            some(pipeline)
            pipeline.stop()
        else:
            some(pipeline)  # and dropped
    except (ExceptionGroup, TimeoutError):
        pass
"""


@pytest.mark.python(before=(3, 14))  # where Ctrl-C inside `with lock` leaves it taken, in threading as well
@pytest.mark.parametrize("seed", range(3))
def test_ctrl_c(seed):
    """It ends what the main thread is at, and nothing of a pipeline is left then."""
    out = ok(
        ROUNDS
        + USE
        + """
def interrupts():
    while True:
        go.acquire()
        pass_time(rng.random() * 5e-3)
        os.kill(os.getpid(), signal.SIGINT)

def lose(args):
    (lost if args.exc_type is KeyboardInterrupt else odd).append((args.exc_type, repr(args.object)))

def left():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

go, lost, odd, seen = threading.Semaphore(0), [], [], 0
sys.unraisablehook = lose
threading.Thread(target=interrupts, daemon=True).start()
before = left()
for i in range(150):
    expected = len(lost) + seen + 1
    try:
        go.release()
        while len(lost) + seen < expected:
            use(make())
    except KeyboardInterrupt:
        seen += 1
gc.collect()
while left() != before:
    pass_time(0.001)
    gc.collect()
# Python loses one in a callback of a weak reference, a thread whose start it interrupts, and a file that it imports.
assert not any("grow" in where for _, where in lost), lost
odd = [(error, where) for error, where in odd if error is not ResourceWarning]
assert all(error is KeyError and "Thread._bootstrap" in where for error, where in odd), odd
print("end")
""",
        SEED + seed,
    )
    assert out == "end\n"
