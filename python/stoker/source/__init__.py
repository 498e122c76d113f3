"""Where items come from, and in which order.

    Directory, List, Tar, Zip          read, decoded and batched without Python; for add_source()
    DistributedDeterministicSampler,
    DistributedRandomSampler           which indices are this rank's
    IterableWithShuffle, SizedIterable,
    SizedIterableWithShuffle           what a source in Python has; for isinstance() and annotations

Modules: `utils` (merging, repeating, shuffling sources), `local_directory`, `imagenet`.
Names are looked up when they are first used, so that importing the package costs nothing.
"""

from .._lazy import lookup as _lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import imagenet, local_directory, utils
    from ._native import Directory, List, Source
    from ._protocols import IterableWithShuffle, SizedIterable, SizedIterableWithShuffle
    from ._shards import Tar, Zip
    from ._samplers import DistributedDeterministicSampler, DistributedRandomSampler

_MODULES = ("imagenet", "local_directory", "utils")
_HOMES = {
    "Directory": "_native",
    "DistributedDeterministicSampler": "_samplers",
    "DistributedRandomSampler": "_samplers",
    "IterableWithShuffle": "_protocols",
    "List": "_native",
    "SizedIterable": "_protocols",
    "SizedIterableWithShuffle": "_protocols",
    "Source": "_native",
    "Tar": "_shards",
    "Zip": "_shards",
}

__all__ = [
    "Directory",
    "DistributedDeterministicSampler",
    "DistributedRandomSampler",
    "IterableWithShuffle",
    "List",
    "SizedIterable",
    "SizedIterableWithShuffle",
    "Source",
    "Tar",
    "Zip",
    "imagenet",
    "local_directory",
    "utils",
]

__getattr__, __dir__ = _lookup(globals(), _HOMES, _MODULES)
