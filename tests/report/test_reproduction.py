"""reproduce.py: when a plain recovery can show a finding, and what its script calls a fault."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model import journal as j
from chaosckpt.model.digest import StateDigest
from chaosckpt.model.finding import StoredFile, StoredStorage
from chaosckpt.model.operation import Address, Operation
from chaosckpt.model.scenario import CommandSettings, Scenario, TargetSettings
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.failures import names_its_subject
from chaosckpt.report.reproduction import Impossible, script
from chaosckpt.report.standalone import command, target
from chaosckpt.report.standalone.basis import names_a_checkpoint

SCENARIO = Scenario(name="s", target=TargetSettings(use="dcp"))
COMMAND = Scenario(
    name="c",
    command=CommandSettings(argv=("python", "train.py", "{out}"), resumed=r"resumed from (\d+)", directory="/x"),
)
STORED = StoredStorage(
    files=(
        StoredFile(path="shared", kind="directory"),
        StoredFile(path="shared/a", bytes=3, modified_ns=5),
        StoredFile(path="shared/now", kind="link", link="/old/shared/a"),
    ),
    roots={"shared": "/old/shared"},
)
OPERATION = Operation(address=Address(0, "main", "read", "shared:a", 0, 0), sequence=1, raw="shared:a")
DIGEST = StateDigest(
    rank=0,
    world_size=1,
    params={},
    optimizer={},
    optimizer_scalars={},
    scheduler={},
    step=2,
    rng={},
    sampler={},
    stamp=(1, 2, 0, 1),
)


def violation(invariant: str = "newest-complete", attempt: int = 1, step: int | None = 2) -> Violation:
    return Violation(invariant=invariant, sentence="", attempt=attempt, step=step, rank=0)


def events(*more: j.AnyEvent, ranks: tuple[int, ...] = (1,)) -> tuple[j.AnyEvent, ...]:
    return (
        j.AttemptStarted(attempt=0, ranks=(1,), intent="start"),
        j.SaveStarted(attempt=0, rank=0, step=2, digest=DIGEST),
        j.AttemptStarted(attempt=1, ranks=ranks, intent="resume"),
        *more,
    )


def made(scenario: Scenario = SCENARIO, found: Violation | None = None, journal=None, storage=STORED) -> str:
    place = ("some.module", "", "Mine")
    return script(scenario, found or violation(), journal or events(), storage, place, {})[0]


@pytest.mark.parametrize("scenario", [SCENARIO, COMMAND])
def test_the_script_stands_alone(scenario):
    """It compiles, imports nothing of the report, and begins with what it checks."""
    text = made(scenario)
    compile(text, "reproduce.py", "exec")
    assert "chaosckpt.report" not in text
    assert "chaosckpt.engine" not in text
    assert text.startswith('"""Checks, on the files as the crash left them: ')
    assert "/x" not in text, "no path of this machine"
    assert ("chaosckpt" in text.partition("HERE =")[2]) is (scenario is SCENARIO)


@pytest.mark.parametrize(
    ("found", "journal", "storage", "why"),
    [
        (violation("trajectory"), None, STORED, "more than a recovery"),
        (violation("progress"), None, STORED, "the training after it"),
        (violation(attempt=0), None, STORED, "the first launch"),
        (
            violation(),
            events(j.FaultInjected(attempt=1, fault=0, kind="cut", evidence="", operation=OPERATION)),
            STORED,
            "strikes the recovery itself",
        ),
        (
            violation(),
            events(j.ErrorInjected(attempt=1, rank=0, error="EIO", operation=OPERATION)),
            STORED,
            "strikes the recovery itself",
        ),
        (violation(), None, StoredStorage(missing="the stored files are 70 MiB"), "70 MiB"),
        (violation("full-state"), events(ranks=(2,)), STORED, "another number of ranks"),
        (
            msgspec.structs.replace(violation("durable-acknowledgement", attempt=0), evidence=(3,)),
            events(j.Audited(attempt=0, rank=0, step=2, error_type="OSError", as_of=j.Moment(2, "shared"))),
            STORED,
            "as it was when the step was acknowledged",
        ),
    ],
)
def test_where_it_is_impossible_it_is_said_why(found, journal, storage, why):
    """Faults in the recovery itself, what training shows, and storage that is too large have no script."""
    with pytest.raises(Impossible, match=why):
        made(found=found, journal=journal, storage=storage)


def test_what_struck_between_two_launches_is_in_the_stored_files():
    """Damage at rest strikes no operation of the recovery, so that the script shows it."""
    assert made(journal=events(j.FaultInjected(attempt=1, fault=0, kind="bit-flip", evidence="")))


def test_a_command_that_does_not_come_to_its_end_is_shown():
    """Unlike a target's, a command's own end is within reach of the script."""
    assert "come to its end" in made(COMMAND, violation("progress"))


SAVES = [{"step": 2, "held": {"0": {"parameters": "a"}, "1": {"parameters": "b"}}}]
CASE = {"required": 2, "must_speak": False, "compared": ["parameters"], "saves": SAVES}


def ranks(*held: str, steps: tuple[int | None, ...] = (2, 2)) -> list[dict[str, object]]:
    return [
        {"rank": rank, "answer": "", "step": steps[rank], "held": {"parameters": value}}
        for rank, value in enumerate(held)
    ]


