"""Reads expressions: which names of torch they use, and what their value is."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from isograd.scan import behaviour, values
from isograd.scan.members import Members
from isograd.scan.state import ATTRIBUTE, CALL, REFERENCE, UNSURE
from isograd.scan.values import (
    COMPUTED,
    INVERTED,
    MASK,
    MASKS,
    NO,
    PARAMETER,
    PLAIN,
    RAGGED,
    SOME_ITEMS,
    TENSOR,
    VIEW,
    Api,
    ClassInfo,
    Foreign,
    FunctionInfo,
    Instance,
    Items,
    Made,
    Mapping,
    Plain,
    Returns,
    Scope,
    Tensor,
    Value,
    element,
    join,
    join_all,
    part,
)

_BITWISE = frozenset((ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift))
#: Methods of a dictionary that no tensor has.
_OF_DICTIONARIES = frozenset("get items keys setdefault update".split())
_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


class Expressions(Members):
    """Evaluates every kind of expression; `visit` records the uses inside it."""

    def visit(self, node: ast.expr) -> Value:
        """The value of an expression."""
        handler = HANDLERS.get(node.__class__)
        return self.children(node) if handler is None else handler(self, node)

    def children(self, node: ast.AST) -> Value:
        """Read what is inside an expression of which nothing else is known."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.visit(child)
        return None

    def name(self, node: ast.Name) -> Value:
        """A bare name."""
        found = self.state.env[node.id]
        if found.__class__ is Api:
            self.record(node.lineno, node.col_offset, found.name, REFERENCE, node)
        return found

    def attribute(self, node: ast.Attribute) -> Value:
        """`value.attr`; only the whole of a dotted name of torch is a use."""
        owner = self._owner(node.value)
        found = self.member(owner, node.attr)
        if node.attr in self.watched:
            self.met(node, owner)
        kind = found.__class__
        if kind is Api:
            self._record_attribute(node, owner, found.name)  # type: ignore[union-attr]
            if owner.__class__ is Tensor:
                return self._read(node, found)
        elif owner is None:
            return self._of_unknown(node)
        return found

    #: Names of attributes that a subclass wants to see.
    watched: frozenset[str] = frozenset()

    def met(self, node: ast.Attribute, owner: Value) -> None:
        """An attribute of a watched name, with what it is read of."""

    def _owner(self, node: ast.expr) -> Value:
        """The value before a dot, without recording the beginning of a dotted name of torch."""
        kind = node.__class__
        if kind is ast.Name:
            return self.state.env[node.id]  # type: ignore[attr-defined]
        if kind is ast.Attribute:
            owner = self._owner(node.value)  # type: ignore[attr-defined]
            if owner.__class__ is Api or owner.__class__ is values.Namespace:
                return self.member(owner, node.attr)  # type: ignore[attr-defined]
            return self._finish(node, owner)  # type: ignore[arg-type]
        return self.visit(node)

    def _finish(self, node: ast.Attribute, owner: Value) -> Value:
        found = self.member(owner, node.attr)
        if node.attr in self.watched:
            self.met(node, owner)
        if found.__class__ is Api and owner.__class__ is Tensor:
            self._record_attribute(node, owner, found.name)
            return self._read(node, found)
        if owner is None:
            return self._of_unknown(node)
        return found

    def _read(self, node: ast.Attribute, found: Value) -> Value:
        """An attribute of a tensor that is no method is read at once."""
        if self.state.names.tensor.get(node.attr) == "a" or node.attr in ("T", "H", "mT", "mH"):
            return self.state.names.method_result(node.attr, [TENSOR], {})
        return found

    def _record_attribute(self, node: ast.Attribute, owner: Value, api: str) -> None:
        line, column = node.lineno, node.col_offset
        if owner.__class__ is not Api or node.end_lineno != line:
            line = node.end_lineno or line
            column = (node.end_col_offset or 0) - len(node.attr)
        how = ATTRIBUTE if owner.__class__ is Tensor else REFERENCE
        self.record(line, column, api, how, node)

    def _of_unknown(self, node: ast.Attribute) -> Value:
        """An attribute, not called, of something unknown."""
        if node.attr in behaviour.TELLING_ATTRIBUTES:
            self._record_attribute(node, TENSOR, f"torch.Tensor.{node.attr}")
            return PLAIN
        if node.attr == "shape":
            how = UNSURE if self.state.has_arrays else ATTRIBUTE
            line = node.end_lineno or node.lineno
            column = (node.end_col_offset or 0) - len(node.attr)
            self.record(line, column, "torch.Tensor.shape", how, node)
            return values.SHAPE
        return None

    def constant(self, node: ast.Constant) -> Value:
        """A number or a string; None tells nothing, for it is often what comes before a tensor."""
        if node.value is None:
            return None
        return NO if node.value is False else PLAIN

    def sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        """A display; with a star in it the positions are not known."""
        visit = self.visit
        parts = [visit(item) for item in node.elts]
        if not parts:
            return SOME_ITEMS
        if any(item.__class__ is ast.Starred for item in node.elts):
            return Items(join_all(parts))
        return Items(join_all(parts), tuple(parts))

    def starred(self, node: ast.Starred) -> Value:
        """`*value`."""
        return element(self.visit(node.value))

    def dictionary(self, node: ast.Dict) -> Value:
        """A dictionary by its values."""
        for key in node.keys:
            if key is not None:
                self.visit(key)
        held = [self.visit(value) for value in node.values]
        numbers = {
            key.value
            for key, value in zip(node.keys, held, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and value in (PLAIN, NO)
        }
        return Mapping(join_all(held), frozenset(numbers))

    def binary(self, node: ast.BinOp) -> Value:
        """Arithmetic: a tensor where either side is one."""
        left, right = self.visit(node.left), self.visit(node.right)
        if node.op.__class__ in _BITWISE:
            self.bitwise(node, (left, right))
            if left is MASK and right is MASK:
                return MASK
        self.computed(node, left, right)
        if node.op.__class__ in (ast.Add, ast.Mult):
            if left.__class__ is Items and right.__class__ is Tensor:
                return Items(left.item)  # as often as a tensor of one number says
        if left.__class__ is Tensor or right.__class__ is Tensor:
            return (
                PLAIN
                if node.left.__class__ in (ast.Constant, ast.JoinedStr)
                and (node.op.__class__ is ast.Mod)
                else TENSOR
            )
        if left.__class__ is Plain and right.__class__ is Plain:
            return COMPUTED if COMPUTED in (left, right) else PLAIN
        if left.__class__ is Items and node.op.__class__ in (ast.Add, ast.Mult):
            if right.__class__ is Items:
                return Items(join(left.item, right.item))
            return Items(left.item)
        return None

    def unary(self, node: ast.UnaryOp) -> Value:
        """`-x`, `~x`, `not x`."""
        value = self.visit(node.operand)
        if node.op.__class__ is ast.Not:
            return COMPUTED if value is COMPUTED or value.__class__ is Tensor else PLAIN
        if node.op.__class__ is ast.Invert:
            self.bitwise(node, (value,))
            if value.__class__ is Tensor:
                return MASK if value is MASK else INVERTED
        return TENSOR if value.__class__ is Tensor else value

    def bitwise(self, node: ast.BinOp | ast.UnaryOp, operands: tuple[Value, ...]) -> None:
        """Called for `~x`, `x & y`, `x << y`; a reader that converts keeps what they work on."""

    def computed(self, node: ast.BinOp, left: Value, right: Value) -> None:
        """Called for `x + y` and all other operators."""

    def boolean(self, node: ast.BoolOp) -> Value:
        """`a and b`: either value."""
        found = self.visit(node.values[0])
        for value in node.values[1:]:
            found = self.either(found, self.visit(value))
        return found

    def compare(self, node: ast.Compare) -> Value:
        """A comparison: of tensors it is a tensor, except by identity and membership."""
        found = [self.visit(node.left), *[self.visit(item) for item in node.comparators]]
        if node.ops[0].__class__ in _IDENTITY:
            return PLAIN
        if any(value.__class__ is Tensor for value in found):
            return MASK
        return COMPUTED if COMPUTED in found else PLAIN

    def conditional(self, node: ast.IfExp) -> Value:
        """`a if test else b`."""
        test = self.visit(node.test)
        self.state.listener.condition(node, test)
        saved = self.narrow(node.test, positive=True)
        body = self.visit(node.body)
        self.state.env.update(saved)
        saved = self.narrow(node.test, positive=False)
        other = self.visit(node.orelse)
        self.state.env.update(saved)
        return self.either(body, other)

    def narrow(self, test: ast.expr, *, positive: bool) -> dict[str, Value]:
        """Refine what `isinstance` tells of a name; returns what to put back afterwards."""
        if test.__class__ is ast.BoolOp and positive:
            if test.op.__class__ is ast.And:
                saved: dict[str, Value] = {}
                for item in test.values:
                    for key, value in self.narrow(item, positive=True).items():
                        saved.setdefault(key, value)
                return saved
        if test.__class__ is ast.UnaryOp and test.op.__class__ is ast.Not:
            return self.narrow(test.operand, positive=not positive)
        return self._narrow_call(test, positive) if test.__class__ is ast.Call else {}

    def _narrow_call(self, test: ast.Call, positive: bool) -> dict[str, Value]:
        if not test.args or test.args[0].__class__ is not ast.Name:
            return {}
        subject: str = test.args[0].id
        function = test.func
        found: Value = None
        if function.__class__ is ast.Name and function.id == "isinstance" and len(test.args) == 2:
            before = len(self.state.uses)
            found = self.annotation_value(test.args[1])
            del self.state.uses[before:]
        elif function.__class__ is ast.Attribute and function.attr == "is_tensor":
            found = TENSOR
        if found is None:
            return {}
        current = self.state.env[subject]
        if (found.__class__ is Items and current.__class__ is Items) is positive:
            return {}
        self.state.env[subject] = found if positive else None  # no list: one thing of any kind
        return {subject: current}

    def subscript(self, node: ast.Subscript) -> Value:
        """`value[index]`."""
        owner = self.visit(node.value)
        index = node.slice
        kind = owner.__class__
        if kind is Tensor and isinstance(getattr(index, "value", None), str):
            return self._of_tensors(node.value, owner)
        if kind is Tensor:
            bounds = self._bounds(index)
            self.state.listener.subscript(node, owner, bounds)
            return VIEW if MASKS.isdisjoint(bounds) else RAGGED
        if index.__class__ is ast.Slice:
            self.children(index)
            return Items(owner.item) if kind is Items else owner  # type: ignore[union-attr]
        position = _integer(index)
        if position is not None:
            return owner.item if kind is Mapping else part(owner, position)  # type: ignore[union-attr]
        found = self.visit(index)
        if kind is Made or owner is None:
            self.picked(node, owner, found)
        if kind is Mapping:
            is_number = getattr(index, "value", None) in owner.numbers  # type: ignore[union-attr]
            return None if is_number else owner.item  # type: ignore[union-attr]
        if kind in (Api, ClassInfo, FunctionInfo, Foreign):
            return owner
        if kind is Made and owner.api == "torch.nn.ParameterDict":  # type: ignore[union-attr]
            return PARAMETER
        return element(owner)

    def picked(self, node: ast.Subscript, owner: Value, index: Value) -> None:
        """An element of what is unknown, or an instance of torch's, is taken by no literal."""

    def _of_tensors(self, node: ast.expr, owner: Value) -> Value:
        """What was taken for a tensor, as the argument of a forward is, is a dictionary of them."""
        if isinstance(node, ast.Name):
            scope = self.state.env
            while node.id not in scope and scope.outer is not None:
                scope = scope.outer  # a comprehension's own scope ends with it
            scope[node.id] = Mapping(owner)
        return owner

    def _bounds(self, index: ast.expr) -> list[Value]:
        """The values of an index into a tensor: of each position, or of a slice's bounds."""
        items = index.elts if isinstance(index, ast.Tuple) else [index]
        found: list[Value] = []
        for item in items:
            if isinstance(item, ast.Slice):
                found += [
                    self.visit(bound)
                    for bound in (item.lower, item.upper, item.step)
                    if bound is not None
                ]
            else:
                found.append(self.visit(item))
        return found

    def formatted(self, node: ast.JoinedStr) -> Value:
        """An f-string."""
        for item in node.values:
            if item.__class__ is ast.FormattedValue:
                self.visit(item.value)
        return PLAIN

    def function(self, node: ast.Lambda) -> Value:
        """A lambda is read where it stands, with its parameters unknown."""
        arguments = node.args
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            if default is not None:
                self.visit(default)
        outer = self.state.env
        self.state.env = Scope(outer)
        for parameter in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            self.state.env[parameter.arg] = None
        result = self.visit(node.body)
        self.state.env = outer
        return Returns(result)

    def comprehension(self, node: Any) -> Value:
        """A comprehension or generator; its variables stay inside it."""
        outer = self.state.env
        self.state.env = Scope(outer)
        for generator in node.generators:
            self.bind(generator.target, element(self.visit(generator.iter)))
            for test in generator.ifs:
                self.visit(test)
        if node.__class__ is ast.DictComp:
            self.visit(node.key)
            found: Value = Mapping(self.visit(node.value))
        else:
            found = Items(self.visit(node.elt))
        self.state.env = outer
        return found

    def named(self, node: ast.NamedExpr) -> Value:
        """`(name := value)`."""
        value = self.visit(node.value)
        self.bind(node.target, value)
        return value

    def call(self, node: ast.Call) -> Value:
        """A call; the use of its function becomes a call."""
        uses = self.state.uses
        before = len(uses)
        function = node.func
        if function.__class__ is ast.Attribute:
            value, owner = self._method(function)
        else:
            value, owner = self.visit(function), None
        at = len(uses) - 1
        is_use = at >= before and value.__class__ is Api
        visit = self.visit
        arguments = [visit(item) for item in node.args]
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            keywords[keyword.arg or "**"] = visit(keyword.value)
        if is_use and uses[at][2] == value.name:  # type: ignore[union-attr]
            line, column, api, how = uses[at]
            if how is not UNSURE:
                uses[at] = (line, column, api, CALL)
        if value.__class__ is Plain and getattr(function, "attr", "")[-1:] == "_":
            value = owner = None  # no number has such a method
        if value is None and function.__class__ is ast.Attribute and owner is None:
            return self.unknown_method(node, function, arguments, keywords)
        if owner.__class__ is Instance and owner.is_guess:
            self.unsure_method(node, function, keywords)  # type: ignore[arg-type]
        return self.called(node, value, owner, arguments, keywords)

    def _method(self, node: ast.Attribute) -> tuple[Value, Value]:
        """The function of a call that stands behind a dot, with what stands before it."""
        owner = self._owner(node.value)
        found = self.member(owner, node.attr)
        if found.__class__ is Api:
            self._record_attribute(node, owner, found.name)
        elif owner.__class__ is Tensor and node.attr in _OF_DICTIONARIES:
            self._of_tensors(node.value, owner)
            owner = Mapping(owner)
            found = self.member(owner, node.attr)
        return found, owner


def _integer(node: ast.expr) -> int | None:
    if node.__class__ is ast.Constant:
        return node.value if node.value.__class__ is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _integer(node.operand)
        return None if inner is None else -inner
    return None


Handler = Callable[[Any, Any], Value]
HANDLERS: dict[type, Handler] = {
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.Constant: Expressions.constant,
    ast.Call: Expressions.call,
    ast.Tuple: Expressions.sequence,
    ast.List: Expressions.sequence,
    ast.Set: Expressions.sequence,
    ast.Starred: Expressions.starred,
    ast.Dict: Expressions.dictionary,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.BoolOp: Expressions.boolean,
    ast.Compare: Expressions.compare,
    ast.IfExp: Expressions.conditional,
    ast.Subscript: Expressions.subscript,
    ast.JoinedStr: Expressions.formatted,
    ast.Lambda: Expressions.function,
    ast.ListComp: Expressions.comprehension,
    ast.SetComp: Expressions.comprehension,
    ast.GeneratorExp: Expressions.comprehension,
    ast.DictComp: Expressions.comprehension,
    ast.NamedExpr: Expressions.named,
}
