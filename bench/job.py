# SPDX-License-Identifier: BSD-2-Clause
"""What a contender is asked to do.  Imports almost nothing: importing is part of what is measured."""

import math
import os
import random
import sys

SIZE = 224


class Job:
    """Options of one run, given as key=value words on the command line."""

    def __init__(self, words: list[str]) -> None:
        given = dict(word.split("=", 1) for word in words)
        self.loader = given["loader"]
        self.root = given["root"]
        self.threads = int(given.get("threads", "2"))
        self.batch = int(given.get("batch", "64"))
        self.epochs = int(given.get("epochs", "1"))  # -1: endless
        self.limit = int(given.get("limit", "-1"))  # batches to read, -1: all
        self.geometry = given.get("geometry", "random")  # random: box and flip; whole: neither
        self.shuffle = given.get("shuffle", "1") == "1"
        self.quality = given.get("quality", "fast")  # only Stoker has two
        self.out = given.get("out", "")  # .npz to keep images and labels in
        self.numpy = given.get("numpy", "0") == "1"  # the program around uses NumPy too
        self.start_ns = int(given.get("start_ns", "0"))  # monotonic clock when the process began
        self.loop = given.get("loop", "")  # of the noisy neighbour: matmul, python
        self.seconds = float(given.get("seconds", "1"))
        self.ask_s = float(given.get("ask_s", "0.2"))  # the loop asks for a batch so often

    @staticmethod
    def from_argv() -> "Job":
        return Job(sys.argv[1:])


def listing(root: str) -> list[tuple[str, int]]:
    """(path, label) of every picture: folders sorted, then names sorted; labels count folders."""
    found: list[tuple[str, int]] = []
    with os.scandir(root) as entries:
        folders = sorted(entry.name for entry in entries if entry.is_dir())
    for label, folder in enumerate(folders):
        path = os.path.join(root, folder)
        found += [(os.path.join(path, name), label) for name in sorted(os.listdir(path))]
    return found


def epoch_order(count: int, epoch: int, shuffle: bool) -> list[int]:
    order = list(range(count))
    if shuffle:
        random.Random(epoch).shuffle(order)
    return order


def epoch_numbers(epochs: int) -> range:
    return range(sys.maxsize if epochs < 0 else epochs)


class Geometry:
    """The part of an image to cut out, and whether to mirror it."""

    __slots__ = ("x", "y", "width", "height", "flip")

    def __init__(self, x: int, y: int, width: int, height: int, flip: bool) -> None:
        self.x, self.y, self.width, self.height, self.flip = x, y, width, height, flip


def geometry(job: Job, index: int, epoch: int, width: int, height: int) -> Geometry:
    """The same for every contender that takes boxes: a function of (index, epoch, size).

    The distribution is that of torchvision's RandomResizedCrop: area 0.08 to 1, ratio 3/4 to
    4/3, ten tries, then the largest centred box of an allowed ratio.
    """
    if job.geometry == "whole":
        return Geometry(0, 0, width, height, False)
    draw = random.Random(epoch * 10_000_019 + index)
    flip = draw.random() < 0.5
    for _ in range(10):
        area = width * height * draw.uniform(0.08, 1.0)
        ratio = math.exp(draw.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return Geometry(draw.randint(0, width - w), draw.randint(0, height - h), w, h, flip)
    w, h = width, height
    if width / height < 3 / 4:
        h = round(width / (3 / 4))
    elif width / height > 4 / 3:
        w = round(height * 4 / 3)
    return Geometry((width - w) // 2, (height - h) // 2, w, h, flip)
