"""What the inventory counts, and each of its rules on its own examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests.dataset.conftest import ARRAYS, InMemory, picture, png

from isograd.data.inventory.rules import RULES, DataRule, Example
from isograd.data.inventory.run import InventoryOptions, inventory
from isograd.data.inventory.statistics import BlockTally
from isograd.data.model import DataReport, SourceReport, Verdict, soundness
from isograd.data.sources.base import Item, Sample
from isograd.findings import Level


def _look(*items: Item, **options: object) -> SourceReport:
    return inventory(InMemory(Example(items)), InventoryOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.code) for rule in RULES])
class TestRules:
    def test_its_example_is_reported(self, rule: DataRule) -> None:
        found = {f.code: f for f in inventory(InMemory(rule.example)).findings}
        assert rule.code in found
        assert found[rule.code].level is rule.level
        assert found[rule.code].advice == rule.advice

    def test_its_counterexample_is_not(self, rule: DataRule) -> None:
        found = {f.code for f in inventory(InMemory(rule.counterexample)).findings}
        assert rule.code not in found


@given(ARRAYS)
def test_statistics_are_those_of_numpy(arrays: list[np.ndarray]) -> None:
    same = [a for a in arrays if a.shape == arrays[0].shape and a.dtype == arrays[0].dtype]
    tally = BlockTally(0)
    for position, values in enumerate(same):
        tally.add(position, values)
    found = tally.finish()
    block = np.stack(same).astype(np.float64)
    axis = {(4, 5, 3): 3, (2, 6, 7): 1}.get(arrays[0].shape)
    parts = [block] if axis is None else [np.take(block, n, axis) for n in range(block.shape[axis])]
    for one, part in zip(found, parts, strict=True):
        assert one.count == part.size
        assert (one.minimum, one.maximum) == (part.min(), part.max())
        assert one.mean == pytest.approx(part.mean())
        assert one.deviation == pytest.approx(part.std(), abs=1e-9)
        assert one.quantiles[2] == pytest.approx(np.median(part), abs=max(1.0, np.ptp(part)))


def test_quantiles_of_many_numbers_have_the_stated_rank_error() -> None:
    tally = BlockTally(1)
    values = np.random.default_rng(0).permutation(200_000).astype(np.float32)
    for position, part in enumerate(values.reshape(2000, 100)):
        tally.add(position, part)
    (found,) = tally.finish()
    for expected, quantile in zip((0.01, 0.25, 0.5, 0.75, 0.99), found.quantiles, strict=True):
        assert abs(quantile / 200_000 - expected) < 4 * 0.0055


def test_an_encoded_image_is_described_by_its_pixels() -> None:
    report = _look(*(Sample(str(n), {"image": png(picture(n))}) for n in range(3)))
    (field,) = report.fields
    assert (field.kind, field.dtypes, field.shapes) == ("image", {"uint8": 3}, {"(24, 32, 3)": 3})
    assert [one.channel for one in field.statistics] == ["0", "1", "2"]


def test_near_duplicates_are_found_across_encodings_and_others_are_not() -> None:
    import io

    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(picture(0, 64, 64)).save(stream, "JPEG", quality=60)
    different = [Sample(str(n), {"image": png(picture(n, 64, 64))}) for n in range(40)]
    report = _look(*different, Sample("again", {"image": stream.getvalue()}))
    near = [f for f in report.findings if f.code == "data.near_duplicate"]
    assert near[0].evidence == ("0 ≈ again",)


def test_the_choice_to_look_at_depends_on_the_seed_alone() -> None:
    items = tuple(Sample(str(n), {"x": np.asarray([n, n])}) for n in range(100))
    first, again, other = (
        [one.key for one in _look(*items, shown=5, seed=seed).shown] for seed in (1, 1, 2)
    )
    assert first == again != other
    assert first == sorted(first, key=int)


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [
        pytest.param([], Verdict.SOUND, id="nothing"),
        pytest.param([Level.WARNING], Verdict.SOUND, id="a warning"),
        pytest.param([Level.WARNING, Level.ERROR], Verdict.UNSOUND, id="an error"),
    ],
)
def test_the_verdict(levels: list[Level], verdict: Verdict) -> None:
    from isograd.findings import Finding

    findings = tuple(Finding("data.x", level, "x") for level in levels)
    report = SourceReport("x", "npz", 1, (), findings)
    assert soundness((report,)) is verdict
    assert DataReport(verdict, (report,)).needs_action is (verdict is not Verdict.SOUND)
