"""Files that a person writes to say which tensor is which, or how far two may be apart."""

from __future__ import annotations

import json
import math
from pathlib import Path

from isograd.errors import UsageError

#: Larger files are not maps.
_LARGEST_BYTES = 64 << 20


def read_map(path: Path) -> dict[str, str]:
    """A map of names: a JSON object, or a line per pair with two names and `#` comments."""
    text = _text(path, "map")
    if text.lstrip().startswith("{"):
        found = _json_object(path, text)
        if not all(isinstance(name, str) for name in found.values()):
            raise UsageError(f"{path}: a name is no string", 'Write {"first": "second"}.')
        return {name: str(partner) for name, partner in found.items()}
    pairs: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").replace("\t", " ").split()
        if not words:
            continue
        if len(words) != 2 or words[0] in pairs:
            raise UsageError(
                f"{path}:{number}: is no pair of new names", "Write two names on each line."
            )
        pairs[words[0]] = words[1]
    return pairs


def read_envelope(path: Path) -> dict[str, float]:
    """A JSON object of relative Frobenius errors by name; `*` means all other tensors."""
    found = _json_object(path, _text(path, "envelope"))
    envelope = {}
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"{path}: {name!r} has no number", "Give a relative error, as 1e-6.")
        if not math.isfinite(value) or value < 0:
            raise UsageError(f"{path}: {name!r} has {value}", "Give a number that is not below 0.")
        envelope[name] = float(value)
    return envelope


def _text(path: Path, what: str) -> str:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise UsageError(f"{path} is too large for a {what}", "Name another file.")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the {what} {path} cannot be read: {error}", "Name a text file."
        ) from error


def _json_object(path: Path, text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}", "Write one JSON object.") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path} holds no JSON object", 'Write {"name": …}.')
    return found
