"""Loaders: pipelines behind one object that is iterated epoch by epoch.

    DataLoader              a source, a function for each sample, batches, a function for each batch
    CacheDataLoader         a loader whose batches are read once and then repeated, to see what a faster one would give
    get_pytorch_dataloader  in place of torch.utils.data.DataLoader, for data sets that need worker processes

What fails is left out, counted and logged, as in a pipeline without max_failures; each loader has
stats(), and a pass that lost items ends with a warning (logger stoker.pipeline) that says how many.

Names are looked up when they are first used, as those of stoker are.
"""

from .._lazy import lookup as _lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._cache import CacheDataLoader
    from ._loader import DataLoader
    from ._torch import PyTorchDataLoader, get_pytorch_dataloader

_HOMES = {
    "CacheDataLoader": "_cache",
    "DataLoader": "_loader",
    "PyTorchDataLoader": "_torch",
    "get_pytorch_dataloader": "_torch",
}

__all__ = ["CacheDataLoader", "DataLoader", "PyTorchDataLoader", "get_pytorch_dataloader"]

__getattr__, __dir__ = _lookup(globals(), _HOMES)
