"""Order, epochs, ranks: which samples come, when, and that they are the same every time."""

from __future__ import annotations

import os

import numpy as np
import pytest

from stoker import PipelineBuilder, ops, source
from support import all_ids, build, builder, digest, ids


def test_the_main_job(photos):
    src = source.Directory(photos, labels="dir", shuffle=True, seed=0, rank=0, world_size=1, epochs=1)
    p = (
        PipelineBuilder()
        .add_source(src)
        .pipe(ops.read(), concurrency=16)
        .pipe(ops.decode_image(224, 224, crop="random_resized", flip=0.5), on_error="skip")
        .batch(20, drop_last=False)
        .add_sink(3)
        .build(num_threads=2)
    )
    seen = []
    with p.auto_stop():
        for batch in p:
            assert batch.image.shape == (len(batch), 224, 224, 3)
            labels = np.asarray(batch.label)
            for key, label, i in zip(batch.key, labels, ids(batch), strict=True):
                assert f"/c{label}/" in key
                seen.append((i, key))
    assert sorted(i for i, _ in seen) == list(range(48))
    assert len({key for _, key in seen}) == 48


def test_listing_order(tmp_path, photos):
    data = next(photos.glob("*/*.jpg")).read_bytes()
    for name in ("b/2.jpg", "b/10.jpg", "a/z/1.jpg", "a/x.jpg", "a.jpg", "B/1.JPG", "b/no.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    keys = [
        os.path.relpath(key, tmp_path)
        for batch in build(source.Directory(tmp_path))
        for key in batch.key
    ]
    assert keys == ["a.jpg", "B/1.JPG", "a/x.jpg", "a/z/1.jpg", "b/10.jpg", "b/2.jpg"]


def test_unshuffled_is_in_order(photos, paths):
    src = source.Directory(photos)
    assert all_ids(build(src)) == list(range(48))
    keys = [key for batch in build(src) for key in batch.key]
    assert keys == [str(path) for path in paths]


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_same_batches_with_any_number_of_threads(photos, shuffle):
    src = source.Directory(photos, labels="dir", shuffle=shuffle, seed=3, epochs=2)
    first = digest(build(src, threads=1))
    assert len(first) == 12
    for threads in (1, 2, 8):
        read = {"concurrency": 3 * threads}
        assert digest(build(src, threads=threads, read=read, sink=threads)) == first


def test_completion_order_loses_nothing(photos):
    src = source.Directory(photos)
    completion = {"output_order": "completion"}
    pipeline = build(src, read=completion, decode=completion, threads=4)
    batches = list(pipeline)
    assert sorted(i for b in batches for i in ids(b)) == list(range(48))


def test_shuffle(photos):
    def order(**options):
        return all_ids(build(source.Directory(photos, shuffle=True, **options)))

    assert sorted(order()) == list(range(48))
    assert order() != list(range(48)) and order() == order() and order() != order(seed=1)
    two = order(epochs=2)
    assert sorted(two[:48]) == sorted(two[48:]) == list(range(48)) and two[:48] != two[48:]
    assert two[:48] == order()


@pytest.mark.parametrize("world", [1, 2, 5, 7])
@pytest.mark.parametrize("shuffle", [False, True])
def test_ranks_are_disjoint_cover_all_and_make_equal_steps(photos, world, shuffle):
    seen, steps = [], set()
    for rank in range(world):
        src = source.Directory(photos, shuffle=shuffle, rank=rank, world_size=world, epochs=2)
        batches = list(build(src, batch=4))
        for epoch in (0, 1):
            seen.append((epoch, [i for b in batches if b.epoch == epoch for i in ids(b)]))
            steps.add(sum(b.epoch == epoch for b in batches))
    for epoch in (0, 1):
        mine = [i for e, share in seen for i in share if e == epoch]
        assert sorted(mine) == list(range(48))
    assert len(steps) == 1


def test_more_ranks_than_samples(paths):
    total = [
        i
        for rank in range(5)
        for i in all_ids(build(source.List(paths[:3], rank=rank, world_size=5)))
    ]
    assert sorted(total) == [0, 1, 2]


