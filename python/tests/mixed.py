"""Pipelines of native and Python stages, for tests of both."""

from __future__ import annotations

import numpy as np
import pytest

from stoker import PipelineBuilder, PipelineFailure, ops

IN_ORDER = {"output_order": "input"}


def begin(src, **options) -> PipelineBuilder:
    return PipelineBuilder().add_source(src, **options)


def results(b: PipelineBuilder, threads: int = 2, sink: int = 3) -> list:
    p = b.add_sink(sink).build(num_threads=threads)
    with p.auto_stop():
        return list(p)


def failure(b: PipelineBuilder) -> Exception:
    with pytest.raises(PipelineFailure) as caught:
        results(b)
    return caught.value.exceptions[0]


def read_and_decode(src, **options) -> PipelineBuilder:
    return begin(src).pipe(ops.read()).pipe(ops.decode_image(8, 6, **options))


def images(src) -> np.ndarray:
    return np.concatenate([np.asarray(batch.image) for batch in results(read_and_decode(src).batch(16))])
