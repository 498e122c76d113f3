# SPDX-License-Identifier: BSD-2-Clause
"""Pipelines of Python stages: what bench/stages.py runs, with one package or another."""
