"""Arguments of torch's layers that MindSpore's own take by another name, or not; `inplace`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from isograd.convert.tree import is_true
from isograd.scan.values import ANY_MODULE, Api, Made, Value, is_module

#: Arguments of calls of layers that have other names in MindSpore's, with the layers that have
#: them; "" of those that most have.  Layers that only the runtime has take torch's names.
_LOSSES = ("torch.nn.L1Loss", "torch.nn.MSELoss", "torch.nn.BCELoss")
_NAMED_OTHERWISE = {
    "input": ("",), "target": _LOSSES,
    "input1": ("torch.nn.Bilinear",), "input2": ("torch.nn.Bilinear",),
}  # fmt: skip
_CONVOLUTIONS = tuple(f"torch.nn.Conv{count}d" for count in (1, 2, 3))
_BATCH_NORMS = ("torch.nn.BatchNorm1d", "torch.nn.BatchNorm2d")
_EMBEDDING = ("torch.nn.Embedding",)
#: What makes a layer other than MindSpore's own, with the only value that MindSpore's is.
#: LayerNorm's bias is not among them: most other layers have one that MindSpore's take.
_ONLY: Mapping[str, tuple[object, tuple[str, ...]]] = {
    "padding_mode": ("zeros", _CONVOLUTIONS),
    "track_running_stats": (True, _BATCH_NORMS),
    "elementwise_affine": (True, ("torch.nn.LayerNorm",)),
    "padding_idx": (None, _EMBEDDING),
    "max_norm": (None, _EMBEDDING),
    "scale_grad_by_freq": (False, _EMBEDDING),
}
#: Layers whose first argument is `inplace`.
_IN_PLACE_FIRST = frozenset(
    f"torch.nn.{name}" for name in "ReLU ReLU6 SiLU Mish SELU Hardswish Hardsigmoid RReLU".split()
)


def called_by_name(value: Value, names: Collection[str]) -> set[str]:
    """Layers that are called by the names of arguments; "" of any.

    value: what is called by these.
    """
    if names and isinstance(value, Made) and value != ANY_MODULE and is_module(value):
        return {value.api}
    if value is not None and value != ANY_MODULE:
        return set()
    return {api for name in names for api in _NAMED_OTHERWISE.get(name, ())}


def made_otherwise(node: ast.Call, value: Value, arguments: Sequence[Value]) -> set[str]:
    """The layers that a call's arguments by name may make other than MindSpore's own.

    value: what is called, and may be a class of torch's that a name holds, or a partial of one.
    """
    found = {
        api
        for keyword in node.keywords
        for value_of_native, layers in (_ONLY.get(keyword.arg or "", (None, ())),)
        if not _is_literal(keyword.value, value_of_native)
        for api in layers
    }
    if not found or value is None or value == ANY_MODULE:
        return found
    first = arguments[0] if arguments else None
    of = value if isinstance(value, Api) and value.bound else first  # partial(nn.Conv2d, …)
    return found.intersection((of.name,)) if isinstance(of, Api) else set()


def _is_literal(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == value


def refused_by_native(api: str) -> frozenset[str]:
    """The arguments of a layer of torch's of which MindSpore's own has one value alone."""
    more = {"torch.nn.Embedding": ("norm_type",), "torch.nn.LayerNorm": ("bias",)}.get(api, ())
    return frozenset((*more, *(name for name, (_, layers) in _ONLY.items() if api in layers)))


def is_made_in_place(node: ast.Call, value: Value) -> bool:
    """Whether a call says `inplace=True`, or makes a layer whose first argument is that."""
    if any(part.arg == "inplace" and is_true(part.value) for part in node.keywords):
        return True
    first = node.args[0] if node.args else None
    is_first = isinstance(value, Made) and value.api in _IN_PLACE_FIRST
    return is_first and first is not None and is_true(first)
