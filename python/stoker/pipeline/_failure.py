"""What the reader of a failed pipeline gets."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _stoker
from ..errors import Error, TooManyFailuresError, from_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["PipelineFailure"]

_LISTED: Final = 10  # failures that TooManyFailuresError has; the one that was too many may be another


class PipelineFailure(ExceptionGroup[Exception]):
    """A pipeline failed.  `exceptions` says why, each with a note that names its stage."""

    __module__ = "stoker.pipeline"

    def derive(self, excs: Sequence[Exception], /) -> PipelineFailure:  # type: ignore[override]
        return PipelineFailure(self.message, excs)


def sample_error(failure: _stoker.Failure) -> Error:
    """The failure of one sample, as an exception that says which."""
    error = from_code(failure["code"], failure["text"], failure["errno"])
    locate(error, failure)
    return error


def locate(error: Error, failure: _stoker.Failure) -> None:
    error.stage = failure["stage"]
    error.key = failure["key"]
    error.id = failure["id"]
    error.epoch = failure["epoch"]
    if isinstance(error, OSError):
        error.filename = failure["key"]


def explain(error: Error, causes: Sequence[_stoker.Failure]) -> Error:
    """Adds to what a run ended with which sample it was, and what led to it."""
    if causes:
        locate(error, causes[0])
    if isinstance(error, TooManyFailuresError):
        failures = [sample_error(failure) for failure in causes[1:]]
        error.failures = tuple(failures[:_LISTED])
        error.__cause__ = failures[-1] if failures else None
    error.add_note(f"Pipeline stage: {error.stage or 'source'}")
    return error
