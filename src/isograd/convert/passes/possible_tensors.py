"""Whether a name of unknown kind may hold a tensor where `x += y` changes it."""

from __future__ import annotations

import ast

from isograd.convert.aliases import Scope
from isograd.convert.data_aliases import is_data
from isograd.convert.file import FileEdit
from isograd.convert.held_results import gives_held
from isograd.convert.indexes import parts_of
from isograd.convert.origins import Reach, argument_of_own
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.tree import defaults_of

#: What is added to lists and texts.
_DISPLAYED = (ast.List, ast.ListComp)
_PLAIN = (ast.List, ast.ListComp, ast.Tuple, ast.JoinedStr)


def may_be_tensor(target: ast.Name, node: ast.AugAssign, file: FileEdit) -> bool:
    """Whether what `x += y` changes may be a tensor; a counter or a size is not."""
    scope = scope_of(node, file)
    parameter = scope.parameters.get(target.id)
    if parameter is not None:
        is_tensor_like = parameter.annotation is None or "Tensor" in ast.dump(parameter.annotation)
        if not is_tensor_like or _has_plain_default(parameter, file.tree.function(node)):
            return False
    elif target.id not in scope.bound or _is_list(target.id, scope):
        return False
    is_element = scope.is_element(target.id) and not isinstance(node.value, ast.Constant)
    return (
        is_element
        or file.facts.is_tensor(node.value)
        or _is_of_torch(node.value, file)
        or _is_of_module(target.id, node.value, scope)
        or _is_of_state(target.id, node.value, scope)
        or _is_returned_argument(target.id, scope, file)
        or _is_used_as_tensor(target.id, node, file)
    )


def is_asked_for(name: str, function: Scope, file: FileEdit) -> bool:
    """Whether a name may hold a setting: `ratio = options.get("ratio")`."""
    values = function.values_of(name)
    if not values and name not in function.parameters and not function.is_element(name):
        return True  # a part of what is unpacked
    return any(gives_held(value, file.tree, file.views) for value in values)


def _is_of_module(name: str, added: ast.expr, function: Scope) -> bool:
    """Whether a name may hold what `self.block(x)` returned, or a slice of a tensor."""
    if isinstance(added, _PLAIN):
        return False
    waiting, known = [name], set[str]()
    while waiting:
        one = waiting.pop()
        known.add(one)
        for value in function.values_of(one):
            part = value
            while isinstance(part, ast.Subscript):
                if any(isinstance(index, ast.Slice) for index in parts_of(part.slice)):
                    return True
                part = part.value
            if isinstance(part, ast.Call) and _is_module(part.func, function):
                return True
            if isinstance(part, ast.Name) and part.id not in known:
                waiting.append(part.id)
    return False


def _is_list(name: str, scope: Scope) -> bool:
    """Whether a name is bound to lists alone that are written out, which `+=` makes longer."""
    values = scope.values_of(name)
    return bool(values) and all(isinstance(one, _DISPLAYED) for one in values)


def _is_returned_argument(name: str, function: Scope, file: FileEdit) -> bool:
    """Whether a name may hold a tensor, or a part of it, that a function of the file was given."""
    calls = [value for value in function.values_of(name) if isinstance(value, ast.Call)]
    for one in calls:
        own = argument_of_own(one, file.views.get(one.func, ""))
        if own is not None and (own[1] is not Reach.SHARED or _holds_tensor(own[0], one, file)):
            return True
    return False


def _holds_tensor(given: ast.expr, node: ast.AST, file: FileEdit) -> bool:
    """Whether a name is bound to what torch computes, or is asked a tensor's methods."""
    if not isinstance(given, ast.Name):
        return False
    values = scope_of(node, file).values_of(given.id)
    return any(_is_of_torch(one, file) for one in values) or _is_used_as_tensor(
        given.id, node, file
    )


def _is_of_state(name: str, added: ast.expr, function: Scope) -> bool:
    """Whether a name may hold a tensor of a dictionary: `slow = state["slow"]`."""
    is_number = isinstance(added, (ast.Constant, *_PLAIN)) or (
        isinstance(added, ast.Call) and getattr(added.func, "id", "") in ("len", "int", "str")
    )
    if is_number:
        return False
    return any(
        isinstance(value, ast.Subscript)
        and isinstance(value.slice, (ast.Constant, ast.Name))
        and not isinstance(getattr(value.slice, "value", None), int)
        for value in function.values_of(name)
    )


def _is_module(called: ast.expr, function: Scope) -> bool:
    """`self.block`, `self.blocks[i]`, and `block` of a loop over them."""
    while isinstance(called, ast.Subscript):
        called = called.value
    if isinstance(called, ast.Name):
        return function.is_element(called.id)
    return isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == "self"


def _is_of_torch(value: ast.expr, file: FileEdit) -> bool:
    """Whether a value is a fraction, or of something of torch's, as `p.data` is."""
    return any(
        (isinstance(part, ast.Constant) and isinstance(part.value, float))
        or is_data(part)
        or file.use(part) is not None
        for part in ast.walk(value)
    )


def _is_used_as_tensor(name: str, node: ast.AST, file: FileEdit) -> bool:
    """Whether the function asks a tensor's methods of a name."""
    scope = scope_of(node, file)
    if scope.node not in file.tensors:
        file.tensors[scope.node] = _used_as_tensors(scope, file)
    return name in file.tensors[scope.node]


def _used_as_tensors(scope: Scope, file: FileEdit) -> frozenset[str]:
    """The names of which a scope asks a tensor's methods."""
    found = set()
    for part in file.tree.walked(scope.node) if scope.parameters else scope.nodes:
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            use = file.use(part)
            if use is not None and use.api.startswith("torch.Tensor."):
                found.add(part.value.id)
    return frozenset(found)


def _has_plain_default(
    parameter: ast.arg, function: ast.FunctionDef | ast.AsyncFunctionDef | None
) -> bool:
    """Whether an argument has a number or a string as its default."""
    if function is None:
        return False
    found = defaults_of(function).get(parameter.arg)
    return isinstance(found, ast.Constant) and found.value is not None
