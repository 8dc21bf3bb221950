"""What other tools get silently wrong, each case by its name: none of it is a pass here.

The cases are those of the project's own measurements of TroubleShooter, msprobe, reprod_log and
polygraphy; cases of a single tensor are compared as a whole set as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from isograd.checkpoints.open import open_source
from isograd.compare.files.model import FilesReport
from isograd.compare.files.run import compare_sources
from isograd.compare.files.verdicts import TensorVerdict
from isograd.errors import UsageError
from isograd.model import Verdict
from isograd.tensors import Array

Tensors = Mapping[str, Array]


def _draw(count: int = 1000, dtype: str = "f4") -> Array:
    return np.random.default_rng(0).standard_normal(count).astype(dtype)


def _some(count: int = 3, shape: tuple[int, ...] = (4, 4)) -> dict[str, Array]:
    draw = np.random.default_rng(1)
    return {f"g{n}": draw.standard_normal(shape).astype("f4") for n in range(count)}


def _without(tensors: Tensors, name: str) -> Tensors:
    return {key: values for key, values in tensors.items() if key != name}


_NAN_INSIDE = np.where(np.arange(10_000) == 5000, np.nan, np.zeros(10_000))

DIFFERENT: dict[str, tuple[Tensors, Tensors]] = {
    "TroubleShooter: 1e-6·x against -1e-6·x": ({"a": 1e-6 * _draw()}, {"a": -1e-6 * _draw()}),
    "TroubleShooter: token ids": ({"a": np.array([50000])}, {"a": np.array([50004])}),
    "TroubleShooter: 2**53 + 1": ({"a": np.array([2**53])}, {"a": np.array([2**53 + 1])}),
    "TroubleShooter: imaginary part": ({"a": np.array([1 + 2j])}, {"a": np.array([1 + 3j])}),
    "TroubleShooter: 1e-25 and its negative": (
        {"a": np.full(9, 1e-25, "f4")},
        {"a": np.full(9, -1e-25, "f4")},
    ),
    "TroubleShooter: a file in a subfolder": (
        {"a": _draw(), "sub/b": _draw()},
        {"a": _draw(), "sub/b": -_draw()},
    ),
    "TroubleShooter: permuted gradients": (
        _some(),
        dict(zip(_some(), list(_some().values())[::-1], strict=True)),
    ),
    "TroubleShooter: second output of another shape": (
        {"out.0": _draw(), "out.1": np.ones((2, 3))},
        {"out.0": _draw(), "out.1": np.ones((3, 2))},
    ),
    "TroubleShooter: NaN in the middle": ({"a": np.zeros(10_000)}, {"a": _NAN_INSIDE}),
    "msprobe: +inf against -inf": ({"a": np.array([1, np.inf])}, {"a": np.array([1, -np.inf])}),
    "msprobe: NaN where the reference is inf": (
        {"a": np.array([1, np.inf])},
        {"a": np.array([1, np.nan])},
    ),
    "msprobe: a loss of 1 against -1": ({"a": np.array(1.0)}, {"a": np.array(-1.0)}),
    "msprobe: input and output negated": (_some(2), {k: -v for k, v in _some(2).items()}),
    "msprobe: reversed": ({"a": _draw()}, {"a": _draw()[::-1]}),
    "msprobe: half negated": (
        {"a": _draw()},
        {"a": np.where(np.arange(1000) < 500, _draw(), -_draw())},
    ),
    "reprod_log: [1, NaN] against [1, 2]": (
        {"a": np.array([1, np.nan])},
        {"a": np.array([1.0, 2.0])},
    ),
    "reprod_log: (4, 3) against (3,)": ({"a": np.ones((4, 3))}, {"a": np.ones(3)}),
    "reprod_log: one of 1000 off by 9e-4": (
        {"a": _draw()},
        {"a": _draw() + np.float32(9e-4) * (np.arange(1000) == 77).astype("f4")},
    ),
    "reprod_log: uint8 that wraps": (
        {"a": np.array([0, 255], "u1")},
        {"a": np.array([255, 0], "u1")},
    ),
    "polygraphy: 40 % wrong": (
        {"a": _draw()},
        {"a": np.where(np.arange(1000) < 400, _draw() + 1, _draw())},
    ),
}
#: Cases in which a tensor stands on one side only.
MISSING: dict[str, tuple[Tensors, Tensors]] = {
    "TroubleShooter: a parameter that is left unloaded": (_some(), _without(_some(), "g1")),
    "msprobe: an operator on one side only": (_without(_some(), "g1"), _some()),
    "polygraphy: a missing output": (_some(), _without(_some(), "g2")),
}
SAME: dict[str, Tensors] = {
    "polygraphy: inf against inf": {"a": np.array([1.0, np.inf])},
    "TroubleShooter: ordinary float16": {"a": (100 * _draw(100_000)).astype("f2")},
    "NaN against NaN": {"a": np.array([1.0, np.nan], "f4")},
}

Compare = Callable[[Tensors, Tensors], FilesReport]


@pytest.fixture(params=["folder", "npz"])
def compare(request: pytest.FixtureRequest, tmp_path: Path) -> Compare:
    """Write both sets and compare the files."""

    def run(first: Tensors, second: Tensors) -> FilesReport:
        paths = []
        for side, tensors in (("first", first), ("second", second)):
            path = tmp_path / side
            if request.param == "npz":
                path = path.with_suffix(".npz")
                np.savez(path, **dict(tensors))
            else:
                for name, values in tensors.items():
                    file = path / f"{name}.npy"
                    file.parent.mkdir(parents=True, exist_ok=True)
                    np.save(file, values)
            paths.append(path)
        with open_source(paths[0]) as reference, open_source(paths[1]) as other:
            return compare_sources(reference, other)

    return run


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_difference_is_found(case: str, compare: Compare) -> None:
    report = compare(*DIFFERENT[case])
    assert report.verdict is Verdict.DIVERGENT
    assert report.needs_action


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_tensor_is_no_pass(case: str, compare: Compare) -> None:
    report = compare(*MISSING[case])
    assert report.verdict is Verdict.INCOMPLETE
    assert report.count(TensorVerdict.MISSING) == 1


@pytest.mark.parametrize("case", SAME)
def test_what_is_equal_passes(case: str, compare: Compare) -> None:
    report = compare(SAME[case], SAME[case])
    assert report.verdict is Verdict.EQUIVALENT
    difference = report.comparisons[0].difference
    assert difference is not None
    assert difference.cosine == pytest.approx(1.0)


def test_polygraphy_zero_iterations(tmp_path: Path) -> None:
    """Nothing compared is an error, never a pass."""
    np.savez(tmp_path / "a.npz", a=np.ones(3))
    np.savez(tmp_path / "b.npz", b=np.ones(4))
    with (
        open_source(tmp_path / "a.npz") as first,
        open_source(tmp_path / "b.npz") as second,
        pytest.raises(UsageError),
    ):
        compare_sources(first, second)


def test_msprobe_one_corrupt_file_leaves_the_rest(tmp_path: Path) -> None:
    for side in ("a", "b"):
        (tmp_path / side).mkdir()
        for name, values in _some().items():
            np.save(tmp_path / side / f"{name}.npy", values)
    (tmp_path / "b" / "g1.npy").write_bytes(b"\x93NUMPY")
    with open_source(tmp_path / "a") as first, open_source(tmp_path / "b") as second:
        report = compare_sources(first, second)
    assert report.verdict is Verdict.INCOMPLETE
    assert report.count(TensorVerdict.IDENTICAL) == 2
    failed = [found for found in report.comparisons if found.verdict is TensorVerdict.FAILED]
    assert [found.name for found in failed] == ["g1"]
    assert "header" in failed[0].detail or "npy" in failed[0].detail
