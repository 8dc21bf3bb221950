"""Running the micro-benchmarks of `kernels.toml` in either framework.

The expressions are isograd's own data, not the user's; they are evaluated with the framework's
usual short names.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isograd.frameworks.base import SIGNS, Arithmetic, Floors, Tensors
from isograd.tensors import TensorValue, tensor_value

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


#: How far inputs lie from the number that they are near to, in shares of it.
_NEARNESS = 0.1
#: The results of a convolution, in the order of `terms`.
_RESULTS = ("output", "gradient.x", "gradient.w")


@dataclass(frozen=True)
class Kernel:
    """One micro-benchmark; its fields stand in kernels.toml.

    sign: -1 or 1 where the inputs lie near each scale, on that side of zero; 0 where they are
    normal.
    """

    torch: str
    mindspore: tuple[str, ...]
    inputs: dict[str, tuple[int, ...]]
    scales: tuple[float, ...]
    forward: tuple[str, ...]
    backward: tuple[str, ...]
    labels: int
    terms: tuple[int, ...] = ()
    sign: int = 0

    def place(self, key: str, scale: float) -> float:
        """What the floor of a result is measured at: the number of terms, or the magnitude."""
        if self.terms:
            return float(self.terms[_RESULTS.index(key)])
        return scale if key == "output" else 1.0

    def values(self, scale: float) -> tuple[Tensors, Tensors]:
        """Floating inputs by name, and the integer labels if there are any.

        returns: the shapes of kernels.toml; float32 inputs and integer labels.
        """
        generator = np.random.default_rng(20261121)
        drawn = {name: generator.standard_normal(shape) for name, shape in self.inputs.items()}
        if self.sign:
            drawn = {n: self.sign * (1.0 + _NEARNESS * values) for n, values in drawn.items()}
        found = {
            name: tensor_value((values * scale).astype(np.float32))
            for name, values in drawn.items()
        }
        labels: Tensors = {}
        if self.labels:
            count = next(iter(self.inputs.values()))[0] if "x" in self.inputs else 400
            labels["labels"] = tensor_value(generator.integers(0, self.labels, count))
        return found, labels


def load_kernels() -> tuple[Kernel, ...]:
    """The table of micro-benchmarks; what is measured near numbers is there for both signs."""
    text = (Path(__file__).parent / "kernels.toml").read_text(encoding="utf-8")
    return tuple(
        _kernel(entry, sign)
        for entry in tomllib.loads(text)["kernel"]
        for sign in (SIGNS if entry.get("near", False) else (0,))
    )


def _kernel(entry: dict[str, Any], sign: int) -> Kernel:
    suffix = f".{SIGNS[sign]}" if sign else ""
    return Kernel(
        entry["torch"],
        tuple(entry["mindspore"]),
        {name: tuple(shape) for name, shape in entry["inputs"].items()},
        tuple(entry.get("scales", (1.0,))),
        tuple(f"{name}{suffix}" for name in entry.get("forward", ())),
        tuple(entry.get("backward", ())),
        int(entry.get("labels", 0)),
        tuple(entry.get("terms", ())),
        sign,
    )


def run_torch(
    expression: str, inputs: Tensors, labels: Tensors, arithmetic: Arithmetic, floors: Floors
) -> Tensors:
    """The result of an expression, and the gradients of its sum with fixed weights.

    inputs: the shapes of the micro-benchmark, float32.
    labels: the shapes of the micro-benchmark, int64.
    returns: the shapes of the result and of the inputs; float64 in that arithmetic, else float32.
    """
    import torch
    from torch.nn import functional

    from isograd.frameworks.torch.arithmetic import computing, with_input_noise
    from isograd.frameworks.torch.convert import from_value, to_value

    leaves = {}
    for position, (name, value) in enumerate(inputs.items()):
        tensor = from_value(value)
        if arithmetic.input_noise:
            tensor = with_input_noise(tensor, arithmetic, position)
        leaves[name] = (tensor.double() if arithmetic.float64 else tensor).requires_grad_()
    names: dict[str, Any] = {"torch": torch, "F": functional}
    names |= leaves | {name: from_value(value) for name, value in labels.items()}
    with computing(arithmetic, floors):
        output = eval(expression, names)  # noqa: S307 - isograd's own kernels.toml
        weights = torch.from_numpy(_weights(tuple(output.shape))).to(output.dtype)
        found = torch.autograd.grad(output, list(leaves.values()), weights, allow_unused=True)
    results = {"output": to_value(output)}
    for name, gradient in zip(leaves, found, strict=True):
        if gradient is not None:
            results[f"gradient.{name}"] = to_value(gradient)
    return results


def run_mindspore(expression: str, inputs: Tensors, labels: Tensors) -> Tensors:
    """The same in MindSpore.

    inputs: the shapes of the micro-benchmark, float32.
    labels: the shapes of the micro-benchmark, int64.
    returns: the shapes of the result and of the inputs, float32.
    """
    import mindspore as ms
    from mindspore import nn, ops

    from isograd.frameworks.mindspore.convert import from_value, to_value

    def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
        count = weight.shape[0]
        zeros, ones = ops.zeros(count, ms.float32), ops.ones(count, ms.float32)
        kernel = ops.operations.BatchNorm(is_training=True, epsilon=1e-5)
        return kernel(x, weight, bias, zeros, ones)[0]

    def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        kernel = ops.operations.LayerNorm(begin_norm_axis=-1, begin_params_axis=-1, epsilon=1e-5)
        return kernel(x, weight, bias)[0]

    def conv_transpose(x: Any, weight: Any) -> Any:
        # out_channel is that of the convolution whose gradient it is: the input's.
        kernel = ops.operations.Conv2DTranspose(x.shape[1], 4, pad_mode="pad", pad=1, stride=2)
        return kernel(x, weight, (x.shape[0], weight.shape[1], 2 * x.shape[2], 2 * x.shape[3]))

    def instance_norm(x: Any, weight: Any, bias: Any) -> Any:
        mean = x.mean((2, 3), keep_dims=True)
        variance = ((x - mean) ** 2).mean((2, 3), keep_dims=True)
        normal = (x - mean) / ops.sqrt(variance + 1e-5)
        return normal * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)

    names: dict[str, Any] = {"ms": ms, "nn": nn, "ops": ops}
    names |= {"batch_norm": batch_norm, "layer_norm": layer_norm}
    names |= {"conv_transpose": conv_transpose, "instance_norm": instance_norm}
    names |= {
        name: from_value(TensorValue(value.values.astype(np.int32), "int32"))
        for name, value in labels.items()
    }
    kept: list[Any] = []

    def run(*leaves: Any) -> Any:
        now = {**names, **dict(zip(inputs, leaves, strict=True))}
        output = eval(expression, now)  # noqa: S307 - isograd's own kernels.toml
        kept[:] = [output]
        return (output * ms.Tensor(_weights(tuple(output.shape)))).sum()

    leaves = [from_value(value) for value in inputs.values()]
    gradients = ms.grad(run, tuple(range(len(leaves))))(*leaves)
    found = gradients if isinstance(gradients, tuple) else (gradients,)
    results = {"output": to_value(kept[0])}
    for name, gradient in zip(inputs, found, strict=True):
        results[f"gradient.{name}"] = to_value(gradient)
    return results


def _weights(shape: tuple[int, ...]) -> Any:
    generator = np.random.default_rng(7)
    return generator.standard_normal(shape).astype(np.float32)
