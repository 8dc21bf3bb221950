"""The hierarchy of the network: what each module owns, and the code of its calls."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field

from isograd.convert.graph.alignment import Alignment
from isograd.convert.graph.bodies import Body, Lack, Surroundings, input_names
from isograd.convert.graph.calls import Call
from isograd.convert.graph.code import Holes, fill
from isograd.convert.graph.program import Given, Graph, Node, Produced, Program, Tensor

#: Names of a Cell's own, which no parameter or child may take as an attribute.
_TAKEN = frozenset(
    "cells name names phase training bprop construct params data parameters_dict cls_name "
    "compile apply to insert_child_to_cell add_cell auto_prefix recompute".split()
)
SEQUENTIAL = "torch.nn.modules.container.Sequential"


@dataclass
class Module:
    """One module: kind is its class in torch; variants: the code of its different calls.

    constants: names of tensors that its code reads.  is_called: whether it has code.
    """

    path: str
    kind: str
    tensors: list[Tensor] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    variants: list[Variant] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    holes: Holes = field(default_factory=Holes)
    chain: list[str] | None = None
    is_called: bool = False


@dataclass(frozen=True)
class Variant:
    """The code of a call: its arguments, its lines, and the lines of evaluation if they differ."""

    arguments: tuple[str, ...]
    lines: tuple[str, ...]
    evaluation: tuple[str, ...] | None
    values: tuple[str, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for calls that one method can serve."""
        return (self.arguments, self.lines, self.evaluation, self.values)


def is_attribute(name: str) -> bool:
    """Whether a child or parameter of this name can be an attribute of its cell."""
    return name.isidentifier() and not keyword.iskeyword(name) and name not in _TAKEN


