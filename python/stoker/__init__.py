"""Feeds samples from storage to training and inference loops, from C.

    from stoker import PipelineBuilder, ops, source

Names are looked up when they are first used, so that importing the package costs nothing.
"""

TYPE_CHECKING = False  # type checkers know the name; importing typing takes longer than the rest

if TYPE_CHECKING:
    from . import dataloader, errors, ops, pipeline, source
    from ._stoker import VERSION as __version__
    from ._stoker import Batch, Field, Sample
    from .errors import *
    from .pipeline import Pipeline, PipelineBuilder, PipelineFailure

_MODULES = ("dataloader", "errors", "ops", "pipeline", "source")
_HOMES = {  # of names in __all__; all others are errors
    "Batch": "_stoker",
    "Field": "_stoker",
    "Pipeline": "pipeline",
    "PipelineBuilder": "pipeline",
    "PipelineFailure": "pipeline",
    "Sample": "_stoker",
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
    "NotFoundError",
    "OutOfMemoryError",
    "Pipeline",
    "PipelineBuilder",
    "PipelineFailure",
    "Sample",
    "TimeoutError",
    "TooManyFailuresError",
    "UnsupportedError",
    "__version__",
    "dataloader",
    "errors",
    "ops",
    "pipeline",
    "source",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    value: object
    if name in _MODULES:
        value = import_module(f"{__name__}.{name}")
    elif name == "__version__":
        value = import_module(f"{__name__}._stoker").VERSION
    elif name in __all__:
        value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
