"""A folder with something of most kinds, and a client that has the token."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from isograd.runs.information import RunState, describe_run
from isograd.runs.writer import RunWriter
from isograd.serve.app import make_app
from isograd.serve.catalogue import Catalogue

TOKEN = "the-token-of-the-tests"
HOSTILE = "<img src=x onerror=alert(1)>"
PORT = "\n".join(f"line_{number} = {number}" for number in range(1, 60))


def write_run(folder: Path, *, steps: int = 20, name: str = "a", offset: float = 0.0) -> RunWriter:
    """A run whose loss falls from 1 + offset."""
    writer = RunWriter(folder, describe_run(name, "watch", "torch", "cpu"))
    for step in range(steps):
        loss = float(np.exp(-step / steps)) + offset
        writer.scalars(step, {"loss": loss, "learning_rate": 0.1})
    return writer


def verify_report() -> str:
    """A report of verify as --json writes it."""
    finding = {
        "code": "forward.differs",
        "severity": "effective",
        "stage": "forward",
        "module": "layer1.0.bn1",
        "message": f"output differs {HOSTILE}",
        "ratio": 959.0,
        "cause": {"id": "batch_norm.eps", "proved": True},
        "fix": {"text": "eps=1e-5", "where": "net_mindspore.py:41"},
    }
    stages = [{"stage": "forward", "verdict": "divergent", "checked": 161, "seconds": 0.4}]
    modules = [
        {"module": name, "kind": "", "port_module": name, "stage": "forward", "ratio": ratio}
        for name, ratio in (("layer1.0.linear", 0.5), ("layer1.0.bn1", 959.0), ("head", 0.2))
    ]
    report = {"schema": "isograd/verify/1", "verdict": "divergent", "stages": stages}
    report["modules"] = modules
    return json.dumps({**report, "first_divergence": finding, "findings": [finding]})


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `isograd verify --keep` leaves: a recording of each side, here of the same network."""
    import torch

    import isograd

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.bn1 = torch.nn.LayerNorm(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.bn1(self.linear(x)) + x)

    network = torch.nn.Sequential()
    network.add_module("layer1", torch.nn.Sequential(Block(), Block()))
    network.add_module("head", torch.nn.Linear(4, 2))
    folder = tmp_path_factory.mktemp("kept")
    for side in ("reference", "port"):
        with isograd.record(network, folder / side, glue=True) as recorder:
            loss = network(torch.ones(2, 4)).sum()
            loss.backward()
            recorder.step(loss)
    return folder


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A folder below which several things lie, one of them outside of reach."""
    folder = tmp_path / "served"
    write_run(folder / "runs/first").close(RunState.COMPLETE)
    write_run(folder / "runs" / HOSTILE, offset=0.5).close(RunState.COMPLETE)
    (folder / "report.json").write_text(verify_report())
    np.savez(folder / "net.npz", weight=np.ones((2, 3), np.float32))
    (folder / "notes.json").write_text('{"schema": "another/thing/1"}')
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "verify.json").write_text(verify_report())
    (folder / "link").symlink_to(secret)
    (folder / "link.json").symlink_to(secret / "verify.json")
    return folder


@pytest.fixture
def migration(served: Path, recordings: Path) -> Path:
    """The served folder with the port's source, the recordings of both sides, and a profile."""
    (served / "net_mindspore.py").write_text(PORT)
    shutil.copytree(recordings, served / "kept")
    modules = [{"module": "layer1.0", "forward_s": 0.3, "backward_s": 0.1}]
    profile = {"schema": "isograd/profile/1", "verdict": "balanced", "modules": modules}
    (served / "profile.json").write_text(json.dumps(profile))
    writer = write_run(served / "runs/watched")
    writer.statistics(0, {"gradient/layer1.0.bn1.weight/norm": 1.5, "gradient/head.bias/norm": 2.0})
    writer.close(writer.information.state)
    return served


@pytest.fixture
def events(served: Path) -> Path:
    """What TensorBoard's writer leaves: scalars, a histogram over steps, images."""
    from tensorboardX import SummaryWriter

    draws = np.random.default_rng(0)
    with SummaryWriter(str(served / "tb")) as writer:
        for step in range(5):
            writer.add_scalar("loss", 1.0 / (step + 1), step)
            writer.add_histogram("weights", draws.normal(step, 0.1, 1_000), step)
            writer.add_image("sample", np.full((3, 8, 8), step / 8, np.float32), step)
    return served


@pytest.fixture
def client(served: Path) -> Iterator[TestClient]:
    """A browser that has opened the address with the token."""
    app = make_app(Catalogue([served]), TOKEN)
    with TestClient(app, base_url="http://127.0.0.1:8765") as made:
        assert made.get(f"/?token={TOKEN}").status_code == 200
        yield made
