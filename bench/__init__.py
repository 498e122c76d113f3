# SPDX-License-Identifier: BSD-2-Clause
"""The benchmarks: `make bench`, `make bench-peers`.  docs/bench.md says what is measured."""
