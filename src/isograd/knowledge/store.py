"""The knowledge that ships with isograd, loaded without any framework: `load_knowledge`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from isograd.collector import without_collector
from isograd.knowledge.entry import UNHELD, Applicability, Entry, Example, Status, Verified, Way
from isograd.knowledge.rewrite import parameters_of

#: Where the compiled entries and what was executed lie.
FOLDER = Path(__file__).parent
ENTRIES_FILE = FOLDER / "entries.json"
EXAMPLES_FILE = FOLDER / "examples.json"
VERIFIED_FILE = FOLDER / "verified-cpu.json"
COMPILED_FILE = FOLDER / "compiled-cpu.json"
#: A person's own table of verdicts, made by `python -m isograd.knowledge check --out FILE`.
VARIABLE = "ISOGRAD_KNOWLEDGE"
_METHOD = "torch.Tensor."
#: A class of layers or of losses.
_LAYER = re.compile(r"torch\.nn\.[A-Z]\w*")
#: Arguments of layers that torch does not read at a call, or that are parameters.
_NOT_READ = frozenset(
    """bias device dtype inplace in_channels out_channels in_features out_features num_features
    num_channels num_embeddings embedding_dim num_parameters elementwise_affine affine init
    max_norm args kwargs modules""".split()
)
_STATUSES = {status.value: status for status in Status}
_TUPLES = frozenset(("aliases", "others", "integers"))
_PAIRS = frozenset(("arguments", "attributes", "settings"))


class Knowledge:
    """All entries, found by any of their names."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: tuple[Entry, ...] = tuple(entries)
        self._by_name = {name: entry for entry in self.entries for name in entry.aliases}
        self._by_name.update({entry.api: entry for entry in self.entries})

    def find(self, name: str) -> Entry | None:
        """The entry of an API by its canonical name or an alias, or None."""
        return self._by_name.get(name)

    def canonical(self, name: str) -> str:
        """The canonical name of an API; a name that is not known stands for itself."""
        entry = self._by_name.get(name)
        return name if entry is None else entry.api

    @property
    def executed_on(self) -> tuple[str, str, str]:
        """The versions of torch and MindSpore and the device behind most entries, or empty."""
        for entry in self.entries:
            if entry.verified is not None:
                return entry.verified.torch, entry.verified.mindspore, entry.verified.device
        return "", "", ""

    @cached_property
    def layer_attributes(self) -> frozenset[str]:
        """What can be read of MindSpore's layers, by torch's names ("weight", "in_features")."""
        return frozenset(name for entry in self.entries for name, _ in entry.attributes)

    @cached_property
    def unheld_attributes(self) -> dict[str, frozenset[str]]:
        """By class: what torch's layers hold, and MindSpore's own in no form."""
        found = {}
        for entry in self.entries:
            names = frozenset(name for name, own in entry.attributes if own == UNHELD)
            if names:
                found[entry.api] = names
        return found

    @cached_property
    def layer_settings(self) -> dict[str, dict[str, str]]:
        """By class: what torch reads at each call of a layer, and MindSpore when it is made.

        Beside each name the function of the runtime that sets it; empty where there is none.
        """
        found = {}
        for entry in self.entries:
            if entry.factory or (entry.rewrite.startswith("nn.") and entry.value):
                names = dict.fromkeys(_names_of(entry.signature) - _NOT_READ, "")
                names |= dict(entry.settings)
                plain = {name for name, setter in entry.settings if not setter}
                found[entry.api] = {name: names[name] for name in names if name not in plain}
        return found

    @cached_property
    def layer_arguments(self) -> frozenset[str]:
        """What torch's layers and losses are made with, and read of themselves when called."""
        return frozenset[str]().union(
            *(_names_of(e.signature) for e in self.entries if _LAYER.fullmatch(e.api))
        )

    @cached_property
    def methods(self) -> frozenset[str]:
        """The bare names of Tensor's methods and attributes ("view", "add_", "shape")."""
        return frozenset(name[len(_METHOD) :] for name in self._by_name if name.startswith(_METHOD))


def _names_of(signature: str) -> frozenset[str]:
    return frozenset(parameter.name for parameter in parameters_of(signature or "()"))


def load_knowledge(verified: Path | None = None, *, with_examples: bool = False) -> Knowledge:
    """The shipped entries with their verdicts.

    verified: a table of verdicts other than the shipped one, such as one of this device; without
    it the variable ISOGRAD_KNOWLEDGE names one.  with_examples: whether the entries hold their
    examples, which only their execution reads and which are half of the text.  Raises OSError where
    a file is not readable, and ValueError where it is not a table of verdicts.
    """
    given = os.environ.get(VARIABLE)
    chosen = verified or (Path(given) if given else VERIFIED_FILE)
    stamp = chosen.stat().st_mtime_ns if chosen.exists() or chosen != VERIFIED_FILE else 0
    return _load(chosen, stamp, with_examples)


