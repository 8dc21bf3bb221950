"""Writes into an element of a tensor or of what holds tensors: `x[0].add_(1)`."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.data_aliases import is_data
from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.origins import is_taken_by_copy, origin_of_write
from isograd.convert.passes.elements import (
    holds_all,
    is_another,
    is_by_position,
    is_quiet_leaf,
    key_of,
    may_be_positions,
    owner_of_element,
    rebinds,
    unshared,
    write_elements,
    written_place,
)
from isograd.convert.passes.indexed_copies import may_be_copied
from isograd.convert.passes.reach_of_writes import scope_of, tell_if_lost, tell_lost, write_view
from isograd.convert.passes.saved_values import of_old_values
from isograd.convert.places import place as place_of

_COPY = "{0} is a copy, in torch as well: this change reaches nothing"
_COPY_ADVICE = "If it was meant to be changed, assign to it: {0} = …"
_ROUNDS = "each round changes what the rounds before have returned, in torch; not in the port"


def write_element(target: ast.Subscript, node: ast.Call, code: str, file: FileEdit) -> None:
    """`x[0].add_(1)` and `y = x[0].add_(1)`, of a tensor or of a list."""
    place, is_statement = written_place(target, file), file.tree.is_statement(node)
    if is_taken_by_copy(target):
        if is_statement:
            message, advice = _COPY.format(place), _COPY_ADVICE.format(place)
            file.finding(node.func, "in-place-copy", message, advice, level=Level.LOOK)
        layout.write(file, node, code)
        return
    if not is_statement:
        tell_if_held(target, node, file)
        put(target, node, of_old_values(place, code, node, file), file)
        return
    if is_data(target.value) and not is_another(target.value, file):
        # What is written to the data of a tensor is written to the tensor.
        write_elements(target, node, code, file)
        return
    code = of_old_values(place, code, node, file)
    if write_view(target, "...", code, node, file):
        return
    scope = scope_of(node, file)
    root = origin_of_write(target, file.views)[0]
    is_copy = isinstance(node.func, ast.Attribute) and node.func.attr == "copy_"
    tell_if_held(target, node, file)
    if isinstance(root, ast.Name) and (holds_all(root, file) or _takes_no_items(root, file)):
        file.replace(node, f"{file.name('composites.overwrite')}({place}, {code})")
        return
    if file.holds_data(target.value) or is_quiet_leaf(target.value, file):
        write_elements(target, node, code, file)
        return
    if isinstance(root, ast.Name) and scope.is_container(root.id):
        place, code = f"{place}[...]", (unshared(node.args[0], target, file) if is_copy else code)
    elif _may_hold_tensors(target, file) and (
        is_copy
        or not isinstance(target.slice, ast.Constant)
        or _is_state_of_network(target.value, file)
    ):
        put(target, node, code, file)
        return
    is_part = isinstance(target.value, ast.Subscript) and may_be_copied(target.value, file)
    if is_part or may_be_positions(target.slice, node, file):
        put(target, node, code, file)  # which sees whether a tensor takes a copy here
        return
    layout.write_statement(file, node, f"{place} = {code}")


def _takes_no_items(name: ast.Name, file: FileEdit) -> bool:
    """Whether a name may be an object of a class of the file that has elements and sets none."""
    made = {
        value.func.id
        for value in scope_of(name, file).values_of(name.id)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
    }
    for owner in file.tree.of(ast.ClassDef):
        methods = {getattr(part, "name", "") for part in owner.body}
        if owner.name in made and "__getitem__" in methods and "__setitem__" not in methods:
            return True
    return False


def tell_if_held(target: ast.Subscript, node: ast.AST, file: FileEdit) -> None:
    """Report a change of an element that a view taken before does not see."""
    if tell_lost(target, node, file):
        return
    if any(isinstance(part, ast.ListComp) for part in file.tree.above(node)):
        file.finding(node, "in-place-kept", _ROUNDS, level=Level.LOOK)
    root = origin_of_write(target, file.views)[0]
    if isinstance(root, ast.Name):
        is_part = root is target.value and not scope_of(node, file).is_container(root.id)
        is_whole = not is_part or is_by_position(target.slice, node, file)
        tell_if_lost(root.id, node, file, is_whole=is_whole)


def _may_hold_tensors(target: ast.Subscript, file: FileEdit) -> bool:
    """Whether `held[key]` may be a tensor of its own that a dictionary or a list holds.

    Others may hold it as well, as a network does what its `state_dict()` gives.
    """
    key = target.slice
    if place_of(target) in file.facts.indexed or isinstance(key, (ast.Slice, ast.Tuple)):
        return False
    return not isinstance(key, ast.Constant) or isinstance(key.value, (str, int))


def _is_state_of_network(node: ast.expr, file: FileEdit) -> bool:
    """Whether an expression is a `state_dict()`, or a name that is bound to one in the file."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
    return isinstance(node, ast.Name) and any(
        isinstance(part.value, ast.Call)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in part.targets)
        and _is_state_of_network(part.value, file)
        for part in file.tree.of(ast.Assign)
    )


def put_data(target: ast.Subscript, node: ast.Call, code: str, file: FileEdit) -> None:
    """`held[0].data.add_(1)`: into the data of what something holds, or of an element."""
    held, key = owner_of_element(target, file), key_of(target.slice, file)
    new = f"{file.name('composites.put_data')}({held}, {key}, {code})"
    if not file.tree.is_statement(node):
        file.replace(node, f"{new}[{key}]")
    elif rebinds(target.value, node, file):
        layout.write_statement(file, node, f"{held} = {new}")
    else:
        layout.write_statement(file, node, new)


def put(target: ast.Subscript, node: ast.Call, code: str, file: FileEdit) -> None:
    """Write into an element of a tensor, or into the tensor that something holds."""
    held, key = owner_of_element(target, file), key_of(target.slice, file)
    file.replace(node, f"{file.name('composites.put')}({held}, {key}, {code})")
