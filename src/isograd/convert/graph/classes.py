"""Classes for the modules: equal ones share a class, whose open numbers are its arguments."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from isograd.convert.graph.code import Hole, Holes, fill, holes_in, ordered
from isograd.convert.graph.modules import SEQUENTIAL, Hierarchy, Module, is_attribute, is_list
from isograd.convert.graph.program import Tensor

#: More arguments than this, and each different module gets a class of its own.
MOST_ARGUMENTS = 8
#: Names of the module that is written, which its classes and their arguments do not take.
_RESERVED = frozenset(
    "ms nn ops np Parameter Tensor Group OrderedDict Path TENSORS INITIAL "
    "parameter constant draw build".split()
)
_DIMENSIONS = {
    1: ("features",),
    2: ("outputs", "inputs"),
    3: ("outputs", "inputs", "kernel"),
    4: ("outputs", "inputs", "kernel", "kernel"),
    5: ("outputs", "inputs", "kernel", "kernel", "kernel"),
}


@dataclass(frozen=True)
class Method:
    """One method with its lines; evaluation: what it runs outside of training, if that differs."""

    name: str
    arguments: tuple[str, ...]
    lines: tuple[str, ...]
    evaluation: tuple[str, ...] | None


@dataclass(frozen=True)
class ClassCode:
    """A class to be written; kept: the arguments that its methods read."""

    name: str
    kind: str
    paths: tuple[str, ...]
    arguments: tuple[str, ...]
    kept: tuple[str, ...]
    making: tuple[str, ...]
    methods: tuple[Method, ...]


@dataclass
class _Text:
    """A module's class as lines with holes."""

    module: Module
    making: list[str]
    methods: list[Method]
    holes: list[Hole]

    @property
    def key(self) -> tuple[object, ...]:
        methods = tuple((m.name, m.arguments, m.lines, m.evaluation) for m in self.methods)
        return (self.module.kind, tuple(self.making), methods)


