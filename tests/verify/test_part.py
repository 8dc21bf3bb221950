"""`--stage` and `--module`: a part of a verification, said to be one."""

from __future__ import annotations

from pathlib import Path

import pytest

import isograd
from isograd.model import Stage, StageVerdict, Verdict, VerifyReport

EXAMPLES = Path(__file__).parents[2] / "examples" / "fake"


def _ran(report: VerifyReport) -> set[str]:
    return {r.stage.value for r in report.stages if r.verdict is not StageVerdict.SKIPPED}


@pytest.mark.parametrize(
    ("stages", "ran"),
    [
        pytest.param("forward", {"parameters", "forward"}, id="forward"),
        pytest.param("loss", {"parameters", "loss"}, id="loss"),
        pytest.param("backward", {"parameters", "forward", "backward"}, id="backward"),
        pytest.param(["update", "training"], {"parameters", "update", "training"}, id="two"),
        pytest.param("inference", {"parameters", "inference"}, id="inference"),
        pytest.param([], {s.value for s in Stage} - {"compiled"}, id="all"),
    ],
)
def test_stages(stages: str | list[str], ran: set[str]) -> None:
    report = isograd.verify(EXAMPLES / "faithful.toml", stage=stages)
    assert report.verdict is Verdict.EQUIVALENT
    assert _ran(report) == ran
    assert any("only these stages ran" in note for note in report.notes) == bool(stages)


@pytest.mark.parametrize(
    ("module", "verdict"),
    [
        pytest.param("2.body.1", Verdict.DIVERGENT, id="the-faulty-module"),
        pytest.param("2", Verdict.DIVERGENT, id="a-module-around-it"),
        pytest.param("0", Verdict.EQUIVALENT, id="another-module"),
    ],
)
def test_one_module(module: str, verdict: Verdict) -> None:
    report = isograd.verify(EXAMPLES / "divergent.toml", module=module)
    assert report.verdict is verdict
    inside = [m.module == module or m.module.startswith(f"{module}.") for m in report.modules]
    assert inside
    assert all(inside)
    assert _ran(report) == {"parameters", "forward", "backward"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"stage": ["foward"]}, "there is no stage 'foward'", id="stage"),
        pytest.param({"module": "nothing"}, "has no module 'nothing'", id="module"),
        pytest.param(
            {"stage": ["loss"], "module": "0"}, "stage loss does not look at one module", id="both"
        ),
    ],
)
def test_wrong_parts(options: dict[str, object], message: str) -> None:
    with pytest.raises(isograd.IsogradError, match=message):
        isograd.verify(EXAMPLES / "faithful.toml", **options)  # type: ignore[arg-type]
