"""`isograd watch --out` runs an unchanged script; `--twice` says whether it is repeatable."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm_python import run_python

TORCH = """
import sys
import torch
from torch import nn
{before}
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
step_of = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(8):
    x = torch.randn(16, 8)
    loss = nn.functional.cross_entropy(net(x), torch.randint(0, 4, (16,)))
    step_of.zero_grad()
    {spoil}
    loss.backward()
    step_of.step()
print("trained", sys.argv[1:])
{after}
"""


def script(folder: Path, before: str = "", spoil: str = "pass", after: str = "") -> Path:
    path = folder / "train.py"
    path.write_text(TORCH.format(before=before, spoil=spoil, after=after))
    return path


COMMAND = "import runpy; runpy.run_module('isograd', run_name='__main__', alter_sys=True)"


def isograd(*arguments: object, is_warm: bool = True) -> subprocess.CompletedProcess[str]:
    """`isograd watch`; is_warm: in a process that has imported torch, otherwise as users do."""
    words = ["watch", *map(str, arguments)]
    if is_warm:
        return run_python(COMMAND, *words, cwd=Path.cwd(), imported=["torch"])
    command = [sys.executable, "-m", "isograd", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_healthy_script(tmp_path: Path) -> None:
    done = isograd(script(tmp_path), "--out", tmp_path / "a", "--", "--lr", "1", is_warm=False)
    assert done.returncode == 0, done.stderr
    assert "trained ['--lr', '1']" in done.stdout
    assert "Healthy: no alert in 8 steps" in done.stdout
    again = isograd(tmp_path / "a", "--json", "-", "--html", tmp_path / "a.html", "--follow")
    found = json.loads(again.stdout)
    assert (found["verdict"], found["steps"]) == ("healthy", 8)
    assert found["run"]["framework"] == "torch"
    assert "step 7: loss" in again.stderr
    assert "isograd watch" in (tmp_path / "a.html").read_text()


def test_a_script_with_a_nan(tmp_path: Path) -> None:
    spoil = "loss = loss + torch.log(loss * 0) if step == 4 else loss"
    done = isograd(script(tmp_path, spoil=spoil), "--out", tmp_path / "a")
    assert done.returncode == 1
    assert "the first value that is not finite arose at step 4 in log" in done.stdout
    assert "train.py:12" in done.stdout


def test_a_script_that_raises(tmp_path: Path) -> None:
    spoil = "step == 4 and 1 / 0"
    done = isograd(script(tmp_path, spoil=spoil), "--out", tmp_path / "a")
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert "Traceback" in done.stderr
    assert "Incomplete: 4 steps without an alert" in done.stdout
    assert "the training ended by an error: ZeroDivisionError: division by zero" in done.stdout
    assert done.returncode == 1
    assert isograd(tmp_path / "a").returncode == 1


def test_a_script_that_ends_with_a_status(tmp_path: Path) -> None:
    done = isograd(script(tmp_path, after="sys.exit(3)"), "--out", tmp_path / "a")
    assert "the training ended by an error: SystemExit: 3" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["{0}/none.py", "--out", "{0}/a"], "none.py does not exist", id="script"),
        pytest.param(["{0}", "--out", "{0}/a"], "is no file", id="script is a folder"),
        pytest.param(["{0}/raises.py", "--out", "{0}/c"], "run it alone first", id="raises"),
        pytest.param(["{0}/none"], "none does not exist", id="run"),
        pytest.param(["{0}"], "holds no run, no losses, no dump", id="folder"),
        pytest.param(["{0}", "--", "x"], "To run a script, give --out FOLDER", id="arguments"),
        pytest.param(["{0}/empty.py", "--out", "{0}/b"], "no step was recorded", id="no step"),
        pytest.param(["{0}/empty.py", "--twice", "2"], "no network was called", id="twice"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "empty.py").write_text("import torch\n")
    (tmp_path / "raises.py").write_text("import torch\nraise ValueError('no data')\n")
    done = isograd(*[part.format(tmp_path) for part in arguments])
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("Traceback") == done.stderr.count("raise ValueError")


@pytest.mark.parametrize(
    ("before", "spoil", "status", "says"),
    [
        pytest.param("torch.manual_seed(0)", "pass", 0, "not seeded by the script", id="same"),
        pytest.param("torch.seed()", "pass", 1, "the weight 0.weight is the first", id="weights"),
        pytest.param(
            "torch.manual_seed(0)\nimport os",
            "loss = loss * (1 + int.from_bytes(os.urandom(2), 'big'))",
            1,
            "after the update is the first that differs between two runs, at step 0",
            id="loss",
        ),
    ],
)
def test_twice(tmp_path: Path, before: str, spoil: str, status: int, says: str) -> None:
    done = isograd(script(tmp_path, before, spoil), "--twice", "2")
    assert done.returncode == status, done.stderr
    assert says in done.stdout
