"""The advised interval in words: from what it was made, how much it costs, what bounds it, and what it hangs on."""

from __future__ import annotations

from chaosckpt.measure.measurement import FailureRate, IntervalAdvice, Limit
from chaosckpt.measure.pages.sections import Section
from chaosckpt.model.phrasing import plural
from chaosckpt.report.quantities import digits, seconds_text, share_text

YOUNG = "Young 1974, doi:10.1145/361147.361115"
DALY = "Daly 2006, doi:10.1016/j.future.2004.11.016"


def interval_sections(advice: IntervalAdvice) -> tuple[Section, ...]:
    """What the interval costs and where it comes from, its limits, and the weight of its inputs."""
    limits = Section(
        title="Limits of the interval",
        headers=("limit", "interval", "", "why"),
        rows=tuple(_limit(limit) for limit in advice.limits),
    )
    return (_advised(advice), _inputs(advice), *((limits,) if advice.limits else ()))


def rate_text(rate: FailureRate) -> str:
    """`one failure in 24 h, as given`."""
    mean = seconds_text(rate.mtbf_seconds)
    if rate.source == "assumed":
        return f"one failure in {mean} is assumed"
    if rate.failures is None or rate.observed_seconds is None:
        return f"one failure in {mean}, as given"
    low = "0 s" if rate.low_seconds is None else seconds_text(rate.low_seconds)
    bound = f"between {low} and {seconds_text(rate.high_seconds)}" if rate.high_seconds is not None else f"above {low}"
    confidence = "90 %" if rate.high_seconds is not None else "95 %"
    counted = f"{plural(rate.failures, 'failure')} in {seconds_text(rate.observed_seconds)}"
    return f"{counted}: one in {mean}, and with {confidence} confidence one {bound}"


def _advised(advice: IntervalAdvice) -> Section:
    low, high = advice.near_seconds
    steps = f", {plural(advice.steps, 'training step')}" if advice.steps is not None else ""
    rows = [
        ("advised", f"{seconds_text(advice.seconds)} of training between two saves{steps}"),
        ("overhead", f"{share_text(advice.overhead)} of the training time is expected to be lost: {_parts(advice)}"),
        ("about as good", f"from {seconds_text(low)} to {seconds_text(high)}: at most 5 % more overhead"),
        (
            "at worst",
            f"the newest complete checkpoint is {seconds_text(advice.worst_loss_seconds)} old when a failure happens",
        ),
        ("optimum", f"{seconds_text(advice.optimum_seconds)} without any limit"),
        ("Young", f"{seconds_text(advice.young_seconds)}, {_valid(advice.young_holds)} ({YOUNG})"),
        ("Daly", f"{seconds_text(advice.daly_seconds)}, {_valid(advice.daly_holds)} ({DALY})"),
    ]
    if advice.low_seconds is not None:
        high_text = "no bound" if advice.high_seconds is None else seconds_text(advice.high_seconds)
        rows.insert(
            3,
            (
                "failure rate",
                f"between its bounds the advised interval goes from {seconds_text(advice.low_seconds)} to {high_text}",
            ),
        )
    return Section(title="Interval", rows=tuple(rows), remarks=advice.notes)


def _parts(advice: IntervalAdvice) -> str:
    return (
        f"{share_text(advice.saving_share)} by saving, {share_text(advice.lost_work_share)} by repeated work, "
        f"{share_text(advice.restart_share)} by restarts"
    )


def _valid(holds: bool) -> str:
    return "which applies: a save is much shorter" if holds else "which does not apply: a save is too long"


def _inputs(advice: IntervalAdvice) -> Section:
    weight = {entry.name: entry.value for entry in advice.elasticities}
    values = {
        "mean time between failures": rate_text(advice.failure_rate),
        "stall": seconds_text(advice.stall_seconds),
        "slower steps during a save": f"{seconds_text(advice.slowdown_seconds)} of training lost in each save",
        "completion after the stall": seconds_text(max(0.0, advice.completion_seconds - advice.stall_seconds)),
        "restart": seconds_text(advice.restart_seconds),
    }
    if advice.tolerated_loss_seconds is not None:
        values["tolerated loss"] = seconds_text(advice.tolerated_loss_seconds)
    return Section(
        title="What the interval depends on",
        headers=("input", "value", "overhead changes, if 1 % more"),
        rows=tuple((name, value, _weight(weight.get(name))) for name, value in values.items()),
        remarks=(f"dominant: {advice.dominant}",),
    )


def _weight(value: float | None) -> str:
    if value is None:
        return "-"
    rounded = round(value, 2)
    return "nothing" if rounded == 0 else f"{'+' if rounded > 0 else '-'}{digits(abs(rounded))} %"


def _limit(limit: Limit) -> tuple[str, str, str, str]:
    where = "-" if limit.seconds is None else f"{limit.bound} {seconds_text(limit.seconds)}"
    return limit.name, where, "holds" if limit.holds else "DOES NOT HOLD", limit.sentence
