"""Losses: of other tokens or labels, of another kind, of probabilities for logits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import flow_of
from isograd.diagnose.hypotheses.losses import CLASS_LOSSES, LOSSES, loss
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Number, Values
from isograd.frameworks.base import FunctionSite, Operand

_SOFTMAXES = ("softmax", "log_softmax", "logsumexp", "sigmoid", "logsigmoid", "log_sigmoid")
_WITH_LOGITS = ("cross_entropy", "binary_cross_entropy_with_logits")
_REGRESSIONS = ("mse_loss", "l1_loss", "smooth_l1_loss")
_FROM_FIRST = "slice(1, None, None)"
_TO_LAST = "slice(None, -1, None)"


def _shifts(site: FunctionSite, context: Context) -> Iterator[Values]:
    index = site.arguments.get("index")
    if not context.is_loss:
        return
    parts = index if isinstance(index, tuple) else (index,)
    for position, part in enumerate(parts):
        if part == _FROM_FIRST:
            yield {"position": position, "how": "to the last but one"}
        elif part == _TO_LAST:
            yield {"position": position, "how": "from the second"}
        if part in (_FROM_FIRST, _TO_LAST):
            yield {"position": position, "how": "all"}


def _shifted(call: Call, values: Values) -> Any:
    index = call["index"]
    parts = list(index) if isinstance(index, tuple) else [index]
    parts[values["position"]] = {
        "to the last but one": slice(None, -1),
        "from the second": slice(1, None),
        "all": slice(None),
    }[values["how"]]
    return call.run(index=tuple(parts))


def _labels(site: FunctionSite, context: Context) -> Iterator[Values]:
    name = {"one_hot": "tensor", "gather": "index"}.get(site.place.function, "target")
    target = site.arguments.get(name, site.arguments.get("0"))
    if not context.is_loss or not isinstance(target, Operand):
        return
    if not target.dtype.startswith("int"):
        return
    name = name if name in site.arguments else "0"
    given = site.arguments.get("input")
    classes = 0
    if isinstance(given, Operand) and len(given.shape) > 1:
        classes = given.shape[1] if site.place.function in CLASS_LOSSES else given.shape[-1]
    for offset in (-1, 1):
        for ends in ("around", "at the end") if classes else ("as it is",):
            yield {"argument": name, "offset": offset, "classes": classes, "ends": ends}


def _other_labels(call: Call, values: Values) -> Any:
    import torch

    target, classes = call[values["argument"]], values["classes"]
    moved = target + values["offset"]
    if values["ends"] == "around":
        moved = moved % classes
    elif values["ends"] == "at the end":
        moved = moved.clamp(0, classes - 1)
    ignored = call.arguments.get("ignore_index")
    if isinstance(ignored, int):
        moved = torch.where(target == ignored, target, moved)
    return call.run(**{values["argument"]: moved})


def _kinds(site: FunctionSite, context: Context) -> Iterator[Values]:
    function = site.place.function
    if not context.is_loss:
        return
    if function in _REGRESSIONS:
        hows = [f for f in _REGRESSIONS if f != function]
        hows += ["root of the mean square"] if function == "mse_loss" else []
    elif function == "kl_div":
        hows = ["arguments exchanged", "probabilities for their logarithms", "log_target"]
    elif function == "cross_entropy":
        hows = ["softmax applied twice", "sigmoid before it"]
    elif function == "binary_cross_entropy_with_logits":
        hows = ["sigmoid applied twice", "probabilities as logits"]
    elif function == "binary_cross_entropy":
        hows = ["with logits"]
    else:
        hows = ["without logarithm"]
    for how in hows:
        yield {"kind": how}


def _other_kind(call: Call, values: Values) -> Any:
    import torch
    import torch.nn.functional as F

    how, x = values["kind"], call["input"]
    if how in _REGRESSIONS:
        reduction = call.arguments.get("reduction", "mean")
        return getattr(F, how)(x, call["target"], reduction=reduction)
    if how == "root of the mean square":
        return torch.sqrt(call.run())
    if how == "arguments exchanged":
        return call.run(input=call["target"].log(), target=x.exp())
    if how in ("probabilities for their logarithms", "without logarithm"):
        return call.run(input=x.exp())
    if how == "log_target":
        return call.run(log_target=not call.arguments.get("log_target", False))
    if how == "softmax applied twice":
        return call.run(input=torch.softmax(x, 1 if x.ndim > 1 else 0))
    if how == "with logits":
        weight = call.arguments.get("weight")
        reduction = call.arguments.get("reduction", "mean")
        return F.binary_cross_entropy_with_logits(x, call["target"], weight, reduction=reduction)
    return call.run(input=torch.sigmoid(x))


def _by_hand(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Squares and absolute values of differences in a loss that is written out."""
    if not context.is_loss:
        return
    function = site.place.function
    exponent = site.arguments.get("other", site.arguments.get("exponent"))
    if function == "square" or (function == "pow" and exponent == 2):
        yield {"kind": "abs"}
    elif function == "abs":
        yield {"kind": "square"}


def _power(call: Call, values: Values) -> Any:
    x = call["input"]
    return x.abs() if values["kind"] == "abs" else x * x


def _temperatures(site: FunctionSite, context: Context) -> Iterator[Values]:
    given = site.arguments.get("input")
    if not context.is_loss or not isinstance(given, Operand):
        return
    flow = flow_of(context)
    made = next(flow.behind(given, frozenset()), None)
    if site.place.function == "cross_entropy" and made is not None:
        if made.place.function in ("log_softmax", "softmax"):
            return
    own = 1.0
    number = made.arguments.get("other") if made is not None else None
    if made is not None and isinstance(number, (int, float)) and number > 0:
        if made.place.function in ("mul", "div"):
            own = float(number) if made.place.function == "div" else 1.0 / float(number)
    yield {"own": own}


