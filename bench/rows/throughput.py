# SPDX-License-Identifier: BSD-2-Clause
"""The main job: read, decode, random-resized 224 with antialiasing, flip, batches of 64, uint8."""

from functools import partial

from bench import psnr
from bench.context import STOKER, Contender, Context, Task, interleave, outcomes_json, progress, save_raw, verify
from bench.corpus import Corpus
from bench.proc import Failed, Outcome
from bench.stats import estimate, paired_ratio
from bench.table import Row, least, most

THREADS = (1, 2)
LIMIT = "entropy"
HEADER = ["contender", "threads", "CPU-ms/image", "x limit", "with start", "images/s best", "median",
          "first batch ms", "peak PSS MiB", "PSNR dB whole/boxes"]  # fmt: skip


def run_limit(context: Context, corpus: Corpus) -> Outcome:
    done = context.program(LIMIT, corpus.list_file)
    if done.result.get("images") != corpus.count:
        raise Failed(f"entropy: {done.result.get('images')} images of {corpus.count}")
    return done


def run_loader(context: Context, corpus: Corpus, who: Contender, threads: int) -> Outcome:
    return verify(context.load(who, corpus.root, threads=threads), corpus)


def key(who: Contender, threads: int) -> str:
    return f"{who.title}, {threads} thread{'s' if threads > 1 else ''}"


def peak_memory(context: Context, corpus: Corpus) -> dict[str, int]:
    peaks = {}
    for who in context.contenders:
        for threads in THREADS:
            progress(f"memory of {key(who, threads)}")
            done = verify(context.load(who, corpus.root, threads=threads, numpy=1, pss=True), corpus)
            peaks[key(who, threads)] = done.peak_pss_kib
    return peaks


def limit_line(corpus: Corpus, limits: list[Outcome]) -> list[str]:
    decode = estimate([o.result["decode_s"] / corpus.count for o in limits])
    rates = sorted(corpus.count / o.result["decode_s"] for o in limits)
    return ["libjpeg-turbo, entropy decoding only", "1", decode.text(3, 1e3), "1.00", "-",
            f"{rates[-1]:,.0f}", f"{rates[len(rates) // 2]:,.0f}", "-", "-", "-"]  # fmt: skip


def work_per_image(corpus: Corpus, outcomes: list[Outcome]) -> list[float]:
    return [o.work_cpu_s / corpus.count for o in outcomes]


def decode_per_image(corpus: Corpus, limits: list[Outcome]) -> list[float]:
    return [o.result["decode_s"] / corpus.count for o in limits]


def line(corpus: Corpus, who: Contender, threads: int, outcomes: list[Outcome], limits: list[Outcome]) -> list[str]:
    work = work_per_image(corpus, outcomes)
    rates = [corpus.count / o.result["loop_s"] for o in outcomes]
    return [
        who.title,
        str(threads),
        estimate(work).text(3, 1e3),
        paired_ratio(work, decode_per_image(corpus, limits)).text(2),
        f"{estimate([o.cpu_s / corpus.count for o in outcomes]).median * 1e3:.3f}",
        f"{max(rates):,.0f}",
        f"{estimate(rates).median:,.0f}",
        f"{estimate([o.result['first_s'] for o in outcomes]).median * 1e3:.0f}",
    ]


def add_targets(row: Row, corpus: Corpus, ours: dict[int, list[Outcome]], limits: list[Outcome], small: bool) -> None:
    two = work_per_image(corpus, ours[2])
    ratio = paired_ratio(two, decode_per_image(corpus, limits))
    bound = 1.30 if small else 1.12
    row.targets.append(most("CPU time over bare entropy decoding, 2 threads", bound, ratio.median, ratio.text(3), " x"))
    one = paired_ratio(work_per_image(corpus, ours[1]), decode_per_image(corpus, limits))
    row.targets.append(most("the same, 1 thread", bound, one.median, one.text(3), " x"))
    if not small:
        rate = estimate([corpus.count / o.result["loop_s"] for o in ours[2]])
        row.targets.append(least("images/s, 2 threads", 1650, rate.median, rate.text(0)))
    extra = paired_ratio(two, work_per_image(corpus, ours[1]))
    percent = (extra.median - 1) * 100
    text = f"{percent:+.1f} % [{(extra.low - 1) * 100:+.1f}, {(extra.high - 1) * 100:+.1f}]"
    row.targets.append(most("CPU-ms an image, 2 threads over 1", 5, percent, text, " % more"))


def measure_corpus(context: Context, short_side: int) -> Row:
    corpus = context.corpus(short_side)
    title = f"Main job: {corpus.name}, {corpus.count} files of {corpus.mean_bytes / 1000:.0f} kB"
    row = Row("small" if short_side else "main", title, HEADER)
    reference = next(c for c in context.contenders if c.loader == "pillow_threads")
    pixels = psnr.measure(context, short_side, context.contenders, reference)
    peaks = peak_memory(context, corpus)

    tasks: dict[str, Task] = {LIMIT: partial(run_limit, context, corpus)}
    for who in context.contenders:
        for threads in THREADS:
            tasks[key(who, threads)] = partial(run_loader, context, corpus, who, threads)
    results = interleave(context.effort.rounds, tasks, row.name)
    save_raw(row.name, outcomes_json(results))

    limits = results.pop(LIMIT)
    row.lines.append(limit_line(corpus, limits))
    for who in context.contenders:
        for threads in THREADS:
            name = key(who, threads)
            cells = line(corpus, who, threads, results[name], limits)
            row.lines.append([*cells, f"{peaks[name] / 1024:.0f}", pixels[who.title].text()])
    ours = {t: results[key(c, t)] for c in context.contenders if c.loader == STOKER for t in THREADS}
    if ours:
        add_targets(row, corpus, ours, limits, bool(short_side))
        lane = next(c for c in context.contenders if c.loader == STOKER)
        boxes = pixels[lane.title].boxes or 0.0
        row.targets.append(least("PSNR of fast against exact, random boxes", 38, boxes, psnr.show(boxes), " dB"))
    return row
