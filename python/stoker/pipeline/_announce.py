"""What happens to a configuration before a pipeline is made of it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from ._pipeline import Pipeline
    from .defs import PipelineConfig

    T = TypeVar("T")

__all__ = ["announce"]


def announce(cfg: PipelineConfig[T]) -> Pipeline[T] | None:
    """Tells the build callback; in diagnostic mode gives what takes the place of the pipeline.

    Does neither within a profile, whose own pipelines run, and those of its stages.  Loads no module for
    programs that have set nothing.
    """
    if f"{__package__}.config" not in sys.modules and not any("_PIPELINE_" in name for name in os.environ):
        return None
    profile = sys.modules.get(f"{__package__}._profile")
    if profile is not None and profile.is_profiling():
        return None
    from . import config

    callback = config.get_default_build_callback()
    if callback is not None:
        try:
            callback(cfg)
        except Exception:
            import logging

            logging.getLogger("stoker.pipeline").exception("the build callback failed")
    if not config.is_diagnostic_mode_enabled():
        return None
    from ._profile import DiagnosticPipeline

    return DiagnosticPipeline(cfg)
