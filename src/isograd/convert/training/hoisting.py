"""What of a forward part is computed outside, before each step: its value is an input of the graph.

`data[k * 8 : k * 8 + 8]`, `torch.from_numpy(x)`, and what Python draws or counts: a compiled step
would have its first value in all rounds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.file import FileEdit
from isograd.convert.training.asked_once import AskedOnce
from isograd.convert.training.freedom import Freedom
from isograd.convert.training.index import Index
from isograd.convert.training.model import EagerError, Repeated
from isograd.convert.training.paths import read_by
from isograd.convert.types_and_settings import TYPED_TENSORS

#: What binds names of its own, or does not compute all that stands in it.
_APART = (
    *(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Lambda),
    *(ast.IfExp, ast.BoolOp),
)
_VALUES = (ast.Call, ast.Subscript)
#: What makes tensors of numbers, lists and arrays of numpy's.
_MAKING = frozenset(
    (*TYPED_TENSORS, "torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.Tensor")
)


class Hoisting:
    """Finds such expressions of one loop.

    bound: the names that the forward part binds.  counting: the loop's numbers.
    """

    def __init__(self, file: FileEdit, bound: set[str], counting: set[str]) -> None:
        self.file, self.bound, self.counting = file, bound, counting
        self.freedom = Freedom(file, guesses=False)
        index = Index.of([(file.file, file.tree.module)])
        self._asked = AskedOnce(index, lambda _: file)

    def found_in(self, top: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
        """The expressions of a statement in the order of their values; whether each changes.

        The compiler takes a round's number for a constant, and compiles anew for each; an array
        of numpy's is no input of a graph.
        """
        if isinstance(top, (ast.If, ast.For)):
            return
        waiting: list[ast.AST | None]
        waiting = [top.value] if isinstance(top, (ast.Assign, ast.AugAssign)) else [top]
        while waiting:
            node = waiting.pop()
            if not isinstance(node, ast.AST) or isinstance(node, _APART):
                continue
            read = read_by(node)
            is_counted = bool(read & self.counting)
            is_made = not is_counted and self._makes_tensor(node)
            is_asked = isinstance(node, ast.Call) and self.changes(node, is_inside=is_made)
            is_input = is_made or is_asked or (is_counted and isinstance(node, _VALUES))
            if is_input and isinstance(node, ast.expr) and self._is_outside(node, read):
                yield node, is_asked
            else:
                waiting += reversed([*ast.iter_child_nodes(node)])

    def changes(self, node: ast.AST, *, is_inside: bool = True) -> bool:
        """Whether the value of an expression or a statement is another one each time.

        is_inside: whether its parts are looked at; else what a call itself runs.
        """
        inner = () if is_inside else ast.iter_child_nodes(node)
        return (
            self._asked.first([node], {part for one in inner for part in ast.walk(one)}) is not None
        )

    def look_between(self, loop: Repeated, forward: list[ast.stmt], first: ast.expr) -> None:
        """Raise EagerError where the order of what is drawn would be another one."""
        own = {node for statement in forward for node in ast.walk(statement)}
        start, end = forward[0].lineno, forward[-1].lineno
        for node in ast.walk(loop):
            if isinstance(node, ast.stmt) and node not in own and start < node.lineno < end:
                if self.changes(node):
                    said = f"{ast.unparse(first)} is asked of Python, and more between"
                    raise EagerError(node, f"{said} it and the loss")

    def _makes_tensor(self, node: ast.AST) -> bool:
        """Whether a call makes a tensor of something that has a name."""
        if not isinstance(node, ast.Call):
            return False
        is_made = self.file.api_of_call(node) in _MAKING or self.freedom.is_of_type(node)
        return is_made and bool(read_by(*node.args))

    def _is_outside(self, node: ast.AST, read: set[str]) -> bool:
        """Whether an expression has its value before the forward part begins."""
        return not read & self.bound and self.freedom.is_free(node)
