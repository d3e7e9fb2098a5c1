"""The observer of torch: what each optimizer step of this process begins with, by torch's own global hooks.

It returns at once while torch compiles, traces or transforms, catches whatever goes wrong in it, draws no random number, and keeps
nothing of the script alive. What it can't see (an update without torch's Optimizer, a compiled one, the state of a gradient scaler)
leaves no step.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import random
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.modules import module as torch_module
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

SAMPLED_ABOVE = 1 << 20
"""Elements of a tensor above which its digest is made of a sample: the first and the last ones, and some in between."""
_SAMPLE = 1 << 14
_DEEPEST = 6
"""Levels of containers in which a batch's tensors are looked for."""
_MOST_BATCHES = 64
"""Of the batches of one step, the last ones are told."""
_WALKS = 2
"""The first steps of a process before which all modules that live are looked for: there they have been made."""


class _Thread(threading.local):
    """What one thread is in: modules that run, and steps."""

    def __init__(self) -> None:
        self.depth = 0
        self.steps: list[dict[str, Any]] = []


class _Observer:
    """Counts the steps of this process and tells each."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._thread = _Thread()
        self._batch: list[str] = []
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._modules: list[tuple[weakref.ref[torch.nn.Module], bool]] = []
        """Each with whether it is a part of one that some optimizer trains."""
        self._steps = 0

    def install(self) -> None:
        known = (
            register_module_forward_pre_hook(_guarded(self._enter)),
            register_module_forward_hook(_guarded(self._leave), with_kwargs=True, always_call=True),
        )
        _hide({handle.id for handle in known})
        register_optimizer_step_pre_hook(_guarded(self._before))
        register_optimizer_step_post_hook(_guarded(self._after))

    def _enter(self, module: torch.nn.Module, arguments: object) -> None:
        self._thread.depth += 1

    def _leave(self, module: torch.nn.Module, arguments: object, *rest: object) -> None:
        """A forward that raised is told without its keywords."""
        self._thread.depth = max(0, self._thread.depth - 1)
        if self._thread.depth == 0 and module.training:
            keywords = rest[0] if len(rest) > 1 else {}
            seen = _all(_digest(tensor) for tensor in _tensors((arguments, keywords), _DEEPEST))
            self._batch = [*self._batch[1 - _MOST_BATCHES :], seen] if seen else self._batch

    def _before(self, optimizer: torch.optim.Optimizer, arguments: object, keywords: object) -> None:
        self._optimizers.add(optimizer)
        if self._steps < _WALKS:
            self._find_all()
        parts = {
            "parameters": _all(_digest(parameter) for parameter in _parameters(optimizer)),
            "optimizer": _all(_state(optimizer.state.get(parameter)) for parameter in _parameters(optimizer)),
            "scheduler": _all(_numbers(group) for group in optimizer.param_groups),
            **_generators(),
            **self._of_modules(),
        }
        self._thread.steps.append({"parts": parts, "inner": False})

    def _after(self, optimizer: torch.optim.Optimizer, arguments: object, keywords: object) -> None:
        if not self._thread.steps:
            return
        step = self._thread.steps.pop()
        if self._thread.steps:
            self._thread.steps[-1]["inner"] = True
        if step["inner"]:
            return  # the optimizer within it has told this step
        self._steps += 1
        parts = step["parts"]
        gradients = [parameter.grad for parameter in _parameters(optimizer)]
        parts["gradients"] = _all(_digest(gradient) for gradient in gradients if gradient is not None)
        parts["data"] = " ".join(self._batch)
        self._batch = []
        after = _all(_digest(parameter) for parameter in _parameters(optimizer))
        seen = {part: digest for part, digest in parts.items() if digest}
        self._emit(json.dumps({"rank": _rank(), "before": seen, "after": after}))

    def _find_all(self) -> None:
        """Every module and optimizer that lives: a copy of a model is made without any hook, and the second optimizer steps later."""
        # By their types: asking an object for its class may run code of its own, and takes longer.
        kinds = {torch.optim.Optimizer: _below(torch.optim.Optimizer), torch.nn.Module: _below(torch.nn.Module)}
        wanted = set().union(*kinds.values())
        living = [found for found in gc.get_objects() if type(found) in wanted]
        for found in living:
            if type(found) in kinds[torch.optim.Optimizer]:
                self._optimizers.add(found)
        modules = [found for found in living if type(found) in kinds[torch.nn.Module]]
        held = self._held()
        training = {
            id(part)
            for module in modules
            if any(id(parameter) in held for parameter in module.parameters())
            for part in module.modules()
        }
        self._modules = [(weakref.ref(module), id(module) in training) for module in modules]

    def _held(self) -> set[int]:
        """The parameters of all optimizers."""
        return {id(parameter) for optimizer in self._optimizers for parameter in _parameters(optimizer)}

    def _of_modules(self) -> dict[str, str]:
        """Buffers, and the weights that no optimizer holds; in no order, since nothing tells the order of objects."""
        held = self._held()
        buffers: dict[int, str] = {}
        averages: dict[int, str] = {}
        for reference, trains in self._modules:
            if (module := reference()) is None:
                continue
            for name, tensor in module.named_buffers(recurse=False):
                (buffers if trains else averages)[id(tensor)] = f"{type(module).__name__}.{name}={_digest(tensor)}"
            for name, tensor in module.named_parameters(recurse=False):
                if id(tensor) not in held:
                    averages[id(tensor)] = f"{type(module).__name__}.{name}={_digest(tensor)}"
        return {"buffers": _counted(buffers), "averages": _counted(averages)}


def _below(kind: type) -> set[type]:
    """A class and all that are derived from it."""
    children: list[type] = type.__subclasses__(kind)
    return {kind}.union(*map(_below, children))


def _hide(known: set[int]) -> None:
    """Have torch overlook these global hooks where it warns of such: a compiled model does at each call, and a script may turn its
    warnings into errors."""

    def others() -> bool:
        hooks = (
            torch_module._global_backward_pre_hooks,
            torch_module._global_backward_hooks,
            torch_module._global_forward_pre_hooks,
            torch_module._global_forward_hooks,
        )
        return any(set(registered) - known for registered in hooks)

    torch_module._has_any_global_hook = others


def _guarded(hook: Callable[..., None]) -> Callable[..., None]:
    """The hook, where torch runs a step of its own; it neither raises nor returns anything, and is no part of a graph."""

    def call(*arguments: object) -> None:
        if _is_elsewhere():
            return
        try:
            with torch.no_grad():
                hook(*arguments)
        except Exception:
            return

    return call


def _is_elsewhere() -> bool:
    """Whether torch compiles, traces, or runs under a transformation: nothing that can be looked at is real then."""
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._len_torch_dispatch_stack() > 0
    )


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _tensors(value: object, levels: int) -> Iterator[torch.Tensor]:
    """The tensors in what was given to a module, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif levels and isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item, levels - 1)
    elif levels and isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for item in value:
            yield from _tensors(item, levels - 1)


