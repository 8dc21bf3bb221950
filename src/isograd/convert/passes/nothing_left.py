"""`net = net.to(device)`: a statement of which nothing but its own names is left is left out."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.notebooks import SUFFIX
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage


class NothingLeft:
    """Assignments of names to themselves, and names that stand alone, behind all other passes."""

    stage = Stage.LAST
    kinds = (ast.Assign, ast.Expr)
    examples = (
        Example(
            "what is moved under its own name",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                x = x.to("cuda")
                x, y = x.cpu(), y.cuda()
                return x + y
            """,
        ),
        Example(
            "a network that is moved",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                net = nn.Linear(2, 2)
                net.to("cuda")
                return net(x)
            """,
        ),
    )
    counterexamples = (
        Example(
            "what gets another name",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                z = x.to("cuda")
                x, y = y.cpu(), x.cpu()
                return x + y + z
            """,
        ),
        Example(
            "what the program says of itself",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                x = x
                return x + y
            """,
        ),
        Example(
            "an attribute of a class",
            """
            x = torch.ones(2)

            class Held:
                x = x.to("cuda")
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave it out, where what was there named more."""
        assert isinstance(node, (ast.Assign, ast.Expr))
        if node in file.removed or not _names(node, file):
            return False
        file.leave_out(node)
        return True


def _names(node: ast.Assign | ast.Expr, file: FileEdit) -> bool:
    """Whether a statement has become names that it binds to themselves, or one name alone."""
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    names = [_root(value) for value in values]
    if isinstance(node, ast.Expr):
        is_open = len(values) == 1 and not _is_shown(node, file)
    else:
        target = node.targets[0]
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        is_open = names == [getattr(part, "id", None) for part in targets]
        is_open = is_open and len(node.targets) == 1 and not file.tree.is_in_class_body(node)
    return is_open and all(names) and [file.source(value) for value in values] == names


def _root(node: ast.expr) -> str:
    """The name of which a method is called, or one of its result: `x` of `x.cpu().float()`."""
    is_called = False
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node, is_called = node.func.value, True
    return node.id if is_called and isinstance(node, ast.Name) else ""


def _is_shown(node: ast.Expr, file: FileEdit) -> bool:
    """Whether a notebook may show what a statement says."""
    return file.file.endswith(SUFFIX) and file.tree.function(node) is None
