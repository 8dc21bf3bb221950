"""Options and fixtures that all tests share."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

# Tests run beside each other: a framework within a test computes with as many threads as one in a
# worker of isograd's does, before anything that has threads is imported.
os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 2) // 2)))

import hypothesis
import pytest

from isograd.worker.warm import WarmWorkers

# The same examples on every run and no time limit, so that a change and nothing else turns a test
# red; new ones are sought with HYPOTHESIS_PROFILE=explore.
_COMMON = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("fixed", derandomize=True, **_COMMON)
hypothesis.settings.register_profile("explore", max_examples=1000, **_COMMON)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-goldens",
        action="store_true",
        help="write the golden files anew instead of comparing with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Leave the assertions of the sources as they are; those of the conformance classes are tests.

    pytest takes a package with a plugin as a package of tests.  Each process of tests would compile
    a thousand files for itself, in a form that the processes that tests start cannot read.
    """
    hook = getattr(config.pluginmanager, "rewrite_hook", None)
    marked: set[str] = getattr(hook, "_must_rewrite", set())
    if "isograd" in marked:
        marked.remove("isograd")
        marked.add("isograd.testing")


#: The files that take longest; begun last, one of them would run alone at the end.
LONGEST = ("tests/verify/test_networks.py", "tests/diagnose/test_examples.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the longest files; all others in their order."""
    longest = [config.rootpath / file for file in LONGEST]
    items.sort(key=lambda item: item.path not in longest)


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of this name beside the test, or write it anew."""
    folder = Path(request.path).parent / "golden"
    is_refresh = request.config.getoption("--refresh-goldens")

    def check(name: str, text: str) -> None:
        path = folder / name
        if is_refresh:
            folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: run pytest --refresh-goldens and review it"
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session", autouse=True)
def warm_workers() -> Iterator[None]:
    """Import each framework once for the networks that this process of tests builds.

    Each worker stays a process of its own; tests/worker and the commands that tests start as
    processes use workers that begin from nothing.
    """
    with WarmWorkers() as warm, pytest.MonkeyPatch.context() as patch:
        for user in ("isograd.verify.session", "isograd.init.probe"):
            patch.setattr(importlib.import_module(user), "Worker", warm.worker)
        session = importlib.import_module("isograd.verify.session").Session
        patch.setattr(session, "_start", lambda _, *given: warm.worker(*given))
        yield


@pytest.fixture(scope="module", autouse=True)
def mindspore_records_nothing() -> Iterator[None]:
    """Switch MindSpore's recorder off after a file whose ports switched it on.

    Left on, a network of another file that is differentiated in the same process gets no top cell.
    """
    yield
    api = sys.modules.get("mindspore.graph.api")
    if api is not None:
        api._pynative_executor.set_grad_flag(False)


@pytest.fixture(scope="session")
def bare_python(request: pytest.FixtureRequest) -> Path:
    """An interpreter that has numpy and nothing else; made once and kept in pytest's cache."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")  # two must not build one folder
    folder = Path(request.config.cache.mkdir("bare-venv")) / worker  # type: ignore[union-attr]
    python = folder / "bin" / "python"
    probe = [str(python), "-c", "import numpy"]
    if not python.exists() or subprocess.run(probe, capture_output=True).returncode != 0:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "numpy", "tomli"]
        if subprocess.run(install, capture_output=True).returncode != 0:
            pytest.skip("numpy cannot be installed into a fresh environment here")
    return python
