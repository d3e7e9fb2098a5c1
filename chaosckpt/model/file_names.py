"""Names of files are bytes, and journals are text: how any name is written as text, and read back as the same bytes.

A byte that is no UTF-8 becomes one character of a private range, U+F780 to U+F7FF (its value plus U+F700). The bytes of a name
that itself holds such a character are written in the same way, so that no two names become one text.
"""

from __future__ import annotations

import re

_FIRST = 0xF700
_ESCAPED = re.compile("[\uf780-\uf7ff]")
_UNSAFE = re.compile("[\udc80-\udcff\uf780-\uf7ff]")


def text_of(name: bytes) -> str:
    """A name or path as text that every format can hold; what is UTF-8 stays as it is."""
    text = name.decode(errors="surrogateescape")
    return text if text.isascii() else _UNSAFE.sub(_escape, text)


def bytes_of(text: str) -> bytes:
    """The name of which this is the text."""
    return _ESCAPED.sub(lambda found: chr(0xDC00 + ord(found[0]) - _FIRST), text).encode(errors="surrogateescape")


def printable(text: str) -> str:
    """The text of a name for a person: bytes that are no UTF-8 read `\\xff`."""
    return text if text.isascii() else bytes_of(text).decode(errors="backslashreplace")


def _escape(found: re.Match[str]) -> str:
    return "".join(chr(_FIRST + byte) for byte in found[0].encode(errors="surrogateescape"))
