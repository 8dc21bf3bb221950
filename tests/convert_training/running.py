"""A text with torch in it, converted and run beside its original."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.warm_python import run_python

from isograd.convert.model import ConvertReport, Level
from isograd.convert.run import convert_path

_WITHOUT_TORCH = (
    "import sys; sys.modules['torch'] = None; import mindspore; "
    "mindspore.set_context(pynative_synchronize=True)\n"
)
_RUN = "import runpy; runpy.run_path('script.py', run_name='__main__')"


@dataclass(frozen=True)
class Converted:
    """A conversion: the report, the port's text and its folder."""

    report: ConvertReport
    text: str
    folder: Path

    @property
    def left(self) -> list[str]:
        """What a person has to finish."""
        return [f.message for f in self.report.findings if f.level is Level.FINISH]


def convert(text: str, folder: Path) -> Converted:
    """Convert one file."""
    original = folder / "script.py"
    original.write_text(text, encoding="utf-8")
    out = folder / "port"
    report = convert_path(original, out)
    path = out / "script.py" if out.is_dir() else out
    return Converted(report, path.read_text(encoding="utf-8"), path.parent)


def numbers(folder: Path, *, is_port: bool) -> np.ndarray:
    """The numbers that a script prints, one in a line."""
    first = _WITHOUT_TORCH if is_port else ""
    framework = "mindspore" if is_port else "torch"
    done = run_python(first + _RUN, cwd=folder, imported=[framework])
    assert done.returncode == 0, done.stderr[-3000:]
    told = (line for line in done.stdout.splitlines() if "WARNING" not in line)
    return np.array([float(line) for line in told if line.strip()])


def assert_follows(text: str, folder: Path, *, tolerance: float = 1e-5) -> Converted:
    """Convert a script and compare what both sides print."""
    converted = convert(text, folder)
    assert converted.left == [], converted.text
    theirs, ours = numbers(folder, is_port=False), numbers(converted.folder, is_port=True)
    assert len(theirs) > 0
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    return converted


#: The start of a program: layers with weights that are written out, inputs and targets.
LAYERS = """
import torch
from torch import nn


def make(k):
    net = nn.Linear(4, 4)
    for i, p in enumerate(net.parameters()):
        p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) * 1.3 + i + k) * 0.5)
    return net


X = torch.cos(torch.arange(48.0)).view(3, 4, 4)
Y = torch.arange(12).view(3, 4) % 4
"""
