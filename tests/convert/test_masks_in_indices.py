"""Masks of several axes beside slices, `...` and None in an index."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

MASKS = """
import torch


def elements(x, low):
    inside = (x[..., 0] >= low) & (x[..., 0] < 20)
    corners = torch.tensor([[True, False, True, True]] * 3)
    found = [
        x[inside, :], x[inside, 1:], x[inside, ...], x[inside, None], x[..., corners],
        x[~inside, :2], x[:, corners], x[torch.isnan(x[..., 1]), 1:], x[x[:, 0, 0] > 3, 1:],
    ]
    return [[list(part.shape), part.tolist()] for part in found]
"""


def test_a_mask_of_several_axes_beside_others_takes_what_it_takes_in_torch(tmp_path: Path) -> None:
    """MindSpore 2.10 gives another shape and other elements, or raises."""
    port, report = converted(tmp_path, {"masks.py": MASKS})
    assert not report.findings
    code = """
    import json
    import masks
    values = [[[float(12 * i + 4 * j + k) for k in range(4)] for j in range(3)] for i in range(2)]
    print(json.dumps(masks.elements(TENSOR(values), 5.0)))
    """
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert "x[inside]" in (port / "masks.py").read_text()
