"""Media, arrays and archives, in and out.

Names are looked up when they are first used, so that importing the package costs nothing.
"""

from .._lazy import lookup as _lookup

_MODULES = ()
_HOMES: "dict[str, str]" = {}  # in which module of this package each name is

__all__: "list[str]" = []

__getattr__, __dir__ = _lookup(globals(), _HOMES, _MODULES)
