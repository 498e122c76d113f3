from __future__ import annotations

import gc
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import settings

from support import make_folder, pass_time


# The same examples in every run; nothing is written beside the tests.
settings.register_profile("stoker", database=None, deadline=None, derandomize=True)
settings.load_profile("stoker")
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(__file__).parents[2] / "build/hypothesis"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "failpoints: needs a library built with failpoints")
    config.addinivalue_line("markers", "figures: measures memory or time: not under a sanitizer")
    config.addinivalue_line("markers", "python(since=None, before=None): of these versions of Python alone")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of another Python are none of this one's: skipped is what needs something to be installed."""
    here = [item for item in items if all(_fits(**m.kwargs) for m in item.iter_markers("python"))]
    config.hook.pytest_deselected(items=[item for item in items if item not in here])
    items[:] = here


def _fits(since: tuple[int, int] = (3, 0), before: tuple[int, int] = (4, 0)) -> bool:
    return since <= sys.version_info < before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """With a small FFmpeg a test of a codec that it was built without is skipped, by the codec's name."""
    try:
        return (yield)
    except BaseException as error:
        from av import lacking

        if os.environ.get("STK_FFMPEG") and (reason := lacking(error)):
            pytest.skip(reason)
        raise


def pytest_collection_finish() -> None:
    """Modules are no test's garbage: with torch among them, each collection would take 0.2 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of 16 small pictures."""
    return make_folder(tmp_path_factory.mktemp("photos") / "train", classes=3, each=16)


@pytest.fixture(scope="session")
def paths(photos: Path) -> list[Path]:
    """The same pictures, in the order of the listing."""
    return sorted(photos.glob("*/*.jpg"))


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Sixteen pictures of one class, of which 03 and 10 are not pictures."""
    root = make_folder(tmp_path / "broken", classes=1, each=16, seed=5)
    for name in ("03", "10"):
        (root / "c0" / f"{name}.jpg").write_bytes(b"this is no picture")
    return root


_late: set[threading.Thread] = set()  # that outlived their test, for longer than it pays to wait


@pytest.fixture(autouse=True)
def collected():
    """Nothing of one test lives on in the next: threads of a pipeline that was dropped end soon."""
    yield
    gc.collect()
    deadline = time.monotonic() + 5
    while running := {t for t in threading.enumerate() if t.name.startswith("stoker")} - _late:
        if time.monotonic() > deadline:
            _late.update(running)
        pass_time(0.0005)
