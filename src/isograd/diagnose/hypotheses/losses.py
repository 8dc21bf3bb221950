"""Losses: how they are reduced, and the settings of the functions of torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Number,
    Scale,
    Values,
    operands,
    other_number,
)
from isograd.frameworks.base import FunctionSite, Operand

CLASS_LOSSES = ("cross_entropy", "nll_loss")

LOSSES = (
    *CLASS_LOSSES,
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "multilabel_margin_loss"),
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "gaussian_nll_loss"),
    *("poisson_nll_loss", "cosine_embedding_loss", "margin_ranking_loss", "hinge_embedding_loss"),
    *("triplet_margin_loss", "soft_margin_loss", "multi_margin_loss", "ctc_loss"),
    "multilabel_soft_margin_loss",
)

_MEAN_OF_ALL = "mean over all targets"

_OVER_BATCH = "sum over the batch size"

_OVER_ROWS = "sum over the rows"


def count(shape: tuple[int, ...]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


def _reductions(site: FunctionSite, context: Context) -> Iterator[Values]:
    own = site.arguments.get("reduction", "mean")
    if own == "none":
        return
    function = site.place.function
    given, target = site.arguments.get("input"), site.arguments.get("target")
    hows = ["mean", "sum"] + (["batchmean"] if function == "kl_div" else [])
    batch = _batch_size(site, context)
    if batch:
        hows.append(_OVER_BATCH)
    if isinstance(given, Operand) and len(given.shape) > 1 and function not in CLASS_LOSSES:
        hows.append(_OVER_ROWS)
    if function in CLASS_LOSSES and isinstance(target, Operand):
        hows.append(_MEAN_OF_ALL)
    for how in hows:
        if how != own:
            yield {"reduction": how, "batch": batch}


def _batch_size(site: FunctionSite, context: Context) -> int:
    """The first axis of the network's output, which a loss may have flattened; 0: unknown."""
    given = site.arguments.get("input")
    for one in context.sites:
        for operand in operands(one):
            if operand.source.startswith("input.") and operand.shape:
                return operand.shape[0]
    return given.shape[0] if isinstance(given, Operand) and given.shape else 0


def _reduced(call: Call, values: Values) -> Any:
    how = values["reduction"]
    if how in ("mean", "sum", "batchmean"):
        return call.run(reduction=how)
    total = call.run(reduction="sum")
    shape = call["input"].shape
    if how == _MEAN_OF_ALL:
        return total / call["target"].numel()
    return total / (values["batch"] if how == _OVER_BATCH else count(shape[:-1]))


#: What is left of the reduction where the port keeps a value for each element, or each row.
_KEPT = {
    "none": "not reduced",
    "mean of rows": "reduced to the mean of each row only",
    "sum of rows": "reduced to the sum of each row only",
}


