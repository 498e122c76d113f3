# SPDX-License-Identifier: BSD-2-Clause
"""What a run of Python stages is asked to do.  Imports almost nothing, like bench/job.py."""

import importlib
import sys
from typing import Any

Result = dict[str, Any]


class Options:
    """Given as key=value words on the command line."""

    def __init__(self, words: list[str]) -> None:
        given = dict(word.split("=", 1) for word in words)
        self.package = given["package"]  # stoker, spdl; threads: no pipeline, but bare threads
        self.work = given["work"]  # MODULE.FUNCTION in bench/works
        self.kind = given.get("kind", "")
        self.path = given.get("path", "")
        self.items = int(given.get("items", "1"))
        self.concurrency = int(given.get("concurrency", "1"))
        self.order = given.get("order", "completion")
        self.threads = int(given.get("threads", "3"))
        self.seconds = float(given.get("seconds", "1"))

    @staticmethod
    def from_argv() -> "Options":
        return Options(sys.argv[1:])

    def api(self) -> Any:
        """The module with PipelineBuilder and all else: both packages have the same names."""
        return importlib.import_module(f"{self.package}.pipeline")


class WrongOutput(Exception):
    """The pipeline delivered something else than it was given."""


def check(good: bool, what: str) -> None:
    if not good:
        raise WrongOutput(what)
