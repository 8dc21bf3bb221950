"""What one file offers for a case: a network, its loss, its optimizer, what it is fed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from isograd.init.apis import FRAMEWORKS, Apis
from isograd.init.classes import FORWARD
from isograd.init.offers import Callee, LossCallee, SideFound
from isograd.init.reading import Reading
from isograd.init.scopes import NetworkCall, Scope
from isograd.init.source import Source, read_source
from isograd.init.values import (
    MARK,
    Defined,
    Known,
    Loss,
    Network,
    Optimizer,
    Output,
    Parts,
    Scalar,
    Tensor,
    Value,
)

#: Names that the written functions use.
_RESERVED = ("model", "output", "target", "loss", "optimizer", "build")
#: Marks of the targets of a loss that no program was seen to call begin here.
_CLASS_MARKS = 1_000_000
_MARKS = re.compile(MARK.format(r"(\d+)"))


def module_name(path: Path) -> str:
    """How the written file calls the user's module; its own functions have other names."""
    stem = path.stem
    if not stem.isidentifier():
        return "users_file"
    return f"{stem}_file" if stem in _RESERVED else stem


def find_side(path: Path, apis: Apis) -> SideFound:
    """Read a file; raises `UsageError` where it cannot be read."""
    source = read_source(path.resolve(), module_name(path))
    reading = Reading(source, apis)
    reading.follow_file()
    return _Finder(source, reading, path).find()


