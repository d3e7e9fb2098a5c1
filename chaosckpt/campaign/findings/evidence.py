"""What a finding's pages need beside its journal: the stored files, the code under test, versions, and reproduce.py."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import chaosckpt
from chaosckpt.campaign.findings.code import excerpts, scripts_of, target_place
from chaosckpt.campaign.findings.storage_copy import StorageWatch, written_by
from chaosckpt.engine.subjects import subject_of
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census, Label
from chaosckpt.model.fault import Fault
from chaosckpt.model.finding import Evidence, StoredStorage
from chaosckpt.model.operation import Address
from chaosckpt.model.phrasing import describe_label, describe_operation, describe_trigger
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import Schedule
from chaosckpt.model.verdict import Violation
from chaosckpt.plugins import is_target_file
from chaosckpt.report.finding_story import story, writers
from chaosckpt.report.reproduction import NAME, Impossible, attempt_shown, script
from chaosckpt.report.subject_terms import terms_of

STORAGE = "storage"
CODE = "code"
_PACKAGES = ("numpy", "safetensors", "accelerate", "transformers", "lightning", "deepspeed", "fsspec", "ray")
_TRACEBACK_LINES = 60
_FRAME = re.compile(r'Traceback|  File "')
_ENGINE = os.path.join(os.path.dirname(chaosckpt.__file__), "engine") + os.sep


def collect(
    folder: Path,
    scenario: Scenario,
    census: Census,
    schedule: Schedule,
    violation: Violation,
    journal: j.Journal,
    watch: StorageWatch | None,
    modules: Sequence[str] = (),
) -> Evidence:
    """Everything that the pages tell. Writes the stored files, the code under test and reproduce.py into the folder.

    `modules` are what the ranks are known to import.
    """
    number = attempt_shown(violation)
    storage = (
        watch.stored(number) if watch is not None else StoredStorage(missing="no replay showed the violation again")
    )
    storage = written_by(storage, writers(census, journal.events, storage, number))
    shutil.rmtree(folder / STORAGE, ignore_errors=True)
    (folder / NAME).unlink(missing_ok=True)
    local = subject_of(scenario).sources(modules).files
    scripts = _copy_code(folder, scenario, local)
    place = _place(scenario)
    no_script = claim = ""
    try:
        text, claim = script(scenario, violation, journal.events, storage, place, scripts)
    except Impossible as error:
        no_script = str(error)
    else:
        assert watch is not None
        watch.keep(number, folder / STORAGE)
        (folder / NAME).write_text(text, encoding="utf-8")
    told = {
        (attempt, index): described(fault, census)
        for attempt, plan in enumerate(schedule.attempts)
        for index, fault in enumerate(plan.faults)
    }
    return Evidence(
        story=story(journal.events, told),
        code=excerpts(scenario),
        storage=storage,
        traceback=_traceback(journal, violation),
        versions=versions(),
        modules=tuple(local),
        no_script=no_script,
        claim=claim,
    )


def described(fault: Fault, census: Census) -> str:
    """A fault in words, with every exact address in them told as a person would."""
    text = fault.describe()
    for trigger in fault.triggers():
        address = trigger.address
        text = text.replace(str(trigger), describe_trigger(trigger)).replace(str(address), describe_operation(address))
    for trigger in fault.triggers():
        doing = describe_label(_label(census, trigger.address))
        for phrase in dict.fromkeys((describe_trigger(trigger), describe_operation(trigger.address))) if doing else ():
            # Not where a longer name begins with this one, nor twice.
            whole = re.compile(rf"{re.escape(phrase)}(?![\w/*-]|\.\w|, {doing})")
            text = whole.sub(lambda found, doing=doing: f"{found.group()}, {doing}", text)  # type: ignore[misc]
    return text


def addresses(fault: Fault) -> tuple[str, ...]:
    """The exact addresses of what a fault strikes."""
    return tuple(dict.fromkeys(str(trigger.address) for trigger in fault.triggers()))


def _label(census: Census, address: Address) -> str:
    """What golden runs say that the operation belongs to; nothing where they don't agree."""
    found: set[Label] = {point.label for run in census.runs for point in run.points if point.address == address}
    return str(found.pop()) if len(found) == 1 else ""


