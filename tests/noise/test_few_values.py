"""A clean operator is clean of a few values too: a squeeze's, a loss's, two classes'.

MindSpore's exponential is coarse in narrow windows (±0.35, ±1.04, …). Many random values average
that; of a few, all may be there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from isograd.frameworks.base import Floors
from isograd.noise.envelope import ISOLATED_THRESHOLD, ISOLATED_VARIANTS, compare, measured
from isograd.tensors import Array, tensor_value
from isograd.verify.device_profile import floors_of
from isograd.worker.host import Worker
from isograd.worker.protocols import Kernels

pytest.importorskip("torch")
pytest.importorskip("mindspore")

_SHAPES = ((2, 2), (2, 3), (4, 2), (2, 4), (2, 8), (1, 12), (8, 10))
_CENTRES = (-4.0, -2.4, -1.7, -1.0, -0.35, 0.0, 0.35, 1.0, 1.7, 2.4, 4.0)
_SPREADS = (0.02, 0.1, 0.3, 1.0)
_DRAWS = 60
#: Functions of torch and of MindSpore.
FUNCTIONS = {
    "torch.sigmoid(x)": "ops.sigmoid(x)",
    "x * torch.sigmoid(x)": "x * ops.sigmoid(x)",
    "F.silu(x)": "ops.silu(x)",
    "torch.exp(x)": "ops.exp(x)",
    "torch.tanh(x)": "ops.tanh(x)",
    "F.gelu(x)": "ops.gelu(x, approximate='none')",
    "F.softplus(x)": "ops.softplus(x)",
    "F.mish(x)": "ops.mish(x)",
    "F.elu(x)": "ops.elu(x)",
    "F.logsigmoid(x)": "ops.logsigmoid(x)",
    "torch.softmax(x, -1)": "ops.softmax(x, -1)",
    "F.log_softmax(x, -1)": "ops.log_softmax(x, -1)",
    "torch.logsumexp(x, -1)": "ops.logsumexp(x, -1)",
}


@pytest.fixture(scope="module")
def workers() -> Iterator[tuple[Worker, Worker, Floors]]:
    with Worker("torch", "reference") as reference, Worker("mindspore", "port") as port:
        yield reference, port, floors_of(reference, port, lambda _: None)


def few_values() -> Iterator[Array]:
    """Values near a number; in some, one of them among smaller ones."""
    generator = np.random.default_rng(0)
    for draw in range(_DRAWS):
        shape = _SHAPES[draw % len(_SHAPES)]
        centre, spread = generator.choice(_CENTRES), generator.choice(_SPREADS)
        values = centre + spread * generator.standard_normal(shape)
        if draw % 3 == 0:
            values *= 0.1
            values.flat[0] = centre
        yield values.astype(np.float32)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_clean_operator_of_few_values_is_not_called_divergent(
    function: str, workers: tuple[Worker, Worker, Floors]
) -> None:
    reference, port, floors = workers
    loud = []
    for values in few_values():
        given = {"x": tensor_value(values)}
        variants = list(ISOLATED_VARIANTS)
        expected = measured(
            reference.ask(Kernels.measure_kernel, function, given, {}, variants, floors)
        )
        found = port.ask(Kernels.run_kernel, FUNCTIONS[function], given, {})
        for key in ("output", "gradient.x"):
            ratio = compare(key, expected[key], found[key]).ratio
            if ratio > ISOLATED_THRESHOLD:
                loud.append((key, ratio, values))
    assert loud == []
