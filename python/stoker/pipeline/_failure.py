"""What the reader of a failed pipeline gets."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _stoker
from ..errors import Error, ForeignError, TooManyFailuresError, from_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from ._info import StageInfo

__all__ = ["PipelineFailure"]

_LISTED: Final = 10  # failures that TooManyFailuresError has; the one that was too many may be another


class PipelineFailure(ExceptionGroup[Exception]):
    """A pipeline failed.  `exceptions` says why, each with a note that names its stage."""

    __module__ = "stoker.pipeline"

    def derive(self, excs: Sequence[Exception], /) -> PipelineFailure:  # type: ignore[override]
        """The same failure with some of its exceptions: what split(), subgroup() and `except*` give."""
        return PipelineFailure(self.message, excs)


def sample_error(failure: _stoker.Failure) -> Error:
    """The failure of one sample, as an exception that says which; what Python raised is its cause."""
    error = from_code(failure["code"], failure["text"], failure["errno"])
    locate(error, failure)
    error.__cause__ = failure["cause"]
    return error


def locate(error: Error, failure: _stoker.Failure) -> None:
    error.stage = failure["stage"]
    error.key = failure["key"]
    error.id = failure["id"]
    error.epoch = failure["epoch"]
    if isinstance(error, OSError):
        error.filename = failure["key"]


def explain(
    error: Error, causes: Sequence[_stoker.Failure], infos: Sequence[StageInfo]
) -> list[Exception]:
    """What a run ended with, with what is known of it: what an op of Python raised, or the error with
    its sample and with what led to it.  Then the same of other inputs of a merge that have failed."""
    if not causes:
        return [error]
    begins = [i for i, failure in enumerate(causes) if i == 0 or failure["also"]]
    return [
        _explain_one(_also(causes[begin]) if begin else error, causes[begin:end], infos)
        for begin, end in zip(begins, [*begins[1:], None], strict=True)
    ]


def _also(failure: _stoker.Failure) -> Error:
    sample = "" if failure["id"] is None else f", sample {failure['id']}"
    text = f"stage '{failure['stage']}'{sample}: {failure['text']}"
    return from_code(failure["code"], text, failure["errno"])


def _explain_one(
    error: Error, causes: Sequence[_stoker.Failure], infos: Sequence[StageInfo]
) -> Exception:
    first = causes[0]
    note = f"Pipeline stage: {first['stage']}"
    if isinstance(error, ForeignError):
        raised = _raised(first)
        if note not in getattr(raised, "__notes__", ()):  # stop() may have met it, too
            raised.add_note(note)
        return raised
    locate(error, first)
    if isinstance(error, TooManyFailuresError):
        failures = [_raised(failure) for failure in causes[1:]]
        if any(failure["cause"] is not None for failure in causes[1:]):
            error.args = (f"The pipeline stage ({infos[first['index']]}) {_count(first['text'])}.",)
        error.failures = tuple(map(sample_error, causes[1 : _LISTED + 1]))
        error.__cause__ = failures[-1] if failures else None
    error.add_note(note)
    return error


def _raised(failure: _stoker.Failure) -> Exception:
    cause = failure["cause"]
    if cause is None:
        return sample_error(failure)
    if isinstance(cause, Exception):
        return cause
    wrapped = RuntimeError(f"{type(cause).__name__} in a stage: {cause}")
    wrapped.__cause__ = cause  # KeyboardInterrupt and SystemExit are for the main thread's own code
    return wrapped


def _count(text: str) -> str:
    return text.partition(";")[0]
