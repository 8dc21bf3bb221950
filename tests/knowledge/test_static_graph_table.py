"""What the static graph makes of entries, as `isograd.knowledge check --compiled` executed them."""

from __future__ import annotations

import json
import re

import pytest

from isograd.knowledge.check.compiled import executed_jobs, fingerprint
from isograd.knowledge.store import COMPILED_FILE, load_knowledge

RESULTS = json.loads(COMPILED_FILE.read_text(encoding="utf-8"))["results"]


def test_the_table_is_of_the_entries_as_they_are() -> None:
    by_api = {entry.api: entry for entry in load_knowledge(with_examples=True).entries}
    assert [api for api, row in RESULTS.items() if row["of"] != fingerprint(by_api[api])] == []


def test_an_entry_is_the_same_or_differs_or_is_refused_and_told_of_how_many_examples() -> None:
    last = [row["compiled"].rpartition(", else ")[2] for row in RESULTS.values()]
    assert {word.partition(" (")[0] for word in last} <= {"same", "differs", "refused", ""}
    counted = [row for row in RESULTS.values() if row["verdict"] == "depends"]
    assert all(re.match(r"same in [1-9]\d* of \d+ examples, else ", r["compiled"]) for r in counted)
    reasons = [row["compiled"] for row in RESULTS.values() if row["verdict"] == "refused"]
    assert sum("(" in reason for reason in reasons) >= 0.9 * len(reasons)


def test_an_entry_tells_it() -> None:
    found = {}
    for api in ("torch.nn.functional.gelu", "torch.Tensor.topk"):
        entry = load_knowledge().find(api)
        assert entry is not None
        assert entry.verified is not None
        found[api] = entry.verified.compiled
    assert found == dict.fromkeys(found, "same")


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        pytest.param("ops.floor(x)", "same", id="operators"),
        pytest.param("ms.Tensor(np.floor(x.asnumpy()))", "gradient-lost", id="numpy"),
    ],
)
def test_what_runs_in_python_loses_the_gradients_beside_it(code: str, verdict: str) -> None:
    pytest.importorskip("mindspore")
    job = {"key": "f", "code": code, "construction": "", "inputs": [("x", "normal(2, 3)")]}
    (found,) = executed_jobs([job], "CPU")["f"]
    assert found["jit"][0] == verdict
