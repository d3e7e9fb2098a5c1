"""What a script told through chaosckpt.probe, as events."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from chaosckpt.model import journal as j


class _Told(msgspec.Struct, frozen=True):
    what: str
    rank: int
    step: int
    digest: str = ""
    samples: tuple[int, ...] = ()


def told(lines: Iterable[str], attempt: int) -> list[j.Probed]:
    """The events of one attempt; a line that was cut short by a kill is left out."""
    found = []
    for line in lines:
        try:
            event = msgspec.json.decode(line.encode(), type=_Told)
        except msgspec.MsgspecError:
            continue
        if event.what in ("saved", "resumed", "trained"):
            found.append(
                j.Probed(
                    attempt=attempt,
                    rank=event.rank,
                    what=event.what,  # type: ignore[arg-type]
                    step=event.step,
                    digest=event.digest,
                    samples=event.samples,
                )
            )
    return found


def samples_by_step(events: Iterable[j.Probed]) -> dict[int, tuple[int, ...]]:
    """The samples of each step, sorted, of all ranks."""
    found: dict[int, list[int]] = {}
    for event in events:
        if event.what == "trained":
            found.setdefault(event.step, []).extend(event.samples)
    return {step: tuple(sorted(samples)) for step, samples in sorted(found.items())}