def _cooled(call: Call, values: Values) -> Any:
    return call.run(input=call["input"] * (values["own"] / values["temperature"]))


_X = ((6, 5), (6, 5))
_TOKENS = ((3, 7, 5), (3, 7))
_XY = ((6, 5), (6,))


def _loss(reference: str, port: str, value: Any, inputs: Any = _X, **more: Any) -> Example:
    integers = {"y": 5} if inputs is not _X else {}
    return Example(
        reference, port, inputs, integers=integers, port_value=value, is_loss=True, **more
    )


def _propose_target_order(site: FunctionSite, context: Context) -> Iterator[Values]:
    """The first function that takes a target of the loss."""
    for name, operand in site.arguments.items():
        if not isinstance(operand, Operand) or not operand.source.startswith("target."):
            continue
        if context.is_loss and operand.shape and operand.shape[0] > 1:
            for order, roll in _ORDERS.items():
                yield {"argument": name, "order": order, "roll": roll}


def _target_order(call: Call, values: Values) -> Any:
    given, roll = call[values["argument"]], values["roll"]
    return call.run(**{values["argument"]: given.roll(roll, 0) if roll else given.flip(0)})


_ORDERS = {"reversed": 0, "moved by one": 1, "moved back by one": -1}


def _propose_fewer(site: FunctionSite, context: Context) -> Iterator[Values]:
    given, target = site.arguments.get("input"), site.arguments.get("target")
    if not isinstance(given, Operand) or not isinstance(target, Operand) or not target.shape:
        return
    if given.shape[:1] == target.shape[:1] and not site.arguments.get("weight"):
        for count in range(1, min(_MOST_DROPPED, given.shape[0] - 1) + 1):
            yield {"count": count}


def _fewer(call: Call, values: Values) -> Any:
    kept = call["input"].shape[0] - values["count"]
    return call.run(input=call["input"][:kept], target=call["target"][:kept])


#: Examples at the end of a batch that may be left out.
_MOST_DROPPED = 3

HYPOTHESES = (
    FunctionHypothesis(
        "loss_shift",
        "loss.shift",
        ("getitem",),
        _shifts,
        _shifted,
        "the positions {port} instead of those of the reference go into the loss",
        rank=2,
        port_value=lambda values: values["how"],
        examples=(
            _loss(
                "F.cross_entropy(x[:, :-1].flatten(0, 1), y[:, 1:].flatten())",
                "ops.cross_entropy(x[:, :-1].reshape(-1, 5), "
                "y[:, :-1].reshape(-1).astype(ms.int32))",
                "to the last but one",
                _TOKENS,
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_label_offset",
        "loss.label_offset",
        (*CLASS_LOSSES, "one_hot", "gather"),
        _labels,
        _other_labels,
        "labels are moved by {port}",
        rank=3,
        port_value=lambda values: values["offset"],
        examples=(
            _loss(
                "F.cross_entropy(x, y)",
                "ops.cross_entropy(x, ((y + 1) % 5).astype(ms.int32))",
                1,
                _XY,
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_kind",
        "loss.kind",
        (*_REGRESSIONS, "kl_div", *_WITH_LOGITS, "binary_cross_entropy", "nll_loss"),
        _kinds,
        _other_kind,
        "another loss: {port}",
        rank=3,
        reference_value=lambda site, context: site.place.function,
        port_value=lambda values: values["kind"],
        examples=(
            _loss("F.mse_loss(x, y)", "ops.l1_loss(x, y)", "l1_loss"),
            _loss(
                "F.cross_entropy(x, y)",
                "ops.cross_entropy(ops.softmax(x, -1), y.astype(ms.int32))",
                "softmax applied twice",
                _XY,
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_kind_by_hand",
        "loss.kind",
        ("pow", "square", "abs"),
        _by_hand,
        _power,
        "{port} instead of {reference} in the loss",
        rank=3,
        reference_value=lambda site, context: site.place.function,
        port_value=lambda values: values["kind"],
        examples=(_loss("((x - y) ** 2).mean()", "ops.abs(x - y).mean()", "abs"),),
    ),
    FunctionHypothesis(
        "loss_temperature",
        "loss.temperature",
        ("cross_entropy", "softmax", "log_softmax", "logsumexp", "kl_div"),
        _temperatures,
        _cooled,
        "logits divided by the temperature {port} instead of {own:g}",
        numbers=(Number("temperature", (1.0, 0.1, 0.07, 0.5, 2.0, 4.0, 10.0)),),
        rank=4,
        examples=(
            _loss(
                "F.cross_entropy(x / 0.5, y)",
                "ops.cross_entropy(x / 0.8, y.astype(ms.int32))",
                0.8,
                _XY,
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_drop_last",
        "data.drop_last",
        LOSSES,
        _propose_fewer,
        _fewer,
        "the last {port} examples of the batch are left out of the loss",
        rank=1,
        reference_value=lambda site, context: 0,
        port_value=lambda values: values["count"],
        examples=(
            loss(
                "F.cross_entropy(x, y)",
                "ops.cross_entropy(x[:5], y.astype(ms.int32)[:5])",
                1,
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_target_order",
        "data.order",
        ("*",),
        _propose_target_order,
        _target_order,
        "the targets' batch is {port}",
        rank=6,
        reference_value=lambda site, context: "as given",
        port_value=lambda values: values["order"],
        examples=(
            loss(
                "F.cross_entropy(x, y)",
                "ops.cross_entropy(x, ops.flip(y.astype(ms.int32), (0,)))",
                "reversed",
            ),
        ),
    ),
)
