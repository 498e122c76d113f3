# SPDX-License-Identifier: BSD-2-Clause
"""The contenders: one module each, with `batches(job)`, which yields (images, labels).

`images` has a `shape` (n, 224, 224, 3) and holds uint8; `labels` are n integers.  A module
imports at its top whatever a program that uses this loader must import, and does nothing else.
"""
