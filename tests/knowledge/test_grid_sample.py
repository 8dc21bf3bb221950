"""The nearest pixel at places between two of them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

import mindspore as ms
import torch

from isograd import runtime


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_the_nearest_of_two_pixels_is_the_even_one(padding: str, align_corners: bool) -> None:
    for shape in ((1, 2, 4, 4), (1, 2, 1, 5), (1, 2, 3, 8)):
        image = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        line = np.arange(-20, 21, dtype=np.float32) / 8
        grid = np.stack(np.meshgrid(line, line), -1)[None]
        given = "nearest", padding, align_corners
        sample = torch.nn.functional.grid_sample
        expected = sample(torch.tensor(image), torch.tensor(grid), *given)
        found = runtime.grid_sample(ms.Tensor(image), ms.Tensor(grid), *given)
        np.testing.assert_array_equal(found.asnumpy(), expected.numpy())
