"""Work in forks of a process: the results of `map`, in order, whatever becomes of a fork."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are taken on Linux alone")

#: A process without a framework, as the command line's is; `here` is the first process.
BEGIN = """
import os
from isograd import engine
engine._processors = lambda: 3
here = os.getpid()
"""


def run(text: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + text], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_results_come_in_order_from_other_processes() -> None:
    text = """
found = list(engine.forked_map(lambda n: (n * n, os.getpid()), range(20), is_long=True))
print(*(value for value, _ in found), here in {process for _, process in found})
"""
    assert run(text) == [*(str(n * n) for n in range(20)), "False"]


@pytest.mark.parametrize(
    ("begin", "is_long"),
    [
        pytest.param("", False, id="little work"),
        pytest.param("import sys; sys.modules['torch'] = sys", True, id="a framework is loaded"),
    ],
)
def test_one_process_does_what_is_not_worth_or_not_safe_to_fork(begin: str, is_long: bool) -> None:
    text = f"print(*{{p == here for p in engine.forked_map(lambda n: os.getpid(), range(9), \
is_long={is_long})}})"
    assert run(f"{begin}\n{text}") == ["True"]


def test_a_fork_that_is_killed_loses_nothing() -> None:
    text = """
def square(n):
    if n == 5 and os.getpid() != here:
        os.kill(os.getpid(), 9)
    return n * n
print(*engine.forked_map(square, range(9), is_long=True))
"""
    assert run(text) == [str(n * n) for n in range(9)]


def test_what_the_function_raises_is_raised() -> None:
    text = """
try:
    list(engine.forked_map(lambda n: 1 // n, [1, 0], is_long=True))
except ZeroDivisionError as error:
    print(type(error).__name__)
"""
    assert run(text) == ["ZeroDivisionError"]


def test_a_port_is_the_same_from_forks(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "names.py").write_text("import torch\nfrom torch import _assert\n")
    for number in range(6):
        (project / f"net{number}.py").write_text(
            "import torch\nfrom names import _assert\n\n\ndef f(x):\n"
            f"    _assert(x.ndim == {number}, '')\n    return torch.var(x)\n"
        )
    text = f"""
from pathlib import Path
from isograd.convert import run
project = Path({str(project)!r})
for name, least in (("one", 1 << 30), ("forks", 0)):
    run._FORKED_BYTES = least
    report = run.convert_path(project, Path({str(tmp_path)!r}) / name)
    print(sum(file.converted for file in report.files))
"""
    one, forks = run(text)
    assert int(one) == int(forks) == 12
    ports = [
        {path.name: path.read_text() for path in (tmp_path / name).rglob("*.py")}
        for name in ("one", "forks")
    ]
    assert ports[0] == ports[1]
    assert "assert x.ndim == 3" in ports[0]["net3.py"]
    assert "def var(" in ports[0]["torch_semantics.py"]
