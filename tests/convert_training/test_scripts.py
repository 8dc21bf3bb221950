"""Training scripts are converted with no hand edit, import no torch, and follow the original."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.warm_python import run_python, run_script

ROOT = Path(__file__).parents[2]
BENCHMARK = ROOT / "benchmarks" / "convert" / "training.py"


@pytest.fixture(scope="module")
def training() -> Iterator[ModuleType]:
    """The benchmark; it runs the originals in processes that have imported torch."""
    spec = importlib.util.spec_from_file_location("isograd_benchmark_training", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)  # its dataclasses look themselves up
        spec.loader.exec_module(module)
        as_users_do = module.Work.run

        def run(work: Any, *command: str) -> str:
            if command[1] == "-c" and command[2] == module.NUDGE:
                done = run_python(*command[2:], cwd=work.folder, imported=["torch"])
            elif Path(command[1]).parent == module.SCRIPTS:
                done = run_script(command, imported=["torch"], cwd=work.folder)
            else:
                told: str = as_users_do(work, *command)
                return told
            if done.returncode:
                raise RuntimeError(done.stderr)
            return done.stdout

        patch.setattr(module.Work, "run", run)
        yield module


@pytest.fixture(scope="module")
def ports(
    training: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, dict[str, int]]]:
    """The folder of the converted scripts, and the counts of each."""
    work = training.Work(tmp_path_factory.mktemp("scripts"))
    return work.folder / "port", training.convert(work)


@pytest.mark.parametrize(
    "name", ["classification", "language_model", "segmentation", "fine_tuning", "gan"]
)
def test_example_follows_its_original(
    name: str, training: ModuleType, ports: tuple[Path, dict[str, dict[str, int]]]
) -> None:
    folder, counts = ports
    scripts = [script for script in training.ALL if script.name == name]
    assert scripts
    for script in scripts:
        row = training.compare(script, folder, counts[f"{name}.py"], small=True)
        assert row.follows, row
        assert row.left == 0
        assert row.steps >= 1
        assert row.numbers >= 20
        assert row.early < 1e-4
