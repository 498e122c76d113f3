# SPDX-License-Identifier: BSD-2-Clause
"""The rows of docs/bench.md: one module each, with `measure(context) -> list[Row]`."""
