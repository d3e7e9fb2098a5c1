"""How a process passes the gate: it installs the filter, hands over the listener, and waits until it is served."""

from __future__ import annotations

import os
import socket

import msgspec

from chaosckpt.engine.gate.install import install


def pass_gate(connection: socket.socket, *, low_descriptors: bool = False, network: bool = False) -> None:
    """Put this process, and all that it will start, under the gate of the node at the other end of `connection`.

    Ends the process when the node is gone. Raises OSError as `install` does.
    """
    installed = install(low_descriptors=low_descriptors, network=network)
    payload = msgspec.msgpack.encode((installed.base, installed.limit, installed.wait_killable))
    socket.send_fds(connection, [payload], [installed.listener])
    os.close(installed.listener)
    if connection.recv(1) != b"g":
        os._exit(1)
