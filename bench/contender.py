# SPDX-License-Identifier: BSD-2-Clause
"""One run of one contender, in a process of its own: python -P bench/contender.py loader=... root=...

Prints one line of JSON: what was delivered and when, in seconds and by the monotonic clock.
"""

import importlib
import resource
import time

from bench.job import SIZE, Job


def cpu_seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def keep(path: str, images: list[bytes], labels: list[int]) -> None:
    import numpy as np

    pixels = np.frombuffer(b"".join(images), np.uint8).reshape(-1, SIZE, SIZE, 3)
    np.savez(path, images=pixels, labels=np.array(labels))


def main() -> None:
    job = Job.from_argv()
    loader = importlib.import_module(f"bench.loaders.{job.loader}")
    if job.numpy:
        import numpy  # noqa: F401
    ready = time.monotonic_ns()
    ready_cpu = cpu_seconds(resource.RUSAGE_SELF) + cpu_seconds(resource.RUSAGE_CHILDREN)

    first = 0
    images = batches = label_sum = 0
    kept: list[bytes] = []
    kept_labels: list[int] = []
    for data, labels in loader.batches(job):
        first = first or time.monotonic_ns()
        values = list(labels)
        if tuple(data.shape) != (len(values), SIZE, SIZE, 3):
            raise SystemExit(f"{job.loader}: batch {batches} has shape {data.shape}")
        images += len(values)
        label_sum += sum(values)
        batches += 1
        if job.out:
            kept.append(data.tobytes())
            kept_labels += values
        if batches == job.limit:
            break
    end = time.monotonic_ns()

    if job.out:
        keep(job.out, kept, kept_labels)
    line = {
        "images": images,
        "batches": batches,
        "label_sum": label_sum,
        "start_cpu_s": ready_cpu,
        "import_s": (ready - job.start_ns) / 1e9,
        "first_s": (first - ready) / 1e9,
        "first_from_start_s": (first - job.start_ns) / 1e9,
        "loop_s": (end - ready) / 1e9,
    }
    # JSON by hand: importing json here would cost 4 ms of the CPU time that is measured.
    print("{" + ", ".join(f'"{name}": {value}' for name, value in line.items()) + "}", flush=True)


main()
