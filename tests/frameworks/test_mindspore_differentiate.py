"""A gradient that fails must not disturb the ones that follow."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("MindSpore is not installed", allow_module_level=True)

import mindspore as ms
from mindspore import nn

from isograd.frameworks.mindspore.differentiate import differentiate


def test_an_error_inside_leaves_no_half_built_graph() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    network = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    weights = list(network.get_parameters())
    inputs = ms.Tensor(np.ones((5, 2, 3), np.float32))

    def failing(values: ms.Tensor) -> ms.Tensor:
        network(values)
        raise ValueError("in the middle")

    def sound(values: ms.Tensor) -> ms.Tensor:
        return network(values)[0].sum()

    before = differentiate(sound, [inputs], weights)
    for _ in range(3):
        with pytest.raises(ValueError, match="in the middle"):
            differentiate(failing, [inputs], weights)
    after = differentiate(sound, [inputs], weights)
    np.testing.assert_array_equal(after[1][0].asnumpy(), before[1][0].asnumpy())
    assert len(after[2]) == len(weights)
    _, _, alone = differentiate(lambda: sound(inputs), [], weights)
    assert len(alone) == len(weights)
