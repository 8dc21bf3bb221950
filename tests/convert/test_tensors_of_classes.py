"""What `+=` adds to a tensor of a class is seen by all its objects, as in torch."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both

METERS = """
import torch


class Meter:
    total = torch.zeros(1)
    scaled: torch.Tensor = torch.ones(2) * 2
    count = 0

    def add(self, v):
        self.total += v
        self.scaled *= 2
        self.last -= v
        self.count += 1


class Other(Meter):
    pass


Meter.last = torch.zeros(1)


def values():
    a, b = Meter(), Other()
    a.add(1.0)
    b.add(5.0)
    b.add(2.0)
    counts = [Meter.count, a.count, b.count]
    return [one.tolist() for c in (Meter, a, b) for one in (c.total, c.scaled, c.last)], counts
"""


def test_all_objects_of_a_class_see_what_is_added_to_its_tensor(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"meters.py": METERS})
    assert not report.findings
    code = "import json, meters\nprint(json.dumps(meters.values()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert expected[0][0] == [8.0]
