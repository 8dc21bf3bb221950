"""Reads statements: bindings, branches, functions and classes, in the order of the file."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from isograd.scan.functions import Functions
from isograd.scan.imports import bind_from_import, bind_import
from isograd.scan.values import (
    TENSOR,
    VIEW,
    Api,
    ClassInfo,
    FunctionInfo,
    Instance,
    Items,
    Made,
    Mapping,
    Plain,
    Tensor,
    Value,
    element,
    join,
)

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Statements(Functions):
    """Walks the statements of modules, classes and functions.

    assigned: the expression whose value was bound last.
    """

    assigned: ast.expr | None = None

    def body(self, statements: Iterable[ast.stmt]) -> None:
        """Read statements one after the other."""
        handlers = STATEMENTS
        for statement in statements:
            handler = handlers.get(statement.__class__)
            if handler is not None:
                handler(self, statement)

    def expression(self, node: ast.Expr) -> None:
        """An expression whose value is not kept; a docstring costs nothing."""
        if node.value.__class__ is not ast.Constant:
            self.state.listener.dropped = node.value
            self.visit(node.value)

    def assign(self, node: ast.Assign) -> None:
        """`a = b = value`."""
        value = self.visit(node.value)
        self.assigned = node.value
        for target in node.targets:
            if value is VIEW and self._is_only_name(target, node.value):
                value = TENSOR
            self.bind(target, value)

    def _is_only_name(self, target: ast.expr, made: ast.expr) -> bool:
        """Whether a view has no other name: `x = x.view(…)`, `x = torch.ones(…).view(…)`."""
        root: ast.expr | None = made
        while isinstance(root, (ast.Call, ast.Attribute, ast.Subscript)):
            root = root.func if isinstance(root, ast.Call) else root.value
        if not isinstance(root, ast.Name) or not isinstance(target, ast.Name):
            return False
        return root.id == target.id or isinstance(self.state.env[root.id], Api)

    def assign_annotated(self, node: ast.AnnAssign) -> None:
        """`name: type = value`; the annotation wins where it tells something."""
        declared = self.annotation_value(node.annotation)
        value = self.visit(node.value) if node.value is not None else None
        if value.__class__ is Plain and declared is not None:
            value = None
        found = declared if value is None else value
        if node.value is not None or declared is not None:
            self.bind(node.target, found)

    def assign_augmented(self, node: ast.AugAssign) -> None:
        """`name += value`."""
        target = node.target
        before = self.visit(target)
        value = self.visit(node.value)
        if before.__class__ is Tensor:
            self.state.listener.in_place(node, before)
        elif target.__class__ is ast.Name:
            if value.__class__ is Tensor:
                self.added(node.value, value)
                self.bind(target, value)
            elif before.__class__ is Items and value.__class__ is Items:
                self.bind(target, Items(join(before.item, value.item)))
        elif target.__class__ is ast.Attribute:
            self.changed(target)

    def added(self, node: ast.expr, value: Value) -> None:
        """A tensor that `+=` adds to something unknown."""

    def changed(self, target: ast.Attribute) -> None:
        """An attribute of anything but a tensor that `+=` changes."""

    def bind(self, target: ast.expr, value: Value) -> None:
        """Give a value to a name, an attribute of self, or the parts of a tuple."""
        kind = target.__class__
        if kind is ast.Name:
            self.state.env[target.id] = value  # type: ignore[attr-defined]
        elif kind is ast.Attribute:
            self._bind_attribute(target, value)  # type: ignore[arg-type]
        elif kind is ast.Subscript:
            self._bind_item(target, value)  # type: ignore[arg-type]
        elif kind in (ast.Tuple, ast.List):
            self._bind_parts(target.elts, value)  # type: ignore[attr-defined]
        elif kind is ast.Starred:
            self.bind(target.value, Items(element(value)))  # type: ignore[attr-defined]

    def _bind_parts(self, targets: list[ast.expr], value: Value) -> None:
        parts = value.parts if isinstance(value, Items) else None
        if parts is not None and len(parts) == len(targets):
            for target, item in zip(targets, parts, strict=True):
                self.bind(target, item)
            return
        item = element(value)
        for target in targets:
            self.bind(target, Items(item) if target.__class__ is ast.Starred else item)

    def _bind_attribute(self, target: ast.Attribute, value: Value) -> None:
        owner = self._owner(target.value)
        if owner.__class__ is Instance:
            info: ClassInfo = owner.of
            info.attributes[target.attr] = join(info.attributes.get(target.attr), value)
            self.state.listener.attribute_set(target, info, target.attr, value)
        elif owner.__class__ is Tensor or (owner.__class__ is Api and target.attr != "__class__"):
            self.attribute(target)

    def _bind_item(self, target: ast.Subscript, value: Value) -> None:
        owner = self.visit(target)
        del owner
        base = target.value
        if base.__class__ is ast.Name:
            held = self.state.env[base.id]
            if isinstance(held, Mapping):
                self.state.env[base.id] = dataclasses.replace(held, item=join(held.item, value))

    def branch(self, node: ast.If) -> None:
        """`if`: both branches, then what is known after either."""
        test = self.visit(node.test)
        self.state.listener.condition(node, test)
        before = self.state.env.copy()
        self.narrow(node.test, positive=True)
        self.body(node.body)
        after = self.state.env
        self.state.env = before
        self.narrow(node.test, positive=False)
        if node.orelse:
            self.body(node.orelse)
        if node.body[-1].__class__ in _LEAVES:
            return
        if node.orelse and node.orelse[-1].__class__ in _LEAVES:
            self.state.env = after
            return
        env = self.state.env
        for name, value in after.items():
            known = env[name]
            if known is not value:
                is_bound = known is not None or name in env
                env[name] = self.either(known, value) if is_bound else value

    def loop(self, node: ast.For | ast.AsyncFor) -> None:
        """`for`: its variable is an element of what it runs over."""
        self.bind(node.target, element(self.visit(node.iter)))
        self.body(node.body)
        self.body(node.orelse)

    def while_loop(self, node: ast.While) -> None:
        """`while`."""
        self.state.listener.condition(node, self.visit(node.test))
        self.body(node.body)
        self.body(node.orelse)

    def with_block(self, node: ast.With | ast.AsyncWith) -> None:
        """`with`: the target is what the manager gives; it is not known."""
        for item in node.items:
            value = self.visit(item.context_expr)
            if item.optional_vars is not None:
                kept = value if value.__class__ in (Made, Instance) else None
                self.bind(item.optional_vars, kept)
        self.body(node.body)

    def guarded(self, node: Any) -> None:
        """`try`."""
        self.body(node.body)
        for handler in node.handlers:
            if handler.type is not None:
                self.visit(handler.type)
            self._body_of_handler(handler)
        self.body(node.orelse)
        self.body(node.finalbody)

    def _body_of_handler(self, handler: ast.ExceptHandler) -> None:
        """What a handler binds does not replace what the guarded block bound."""
        before = dict(self.state.env)
        self.body(handler.body)
        env = self.state.env
        for name, value in before.items():
            if value is not None:
                env[name] = value

    def returned(self, node: ast.Return) -> None:
        """`return value`."""
        if node.value is None:
            return
        value = self.visit(node.value)
        if self.state.functions:
            function = self.state.functions[-1]
            if not function.is_annotated or function.result is None:
                is_unknown = value is None and node.value.__class__ is not ast.Constant
                function.is_unclear = function.is_unclear or is_unknown
                found = join(function.result, value)
                # One tuple among returns that are not known does not make the result a tuple.
                is_tuple = found.__class__ is Items and function.is_unclear
                function.result = None if is_tuple else found

    def raised(self, node: ast.Raise) -> None:
        """`raise error`."""
        for item in (node.exc, node.cause):
            if item is not None:
                self.visit(item)

    def asserted(self, node: ast.Assert) -> None:
        """`assert test`, which may tell a type."""
        self.visit(node.test)
        if node.msg is not None:
            self.visit(node.msg)
        self.narrow(node.test, positive=True)

    def deleted(self, node: ast.Delete) -> None:
        """`del name`."""
        for target in node.targets:
            if target.__class__ is not ast.Name:
                self.visit(target)

    def imported(self, node: ast.Import) -> None:
        """`import a.b as c`."""
        bind_import(self.state, node)

    def imported_from(self, node: ast.ImportFrom) -> None:
        """`from a import b`."""
        bind_from_import(self.state, node)

    def matched(self, node: ast.Match) -> None:
        """`match`."""
        self.visit(node.subject)
        for case in node.cases:
            if case.guard is not None:
                self.visit(case.guard)
            self.body(case.body)

    def function_made(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A function: its signature now, its body when it is called or the scope ends."""
        self.declare_function(node, None)


STATEMENTS: dict[type, Callable[[Any, Any], None]] = {
    ast.Expr: Statements.expression,
    ast.Assign: Statements.assign,
    ast.AnnAssign: Statements.assign_annotated,
    ast.AugAssign: Statements.assign_augmented,
    ast.If: Statements.branch,
    ast.For: Statements.loop,
    ast.AsyncFor: Statements.loop,
    ast.While: Statements.while_loop,
    ast.With: Statements.with_block,
    ast.AsyncWith: Statements.with_block,
    ast.Try: Statements.guarded,
    ast.Return: Statements.returned,
    ast.Raise: Statements.raised,
    ast.Assert: Statements.asserted,
    ast.Delete: Statements.deleted,
    ast.Import: Statements.imported,
    ast.ImportFrom: Statements.imported_from,
    ast.Match: Statements.matched,
    ast.FunctionDef: Statements.function_made,
    ast.AsyncFunctionDef: Statements.function_made,
    ast.ClassDef: Statements.class_made,
}
if hasattr(ast, "TryStar"):
    STATEMENTS[ast.TryStar] = Statements.guarded

__all__ = ["FunctionInfo", "Statements"]
