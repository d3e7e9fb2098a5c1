"""Whether an allocation was fresh: what its ranks saw around them, beside what the old ones saw. Pure."""

from __future__ import annotations

import sys

from chaosckpt.drill.restart import Restart
from chaosckpt.engine.node.launcher import SET_BY_HARNESS
from chaosckpt.model.scenario import Scenario

OWN = SET_BY_HARNESS | {"PYTHONPATH"}
"""What the harness itself sets for a rank."""
_EXEC = "chaosckpt.engine.rank.main"


def fresh(scenario: Scenario, restart: Restart) -> tuple[list[str], list[str]]:
    """Evidence that the restoring ranks began afresh, in lines; and what speaks against it."""
    old, new, own_filters = restart.old, restart.new, restart.own_filters
    assert new is not None
    named = set(scenario.drill.environment)
    doubts = [
        f"old rank {one.rank} was under a filter of the gate" for one in old.surroundings if one.filters > own_filters
    ]
    lines = [f"old rank {one.rank}: process {one.pid}, begun at {one.began}; it is gone" for one in old.surroundings]
    for one in new.surroundings:
        strange = sorted(set(one.environment) - named - OWN)
        given = ", ".join(sorted(set(one.environment) & named)) or "nothing"
        lines.append(
            f"new rank {one.rank}: process {one.pid}, begun at {one.began}, started by exec of {one.executable}; "
            f"environment: {given} of the scenario's, {', '.join(sorted(set(one.environment) & OWN))} of the harness's; "
            f"temporary directory {one.temporary}; seccomp filters {one.filters}, the harness's own {own_filters}"
        )
        who = f"rank {one.rank}"
        doubts += [f"{who} was not started by exec"] if _EXEC not in one.argv else []
        doubts += [f"{who} ran under {one.executable}"] if one.executable != (restart.python or sys.executable) else []
        doubts += [f"{who} was given {', '.join(strange)}"] if strange else []
        doubts += [f"{who} found {one.local_files[0]} on its node's storage"] if one.local_files else []
        doubts += [f"{who} was under {one.filters - own_filters} filters"] if one.filters > own_filters else []
        doubts += [
            f"{who} had the temporary directory of an old rank"
            for other in old.surroundings
            if other.temporary == one.temporary
        ]
    absent = sorted(named - {name for one in new.surroundings for name in one.environment})
    if absent:
        lines.append(f"named by the scenario, but not set in this environment: {', '.join(absent)}")
    if len(new.surroundings) < restart.topology.world_size:
        doubts.append(
            f"only {len(new.surroundings)} of {restart.topology.world_size} ranks told what they found around them"
        )
    before = {(one.pid, one.began) for one in old.surroundings}
    doubts += [f"process {one.pid} is an old one" for one in new.surroundings if (one.pid, one.began) in before]
    if new.temporary_found:
        doubts.append(f"its temporary directory held {', '.join(new.temporary_found[:3])}")
    else:
        lines.append("the new temporary directory was empty when the ranks were started")
    lines += [
        f"node-local storage of old node {node}: dropped with {files} file{'' if files == 1 else 's'}"
        for node, files in sorted(restart.local_files.items())
    ]
    return lines, doubts
