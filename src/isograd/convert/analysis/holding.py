"""What attributes, functions and parameters of a file hold, as far as its text says it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from isograd.convert.analysis.just_made import just_made
from isograd.convert.analysis.layers import Held, is_path
from isograd.convert.analysis.term_reader import COPIES, NO_LAYERS, PUTS, TermReader, text_of
from isograd.convert.analysis.terms import (
    CONTAINERS,
    NOTHING,
    UNKNOWN,
    Holding,
    Known,
    Member,
    Own,
    Parameter,
    Several,
    Term,
    several,
)
from isograd.convert.places import place
from isograd.scan.values import Api, ClassInfo, FunctionInfo, Made

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Where modules keep their attributes.
_DICTIONARIES = frozenset(("__dict__", "_modules"))
_MODES = frozenset(("torch.no_grad", "torch.enable_grad", "torch.inference_mode"))
#: What looks at classes and calls none.
_ASKS = frozenset("isinstance issubclass super hasattr getattr setattr type".split())
_READ = frozenset(
    (ast.Attribute, ast.Dict, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Call)
)
_ADDS = frozenset(("add_module", "register_module"))


class Reader(TermReader):
    """Reads what a file says."""

    def read(self, attributes: Collection[str]) -> Holding:
        """All that a file says; attributes: names of what layers hold."""
        found = Holding()
        for node in self.tree.nodes:
            if node.__class__ not in _READ:
                continue
            if isinstance(node, ast.Attribute):
                if node.attr in attributes:
                    self._note_owner(node.value, found)
                self._elements_set(node, found)
            elif isinstance(node, ast.Dict):
                self._given_in_dict(node, found)
            elif isinstance(node, ast.ClassDef):
                self._class(node, found)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._function(node, found)
            elif isinstance(node, ast.Call):
                self._given(node, found)
        for owner, name, value in self._bound():
            _bind(owner, name, value, found)
        return found

    def _note_owner(self, owner: ast.expr, found: Holding) -> None:
        if isinstance(owner, ast.Name) and owner.id == "self":
            return
        if not isinstance(owner, (ast.Name, ast.Attribute, ast.Subscript)):
            return
        names: list[str] = []
        part: ast.expr = owner
        term = self._tested(part)
        while term is None and isinstance(part, ast.Attribute):
            names.insert(0, part.attr)
            part = part.value
            term = self._tested(part)
        if term is None:
            found.owners[place(owner)] = self.term(owner)
            return
        for name in names:
            term = Member(term, name)
        found.owners[place(owner)] = term

    def _tested(self, node: ast.expr) -> Term | None:
        """What an isinstance around an expression, or a statement before, says that it is.

        None without one.
        """
        if not is_path(node) or getattr(node, "id", "") == "self":
            return None
        tested = [self.term(part) for part in Held(self.tree, {}, {}).tested(node)]
        made = None if tested else just_made(node, self.tree)
        if made is not None:
            return self.term(made)
        found: list[Term] = []
        for part in tested:
            value = part.value if isinstance(part, Known) else None
            if isinstance(value, ClassInfo):
                found.append(Own(value))
            elif isinstance(value, Api) and self.is_layer(value.name):
                found.append(Known(Made(value.name)))
        is_all = len(found) == len(tested) > 0 and CONTAINERS.isdisjoint(
            part.value.name
            for part in tested
            if isinstance(part, Known) and isinstance(part.value, Api)
        )
        return several(found) if is_all else None

    # ---- attributes

    def _bound(self) -> Iterator[tuple[Term, str, Term]]:
        """What is bound to attributes, with their owners."""
        for node in self.tree.of(ast.Attribute):
            if not isinstance(node.ctx, ast.Store):
                continue
            parent = self.tree.parents.get(node)
            value = getattr(parent, "value", None)
            is_plain = isinstance(parent, (ast.Assign, ast.AnnAssign)) and node is not value
            if is_plain and value is None:
                continue  # an annotation
            term = self.term(value) if is_plain and value is not None else UNKNOWN
            yield self.term(node.value), node.attr, term

    def _class(self, node: ast.ClassDef, found: Holding) -> None:
        """What the body of a class binds; a decorator may make arguments of what it declares."""
        info = self.class_of(node)
        if info is None:
            return
        bound = found.classes[info]
        for statement in node.body:
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            value = getattr(statement, "value", None)
            is_declared = isinstance(statement, ast.AnnAssign) and bool(node.decorator_list)
            for target in targets:
                if isinstance(target, ast.Name) and (value is not None or is_declared):
                    term = UNKNOWN if is_declared or value is None else self.term(value)
                    bound.attributes[target.id].append((Own(info), term))

    def _elements_set(self, node: ast.Attribute, found: Holding) -> None:
        """`self.blocks[0] = block`, `self._modules[name] = block`."""
        parent = self.tree.parents.get(node)
        if not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Store):
            return
        statement = self.tree.parents.get(parent)
        value = statement.value if isinstance(statement, ast.Assign) else None
        term = UNKNOWN if value is None else self.term(value)
        of = self._owner(node.value)
        bound = found.others if of is None else found.classes[of]
        bound.put[node.attr].append(term)
        if node.attr in _DICTIONARIES:
            bound.computed.append(("", term))

    def _owner(self, node: ast.expr) -> ClassInfo | None:
        """The class whose `self` an expression is."""
        found = self.term(node) if isinstance(node, ast.Name) else None
        return found.of if isinstance(found, Own) else None

    def _function(self, node: _Function, found: Holding) -> None:
        """What a function returns, and its parameters."""
        owner = self.tree.parents.get(node)
        info = self.class_of(owner) if isinstance(owner, ast.ClassDef) else None
        names = tuple(part.arg for part in (*node.args.posonlyargs, *node.args.args))
        if info is not None:
            found.classes[info].parameters[node.name] = names
            known = found.classes[info].methods.get(node.name, NOTHING)
            found.classes[info].methods[node.name] = several((known, self._returned(node)))
        elif owner is self.tree.module and self.tree.times_bound[node.name] == 1:
            value = self.value_of(node.name)
            if isinstance(value, FunctionInfo):
                found.functions[value] = (names, self._returned(node))

    def _returned(self, node: _Function) -> Term:
        if isinstance(node, ast.AsyncFunctionDef) or not all(
            map(self._is_mode, node.decorator_list)
        ):
            return UNKNOWN
        values: list[Term] = []
        for part in self.tree.walked(node):
            if isinstance(part, (ast.Yield, ast.YieldFrom)):
                return UNKNOWN
            if isinstance(part, ast.Return) and self.tree.function(part) is node:
                values += [self.term(part.value)] if part.value is not None else []
        return several(values)

    def _is_mode(self, decorator: ast.expr) -> bool:
        """Whether a decorator only says whether gradients are recorded."""
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        return self.api(function) in _MODES

    # ---- calls

    def _given(self, node: ast.Call, found: Holding) -> None:
        """What a call gives to parameters, and what it puts into attributes."""
        for word in node.keywords:
            if word.arg is not None and not isinstance(word.value, NO_LAYERS):
                found.by_name[word.arg].add(self.term(word.value))
        self._given_by_place(node, found)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in PUTS and node.args:
            self._put_into(node, function, found)
        if getattr(function, "id", "") in ("setattr", "getattr", "hasattr") and len(node.args) > 1:
            self._note_owner(node.args[0], found)
            if function.id == "setattr" and len(node.args) == 3:  # type: ignore[attr-defined]
                self._set(node.args[0], node.args[1], node.args[2], found)

    def _given_in_dict(self, node: ast.Dict, found: Holding) -> None:
        """What a dictionary may give to parameters."""
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None and text_of(key) and not isinstance(value, NO_LAYERS):
                found.by_name[text_of(key)].add(self.term(value))

    def _given_by_place(self, node: ast.Call, found: Holding) -> None:
        if getattr(node.func, "id", "") in _ASKS or self.api(node.func):
            return
        is_of_partial = self.foreign(node.func) in COPIES
        is_shifted = is_of_partial
        for index, given in enumerate(node.args):
            if isinstance(given, ast.Starred):
                is_shifted = True  # the parameters of others have other places
            elif isinstance(given, (ast.Name, ast.Attribute, ast.IfExp, ast.Call)):
                term = self.term(given)
                if _names_class(term) and not (is_of_partial and index == 0):
                    function = UNKNOWN if is_shifted else self._function_called(node)
                    found.by_place.add((function, index, term))

    def _function_called(self, node: ast.Call) -> Term:
        """What is called; of `super().__init__(…)` the bases."""
        function = node.func
        if getattr(function, "attr", "") != "__init__":
            return self.term(function)
        called = getattr(function.value, "func", None)  # type: ignore[attr-defined]
        owner = self.tree.owner(node)
        info = self.class_of(owner) if owner is not None else None
        if getattr(called, "id", "") != "super" or info is None:
            return self.term(function)
        return several(Known(base) for base in info.bases if isinstance(base, ClassInfo))

    def _put_into(self, node: ast.Call, function: ast.Attribute, found: Holding) -> None:
        owner = function.value
        if function.attr in _ADDS and len(node.args) == 2:
            self._set(owner, node.args[0], node.args[1], found)
        elif function.attr in _ADDS and self._owner(owner) is not None:
            found.classes[self._owner(owner)].computed.append(("", UNKNOWN))  # type: ignore[index]
        if isinstance(owner, ast.Attribute):
            of = self._owner(owner.value)
            bound = found.others if of is None else found.classes[of]
            bound.put[owner.attr].append(self.put(node))

    def _set(self, owner: ast.expr, name: ast.expr, value: ast.expr, found: Holding) -> None:
        of = self._owner(owner)
        if text_of(name):
            _bind(self.term(owner), text_of(name), self.term(value), found)
        elif of is not None:
            found.classes[of].computed.append((_beginning(name), self.term(value)))


def _beginning(name: ast.expr) -> str:
    """How a text begins that is computed."""
    return text_of(name.values[0]) if isinstance(name, ast.JoinedStr) and name.values else ""


def _bind(owner: Term, name: str, value: Term, found: Holding) -> None:
    bound = found.classes[owner.of] if isinstance(owner, Own) else found.others
    bound.attributes[name].append((owner, value))


def _names_class(term: Term) -> bool:
    if isinstance(term, Several):
        return any(map(_names_class, term.terms))
    return isinstance(term, Parameter) or (
        isinstance(term, Known) and not isinstance(term.value, Made)
    )
