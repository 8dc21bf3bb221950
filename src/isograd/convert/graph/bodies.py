"""The code of one call of a module: statements over local names, with holes for numbers."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from isograd.convert.graph.calls import Call, Item, changes_weight, is_element
from isograd.convert.graph.code import Holes
from isograd.convert.graph.operators import written
from isograd.convert.graph.program import (
    Batched,
    Constant,
    Dtype,
    Given,
    Node,
    Produced,
    Reference,
    Value,
    Weight,
    references_in,
)
from isograd.knowledge.rewrite import NotRewritten

_END = 2**63 - 1
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%"}
_FOLLOWING = "out"
#: Operators that take -1 for the size that is left.
_SHAPING = ("view", "reshape", "_unsafe_view")


@dataclass(frozen=True)
class Lack:
    """An operator that cannot be written, and where it stands."""

    target: str
    module: str
    trace: str
    reason: str


@dataclass
class Surroundings:
    """What a body needs to know of the module that it belongs to.

    call_of: the expression that calls a module from here.  weight_of: the one of a parameter.
    constant_of: the one of a tensor, which the class then holds.  shapes: of the results, by name.
    batches: the axis of a result that grows with the batch, and how many times the batch it is
    long.  fixed: where the batch is written as a number.
    """

    path: str
    holes: Holes
    call_of: Callable[[Call], str]
    weight_of: Callable[[str], str]
    constant_of: Callable[[str], str]
    shapes: Mapping[str, tuple[int, ...] | None]
    batches: Mapping[str, tuple[int, int]]
    partners: Mapping[str, Node]
    lacks: list[Lack] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)


class Body:
    """Writes the statements of one call."""

    def __init__(self, call: Call, around: Surroundings, arguments: tuple[str, ...]) -> None:
        self._call = call
        self._around = around
        self._names: dict[Reference, str] = dict(zip(call.inputs, arguments, strict=True))
        self._elements: dict[str, Node] = {}
        self._taken = set(arguments)
        self._last = self._last_uses()

    def _last_uses(self) -> dict[Reference, int]:
        """The last item that uses a value; what is returned is never free."""
        last: dict[Reference, int] = {}
        bases: dict[str, Reference] = {}
        for position, item in enumerate(self._call.items):
            if isinstance(item, Node) and is_element(item):
                bases[item.name] = item.arguments["0"]
                continue
            for ref in self._used(item):
                while isinstance(ref, Produced) and ref.name in bases:
                    ref = bases[ref.name]
                last[ref] = position
        for name in (*self._call.outputs, *self._call.results):
            result: Reference = Produced(name)
            while isinstance(result, Produced) and result.name in bases:
                result = bases[result.name]
            last[result] = len(self._call.items)
        return last

    @staticmethod
    def _used(item: Item) -> list[Reference]:
        return list(item.references()) if isinstance(item, Node) else list(item.inputs)

    def statements(self) -> list[str]:
        """The lines up to what is returned."""
        lines: list[str] = []
        for position, item in enumerate(self._call.items):
            if isinstance(item, Call):
                lines += self._module_call(item, position)
            elif is_element(item):
                self._elements[item.name] = item
            else:
                lines += self._operation(item, position)
        return lines

    def result(self) -> str:
        """What the module returns."""
        return ", ".join(self.source(Produced(name)) for name in self._call.outputs)

    def structure(self, value: Value) -> str:
        """What the network returns, in the structure in which the reference returns it."""
        if isinstance(value, list):
            pairs = (f"{key!r}: {self.structure(part)}" for key, part in value)
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, tuple):
            parts = [self.structure(part) for part in value]
            return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
        return self.source(value, "value")

    def _module_call(self, call: Call, position: int) -> list[str]:
        arguments = ", ".join(self.source(ref) for ref in call.inputs)
        expression = f"{self._around.call_of(call)}({arguments})"
        if not call.outputs:
            return [expression]
        names = [self._name(name, list(call.inputs), position) for name in call.outputs]
        return [f"{', '.join(names)} = {expression}"]

    def _operation(self, node: Node, position: int) -> list[str]:
        partner = self._around.partners.get(node.name)
        expression = self._expression(node, partner)
        changed = next(iter(node.arguments.values()), None)
        stored = self.source(changed) if changes_weight(node) else ""
        name = self._name(node.name, list(node.references()), position)
        lines = [] if expression == name else [f"{name} = {expression}"]
        if stored:
            lines.append(f"ops.assign({stored}, {name})")
        return lines

    def _expression(self, node: Node, partner: Node | None) -> str:
        special = _SPECIAL.get(node.target)
        if special is not None:
            return special(self, node)
        kind, _, name = node.target.partition(".")
        if kind == "operator" and name in _OPERATORS:
            first, second = (self.source(v, name) for v in node.arguments.values())
            return f"{first} {_OPERATORS[name]} {second}"
        sources = {}
        for key, value in node.arguments.items():
            other = value if partner is None else partner.arguments.get(key, value)
            if name.partition(".")[0] in _SHAPING:
                value = other = _with_the_rest(value)
            sources[key] = self._in_both_modes(value, other, key)
        found = written(node.target, sources)
        if isinstance(found, NotRewritten):  # a template may want its numbers written out
            plain = {k: self.source(v, k, holes=False) for k, v in node.arguments.items()}
            found = written(node.target, plain)
        if isinstance(found, NotRewritten):
            self._around.lacks.append(
                Lack(node.target, self._around.path, node.trace, found.reason)
            )
            return "None"
        return found

    def _in_both_modes(self, train: Value, evaluate: Value, hint: str) -> str:
        plain = (bool, int, float)
        if isinstance(train, plain) and isinstance(evaluate, plain) and train != evaluate:
            if train is True:
                return "self.training"
            if train is False:
                return "(not self.training)"
            ours, theirs = self.source(train, hint), self.source(evaluate, hint)
            return f"({ours} if self.training else {theirs})"
        return self.source(train, hint)

    def _name(self, result: str, used: list[Reference], position: int) -> str:
        """A local name for a result: one that its statement is the last to read, or a new one."""
        for ref in used:
            base = ref
            while isinstance(base, Produced) and base.name in self._elements:
                base = self._elements[base.name].arguments["0"]
            if self._last.get(base) == position and base in self._names:
                name = self._names.pop(base)
                self._names[Produced(result)] = name
                return name
        number = 1
        name = _FOLLOWING
        while name in self._taken:
            number += 1
            name = f"{_FOLLOWING}_{number}"
        self._taken.add(name)
        self._names[Produced(result)] = name
        return name

    def source(self, value: Value, hint: str = "value", holes: bool = True) -> str:
        """The source of an argument."""
        if isinstance(value, (Produced, Given, Weight, Constant)):
            return self._reference(value)
        if isinstance(value, Dtype):
            return "ms.bool_" if value.name == "bool" else f"ms.{value.name}"
        if isinstance(value, Batched):
            return self._batch(value)
        if isinstance(value, tuple):
            parts = [self.source(part, hint, holes) for part in value]
            return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
        if isinstance(value, float) and math.isinf(value):
            return f"float({str(value)!r})"
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if value == _END or not holes:
                return repr(value)
            return self._around.holes.add(repr(value), hint)
        return repr(value)

    def _reference(self, ref: Reference) -> str:
        if ref in self._names:
            return self._names[ref]
        if isinstance(ref, Weight):
            return self._around.weight_of(ref.name)
        if isinstance(ref, Constant):
            return self._around.constant_of(ref.name)
        if isinstance(ref, Produced) and ref.name in self._elements:
            node = self._elements[ref.name]
            return f"{self.source(node.arguments['0'])}[{node.arguments['1']}]"
        raise KeyError(f"{ref} is not known in {self._call.path or 'the network'}")

    def _batch(self, value: Batched) -> str:
        """A multiple of the batch's size, by the length of a tensor that is at hand."""
        known = [
            (name, *self._around.batches[_key(ref)])
            for ref, name in self._names.items()
            if _key(ref) in self._around.batches
        ]
        for name, axis, times in known:
            if value.factor == times:
                return f"{name}.shape[{axis}]"
        for name, axis, times in known:
            for sign, whole, part in (("*", value.factor, times), ("//", times, value.factor)):
                if whole % part == 0:
                    number = self._around.holes.add(str(whole // part), "times")
                    return f"{name}.shape[{axis}] {sign} {number}"
        self._around.fixed.append(self._around.path)
        return repr(value.now)

    def slice(self, node: Node) -> str:
        """`x[:, 2:5]`, as a narrowing where it is without steps: its gradient is the safer one."""
        whole = node.arguments["self"]
        dim = int(node.arguments.get("dim", 0))
        given = [node.arguments.get(key) for key in ("start", "end")]
        start, end = (_now(part) for part in given)
        step = int(node.arguments.get("step", 1))
        shape = self._around.shapes.get(_key(whole))
        size = shape[dim] if shape is not None else 0
        first, last, _ = slice(start, end, step).indices(size)
        text, add = self.source(whole), self._around.holes.add
        if (first, last, step) == (0, size, 1):
            return text
        if any(isinstance(part, Batched) for part in given):
            ends = ["" if part is None else self.source(part) for part in given]
            return f"{text}[{':, ' * dim}{':'.join(ends)}:{step}]"
        if step == 1:
            length = add(repr(last - first), "length")
            return f"ops.narrow({text}, {dim}, {add(repr(first), 'start')}, {length})"
        positions = f"range({add(repr(first), 'start')}, {add(repr(last), 'end')}, {step})"
        return f"ops.gather({text}, ms.Tensor(list({positions}), ms.int32), {dim})"

    def slice_scatter(self, node: Node) -> str:
        """The whole with a part of it replaced: what lies before it, the part, what lies behind."""
        whole, part = node.arguments["self"], node.arguments["src"]
        dim = int(node.arguments.get("dim", 0))
        shape = self._around.shapes.get(_key(whole))
        assert shape is not None
        size = shape[dim]
        source = self.source(part)
        if node.target == "aten.select_scatter.default":
            index = int(node.arguments["index"])
            first = index % size
            last = first + 1
            source = f"ops.expand_dims({source}, {dim})"
        else:
            begin, end = (_now(node.arguments.get(key)) for key in ("start", "end"))
            first, last, step = slice(begin, end, node.arguments.get("step", 1)).indices(size)
            if step != 1:
                reason = "a part with steps is stored back"
                lack = Lack(node.target, self._around.path, node.trace, reason)
                self._around.lacks.append(lack)
        text, add = self.source(whole), self._around.holes.add
        if (first, last) == (0, size):
            return source
        parts = [source]
        if first > 0:
            parts.insert(0, f"ops.narrow({text}, {dim}, 0, {add(str(first), 'start')})")
        if last < size:
            length = add(str(size - last), "length")
            parts.append(f"ops.narrow({text}, {dim}, {add(str(last), 'end')}, {length})")
        return f"ops.cat(({', '.join(parts)}), {dim})"

    def index(self, node: Node) -> str:
        """`x[i]`, as a gathering where one axis alone is indexed by integers."""
        whole, indices = node.arguments["self"], node.arguments["indices"]
        given = [(axis, part) for axis, part in enumerate(indices) if part is not None]
        text = self.source(whole)
        if len(given) == 1:
            axis, part = given[0]
            return f"ops.gather({text}, {self.source(part)}, {axis})"
        parts = ", ".join(":" if part is None else self.source(part) for part in indices)
        return f"{text}[{parts}]"


def _key(ref: Reference) -> str:
    return f"input {ref.position}" if isinstance(ref, Given) else ref.name


def _now(value: Value) -> Value:
    return value.now if isinstance(value, Batched) else value


def _with_the_rest(value: Value) -> Value:
    """Sizes of which one alone grows with the batch, as "the rest"."""
    if not isinstance(value, tuple) or -1 in value:
        return value
    growing = [part for part in value if isinstance(part, Batched)]
    if len(growing) != 1:
        return value
    return tuple(-1 if isinstance(part, Batched) else part for part in value)


_SPECIAL: dict[str, Callable[[Body, Node], str]] = {
    "aten.slice.Tensor": Body.slice,
    "aten.slice_scatter.default": Body.slice_scatter,
    "aten.select_scatter.default": Body.slice_scatter,
    "aten.index.Tensor": Body.index,
}


def input_names(count: int, given: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Names for the arguments of a module; those of the network are the reference's."""
    if given:
        return tuple(n if n.isidentifier() and not keyword.iskeyword(n) else f"{n}_" for n in given)
    return ("x",) if count == 1 else tuple(f"x{number}" for number in range(1, count + 1))


def has_special(target: str) -> bool:
    """Whether an operator is written by code of its own."""
    kind, _, name = target.partition(".")
    return target in _SPECIAL or (kind == "operator" and (name in _OPERATORS or name == "getitem"))


def values_of(value: Value) -> list[Reference]:
    """The references in a result."""
    if isinstance(value, list):
        return [ref for _, part in value for ref in values_of(part)]
    return list(references_in(value))
