"""What can go wrong: one class for each code of the C library, each also the builtin that fits."""

from __future__ import annotations

import builtins
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

__all__ = [
    "BusyError",
    "CancelledError",
    "CorruptError",
    "DecodeError",
    "EndError",
    "EpochEnd",
    "Error",
    "ForeignError",
    "ForkError",
    "IOError",
    "InvalidArgumentError",
    "LimitError",
    "MalformedError",
    "NotFoundError",
    "NotInstalledError",
    "OutOfMemoryError",
    "TimeoutError",
    "TooManyFailuresError",
    "UnsupportedError",
    "UnsupportedFormatError",
    "from_code",
]


class Error(Exception):
    """The root of the tree.  Where a sample failed, the attributes say which, and where."""

    code: ClassVar[int] = 0

    stage: str | None  #: the stage that failed
    key: str | None  #: the path or key of the sample; of several files that which failed
    id: int | None  #: the sample's index in its source's listing
    epoch: int | None
    errno: int | None  #: of the system, where it said no
    failures: tuple[Error, ...]  #: of TooManyFailuresError: the first ten; __cause__ is the last

    def __init__(
        self,
        text: str = "",
        *,
        stage: str | None = None,
        key: str | None = None,
        id: int | None = None,
        epoch: int | None = None,
        errno: int | None = None,
    ) -> None:
        super().__init__(text)
        self.stage = stage
        self.key = key
        self.id = id
        self.epoch = epoch
        self.errno = errno
        self.failures = ()
        if isinstance(self, builtins.OSError):
            _complete(self, key, errno)

    def __str__(self) -> str:
        return BaseException.__str__(self)  # OSError would put its own words together

    def __reduce__(self) -> tuple[Any, ...]:
        state = {**self.__dict__, "errno": self.errno}
        if isinstance(self, builtins.OSError):
            state.update(_system_state(self))
        return type(self), self.args[:1], state

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        for name, value in (state or {}).items():
            setattr(self, name, value)


def _complete(error: builtins.OSError, filename: str | None, errno: int | None) -> None:
    error.filename = filename
    error.strerror = os.strerror(errno) if errno else None


def _system_state(error: builtins.OSError) -> dict[str, Any]:
    return {"filename": error.filename, "strerror": error.strerror}


class OutOfMemoryError(Error, MemoryError):
    """There was no memory for it."""

    code = -1


class InvalidArgumentError(Error, ValueError):
    """An argument, or a combination of stages, that makes no sense."""

    code = -2


class IOError(Error, builtins.OSError):
    """Input or output failed; trying again may help."""

    code = -3


class DecodeError(Error, RuntimeError):
    """Data could not be decoded."""


class CorruptError(DecodeError):
    """The data is damaged; trying again will not help."""

    code = -4


class MalformedError(CorruptError, ValueError):
    """The same where programs look for ValueError: WAV files, archives, lines of text."""


class EndError(Error, EOFError):
    """There are no more items."""

    code = -5


class TimeoutError(Error, builtins.TimeoutError):
    """It took longer than the caller wanted to wait."""

    code = -6


class CancelledError(Error, RuntimeError):
    """The run was cancelled."""

    code = -7


class NotFoundError(Error, builtins.FileNotFoundError):
    """There is no such file."""

    code = -8


class UnsupportedError(DecodeError):
    """The data may be valid, but is of no kind that is known here."""

    code = -9


class UnsupportedFormatError(UnsupportedError, ValueError):
    """The same where programs look for ValueError: WAV files, archives."""


class NotInstalledError(Error, ImportError):
    """It needs a package that is not installed; the text says how to get it."""


class LimitError(Error, ValueError):
    """Over a limit; each limit is an option."""

    code = -10


class BusyError(Error, RuntimeError):
    """The system has no thread to give; trying again may help."""

    code = -11


class ForkError(Error, RuntimeError):
    """A pipeline is used in a child of the process that started it."""

    code = -12


class TooManyFailuresError(Error, RuntimeError):
    """More samples failed than were allowed."""

    code = -13


class EpochEnd(Error, EOFError):
    """An epoch has ended; reading on gives the next one."""

    code = -14


class ForeignError(Error, RuntimeError):
    """An op that is Python code raised; `__cause__` is what."""

    code = -16


def _tree(cls: type[Error]) -> list[type[Error]]:
    return [cls] + [c for child in cls.__subclasses__() for c in _tree(child)]


_CLASSES = {cls.code: cls for cls in _tree(Error) if cls.code and "code" in vars(cls)}


_VALUES: dict[type[Error], type[Error]] = {
    CorruptError: MalformedError,
    UnsupportedError: UnsupportedFormatError,
}


def from_code(code: int, text: str, errno: int = 0, value: bool = False) -> Error:
    """The exception for one code of the C library; an errno of 0 stands for none.

    `value`: of several classes for a code that which is a ValueError, too.
    """
    cls = _CLASSES.get(code, Error)
    return (_VALUES.get(cls, cls) if value else cls)(text, errno=errno or None)
