"""Cases written on the spot, and what `isograd verify` says to them."""

from __future__ import annotations

import dataclasses
import importlib.util
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from isograd.cli import main

FAKE = """
    from isograd.frameworks.fake.network import SGD, Linear, Module, ReLU, Sequential, Tensor
    from isograd.frameworks.fake.network import mean_squared_error

    def build():
        return Sequential(Linear(4, 5), ReLU(), Linear(5, 3))

    def loss(output, target):
        return mean_squared_error(output, target)

    def optimizer(model):
        return SGD(model.parameters(), lr=0.1)
"""

TORCH = """
    import torch
    from torch import nn

    def build():
        return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))

    def loss(output, target):
        return nn.functional.mse_loss(output, target)

    def optimizer(model):
        return torch.optim.SGD(model.parameters(), lr=0.1)
"""

MINDSPORE = """
    import mindspore as ms
    from mindspore import nn, ops

    def build():
        return nn.SequentialCell(nn.Dense(4, 5), nn.ReLU(), nn.Dense(5, 3))

    def loss(output, target):
        return ops.mse_loss(output, target)

    def optimizer(model):
        return nn.SGD(model.trainable_params(), learning_rate=0.1)
"""

SOURCES = {"fake": FAKE, "torch": TORCH, "mindspore": MINDSPORE}


@dataclasses.dataclass(frozen=True)
class Answer:
    """The exit status and what was said."""

    status: int
    out: str
    error: str


@dataclasses.dataclass
class CaseMaker:
    """A small case that is right until a test spoils it."""

    folder: Path
    frameworks: tuple[str, str] = ("fake", "fake")
    extra: str = ""
    reference_extra: str = ""
    port_extra: str = ""
    keys: tuple[tuple[str, ...], tuple[str, ...]] = (("loss", "optimizer"), ("loss", "optimizer"))
    inputs: str = "[[inputs]]\nshape = [6, 4]\n"
    targets: str = '[[targets]]\nshape = [6, 3]\ndtype = "float32"\n'
    spoil: tuple[tuple[str, str], ...] = ()
    spoil_reference: tuple[tuple[str, str], ...] = ()

    def write(self) -> Path:
        """Write the networks and the case; the case's path."""
        for name in set(self.frameworks) - {"fake"}:
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"{name} is not installed")
        text = ""
        for side, framework, keys, extra, changes in zip(
            ("reference", "port"),
            self.frameworks,
            self.keys,
            (self.reference_extra, self.port_extra),
            (self.spoil_reference, self.spoil),
            strict=True,
        ):
            source = textwrap.dedent(SOURCES[framework])
            for before, after in changes:
                assert before in source, before
                source = source.replace(before, after)
            (self.folder / f"net_{side}.py").write_text(source)
            lines = [f'{key} = "net_{side}.py:{key}"' for key in keys]
            lines = [f'framework = "{framework}"', f'model = "net_{side}.py:build"', *lines, extra]
            text += f"[{side}]\n" + "\n".join(lines) + "\n"
        steps = "" if "[verify]" in self.extra else '[verify]\nsteps = 2\ncompiled = "off"\n'
        path = self.folder / "case.toml"
        path.write_text(text + self.inputs + self.targets + steps + self.extra)
        return path


@pytest.fixture
def make_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CaseMaker:
    monkeypatch.chdir(tmp_path)
    return CaseMaker(tmp_path)


@pytest.fixture
def verify(capfd: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run `isograd verify --quiet` on a case."""

    def run(path: Path | str, *options: str) -> Answer:
        status = main(["verify", str(path), "--quiet", *options])
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        assert "Traceback" not in captured.out
        return Answer(status, captured.out, captured.err)

    return run
