"""Native sources and Python's in one merge, and samples of several sources in one batch."""

from __future__ import annotations

import numpy as np
import pytest

from lanes import read, same
from stoker import ops, source
from stoker.errors import InvalidArgumentError
from stoker.pipeline import build_pipeline, is_eof
from stoker.pipeline.defs import BatchConfig, Merge, Pipe, PipelineConfig, SinkConfig, SourceConfig


def upstream(src, *stages):
    return PipelineConfig(SourceConfig(src), stages, SinkConfig(1))


def merged(sources, *stages, op=None):
    return build_pipeline(PipelineConfig(Merge(sources, op), stages, SinkConfig(3)), num_threads=2)


async def in_turns(info, inputs, output):
    ends = 0
    while ends < len(inputs):
        ends = 0
        for queue in inputs:
            if is_eof(item := await queue.get()):
                queue.put_nowait(item)
                ends += 1
            else:
                await output.put(item)


DECODE = (Pipe(ops.read()), Pipe(ops.decode_image(8, 8)))


@pytest.mark.parametrize("stages", [(), (Pipe(same),)])
def test_labelled_samples_merge_with_objects(photos, stages):
    native = source.Directory(photos, labels="dir")
    pipeline = merged([upstream(native, *stages), upstream(range(5))])
    items, error = read(pipeline)
    assert error is None
    assert sorted(item for item in items if isinstance(item, int)) == list(range(5))
    samples = [item for item in items if not isinstance(item, int)]
    assert len(samples) == len(list(native)) and all(sample.label is not None for sample in samples)


def test_sources_with_other_labels_merge_where_nothing_batches(photos, paths):
    labelled = upstream(source.Directory(photos, labels="dir"))
    items, error = read(merged([labelled, upstream(source.List(paths[:3]))]))
    assert error is None
    assert sum(sample.label is None for sample in items) == 3


def test_batches_need_the_same_columns(photos, paths):
    labelled = upstream(source.Directory(photos, labels="dir"))
    bare = upstream(source.List(paths[:3]))
    with pytest.raises(InvalidArgumentError, match="other columns or labels"):
        merged([labelled, bare], *DECODE, BatchConfig(4))
    nested = PipelineConfig(Merge([labelled, bare]), [], SinkConfig(1))
    with pytest.raises(InvalidArgumentError, match="other columns or labels"):
        merged([nested, upstream(source.Directory(photos, labels="dir"))], *DECODE, BatchConfig(4))


def test_samples_of_python_bring_their_own_labels(photos, paths):
    def labelled(path):
        return path, np.int64(7)

    native = source.Directory(photos, labels="dir")
    loose = upstream([str(path) for path in paths[:4]], Pipe(labelled))
    pipeline = merged([upstream(native, Pipe(same)), loose], *DECODE, BatchConfig(5))
    items, error = read(pipeline)
    labels = [int(label) for batch in items for label in np.asarray(batch.label)]
    assert error is None and sorted(set(labels)) == [0, 1, 2, 7] and labels.count(7) == 4


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    ("columns", "others"),
    [
        ({"q": [1, 2, 3]}, {"r": np.ones((3, 1000))}),
        ({"q": [1, 2, 3]}, {"q": np.ones((3, 1000))}),
        ({"q": ["a", "b", "c"]}, {"r": [1, 2, 3]}),
        ({"q": [1, 2, 3]}, {}),
        ({"q": [1, 2, 3]}, None),
    ],
)
def test_samples_of_other_columns_cannot_be_in_one_batch(paths, columns, others, first):
    files = [str(path) for path in paths[:3]]
    one = upstream(source.List(files, **columns))
    two = upstream(files if others is None else source.List(files, **others))
    pipeline = merged([one, two] if first == 0 else [two, one], *DECODE, BatchConfig(6), op=in_turns)
    items, error = read(pipeline)
    assert items == []
    (cause,) = error.exceptions
    assert "other columns or labels" in str(cause) and cause.stage == "batch"


def test_columns_may_stand_in_another_order(paths):
    files = [str(path) for path in paths[:3]]
    one = upstream(source.List(files, q=[1, 2, 3], r=["a", "b", "c"]))
    two = upstream(source.List(files, r=["d", "e", "f"], q=[4, 5, 6]))
    (batch,), error = read(merged([one, two], *DECODE, BatchConfig(6), op=in_turns))
    assert error is None
    assert np.asarray(batch.q).tolist() == [1, 4, 2, 5, 3, 6]
    assert list(batch.r) == ["a", "d", "b", "e", "c", "f"]
