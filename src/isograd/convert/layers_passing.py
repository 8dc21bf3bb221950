"""Layers that may return what they are called with: dropout in evaluation, Identity, DropPath."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set
from typing import TypeGuard

from isograd.convert.tree import Tree
from isograd.static_graph.scope import below

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


def calls_that_pass(
    tree: Tree, named: Mapping[ast.AST, str], bound: Mapping[tuple[ast.AST, str], list[ast.expr]]
) -> dict[ast.AST, str]:
    """What is called in `self.drop(x)` of such layers, with the function that it means.

    What any branch makes of an attribute or of a name counts; `nn.Identity()(x)` is one, too.
    named: the torch APIs that names and attributes of the file mean.  bound: what the classes'
    attributes are bound to (`tree.attribute_values`).
    """
    own = {node.name for node in tree.module.body if _returns_its_input(node)}
    layers = {
        key: function
        for key, values in bound.items()
        for value in values
        if (function := _function_of(value, named, own))
    }
    names = {
        (tree.scope(node), target.id): function
        for node in tree.of(ast.Assign)
        if (function := _function_of(node.value, named, own))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[ast.AST, str] = {}
    for node in tree.of(ast.Call):
        called = node.func
        if isinstance(called, ast.Call) and (function := _function_of(called, named, own)):
            found[called] = function
        elif names and isinstance(called, ast.Name):
            outer = names.get((tree.module, called.id), "")
            if function := names.get((tree.scope(called), called.id), outer):
                found[called] = function
        elif layers and isinstance(called, ast.Attribute) and _is_own(called):
            for owner in tree.above(node):
                if (owner, called.attr) in layers:
                    found[called] = layers[owner, called.attr]
    return found


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _returns_its_input(node: ast.AST) -> TypeGuard[ast.ClassDef]:
    """Whether a class's `forward(self, x)` says `return x` somewhere and never binds x anew."""
    for part in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(part, ast.FunctionDef) and part.name == "forward" and part.args.args[1:]:
            name = part.args.args[1].arg
            inside = below(part)
            read = [one for one in inside if isinstance(one, ast.Name) and one.id == name]
            returned = [one.value for one in inside if isinstance(one, ast.Return)]
            is_one = all(isinstance(one.ctx, ast.Load) for one in read)
            return is_one and any(one in read for one in returned)
    return False


def _function_of(node: ast.expr, named: Mapping[ast.AST, str], own: Set[str]) -> str:
    """What a layer that is made here means; empty for all others."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Name) and node.func.id in own:
        return _AS_FUNCTION["torch.nn.Identity"]
    api = named.get(node.func, "")
    if api == _SEQUENTIAL and not node.args and not node.keywords:
        return _AS_FUNCTION["torch.nn.Identity"]
    return _AS_FUNCTION.get(api, "")
