"""Folders as sources in Python: LocalDirectory and ImageNet."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path

import pytest

from stoker.source import SizedIterableWithShuffle
from stoker.source.imagenet import ImageNet, get_mappings, get_names, parse_wnid
from stoker.source.local_directory import LocalDirectory
from support import ok

TENCH, SUNGLASS, TISSUE = "n01440764", "n04355933", "n15075141"


def touch(root: Path, *names: str) -> list[Path]:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return [root / name for name in names]


@pytest.fixture
def many(tmp_path):
    touch(tmp_path, *[f"{c}/{i:02}.txt" for c in "abc" for i in range(10)], "a/note.md", "top.txt")
    return tmp_path


# LocalDirectory


def test_directory_yields_paths_in_order(many):
    src = LocalDirectory(many, "*/*.txt")
    want = [many / c / f"{i:02}.txt" for c in "abc" for i in range(10)]
    assert list(src) == want and list(src) == want
    assert len(src) == 30 and all(isinstance(path, Path) for path in src)
    assert list(LocalDirectory(str(many), "*.txt")) == [many / "top.txt"]
    assert isinstance(src, SizedIterableWithShuffle)


def test_directory_takes_the_pattern_of_glob(many):
    assert len(LocalDirectory(many, "**/*.txt")) == 31
    assert len(LocalDirectory(many, "[ab]/0?.*")) == 20
    assert len(LocalDirectory(many, "none")) == 0


def test_directory_leaves_folders_out(many):
    touch(many, "a/x.txt/inner")
    (many / "linked.txt").symlink_to(many / "a")
    (many / "d").symlink_to(many / "b")
    assert [p.name for p in LocalDirectory(many, "*")] == ["top.txt"]
    assert len(LocalDirectory(many, "*/*.txt")) == 50, "links to folders are followed"
    assert all(p.is_file() for p in LocalDirectory(many, "**/*"))


def test_directory_is_listed_once(many):
    src = LocalDirectory(many, "*.txt")
    touch(many, "before.txt")
    assert len(src) == 2
    touch(many, "after.txt")
    assert len(src) == len(list(src)) == 2


def test_directory_shuffles(many):
    src = LocalDirectory(many, "*/*.txt")
    plain = list(src)
    src.shuffle(3)
    first = list(src)
    assert first != plain and sorted(first) == plain and list(src) == first
    src.shuffle(seed=4)
    assert list(src) != first
    other = LocalDirectory(many, "*/*.txt")
    other.shuffle(9)
    running = iter(other)
    other.shuffle(3)
    assert list(other) == first, "by the last seed alone"
    assert list(running) != first
    with pytest.raises(ValueError, match="seed"):
        src.shuffle(-1)


def test_directory_ignores_the_global_generator(many):
    src = LocalDirectory(many, "*/*.txt")
    src.shuffle(0)
    random.seed(1)
    state, first = random.getstate(), list(src)
    assert random.getstate() == state
    random.seed(2)
    assert list(src) == first


def test_directory_pickles(many):
    src = LocalDirectory(many, "*/*.txt")
    src.shuffle(5)
    for _ in range(2):  # before and after it was listed
        again = pickle.loads(pickle.dumps(src))
        assert list(again) == list(src) and repr(again) == repr(src)


def test_directory_that_is_none(many):
    for root in (many / "none", many / "top.txt"):
        with pytest.raises(NotADirectoryError, match=root.name):
            LocalDirectory(root, "*")


# Classes


def test_mappings():
    numbers, names = get_mappings(), get_names()
    assert len(numbers) == len(names) == 1000
    assert list(names) == list(numbers.values()) == list(range(1000))
    assert list(numbers) == sorted(numbers)
    assert all(parse_wnid(wnid) == wnid for wnid in numbers)
    assert all(type(synonyms) is tuple and all(synonyms) for synonyms in names.values())
    assert all(name == name.strip() for synonyms in names.values() for name in synonyms)


@pytest.mark.parametrize(
    ("wnid", "number", "names"),
    [
        (TENCH, 0, ("tench", "Tinca tinca")),
        ("n01443537", 1, ("goldfish", "Carassius auratus")),
        ("n02012849", 134, ("crane",)),
        ("n02085620", 151, ("Chihuahua",)),
        ("n02113023", 263, ("Pembroke", "Pembroke Welsh corgi")),
        ("n02666196", 398, ("abacus",)),
        ("n03126707", 517, ("crane",)),
        ("n03777568", 661, ("Model T",)),
        (SUNGLASS, 836, ("sunglass",)),
        ("n04613696", 915, ("yurt",)),
        ("n13133613", 998, ("ear", "spike", "capitulum")),
        (TISSUE, 999, ("toilet tissue", "toilet paper", "bathroom tissue")),
    ],
)
def test_known_classes(wnid, number, names):
    assert get_mappings()[wnid] == number and get_names()[number] == names


def test_mappings_belong_to_the_caller():
    get_mappings().clear()
    get_names().clear()
    assert len(get_mappings()) == len(get_names()) == 1000


def test_names_that_are_not_unique():
    first = [names[0] for names in get_names().values()]
    assert {name for name in first if first.count(name) > 1} == {"crane", "maillot"}


@pytest.mark.parametrize(
    "text",
    [
        TENCH,
        f"train/{TENCH}/{TENCH}_10026.JPEG",
        f"val/{TENCH}/ILSVRC2012_val_00000293.JPEG",
        f"ILSVRC2012_val_00000293_{TENCH}.JPEG",
        f"/data/{TISSUE}/val/{TENCH}/1.JPEG",
        f"/data/{TISSUE}/{TENCH}",
        Path(f"/val/{TENCH}/1.JPEG"),
    ],
)
def test_parse_wnid(text):
    assert parse_wnid(text) == TENCH


@pytest.mark.parametrize("text", ["", "n0144076", "n014407640", "xn01440764", "N01440764", "n01440764a", "dog.JPEG"])
def test_parse_wnid_without_one(text):
    with pytest.raises(ValueError, match="no WordNet ID"):
        parse_wnid(text)


# ImageNet


@pytest.fixture
def imagenet(tmp_path):
    """Its own path has a WordNet ID, which is none of a picture's."""
    root = tmp_path / "n02085620"
    touch(root, *[f"val/{wnid}/ILSVRC2012_val_{i:08}.JPEG" for wnid in (TISSUE, TENCH) for i in range(3)])
    touch(root, f"train/{SUNGLASS}/{SUNGLASS}_1.JPEG", f"train/{SUNGLASS}/list.txt", "train/note.md")
    return root