def test_epochs_are_one_stream(photos):
    pipeline = build(source.Directory(photos, epochs=3), batch=20)
    batches = list(pipeline)
    assert [(b.epoch, b.index, len(b)) for b in batches] == [
        (epoch, index, size) for epoch in range(3) for index, size in enumerate((20, 20, 8))
    ]


def test_endless(paths):
    pipeline = build(source.List(paths[:3], epochs=None), batch=3)
    with pipeline.auto_stop():
        epochs = [batch.epoch for batch, _ in zip(pipeline, range(50))]
    assert epochs == list(range(50))


def test_drop_last(photos):
    pipeline = build(source.Directory(photos, epochs=2), batch=20, drop_last=True)
    assert [(b.epoch, b.index, len(b)) for b in pipeline] == [
        (0, 0, 20), (0, 1, 20), (1, 0, 20), (1, 1, 20),
    ]  # fmt: skip


def test_a_batch_larger_than_the_data(paths):
    src = source.List(paths[:3])
    assert [len(b) for b in build(src, batch=100)] == [3]
    assert [len(b) for b in build(src, batch=100, drop_last=True)] == []


@pytest.mark.parametrize(
    ("n", "batch", "drop_last", "want"),
    [(48, 8, False, 6), (48, 20, False, 3), (48, 20, True, 2), (3, 100, True, 0), (1, 1, False, 1)],
)
def test_len(paths, n, batch, drop_last, want):
    pipeline = build(source.List(paths[:n], epochs=4), batch=batch, drop_last=drop_last)
    assert len(pipeline) == want
    assert len(list(pipeline)) == 4 * want
    assert bool(pipeline)


def test_len_of_ranks(paths):
    for world in (1, 5):
        pipeline = build(source.List(paths, rank=world - 1, world_size=world), batch=4)
        assert len(list(pipeline)) == len(pipeline)


def test_len_that_is_not_known(photos):
    src = source.Directory(photos)
    pipeline = build(src)
    with pytest.raises(TypeError, match="length"):
        len(pipeline)
    assert len(list(pipeline)) == 6
    assert len(build(src)) == 6  # the listing is shared


def test_continuous(photos):
    pipeline = build(source.Directory(photos, shuffle=True), continuous=True, batch=20)
    with pipeline.auto_stop():
        epochs = [[(b.epoch, b.index, ids(b)) for b in pipeline] for _ in range(4)]
    for epoch, batches in enumerate(epochs):
        assert [(e, i, len(x)) for e, i, x in batches] == [(epoch, 0, 20), (epoch, 1, 20), (epoch, 2, 8)]
        assert sorted(i for _, _, x in batches for i in x) == list(range(48))
    assert epochs[0][0][2] != epochs[1][0][2]


def test_continuous_get_item(paths):
    pipeline = build(source.List(paths[:4]), continuous=True, batch=4)
    with pipeline.auto_stop():
        for epoch in range(3):
            assert pipeline.get_item().epoch == epoch
            with pytest.raises(EOFError):
                pipeline.get_item()


def test_continuous_has_no_end(paths):
    with pytest.raises(ValueError, match="epochs"):
        builder(source.List(paths, epochs=2), continuous=True)


def test_breaking_out_loses_nothing(paths):
    pipeline = build(source.List(paths), batch=4)
    seen = []
    for _ in range(20):
        for batch in pipeline:
            seen += ids(batch)
            if len(seen) % 8 == 0:
                break
        if len(seen) == 48:
            break
    assert seen == list(range(48))
    pipeline.stop()


def test_breaking_out_of_an_epoch(paths):
    pipeline = build(source.List(paths[:12]), batch=4, continuous=True)
    with pipeline.auto_stop():
        first = next(iter(pipeline))
        rest = list(pipeline)
        assert [b.index for b in (first, *rest)] == [0, 1, 2] and {b.epoch for b in rest} == {0}
        assert [b.epoch for b in pipeline] == [1, 1, 1]


