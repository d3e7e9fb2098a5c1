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

    def feed(self, wait: bool = True) -> list[bytes] | None:
        """Take one portion of what arrived. Returns complete payloads (maybe none), or None at the end of the stream.

        With `wait=False` nothing is waited for, as an event loop needs it.
        """
        try:
            data = self.connection.recv(1 << 20, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except ConnectionResetError:
            return None
        if not data:
            return None
        self._buffer += data
        payloads = []
        while (payload := self._complete()) is not None:
            payloads.append(payload)
        return payloads

    def _complete(self) -> bytes | None:
        """The first whole message of the buffer, taken out of it."""
        if len(self._buffer) < _LENGTH.size:
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        return payload

    def receive(self) -> bytes:
        """Block for exactly one message, and read no further. Raises EOFError at the end of the stream."""
        self._fill(_LENGTH.size)
        self._fill(_LENGTH.size + _LENGTH.unpack_from(self._buffer)[0])
        payload = self._complete()
        assert payload is not None
        return payload

    def _fill(self, length: int) -> None:
        while len(self._buffer) < length:
            data = self.connection.recv(length - len(self._buffer))
            if not data:
                raise EOFError("the peer closed the channel")
            self._buffer += data

    def close(self) -> None:
        self.connection.close()


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected stream sockets within this machine."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
