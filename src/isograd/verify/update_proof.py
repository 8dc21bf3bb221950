"""Proves a cause: the port's own optimizer is mended, and fed the same gradients again.

First with arguments that its constructor has; where it has no such rule, the parameters follow
the reference's rule, computed with the port's operators.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isograd.diagnose.update.parts import Blame
from isograd.diagnose.update.problem import Updates, worst_ratio
from isograd.errors import IsogradError
from isograd.frameworks.base import NATIVE, Tensors
from isograd.frameworks.rules import Clip, Rule
from isograd.metrics import Float64
from isograd.noise.envelope import ISOLATED_THRESHOLD
from isograd.tensors import TensorKey, gradients_of_parameters
from isograd.worker.protocols import Fixes, Training
from isograd.worker.requests import StepRequest

if TYPE_CHECKING:
    from isograd.verify.session import Session
    from isograd.verify.training import UpdateRecord

#: Fields that MindSpore's optimizers may have as arguments.
_ARGUMENTS = frozenset(
    """momentum dampening nesterov beta1 beta2 eps weight_decay alpha centered first_square
    lr_decay amsgrad maximize lr""".split()
)
_OUTSIDE = frozenset(("clip", "clip_at", "gradient_scale"))


@dataclass(frozen=True)
class MadeOptimizer:
    """Where the port makes its optimizer (``file:line``), and MindSpore's class, as `nn.Adam`."""

    line: str | None
    kind: str = ""


