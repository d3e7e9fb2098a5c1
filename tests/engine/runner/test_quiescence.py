"""When rest is told of ranks, from samples of threads that a test makes up: no process, and a clock that only counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import msgspec
import pytest

from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.quiescence import Quiescence, QuiescenceWatch
from chaosckpt.engine.wire.requests import Sample, Socket, ThreadSeen, Waits
from chaosckpt.model.census import Pauses

GOLDEN = Deadlines(pauses=Pauses(first=0.2, between=0.05))
ROUND = 50_000
"""Nanoseconds of CPU time that one round of a thread that polls takes."""
ROUND_SECONDS = 0.02

Thread = Callable[[int], ThreadSeen]
"""A thread as it is seen in the sample of each number."""


def main_thread(number: int) -> ThreadSeen:
    return ThreadSeen(1, 5_000, "wait", "m")


def poller(
    tid: int, every: int = 1, *, waits: Waits = "asleep", cpu: int = ROUND, places: Sequence[str] = ("a",)
) -> Thread:
    """A thread that sleeps, and has come back to its sleep in every so many samples."""

    def seen(number: int) -> ThreadSeen:
        rounds = number // every
        return ThreadSeen(tid, rounds * cpu, waits, places[rounds % len(places)])

    return seen


def sleeper(number: int) -> ThreadSeen:
    """It backs off, and will try again."""
    return ThreadSeen(2, 1_000, "asleep", "b")


def told(
    threads: Sequence[Thread],
    samples: int = 12,
    deadlines: Deadlines = GOLDEN,
    *,
    operations: Callable[[int], int] = lambda number: 7,
    sockets: Callable[[int], tuple[Socket, ...]] = lambda number: (),
    seconds: float = ROUND_SECONDS,
) -> list[Quiescence | None]:
    """What a watch tells after each of so many samples."""
    watch = QuiescenceWatch(deadlines)
    return [
        watch.see(
            [Sample(tuple(t(number) for t in threads), sockets(number), False, operations(number), 1)], number * seconds
        )
        for number in range(samples)
    ]


def test_threads_that_wait_are_at_rest_once_two_samples_are_equal() -> None:
    """Goal: today's targets are at rest as soon as before, and no clock is asked."""
    assert told([main_thread], 3, Deadlines(), seconds=0) == [None, "exact", "exact"]


def test_a_thread_that_polls_is_at_rest_once_it_has_come_back_twice() -> None:
    """Goal: a heartbeat, a polling loop. The first round may have begun before all else had come to rest; the second has seen it."""
    assert told([main_thread, poller(2)], 5, Deadlines(), seconds=0) == [None, None, "exact", "exact", "exact"]


def test_polling_threads_of_different_pace_are_at_rest_together() -> None:
    """Goal: the slow one comes back twice, however often the fast one does meanwhile."""
    found = told([main_thread, poller(2), poller(3, every=3)], 10, Deadlines(), seconds=0)
    assert found.index("exact") == 6


def test_a_loop_may_sleep_at_a_few_places() -> None:
    """Goal: a loop with two sleeps in it is at rest, too; a program that sleeps here and there is not."""
    assert "exact" in told([main_thread, poller(2, places="ab")], 12, Deadlines())
    assert "exact" not in told([main_thread, poller(2, places="abcdefghijkl")], 12, Deadlines())


def test_a_save_that_backs_off_is_waited_for() -> None:
    """Goal: no attempt is cut while something will go on by itself: a sleep that has not come back is no rest."""
    assert set(told([main_thread, sleeper], 50, Deadlines())) == {None}


def test_what_works_between_two_sleeps_does_not_poll() -> None:
    """Goal: a throttled copy or training step, which will end in an operation, is not taken for a heartbeat."""
    assert set(told([main_thread, poller(2, cpu=5_000_000)], 50, Deadlines())) == {None}


def test_a_thread_that_others_wake_does_not_poll() -> None:
    """Goal: two threads that hand work to each other wait without a timeout; they are never at rest while they do."""
    assert set(told([poller(1, waits="wait"), poller(2, waits="wait")], 50, Deadlines())) == {None}


def test_a_thread_that_one_which_polls_wakes_polls_with_it() -> None:
    """Goal: a rank that asks its own store whether the others are there, again and again, is at rest; the store's thread serves it."""
    found = told([main_thread, poller(2), poller(3, waits="wait")], 8, Deadlines(), seconds=0)
    assert found.index("exact") == 2
    assert set(told([main_thread, poller(2), poller(3, waits="wait", cpu=5_000_000)], 50, Deadlines())) == {None}


