"""How far correct kernels differ from one another: the source of the tolerances by dtype.

    python benchmarks/compare/tolerances.py

For each layer: the least r for which every element of one implementation lies within
r × |x| + r × (root mean square) of the other's x, over several seeds; the greatest of all is what
`compare/files/tolerance.py` must allow.
"""

from __future__ import annotations

from collections.abc import Callable

import mindspore
import numpy as np
import torch
from mindspore import ops
from numpy.typing import NDArray
from torch.nn import functional

Values = NDArray[np.float64]
SEEDS = 5


def _draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


#: Name, shapes of the inputs, torch's function, MindSpore's.
Layer = tuple[str, tuple[tuple[int, ...], ...], Callable[..., object], Callable[..., object]]
LAYERS: tuple[Layer, ...] = (
    ("matrix product, 4096 terms", ((64, 4096), (4096, 256)), torch.matmul, ops.matmul),
    ("linear, 768", ((128, 768), (768, 768)), torch.matmul, ops.matmul),
    ("conv 3×3, 64 channels", ((4, 64, 28, 28), (64, 64, 3, 3)), functional.conv2d, ops.conv2d),
    ("layer norm, 768", ((64, 768), (768,), (768,)),
     lambda x, w, b: functional.layer_norm(x, (768,), w, b, 1e-5),
     lambda x, w, b: ops.LayerNorm(1, 1, 1e-5)(x, w, b)[0]),
    ("softmax, 512", ((64, 512),),
     lambda x: torch.softmax(4 * x, -1), lambda x: ops.softmax(4 * x, -1)),
    ("gelu", ((64, 3072),), functional.gelu, lambda x: ops.gelu(x, approximate="none")),
    ("tanh", ((64, 3072),), lambda x: torch.tanh(3 * x), lambda x: ops.tanh(3 * x)),
    ("mean over 65,536", ((16, 65536),), lambda x: x.mean(-1), lambda x: ops.mean(x, -1)),
    ("attention, 8 × 64", ((2, 8, 128, 64),) * 3, functional.scaled_dot_product_attention,
     lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) / 8.0, -1), v)),
)  # fmt: skip


def needed(reference: Values, other: Values) -> float:
    """The least r that lets every element pass."""
    size = float(np.sqrt(np.mean(reference**2)))
    return float(np.max(np.abs(other - reference) / (np.abs(reference) + size)))


def _plain(value: object) -> Values:
    if isinstance(value, torch.Tensor):
        return value.detach().double().numpy()
    assert isinstance(value, mindspore.Tensor)
    return value.asnumpy().astype(np.float64)


def _torch(
    function: Callable[..., object], inputs: list[torch.Tensor], dtype: torch.dtype
) -> Values:
    return _plain(function(*(value.to(dtype) for value in inputs)))


def main() -> None:
    """Print a row per layer and dtype."""
    print(f"torch {torch.__version__}, MindSpore {mindspore.__version__}, {SEEDS} seeds\n")
    print(
        "| layer | float32: torch ↔ MindSpore | torch ↔ torch without oneDNN | float16 | bfloat16 |"
    )
    print("|---|---|---|---|---|")
    greatest = np.zeros(4)
    for name, shapes, function, twin in LAYERS:
        row = np.zeros(4)
        for seed in range(SEEDS):
            inputs = [_draw(10 * seed + number, *shape) for number, shape in enumerate(shapes)]
            inputs = [value.float().double() for value in inputs]
            native = _torch(function, inputs, torch.float32)
            tensors = [mindspore.Tensor(value.float().numpy()) for value in inputs]
            with torch.backends.mkldnn.flags(enabled=False):
                plain = _torch(function, inputs, torch.float32)
            here = [needed(native, _plain(twin(*tensors))), needed(native, plain)]
            for dtype in (torch.float16, torch.bfloat16):
                rounded = [value.to(dtype).double() for value in inputs]
                exact = _torch(function, rounded, torch.float64)
                ideal = _plain(torch.from_numpy(exact).to(dtype))
                here.append(needed(ideal, _torch(function, rounded, dtype)))
            row = np.maximum(row, here)
        greatest = np.maximum(greatest, row)
        print(f"| {name} | " + " | ".join(f"{value:.1e}" for value in row) + " |", flush=True)
    print("| greatest | " + " | ".join(f"{value:.1e}" for value in greatest) + " |")


if __name__ == "__main__":
    main()
