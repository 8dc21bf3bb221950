"""A sample of entries executed on both frameworks, and what the check says of wrong ones."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from isograd.knowledge import load_knowledge
from isograd.knowledge.check import table
from isograd.knowledge.check.batches import Outcome, run
from isograd.knowledge.check.comparing import Array, compare
from isograd.knowledge.check.comparing import Outcome as Comparison
from isograd.knowledge.check.drawing import draw
from isograd.knowledge.entry import Entry, Example
from isograd.knowledge.store import Knowledge

SAMPLE = """
torch.cat torch.Tensor.view torch.Tensor.add_ torch.nn.Conv2d torch.nn.functional.interpolate
torch.nn.functional.selu torch.optim.AdamW torch.optim.lr_scheduler.StepLR torch.nn.init.normal_
torch.Tensor.zero_ torch.nn.BatchNorm2d torch.std
""".split()


def execute(entries: list[Entry]) -> dict[str, dict[str, object]]:
    knowledge = Knowledge((*load_knowledge(with_examples=True).entries, *entries))
    outcomes: dict[str, list[Outcome]] = {}
    run(knowledge, entries, 1, lambda o: outcomes.setdefault(o.api, []).append(o))
    return {entry.api: table.verdict(entry, outcomes[entry.api]) for entry in entries}


def test_a_sample_agrees_and_faults_are_found() -> None:
    knowledge = load_knowledge(with_examples=True)
    found = {api: knowledge.find(api) for api in SAMPLE}
    sample = [entry for entry in found.values() if entry is not None]
    base = next(entry for entry in sample if entry.api == "torch.cat")

    def faulty(api: str, code: str, port: str, **fields: object) -> Entry:
        inputs = (("x", "normal(3, 4)"),)
        example = Example(code, inputs, port, **fields)  # type: ignore[arg-type]
        return dataclasses.replace(base, api=api, aliases=(), examples=(example,))

    faults = [
        faulty("torch.wrong_value", "torch.std(x)", "x.std()"),
        faulty("torch.wrong_dtype", "torch.argmin(x)", "ops.argmin(x)"),
        faulty("torch.wrong_gradient", "torch.nn.functional.selu(x)", "ops.selu(x)"),
        faulty(
            "torch.wrong_mutation", "x.add_(1)\nreturn 0", "x.add_(1)\nreturn 0", gradient=False
        ),
        faulty(
            "torch.wrong_at_zero",
            "torch.nn.functional.leaky_relu(x)",
            "ops.leaky_relu(x, 0.01)",
        ),
        faulty(
            "torch.wrong_at_zero_and_told",
            "torch.nn.functional.leaky_relu(x)",
            "ops.leaky_relu(x, 0.01)",
            ties=False,
        ),
        faulty("torch.crash", "torch.abs(x)", "import os\nos._exit(3)"),
        faulty("torch.after_a_crash", "torch.abs(x)", "ops.abs(x)"),
        faulty("torch.bad_example", "torch.abs(z)", "ops.abs(x)"),
    ]
    verdicts = execute([*sample, *faults])
    for entry in sample:
        assert verdicts[entry.api]["forward"] is True, verdicts[entry.api]
        assert verdicts[entry.api]["gradient"] is not False, verdicts[entry.api]
    details = {api: str(verdicts[api].get("detail", "")) for api in verdicts}
    assert "error" in details["torch.wrong_value"]
    assert "dtype int64 in torch, int32 in MindSpore" in details["torch.wrong_dtype"]
    assert verdicts["torch.wrong_gradient"]["forward"] is True
    assert verdicts["torch.wrong_gradient"]["gradient"] is False
    assert verdicts["torch.wrong_at_zero"]["gradient"] is False
    assert details["torch.wrong_at_zero"].startswith("ties and zeros: gradient")
    assert verdicts["torch.wrong_at_zero_and_told"]["gradient"] is True
    assert details["torch.wrong_mutation"].startswith("inputs after")
    assert details["torch.crash"] == "the process ended with status 3"
    assert verdicts["torch.after_a_crash"]["forward"] is True
    assert verdicts["torch.bad_example"]["forward"] is None


@pytest.mark.parametrize("text", ["normal(5, 4)", "uniform(-1, 3, (5, 4))"])
def test_a_draw_with_ties_has_equal_numbers_and_zeros(text: str) -> None:
    found, usual = draw("x", text, 0, with_ties=True), draw("x", text, 0)
    assert len(np.unique(found)) < found.size == len(np.unique(usual))
    assert (found[0] == 0).all()
    assert (found * 2 == np.round(found * 2)).all()
    assert (found.shape, found.dtype) == (usual.shape, usual.dtype)
    assert not np.signbit(found[found == 0]).any()


def test_a_table_is_read_back(tmp_path) -> None:
    path = tmp_path / "mine.json"
    table.write(path, {"torch.abs": {"forward": True, "gradient": None, "of": "0"}})
    assert json.loads(path.read_text(encoding="utf-8"))["schema"] == "isograd/knowledge/1"
    assert table.read(path) == {"torch.abs": {"forward": True, "gradient": None, "of": "0"}}


@pytest.mark.parametrize(
    ("reference", "port", "text"),
    [
        (Array([1.0, 2.0], "float32"), Array([1.0], "float32"), "shape"),
        (Array([1.0], "float32"), Array([1.0], "float64"), "dtype"),
        (Array([1.0, 2.0], "float32"), Array([1.0, 2.1], "float32"), "error 5.0e-02"),
        (Array([1.0, float("nan")], "float32"), Array([1.0, 2.0], "float32"), "nan"),
        (Array([1, 2], "int64"), Array([1, 3], "int64"), "1 of 2 elements differ"),
        ([1, 2], [1], "2 parts in torch, 1 in MindSpore"),
        (True, 1, "True in torch, 1 in MindSpore"),
    ],
)
def test_a_disagreement_is_said_in_words(reference: object, port: object, text: str) -> None:
    outcome = Comparison()
    compare(reference, port, "", outcome)
    assert text in outcome.detail


def test_last_digits_agree() -> None:
    outcome = Comparison()
    compare(Array([1.0, 2.0], "float32"), Array([1.0, 2.00001], "float32"), "", outcome)
    assert outcome.detail == ""
    assert 0 < outcome.error < 1e-4


#: The official table's spellings, and names that need a package that is not installed.
SPELLINGS = set(
    """torch.Tensor.log_normal torch.nn.CeLU torch.nn.LogSoftMax torch.nn.SeLU torch.optim.AdaMax
    torch.optim.RMSProp torch.utils.tensorboard.SummaryWriter
    torch.utils.tensorboard.writer.SummaryWriter torch.optim.Optimizer.param_groups
    torch.nn._BatchNorm torch.nn._InstanceNorm torch.nn._NormBase torch.nn._ConvNd
    torch.nn._DropoutNd torch.nn._Loss torch.nn._WeightedLoss torch.optim.Optimizer.state
    torch.optim.Optimizer.defaults""".split()
)
RESOLVE = """
import importlib, json, sys
import torch
names = json.load(sys.stdin)

def exists(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
            for part in parts[end:]:
                found = getattr(found, part)
            return True
        except Exception:
            continue
    return False

print(json.dumps([name for name in names if not exists(name)]))
"""


def test_every_name_exists_in_its_framework() -> None:
    entries = load_knowledge().entries
    names = {n for entry in entries for n in (entry.api, *entry.aliases) if n.startswith("torch.")}
    names |= {n for e in entries for n in (e.target, e.mint) if n.startswith("mindspore.")}
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE],
        input=json.dumps(sorted(names)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(json.loads(done.stdout.splitlines()[-1])) <= SPELLINGS
