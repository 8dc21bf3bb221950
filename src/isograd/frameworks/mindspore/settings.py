"""How a setting of a torch function is made on a cell of MindSpore: `fix_for`.

A row of the table names torch functions and one of their arguments, the constructor arguments that
it may be in MindSpore, and where the value is written otherwise, how.  `mint` takes torch's own
names, `nn` often others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from isograd.frameworks.base import PortFix
from isograd.frameworks.mindspore.construction import Construction


@dataclass(frozen=True)
class CellAtHand:
    """The cell that a setting is made on: how it was built, and whether it is in training mode."""

    construction: Construction
    training: bool

    @property
    def arguments(self) -> Mapping[str, Any]:
        return self.construction.arguments

    @property
    def dimensions(self) -> int:
        """Of convolutions and pools, by the class's name; 0 of others."""
        found = re.search(r"(\d)d", self.construction.kind.__name__, re.IGNORECASE)
        return int(found[1]) if found else 0


#: From torch's value to constructor arguments; None where the cell cannot be built so.
Convert = Callable[[str, Any, CellAtHand], "dict[str, Any] | None"]


def _same(name: str, value: Any, cell: CellAtHand) -> dict[str, Any] | None:
    return {name: value}


def _spatial(name: str, value: Any, cell: CellAtHand) -> dict[str, Any] | None:
    """A number per dimension: one number where all are equal, as one-dimensional cells want it."""
    if isinstance(value, (tuple, list)):
        value = value[0] if len(set(value)) == 1 else tuple(value)
    return {name: value}


def _padding(name: str, value: Any, cell: CellAtHand) -> dict[str, Any] | None:
    """Padding counts in `nn` only with pad_mode "pad", and convolutions take it for every edge."""
    spatial = _spatial(name, value, cell)
    if spatial is None or "pad_mode" not in cell.arguments:
        return spatial
    value = spatial[name]
    if isinstance(value, str):
        return {"pad_mode": value, name: 0}
    if isinstance(value, tuple) and "Pool" not in cell.construction.kind.__name__:
        value = tuple(edge for edge in value for _ in range(2))
    return {"pad_mode": "pad", name: value}


def _with_pad_mode(name: str, value: Any, cell: CellAtHand) -> dict[str, Any] | None:
    """Settings of a pool that `nn` allows only with pad_mode "pad"."""
    spatial = _spatial(name, value, cell)
    if spatial is None or cell.arguments.get("pad_mode", "pad") == "pad":
        return spatial
    return {"pad_mode": "pad", **spatial}


def _stride(name: str, value: Any, cell: CellAtHand) -> dict[str, Any] | None:
    """A pool without a stride moves by its kernel in torch, by one element in `nn`."""
    if value is None and "pad_mode" in cell.arguments:
        value = cell.arguments.get("kernel_size")
    return _spatial(name, value, cell)


def _momentum(name: str, value: Any, cell: CellAtHand) -> dict[str, Any] | None:
    """`nn` weighs the old statistics, torch and `mint` the new ones."""
    if value is None:
        return None
    if "use_batch_statistics" in cell.arguments:
        return {name: round(1.0 - float(value), 12)}
    return {name: value}


def _batch_statistics(name: str, value: Any, cell: CellAtHand) -> dict[str, Any] | None:
    """None lets the cell's mode decide, as torch does."""
    return {name: None if bool(value) == cell.training else bool(value)}


def _approximate(name: str, value: Any, cell: CellAtHand) -> dict[str, Any] | None:
    if isinstance(cell.arguments.get(name), bool):
        return {name: value == "tanh"}
    return {name: value}


def _scale_or_size(name: str, value: Any, cell: CellAtHand) -> dict[str, Any] | None:
    """Size and scale exclude each other."""
    other = "scale_factor" if name == "size" else "size"
    return {name: value, other: None} if value is not None else None


def _probability(name: str, value: Any, cell: CellAtHand) -> dict[str, Any] | None:
    return {name: float(value)}


@dataclass(frozen=True)
class Setting:
    """An argument of torch functions and the constructor arguments that it may be."""

    functions: frozenset[str]
    argument: str
    names: tuple[str, ...]
    convert: Convert


def _row(functions: str, argument: str, names: str = "", convert: Convert = _same) -> Setting:
    own = tuple(names.split()) or (argument,)
    return Setting(frozenset(functions.split()), argument, own, convert)


_NORMS = "layer_norm group_norm instance_norm rms_norm batch_norm"
_CONVS = "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
_MAX_POOLS = "max_pool1d max_pool2d max_pool3d"
_AVG_POOLS = "avg_pool1d avg_pool2d avg_pool3d"
_POOLS = f"{_MAX_POOLS} {_AVG_POOLS}"
_ADAPTIVE = " ".join(f"adaptive_{kind}_pool{d}d" for kind in ("avg", "max") for d in "123")
_SOFTMAXES = "softmax log_softmax softmin glu"
_RECURRENT = "lstm gru rnn_tanh rnn_relu"
_DROPOUTS = "dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout"
_MARGINS = "cosine_embedding_loss margin_ranking_loss hinge_embedding_loss multi_margin_loss"
_LOSSES = (
    "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits kl_div poisson_nll_loss gaussian_nll_loss ctc_loss "
    f"soft_margin_loss triplet_margin_loss multilabel_soft_margin_loss {_MARGINS}"
)

