"""Findings by cause and by line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isograd.grouping import by_cause_and_line, listed
from isograd.model import Cause, Finding, Fix, Severity, Stage

NORM = Finding(
    "training.statistics",
    Severity.EFFECTIVE,
    Stage.TRAINING,
    "blocks.0.norm",
    "running_mean differs",
    12.0,
    cause=Cause("batch_norm.momentum", 0.1, 0.9),
    fix=Fix("momentum=0.9", "net.py:12"),
)


def test_a_line_that_runs_for_every_block_is_one_finding() -> None:
    second = replace(NORM, module="blocks.1.norm")
    third = replace(
        NORM, module="blocks.2.norm", cause=Cause("batch_norm.momentum", 0.1, 0.9, proved=True)
    )
    (found,) = by_cause_and_line([NORM, second, third])
    assert found.module == "blocks.0.norm"
    assert found.modules == ("blocks.0.norm", "blocks.1.norm", "blocks.2.norm")
    assert found.cause is not None
    assert found.cause.proved


def test_a_later_stage_of_the_same_line_and_cause_is_the_same_finding() -> None:
    later = replace(NORM, stage=Stage.INFERENCE, severity=Severity.EFFECTIVE)
    hidden = replace(NORM, severity=Severity.MASKED)
    (found,) = by_cause_and_line([hidden, later])
    assert (found.stage, found.severity) == (Stage.TRAINING, Severity.EFFECTIVE)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(NORM, fix=Fix("", "net.py:13")), id="another line"),
        pytest.param(replace(NORM, fix=None), id="no line"),
        pytest.param(replace(NORM, cause=Cause("batch_norm.eps", 1e-5, 1e-3)), id="another cause"),
        pytest.param(
            replace(NORM, cause=Cause("batch_norm.momentum", 0.1, 0.5)), id="another number"
        ),
        pytest.param(replace(NORM, cause=None), id="no cause"),
    ],
)
def test_what_differs_in_line_or_cause_stays_apart(other: Finding) -> None:
    assert by_cause_and_line([NORM, other]) == (NORM, other)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["fc"], "fc"),
        (["a.norm", "b.norm"], "a.norm, b.norm"),
        (["blocks.0.norm", "blocks.2.norm"], "blocks.{0,2}.norm"),
        ([f"blocks.{k}.norm" for k in range(12)], "blocks.{0..11}.norm"),
        ([f"m{k}" for k in range(9)], "m0, m1, m2, m3 and 5 more"),
    ],
)
def test_names_of_a_series_are_listed_together(names: list[str], expected: str) -> None:
    assert listed(names) == expected
