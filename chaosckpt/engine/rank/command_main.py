"""A command started cold: `python -m chaosckpt.engine.rank.command_main FD PARENT` becomes it, under the gate."""

from __future__ import annotations

import os
import socket
import sys

from chaosckpt.engine.rank import command
from chaosckpt.engine.wire.process_tree import die_with_parent


def main() -> None:
    """Pass the gate, and become the command."""
    connection, parent = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    os.setsid()
    die_with_parent(parent)
    order = command.enter(connection)
    connection.close()
    command.execute(order)


if __name__ == "__main__":
    main()