class _Finder:
    """Chooses among what was found."""

    def __init__(self, source: Source, reading: Reading, path: Path) -> None:
        self._source = source
        self._reading = reading
        self._path = path
        self._classes = reading.classes
        self._notes: list[str] = []
        self._functions = [n for n in source.tree.body if isinstance(n, ast.FunctionDef)]
        self._class_nodes = [n for n in source.tree.body if isinstance(n, ast.ClassDef)]
        self._returned = {node.name: self._returns(node) for node in self._functions}

    def find(self) -> SideFound:
        """The side."""
        call = self._chosen_call()
        network, others = self._network(call)
        found = self._reading.found
        if len(found.schedulers):
            self._notes.append(
                f"{self._path.name}:{found.schedulers[0]}: the schedule of the learning rate is "
                "left out; an optimizer's callable may return (optimizer, scheduler)"
            )
        self._note_import()
        return SideFound(
            self._path,
            self._source.module,
            self._framework(),
            self._callee(network) if network is not None else None,
            self._loss(),
            self._optimizer(),
            None if call is None else self._inputs(call),
            self._arguments(network, _all_arguments),
            self._arguments(network, _required),
            self._consumers(network),
            others,
            tuple(self._notes),
        )

    def _note_import(self) -> None:
        """Say where a file trains as soon as it is imported, which verifying it does."""
        for node in self._source.tree.body:
            if isinstance(node, (ast.For, ast.While, ast.With)):
                if any(_within(loss.line, node) for loss in self._reading.found.losses):
                    self._notes.append(
                        f"{self._path.name}:{node.lineno}: this trains when the file is imported; "
                        'put it under if __name__ == "__main__":'
                    )

    def _framework(self) -> str | None:
        roots = set()
        for source in (self._source, *self._source.neighbours.values()):
            for node in ast.walk(source.tree):
                if isinstance(node, ast.Import):
                    roots |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    roots.add(node.module.partition(".")[0])
        found = [framework for framework in FRAMEWORKS if framework in roots]
        return found[0] if len(found) == 1 else None

    # The network

    def _chosen_call(self) -> NetworkCall | None:
        """The call of the network that is trained; else the first whose tensors are known."""
        calls = [c for c in self._reading.found.calls if c.network.construction]
        lines = {loss.line for loss in self._reading.found.losses}
        known = [c for c in calls if any(_is_known(v) for v in _values(c))]
        before = [c for c in known if lines and c.line <= max(lines)]
        for chosen in (before, known, calls):
            if chosen:
                return chosen[0]
        return None

    def _network(self, call: NetworkCall | None) -> tuple[Network | None, tuple[str, ...]]:
        if call is not None:
            return call.network, ()
        trained = [n for n in self._reading.found.networks if n.construction]
        if trained:
            return trained[0], ()
        built = {name: v for name, v in self._returned.items() if isinstance(v, Network)}
        names = [n for n in built if not self._is_used(n, built)] or list(built)
        if names:
            return built[names[0]], tuple(names[1:])
        return self._root_class()

    def _root_class(self) -> tuple[Network | None, tuple[str, ...]]:
        """A class that no other class of the file uses; the last, because parts stand first."""
        kinds = {}
        for node in self._class_nodes:
            defined = self._source.names[node.name]
            if isinstance(defined, Defined) and self._classes.class_kind(defined) == "module":
                if self._classes.loss_of_class(defined, ([], {})) is None:
                    kinds[node.name] = node
        roots = [name for name in kinds if not self._is_used(name, kinds)] or list(kinds)
        if not roots:
            return None, ()
        name = roots[-1]
        made = self._constructed(name)
        return made, tuple(roots[:-1])

    def _constructed(self, name: str) -> Network:
        """A class with the arguments that its annotations tell: configurations with defaults."""
        call = ast.parse(f"{name}()", mode="eval").body
        assert isinstance(call, ast.Call)
        defined = self._source.names[name]
        assert isinstance(defined, Defined)
        for word, annotation in self._missing_arguments(defined).items():
            annotation = annotation or self._configuration(defined, word)
            if annotation is not None and self._has_defaults(annotation):
                made = ast.parse(f"{annotation}()", mode="eval").body
                call.keywords.append(ast.keyword(word, made))
        value = self._reading.value(ast.fix_missing_locations(call), Scope(self._source))
        assert isinstance(value, Network)
        return replace(value, line=defined.node.lineno)

    def _missing_arguments(self, defined: Defined) -> dict[str, str | None]:
        method = self._classes.method_of(defined, ("__init__",))
        if method is None:
            return {}
        required = _required(method)[1:]
        return {
            a.arg: a.annotation.id if isinstance(a.annotation, ast.Name) else None for a in required
        }

    def _configuration(self, defined: Defined, word: str) -> str | None:
        """A class of the file with a default for everything that is read from this argument."""
        method = self._constructor(defined)
        read = {
            n.attr
            for n in ast.walk(method)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == word
        }
        for node in self._class_nodes:
            fields = {
                part.target.id
                for part in node.body
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            }
            if read and read <= fields:
                return node.name
        return None

    def _has_defaults(self, name: str) -> bool:
        found = self._source.lookup(name)
        if not isinstance(found, Defined) or not isinstance(found.node, ast.ClassDef):
            return False
        method = self._classes.method_of(found, ("__init__",))
        if method is not None:
            return len(_required(method)) <= 1
        fields = [p for p in found.node.body if isinstance(p, ast.AnnAssign)]
        return all(part.value is not None for part in fields)

    def _is_used(self, name: str, among: dict[str, Any]) -> bool:
        """Whether another of these definitions names this one."""
        definitions: list[ast.FunctionDef | ast.ClassDef] = [*self._functions, *self._class_nodes]
        for node in definitions:
            if node.name != name and node.name in among:
                if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node)):
                    return True
        return False

    def _arguments(
        self, network: Network | None, chosen: Callable[[Any], list[ast.arg]]
    ) -> tuple[str, ...] | None:
        if network is None or network.definition is None:
            return None
        method = self._classes.method_of(network.definition, FORWARD)
        return None if method is None else tuple(a.arg for a in chosen(method)[1:])

    def _consumers(self, network: Network | None) -> dict[str, str]:
        """For each argument of the network the attribute that is the first to be called with it."""
        if network is None or network.definition is None:
            return {}
        method = self._classes.method_of(network.definition, FORWARD)
        found: dict[str, str] = {}
        for node in _inner_first(method) if method is not None else ():
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called.startswith("self.") and called.replace(".", "").replace("_", "").isalnum():
                for part in (n for a in node.args for n in ast.walk(a)):
                    if isinstance(part, ast.Name):
                        found.setdefault(part.id, called.removeprefix("self."))
        return found

    def _callee(self, network: Network) -> Callee:
        code = network.construction or ""
        return self._named(code, network.line)

    def _named(self, code: str, line: int) -> Callee:
        """A name of the file with plain keyword arguments where the text is no more than that."""
        try:
            call = ast.parse(code, mode="eval").body
        except SyntaxError:
            return Callee(None, code, line)
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return Callee(None, code, line)
        name = call.func.attr
        is_own = ast.unparse(call.func.value) == self._source.module
        defined = self._source.lookup(name)
        if not is_own or not isinstance(defined, Defined):
            return Callee(None, code, line)
        kwargs = self._plain_arguments(call, defined)
        if kwargs is None:
            return Callee(None, code, line)
        node = self._constructor(defined)
        required = [] if node is None else [a.arg for a in _required(node)]
        names = [] if node is None else [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
        skipped = 1 if isinstance(defined.node, ast.ClassDef) else 0
        missing = tuple(n for n in required[skipped:] if n not in kwargs)
        return Callee(name, code, line, kwargs, tuple(names[skipped:]), missing)

    def _constructor(self, defined: Defined) -> Any:
        """What runs when a function or a class is called."""
        if isinstance(defined.node, ast.ClassDef):
            return self._classes.method_of(defined, ("__init__",))
        return defined.node

    def _plain_arguments(self, call: ast.Call, defined: Defined) -> dict[str, Any] | None:
        node = self._constructor(defined)
        names = [] if node is None else [a.arg for a in node.args.args]
        if isinstance(defined.node, ast.ClassDef):
            names = names[1:]
        if len(call.args) > len(names) or any(k.arg is None for k in call.keywords):
            return None
        given = dict(zip(names, call.args, strict=False))
        given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
        found: dict[str, Any] = {}
        for word, value in given.items():
            try:
                found[word] = ast.literal_eval(value)
            except ValueError:
                return None
            if not isinstance(found[word], (bool, int, float, str)):
                return None  # a tuple would become a list, and None has no TOML
        return found

    # Loss and optimizer

    def _loss(self) -> LossCallee | None:
        losses = [loss for loss in self._reading.found.losses if loss.code]
        for loss in losses[-1:]:
            return self._loss_callee(loss)
        for node in self._functions:
            found = self._returned[node.name]
            if isinstance(found, Scalar) and not self._calls_network(node):
                count = len(_required(node))
                targets = tuple(Tensor() for _ in range(max(0, count - 1)))
                return LossCallee(node.name, "", node.lineno, kind=found.kind, targets=targets)
        for name, value in self._source.names.items():
            if isinstance(value, Loss):
                return LossCallee(name, "", kind=value.kind, targets=(Tensor(),))
        return next((f for node in self._class_nodes if (f := self._loss_class(node))), None)

    def _loss_class(self, node: ast.ClassDef) -> LossCallee | None:
        defined = self._source.names[node.name]
        if not isinstance(defined, Defined) or self._classes.class_kind(defined) != "module":
            return None
        found = self._classes.loss_of_class(defined, ([], {}))
        if found is None or self._missing_arguments(defined):
            return None
        method = self._classes.method_of(defined, FORWARD)
        marks = [MARK.format(_CLASS_MARKS + i) for i in range(1, len(_required(method)) - 1)]
        code = f"{defined.code}()({', '.join(['output', *marks])})"
        targets = tuple(Tensor() for _ in marks)
        return LossCallee(None, code, node.lineno, kind=found.kind, targets=targets)

    def _loss_callee(self, loss: Scalar) -> LossCallee:
        assert loss.code is not None
        numbers = list(dict.fromkeys(int(n) for n in _MARKS.findall(loss.code)))
        tensors = tuple(self._reading.found.tensors[n] for n in numbers)
        call = ast.parse(loss.code, mode="eval").body
        name = None
        if isinstance(call, ast.Call) and not call.keywords:
            expected = ["output", *(MARK.format(n) for n in numbers)]
            if [ast.unparse(a) for a in call.args] == expected:
                name = self._own_name(call.func)
        return LossCallee(name, loss.code, loss.line, kind=loss.kind, targets=tensors)

    def _own_name(self, node: ast.expr) -> str | None:
        """A top-level name of the file."""
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == self._source.module:
            found = self._source.lookup(node.attr)
            return node.attr if isinstance(found, (Defined, Loss)) else None
        return None

    def _calls_network(self, node: ast.FunctionDef) -> bool:
        return any(_within(call.line, node) for call in self._reading.found.calls)

    def _optimizer(self) -> Callee | None:
        for found in self._reading.found.optimizers:
            if found.code and "model" in _names(found.code) and not _MARKS.search(found.code):
                call = ast.parse(found.code, mode="eval").body
                name = None
                if isinstance(call, ast.Call) and [ast.unparse(a) for a in call.args] == ["model"]:
                    name = None if call.keywords else self._own_name(call.func)
                return Callee(name, found.code, found.line)
        for node in self._functions:
            value = self._returned[node.name]
            first = value.items[0] if isinstance(value, Parts) and value.items else value
            if isinstance(first, Optimizer) and len(_required(node)) == 1:
                return Callee(node.name, "", node.lineno)
        return None

    def _returns(self, node: ast.FunctionDef) -> Value:
        """What a function returns, called with a network's output and unknown tensors."""
        reading = Reading(self._source, self._reading.apis)
        required = _required(node)
        given: list[Value] = [Output("output")] if required else []
        given += [reading.placeholder() for _ in required[1:]]
        defined = self._source.names[node.name]
        assert isinstance(defined, Defined)
        value = reading.run(node, self._source, given, {})
        if isinstance(value, Network) and not required:
            return replace(value, construction=f"{defined.code}()", line=node.lineno)
        return Value() if isinstance(value, Network) else value

    # Inputs

    @staticmethod
    def _inputs(call: NetworkCall) -> dict[str, Value]:
        return {**{str(i): v for i, v in enumerate(call.positional)}, **call.keywords}


def _inner_first(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes in the order in which they are evaluated: arguments before their call."""
    for child in ast.iter_child_nodes(node):
        yield from _inner_first(child)
    yield node


def _within(line: int, node: ast.stmt) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _all_arguments(node: Any) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _required(node: Any) -> list[ast.arg]:
    """The arguments without a default."""
    names = [*node.args.posonlyargs, *node.args.args]
    needed = [a for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if not d]
    return [*names[: len(names) - len(node.args.defaults)], *needed]


def _values(call: NetworkCall) -> list[Value]:
    return [*call.positional, *call.keywords.values()]


def _is_known(value: Value) -> bool:
    if isinstance(value, Parts):
        return any(_is_known(part) for part in value.items)
    return isinstance(value, Known) or (isinstance(value, Tensor) and value.shape is not None)


def _names(code: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(code, mode="eval")) if isinstance(n, ast.Name)}
