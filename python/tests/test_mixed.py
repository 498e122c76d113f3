"""Native and Python stages in one pipeline: what each gets from the other."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from mixed import IN_ORDER, begin, failure, images, read_and_decode, results
from stoker import Batch, Sample, _stoker, ops, source
from stoker.pipeline import build_pipeline
from stoker.pipeline.defs import Merge, Pipe, PipelineConfig, SinkConfig, SourceConfig
from support import ids


@pytest.fixture(scope="module")
def labelled(photos):
    return source.Directory(photos, labels="dir")


# --- what a Python op gets ---


def test_after_a_source_data_is_the_path(labelled, paths):
    got = results(begin(labelled).pipe(lambda s: s))
    assert [s.data for s in got] == [s.key for s in got] == [str(p) for p in paths]
    assert [s.id for s in got] == list(range(48))
    assert [s.label for s in got] == [i // 16 for i in range(48)]
    assert {s.epoch for s in got} == {0} and got[0].parts == (got[0].data,)


def test_paths_that_are_no_utf8(tmp_path, paths):
    name = os.path.join(os.fsencode(tmp_path), b"\xff\xfe.jpg")
    with open(name, "wb") as f:
        f.write(paths[0].read_bytes())
    (sample,) = results(begin(source.Directory(tmp_path)).pipe(lambda s: s))
    assert os.fsencode(sample.data) == name
    kept = begin(source.Directory(tmp_path)).pipe(lambda s: s.data).pipe(ops.read())
    (batch,) = results(kept.pipe(ops.decode_image(8, 8)).batch(1))
    assert os.fsencode(batch.key[0]) == name


def test_after_read_it_is_a_read_only_buffer(labelled, paths):
    def check(s):
        view = memoryview(s.data)
        assert view.readonly and view.format == "B" and view.ndim == 1
        return bytes(view)

    got = results(begin(labelled).pipe(ops.read()).pipe(check, on_error="raise", **IN_ORDER))
    assert [s.data for s in got] == [p.read_bytes() for p in paths]


def test_after_a_decoder_it_is_an_array(labelled):
    def check(s):
        assert s.data.shape == (6, 8, 3) and s.data.dtype == "uint8"
        return np.from_dlpack(s.data).copy()

    got = results(read_and_decode(labelled).pipe(check, on_error="raise", **IN_ORDER))
    assert np.array_equal(np.stack([s.data for s in got]), images(labelled))


def test_after_batch_it_is_the_batch(labelled):
    got = results(read_and_decode(labelled).batch(20).pipe(lambda b: (type(b), len(b)), **IN_ORDER))
    assert got == [(Batch, 20), (Batch, 20), (Batch, 8)]


def test_identity_goes_along_chains_of_python(labelled):
    first = begin(labelled).pipe(lambda s: len(s.data), **IN_ORDER)
    got = results(first.pipe(lambda s: (s.data, s.id), **IN_ORDER).pipe(lambda s: s.data[1] * 2, **IN_ORDER))
    assert all(type(s) is Sample for s in got)
    assert [s.data for s in got] == [2 * i for i in range(48)]
    assert [(s.id, s.label, Path(s.key).parent.name) for s in got] == [
        (i, i // 16, f"c{i // 16}") for i in range(48)
    ]


def test_a_replaced_sample_is_another_object(labelled):
    seen = []

    def first(s):
        seen.append(s)
        return 1

    got = results(begin(labelled).pipe(first, **IN_ORDER).pipe(lambda s: s.data + 1, **IN_ORDER))
    assert {s.data for s in got} == {2} and [s.data for s in seen] == [s.key for s in seen]


def test_items_of_python_stay_plain():
    assert results(begin(range(4)).pipe(lambda x: x + 1)) == [1, 2, 3, 4]
    mine = [Sample(i, id=i, label=-i) for i in range(3)]
    assert results(begin(mine).pipe(lambda s: s.label)) == [0, -1, -2]


async def name_of(s):
    return os.path.basename(s.data)


def test_async_stages_and_executors_do_as_functions_do(labelled, paths):
    from concurrent.futures import ThreadPoolExecutor

    got = results(begin(labelled).pipe(name_of, **IN_ORDER).pipe(name_of, **IN_ORDER))
    assert [(s.id, s.label, s.data) for s in got] == [(i, i // 16, p.name) for i, p in enumerate(paths)]
    with ThreadPoolExecutor(2) as pool:
        b = begin(labelled).pipe(lambda s: Path(s.data).read_bytes(), executor=pool, **IN_ORDER)
        (batch,) = results(b.pipe(ops.decode_image(8, 6)).batch(48))
    assert np.array_equal(np.asarray(batch.image), images(labelled))
    assert ids(batch) == list(range(48)) and batch.key == [str(p) for p in paths]


def test_queues_of_the_users_between_native_stages(labelled):
    from stoker.pipeline import AsyncQueue

    class Queue(AsyncQueue):
        async def put(self, item):
            seen[self.info.stage_name, type(item)] += 1
            await super().put(item)

        def __init__(self, info, buffer_size=1):
            super().__init__(info, buffer_size=buffer_size)
            self.info = info

    seen = Counter()
    b = read_and_decode(labelled).batch(16).disaggregate().add_sink(3)
    with b.build(num_threads=2, queue_class=Queue) as p:
        got = list(p)
    assert np.array_equal(np.stack([np.asarray(s.data) for s in got]), images(labelled))
    assert seen["read", Sample] == 48 and seen["batch", Batch] == 3


def test_none_skips(labelled):
    got = results(begin(labelled).pipe(lambda s: None if s.id % 2 else s.data, **IN_ORDER))
    assert [s.id for s in got] == list(range(0, 48, 2))


def test_generators_keep_the_identity(labelled):
    def twice(s):
        yield s.label
        yield s.key

    got = results(begin(labelled).pipe(twice, **IN_ORDER))
    assert [s.id for s in got] == [i // 2 for i in range(96)]
    assert [s.data for s in got][:2] == [0, got[0].key]


def test_epochs(labelled):
    p = begin(labelled, continuous=True).pipe(lambda s: s.epoch, **IN_ORDER).add_sink(3).build(num_threads=2)
    with p.auto_stop():
        for epoch in range(3):
            got = list(p)
            assert len(got) == 48 and {(s.epoch, s.data) for s in got} == {(epoch, epoch)}


def test_epochs_of_python_become_batches():
    b = begin(range(5), continuous=True).pipe(lambda x: np.full(2, x), **IN_ORDER).batch(3)
    p = b.add_sink(3).build(num_threads=2)
    with p.auto_stop():
        for epoch in range(3):
            assert [(b.epoch, b.index, len(b)) for b in p] == [(epoch, 0, 3), (epoch, 1, 2)]


# --- from one process to another ---


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_samples_pickle(paths, protocol):
    src = source.List(image=paths, mask=paths, label=[f"w{i}" for i in range(48)])
    for b in (begin(src), begin(src).pipe(ops.read()), read_and_decode(src)):
        before = results(b)[7]
        after = pickle.loads(pickle.dumps(before, protocol))
        assert (after.id, after.epoch, after.key, after.label) == (7, 0, str(paths[7]), "w7")
        assert len(after.parts) == 2 and type(after.data) is type(before.data)
        if not isinstance(before.data, str):
            assert after.data.readonly == before.data.readonly
            assert np.array_equal(np.asarray(after.parts[1]), np.asarray(before.parts[1]))


def test_fields_pickle_without_a_copy():
    arrays = [np.arange(24, dtype=np.float32).reshape(2, 3, 4)]
    (batch,) = results(begin(arrays).batch(1))
    outside: list[pickle.PickleBuffer] = []
    data = pickle.dumps(batch.image, 5, buffer_callback=outside.append)
    assert len(data) < 200 and len(outside) == 1
    again = pickle.loads(data, buffers=outside)
    assert np.shares_memory(np.asarray(again), np.asarray(batch.image))
    assert np.array_equal(np.asarray(again)[0], arrays[0])
    view = pickle.loads(pickle.dumps(results(begin([arrays[0].T]).batch(1))[0].image))
    assert np.array_equal(np.asarray(view)[0], arrays[0].T)


@pytest.mark.parametrize(
    "args",
    [
        (b"abc", "uint8", (4,), False),
        (b"abc", "none", (3,), False),
        (b"abc", "uint8", (-3,), False),
        (b"abc", "uint8", (3,) + (1,) * 8, False),
        (3, "uint8", (3,), False),
    ],
)
def test_bytes_that_make_no_field(args):
    with pytest.raises(ValueError, match="do not make such a field"):
        _stoker.field_of(*args)


def total(sample):
    return np.asarray(sample.data).sum()


def test_processes_get_samples(labelled):
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        got = results(read_and_decode(labelled).pipe(total, executor=pool, **IN_ORDER))
    assert [(s.id, s.label, s.data) for s in got] == [
        (i, i // 16, x) for i, x in enumerate(images(labelled).sum((1, 2, 3)))
    ]


# --- batches ---


def test_batches_group_by_planned_position(labelled):
    keep = read_and_decode(labelled).pipe(lambda s: None if s.id % 5 == 0 else s, **IN_ORDER).batch(12)
    assert [ids(b) for b in results(keep)] == [
        [i for i in range(k, k + 12) if i % 5] for k in range(0, 48, 12)
    ]
    taken = begin(labelled).pipe(lambda s: None if s.id % 5 == 0 else s, **IN_ORDER).aggregate(12)
    assert [len(group) for group in results(taken)] == [12, 12, 12, 2]


@pytest.mark.parametrize("order", [IN_ORDER, {"concurrency": 1}], ids=["input", "one"])
def test_what_was_skipped_before_the_event_loop_keeps_its_place(order):
    async def late(x):
        await asyncio.sleep(0.0005 * (x * 7 % 4))
        return x

    kept = begin(range(48), continuous=True).pipe(lambda x: x if x % 5 and x % 7 else None, **IN_ORDER)
    b = kept.pipe(late, **{"concurrency": 4, **order}).pipe(np.array, **IN_ORDER).batch(12)
    p = b.add_sink(3).build(num_threads=2)
    expected = [[i for i in range(k, k + 12) if i % 5 and i % 7] for k in range(0, 48, 12)]
    with p.auto_stop():
        for _ in range(2):
            assert [np.from_dlpack(batch.image).tolist() for batch in p] == expected


def test_shapes_that_differ_name_stage_and_sample(labelled):
    def crop(s):
        return np.zeros((2, 3) if s.id == 5 else (2, 4), np.uint8)

    error = failure(begin(labelled).pipe(crop, **IN_ORDER).batch(8))
    assert "sample 5" in str(error) and "stage 'crop'" in str(error)
    assert "uint8 2x3" in str(error) and "uint8 2x4" in str(error)


def test_a_batch_of_python_goes_on(labelled):
    kept = []

    def look(batch):
        kept.append((batch, np.asarray(batch.image)))
        return batch

    b = read_and_decode(labelled).batch(16).pipe(look, **IN_ORDER).pipe(ops.normalize(scale=1))
    got = results(b.disaggregate())
    want = images(labelled)
    assert np.array_equal(np.stack([np.asarray(s.data) for s in got]), want.astype(np.float32))
    for i, (batch, image) in enumerate(kept):  # normalize has not changed what Python holds
        assert batch.image.dtype == "uint8"
        assert np.array_equal(np.asarray(batch.image), want[16 * i : 16 * i + 16])
        assert np.array_equal(image, want[16 * i : 16 * i + 16])
    assert [s.label for s in got] == [i // 16 for i in range(48)]


def test_samples_that_change_places_keep_who_they_are(paths):
    src = source.List(paths, label=np.arange(48), caption=[f"c{i}" for i in range(48)])

    def backwards(samples):
        return samples[::-1]

    b = begin(src).pipe(ops.read()).aggregate(16).pipe(backwards).disaggregate()
    (batch,) = results(b.pipe(ops.decode_image(8, 6)).batch(48))
    order = [16 * (i // 16) + 15 - i % 16 for i in range(48)]
    assert ids(batch) == np.asarray(batch.label).tolist() == order
    assert batch["caption"] == [f"c{i}" for i in order]
    assert batch.key == [str(paths[i]) for i in order]
    assert np.array_equal(np.asarray(batch.image), images(src)[order])


def test_samples_of_another_pipeline(labelled, paths):
    got = results(read_and_decode(labelled))
    (batch,) = results(begin(got).batch(48))
    assert ids(batch) == list(range(48)) and batch.key == [str(p) for p in paths]
    assert np.asarray(batch.label).tolist() == [i // 16 for i in range(48)]
    assert np.array_equal(np.asarray(batch.image), images(labelled))
    (whole,) = results(begin([batch]).pipe(ops.normalize(scale=1)))
    assert whole.key == batch.key and np.array_equal(np.asarray(whole.image), images(labelled))
    del got, batch
    samples = results(begin([whole]).pipe(ops.normalize()).disaggregate())
    assert [s.key for s in samples] == [str(p) for p in paths]
    assert [s.id for s in samples] == list(range(48))


# --- routes and merges ---


def test_paths_of_both_kinds(labelled):
    def route(s):
        return s.id % 2

    def load(s):
        return Path(s.data).read_bytes()

    def again(s):
        return np.asarray(s.data)

    native = [Pipe(ops.read()), Pipe(ops.decode_image(8, 6))]
    python = [Pipe(load, **IN_ORDER), Pipe(ops.decode_image(8, 6)), Pipe(again, **IN_ORDER)]
    (batch,) = results(begin(labelled).path_variants(route, [native, python]).batch(48))
    assert np.array_equal(np.asarray(batch.image), images(labelled))
    assert np.asarray(batch.label).tolist() == [i // 16 for i in range(48)]


def test_a_router_between_python_and_native_paths(paths):
    b = begin(paths).path_variants(
        lambda p: int(p.name[0] == "1"), [[Pipe(ops.read())], [Pipe(Path.read_bytes, **IN_ORDER)]]
    )
    (batch,) = results(b.pipe(ops.decode_image(8, 6)).batch(48))
    assert np.array_equal(np.asarray(batch.image), images(source.List(paths)))


def test_merged_sources_of_both_kinds(labelled, paths):
    unlabelled = source.Directory(labelled.path)
    native = PipelineConfig(SourceConfig(unlabelled), [Pipe(ops.read())], SinkConfig(2))
    python = PipelineConfig(SourceConfig([p.read_bytes() for p in paths]), [], SinkConfig(2))
    stages = [Pipe(ops.decode_image(8, 6)), Pipe(lambda s: np.asarray(s.data).sum())]
    p = build_pipeline(PipelineConfig(Merge([native, python]), stages, SinkConfig(2)), num_threads=2)
    with p.auto_stop():
        sums = Counter(int(s.data if type(s) is Sample else s) for s in p)
    assert sums == Counter({k: 2 * n for k, n in Counter(images(labelled).sum((1, 2, 3)).tolist()).items()})