def _state(state: Mapping[str, object] | None) -> str:
    """What an optimizer keeps for one parameter; empty where that is nothing yet, which says nothing."""
    return _all(f"{name}={_value(value)}" for name, value in sorted((state or {}).items()))


def _numbers(group: Mapping[str, object]) -> str:
    """The settings of a group of parameters that a scheduler can change."""
    return _all(
        f"{name}={_value(value)}" for name, value in sorted(group.items()) if name != "params" and value is not None
    )


def _value(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return _digest(value) if value.numel() > 1 else repr(float(value))
    if isinstance(value, (tuple, list)):
        return " ".join(map(_value, value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(float(value))
    return repr(value) if isinstance(value, (bool, str)) else type(value).__name__


def _generators() -> dict[str, str]:
    """The states of the global generators, none of which is moved by being asked."""
    found = {
        "python-rng": _short(repr(random.getstate()).encode()),
        "torch-rng": _digest(torch.default_generator.get_state()),
    }
    if (numpy := sys.modules.get("numpy")) is not None:
        _, words, position, *_ = numpy.random.get_state()
        found["numpy-rng"] = _short(words.tobytes() + str(position).encode())
    return found


def _digest(tensor: torch.Tensor) -> str:
    """Of the bits of a tensor, its shape and type; of a sharded one, of this rank's own part."""
    local = getattr(tensor, "_local_tensor", tensor).detach()
    if local.device.type == "meta":
        return "meta"
    flat = local.reshape(-1)
    if flat.numel() > SAMPLED_ABOVE:
        stride = flat.numel() // _SAMPLE
        flat = torch.cat((flat[:_SAMPLE], flat[::stride], flat[-_SAMPLE:]))
    data = flat.cpu().contiguous().view(torch.uint8).numpy()
    return _short(f"{tuple(local.shape)} {local.dtype} ".encode() + data.tobytes())


def _counted(digests: Mapping[int, str]) -> str:
    """Of several in no order, with their number: where that differs, something else lives, and they can't be compared."""
    return f"{len(digests)}:{_all(sorted(digests.values()))}" if digests else ""


def _all(digests: Iterator[str] | Sequence[str]) -> str:
    """One digest of several; empty where there is none, or each is empty."""
    found = list(digests)
    return _short("|".join(found).encode()) if any(found) else ""


def _short(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _rank() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    return int(os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or 0)


def install(file: str) -> None:
    """Have each optimizer step of this process written to a file, one line each. It is opened anew each time: a script may close
    every descriptor, and use its number."""
    process = os.getpid()

    def emit(line: str) -> None:
        if os.getpid() != process:
            return  # a child that trains for itself
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line.encode() + b"\n")
        finally:
            os.close(descriptor)

    _Observer(emit).install()
