"""`x.narrow(0, lengths[i], 2)`, `[0] * n`: tensors of one number where MindSpore takes integers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.places import place
from isograd.convert.types_and_settings import TYPED_TENSORS
from isograd.knowledge.rewrite import parameters_of
from isograd.scan.functions import FORWARD

#: What takes a tensor of several, too.
_PARTED = ".tensor_split"
#: What the knowledge says of a parameter that is one integer or several, and by its name alone.
_SEVERAL, _NAMED = "*", "="
_OF_SIZES = frozenset((*TYPED_TENSORS, "torch.Tensor", "torch.Tensor.new"))
_SIZE = "torch.Size"
_DEEPEST = 6


class WholeArguments:
    """Arguments that are integers; the call itself is for other passes."""

    kinds = (ast.Call,)
    after = ("SizesOfTensors",)
    examples = (
        Example(
            "an element of a tensor",
            """
            def f(x: torch.Tensor, lengths: torch.Tensor):
                return x.narrow(0, lengths[0], 2)
            """,
        ),
        Example(
            "sizes",
            """
            def f(mask: torch.Tensor):
                return torch.randn(mask.sum(), 3), torch.full((mask.sum(),), 1.0)
            """,
        ),
        Example("a layer's size", "layer = nn.Linear(torch.tensor([2, 3]).sum(), 2)"),
    )
    counterexamples = (
        Example(
            "a number of Python's",
            """
            def f(x: torch.Tensor, lengths: torch.Tensor):
                return x.narrow(0, lengths.shape[0], 2)
            """,
        ),
        Example(
            "what a network is given may be a number",
            """
            class Net(nn.Module):
                def forward(self, x, start):
                    return torch.narrow(x, 0, start, 2)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Make an integer of each that is a tensor."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or "int" in file.tree.own_names:
            return False
        for given in _whole(node, use.api, file):
            if place(given) not in file.facts.tensors_given:
                continue
            if use.api.endswith(_PARTED) and not isinstance(
                file.tree.parents.get(given), (ast.Tuple, ast.List)
            ):
                file.replace(given, f"{layout.operand(file, given)}.tolist()")
            else:
                file.replace(given, f"int({file.argument(given)})")
        return False


class RepeatedLists:
    """`[0] * n`, which torch repeats as often as a tensor of one number says."""

    kinds = (ast.BinOp,)
    examples = (
        Example(
            "a list",
            """
            def f(x: torch.Tensor):
                return [0] * x.sum()
            """,
        ),
    )
    counterexamples = (
        Example(
            "a number of Python's",
            """
            def f(x: torch.Tensor):
                return [0] * x.dim()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Make an integer of the tensor."""
        assert isinstance(node, ast.BinOp)
        if not isinstance(node.op, ast.Mult) or "int" in file.tree.own_names:
            return False
        for part in (node.left, node.right):
            if place(part) in file.facts.repeated and not is_network_argument(part, file):
                file.replace(part, f"int({file.argument(part)})")
        return False


def _whole(node: ast.Call, api: str, file: FileEdit) -> Iterator[ast.expr]:
    """The arguments of a call, or their elements, that are integers."""
    if api in _OF_SIZES:
        yield from node.args if len(node.args) > 1 else ()
        return
    if api == _SIZE:
        for given in (*node.args, *(part.value for part in node.keywords)):
            yield from _elements([given]) or [given]
        return
    entry = file.entry(api)
    integers = frozenset(entry.integers if entry is not None else ())
    for name, given in _by_name(node, api, file):
        is_named = not any(given is part for part in node.args)
        if f"{_SEVERAL}{name}" in integers:
            if not is_network_argument(given, file, _DEEPEST):
                yield from _elements([given]) or [given]
        elif name in integers or (is_named and f"{name}{_NAMED}" in integers):
            if not is_network_argument(given, file):
                yield given


def _elements(given: list[ast.expr]) -> list[ast.expr]:
    """What stands in lists and tuples that are written out."""
    return [item for one in given for item in getattr(one, "elts", ())]


def _by_name(node: ast.Call, api: str, file: FileEdit) -> list[tuple[str, ast.expr]]:
    """The arguments of a call before a `*`, with the names of torch's parameters."""
    entry = file.entry(api)
    parameters = parameters_of((entry and entry.signature) or "()")
    names = [one.name for one in parameters if one.kind == "positional"]
    if api.startswith("torch.Tensor."):
        names = names[1:]
    rest = next((one.name for one in parameters if one.kind == "many"), "")
    found = [(part.arg, part.value) for part in node.keywords if part.arg is not None]
    for count, given in enumerate(node.args):
        if isinstance(given, ast.Starred):
            break
        found.append((names[count] if count < len(names) else rest, given))
    return found


def is_network_argument(node: ast.expr, file: FileEdit, depth: int = 0) -> bool:
    """Whether an expression is what a network is given, which need not be a tensor.

    depth: how far it is followed through names, elements and loops.
    """
    if depth and isinstance(node, ast.Subscript):
        return is_network_argument(node.value, file, depth - 1)
    if depth and isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return any(is_network_argument(part, file, depth - 1) for part in node.args)
    if not isinstance(node, ast.Name):
        return False
    scope = scope_of(node, file)
    bound = scope.statements_of(node.id, node)
    given = scope.parameters.get(node.id)
    if given is not None and not bound:
        name = getattr(scope.node, "name", "")
        return name.startswith(FORWARD) and given.annotation is None
    if not depth:
        return False
    values = [getattr(one, "iter", getattr(one, "value", None)) for one in bound]
    return any(
        value is not None and is_network_argument(value, file, depth - 1) for value in values
    )
