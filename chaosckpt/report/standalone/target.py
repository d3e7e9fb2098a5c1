"""The reproduce.py of a target's finding: its plain `recover` on the stored files, without faults and without the harness.

The generator fills CASE in and puts the basis's functions in the place of its import. Checksums are those of the training job.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from chaosckpt.report.standalone.basis import HERE, lay_out, names_a_checkpoint, scenario_beside

CASE: dict[str, Any] = {}


def main() -> int:
    """Start one process a rank, collect what each recovered, and say whether the fault is there: 1 if so, else 0, 2 for trouble."""
    print(CASE["claim"])
    with tempfile.TemporaryDirectory(prefix="reproduce-") as folder:
        root = Path(folder)
        places = lay_out(CASE, root)
        for node in range(len(CASE["ranks"])):
            for tier in ("shared", f"local-{node}"):
                places.setdefault(tier, str(root / tier))
                os.makedirs(places[tier], exist_ok=True)
        results = run_ranks(root, places)
    for result in results:
        print(told(result))
        if result.get("trouble"):
            print(result["trouble"], file=sys.stderr)
            return 2
    fault = fault_in(CASE, results)
    print(f"The fault is there: {fault}." if fault else "The fault is not there.")
    return 1 if fault else 0


def run_ranks(root: Path, places: dict[str, str]) -> list[dict[str, Any]]:
    """What every rank answered; a rank without an answer hung or ended without a word."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    if sys.platform == "linux":
        environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
    processes = []
    for rank in range(sum(CASE["ranks"])):
        order = json.dumps({"rank": rank, "root": str(root), "places": places})
        command = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:2], "--rank", order]
        processes.append(subprocess.Popen(command, env=environment))
    until = time.monotonic() + CASE["timeout_seconds"]
    results = []
    for rank, process in enumerate(processes):
        try:
            status: int | None = process.wait(timeout=max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            status = None
        answer = root / f"answer-{rank}.json"
        found = json.loads(answer.read_text()) if answer.exists() else {"status": status}
        results.append({"rank": rank, **found})
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()
    return results


def told(result: dict[str, Any]) -> str:
    """One line about one rank."""
    if "error" in result:
        return f"rank {result['rank']}: {result['error']}"
    if "answer" not in result:
        ended = "gave no answer in time" if result.get("status") is None else f"ended with status {result['status']}"
        return f"rank {result['rank']}: {ended}"
    return f"rank {result['rank']}: {result['answer']}"


def fault_in(case: dict[str, Any], results: list[dict[str, Any]]) -> str:
    """What is wrong with what the ranks answered, in words; empty where nothing is."""
    failed = [result for result in results if "answer" not in result]
    if failed:
        return failure_of(case, failed)
    chosen = {result["step"] for result in results}
    if len(chosen) > 1:
        return "the ranks loaded different steps"
    step = chosen.pop()
    if step is None:
        silent = case["required"] is not None or case["must_speak"]
        return "nothing was loaded, and no error was raised" if silent else ""
    if case["required"] is not None and step < case["required"]:
        return f"step {step} was loaded, although step {case['required']} had been saved and acknowledged"
    if not case["compared"]:
        return ""
    wrong = [parts_unlike(save, results, case["compared"]) for save in case["saves"] if save["step"] == step]
    if not wrong:
        return f"step {step} was loaded, which was never saved"
    fewest = min(wrong, key=len)
    return f"what was loaded as step {step} is not what was saved: {', '.join(fewest)}" if fewest else ""


def failure_of(case: dict[str, Any], failed: list[dict[str, Any]]) -> str:
    """Why a recovery that failed is wrong to do so; empty where it was entitled to fail, and did so clearly."""
    errors = [result.get("error", "") for result in failed]
    if case["required"] is not None:
        why = next(filter(None, errors), "a rank gave no answer")
        return f"recovery failed ({why}), although step {case['required']} had been saved and acknowledged"
    if any(not error and result.get("status") in (None, 0) for error, result in zip(errors, failed, strict=True)):
        return "recovery neither succeeded nor raised an error"
    if case["must_speak"] and not any(names_a_checkpoint(error) for error in errors):
        return "no error names the checkpoint that was looked for"
    return ""


def parts_unlike(save: dict[str, Any], results: list[dict[str, Any]], compared: list[str]) -> list[str]:
    """The parts of the state, of each rank, that are not those that were captured for this save."""
    wrong = []
    for result in results:
        own = save["held"].get(str(result["rank"])) or next(iter(save["held"].values()))
        wrong += [f"{part} of rank {result['rank']}" for part in compared if own[part] != result["held"][part]]
    return wrong


def held_by(digest: Any) -> dict[str, str]:
    """Checksums of what a rank holds: one for each part of the training state."""
    from chaosckpt.model.digest import fingerprint

    return {
        "parameters": fingerprint(digest.params),
        "optimizer": fingerprint((digest.optimizer, digest.optimizer_scalars)),
        "scheduler": fingerprint(digest.scheduler),
        "step count": fingerprint(digest.step),
        "random streams": fingerprint(digest.rng),
        "data position": fingerprint(digest.sampler),
    }


def rank_main(order: dict[str, Any]) -> None:
    """One rank: join the others, build the job, let the target recover, and write down what came of it."""
    answer: dict[str, Any] = {}
    try:
        answer = recovered(order)
    except ModuleNotFoundError as error:
        answer = {"error": repr(error), "trouble": f"{error}: install it (chaosckpt has the target's base class)"}
    except BaseException as error:  # torch's CheckpointException is no Exception
        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {error}"}
    path = Path(order["root"]) / f"answer-{order['rank']}.json"
    path.with_suffix(".new").write_text(json.dumps(answer))
    path.with_suffix(".new").replace(path)
    sys.stderr.flush()
    os._exit(0)  # a thread that the target left must not keep this process


def recovered(order: dict[str, Any]) -> dict[str, Any]:
    """What the target's recovery loaded on this rank."""
    import datetime

    import msgspec
    import torch.distributed as dist

    from chaosckpt.model.scenario import WorkloadSettings
    from chaosckpt.targets.api import Chosen, Context, Intent
    from chaosckpt.training.digest import digest
    from chaosckpt.training.loop import build

    rank, ranks = order["rank"], CASE["ranks"]
    workload = msgspec.convert(CASE["workload"], WorkloadSettings)
    if sum(ranks) > 1 or workload.strategy != "ddp":
        store = f"file://{order['root']}/rendezvous"
        limit = datetime.timedelta(seconds=CASE["timeout_seconds"])
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=sum(ranks), timeout=limit)
    node, local_rank = next((n, rank - sum(ranks[:n])) for n in range(len(ranks)) if rank < sum(ranks[: n + 1]))
    context = Context(
        rank=rank,
        world_size=sum(ranks),
        node=node,
        local_rank=local_rank,
        ranks_on_node=ranks[node],
        shared=Path(order["places"]["shared"]),
        local=Path(order["places"][f"local-{node}"]),
        attempt=CASE["attempt"] + 1,
        options=CASE["options"],
        mark=lambda stage: None,
    )
    state = build(workload, rank, sum(ranks), CASE["attempt"]).state
    target = target_class()(context)
    if CASE["audited"] is not None:  # no recovery: the checkpoint that was acknowledged is loaded by its step
        step = CASE["audited"]
        if step not in (target.retained() or ()):
            raise LookupError(
                f"step {step}, which was acknowledged, is not among the checkpoints that the target lists"
            )
        target.load(state, step)
        return {"step": step, "answer": f"loaded step {step}", "held": held_by(digest(state))}
    chosen = target.recover(state, Intent(CASE["intent"]))
    number = chosen.step if isinstance(chosen, Chosen) else None
    return {"step": number, "answer": f"recover returned {chosen!r}", "held": held_by(digest(state))}


def target_class() -> Any:
    """The class under test: of an installed package, or of a file (the first argument, the original place, or the copy here)."""
    if CASE["module"]:
        return getattr(importlib.import_module(CASE["module"]), CASE["class"])
    given = [word for word in sys.argv[1:2] if word.endswith(".py")]
    original = str(scenario_beside().get("target", {}).get("use", "")).rpartition(":")[0]
    choices = [Path(word) for word in (*given, original, HERE / CASE["file"]) if word]
    file = next(path for path in choices if path.is_file())
    sys.path += [str(file.resolve().parent), str(HERE / "code")]
    spec = importlib.util.spec_from_file_location("target_under_test", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, CASE["class"])


if __name__ == "__main__":
    if "--rank" in sys.argv:
        rank_main(json.loads(sys.argv[-1]))
    sys.exit(main())
