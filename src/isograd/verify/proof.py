"""Proves a cause: the fix is made in the port, its replay is run again, and the divergence is gone.

A setting of a library module is changed by building that module again.  Everything else is mended
where its value arises: the port's functions are traced with their results, the value that the
hypothesis predicts is found among them, and there the reference's own function is computed on the
port's own operands, which are found by value too.  All else in the port stays as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isograd.diagnose.decide import NamedCause
from isograd.diagnose.hypothesis import operands
from isograd.errors import IsogradError
from isograd.frameworks.base import FunctionCall, FunctionSite, Operand, PortFix
from isograd.metrics import as_float64, norm, patterns
from isograd.tensors import Array, TensorValue
from isograd.worker.host import Worker
from isograd.worker.protocols import Fixes

#: Relative difference up to which two values are taken for the same; the replay is the judge.
_SAME = 1e-4
#: Share of the error up to which another value of the port's is the right one.
_IS_RIGHT = 0.03
#: Fixes that are tried for one cause.
_MOST_FIXES = 12
#: Functions behind the cause, as far as they change, at which the port may be mended.
_MOST_SITES = 8
_MOST_ELEMENTS = 1 << 21
#: Types of sixteen bits.
NARROW = ("float16", "bfloat16")
#: Functions that only change the type.
CASTS = ("astype", "to", "cast", "half", "bfloat16", "type")
#: Functions that only pass on what they get.
_PASSING = ("stop_gradient", "detach", "StopGradient")


@dataclass(frozen=True)
class PortView:
    """What the port computes in the subject: its functions and the values that fixes may name.

    named: reference (``@input.0``, ``@pin.1.0``, ``@parameter.NAME``, ``@target.0``) → value;
    ends: what leaves the subject, by target name (``output.0``, ``input_of.1.0``).
    """

    events: tuple[FunctionCall, ...]
    named: dict[str, Array]
    ends: dict[str, Array]


@dataclass
class Prover:
    """Tries fixes for the causes of one subject.

    agrees: runs the port with fixes and says whether it agrees with the unchanged reference.
    sites: the reference's functions with results as they are; predicted: the same under the
    hypotheses.  parameter_of: the port's parameter that holds one of the reference, unchanged.
    cells: library modules of the port that are computed within the subject.
    """

    port: Worker
    sites: Sequence[FunctionSite]
    predicted: Sequence[FunctionSite]
    view: PortView
    inputs: dict[str, Array]
    parameter_of: Callable[[str], str | None]
    cells: Sequence[str]
    agrees: Callable[[tuple[PortFix, ...]], bool]

    def prove(self, causes: Sequence[NamedCause]) -> tuple[PortFix, ...]:
        """Fixes of all causes under which the port agrees; empty where none are found."""
        choices = [list(itertools.islice(self._fixes(cause), _MOST_FIXES)) for cause in causes]
        for chosen in itertools.islice(itertools.product(*choices), 2 * _MOST_FIXES):
            fixes = tuple(fix for one in chosen for fix in one)
            try:
                if self.agrees(fixes):
                    return fixes
            except IsogradError:
                continue
        return ()

    def _fixes(self, cause: NamedCause) -> Iterator[tuple[PortFix, ...]]:
        """What may mend one cause; several fixes where one line of the port runs several times."""
        site = next((s for s in self.sites if s.place == cause.trial.place), None)
        if site is None:
            return
        if cause.argument is not None:
            yield from ((fix,) for fix in self._rebuilt(site, cause.argument))
        if cause.id == "precision.cast":
            yield from self._without(is_narrowing, together=True)
        yield from self._without(lambda event: event.function.strip("_") in _PASSING)
        yield from ((fix,) for fix in self._replaced(site))

    def _rebuilt(self, site: FunctionSite, argument: str) -> Iterator[PortFix]:
        value = site.arguments.get(argument)
        for cell in self.cells:
            fix = self.port.ask(Fixes.fix_for, cell, site.place.function, argument, value)
            if fix is not None:
                yield fix

    def _without(
        self, is_one: Callable[[FunctionCall], bool], *, together: bool = False
    ) -> Iterator[tuple[PortFix, ...]]:
        """Functions that hand on what they get, left out: each line as often as it runs, then once.

        together: all of them first.
        """
        lines: dict[str, tuple[PortFix, ...]] = {}
        for number, event in enumerate(self.view.events):
            if is_one(event):
                fix = without_event(number)
                line = event.where or f"event {number}"
                lines[line] = (*lines.get(line, ()), fix)
        if together and len(lines) > 1:
            yield tuple(fix for fixes in lines.values() for fix in fixes)
        yield from lines.values()
        yield from ((fix,) for fixes in lines.values() for fix in fixes if len(fixes) > 1)

    def _replaced(self, site: FunctionSite) -> Iterator[PortFix]:
        """The reference's own functions, where the port holds what the hypothesis predicts.

        Not only at the place of the cause: a mask that is built otherwise may exist nowhere in the
        port, what it is applied to does.
        """
        predicted = {p.event: p for p in self.predicted}
        changed = 0
        for later in self.sites:
            under = predicted.get(later.event)
            if under is None or under.place != later.place or not under.values or not later.values:
                continue
            right, wrong = later.values[0].values, under.values[0].values
            if later.event != site.event and _equal(right, wrong):
                continue
            changed += 1
            yield from self._at(later, right, wrong)
            if changed >= _MOST_SITES:
                return

    def _at(self, site: FunctionSite, right: Array, wrong: Array) -> Iterator[PortFix]:
        """Fixes that put one function's right value where the port holds the predicted one."""
        for target in self._targets(wrong):
            limit = _position(target)
            source = self._source(right, limit, site.event)
            if source is not None and source != f"@{target}" and self._is(source, right, wrong):
                yield PortFix("replace", "", target, "identity", {"input": source})
            if not operands(site):  # a table or a mask that depends on nothing
                constant = TensorValue(right, str(right.dtype))
                yield PortFix("replace", "", target, "identity", {"input": constant})
                continue
            if site.place.function == "module":
                continue
            arguments = self._arguments(site, limit, wrong)
            if arguments is not None:
                yield PortFix("replace", "", target, site.place.function, arguments)

    def _targets(self, value: Array) -> Iterator[str]:
        """Where the port holds this value: the closest first, then what leaves the subject."""
        found = []
        for number, event in enumerate(self.view.events):
            apart = distance(value, event.value.values)
            if apart is not None:
                found.append((apart > 1e-6, -number, f"event.{number}"))
        yield from (target for *_, target in sorted(found)[:3])
        for target, end in self.view.ends.items():
            if distance(value, end) is not None:
                yield target
        for reference, given in self.view.named.items():
            if reference.startswith("@pin.") and distance(value, given) is not None:
                yield reference[1:]

    def _source(self, value: Array, limit: int, before: int | None = None) -> str | None:
        """How a fix names a value that the port has before a target.

        before: event of the reference behind which results of pinned modules are not known yet: a
        dropout's is the very value that should be mended.
        """
        for reference, given in self.view.named.items():
            if distance(value, given) is not None:
                if before is None or not reference.startswith("@pin.") or self._was(value, before):
                    return reference
        best: tuple[float, str] | None = None
        for number, event in enumerate(self.view.events[:limit]):
            apart = distance(value, event.value.values)
            if apart is not None and (best is None or apart < best[0]):
                best = (apart, f"@event.{number}")
        return best[1] if best else None

    def _is(self, source: str, right: Array, wrong: Array) -> bool:
        """Whether what a fix names is the right value, beside how far the wrong one is from it.

        A mean with an eps is as good as one without where only that other eps is looked at.
        """
        word, _, number = source.partition(".")
        is_event = word == "@event"
        value = self.view.events[int(number)].value.values if is_event else self.view.named[source]
        apart, error = distance(right, value), distance(right, wrong)
        return error is None or (apart is not None and apart <= _IS_RIGHT * error)

    def _was(self, value: Array, event: int) -> bool:
        """Whether the reference has a value before one of its events."""
        return any(
            distance(value, found.values) is not None
            for site in self.sites
            if site.event < event
            for found in site.values
        )

    def _arguments(self, site: FunctionSite, limit: int, predicted: Array) -> dict[str, Any] | None:
        """The reference's arguments with the port's own tensors; None where one is not found."""
        result: dict[str, Any] = {}
        for name, given in site.arguments.items():
            resolved = self._resolved(given, limit, predicted)
            if resolved is _MISSING:
                return None
            result[name] = resolved
        return result

    def _resolved(self, given: Any, limit: int, predicted: Array) -> Any:
        if isinstance(given, Operand):
            if given.source.startswith("parameter."):
                name = self.parameter_of(given.source.removeprefix("parameter."))
                return f"@parameter.{name}" if name is not None else _MISSING
            value = self._value(given)
            if value is None:
                return _MISSING
            found = self._source(value, limit)
            if found is None and distance(value, predicted) is not None:
                return "@result"
            if found is None and value.dtype.kind in "bi":
                return TensorValue(value, str(value.dtype))
            return found if found is not None else _MISSING
        if isinstance(given, tuple):
            parts = tuple(self._resolved(part, limit, predicted) for part in given)
            return _MISSING if any(part is _MISSING for part in parts) else parts
        return given

    def _value(self, operand: Operand) -> Array | None:
        """A tensor of the reference, as it is in the unchanged run."""
        word, _, rest = operand.source.partition(".")
        if word == "event":
            event, _, slot = rest.partition(".")
            values = self.sites[int(event)].values
            return values[int(slot)].values if int(slot) < len(values) else None
        return self.inputs.get(operand.source)


