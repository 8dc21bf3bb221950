"""Follows a program as far as its text tells: what it builds, feeds, trains, and with what loss.

Nothing is run.  Constants are computed, the user's functions are followed with the arguments that
they are called with, a loop's body is followed once.  What is not understood keeps its text, so
that a loss or an optimizer can be written down with the constants put in.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from isograd.init.apis import Apis
from isograd.init.coding import as_value, atom, subscript_text, text, with_names
from isograd.init.scopes import Found, Returned, Scope
from isograd.init.source import Source, bind_definition
from isograd.init.values import (
    MARK,
    Data,
    Defined,
    Instance,
    Known,
    Loss,
    Network,
    Output,
    Parts,
    Scalar,
    Tensor,
    Value,
)

_DEEPEST = 12
_MOST_STEPS = 200_000


class Reading:
    """Follows statements; what it sees is in `found`."""

    def __init__(self, source: Source, apis: Apis) -> None:
        from isograd.init.calling import Calls
        from isograd.init.classes import Classes

        self.source = source
        self.apis = apis
        self.found = Found()
        self.depth = 0
        self._steps = 0
        self.classes = Classes(self)
        self._calls = Calls(self)

    def follow_file(self) -> None:
        """Follow what runs when the file is started as a program."""
        top = Scope(self.source)
        top.names = self.source.names
        for statement in self.source.tree.body:
            if not isinstance(
                statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
            ):
                self.statement(statement, top)

    def placeholder(self, line: int = 0) -> Tensor:
        """A tensor of which nothing is known."""
        return self.note_tensor(Tensor(line=line))

    def note_tensor(self, tensor: Tensor) -> Tensor:
        """Number a tensor, so that it is known again in a loss."""
        tensor.code = MARK.format(len(self.found.tensors))
        self.found.tensors.append(tensor)
        return tensor

    # Statements

    def block(self, statements: list[ast.stmt], scope: Scope) -> None:
        """Follow statements in their order."""
        for statement in statements:
            self.statement(statement, scope)

    def statement(self, node: ast.stmt, scope: Scope) -> None:
        """Follow one statement."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            holder = Source(scope.source.path, scope.source.module, scope.source.tree)
            holder.neighbours = scope.source.neighbours
            bind_definition(holder, node)
            scope.names.update(holder.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            scope.names[node.name] = Defined(None, node, scope)
        elif isinstance(node, ast.Return):
            raise Returned(self.value(node.value, scope) if node.value else Known("None", None))
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._assign(node, scope)
        elif isinstance(node, ast.Expr):
            self.value(node.value, scope)
        else:
            self._compound(node, scope)

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, scope: Scope) -> None:
        if isinstance(node, ast.AugAssign):
            combined = ast.BinOp(_loaded(node.target), node.op, node.value)
            self.bind(node.target, self.value(ast.copy_location(combined, node), scope), scope)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.bind(node.target, self.value(node.value, scope), scope)
        else:
            value = self.value(node.value, scope)
            for target in node.targets:
                self.bind(target, value, scope)

    def _compound(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self.bind(node.target, self.iterated(self.value(node.iter, scope)), scope)
            self.block(node.body, scope)
        elif isinstance(node, ast.While):
            self.block(node.body, scope)
        elif isinstance(node, ast.If):
            test = self.value(node.test, scope)
            if isinstance(test, Known):
                self.block(node.body if test.value else node.orelse, scope)
            else:
                self.block(node.orelse, scope)
                self.block(node.body, scope)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                value = self.value(item.context_expr, scope)
                if item.optional_vars is not None:
                    self.bind(item.optional_vars, value, scope)
            self.block(node.body, scope)
        elif isinstance(node, ast.Try):
            self.block([*node.body, *node.orelse, *node.finalbody], scope)

    def bind(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Bind a name, an attribute, or each part of a tuple."""
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
            if scope.outer is None and scope.names is self.source.names:
                value.code = value.code and self._top_code(target.id, value)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value, scope)
            if isinstance(owner, Instance):
                owner.attributes[target.attr] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, part in enumerate(target.elts):
                inner = part.value if isinstance(part, ast.Starred) else part
                self.bind(inner, self.part(value, index), scope)

    def _top_code(self, name: str, value: Value) -> str | None:
        """A loss that stands at the top of a file is called by its name there."""
        return f"{self.source.module}.{name}" if isinstance(value, Loss) else value.code

    def part(self, value: Value, index: int) -> Value:
        """One part of a tuple."""
        if isinstance(value, Parts) and value.keys is None and index < len(value.items):
            return value.items[index]
        if isinstance(value, Known) and isinstance(value.value, (tuple, list)):
            if index < len(value.value):
                return Known(repr(value.value[index]), value.value[index])
        if isinstance(value, Output):
            return Output(f"{atom(value.code)}[{index}]" if value.code else None)
        if isinstance(value, Tensor):
            return self.placeholder(value.line)
        if isinstance(value, Data):
            return self.part(value.item, index)
        return Value(f"{atom(value.code)}[{index}]" if value.code else None)

    def iterated(self, value: Value) -> Value:
        """What the first turn of a loop gets."""
        if isinstance(value, Data):
            return value.item
        if isinstance(value, Parts) and value.items:
            return value.items[0] if value.keys is None else Known(None, value.keys[0])
        if isinstance(value, Known) and isinstance(value.value, (list, tuple, range)):
            return Known(None, value.value[0]) if len(value.value) else Value()
        return self.placeholder()

    # Expressions

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """What an expression is."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return Value()
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        found: Value | None = method(node, scope) if method is not None else None
        return self.expressed(node, scope) if found is None else found

    def expressed(self, node: ast.expr, scope: Scope) -> Value:
        """Something that is only its text."""
        return as_value(with_names(node, scope.lookup))

    def _constant(self, node: ast.Constant, scope: Scope) -> Value:
        return Known(repr(node.value), node.value)

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        found = scope.lookup(node.id)
        return Value(node.id) if found is None else found

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Value:
        return Defined(with_names(node, scope.lookup), node, scope)

    def _tuple(self, node: ast.Tuple | ast.List, scope: Scope) -> Value | None:
        if any(isinstance(part, ast.Starred) for part in node.elts):
            return None
        items = [self.value(part, scope) for part in node.elts]
        kind = tuple if isinstance(node, ast.Tuple) else list
        if all(isinstance(item, Known) for item in items):
            values = kind(item.value for item in items if isinstance(item, Known))
            return Known(repr(values), values)
        return Parts("", items, is_tuple=kind is tuple)

    _list = _tuple

    def _dict(self, node: ast.Dict, scope: Scope) -> Value:
        keys = [self.value(key, scope) for key in node.keys if key is not None]
        items = [self.value(part, scope) for part in node.values]
        names = [key.value for key in keys if isinstance(key, Known)]
        if len(names) != len(node.keys):
            return Value()
        if all(isinstance(item, Known) for item in items):
            known = dict(zip(names, [i.value for i in items if isinstance(i, Known)], strict=True))
            return Known(repr(known), known)
        return Parts("", items, names)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value | None:
        return self._calls.attribute(self.value(node.value, scope), node, scope)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value | None:
        owner, index = self.value(node.value, scope), self.value(node.slice, scope)
        if isinstance(index, Known):
            if isinstance(owner, Known):
                try:
                    inner = owner.value[index.value]
                except (LookupError, TypeError):
                    return Value()
                return Known(repr(inner), inner)
            if isinstance(owner, Parts):
                if owner.keys is not None:
                    if index.value in owner.keys:
                        return owner.items[owner.keys.index(index.value)]
                elif isinstance(index.value, int) and -len(owner.items) <= index.value < len(
                    owner.items
                ):
                    return owner.items[index.value]
            if isinstance(owner, Data) and not owner.is_batched:
                return owner.item
        if isinstance(owner, Tensor):
            if owner.shape and isinstance(index, Known) and isinstance(index.value, int):
                row = dataclasses.replace(owner, shape=owner.shape[1:], line=node.lineno)
                return self.note_tensor(row)
            return self.placeholder(node.lineno)
        return as_value(subscript_text(owner, node, scope.lookup))

    def _binop(self, node: ast.BinOp, scope: Scope) -> Value | None:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(left, Known) and isinstance(right, Known):
            return _computed(node, left.value, right.value)
        symbol = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[1:-1]
        ours, theirs = text(left), text(right)
        code = None if ours is None or theirs is None else f"(({ours}){symbol}({theirs}))"
        for side in (left, right):
            if isinstance(side, Scalar):
                return Scalar(code, side.kind, node.lineno)
        for side in (left, right):
            if isinstance(side, Tensor) and not isinstance(left, Output | Network):
                return dataclasses.replace(side, code=code)
        return as_value(code)

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Value | None:
        inner = self.value(node.operand, scope)
        if not isinstance(inner, Known):
            return None
        try:
            value = (
                not inner.value
                if isinstance(node.op, ast.Not)
                else -inner.value
                if isinstance(node.op, ast.USub)
                else inner.value
            )
        except TypeError:
            return None
        return Known(repr(value), value)

    def _compare(self, node: ast.Compare, scope: Scope) -> Value | None:
        left, right = self.value(node.left, scope), self.value(node.comparators[0], scope)
        if len(node.ops) != 1 or not isinstance(left, Known) or not isinstance(right, Known):
            return None
        equal = left.value == right.value
        if isinstance(node.ops[0], (ast.Eq, ast.Is)):
            return Known(repr(equal), equal)
        if isinstance(node.ops[0], (ast.NotEq, ast.IsNot)):
            return Known(repr(not equal), not equal)
        return None

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Value:
        test = self.value(node.test, scope)
        if isinstance(test, Known):
            return self.value(node.body if test.value else node.orelse, scope)
        self.value(node.body, scope)
        return self.value(node.orelse, scope)

    def _call(self, node: ast.Call, scope: Scope) -> Value | None:
        return self._calls.call(node, scope)

    # The user's functions

    def run(
        self, function: Any, scope: Any, positional: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """Follow a function with these arguments; what it returns."""
        if self.depth >= _DEEPEST:
            return Value()
        outer = scope if isinstance(scope, Scope) else None
        inner = Scope(outer.source if outer else scope, outer)
        if outer is None:
            inner.source = scope
        self._bind_arguments(function.args, inner, positional, keywords)
        if isinstance(function, ast.Lambda):
            return self.value(function.body, inner)
        self.depth += 1
        try:
            self.block(function.body, inner)
        except Returned as returned:
            return returned.value
        finally:
            self.depth -= 1
        return Known("None", None)

    def _bind_arguments(
        self,
        arguments: ast.arguments,
        scope: Scope,
        positional: list[Value],
        keywords: dict[str, Value],
    ) -> None:
        names = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip([a.arg for a in names][::-1], arguments.defaults[::-1], strict=False))
        defaults |= {
            a.arg: d
            for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if d is not None
        }
        for name, default in defaults.items():
            scope.names[name] = self.value(default, scope)
        for argument, value in zip(names, positional, strict=False):
            scope.names[argument.arg] = value
        known = {a.arg for a in (*names, *arguments.kwonlyargs)}
        scope.names.update({k: v for k, v in keywords.items() if k in known})
        given = set(scope.names)
        for argument in (*names, *arguments.kwonlyargs):
            if argument.arg not in given:
                scope.names[argument.arg] = self.placeholder()
        if arguments.vararg is not None:
            scope.names[arguments.vararg.arg] = Parts(None, positional[len(names) :])
        if arguments.kwarg is not None:
            rest = {k: v for k, v in keywords.items() if k not in known}
            scope.names[arguments.kwarg.arg] = Parts(None, list(rest.values()), list(rest))


def _loaded(node: ast.expr) -> ast.expr:
    made: ast.expr = ast.parse(ast.unparse(node), mode="eval").body
    return made


def _computed(node: ast.BinOp, left: Any, right: Any) -> Value | None:
    if isinstance(node.op, ast.Pow) and not (isinstance(right, int) and abs(right) < 64):
        if not isinstance(right, float):
            return None
    small = all(not isinstance(side, (str, list, tuple)) for side in (left, right))
    if isinstance(node.op, ast.Mult) and not small:
        return None  # a long repetition is no constant to compute
    expression = ast.Expression(
        ast.BinOp(ast.Name("a", ast.Load()), node.op, ast.Name("b", ast.Load()))
    )
    try:
        code = compile(ast.fix_missing_locations(expression), "<constant>", "eval")
        value = eval(code, {"__builtins__": {}}, {"a": left, "b": right})  # noqa: S307 - two constants
    except (TypeError, ValueError, ArithmeticError):
        return None
    return Known(repr(value), value)