@dataclass
class Classes:
    """Classes in the order in which they can be written, and how each module is made."""

    hierarchy: Hierarchy
    classes: list[ClassCode] = field(default_factory=list)
    #: How a module is made: an expression with holes, and these.
    made: dict[str, tuple[str, list[Hole]]] = field(default_factory=dict)

    def make(self) -> None:
        """Classes for all modules, the innermost first."""
        heights: dict[int, list[Module]] = {}
        for module in self.hierarchy.modules.values():
            heights.setdefault(self._height(module), []).append(module)
        for _, modules in sorted(heights.items()):
            groups: dict[tuple[object, ...], list[_Text]] = {}
            for module in modules:
                if self._expression(module):
                    continue
                text = self._text(module)
                groups.setdefault(text.key, []).append(text)
            for group in groups.values():
                self._add(group)

    def _height(self, module: Module) -> int:
        below = [self._height(self.hierarchy.modules[path]) for path in module.children]
        return max(below, default=-1) + 1

    def _expression(self, module: Module) -> bool:
        """Lists, chains and holders of weights are made where they are used."""
        if not module.path:
            return False
        if is_list(self.hierarchy, module):
            self._collect(module, "nn.CellList([{}])", ", ")
            return True
        plain = module.chain is not None and module.chain == module.children
        if plain and module.kind == SEQUENTIAL and not module.tensors:
            names = [path.rpartition(".")[2] for path in module.children]
            if names == [str(number) for number in range(len(names))]:
                self._collect(module, "nn.SequentialCell([{}])", ", ")
            else:
                self._collect_named(module, "nn.SequentialCell(OrderedDict([{}]))")
            return True
        if not module.is_called:
            self._hold(module)
            return True
        return False

    def _collect(self, module: Module, frame: str, between: str) -> None:
        holes = Holes()
        parts = [self._child(path, holes) for path in module.children]
        self.made[module.path] = (frame.format(between.join(parts)), holes.values)

    def _collect_named(self, module: Module, frame: str) -> None:
        holes = Holes()
        parts = [
            f"({path.rpartition('.')[2]!r}, {self._child(path, holes)})" for path in module.children
        ]
        self.made[module.path] = (frame.format(", ".join(parts)), holes.values)

    def _hold(self, module: Module) -> None:
        holes = Holes()
        parts = []
        for tensor in module.tensors:
            if tensor.tied is None:
                name = tensor.name.rpartition(".")[2]
                parts.append((name, _parameter(tensor, holes)))
        parts += [(path.rpartition(".")[2], self._child(path, holes)) for path in module.children]
        if all(is_attribute(name) for name, _ in parts):
            text = ", ".join(f"{name}={source}" for name, source in parts)
        else:
            text = f"**{{{', '.join(f'{name!r}: {source}' for name, source in parts)}}}"
        self.made[module.path] = (f"Group({text})", holes.values)

    def _child(self, path: str, holes: Holes) -> str:
        """The expression that makes a child, with its holes among these."""
        text, own = self.made[path]
        part = path.rpartition(".")[2]
        prefix = "" if part.isdigit() else f"{part}_"

        def give(number: int) -> str:
            hole = own[number]
            hint = hole.hint if hole.hint.startswith(prefix) else prefix + hole.hint
            return holes.add(hole.source, hint)

        return fill(text, give)

    def _text(self, module: Module) -> _Text:
        holes = module.holes
        making = []
        for tensor in module.tensors:
            making += _tensor_lines(tensor, holes)
        for number, name in enumerate(module.constants):
            attribute = "constant" if number == 0 else f"constant_{number + 1}"
            making.append(f"self.{attribute} = constant({holes.add(repr(name), attribute)})")
        for path in module.children:
            part = path.rpartition(".")[2]
            source = self._child(path, holes)
            if is_attribute(part):
                making.append(f"self.{part} = {source}")
            elif part.isidentifier() and not keyword.iskeyword(part):  # a cell has it for itself
                making.append(f"self._cells[{part!r}] = {source}")
                making.append(f"self._cells[{part!r}].update_parameters_name({part + '.'!r})")
            else:
                making.append(f"self.insert_child_to_cell({part!r}, {source})")
        lines: list[str] = list(making)
        for variant in module.variants:
            lines += [*variant.lines, *(variant.evaluation or ())]
        texts, found = ordered(lines, holes)
        position = len(making)
        methods = []
        for number, variant in enumerate(module.variants):
            own = texts[position : position + len(variant.lines)]
            position += len(own)
            other = None
            if variant.evaluation is not None:
                other = tuple(texts[position : position + len(variant.evaluation)])
                position += len(other)
            name = "construct" if number == 0 else f"construct_{number + 1}"
            methods.append(Method(name, variant.arguments, tuple(own), other))
        return _Text(module, texts[: len(making)], methods, found)

    def _add(self, group: list[_Text]) -> None:
        columns = _columns([text.holes for text in group])
        if len(columns.arguments) > MOST_ARGUMENTS:
            parts: dict[tuple[str, ...], list[_Text]] = {}
            for text in group:
                values = tuple(hole.source for hole in text.holes)
                parts.setdefault(values, []).append(text)
            for part in parts.values():
                self._add_class(part, _columns([text.holes for text in part]))
            return
        self._add_class(group, columns)

    def _add_class(self, group: list[_Text], columns: _Columns) -> None:
        first = group[0]
        attributes = {t.name.rpartition(".")[2] for t in first.module.tensors}
        attributes |= {path.rpartition(".")[2] for path in first.module.children}
        names = columns.named(attributes | _RESERVED)

        def making(number: int) -> str:
            return columns.fixed.get(number) or names[columns.argument_of[number]]

        def method(number: int) -> str:
            return columns.fixed.get(number) or f"self.{names[columns.argument_of[number]]}"

        used = {
            names[columns.argument_of[number]]
            for m in first.methods
            for line in (*m.lines, *(m.evaluation or ()))
            for number in holes_in(line)
            if number in columns.argument_of
        }
        name = self._class_name(first.module)
        self.classes.append(
            ClassCode(
                name,
                first.module.kind,
                tuple(text.module.path for text in group),
                tuple(names),
                tuple(n for n in names if n in used),
                tuple(fill(line, making) for line in first.making),
                tuple(_filled(m, method) for m in first.methods),
            )
        )
        for text in group:
            holes = Holes()
            arguments = [
                holes.add(text.holes[position].source, argument)
                for position, argument in zip(columns.arguments, names, strict=True)
            ]
            self.made[text.module.path] = (f"{name}({', '.join(arguments)})", holes.values)

    def _class_name(self, module: Module) -> str:
        base = re.sub(r"\W", "", module.kind.rpartition(".")[2]) or "Network"
        taken = {known.name for known in self.classes} | _RESERVED
        name, number = base, 1
        while name in taken or keyword.iskeyword(name):
            number += 1
            name = f"{base}{number}"
        return name


