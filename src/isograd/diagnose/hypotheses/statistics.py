"""Running statistics of batch normalisation, and whether they are used."""

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
)
from isograd.frameworks.base import FunctionSite, Operand


def _tracks(site: FunctionSite) -> bool:
    return isinstance(site.arguments.get("running_mean"), Operand)


def _propose_mode(site: FunctionSite, context: Context) -> Iterator[Values]:
    if _tracks(site):
        yield {"training": not site.arguments.get("training", False)}


def _mode(training: Any) -> str:
    return "batch statistics" if training else "running statistics"


def _propose_unloaded(site: FunctionSite, context: Context) -> Iterator[Values]:
    if _tracks(site) and not site.arguments.get("training", False):
        yield {"statistics": "mean 0 and variance 1"}


def _unloaded(call: Call, values: Values) -> Any:
    import torch

    mean, variance = call["running_mean"], call["running_var"]
    return call.run(running_mean=torch.zeros_like(mean), running_var=torch.ones_like(variance))


def _propose_moving(site: FunctionSite, context: Context) -> Iterator[Values]:
    if _tracks(site) and site.arguments.get("training", False):
        yield {}


def _biased(call: Call, values: Values) -> Any:
    """The running variance moves by the variance over n."""
    import torch

    mean, variance = call["running_mean"], call["running_var"]
    moved, spread = mean.clone(), variance.clone()
    result = call.run(running_mean=moved, running_var=spread)
    x = call["input"]
    with torch.no_grad():
        own = x.var([0, *range(2, x.dim())], unbiased=True)
        count = x.numel() // x.shape[1]
        mean.copy_(moved)
        variance.copy_(spread - call["momentum"] * own / count)
    return result


_NORM = "nn.BatchNorm2d(6)"
_IMAGE = ((4, 6, 5, 5),)
#: MindSpore's layer with a running variance over n.
_BIASED = (
    "type('Biased', (nn.BatchNorm2d,), {'construct': lambda self, x: ("
    "ops.assign(self.moving_mean, 0.9 * self.moving_mean + 0.1 * x.mean(axis=(0, 2, 3))), "
    "ops.assign(self.moving_variance, 0.9 * self.moving_variance "
    "+ 0.1 * x.transpose(1, 0, 2, 3).reshape(6, -1).var(axis=1)), "
    "(x - x.mean(axis=(0, 2, 3), keep_dims=True)) / ops.sqrt("
    "x.transpose(1, 0, 2, 3).reshape(6, -1).var(axis=1).reshape(1, 6, 1, 1) + 1e-5)"
    " * self.gamma.reshape(1, 6, 1, 1) + self.beta.reshape(1, 6, 1, 1))[-1]})(6)"
)

HYPOTHESES = (
    FunctionHypothesis(
        "batch_norm_mode",
        "batch_norm.mode",
        ("batch_norm",),
        _propose_mode,
        lambda call, values: call.run(**values),
        "batch normalisation by its {port} instead of its {reference}",
        reference_value=lambda site, context: _mode(site.arguments.get("training", False)),
        port_value=lambda values: _mode(values["training"]),
        rank=2,
        examples=(
            Example(
                "self.norm(x)",
                "self.norm(x)",
                _IMAGE,
                {"norm": (_NORM, "nn.BatchNorm2d(6, use_batch_statistics=False)")},
                port_value="running statistics",
            ),
            Example(
                "self.norm(x)",
                "self.norm(x)",
                _IMAGE,
                {"norm": (_NORM, "nn.BatchNorm2d(6, use_batch_statistics=True)")},
                mode="eval",
                port_value="batch statistics",
            ),
        ),
    ),
    FunctionHypothesis(
        "batch_norm_running_stats",
        "batch_norm.running_stats",
        ("batch_norm",),
        _propose_unloaded,
        _unloaded,
        "batch normalisation with {port} instead of the running statistics",
        reference_value=lambda site, context: "running statistics",
        port_value=lambda values: values["statistics"],
        rank=3,
        examples=(
            Example(
                "F.batch_norm(x, torch.linspace(-1, 1, 6), torch.linspace(0.5, 1.5, 6))",
                "x / math.sqrt(1 + 1e-5)",
                _IMAGE,
                mode="eval",
            ),
        ),
    ),
    FunctionHypothesis(
        "batch_norm_momentum",
        "batch_norm.momentum",
        ("batch_norm", "instance_norm"),
        _propose_moving,
        lambda call, values: call.run(momentum=values["momentum"]),
        "running statistics take {port} of each batch instead of {reference} "
        "(torch's momentum; MindSpore's is 1 less this)",
        "momentum",
        numbers=(
            Number(
                "momentum",
                (0.1, 0.9, 0.01, 0.99, 0.05, 0.03, 0.001, 0.003, 0.2, 0.5, 0.0),
                Scale.LINEAR,
            ),
        ),
        statistics=True,
        rank=3,
        examples=(
            Example(
                "self.norm(x)",
                "self.norm(x)",
                _IMAGE,
                {"norm": (_NORM, "nn.BatchNorm2d(6, momentum=0.1)")},
                port_value=0.9,
                trains=True,
            ),
            Example(
                "self.norm(x)",
                "self.norm(x)",
                ((8, 6),),
                {"norm": ("nn.BatchNorm1d(6, momentum=0.05)", "nn.BatchNorm1d(6, momentum=0.97)")},
                port_value=0.03,
                trains=True,
            ),
        ),
    ),
    FunctionHypothesis(
        "batch_norm_unbiased_running",
        "batch_norm.unbiased",
        ("batch_norm",),
        _propose_moving,
        _biased,
        "the running variance moves by the variance over n instead of n - 1",
        reference_value=lambda site, context: True,
        port_value=lambda values: False,
        statistics=True,
        rank=3,
        examples=(
            Example(
                "self.norm(x)",
                "self.norm(x)",
                _IMAGE,
                {"norm": (_NORM, _BIASED)},
                port_value=False,
                proved=False,
                trains=True,
            ),
        ),
    ),
)
