"""Converting a text or a folder of texts."""

from __future__ import annotations

import json
import tempfile
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.warm_python import run_python

from isograd.convert import ConvertReport, Finding, Options, convert_path

#: What a port may not import.
_WITHOUT_TORCH = """
import sys
class _Banned:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torchvision", "isograd"):
            raise ImportError(f"a port imports {name}")
sys.meta_path.insert(0, _Banned())
"""


def port_of(code: str, target: str = "ops") -> tuple[str, tuple[Finding, ...]]:
    """The port of one file's text, with its findings."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.py"
        path.write_text(textwrap.dedent(code))
        report = convert_path(path, Path(folder) / "out", Options(target))
        return (Path(folder) / "out" / "net.py").read_text(), report.findings


def write_all(root: Path, files: Mapping[str, str]) -> Path:
    """A folder of files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return root


def converted(root: Path, files: Mapping[str, str]) -> tuple[Path, ConvertReport]:
    """The folder of the port of these files, and the report."""
    source = write_all(root / "original", files)
    report = convert_path(source, root / "port")
    return root / "port", report


def run_original(folder: Path, code: str) -> str:
    """What a child prints that can import what `converted` wrote there as the original."""
    return _printed(folder / "original", textwrap.dedent(code), "torch")


def run_port(folder: Path, code: str) -> str:
    """What a child prints that can import the port but neither torch nor isograd."""
    return _printed(folder, _WITHOUT_TORCH + textwrap.dedent(code), "mindspore")


def _printed(folder: Path, code: str, framework: str) -> str:
    done = run_python(code, cwd=folder, imported=[framework])
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def run_both(folder: Path, port: Path, code: str) -> tuple[Any, Any]:
    """The JSON that the original and the port print; TENSOR in the code makes a tensor of each."""
    expected = run_original(folder, code.replace("TENSOR", "__import__('torch').tensor"))
    found = run_port(port, code.replace("TENSOR", "__import__('mindspore').Tensor"))
    return json.loads(expected), json.loads(found)


def with_cases(start: str, bodies: Iterable[Sequence[str]]) -> str:
    """A module's text that goes on with functions of these lines, all of them in `CASES`."""
    lines, count = [start], 0
    for count, body in enumerate(bodies, 1):
        lines += [f"def case{count}():", *(f"    {line}" for line in body)]
    names = ", ".join(f"case{number + 1}" for number in range(count))
    return "\n".join([*lines, f"CASES = ({names})", ""])