def _place(scenario: Scenario) -> tuple[str, str, str]:
    module, file, name = target_place(scenario.target.use)
    return module, os.path.basename(file) and _own_name(os.path.basename(file)), name


def _own_name(name: str) -> str:
    """The name of a copied file: reproduce.py is the script's own."""
    return f"copy_of_{name}" if name == NAME else name


def _copy_code(folder: Path, scenario: Scenario, local: Mapping[str, Path]) -> dict[str, str]:
    """Copy the code under test, and below `code/` once more with the local modules that it imports, where each is found by its name.

    Returns a command's scripts by their words.
    """
    shutil.rmtree(folder / CODE, ignore_errors=True)
    beside: dict[Path, Path] = {}
    for module, path in local.items():
        package = module if path.stem == "__init__" else module.rpartition(".")[0]
        beside[Path(*package.split("."), path.name)] = path
    if is_target_file(scenario.target.use):
        file = scenario.target.use.rpartition(":")[0]
        shutil.copy(file, folder / _own_name(os.path.basename(file)))
        beside[Path(os.path.basename(file))] = Path(file)
    command = terms_of(scenario).command
    scripts = {word: _own_name(name) for word, name in scripts_of(command).items()}
    for word, name in scripts.items():
        shutil.copy(Path(command.directory, word), folder / name)
        beside[Path(os.path.basename(word))] = Path(command.directory, word)
    for place, path in beside.items() if local else ():
        (folder / CODE / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / CODE / place)
    return scripts


def _traceback(journal: j.Journal, violation: Violation) -> str:
    """The end of what the process printed in which the violation shows."""
    tails = [
        event.stderr_tail
        for event in journal.events
        if isinstance(event, j.RankExited)
        and event.attempt == violation.attempt
        and event.rank == (violation.rank or 0)
        and event.exit_code
    ]
    lines = tails[-1].rstrip().splitlines() if tails else []
    start = next((number for number, line in enumerate(lines) if _FRAME.match(line)), 0)  # the tail begins anywhere
    return "\n".join(_without_harness(lines[start:])[-_TRACEBACK_LINES:])


def _without_harness(lines: list[str]) -> list[str]:
    """The lines without the frames of the harness's own engine, in which the code under test ran."""
    kept: list[str] = []
    skipping = False
    for line in lines:
        if _FRAME.match(line):
            skipping = _ENGINE in line
        elif not line.startswith("    "):
            skipping = False
        if not skipping:
            kept.append(line)
    return kept


@functools.cache
def versions() -> tuple[str, ...]:
    """Lines such as `PyTorch version: 2.13.0+cpu`, in the words of `torch.utils.collect_env`, found without importing torch."""
    torch = _of_torch()
    lines = [
        f"PyTorch version: {torch.get('__version__') or _installed('torch') or 'N/A'}",
        f"Is debug build: {torch.get('debug') or 'N/A'}",
        f"CUDA used to build PyTorch: {torch.get('cuda') or 'N/A'}",
        f"OS: {_system()} ({platform.machine()})",
        f"Libc version: {'-'.join(filter(None, platform.libc_ver())) or 'N/A'}",
        f"Python version: {platform.python_version()} ({platform.architecture()[0]} runtime)",
        f"Python platform: {platform.platform()}",
    ]
    lines += [f"[pip3] {name}=={found}" for name in (*_PACKAGES, "torch") if (found := _installed(name))]
    return tuple(lines)


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _of_torch() -> dict[str, str]:
    """What torch's own version file says."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return {}
    try:
        text = Path(next(iter(spec.submodule_search_locations)), "version.py").read_text(encoding="utf-8")
    except OSError:
        return {}
    found = re.findall(r"^(\w+)(?::[^=]+)? = '?([^'\n]+)'?$", text, re.MULTILINE)
    return {name: value for name, value in found if value != "None"}


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()
