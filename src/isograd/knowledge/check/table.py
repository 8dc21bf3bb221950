"""The table of verdicts: `verified-cpu.json`, or a person's own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from isograd.knowledge.check.batches import Outcome
from isograd.knowledge.check.closure import sources_of
from isograd.knowledge.entry import Entry
from isograd.knowledge.store import row_of

SCHEMA = "isograd/knowledge/1"
#: What each example is executed on; a verdict of less is not kept.
_DRAWS = "three seeds, ties"


def fingerprint(entry: Entry, left_out: frozenset[str] = frozenset()) -> str:
    """Changes with what is executed: templates, examples, and the runtime functions they use.

    left_out: names of methods of the runtime's classes that do not count.
    """
    keys = ("rewrite", "others", "value", "examples", "signature")
    row = {key: row_of(entry).get(key) for key in keys}
    text = json.dumps({k: v for k, v in row.items() if v or k != "value"}, sort_keys=True)
    whole = text + sources_of(text, left_out) + _DRAWS
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


def verdict(entry: Entry, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """An entry's verdict from those of its examples: all must agree."""
    found = list(outcomes)
    forwards = [o.forward for o in found]
    gradients = [o.gradient for o in found if o.gradient is not None]
    broken = [o.detail for o in found if o.forward is False or o.gradient is False]
    unknown = [o.detail for o in found if o.forward is None]
    row: dict[str, Any] = {
        "forward": False if False in forwards else None if None in forwards else True,
        "gradient": all(gradients) if gradients else None,
        "examples": len(found),
        "error": max((o.error for o in found), default=0.0),
        "of": fingerprint(entry),
    }
    if detail := next(iter(broken + unknown), ""):
        row["detail"] = detail
    return row


def read(path: Path, device: str = "CPU") -> dict[str, Any]:
    """The results of an earlier run by API, for going on where it ended; empty without one."""
    if not path.exists():
        return {}
    table = json.loads(path.read_text(encoding="utf-8"))
    if any(table.get(key) != value for key, value in header(device).items()):
        return {}
    return read_results(path)


def read_results(path: Path) -> dict[str, Any]:
    """The results of a table by API, of whatever versions."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["results"]
    return found


def header(device: str = "CPU") -> dict[str, str]:
    """Schema, versions and device."""
    return {
        "schema": SCHEMA,
        "torch": _version("torch"),
        "mindspore": _version("mindspore"),
        "device": device,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def write(path: Path, results: Mapping[str, Any], device: str = "CPU") -> None:
    """The table, whole or not at all, one API a line."""
    lines = [f"{json.dumps(api)}: {json.dumps(results[api])}" for api in sorted(results)]
    head = json.dumps(header(device))[:-1]
    partial = path.with_suffix(".partial")
    partial.write_text(head + ', "results": {\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    partial.replace(path)