FAILED: list[dict[str, object]] = [{"rank": rank, "error": "EOFError: "} for rank in (0, 1)]


@pytest.mark.parametrize(
    ("changes", "results", "fault"),
    [
        ({}, ranks("a", "b"), ""),
        ({}, ranks("a", "a"), "is not what was saved: parameters of rank 1"),
        ({}, ranks("a", "b", steps=(1, 1)), "step 1 was loaded, although step 2"),
        ({}, ranks("a", "b", steps=(2, 4)), "different steps"),
        ({}, ranks("a", "b", steps=(4, 4)), "never saved"),
        ({"compared": []}, ranks("x", "y", steps=(4, 4)), ""),
        ({}, ranks("a", "b", steps=(None, None)), "nothing was loaded"),
        ({}, FAILED, "recovery failed (EOFError: ), although step 2"),
        ({"required": None}, FAILED, ""),
        ({"required": None, "must_speak": True}, FAILED, "no error names"),
        ({"required": None, "must_speak": True}, [{"rank": 0, "error": "no step-*/a.pt"}], ""),
        ({"required": None}, [{"rank": 0, "status": None}], "neither succeeded nor raised"),
    ],
)
def test_what_a_targets_script_calls_a_fault(changes, results, fault):
    """A required step missed, a mixed state, disagreement, an unclear or missing error; nothing else."""
    said = target.fault_in({**CASE, **changes}, results)
    assert fault in said
    assert bool(said) == bool(fault)


LINES = {
    "required": 2,
    "must_speak": False,
    "must_end": False,
    "resumed": r"resumed from (\d+)",
    "incomplete": [],
    "result": None,
    "result_file": "{out}/final",
    "tolerance": 0.0,
    "timeout_seconds": 9,
}


@pytest.mark.parametrize(
    ("changes", "status", "output", "fault"),
    [
        ({}, 0, "resumed from 2", ""),
        ({}, 0, "resumed from 1", "resumed from step 1, although step 2"),
        ({}, 0, "", "began anew"),
        ({}, 1, "EOFError", "ended with status 1, although step 2"),
        ({}, None, "", "within 9 seconds"),
        ({"required": None}, 1, "EOFError", ""),
        ({"required": None, "must_end": True}, 1, "EOFError", "ended with status 1"),
        ({"required": None, "must_speak": True}, 1, "EOFError", "names no checkpoint"),
        ({"required": None, "must_speak": True}, 1, "EOFError: ckpt-2.pt", ""),
        ({"incomplete": [4]}, 0, "resumed from 4", "not complete"),
        ({"result": "abc"}, 0, "resumed from 2", "its result is not"),
        ({"result": "seen"}, 0, "resumed from 2", ""),
    ],
)
def test_what_a_commands_script_calls_a_fault(changes, status, output, fault):
    """Its status, the step that it says it resumed from, its error's words, and its result."""
    said = command.fault_in({**LINES, **changes}, status, output, lambda: "seen")
    assert fault in said
    assert bool(said) == bool(fault)


@pytest.mark.parametrize(
    "text",
    [
        "EOFError",
        "no such file: ckpt-4.pt",
        "looked for /a/b/step-*",
        "[/src/transport/tcp/pair.cc:553] Connection closed by peer",
        "there is no checkpoint under here",
        '  File "/x/y.py", line 3, in load\nEOFError',
        "see https://pytorch.org/docs",
    ],
)
def test_the_script_calls_clear_what_the_oracle_calls_clear(text):
    """The script has its own copy of the rule, as it stands alone."""
    assert names_a_checkpoint(text) == names_its_subject(text)


def test_links_and_times_are_laid_out(tmp_path, monkeypatch):
    """A link within the storage leads to the copy, times are those of the crash, and empty directories are there."""
    from chaosckpt.report.standalone import basis

    (tmp_path / "storage" / "shared").mkdir(parents=True)
    (tmp_path / "storage" / "shared" / "a").write_text("in /old/shared/b")
    monkeypatch.setattr(basis, "HERE", tmp_path)
    case = {
        "roots": {"shared": "/old/shared"},
        "links": [("shared/now", "/old/shared/a")],
        "mentions": ["shared/a"],
        "directories": ["shared", "shared/empty"],
        "times": [("shared/a", 5_000_000_000)],
        "places": ["shared"],
    }
    root = tmp_path / "laid out"
    places = basis.lay_out(case, root)
    assert places == {"shared": str(root / "shared")}
    assert (root / "shared" / "now").read_text() == f"in {root}/shared/b"
    assert (root / "shared" / "a").stat().st_mtime == 5
    assert (root / "shared" / "empty").is_dir()


def test_without_the_stored_files_nothing_is_told(tmp_path, monkeypatch):
    """Status 2: neither the fault nor its absence."""
    from chaosckpt.report.standalone import basis

    monkeypatch.setattr(basis, "HERE", tmp_path)
    with pytest.raises(SystemExit) as ended:
        basis.lay_out({}, tmp_path)
    assert ended.value.code == 2


def test_a_round_trip_of_the_evidence():
    """What the pages tell is kept with the finding, to be written anew with its final count."""
    assert msgspec.json.decode(msgspec.json.encode(STORED), type=StoredStorage) == STORED