class Proof:
    """Runs the port's update steps again with mended optimizers."""

    def __init__(self, session: Session, record: UpdateRecord, updates: Updates) -> None:
        self._session = session
        self._record = record
        self._updates = updates
        self.possible = bool(session.port.ask(Fixes.mend_optimizer, {}))

    def line(self) -> str | None:
        """``file:line`` of the port's code that makes the optimizer."""
        found: str | None = self._session.port.ask(Fixes.optimizer_line)
        return found

    def made(self) -> MadeOptimizer:
        """What the port's optimizer is, and where it is made."""
        return MadeOptimizer(self.line(), self._session.port.ask(Fixes.optimizer_kind))

    def mending(self, blame: Blame) -> dict[str, Any] | None:
        """The change of the port's optimizer with which it agrees at all steps, if there is one."""
        if not self.possible or blame.explanation is None:
            return None
        names = set(blame.names)
        return next((m for m in self._mendings(blame) if self.agreeing(m, names) == names), None)

    def holds_again(
        self, mending: dict[str, Any], names: Iterable[str], again: Callable[[], set[str]]
    ) -> bool:
        """Whether on new gradients these parameters differ, and agree once mended.

        again: feeds both optimizers gradients of other batches; the parameters that differ.
        """
        chosen = set(names)
        try:
            if not chosen <= again():
                return False
            self._session.port.ask(Fixes.mend_optimizer, mending)
            return not chosen & again()
        except IsogradError:
            return False
        finally:
            self._session.port.ask(Fixes.mend_optimizer, {})

    def _mendings(self, blame: Blame) -> Iterator[dict[str, Any]]:
        names = (*blame.names, *blame.silent)
        ours = {n: self._updates.parameters[n].rule for n in names}
        changed: set[str] = set()
        for name, rule in ours.items():
            assert rule is not None
            changed |= {f for f, v in vars(rule).items() if v != getattr(blame.rules[name], f)}
        if all(r is not None and not r.weight_decay for r in ours.values()):
            changed.discard("decoupled")  # without decay there is no way of decaying
        for gradients in self._gradients(blame, changed):
            yield from self._mended_with(gradients, blame, changed, ours)

    def _mended_with(
        self,
        gradients: dict[str, Any],
        blame: Blame,
        changed: set[str],
        ours: dict[str, Rule | None],
    ) -> Iterator[dict[str, Any]]:
        session, names = self._session, (*blame.names, *blame.silent)
        if changed == {"frozen"}:
            yield {"inner": True, **gradients}
            return
        inside = changed - _OUTSIDE
        settings: list[dict[str, Any]] = []
        for rule in {r for r in ours.values() if r is not None}:
            port_names = session.port_names([n for n in names if ours[n] == rule])
            values = {f: getattr(rule, f) for f in inside & _ARGUMENTS - {"lr"}}
            if values:
                settings.append({"names": port_names, "values": values})
        for lr in {r.lr for r in ours.values() if r is not None} if "lr" in inside else ():
            alike = [n for n in names if (r := ours[n]) is not None and r.lr == lr]
            settings.append({"names": session.port_names(alike), "values": {}, "lrs": list(lr)})
        if inside <= _ARGUMENTS:
            yield {"settings": settings, **gradients}
        if inside - _ARGUMENTS or "first_square" in inside:
            rules = {
                port: rule.plain()
                for name, rule in ours.items()
                if rule is not None
                for port in session.port_names([name])
            }
            as_reference = next(iter(self._as_reference(names)), {})
            yield {"rules": rules, **(gradients or as_reference)}

    def _gradients(self, blame: Blame, changed: set[str]) -> list[dict[str, Any]]:
        """What may be done to the gradients, the likeliest first; empty if it cannot be said."""
        if "clip" in changed:
            return [{**found, "inner": True} for found in self._as_reference(blame.names)]
        if "gradient_scale" in changed:
            return [{"factors": [1.0 / blame.rules[blame.names[0]].gradient_scale]}]
        return [{}]

    def _as_reference(self, names: tuple[str, ...]) -> list[dict[str, Any]]:
        """What the reference does to the gradients before its rule sees them.

        A limit holds for all gradients; the factors of these steps hold for these alone.
        """
        found = self._updates.clipping(self._updates.part(names))
        if found.clip is Clip.NONE:
            return [{}]
        if found.clip is Clip.VALUE:
            return [{"clamp": found.at}]
        ways: list[dict[str, Any]] = []
        if found.clip is Clip.NORM and found.at is not None:
            ways.append({"norm": found.at})
        return [*ways, {"factors": list(found.factors)}] if found.factors else ways

    def agreeing(self, mending: dict[str, Any], names: Iterable[str] | None = None) -> set[str]:
        """Of these parameters, or of all, those that agree when the port is mended so."""
        chosen = self._updates.parameters if names is None else names
        rules = {n: r for n in chosen if (r := self._updates.parameters[n].rule) is not None}
        if not self.possible or not rules:
            return set()
        try:
            port = self._run(mending)
        except (IsogradError, ValueError):
            return set()
        measured = self._updates.measure(rules)
        found = set()
        for name in rules:
            expected, allowed = measured[f"expected.{name}"], measured[f"allowed.{name}"]
            if name in port:
                ratio = worst_ratio(np.stack(port[name]), expected.values, allowed.values)
                if ratio <= ISOLATED_THRESHOLD:
                    found.add(name)
        return found

    def _run(self, mending: dict[str, Any]) -> dict[str, list[Float64]]:
        session, record = self._session, self._record
        found: dict[str, list[Float64]] = {}
        session.port.ask(Fixes.mend_optimizer, mending)
        try:
            session.port.ask(Training.start_training, "port", NATIVE)
            for moved in self._fed():
                step = StepRequest(gradients=moved)
                answer = session.port.ask(Training.train_step, "port", step, ("state",))
                state = {k[6:]: v for k, v in answer.items() if k.startswith("state.")}
                for name, value in session.as_reference(state).items():
                    if name in record.indices:
                        chosen = value.values.reshape(-1)[record.indices[name].values]
                        found.setdefault(name, []).append(chosen.astype(np.float64))
            return found
        finally:
            session.port.ask(Fixes.mend_optimizer, {})
            with contextlib.suppress(IsogradError):
                session.port.ask(Training.end_training)

    def _fed(self) -> Iterator[Tensors]:
        session, record = self._session, self._record
        if len(record.fed) == session.case.steps:
            yield from record.fed
            return
        session.reference.ask(Training.start_training, "native", NATIVE)
        for step in range(session.case.steps):
            request = session.step_request(step)
            native = session.reference.ask(Training.train_step, "native", request, ("gradient",))
            plain = gradients_of_parameters(native)
            yield {TensorKey.parameter(n).gradient: v for n, v in session.transfer(plain).items()}
        session.reference.ask(Training.end_training)
