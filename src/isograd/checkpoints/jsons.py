"""JSON of third parties: bounded, without duplicate names, and every refusal names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isograd.errors import CheckpointError

MAX_JSON_BYTES = 256 * 1024 * 1024
_ADVICE = "The file is damaged or of another kind; copy it again, or name another one."


def read_json(path: Path) -> Any:
    """Parse a JSON file; CheckpointError where it cannot be read or is none."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise CheckpointError(f"{path}: is beyond {MAX_JSON_BYTES:,} bytes of JSON", _ADVICE)
        text = path.read_bytes().decode("utf-8")
        return json.loads(text, object_pairs_hook=unique_pairs)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: is no JSON ({error})", _ADVICE) from error


def unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs; ValueError where a name occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found
