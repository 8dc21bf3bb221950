"""A stand-in for the verification, so that the command line is tested alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from isograd.model import Stage, StageResult, StageVerdict, Verdict, VerifyReport
from isograd.progress import Progress
from isograd.verify.part import WHOLE, Part
from isograd.verify.session import StartWorker

Verifier = Callable[..., VerifyReport]


class FakeVerification:
    """Remembers how it was called and answers with a verdict, or raises."""

    def __init__(self) -> None:
        self.verdict = Verdict.EQUIVALENT
        self.error: BaseException | None = None
        self.calls: list[tuple[Path, int, Path | None]] = []

    def verify_case(
        self,
        path: Path,
        *,
        seed: int,
        keep: Path | None,
        progress: Progress,
        part: Part = WHOLE,
        start: StartWorker | None = None,
    ) -> VerifyReport:
        self.calls.append((path, seed, keep))
        progress.stage(Stage.FORWARD)
        if self.error is not None:
            raise self.error
        stages = (StageResult(Stage.FORWARD, StageVerdict.EQUIVALENT, 3, 0.1, "fine"),)
        return VerifyReport(self.verdict, str(path), None, None, stages, (), (), seed=seed)


@pytest.fixture
def verification(monkeypatch: pytest.MonkeyPatch) -> FakeVerification:
    fake = FakeVerification()
    monkeypatch.setattr("isograd.verify.ladder.verify_case", fake.verify_case)
    return fake


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "case.toml"
    path.write_text("[reference]\n")
    return path
