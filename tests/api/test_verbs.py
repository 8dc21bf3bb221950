"""Every verb from Python: `isograd.verify("case.toml")` and the like."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isograd
from isograd.cli.entry import isograd as group
from isograd.verify.case import read_case

EXAMPLES = Path(__file__).parents[2] / "examples" / "fake"
VERBS = (
    "compare convert data diagnose explain init params profile scan tune verify watch weights"
).split()
#: What only the command line has: where reports go, what is drawn, and questions to its own files.
ONLY_COMMANDS = {
    "json", "csv", "html", "parquet", "sarif", "trace", "links", "quiet", "all", "diff", "list",
    "fail_on", "sql", "help", "fix", "apply", "out", "twice", "view",
}  # fmt: skip
#: Builders are verified and exported by the command only.
OF_BUILDERS = {"verify", "compiled", "from_export", "input", "seed", "before", "torch_python"}


def test_the_public_names() -> None:
    assert sorted(isograd.__all__) == sorted(
        [
            "IsogradError",
            "ProfileCallback",
            "Recording",
            "WatchCallback",
            "__version__",
            "record",
            *VERBS,
        ]
    )
    for name in isograd.__all__:
        assert getattr(isograd, name) is not None


def _run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_nothing_is_imported_before_it_is_used() -> None:
    program = (
        "import sys, isograd\n"
        "print([n for n in sys.modules if n.startswith('isograd.')],\n"
        "      [n for n in ('numpy', 'torch', 'mindspore', 'click') if n in sys.modules])"
    )
    assert _run(program) == "['isograd.version'] []"


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_imports_a_framework(verb: str) -> None:
    program = (
        f"import inspect, sys, isograd\ninspect.signature(isograd.{verb})\n"
        f"try: isograd.{verb}('missing', 'missing.npz')\n"
        "except (isograd.IsogradError, TypeError): pass\n"
        "print([n for n in ('torch', 'mindspore') if n in sys.modules])"
    )
    assert _run(program) == "[]"


@pytest.mark.parametrize(
    "first",
    [
        pytest.param("import isograd.verify.case", id="submodule-first"),
        pytest.param("import isograd.verify", id="package-first"),
        pytest.param("from isograd import verify", id="name-first"),
        pytest.param("attempt()", id="call-first"),
        pytest.param("from isograd.verify import verify_case", id="function-of-the-package"),
    ],
)
def test_both_orders_of_import(first: str) -> None:
    """A first user: `import isograd; isograd.verify(…)` is an AttributeError."""
    program = (
        "import isograd\n"
        "def attempt():\n"
        "    try: isograd.verify('missing.toml')\n"
        "    except isograd.IsogradError as error: print(type(error).__name__)\n"
        f"{first}\nattempt()\nimport isograd.verify.ladder\nattempt()\n"
        "print(isograd.verify.ladder.verify_case.__name__)"
    )
    assert _run(program).split()[-3:] == ["CaseError", "CaseError", "verify_case"]


@pytest.mark.parametrize("verb", VERBS)
def test_keywords_are_the_options_of_the_command(verb: str) -> None:
    context = group.make_context("isograd", [verb, "--help"], resilient_parsing=True)
    command = group.get_command(context, verb)
    assert command is not None
    options = {
        option.opts[-1].lstrip("-").replace("-", "_")
        for option in command.params
        if option.param_type_name == "option"
    }
    options -= ONLY_COMMANDS | (OF_BUILDERS if verb == "convert" else set())
    parameters = inspect.signature(getattr(isograd, verb)).parameters
    assert options - {name.rstrip("_") for name in parameters} == set()


def _checkpoint(folder: Path, name: str, shift: float = 0.0) -> Path:
    path = folder / name
    np.savez(path, weight=np.arange(6, dtype=np.float32).reshape(2, 3) + np.float32(shift))
    return path


def _source(folder: Path) -> Path:
    path = folder / "net.py"
    path.write_text("import torch\n\n\ndef double(x):\n    return torch.add(x, x)\n")
    return path


def _trace(folder: Path) -> Path:
    path = folder / "trace.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    path.write_text(json.dumps([event]))
    return path


def _log(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("".join(f"step {i} loss {1 / (i + 1):.6f}\n" for i in range(5)))
    return path


@pytest.mark.parametrize(
    ("call", "schema"),
    [
        pytest.param(
            lambda folder: isograd.verify(EXAMPLES / "faithful.toml"), "verify", id="verify"
        ),
        pytest.param(
            lambda folder: isograd.verify(read_case(EXAMPLES / "faithful.toml"), seed=1),
            "verify",
            id="verify-a-case-that-was-read",
        ),
        pytest.param(
            lambda folder: isograd.diagnose(str(EXAMPLES / "divergent.toml"), "network"),
            "diagnose",
            id="diagnose",
        ),
        pytest.param(lambda folder: isograd.explain("batch_norm.eps"), "explain", id="explain"),
        pytest.param(lambda folder: isograd.scan(_source(folder)), "scan", id="scan"),
        pytest.param(
            lambda folder: isograd.convert(_source(folder), folder / "port"),
            "convert",
            id="convert",
        ),
        pytest.param(
            lambda folder: isograd.convert(_source(folder), check=True),
            "convert",
            id="convert-check",
        ),
        pytest.param(
            lambda folder: isograd.params(_checkpoint(folder, "a.npz")), "params", id="params"
        ),
        pytest.param(
            lambda folder: isograd.weights(_checkpoint(folder, "a.npz"), folder / "b.safetensors"),
            "weights",
            id="weights",
        ),
        pytest.param(
            lambda folder: isograd.compare(
                _checkpoint(folder, "a.npz"), _checkpoint(folder, "b.npz", 1e-9), rtol=1e-6
            ),
            "compare",
            id="compare-tensors",
        ),
        pytest.param(lambda folder: isograd.profile(_trace(folder)), "profile", id="profile"),
        pytest.param(
            lambda folder: isograd.compare(_log(folder, "a.log"), _log(folder, "b.log")),
            "compare-curves",
            id="compare-curves",
        ),
    ],
)
def test_a_report_is_what_json_draws(
    call: Callable[[Path], Any], schema: str, tmp_path: Path
) -> None:
    report = call(tmp_path)
    assert json.loads(report.to_json())["schema"] == f"isograd/{schema}/1"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(lambda: isograd.explain("batch_norm.epsilon"), "batch_norm.eps", id="explain"),
        pytest.param(
            lambda: isograd.init("missing.py", "port.py"), "missing.py cannot be read", id="init"
        ),
        pytest.param(
            lambda: isograd.verify("missing.toml"),
            "there is no case file missing.toml",
            id="verify",
        ),
        pytest.param(
            lambda: isograd.diagnose(EXAMPLES / "faithful.toml", "nothing"),
            "nothing",
            id="diagnose",
        ),
        pytest.param(lambda: isograd.scan("missing"), "missing", id="scan"),
        pytest.param(lambda: isograd.watch("missing"), "missing does not exist", id="watch"),
        pytest.param(lambda: isograd.convert("net.py"), "no place for the port", id="convert"),
        pytest.param(lambda: isograd.profile("missing"), "missing does not exist", id="profile"),
        pytest.param(lambda: isograd.params("missing.pth"), "missing.pth", id="params"),
        pytest.param(lambda: isograd.weights("a.pth", "b.ckpt"), "a.pth", id="weights"),
        pytest.param(
            lambda: isograd.weights("a.pth", "b.ckpt", shard_size="big"),
            "no size",
            id="weights-size",
        ),
        pytest.param(lambda: isograd.compare("a.pth"), "1 inputs are given", id="compare-one"),
        pytest.param(lambda: isograd.compare("a.pth", "b.pth"), "a.pth", id="compare"),
        pytest.param(
            lambda: isograd.compare("a.pth", "b.pth", rtol=1e-3, envelope={"*": 1e-3}),
            "both an envelope and tolerances",
            id="compare-two-rules",
        ),
    ],
)
def test_what_would_be_exit_status_2_is_raised(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(isograd.IsogradError, match=message):
        call()


def test_a_verb_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(isograd.verify)) is isograd.verify


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="prove"):
        isograd.prove  # type: ignore[attr-defined]  # noqa: B018
