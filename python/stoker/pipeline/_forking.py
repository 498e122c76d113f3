"""Forks beside threads."""

from __future__ import annotations

import sys
import threading
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["warn_of_fork"]


def warn_of_fork(workers: str, context: Any) -> None:
    """RuntimeWarning, for the caller of this package, where its process has threads that a fork leaves out."""
    if context.get_start_method() != "fork" or threading.active_count() == 1:
        return
    level, frame = 1, sys._getframe()
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"The workers of {workers} are forked while other threads run: locks that those hold "
        "stay locked there. Give it mp_context=multiprocessing.get_context('spawn').",
        RuntimeWarning,
        stacklevel=level,
    )
