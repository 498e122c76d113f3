"""How long memory lives that native and Python stages share."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from mixed import IN_ORDER, begin, images, read_and_decode, results
from stoker import ops, source
from support import ok, until


@pytest.fixture(scope="module")
def labelled(photos):
    return source.Directory(photos, labels="dir")


def test_what_python_keeps_outlives_the_pipeline(labelled):
    kept = []

    def keep(s):
        kept.append(s.data)
        return s

    b = begin(labelled).pipe(ops.read()).pipe(keep, **IN_ORDER).pipe(ops.decode_image(8, 6))
    b.pipe(keep, **IN_ORDER).batch(16)
    (*_, last) = results(b)
    del b
    gc.collect()
    want = images(labelled)  # which takes and gives back as much memory
    data = [Path(key).read_bytes() for key in last.key]
    encoded = [bytes(memoryview(x)) for x in kept if x.ndim == 1]
    decoded = [np.asarray(x) for x in kept if x.ndim == 3]
    assert encoded[32:] == data
    assert np.array_equal(np.stack(decoded), want)


def test_a_slab_that_is_referred_to_is_not_reused(labelled):
    seen: list[tuple[int, np.ndarray]] = []

    def keep(batch):
        image = np.asarray(batch.image)
        seen.append((int(image.sum()), image))
        return len(batch)

    many = source.Directory(labelled.path, epochs=20)
    results(read_and_decode(many).batch(4).pipe(keep, **IN_ORDER))
    assert len(seen) == 240
    assert all(total == int(image.sum()) for total, image in seen)


class Tracked(np.ndarray):
    """An array whose end is noticed."""

    __hash__ = object.__hash__


def test_arrays_are_given_back():
    alive: weakref.WeakSet = weakref.WeakSet()
    lock = threading.Lock()

    def make(i):
        array = np.full((64, 64), i).view(Tracked)
        with lock:
            alive.add(array)
        return array

    b = begin(range(400)).pipe(make, concurrency=2, **IN_ORDER).batch(4).add_sink(2)
    p = b.build(num_threads=2)
    most = 0
    with p.auto_stop():
        for batch in p:
            assert np.asarray(batch.image).shape == (len(batch), 64, 64)
            with lock:
                most = max(most, len(alive))
    assert most < 200  # what the windows hold, and not everything
    del batch, p
    gc.collect()
    until(lambda: not alive)


@pytest.mark.figures
def test_memory_does_not_grow(photos):
    done = ok(
        """
        import numpy as np, resource
        from stoker import PipelineBuilder, ops, source

        def run(epochs):
            b = PipelineBuilder().add_source(source.Directory(sys.argv[1], labels="dir", epochs=epochs))
            b.pipe(ops.read()).pipe(lambda s: bytes(s.data)).pipe(ops.decode_image(64, 64))
            b.pipe(lambda s: (np.asarray(s.data)[:, ::-1], str(s.label))).batch(8).add_sink(2)
            p = b.build(num_threads=2)
            with p.auto_stop():
                return sum(len(batch) for batch in p)

        assert run(20) == 960
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert run(200) == 9600
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """,
        photos,
    )
    assert int(done) < 8192  # kB; one epoch's pictures are 590, and 9600 of them 118,000