def test_imagenet(imagenet):
    src = ImageNet(imagenet)
    want = [
        (imagenet / f"val/{wnid}/ILSVRC2012_val_{i:08}.JPEG", number)
        for wnid, number in ((TENCH, 0), (TISSUE, 999))
        for i in range(3)
    ]
    assert list(src) == want and len(src) == 6
    assert all(isinstance(path, Path) and type(number) is int for path, number in src)
    assert isinstance(src, SizedIterableWithShuffle)
    (item,) = ImageNet(str(imagenet), split="train")
    assert item == (imagenet / f"train/{SUNGLASS}/{SUNGLASS}_1.JPEG", 836)


def test_imagenet_with_ids_in_the_names(tmp_path):
    touch(tmp_path, f"val/ILSVRC2012_val_00000001_{TISSUE}.JPEG", f"val/ILSVRC2012_val_00000002_{TENCH}.JPEG")
    assert [number for _, number in ImageNet(tmp_path)] == [999, 0]


def test_imagenet_follows_links_to_classes(imagenet):
    (imagenet / "val" / SUNGLASS).symlink_to(imagenet / "train" / SUNGLASS)
    assert [number for _, number in ImageNet(imagenet)].count(836) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("val/ILSVRC2012_val_00000001.JPEG", "no WordNet ID; pictures belong in folders"),
        ("val/dogs/1.JPEG", "no WordNet ID"),
        ("val/n00000001/1.JPEG", "'n00000001' is no class"),
    ],
)
def test_imagenet_with_a_picture_of_no_class(imagenet, name, text):
    touch(imagenet, name)
    src = ImageNet(imagenet)
    for use in (len, iter):
        with pytest.raises(ValueError, match=f"{os.path.basename(name)}: .*{text}"):
            use(src)


def test_imagenet_that_is_none(imagenet):
    with pytest.raises(NotADirectoryError, match="test"):
        ImageNet(imagenet, "test")


def test_imagenet_shuffles_and_pickles(imagenet):
    src = ImageNet(imagenet)
    plain = list(src)
    orders = set()
    for seed in range(9):
        src.shuffle(seed)
        assert sorted(src) == plain and list(src) == list(src)
        assert list(pickle.loads(pickle.dumps(src))) == list(src)
        orders.add(tuple(src))
    assert len(orders) > 5


# The package


def test_importing_sources_loads_neither_typing_nor_numpy():
    out = ok(
        """
        before = set(sys.modules)
        import stoker.source
        print(*sorted(set(sys.modules) - before))
        from stoker import source
        source.Directory, source.List
        print(*sorted({"typing", "numpy", "random", "pathlib"} & (set(sys.modules) - before)))
        """
    )
    assert out == "stoker stoker._lazy stoker.source\n\n"


def test_every_name_of_the_package():
    from stoker import source

    assert all(getattr(source, name) is not None for name in source.__all__)
    assert set(source.__all__) <= set(dir(source))
    with pytest.raises(AttributeError, match=r"stoker\.source.*nothing"):
        source.nothing
