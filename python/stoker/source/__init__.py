"""Where samples come from, and in which order: descriptions, for PipelineBuilder.add_source.

Names are looked up when they are first used, so that importing the package costs nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._native import Directory, List, Source

_HOMES = {"Directory": "_native", "List": "_native", "Source": "_native"}

__all__ = ["Directory", "List", "Source"]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
