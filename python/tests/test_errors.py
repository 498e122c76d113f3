"""The tree of errors."""

from __future__ import annotations

import builtins
import os
import pickle

import pytest

import stoker
from stoker import _stoker, errors


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("OutOfMemoryError", MemoryError),
        ("InvalidArgumentError", ValueError),
        ("IOError", OSError),
        ("DecodeError", RuntimeError),
        ("CorruptError", stoker.DecodeError),
        ("UnsupportedError", stoker.DecodeError),
        ("MalformedError", stoker.CorruptError),
        ("MalformedError", ValueError),
        ("UnsupportedFormatError", stoker.UnsupportedError),
        ("UnsupportedFormatError", ValueError),
        ("NotInstalledError", ImportError),
        ("EndError", EOFError),
        ("TimeoutError", builtins.TimeoutError),
        ("CancelledError", RuntimeError),
        ("NotFoundError", FileNotFoundError),
        ("LimitError", ValueError),
        ("BusyError", RuntimeError),
        ("ForkError", RuntimeError),
        ("TooManyFailuresError", RuntimeError),
        ("EpochEnd", EOFError),
    ],
)
def test_each_is_an_error_and_the_builtin_that_fits(name, builtin):
    cls = getattr(stoker, name)
    assert issubclass(cls, stoker.Error) and issubclass(cls, builtin)
    with pytest.raises(builtin, match="why"):
        raise cls("why")


@pytest.mark.parametrize("code", sorted(_stoker.ERROR_CODES))
def test_attributes_text_and_pickling(code):
    error = errors.from_code(code, "img/7.jpg: bad", 5)
    assert str(error) == "img/7.jpg: bad" and error.errno == 5
    assert (error.stage, error.key, error.id, error.epoch) == (None, None, None, None)
    error.stage, error.key, error.id, error.epoch = "read", "img/7.jpg", 7, 1
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    assert (again.stage, again.key, again.id, again.epoch, again.errno) == ("read", "img/7.jpg", 7, 1, 5)


def test_those_that_are_values_too():
    corrupt, unsupported, io = (getattr(stoker, name).code for name in ("CorruptError", "UnsupportedError", "IOError"))
    assert type(errors.from_code(corrupt, "why")) is stoker.CorruptError
    assert type(errors.from_code(corrupt, "why", 0, True)) is stoker.MalformedError
    assert type(errors.from_code(unsupported, "why", 0, True)) is stoker.UnsupportedFormatError
    assert type(errors.from_code(io, "why", 5, True)) is stoker.IOError
    for cls in (stoker.MalformedError, stoker.UnsupportedFormatError, stoker.NotInstalledError):
        again = pickle.loads(pickle.dumps(cls("why", key="x")))
        assert type(again) is cls and str(again) == "why" and again.key == "x"


@pytest.mark.parametrize("cls", [stoker.IOError, stoker.NotFoundError, stoker.TimeoutError])
def test_those_of_the_system_are_whole(cls):
    error = cls("open img/7.jpg: it said no", key="img/7.jpg", errno=13)
    for e in (error, pickle.loads(pickle.dumps(error))):
        assert (e.errno, e.strerror, e.filename) == (13, os.strerror(13), "img/7.jpg")
        assert str(e) == "open img/7.jpg: it said no"
    bare = cls("text")
    assert (bare.errno, bare.strerror, bare.filename) == (None, None, None)


def test_failure_is_a_group():
    error = stoker.CorruptError("a")
    group = stoker.PipelineFailure("pipeline stages failed", [error, ValueError("b")])
    assert isinstance(group, ExceptionGroup)
    part = group.subgroup(stoker.DecodeError)
    assert type(part) is stoker.PipelineFailure and part.exceptions == (error,)
    caught = []
    try:
        raise group
    except* ValueError as rest:
        caught.append(rest)
    except* stoker.Error as ours:
        caught.append(ours)
    assert [type(c) for c in caught] == [stoker.PipelineFailure] * 2


def test_errors_of_archives_are_errors_of_formats():
    from stoker.io import CorruptArchiveError, UnsupportedArchiveError

    assert issubclass(CorruptArchiveError, stoker.MalformedError)
    assert issubclass(UnsupportedArchiveError, stoker.UnsupportedFormatError)
    assert all(issubclass(e, (RuntimeError, ValueError)) for e in (CorruptArchiveError, UnsupportedArchiveError))
