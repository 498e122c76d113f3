"""Addresses in messages."""

from __future__ import annotations

import re

__all__ = ["shown"]


def shown(place: object) -> str:
    """An input or an output for messages: of an address without its user and password (RFC 3986, 3.2).

    The library's stk_av_hide_passwords does the same.
    """
    return re.sub(r"://[^/\n]*@", "://", str(place))
