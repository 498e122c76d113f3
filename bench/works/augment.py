# SPDX-License-Identifier: BSD-2-Clause
"""Pictures of 224 x 224 changed again and again, by one package or another, on one thread."""

import importlib
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.works.flow import cpu_seconds
from bench.works.options import Options, Result, check

Array = np.ndarray[Any, np.dtype[Any]]
SIZE, BATCH, KERNEL, SIGMA, DEGREES, FACTOR, HUE = 224, 32, 23, 1.0, 20.0, 1.3, 0.1
LUMA = np.array([0.2989, 0.587, 0.114])
TIMES = 20  # so that feeding the pipeline is not what is measured
KEPT: list[object] = []  # declarations live as long as this
CLOSE = 2.0  # of 255, for most pixels: packages round at different places


def picture() -> Array:
    draw = np.random.default_rng(0)
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    planes = [128 + 70 * np.sin(x / a + y / b) for a, b in ((31, 17), (13, 40), (60, 25))]
    return np.clip(np.stack(planes, -1) + draw.integers(-9, 10, (SIZE, SIZE, 3)), 0, 255).astype(np.uint8)


def smoothed(x: Array) -> Array:
    steps = np.arange(KERNEL) - KERNEL // 2
    weights = np.exp(-(steps**2) / (2 * SIGMA**2))
    for axis in (0, 1):
        wide = np.pad(x, [(KERNEL // 2,) * 2 if a == axis else (0, 0) for a in range(3)], "reflect")
        x = np.asarray(sum(w * wide.take(range(i, i + SIZE), axis) for i, w in enumerate(weights / weights.sum())))
    return x


def formula(kind: str, x: Array) -> Array | None:
    """What the result is, or None: it is random."""
    gray = np.repeat((x @ LUMA)[..., None], 3, -1)
    towards = {"brightness": np.zeros_like(x), "contrast": np.full_like(x, gray.mean()), "saturation": gray}
    if kind in towards:
        return np.clip(FACTOR * x + (1 - FACTOR) * towards[kind], 0, 255)
    return {"grayscale": gray, "blur": smoothed(x)}.get(kind)


def verify(kind: str, got: Array, x: Array) -> None:
    check(got.shape == x.shape and got.dtype == np.uint8, f"{kind}: {got.shape} {got.dtype}")
    check(kind == "erase" or not np.array_equal(got, x), f"{kind}: nothing changed")
    wanted = formula(kind, x.astype(np.float64))
    if wanted is not None:
        apart = np.abs(got - wanted)
        check(float(np.quantile(apart, 0.99)) <= CLOSE, f"{kind}: {apart.max():.1f} from the formula")


def by_stoker(kind: str, x: Array, items: int, times: int) -> Array:
    """A pipeline from arrays to batches, in which each picture is changed so many times."""
    from stoker import PipelineBuilder, ops

    fixed = (FACTOR, FACTOR)
    op = {
        "brightness": lambda: ops.color_jitter(brightness=fixed),
        "contrast": lambda: ops.color_jitter(contrast=fixed),
        "saturation": lambda: ops.color_jitter(saturation=fixed),
        "hue": lambda: ops.color_jitter(hue=(HUE, HUE)),
        "all four": lambda: ops.color_jitter(0.4, 0.4, 0.4, 0.1),
        "grayscale": lambda: ops.grayscale(1),
        "blur": lambda: ops.blur(KERNEL, SIGMA),
        "rotate": lambda: ops.rotate((DEGREES, DEGREES), "bilinear"),
        "erase": lambda: ops.erase(1),
    }[kind]()
    builder = PipelineBuilder().add_source([x] * items)
    for _ in range(times):
        builder.pipe(op)
    pipeline = builder.batch(BATCH).add_sink(2).build(num_threads=1)
    count = 0
    with pipeline.auto_stop():
        for batch in pipeline:
            count += len(batch)
    check(count == items, f"{count} of {items} pictures")
    return np.asarray(batch.image)[-1]


def transforms() -> Any:
    """torchvision's transforms are Python over torch.  Its native module, which is for other things, does
    not load beside a build of torch without CUDA; then what is looked for is declared, and never called."""
    import torch

    found = importlib.util.find_spec("torchvision")
    check(found is not None and found.origin is not None, "no torchvision")
    try:
        torch.ops.load_library(str(Path(str(found and found.origin)).parent / "_C.so"))
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        KEPT.append(library)
    return importlib.import_module("torchvision.transforms")


def of_torchvision(kind: str, x: Array) -> Callable[[], Any]:
    import torch

    module = transforms()
    v2 = importlib.import_module("torchvision.transforms.v2")
    torch.set_num_threads(1)
    fixed = (FACTOR, FACTOR)
    op = {
        "brightness": lambda: v2.ColorJitter(brightness=fixed),
        "contrast": lambda: v2.ColorJitter(contrast=fixed),
        "saturation": lambda: v2.ColorJitter(saturation=fixed),
        "hue": lambda: v2.ColorJitter(hue=(HUE, HUE)),
        "all four": lambda: v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        "grayscale": lambda: v2.RandomGrayscale(1),
        "blur": lambda: v2.GaussianBlur(KERNEL, SIGMA),
        "rotate": lambda: v2.RandomRotation((DEGREES, DEGREES), module.InterpolationMode.BILINEAR),
        "erase": lambda: v2.RandomErasing(1),
    }[kind]()
    image = torch.from_numpy(x).permute(2, 0, 1).contiguous()
    return lambda: op(image).permute(1, 2, 0).numpy()


def of_pillow(kind: str, x: Array) -> Callable[[], Any]:
    from PIL import Image, ImageEnhance, ImageFilter

    image = Image.fromarray(x)

    def turn_hue() -> Image.Image:
        h, s, v = image.convert("HSV").split()
        h = h.point([(i + round(HUE * 255)) % 256 for i in range(256)])
        return Image.merge("HSV", (h, s, v)).convert("RGB")

    return {
        "brightness": lambda: ImageEnhance.Brightness(image).enhance(FACTOR),
        "contrast": lambda: ImageEnhance.Contrast(image).enhance(FACTOR),
        "saturation": lambda: ImageEnhance.Color(image).enhance(FACTOR),
        "hue": turn_hue,
        "grayscale": lambda: image.convert("L").convert("RGB"),
        "blur": lambda: image.filter(ImageFilter.GaussianBlur(SIGMA)),
        "rotate": lambda: image.rotate(DEGREES, Image.Resampling.BILINEAR),
    }[kind]


def run(o: Options) -> Result:
    """`items` pictures; one is compared with the formula before, where there is one."""
    x = picture()
    if o.package == "stoker":
        verify(o.kind, by_stoker(o.kind, x, BATCH, 1), x)
        work: Callable[[], object] = lambda: by_stoker(o.kind, x, o.items // TIMES, TIMES)
    else:
        once = (of_pillow if o.package == "pillow" else of_torchvision)(o.kind, x)
        verify(o.kind, np.asarray(once()), x)

        def work() -> None:
            for _ in range(o.items):
                once()

    cpu, start = cpu_seconds(), time.perf_counter()
    work()
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    return {"items": o.items, "seconds": seconds, "cpu_s": cpu}
