"""Pipelines: a source, stages and a sink, built once and read batch by batch."""

from ._builder import PipelineBuilder
from ._failure import PipelineFailure
from ._pipeline import Pipeline, PipelineIterator

__all__ = ["Pipeline", "PipelineBuilder", "PipelineFailure", "PipelineIterator"]
