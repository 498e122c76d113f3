# SPDX-License-Identifier: BSD-2-Clause
"""Members of a tar archive, from memory and from a file."""

import importlib
import io
import random
import tarfile
import tempfile
import time
from typing import Any

from bench.works.flow import cpu_seconds
from bench.works.options import Options, Result, check

MEMBERS, SIZE = 10_000, 8_000


def archive() -> tuple[bytes, dict[str, bytes]]:
    draw = random.Random(0)
    wanted = {f"{i:06}.jpg": draw.randbytes(SIZE) for i in range(MEMBERS)}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in wanted.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue(), wanted


def through_module(file: Any) -> Any:
    """What Python has for it."""
    with tarfile.open(fileobj=file) as tar:
        for member in tar:
            yield member.name, tar.extractfile(member).read()  # type: ignore[union-attr]


def run(o: Options) -> Result:
    """The archive `items` times, from where `kind` says; the members of one more time are compared."""
    data, wanted = archive()
    iter_tarfile = through_module if o.package == "tarfile" else importlib.import_module(f"{o.package}.io").iter_tarfile
    with tempfile.NamedTemporaryFile(suffix=".tar") as file:
        file.write(data)
        file.flush()

        def once(keep: Any) -> None:
            if o.kind == "memory":
                keep(iter_tarfile(io.BytesIO(data) if o.package == "tarfile" else data))
            elif o.kind == "path":
                keep(iter_tarfile(file.name))
            else:
                with open(file.name, "rb") as opened:
                    keep(iter_tarfile(opened))

        def count(members: Any) -> None:
            n = 0
            for _ in members:
                n += 1
            check(n == MEMBERS, f"{n} of {MEMBERS} members")

        got: dict[str, bytes] = {}
        once(lambda members: got.update((name, bytes(view)) for name, view in members))
        check(got == wanted and list(got) == list(wanted), "other members")
        cpu, start = cpu_seconds(), time.perf_counter()
        for _ in range(o.items):
            once(count)
        seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    return {"items": o.items * MEMBERS, "seconds": seconds, "cpu_s": cpu}
