# SPDX-License-Identifier: BSD-2-Clause
"""One run of Python stages, in a process of its own: python -P bench/stages.py package=stoker work=flow.run ...

Prints one line of JSON.
"""

import importlib
import json
import os
import sys

from bench.works.options import Options


def main() -> None:
    options = Options.from_argv()
    module, function = options.work.split(".")
    result = getattr(importlib.import_module(f"bench.works.{module}"), function)(options)
    print(json.dumps(result), flush=True)
    sys.stderr.flush()
    os._exit(0)  # a peer's pipeline that was left running may hold up the end


if __name__ == "__main__":  # and not in the worker processes of `arrays`
    main()
