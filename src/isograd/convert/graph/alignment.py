"""Which call and node of the graph for evaluation is which of the graph for training.

Where both modes ran the same, one code serves both: a flag that differs becomes `self.training`.
A module that ran in training alone, on one tensor, passed it on in evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from isograd.convert.graph.calls import Call, is_element
from isograd.convert.graph.operators import functional
from isograd.convert.graph.program import (
    Constant,
    Given,
    Node,
    Produced,
    Reference,
    Value,
    Weight,
    references_in,
)


@dataclass
class Alignment:
    """partners: nodes of training to those of evaluation.

    bodies: calls of training whose code is the same in both modes.  evaluated: calls of training
    to those of evaluation, where they are not the same.  passing: calls of training that pass their
    argument on in evaluation.  alone: calls that run in evaluation alone.
    """

    partners: dict[str, Node] = field(default_factory=dict)
    bodies: set[int] = field(default_factory=set)
    evaluated: dict[int, Call] = field(default_factory=dict)
    passing: set[int] = field(default_factory=set)
    alone: list[Call] = field(default_factory=list)


def align(train: Call, evaluate: Call, results: Mapping[str, Reference] | None) -> Alignment:
    """Align two trees from their roots; results: outputs of training to those of evaluation.

    results is None where the two return different things.
    """
    found = Alignment()
    _Aligner(found).body(train, evaluate, results)
    return found


class _Aligner:
    def __init__(self, found: Alignment) -> None:
        self._found = found

    def body(self, train: Call, evaluate: Call, results: Mapping[str, Reference] | None) -> None:
        mapping: dict[Reference, Reference] = {}
        trial = _Body(train, evaluate, mapping)
        agrees = results is not None and trial.run()
        if agrees and results is not None:
            agrees = all(mapping.get(Produced(a)) == b for a, b in results.items())
        if agrees:
            self._found.bodies.add(id(train))
            self._found.partners.update(trial.partners)
            for call in trial.passing:
                self._pass(call)
        else:
            self._found.evaluated[id(train)] = evaluate
        pairs = trial.calls if agrees else _by_path(train, evaluate)
        if not agrees:
            self._leave(train, evaluate, pairs)
        for ours, theirs in pairs:
            same = len(ours.outputs) == len(theirs.outputs)
            outputs = zip(ours.outputs, theirs.outputs, strict=False)
            following = {a: Produced(b) for a, b in outputs}
            self.body(ours, theirs, following if same else None)

    def _leave(self, train: Call, evaluate: Call, pairs: list[tuple[Call, Call]]) -> None:
        """Calls that run in one mode alone have one code."""
        paired = {id(call) for pair in pairs for call in pair}
        for item in train.items:
            if isinstance(item, Call) and id(item) not in paired:
                self._found.bodies.update(id(call) for call in (item, *item.calls()))
        for item in evaluate.items:
            if isinstance(item, Call) and id(item) not in paired:
                self._found.alone += [item, *item.calls()]

    def _pass(self, call: Call) -> None:
        """What a call that does not run in evaluation contains does not run there either."""
        self._found.passing.add(id(call))
        for inner in call.calls():
            self._found.bodies.add(id(inner))


def _by_path(train: Call, evaluate: Call) -> list[tuple[Call, Call]]:
    """Direct calls of two bodies that differ, paired by module and order."""
    waiting: dict[str, list[Call]] = {}
    for item in evaluate.items:
        if isinstance(item, Call):
            waiting.setdefault(item.path, []).append(item)
    return [
        (item, waiting[item.path].pop(0))
        for item in train.items
        if isinstance(item, Call) and waiting.get(item.path)
    ]


class _Body:
    """One attempt at two bodies."""

    def __init__(self, train: Call, evaluate: Call, mapping: dict[Reference, Reference]) -> None:
        self._train, self._evaluate, self._mapping = train, evaluate, mapping
        self.partners: dict[str, Node] = {}
        self.calls: list[tuple[Call, Call]] = []
        self.passing: list[Call] = []

    def run(self) -> bool:
        """Whether all items have a partner."""
        theirs = [item for item in self._evaluate.items if not _is_taken(item)]
        paths = {item.path for item in theirs if isinstance(item, Call)}
        position = 0
        for item in (item for item in self._train.items if not _is_taken(item)):
            partner = theirs[position] if position < len(theirs) else None
            if isinstance(item, Node):
                if not isinstance(partner, Node) or not self._node(item, partner):
                    return False
            elif isinstance(partner, Call) and partner.path == item.path:
                if not self._call(item, partner):
                    return False
            elif item.path not in paths and self._passes(item):
                self.passing.append(item)
                continue
            else:
                return False
            position += 1
        return position == len(theirs) and self._elements()

    def _elements(self) -> bool:
        """Single results of several: they are no statements of their own."""
        known = {
            (item.arguments["0"], item.arguments["1"]): item.name
            for item in self._evaluate.items
            if isinstance(item, Node) and is_element(item)
        }
        for item in self._train.items:
            if isinstance(item, Node) and is_element(item):
                base = self._mapping.get(item.arguments["0"])
                partner = known.get((base, item.arguments["1"]))
                if partner is not None and not self._same(Produced(item.name), Produced(partner)):
                    return False
        return True

    def _same(self, ours: Reference, theirs: Reference) -> bool:
        """Bind two references to each other, or see that they are."""
        if isinstance(ours, (Weight, Constant, Given)):
            return ours == theirs
        return self._mapping.setdefault(ours, theirs) == theirs

    def _node(self, ours: Node, theirs: Node) -> bool:
        if functional(ours.target) != functional(theirs.target):
            return False
        if ours.arguments.keys() != theirs.arguments.keys():
            return False
        pairs = ((value, theirs.arguments[key]) for key, value in ours.arguments.items())
        if not all(self._values(a, b) for a, b in pairs):
            return False
        self.partners[ours.name] = theirs
        return self._same(Produced(ours.name), Produced(theirs.name))

    def _values(self, ours: Value, theirs: Value) -> bool:
        """References have to correspond; of plain values only numbers and flags may differ."""
        if isinstance(ours, tuple) and isinstance(theirs, tuple):
            if not any(references_in(ours)) and not any(references_in(theirs)):
                return ours == theirs
            same = len(ours) == len(theirs)
            return same and all(self._values(a, b) for a, b in zip(ours, theirs, strict=False))
        if isinstance(ours, (Produced, Given, Weight, Constant)):
            is_reference = isinstance(theirs, (Produced, Given, Weight, Constant))
            return is_reference and self._same(ours, theirs)
        return type(ours) is type(theirs) and (
            ours == theirs or isinstance(ours, (bool, int, float))
        )

    def _call(self, ours: Call, theirs: Call) -> bool:
        if len(ours.inputs) != len(theirs.inputs) or len(ours.outputs) != len(theirs.outputs):
            return False
        known = [self._mapping.get(ref, ref) for ref in ours.inputs]
        if set(known) == set(theirs.inputs):
            theirs.inputs = known
        if not all(self._same(a, b) for a, b in zip(ours.inputs, theirs.inputs, strict=True)):
            return False
        self.calls.append((ours, theirs))
        outputs = zip(ours.outputs, theirs.outputs, strict=True)
        return all(self._same(Produced(a), Produced(b)) for a, b in outputs)

    def _passes(self, call: Call) -> bool:
        if len(call.outputs) != 1 or len(call.inputs) != 1:
            return False
        given = call.inputs[0]
        return self._same(Produced(call.outputs[0]), self._mapping.get(given, given))


def _is_taken(item: object) -> bool:
    return isinstance(item, Node) and is_element(item)