def _kept(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A loss that stays a tensor where the reference's is one number."""
    if count(site.outputs[0].shape if site.outputs else ()) != 1 or not context.is_loss:
        return
    given = site.arguments.get("input")
    yield {"kept": "none"}
    # Losses of classes have no axis of these left: what is a row there is all that there is.
    axes = 2 if site.place.function in CLASS_LOSSES else 1
    if isinstance(given, Operand) and len(given.shape) > axes:
        yield from ({"kept": kept} for kept in ("mean of rows", "sum of rows"))


def _not_reduced(call: Call, values: Values) -> Any:
    if call.function in ("mean", "sum"):
        each = call["input"]
    else:
        each = call.run(reduction="none")
    if values["kept"] == "mean of rows":
        return each.mean(-1)
    return each.sum(-1) if values["kept"] == "sum of rows" else each


def _reducing(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A mean or a sum in a loss that is written out, or behind `reduction="none"`."""
    given = site.arguments.get("input")
    if not context.is_loss or not isinstance(given, Operand) or not given.shape:
        return
    other = "sum" if site.place.function == "mean" else "mean"
    yield {"reduction": other, "own": site.place.function}
    if count(site.outputs[0].shape) == 1:
        batch = _batch_size(site, context)
        yield {"reduction": _OVER_BATCH, "own": site.place.function, "batch": batch}
        if len(given.shape) > 1:
            yield {"reduction": _OVER_ROWS, "own": site.place.function}


def _reduced_otherwise(call: Call, values: Values) -> Any:
    own, given = call.run(), call["input"]
    each = given.numel() / max(1, own.numel())
    total = own * each if values["own"] == "mean" else own
    how = values["reduction"]
    if how == "sum":
        return total
    if how == "mean":
        return total / each
    return total / (values["batch"] if how == _OVER_BATCH else count(given.shape[:-1]))


def _ignored(site: FunctionSite, context: Context) -> Iterator[Values]:
    own = site.arguments.get("ignore_index", -100)
    given = site.arguments.get("input")
    classes = given.shape[1] if isinstance(given, Operand) and len(given.shape) > 1 else 2
    target = site.arguments.get("target")
    if isinstance(target, Operand) and target.dtype.startswith("float"):
        return
    for index in dict.fromkeys((-100, 0, classes - 1, 1, -1, 255)):
        if index != own:
            yield {"ignore_index": index}


_XY = ((6, 5), (6,))

_CE = "F.cross_entropy(x, y)"

_PAIR = ((6, 5), (6, 5))


def loss(reference: str, port: str, value: Any, **more: Any) -> Example:
    inputs = more.pop("inputs", _XY)
    integers = more.pop("integers", {"y": 5} if inputs is _XY else {})
    return Example(
        reference, port, inputs, integers=integers, port_value=value, is_loss=True, **more
    )


def _own_reduction(site: FunctionSite, context: Context) -> Any:
    if site.place.function in ("mean", "sum"):
        return site.place.function
    return site.arguments.get("reduction", "mean")


def _blanks(site: FunctionSite, context: Context) -> Iterator[Values]:
    """The first and the last class, which frameworks take for the blank."""
    own = site.arguments.get("blank", 0)
    scores = site.arguments.get("log_probs")
    if isinstance(scores, Operand):
        for blank in (0, scores.shape[-1] - 1):
            if blank != own:
                yield {"blank": blank}


HYPOTHESES = (
    FunctionHypothesis(
        "loss_reduction",
        "loss.reduction",
        LOSSES,
        _reductions,
        _reduced,
        "the loss is reduced by {port} instead of {reference}",
        rank=2,
        argument="reduction",
        examples=(
            loss(_CE, "ops.cross_entropy(x, y.astype(ms.int32), reduction='sum')", "sum"),
            loss(
                "F.cross_entropy(x, y, label_smoothing=0.1)",
                "ops.cross_entropy(x, y.astype(ms.int32), label_smoothing=0.1, reduction='sum')",
                "sum",
            ),
            loss(
                "F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction='batchmean')",
                "ops.kl_div(ops.log_softmax(x, -1), ops.softmax(y, -1), reduction='mean')",
                "mean",
                inputs=_PAIR,
            ),
            loss(
                "F.cross_entropy(x, y, ignore_index=2)",
                "ops.cross_entropy(x, y.astype(ms.int32), ignore_index=2, reduction='sum') / 6",
                None,
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_reduction_by_hand",
        "loss.reduction",
        ("mean", "sum"),
        _reducing,
        _reduced_otherwise,
        "the loss is reduced by {port} instead of {reference}",
        rank=3,
        reference_value=lambda site, context: site.place.function,
        port_value=lambda values: values["reduction"],
        examples=(
            loss("((x - y) ** 2).mean()", "((x - y) ** 2).sum()", "sum", inputs=_PAIR),
            loss(
                "F.mse_loss(x, y, reduction='none').sum(-1).mean()",
                "((x - y) ** 2).mean()",
                "mean",
                inputs=_PAIR,
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_kept",
        "loss.reduction",
        (*LOSSES, "mean", "sum"),
        _kept,
        _not_reduced,
        "the loss is {port}; the reference reduces it to one number by {reference}",
        rank=2,
        reference_value=_own_reduction,
        port_value=lambda values: _KEPT[values["kept"]],
        examples=(
            loss(
                "F.smooth_l1_loss(x, y)",
                "ops.smooth_l1_loss(x, y)",
                "not reduced",
                inputs=_PAIR,
                proved=True,
            ),
            loss(
                _CE,
                "nn.SoftmaxCrossEntropyWithLogits(sparse=True)(x, y.astype(ms.int32))",
                "not reduced",
                proved=True,
            ),
            loss(
                "F.mse_loss(x, y)",
                "((x - y) ** 2).sum(-1)",
                _KEPT["sum of rows"],
                inputs=_PAIR,
            ),
            loss("((x - y) ** 2).mean()", "(x - y) ** 2", "not reduced", inputs=_PAIR),
        ),
    ),
    other_number(
        "loss_label_smoothing",
        "loss.label_smoothing",
        ("cross_entropy",),
        "label_smoothing",
        Number("label_smoothing", (0.1, 0.0, 0.05, 0.2, 0.01), Scale.LINEAR),
        "label smoothing {port} instead of {reference}",
        rank=2,
        examples=(
            loss(_CE, "ops.cross_entropy(x, y.astype(ms.int32), label_smoothing=0.07)", 0.07),
            loss(
                "F.cross_entropy(x, y, label_smoothing=0.1)",
                "ops.cross_entropy(x, y.astype(ms.int32))",
                0.0,
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_ignore_index",
        "loss.ignore_index",
        CLASS_LOSSES,
        _ignored,
        lambda call, values: call.run(ignore_index=values["ignore_index"]),
        "targets {port} are left out of the loss instead of {reference}",
        argument="ignore_index",
        rank=2,
        examples=(
            loss(
                "F.cross_entropy(x, y, ignore_index=0)",
                "ops.cross_entropy(x, y.astype(ms.int32))",
                None,
                inputs=((16, 3), (16,)),
                integers={"y": 3},
            ),
            loss(
                "F.nll_loss(x.log_softmax(-1), y, ignore_index=0)",
                "ops.cross_entropy(x, y.astype(ms.int32), ignore_index=1)",
                1,
                inputs=((16, 3), (16,)),
                integers={"y": 3},
            ),
        ),
    ),
    other_number(
        "loss_beta",
        "loss.beta",
        ("smooth_l1_loss",),
        "beta",
        Number("beta", (1.0, 0.5, 0.1, 1 / 9, 2.0)),
        "smooth L1 loss with beta {port} instead of {reference}",
        rank=3,
        examples=(
            loss(
                "F.smooth_l1_loss(x, y, beta=1.0)",
                "ops.smooth_l1_loss(x, y, beta=0.3, reduction='mean')",
                0.3,
                inputs=_PAIR,
            ),
        ),
    ),
    other_number(
        "loss_delta",
        "loss.delta",
        ("huber_loss",),
        "delta",
        Number("delta", (1.0, 0.5, 0.1, 2.0)),
        "Huber loss with delta {port} instead of {reference}",
        rank=3,
        examples=(
            loss("F.huber_loss(x, y)", "ops.huber_loss(x, y, delta=0.7)", 0.7, inputs=_PAIR),
        ),
    ),
    FunctionHypothesis(
        "ctc_blank",
        "loss.blank",
        ("ctc_loss",),
        _blanks,
        lambda call, values: call.run(blank=values["blank"]),
        "the blank of the CTC loss is class {port} instead of {reference}",
        argument="blank",
        rank=2,
        examples=(
            loss(
                "F.ctc_loss(x.log_softmax(-1), y + 1, torch.full((3,), 8), torch.full((3,), 2))",
                "ops.ctc_loss(ops.log_softmax(x, -1), y.astype(ms.int32) + 1,"
                " ops.full((3,), 8, dtype=ms.int32), ops.full((3,), 2, dtype=ms.int32),"
                " blank=5, reduction='mean')[0]",
                5,
                inputs=((8, 3, 6), (3, 2)),
                integers={"y": 4},
            ),
        ),
    ),
)
