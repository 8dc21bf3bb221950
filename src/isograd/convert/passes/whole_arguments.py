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

#: Arguments that are one integer.
_ONE = frozenset(
    """dim0 dim1 start length chunks diagonal offset k n r start_dim end_dim num_classes num_samples
    m minlength N dimension step upscale_factor downscale_factor window_length n_fft hop_length
    win_length groups in_features out_features in1_features in2_features in_channels out_channels
    num_features num_channels num_groups num_embeddings embedding_dim input_size hidden_size
    num_layers embed_dim num_heads d_model nhead dim_feedforward seed""".split()
)
#: Those that are one or several.
_SOME = frozenset(
    """dim dims shifts source destination output_size kernel_size stride padding dilation
    output_padding normalized_shape indices_or_sections""".split()
)
#: What takes a tensor of several, too.
_PARTED = ".tensor_split"
#: Functions that take other numbers, or tensors, by one of these names.
_OTHERS = frozenset("arange range linspace logspace".split())
_BY_SOURCE = frozenset(("movedim", "moveaxis"))
#: A tensor at the place of their axis is another operand.
_OF_TWO = frozenset(("max", "min"))
#: What takes no tensors for sizes in MindSpore; all else does.
_SIZED = frozenset("full new_full normal".split())
#: All of whose arguments are integers, or several.
_WHOLE = frozenset("rand randn randint".split())
_SIZES = "size"
_OF_SIZES = frozenset((*TYPED_TENSORS, "torch.Tensor", "torch.Tensor.new"))
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
    last = api.rpartition(".")[2]
    if api in _OF_SIZES:
        yield from node.args if len(node.args) > 1 else ()
        return
    if api == "torch.Size" or last in _WHOLE:
        for given in (*node.args, *(part.value for part in node.keywords)):
            yield from _elements([given]) or [given]
        return
    for name, given in _by_name(node, api, file):
        is_named = not any(given is part for part in node.args)
        if name == _SIZES and last in _SIZED:
            yield from _elements([given]) or [given]
        elif not _is_other(name, last, is_named):
            if name in _SOME and not is_network_argument(given, file, _DEEPEST):
                yield from _elements([given]) or [given]
            elif name in _ONE and not is_network_argument(given, file):
                yield given


def _is_other(name: str, last: str, is_named: bool) -> bool:
    """Whether a function takes something else by a name of an integer, or at its place."""
    if last in _OTHERS or (name == "source" and last not in _BY_SOURCE):
        return True
    return (last in _OF_TWO and not is_named) or last.lower().startswith("localresponse")


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
