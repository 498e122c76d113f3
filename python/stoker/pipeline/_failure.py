"""What the reader of a failed pipeline gets."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _stoker
from ..errors import Error, TooManyFailuresError, from_code

__all__ = ["PipelineFailure"]


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


# How a run names the sample that ended it, before the cause.
_NAMED = r"stage '(?P<stage>.*?)'(, sample (?P<id>\d+))?[:,]"


def explain(error: Error, source: _stoker.Source, failures: Sequence[_stoker.Failure]) -> Error:
    """Adds to what a run ended with what is known of the samples that failed in it."""
    import re  # only where something failed

    text = str(error)
    named = re.match(_NAMED, text)
    if named:
        error.stage = named["stage"]
        if named["id"] is not None:
            error.id = int(named["id"])
            error.key = source.key(error.id)
    if isinstance(error, TooManyFailuresError):
        # Samples behind the one that was too much may have failed meanwhile.
        listed = [failure for failure in failures if f" {failure['id']}: " in text]
        error.failures = tuple(sample_error(failure) for failure in listed)
        error.__cause__ = error.failures[-1] if error.failures else None
    else:
        for failure in failures:
            if (failure["stage"], failure["id"]) == (error.stage, error.id):
                locate(error, failure)
                break
    error.add_note(f"Pipeline stage: {error.stage or 'source'}")
    return error
