"""Values of a replay computed by another function, where a `PortFix` says so.

The replay asks at every place that a fix can name; what is referred to is a live tensor of the same
pass, so gradients flow through the fix as through the port's own code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mindspore import ops

from isograd.errors import UserCodeError
from isograd.frameworks.base import PortFix
from isograd.frameworks.mindspore.convert import from_value
from isograd.frameworks.mindspore.functions import FUNCTIONS, compute
from isograd.tensors import TensorValue

_ADVICE = "This is a fault of isograd's proposal, not of the port."


@dataclass
class Scope:
    """The live tensors of one pass that a fix may refer to.

    inputs: of the call; pins: what is given for each pinned call; targets: of the loss;
    parameters: by name; events: the results of the functions so far.
    """

    inputs: Sequence[Any]
    pins: Sequence[Sequence[Any]] = ()
    targets: Sequence[Any] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[Any] = ()


class Replacements:
    """The fixes of kind "replace", applied one after the other as their targets are reached."""

    def __init__(self, fixes: Sequence[PortFix]) -> None:
        unknown = next((f.kind for f in fixes if f.kind not in ("rebuild", "replace")), None)
        if unknown is not None:
            raise UserCodeError(f"there is no fix of kind {unknown!r}", _ADVICE)
        self._fixes = {fix.target: fix for fix in fixes if fix.kind == "replace"}
        self._reached: set[str] = set()
        self._before: dict[str, Any] = {}
        self.scope = Scope(())
        #: Entered while a replacement is computed.
        self.silent: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext

    def __bool__(self) -> bool:
        return bool(self._fixes)

    @property
    def need_events(self) -> bool:
        """Whether the functions of the pass must be watched."""
        return any(
            target.startswith("event.") or "@event." in repr(fix.arguments)
            for target, fix in self._fixes.items()
        )

    def start(self, scope: Scope) -> None:
        """Begin a pass with these tensors."""
        self.scope = scope
        self._reached.clear()
        self._before = {
            given: self._tensor(fix, given[1:], None, ()).copy()
            for fix in self._fixes.values()
            for given in _moving(fix)
        }

    def event(self, number: int, value: Any, arguments: list[Any], part: int) -> Any:
        """What stands at an event: the value itself, or what a fix makes of it."""
        return self.at(f"event.{number}", value, arguments, part)

    def at(self, target: str, value: Any, arguments: Sequence[Any] = (), part: int = 0) -> Any:
        """What stands at a target: the value itself, or what a fix makes of it.

        part: which of the results is meant, where the function gives several (chunk, max).
        """
        fix = self._fixes.get(target)
        if fix is None:
            return value
        self._reached.add(target)

        def resolve(given: Any) -> Any:
            if isinstance(given, str) and given.startswith("@"):
                return self._tensor(fix, given[1:], value, arguments)
            if isinstance(given, TensorValue):
                return from_value(given)
            if isinstance(given, (tuple, list)):
                return type(given)(resolve(part) for part in given)
            if isinstance(given, dict):
                return {key: resolve(part) for key, part in given.items()}
            return given

        with self.silent():
            self._rewind(fix)
            return _computed(fix, {n: resolve(v) for n, v in fix.arguments.items()}, part)

    def _rewind(self, fix: PortFix) -> None:
        """Take back how the port's own function moved the statistics that the fix will move."""
        for given in _moving(fix):
            ops.assign(self._tensor(fix, given[1:], None, ()), self._before[given])

    def check(self) -> None:
        """Raise UserCodeError where a fix's target was never reached in this pass."""
        missed = [target for target in self._fixes if target not in self._reached]
        if missed:
            what = f"the pass never reaches {missed[0]}, which was to be fixed"
            raise UserCodeError(what, _ADVICE)

    def _tensor(self, fix: PortFix, reference: str, value: Any, arguments: Sequence[Any]) -> Any:
        if reference == "result":
            return value
        word, _, rest = reference.partition(".")
        try:
            if word == "parameter":
                return self.scope.parameters[rest]
            if word == "pin":
                pin, _, slot = rest.partition(".")
                return self.scope.pins[int(pin)][int(slot)]
            places = {
                "event": self.scope.events,
                "input": self.scope.inputs,
                "target": self.scope.targets,
                "argument": arguments,
            }
            return places[word][int(rest)]
        except (KeyError, IndexError, ValueError):
            raise UserCodeError(
                f"@{reference} is not there when {fix.target} is computed", _ADVICE
            ) from None


def _moving(fix: PortFix) -> list[str]:
    """References to running statistics that a fix updates."""
    if not fix.arguments.get("training"):
        return []
    given = [fix.arguments.get(name) for name in ("running_mean", "running_var")]
    return [name for name in given if isinstance(name, str) and name.startswith("@parameter.")]


def _computed(fix: PortFix, arguments: dict[str, Any], part: int) -> Any:
    if fix.function not in FUNCTIONS:
        raise UserCodeError(
            f"isograd cannot compute torch's {fix.function!r} in MindSpore", _ADVICE
        )
    try:
        found = compute(fix.function, arguments)
        return found[part] if isinstance(found, (tuple, list)) else found
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        raise UserCodeError(
            f"{fix.function} cannot be computed at {fix.target}: {type(error).__name__}: {said}",
            _ADVICE,
        ) from error
