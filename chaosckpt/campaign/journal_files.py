"""Journal files: compressed lines, appended one by one, of which a kill at any moment costs at most the last."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from chaosckpt.model import journal as j

SUFFIX = ".jsonl.gz"
_GZIP = 16 + zlib.MAX_WBITS
_CHUNK = 1 << 16


class JournalFile:
    """An append-only gzip file of journal lines. What a kill has left torn at its end goes when it is opened again.

    Each line is flushed as blocks of its own, with the lines before as their dictionary, so that it can be read at once.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _end_torn(path)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._member = zlib.compressobj(wbits=_GZIP)

    def write(self, trial: str, event: j.AnyEvent) -> None:
        """Append one event of this trial."""
        _write_all(self._descriptor, self._member.compress(line(trial, event)) + self._member.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        """End the file as gzip wants it."""
        try:
            _write_all(self._descriptor, self._member.flush(zlib.Z_FINISH))
        finally:
            os.close(self._descriptor)


def line(trial: str, event: j.AnyEvent) -> bytes:
    """An event as a line, with its newline."""
    return b'{"trial":%b,"event":%b}\n' % (msgspec.json.encode(trial), j.encode(event))


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a journal file, up to where it was torn or damaged; the last may be a part of one. A file that isn't compressed
    (as `chaosckpt` wrote them before, and stores them with findings) is read as it is."""
    rest = b""
    for data in _content(path):
        *whole, rest = (rest + data).split(b"\n")
        yield from (one + b"\n" for one in whole)
    if rest:
        yield rest


def _content(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        if path.suffix != ".gz":
            while data := file.read(_CHUNK):
                yield data
            return
        member = zlib.decompressobj(_GZIP)
        while data := file.read(_CHUNK):
            while data:
                if member.eof:
                    member = zlib.decompressobj(_GZIP)
                try:
                    yield member.decompress(data)
                except zlib.error:
                    return
                data = member.unused_data


def _end_torn(path: Path) -> None:
    """Write a file anew, in one piece, unless it ends as gzip wants it: nothing that is appended to a torn one could be read."""
    try:
        with gzip.open(path) as file:
            while file.read(_CHUNK):
                continue
        return
    except (EOFError, zlib.error, gzip.BadGzipFile):
        pass
    temporary = path.with_name(f"{path.name}.new")
    with gzip.open(temporary, "wb") as mended:
        mended.writelines(one for one in lines(path) if one.endswith(b"\n"))
    temporary.replace(path)


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of it; a full disk raises OSError instead of losing the end of a line silently."""
    while data:
        data = data[os.write(descriptor, data) :]
