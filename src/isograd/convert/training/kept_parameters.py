"""Parameters in lists and dictionaries of torch's that a step may read as constants.

A static graph takes an element of a cell for a constant, so that it would never learn.  A port
asks for `elements()` where the class shows that an attribute is such a container.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from isograd.convert.analysis.parameter_containers import PARAMETER_CONTAINERS, reads_elements
from isograd.convert.file import FileEdit
from isograd.convert.training.paths import path_of
from isograd.convert.training.written_leaves import PARAMETERS, leaves_of

_TESTS = frozenset(("isinstance", "issubclass"))


def unseen_parameters(files: Collection[FileEdit]) -> Iterator[tuple[str, ast.AST, str]]:
    """The file, the place and the reason for each element that may be read unseen."""
    names: set[str] = set()
    for file in files:
        for node, api in file.named.items():
            if api not in PARAMETER_CONTAINERS or _is_asked_for(node, file):
                continue
            name = _attribute_of(node, file)
            if name:
                names.add(name)
            else:
                yield file.file, node, f"{ast.unparse(node)} is kept elsewhere than in an attribute"
    for file in files:
        for node in file.tree.of(ast.Attribute):
            if node.attr in names and isinstance(node.ctx, ast.Load) and _is_unseen(node, file):
                said = f"Parameters in {ast.unparse(node)} would be constants of a static graph"
                yield file.file, node, said


def _is_asked_for(node: ast.AST, file: FileEdit) -> bool:
    """Whether something is compared with the class."""
    return any(
        isinstance(above, ast.Call) and getattr(above.func, "id", "") in _TESTS
        for above in file.tree.above(node)
    )


def _attribute_of(node: ast.AST, file: FileEdit) -> str:
    """The attribute of self that alone is given what a call of the class makes."""
    call = file.tree.parents[node]
    if not isinstance(call, ast.Call) or call.func is not node:
        return ""
    statement = file.tree.parents[call]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if len(targets) != 1 or not isinstance(targets[0], ast.Attribute):
        return ""
    return targets[0].attr if getattr(targets[0].value, "id", "") == "self" else ""


def _is_unseen(node: ast.Attribute, file: FileEdit) -> bool:
    function = file.tree.function(node)
    if function is None or function.name == "__init__":
        return False
    parent = file.tree.parents[node]
    if isinstance(parent, ast.Attribute):
        return False  # a method of the container
    if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "len":
        return False
    held = file.layers_held(node)
    return not (held and held <= PARAMETER_CONTAINERS and reads_elements(node, file.tree))


def loose_parameters(edit: FileEdit) -> Iterator[ast.Call]:
    """Parameters that are made outside of classes, and that no name alone holds."""
    leaves = leaves_of(edit)
    for call in edit.tree.of(ast.Call):
        if edit.api_of_call(call) in PARAMETERS and edit.tree.owner(call) is None:
            statement = edit.tree.parents[call]
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            if len(targets) != 1 or path_of(targets[0]) not in leaves:
                yield call
