"""Layers that may return what they are called with: dropout in evaluation, Identity, DropPath."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from typing import TypeGuard

from isograd.convert.tree import Tree

#: The function whose result is as much one with its argument as the layer's is.
_AS_FUNCTION = {
    "torch.nn.Identity": "torch.nn.functional.dropout",
    "torch.nn.Dropout": "torch.nn.functional.dropout",
    "torch.nn.Dropout1d": "torch.nn.functional.dropout",
    "torch.nn.Dropout2d": "torch.nn.functional.dropout",
    "torch.nn.Dropout3d": "torch.nn.functional.dropout",
    "torch.nn.AlphaDropout": "torch.nn.functional.dropout",
    "torch.nn.FeatureAlphaDropout": "torch.nn.functional.dropout",
    "torch.nn.Flatten": "torch.flatten",
    "torch.nn.Unflatten": "torch.unflatten",
}
_SEQUENTIAL = "torch.nn.Sequential"


def calls_that_pass(tree: Tree, named: Mapping[ast.AST, str]) -> dict[ast.AST, str]:
    """What is called in `self.drop(x)` of such layers, with the function that it stands for.

    Attributes are taken by their class, or one that it stands in: what any branch makes of them
    counts.  named: the torch APIs that names and attributes of the file stand for.
    """
    layers: dict[tuple[ast.AST, str], str] = {}
    own = {node.name for node in tree.module.body if _returns_its_input(node)}
    for node in tree.of(ast.Call):
        function = _function_of(node, named, own)
        if function:
            for attribute in _bound_to(node, tree):
                for owner in tree.above(node):
                    if isinstance(owner, ast.ClassDef):
                        layers[owner, attribute] = function
    found: dict[ast.AST, str] = {}
    for node in tree.of(ast.Call) if layers else ():
        called = node.func
        if isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == "self":
            for owner in tree.above(node):
                if (owner, called.attr) in layers:
                    found[called] = layers[owner, called.attr]
    return found


def _returns_its_input(node: ast.AST) -> TypeGuard[ast.ClassDef]:
    """Whether a class's `forward(self, x)` says `return x` somewhere and never binds x anew."""
    for part in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(part, ast.FunctionDef) and part.name == "forward" and part.args.args[1:]:
            name = part.args.args[1].arg
            inside = list(ast.walk(part))
            read = [one for one in inside if isinstance(one, ast.Name) and one.id == name]
            returned = [one.value for one in inside if isinstance(one, ast.Return)]
            is_one = all(isinstance(one.ctx, ast.Load) for one in read)
            return is_one and any(one in read for one in returned)
    return False


def _function_of(node: ast.Call, named: Mapping[ast.AST, str], own: Set[str]) -> str:
    """What a layer that is made here stands for; empty for all others."""
    if isinstance(node.func, ast.Name) and node.func.id in own:
        return _AS_FUNCTION["torch.nn.Identity"]
    api = named.get(node.func, "")
    if api == _SEQUENTIAL and not node.args and not node.keywords:
        return _AS_FUNCTION["torch.nn.Identity"]
    return _AS_FUNCTION.get(api, "")


def branches_of(value: ast.expr) -> list[ast.expr]:
    """What an expression may be: `f() if x else g()` either."""
    if isinstance(value, ast.IfExp):
        return [*branches_of(value.body), *branches_of(value.orelse)]
    if isinstance(value, ast.BoolOp):
        return [part for one in value.values for part in branches_of(one)]
    return [value]


def _bound_to(node: ast.Call, tree: Tree) -> Iterator[str]:
    """The attributes to which a call's value may be bound: `self.a = f() if x else g()`."""
    value: ast.AST = node
    parent = tree.parents.get(value)
    while isinstance(parent, (ast.IfExp, ast.BoolOp)):
        value, parent = parent, tree.parents.get(parent)
    if isinstance(parent, ast.Assign):
        for target in parent.targets:
            if isinstance(target, ast.Attribute):
                yield target.attr
