"""mixup and cutmix, against torchvision's formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from augment import close, noise, pictures, uniform
from mixed import IN_ORDER, begin, failure, results
from stoker import ops, source
from support import digest

OPS = {"mixup": ops.mixup, "cutmix": ops.cutmix}


def rolled(x):
    return np.roll(np.asarray(x), 1, 0)


def batches(arrays, *stages, n=4, labels=True, threads=2):
    """Of arrays of Python, with labels that count."""
    items = [(x, i % 7) for i, x in enumerate(arrays)] if labels else arrays
    b = begin(items).pipe(lambda item: item, **IN_ORDER).batch(n)
    for op in stages:
        b = b.pipe(op)
    return results(b, threads)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("shape", [(9, 11, 3), (1, 1, 1), (2, 5, 6, 3)])
def test_mixup_is_its_formula(dtype, shape):
    x = [noise(i, *shape).astype(dtype) for i in range(12)]
    for k, batch in enumerate(batches(x, ops.mixup(0.8))):
        part = np.stack(x[4 * k : 4 * k + 4]).astype(float)
        lam = np.asarray(batch.lam)
        assert lam.dtype == np.float32 and lam.shape == (4,) and (lam == lam[0]).all() and 0 < lam[0] < 1
        want = lam[0] * part + (1 - lam[0]) * rolled(part)
        if dtype == "uint8":
            close(np.asarray(batch.image), want)
        else:
            assert batch.image.dtype == "float32"
            assert np.allclose(np.asarray(batch.image), want, rtol=1e-5)
        assert np.array_equal(batch.label_b, rolled(batch.label))
        assert np.asarray(batch.label).tolist() == [i % 7 for i in range(4 * k, 4 * k + 4)]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("frames", [(), (3,)])
def test_cutmix_takes_one_box(dtype, layout, frames):
    x = [(np.arange(30 * 40 * 3).reshape(30, 40, 3) * 7 + i) % 251 for i in range(12)]
    x = [np.broadcast_to(a, (*frames, 30, 40, 3)).astype(dtype) for a in x]
    if layout == "NCHW":
        x = [np.moveaxis(a, -1, -3) for a in x]
    cut = 0
    for k, batch in enumerate(batches(x, ops.cutmix(layout=layout))):
        part = np.stack(x[4 * k : 4 * k + 4])
        got = np.asarray(batch.image)
        assert got.dtype == dtype and got.shape == part.shape
        other = got != part
        assert np.array_equal(np.where(other, rolled(part), part), got)
        channels = -1 if layout == "NHWC" else -3
        box = other.any(channels).reshape(-1, 30, 40)
        assert (box == box[0]).all()
        y, x_ = np.nonzero(box[0])
        area = (np.ptp(y) + 1) * (np.ptp(x_) + 1) if len(y) else 0
        assert len(y) == area
        assert np.asarray(batch.lam)[0] == pytest.approx(1 - area / 1200, abs=1e-6)
        cut += area > 0
    assert cut > 0


@pytest.mark.parametrize("name", OPS)
def test_shares_of_classes(name):
    x = [noise(i, 6, 6, 3) for i in range(8)]
    eye = np.eye(7, dtype=np.float32)
    for k, batch in enumerate(batches(x, OPS[name](num_classes=7))):
        lam = np.asarray(batch.lam)[0]
        hot = eye[[i % 7 for i in range(4 * k, 4 * k + 4)]]
        assert batch.label.dtype == "float32" and "label_b" not in batch
        assert np.allclose(np.asarray(batch.label), lam * hot + (1 - lam) * rolled(hot), atol=1e-6)
    soft = np.random.default_rng(0).dirichlet(np.ones(5), 8).astype(np.float32)
    made = begin(list(zip(x, soft, strict=True))).pipe(lambda item: item, **IN_ORDER).batch(8)
    (batch,) = results(made.pipe(OPS[name](num_classes=5)))
    lam = np.asarray(batch.lam)[0]
    assert np.allclose(np.asarray(batch.label), lam * soft + (1 - lam) * rolled(soft), atol=1e-6)


def test_lam_is_drawn_from_beta():
    x = [np.full((1, 1, 1), 9, np.uint8)] * 8000
    for alpha in (1.0, 0.2, 3.0, 0.002):
        lam = np.array([np.asarray(b.lam)[0] for b in batches(x, ops.mixup(alpha), n=2, labels=False)], float)
        assert len(lam) == 4000 and (lam >= 0).all() and (lam <= 1).all()
        if alpha == 1:
            uniform(lam, 0, 1)
        # Of Beta(a, a): mean 1 / 2, variance 1 / (4 (2 a + 1)).
        variance = 1 / (4 * (2 * alpha + 1))
        assert abs(lam.mean() - 0.5) < 4 * np.sqrt(variance / 4000)
        assert lam.var() == pytest.approx(variance, rel=0.08)
    big = [np.full((100, 100, 1), 9, np.uint8)] * 2000
    lam = np.array([np.asarray(b.lam)[0] for b in batches(big, ops.cutmix(), n=1, labels=False)], float)
    assert 0.6 < lam.mean() < 0.75  # more than 1 / 2, as boxes are cut off at the edges


def test_one_of_the_two():
    x = [noise(i % 5, 8, 8, 1) for i in range(3000)]
    mixed = batches(x, ops.mixup(p=0.5), n=3)
    share = np.mean([np.asarray(b.lam)[0] < 1 for b in mixed])
    assert abs(share - 0.5) < 0.07
    both = batches(x, ops.mixup(p=0.5), ops.cutmix(), n=3)
    for first, second in zip(mixed, both, strict=True):
        if np.asarray(first.lam)[0] < 1:
            assert np.array_equal(first.image, second.image) and np.array_equal(first.lam, second.lam)
        assert np.array_equal(second.label_b, rolled(second.label)) or np.asarray(second.lam)[0] == 1
    assert np.mean([np.asarray(b.lam)[0] < 1 for b in both]) > 0.9
    for batch in batches(x[:300], ops.mixup(p=0.5, num_classes=7), ops.cutmix(num_classes=7), n=3):
        assert np.allclose(np.asarray(batch.label).sum(1), 1)


def test_one_of_the_two_with_labels_of_strings(pictures):
    files, _ = pictures
    words = [f"w{i}" for i in range(24)]
    src = source.List(image=files, caption=words, files=["image"], seed=1, epochs=10)
    b = begin(src).pipe(ops.read()).pipe(ops.decode_image(16, 12)).batch(4)
    b = b.pipe(ops.mixup(p=0.5, label="caption")).pipe(ops.cutmix(label="caption"))
    lams = []
    for k, batch in enumerate(b.add_sink(3).build(num_threads=2)):
        at = 4 * (k % 6)
        lams.append(np.asarray(batch.lam)[0])
        assert list(batch.caption) == words[at : at + 4]
        assert list(batch.caption_b) == [words[at + 3], *words[at : at + 3]] or lams[-1] == 1
    assert len(lams) == 60 and np.mean(np.array(lams) < 1) > 0.9


def test_batches_of_one_and_without_labels():
    x = noise(1, 5, 5, 3)
    for op in (ops.mixup(), ops.cutmix()):
        (batch,) = batches([x], op, n=1, labels=False)
        close(np.asarray(batch.image)[0], x.astype(float))
        assert "label_b" not in batch and np.asarray(batch.lam).shape == (1,)


def native(files, *stages, threads=2, labels=True, **order):
    src = source.List(files, [i % 5 for i in range(len(files))] if labels else None, **order)
    b = begin(src).pipe(ops.read()).pipe(ops.decode_image(16, 12)).batch(5)
    for op in stages:
        b = b.pipe(op)
    return b.add_sink(3).build(num_threads=threads)


@pytest.mark.parametrize("name", OPS)
def test_the_same_with_any_number_of_threads(pictures, name):
    files, _ = pictures
    order = {"shuffle": True, "seed": 3, "epochs": 3}
    first = digest(native(files, OPS[name](), threads=1, **order))
    for threads in (1, 2, 8):
        assert digest(native(files, OPS[name](), threads=threads, **order)) == first
    lams = [np.asarray(b.lam)[0] for b in native(files, OPS[name](), **order)]
    assert len(lams) == 15 and len(set(lams)) > 8  # boxes are whole pixels
    other = [np.asarray(b.lam)[0] for b in native(files, OPS[name](), **{**order, "seed": 4})]
    assert lams != other and lams[:5] != lams[5:10]


@pytest.mark.parametrize("name", OPS)
def test_ranks_draw_differently(pictures, name):
    files, _ = pictures

    def lams(**order):
        return [float(np.asarray(b.lam)[0]) for b in native(files * 4, OPS[name](), seed=3, **order)]

    ranks = [lams(rank=rank, world_size=4) for rank in range(4)]
    assert all(len(some) == 5 for some in ranks)
    assert len({tuple(some) for some in ranks}) == 4
    assert ranks == [lams(rank=rank, world_size=4) for rank in range(4)], "runs repeat"
    assert ranks[0] == lams()[:5], "one process draws as rank 0"


@pytest.mark.parametrize("name", OPS)
def test_what_python_keeps_stays_as_it_was(pictures, name):
    files, _ = pictures
    kept = []

    def keep(batch):
        kept.append((batch, np.asarray(batch.image).copy()))
        return batch

    src = source.List(files, [i % 5 for i in range(24)])
    b = begin(src).pipe(ops.read()).pipe(ops.decode_image(16, 12)).batch(5).pipe(keep, **IN_ORDER)
    got = results(b.pipe(OPS[name]()).pipe(ops.normalize()))
    plain = list(native(files, OPS[name](), ops.normalize()))
    assert all(np.array_equal(x.image, y.image) for x, y in zip(got, plain, strict=True))
    for batch, before in kept:
        assert np.array_equal(batch.image, before) and "lam" not in batch and "label_b" not in batch


@pytest.mark.parametrize("name", OPS)
def test_wrong_places_and_fields(pictures, name):
    files, _ = pictures
    op = OPS[name]
    with pytest.raises(ValueError, match="takes batches but gets arrays: put a batch stage before it"):
        begin(source.List(files)).pipe(ops.read()).pipe(ops.decode_image(8, 8)).pipe(op()).add_sink().build(
            num_threads=1
        )

    def text(made, *arrays, labels=True):
        items = [(x, i) for i, x in enumerate(arrays)] if labels else list(arrays)
        return str(failure(begin(items).pipe(lambda item: item, **IN_ORDER).batch(4).pipe(made)))

    x = noise(1, 4, 4, 3)
    assert 'field "mask": the batch has none of that name' in text(op(field="mask"), x)
    assert "sample 2 of the batch has 2, but there are 2 classes" in text(op(num_classes=2), x, x, x)
    assert "num_classes is given, but the batch has no such labels" in text(op(num_classes=2), x, labels=False)
    flat = noise(1, 4, 4)
    if name == "cutmix":
        assert "needs (n, height, width, channels)" in text(op(), flat)
        planes = noise(1, 3, 8, 9)
        assert 'say layout="NCHW" if they are the 3' in text(op(), planes)
        assert 'say layout="NHWC" if they are the 2' in text(op(layout="NCHW"), noise(1, 6, 8, 9, 2))
        for shape in ((3, 8, 4), (5, 8, 9), (1, 1, 1)):  # both may be meant
            assert len(batches([noise(1, *shape)], op(), n=1)) == 1
    else:
        assert "needs uint8 or float32, found (1, 4, 4) int16" in text(op(), flat.astype(np.int16))
    made = begin([(x, "cat")]).pipe(lambda item: item, **IN_ORDER).batch(4).pipe(op(num_classes=2))
    assert "strings are no numbers of classes" in str(failure(made))
    (batch,) = results(begin([(x, "cat"), (x, "dog")]).pipe(lambda i: i, **IN_ORDER).batch(2).pipe(op()))
    assert list(batch.label_b) == ["dog", "cat"]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"alpha": 0}, ValueError, "alpha must be from 0.001"),
        ({"alpha": "a"}, TypeError, "alpha"),
        ({"num_classes": 0}, ValueError, "num_classes must be from 1"),
        ({"num_classes": 1.5}, TypeError, "num_classes must be an integer"),
        ({"p": 2}, ValueError, "p must be from 0 to 1"),
        ({"field": ""}, TypeError, "field must be the name"),
        ({"label": None}, TypeError, "label must be the name"),
    ],
)
def test_wrong_options(options, error, text):
    for op in OPS.values():
        with pytest.raises(error, match=text):
            op(**options)
    with pytest.raises(ValueError, match="layout must be one of"):
        ops.cutmix(layout="HWC")
    assert ops.mixup(1) == ops.mixup(1.0) != ops.cutmix(1.0)
    assert repr(ops.mixup(0.2, p=0.5)) == "mixup(alpha=0.2, num_classes=None, p=0.5)"