@pytest.mark.parametrize("keep_empty", [False, True])
def test_len_is_the_same_on_all_ranks(paths, keep_empty):
    """Nine samples for four ranks: three positions each, and the last one is a gap but for rank 0."""
    got = []
    for rank in range(4):
        src = source.List(paths[:9], rank=rank, world_size=4)
        b = PipelineBuilder().add_source(src).pipe(ops.read()).pipe(ops.decode_image(8, 8))
        pipeline = b.batch(1, keep_empty=keep_empty).add_sink().build(num_threads=1)
        assert len(pipeline) == 3
        got.append([len(batch) for batch in pipeline])
    last = [0] if keep_empty else []
    assert got == [[1, 1, 1], *[[1, 1, *last]] * 3]


def test_an_exhausted_pipeline_warns_once(paths):
    pipeline = build(source.List(paths[:4]))
    iterator = iter(pipeline)
    assert len(list(iterator)) == 1
    assert list(iterator) == []  # single use: no warning here
    with pytest.warns(RuntimeWarning, match="continuous=True"):
        assert list(pipeline) == []
    assert list(pipeline) == []
    with pytest.raises(EOFError, match="Reached the end of the pipeline"):
        pipeline.get_item()


def test_an_exhausted_pipeline_warns_behind_its_stop(paths):
    pipeline = build(source.List(paths[:4]))
    with pipeline.auto_stop():
        assert len(list(pipeline)) == 1
    with pytest.warns(RuntimeWarning, match="continuous=True"):
        assert list(pipeline) == []
    pipeline.stop()
    assert list(pipeline) == []


def test_what_stop_has_left_is_read_without_a_warning(paths):
    pipeline = build(source.List(paths[:16]), batch=4)
    with pipeline.auto_stop():
        next(iter(pipeline))
    list(pipeline)
    pipeline.stop()
    assert list(pipeline) == []


def test_get_item(paths):
    pipeline = build(source.List(paths[:8]), batch=4)
    assert [ids(pipeline.get_item(timeout=60)) for _ in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    for _ in range(2):
        with pytest.raises(EOFError, match="Reached the end of the pipeline"):
            pipeline.get_item(timeout=60)


def test_samples_without_a_batch_stage(photos, paths):
    b = PipelineBuilder().add_source(source.List(paths[:5]))
    keys = list(b.add_sink().build(num_threads=2))
    assert [s.data for s in keys] == [str(p) for p in paths[:5]] and [s.id for s in keys] == [0, 1, 2, 3, 4]

    read = list(PipelineBuilder().add_source(source.List(paths[:5])).pipe(ops.read()).add_sink().build(num_threads=2))
    for sample, path in zip(read, paths, strict=False):
        assert bytes(sample.data) == path.read_bytes() and sample.key == str(path)
        assert sample.data.readonly and repr(sample).startswith("Sample(id=")
        with pytest.raises(BufferError, match="read-only"):
            sample.data.__dlpack__()
        assert not np.asarray(sample.data).flags.writeable

    decoded = list(build(source.List(paths[:5]), batch=None))
    field = decoded[3].data
    assert field.shape == (32, 32, 3) and len(decoded[3].parts) == 1
    copy = bytes(field)
    del decoded
    assert bytes(field) == copy


def test_disaggregate(paths):
    def run(again):
        b = builder(source.List(paths), batch=8)
        b._sink = None
        if again:
            b.disaggregate().batch(6)
        return [x for batch in b.add_sink().build(num_threads=2) for x in zip(ids(batch), np.asarray(batch.image), strict=True)]

    once, twice = run(False), run(True)
    assert [i for i, _ in once] == [i for i, _ in twice] == list(range(48))
    assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(once, twice, strict=True))


def test_keeping_all_batches_hangs_nothing(photos):
    src = source.Directory(photos, epochs=30)
    kept = list(build(src, batch=4, sink=1))
    assert len(kept) == 360
    again = build(src, batch=4, sink=1)
    for a, b in zip(kept, again, strict=True):
        assert ids(a) == ids(b) and bytes(a.image) == bytes(b.image)
