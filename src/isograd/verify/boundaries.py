"""Modules whose borders the port draws elsewhere: an activation inside a Dense, a residual sum
outside a block, padding before instead of in a convolution.

Held apart, such a pair of calls differs although the networks are the same.  A pair is freed, so
that the call around it covers it, where two things hold: in the recorded passes the port's tensor
equals another value of the reference nearby (the activation's output, the unpadded input) or has
another shape, and nothing differs in the call around it, once the pair is free, that did not
differ before.  A fault fails the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from isograd.errors import IsogradError
from isograd.frameworks.base import CallInfo, FunctionCall, ReplayRequest, Tensors, in_slots
from isograd.metrics import is_close
from isograd.model import Stage
from isograd.pairing.layout import match_slots
from isograd.tensors import Array, TensorKey
from isograd.verify.culprit import Fingerprint
from isograd.verify.replay import Replayer
from isograd.verify.session import Session
from isograd.verify.unit_result import UnitResult
from isograd.verify.units import Unit, enclosing, last_descendant, make_unit
from isograd.worker.protocols import Passes

#: Relative difference up to which two recorded values count as the same; whole passes are noisy.
_SAME = 1e-3
#: A tensor of a unit: its key, or that of a pinned call's tensors, the call, and the slot.
Label = tuple[str, int, str]

_MOST_ALONE = 8
_MOST_ELEMENTS = 1 << 21


@dataclass
class Boundaries:
    """Finds the pairs of calls of one recorded pass that must not be held apart."""

    session: Session
    replayer: Replayer
    reference: Sequence[CallInfo]
    port: Sequence[CallInfo]
    threshold: float
    _pools: dict[int, list[Fingerprint]] = field(default_factory=dict)

    def free(
        self, partner: dict[int, int], failed: Sequence[UnitResult]
    ) -> tuple[dict[int, int], set[int]]:
        """The pairs that stay, and the calls around freed ones, which must be judged anew."""
        concerned = self._concerned(partner, failed)
        evident = {r for r in concerned if self._is_evident(partner, r)}
        backward_only = {
            result.unit.reference
            for result in failed
            if not result.failure and not result.unit.pins and self._agrees_forward(result)
        }
        misshapen = {result.unit.reference for result in failed if _is_misshapen(result)}
        known = {r for r in concerned if self.reference[r].module in self.session.moved_borders}
        evident |= misshapen | known
        candidates = {r for r in evident | backward_only if self._around(partner, r) is not None}
        before = {result.unit.reference: self._wrong(result) for result in failed}
        changed: set[int] = set()
        for group in self._by_enclosing(partner, candidates).values():
            left = set(group)
            while left:
                freed = self._freed_among(partner, left, evident, before)
                if freed is None:
                    break
                chosen, around = freed
                partner = {r: p for r, p in partner.items() if r not in chosen}
                left -= chosen
                changed |= around
                before |= {call: self._wrong_now(partner, call) for call in around if left}
            partner, around = self._free_by_shape(partner, left, known)
            changed |= around
        return partner, changed & set(partner)

    def _freed_among(
        self,
        partner: dict[int, int],
        group: set[int],
        evident: set[int],
        before: dict[int, set[Label]],
    ) -> tuple[set[int], set[int]] | None:
        """Pairs of a group that may be freed together, and the calls directly around them."""
        for chosen in self._choices(group, evident):
            trial = {r: p for r, p in partner.items() if r not in chosen}
            # Judged is what is directly around each freed pair: further out it is hidden.
            nearest = (self._around(trial, call) for call in chosen)
            around = {call for call in nearest if call is not None}
            forward_only = chosen <= evident
            if all(
                self._agrees(trial, call, before.get(call, set()), forward_only=forward_only)
                for call in around
            ):
                return chosen, around
        return None

    def _wrong_now(self, partner: dict[int, int], call: int) -> set[Label]:
        try:
            unit = make_unit(self.reference, self.port, partner, call)
            return self._wrong(self.replayer.run_aside(unit))
        except IsogradError:
            return set()

    def _free_by_shape(
        self, partner: dict[int, int], group: set[int], known: set[int]
    ) -> tuple[dict[int, int], set[int]]:
        """Free those that only compute on tensors of other shapes, where that mends shapes."""
        for call in sorted(group):
            if call not in known and not self._takes_other_shapes(call, partner[call]):
                continue
            around = self._around(partner, call)
            if around is None:
                continue
            trial = {r: p for r, p in partner.items() if r != call}
            before = [self._misfits(partner, c) for c in (call, around)]
            after = self._misfits(trial, around)
            if after is not None and (None in before or after < sum(b or 0 for b in before)):
                partner = trial
                changed = {around}
                rest, more = self._free_by_shape(partner, group - {call}, known)
                return rest, (changed | more) & set(rest)
        return partner, set()

    def _takes_other_shapes(self, call: int, port_call: int) -> bool:
        """Whether the first output has its shape, but not what goes in or also comes out."""
        ours, theirs = self.reference[call], self.port[port_call]
        if not ours.output_shapes or ours.output_shapes[:1] != theirs.output_shapes[:1]:
            return False
        inputs_differ = sorted(ours.input_shapes) != sorted(theirs.input_shapes)
        return inputs_differ or len(theirs.output_shapes) < len(ours.output_shapes)

    def _misfits(self, partner: dict[int, int], call: int) -> int | None:
        """How many forward tensors of a unit cannot be compared; None where it cannot run."""
        try:
            result = self.replayer.run_aside(make_unit(self.reference, self.port, partner, call))
        except IsogradError:
            return None
        if result.failure or not result.tensors:
            return None
        return sum(t.stage is Stage.FORWARD and t.comparison is None for t in result.tensors)

    def _concerned(self, partner: dict[int, int], failed: Sequence[UnitResult]) -> set[int]:
        """Pairs that failed, and those pinned in a call that failed."""
        found: set[int] = set()
        for result in failed:
            found.add(result.unit.reference)
            found.update(reference for reference, _ in result.unit.pins)
        return {r for r in found if r in partner}

    @staticmethod
    def _choices(group: set[int], evident: set[int]) -> Iterable[set[int]]:
        yield group
        if group & evident and group - evident:
            yield group & evident
        if 1 < len(group) <= _MOST_ALONE:
            for one in sorted(group):
                yield {one}

    def _by_enclosing(self, partner: dict[int, int], candidates: set[int]) -> dict[int, set[int]]:
        groups: dict[int, set[int]] = {}
        for candidate in sorted(candidates):
            around = self._around(partner, candidate)
            while around in candidates:
                around = self._around(partner, around)
            if around is not None:
                groups.setdefault(around, set()).add(candidate)
        return groups

    def _around(self, partner: dict[int, int], call: int) -> int | None:
        return enclosing(self.reference, partner, call)

    def _agrees_forward(self, result: UnitResult) -> bool:
        forward = [t for t in result.tensors if t.stage is Stage.FORWARD]
        return bool(forward) and all(t.ratio <= self.threshold for t in forward)

    def _agrees(
        self, partner: dict[int, int], call: int, before: set[Label], *, forward_only: bool
    ) -> bool:
        """Whether nothing differs in a call that did not differ before its pairs were freed."""
        unit = make_unit(self.reference, self.port, partner, call)
        try:
            result = self.replayer.run_aside(unit)
        except IsogradError:
            return False
        if result.failure or not result.tensors:
            return False
        wrong = self._wrong(result)
        if forward_only:  # a wrong gradient around it is a finding of its own
            wrong = {label for label in wrong if not TensorKey(label[0]).is_gradient}
        elif result.backward_failure:
            return False
        return wrong <= before

    def _wrong(self, result: UnitResult) -> set[Label]:
        """What differs in a unit, by names that do not depend on what is pinned."""
        wrong = [t.key for t in result.tensors if not t.ratio <= self.threshold]
        return {_label(key, result.unit) for key in wrong}

    def _is_evident(self, partner: dict[int, int], call: int) -> bool:
        """Whether the port's recorded tensors of this pair belong elsewhere in the reference."""
        around = self._around(partner, call)
        if around is None:
            return False
        ours: Tensors = self.session.reference.ask(Passes.recorded, call)
        theirs: Tensors = self.session.port.ask(Passes.recorded, partner[call])
        elsewhere = 0
        for word in ("input", "output"):
            first, second = _arrays(ours, word), _arrays(theirs, word)
            slots = {j: (i, layout) for i, j, layout in match_slots(first, second)}
            for j, values in enumerate(second):
                if j in slots:
                    i, layout = slots[j]
                    same_size = layout.port_shape == values.shape
                    if same_size and is_close(first[i], layout.to_reference(values), _SAME):
                        continue
                if not self._occurs(around, values):
                    return False
                elsewhere += 1
        return elsewhere > 0

    def _occurs(self, around: int, values: Array) -> bool:
        if values.size > _MOST_ELEMENTS:
            return False
        wanted = Fingerprint(values)
        return any(known.same_as(wanted, tolerance=_SAME) for known in self._pool(around))

    def _pool(self, around: int) -> list[Fingerprint]:
        """Every value that arises within this call of the reference."""
        if around not in self._pools:
            request = ReplayRequest(around, (), (), ())
            try:
                events: tuple[FunctionCall, ...] = self.session.reference.ask(Passes.trace, request)
            except IsogradError:
                events = ()
            values = [event.value.values for event in events]
            last = last_descendant(self.reference, around)
            for call in range(around, last + 1):
                values += [
                    v.values for v in self.session.reference.ask(Passes.recorded, call).values()
                ]
            self._pools[around] = [Fingerprint(v) for v in values if v.size <= _MOST_ELEMENTS]
        return self._pools[around]


def _label(key: str, unit: Unit) -> Label:
    found = TensorKey(key)
    if found.pin is None:
        return found, -1, ""
    return found.kind, unit.pins[found.pin][0], str(found.slot)


def _is_misshapen(result: UnitResult) -> bool:
    """Whether a call differs in shapes alone: what is around it can only make up for that."""
    forward = [t for t in result.tensors if t.stage is Stage.FORWARD]
    differs = [t for t in forward if t.comparison is not None and t.ratio > 1e3]
    return any(t.comparison is None for t in forward) and not differs


def _arrays(tensors: Tensors, word: str) -> list[Array]:
    return [value.values for value in in_slots(tensors, word)]
