"""`a[0] = 1` of an array that `torch.from_numpy(a)` shares: MindSpore's tensor is a copy."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.origins import is_taken_by_copy
from isograd.convert.passes.example import Example
from isograd.convert.passes.numpy_arrays import is_array
from isograd.convert.passes.reach_of_writes import LOST, scope_of

#: It takes nothing but arrays.
_OF_ARRAYS = "torch.from_numpy"
#: What makes a tensor that shares an array's memory.
_SHARING = frozenset((_OF_ARRAYS, "torch.as_tensor", "torch.asarray"))
_ADVICE = "Write to the array before the tensor is made of it, or make the tensor again."


class WrittenArrays:
    """A write into an array of which a tensor was made, which is read later."""

    kinds = (ast.Assign, ast.AugAssign)
    examples = (
        Example(
            "an array behind a tensor",
            """
            import numpy as np

            def f(x: torch.Tensor, y: torch.Tensor):
                rows = np.zeros(3, dtype=np.float32)
                shared = torch.from_numpy(rows)
                rows[1] = 4
                return shared + x
            """,
        ),
    )
    counterexamples = (
        Example(
            "an array that is written before",
            """
            import numpy as np

            def f(x: torch.Tensor, y: torch.Tensor):
                rows = np.zeros(3, dtype=np.float32)
                rows[1] = 4
                return torch.from_numpy(rows) + x
            """,
        ),
        Example(
            "a tensor that is read before the next write",
            """
            import numpy as np

            def f(x: torch.Tensor, y: torch.Tensor):
                rows = np.zeros(3, dtype=np.float32)
                for number in range(3):
                    rows[:] = number
                    x = x + torch.from_numpy(rows)
                return x
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Say which tensor does not change with the array."""
        assert isinstance(node, (ast.Assign, ast.AugAssign))
        if _SHARING.isdisjoint(file.facts.apis):
            return False
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            array = target.value if isinstance(target, ast.Subscript) else target
            is_change = array is not target or isinstance(node, ast.AugAssign)
            if is_change and isinstance(array, ast.Name):
                for name in _made_of(array.id, node, file):
                    message = LOST.format(array.id, name)
                    file.finding(node, "in-place-view", message, _ADVICE)
        return False


def _made_of(array: str, write: ast.AST, file: FileEdit) -> list[str]:
    """The names of tensors that share an array's memory and are read behind a write into it."""
    scope = scope_of(write, file)
    found = []
    for statement in file.tree.of(ast.Assign):
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or not _shares(statement.value, array, file):
            continue
        if file.tree.scope(statement) is not scope.node:
            continue
        is_reached = statement in scope.statements_of(target.id, write)
        if is_reached and scope.is_read_behind(target.id, write):
            found.append(target.id)
    return found


def _shares(value: ast.expr, array: str, file: FileEdit) -> bool:
    """Whether a value is a tensor with the memory of an array, or of rows of it."""
    if not isinstance(value, ast.Call) or value.keywords or len(value.args) != 1:
        return False
    api, given = file.api_of_call(value), value.args[0]
    if isinstance(given, ast.Subscript) and not is_taken_by_copy(given):
        given = given.value
    if api not in _SHARING or not isinstance(given, ast.Name) or given.id != array:
        return False
    return api == _OF_ARRAYS or is_array(given, file)
