"""A conversion's map as a file: written for re-use, read back, and never trusted.

The file is JSON by the schema `isograd/weights-map/1`: for each move the names on both sides and
the transform.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isograd.checkpoints.jsons import read_json
from isograd.errors import CheckpointError
from isograd.pairing.parametrized import Fold
from isograd.pairing.transforms import (
    Chain,
    Concatenate,
    Identity,
    Reshape,
    Split,
    Transform,
    Transpose,
)
from isograd.weights.model import Dropped, Move, Plan
from isograd.weights.transform_value import transform_value

SCHEMA = "isograd/weights-map/1"
_ADVICE = "Write a map with `isograd weights SRC -o DST --write-map FILE` and edit that."
_MOST_STEPS = 8


def map_text(plan: Plan) -> str:
    """The plan as the text of a map file."""
    value = {
        "schema": SCHEMA,
        "tensors": [
            {
                "source": list(move.source),
                "target": list(move.target),
                "transform": transform_value(move.transform),
                **({} if move.fold is None else {"fold": move.fold}),
            }
            for move in plan.moves
        ],
        "dropped": [{"source": d.name, "reason": d.reason} for d in plan.dropped],
    }
    return json.dumps(value, indent=1) + "\n"


def read_map(path: Path) -> Plan:
    """Read a map file; CheckpointError where it is malformed."""
    found = read_json(path)
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise CheckpointError(f"{path}: is no map of tensors ({SCHEMA})", _ADVICE)
    try:
        moves = tuple(
            Move(
                _names(entry["source"]),
                _names(entry["target"]),
                _transform(entry.get("transform"), 0),
                "map",
                _fold(entry.get("fold")),
            )
            for entry in found["tensors"]
        )
        dropped = tuple(
            Dropped(str(entry["source"]), str(entry.get("reason", "the map drops it")))
            for entry in found.get("dropped", [])
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path}: is malformed ({error!r:.200})", _ADVICE) from error
    return Plan(moves, dropped)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or any(not isinstance(v, str) for v in value):
        raise ValueError(f"{value!r:.100} is no list of names")
    return tuple(value)


def _fold(value: Any) -> Fold | None:
    if value is None:
        return None
    if value == "weight_norm":
        return "weight_norm"
    if value == "spectral_norm":
        return "spectral_norm"
    raise ValueError(f"the fold {value!r:.50} is not known")


def _transform(value: Any, depth: int) -> Transform:
    if value is None:
        return Identity()
    if not isinstance(value, dict) or depth > 1:
        raise ValueError("a transform is malformed")
    kind = value["kind"]
    if kind == "transpose":
        axes = _integers(value["axes"])
        if sorted(axes) != list(range(len(axes))):
            raise ValueError(f"{axes} is no order of axes")
        return Transpose(axes)
    if kind == "reshape":
        return Reshape(_integers(value["source"]), _integers(value["target"]))
    if kind in ("concatenate", "split"):
        made = Concatenate if kind == "concatenate" else Split
        (axis,) = _integers([value["axis"]])
        return made(axis, _integers(value["sizes"]))
    if kind == "chain" and len(value["steps"]) <= _MOST_STEPS:
        return Chain(tuple(_transform(step, depth + 1) for step in value["steps"]))
    raise ValueError(f"the transform {kind!r:.50} is not known")


def _integers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or any(type(v) is not int or v < 0 for v in value):
        raise ValueError(f"{value!r:.100} is no list of natural numbers")
    return tuple(value)