def test_a_polling_thread_must_come_back_after_the_last_change_of_another() -> None:
    """Goal: a saver that polls for work has not yet seen what the main thread left for it just now."""

    def leaves_work(number: int) -> ThreadSeen:
        return ThreadSeen(1, 5_000 if number < 4 else 9_000_000, "wait", "m")

    found = told([leaves_work, poller(2)], 8, Deadlines(), seconds=0)
    assert found == [None, None, "exact", "exact", None, None, "exact", "exact"]


def test_operations_and_bytes_are_no_rest() -> None:
    """Goal: the watch begins anew at each operation, and at each byte, whatever the threads do."""
    assert set(told([main_thread, poller(2)], 50, operations=lambda number: number)) == {None}
    assert set(told([main_thread], 50, sockets=lambda number: ((9, 1, 0, 0, number, 0),))) == {None}


def test_who_waits_for_the_runner_is_not_quiescent() -> None:
    """Goal: a rank that will go on as soon as the runner lets it is neither still nor watched."""
    watch = QuiescenceWatch(GOLDEN)
    waiting = Sample((main_thread(0),), (), False, 7, 1, runner_awaited=True)
    assert {watch.see([waiting], number * 0.1) for number in range(20)} == {None}
    assert [watch.see([msgspec.structs.replace(waiting, runner_awaited=False)], 2.0) for _ in range(2)] == [
        None,
        "exact",
    ]


def test_a_poller_is_given_as_long_as_the_golden_run_ever_paused() -> None:
    """Goal: what is done in small portions between sleeps was done in the golden run, too, and took as long."""
    assert told([main_thread, poller(2)], 30, GOLDEN, seconds=0.01).index("exact") == 5


@pytest.mark.parametrize(("threads", "rest"), [([main_thread, sleeper], "idle"), ([main_thread], "exact")])
def test_a_long_sleep_is_at_rest_by_time(threads: Sequence[Thread], rest: Quiescence) -> None:
    """Goal: a heartbeat of ten minutes: ten times the longest pause of the golden run without anything, and it is said so."""
    found = told(threads, 200)
    assert next(one for one in found if one) == rest
    if rest == "idle":
        assert found.index("idle") * ROUND_SECONDS == pytest.approx(10 * GOLDEN.pauses.between)


def test_who_slept_through_a_watch_needs_no_other_while_it_sleeps_on() -> None:
    """Goal: every operation of a job with a watchdog of ten minutes is not watched anew; once it has moved, it is."""
    watch, clock = QuiescenceWatch(GOLDEN), count()

    def looks(sleepers_cpu: int) -> list[Quiescence | None]:
        watch.forget()
        seen = (main_thread(0), ThreadSeen(2, sleepers_cpu, "asleep", "b"))
        return [watch.see([Sample(seen, (), False, 7, 1)], next(clock) * ROUND_SECONDS) for _ in range(30)]

    assert looks(1000).index("idle") > 20
    assert looks(1000).index("idle") == 1
    assert looks(2000).index("idle") > 20


def test_a_busy_thread_is_at_rest_by_the_time_that_it_used() -> None:
    """Goal: an infinite printer is told; a rank that others keep from running is not, however long that lasts."""
    used = 1_000_000_000

    def printer(number: int) -> ThreadSeen:
        return ThreadSeen(2, number * int(used * ROUND_SECONDS), "running")

    def starved(number: int) -> ThreadSeen:
        return ThreadSeen(2, number * 1000, "running")

    assert "busy" in told([main_thread, printer], 200)
    assert set(told([main_thread, starved], 2000)) == {None}


def test_a_thread_that_is_stuck_in_a_call_is_at_rest_by_time() -> None:
    """Goal: who writes to a pipe that nobody reads goes no further, though this call need not wait."""
    assert "idle" in told([main_thread, lambda number: ThreadSeen(2, 800, "busy")], 200)


def test_what_disturbs_is_known() -> None:
    """Goal: the sentence about a job without rest names its thread."""
    watch, numbers = QuiescenceWatch(GOLDEN), count()
    for number in range(20):
        seen = (main_thread(number), ThreadSeen(2, number * 10**7, "running"))
        watch.see([Sample(seen, (), False, 7, 1)], next(numbers) * 0.001)
    assert watch.disturbers == [(0, 2)]
    for number in range(20):
        watch.see([Sample((main_thread(number), sleeper(number)), (), False, number, 2)], next(numbers) * 0.001)
    assert watch.disturbers == [(0, 2)]
