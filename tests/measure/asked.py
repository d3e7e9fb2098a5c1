"""What intervals are asked for in several tests: a job that fails once a day, and any job at all."""

from __future__ import annotations

from hypothesis import strategies as st

from chaosckpt.measure import failure_rate
from chaosckpt.measure.interval import IntervalInputs
from chaosckpt.measure.limits import Needs

HOUR = 3600.0
BASE = IntervalInputs(
    failure_rate=failure_rate.given(24 * HOUR), stall_seconds=5.0, completion_seconds=60.0, restart_seconds=300.0
)
times = st.floats(1e-3, 100.0)


@st.composite
def inputs(draw) -> IntervalInputs:
    stall = draw(times)
    return IntervalInputs(
        failure_rate=failure_rate.given(draw(st.floats(100.0, 1e6))),
        stall_seconds=stall,
        completion_seconds=stall + draw(st.one_of(st.just(0.0), times)),
        restart_seconds=draw(times),
        slowdown_seconds=draw(st.one_of(st.just(0.0), times)),
        step_seconds=draw(st.one_of(st.none(), st.floats(1e-3, 10.0))),
        needs=Needs(
            tolerated_loss_seconds=draw(st.one_of(st.none(), st.floats(1.0, 1e5))),
            checkpoint_bytes=draw(st.integers(0, 10**12)),
            retained_generations=draw(st.integers(1, 5)),
            space_bytes=draw(st.one_of(st.none(), st.integers(0, 10**13))),
            keep_seconds=draw(st.one_of(st.none(), st.floats(1.0, 1e5))),
        ),
    )
