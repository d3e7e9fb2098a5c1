"""Framed MessagePack messages over a stream socket, with descriptors beside them where needed."""

from __future__ import annotations

import socket
import struct
from typing import Any

import msgspec

_LENGTH = struct.Struct("<I")
_ENCODER = msgspec.msgpack.Encoder()


class Channel:
    """One end of a stream socket that carries whole messages.

    Sending blocks until the message is in the kernel's buffer; `receive` blocks for one message. `feed` is for event loops: it takes
    what is there and returns the messages that are complete.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._buffer = bytearray()

    def fileno(self) -> int:
        return self.connection.fileno()

    def send(self, message: Any) -> None:
        payload = _ENCODER.encode(message)
        self.connection.sendall(_LENGTH.pack(len(payload)) + payload)

    def feed(self) -> list[bytes] | None:
        """Take one portion of what arrived. Returns complete payloads (maybe none), or None at the end of the stream."""
        try:
            data = self.connection.recv(1 << 20)
        except ConnectionResetError:
            return None
        if not data:
            return None
        self._buffer += data
        return self._complete()

    def _complete(self) -> list[bytes]:
        payloads = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                break
            payloads.append(bytes(self._buffer[_LENGTH.size : end]))
            del self._buffer[:end]
        return payloads

    def receive(self) -> bytes:
        """Block for exactly one message. Raises EOFError at the end of the stream."""
        header = self._exactly(_LENGTH.size)
        return self._exactly(_LENGTH.unpack(header)[0])

    def _exactly(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            data = self.connection.recv(length - len(parts))
            if not data:
                raise EOFError("the peer closed the channel")
            parts += data
        return bytes(parts)

    def close(self) -> None:
        self.connection.close()


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected stream sockets within this machine."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
