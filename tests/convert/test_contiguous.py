"""`x.t().contiguous()` stays a copy where it leaves the function that makes it."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, port_of, run_both

NET = """
import torch


def spread(t):
    return t.expand(3, -1).contiguous()


def turned(t):
    return t.transpose(0, 1).contiguous()


class Held(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buffer", torch.arange(4.0).expand(3, -1).contiguous())


def written():
    held = Held()
    held.buffer.copy_(torch.ones(3, 4) * 5)
    rows = spread(torch.arange(4.0))
    rows[0] = 9.0
    whole = torch.zeros(2, 3)
    other = turned(whole)
    other[0] = 1.0
    return [float(v.sum()) for v in (held.buffer, rows, whole, other)]
"""


def test_what_is_returned_or_registered_is_a_copy(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": NET})
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.written()))")
    assert found == expected


def test_a_result_that_nothing_writes_into_stays_a_view() -> None:
    port, _ = port_of("""
    import torch


    def turned(t: torch.Tensor):
        return t.transpose(0, 1).contiguous()


    def f(t: torch.Tensor):
        return turned(t) + 1
    """)
    assert "contiguous" not in port
