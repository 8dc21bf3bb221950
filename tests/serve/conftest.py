"""A folder with something of most kinds, and a client that has the token."""

from __future__ import annotations

import json
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
    report = {"schema": "isograd/verify/1", "verdict": "divergent", "stages": stages}
    return json.dumps({**report, "first_divergence": finding, "findings": [finding]})


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
def client(served: Path) -> Iterator[TestClient]:
    """A browser that has opened the address with the token."""
    app = make_app(Catalogue([served]), TOKEN)
    with TestClient(app, base_url="http://127.0.0.1:8765") as made:
        assert made.get(f"/?token={TOKEN}").status_code == 200
        yield made
