"""Shards of tests, and pipelines that read them."""

from __future__ import annotations

import io
import tarfile
import zipfile

from stoker import PipelineBuilder, ops


def write(path, members, format=tarfile.PAX_FORMAT):
    """Members: (name, bytes)."""
    with tarfile.open(path, "w", format=format) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def write_zip(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("folder/", b"")
        for name, data in members:
            archive.writestr(name, data)
    return path


def batches(src, n=1000, on_error="raise", threads=2):
    builder = PipelineBuilder().add_source(src).pipe(ops.read(), on_error=on_error)
    pipeline = builder.pipe(ops.decode_image(32, 32)).batch(n).add_sink(3).build(num_threads=threads)
    return list(pipeline), pipeline
