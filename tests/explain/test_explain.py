"""`isograd explain CAUSE`: every cause has a text of its own."""

from __future__ import annotations

import pytest

import isograd
from isograd.cli import main
from isograd.diagnose.documentation import known_ids
from isograd.explain.document import document
from isograd.report.render_text import render_text


@pytest.mark.parametrize("cause", sorted(known_ids()))
def test_every_cause_is_explained(cause: str) -> None:
    report = isograd.explain(cause)
    assert report.hypotheses or report.rules or report.sources
    text = render_text(document(report), width=100, colour=False)
    assert text.splitlines()[-1].startswith(f"{cause}: ")


def test_a_cause_with_its_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "batch_norm.eps"]) == 0
    text = capsys.readouterr().out
    assert "# reference" in text
    assert "# port" in text
    assert "eps" in text


def test_a_cause_of_a_check_says_what_shows_it_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "random.mask"]) == 0
    text = capsys.readouterr().out
    assert "a mask for each sample drops whole" in text
    assert "Draw the mask in the shape" in text
    assert "# port" in text


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("batch_norm.epsilon", "batch_norm.eps"),
        ("batchnorm.eps", "batch_norm.eps"),
        ("dropout", "dropout.p"),
        ("gradient.stop", "gradient.stopped"),
    ],
)
def test_suggestions_for_a_misspelt_cause(
    misspelt: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", misspelt]) == 2
    assert meant in capsys.readouterr().err


def test_without_a_cause_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--all"]) == 0
    text = capsys.readouterr().out
    assert [cause for cause in known_ids() if cause not in text] == []
