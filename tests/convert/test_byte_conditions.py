"""A condition of bytes."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, port_of, run_both

NET = """
import torch


def pick(mask, x, y):
    return torch.where(mask, x, y)


def found():
    x = torch.tensor([1.0, 2.0, 3.0])
    mask = torch.tensor([1, 0, 1], dtype=torch.uint8)
    ones = torch.ones_like(x, dtype=torch.uint8)
    several = [torch.where(mask, x, -x), pick(mask, x, -x), pick(x > 2, x, -x)]
    several += [torch.where(ones[0].unsqueeze(0), x, -x), x.where(mask, -x)]
    return [one.tolist() for one in several]
"""


def test_a_mask_of_bytes_chooses_as_in_torch(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": NET})
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.found()))")
    assert found == expected


def test_a_comment_makes_no_bytes() -> None:
    code = "import torch\n\n\ndef f(mask, x: torch.Tensor):  # uint8, x.byte()\n"
    assert "ms.bool_" not in port_of(f"{code}    return torch.where(mask, x, -x)\n")[0]
