"""How a random network is trained: a loss over all its outputs, and an optimizer."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from network import Ending, Tensor

#: Of one feature a cosine is 1 or -1, and its gradient nothing but rounding, which Adagrad and its
#: like divide by itself: such a training is no test.
_COSINE: tuple[str, str | None] = (
    "F.cosine_embedding_loss({o}.flatten(1), {t}.flatten(1), torch.ones({o}.shape[0]))",
    None,
)
#: Losses of one real output against a target of the same shape: torch's text and MindSpore's.
_REAL: list[tuple[str, str | None]] = [
    ("F.mse_loss({o}, {t})", "ops.mse_loss({o}, {t})"),
    ("F.mse_loss({o}, {t}, reduction='sum') / 10", "ops.mse_loss({o}, {t}, reduction='sum') / 10"),
    ("F.l1_loss({o}, {t})", "ops.l1_loss({o}, {t})"),
    ("F.smooth_l1_loss({o}, {t})", "ops.smooth_l1_loss({o}, {t}, reduction='mean')"),
    ("F.huber_loss({o}, {t}, delta=0.7)", None),
    (
        "F.binary_cross_entropy_with_logits({o}, torch.sigmoid({t}))",
        # Not `ops.binary_cross_entropy_with_logits`: on a CPU its gradient is divided by too much
        # for three dimensions and more.
        "(ops.softplus({o}) - {o} * ops.sigmoid({t})).mean()",
    ),
    ("({o} - {t}).pow(2).mean()", "({o} - {t}).pow(2).mean()"),
    ("F.kl_div(F.log_softmax({o}, -1), F.softmax({t}, -1), reduction='batchmean')", None),
    ("F.soft_margin_loss({o}, torch.sign({t}))", None),
    _COSINE,
]
#: Losses of one output with a class for each row.
_CLASSES = [
    ("F.cross_entropy({o}, {t})", "ops.cross_entropy({o}, {t})"),
    (
        "F.cross_entropy({o}, {t}, label_smoothing=0.1)",
        "ops.cross_entropy({o}, {t}, label_smoothing=0.1)",
    ),
    ("F.cross_entropy({o}, {t}, ignore_index=0, reduction='sum')", None),
    ("F.nll_loss(F.log_softmax({o}, 1), {t})", "ops.nll_loss(ops.log_softmax({o}, 1), {t})"),
    ("F.multi_margin_loss({o}, {t})", None),
]
_OPTIMIZERS = [
    ("torch.optim.SGD({p}, lr=0.05)", "nn.SGD({p}, 0.05)"),
    (
        "torch.optim.SGD({p}, lr=0.05, momentum=0.9)",
        "nn.SGD({p}, 0.05, momentum=0.9)",
    ),
    ("torch.optim.SGD({p}, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)", None),
    ("torch.optim.Adam({p}, lr=0.01)", None),
    ("torch.optim.Adam({p}, lr=0.01, betas=(0.8, 0.99), weight_decay=0.1)", None),
    ("torch.optim.Adam({p}, lr=0.01, amsgrad=True)", None),
    (
        "torch.optim.AdamW({p}, lr=0.01, weight_decay=0.05)",
        "ms.experimental.optim.AdamW({p}, lr=0.01, weight_decay=0.05)",
    ),
    ("torch.optim.RMSprop({p}, lr=0.01, momentum=0.5)", None),
    ("torch.optim.Adagrad({p}, lr=0.05)", None),
    ("torch.optim.Adadelta({p}, lr=0.5)", None),
    ("torch.optim.NAdam({p}, lr=0.01)", None),
    ("torch.optim.RAdam({p}, lr=0.01)", None),
    ("torch.optim.Adamax({p}, lr=0.01)", None),
    ("torch.optim.Rprop({p}, lr=0.01)", None),
]


def draw_ending(
    draw: random.Random,
    names: Sequence[str],
    values: Sequence[torch.Tensor],
    returns_dict: bool,
    has_parameters: bool,
    native_only: bool,
) -> Ending:
    """The loss and the optimizer of a network; one network in twelve has no loss.

    names: how the loss's body calls each output; values: the outputs as torch computed them.
    """
    if draw.random() < 1 / 12:
        return Ending(native_loss="", native_optimizer="")
    terms: list[tuple[str, str | None]] = []
    targets: list[Tensor] = []
    for name, value in zip(names, values, strict=True):
        texts, target = _term(draw, value, native_only)
        slot = f"t{len(targets)}"
        terms.append(
            (texts[0].format(o=name, t=slot), texts[1] and texts[1].format(o=name, t=slot))
        )
        targets.append(target)
    arguments = ", ".join(["output", *[f"t{i}" for i in range(len(targets))]])
    unpacked = "" if returns_dict else f"    {', '.join(names)} = output\n"
    head = f"def loss({arguments}):\n{unpacked}    return "
    native = None
    if all(theirs for _, theirs in terms):
        native = head + " + ".join(theirs or "" for _, theirs in terms)
    loss = head + " + ".join(ours for ours, _ in terms)
    if not has_parameters:
        return Ending(loss, native, tuple(targets), native_optimizer="")
    chosen = _any_of(draw, _OPTIMIZERS, native_only)
    return Ending(
        loss,
        native,
        tuple(targets),
        chosen[0].format(p="model.parameters()"),
        chosen[1] and chosen[1].format(p="model.trainable_params()"),
    )


def _term(
    draw: random.Random, value: torch.Tensor, native_only: bool
) -> tuple[tuple[str, str | None], Tensor]:
    classes = value.shape[1]
    if value.dim() == 2 and classes > 1 and draw.random() < 0.5:
        fill = f'fill = "integers"\nlow = 0\nhigh = {classes}'
        return _any_of(draw, _CLASSES, native_only), Tensor((value.shape[0],), "int64", fill)
    losses = [loss for loss in _REAL if loss is not _COSINE or value[0].numel() > 1]
    return _any_of(draw, losses, native_only), Tensor(tuple(value.shape))


def _any_of(
    draw: random.Random, pairs: list[tuple[str, str | None]], native_only: bool
) -> tuple[str, str | None]:
    return draw.choice([pair for pair in pairs if pair[1] or not native_only])
