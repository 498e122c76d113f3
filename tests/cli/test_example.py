"""The C example: the environment variable STOKER_EXAMPLE says where it is."""

import subprocess

import pytest
from conftest import program


@pytest.fixture(scope="module")
def train_feed():
    path = program("STOKER_EXAMPLE")
    return lambda *args: subprocess.run([path, *args], capture_output=True, text=True, timeout=120)


def test_reads_every_batch(train_feed, photos):
    done = train_feed(photos)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "batch 0: 20 images of 224 x 224\n"


def test_says_what_went_wrong(train_feed, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "bad.jpg").write_bytes(b"no picture")
    done = train_feed(tmp_path)
    assert done.returncode == 1
    assert "bad.jpg" in done.stderr
    assert train_feed().returncode == 2
