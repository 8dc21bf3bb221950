"""`x.tolist()`, `sorted`, `any` and `all` of tensors: with Python's own a graph loses gradients."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.greatest import is_compiled, is_known_number
from isograd.convert.passes.reach_of_writes import is_in_forward, scope_of

_NAMES = {"sorted": "in_order", "any": "any_of", "all": "all_of"}
_OF_NUMBERS = {"round": "rounded_number", "abs": "absolute_number"}


class ValuesOfTensors:
    """Python's functions of a list that is written out, and a tensor's values, in what compiles."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a tensor's values",
            """
            class Net(nn.Module):
                def forward(self, x):
                    rows = torch.relu(x).tolist()
                    return x * rows[0]
            """,
        ),
        Example(
            "tensors in order",
            """
            class Net(nn.Module):
                def forward(self, x):
                    return x * sorted([x.mean(), x.std()])[0]
            """,
        ),
        Example(
            "a number that a tensor holds",
            """
            class Net(nn.Module):
                def forward(self, x):
                    return x * round(x.sum().item(), 2) * abs(x.mean().item())
            """,
        ),
        Example(
            "whether any is true",
            """
            class Net(nn.Module):
                def forward(self, x):
                    return x * any([x.mean() > 1, x.std() > 2])
            """,
        ),
    )
    counterexamples = (
        Example(
            "sizes and an order of one's own",
            """
            class Net(nn.Module):
                def forward(self, x):
                    rows = abs(sorted([x.shape[0], 2])[0])
                    return x * rows * sorted([x.sum(), 1], key=abs)[0]
            """,
        ),
        Example(
            "what runs as it is written",
            """
            def f(x: torch.Tensor):
                return x.tolist(), sorted([x.mean(), x.std()]), any([x.mean() > 1])
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write what computes it by operators in a graph."""
        assert isinstance(node, ast.Call)
        if node.keywords:
            return False
        if isinstance(node.func, ast.Attribute):
            use = file.use(node.func)
            is_list = use is not None and use.api == "torch.Tensor.tolist"
            if not is_list or node.args or not _may_be_compiled(node, [node.func.value], file):
                return False
            file.uses += 1
            file.converted += 1
            tensor = file.argument(node.func.value)
            file.replace(node, f"{file.name('composites.listed')}({tensor})")
            return True
        name = getattr(node.func, "id", "")
        if name in file.tree.own_names or not node.args:
            return False
        if name in _OF_NUMBERS and _is_item(node.args[0], file):
            if _may_be_compiled(node, node.args[:1], file):
                values = ", ".join(map(file.argument, node.args))
                file.replace(node, f"{file.name(f'composites.{_OF_NUMBERS[name]}')}({values})")
            return False
        if name not in _NAMES or len(node.args) != 1:
            return False
        given = node.args[0]
        if not isinstance(given, (ast.List, ast.Tuple)):
            return False
        if any(isinstance(part, ast.Starred) for part in given.elts):
            return False
        unknown = [part for part in given.elts if not is_known_number(part, file)]
        if not unknown or not _may_be_compiled(node, unknown, file):
            return False
        called = file.name(f"composites.{_NAMES[name]}")
        file.replace(node, f"{called}({file.argument(given)})")
        return False


def _may_be_compiled(node: ast.Call, values: list[ast.expr], file: FileEdit) -> bool:
    """Whether a call with what may be of tensors may run in a graph."""
    return is_in_forward(node, file) or is_compiled(node, values, file)


def _is_item(node: ast.expr, file: FileEdit) -> bool:
    """`x.item()`, or a name that may hold one."""
    values = scope_of(node, file).values_of(node.id) if isinstance(node, ast.Name) else [node]
    uses = [file.use(one.func) for one in values if isinstance(one, ast.Call)]
    return any(use is not None and use.api == "torch.Tensor.item" for use in uses)
