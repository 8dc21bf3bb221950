"""The greatest and the least of a mask."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both

_MASKS = """
import torch


def extremes(x: torch.Tensor):
    above, bad = x > 1, x.isnan()
    given = torch.tensor([True, False])
    last = x.max()
    x = x < 2
    found = [above.max(), torch.min(above), torch.max(input=bad), torch.isnan(last).min(), x.max()]
    found += [given.max(), torch.min(given), (~given).max(), last]
    return [one.item() for one in found], [one.dtype == torch.bool for one in found]
"""


def test_they_are_masks(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"masks.py": _MASKS})
    assert not report.findings
    code = "import json, masks\nprint(json.dumps(masks.extremes(TENSOR([1.0, 2.0]))))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert expected[1].count(False) == 1