class Hierarchy:
    """All modules by path; the deepest calls are written first."""

    def __init__(
        self,
        program: Program,
        tree: Call,
        alignment: Alignment | None,
        graph: Graph,
        evaluation: Graph | None,
        scalars: Mapping[str, str],
    ) -> None:
        self.modules: dict[str, Module] = {}
        self.lacks: list[Lack] = []
        self._program = program
        self._alignment = alignment or Alignment()
        self._graph, self._evaluation = graph, evaluation
        self._scalars = scalars
        self._methods: dict[int, str] = {}
        self.fixed: list[str] = []
        self._known_shapes: dict[int, dict[str, tuple[int, ...] | None]] = {}
        self._known_batches: dict[int, dict[str, tuple[int, int]]] = {}
        for tensor in program.tensors:
            owner, _, _ = tensor.name.rpartition(".")
            self._module(owner).tensors.append(tensor)
        for call in (*tree.calls(), *self._alignment.alone):
            self._module(call.path).is_called = True
        self._module("").is_called = True
        self._write(tree)

    def _module(self, path: str) -> Module:
        known = self.modules.get(path)
        if known is None:
            known = self.modules[path] = Module(path, self._program.modules.get(path, ""))
            if path:
                above = self._module(path.rpartition(".")[0])
                above.children.append(path)
        return known

    def _write(self, tree: Call) -> None:
        for call in reversed(self._alignment.alone):
            assert self._evaluation is not None
            self._write_one(call, self._evaluation)
        for call in reversed([tree, *tree.calls()]):
            self._write_call(call, is_root=call is tree)
        for module in self.modules.values():
            order = list(self._program.modules)
            position = {path: number for number, path in enumerate(order)}
            module.children.sort(key=lambda path: position.get(path, len(order)))

    def _write_call(self, call: Call, is_root: bool) -> None:
        module = self.modules[call.path]
        names = self._graph.inputs if is_root else ()
        if is_root:
            call.inputs = [Given(number) for number in range(len(names))]
        arguments = input_names(len(call.inputs), names)
        begin = len(module.holes.values)
        partners = self._alignment.partners
        same = id(call) in self._alignment.bodies or self._evaluation is None
        lines = self._lines(module, call, arguments, partners if same else {}, self._graph, is_root)
        evaluation: tuple[str, ...] | None = None
        if id(call) in self._alignment.passing:
            evaluation = (f"return {arguments[0]}",)
        elif not same:
            other = self._alignment.evaluated[id(call)]
            if is_root:
                other.inputs = list(call.inputs)
            assert self._evaluation is not None
            if len(other.inputs) == len(call.inputs):
                evaluation = self._lines(module, other, arguments, {}, self._evaluation, is_root)
            else:
                reason = "training and evaluation give it different arguments"
                self.lacks.append(Lack("a call", call.path, "", reason))
        values = tuple(hole.source for hole in module.holes.values[begin:])
        made = Variant(arguments, lines, evaluation, values)
        self._methods[id(call)] = self._method(module, call, made, begin)
        if id(call) in self._alignment.evaluated:
            self._methods[id(self._alignment.evaluated[id(call)])] = self._methods[id(call)]

    def _write_one(self, call: Call, graph: Graph) -> None:
        """A call that runs in one mode alone."""
        module = self.modules[call.path]
        begin = len(module.holes.values)
        arguments = input_names(len(call.inputs))
        lines = self._lines(module, call, arguments, {}, graph, False)
        values = tuple(hole.source for hole in module.holes.values[begin:])
        made = Variant(arguments, lines, None, values)
        self._methods[id(call)] = self._method(module, call, made, begin)

    def _method(self, module: Module, call: Call, made: Variant, begin: int) -> str:
        """The method that runs this call; a further one where the code differs."""
        normal = _renumbered(made, begin)
        for number, known in enumerate(module.variants):
            if _renumbered(known, None).key == normal.key:
                del module.holes.values[begin:]
                return _method_name(number)
        module.variants.append(made)
        module.chain = _chain(call) if len(module.variants) == 1 else None
        return _method_name(len(module.variants) - 1)

    def _lines(
        self,
        module: Module,
        call: Call,
        arguments: tuple[str, ...],
        partners: Mapping[str, Node],
        graph: Graph,
        is_root: bool,
    ) -> tuple[str, ...]:
        around = Surroundings(
            call.path,
            module.holes,
            lambda inner: self._call(module, inner),
            lambda name: self._weight(module, name),
            lambda name: self._constant(module, name),
            self._shapes(graph),
            self._batches(graph),
            partners,
            self.lacks,
            self.fixed,
        )
        body = Body(call, around, arguments)
        lines = body.statements()
        result = body.structure(graph.output) if is_root else body.result()
        if lines and lines[-1].startswith(f"{result} = "):
            return (*lines[:-1], f"return {lines[-1].removeprefix(f'{result} = ')}")
        return (*lines, f"return {result}")

    def _shapes(self, graph: Graph) -> Mapping[str, tuple[int, ...] | None]:
        """Of all results of a mode, whose names the other mode has too."""
        key = id(graph)
        if key not in self._known_shapes:
            known = self._known_shapes[key] = {t.name: t.shape for t in self._program.tensors}
            known.update({node.name: node.shape for node in graph.nodes})
        return self._known_shapes[key]

    def _batches(self, graph: Graph) -> Mapping[str, tuple[int, int]]:
        if self._program.is_fixed:
            return {}
        key = id(graph)
        if key not in self._known_batches:
            found = {node.name: node.batch for node in graph.nodes if node.batch is not None}
            self._known_batches[key] = {**found, "input 0": (0, 1)}
        return self._known_batches[key]

    def _call(self, module: Module, inner: Call) -> str:
        return self._within(module.path, inner.path) + self._methods.get(id(inner), "")

    def _within(self, path: str, inner: str) -> str:
        """The expression of a module below this one."""
        text, at = "self", path
        for part in inner[len(path) + 1 if path else 0 :].split("."):
            at = f"{at}.{part}" if at else part
            above = self.modules[at.rpartition(".")[0]]
            if is_attribute(part):
                text += f".{part}"
            else:
                text += f"[{part}]" if is_list(self, above) else f"._cells[{part!r}]"
        return text

    def _weight(self, module: Module, name: str) -> str:
        owner, _, attribute = name.rpartition(".")
        place = "self" if owner == module.path else self._within(module.path, owner)
        return (
            f"{place}.{attribute}" if is_attribute(attribute) else f"{place}._params[{attribute!r}]"
        )

    def _constant(self, module: Module, name: str) -> str:
        if name in self._scalars:
            return self._scalars[name]
        if name not in module.constants:
            module.constants.append(name)
        number = module.constants.index(name)
        return "self.constant" if number == 0 else f"self.constant_{number + 1}"


def is_list(hierarchy: Hierarchy, module: Module) -> bool:
    """Whether a module that is never called is a list of its children."""
    names = [path.rpartition(".")[2] for path in module.children]
    plain = not module.is_called and not module.tensors and module.path != ""
    return (
        plain and bool(names) and sorted(names, key=_number) == [str(i) for i in range(len(names))]
    )


def _number(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (-1, name)


def _method_name(number: int) -> str:
    return "" if number == 0 else f".construct_{number + 1}"


def _renumbered(made: Variant, begin: int | None) -> Variant:
    """The same with its holes counted from 0, for comparing."""

    def text(line: str) -> str:
        return fill(line, lambda number: "_")

    evaluation = made.evaluation
    return Variant(
        made.arguments,
        tuple(map(text, made.lines)),
        None if evaluation is None else tuple(map(text, evaluation)),
        made.values,
    )


def _chain(call: Call) -> list[str] | None:
    """The modules that a call passes its one argument through, if it does nothing else."""
    if len(call.inputs) != 1 or len(call.outputs) != 1 or not call.items:
        return None
    current: object = call.inputs[0]
    paths = []
    for item in call.items:
        if not isinstance(item, Call) or item.inputs != [current] or len(item.outputs) != 1:
            return None
        current = Produced(item.outputs[0])
        paths.append(item.path)
    return paths if current == Produced(call.outputs[0]) and len(set(paths)) == len(paths) else None
