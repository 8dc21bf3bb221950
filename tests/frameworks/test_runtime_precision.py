"""Runtime functions that take many steps round no more than torch's own."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
ms = pytest.importorskip("mindspore")

from isograd.runtime.algebra import matrix_exp  # noqa: E402 - MindSpore may be missing


@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
def test_a_matrix_exponential_is_as_exact_as_torchs(scale: float) -> None:
    """Squaring doubles the error, so a needless squaring shows."""
    draws = np.random.default_rng(0)
    errors = []
    for _ in range(20):
        matrix = (scale * draws.standard_normal((4, 4))).astype(np.float32)
        exact = torch.linalg.matrix_exp(torch.tensor(matrix).double()).numpy()
        both = (
            torch.linalg.matrix_exp(torch.tensor(matrix)).numpy(),
            matrix_exp(ms.Tensor(matrix)).asnumpy(),
        )
        errors.append([np.abs(found - exact).max() / np.abs(exact).max() for found in both])
    theirs, ours = np.median(errors, axis=0)
    assert ours < 2.5 * theirs