def _filled(method: Method, give: object) -> Method:
    assert callable(give)
    evaluation = method.evaluation
    return Method(
        method.name,
        method.arguments,
        tuple(fill(line, give) for line in method.lines),
        None if evaluation is None else tuple(fill(line, give) for line in evaluation),
    )


@dataclass
class _Columns:
    """Holes over the modules of one class.

    fixed: the value of a hole that is the same in all.  arguments: for each argument, the first
    hole that it fills; argument_of: which argument fills a hole.
    """

    fixed: dict[int, str] = field(default_factory=dict)
    arguments: list[int] = field(default_factory=list)
    argument_of: dict[int, int] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)

    def named(self, taken: set[str]) -> list[str]:
        """Names for the arguments, none of them taken or twice."""
        names: list[str] = []
        for hint in self.hints:
            base = re.sub(r"\W", "_", hint)
            base = f"{base}_" if keyword.iskeyword(base) or not is_attribute(base) else base
            name, number = base, 1
            while name in taken or name in names or name == "self":
                number += 1
                name = f"{base}_{number}"
            names.append(name)
        return names


def _columns(rows: Sequence[Sequence[Hole]]) -> _Columns:
    found = _Columns()
    known: dict[tuple[str, ...], int] = {}
    for position, holes in enumerate(zip(*rows, strict=True)):
        values = tuple(hole.source for hole in holes)
        if len(set(values)) == 1:
            found.fixed[position] = values[0]
        elif values in known:
            found.argument_of[position] = known[values]
        else:
            known[values] = found.argument_of[position] = len(found.arguments)
            found.arguments.append(position)
            found.hints.append(holes[0].hint)
    return found


def _parameter(tensor: Tensor, holes: Holes) -> str:
    hints = _DIMENSIONS.get(len(tensor.shape), ("size",) * len(tensor.shape))
    sizes = [holes.add(str(n), hint) for n, hint in zip(tensor.shape, hints, strict=True)]
    more = [] if tensor.dtype == "float32" else [f"dtype=ms.{_dtype(tensor.dtype)}"]
    if tensor.is_buffer or not tensor.is_trained:
        more.append("requires_grad=False")
    return f"parameter({', '.join([*sizes, *more])})"


def _dtype(name: str) -> str:
    return "bool_" if name == "bool" else name


def _tensor_lines(tensor: Tensor, holes: Holes) -> list[str]:
    name = tensor.name.rpartition(".")[2]
    if tensor.tied is not None or name == "num_batches_tracked":
        return []
    if tensor.is_buffer and not tensor.is_persistent:
        source = f"constant({holes.add(repr(tensor.name), name)})"
        return [f"self.register_buffer({name!r}, {source}, persistent=False)"]
    source = _parameter(tensor, holes)
    if is_attribute(name):
        return [f"self.{name} = {source}"]
    named = f"{source[:-1]}, name={name!r})"
    return [f"self._params[{name!r}] = {named}"]
