"""Sources without a pipeline."""

from __future__ import annotations

import pytest

from stoker import PipelineBuilder, errors, source
from support import ok


def test_sources_are_iterable(photos, paths):
    labelled = source.Directory(photos, labels="dir")
    got = list(labelled)
    assert [s.data for s in got] == [str(p) for p in paths]
    assert [s.label for s in got] == [i // 16 for i in range(48)]
    shuffled = source.List(paths, shuffle=True, seed=3, epochs=2)
    b = PipelineBuilder().add_source(shuffled).add_sink(3)
    with b.build(num_threads=2) as p:
        want = list(p)
    assert [(s.id, s.epoch) for s in shuffled] == [(s.id, s.epoch) for s in want]
    assert [s.id for s in iter(source.List(paths, rank=1, world_size=4))] == list(range(1, 48, 4))


def test_leaving_an_iterator_ends_it(paths):
    endless = source.List(paths, epochs=None)
    it = iter(endless)
    assert [next(it).id for _ in range(100)] == [i % 48 for i in range(100)]
    it.close()
    assert next(it, None) is None
    with pytest.raises(errors.NotFoundError):
        next(iter(source.Directory("/nowhere/at/all")))
    assert (
        ok(
            """
            from stoker import source
            it = iter(source.List(sys.argv[1:], epochs=None))
            print(next(it).id)
            """,
            paths[0],
        )
        == "0\n"
    )