def without_event(number: int) -> PortFix:
    """The port without one of its functions: what it got goes on."""
    return PortFix("replace", "", f"event.{number}", "identity", {"input": "@argument.0"})


def is_narrowing(event: FunctionCall) -> bool:
    """Whether a function only casts to sixteen bits."""
    return event.value.dtype in NARROW and event.function.strip("_") in CASTS


class _Missing:
    """Stands for an operand that the port does not hold."""


_MISSING = _Missing()


def _position(target: str) -> int:
    return int(target.partition(".")[2]) if target.startswith("event.") else 1 << 30


def distance(first: Array, second: Array) -> float | None:
    """Relative distance of two values if they may be the same, else None; shapes must agree.

    first, second: any shapes and dtypes.
    """
    if first.shape != second.shape or first.size > _MOST_ELEMENTS or not first.size:
        return None
    if first.dtype.kind in "bi" or second.dtype.kind in "bi":
        return 0.0 if np.array_equal(first, second) else None
    one, other = as_float64(first), as_float64(second)
    usable = (patterns(one) == 0) & (patterns(other) == 0)
    if np.count_nonzero(usable) < 0.25 * first.size and not usable.all():
        return None
    size = norm(one[usable])
    apart = norm(one[usable] - other[usable])
    if size == 0.0:
        return 0.0 if apart == 0.0 else None
    share = apart / size
    return share if share <= _SAME else None


def _equal(first: Array, second: Array) -> bool:
    return first.shape == second.shape and bool(np.array_equal(first, second, equal_nan=True))
