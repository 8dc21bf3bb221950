"""Journals that a kill or a full disk has cut, and damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tune.test_search import study, tune

from isograd.errors import UsageError
from isograd.tune.results import reports_of_journal


def test_an_unfinished_last_line_is_left_out_and_kept(tmp_path: Path) -> None:
    path = study(tmp_path, "print('loss:', x * x)", trials=2)
    first = tune(path)
    journal = tmp_path / "study.journal"
    whole = journal.read_bytes()
    rest = b'{"op_code":8,"worker_id":"a","trial_id":1,"user_attr":{"owner"'
    journal.write_bytes(whole + rest)
    again = tune(path, trials=4)
    assert again.trials[:2] == first.trials
    assert len(again.trials) == 4
    assert journal.read_bytes().startswith(whole + b'{"op_code"')
    assert (tmp_path / "study.journal.rest").read_bytes() == rest + b"\n"
    assert len(reports_of_journal(journal)[0].trials) == 4


def test_a_whole_last_line_without_its_break_is_kept(tmp_path: Path) -> None:
    path = study(tmp_path, "print('loss:', x * x)", trials=2)
    first = tune(path)
    journal = tmp_path / "study.journal"
    journal.write_bytes(journal.read_bytes()[:-1])
    assert tune(path, trials=3).trials[:2] == first.trials
    assert not (tmp_path / "study.journal.rest").exists()


@pytest.mark.parametrize("line", [1, 3, -1])
def test_a_damaged_line_is_named(tmp_path: Path, line: int) -> None:
    path = study(tmp_path, "print('loss:', x * x)", trials=1)
    tune(path)
    journal = tmp_path / "study.journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    place = line - 1 if line > 0 else len(lines) - 1
    lines[place] = b'{"op_code":4,{"op_code":5}\n'
    journal.write_bytes(b"".join(lines))
    for read in (lambda: tune(path), lambda: reports_of_journal(journal)):
        with pytest.raises(UsageError) as caught:
            read()
        assert f"study.journal, line {place + 1}: " in str(caught.value)
        assert "Bring the file back from a backup" in str(caught.value)
    assert journal.read_bytes() == b"".join(lines)
