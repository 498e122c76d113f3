# SPDX-License-Identifier: BSD-2-Clause
"""Arrays out of NumPy's files and archives in memory, by one package or another, on some threads."""

import importlib
import io
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench.works.flow import cpu_seconds
from bench.works.options import Options, Result, check

Arrays = Mapping[str, Any]
Reader = Callable[[bytes], Arrays]


def sample() -> dict[str, Any]:
    """A clip, features and a label: about 4 MB, of which deflate saves a third."""
    draw = np.random.default_rng(0)
    y, x = np.mgrid[0:224, 0:224]
    smooth = 128 + 90 * np.sin(x / 31 + y / 17)
    clip = smooth[None, :, :, None] + draw.integers(-3, 4, (16, 224, 224, 3))
    features = draw.standard_normal((512, 768)).astype(np.float32).round(2)
    return {"clip": clip.astype(np.uint8), "features": features, "label": np.array(3)}


def packed(kind: str, arrays: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    if kind == "npy":
        np.save(out, arrays["clip"])
    else:
        (np.savez_compressed if kind == "deflated" else np.savez)(out, **arrays)
    return out.getvalue()


def reader(package: str, kind: str) -> Reader:
    """All arrays of a file."""
    if package == "numpy":
        if kind == "npy":
            return lambda data: {"clip": np.load(io.BytesIO(data))}
        return lambda data: dict(np.load(io.BytesIO(data)))
    module = importlib.import_module(f"{package}.io")
    load_npy, load_npz = module.load_npy, module.load_npz
    if kind == "npy":
        return lambda data: {"clip": load_npy(data)}
    return lambda data: dict(load_npz(data))


def verify(got: Arrays, wanted: Arrays) -> None:
    check(set(got) == set(wanted), f"arrays {sorted(got)}")
    for name, array in wanted.items():
        same = got[name].dtype == array.dtype and got[name].shape == array.shape and np.array_equal(got[name], array)
        check(same, f"another {name}")


def load(o: Options) -> Result:
    """`items` files on each of `threads`; the first and the last of each thread are compared."""
    arrays = sample()
    wanted = {"clip": arrays["clip"]} if o.kind == "npy" else arrays
    data = packed(o.kind, arrays)
    read = reader(o.package, o.kind)
    verify(read(data), wanted)
    if o.package == "stoker" and o.kind != "deflated":
        whole = np.frombuffer(data, np.uint8)
        check(all(np.shares_memory(array, whole) for array in read(data).values()), "a copy")

    last: list[Arrays] = []

    def work() -> None:
        got: Arrays = {}
        for _ in range(o.items):
            got = read(data)
        last.append(got)

    threads = [threading.Thread(target=work) for _ in range(o.threads)]
    cpu, start = cpu_seconds(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    check(len(last) == o.threads, f"{len(last)} of {o.threads} threads came to the end")
    for got in last:
        verify(got, wanted)
    items = o.items * o.threads
    size = sum(array.nbytes for array in wanted.values())
    return {"items": items, "bytes": items * size, "seconds": seconds, "cpu_s": cpu}
