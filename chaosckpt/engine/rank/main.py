"""A rank started cold, by exec: `python -m chaosckpt.engine.rank.main FD PARENT`."""

from __future__ import annotations

import os
import socket
import sys

from chaosckpt.engine.wire.process_tree import die_with_parent


def main() -> None:
    """Become a rank as a forked one does, but with everything still to be imported."""
    connection, parent = int(sys.argv[1]), int(sys.argv[2])
    os.setsid()
    die_with_parent(parent)
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)

    from chaosckpt.engine.rank import training

    training.run(socket.socket(fileno=connection))


if __name__ == "__main__":
    main()
