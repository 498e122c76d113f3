"""Media, arrays and archives, in and out.

    load_npy, load_npz, NpzFile    NumPy's files and archives
    iter_zipfile, iter_tarfile     the entries of any archive
    load_wav, parse_wav            WAV files
    iter_lines, iter_jsonl         lines of text, and JSON
    iter_arrow, iter_parquet       record batches, through pyarrow

Names are looked up when they are first used, so that importing the package costs nothing.
"""

from .._lazy import lookup as _lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._arrow import iter_arrow, iter_parquet
    from ._lines import iter_jsonl, iter_lines
    from ._npy import load_npy
    from ._npz import NpzFile, load_npz
    from ._tar import iter_tarfile
    from ._wav import WAVHeader, load_wav, parse_wav
    from ._zip import CorruptArchiveError, UnsupportedArchiveError, iter_zipfile

_MODULES = ()
_HOMES = {  # in which module of this package each name is
    "CorruptArchiveError": "_zip",
    "NpzFile": "_npz",
    "UnsupportedArchiveError": "_zip",
    "WAVHeader": "_wav",
    "iter_arrow": "_arrow",
    "iter_jsonl": "_lines",
    "iter_lines": "_lines",
    "iter_parquet": "_arrow",
    "iter_tarfile": "_tar",
    "iter_zipfile": "_zip",
    "load_npy": "_npy",
    "load_npz": "_npz",
    "load_wav": "_wav",
    "parse_wav": "_wav",
}

__all__ = [
    "CorruptArchiveError",
    "NpzFile",
    "UnsupportedArchiveError",
    "WAVHeader",
    "iter_arrow",
    "iter_jsonl",
    "iter_lines",
    "iter_parquet",
    "iter_tarfile",
    "iter_zipfile",
    "load_npy",
    "load_npz",
    "load_wav",
    "parse_wav",
]

__getattr__, __dir__ = _lookup(globals(), _HOMES, _MODULES)
