"""Files that cannot be scanned as they are: a finding each, and the rest is scanned."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.scan.support import Scanner

from isograd.cli import main
from isograd.scan import run, sources
from isograd.scan.model import ScanReport
from isograd.scan.sources import Source

GOOD = "import torch\ntorch.cat([])\n"


def _problems(report: ScanReport) -> list[tuple[str, str, int, int]]:
    return [(item.code, item.file, item.cell, item.line) for item in report.problems]


def _uses(report: ScanReport) -> dict[str, int]:
    return {scan.file: len(scan.uses) for scan in report.files if scan.uses}


@pytest.fixture
def good(scanner: Scanner) -> Scanner:
    scanner.write(good=GOOD)
    return scanner


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b"import torch\ndef f(:\n", "syntax-error", 2),
        (b"import torch\nprint 'x'\n", "python-2", 2),
        (b"try:\n    pass\nexcept E, e:\n    pass\n", "python-2", 3),
        (b"x = 1\0\n", "syntax-error", 0),
        (b"x = " + b"(" * 5000 + b")" * 5000, "syntax-error", None),
        (b"\tx = 1\n  y = 2\n", "syntax-error", None),
    ],
)
def test_code_that_does_not_parse(
    good: Scanner, content: bytes, code: str, line: int | None
) -> None:
    (good.folder / "bad.py").write_bytes(content)
    report = good.scan()
    ((found, file, _, place),) = _problems(report)
    assert (found, file) == (code, "bad.py")
    if line:
        assert place == line
    assert _uses(report) == {"good.py": 1}


def test_the_sentence_says_what_was_not_read(
    scanner: Scanner, capsys: pytest.CaptureFixture[str]
) -> None:
    scanner.write(bad="import torch\ndef f(:\n")
    assert main(["scan", str(scanner.folder), "--quiet"]) == 1
    alone = capsys.readouterr().out.strip()
    assert alone == "Not read: bad.py:2: Python cannot parse it: invalid syntax."
    scanner.write(good=GOOD, worse="import torch\ndef f(:\n")
    main(["scan", str(scanner.folder), "--quiet"])
    several = capsys.readouterr().out.strip()
    assert several.endswith(
        "Not read: bad.py:2: Python cannot parse it: invalid syntax (and 1 more)."
    )
    assert " of uses and " in several


def test_deep_expressions_are_a_finding(good: Scanner) -> None:
    (good.folder / "deep.py").write_text("x = " + "+".join(["1"] * 20_000))
    (good.folder / "deeper.py").write_text("x = " + "-" * 20_000 + "1")
    report = good.scan()
    assert {item.file for item in report.problems} <= {"deep.py", "deeper.py"}
    assert _uses(report) == {"good.py": 1}


@pytest.mark.parametrize(
    ("content", "is_declared"),
    [
        (
            "# -*- coding: latin-1 -*-\nimport torch\nx = 'é'; torch.cat([])\n".encode("latin-1"),
            True,
        ),
        ("# coding: gbk\nimport torch\nx = '中'; torch.cat([])\n".encode("gbk"), True),
        (b"\xef\xbb\xbfimport torch\ntorch.cat([])\n", True),
        ("import torch\nx = 'é'; torch.cat([])\n".encode("latin-1"), False),
        ("import torch\ntorch.cat([])\n".encode("utf-16"), False),
        (b"# coding: nonsense\nimport torch\ntorch.cat([])\n", False),
    ],
)
def test_encodings(good: Scanner, content: bytes, is_declared: bool) -> None:
    (good.folder / "other.py").write_bytes(content)
    report = good.scan()
    assert _uses(report) == {"good.py": 1, "other.py": 1}
    expected = [] if is_declared else [("encoding", "other.py", 0, 1)]
    assert _problems(report) == expected


def test_huge_files_are_left_out(good: Scanner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LARGEST_BYTES", 1000)
    (good.folder / "huge.py").write_text("x = 1\n" * 1000)
    report = good.scan()
    assert _problems(report) == [("too-large", "huge.py", 0, 0)]
    assert _uses(report) == {"good.py": 1}


def test_links_that_lead_nowhere_or_in_circles(good: Scanner) -> None:
    folder = good.folder
    (folder / "again").symlink_to(folder, target_is_directory=True)
    (folder / "broken.py").symlink_to(folder / "nothing.py")
    (folder / "self.py").symlink_to(folder / "self.py")
    report = good.scan()
    assert sorted(item.code for item in report.problems) == [
        "symlink-loop", "unreadable", "unreadable",
    ]  # fmt: skip
    assert _uses(report) == {"good.py": 1}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_and_folders(good: Scanner) -> None:
    (good.folder / "closed.py").write_text(GOOD)
    (good.folder / "closed.py").chmod(0)
    assert _problems(good.scan()) == [("unreadable", "closed.py", 0, 0)]


def test_an_unreadable_file(good: Scanner, monkeypatch: pytest.MonkeyPatch) -> None:
    (good.folder / "closed.py").write_text(GOOD)
    real = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.name == "closed.py":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    report = good.scan()
    assert _problems(report) == [("unreadable", "closed.py", 0, 0)]
    assert _uses(report) == {"good.py": 1}


def _cell(*lines: str, kind: str = "code") -> dict[str, object]:
    return {"cell_type": kind, "source": [f"{line}\n" for line in lines[:-1]] + [lines[-1]]}


def test_notebooks_are_scanned_cell_by_cell(good: Scanner) -> None:
    cells = [
        _cell("# Title", kind="markdown"),
        _cell("%matplotlib inline", "!pip install torch", "import torch"),
        _cell("def (:"),
        _cell("%%bash", "echo not python"),
        _cell("x = torch.ones(2)", "", "x.cos()"),
    ]
    (good.folder / "book.ipynb").write_text(json.dumps({"cells": cells}))
    report = good.scan()
    assert _problems(report) == [("syntax-error", "book.ipynb", 3, 1)]
    (book,) = [scan for scan in report.files if scan.file == "book.ipynb"]
    assert [(use.cell, use.line, use.column, use.answer.api) for use in book.uses] == [
        (5, 1, 5, "torch.ones"), (5, 3, 3, "torch.Tensor.cos"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', '{"cells": [3]}', "null"])
def test_broken_notebooks(good: Scanner, text: str) -> None:
    (good.folder / "book.ipynb").write_text(text)
    assert _problems(good.scan()) == [("notebook", "book.ipynb", 0, 0)]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_that_are_no_text(good: Scanner) -> None:
    path = os.fsencode(good.folder) + b"/\xff\xfe.py"
    with open(path, "w") as stream:
        stream.write(GOOD)
    report = good.scan()
    assert sum(_uses(report).values()) == 2


def test_a_mistake_of_our_own_costs_one_file(
    good: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = run.scan_source

    def scan(source: Source, *arguments: Any, **options: Any) -> Any:
        if source.file == "odd.py":
            raise KeyError("oops")
        return real(source, *arguments, **options)

    monkeypatch.setattr(run, "scan_source", scan)
    (good.folder / "odd.py").write_text(GOOD)
    report = good.scan()
    assert _problems(report) == [("internal-error", "odd.py", 0, 0)]
    assert "KeyError" in report.problems[0].message
    assert _uses(report) == {"good.py": 1}


@pytest.mark.parametrize(
    "code",
    [
        "x: Tuple[()] = ()",
        "def f(x: 'Tuple[()]', *a: 'int', **k: '') -> 'List[':\n    pass",
        "def f(a, /, b, *, c=1):\n    return lambda *x, y=2: (x, y)",
        "(a.b, c[0], *d) = e",
        "for a.b in c:\n    del a[0], b.c",
        "class A(A):\n    a = A\n    def a(self): return super().a().a",
        "f(*a, **b)(c)[d](e=1)",
        "async def f():\n    async with a as b, c as (d, e):\n        await b\n    yield",
        "[a for b in c for a in b if (d := a)]",
        "global a\nnonlocal_b = 1\nassert a, b",
        "import a.b.c, torch.nn as torch\nfrom . import *\nfrom .... import x",
        "def f():\n    return f()\nf()(f)(f())",
        "class A:\n    def __init__(): self.x = 1\n    def f(): return f",
    ],
)
def test_odd_code_is_read(good: Scanner, code: str) -> None:
    (good.folder / "odd.py").write_text(f"import torch\nfrom typing import *\n{code}\n")
    problems = _problems(good.scan())
    assert [p for p in problems if p[0] != "syntax-error"] == []


def test_environments_and_hidden_folders_are_not_the_project(good: Scanner) -> None:
    for folder in (".git", "venv/lib", "__pycache__", "node_modules"):
        (good.folder / folder).mkdir(parents=True)
        (good.folder / folder / "a.py").write_text(GOOD)
    (good.folder / "venv" / "pyvenv.cfg").write_text("")
    assert _uses(good.scan()) == {"good.py": 1}
