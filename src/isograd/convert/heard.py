"""What the conversion of a file keeps of what scan's reading hears of it."""

from __future__ import annotations

import ast

from isograd.convert.analysis.given_tensors import tensors_given
from isograd.convert.analysis.positions import may_be_positions
from isograd.convert.facts import Facts
from isograd.convert.places import place
from isograd.scan.values import MASK, RAGGED, SELECTING, ClassInfo, Tensor, Value

#: What limits a tensor by two bounds.
_CLAMPS = frozenset("clamp clamp_ clip clip_".split())


class Heard:
    """Keeps what scan's reading hears of the code, and looks for no hazards."""

    dropped: ast.expr | None = None

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def nothing(self, *_: object) -> None:
        """Nothing."""

    condition = attribute_set = nothing

    def subscript(self, node: ast.Subscript, owner: Value, bounds: list[Value]) -> None:
        """Keep which elements are a tensor's."""
        self._facts.indexed.add(place(node))
        if may_be_positions(node.slice, bounds):
            self._facts.by_position.add(place(node))
        if any(isinstance(value, Tensor) for value in bounds):
            self._facts.selections[place(node)] = not SELECTING.isdisjoint(bounds)

    def call(
        self,
        node: ast.Call,
        api: str,
        receiver: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> None:
        """Keep what is done to a selection, and which bounds are a tensor and a number."""
        if api.rpartition(".")[2] in _CLAMPS:
            given = arguments[0 if api.startswith("torch.Tensor.") else 1 :]
            given += [value for name, value in keywords.items() if name in ("min", "max")]
            if len({isinstance(value, Tensor) for value in given}) > 1:
                self._facts.bounded.add(place(node))
        if api.endswith("_") and node.args and arguments:
            self._facts.values[place(node.args[0])] = arguments[0]
        first = arguments[0] if arguments else keywords.get("input")
        of = receiver if api.startswith("torch.Tensor.") else first
        if of is RAGGED:
            self._facts.selected.add(place(node))
        elif of is MASK:
            self._facts.of_masks.add(place(node))
        self._facts.tensors_given.update(tensors_given(node, arguments, keywords))

    def class_made(self, node: ast.ClassDef, info: ClassInfo) -> None:
        """Keep which class it is."""
        self._facts.classes[place(node)] = info

    def in_place(self, node: ast.AugAssign, value: Value) -> None:
        """Keep which value changes."""
        self._facts.values[place(node.target)] = value
        if isinstance(node.target, ast.Attribute):
            self._facts.sets_of_modules.add(place(node.target))
