"""The package as it is imported."""

from __future__ import annotations

import pytest

import stoker
from stoker import _stoker, errors
from support import ok


def test_building_loads_nothing_that_takes_long():
    out = ok(
        """
        from stoker import PipelineBuilder
        from stoker.pipeline.defs import *
        PipelineBuilder().add_source([1]).pipe(len).aggregate(2).add_sink().get_config()
        slow = {"typing", "asyncio", "inspect", "multiprocessing", "concurrent.futures", "fractions",
                "dataclasses"}
        print(*sorted(slow & set(sys.modules)))
        """
    )
    assert out.split() == []


def test_importing_loads_nothing_else():
    out = ok(
        """
        before = set(sys.modules)
        import stoker
        print(*sorted(set(sys.modules) - before))
        """
    )
    assert out.split() == ["stoker", "stoker._lazy"]


def test_using_it_does_not_need_numpy():
    out = ok(
        """
        from stoker import PipelineBuilder, ops, source
        src = source.List(["a.jpg"], labels=[3], caption=["x"], box=[[1.0, 2.0]])
        PipelineBuilder().add_source(src).pipe(ops.read()).add_sink().build(num_threads=1)
        print("numpy" in sys.modules)
        """
    )
    assert out == "False\n"


@pytest.mark.parametrize("package", [stoker, stoker.io, stoker.pipeline])
def test_every_public_name_is_there(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
    assert not hasattr(package, "no_such_name")


def test_version():
    assert stoker.__version__ == _stoker.VERSION != ""


def test_one_class_for_each_code():
    made = {code: errors.from_code(code, "text") for code in _stoker.ERROR_CODES}
    assert all(error.code == code for code, error in made.items())
    assert len({type(error) for error in made.values()}) == len(_stoker.ERROR_CODES)
    exported = {type(error).__name__ for error in made.values()}
    assert exported <= set(stoker.__all__)


def test_the_extension_exports_one_symbol():
    import shutil
    import subprocess

    if not shutil.which("nm"):
        pytest.skip("nm is not installed: apt-get install binutils")
    out = subprocess.run(
        ["nm", "-D", "--defined-only", _stoker.__file__], capture_output=True, text=True, check=True
    ).stdout
    names = [line.split()[-1] for line in out.splitlines()]
    assert [n for n in names if not n.startswith(("_init", "_fini", "__"))] == ["PyInit__stoker"]
