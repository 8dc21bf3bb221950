"""`torch.full((3,), float('nan')).max()`: NaN, which MindSpore's operators (2.10, CPU) lose."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.infinities import NAN
from isograd.convert.model import Level
from isograd.convert.passes.example import Example
from isograd.convert.passes.infinite_scores import nans_of
from isograd.convert.passes.infinite_softmaxes import given_to_layer
from isograd.convert.tree import first_argument

_ELEMENTS = "composites.with_nans"
_EXTREME = "composites.extreme_with_nans"
_POSITION = "composites.position_with_nans"
_FUNCTIONAL = "torch.nn.functional"
#: What computes them in a port, and with which function of MindSpore's or the runtime's.
_WAYS = {
    **{f"torch.{name}": (_ELEMENTS, "ops.clamp") for name in ("clamp", "clip", "clamp_min")},
    "torch.clamp_max": (_ELEMENTS, "ops.clamp"),
    **{f"torch.{name}": (_ELEMENTS, f"ops.{name}") for name in "relu maximum minimum".split()},
    **{
        f"{_FUNCTIONAL}.{name}": (_ELEMENTS, f"composites.{name}")
        for name in "relu relu6 hardtanh".split()
    },
    **{
        f"{_FUNCTIONAL}.{name}": (_ELEMENTS, f"ops.{name}")
        for name in "softplus softshrink threshold".split()
    },
    "torch.hardshrink": (_ELEMENTS, "ops.hardshrink"),
    **{f"torch.{name}": (_EXTREME, f"composites.{name}") for name in "amax amin max min".split()},
    **{f"torch.{name}": (_POSITION, f"ops.{name}") for name in ("argmax", "argmin")},
}
#: What is only reported.
_REPORTED = frozenset(
    f"torch.{name}"
    for name in """relu_ clamp_ clip_ clamp_min_ clamp_max_ aminmax cummax cummin msort quantile
    logcumsumexp norm log_softmax special.entr linalg.norm linalg.vector_norm scatter_reduce
    scatter_reduce_ index_reduce index_reduce_ nn.functional.margin_ranking_loss
    nn.functional.softmin nn.functional.log_softmax nn.functional.max_pool1d
    nn.functional.max_pool2d nn.functional.max_pool3d nn.functional.adaptive_max_pool1d
    nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d""".split()
)
#: Reported of an axis alone.
_OF_AXIS = frozenset(("torch.median",))
#: Reported by what the layer is given.
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in """ReLU ReLU6 Hardtanh Softplus Softshrink Hardshrink Threshold LogSoftmax Softmin
    MaxPool1d MaxPool2d MaxPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d
    MarginRankingLoss""".split()
)
LOSING = _REPORTED | _OF_AXIS | _LAYERS | set(_WAYS)
_MESSAGE = "what may be NaN here is another number behind this on a CPU (MindSpore 2.10)"
_ADVICE = "use torch.where(torch.isnan(x), x, result), or torch.nan_to_num before it"


class LostNans:
    """Operators that lose NaN, where the code shows that what they are given may hold it."""

    kinds = (ast.Call,)
    before = ("InfiniteSoftmaxes",)
    examples = (
        Example(
            "the greatest of rows without those that are masked",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.masked_fill(y > 0, float('nan')).amax(1)
            """,
        ),
        Example(
            "what is limited",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                x = torch.where(y > 0, x, torch.nan)
                return torch.clamp(x, -1, 1), torch.maximum(y, x)
            """,
        ),
        Example(
            "a pool, which is reported",
            """
            def f(x: torch.Tensor):
                x[..., 0] = torch.nan
                return nn.functional.max_pool2d(x, 2)
            """,
        ),
    )
    counterexamples = (
        Example(
            "numbers in the place of NaN",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                x = torch.nan_to_num(torch.where(y > 0, x, torch.nan))
                return torch.clamp(x, -1, 1)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write what keeps NaN, or report that it is lost."""
        assert isinstance(node, ast.Call)
        if not file.settings.undefined and not NAN.pattern.search(file.text.original):
            return False
        use = file.use(node.func)
        if use is None:
            return False
        api = use.api.replace("torch.Tensor.", "torch.")
        if api not in LOSING or not _may_be_nan(node, api, use.is_member, file):
            return False
        if api not in _WAYS or not use.is_sure or not _write(node, api, use.is_member, file):
            file.finding(node, "nan-lost", _MESSAGE, _ADVICE, level=Level.LOOK, api=use.api)
            return False
        return True


def _may_be_nan(node: ast.Call, api: str, is_member: bool, file: FileEdit) -> bool:
    given = [*node.args, *(part.value for part in node.keywords)]
    if api in _OF_AXIS and len(given) < 2 - is_member:
        return False
    if api in _LAYERS:
        given = list(given_to_layer(node, file))
    if is_member:
        assert isinstance(node.func, ast.Attribute)
        given.append(node.func.value)
    may = nans_of(file).may
    return any(may(part) for part in given)


def _write(node: ast.Call, api: str, is_member: bool, file: FileEdit) -> bool:
    """Write torch's arguments behind the function; False where it cannot take them."""
    way, function = _WAYS[api]
    first, rest = first_argument(node, "input"), node.args[1:]
    if is_member:
        assert isinstance(node.func, ast.Attribute)
        first, rest = node.func.value, node.args
    named = [part for part in node.keywords if part.value is not first]
    is_open = any(isinstance(one, ast.Starred) for one in node.args)
    if first is None or is_open or {part.arg for part in named} & {None, "out", "inplace"}:
        return False
    if rest and api.endswith((".relu", ".relu6")):  # inplace
        return False
    given = [file.argument(one) for one in rest]
    if given and api == "torch.clamp_max":
        given[0] = f"max={given[0]}"
    given += [f"{part.arg}={file.argument(part.value)}" for part in named]
    code = f"{file.name(way)}({', '.join((file.name(function), file.argument(first), *given))})"
    layout.write_call(file, node, code)
    file.uses += 1
    file.converted += 1
    return True
