"""Detectors of what construct keeps on self or in an object of its own."""

from __future__ import annotations

import ast
from collections.abc import Callable

from isograd.static_graph.detectors.common import CHANGES, Found, is_known
from isograd.static_graph.scope import (
    BUFFER,
    CELL,
    DICT,
    LIST,
    NUMBER,
    PARAMETER,
    SEQUENCE,
    below,
    is_self_attribute,
)
from isograd.static_graph.values import Locals


def attribute_of_another(own: Locals) -> Found:
    """`self.sub.flag = …`."""
    for node in own.all(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and is_self_attribute(target.value):
                if own.of(target.value) in (CELL, SEQUENCE):
                    yield node


def class_method(own: Locals) -> Found:
    """`self.helper(…)` of a classmethod."""
    for node in own.all(ast.Call):
        if is_self_attribute(node.func):
            assert isinstance(node.func, ast.Attribute)
            method = own.file.method(own.cls, node.func.attr)
            names = [own.file.qualified(d) for d in method.decorator_list] if method else []
            if "builtins.classmethod" in names:
                yield node


def self_renamed(own: Locals) -> Found:
    """`def construct(me, x)`, or a method that construct calls."""
    arguments = [*own.function.args.posonlyargs, *own.function.args.args]
    plain = ("staticmethod", "classmethod")
    decorators = [own.file.qualified(d) for d in own.function.decorator_list]
    is_static = any(name.removeprefix("builtins.") in plain for name in decorators)
    if own.cls and not is_static and arguments and arguments[0].arg != "self":
        yield own.function


def self_new(own: Locals) -> Found:
    """`self.fresh = …` where nothing made it before."""
    return (node for node, name in own.self_targets if not is_known(own, name))


def _kept(own: Locals, is_wanted: Callable[[str, ast.stmt], bool]) -> Found:
    for node, name in own.self_targets:
        kind = own.file.attribute(own.cls, name)
        if is_known(own, name) and kind not in (PARAMETER, BUFFER) and is_wanted(kind, node):
            yield node


def self_counter(own: Locals) -> Found:
    """`self.n = self.n + 1`."""
    return _kept(own, lambda kind, node: kind == NUMBER)


def self_cache(own: Locals) -> Found:
    """`if self.pe is None: self.pe = …`."""
    if not own.self_targets:
        return iter(())
    guarded = {
        id(inner)
        for node in own.all(ast.If)
        if _asks_self(node.test)
        for part in node.body
        for inner in below(part)
    }
    return _kept(own, lambda kind, node: kind != NUMBER and id(node) in guarded)


def _asks_self(test: ast.expr) -> bool:
    return any(is_self_attribute(n) for n in below(test))


def self_kept(own: Locals) -> Found:
    """`self.last = tensor`."""
    caches = {id(node) for node in self_cache(own)}
    return _kept(own, lambda kind, node: kind != NUMBER and id(node) not in caches)


def self_container(own: Locals) -> Found:
    """`self.log.append(…)`, `self.cache['k'] = …`."""
    for node in own.all(ast.Call):
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in CHANGES and is_self_attribute(node.func.value):
                if own.of(node.func.value) == LIST:
                    yield node
    for assignment in own.all(ast.Assign):
        for target in assignment.targets:
            if isinstance(target, ast.Subscript) and is_self_attribute(target.value):
                if own.of(target.value) in (LIST, DICT):
                    yield assignment


def slice_in_list(own: Locals) -> Found:
    """`s[1] = slice(0, 2)` of a list."""
    for node in own.all(ast.Assign):
        if isinstance(node.value, ast.Call):
            if own.file.qualified(node.value.func) == "builtins.slice":
                if any(
                    isinstance(t, ast.Subscript) and own.of(t.value) == LIST for t in node.targets
                ):
                    yield node
