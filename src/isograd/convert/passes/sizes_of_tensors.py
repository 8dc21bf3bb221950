"""`x.split([h * w for h, w in shapes])`: sizes that are tensors, where MindSpore takes numbers."""

from __future__ import annotations

import ast

from isograd.convert.analysis.integers import is_integer
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import all_values_of
from isograd.convert.passes.whole_arguments import is_network_argument
from isograd.convert.places import place
from isograd.convert.tree import counted_by, first_argument, names_of

#: The names of the sizes; what else takes sizes takes tensors in MindSpore as well.
_TAKING = {
    **dict.fromkeys(
        ("torch.split", "torch.Tensor.split", "torch.unsafe_split", "torch.Tensor.unsafe_split"),
        ("split_size_or_sections", "split_size"),
    ),
    **dict.fromkeys(("torch.split_with_sizes", "torch.Tensor.split_with_sizes"), ("split_sizes",)),
}
#: Methods of tensors that give numbers.
_NUMBERS = frozenset("item tolist size numel dim nelement stride".split())
_DEPTH = 4


class SizesOfTensors:
    """Sizes of parts; the call itself is for other passes."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "of what goes through rows",
            """
            def f(x: torch.Tensor, shapes):
                return x.split([h * w for h, w in shapes], dim=1)
            """,
        ),
        Example(
            "a product",
            """
            def f(x: torch.Tensor, n: torch.Tensor):
                return torch.split(x, (n.sum(), 2))
            """,
        ),
    )
    counterexamples = (
        Example(
            "sizes of tensors",
            """
            def f(x: torch.Tensor, parts):
                return x.split([part.shape[0] for part in parts])
            """,
        ),
        Example(
            "what rounds are counted by",
            """
            def f(x: torch.Tensor):
                return x.split([count + 1 for count in range(3)])
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Make numbers of the sizes, where the port runs."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        names = _TAKING.get(use.api) if use is not None else None
        if use is None or names is None:
            return False
        given = _sizes(node, names, use.is_member)
        if given is None or not _is_given_tensor(given, file):
            return False
        file.replace(given, f"{file.name('composites.sizes_of')}({file.argument(given)})")
        return False


def _sizes(node: ast.Call, names: tuple[str, ...], is_member: bool) -> ast.expr | None:
    named = next((part.value for part in node.keywords if part.arg in names), None)
    if named is not None or is_member:
        return named if named is not None else first_argument(node, names[0])
    return node.args[1] if len(node.args) > 1 else None


def _is_given_tensor(node: ast.expr, file: FileEdit) -> bool:
    """Whether sizes are known to be a tensor, or to hold one, or may by how they are written."""
    given = [node, *getattr(node, "elts", ())]
    return _may_hold_tensor(node, file, _DEPTH) or any(
        place(part) in file.facts.tensors_given and not is_network_argument(part, file)
        for part in given
    )


def _may_hold_tensor(node: ast.expr, file: FileEdit, depth: int) -> bool:
    """Whether sizes may be tensors by how they are written, rather than for want of knowledge."""
    if depth == 0 or is_integer(node, file.tree):
        return False
    parts: list[ast.expr] = []
    if isinstance(node, (ast.List, ast.Tuple)):
        parts = node.elts
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        parts = [node.elt]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Name):
        loop = file.tree.loop(node)
        if loop is not None:
            return node.id not in counted_by(loop) and not _goes_through_numbers(loop.iter)
        parts = all_values_of(node, file)
    elif isinstance(node, ast.Subscript):
        parts = [node.value]
    elif isinstance(node, ast.Call):
        use = file.use(node.func)
        if use is None or not use.is_sure or not use.api.startswith("torch."):
            return False
        return use.api.rpartition(".")[2] not in _NUMBERS
    return any(_may_hold_tensor(part, file, depth - 1) for part in parts)


def _goes_through_numbers(node: ast.expr) -> bool:
    """Whether a loop goes through what is written out, or through a size."""
    if isinstance(node, (ast.List, ast.Tuple)) or not names_of(node):
        return True
    members = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return not members.isdisjoint(("shape", "size", "tolist"))
