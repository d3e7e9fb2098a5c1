"""What a complete checkpoint of a command is: as golden runs left it, by content where that is steady, else by sizes and names."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from chaosckpt.commands.naming import ROLLING, UNSAVED, FileSeen, Naming, StepFiles, kind_of


class CompletenessModel(msgspec.Struct, frozen=True, kw_only=True):
    """What complete checkpoints are measured by.

    `variants` has, for each step, the sets of files with which golden runs went on, and `worlds` with how many ranks each was saved: a
    run with fewer may rightly save fewer files. `same_content` and `same_size` are the kinds
    of files whose content, or only whose size, was equal in all golden runs; of others only that they are there is asked.
    """

    variants: dict[int, tuple[dict[str, tuple[int, str]], ...]] = {}
    worlds: dict[int, tuple[int, ...]] = {}
    same_content: tuple[str, ...] = ()
    same_size: tuple[str, ...] = ()

    def differing(self, step: int, files: Mapping[str, tuple[int, str]], world: int | None = None) -> str | None:
        """The first file that keeps this step from being complete, or UNSAVED; None when it is complete.

        `world` is the number of ranks that saved it, where that is known.
        """
        first: str | None = None
        for variant in self._of(step, world):
            wrong = next(
                (path for path in sorted(variant) if not self._fits(path, variant[path], files.get(path))), None
            )
            if wrong is None:
                return None
            first = first or wrong
        return first or UNSAVED

    def _of(self, step: int, world: int | None) -> list[dict[str, tuple[int, str]]]:
        """The variants of a step: those that were saved with so many ranks, where there are any."""
        every = self.variants.get(step, ())
        own = [files for files, ranks in zip(every, self.worlds.get(step, ()), strict=False) if ranks == world]
        return own or list(every)

    def looked_at(
        self,
        files: StepFiles,
        naming: Naming,
        numbers: Sequence[int],
        worlds: Mapping[int, int] | None = None,
        *,
        as_ever: bool = False,
    ) -> dict[int, str | None]:
        """What is wrong with each step's files: the first file that differs, UNSAVED, or None where they are complete.

        A rolling checkpoint's files are those of the step with which a golden run had exactly the same ones. Else they stand under the
        last of `numbers`, the steps that are saved: UNSAVED where they could be some step's, as far as names and sizes tell. `as_ever`
        says that nothing has led the command to save other steps than in golden runs; then they could be, where golden runs had
        the same content each time, only if they hold all that some step had.
        """
        if not naming.rolling:
            savers = worlds or {}
            return {step: self.differing(step, found, savers.get(step)) for step, found in sorted(files.items())}
        own = files.get(ROLLING)
        if own is None:
            return {}
        same = [step for step, variants in self.variants.items() if own in variants]
        if same:
            return {max(same): None}
        wrong = [self.differing(step, own) for step in sorted(self.variants)]
        if as_ever and self.steady() and not self._holds_a_step(own):
            last = self.variants[max(self.variants)][0]
            return {max(numbers, default=ROLLING): next(path for path in sorted(last) if own.get(path) != last[path])}
        return {max(numbers, default=ROLLING): UNSAVED if None in wrong else wrong[0] if wrong else UNSAVED}

    def steady(self) -> bool:
        """Whether every step's files were the same in all golden runs that had them."""
        return bool(self.variants) and all(len(found) == 1 for found in self.variants.values())

    def _holds_a_step(self, files: Mapping[str, tuple[int, str]]) -> bool:
        return any(own.items() <= files.items() for variants in self.variants.values() for own in map(dict, variants))

    def spare(self, files: Iterable[FileSeen], naming: Naming) -> tuple[int, ...]:
        """The steps of a rolling checkpoint whose files lie there under other names, as in `last.pt.bak` or `last.old/`, by content."""
        if not naming.rolling:
            return ()
        elsewhere = {path: (size, digest) for path, size, digest in files if naming.entry(path) is None}
        return tuple(
            step
            for step, variants in self.variants.items()
            if any(_lies_elsewhere(variant, naming, elsewhere) for variant in variants)
        )

    def alike(self) -> bool:
        """Whether the files of one step were once exactly those of another one."""
        return any(
            files in self.variants[other]
            for step, variants in self.variants.items()
            for files in variants
            for other in self.variants
            if other != step
        )

    def _fits(self, path: str, expected: tuple[int, str], seen: tuple[int, str] | None) -> bool:
        if seen is None:
            return False
        kind = kind_of(path)
        if kind in self.same_content:
            return seen == expected
        if kind in self.same_size:
            return seen[0] == expected[0]
        return seen[0] > 0 or expected[0] == 0


def _lies_elsewhere(
    variant: Mapping[str, tuple[int, str]], naming: Naming, files: Mapping[str, tuple[int, str]]
) -> bool:
    """Whether all files of this variant lie under another name of their entry, or of the directory that it is."""
    own = {naming.below(path): seen for path, seen in variant.items()}
    below, first = next(iter(own.items()), ("", (0, "")))
    tops = [path.removesuffix(below) for path, seen in files.items() if seen == first and path.endswith(below)]
    return any(all(files.get(top + rest) == seen for rest, seen in own.items()) for top in tops)


def standard(runs: Iterable[StepFiles], worlds: Iterable[int] | None = None) -> CompletenessModel:
    """The standard of several golden runs: the files of each step as they were when the run went on, and its number of ranks."""
    variants: dict[int, list[tuple[int, dict[str, tuple[int, str]]]]] = {}
    seen: dict[str, set[tuple[int, str]]] = {}
    for run, world in zip(runs, worlds or itertools.repeat(1), strict=False):
        for step, files in run.items():
            own = dict(files)
            if own and (world, own) not in variants.setdefault(step, []):
                variants[step].append((world, own))
            for path, found in own.items():
                seen.setdefault(path, set()).add(found)
    kinds = sorted({kind_of(path) for path in seen})
    unequal = {kind_of(path) for path, found in seen.items() if len(found) > 1}
    resized = {kind_of(path) for path, found in seen.items() if len({size for size, _ in found}) > 1}
    return CompletenessModel(
        variants={step: tuple(files for _, files in found) for step, found in sorted(variants.items())},
        worlds={step: tuple(world for world, _ in found) for step, found in sorted(variants.items())},
        same_content=tuple(kind for kind in kinds if kind not in unequal),
        same_size=tuple(kind for kind in kinds if kind in unequal and kind not in resized),
    )
