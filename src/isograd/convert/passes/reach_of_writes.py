"""Findings about writes that do not reach every alias of a tensor."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.aliases import Function
from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.origins import Reach, Sight, origin_of_write, rearranged
from isograd.convert.tree import (
    names_of,
)

_LOST = "{0} and {1} share memory in torch; this change does not reach {1} in MindSpore"
LOST_ADVICE = "Write to the tensor itself: x[…] = …, or bind the new values and use them."
_CALLERS = "{0} is a view of an argument, and this change does not reach the caller's tensor"
_INPUT = "forward changes its input {0}, in torch for its caller as well; the port does not"
_LONGEST_SHOWN = 60


def write_view(
    view: ast.expr, key: str, code: str, node: ast.expr | ast.stmt, file: FileEdit
) -> bool:
    """`x.view(-1)[0] = 5`, by the places of a view's elements; False: it is not known by them."""
    root = rearranged(view, file.views)
    if root is None or origin_of_write(view, file.views)[1] is not Reach.LOST:
        return False
    function = function_of(node, file)
    if function is not None:
        if function.is_container(root.id):
            return False
        sight = function.sight(root.id, node, is_whole=False)
        if sight.reach is Reach.LOST:
            tell(sight, root.id, node, file)
    taken = f"lambda {root.id}: {file.source(view)}"
    call = file.name("composites.put_view")
    layout.write_statement(file, node, f"{call}({root.id}, {taken}, {key}, {code})")
    return True


def tell_lost(target: ast.expr, node: ast.AST, file: FileEdit) -> bool:
    """Tell a change of a view that has no name, if its tensor has one; whether it was told."""
    root, reach = origin_of_write(target, file.views)
    if reach is not Reach.LOST or not isinstance(root, (ast.Name, ast.Attribute)):
        return False
    message = _LOST.format(_shown(target), _shown(root))
    file.finding(node, "in-place-view", message, LOST_ADVICE)
    return True


def _shown(node: ast.expr) -> str:
    """An expression in a message: on one line, its end if it is long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def tell(sight: Sight, name: str, node: ast.AST, file: FileEdit) -> None:
    """Tell a change that a port cannot make visible where torch does."""
    function = function_of(node, file)
    if function is not None and function.is_copied_back(name, sight.name, node):
        return
    if sight.name:
        file.finding(node, "in-place-view", _LOST.format(name, sight.name), LOST_ADVICE)
    else:
        message = _CALLERS.format(name)
        file.finding(node, "in-place-view", message, LOST_ADVICE, level=Level.LOOK)


def tell_if_lost(name: str, node: ast.AST, file: FileEdit) -> None:
    sight = sight_of(name, node, file)
    if sight.reach is Reach.LOST:
        tell(sight, name, node, file)


def function_of(node: ast.AST, file: FileEdit) -> Function | None:
    """The bindings of the function around a node; None outside of one."""
    around = file.tree.function(node)
    if around is None:
        return None
    if around not in file.functions:
        held = file.held_data.values
        file.functions[around] = Function(around, file.tree, file.views, held)
    return file.functions[around]


def sight_of(name: str, node: ast.AST, file: FileEdit) -> Sight:
    """Who sees the tensor that a name holds, beside the name itself."""
    function = function_of(node, file)
    if function is None:
        shared = _is_alias(name, file.tree.module) or is_bound_by_loop(name, file.tree.module)
        return Sight(Reach.SHARED if shared else Reach.ALONE)
    sight = function.sight(name, node)
    is_input = sight.is_argument and sight.reach is Reach.SHARED
    if is_input and _is_in_forward(node, file):
        message = _INPUT.format(name)
        file.finding(node, "in-place-input", message, level=Level.LOOK)
        return Sight(Reach.ALONE)
    return sight


def _is_in_forward(node: ast.AST, file: FileEdit) -> bool:
    """Whether a node stands in the forward method of a class.

    Its inputs are seldom read by others afterwards, and MindSpore refuses to write into the inputs
    of a function that it differentiates.
    """
    function = file.tree.function(node)
    if function is None:
        return False
    is_method = isinstance(file.tree.parents.get(function), ast.ClassDef)
    return is_method and "forward" in function.name


def is_bound_by_loop(name: str, function: ast.AST) -> bool:
    return any(
        isinstance(node, (ast.For, ast.comprehension)) and name in names_of(node.target)
        for node in ast.walk(function)
    )


def _is_alias(name: str, function: ast.AST) -> bool:
    """Whether the name was bound to something that another name holds."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            if any(isinstance(part, ast.Name) and part.id == name for part in node.targets):
                if isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
                    return True
    return False
