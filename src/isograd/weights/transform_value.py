"""A transform of a layout as plain values, as maps and reports hold it."""

from __future__ import annotations

from typing import Any

from isograd.pairing.transforms import (
    Concatenate,
    Identity,
    Reshape,
    Split,
    Transform,
    Transpose,
)


def transform_value(transform: Transform) -> dict[str, Any] | None:
    """A transform as plain values; None for one that does nothing."""
    if isinstance(transform, Identity):
        return None
    if isinstance(transform, Transpose):
        return {"kind": "transpose", "axes": list(transform.axes)}
    if isinstance(transform, Reshape):
        return {
            "kind": "reshape",
            "source": list(transform.reference),
            "target": list(transform.port),
        }
    if isinstance(transform, Concatenate | Split):
        kind = "concatenate" if isinstance(transform, Concatenate) else "split"
        return {"kind": kind, "axis": transform.axis, "sizes": list(transform.sizes)}
    return {"kind": "chain", "steps": [transform_value(step) for step in transform.steps]}
