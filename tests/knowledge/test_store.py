"""Loading: fast, without a framework, by any name; the compiled file is current."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import isograd
from isograd.knowledge import load_knowledge
from isograd.knowledge.authoring import read_entries
from isograd.knowledge.build import compiled
from isograd.knowledge.entry import Applicability, Status
from isograd.knowledge.store import (
    ENTRIES_FILE,
    EXAMPLES_FILE,
    VERIFIED_FILE,
    Knowledge,
    entry_of,
    row_of,
)


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load_knowledge(with_examples=True)


def test_the_compiled_files_are_what_the_toml_says() -> None:
    texts = tuple(file.read_text(encoding="utf-8") for file in (ENTRIES_FILE, EXAMPLES_FILE))
    assert texts == compiled(read_entries())


def test_examples_are_read_where_they_are_asked_for(knowledge: Knowledge) -> None:
    plain = load_knowledge()
    assert not any(entry.examples for entry in plain.entries)
    assert [replace(entry, examples=()) for entry in knowledge.entries] == list(plain.entries)
    assert len(knowledge.find("torch.cat").examples) > 1


@pytest.mark.parametrize("api", ["torch.rand", "torch.nn.Dropout", "torch.bernoulli"])
def test_what_draws_is_random(api: str) -> None:
    assert load_knowledge().find(api).is_random


@pytest.mark.parametrize("api", ["torch.relu", "torch.nn.Linear", "torch.arange"])
def test_what_draws_nothing_at_a_call_is_not(api: str) -> None:
    assert not load_knowledge().find(api).is_random


def test_an_alias_leads_to_its_entry(knowledge: Knowledge) -> None:
    assert knowledge.find("torch.concat") is knowledge.find("torch.cat")
    assert knowledge.canonical("torch.nn.modules.conv.Conv2d") == "torch.nn.Conv2d"
    assert knowledge.canonical("torch.unheard_of") == "torch.unheard_of"
    assert knowledge.find("torch.unheard_of") is None


def test_no_name_stands_for_two_entries(knowledge: Knowledge) -> None:
    names = [name for entry in knowledge.entries for name in (entry.api, *entry.aliases)]
    assert sorted(n for n in set(names) if names.count(n) > 1) == []


def test_methods_are_bare_names(knowledge: Knowledge) -> None:
    assert {"view", "add_", "shape", "size", "absolute"} <= knowledge.methods
    assert not any("." in name for name in knowledge.methods)


def test_an_entry_survives_its_compiled_form(knowledge: Knowledge) -> None:
    for entry in knowledge.entries:
        again = entry_of(json.loads(json.dumps(row_of(entry))), entry.verified)
        assert again == entry


def test_loading_is_fast_and_imports_no_framework() -> None:
    code = """
import sys, time
start = time.process_time()
from isograd.knowledge import load_knowledge
load_knowledge()
print(time.process_time() - start)
assert not {"torch", "mindspore", "numpy"} & set(sys.modules)
"""
    times = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(Path(isograd.__file__).parent.parent)},
        )
        times.append(float(done.stdout))
    assert min(times) < 0.15


def test_what_disagrees_on_another_device_is_not_called_supported(tmp_path) -> None:
    table = json.loads(VERIFIED_FILE.read_text(encoding="utf-8"))
    table["device"] = "Ascend"
    table["results"] = {"torch.abs": {"forward": False, "gradient": None, "detail": "no kernel"}}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(table), encoding="utf-8")
    entry = load_knowledge(path).find("torch.abs")
    assert entry is not None
    assert entry.status is Status.DIFFERS
    assert entry.applicability is Applicability.HAND
    assert entry.verified is not None
    assert entry.verified.device == "Ascend"
    assert "no kernel" in entry.difference


def test_a_table_may_be_named_by_the_environment(tmp_path, monkeypatch) -> None:
    path = tmp_path / "no_table.json"
    path.write_text("{}", encoding="utf-8")
    monkeypatch.setenv("ISOGRAD_KNOWLEDGE", str(path))
    with pytest.raises(ValueError, match=r"no_table\.json is not a table of verdicts"):
        load_knowledge()


def test_a_second_load_costs_nothing(knowledge: Knowledge) -> None:
    start = time.perf_counter()
    assert load_knowledge(with_examples=True) is knowledge
    assert time.perf_counter() - start < 0.01
