"""The command under test: the environment variable STOKER_COMMAND says where it is."""

import os
import pathlib
import subprocess

import pytest
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program(variable):
    path = os.environ.get(variable)
    if not path or not pathlib.Path(path).is_file():
        pytest.fail(f"{variable} does not name a program")
    return os.path.abspath(path)


@pytest.fixture(scope="session")
def command():
    return program("STOKER_COMMAND")


@pytest.fixture(scope="session")
def stoker(command):
    """stoker("bench", folder, ...): runs it to its end."""

    def run(*args, **options):
        options = {"capture_output": True, "text": True, "timeout": 120, **options}
        return subprocess.run([command, *map(str, args)], **options)

    return run


def picture(width, height, i):
    """A picture that is no other's: its colour counts i."""
    gradient = Image.radial_gradient("L").resize((width, height)).rotate(15 * i)
    flat = Image.new("L", (width, height), 20 * i % 256)
    return Image.merge("RGB", (gradient, flat, gradient.transpose(Image.Transpose.ROTATE_180)))


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """Two classes of ten JPEGs."""
    root = tmp_path_factory.mktemp("photos")
    for i in range(20):
        folder = root / ("cat" if i < 10 else "dog")
        folder.mkdir(exist_ok=True)
        picture(80 + 4 * i, 60 + i, i).save(folder / f"{i:02d}.jpg", quality=90)
    return root


@pytest.fixture
def broken(photos, tmp_path):
    """A flat folder of eight good files and two bad ones."""
    names = sorted(photos.glob("*/*.jpg"))[:8]
    for name in names:
        (tmp_path / name.name).write_bytes(name.read_bytes())
    (tmp_path / "x1.jpg").write_bytes(b"")
    (tmp_path / "x2.jpg").write_bytes(names[0].read_bytes()[:300])
    return tmp_path