@lru_cache(maxsize=4)
@without_collector()
def _load(verified: Path, stamp: int, with_examples: bool) -> Knowledge:
    compiled = read_compiled(COMPILED_FILE) if verified == VERIFIED_FILE else {}
    verdicts = read_verdicts(verified, compiled) if stamp else {}
    rows = json.loads(ENTRIES_FILE.read_text(encoding="utf-8"))
    if with_examples:
        examples = json.loads(EXAMPLES_FILE.read_text(encoding="utf-8"))
        rows = [{**row, "examples": examples.get(row["api"], ())} for row in rows]
    return Knowledge(entry_of(row, verdicts.get(row["api"])) for row in rows)


def read_verdicts(path: Path, compiled: Mapping[str, str]) -> dict[str, Verified]:
    """The verdicts of a table by canonical name; compiled: what the static graph makes of each."""
    table = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(table, dict) or table.get("schema") != "isograd/knowledge/1":
        raise ValueError(f"{path} is not a table of verdicts. Make one with the check command.")
    common = {key: table[key] for key in ("torch", "mindspore", "device")}
    return {
        api: Verified(
            **common,
            forward=row.get("forward"),
            gradient=row.get("gradient"),
            detail=row.get("detail", ""),
            compiled=compiled.get(api, ""),
        )
        for api, row in table["results"].items()
    }


def read_compiled(path: Path) -> dict[str, str]:
    """What the static graph makes of each API: same, refused (why) or differs."""
    if not path.is_file():
        return {}
    table = json.loads(path.read_text(encoding="utf-8"))
    return {api: row["compiled"] for api, row in table["results"].items() if row["compiled"]}


def entry_of(row: Mapping[str, Any], verified: Verified | None = None) -> Entry:
    """An entry from its compiled form, in which defaults are left out."""
    # All entries are made when a command starts: only what a row holds is looked at.
    given = {**row, "status": _STATUSES[row["status"]], "verified": verified}
    for name in _TUPLES.intersection(row):
        given[name] = tuple(row[name])
    for name in _PAIRS.intersection(row):
        given[name] = tuple([(first, second) for first, second in row[name]])
    if "applicability" in row:
        given["applicability"] = Applicability(row["applicability"])
    if "way" in row:
        given["way"] = Way(row["way"])
    if "examples" in row:
        given["examples"] = tuple(_example(example) for example in row["examples"])
    if verified is not None and (verified.forward is False or verified.gradient is False):
        # What did not agree on this device is no equal, whatever was written.
        given["applicability"] = Applicability.HAND
        if given["status"] is Status.SUPPORTED:
            given["status"] = Status.DIFFERS
        given["difference"] = row.get("difference") or f"Disagrees here: {verified.detail}"
    return Entry(**given)


def _example(row: Mapping[str, Any]) -> Example:
    if "inputs" not in row:
        return Example(**row)
    return Example(**{**row, "inputs": tuple([(name, value) for name, value in row["inputs"]])})


def row_of(entry: Entry) -> dict[str, Any]:
    """The compiled form of an entry: plain values, without defaults and without the verdict."""
    row: dict[str, Any] = {"api": entry.api, "status": entry.status.value}
    for name in ("target", "mint", "signature", "rewrite", "value", "factory", "base",
                 "attributes", "settings", "instance", "difference", "hazard", "advice", "source",
                 "aliases", "others", "arguments", "integers"):  # fmt: skip
        if value := getattr(entry, name):
            row[name] = value
    if entry.applicability is not Applicability.HAND:
        row["applicability"] = entry.applicability.value
    if entry.way is not None:
        row["way"] = entry.way.value
    if entry.is_random or _draws(entry):
        row["is_random"] = True
    if entry.examples:
        row["examples"] = [_example_row(example) for example in entry.examples]
    return row


def _draws(entry: Entry) -> bool:
    return entry.hazard == "randomness" or any(
        example.compare in ("distribution", "eval") for example in entry.examples
    )


def _example_row(example: Example) -> dict[str, Any]:
    row: dict[str, Any] = {"code": example.code}
    if example.inputs:
        row["inputs"] = example.inputs
    if example.port:
        row["port"] = example.port
    if not example.gradient:
        row["gradient"] = False
    if example.compare != "values":
        row["compare"] = example.compare
    if not example.ties:
        row["ties"] = False
    return row
