"""Assignments to elements (`x[i] = v`), which MindSpore makes in a new tensor."""

from __future__ import annotations

import ast

from isograd.convert.data_aliases import is_data
from isograd.convert.file import FileEdit
from isograd.convert.indexes import is_ellipsis
from isograd.convert.origins import Reach, origin_of_write
from isograd.convert.passes.elements import (
    elements,
    is_by_position,
    is_written_by_elements,
    key_of,
    unshared,
    write_elements,
)
from isograd.convert.passes.example import Example
from isograd.convert.passes.masks import is_stored_by_mask
from isograd.convert.passes.reach_of_writes import scope_of, tell, tell_lost, write_view
from isograd.convert.passes.subscripts import is_stored_by_function
from isograd.convert.tree import is_laid_out


class Stores:
    """`x.view(-1)[0] = …`: what is written to a view that a port's writes do not leave."""

    kinds = (ast.Assign,)
    examples = (
        Example(
            "an element of a view",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                x.view(-1)[0] = 1
                return x
            """,
        ),
        Example(
            "rows where a mask is true, in a network",
            """
            class Net(nn.Module):
                def forward(self, x, y):
                    x = x * 2
                    x[y[:, 0] > 0] = y[y[:, 0] > 0]
                    return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "an element of a dictionary",
            """
            found = {}
            found['a'] = torch.ones(2)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Report it; `x.data[0] = …` is written to x."""
        assert isinstance(node, ast.Assign)
        alone = node.targets[0]
        if len(node.targets) == 1 and isinstance(alone, ast.Subscript):
            if is_stored_by_function(alone, node, file) or is_stored_by_mask(
                alone, node.value, file
            ):
                write_elements(alone, node, file.argument(node.value), file, stored=True)
                return True
        for target in node.targets:
            several = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            for part in several:
                if isinstance(part, ast.Subscript):
                    _store(part, node, file)
                    if part is target and is_ellipsis(part.slice):
                        code = unshared(node.value, part.value, file)
                        if code != file.source(node.value):
                            file.replace(node.value, code)
        return False


def _store(target: ast.Subscript, node: ast.Assign, file: FileEdit) -> None:
    view = target.value
    if is_written_by_elements(target, node, file):
        if node.targets == [target]:
            write_elements(target, node, file.argument(node.value), file)
        else:
            file.replace(target, elements(target, file))
        return
    if is_data(view):  # of a batch or another object
        return
    if target is node.targets[0] and len(node.targets) == 1:
        code = file.argument(node.value)
        if write_view(view, key_of(target.slice, file), code, node, file):
            return
    root = origin_of_write(view, file.views)[0]
    if tell_lost(view, node, file) or not isinstance(root, ast.Name):
        return
    scope = scope_of(node, file)
    if scope.is_container(root.id) is (root is view):
        return  # an element of a list is bound anew, and rows of a tensor see what is written
    values = scope.values_of(root.id)
    if values and all(map(is_laid_out, values)):
        return  # `contiguous` copies, or shares the memory, as in torch (`taken`)
    sight = scope.sight(root.id, node, is_whole=is_by_position(target.slice, node, file))
    if sight.reach is Reach.LOST and sight.name:
        tell(sight, root.id, node, file)