SETTINGS: tuple[Setting, ...] = (
    _row(_NORMS, "eps", "eps epsilon"),
    _row("batch_norm", "momentum", "momentum", _momentum),
    _row("batch_norm", "training", "use_batch_statistics", _batch_statistics),
    _row("group_norm", "num_groups"),
    _row("layer_norm rms_norm", "normalized_shape"),
    _row(_CONVS, "stride", "stride", _spatial),
    _row(_CONVS, "padding", "padding", _padding),
    _row(_CONVS, "dilation", "dilation", _spatial),
    _row(_CONVS, "output_padding", "output_padding", _spatial),
    _row(_CONVS, "groups", "groups group"),
    _row(_CONVS, "padding_mode"),
    _row(_POOLS, "kernel_size", "kernel_size", _spatial),
    _row(_POOLS, "stride", "stride", _stride),
    _row(_POOLS, "padding", "padding", _padding),
    _row(_MAX_POOLS, "dilation", "dilation", _with_pad_mode),
    _row(_POOLS, "ceil_mode", "ceil_mode", _with_pad_mode),
    _row(_AVG_POOLS, "count_include_pad", "count_include_pad", _with_pad_mode),
    _row(_AVG_POOLS, "divisor_override", "divisor_override", _with_pad_mode),
    _row(_ADAPTIVE, "output_size", "output_size", _spatial),
    _row("gelu", "approximate", "approximate", _approximate),
    _row("leaky_relu", "negative_slope", "negative_slope alpha"),
    _row("elu celu", "alpha"),
    _row(_SOFTMAXES, "dim", "dim axis"),
    _row("hardtanh", "min_val"),
    _row("hardtanh", "max_val"),
    _row("threshold", "threshold"),
    _row("threshold", "value"),
    _row("hardshrink softshrink", "lambd"),
    _row("softplus", "beta"),
    _row("softplus", "threshold"),
    _row("interpolate", "size", "size", _scale_or_size),
    _row("interpolate", "scale_factor", "scale_factor", _scale_or_size),
    _row("interpolate", "mode"),
    _row("interpolate", "align_corners"),
    _row("interpolate", "recompute_scale_factor"),
    _row(_DROPOUTS, "p", "p", _probability),
    _row("embedding", "padding_idx"),
    _row("embedding", "max_norm"),
    _row("embedding", "norm_type"),
    _row(_RECURRENT, "batch_first"),
    _row(_RECURRENT, "bidirectional"),
    _row(_RECURRENT, "num_layers"),
    _row(_RECURRENT, "layers", "num_layers"),
    _row(_RECURRENT, "bias", "has_bias bias"),
    _row(_RECURRENT, "dropout", "dropout", _probability),
    _row("rnn_tanh rnn_relu", "nonlinearity"),
    _row("flatten", "start_dim"),
    _row("flatten", "end_dim"),
    _row("pixel_shuffle", "upscale_factor"),
    _row("pixel_unshuffle", "downscale_factor"),
    _row(_LOSSES, "reduction"),
    _row("cross_entropy nll_loss", "ignore_index"),
    _row("cross_entropy", "label_smoothing"),
    _row("smooth_l1_loss", "beta"),
    _row("huber_loss", "delta"),
    _row("kl_div", "log_target"),
    _row("poisson_nll_loss", "log_input"),
    _row("poisson_nll_loss gaussian_nll_loss", "full"),
    _row("poisson_nll_loss gaussian_nll_loss triplet_margin_loss", "eps"),
    _row(f"{_MARGINS} triplet_margin_loss", "margin"),
    _row("multi_margin_loss triplet_margin_loss", "p"),
    _row("ctc_loss", "blank"),
    _row("ctc_loss", "zero_infinity"),
)


def fix_for(
    module: str, cell: CellAtHand, function: str, argument: str, value: Any
) -> PortFix | None:
    """The fix that makes a torch setting on this cell; None where it has no such argument.

    function, argument: by torch's names, as in ``torch.nn.functional``.  None also where the cell
    is built so already.
    """
    if cell.construction.given is None:
        return None
    for setting in SETTINGS:
        if function in setting.functions and argument == setting.argument:
            name = next((n for n in setting.names if n in cell.arguments), None)
            if name is None:
                return None
            try:
                found = setting.convert(name, value, cell)
            except (TypeError, ValueError):  # not a value that this argument can have
                return None
            changed = {
                key: new
                for key, new in (found or {}).items()
                if key in cell.arguments and _spread(cell.arguments[key]) != _spread(new)
            }
            return PortFix("rebuild", module, arguments=changed) if changed else None
    return None


def _spread(value: Any) -> Any:
    """One number means a tuple of that number."""
    same = isinstance(value, (tuple, list)) and len(set(map(repr, value))) == 1
    return value[0] if same else value
