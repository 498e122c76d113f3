#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a folder of photographs for the demo and the benchmarks.

They are cut from the pictures of the Debian package mate-backgrounds, one folder (class)
for each picture, to ImageNet's distribution of sizes: most 500 pixels wide or high, a
few bigger, about 110 kB each.  The same options give the same bytes, with any number of
processes.  Folders are kept in build/photos and made once.  The last line printed is the
folder.

    scripts/make-photos.py                                   build/photos/<options>
    scripts/make-photos.py OUT --count 200
    scripts/make-photos.py --short-side 256                  about 37 kB each
"""

import argparse
import glob
import io
import json
import math
import multiprocessing
import os
import random
import shutil
import sys

from PIL import Image, ImageChops, ImageFilter

PICTURES = "/usr/share/backgrounds/mate/nature"
SUBSAMPLING_420 = 2
SHARPEN = ImageFilter.UnsharpMask(radius=1.2, percent=130, threshold=0)  # as cameras do
MARKER = ".photos.json"

# (width, height, weight): the commonest sizes of ImageNet, and a tail of bigger ones.
# Mean 0.2 million pixels, as there.
SIZES = [
    (500, 375, 42), (375, 500, 10), (500, 333, 12), (333, 500, 5), (500, 500, 3),
    (500, 334, 4), (500, 400, 2), (400, 300, 4), (320, 240, 3), (300, 400, 2),
    (250, 250, 2), (480, 360, 2), (640, 480, 5), (800, 600, 2), (1024, 768, 1),
    (1200, 900, 0.5), (1600, 1200, 0.5),
]  # fmt: skip

originals = []  # filled before the workers are forked, shared by them


def load_originals(folder):
    paths = sorted(glob.glob(os.path.join(folder, "*.jpg")))
    if not paths:
        sys.exit(f"make-photos: no pictures in {folder}: apt-get install mate-backgrounds")
    for path in paths:
        name = os.path.splitext(os.path.basename(path))[0]
        with Image.open(path) as image:
            originals.append((name, image.convert("RGB")))


def cut(image, width, height, rng):
    """A random part of `image` in the shape width x height, resized to it."""
    most = min(image.width / width, image.height / height)
    least = min(most, max(0.5 * most, 1.0))
    scale = rng.uniform(least, most)
    w, h = width * scale, height * scale
    x, y = rng.uniform(0, image.width - w), rng.uniform(0, image.height - h)
    out = image.resize((width, height), Image.Resampling.LANCZOS, box=(x, y, x + w, y + h))
    return out.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else out


def grain(image, rng, sigma):
    """Adds the noise of a camera's sensor: what makes photographs as large as they are."""
    noise = Image.frombytes("L", image.size, rng.randbytes(image.width * image.height))
    # A uniform byte has a deviation of 74 around 127.5.
    noise = noise.point([round(128 + (v - 127.5) * sigma / 74) for v in range(256)])
    return ImageChops.add(image, Image.merge("RGB", [noise] * 3), offset=-128)


def encode(image, quality):
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality, subsampling=SUBSAMPLING_420)
    return out.getvalue()


def encode_to_size(image, wanted, low=75, high=97):
    """The JPEG whose size comes closest to `wanted` bytes without search: the size grows
    about as (100 - quality) ** -0.53 in this range."""
    first = encode(image, 88)
    quality = 100 - 12 * (len(first) / wanted) ** (1 / 0.53)
    return encode(image, min(high, max(low, round(quality))))


def make_one(task):
    index, out, options = task
    rng = random.Random(f"{options['seed']}-{index}")
    name, image = originals[index % len(originals)]
    sizes, weights = [s[:2] for s in SIZES], [s[2] for s in SIZES]
    width, height = rng.choices(sizes, weights)[0]
    photo = cut(image, width, height, rng)
    wanted = rng.lognormvariate(0.02, 0.35)
    short = options["short_side"]
    if short:
        ratio = short / min(width, height)
        photo = photo.resize((round(width * ratio), round(height * ratio)), Image.Resampling.LANCZOS)
    photo = photo.filter(SHARPEN)
    photo = grain(photo, rng, rng.uniform(5, 10))
    pixels = photo.width * photo.height
    wanted *= options["mean_bytes"] * math.sqrt(pixels) / options["mean_root_pixels"]
    data = encode_to_size(photo, wanted)
    with open(os.path.join(out, name, f"{index:06d}.jpg"), "wb") as file:
        file.write(data)
    return len(data)


def progress(done, count, size):
    if sys.stderr.isatty():
        end = "\n" if done == count else ""
        sys.stderr.write(f"\rmaking photographs: {done}/{count}, {size / done / 1000:.0f} kB each {end}")
        sys.stderr.flush()


def make_all(out, options, jobs):
    load_originals(options["pictures"])
    for name, _ in originals:
        os.makedirs(os.path.join(out, name))
    count, size = options["count"], 0
    tasks = ((i, out, options) for i in range(count))
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for done, written in enumerate(pool.imap_unordered(make_one, tasks, 8), 1):
            size += written
            if done % 20 == 0 or done == count:
                progress(done, count, size)
    return size


def complete(out, options):
    """True when `out` holds what `options` say; ends the program when it holds other things."""
    if not os.path.exists(out):
        return False
    try:
        with open(os.path.join(out, MARKER)) as file:
            same = json.load(file) == options
    except (OSError, ValueError):
        same = False
    if not same:
        sys.exit(f"make-photos: {out} exists and holds other files: name another folder")
    return True


def root_pixels(size, short):
    w, h = size[:2]
    scale = short / min(w, h) if short else 1
    return scale * math.sqrt(w * h)


def parse():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("out", nargs="?", help="folder to make (default: build/photos/<options>)")
    p.add_argument("--count", type=int, default=2000, help="photographs (default: %(default)s)")
    p.add_argument("--short-side", type=int, default=0, help="resize each to this short side")
    p.add_argument("--mean-kb", type=float, help="mean size in kB (110, or 37 with --short-side)")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--pictures", default=PICTURES, help="folder of pictures to cut from")
    args = p.parse_args()
    if args.count < 1 or args.jobs < 1 or args.short_side < 0:
        p.error("--count and --jobs must be at least 1, --short-side at least 0")
    return args


def main():
    args = parse()
    short = args.short_side
    mean_kb = args.mean_kb or (37 * (short / 256) ** 1.5 if short else 110)
    total = sum(s[2] for s in SIZES)
    options = {
        "count": args.count, "short_side": short, "mean_bytes": round(mean_kb * 1000),
        "seed": args.seed, "pictures": args.pictures, "version": 1,
        "mean_root_pixels": round(sum(s[2] * root_pixels(s, short) for s in SIZES) / total, 3),
    }  # fmt: skip
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    side = f"-short{short}" if short else ""
    name = f"{args.count}{side}-{mean_kb:.0f}kB-seed{args.seed}"
    out = os.path.abspath(args.out or os.path.join(root, "build", "photos", name))
    if not complete(out, options):
        partial = f"{out}.{os.getpid()}.part"
        try:
            size = make_all(partial, options, args.jobs)
            with open(os.path.join(partial, MARKER), "w") as file:
                json.dump(options, file)
            os.rename(partial, out)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        print(f"made {args.count} photographs, {size / args.count / 1000:.1f} kB each")
    print(out)


if __name__ == "__main__":
    main()
