"""What the tests share: pictures, pipelines, and subprocesses that cannot hang the run."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import PipelineBuilder, PipelineFailure, ops

WATCHDOG_S = 120  # far beyond what any test takes


def torch_module() -> Any:
    """PyTorch; without it the test is skipped, and says how to get it."""
    return pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0")


def at_once(*work: Callable[[], object]) -> None:
    """Runs each on a thread of its own, all beginning together; raises what the first one raised."""
    ready = threading.Barrier(len(work))
    errors: list[BaseException] = []

    def run(function):
        ready.wait()
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@contextlib.contextmanager
def failing(words: str):
    """The pipeline fails, of what these words say."""
    with pytest.raises(PipelineFailure) as caught:
        yield
    (error,) = caught.value.exceptions
    assert words in str(error)


def picture(seed: int, width: int, height: int) -> Image.Image:
    """Something like a photograph: smooth areas, edges, a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    image = np.empty((height, width, 3))
    for c in range(3):
        plane = np.zeros((height, width))
        for _ in range(6):
            fx, fy, phase = rng.uniform(-0.05, 0.05), rng.uniform(-0.05, 0.05), rng.uniform(0, 6.28)
            plane += np.cos(fx * x + fy * y + phase)
        image[:, :, c] = 127 + 18 * plane
    cx, cy, r = rng.uniform(0, width), rng.uniform(0, height), min(width, height) / 4
    image[(x - cx) ** 2 + (y - cy) ** 2 < r * r] *= 0.6
    image += rng.normal(0, 1.5, image.shape)
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))


def jpeg(image: Image.Image, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", **{"quality": 88, **options})
    return out.getvalue()


def make_folder(root: Path, classes: int, each: int, seed: int = 0) -> Path:
    """root/c0/00.jpg, root/c0/01.jpg...: sizes differ."""
    rng = random.Random(seed)
    for c in range(classes):
        folder = root / f"c{c}"
        folder.mkdir(parents=True)
        for i in range(each):
            size = rng.randrange(96, 200), rng.randrange(96, 200)
            (folder / f"{i:02}.jpg").write_bytes(jpeg(picture(1000 * c + i, *size)))
    return root


def builder(
    src,
    *,
    size=32,
    batch=8,
    crop="random_resized",
    flip=0.5,
    decode=None,
    drop_last=False,
    keep_empty=False,
    sink=3,
    continuous=False,
    read=None,
    **image_options,
):
    """The main job.  `read`, `decode`: what pipe() is given for these stages."""
    b = PipelineBuilder().add_source(src, continuous=continuous).pipe(ops.read(), **(read or {}))
    b.pipe(ops.decode_image(size, size, crop=crop, flip=flip, **image_options), **(decode or {}))
    if batch:
        b.batch(batch, drop_last=drop_last, keep_empty=keep_empty)
    return b.add_sink(sink)


def build(src, *, threads=2, max_failures=-1, **options):
    return builder(src, **options).build(num_threads=threads, max_failures=max_failures)


def ids(batch) -> list[int]:
    return np.asarray(batch.id).tolist()


def all_ids(pipeline) -> list[int]:
    return [i for batch in pipeline for i in ids(batch)]


def digest(pipeline) -> list[tuple[object, ...]]:
    """Everything that a reader can see, batch by batch."""
    seen = []
    for batch in pipeline:
        pixels = hashlib.sha256(memoryview(batch.image)).hexdigest()
        labels = np.asarray(batch.label).tolist() if "label" in batch else None
        seen.append((batch.epoch, batch.index, ids(batch), labels, batch.key, pixels))
    return seen


def until(condition: Callable[[], object]) -> None:
    """Waits for something that nobody announces."""
    deadline = time.monotonic() + WATCHDOG_S
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


class Alarm(Exception):
    pass


@contextlib.contextmanager
def alarm(seconds=0.05):
    """A signal whose handler raises; it comes again until something was raised."""

    def ring(number, frame):
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def resident() -> int:
    """The bytes of memory that this process has, without what only waits to be collected."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def pass_time(seconds: float) -> None:
    """For tests of what happens while time passes."""
    threading.Event().wait(seconds)


def script(
    code: str, *args: object, before: Sequence[str] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a process of its own, with warnings as errors, under the command `before`."""
    return subprocess.run(
        [*before, sys.executable, "-W", "error", "-c", prelude() + textwrap.dedent(code), *map(str, args)],
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        env={**os.environ, **env},
    )


def prelude() -> str:
    """What each script begins with: the pipeline over sys.argv[1]."""
    return textwrap.dedent(
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        """
    )


def ok(code: str, *args: object, **env: str) -> str:
    """As script(), which must end well and quietly; its output."""
    done = script(code, *args, **env)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout
