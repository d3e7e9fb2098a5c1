"""Quiescence: whether ranks can go no further by themselves, told from samples of their threads and sockets.

A fault strikes when what it holds is held and everything else has come as far as it can; only then is the same fault the same crash
every time. A sample (chaosckpt/engine/node/sampling.py) shows one instant; rest is a statement about the time between samples, so
it takes several.

**Exact, told without a clock.** There is a span of samples, ending now, in which no operation got anywhere, no TCP byte moved and
no queue held any, and each thread either

- *waited*: it sat in a system call that waits (or was held by the gate) and used no CPU time, or
- *polled*: it came back at least twice to the very same sleep or timed wait (the same call on the same stack), with next to no CPU
  time each time. It looks again and again at something that only others can change. Twice, because the first of these rounds may
  have begun before the span did: in the second it has seen all that there is to see. Something that trains or copies between two
  sleeps uses more CPU time than that, and isn't taken for one that polls. A thread that one of these wakes in each round, such as that
  of the store on which a rank looks for the others, polls with it. Besides, the quiet lasts as long as the longest pause of the
  golden run: whatever is done in small portions between sleeps was done there, too.

Threads that poll sockets with a short timeout (gloo's loop wakes every 10 ms) may run in between: their only inputs are those sockets.
A thread in a sleep, which has not come back to it twice, may be about to go on: a save that backs off before it tries again. It is
waited for. A timed wait that nobody ended in the whole span counts as a wait, though it can end later: the harness acts at once when
rest is told.

**By time.** Some threads are never seen at rest: a heartbeat that beats every ten minutes, a loop that prints without end, a busy
wait. Then a bounded watch takes the place of exact rest: nothing gets anywhere for ten times the longest pause of the golden run.
Where threads run meanwhile they must have *used* as much CPU time as that, and three times what a launch takes, so that a rank which
others keep from running, or which is still being launched, is not taken for one with nothing to do. "idle" is told of what only waits
and sleeps, "busy" of what runs. A thread that slept through such a watch, and sleeps on, needs no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.wire.requests import Sample, ThreadSeen

Quiescence = Literal["exact", "idle", "busy"]

_POLL_NANOSECONDS = 1_000_000
"""CPU time of one round of a thread that polls, at most. Python's take 20 to 100 microseconds."""
_MOST_PLACES = 4
"""A loop sleeps at so many places at most."""


class _Thread:
    """What is known of one thread: `came_back` and `before` are the last two samples in which it had come back to where it polls."""

    __slots__ = ("before", "came_back", "places", "seen")

    def __init__(self, seen: ThreadSeen) -> None:
        self.seen = seen
        self.places = [seen.place]
        self.came_back = 0
        self.before = 0

    def ran(self, seen: ThreadSeen, number: int) -> bool:
        """It ran since the last sample. Whether it did anything but poll."""
        cpu = None if seen.cpu is None or self.seen.cpu is None else seen.cpu - self.seen.cpu
        self.seen = seen
        if cpu is not None and cpu <= _POLL_NANOSECONDS and seen.place and seen.place in self.places:
            self.before, self.came_back = self.came_back, number
            return False
        self.places = [*self.places[1 - _MOST_PLACES :], seen.place]
        self.came_back = self.before = 0
        return True

    def rests(self, since: int) -> bool:
        """Whether it only waited, or came back twice to where it polls, after the sample of this number."""
        return self.before > since or (self.seen.waits != "asleep" and self.came_back <= since)


class QuiescenceWatch:
    """Tells rest from one sample of every node after another. Without pauses of a golden run, rest is never told by time."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._long_asleep: dict[tuple[int, int], int | None] = {}
        """The CPU time of what was asleep when rest was told by time: it counts as waiting until it has used more."""
        self.forget()

    def forget(self) -> None:
        """Begin anew: what was seen until now counts no more."""
        self._number = 0
        self._changed = 0
        """The number of the last sample before which something did more than wait and poll."""
        self._complete = 0
        """The number of the last sample in which nothing moved."""
        self._state: object = None
        self._quiet_since = 0.0
        self._cpu = 0
        self._threads: dict[tuple[int, int], _Thread] = {}
        self._began = self._now = 0.0
        self._disturbers: list[tuple[int, int]] = []
        self._workers: list[tuple[int, int]] = []

    def see(self, samples: Sequence[Sample], now: float) -> Quiescence | None:
        """Take one sample of every node, made at this time of the monotonic clock. None where rest can't be told yet."""
        self._number += 1
        self._began, self._now = self._began or now, now
        rows = {(node, row.tid): row for node, sample in enumerate(samples) for row in sample.threads}
        self._note_progress(samples, sum(row.cpu or 0 for row in rows.values()), now)
        moving = [key for key, row in rows.items() if row.waits in ("busy", "running")]
        self._disturbers = moving or self._disturbers
        if any(sample.runner_awaited for sample in samples):
            self._changed, self._quiet_since = self._number, now
            return None
        if not moving and not any(sample.pending for sample in samples):
            before, self._complete = self._complete, self._number
            self._compare(rows)
            if before == self._number - 1 and (rest := self._in_some_span(now)):
                return rest
        return self._by_time(rows, moving, now)

    def _note_progress(self, samples: Sequence[Sample], cpu: int, now: float) -> None:
        state = [(sample.operations, sample.sockets) for sample in samples]
        if state == self._state:
            return
        if isinstance(self._state, list) and len(self._state) == len(state):
            moved = [node for node, (old, new) in enumerate(zip(self._state, state, strict=True)) if old[0] != new[0]]
            self._workers = [(node, samples[node].caller) for node in moved]
        self._state, self._changed, self._quiet_since, self._cpu = state, self._number, now, cpu

    def _compare(self, rows: dict[tuple[int, int], ThreadSeen]) -> None:
        """Note which threads did more than wait and poll since they were seen last."""
        disturbers = []
        for key, row in rows.items():
            known = self._threads.get(key)
            if known is None:
                self._threads[key] = _Thread(row)
                disturbers.append(key)
            elif known.seen.cpu != row.cpu:
                if known.ran(row, self._number):
                    disturbers.append(key)
            else:
                known.seen = row
        ended = self._threads.keys() - rows.keys()
        for key in ended:
            del self._threads[key]
        if disturbers or ended:
            self._changed = self._number
            self._disturbers = disturbers or self._disturbers

    def _in_some_span(self, now: float) -> Quiescence | None:
        """Whether there is a span of samples in which everything waited or polled: "idle" where something slept on in it."""
        threads = [thread for key, thread in self._threads.items() if not self._sleeps_on(key)]
        starts = {self._changed, *(thread.came_back for thread in threads if thread.seen.waits != "asleep")}
        for since in sorted(start for start in starts if self._changed <= start < self._number):
            polled = [thread for thread in threads if thread.before > since]
            long_enough = not polled or now - self._quiet_since >= self._deadlines.pauses.between
            nobody_polls = bool(polled) and all(thread.seen.waits == "wait" for thread in polled)
            if long_enough and not nobody_polls and all(thread.rests(since) for thread in threads):
                return "exact" if len(threads) == len(self._threads) else "idle"
        self._disturbers = self._restless() or self._disturbers
        return None

    def _restless(self) -> list[tuple[int, int]]:
        return [key for key, thread in self._threads.items() if not thread.rests(self._changed)]

    def _sleeps_on(self, key: tuple[int, int]) -> bool:
        return key in self._long_asleep and self._threads[key].seen.cpu == self._long_asleep[key]

    def _by_time(
        self, rows: dict[tuple[int, int], ThreadSeen], moving: Sequence[tuple[int, int]], now: float
    ) -> Quiescence | None:
        watch = self._deadlines.watch_seconds
        if not watch or now - self._quiet_since < watch:
            return None
        if all(rows[key].waits == "busy" for key in moving) and self._unmoved(rows, moving):
            self._long_asleep = {key: self._threads[key].seen.cpu for key in self._restless()}
            return "idle"
        used = sum(row.cpu or 0 for row in rows.values()) - self._cpu
        return "busy" if used >= self._deadlines.busy_seconds * 1e9 else None

    def _unmoved(self, rows: dict[tuple[int, int], ThreadSeen], moving: Sequence[tuple[int, int]]) -> bool:
        """Whether these threads, which sit in calls that need not wait, have used no CPU time since they were seen last."""
        still = all(key in self._threads and self._threads[key].seen.cpu == rows[key].cpu for key in moving)
        for key in moving:
            self._threads[key] = _Thread(rows[key])
        return still

    @property
    def still(self) -> bool:
        """Whether nothing moved in the last sample, so that another one made at once may tell quiescence."""
        return self._complete == self._number

    @property
    def disturbers(self) -> list[tuple[int, int]]:
        """(node, thread) of what was in the way of rest last; none where it was bytes on TCP connections.

        Where something got somewhere in the later half of the time, it is what got there; else what ran or slept.
        """
        return self._workers if self._quiet_since - self._began > self._now - self._quiet_since else self._disturbers
