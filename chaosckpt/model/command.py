"""Commands: an unmodified training script as the subject of a campaign, and how its saves and recoveries are told."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

OUT = "{out}"
RANKS = "{nproc}"
_PER_NODE = re.compile(r"--nproc[-_]per[-_]node(?:=(.*))?$")


def ranks_told(words: Sequence[str]) -> int:
    """The number of ranks that a command's own words tell, by torchrun's option; 1 where they tell none."""
    for place, word in enumerate(words):
        found = _PER_NODE.match(word)
        if found is not None:
            number = found[1] or "".join(words[place + 1 : place + 2])
            if number.isdecimal() and int(number) > 0:
                return int(number)
    return 1


class CommandSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is launched, and by which signs its checkpoints, recoveries and results are known.

    In `argv`, `checkpoints` and `result`, `{out}` stands for a directory that the harness makes, empties and removes; in `argv`,
    `{nproc}` stands for the number of ranks.
    """

    argv: tuple[str, ...]
    checkpoints: str | None = None
    """A glob below `{out}` with one `*` in place of the step's number, such as `{out}/ckpt-*`."""
    resumed: str | None = None
    """A regular expression for a line that says which step was resumed from; its first group is the number."""
    saved: str | None = None
    """A regular expression for a line that says that a step was saved; its first group is the number."""
    result: str | None = None
    """A file that is to be the same at the end as after an uninterrupted run."""
    result_command: str | None = None
    """A command that prints one number at the end, in place of a file."""
    tolerance: float = 0.0
    """By how much that number may differ."""
    resume_argv: tuple[str, ...] = ()
    """What is added to the command once something was saved."""
    track: tuple[str, ...] = ()
    """Further directories whose operations are traced. They are never emptied."""
    cold: bool = False
    """Never run in a fork of a warm interpreter."""
    allow: bool = False
    """Let it change files anywhere."""
    allow_network: bool = False
    """Let it connect to other machines."""
    directory: str = "."
    """Its current directory."""

    def words(self, out: str, ranks: int, *, resuming: bool = False) -> tuple[str, ...]:
        """The command line of one launch."""
        words = (*self.argv, *(self.resume_argv if resuming else ()))
        return tuple(word.replace(OUT, out).replace(RANKS, str(ranks)) for word in words)
