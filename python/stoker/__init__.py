"""Feeds samples from storage to training and inference loops, from C.

    from stoker import PipelineBuilder, ops, source

Names are looked up when they are first used, so that importing the package costs nothing.
"""

from ._lazy import lookup as _lookup

TYPE_CHECKING = False  # type checkers know the name; importing typing takes longer than the rest

if TYPE_CHECKING:
    from . import dataloader, errors, io, ops, pipeline, source
    from ._stoker import VERSION as __version__
    from ._stoker import Batch, Field, Sample
    from .errors import *
    from .pipeline import Pipeline, PipelineBuilder, PipelineFailure

_MODULES = ("dataloader", "errors", "io", "ops", "pipeline", "source")
_HOMES = {  # of names in __all__; all others are errors, but for _MODULES
    "Batch": "_stoker",
    "Field": "_stoker",
    "Pipeline": "pipeline",
    "PipelineBuilder": "pipeline",
    "PipelineFailure": "pipeline",
    "Sample": "_stoker",
    "__version__": "_stoker:VERSION",
}

__all__ = [
    "Batch",
    "BusyError",
    "CancelledError",
    "CorruptError",
    "DecodeError",
    "EndError",
    "EpochEnd",
    "Error",
    "Field",
    "ForeignError",
    "ForkError",
    "IOError",
    "InvalidArgumentError",
    "LimitError",
    "MalformedError",
    "NotFoundError",
    "NotInstalledError",
    "OutOfMemoryError",
    "Pipeline",
    "PipelineBuilder",
    "PipelineFailure",
    "Sample",
    "TimeoutError",
    "TooManyFailuresError",
    "UnsupportedError",
    "UnsupportedFormatError",
    "__version__",
    "dataloader",
    "errors",
    "io",
    "ops",
    "pipeline",
    "source",
]

__getattr__, __dir__ = _lookup(globals(), {**dict.fromkeys(__all__, "errors"), **_HOMES}, _MODULES)
