"""The JSON schema of a case file: the one list of its keys, choices and defaults.

`case.py` takes keys and choices from it, docs/case.md is written from it, and editors that know
JSON schema of TOML files can use it as it is.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("case_schema.json")
#: The tables of a case file by their definition in the schema.
TABLES = ("side", "argument", "weights", "verify")


@functools.cache
def schema() -> dict[str, Any]:
    """The schema as plain values, which nobody changes."""
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return found


def properties(table: str) -> dict[str, Any]:
    """The keys of a table, each with its type and description; `case` is the whole file."""
    found: dict[str, Any] = schema() if table == "case" else schema()["$defs"][table]
    keys: dict[str, Any] = found["properties"]
    return keys


def choices(table: str, key: str) -> tuple[str, ...]:
    """The words that a key may have."""
    return tuple(properties(table)[key]["enum"])


def default(table: str, key: str) -> Any:
    """What a key is where it is not written."""
    return properties(table)[key]["default"]
