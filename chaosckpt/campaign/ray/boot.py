"""How warm nodes come to be: which one rehearses for the others, how often a start is tried, and how starts are given up."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import tenacity

from chaosckpt.campaign.ray.cluster import Cluster, imported_ray
from chaosckpt.campaign.ray.nodes import RayNode, start
from chaosckpt.engine.wire.orders import NodeSettings
from chaosckpt.errors import HarnessError, UsageError

_STARTS = 3


class Boot:
    """Boots nodes with one and the same settings, from any thread. `base` is where they make node-local storage."""

    def __init__(self, cluster: Cluster, settings: NodeSettings, base: str | None) -> None:
        self._cluster = cluster
        self._settings = settings
        self._base = base
        self._lock = threading.Lock()
        self._rehearsed = threading.Event()
        self._somebody_rehearses = False
        self._refusal: UsageError | None = None
        self._starting: set[Any] = set()
        self._closed = False

    @property
    def modules(self) -> tuple[str, ...]:
        """What ranks import, known once the first node is warm."""
        return self._settings.modules

    def node(self, options: dict[str, Any]) -> RayNode:
        """One warm node. An actor that doesn't start is tried again, a few times. Raises as `ray_nodes.start` does."""
        first = self._is_first()
        try:
            node = self._try(options, lambda: self._settings_for(first))
            if first:
                self._settings = msgspec.structs.replace(self._settings, modules=node.modules)
        except UsageError as error:
            self._refusal = error
            raise
        finally:
            if first:
                self._rehearsed.set()
        return node

    def give_up(self) -> None:
        """End the starts that are under way; from now on none succeeds."""
        with self._lock:
            self._closed = True
            starting = list(self._starting)
        for actor in starting:
            imported_ray().kill(actor)

    def _is_first(self) -> bool:
        """Whether the caller is to find out what ranks import, while all others wait for that."""
        with self._lock:
            if self._settings.modules:
                self._rehearsed.set()
                return False
            first, self._somebody_rehearses = not self._somebody_rehearses, True
            return first

    def _settings_for(self, first: bool) -> NodeSettings:
        if not first:
            self._rehearsed.wait()
        if self._refusal is not None:
            raise UsageError(str(self._refusal))  # what one node refuses, all refuse
        return self._settings

    def _try(self, options: dict[str, Any], settings: Callable[[], NodeSettings]) -> RayNode:
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(_STARTS),
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, HarnessError) and not self._closed),
            wait=tenacity.wait_exponential(0.2, max=5),
            reraise=True,
        )
        for attempt in retrying:
            with attempt, self._tracking() as track:
                node = start(
                    self._cluster,
                    settings,
                    base=self._base,
                    import_path=self._settings.import_path,
                    options=options,
                    track=track,
                )
        return node

    @contextlib.contextmanager
    def _tracking(self) -> Iterator[Callable[[Any], None]]:
        """Remember the actor that is starting, so that it can be given up."""
        actors: list[Any] = []

        def track(actor: Any) -> None:
            with self._lock:
                actors.append(actor)
                self._starting.add(actor)
                if self._closed:
                    raise HarnessError("the arenas are being closed")

        try:
            yield track
        finally:
            with self._lock:
                self._starting.difference_update(actors)
