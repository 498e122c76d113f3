"""Media, arrays and archives, in and out.

    load_npy, load_npz, NpzFile    NumPy's files and archives
    iter_zipfile                   the entries of any zip archive

Names are looked up when they are first used, so that importing the package costs nothing.
"""

from .._lazy import lookup as _lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._npy import load_npy
    from ._npz import NpzFile, load_npz
    from ._zip import CorruptArchiveError, UnsupportedArchiveError, iter_zipfile

_MODULES = ()
_HOMES = {  # in which module of this package each name is
    "CorruptArchiveError": "_zip",
    "NpzFile": "_npz",
    "UnsupportedArchiveError": "_zip",
    "iter_zipfile": "_zip",
    "load_npy": "_npy",
    "load_npz": "_npz",
}

__all__ = [
    "CorruptArchiveError",
    "NpzFile",
    "UnsupportedArchiveError",
    "iter_zipfile",
    "load_npy",
    "load_npz",
]

__getattr__, __dir__ = _lookup(globals(), _HOMES, _MODULES)
