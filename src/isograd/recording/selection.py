"""Which modules and which steps a recording is to hold."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable, Iterable, Sequence

from isograd.errors import UsageError

Steps = Iterable[int] | slice | Callable[[int], bool] | None


def choose_modules(names: Sequence[str], patterns: Iterable[str] | None) -> tuple[str, ...]:
    """The modules that any name or glob pattern matches; all of them for None.

    Raises UsageError for a pattern that matches none.
    """
    if patterns is None:
        return tuple(names)
    if isinstance(patterns, str):
        patterns = [patterns]
    chosen: set[str] = set()
    for pattern in patterns:
        matching = [name for name in names if name == pattern or fnmatch.fnmatchcase(name, pattern)]
        if not matching:
            near = difflib.get_close_matches(pattern, names, 3, 0.3)
            raise UsageError(
                f"modules: {pattern!r} matches none of the network's {len(names)} modules",
                f"Near it are {', '.join(map(repr, near))}." if near else "Give names or patterns.",
            )
        chosen.update(matching)
    if not chosen:
        raise UsageError("modules: is empty", "Give names or patterns, or None for all.")
    return tuple(name for name in names if name in chosen)


def choose_steps(steps: Steps) -> Callable[[int], bool]:
    """A function that says of a step's number, from 0, whether to record it.

    Raises UsageError for a slice with negative parts, or what is no set of numbers.
    """
    if steps is None:
        return lambda _number: True
    if callable(steps):
        return steps
    if isinstance(steps, slice):
        return _choose_slice(steps)
    try:
        wanted = steps if isinstance(steps, range) else frozenset(steps)
    except TypeError:
        wanted = frozenset({None})  # type: ignore[arg-type]
    if not wanted or not all(isinstance(number, int) for number in wanted):
        raise UsageError(
            f"steps: {steps!r} holds no step numbers",
            "Give numbers, a range, a slice, a function of the number, or None for all.",
        )
    return lambda number: number in wanted


def _choose_slice(steps: slice) -> Callable[[int], bool]:
    start, stop, stride = steps.start or 0, steps.stop, 1 if steps.step is None else steps.step
    if start < 0 or stride < 1 or (stop is not None and stop <= start):
        raise UsageError(
            f"steps: {steps!r} selects nothing or counts from an end that is not known",
            "Give a slice with a start below its stop and a positive stride.",
        )
    return lambda number: (
        number >= start and (stop is None or number < stop) and (number - start) % stride == 0
    )
