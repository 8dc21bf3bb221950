"""What `--keep` writes is a recording like any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

import isograd

if TYPE_CHECKING:
    from conftest import Answer, CaseMaker

Verify = Callable[..., "Answer"]


def test_both_sides_are_kept(make_case: CaseMaker, verify: Verify) -> None:
    folder = make_case.folder / "kept"
    assert verify(make_case.write(), "--keep", str(folder)).status == 0
    sides = [isograd.Recording(folder / name) for name in ("reference", "port")]
    for side in sides:
        assert (side.manifest.status, side.manifest.tensors) == ("complete", "full")
        assert "step 0: eval mode" in side.manifest.changed
        assert "step 1: train mode" in side.manifest.changed
        assert [m.name for m in side.structure.modules] == ["", "0", "1", "2"]
        for step in side:
            assert [call.name for call in step.calls] == ["", "0", "1", "2"]
            assert set(step.named("before")) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert [side.step_numbers for side in sides] == [(0, 1), (0, 1)]


def test_both_sides_hold_the_same_pass(make_case: CaseMaker, verify: Verify) -> None:
    folder = make_case.folder / "kept"
    verify(make_case.write(), "--keep", str(folder))
    steps = [isograd.Recording(folder / name).step(1) for name in ("reference", "port")]
    first, second = (s.tensor(s.calls[0].outputs[0].value).values for s in steps)
    assert first.shape == (6, 3)
    assert np.allclose(first, second, rtol=1e-5, atol=1e-6)
    output = steps[0].calls[1].outputs[0].value
    gradient = steps[0].gradient_of(output)
    assert gradient is not None
    assert steps[0].tensor(gradient).shape == (6, 5)
