"""Losses: the weights of the whole and of its terms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.losses import count, loss
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    FunctionHypothesis,
    Number,
    Scale,
    Values,
)
from isograd.frameworks.base import FunctionSite, Operand

CLASS_LOSSES = ("cross_entropy", "nll_loss")


def _scalars(site: FunctionSite, context: Context) -> bool:
    return bool(site.outputs) and count(site.outputs[0].shape) == 1


def _whole(site: FunctionSite, context: Context) -> Iterator[Values]:
    """The last function of the loss: what it yields is the loss."""
    if context.is_loss and site is context.sites[-1] and _scalars(site, context):
        yield {}


def _terms(site: FunctionSite, context: Context) -> Iterator[Values]:
    both = [site.arguments.get(name) for name in ("input", "other")]
    if not context.is_loss or not all(isinstance(o, Operand) for o in both):
        return
    if _scalars(site, context):
        for name in ("input", "other"):
            yield {"dropped": name}


def _without_term(call: Call, values: Values) -> Any:
    kept = call["other" if values["dropped"] == "input" else "input"]
    if call.function == "sub" and values["dropped"] == "input":
        return -kept
    return kept * 1.0


def _term_weight(site: FunctionSite, context: Context) -> Iterator[Values]:
    for values in _terms(site, context):
        yield {"term": values["dropped"], "own": _number(site, values["dropped"], context)}


def _number(site: FunctionSite, name: str, context: Context) -> float:
    maker = context.producer(site.arguments[name])
    number = None if maker is None else maker.arguments.get("other")
    if maker is None or not isinstance(number, (int, float)) or isinstance(number, bool):
        return 1.0
    if not number or maker.place.function not in ("mul", "div"):
        return 1.0
    return float(number) if maker.place.function == "mul" else 1.0 / float(number)


def _with_weight(call: Call, values: Values) -> Any:
    name = values["term"]
    return call.run(**{name: call[name] * (values["weight"] / values["own"])})


def _class_weights(site: FunctionSite, context: Context) -> Iterator[Values]:
    for name in ("weight", "pos_weight"):
        if isinstance(site.arguments.get(name), Operand):
            yield {"argument": name}


def _positive(site: FunctionSite, context: Context) -> Iterator[Values]:
    yield {"scaled": site.arguments.get("pos_weight") is not None}


def _with_positive_weight(call: Call, values: Values) -> Any:
    import torch

    number = values["weight"]
    if values["scaled"]:
        return call.run(pos_weight=call["pos_weight"] * number)
    given = call["input"]
    return call.run(pos_weight=torch.tensor(number, dtype=given.dtype, device=given.device))


_XY = ((6, 5), (6,))

_PAIR = ((6, 5), (6, 5))

_CE = "F.cross_entropy(x, y)"

HYPOTHESES = (
    FunctionHypothesis(
        "loss_class_weights",
        "loss.weight",
        (*CLASS_LOSSES, "binary_cross_entropy", "binary_cross_entropy_with_logits"),
        _class_weights,
        lambda call, values: call.run(**{values["argument"]: None}),
        "the loss has no {argument}",
        rank=2,
        examples=(
            loss(
                "F.cross_entropy(x, y, weight=torch.linspace(1, 2, 5).to(x))",
                "ops.cross_entropy(x, y.astype(ms.int32))",
                None,
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_positive_weight",
        "loss.weight",
        ("binary_cross_entropy_with_logits",),
        _positive,
        _with_positive_weight,
        "positive targets weigh {port} times as much",
        numbers=(Number("weight", (2.0, 0.5, 1.1, 5.0, 10.0)),),
        rank=3,
        reference_value=lambda site, context: 1.0,
        examples=(
            loss(
                "F.binary_cross_entropy_with_logits(x, torch.sigmoid(y * 3))",
                "ops.binary_cross_entropy_with_logits(x, ops.sigmoid(y * 3), ops.ones_like(x), "
                "1.3 * ops.ones_like(x))",
                1.3,
                inputs=_PAIR,
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_factor",
        "loss.weight",
        ("*",),
        _whole,
        lambda call, values: call.run() * values["factor"],
        "the whole loss is multiplied by {port}",
        numbers=(Number("factor", (0.5, 2.0, 0.1, 10.0, 0.01, 100.0, 1e-3, 1e3)),),
        rank=7,
        reference_value=lambda site, context: 1.0,
        examples=(loss(_CE, "ops.cross_entropy(x, y.astype(ms.int32)) * 0.3", 0.3),),
    ),
    FunctionHypothesis(
        "loss_term",
        "loss.term",
        ("add", "sub"),
        _terms,
        _without_term,
        "a term of the loss is left out (torch's argument {dropped})",
        rank=3,
        port_value=lambda values: values["dropped"],
        examples=(
            loss(
                _CE + " + 0.1 * (x * x).mean()",
                "ops.cross_entropy(x, y.astype(ms.int32))",
                "other",
            ),
        ),
    ),
    FunctionHypothesis(
        "loss_term_weight",
        "loss.weight",
        ("add", "sub"),
        _term_weight,
        _with_weight,
        "a term of the loss has weight {port} instead of {own:g}",
        numbers=(Number("weight", (1.0, 0.5, 0.1, 2.0, -1.0), Scale.LINEAR),),
        rank=5,
        examples=(
            loss(
                _CE + " + 0.1 * (x * x).mean()",
                "ops.cross_entropy(x, y.astype(ms.int32)) + 0.7 * (x * x).mean()",
                0.7,
            ),
        ),
    ),
)
